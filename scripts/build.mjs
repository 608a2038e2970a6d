// Builds the Worker, build/index.js and build/index_bg.wasm, and the playground, dist/. wrangler runs it too, by `[build]`
// in wrangler.toml.
// With `--test-commands`: build-test/, quickly made, with the commands by which tests break a run's object.
// Does nothing when the inputs have not changed since.

import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { cargoHome, fail, isInstalled, namedWasm, root, run, wasmBindgen, which, workerBuild } from "./tools.mjs";
import { places } from "./function-order.mjs";
import { reachableScript, reachableWasm, shortened } from "./glue.mjs";
import { contents, renamed, stripped } from "./wasm.mjs";

const isForTests = process.argv.includes("--test-commands");
const folder = isForTests ? "build-test" : "build";
const inputs = ["src", "build.rs", "agents.toml", "Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "package-lock.json", "scripts/build.mjs", "scripts/function-order.mjs", "scripts/glue.mjs", "scripts/tools.mjs", "scripts/wasm.mjs"];
const wasm = join(folder, "index_bg.wasm");
const outputs = [join(root, folder, "index.js"), join(root, wasm), ...(isForTests ? [] : [namedWasm])];
const stamp = join(root, folder, ".inputs.sha256");
const settingsStamp = join(root, folder, ".wrangler.sha256");
// PREFIX of wrangler.toml is built into the page.
const pageInputs = ["playground", "clients", "wrangler.toml", "package-lock.json", "scripts/playground.mjs"];
const pageStamp = join(root, folder, ".playground.sha256");

function addTo(hash, name) {
  const file = join(root, name);
  if (!existsSync(file)) return;
  if (statSync(file).isDirectory()) {
    for (const child of readdirSync(file).sort()) addTo(hash, join(name, child));
  } else {
    hash.update(`${name}\0`).update(readFileSync(file)).update("\0");
  }
}

function fingerprint(names) {
  const hash = createHash("sha256");
  for (const name of names) addTo(hash, name);
  return hash.digest("hex");
}

function holds(file, wanted) {
  return existsSync(file) && readFileSync(file, "utf8") === wanted;
}

/** Points worker-build at the tools that are here; one that is missing, or of another version, it downloads itself. */
function toolAddresses() {
  const found = { ESBUILD_BIN: which("esbuild"), WASM_OPT_BIN: which("wasm-opt") };
  if (isInstalled(wasmBindgen)) found.WASM_BINDGEN_BIN = which(wasmBindgen.command);
  return Object.fromEntries(Object.entries(found).filter(([, file]) => file));
}

/**
 * Heavy code that comes along with the `worker` crate must stay unused, so must the standard library's tables of letters
 * and numbers (`src/platform.rs`), its trees (`src/protocol/named.rs`) and serde_json's writers
 * (`src/protocol/json_writer.rs`), and what tests break runs with must not be there; needs the names of the wasm's
 * functions.
 */
function refuseUnwantedCode() {
  const names = contents(readFileSync(join(root, wasm))).functions.map(({ name }) => name).join("\n");
  if (!names.includes("io_bridge::")) fail("the wasm has no names to look at.");
  const unwanted = ["url::parser", "idna::", "tokio::runtime", "chrono::format", "conversions::to_lower", "conversions::to_upper", "unicode_data::alphabetic", "unicode_data::uppercase", "unicode_data::n::", "::dec2flt", "::flt2dec", "collections::btree", "WriterFormatter", "StrSearcher", "slice_error_fail", "is_printable", "from_utf8_lossy", "join_generic_copy", "<str>::parse::<u16>", "<str>::parse::<u32>", "<str>::parse::<usize>"];
  const found = unwanted.filter((name) => names.includes(name));
  if (found.length > 0) fail(`the wasm carries ${found.join(", ")}: use the platform's own.`);
  if (/test[-_]commands/.test(names)) fail("the wasm carries the commands of the tests.");
}

/** Without what the Worker has no use for between wasm and JavaScript. */
function trim(indexFile, wasmFile) {
  const script = reachableScript(readFileSync(indexFile, "utf8"));
  writeFileSync(wasmFile, reachableWasm(readFileSync(wasmFile), script));
  run("wasm-opt", [wasmFile, "--debuginfo", "--remove-unused-module-elements", "--output", wasmFile]);
  const { index, wasm: bytes } = shortened(script, readFileSync(wasmFile));
  writeFileSync(indexFile, index);
  writeFileSync(wasmFile, bytes);
}

/** The functions in the order in which they compress best: wasm-opt sorts them by names that say their place. */
function reorder(file) {
  const bodies = contents(readFileSync(file)).functions.map(({ bytes }) => bytes);
  const names = places(bodies).map((place) => String(place).padStart(String(bodies.length).length, "0"));
  writeFileSync(file, renamed(readFileSync(file), names));
  run("wasm-opt", [file, "--debuginfo", "--reorder-functions-by-name", "--output", file]);
}

// Full names say what a generic function is made for. What a panic says its place is does not tell who built the Worker.
const compilerFlags = ["-Csymbol-mangling-version=v0", `--remap-path-prefix=${join(cargoHome, "registry", "src", "/")}=`];

function build() {
  if (isForTests) {
    const cargoOptions = [".", "--features", "test-commands"];
    return run("worker-build", ["--dev", "--out-dir", folder, ...cargoOptions], toolAddresses());
  }
  run("worker-build", ["--release"], { ...toolAddresses(), CARGO_ENCODED_RUSTFLAGS: compilerFlags.join("\x1f") });
  trim(join(root, folder, "index.js"), join(root, wasm));
  refuseUnwantedCode();
  // worker-build keeps the function names, a third of the size.
  mkdirSync(dirname(namedWasm), { recursive: true });
  copyFileSync(join(root, wasm), namedWasm);
  reorder(join(root, wasm));
  writeFileSync(join(root, wasm), stripped(readFileSync(join(root, wasm))));
}

const wanted = fingerprint(inputs);
if (holds(stamp, wanted) && outputs.every(existsSync)) {
  console.log(`${folder}/ is up to date`);
} else {
  if (!isInstalled(workerBuild)) fail(`worker-build ${workerBuild.version} is missing: \`make build\` installs it.`);
  build();
  writeFileSync(stamp, wanted);
}

const settings = fingerprint(["wrangler.toml"]);
if (!isForTests && !holds(settingsStamp, settings)) {
  run("node", ["scripts/variables.mjs"]);
  writeFileSync(settingsStamp, settings);
}

const page = fingerprint(pageInputs);
if (!isForTests && (!holds(pageStamp, page) || !existsSync(join(root, "dist", "index.html")))) {
  run("node", ["scripts/playground.mjs"]);
  writeFileSync(pageStamp, page);
}
