// POST /run, text only: contract 2.1 and 2.4.

import assert from "node:assert/strict";
import { Client } from "./support/client.mjs";
import { normalise, outline } from "./support/judge.mjs";
import { answer, call, finish, frame, says, text, usage } from "./support/openai.mjs";
import { expectDeltasAsTheyCome, openRun, readRun, run, runInput, tool, user } from "./support/run.mjs";
import { API_KEY, suite, test } from "./support/suite.mjs";

const shared = suite({
  agents: (stub) => [
    stub({ instructions: "Be brief." }),
    stub({ id: "lively", keepAliveMs: 40 }),
    stub({ id: "silent", keepAliveMs: 0 }),
    stub({ id: "two-steps", maxSteps: 2, tools: ["current_time"] }),
    stub({ id: "live", toolCallStreaming: "live", frontendTools: "next-run" }),
  ],
});

const textRun = (...deltas) => [
  { type: "STEP_STARTED", stepName: "step-1" },
  { type: "TEXT_MESSAGE_START", messageId: "m1", role: "assistant" },
  ...deltas.map((delta) => ({ type: "TEXT_MESSAGE_CONTENT", messageId: "m1", delta })),
  { type: "TEXT_MESSAGE_END", messageId: "m1" },
  { type: "STEP_FINISHED", stepName: "step-1" },
];

const started = ({ threadId, runId }) => ({ type: "RUN_STARTED", threadId, runId, protocolVersion: "1.0" });

test("a text run has exactly these frames [2.4]", async () => {
  shared.upstream.reply(says("Hel", "lo."));
  const input = runInput();
  const events = await run(shared.worker, input);
  const { threadId, runId } = input;
  assert.deepEqual(normalise(events), [
    started(input),
    ...textRun("Hel", "lo."),
    { type: "RUN_FINISHED", threadId, runId },
  ]);
});

test("the official client gets the answer as one message", async () => {
  shared.upstream.reply(says("Hel", "lo."));
  const client = new Client(shared.worker, { messages: [user("Hi", "u1")] });
  const { events } = await client.run();
  assert.equal(events.at(-1).type, "RUN_FINISHED");
  const { messageId } = events.find(({ type }) => type === "TEXT_MESSAGE_START");
  assert.deepEqual(client.messages, [
    { id: "u1", role: "user", content: "Hi" },
    { id: messageId, role: "assistant", content: "Hello." },
  ]);
});

test("every delta is sent when it comes, not when the answer is whole", async () => {
  await expectDeltasAsTheyCome(shared.upstream, () => openRun(shared.worker, runInput()));
});

test("the upstream is asked as Chat Completions are asked", async () => {
  shared.upstream.reply(says("ok"));
  await run(shared.worker, runInput({ messages: [user("What now?")] }));
  const [{ method, path, headers, body }] = shared.upstream.requests;
  assert.equal(method, "POST");
  assert.equal(path, "/v1/chat/completions");
  assert.equal(headers.authorization, `Bearer ${API_KEY}`);
  assert.equal(headers["content-type"], "application/json");
  assert.equal(body.model, "stub-1");
  assert.equal(body.stream, true);
  assert.deepEqual(body.messages, [
    { role: "system", content: "Be brief." },
    { role: "user", content: "What now?" },
  ]);
});

test("usage goes to peers that sent a protocolVersion and to no others [2.4]", async () => {
  const counted = answer(text("ok"), frame({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }), usage(7, 2), finish().at(-1));
  shared.upstream.reply(counted);
  const newPeer = await run(shared.worker, runInput({ protocolVersion: "1.0" }));
  assert.deepEqual(newPeer.at(-1).usage, [
    { provider: "openai", model: "stub-1", inputTokens: 7, outputTokens: 2, totalTokens: 9 },
  ]);
  shared.upstream.reply(counted);
  const oldPeer = await run(shared.worker, runInput());
  assert.deepEqual(Object.keys(oldPeer.at(-1)).sort(), ["runId", "threadId", "type"]);
});

test("an empty threadId is accepted, echoed and stateless [2.1]", async () => {
  shared.upstream.reply(says("ok"));
  const events = await run(shared.worker, runInput({ threadId: "", owner: "nobody" }));
  assert.equal(events[0].threadId, "");
  const { threads } = await (await shared.worker.fetch("/threads?resourceId=nobody")).json();
  assert.deepEqual(threads, []);
});

test("only what a run needs is needed: tools, context, state and forwardedProps may be missing [2.1]", async () => {
  const { threadId, runId, messages } = runInput();
  const events = await run(shared.worker, { threadId, runId, messages });
  assert.equal(events.at(-1).type, "RUN_FINISHED");
});

