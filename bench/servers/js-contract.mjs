import { servePlain } from "./plain.mjs";

await servePlain({
  name: "js-contract",
  modules: ["js-contract.mjs", "translate.mjs"],
  objects: { RUNS: { className: "RunObject", useSQLite: true } },
});
