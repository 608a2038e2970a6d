// Runs beside each other: D5 (no lock while a result is awaited), D6.5 (turns stay paired), 3 (first result wins).

import assert from "node:assert/strict";
import { calls, finish, says, text } from "./support/openai.mjs";
import { fresh, giveResult, history, ok, openRun, readRun, refused, run, runInput, tool, user } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";

const shared = suite();

const asks = (content) => ({ body }) => JSON.stringify(body.messages.at(-1)).includes(content);

test("two runs at once on one thread keep question and answer together [D6.5]", async () => {
  const threadId = fresh("thread");
  const begin = async (content) => {
    const asked = shared.upstream.next(asks(content));
    const opening = openRun(shared.worker, runInput({ threadId, owner: "kim", messages: [user(content)] }));
    const exchange = await asked;
    exchange.head();
    return { exchange, stream: await opening };
  };
  const first = await begin("first?");
  const second = await begin("second?");
  const end = async ({ exchange, stream }, answer) => {
    await exchange.writeAll(text(answer), finish());
    exchange.end();
    await stream.rest();
  };
  await end(second, "second!");
  await end(first, "first!");
  assert.deepEqual((await history(shared.worker, threadId)).map(({ content }) => content), ["first?", "first!", "second?", "second!"]);
});

test("a run on a thread is served while another waits there for a result [D5]", async () => {
  const threadId = fresh("thread");
  shared.upstream.reply(calls([["ask", {}]]), { when: asks("wait") });
  const waiting = runInput({ threadId, owner: "kim", tools: [tool("ask")], messages: [user("wait")] });
  const stream = await openRun(shared.worker, waiting);
  const { toolCallId } = await stream.until("TOOL_CALL_END");
  shared.upstream.reply(says("meanwhile"));
  await run(shared.worker, runInput({ threadId, owner: "kim", messages: [user("another")] }));
  shared.upstream.reply(says("done"));
  await giveResult(shared.worker, waiting.runId, toolCallId, { result: "yes" });
  assert.equal((await stream.rest()).at(-1).type, "RUN_FINISHED");
  assert.deepEqual((await history(shared.worker, threadId)).map(({ role, content }) => content || role), [
    "wait", "assistant", "yes", "done", "another", "meanwhile",
  ]);
});

test("a live run's messages are not superseded by a list that does not know them yet [D6.2]", async () => {
  const threadId = fresh("thread");
  const one = user("one");
  shared.upstream.reply(says("1"));
  await run(shared.worker, runInput({ threadId, owner: "kim", messages: [one] }));
  const asked = shared.upstream.next(asks("live?"));
  const opening = openRun(shared.worker, runInput({ threadId, owner: "kim", messages: [user("live?")] }));
  const exchange = await asked;
  exchange.head();
  const live = await opening;
  const known = (await history(shared.worker, threadId)).filter(({ content }) => ["one", "1"].includes(content));
  shared.upstream.reply(says("2"), { when: asks("two") });
  await run(shared.worker, runInput({ threadId, owner: "kim", messages: [...known, user("two")] }));
  await exchange.writeAll(text("live!"), finish());
  exchange.end();
  await live.rest();
  assert.deepEqual((await history(shared.worker, threadId)).map(({ content }) => content), ["one", "1", "live?", "live!", "two", "2"]);
});

test("of two equal run ids at the same moment one is served [D12]", async () => {
  const input = runInput({ owner: "kim" });
  shared.upstream.reply(says("once"));
  const responses = await Promise.all([0, 1].map(() => shared.worker.fetch("/run", { json: input })));
  assert.deepEqual(responses.map(({ status }) => status).sort(), [200, 409]);
  for (const response of responses) await (response.ok ? readRun(response, input) : refused(response, 409, "run_conflict"));
  assert.deepEqual((await history(shared.worker, input.threadId)).map(({ content }) => content), ["Hello", "once"]);
});

test("thirty runs at once all answer, each on its own thread", async () => {
  const inputs = Array.from({ length: 30 }, (_, index) => runInput({ owner: "kim", messages: [user(`number ${index}.`)] }));
  for (let index = 0; index < 30; index += 1) shared.upstream.reply(says(`answer ${index}`), { when: asks(`number ${index}.`) });
  await Promise.all(inputs.map((input) => run(shared.worker, input)));
  for (const [index, { threadId }] of inputs.entries()) {
    assert.deepEqual((await history(shared.worker, threadId)).map(({ content }) => content), [`number ${index}.`, `answer ${index}`]);
  }
});

test("a run id of two owners is not answered before it is said which is meant [D4, D12, D17]", async () => {
  const runId = fresh("run");
  const addresses = {};
  for (const owner of ["ada", "bob"]) {
    shared.upstream.reply(says("Hi."));
    const stream = await openRun(shared.worker, runInput({ runId, owner }));
    addresses[owner] = stream.address;
    await stream.rest();
    if (owner === "ada") await ok(await shared.worker.fetch(`/runs/${runId}`));
  }
  for (const [path, init] of [["", {}], ["/events", {}], ["/cancel", { method: "POST" }]]) {
    const { error } = await refused(await shared.worker.fetch(`/runs/${runId}${path}`, init), 400, "owner_required");
    assert.match(error, /resourceId.*address/);
  }
  const threads = [];
  for (const [owner, address] of Object.entries(addresses)) {
    const named = await ok(await shared.worker.fetch(`/runs/${runId}?resourceId=${owner}`));
    const addressed = await ok(await shared.worker.fetch(`/runs/${runId}?address=${address}`));
    assert.deepEqual(addressed, named);
    threads.push(named.threadId);
  }
  assert.notEqual(threads[0], threads[1]);
});
