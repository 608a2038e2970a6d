// What the wasm and its JavaScript know of each other: only what the Worker has use for, by short names.
//
// wasm-bindgen names what it imports by kind, place and hash, in both files, and exports every class of the `worker` crate.

import { transformSync } from "esbuild";
import { fail } from "./tools.mjs";
import { exportNames, exported, importModule, importNames, renamedBorders } from "./wasm.mjs";

/** What a deployment may ask the module for; `wrangler.toml` names the class. */
const WANTED = ["default", "RunObject"];

/** What the wasm calls its JavaScript. */
const MODULE = "a";

const minified = (code) => transformSync(code, { format: "esm", minify: true, treeShaking: true, legalComments: "none" }).code;

/** The JavaScript without classes nobody can reach. */
export function reachableScript(index) {
  const all = /export\{([^}]*)\};?\s*$/.exec(index)?.[1].split(",") ?? [];
  const kept = all.filter((entry) => WANTED.includes(entry.split(" as ").at(-1)));
  if (kept.length !== WANTED.length) fail(`index.js exports other things than ${WANTED.join(" and ")}.`);
  // By these three each class counts as used. `using` is for callers in JavaScript, and there are none.
  const code = index
    .replace(/export\{[^}]*\};?\s*$/, `export{${kept.join(",")}};`)
    .replace(/Symbol\.dispose&&\((\w+)\.prototype\[Symbol\.dispose\]=\1\.prototype\.free\);/g, "")
    .replace(/new (Proxy|FinalizationRegistry)\(/g, "/* @__PURE__ */new $1(");
  return minified(code);
}

/** The wasm without the exports that the JavaScript does not ask for; what only they ran is left to wasm-opt. */
export function reachableWasm(wasm, index) {
  const words = new Set(index.match(/[A-Za-z_$][\w$]*/g));
  return exported(wasm, exportNames(wasm).filter((name) => words.has(name)));
}

/** a, b, .. z, A, .. Z, aa, ab, .. */
function shortName(count) {
  const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const rest = Math.floor(count / letters.length);
  return (rest > 0 ? shortName(rest - 1) : "") + letters[count % letters.length];
}

/** The code without the functions of imports the wasm has not. A minified one ends with its braces. */
function withoutUnused(code, imports) {
  let [kept, from] = ["", 0];
  for (const { 0: head, 1: name, index } of code.matchAll(/(?<=[{,])(__wb\w+):function\([\w,]*\)\{/g)) {
    if (imports.includes(name)) continue;
    let end = index + head.length;
    for (let depth = 1; depth > 0; end += 1) depth += { "{": 1, "}": -1 }[code[end]] ?? 0;
    kept += code.slice(from, index);
    from = code[end] === "," ? end + 1 : end;
  }
  return kept + code.slice(from);
}

/** Both files, `{ index, wasm }`, by short names where they meet. */
export function shortened(script, wasm) {
  const imports = importNames(wasm);
  const code = minified(withoutUnused(script, imports));
  const [, instance] = /\b(\w+)=\w+\.exports\b/.exec(code) ?? fail("index.js does not say where it keeps what the wasm exports.");
  const newImports = new Map(imports.map((name, count) => [name, shortName(count)]));
  // Names without `_` are also those of the platform's own methods: `fetch`.
  const newExports = new Map(exportNames(wasm).map((name, count) => [name, name.includes("_") ? shortName(count) : name]));
  const index = code
    .replace(`"${importModule(wasm)}":`, `${MODULE}:`)
    .replace(/(?<=[{,])__wb\w+(?=:)/g, (name) => newImports.get(name) ?? name)
    .replace(new RegExp(`(?<=\\b${instance}\\.)\\w+`, "g"), (name) => newExports.get(name) ?? name);
  return { index, wasm: renamedBorders(wasm, MODULE, newImports, newExports) };
}
