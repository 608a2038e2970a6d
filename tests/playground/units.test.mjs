// The parts of the page that need no page.

import assert from "node:assert/strict";
import { test } from "node:test";
import { encode } from "@ag-ui/proto";
import { watched } from "../../playground/src/frames.ts";
import { after, itemsOf, settled } from "../../playground/src/state/items.ts";

const events = [
  { type: "RUN_STARTED", threadId: "t", runId: "r" },
  { type: "REASONING_START", messageId: "m0" },
  { type: "REASONING_MESSAGE_START", messageId: "m0", role: "reasoning" },
  { type: "REASONING_MESSAGE_CONTENT", messageId: "m0", delta: "Hm." },
  { type: "REASONING_MESSAGE_END", messageId: "m0" },
  { type: "REASONING_END", messageId: "m0" },
  { type: "TEXT_MESSAGE_START", messageId: "m1", role: "assistant" },
  { type: "TEXT_MESSAGE_CONTENT", messageId: "m1", delta: "Grüße, 😀" },
  { type: "TEXT_MESSAGE_END", messageId: "m1" },
  { type: "TOOL_CALL_START", toolCallId: "c1", toolCallName: "draw", parentMessageId: "m1" },
  { type: "TOOL_CALL_ARGS", toolCallId: "c1", delta: '{"a":1}' },
  { type: "TOOL_CALL_END", toolCallId: "c1" },
  { type: "TOOL_CALL_RESULT", messageId: "m2", toolCallId: "c1", content: '{"error":"no"}', role: "tool" },
  { type: "RUN_FINISHED", threadId: "t", runId: "r" },
];

const said = [
  { kind: "thought", id: "m0", text: "Hm.", isOpen: false },
  { kind: "text", id: "m1", text: "Grüße, 😀", isOpen: false },
  { kind: "call", id: "c1", name: "draw", arguments: '{"a":1}', result: '{"error":"no"}', status: "failed" },
];

function lengthPrefixed(event) {
  const bytes = encode(event);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

const bodies = {
  "text/event-stream": Buffer.from(`: keep-alive\n\n${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")}`),
  "application/vnd.ag-ui.event+proto": Buffer.concat(events.map(lengthPrefixed)),
};

for (const [type, body] of Object.entries(bodies)) {
  test(`frames of ${type} are the same wherever the stream is cut, and pass by untouched`, async () => {
    const types = events.map((event) => event.type);
    const wanted = type.startsWith("text") ? ["comment", ...types] : types;
    for (let cut = 0; cut <= body.length; cut += 1) {
      const parts = [body.subarray(0, cut), body.subarray(cut)].filter((part) => part.length > 0);
      const frames = [];
      const response = new Response(ReadableStream.from(parts), { headers: { "content-type": type } });
      const passed = Buffer.from(await watched(response, (frame) => frames.push(frame)).arrayBuffer());
      assert.deepEqual(passed, body);
      assert.deepEqual(frames.map((frame) => frame.type), wanted, `cut at ${cut}`);
      assert.equal(frames.reduce((sum, { byteCount }) => sum + byteCount, 0), body.length);
    }
  });
}

test("events and stored messages give the same items", () => {
  const user = { id: "u1", role: "user", content: [{ type: "text", text: "Hello" }, { type: "image", source: {} }] };
  const stored = itemsOf([
    user,
    { id: "m0", role: "reasoning", content: "Hm." },
    { id: "m1", role: "assistant", content: "Grüße, 😀", toolCalls: [{ id: "c1", type: "function", function: { name: "draw", arguments: '{"a":1}' } }] },
    { id: "m2", role: "tool", toolCallId: "c1", content: '{"error":"no"}' },
  ]);
  const heard = events.reduce(after, itemsOf([user]));
  assert.deepEqual(heard, [{ kind: "user", id: "u1", text: "Hello\n\n[image]" }, ...said]);
  assert.deepEqual(stored, heard);
});

test("a run that is read twice shows once, also where it was cut", () => {
  for (let cut = 0; cut <= events.length; cut += 1) {
    assert.deepEqual([...events.slice(0, cut), ...events].reduce(after, []), said, `cut after ${cut}`);
  }
});

test("nothing stays open after the end", () => {
  for (let cut = 0; cut <= events.length; cut += 1) {
    for (const item of settled(events.slice(0, cut).reduce(after, []))) {
      if (item.kind === "call") assert.equal(item.status, "failed");
      else assert.equal(item.isOpen, false);
    }
  }
});
