// The commands that break a run's object are in the build for tests, and nowhere else.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { calls } from "./support/openai.mjs";
import { openRun, refused, runInput, tool } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";

const files = ["index.js", "index_bg.wasm"];
const built = (folder) => files.map((name) => readFileSync(new URL(`../../${folder}/${name}`, import.meta.url), "latin1")).join("");

const shared = suite();

/** A run that waits for a front-end result. */
async function waitingRun() {
  shared.upstream.reply(calls([["ask", {}]]));
  const input = runInput({ tools: [tool("ask")] });
  const stream = await openRun(shared.worker, input);
  await stream.until("TOOL_CALL_END");
  return stream;
}

test("the shipped build does not carry them", () => {
  assert.ok(built("build-test").includes("test-commands"), "what is looked for is a word the other build has");
  assert.ok(!/test[-_]commands/.test(built("build")));
});

test("the shipped build does not obey them", async () => {
  const stream = await waitingRun();
  for (const command of ["reset", "panic", "alarm"]) {
    for (const origin of [shared.worker.origin, shared.worker.origin + shared.worker.prefix]) {
      await refused(await fetch(`${origin}/test-commands/${stream.address}/${command}`, { method: "POST" }), 404);
    }
  }
  await stream.abandon();
});
