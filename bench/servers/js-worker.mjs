import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { servePlain } from "./plain.mjs";

const file = (name) => fileURLToPath(new URL(`../workers/${name}`, import.meta.url));
const counting = () => ({
  type: "ESModule",
  path: file("front.mjs"),
  contents: readFileSync(file("counting.mjs"), "utf8").replace('"INNER"', '"./js-worker.mjs"'),
});

await servePlain({
  name: "js-worker",
  modules: [...(process.env.COUNTED ? [counting()] : []), "js-worker.mjs", "translate.mjs"],
  objects: { RUNS: { className: "RunObject", useSQLite: true } },
  schema: new URL("../workers/js-worker.sql", import.meta.url),
});
