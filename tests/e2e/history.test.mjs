// What a run reads and writes: contract 2.2 (D5), 2.3 (D6) and D12.

import assert from "node:assert/strict";
import { Client } from "./support/client.mjs";
import { calls, finish, says, text, textOf } from "./support/openai.mjs";
import { fresh, giveResult, history, ok, openRun, refused, refusedRun, run, runInput, tool, user } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";

const shared = suite({
  agents: (stub) => [stub(), stub({ id: "always", persist: "always" }), stub({ id: "never", persist: "never" }), stub({ id: "short", lastMessages: 3 })],
});

const OWNER = "hana";

/** Runs these messages on a thread; gives the id of the answer. */
async function turn(threadId, messages, answer, members = {}) {
  shared.upstream.reply(says(answer));
  const events = await run(shared.worker, runInput({ threadId, messages, owner: OWNER, ...members }));
  return events.find(({ type }) => type === "TEXT_MESSAGE_START").messageId;
}

/** What the model was last told, system text left out. */
const told = () => shared.upstream.requests.at(-1).body.messages.filter(({ role }) => role !== "system").map(textOf);
const stored = async (threadId, query) => (await history(shared.worker, threadId, query)).map(({ content }) => content);
const assistant = (id, content) => ({ id, role: "assistant", content });

test("a new message gets the stored history before it [D6.1]", async () => {
  const threadId = fresh("thread");
  await turn(threadId, [user("one")], "1");
  await turn(threadId, [user("two")], "2");
  assert.deepEqual(told(), ["one", "1", "two"]);
  assert.deepEqual(await stored(threadId), ["one", "1", "two", "2"]);
});

test("the window is the newest lastMessages: the agent's, or the run's own [D6.1]", async () => {
  const threadId = fresh("thread");
  for (const content of ["one", "two", "three"]) await turn(threadId, [user(content)], `re ${content}`);
  const toldWith = async (members) => {
    await turn(threadId, [user("ask")], "ok", { forwardedProps: {}, ...members, owner: OWNER });
    return told();
  };
  assert.deepEqual(await toldWith({ forwardedProps: { memoryOptions: { lastMessages: 2, readOnly: true } } }), ["three", "re three", "ask"]);
  for (const lastMessages of [0, false]) {
    assert.deepEqual(await toldWith({ forwardedProps: { memoryOptions: { lastMessages, readOnly: true } } }), ["ask"]);
  }
  assert.deepEqual((await toldWith({ agent: "short", forwardedProps: { memoryOptions: { readOnly: true } } })).slice(-3), ["three", "re three", "ask"]);
});

test("the default window is forty messages [D6.1]", async () => {
  const threadId = fresh("thread");
  const messages = Array.from({ length: 50 }, (_, index) => (index % 2 === 0 ? user(`m${index}`) : assistant(fresh("a"), `m${index}`)));
  await turn(threadId, messages, "ok");
  assert.equal(told().length, 50, "incoming messages are never cut");
  await turn(threadId, [user("next")], "ok");
  // m11 is an assistant's; a prompt may begin with the user message after it.
  assert.deepEqual(told().slice(-41).filter((content) => content !== "m11"), [...messages.slice(12).map(({ content }) => content), "ok", "next"]);
});

test("a window never starts inside a tool exchange [2.3]", async () => {
  const threadId = fresh("thread");
  shared.upstream.reply(calls([["one", {}]]));
  shared.upstream.reply(says("Done."));
  const input = runInput({ threadId, owner: OWNER, tools: [tool("one")] });
  const stream = await openRun(shared.worker, input);
  const { toolCallId } = await stream.until("TOOL_CALL_END");
  await giveResult(shared.worker, input.runId, toolCallId, { result: "r" });
  await stream.rest();
  // Stored: user, assistant with call, tool, assistant. A window of two would start at the tool message.
  await turn(threadId, [user("next")], "ok", { forwardedProps: { memoryOptions: { lastMessages: 2 } } });
  const { messages } = shared.upstream.requests.at(-1).body;
  assert.notEqual(messages.find(({ role }) => role !== "system").role, "tool");
  const calledIds = new Set(messages.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id)));
  for (const { role, tool_call_id } of messages) if (role === "tool") assert.ok(calledIds.has(tool_call_id));
});

