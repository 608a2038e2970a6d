// Runs over a WebSocket: contract 7.

import assert from "node:assert/strict";
import { WebSocketAgent } from "../../clients/websocket-agent.mjs";
import { judge, normalise } from "./support/judge.mjs";
import { calls, finish, refuses, says, text } from "./support/openai.mjs";
import { eventually, fresh, history, ok, postResult, refused, run, runInput, tool, user } from "./support/run.mjs";
import { Socket } from "./support/socket.mjs";
import { suite, test } from "./support/suite.mjs";

const shared = suite({
  agents: (stub) => [stub({ maxRetries: 0, keepAliveMs: 30 }), stub({ id: "hasty", firstResponseWaitMs: 30, maxRetries: 0 })],
});

const open = (input, options) => new Socket(shared.worker, input, options);

test("a socket carries the events of the stream, one per frame, and is closed with 1000", async () => {
  const input = (ids) => runInput({ ...ids, protocolVersion: "1.0", messages: [user("Hi", "u1")] });
  const ids = { threadId: "thread-same", runId: "run-same" };
  shared.upstream.reply(says("Hel", "lo\n\nthere \u2028."));
  const sse = await run(shared.worker, input(ids));
  shared.upstream.reply(says("Hel", "lo\n\nthere \u2028."));
  assert.deepEqual(normalise(await open(input(ids)).rest()), normalise(sse));
});

test("every delta is a frame when it comes", async () => {
  const asked = shared.upstream.next();
  const socket = open(runInput());
  const exchange = await asked;
  exchange.head();
  await socket.until("RUN_STARTED");
  for (const delta of ["one ", "two "]) {
    await exchange.write(text(delta)[0]);
    assert.equal((await socket.until("TEXT_MESSAGE_CONTENT")).delta, delta);
  }
  await exchange.writeAll(finish());
  exchange.end();
  await socket.rest();
});

test("a result may come as a frame, or by POST as ever", async (t) => {
  for (const way of ["frame", "POST"]) {
    await t.test(way, async () => {
      shared.upstream.reply(calls([["ask", { q: 1 }]], { before: ["Asking."] }));
      shared.upstream.reply(says("Thanks."));
      const input = runInput({ tools: [tool("ask")] });
      const socket = open(input);
      const { toolCallId } = await socket.until("TOOL_CALL_END");
      const value = { n: 1.5, text: "é" };
      if (way === "frame") socket.sendResult(toolCallId, value);
      else await ok(await postResult(shared.worker, input.runId, toolCallId, { result: value }));
      const events = await socket.rest();
      const result = events.find(({ type }) => type === "TOOL_CALL_RESULT");
      assert.equal(result.content, JSON.stringify(value));
      assert.deepEqual(socket.rejections, []);
      assert.equal(events.at(-1).type, "RUN_FINISHED");
    });
  }
});

test("a result that is refused is answered and disturbs nothing", async () => {
  shared.upstream.reply(calls([["ask", {}], ["ask", {}]]));
  shared.upstream.reply(says("Thanks."));
  const socket = open(runInput({ tools: [tool("ask")] }));
  const { toolCallId } = await socket.until("TOOL_CALL_END");
  const { toolCallId: second } = await socket.until("TOOL_CALL_END");
  socket.sendResult("nobody", 1);
  const { error, ...unknown } = await socket.rejection();
  assert.deepEqual(unknown, { type: "REJECTED", toolCallId: "nobody", status: 404, code: "tool_call_not_found" });
  assert.match(error, /\S/);
  socket.sendResult(toolCallId, "first");
  socket.sendResult(toolCallId, "first");
  socket.sendResult(toolCallId, "other");
  const { error: _, ...conflict } = await socket.rejection();
  assert.deepEqual(conflict, { type: "REJECTED", toolCallId, status: 409, code: "result_conflict" });
  for (const frame of ["no JSON", "[]", new Uint8Array([1, 2])]) {
    socket.send(frame);
    const { toolCallId: none, status } = await socket.rejection();
    assert.deepEqual([none, status], [undefined, 400]);
  }
  socket.send({ type: "TOOL_RESULT", toolCallId });
  const { issues } = await socket.rejection();
  assert.deepEqual(issues, [{ field: "/result", message: "is required" }]);
  socket.sendResult(second, "x".repeat(5 * 1024 * 1024));
  assert.equal((await socket.rejection()).status, 413);
  socket.sendResult(second, "second");
  const events = await socket.rest();
  const results = events.filter(({ type }) => type === "TOOL_CALL_RESULT");
  assert.deepEqual(results.map(({ content }) => content), ["first", "second"]);
});

test("a ping is answered and is no part of the run", async () => {
  shared.upstream.reply(calls([["ask", {}]]));
  shared.upstream.reply(says("Thanks."));
  const socket = open(runInput({ tools: [tool("ask")] }));
  const { toolCallId } = await socket.until("TOOL_CALL_END");
  for (let count = 0; count < 3; count += 1) await socket.ping();
  socket.sendResult(toolCallId, "42");
  await socket.ping();
  assert.equal((await socket.rest()).at(-1).type, "RUN_FINISHED");
  assert.deepEqual(socket.rejections, []);
});

