// The thread routes: contract 4.

import assert from "node:assert/strict";
import { calls, finish, says, text } from "./support/openai.mjs";
import { eventually, fresh, giveResult, history, ok, openRun, refused, run, runInput, tool, user } from "./support/run.mjs";
import { API_KEY, stubAgent, suite, test } from "./support/suite.mjs";
import { startWorker } from "./support/worker.mjs";

const shared = suite({
  agents: (stub) => [stub({ tools: ["current_time"] }), stub({ id: "titled", generateTitle: true })],
});

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const create = async (body) => ok(await shared.worker.fetch("/threads", { json: body }));
const get = async (id, query = "") => ok(await shared.worker.fetch(`/threads/${encodeURIComponent(id)}${query}`));
const patch = (id, body) => shared.worker.fetch(`/threads/${id}`, { method: "PATCH", json: body });
const list = async (query) => ok(await shared.worker.fetch(`/threads?${query}`));
const remove = (id, query = "") => shared.worker.fetch(`/threads/${id}${query}`, { method: "DELETE" });

/** Makes `count` threads of one owner, oldest first. */
async function threadsOf(owner, count) {
  const ids = [];
  for (let number = 0; number < count; number += 1) {
    const thread = await create({ resourceId: owner, title: `t${number}` });
    // Dates have milliseconds: the next thread must not share one.
    while (Date.now() <= Date.parse(thread.createdAt)) await new Promise(setImmediate);
    ids.push(thread.id);
  }
  return ids;
}

test("a thread is made with all its members", async () => {
  const owner = fresh("owner");
  const thread = await create({ threadId: "made/by hand", resourceId: owner, title: "First", metadata: { a: 1.5 } });
  const { createdAt, updatedAt, ...rest } = thread;
  assert.deepEqual(rest, { id: "made/by hand", resourceId: owner, title: "First", metadata: { a: 1.5 } });
  assert.match(createdAt, ISO);
  assert.match(updatedAt, ISO);
  assert.deepEqual(await get("made/by hand"), thread);
});

test("an id is made where none is given, and `id` is as good as `threadId`", async () => {
  const owner = fresh("owner");
  const made = await create({ resourceId: owner });
  assert.match(made.id, /\S/);
  assert.equal("title" in made, false);
  assert.deepEqual(made.metadata, {});
  const id = fresh("thread");
  assert.equal((await create({ id, resourceId: owner })).id, id);
});

test("the same id again gives the existing thread; another owner gets 403", async () => {
  const thread = await create({ resourceId: "ann", title: "Mine" });
  assert.deepEqual(await create({ threadId: thread.id, resourceId: "ann", title: "Other" }), thread);
  await refused(await shared.worker.fetch("/threads", { json: { threadId: thread.id, resourceId: "bob" } }), 403);
});

test("a thread is read by its id; a resourceId that is not the owner's is 403; an unknown one 404 [D4]", async () => {
  const { id } = await create({ resourceId: "ann" });
  assert.equal((await get(id)).id, id);
  assert.equal((await get(id, "?resourceId=ann")).id, id);
  for (const path of [`/threads/${id}?resourceId=bob`, `/threads/${id}/messages?resourceId=bob`]) {
    await refused(await shared.worker.fetch(path), 403);
  }
  await refused(await shared.worker.fetch(`/threads/${fresh("thread")}`), 404);
  await refused(await shared.worker.fetch(`/threads/${fresh("thread")}/messages`), 404);
});

test("PATCH renames, replaces metadata whole and bumps updatedAt only", async () => {
  const thread = await create({ resourceId: "ann", title: "Old", metadata: { a: 1, b: 2 } });
  const renamed = await ok(await patch(thread.id, { title: "New" }));
  assert.deepEqual({ ...renamed, updatedAt: "" }, { ...thread, title: "New", updatedAt: "" });
  assert.ok(renamed.updatedAt >= thread.updatedAt);
  const remarked = await ok(await patch(thread.id, { metadata: { c: 3 } }));
  assert.deepEqual(remarked.metadata, { c: 3 });
  assert.equal(remarked.title, "New");
  assert.deepEqual(await get(thread.id), remarked);
  assert.equal((await ok(await patch(thread.id, { id: "other", createdAt: "x" }))).id, thread.id);
  await refused(await patch(thread.id, { resourceId: "bob", title: "Taken" }), 403);
  await refused(await patch(fresh("thread"), { title: "x" }), 404);
});

