// Tools within one run: contract 2.5, 2.6 same-run, and 3.

import assert from "node:assert/strict";
import { Client } from "./support/client.mjs";
import { TOOL_CALL_ID, outline } from "./support/judge.mjs";
import { answer, call, calls, finish, roles, says, text, textOf } from "./support/openai.mjs";
import { fresh, giveResult, history, ok, openRun, postResult, refused, run, runInput, tool, user } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";

const shared = suite({
  agents: (stub) => [
    stub({ tools: ["current_time"] }),
    stub({ id: "impatient", toolTimeoutMs: 2000 }),
    stub({ id: "bounded", runTimeoutMs: 2000, keepAliveMs: 100 }),
  ],
});

const ADD = tool("add", {
  type: "object",
  properties: { a: { type: "number" }, b: { type: "number" } },
  required: ["a", "b"],
});

/** Reads until `count` calls are whole and gives their ids. */
async function untilCalls(stream, count) {
  const ids = [];
  while (ids.length < count) ids.push((await stream.until("TOOL_CALL_END")).toolCallId);
  return ids;
}

const isAnswered = ({ body }) => body.messages.at(-1).role === "tool";

/** Starts a run whose first answer makes these calls and whose second, after their results, says "Done.". */
async function runWithCalls(pairs, members = {}) {
  shared.upstream.reply(calls(pairs), { when: (request) => !isAnswered(request) });
  shared.upstream.reply(says("Done."), { when: isAnswered });
  const input = runInput({ tools: pairs.map(([name]) => tool(name)), ...members });
  const stream = await openRun(shared.worker, input);
  const ids = await untilCalls(stream, pairs.length);
  return { input, stream, ids };
}

test("a front-end call waits for its result and the same run goes on [2.6, 3]", async () => {
  shared.upstream.reply(calls([["add", { a: 1, b: 2 }]], { before: ["Adding."] }));
  shared.upstream.reply(says("It is 3."));
  const input = runInput({ tools: [ADD] });
  const stream = await openRun(shared.worker, input);
  const [id] = await untilCalls(stream, 1);
  assert.match(id, TOOL_CALL_ID);
  await giveResult(shared.worker, input.runId, id, { result: 3 });
  assert.deepEqual(outline(await stream.rest()), [
    "RUN_STARTED",
    "STEP_STARTED step-1",
    "TEXT_MESSAGE_START m1",
    "TEXT_MESSAGE_CONTENT m1 Adding.",
    "TEXT_MESSAGE_END m1",
    "TOOL_CALL_START c1 add in m1",
    'TOOL_CALL_ARGS c1 {"a":1,"b":2}',
    "TOOL_CALL_END c1",
    "TOOL_CALL_RESULT c1 3",
    "STEP_FINISHED step-1",
    "STEP_STARTED step-2",
    "TEXT_MESSAGE_START m3",
    "TEXT_MESSAGE_CONTENT m3 It is 3.",
    "TEXT_MESSAGE_END m3",
    "STEP_FINISHED step-2",
    "RUN_FINISHED",
  ]);
});

test("the model gets the call and its result under one id it can take [2.5]", async () => {
  const { input, stream, ids } = await runWithCalls([["add", { a: 1, b: 2 }]], { tools: [ADD] });
  await giveResult(shared.worker, input.runId, ids[0], { result: "three" });
  await stream.rest();
  const [first, second] = shared.upstream.requests;
  assert.deepEqual(roles(second), [...roles(first), "assistant", "tool"]);
  const [assistant, result] = second.body.messages.slice(-2);
  const [made] = assistant.tool_calls;
  assert.deepEqual(made.function, { name: "add", arguments: '{"a":1,"b":2}' });
  assert.match(made.id, /^[A-Za-z0-9_-]{1,40}$/);
  assert.equal(result.tool_call_id, made.id);
  assert.equal(textOf(result), "three");
});

test("front-end tools are offered on every step, beside the server's [2.5]", async () => {
  const { input, stream, ids } = await runWithCalls([["add", { a: 1, b: 2 }]], { tools: [ADD] });
  await giveResult(shared.worker, input.runId, ids[0], { result: 3 });
  await stream.rest();
  for (const { body } of shared.upstream.requests) {
    const offered = Object.fromEntries(body.tools.map((one) => [one.function.name, one.function]));
    assert.deepEqual(Object.keys(offered).sort(), ["add", "current_time"]);
    assert.deepEqual(offered.add.parameters, ADD.parameters);
    assert.equal(offered.add.description, ADD.description);
  }
});

