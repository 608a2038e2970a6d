// What the Worker weighs.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { fail, root } from "./tools.mjs";

// What we want, and what stops the build: growth nobody decided on.
const goalBytes = 450 * 1024;
const limitBytes = 735 * 1024;
const files = ["index_bg.wasm", "index.js"];

const kib = (bytes) => `${(bytes / 1024).toFixed(1).padStart(8)} KiB`;

const sizes = files.map((name) => {
  const bytes = readFileSync(join(root, "build", name));
  return { name, plain: bytes.length, gzipped: gzipSync(bytes, { level: 9 }).length };
});
const sum = (key) => sizes.reduce((total, size) => total + size[key], 0);
for (const { name, plain, gzipped } of [...sizes, { name: "total", plain: sum("plain"), gzipped: sum("gzipped") }]) {
  console.log(`${name.padEnd(14)} ${kib(plain)} ${kib(gzipped)} gzipped`);
}
console.log(`goal           ${" ".repeat(12)} ${kib(goalBytes)} gzipped`);
if (sum("gzipped") > limitBytes) fail(`the Worker is over ${limitBytes / 1024} KiB gzipped.`);
