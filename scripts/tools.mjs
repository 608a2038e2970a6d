// Where things are and which versions are wanted; shared by the other scripts. Needs nothing but Node.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { accessSync, constants, existsSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Where cargo keeps its tools and the crates it fetched. */
export const cargoHome = process.env.CARGO_HOME ?? join(homedir(), ".cargo");

/** Node 22 and wrangler come from `node_modules`, the Rust tools from cargo's own folder. */
export const path = [join(root, "node_modules", ".bin"), join(cargoHome, "bin"), process.env.PATH].join(delimiter);

/** The released wasm with the names of its functions, which the shipped one has not. */
export const namedWasm = join(root, "target", "named.wasm");

/** Ends the script with one sentence. */
export function fail(sentence) {
  console.error(`\nio-bridge: ${sentence}`);
  process.exit(1);
}

/** Runs a command in the project's folder, its output shown; ends the script when it fails. */
export function run(command, args, env = {}) {
  console.log(`> ${command} ${args.join(" ")}`);
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    env: { ...process.env, PATH: path, ...env },
    stdio: "inherit",
  });
  if (error) fail(`${command} did not start: ${error.message}`);
  if (status !== 0) fail(`${command} ${args[0]} failed.`);
}

/** Installs what a folder's package-lock.json names, where it is missing or of another version. */
export function installPackages(folder) {
  const stamp = join(root, folder, "node_modules", ".package-lock.sha256");
  const wanted = createHash("sha256").update(readFileSync(join(root, folder, "package-lock.json"))).digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  run("npm", ["ci", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
  writeFileSync(stamp, wanted);
}

/** What a command prints, or `undefined` when it is missing or fails. */
export function output(command, args) {
  const { status, stdout } = spawnSync(command, args, {
    cwd: root,
    env: { ...process.env, PATH: path },
    encoding: "utf8",
  });
  return status === 0 ? stdout.trim() : undefined;
}

/** A command's own address, looked for as a shell does. */
export function which(command) {
  return path
    .split(delimiter)
    .map((folder) => join(folder, command))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/** The version of a crate in Cargo.lock. */
export function lockedVersion(crate) {
  const lock = readFileSync(join(root, "Cargo.lock"), "utf8");
  const [, version] = lock.match(new RegExp(`^name = "${crate}"\\nversion = "(.+)"$`, "m")) ?? [];
  return version ?? fail(`Cargo.lock has no ${crate}.`);
}

/** Makes the Worker out of the crate; released together with the `worker` crate. */
export const workerBuild = { command: "worker-build", crate: "worker-build", version: lockedVersion("worker") };

/** Writes the JavaScript around the wasm; works only with the very version of its crate. */
export const wasmBindgen = {
  command: "wasm-bindgen",
  crate: "wasm-bindgen-cli",
  version: lockedVersion("wasm-bindgen"),
};

/** Whether a tool is there in the version wanted. */
export function isInstalled({ command, version }) {
  return output(command, ["--version"])?.split(" ").at(-1) === version;
}