test("a client that resends everything doubles nothing [D6.2]", async () => {
  const client = new Client(shared.worker, { messages: [user("one")] });
  const forwardedProps = { resourceId: OWNER };
  for (const [index, answer] of ["1", "2", "3"].entries()) {
    if (index > 0) client.agent.addMessage(user(`more ${index}`));
    shared.upstream.reply(says(answer));
    await client.run({ forwardedProps });
  }
  assert.deepEqual(told(), ["one", "1", "more 1", "2", "more 2"]);
  const rows = await history(shared.worker, client.agent.threadId);
  assert.deepEqual(rows, client.messages.map(({ id, role, content }) => ({ id, role, content })));
});

test("what GET messages gives may be sent back as it is [4]", async () => {
  const threadId = fresh("thread");
  await turn(threadId, [user("one")], "1");
  const list = await history(shared.worker, threadId);
  await turn(threadId, [...list, user("two")], "2");
  assert.deepEqual(await stored(threadId), ["one", "1", "two", "2"]);
});

test("equal text under a new id is a new message [D6.3]", async () => {
  const threadId = fresh("thread");
  await turn(threadId, [user("again")], "1");
  await turn(threadId, [user("again")], "2");
  assert.deepEqual(told(), ["again", "1", "again"]);
  assert.deepEqual(await stored(threadId), ["again", "1", "again", "2"]);
});

test("a list that leaves messages out supersedes them: hidden, not deleted, and back when sent again [D6.2]", async () => {
  const threadId = fresh("thread");
  const [one, two, three] = [user("one"), user("two"), user("three")];
  const first = assistant(await turn(threadId, [one], "1"), "1");
  const second = assistant(await turn(threadId, [two], "2"), "2");
  await turn(threadId, [one, first, three], "3");
  assert.deepEqual(told(), ["one", "1", "three"]);
  assert.deepEqual(await stored(threadId), ["one", "1", "three", "3"]);
  assert.deepEqual((await stored(threadId, "format=ag-ui&superseded=true")).sort(), ["1", "2", "3", "one", "three", "two"]);
  await turn(threadId, [user("four")], "4");
  assert.deepEqual(told(), ["one", "1", "three", "3", "four"]);
  await turn(threadId, [one, first, two, second, user("five")], "5");
  assert.deepEqual(told(), ["one", "1", "two", "2", "five"]);
  const visible = await stored(threadId);
  assert.deepEqual([visible.includes("two"), visible.includes("2"), visible.includes("three")], [true, true, false]);
});

test("a resend replaces the content of a user message, and of no other [D6.4]", async () => {
  const threadId = fresh("thread");
  const one = user("one");
  const answerId = await turn(threadId, [one], "1");
  await turn(threadId, [{ ...one, content: "ONE" }, assistant(answerId, "forged"), user("two")], "2");
  assert.deepEqual(told(), ["ONE", "1", "two"]);
  assert.deepEqual(await stored(threadId), ["ONE", "1", "two", "2"]);
});

test("regenerating by resending the list without the answer replaces it [D6.2]", async () => {
  const threadId = fresh("thread");
  const one = user("one");
  await turn(threadId, [one], "first");
  await turn(threadId, [one], "second");
  assert.deepEqual(told(), ["one"]);
  assert.deepEqual(await stored(threadId), ["one", "second"]);
});

test("readOnly reads and writes nothing [D6.6]", async () => {
  const threadId = fresh("thread");
  await turn(threadId, [user("one")], "1");
  await turn(threadId, [user("two")], "2", { forwardedProps: { memoryOptions: { readOnly: true } } });
  assert.deepEqual(told(), ["one", "1", "two"]);
  assert.deepEqual(await stored(threadId), ["one", "1"]);
  const unmade = fresh("thread");
  await turn(unmade, [user("x")], "y", { forwardedProps: { memoryOptions: { readOnly: true } } });
  await refused(await shared.worker.fetch(`/threads/${unmade}`), 404);
});

test("no messages on a persistent thread answers the stored history [2.1]", async () => {
  const threadId = fresh("thread");
  shared.upstream.reply(says("1"));
  await run(shared.worker, runInput({ threadId, owner: OWNER, messages: [user("one")] }));
  await turn(threadId, [], "2");
  assert.deepEqual(told(), ["one", "1"]);
  assert.deepEqual(await stored(threadId), ["one", "1", "2"]);
});

test("nothing to answer is 400 at /messages [2.1]", async () => {
  for (const members of [{ messages: [] }, { messages: [assistant("a1", "Hi")] }, { messages: [], owner: OWNER }, { messages: [{ id: "s1", role: "system", content: "x" }] }]) {
    const { issues } = await refusedRun(shared.worker, runInput(members), 400);
    assert.deepEqual(issues.map(({ field }) => field), ["/messages"]);
  }
});