test("results come in any order and are echoed in the order of arrival [2.4, 2.5]", async () => {
  const { input, stream, ids } = await runWithCalls([["one", {}], ["two", {}], ["three", {}]]);
  for (const index of [2, 0, 1]) {
    await giveResult(shared.worker, input.runId, ids[index], { result: `r${index}` });
    const { toolCallId, content } = await stream.until("TOOL_CALL_RESULT");
    assert.deepEqual({ toolCallId, content }, { toolCallId: ids[index], content: `r${index}` });
  }
  await stream.rest();
  // The model gets them in the order of its calls.
  const results = shared.upstream.requests[1].body.messages.filter(({ role }) => role === "tool");
  assert.deepEqual(results.map(textOf), ["r0", "r1", "r2"]);
});

test("the model is not asked again before every result is there [2.5]", async () => {
  const { input, stream, ids } = await runWithCalls([["one", {}], ["two", {}]]);
  await giveResult(shared.worker, input.runId, ids[0], { result: 1 });
  await stream.until("TOOL_CALL_RESULT");
  assert.equal(shared.upstream.requests.length, 1);
  await giveResult(shared.worker, input.runId, ids[1], { result: 2 });
  await stream.rest();
  assert.equal(shared.upstream.requests.length, 2);
});

test("a result may come before the step's other calls are even made [3]", async () => {
  const asked = shared.upstream.next();
  shared.upstream.reply(says("Done."));
  const input = runInput({ tools: [tool("one"), tool("two")] });
  const opening = openRun(shared.worker, input);
  const exchange = await asked;
  exchange.head();
  const stream = await opening;
  // The second call's start tells any reader that the first is whole.
  await exchange.writeAll(call("one", {}, { id: "call_1", index: 0 }), call("two", "{", { id: "call_2", index: 1 }));
  const [first] = await untilCalls(stream, 1);
  await giveResult(shared.worker, input.runId, first, { result: "early" });
  await exchange.writeAll(call("", "}", { id: "call_2", index: 1 }), finish("tool_calls"));
  exchange.end();
  const [second] = await untilCalls(stream, 1);
  await giveResult(shared.worker, input.runId, second, { result: "late" });
  const results = (await stream.rest()).filter(({ type }) => type === "TOOL_CALL_RESULT");
  assert.deepEqual(results.map(({ content }) => content), ["early", "late"]);
});

test("a result of the longest kind goes through whole [3]", async () => {
  const { input, stream, ids } = await runWithCalls([["one", {}]]);
  const longest = '"'.repeat(2_000_000);
  await giveResult(shared.worker, input.runId, ids[0], { result: longest });
  const events = await stream.rest();
  assert.equal(events.find(({ type }) => type === "TOOL_CALL_RESULT").content, longest);
  assert.equal(events.at(-1).type, "RUN_FINISHED");
});

test("the same result again is fine, another value is a conflict [3]", async () => {
  const { input, stream, ids } = await runWithCalls([["one", {}], ["two", {}]]);
  await giveResult(shared.worker, input.runId, ids[0], { result: { a: 1 } });
  await giveResult(shared.worker, input.runId, ids[0], { result: { a: 1 } });
  await refused(await postResult(shared.worker, input.runId, ids[0], { result: { a: 2 } }), 409, "result_conflict");
  await refused(await postResult(shared.worker, input.runId, ids[0], { error: "no" }), 409, "result_conflict");
  await giveResult(shared.worker, input.runId, ids[1], { result: 2 });
  const events = await stream.rest();
  assert.deepEqual(events.filter(({ type }) => type === "TOOL_CALL_RESULT").map(({ content }) => content), ['{"a":1}', "2"]);
});

test("of two results at the same moment one wins [3]", async () => {
  const { input, stream, ids } = await runWithCalls([["one", {}]]);
  const answers = await Promise.all(["left", "right"].map((result) => postResult(shared.worker, input.runId, ids[0], { result })));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409]);
  const winner = answers[0].status === 200 ? "left" : "right";
  const events = await stream.rest();
  assert.deepEqual(events.filter(({ type }) => type === "TOOL_CALL_RESULT").map(({ content }) => content), [winner]);
});

