// Keeps heavy crates out of the Worker: parsers of addresses and patterns, HTTP stacks, runtimes.

import { fail, output } from "./tools.mjs";

const never = new Set(["regex", "regex-automata", "regex-lite", "reqwest", "hyper", "mio", "ring", "prost", "jsonschema"]);
// These come along with the `worker` crate. Unused, they cost nothing (`make size` looks); never name one ourselves.
const onlyThroughWorker = new Set(["url", "idna", "tokio", "chrono", "http", "matchit"]);

const args = ["tree", "--locked", "--target", "wasm32-unknown-unknown", "--edges", "normal,no-proc-macro"];
const tree = output("cargo", [...args, "--prefix", "depth", "--format", " {p}"]) ?? fail("cargo tree failed.");
const crates = tree.split("\n").map((line) => {
  const [depth, name] = line.split(" ");
  return { depth: Number(depth), name };
});
if (!crates.some(({ name }) => name === "worker")) fail("cargo tree does not show the `worker` crate.");
const unwanted = crates.filter(({ depth, name }) => never.has(name) || (depth === 1 && onlyThroughWorker.has(name)));
if (unwanted.length > 0) {
  fail(`the Worker must not depend on ${unwanted.map(({ name }) => name).join(", ")}.`);
}
console.log(`${new Set(crates.map(({ name }) => name)).size} crates, none unwanted`);
