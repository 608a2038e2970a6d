// The protobuf binding, decoded by @ag-ui/proto: D13, AG-UI 4.

import assert from "node:assert/strict";
import { normalise } from "./support/judge.mjs";
import { answer, call, calls, finish, frame, refuses, says, text, usage } from "./support/openai.mjs";
import { PROTOBUF, ProtobufStream } from "./support/protobuf.mjs";
import { eventually, giveResult, ok, openRun, readRun, refused, run, runInput, tool } from "./support/run.mjs";
import { EventStream } from "./support/sse.mjs";
import { suite, test } from "./support/suite.mjs";

const shared = suite({
  agents: (stub) => [
    stub({ maxRetries: 0, tools: ["current_time"] }),
    stub({ id: "lively", keepAliveMs: 20 }),
    stub({ id: "next", frontendTools: "next-run" }),
  ],
});

const openProtobuf = async (input) => new ProtobufStream(await shared.worker.fetch("/run", { json: input, headers: PROTOBUF }));

/** The events without what differs between two equal runs: ids of runs, threads, messages and calls, and the clock. */
const comparable = (events) => {
  const normal = normalise(events).map(({ runId, threadId, ...rest }) => rest);
  const pending = (outcome) => outcome && { ...outcome, pendingToolCallIds: outcome.pendingToolCallIds?.length };
  return normal.map((event) => ({
    ...event,
    ...("outcome" in event ? { outcome: pending(event.outcome) } : {}),
    ...(event.type === "TOOL_CALL_RESULT" ? { content: event.content.replace(/\d/g, "0") } : {}),
  }));
};

/** Awkward deltas, the same in every run: a fixed generator picks lengths around each boundary of a varint. */
function deltas(seed) {
  let state = seed;
  const pick = (below) => (state = (state * 48271) % 2147483647) % below;
  const alphabets = ["ab", "\"\\\n\r\t", "é漢😀", "\u2028\u0001\u007f", "data: {}\n\n"];
  return Array.from({ length: 12 }, () => {
    const alphabet = [...alphabets[pick(alphabets.length)]];
    const length = [1, 2, 126, 127, 128, 129, 16_383, 16_384, 300][pick(9)];
    return Array.from({ length }, () => alphabet[pick(alphabet.length)]).join("");
  });
}

const counted = answer(text("ok"), frame({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }), usage(7, 200), finish().at(-1));
const length = { modelSettings: { maxTokens: 5 } };
const awkward = { "": [null, true, -0.5, "é"], b: { c: 1e21 } };

const scenes = {
  "text": { replies: [says("Hel", "lo.")] },
  "awkward text": { replies: [says(...deltas(1), ...deltas(2))] },
  "usage": { replies: [counted] },
  "server tools": { replies: [calls([["current_time", {}], ["current_time", {}]], { before: ["Looking."] }), says("Noon.")] },
  "pending calls": { replies: [calls([["one", awkward], ["one", {}]])], agent: "next" },
  "a result member": { replies: [answer(text("The answer is"), finish("length"))], forwardedProps: length },
  "an error": { replies: [answer(text("The answer is"))] },
  "no text": { replies: [answer(call("current_time", "{}"), finish("tool_calls")), says("ok")] },
};

test("every stream is the same events in either binding", async (t) => {
  for (const [name, { replies, ...members }] of Object.entries(scenes)) {
    for (const protocolVersion of ["1.0", undefined]) {
      await t.test(`${name}, ${protocolVersion ?? "a pre-1.0 peer"}`, async () => {
        const input = () => runInput({ tools: [tool("one")], protocolVersion, ...members });
        for (const reply of [...replies, ...replies]) shared.upstream.reply(reply);
        const sse = await run(shared.worker, input());
        const protobuf = input();
        const events = await (await openProtobuf(protobuf)).rest(protobuf);
        assert.deepEqual(comparable(events), comparable(sse));
        assert.equal(events[0].runId, protobuf.runId);
        assert.equal(events[0].threadId, protobuf.threadId);
      });
    }
  }
});

