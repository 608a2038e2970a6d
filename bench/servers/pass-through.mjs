import { servePlain } from "./plain.mjs";

await servePlain({ name: "pass-through", modules: ["pass-through.mjs", "translate.mjs"] });