test("a call is found by both ids only [3]", async () => {
  const one = await runWithCalls([["one", {}]], { owner: "ada" });
  const two = await runWithCalls([["two", {}]], { owner: "ada" });
  const post = (runId, id, options) => postResult(shared.worker, runId, id, { result: 1 }, options);
  const neverMade = one.ids[0].replace(/_[0-9a-z]+$/, "_zz");
  await refused(await post(one.input.runId, two.ids[0]), 404);
  await refused(await post(two.input.runId, one.ids[0]), 404);
  await refused(await post(fresh("run"), one.ids[0]), 404);
  await refused(await post(one.input.runId, neverMade), 404);
  await refused(await post(one.input.runId, "call_1"), 404);
  await refused(await post(one.input.runId, `tc_${"A".repeat(43)}_1`), 404);
  await refused(await post(one.input.runId, one.ids[0], { owner: "bob" }), 403);
  for (const { input, ids, stream } of [one, two]) {
    await ok(await post(input.runId, ids[0], { owner: "ada" }));
    await stream.rest();
  }
});

test("a late result changes nothing: the run is over [3]", async () => {
  for (const members of [{ owner: "ada" }, {}]) {
    const { input, stream, ids } = await runWithCalls([["one", {}]], members);
    await giveResult(shared.worker, input.runId, ids[0], { result: 1 });
    await stream.rest();
    const response = await postResult(shared.worker, input.runId, ids[0], { result: 2 });
    assert.ok([409, 410].includes(response.status), `${response.status}`);
    await refused(response, response.status);
  }
});

test("a malformed result is 400, one over 4 MiB is 413, and the run still waits [3]", async () => {
  const { input, stream, ids } = await runWithCalls([["one", {}]]);
  for (const body of ["{", '{"result":}', "nul", '"\u0001"']) {
    await refused(await postResult(shared.worker, input.runId, ids[0], body), 400);
  }
  await refused(await postResult(shared.worker, input.runId, ids[0], { result: "x".repeat(4 * 1024 * 1024) }), 413);
  await giveResult(shared.worker, input.runId, ids[0], { result: 1 });
  assert.equal((await stream.rest()).at(-1).type, "RUN_FINISHED");
});

test("every form of a result body is understood [D16]", async () => {
  const mcp = { content: [{ type: "text", text: "hello" }, { type: "text", text: "world" }], _meta: { ui: "app" } };
  const failed = { content: [{ type: "text", text: "no" }], isError: true };
  // body as posted, content of the RESULT, what the model gets
  const forms = [
    ['{"result":"text"}', "text", "text"],
    ['{"result":{"b":1.0,"a":[]}}', '{"b":1.0,"a":[]}', '{"b":1.0,"a":[]}'],
    ['{"result":12345678901234567890}', "12345678901234567890", "12345678901234567890"],
    [JSON.stringify(mcp), JSON.stringify(mcp), /hello[\s\S]*world/],
    [JSON.stringify(failed), JSON.stringify(failed), /no/],
    ['{"structuredContent":{"x":1}}', '{"structuredContent":{"x":1}}', /"x":1/],
    ['{"content":"plain"}', "plain", "plain"],
    ['{"output":[1,2]}', "[1,2]", "[1,2]"],
    ['{"error":"boom"}', '{"error":"boom"}', /boom/],
    ['{"result":1,"error":"boom"}', '{"error":"boom"}', /boom/],
    ['{"result":1,"error":null}', "1", "1"],
    ['{"anything":true}', '{"anything":true}', '{"anything":true}'],
    ['"bare"', "bare", "bare"],
    ["", '{"result":null}', '{"result":null}'],
    ["null", '{"result":null}', '{"result":null}'],
    ['""', '{"result":""}', '{"result":""}'],
    ['"null"', '"null"', '"null"'],
    ['{"result":false}', "false", "false"],
  ];
  const { input, stream, ids } = await runWithCalls(forms.map((_, index) => [`t${index}`, {}]));
  for (const [index, [body, content]] of forms.entries()) {
    await giveResult(shared.worker, input.runId, ids[index], body);
    assert.equal((await stream.until("TOOL_CALL_RESULT")).content, content, `the echo of ${body}`);
  }
  await stream.rest();
  const told = shared.upstream.requests[1].body.messages.filter(({ role }) => role === "tool").map(textOf);
  for (const [index, [body, , expected]] of forms.entries()) {
    if (expected instanceof RegExp) assert.match(told[index], expected, `what the model got of ${body}`);
    else assert.equal(told[index], expected, `what the model got of ${body}`);
  }
});

test("a lone surrogate in a result becomes U+FFFD [2.1]", async () => {
  const { input, stream, ids } = await runWithCalls([["one", {}]]);
  await giveResult(shared.worker, input.runId, ids[0], '{"result":"a\\ud800b"}');
  assert.equal((await stream.until("TOOL_CALL_RESULT")).content, "a\ufffdb");
  await stream.rest();
});

