// What the Worker weighs. `--profile` writes what it is made of into docs/size.md.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { fail, namedWasm, output, root } from "./tools.mjs";
import { contents } from "./wasm.mjs";

// What we want, and what stops the build: growth nobody decided on.
const goalBytes = 400 * 1024;
const limitBytes = 600 * 1024;
const files = ["index_bg.wasm", "index.js"];

const zipped = (bytes) => gzipSync(bytes, { level: 9 }).length;
const kib = (bytes) => `${(bytes / 1024).toFixed(1).padStart(8)} KiB`;

const sizes = files.map((name) => {
  const bytes = readFileSync(join(root, "build", name));
  return { name, plain: bytes.length, gzipped: zipped(bytes) };
});
const sum = (key) => sizes.reduce((total, size) => total + size[key], 0);
for (const { name, plain, gzipped } of [...sizes, { name: "total", plain: sum("plain"), gzipped: sum("gzipped") }]) {
  console.log(`${name.padEnd(14)} ${kib(plain)} ${kib(gzipped)} gzipped`);
}
console.log(`goal           ${" ".repeat(12)} ${kib(goalBytes)} gzipped`);
if (process.argv.includes("--profile")) writeFileSync(join(root, "docs", "size.md"), page());
if (sum("gzipped") > limitBytes) fail(`the Worker is over ${limitBytes / 1024} KiB gzipped.`);

/** The group a function is counted in, by its demangled name. */
function groupOf(name) {
  const path = name.replace(/\[[0-9a-f]{16}\]/g, "");
  const [, own] = /^<*(?:&?(?:mut |dyn )?)*io_bridge::((?:provider::(?:ag_ui|anthropic|demo|google|mastra|openai_\w+)|protocol::read|[a-z_]+))/.exec(path) ?? [];
  if (own) return `\`${own.replaceAll("::", "/")}\``;
  const [, crate] = /([a-z]\w*)::/.exec(path.replace(/io_bridge::\S*/g, "")) ?? [];
  if (/drop_in_place/.test(path)) return "std: what drops values";
  if (/^(core|alloc|std)$/.test(crate) || /^(<?(str|char|\[|[iu](8|16|32|64|128|size)|f(32|64))>?)/.test(path)) {
    const [, area] = /(?:core|alloc|std)::(iter|vec|raw_vec|collections|slice|str|string|fmt|num)\b/.exec(path) ?? [];
    return area ? `std: ${area === "raw_vec" ? "vec" : area}` : "std: the rest";
  }
  if (/^serde/.test(crate)) return "serde, serde_json";
  if (/^(worker\w*|wasm_bindgen\w*|js_sys|web_sys|wasm_streams|__wbg\w*|__wbindgen\w*)$/.test(crate ?? path)) return "worker, wasm-bindgen";
  if (/^(hashbrown|indexmap)$/.test(crate)) return "hashbrown, indexmap";
  return /^futures/.test(crate) ? "futures" : "other crates";
}

/** A table of groups, the heaviest first; each zipped by itself, and so estimated. */
function table(title, parts) {
  const groups = new Map();
  for (const { group, bytes } of parts) groups.set(group, [...(groups.get(group) ?? []), bytes]);
  const rows = [...groups].map(([group, pieces]) => {
    const whole = Buffer.concat(pieces);
    return { group, count: pieces.length, plain: whole.length, gzipped: zipped(whole) };
  });
  const total = rows.reduce((all, row) => all + row.gzipped, 0);
  const cells = rows
    .sort((one, other) => other.gzipped - one.gzipped)
    .map(({ group, count, plain, gzipped }) => `| ${group} | ${count} | ${(plain / 1024).toFixed(1)} | ${(gzipped / 1024).toFixed(1)} | ${((gzipped / total) * 100).toFixed(1)} % |`);
  return [`| ${title} | pieces | KiB | KiB, zipped alone | share |`, "| --- | --: | --: | --: | --: |", ...cells].join("\n");
}

/** Data told apart by its looks: whatever has four readable characters in a row is a text. */
function dataParts(data) {
  const kind = (text) => (text.startsWith('{"openapi":') ? "the API's description" : "other texts");
  const readable = /[\n\t -~]{4,}/;
  return data
    .toString("latin1")
    .split(/((?:\{"openapi":)?[\n\t -~]{4,})/)
    .map((piece) => ({ group: readable.test(piece) ? kind(piece) : "tables and addresses", bytes: Buffer.from(piece, "latin1") }));
}

function page() {
  const { functions, data } = contents(readFileSync(namedWasm));
  const named = functions.map(({ name, bytes }) => ({ group: groupOf(name), bytes }));
  const isCode = ({ group }) => group.startsWith("`");
  const kinds = [
    ...named.map((part) => ({ group: isCode(part) ? "functions of ours" : "functions of others, most of them made for types of ours", bytes: part.bytes })),
    ...dataParts(data),
    { group: "`index.js`", bytes: readFileSync(join(root, "build", "index.js")) },
  ];
  return `# What the Worker is made of

Written by \`make size-profile\` with ${output("rustc", ["--version"]).split(" ").slice(0, 2).join(" ")}: **${kib(sum("gzipped")).trim()}** gzipped, ${kib(sum("plain")).trim()} plain.
Groups are zipped one by one, which together is a little more than the whole.

${table("kind", kinds)}

## Functions

A function counts for the module or crate it is written in. Generic code of others is there once for each of our types it is
used with: lists, iterators, readers and writers of JSON.

${table("written in", named)}
`;
}
