import { bundleAiChat } from "../peers/ai-chat/bundle.mjs";
import { servePlain } from "./plain.mjs";
import { fileURLToPath } from "node:url";

const contents = await bundleAiChat();
await servePlain({
  name: "ai-chat",
  modules: [{ type: "ESModule", path: fileURLToPath(new URL("../workers/ai-chat.mjs", import.meta.url)), contents }],
  objects: { ChatAgent: { className: "ChatAgent", useSQLite: true } },
});