test("titles and metadata have limits, and are what they are called", async () => {
  const thread = await create({ resourceId: "ann" });
  for (const [body, field] of [
    [{ title: "x".repeat(513) }, "/title"],
    [{ title: 7 }, "/title"],
    [{ metadata: "x" }, "/metadata"],
    [{ metadata: { big: "x".repeat(64 * 1024) } }, "/metadata"],
  ]) {
    const response = await patch(thread.id, body);
    assert.ok([400, 413].includes(response.status), `${response.status}`);
    const refusal = await refused(response, response.status);
    if (response.status === 400) assert.deepEqual(refusal.issues.map((issue) => issue.field), [field]);
  }
  assert.equal((await ok(await patch(thread.id, { title: "é".repeat(512) }))).title, "é".repeat(512));
});

test("DELETE takes thread and messages, again and again for its owner", async () => {
  shared.upstream.reply(says("ok"));
  const input = runInput({ owner: "ann" });
  await run(shared.worker, input);
  const id = input.threadId;
  await refused(await remove(id, "?resourceId=bob"), 403);
  assert.deepEqual(await ok(await remove(id)), { success: true, result: "Thread deleted" });
  assert.deepEqual(await ok(await remove(id, "?resourceId=ann")), { success: true, result: "Thread deleted" });
  await refused(await shared.worker.fetch(`/threads/${id}`), 404);
  await refused(await shared.worker.fetch(`/threads/${id}/messages`), 404);
  await refused(await remove(fresh("thread")), 404);
});

test("a live run of a deleted thread stores nothing, not even in a new thread of that id", async () => {
  const asked = shared.upstream.next();
  const input = runInput({ owner: "ann" });
  const opening = openRun(shared.worker, input);
  const exchange = await asked;
  exchange.head();
  const stream = await opening;
  await ok(await remove(input.threadId));
  await create({ threadId: input.threadId, resourceId: "ann", title: "Anew" });
  await exchange.writeAll(text("Lost."), finish());
  exchange.end();
  await stream.rest();
  assert.deepEqual(await history(shared.worker, input.threadId), []);
  assert.equal((await get(input.threadId)).title, "Anew");
});

test("the list is the owner's, newest first, in the envelope [D18]", async () => {
  const owner = fresh("owner");
  const ids = await threadsOf(owner, 3);
  const { threads, ...envelope } = await list(`resourceId=${owner}&agentId=ioAgent`);
  assert.deepEqual(threads.map(({ id }) => id), ids.toReversed());
  assert.deepEqual(envelope, { total: 3, page: 0, perPage: 100, hasMore: false });
  assert.deepEqual(threads[0], await get(ids[2]));
});

test("the list needs an owner; an empty one has nothing [D4]", async () => {
  await refused(await shared.worker.fetch("/threads"), 400);
  assert.deepEqual((await list("resourceId=")).threads, []);
  assert.deepEqual((await list(`resourceId=${fresh("owner")}`)).threads, []);
});

test("the list is paged by limit and offset, or page and perPage", async () => {
  const owner = fresh("owner");
  const newest = (await threadsOf(owner, 5)).toReversed();
  const ids = async (query) => (await list(`resourceId=${owner}&${query}`)).threads.map(({ id }) => id);
  assert.deepEqual(await ids("limit=2"), newest.slice(0, 2));
  assert.deepEqual(await ids("limit=2&offset=3"), newest.slice(3));
  assert.deepEqual(await ids("page=1&perPage=2"), newest.slice(2, 4));
  assert.deepEqual(await ids("orderBy=createdAt&direction=ASC"), newest.toReversed());
  const { threads: _, nextCursor, ...envelope } = await list(`resourceId=${owner}&page=1&perPage=2`);
  assert.deepEqual(envelope, { total: 5, page: 1, perPage: 2, hasMore: true });
  assert.equal(typeof nextCursor, "string");
  assert.equal((await list(`resourceId=${owner}&limit=1000`)).perPage, 100);
});

test("a cursor pages without drift while threads move", async () => {
  const owner = fresh("owner");
  const ids = await threadsOf(owner, 6);
  const seen = [];
  let page = await list(`resourceId=${owner}&limit=2`);
  seen.push(...page.threads.map(({ id }) => id));
  await ok(await patch(ids[5], { title: "moved up" }));
  await create({ resourceId: owner });
  while (page.nextCursor) {
    page = await list(`resourceId=${owner}&limit=2&cursor=${encodeURIComponent(page.nextCursor)}`);
    seen.push(...page.threads.map(({ id }) => id));
  }
  assert.deepEqual(seen, ids.toReversed());
  await refused(await shared.worker.fetch(`/threads?resourceId=${owner}&cursor=nonsense`), 400);
});

