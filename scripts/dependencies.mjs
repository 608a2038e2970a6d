// Keeps heavy crates out of the Worker: parsers of addresses and patterns, HTTP stacks, runtimes.

import { fail, output } from "./tools.mjs";

const heavy = ["regex", "regex-automata", "regex-lite", "reqwest", "hyper", "mio", "ring", "prost", "jsonschema"];
// The `worker` crate, and what comes along with it.
const never = new Set([...heavy, "worker", "url", "idna", "tokio", "chrono", "http", "matchit"]);

const args = ["tree", "--locked", "--target", "wasm32-unknown-unknown", "--edges", "normal,no-proc-macro"];
const tree = output("cargo", [...args, "--prefix", "none"]) ?? fail("cargo tree failed.");
const crates = new Set(tree.split("\n").map((line) => line.split(" ")[0]));
if (!crates.has("wasm-bindgen")) fail("cargo tree does not show the `wasm-bindgen` crate.");
const unwanted = [...crates].filter((name) => never.has(name));
if (unwanted.length > 0) fail(`the Worker must not depend on ${unwanted.join(", ")}.`);
console.log(`${crates.size} crates, none unwanted`);
