// Searches the readers of `tests/support/readers.rs` for inputs that make one panic, hang or take memory, led by what the
// inputs reach (libFuzzer). `--seconds 600` is the time of all together; `--only sse,ids` takes some of them; `--write`
// keeps what reaches more than the fixtures do in tests/fixtures/fuzz/, which `cargo test` replays.
//
// Needs cargo-fuzz and a C++ compiler. The compiler's own marks are unstable: RUSTC_BOOTSTRAP lets a stable one set them.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { fail, root, run, which } from "./tools.mjs";

/** Longest input, in bytes. */
const INPUT_MAX_BYTES = 16 * 1024;

/** Longest input that is kept, and most of all that is kept of a reader, in bytes. */
const KEPT_INPUT_MAX_BYTES = 512;
const KEPT_MAX_BYTES = 12 * 1024;

/** How much is shown of what a failed search printed, in characters. */
const FAULT_SHOWN_LENGTH = 4000;

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "600" }, only: { type: "string" }, write: { type: "boolean", default: false } },
});

for (const command of ["cargo-fuzz", "c++"]) {
  if (!which(command)) fail(`${command} is missing: this needs cargo-fuzz (\`cargo install cargo-fuzz --locked\`) and a C++ compiler.`);
}
run("cargo", ["fuzz", "build", "--sanitizer", "none", "readers"], { RUSTC_BOOTSTRAP: "1" });
const { stdout: host } = spawnSync("rustc", ["--print", "host-tuple"], { cwd: root, encoding: "utf8" });
const binary = join(root, "fuzz", "target", host.trim(), "release", "readers");

const fuzz = (args, env = {}) =>
  spawnSync(binary, [...args, `-max_len=${INPUT_MAX_BYTES}`, "-timeout=10", "-rss_limit_mb=1024", "-verbosity=0"], {
    cwd: root,
    env: { ...process.env, ...env },
    encoding: "utf8",
    maxBuffer: 256 * 1024 * 1024,
  });

const all = fuzz([]).stdout.trim().split("\n");
const names = values.only?.split(",") ?? all;
const strangers = names.filter((name) => !all.includes(name));
if (strangers.length > 0) fail(`there is no reader ${strangers.join(", ")}; there are ${all.join(", ")}.`);
const seconds = Math.max(1, Math.floor(Number(values.seconds) / names.length));

const failed = [];
for (const name of names) {
  const [corpus, artifacts] = ["corpus", "artifacts"].map((folder) => join(root, "fuzz", folder, name));
  for (const folder of [corpus, artifacts]) mkdirSync(folder, { recursive: true });
  const seeds = mkdtempSync(join(tmpdir(), "io-bridge-fuzz-"));
  const found = () => readdirSync(corpus).length;
  const before = found();
  const env = { READER: name, SEEDS: seeds };
  const { status, stderr } = fuzz([corpus, seeds, `-max_total_time=${seconds}`, `-artifact_prefix=${artifacts}/`, "-print_final_stats=1"], env);
  const attempts = stderr.match(/number_of_executed_units: (\d+)/)?.[1] ?? "?";
  console.log(`${name.padEnd(26)} ${attempts.padStart(10)} attempts, ${found() - before} inputs reach something new`);
  if (status !== 0) {
    failed.push(name);
    console.log(stderr.slice(-FAULT_SHOWN_LENGTH));
  }
  if (values.write) keep(name, corpus, seeds);
  rmSync(seeds, { recursive: true });
}
if (failed.length > 0) fail(`${failed.join(", ")} failed; the inputs are in fuzz/artifacts/.`);

/** Writes the smallest inputs that reach what the fixtures do not. Earlier ones, of `seeds`, have to show it anew. */
function keep(name, corpus, seeds) {
  for (const file of readdirSync(seeds).filter((file) => file.startsWith("kept-"))) {
    writeFileSync(join(corpus, file), readFileSync(join(seeds, file)));
    rmSync(join(seeds, file));
  }
  const { status } = fuzz(["-merge=1", "-use_counters=0", seeds, corpus], { READER: name });
  if (status !== 0) fail(`the inputs of ${name} could not be compared.`);
  const inputs = readdirSync(seeds)
    .filter((file) => !file.startsWith("seed-"))
    .map((file) => readFileSync(join(seeds, file)))
    .filter((bytes) => bytes.length > 0 && bytes.length <= KEPT_INPUT_MAX_BYTES)
    .sort((one, other) => one.length - other.length || Buffer.compare(one, other));
  const lines = [];
  let left = KEPT_MAX_BYTES;
  for (const line of inputs.map(escaped)) {
    left -= line.length + 1;
    if (left < 0) break;
    lines.push(`${line}\n`);
  }
  writeFileSync(join(root, "tests", "fixtures", "fuzz", `${name}.txt`), lines.join(""));
}

/** All but printable ASCII, and the backslash, as `\xNN`. */
function escaped(bytes) {
  const isPlain = (byte) => byte >= 0x20 && byte < 0x7f && byte !== 0x5c;
  return Array.from(bytes, (byte) => (isPlain(byte) ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, "0")}`)).join("");
}