test("system, developer, reasoning and activity: what is stored, what is shown where [2.3]", async () => {
  const threadId = fresh("thread");
  const activity = { id: fresh("x"), role: "activity", activityType: "PLAN", content: { step: 1 } };
  const reasoning = { id: fresh("r"), role: "reasoning", content: "hm" };
  await turn(threadId, [{ id: "s1", role: "system", content: "S" }, { id: "d1", role: "developer", content: "D" }, user("one"), reasoning, activity], "1");
  const rows = await history(shared.worker, threadId);
  assert.deepEqual(rows.map(({ role }) => role), ["user", "reasoning", "activity", "assistant"]);
  assert.deepEqual(rows.slice(1, 3), [reasoning, activity]);
  assert.deepEqual((await history(shared.worker, threadId, "format=mastra")).map(({ role }) => role), ["user", "assistant"]);
  const { total } = await ok(await shared.worker.fetch(`/threads/${threadId}/messages`));
  assert.equal(total, 2);
});

test("without a resourceId nothing is stored and nothing read [D5]", async () => {
  const threadId = fresh("thread");
  shared.upstream.reply(says("1"));
  await run(shared.worker, runInput({ threadId, messages: [user("one")] }));
  await refused(await shared.worker.fetch(`/threads/${threadId}`), 404);
  for (const resourceId of ["", null]) {
    shared.upstream.reply(says("1"));
    await run(shared.worker, runInput({ threadId, forwardedProps: { resourceId } }));
    await refused(await shared.worker.fetch(`/threads/${threadId}`), 404);
  }
});

test("an agent may persist always, as `anonymous` where nobody is named, or never [D5]", async () => {
  const kept = fresh("thread");
  shared.upstream.reply(says("1"));
  await run(shared.worker, runInput({ threadId: kept, agent: "always" }));
  assert.equal((await ok(await shared.worker.fetch(`/threads/${kept}`))).resourceId, "anonymous");
  const lost = fresh("thread");
  shared.upstream.reply(says("1"));
  await run(shared.worker, runInput({ threadId: lost, agent: "never", owner: OWNER }));
  await refused(await shared.worker.fetch(`/threads/${lost}`), 404);
});

test("a foreign thread is 403 before the stream [D4]", async () => {
  const threadId = fresh("thread");
  await turn(threadId, [user("one")], "1");
  await refusedRun(shared.worker, runInput({ threadId, owner: "mallory" }), 403);
  assert.deepEqual(await stored(threadId), ["one", "1"]);
});

test("a run id is used once per owner [D12]", async () => {
  const input = runInput({ owner: OWNER });
  const asked = shared.upstream.next();
  const opening = openRun(shared.worker, input);
  const exchange = await asked;
  exchange.head();
  const stream = await opening;
  const live = await refusedRun(shared.worker, { ...input, threadId: fresh("thread") }, 409, "run_conflict");
  assert.deepEqual([live.status, live.threadId], ["running", input.threadId]);
  assert.match(live.events, /\/runs\/.+\/events/);
  await exchange.writeAll(text("ok"), finish());
  exchange.end();
  await stream.rest();
  const over = await refusedRun(shared.worker, input, 409, "run_conflict");
  assert.equal(over.status, "finished");
  shared.upstream.reply(says("ok"));
  const { runId } = input;
  await run(shared.worker, runInput({ runId, owner: "other tenant" }));
});

test("sampling: a run without resourceId on a thread that waits for a result is served at once, apart from it [D5]", async () => {
  const threadId = fresh("thread");
  shared.upstream.reply(calls([["ask", {}]]));
  const input = runInput({ threadId, owner: OWNER, tools: [tool("ask")] });
  const stream = await openRun(shared.worker, input);
  const { toolCallId } = await stream.until("TOOL_CALL_END");

  shared.upstream.reply(says('{"mood":"fine"}'));
  const sampling = runInput({
    threadId,
    messages: [{ id: "s1", role: "system", content: "Judge." }, user("How am I?")],
    forwardedProps: { structuredOutput: {} },
  });
  assert.equal((await run(shared.worker, sampling)).at(-1).type, "RUN_FINISHED");
  assert.deepEqual(told(), ["How am I?"]);

  shared.upstream.reply(says("Done."));
  await giveResult(shared.worker, input.runId, toolCallId, { result: "fine" });
  await stream.rest();
  assert.deepEqual((await history(shared.worker, threadId)).map(({ role }) => role), ["user", "assistant", "tool", "assistant"]);
});