test("a run gives its thread a title cut at a word, and never takes a user's", async () => {
  const long = "Please compare the quarterly figures of every branch in the northern region";
  const titleAfter = async (content, threadId = fresh("thread")) => {
    shared.upstream.reply(says("ok"));
    await run(shared.worker, runInput({ threadId, owner: "tess", messages: [user(content)] }));
    return (await get(threadId)).title;
  };
  const title = await titleAfter(long);
  assert.ok(title.length <= 51 && long.startsWith(title.replace(/…$/, "")), title);
  assert.match(long.slice(title.replace(/…$/, "").length), /^\s/);
  assert.equal(await titleAfter("Short one"), "Short one");
  assert.equal(await titleAfter([{ type: "image", source: { type: "url", value: "https://example.com/a.png" } }]), "New chat");
  const { id } = await create({ resourceId: "tess", title: "Chosen" });
  assert.equal(await titleAfter("Something else", id), "Chosen");
});

test("a model-written title replaces the provisional one, after the stream has ended", async () => {
  const isTitle = ({ body }) => JSON.stringify(body.messages).includes("title");
  const titling = shared.upstream.next((request) => isTitle(request));
  shared.upstream.reply(says("ok"), { when: (request) => !isTitle(request) });
  const input = runInput({ agent: "titled", owner: "tess", messages: [user("Compare figures")] });
  await run(shared.worker, input);
  assert.equal((await get(input.threadId)).title, "Compare figures");
  await says("Figures compared")(await titling);
  const { title } = await eventually(() => get(input.threadId), (thread) => thread.title !== "Compare figures");
  assert.equal(title, "Figures compared");
});

/** A thread of `turns` turns `u0, a0, u1, a1, ...`; gives its id. */
async function conversation(turns) {
  const threadId = fresh("thread");
  for (let turn = 0; turn < turns; turn += 1) {
    shared.upstream.reply(says(`a${turn}`));
    await run(shared.worker, runInput({ threadId, owner: "mia", messages: [user(`u${turn}`)] }));
  }
  return threadId;
}

test("messages are the newest `limit` after `offset`, oldest first", async () => {
  const threadId = await conversation(3);
  const page = async (query) => {
    const { messages, ...envelope } = await ok(await shared.worker.fetch(`/threads/${threadId}/messages?format=ag-ui&${query}`));
    return [messages.map(({ content }) => content), envelope];
  };
  assert.deepEqual(await page(""), [["u0", "a0", "u1", "a1", "u2", "a2"], { total: 6, page: 0, perPage: 100, hasMore: false }]);
  assert.deepEqual(await page("limit=3"), [["a1", "u2", "a2"], { total: 6, page: 0, perPage: 3, hasMore: true }]);
  assert.deepEqual((await page("limit=3&offset=2"))[0], ["a0", "u1", "a1"]);
  assert.deepEqual(await page("page=1&perPage=4"), [["u0", "a0"], { total: 6, page: 1, perPage: 4, hasMore: false }]);
  assert.equal((await page("limit=9999"))[1].perPage, 500);
});

