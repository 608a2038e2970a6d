// The API's description, held by a linter and by requests made up from it. Native tests hold it to the code's tables.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { installed, skip } from "../e2e/support/python.mjs";
import { startWorker } from "../e2e/support/worker.mjs";

const HERE = fileURLToPath(new URL("./", import.meta.url));
const SCHEMATHESIS = "schemathesis==4.32.5";

/** Requests of a made-up kind for each operation; more of them find more and take longer. */
const EXAMPLES = process.env.EXAMPLES ?? "25";

let worker;
let folder;

before(async () => {
  // A made-up run may call a made-up tool, and nobody answers.
  const agents = [{ id: "io-agent", toolTimeoutMs: 200 }];
  worker = await startWorker({ agents, vars: { LOG_LEVEL: "warn" } });
  folder = mkdtempSync(path.join(os.tmpdir(), "openapi-"));
});

after(async () => {
  await worker?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a program, shows what it says, gives its exit code. */
async function program(command, args, options = {}) {
  const child = spawn(command, args, { stdio: ["ignore", "inherit", "inherit"], ...options });
  return new Promise((resolve, reject) => child.once("error", reject).once("close", resolve));
}

test("the description has nothing a linter objects to", async () => {
  const file = path.join(folder, "openapi.json");
  writeFileSync(file, await (await worker.fetch("/openapi.json")).text());
  const redocly = path.join(HERE, "node_modules", ".bin", "redocly");
  const env = { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
  assert.equal(await program(redocly, ["lint", file, "--config", path.join(HERE, "redocly.yaml")], { env }), 0);
});

test("requests made up from the description get the answers it promises, and no 5xx", { skip, timeout: 900_000 }, async () => {
  const command = path.join(path.dirname(installed("schemathesis", [SCHEMATHESIS])), "schemathesis");
  const args = ["--config-file", path.join(HERE, "schemathesis.toml"), "run", worker.url("/openapi.json"), "--max-examples", EXAMPLES, "--no-color"];
  assert.equal(await program(command, args, { cwd: folder }), 0);
});
