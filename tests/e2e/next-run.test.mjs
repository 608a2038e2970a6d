// Front-end tools of plain AG-UI clients, which answer in the next run: contract 2.6 next-run.

import assert from "node:assert/strict";
import { Client } from "./support/client.mjs";
import { outline } from "./support/judge.mjs";
import { answer, call, calls, finish, more, roles, says, text, textOf } from "./support/openai.mjs";
import { fresh, history, openRun, postResult, refused, run, runInput, tool, user } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";

const shared = suite({
  agents: (stub) => [
    stub({ frontendTools: "next-run", tools: ["current_time"] }),
    stub({ id: "same", tools: ["current_time"] }),
    stub({ id: "live", frontendTools: "next-run", toolCallStreaming: "live", maxRetries: 0 }),
  ],
});

const result = (toolCallId, content, id = fresh("tool")) => ({ id, role: "tool", toolCallId, content });

test("a run ends after its calls and names the pending ones for 1.0 peers [2.6]", async () => {
  shared.upstream.reply(calls([["one", {}], ["current_time", {}]]));
  const input = runInput({ tools: [tool("one")], protocolVersion: "1.0" });
  const events = await run(shared.worker, input);
  const [{ toolCallId: pending }] = events.filter(({ type }) => type === "TOOL_CALL_START");
  assert.deepEqual(events.at(-1).outcome, { type: "success", pendingToolCallIds: [pending] });
  assert.equal(events.filter(({ type }) => type === "TOOL_CALL_RESULT").length, 1);
});

test("older peers get no outcome [2.6]", async () => {
  shared.upstream.reply(calls([["one", {}]]));
  const events = await run(shared.worker, runInput({ tools: [tool("one")] }));
  assert.deepEqual(outline(events).slice(-4), ["TOOL_CALL_ARGS c1 {}", "TOOL_CALL_END c1", "STEP_FINISHED step-1", "RUN_FINISHED"]);
  assert.deepEqual(Object.keys(events.at(-1)).sort(), ["runId", "threadId", "type"]);
});

test("a stock HttpAgent runs the tool after the run and completes the call with the next [2.6]", async (t) => {
  for (const [name, forwardedProps] of [["stateless", {}], ["persistent", { resourceId: "ned" }]]) {
    await t.test(name, async () => {
      const client = new Client(shared.worker, { messages: [user("Add.")] });
      shared.upstream.reply(calls([["add", { a: 1 }]], { before: ["Adding."] }));
      const first = await client.run({ tools: [tool("add")], forwardedProps });
      const { pendingToolCallIds } = first.events.at(-1).outcome;
      assert.equal(pendingToolCallIds.length, 1);

      client.agent.addMessage(result(pendingToolCallIds[0], "3"));
      shared.upstream.reply(says("It is 3."));
      const second = await client.run({ tools: [tool("add")], forwardedProps });
      assert.equal(second.events.at(-1).type, "RUN_FINISHED");
      const { body } = shared.upstream.requests[1];
      assert.deepEqual(roles({ body }).slice(-3), ["user", "assistant", "tool"]);
      assert.equal(textOf(body.messages.at(-1)), "3");
      assert.equal(body.messages.at(-2).tool_calls[0].id, body.messages.at(-1).tool_call_id);

      if (name === "persistent") {
        const stored = await history(shared.worker, client.agent.threadId);
        assert.deepEqual(stored.map(({ id, role }) => [id, role]), client.messages.map(({ id, role }) => [id, role]));
      }
    });
  }
});

test("a pending call is stored as pending, not as interrupted [2.6]", async () => {
  const input = runInput({ tools: [tool("one")], owner: "ned" });
  shared.upstream.reply(calls([["one", {}]]));
  await run(shared.worker, input);
  const stored = await history(shared.worker, input.threadId);
  assert.deepEqual(stored.map(({ role }) => role), ["user", "assistant"]);
  const [row] = (await history(shared.worker, input.threadId, "format=mastra")).slice(-1);
  assert.deepEqual(row.content.parts.map(({ toolInvocation }) => toolInvocation.state), ["call"]);
});

