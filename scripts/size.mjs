// What the Worker weighs, and what must not be in it.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { fail, root } from "./tools.mjs";

const limitBytes = 450 * 1024;
const files = ["index_bg.wasm", "index.js"];

// Heavy code that crates of ours carry and that nothing here may call; wasm keeps the names of its functions.
const unwanted = ["url::parser", "idna::", "regex", "reqwest", "tokio::runtime", "chrono::format"];

const kib = (bytes) => `${(bytes / 1024).toFixed(1).padStart(8)} KiB`;

const sizes = files.map((name) => {
  const bytes = readFileSync(join(root, "build", name));
  return { name, plain: bytes.length, gzipped: gzipSync(bytes, { level: 9 }).length };
});
const sum = (key) => sizes.reduce((total, size) => total + size[key], 0);
for (const { name, plain, gzipped } of [...sizes, { name: "total", plain: sum("plain"), gzipped: sum("gzipped") }]) {
  console.log(`${name.padEnd(14)} ${kib(plain)} ${kib(gzipped)} gzipped`);
}
if (sum("gzipped") > limitBytes) fail(`the Worker is over ${limitBytes / 1024} KiB gzipped.`);

const wasm = readFileSync(join(root, "build", "index_bg.wasm"), "latin1");
const found = unwanted.filter((name) => wasm.includes(name));
if (found.length > 0) fail(`the wasm carries ${found.join(", ")}.`);