test("a refused input closes with the status in the code and the error as reason", async (t) => {
  const cases = [
    ["no JSON", { first: "hello" }, 4400, /^\{"error":".*","code":"invalid_json"\}$/],
    ["a binary frame", { first: new Uint8Array([1]) }, 4400, /invalid_json/],
    ["wrong members", { input: { threadId: 1 } }, 4400, /^\{"error":"The request body is not valid\.","code":"invalid_body","issues":/],
    ["another major", { input: runInput({ protocolVersion: "2.0" }) }, 4400, /This protocol version is not supported/],
    ["no such agent", { input: runInput({ agent: "nobody" }) }, 4404, /agent_not_found/],
    ["an input over the limit", { input: runInput({ messages: [user("x".repeat(9 * 1024 * 1024))] }) }, 4400, /body_too_large/],
  ];
  for (const [name, { input, first }, code, reason] of cases) {
    await t.test(name, async () => {
      const close = await open(input, { first }).closed();
      assert.equal(close.code, code);
      assert.match(close.reason, reason);
      assert.ok(Buffer.byteLength(close.reason) <= 123);
    });
  }
  for (const [status, code] of [[500, 4502], [429, 4429]]) {
    await t.test(`upstream ${status}`, async () => {
      shared.upstream.reply(refuses(status));
      assert.equal((await open(runInput()).closed()).code, code);
    });
  }
  await t.test("a run of this id", async () => {
    const input = runInput({ owner: "wes" });
    shared.upstream.reply(says("ok"));
    await run(shared.worker, input);
    const { code, reason } = await open(input).closed();
    assert.equal(code, 4409);
    assert.match(reason, /run_conflict/);
  });
  await t.test("another's thread", async () => {
    const threadId = fresh("thread");
    shared.upstream.reply(says("ok"));
    await run(shared.worker, runInput({ owner: "wes", threadId }));
    assert.equal((await open(runInput({ owner: "eve", threadId })).closed()).code, 4403);
  });
});

test("a failure inside the run is RUN_ERROR and a clean close", async () => {
  const asked = shared.upstream.next();
  const socket = open(runInput({ agent: "hasty" }));
  await socket.until("RUN_STARTED");
  await refuses(500)(await asked);
  assert.equal((await socket.rest()).at(-1).code, "upstream_error");
});

test("a client that closes its socket stops the run [D11]", async () => {
  const input = runInput({ owner: "wes" });
  const asked = shared.upstream.next();
  const socket = open(input);
  const exchange = await asked;
  exchange.head();
  await exchange.writeAll(text("Once"));
  await socket.until("TEXT_MESSAGE_CONTENT");
  await socket.abandon();
  let isClosed = false;
  void exchange.closedByPeer.then(() => (isClosed = true));
  await eventually(() => exchange.writeAll(text(" upon")), () => isClosed);
  const rows = await eventually(() => history(shared.worker, input.threadId), ({ length }) => length === 2);
  assert.match(rows[1].content, /^Once( upon)*$/);
});

test("a client that closes its socket while a tool is awaited stops the run too", async () => {
  shared.upstream.reply(calls([["ask", {}]]));
  const input = runInput({ owner: "wes", tools: [tool("ask")] });
  const socket = open(input);
  const { toolCallId } = await socket.until("TOOL_CALL_END");
  await socket.abandon();
  await eventually(() => history(shared.worker, input.threadId), ({ length }) => length === 3);
  await refused(await postResult(shared.worker, input.runId, toolCallId, { result: 1 }), 410);
});

test("GET /run without an upgrade is 405", async () => {
  const response = await shared.worker.fetch("/run");
  assert.equal(response.headers.get("allow"), "POST, OPTIONS");
  await refused(response, 405, "method_not_allowed");
});

test("the client of this repository is an HttpAgent in all but its transport", async () => {
  shared.upstream.reply(calls([["ask", {}]], { before: ["Asking."] }));
  shared.upstream.reply(says("Thanks."));
  const rejections = [];
  const agent = new WebSocketAgent({
    url: shared.worker.url("/run"),
    threadId: fresh("thread"),
    initialMessages: [user("Hi", "u1")],
    onRejected: (rejection) => rejections.push(rejection),
  });
  const runId = fresh("run");
  const events = [];
  const parameters = { runId, tools: [tool("ask")], forwardedProps: { agentId: "stub" } };
  await agent.runAgent(parameters, {
    onEvent: ({ event }) => {
      events.push(event);
      if (event.type !== "TOOL_CALL_END") return;
      agent.sendToolResult("nobody", 1);
      agent.sendToolResult(event.toolCallId, "42");
    },
  });
  await judge(events, { input: { threadId: agent.threadId, runId, protocolVersion: "1.0" } });
  assert.deepEqual(agent.messages.map(({ role, content }) => [role, content]), [
    ["user", "Hi"],
    ["assistant", "Asking."],
    ["tool", "42"],
    ["assistant", "Thanks."],
  ]);
  assert.deepEqual(rejections.map(({ toolCallId, status }) => [toolCallId, status]), [["nobody", 404]]);
  assert.throws(() => agent.sendToolResult("late", 1), /no run is under way/);
});

test("the client shows a refusal as HttpAgent shows it", async () => {
  const agent = new WebSocketAgent({ url: shared.worker.url("/run"), threadId: fresh("thread"), initialMessages: [user("Hi")] });
  const running = agent.runAgent({ forwardedProps: { agentId: "nobody" } });
  await assert.rejects(running, ({ status, payload }) => {
    assert.equal(status, 404);
    assert.deepEqual(payload, { error: "There is no such agent.", code: "agent_not_found" });
    return true;
  });
});