test("unknown members, roles and parts are dropped, at any depth [2.1]", async () => {
  shared.upstream.reply(says("ok"));
  const events = await run(shared.worker, {
    ...runInput({
      messages: [
        { ...user("Hi"), mood: "good" },
        { id: "x1", role: "oracle", content: "?" },
        { id: "u2", role: "user", content: [{ type: "text", text: "there", extra: 1 }, { type: "smell", value: "?" }] },
      ],
    }),
    extra: { deep: true },
  });
  assert.equal(events.at(-1).type, "RUN_FINISHED");
  const sent = shared.upstream.requests[0].text;
  for (const word of ["oracle", "smell", "mood", "extra"]) assert.ok(!sent.includes(word), word);
});

test("the nulls older clients send are tolerated [2.1]", async () => {
  shared.upstream.reply(says("ok"));
  await run(shared.worker, {
    ...runInput({
      messages: [
        user("add"),
        { id: "a1", role: "assistant", content: null, toolCalls: [{ id: "c1", type: "function", function: { name: "add", arguments: "{}" } }] },
        { id: "t1", role: "tool", toolCallId: "c1", content: "3" },
        { id: "a2", role: "assistant", content: "3", toolCalls: null },
        user("thanks"),
      ],
    }),
    forwardedProps: { agentId: "stub", resourceId: null, memoryOptions: null, toolChoice: null },
  });
  assert.deepEqual(
    shared.upstream.requests[0].body.messages.map(({ role }) => role),
    ["system", "user", "assistant", "tool", "assistant", "user"],
  );
});

test("reasoning and activity never reach the model [2.3]", async () => {
  shared.upstream.reply(says("ok"));
  await run(shared.worker, runInput({
    messages: [
      user("first"),
      { id: "r1", role: "reasoning", content: "SECRET THOUGHT" },
      { id: "x1", role: "activity", activityType: "PLAN", content: { step: "SECRET PLAN" } },
      { id: "a1", role: "assistant", content: "answer" },
      user("second"),
    ],
  }));
  assert.doesNotMatch(shared.upstream.requests[0].text, /SECRET/);
});

test("context, instructions and system messages reach the model as system text [2.3]", async () => {
  shared.upstream.reply(says("ok"));
  await run(shared.worker, runInput({
    messages: [
      { id: "s1", role: "system", content: "You are polite." },
      { id: "d1", role: "developer", content: "Use metric units." },
      user("Hi"),
    ],
    context: [{ description: "The open window", value: "Blotter of ACME" }],
    forwardedProps: { instructions: "Answer in German.", system: "Never swear." },
  }));
  const [{ body }] = shared.upstream.requests;
  const system = body.messages.filter(({ role }) => role !== "user").map(({ content }) => content).join("\n");
  for (const piece of ["Be brief.", "You are polite.", "Use metric units.", "The open window", "Blotter of ACME", "Answer in German.", "Never swear."]) {
    assert.ok(system.includes(piece), piece);
  }
  assert.deepEqual(body.messages.filter(({ role }) => role === "user"), [{ role: "user", content: "Hi" }]);
});

test("model settings of the run go to the upstream [2.1]", async () => {
  shared.upstream.reply(says("ok"));
  await run(shared.worker, runInput({
    forwardedProps: { modelSettings: { temperature: 0.25, topP: 0.5, seed: 7, stopSequences: ["END"], presencePenalty: 0.1, frequencyPenalty: 0.2 } },
  }));
  const { temperature, top_p, seed, stop, presence_penalty, frequency_penalty } = shared.upstream.requests[0].body;
  assert.deepEqual({ temperature, top_p, seed, stop, presence_penalty, frequency_penalty }, {
    temperature: 0.25, top_p: 0.5, seed: 7, stop: ["END"], presence_penalty: 0.1, frequency_penalty: 0.2,
  });
});

test("known forwardedProps of a wrong type are ignored, null is absent [2.1]", async () => {
  shared.upstream.reply(says("ok"));
  const events = await run(shared.worker, runInput({
    forwardedProps: { modelSettings: "fast", memoryOptions: 3, structuredOutput: null, instructions: 5, toolChoice: [], frontendTools: "never" },
  }));
  assert.equal(events.at(-1).type, "RUN_FINISHED");
});

