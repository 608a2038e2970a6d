// Finding, taking along and deleting what is kept: `q`, export, erase, retention.

import assert from "node:assert/strict";
import { says } from "./support/openai.mjs";
import { fresh, history, ok, refused, run, runInput, user } from "./support/run.mjs";
import { API_KEY, stubAgent, suite, test } from "./support/suite.mjs";
import { startWorker } from "./support/worker.mjs";

const shared = suite();

const list = async (query) => ok(await shared.worker.fetch(`/threads?${query}`));
const create = async (body) => ok(await shared.worker.fetch("/threads", { json: body }));
const erase = (owner, confirm = owner, init = {}) =>
  shared.worker.fetch(`/owners/${encodeURIComponent(owner)}/erase`, { json: { confirm }, ...init });

/** A thread of one turn; gives its id. */
async function answered(owner, text, worker = shared.worker) {
  shared.upstream.reply(says(`Re: ${text}`));
  const input = runInput({ owner, messages: [user(text)] });
  await run(worker, input);
  return input.threadId;
}

test("q finds an owner's threads by any part of the title, in any case and language", async () => {
  const owner = fresh("owner");
  for (const title of ["Ärzte in ZÜRICH", "100%_sicher", "東京の天気"]) await create({ resourceId: owner, title });
  await create({ resourceId: fresh("other"), title: "Ärzte" });
  const titles = async (q) => (await list(`resourceId=${owner}&q=${encodeURIComponent(q)}`)).threads.map(({ title }) => title);
  assert.deepEqual(await titles("ärzte"), ["Ärzte in ZÜRICH"]);
  assert.deepEqual(await titles("zürich"), ["Ärzte in ZÜRICH"]);
  assert.deepEqual(await titles("%_S"), ["100%_sicher"]);
  assert.deepEqual(await titles("京の"), ["東京の天気"]);
  assert.deepEqual(await titles("nothing"), []);
  assert.equal((await titles("  ")).length, 3);
  const long = "é".repeat(300);
  await create({ resourceId: owner, title: long });
  assert.deepEqual(await titles(long.toUpperCase()), [long]);
  await refused(await shared.worker.fetch(`/threads?resourceId=${owner}&q=${"x".repeat(513)}`), 400);
  await refused(await shared.worker.fetch("/threads?q=x"), 400);
});

test("a search pages by cursor like any list", async () => {
  const owner = fresh("owner");
  for (let number = 0; number < 5; number += 1) await create({ resourceId: owner, title: number === 2 ? "other" : `same ${number}` });
  const first = await list(`resourceId=${owner}&q=SAME&limit=3`);
  assert.deepEqual([first.threads.length, first.total, first.hasMore], [3, 4, true]);
  const rest = await list(`resourceId=${owner}&q=SAME&limit=3&cursor=${encodeURIComponent(first.nextCursor)}`);
  assert.deepEqual([rest.threads.length, rest.total, rest.hasMore], [1, 4, false]);
  assert.equal(new Set([...first.threads, ...rest.threads].map(({ id }) => id)).size, 4);
});

test("an export is the thread and all its messages, for its owner", async () => {
  const owner = fresh("owner");
  const threadId = fresh("thread");
  const messages = Array.from({ length: 450 }, (_, index) => user(`text ${index}`));
  shared.upstream.reply(says("Done."));
  await run(shared.worker, runInput({ threadId, owner, messages }));
  const exported = await ok(await shared.worker.fetch(`/threads/${threadId}/export`));
  assert.deepEqual(exported.thread, await ok(await shared.worker.fetch(`/threads/${threadId}`)));
  assert.equal(exported.messages.length, 451);
  assert.deepEqual(exported.messages.slice(0, 450), messages);
  assert.deepEqual(exported.messages, await history(shared.worker, threadId, "format=ag-ui&limit=500"));
  await refused(await shared.worker.fetch(`/threads/${threadId}/export?resourceId=bob`), 403);
  await refused(await shared.worker.fetch(`/threads/${fresh("thread")}/export`), 404);
  await refused(await shared.worker.fetch(`/threads/${threadId}/export?superseded=perhaps`), 400);
});

test("an export of an empty thread is whole too", async () => {
  const thread = await create({ resourceId: fresh("owner") });
  assert.deepEqual(await ok(await shared.worker.fetch(`/threads/${thread.id}/export`)), { thread, messages: [] });
});

