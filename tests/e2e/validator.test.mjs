// A judge that is not ours: the third-party validator `ag-ui-validate`, against the running server.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { answer, calls, says, text } from "./support/openai.mjs";
import { runInput, tool } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";

const VENV = fileURLToPath(new URL("../../.tools/ag-ui-validate-0.4.0/", import.meta.url));
const SCRIPT = fileURLToPath(new URL("./support/validate.py", import.meta.url));
const skip = spawnSync("python3", ["--version"]).status === 0 ? false : "python3 is not on this machine";

const shared = suite({
  agents: (stub) => [stub({ tools: ["current_time"], maxRetries: 0 }), { id: "demo-two", provider: "demo" }],
});

function install() {
  if (existsSync(path.join(VENV, "bin", "ag-ui-validate"))) return;
  for (const [command, ...args] of [
    ["python3", "-m", "venv", VENV],
    [path.join(VENV, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", "ag-ui-validate[transport]==0.4.0"],
  ]) {
    const { status, stderr } = spawnSync(command, args, { encoding: "utf8" });
    assert.equal(status, 0, stderr);
  }
}

/** What the validator finds in the stream of this input. */
async function validate(input) {
  install();
  const child = spawn(path.join(VENV, "bin", "python"), [SCRIPT, shared.worker.url("/run")]);
  let said = "";
  let complaint = "";
  child.stdout.on("data", (piece) => (said += piece));
  child.stderr.on("data", (piece) => (complaint += piece));
  child.stdin.end(JSON.stringify(input));
  const code = await new Promise((resolve) => child.once("close", resolve));
  assert.equal(code, 0, complaint);
  const { eventCount, ...findings } = JSON.parse(said);
  assert.ok(eventCount > 0);
  return findings;
}

test("ag-ui-validate finds nothing to say", { skip }, async (t) => {
  const scenes = {
    "about text": () => [says("Hel", "lo.")],
    "about a server tool": () => [calls([["current_time", {}]], { before: ["Looking."] }), says("Noon.")],
    "about calls for the next run": () => [calls([["one", {}], ["two", { a: 1 }]])],
    "about an answer that is cut": () => [answer(text("Hel"))],
  };
  for (const [name, replies] of Object.entries(scenes)) {
    await t.test(name, async () => {
      for (const reply of replies()) shared.upstream.reply(reply);
      const input = runInput({ tools: [tool("one"), tool("two")], forwardedProps: { frontendTools: "next-run" } });
      assert.deepEqual(await validate(input), { found: [], internalErrors: [] });
    });
  }
  await t.test("about the demo agent", async () => {
    assert.deepEqual(await validate(runInput({ agent: "demo-two" })), { found: [], internalErrors: [] });
  });
});
