// The client goes away: D11.

import assert from "node:assert/strict";
import { calls, finish, says, text, textOf } from "./support/openai.mjs";
import { eventually, fresh, history, ok, openRun, postResult, refused, run, runInput, tool, user } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";

const shared = suite({
  agents: (stub) => [stub({ keepAliveMs: 40 }), stub({ id: "hasty", firstResponseWaitMs: 30, keepAliveMs: 40 })],
});

/** The thread's messages once the lost run has been stored, which makes them so many. */
const settled = (threadId, count) => eventually(() => history(shared.worker, threadId), (rows) => rows.length === count);

test("a client that leaves while text flows stops the upstream, and what was said is stored", async () => {
  const input = runInput({ owner: "gil" });
  const asked = shared.upstream.next();
  const opening = openRun(shared.worker, input);
  const exchange = await asked;
  exchange.head();
  const stream = await opening;
  await exchange.writeAll(text("Once upon"));
  await stream.until("TEXT_MESSAGE_CONTENT");
  await stream.abandon();
  let isClosed = false;
  void exchange.closedByPeer.then(() => (isClosed = true));
  await eventually(() => exchange.writeAll(text(" a time")), () => isClosed);
  const rows = await settled(input.threadId, 2);
  assert.deepEqual(rows[0], { id: input.messages[0].id, role: "user", content: "Hello" });
  assert.equal(rows[1].id, stream.events.find(({ type }) => type === "TEXT_MESSAGE_START").messageId);
  assert.match(rows[1].content, /^Once upon( a time)*$/);
});

test("a client that leaves while the upstream is silent stops it too, at a keep-alive", async () => {
  const input = runInput({ owner: "gil" });
  const asked = shared.upstream.next();
  const opening = openRun(shared.worker, input);
  const exchange = await asked;
  exchange.head();
  const stream = await opening;
  await exchange.writeAll(text("Once"));
  await stream.until("TEXT_MESSAGE_CONTENT");
  await stream.abandon();
  await exchange.closedByPeer;
  const rows = await settled(input.threadId, 2);
  assert.equal(rows[1].content, "Once");
});

test("a client that leaves before the upstream's head stops it, and keeps its message", async () => {
  const input = runInput({ owner: "gil", agent: "hasty" });
  const asked = shared.upstream.next();
  const stream = await openRun(shared.worker, input);
  const exchange = await asked;
  await stream.until("RUN_STARTED");
  await stream.abandon();
  await exchange.closedByPeer;
  assert.deepEqual((await history(shared.worker, input.threadId)).map(({ content }) => content), ["Hello"]);
});

test("a client that leaves while its tool is awaited ends the run; the call is stored as interrupted", async () => {
  shared.upstream.reply(calls([["ask", {}]], { before: ["Asking."] }));
  const input = runInput({ owner: "gil", tools: [tool("ask")] });
  const stream = await openRun(shared.worker, input);
  const { toolCallId } = await stream.until("TOOL_CALL_END");
  await stream.abandon();
  const rows = await settled(input.threadId, 3);
  assert.deepEqual(rows.map(({ role }) => role), ["user", "assistant", "tool"]);
  assert.deepEqual(JSON.parse(rows[2].content), { error: "The call was interrupted." });
  assert.equal(rows[2].toolCallId, toolCallId);
  await refused(await postResult(shared.worker, input.runId, toolCallId, { result: 1 }), 410);

  // The thread heals: the next run tells the model.
  shared.upstream.reply(says("ok"));
  await run(shared.worker, runInput({ owner: "gil", threadId: input.threadId, messages: [user("Go on.")] }));
  const { messages } = shared.upstream.requests.at(-1).body;
  assert.match(textOf(messages.find(({ role }) => role === "tool")), /The call was interrupted\./);
});

test("the row of an abandoned run does not run for ever", async () => {
  const input = runInput({ owner: "gil" });
  const asked = shared.upstream.next();
  const opening = openRun(shared.worker, input);
  const exchange = await asked;
  exchange.head();
  const stream = await opening;
  await exchange.writeAll(text("Once"));
  await stream.until("TEXT_MESSAGE_CONTENT");
  await stream.abandon();
  await settled(input.threadId, 2);
  const response = await shared.worker.fetch("/run", { json: { ...input, threadId: fresh("thread") } });
  const { status } = await refused(response, 409, "run_conflict");
  assert.ok(!["running", "waiting"].includes(status), status);
});

test("an abandoned run disturbs no other", async () => {
  const lost = runInput();
  const kept = runInput();
  const exchanges = [];
  const streams = [];
  for (const input of [lost, kept]) {
    const asked = shared.upstream.next();
    const opening = openRun(shared.worker, input);
    exchanges.push(await asked);
    exchanges.at(-1).head();
    streams.push(await opening);
    await exchanges.at(-1).writeAll(text("a"));
    await streams.at(-1).until("TEXT_MESSAGE_CONTENT");
  }
  await streams[0].abandon();
  await exchanges[0].closedByPeer;
  await exchanges[1].writeAll(text("b"), finish());
  exchanges[1].end();
  assert.equal((await streams[1].rest()).at(-1).type, "RUN_FINISHED");
  await ok(await shared.worker.fetch("/agents"));
});
