// Makes a fresh machine ready: Rust target and components, worker-build, wasm-bindgen, npm packages.
// Installs only what is missing or of another version, so a second run takes a moment.

import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fail, isInstalled, output, root, run, wasmBindgen, workerBuild } from "./tools.mjs";

const target = "wasm32-unknown-unknown";

function setUpRust() {
  const sysroot = output("rustc", ["--print", "sysroot"]);
  if (!sysroot && !output("rustup", ["--version"])) fail("Rust is missing: install it from https://rustup.rs");
  // Installs the toolchain that rust-toolchain.toml names; rustup may be told not to do that by itself.
  if (!sysroot) run("rustup", ["toolchain", "install"]);
  if (!existsSync(join(sysroot ?? "", "lib", "rustlib", target))) run("rustup", ["target", "add", target]);
  for (const [component, command] of [["rustfmt", "cargo-fmt"], ["clippy", "cargo-clippy"]]) {
    if (!output(command, ["--version"])) run("rustup", ["component", "add", component]);
  }
}

function setUpCargoTools() {
  for (const tool of [workerBuild, wasmBindgen].filter((tool) => !isInstalled(tool))) {
    // A debug build installs in half the time and works as fast as needed. Not `--locked`: the lock file inside
    // wasm-bindgen-cli names releases that registry mirrors may not have yet.
    run("cargo", ["install", tool.crate, "--version", tool.version, "--debug", "--force"], { CARGO_PROFILE_DEV_DEBUG: "0" });
  }
}

function setUpPackages() {
  const stamp = join(root, "node_modules", ".package-lock.sha256");
  const wanted = createHash("sha256").update(readFileSync(join(root, "package-lock.json"))).digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
  // wrangler needs Node 22.12; the `node` package fetches it in an install script, which npm can be told to skip.
  if (!output(join(root, "node_modules", ".bin", "node"), ["--version"])) {
    run("npm", ["rebuild", "node", "esbuild", "workerd", "--loglevel=error"]);
  }
  writeFileSync(stamp, wanted);
}

if (Number(process.versions.node.split(".")[0]) < 20) fail(`Node 20 or newer is needed, this is ${process.version}.`);
setUpRust();
setUpCargoTools();
setUpPackages();