test("a structured answer streams as text, and an empty schema is no constraint [2.1]", async () => {
  const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };
  for (const given of [schema, JSON.stringify(schema)]) {
    shared.upstream.reply(says('{"city":', '"Varna"}'));
    const events = await run(shared.worker, runInput({ forwardedProps: { structuredOutput: { schema: given } } }));
    assert.ok(outline(events).includes('TEXT_MESSAGE_CONTENT m1 {"city":"Varna"}'));
    assert.deepEqual(shared.upstream.requests.at(-1).body.response_format.json_schema.schema, schema);
  }
  for (const structuredOutput of [{}, { schema: {} }]) {
    shared.upstream.reply(says("ok"));
    await run(shared.worker, runInput({ forwardedProps: { structuredOutput } }));
    if (Object.keys(structuredOutput).length === 0) assert.equal(shared.upstream.requests.at(-1).body.response_format, undefined);
  }
});

test("a list that ends in an assistant message runs as it is [2.1]", async () => {
  shared.upstream.reply(says("ok"));
  await run(shared.worker, runInput({ messages: [user("Hi"), { id: "a1", role: "assistant", content: "Hello" }] }));
  assert.deepEqual(shared.upstream.requests[0].body.messages.slice(1), [
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Hello" },
  ]);
});

test("lone surrogates become U+FFFD and the run goes on [2.1]", async () => {
  shared.upstream.reply(says("ok"));
  const input = runInput({ messages: [user("a@b")] });
  const body = JSON.stringify(input).replace("a@b", "a\\ud800b");
  const response = await shared.worker.fetch("/run", { method: "POST", body, headers: { "content-type": "application/json" } });
  assert.equal((await readRun(response, input)).at(-1).type, "RUN_FINISHED");
  assert.equal(shared.upstream.requests[0].body.messages.at(-1).content, "a\ufffdb");
});

test("numbers survive exactly, in and out [2.1]", async () => {
  shared.upstream.reply(answer(call("measure", '{"a":1.0,"b":12345678901234567890,"c":1e2}'), finish("tool_calls")));
  const parameters = '{"type":"object","properties":{"a":{"type":"number","maximum":1.0},"b":{"const":12345678901234567890}}}';
  const input = runInput({ tools: [{ ...tool("measure"), parameters: "@" }], forwardedProps: { frontendTools: "next-run" } });
  const response = await shared.worker.fetch("/run", {
    method: "POST",
    body: JSON.stringify(input).replace('"@"', parameters),
    headers: { "content-type": "application/json" },
  });
  const deltas = (await readRun(response, input)).filter(({ type }) => type === "TOOL_CALL_ARGS").map(({ delta }) => delta);
  assert.equal(deltas.join(""), '{"a":1.0,"b":12345678901234567890,"c":1e2}');
  assert.ok(shared.upstream.requests[0].text.includes("12345678901234567890"));
  assert.ok(shared.upstream.requests[0].text.includes('"maximum":1.0'));
});

test("a keep-alive comes while nothing else does [2.4]", async () => {
  const asked = shared.upstream.next();
  const opening = openRun(shared.worker, runInput({ agent: "lively" }));
  const exchange = await asked;
  exchange.head();
  const stream = await opening;
  await stream.untilKeepAlive();
  await stream.untilKeepAlive();
  await exchange.writeAll(text("ok"), finish());
  exchange.end();
  await stream.rest();
});

test("keepAliveMs 0 sends none [2.4]", async () => {
  const asked = shared.upstream.next();
  const opening = openRun(shared.worker, runInput({ agent: "silent" }));
  const exchange = await asked;
  exchange.head();
  const stream = await opening;
  // The lively run beside it shows that keep-alives had their chance.
  const other = shared.upstream.next();
  const lively = openRun(shared.worker, runInput({ agent: "lively" }));
  const second = await other;
  second.head();
  const livelyStream = await lively;
  for (let count = 0; count < 5; count += 1) await livelyStream.untilKeepAlive();
  for (const each of [exchange, second]) {
    await each.writeAll(text("ok"), finish());
    each.end();
  }
  await stream.rest();
  await livelyStream.rest();
  assert.equal(stream.commentCount, 0);
});

test("SSE is served to whoever does not name the protobuf type [D13]", async () => {
  for (const accept of ["*/*", "text/event-stream", "application/json", "text/html;q=0.1", "application/vnd.ag-ui.event+proto;q=0"]) {
    shared.upstream.reply(says("ok"));
    const events = await run(shared.worker, runInput(), { headers: { accept } });
    assert.equal(events.at(-1).type, "RUN_FINISHED");
  }
});

