// What the Worker weighs. `--profile` writes what it is made of into docs/size.md.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { fail, namedWasm, output, root } from "./tools.mjs";
import { contents } from "./wasm.mjs";

// What we want, and what stops the build: growth nobody decided on.
const goalBytes = 400 * 1024;
const limitBytes = 410 * 1024;
const files = ["index_bg.wasm", "index.js"];

/** What may be thought away: what it is called, and its modules. */
const capabilities = [
  ["tools of the server: HTTP, MCP, schemas", /^(tool|run::(mcp_\w+|http_call|server_calls)|edge::server_tools|config::(server_tools|check_tools))\b/],
  ["agents of a Mastra server and their threads", /^(provider::mastra|run::kept_threads|edge::kept_thread_handlers|store::mastra_form)\b/],
  ["the demo model", /^provider::demo\b/],
  ["runs that survive a reset: journal, checkpoints, resuming", /^(run::(journal|checkpoint|resume|keeper)|edge::(object_sql|outbox|watchdog))\b/],
  ["Anthropic", /^provider::anthropic\b/],
  ["OpenAI Responses", /^provider::openai_responses\b/],
  ["attachments in a bucket", /^(store::attachments|edge::bucket|binding::base64)\b/],
  ["Google", /^provider::google\b/],
  ["JWT", /^(api::jwt\w*|config::auth|edge::identity)\b/],
  ["other AG-UI agents", /^provider::ag_ui\b/],
  ["WebSocket and protobuf", /^(edge::socket|api::socket|binding::protobuf)\b/],
  ["export, erasing, search", /^store::(export|purge|search)\b/],
];

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

/** The module a function is in, or made for: where two meet, the first. */
function moduleOf(name) {
  return /\bio_bridge::((?:[a-z_0-9]+::)*[a-z_0-9]+)/.exec(name)?.[1];
}

function isOurs(name) {
  return /^<*(?:&?(?:mut |dyn )?)*io_bridge::/.test(name);
}

/** Where a function is from that is made for nothing of ours. */
function crateOf(name) {
  const crate = /^\W*(?:(?:mut|dyn|const|as) )*([a-z_0-9]+)/.exec(name)?.[1] ?? "";
  if (/^serde/.test(crate)) return "serde, serde_json alone";
  if (/^(worker|wasm_|js_sys|web_sys|__wbg|__wbindgen|__externref)/.test(crate)) return "worker, wasm-bindgen alone";
  return /^(core|alloc|std|hashbrown|str|char|bool|[iuf]\d+|usize|dlmalloc|__rustc|compiler_builtins|mem\w+)$/.test(crate) ? "std alone" : "other crates alone";
}

function partOf(name) {
  const module = moduleOf(name);
  if (!module) return crateOf(name);
  return capabilities.find(([, modules]) => modules.test(module))?.[0] ?? `\`${module.split("::")[0]}\`, the rest`;
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
    .split(/(?=\{"openapi":)/)
    .flatMap((part) => part.split(/([\n\t -~]{4,})/))
    .map((piece) => ({ group: readable.test(piece) ? kind(piece) : "tables and addresses", bytes: Buffer.from(piece, "latin1") }));
}

/** What is left when one capability after the other is taken away, in KiB; the shares of the groups zipped one by one. */
function withoutTable(parts) {
  const sizeOf = (wanted) => zipped(Buffer.concat(parts.filter(({ group }) => group === wanted).map(({ bytes }) => bytes)));
  const groups = [...new Set(parts.map(({ group }) => group))];
  const scale = sum("gzipped") / groups.reduce((all, group) => all + sizeOf(group), 0);
  const taken = capabilities.map(([name]) => ({ name, bytes: sizeOf(name) * scale })).sort((one, other) => other.bytes - one.bytes);
  let left = sum("gzipped");
  const rows = taken.map(({ name, bytes }) => {
    left -= bytes;
    return `| ${name} | ${(bytes / 1024).toFixed(1)} | ${(left / 1024).toFixed(0)} |`;
  });
  return ["| without | KiB | left, KiB |", "| --- | --: | --: |", ...rows].join("\n");
}

function page() {
  const { functions, data } = contents(readFileSync(namedWasm));
  const rest = [...dataParts(data), { group: "`index.js`", bytes: readFileSync(join(root, "build", "index.js")) }];
  const kindOf = (name) => {
    if (isOurs(name)) return "functions of ours";
    return moduleOf(name) ? "functions of others, made for types of ours" : "functions of others";
  };
  const kinds = [...functions.map(({ name, bytes }) => ({ group: kindOf(name), bytes })), ...rest];
  const parts = [...functions.map(({ name, bytes }) => ({ group: partOf(name), bytes })), ...rest];
  return `# What the Worker is made of

Written by \`make size-profile\` with ${output("rustc", ["--version"]).split(" ").slice(0, 2).join(" ")}: **${kib(sum("gzipped")).trim()}** gzipped, ${kib(sum("plain")).trim()} plain.
Groups are zipped one by one, which together is a little more than the whole.

${table("kind", kinds)}

## By what it is for

A function counts for the part it is in; a generic one of others (lists, iterators, readers and writers of JSON) for the part of
ours it is made for, or as theirs alone.

${table("for", parts)}

## What less would mean

The goal is ${goalBytes / 1024} KiB${sum("gzipped") > goalBytes ? ", and no part is so heavy that it would be reached without it" : ""}; over ${limitBytes / 1024} the build stops. Taken away one after the other, what
a smaller backend would not have:

${withoutTable(parts)}
`;
}
