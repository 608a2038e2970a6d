// What the wasm and its JavaScript know of each other: only what the Worker has use for, by short names.
//
// wasm-bindgen names what it imports by kind, place and hash, in both files, and exports every class of the `worker` crate.

import { transformSync } from "esbuild";
import { fail } from "./tools.mjs";
import { exportNames, importNames, reconnected } from "./wasm.mjs";

/** What a deployment may ask the module for; `wrangler.toml` names the class. */
const WANTED = ["default", "RunObject"];

/** The JavaScript without classes nobody can reach. */
function shaken(index) {
  const exported = /export\{([^}]*)\};?\s*$/.exec(index)?.[1].split(",") ?? [];
  const kept = exported.filter((entry) => WANTED.includes(entry.split(" as ").at(-1)));
  if (kept.length !== WANTED.length) fail(`index.js exports other things than ${WANTED.join(" and ")}.`);
  // By these three each class counts as used. `using` is for callers in JavaScript, and there are none.
  const code = index
    .replace(/export\{[^}]*\};?\s*$/, `export{${kept.join(",")}};`)
    .replace(/Symbol\.dispose&&\((\w+)\.prototype\[Symbol\.dispose\]=\1\.prototype\.free\);/g, "")
    .replace(/new (Proxy|FinalizationRegistry)\(/g, "/* @__PURE__ */new $1(");
  return transformSync(code, { format: "esm", minify: true, treeShaking: true, legalComments: "none" }).code;
}

/** a, b, .. z, A, .. Z, aa, ab, .. */
function shortName(count) {
  const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const rest = Math.floor(count / letters.length);
  return (rest > 0 ? shortName(rest - 1) : "") + letters[count % letters.length];
}

/** Both files, `{ index, wasm }`, made smaller. What is exported no longer is still in the wasm. */
export function trimmed(index, wasm) {
  const code = shaken(index);
  const [, instance] = /\b(\w+)=\w+\.exports\b/.exec(code) ?? fail("index.js does not say where it keeps what the wasm exports.");
  const words = new Set(code.match(/[A-Za-z_$][\w$]*/g));
  const isUsed = (name) => words.has(name);
  const imported = new Map(importNames(wasm).filter(isUsed).map((name, count) => [name, shortName(count)]));
  // Names without `_` are also those of the platform's own methods: `fetch`.
  const isOurs = (name) => name.includes("_");
  const exported = new Map(exportNames(wasm).filter(isUsed).map((name, count) => [name, isOurs(name) ? shortName(count) : name]));
  const renamed = code
    .replace(/(?<=[{,])__wb\w+(?=:)/g, (name) => imported.get(name) ?? name)
    .replace(new RegExp(`(?<=\\b${instance}\\.)\\w+`, "g"), (name) => exported.get(name) ?? name);
  return { index: renamed, wasm: reconnected(wasm, imported, exported) };
}
