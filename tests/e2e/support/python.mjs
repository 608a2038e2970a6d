// Python programs in environments of their own below `.tools`.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const TOOLS = fileURLToPath(new URL("../../../.tools/", import.meta.url));

/** Why tests in Python are left out, or false. */
export const skip = spawnSync("python3", ["--version"]).status === 0 ? false : "python3 is not on this machine";

/** The Python of the environment `name`, which has these packages; they are installed once. */
export function installed(name, packages) {
  const venv = path.join(TOOLS, name);
  const python = path.join(venv, "bin", "python");
  const isWhole = existsSync(python) && spawnSync(path.join(venv, "bin", "pip"), ["show", packages[0].split(/[[=]/)[0]]).status === 0;
  if (isWhole) return python;
  for (const [command, ...args] of [
    ["python3", "-m", "venv", venv],
    [path.join(venv, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", ...packages],
  ]) {
    const { status, stderr } = spawnSync(command, args, { encoding: "utf8" });
    assert.equal(status, 0, stderr);
  }
  return python;
}

/** Runs a script of this folder with JSON on stdin; gives the JSON it prints. */
export async function python({ environment, packages, script, args, input }) {
  const child = spawn(installed(environment, packages), [fileURLToPath(new URL(script, import.meta.url)), ...args]);
  let said = "";
  let complaint = "";
  child.stdout.on("data", (piece) => (said += piece));
  child.stderr.on("data", (piece) => (complaint += piece));
  child.stdin.end(JSON.stringify(input));
  const code = await new Promise((resolve) => child.once("close", resolve));
  assert.equal(code, 0, complaint);
  return JSON.parse(said);
}

/** Starts a script of this folder that prints one line once it serves, and ends with its input. */
export async function startPython({ environment, packages, script }) {
  const child = spawn(installed(environment, packages), [fileURLToPath(new URL(script, import.meta.url))], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const gone = new Promise((resolve) => child.once("close", resolve));
  const line = await new Promise((resolve, reject) => {
    let said = "";
    child.stdout.on("data", (piece) => {
      said += piece;
      if (said.includes("\n")) resolve(said.trim());
    });
    gone.then((code) => reject(new Error(`${script} ended with code ${code}`)));
  });
  return {
    line,
    async stop() {
      child.stdin.end();
      await gone;
    },
  };
}