test("ids are percent-decoded on the way back", async () => {
  const { input, stream, ids } = await runWithCalls([["one", {}]], { runId: `run/ü %41 ${fresh("x")}` });
  await giveResult(shared.worker, input.runId, ids[0], { result: 1 });
  await stream.rest();
});

test("a call nobody answers gets an error result after toolTimeoutMs and the run goes on [3]", async () => {
  const { input, stream, ids } = await runWithCalls([["one", {}], ["two", {}]], { agent: "impatient" });
  await giveResult(shared.worker, input.runId, ids[0], { result: "in time" });
  const events = await stream.rest();
  const results = events.filter(({ type }) => type === "TOOL_CALL_RESULT");
  assert.equal(results[0].content, "in time");
  assert.match(JSON.parse(results[1].content).error, /\S/);
  assert.equal(events.at(-1).type, "RUN_FINISHED");
  const told = shared.upstream.requests[1].body.messages.filter(({ role }) => role === "tool").map(textOf);
  assert.equal(told[0], "in time");
  await refused(await postResult(shared.worker, input.runId, ids[1], { result: "late" }), 410);
});

test("the time spent waiting for a result does not count as the run's [D10]", async () => {
  const { input, stream, ids } = await runWithCalls([["one", {}]], { agent: "bounded" });
  for (let count = 0; count < 21; count += 1) await stream.untilKeepAlive();
  await giveResult(shared.worker, input.runId, ids[0], { result: 1 });
  assert.equal((await stream.rest()).at(-1).type, "RUN_FINISHED");
});

test("a server tool runs here and shows its result [2.5]", async () => {
  shared.upstream.reply(calls([["current_time", {}]]));
  shared.upstream.reply(says("Noon."));
  const events = await run(shared.worker, runInput());
  const { content } = events.find(({ type }) => type === "TOOL_CALL_RESULT");
  assert.equal(typeof JSON.parse(content), "object");
  assert.deepEqual(outline(events).filter((line) => !line.startsWith("TOOL_CALL_RESULT")), [
    "RUN_STARTED",
    "STEP_STARTED step-1",
    "TOOL_CALL_START c1 current_time in m1",
    "TOOL_CALL_ARGS c1 {}",
    "TOOL_CALL_END c1",
    "STEP_FINISHED step-1",
    "STEP_STARTED step-2",
    "TEXT_MESSAGE_START m3",
    "TEXT_MESSAGE_CONTENT m3 Noon.",
    "TEXT_MESSAGE_END m3",
    "STEP_FINISHED step-2",
    "RUN_FINISHED",
  ]);
  assert.equal(textOf(shared.upstream.requests[1].body.messages.at(-1)), content);
});

test("a mixed turn has its results after its last call, the server's first [2.4]", async () => {
  shared.upstream.reply(calls([["add", { a: 1, b: 2 }], ["current_time", {}]], { before: ["Both."] }));
  shared.upstream.reply(says("Done."));
  const input = runInput({ tools: [ADD] });
  const stream = await openRun(shared.worker, input);
  const [add, time] = await untilCalls(stream, 2);
  assert.equal((await stream.until("TOOL_CALL_RESULT")).toolCallId, time);
  await giveResult(shared.worker, input.runId, add, { result: 3 });
  const kinds = (await stream.rest()).map(({ type }) => type);
  assert.deepEqual(kinds, [
    "RUN_STARTED", "STEP_STARTED",
    "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END",
    "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END",
    "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END",
    "TOOL_CALL_RESULT", "TOOL_CALL_RESULT", "STEP_FINISHED",
    "STEP_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "STEP_FINISHED",
    "RUN_FINISHED",
  ]);
});

test("a name that both have belongs to the server [2.5]", async () => {
  shared.upstream.reply(calls([["current_time", {}]]));
  shared.upstream.reply(says("Noon."));
  const events = await run(shared.worker, runInput({ tools: [tool("current_time")] }));
  assert.equal(events.at(-1).type, "RUN_FINISHED");
  assert.equal(shared.upstream.requests[0].body.tools.filter((one) => one.function.name === "current_time").length, 1);
});

