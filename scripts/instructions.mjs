// How many instructions the core takes for fixed inputs, under valgrind: exact whatever else the machine does.
//
// `node scripts/instructions.mjs` compares with bench/instructions/baseline.json and fails where a count has grown;
// `--write` makes the counts of now the baseline. Counts of another compiler say nothing and are only printed.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fail, output, root, run, which } from "./tools.mjs";

const TOLERANCE = 0.03;
const crate = join(root, "bench", "instructions");
const baselineFile = join(crate, "baseline.json");
const binary = join(root, "target", "instructions", "release", "instructions");

function count(name) {
  const counter = ["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no", "--toggle-collect=*measured*"];
  const report = execFileSync("sh", ["-c", 'exec valgrind "$@" 2>&1', "sh", ...counter, binary, name], { encoding: "utf8" });
  const counted = /Collected : (\d+)/.exec(report);
  if (!counted || counted[1] === "0") fail(`valgrind counted nothing for ${name}:\n${report}`);
  return Number(counted[1]);
}

if (!which("valgrind")) {
  console.log("instructions are not counted: valgrind is not here (Debian's package `valgrind`).");
  process.exit(0);
}
run("cargo", ["build", "--release", "--locked", "--manifest-path", join(crate, "Cargo.toml"), "--target-dir", join(root, "target", "instructions")]);
const compiler = `${output("rustc", ["--version"]).split(" ")[1]} ${process.arch}`;
const counts = Object.fromEntries(output(binary, []).split("\n").map((name) => [name, count(name)]));

if (process.argv.includes("--write")) {
  writeFileSync(baselineFile, `${JSON.stringify({ compiler, counts }, null, 2)}\n`);
}
const baseline = JSON.parse(readFileSync(baselineFile, "utf8"));
const isComparable = baseline.compiler === compiler;
if (!isComparable) console.log(`the baseline is of rustc ${baseline.compiler}, this is ${compiler}: nothing is compared.`);
const grown = [];
for (const [name, instructions] of Object.entries(counts)) {
  const before = isComparable ? baseline.counts[name] : undefined;
  const change = before ? instructions / before - 1 : undefined;
  if (isComparable && (change === undefined || change > TOLERANCE)) grown.push(name);
  const percent = change === undefined ? "" : `${change < 0 ? "" : "+"}${(change * 100).toFixed(1)} %`;
  console.log(`${name.padEnd(28)} ${(instructions / 1e6).toFixed(2).padStart(9)} M ${percent.padStart(9)}`);
}
if (grown.length > 0) {
  fail(`more than ${TOLERANCE * 100} % over the baseline: ${grown.join(", ")}. Where it is worth it, \`make instructions WRITE=--write\`.`);
}