test("protobuf is served to those who name it and to nobody else [D13]", async () => {
  const table = [
    ["application/vnd.ag-ui.event+proto", "application/vnd.ag-ui.event+proto"],
    ["text/event-stream, application/vnd.ag-ui.event+proto;q=0.5", "application/vnd.ag-ui.event+proto"],
    ["application/vnd.ag-ui.event+proto;q=0, */*", "text/event-stream"],
    ["*/*", "text/event-stream"],
    ["application/*", "text/event-stream"],
    ["application/json", "text/event-stream"],
  ];
  for (const [accept, contentType] of table) {
    shared.upstream.reply(says("ok"));
    const input = runInput();
    const response = await shared.worker.fetch("/run", { json: input, headers: { accept } });
    assert.equal(response.headers.get("content-type"), contentType, accept);
    await (contentType === PROTOBUF.accept ? new ProtobufStream(response).rest(input) : readRun(response, input));
  }
});

test("every delta is a frame of its own when it comes", async () => {
  const asked = shared.upstream.next();
  const input = runInput();
  const opening = openProtobuf(input);
  const exchange = await asked;
  exchange.head();
  const stream = await opening;
  await stream.until("RUN_STARTED");
  for (const delta of ["one ", "two "]) {
    await exchange.write(text(delta)[0]);
    assert.equal((await stream.until("TEXT_MESSAGE_CONTENT")).delta, delta);
  }
  await exchange.writeAll(finish());
  exchange.end();
  await stream.rest(input);
});

test("a refusal is HTTP and JSON whatever the binding [D3, PB-8]", async () => {
  shared.upstream.reply(refuses(500));
  await refused(await shared.worker.fetch("/run", { json: runInput(), headers: PROTOBUF }), 502);
  await refused(await shared.worker.fetch("/run", { json: {}, headers: PROTOBUF }), 400, "invalid_body");
});

test("a long wait sends nothing, and the result still comes through", async () => {
  shared.upstream.reply(calls([["ask", {}]]));
  shared.upstream.reply(says("Thanks."));
  const input = runInput({ agent: "lively", tools: [tool("ask")] });
  const stream = await openProtobuf(input);
  const { toolCallId } = await stream.until("TOOL_CALL_END");
  // A viewer of the other binding shows that keep-alives were due.
  const abort = new AbortController();
  const sse = await shared.worker.fetch(`/runs/${input.runId}/events?address=${toolCallId.slice(3, 46)}`, { signal: abort.signal });
  const viewer = new EventStream(sse, { input, abort });
  for (let count = 0; count < 3; count += 1) await viewer.untilKeepAlive();
  await giveResult(shared.worker, input.runId, toolCallId, { result: "42" });
  const events = await stream.rest(input);
  assert.equal(events.find(({ type }) => type === "TOOL_CALL_RESULT").content, "42");
  assert.deepEqual(await viewer.rest(), events);
});

test("a viewer that comes late reads the whole run in its own binding [8]", async () => {
  shared.upstream.reply(calls([["ask", awkward]], { before: ["Asking."] }));
  shared.upstream.reply(says("Thanks."));
  const input = runInput({ tools: [tool("ask")], protocolVersion: "1.0" });
  const first = await openRun(shared.worker, input);
  const { toolCallId } = await first.until("TOOL_CALL_END");
  const address = toolCallId.slice(3, 46);
  await ok(await shared.worker.fetch(`/runs/${input.runId}?address=${address}`));
  const late = new ProtobufStream(await shared.worker.fetch(`/runs/${input.runId}/events?address=${address}`, { headers: PROTOBUF }));
  await late.until("TOOL_CALL_END");
  await giveResult(shared.worker, input.runId, toolCallId, { result: { a: 1 } });
  assert.deepEqual(await late.rest(input), await first.rest());
});

test("a client that leaves stops the upstream [D11]", async () => {
  const asked = shared.upstream.next();
  const abort = new AbortController();
  const opening = shared.worker.fetch("/run", { json: runInput(), headers: PROTOBUF, signal: abort.signal });
  const exchange = await asked;
  exchange.head();
  const stream = new ProtobufStream(await opening);
  await exchange.writeAll(text("Once"));
  await stream.until("TEXT_MESSAGE_CONTENT");
  abort.abort();
  await assert.rejects(stream.next(), { name: "AbortError" });
  let isClosed = false;
  void exchange.closedByPeer.then(() => (isClosed = true));
  await eventually(() => exchange.writeAll(text(" upon")), () => isClosed);
});
