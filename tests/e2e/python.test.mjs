// A client that is not JavaScript: ag-ui-protocol and httpx read the stream and answer its calls.

import assert from "node:assert/strict";
import { judge, normalise } from "./support/judge.mjs";
import { answer, calls, says, text } from "./support/openai.mjs";
import { python, skip } from "./support/python.mjs";
import { giveResult, openRun, runInput, tool } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";

const shared = suite({ agents: (stub) => [stub({ maxRetries: 0, keepAliveMs: 20 })] });

const read = (input, result) =>
  python({
    environment: "ag-ui-protocol-1.0.0",
    packages: ["ag-ui-protocol==1.0.0", "httpx==0.28.1"],
    script: "./read.py",
    args: [shared.worker.url("/run")],
    input: { input, result },
  });

const withoutIds = (events) => normalise(events).map(({ runId, threadId, ...rest }) => rest);

test("Python reads the same events and answers the same calls", { skip, timeout: 90_000 }, async (t) => {
  const scenes = {
    text: [says("Hel", "lo é😀.")],
    "a tool": [calls([["pick", { a: 1.5 }]], { before: ["Picking."] }), says("Picked.")],
    "an error": [answer(text("The answer is"))],
  };
  for (const [name, replies] of Object.entries(scenes)) {
    await t.test(name, async () => {
      for (const reply of [...replies, ...replies]) shared.upstream.reply(reply);
      const input = () => runInput({ tools: [tool("pick")], protocolVersion: "1.0" });
      const ours = input();
      const stream = await openRun(shared.worker, ours);
      if (name === "a tool") {
        const { toolCallId } = await stream.until("TOOL_CALL_END");
        await giveResult(shared.worker, ours.runId, toolCallId, { result: { color: "red" } });
      }
      const expected = await stream.rest();
      const theirs = input();
      const events = await read(theirs, { color: "red" });
      await judge(events, { input: theirs });
      assert.deepEqual(withoutIds(events), withoutIds(expected));
    });
  }
});