test("the mastra form is what the shipped interfaces read [D19]", async () => {
  shared.upstream.reply(calls([["add", { a: 1.5 }], ["current_time", {}]], { before: ["Adding."] }));
  shared.upstream.reply(says("Done."));
  const parts = [{ type: "text", text: "Add" }, { type: "text", text: "please" }];
  const input = runInput({ owner: "mia", tools: [tool("add")], messages: [user(parts, "m-user")] });
  const stream = await openRun(shared.worker, input);
  const { toolCallId } = await stream.until("TOOL_CALL_END");
  await giveResult(shared.worker, input.runId, toolCallId, { content: [{ type: "text", text: "1.5" }] });
  const events = await stream.rest();
  const [{ messageId: firstText }] = events.filter(({ type }) => type === "TEXT_MESSAGE_START");
  const [, timeCall] = events.filter(({ type }) => type === "TOOL_CALL_START").map((event) => event.toolCallId);
  const time = events.find((event) => event.type === "TOOL_CALL_RESULT" && event.toolCallId === timeCall).content;

  const rows = await history(shared.worker, input.threadId, "");
  for (const row of rows) {
    assert.match(row.createdAt, ISO);
    assert.deepEqual([row.threadId, row.resourceId, row.type, row.content.format], [input.threadId, "mia", "v2", 2]);
  }
  const [asked, answered] = rows;
  assert.equal(rows.length, 2);
  assert.deepEqual([asked.id, asked.role, asked.content.parts], ["m-user", "user", [{ type: "text", text: "Add\n\nplease" }]]);
  assert.deepEqual([answered.id, answered.role], [firstText, "assistant"]);
  assert.deepEqual(answered.content.parts, [
    { type: "text", text: "Adding." },
    { type: "tool-invocation", toolInvocation: { state: "result", toolCallId, toolName: "add", args: { a: 1.5 }, result: { content: [{ type: "text", text: "1.5" }] } } },
    { type: "tool-invocation", toolInvocation: { state: "result", toolCallId: timeCall, toolName: "current_time", args: {}, result: JSON.parse(time) } },
    { type: "text", text: "Done." },
  ]);
  assert.deepEqual(answered.toolCalls, [
    { id: toolCallId, type: "function", function: { name: "add", arguments: '{"a":1.5}' } },
    { id: timeCall, type: "function", function: { name: "current_time", arguments: "{}" } },
  ]);
});

test("the ag-ui form is the stream itself, results in their order", async () => {
  shared.upstream.reply(calls([["one", {}], ["two", {}]], { before: ["Both."] }));
  shared.upstream.reply(says("Done."));
  const input = runInput({ owner: "mia", tools: [tool("one"), tool("two")] });
  const stream = await openRun(shared.worker, input);
  const ids = [];
  while (ids.length < 2) ids.push((await stream.until("TOOL_CALL_END")).toolCallId);
  await giveResult(shared.worker, input.runId, ids[1], { result: "second" });
  await stream.until("TOOL_CALL_RESULT");
  await giveResult(shared.worker, input.runId, ids[0], { result: "first" });
  const events = await stream.rest();
  const texts = events.filter(({ type }) => type === "TEXT_MESSAGE_START").map(({ messageId }) => messageId);
  const results = events.filter(({ type }) => type === "TOOL_CALL_RESULT").map(({ messageId }) => messageId);
  assert.deepEqual(await history(shared.worker, input.threadId), [
    { id: input.messages[0].id, role: "user", content: "Hello" },
    {
      id: texts[0],
      role: "assistant",
      content: "Both.",
      toolCalls: ["one", "two"].map((name, index) => ({ id: ids[index], type: "function", function: { name, arguments: "{}" } })),
    },
    { id: results[0], role: "tool", toolCallId: ids[1], content: "second" },
    { id: results[1], role: "tool", toolCallId: ids[0], content: "first" },
    { id: texts[1], role: "assistant", content: "Done." },
  ]);
});

test("a message larger than a row is stored in pieces and read back whole", async () => {
  const huge = "Grüße 🚀 ".repeat(280_000);
  shared.upstream.reply(says("ok"));
  const input = runInput({ owner: "mia", messages: [user(huge)] });
  await run(shared.worker, input);
  assert.equal((await history(shared.worker, input.threadId))[0].content, huge);
  const [row] = await history(shared.worker, input.threadId, "format=mastra");
  assert.equal(row.content.parts[0].text, huge);
});

test("an unknown message form is refused", async () => {
  const threadId = await conversation(1);
  await refused(await shared.worker.fetch(`/threads/${threadId}/messages?format=xml`), 400);
});

test("LIST_SHAPE array makes the lists bare, not the messages; MESSAGE_FORMAT sets the default form [D18, D19]", async (t) => {
  const worker = await startWorker({
    agents: [stubAgent(shared.upstream)],
    vars: { LIST_SHAPE: "array", MESSAGE_FORMAT: "ag-ui" },
    secrets: { OPENAI_API_KEY: API_KEY },
  });
  t.after(() => worker.stop());
  shared.upstream.reply(says("ok"));
  const input = runInput({ owner: "lea" });
  await run(worker, input);
  const threads = await ok(await worker.fetch("/threads?resourceId=lea"));
  assert.deepEqual(threads.map(({ id }) => id), [input.threadId]);
  assert.equal((await ok(await worker.fetch("/agents"))).at(-1).id, "stub");
  const { messages, total } = await ok(await worker.fetch(`/threads/${input.threadId}/messages`));
  assert.deepEqual([messages.map(({ content }) => content), total], [["Hello", "ok"], 2]);
});