test("calls to unknown tools and front-end calls with invalid arguments stay between us and the model [2.5]", async () => {
  const input = runInput({ tools: [ADD], owner: "ada" });
  shared.upstream.reply(calls([["no_such_tool", {}], ["add", { a: "one" }]]));
  shared.upstream.reply(says("Sorry."));
  const events = await run(shared.worker, input);
  assert.deepEqual(events.filter(({ type }) => type.startsWith("TOOL_CALL")), []);
  const [assistant, ...results] = shared.upstream.requests[1].body.messages.slice(-3);
  assert.deepEqual(assistant.tool_calls.map((made) => made.function.name), ["no_such_tool", "add"]);
  assert.deepEqual(results.map(({ tool_call_id }) => tool_call_id), assistant.tool_calls.map(({ id }) => id));
  for (const result of results) assert.match(textOf(result), /error/i);
  assert.deepEqual((await history(shared.worker, input.threadId)).map(({ role, content }) => [role, content]), [
    ["user", "Hello"],
    ["assistant", "Sorry."],
  ]);
});

test("a server call with invalid arguments is shown with an error result [2.5]", async () => {
  shared.upstream.reply(calls([["current_time", { zone: "UTC" }]]));
  shared.upstream.reply(says("Sorry."));
  const events = await run(shared.worker, runInput());
  const { content } = events.find(({ type }) => type === "TOOL_CALL_RESULT");
  assert.match(JSON.parse(content).error, /\S/);
});

test("the same vendor id in two steps makes two calls of ours [2.5]", async () => {
  const input = runInput({ tools: [tool("one")] });
  for (let step = 0; step < 2; step += 1) shared.upstream.reply(answer(call("one", {}, { id: "call_1" }), finish("tool_calls")));
  shared.upstream.reply(says("Done."));
  const stream = await openRun(shared.worker, input);
  const ids = [];
  for (let step = 0; step < 2; step += 1) {
    ids.push(...(await untilCalls(stream, 1)));
    await giveResult(shared.worker, input.runId, ids[step], { result: step });
  }
  await stream.rest();
  assert.notEqual(ids[0], ids[1]);
});

test("toolChoice holds for the first step only [2.1]", async () => {
  const cases = [["required", "required"], [{ type: "function", function: { name: "current_time" } }, { type: "function", function: { name: "current_time" } }]];
  for (const [toolChoice, sent] of cases) {
    shared.upstream.reply(calls([["current_time", {}]]));
    shared.upstream.reply(says("Noon."));
    await run(shared.worker, runInput({ forwardedProps: { toolChoice } }));
    const [first, second] = shared.upstream.requests.slice(-2);
    assert.deepEqual(first.body.tool_choice, sent);
    assert.ok([undefined, "auto"].includes(second.body.tool_choice));
  }
});

test("the official client runs the whole loop [2.6]", async () => {
  shared.upstream.reply(calls([["add", { a: 1, b: 2 }], ["add", { a: 3, b: 4 }]], { before: ["Adding."] }));
  shared.upstream.reply(says("3 and 7."));
  const client = new Client(shared.worker, { messages: [user("Add.")] });
  const runId = fresh("run");
  const args = new Map();
  const answers = [];
  const { events } = await client.run({
    runId,
    tools: [ADD],
    onEvent: (event) => {
      if (event.type === "TOOL_CALL_ARGS") args.set(event.toolCallId, JSON.parse(event.delta));
      if (event.type === "TOOL_CALL_END") {
        const { a, b } = args.get(event.toolCallId);
        answers.push(giveResult(shared.worker, runId, event.toolCallId, { content: [{ type: "text", text: String(a + b) }] }));
      }
    },
  });
  await Promise.all(answers);
  assert.equal(events.at(-1).type, "RUN_FINISHED");
  assert.deepEqual(client.messages.map(({ role }) => role).sort(), ["assistant", "assistant", "tool", "tool", "user"]);
  const calling = client.messages.find(({ toolCalls }) => toolCalls);
  assert.equal(calling.content, "Adding.");
  assert.deepEqual(calling.toolCalls.map((made) => made.function.arguments), ['{"a":1,"b":2}', '{"a":3,"b":4}']);
  assert.equal(client.messages.at(-1).content, "3 and 7.");
});

test("text before and after the calls of one step keeps the calls' parents right [2.4]", async () => {
  shared.upstream.reply(answer(call("one", {}, { id: "c1", index: 0 }), text("Between."), call("two", {}, { id: "c2", index: 1 }), finish("tool_calls")));
  shared.upstream.reply(says("Done."));
  const input = runInput({ tools: [tool("one"), tool("two")] });
  const stream = await openRun(shared.worker, input);
  const ids = await untilCalls(stream, 2);
  for (const id of ids) await giveResult(shared.worker, input.runId, id, { result: 1 });
  await stream.rest();
});
