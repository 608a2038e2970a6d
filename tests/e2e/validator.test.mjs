// A judge that is not ours: the third-party validator `ag-ui-validate`, against the running server.

import assert from "node:assert/strict";
import { answer, calls, says, text } from "./support/openai.mjs";
import { python, skip } from "./support/python.mjs";
import { runInput, tool } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";

const shared = suite({
  agents: (stub) => [stub({ tools: ["current_time"], maxRetries: 0 }), { id: "demo-two", provider: "demo" }],
});

/** What the validator finds in the stream of this input. */
async function validate(input) {
  const { eventCount, ...findings } = await python({
    environment: "ag-ui-validate-0.4.0",
    packages: ["ag-ui-validate[transport]==0.4.0"],
    script: "./validate.py",
    args: [shared.worker.url("/run")],
    input,
  });
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