test("the next run may bring the tool message alone: the call is in the store [2.6]", async () => {
  const input = runInput({ tools: [tool("one")], owner: "ned" });
  shared.upstream.reply(calls([["one", {}]]));
  const events = await run(shared.worker, input);
  const { toolCallId } = events.find(({ type }) => type === "TOOL_CALL_START");
  for (const agent of ["same"]) {
    shared.upstream.reply(says("Done."));
    const next = runInput({ agent, owner: "ned", threadId: input.threadId, tools: [tool("one")], messages: [result(toolCallId, "42")] });
    assert.equal((await run(shared.worker, next)).at(-1).type, "RUN_FINISHED");
  }
  const { body } = shared.upstream.requests[1];
  assert.deepEqual(roles({ body }).slice(-3), ["user", "assistant", "tool"]);
  assert.equal(textOf(body.messages.at(-1)), "42");
  assert.deepEqual((await history(shared.worker, input.threadId)).map(({ role }) => role), ["user", "assistant", "tool", "assistant"]);
});

test("a pending call that the next run does not answer has a result for the model all the same [2.3]", async () => {
  const input = runInput({ tools: [tool("one"), tool("two")], owner: "ned" });
  shared.upstream.reply(calls([["one", {}], ["two", {}]]));
  const events = await run(shared.worker, input);
  const [one] = events.filter(({ type }) => type === "TOOL_CALL_START").map(({ toolCallId }) => toolCallId);
  shared.upstream.reply(says("Done."));
  await run(shared.worker, runInput({ owner: "ned", threadId: input.threadId, messages: [result(one, "1"), user("Go on.")] }));
  const told = shared.upstream.requests[1].body.messages.filter(({ role }) => role === "tool").map(textOf);
  assert.equal(told.length, 2);
  assert.equal(told[0], "1");
  assert.match(told[1], /\S/);
});

test("the run's own frontendTools wins over the agent's [2.1]", async () => {
  shared.upstream.reply(calls([["one", {}]]));
  const events = await run(shared.worker, runInput({ agent: "same", tools: [tool("one")], forwardedProps: { frontendTools: "next-run" } }));
  assert.equal(events.at(-1).type, "RUN_FINISHED");
});

test("a toolChoice that names a front-end tool ends the run after the call, without a trace [2.1]", async () => {
  const input = runInput({
    agent: "same",
    owner: "ned",
    tools: [tool("one")],
    forwardedProps: { toolChoice: { type: "function", function: { name: "one" } } },
  });
  shared.upstream.reply(calls([["one", {}]]));
  assert.equal((await run(shared.worker, input)).at(-1).type, "RUN_FINISHED");
  await refused(await shared.worker.fetch(`/threads/${input.threadId}`), 404);
});

test("a call of a run that is over takes no result by POST [3]", async () => {
  const input = runInput({ tools: [tool("one")], owner: "ned" });
  shared.upstream.reply(calls([["one", {}]]));
  const events = await run(shared.worker, input);
  const { toolCallId } = events.find(({ type }) => type === "TOOL_CALL_START");
  await refused(await postResult(shared.worker, input.runId, toolCallId, { result: 1 }), 410);
});

test("live arguments come as the model writes them [D8]", async () => {
  const asked = shared.upstream.next();
  const opening = openRun(shared.worker, runInput({ agent: "live", tools: [tool("add")] }));
  const exchange = await asked;
  exchange.head();
  const stream = await opening;
  await exchange.write(call("add", '{"a":', { id: "call_1" }));
  assert.equal((await stream.until("TOOL_CALL_ARGS")).delta, '{"a":');
  await exchange.write(more("1}"));
  assert.equal((await stream.until("TOOL_CALL_ARGS")).delta, "1}");
  await exchange.writeAll(finish("tool_calls"));
  exchange.end();
  await stream.rest();
});

test("a live call that is cut is closed with an error result, then the run fails [D8]", async () => {
  shared.upstream.reply(answer(text("Adding."), call("add", '{"a":', { id: "call_1" })));
  const stream = await openRun(shared.worker, runInput({ agent: "live", tools: [tool("add")] }));
  const { toolCallId } = await stream.until("TOOL_CALL_START");
  const events = await stream.rest({ liveToolCallIds: [toolCallId] });
  assert.deepEqual(outline(events).slice(-5), [
    'TOOL_CALL_ARGS c1 {"a":',
    "TOOL_CALL_END c1",
    'TOOL_CALL_RESULT c1 {"error":"The call was cut off."}',
    "STEP_FINISHED step-1",
    "RUN_ERROR upstream_truncated",
  ]);
});