test("answers of compatible servers are read whatever their dialect [6]", async (t) => {
  const crlf = (frames) => frames.flat().join("").replaceAll("\n", "\r\n");
  const cut = (bytes, size) => Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) => bytes.subarray(index * size, (index + 1) * size));
  const cases = {
    "characters cut by chunks": cut(Buffer.from([text("Grüße aus 東京 🚀"), finish()].flat().join("")), 1),
    "CRLF framing, CR and LF apart": [...crlf([text("Grüße aus 東京 🚀"), finish()])],
    "comments and ids": [": tick\n\n", "id: 1\nretry: 5\n", text("Grüße aus "), ":\n\n", text("東京 🚀"), finish()],
    "no space after data:": [text("Grüße aus 東京 🚀"), finish()].flat().map((one) => one.replace("data: ", "data:")),
    "payload over several lines": [JSON.stringify({ choices: [{ index: 0, delta: { content: "Grüße aus 東京 🚀" } }] }, null, 1).split("\n").map((line) => `data: ${line}\n`).join(""), "\n", finish()],
    "empty deltas of every kind": [frame({ choices: [] }), frame({ choices: [{ index: 0, delta: { role: "assistant", content: "" } }] }), frame({ choices: [{ index: 0, delta: { content: null } }] }), text("Grüße aus 東京 🚀"), frame({ choices: [{ index: 0, delta: {}, finish_reason: "" }] }), finish()],
    "[DONE] without a finish reason": [text("Grüße aus 東京 🚀"), finish().at(-1)],
    "text in the finishing chunk": [text("Grüße aus "), frame({ choices: [{ index: 0, delta: { content: "東京 🚀" }, finish_reason: "stop" }] }), finish().at(-1)],
    "garbage after [DONE]": [text("Grüße aus 東京 🚀"), finish(), "garbage\n\n"],
    "no final blank line": [text("Grüße aus 東京 🚀"), finish()[0], "data: [DONE]"],
  };
  for (const [name, frames] of Object.entries(cases)) {
    await t.test(name, async () => {
      shared.upstream.reply(answer(frames));
      const events = await run(shared.worker, runInput());
      assert.deepEqual(outline(events).slice(3, 4), ["TEXT_MESSAGE_CONTENT m1 Grüße aus 東京 🚀"]);
      assert.equal(events.at(-1).type, "RUN_FINISHED");
    });
  }
});

test("a run ends at [DONE], though the upstream keeps its connection open", async () => {
  const asked = shared.upstream.next();
  const running = run(shared.worker, runInput());
  const exchange = await asked;
  exchange.head();
  await exchange.writeAll(text("ok"), finish());
  assert.equal((await running).at(-1).type, "RUN_FINISHED");
  await exchange.closedByPeer;
});

test("arguments are held until they are whole [D8]", async () => {
  const asked = shared.upstream.next();
  const opening = openRun(shared.worker, runInput({ tools: [tool("add")], forwardedProps: { frontendTools: "next-run" } }));
  const exchange = await asked;
  exchange.head();
  const stream = await opening;
  await exchange.writeAll(text("Adding."), call("add", '{"a":1', { id: "call_1" }));
  await stream.until("TEXT_MESSAGE_CONTENT");
  await exchange.writeAll(frame({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: ',"b":2}' } }] } }] }), finish("tool_calls"));
  exchange.end();
  assert.deepEqual(outline(await stream.rest()), [
    "RUN_STARTED",
    "STEP_STARTED step-1",
    "TEXT_MESSAGE_START m1",
    "TEXT_MESSAGE_CONTENT m1 Adding.",
    "TEXT_MESSAGE_END m1",
    "TOOL_CALL_START c1 add in m1",
    'TOOL_CALL_ARGS c1 {"a":1,"b":2}',
    "TOOL_CALL_END c1",
    "STEP_FINISHED step-1",
    "RUN_FINISHED",
  ]);
});

test("text after a call is a new message [2.4]", async () => {
  shared.upstream.reply(answer(text("Look. "), call("find", "{}"), text("Looking."), finish("tool_calls")));
  const events = await run(shared.worker, runInput({ tools: [tool("find")], forwardedProps: { frontendTools: "next-run" } }));
  const starts = events.filter(({ type }) => type === "TEXT_MESSAGE_START");
  assert.equal(new Set(starts.map(({ messageId }) => messageId)).size, 2);
});

test("the last allowed step has no tools, so that the model answers [D10]", async () => {
  shared.upstream.reply(answer(call("current_time", "{}"), finish("tool_calls")));
  shared.upstream.reply(says("It is late."));
  const events = await run(shared.worker, runInput({ agent: "two-steps" }));
  assert.equal(events.at(-1).type, "RUN_FINISHED");
  const [first, second] = shared.upstream.requests;
  assert.deepEqual(first.body.tools.map((one) => one.function.name), ["current_time"]);
  assert.ok(second.body.tools === undefined || second.body.tool_choice === "none");
});
