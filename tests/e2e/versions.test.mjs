// What a peer sees depends on the protocol version it declares, over every binding alike: contract 2.1, 2.4, AG-UI VER-3 to
// VER-6. A pre-1.0 peer declares none.

import assert from "node:assert/strict";
import { BINDINGS } from "./support/bindings.mjs";
import { answer, calls, finish, frame, says, text, usage } from "./support/openai.mjs";
import { eventually, ok, runInput, tool } from "./support/run.mjs";
import { Socket } from "./support/socket.mjs";
import { suite, test } from "./support/suite.mjs";

const shared = suite({ agents: (stub) => [stub(), stub({ id: "next", frontendTools: "next-run" })] });

const counted = answer(text("ok"), frame({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }), usage(7, 2), finish().at(-1));
const OLD = { RUN_FINISHED: ["runId", "threadId", "type"], RUN_ERROR: ["code", "message", "type"] };

/** Ends of runs: how to come there, and what a 1.0 peer sees of it beyond what every peer does. */
const ENDS = {
  usage: {
    reply: counted,
    type: "RUN_FINISHED",
    extra: ({ usage }) => ({ usage: usage.map(({ inputTokens, outputTokens }) => [inputTokens, outputTokens]) }),
    expected: { usage: [[7, 2]] },
  },
  "a result": {
    reply: answer(text("The answer is"), finish("length")),
    forwardedProps: { modelSettings: { maxTokens: 5 } },
    type: "RUN_FINISHED",
    extra: ({ result }) => ({ result }),
    expected: { result: { finishReason: "length" } },
  },
  "pending calls": {
    reply: calls([["ask", {}]]),
    agent: "next",
    type: "RUN_FINISHED",
    extra: ({ outcome: { type, pendingToolCallIds } }) => ({ outcome: [type, pendingToolCallIds.length] }),
    expected: { outcome: ["success", 1] },
  },
  "a cancelled run": {
    reply: calls([["ask", {}]]),
    cancels: true,
    type: "RUN_FINISHED",
    // An outcome may not be turned into success: an old peer is told of an error instead.
    oldType: "RUN_ERROR",
    extra: ({ outcome }) => ({ outcome }),
    expected: { outcome: { type: "cancelled" } },
  },
};

test("outcome, usage and result go to peers that declare a version, and to no others", async (t) => {
  for (const [binding, open] of Object.entries(BINDINGS)) {
    for (const [name, { reply, cancels, type, oldType = type, extra, expected, ...members }] of Object.entries(ENDS)) {
      for (const protocolVersion of ["1.0", "1.7", undefined]) {
        await t.test(`${binding}, ${name}, ${protocolVersion ?? "a pre-1.0 peer"}`, async () => {
          shared.upstream.reply(reply);
          const input = runInput({ tools: [tool("ask")], protocolVersion, ...members });
          const stream = await open(shared.worker, input);
          if (cancels) {
            const { toolCallId } = await stream.until("TOOL_CALL_END");
            await ok(await shared.worker.fetch(`/runs/${input.runId}/cancel?address=${toolCallId.slice(3, 46)}`, { method: "POST" }));
          }
          const last = (await stream.rest()).at(-1);
          if (protocolVersion === undefined) {
            assert.equal(last.type, oldType);
            assert.deepEqual(Object.keys(last).sort(), OLD[oldType]);
          } else {
            assert.equal(last.type, type);
            assert.deepEqual(extra(last), expected);
          }
        });
      }
    }
  }
});

test("a result of several parts is one text to every peer", async () => {
  const content = [{ type: "text", text: "one" }, { type: "text", text: "two" }];
  for (const protocolVersion of ["1.0", undefined]) {
    shared.upstream.reply(calls([["ask", {}]]));
    shared.upstream.reply(says("ok"));
    const input = runInput({ tools: [tool("ask")], protocolVersion });
    const socket = new Socket(shared.worker, input);
    const { toolCallId } = await socket.until("TOOL_CALL_END");
    socket.sendResult(toolCallId, { content });
    const result = (await socket.rest()).find(({ type }) => type === "TOOL_CALL_RESULT");
    assert.deepEqual(JSON.parse(result.content), { content });
  }
});

test("another major is refused before the stream, whatever the binding", async () => {
  for (const protocolVersion of ["2.0", "0.9"]) {
    const input = runInput({ protocolVersion });
    for (const accept of ["text/event-stream", "application/vnd.ag-ui.event+proto"]) {
      const response = await shared.worker.fetch("/run", { json: input, headers: { accept } });
      assert.equal(response.status, 400);
      assert.equal((await response.json()).code, "unsupported_protocol_version");
    }
    const { code, reason } = await new Socket(shared.worker, input).closed();
    assert.equal(code, 4400);
    assert.match(reason, /unsupported_protocol_version/);
  }
});

test("a newer minor is served with a warning in the log, and so is what is no version at all [VER-3, VER-5]", async () => {
  for (const open of Object.values(BINDINGS)) {
    for (const protocolVersion of ["1.7", "draft", "2"]) {
      shared.upstream.reply(says("ok"));
      const linesBefore = shared.worker.lines.length;
      const stream = await open(shared.worker, runInput({ protocolVersion }));
      const events = await stream.rest();
      assert.equal(events.at(-1).type, "RUN_FINISHED");
      assert.equal(events[0].protocolVersion, "1.0", "ours, not an echo [VER-1]");
      const warned = () => shared.worker.lines.slice(linesBefore).some(({ message }) => /"level":"warn".*"field":"\/protocolVersion"/.test(message));
      await eventually(warned, (isThere) => isThere);
    }
  }
});