test("a page over 8 MiB ends early, says so, and the export has everything", async () => {
  const threadId = fresh("thread");
  const huge = "x".repeat(3 * 1024 * 1024);
  for (let turn = 0; turn < 4; turn += 1) {
    shared.upstream.reply(says("ok"));
    await run(shared.worker, runInput({ threadId, owner: "mia", messages: [user(huge)], forwardedProps: { memoryOptions: { lastMessages: 0 } } }));
  }
  const page = await ok(await shared.worker.fetch(`/threads/${threadId}/messages?format=ag-ui`));
  assert.deepEqual([page.messages.length, page.total, page.hasMore], [5, 8, true]);
  const older = await ok(await shared.worker.fetch(`/threads/${threadId}/messages?format=ag-ui&offset=5`));
  assert.deepEqual([older.messages.length, older.total, older.hasMore], [3, 8, false]);
  const exported = await ok(await shared.worker.fetch(`/threads/${threadId}/export`));
  assert.deepEqual(exported.messages, [...older.messages, ...page.messages]);
});

test("an erased owner has nothing left, others lose nothing, and it may be done again", async () => {
  const [owner, other] = [fresh("owner/a b"), fresh("owner")];
  const ids = [await answered(owner, "Hello"), await answered(owner, "Again")];
  const kept = await answered(other, "Mine");
  await shared.worker.fetch(`/threads/${ids[1]}`, { method: "DELETE" });
  await refused(await erase(owner, "no"), 400);
  await refused(await shared.worker.fetch(`/owners/${encodeURIComponent(owner)}/erase`, { json: {} }), 400);
  await refused(await shared.worker.fetch("/threads", { method: "DELETE" }), 405);
  await refused(await shared.worker.fetch("/threads/", { method: "DELETE" }), 405);
  assert.equal((await list(`resourceId=${encodeURIComponent(owner)}`)).total, 1);
  for (let round = 0; round < 2; round += 1) {
    assert.deepEqual(await ok(await erase(owner)), { success: true, complete: true });
  }
  for (const table of ["threads", "messages", "runs", "deleted_threads"]) {
    const { count } = await shared.worker.database.prepare(`SELECT count(*) AS count FROM ${table} WHERE resource_id = ?`).bind(owner).first();
    assert.equal(count, 0, table);
  }
  assert.equal((await history(shared.worker, kept)).length, 2);
});

test("an erasure is the owner's own or an admin's [D4]", async (t) => {
  const tokens = [{ secret: "TOKEN_ANN", owner: "ann" }, { secret: "TOKEN_ADMIN", owner: "*" }];
  const worker = await startWorker({
    vars: { AUTH: { mode: "bearer", tokens } },
    secrets: { TOKEN_ANN: "of-ann", TOKEN_ADMIN: "of-admin" },
  });
  t.after(() => worker.stop());
  const attempt = (owner, token) =>
    worker.fetch(`/owners/${owner}/erase`, { json: { confirm: owner }, headers: token ? { authorization: `Bearer ${token}` } : {} });
  await refused(await attempt("ann"), 401);
  await refused(await attempt("bob", "of-ann"), 403);
  await ok(await attempt("ann", "of-ann"));
  await ok(await attempt("bob", "of-admin"));
});

test("the cron trigger deletes what is idle longer than RETENTION_DAYS, and nothing without it", async (t) => {
  const worker = await startWorker({
    agents: [stubAgent(shared.upstream)],
    vars: { RETENTION_DAYS: 30 },
    secrets: { OPENAI_API_KEY: API_KEY },
  });
  t.after(() => worker.stop());
  for (const of of [shared.worker, worker]) {
    const owner = fresh("owner");
    const [old, recent] = [await answered(owner, "Old", of), await answered(owner, "New", of)];
    const longAgo = Date.now() - 31 * 24 * 60 * 60 * 1000;
    await of.database.prepare("UPDATE threads SET updated_at_ms = ?1 WHERE id = ?2").bind(longAgo, old).run();
    await of.database.prepare("UPDATE runs SET started_at_ms = ?1 WHERE thread_id = ?2").bind(longAgo, old).run();
    await of.tick();
    const { threads } = await ok(await of.fetch(`/threads?resourceId=${owner}`));
    assert.deepEqual(threads.map(({ id }) => id), of === worker ? [recent] : [recent, old]);
    const { results } = await of.database.prepare("SELECT thread_id FROM runs WHERE resource_id = ?").bind(owner).all();
    assert.equal(results.length, of === worker ? 1 : 2);
  }
});
