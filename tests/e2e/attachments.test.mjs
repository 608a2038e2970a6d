// Attachments: moved to the bucket where there is one, read back as they were sent, bounded where there is none.

import assert from "node:assert/strict";
import { says } from "./support/openai.mjs";
import { eventually, fresh, history, ok, refusedRun, run, runInput, user } from "./support/run.mjs";
import { API_KEY, stubAgent, suite, test } from "./support/suite.mjs";
import { startWorker } from "./support/worker.mjs";

const shared = suite({ attachments: true });

const base64 = (letter, length) => letter.repeat(length);
const picture = (letter, length) => ({ type: "image", source: { type: "data", value: base64(letter, length), mimeType: "image/png" } });

const stored = (worker = shared.worker) =>
  worker.database
    .prepare("SELECT thread_id, attachments, length(body) AS length FROM messages WHERE attachments IS NOT NULL")
    .all()
    .then(({ results }) => results);
const rowsOf = async (threadId) => (await stored()).filter((row) => row.thread_id === threadId);
const objects = async (worker = shared.worker) => (await worker.bucket.list()).objects.map(({ key }) => key);
const moved = (threadId) => eventually(() => rowsOf(threadId), (rows) => rows.length > 0);

/** A run of one message; gives its thread. */
async function sends(message, { worker = shared.worker, ...members } = {}) {
  shared.upstream.reply(says("Seen."));
  const input = runInput({ owner: "ada", messages: [message], ...members });
  await run(worker, input);
  return input.threadId;
}

const mixed = (length = 50_000) =>
  user([
    { type: "text", text: "Look" },
    picture("A", length),
    picture("B", 16),
    { type: "document", source: { type: "url", value: `data:text/plain,"é\\${"x".repeat(20_000)}` }, metadata: { n: 1.5 } },
  ]);

test("large attachments go to the bucket, and every read has them as they were sent", async () => {
  const message = mixed(1_500_000);
  const threadId = await sends(message);
  const [row] = await moved(threadId);
  const keys = JSON.parse(row.attachments);
  assert.equal(keys.length, 2);
  assert.ok(row.length < 1000, `${row.length} characters in the row`);
  assert.equal(await (await shared.worker.bucket.get(keys[0])).text(), message.content[1].source.value);
  assert.deepEqual((await history(shared.worker, threadId))[0], message);
  const exported = await ok(await shared.worker.fetch(`/threads/${threadId}/export`));
  assert.deepEqual(exported.messages[0], message);
  await ok(await shared.worker.fetch(`/threads/${threadId}/messages?format=mastra`));

  shared.upstream.reply(says("Again."));
  await run(shared.worker, runInput({ threadId, owner: "ada", messages: [user("And now?")] }));
  const [asked] = shared.upstream.requests.at(-1).body.messages;
  const urls = asked.content.filter(({ type }) => type === "image_url").map(({ image_url: { url } }) => url);
  assert.equal(urls[0], `data:image/png;base64,${message.content[1].source.value}`);
});

test("a whole list sent again leaves the bucket as it is", async () => {
  const message = mixed();
  const threadId = await sends(message);
  await moved(threadId);
  const before = await objects();
  const list = await history(shared.worker, threadId);
  shared.upstream.reply(says("More."));
  await run(shared.worker, runInput({ threadId, owner: "ada", messages: [...list, user("More")] }));
  assert.deepEqual((await history(shared.worker, threadId)).slice(0, 2), list);
  assert.deepEqual(await objects(), before);
});

test("an older client's binary part is an attachment too", async () => {
  const data = base64("C", 50_000);
  const message = user([{ type: "binary", mimeType: "application/pdf", data, filename: "a.pdf" }]);
  const threadId = await sends(message);
  await moved(threadId);
  const [{ content }] = await history(shared.worker, threadId);
  assert.deepEqual(content, [
    { type: "document", source: { type: "data", value: data, mimeType: "application/pdf" }, metadata: { filename: "a.pdf" } },
  ]);
});

test("deleting a thread, erasing an owner and retention empty the bucket", async (t) => {
  const worker = await startWorker({
    agents: [stubAgent(shared.upstream)],
    attachments: true,
    vars: { RETENTION_DAYS: 1 },
    secrets: { OPENAI_API_KEY: API_KEY },
  });
  t.after(() => worker.stop());
  const count = (wanted) => eventually(() => objects(worker), (keys) => keys.length === wanted);
  const threads = [];
  for (const owner of ["ada", "bob", "cy"]) {
    threads.push(await sends(mixed(), { worker, owner }));
    await count(2 * threads.length);
  }
  await ok(await worker.fetch(`/threads/${threads[0]}?resourceId=ada`, { method: "DELETE" }));
  assert.equal((await objects(worker)).length, 4);
  assert.deepEqual(await ok(await worker.fetch("/owners/bob/erase", { json: { confirm: "bob" } })), { success: true, complete: true });
  assert.equal((await objects(worker)).length, 2);
  await worker.database.prepare("UPDATE threads SET updated_at_ms = 1").run();
  await worker.tick();
  assert.deepEqual(await objects(worker), []);
  const { results } = await worker.database.prepare("SELECT * FROM dropped_attachments").all();
  assert.deepEqual(results, []);
});

test("what a crash left in the bucket goes with a later cron trigger", async () => {
  const key = fresh("left");
  await shared.worker.bucket.put(key, "x");
  await shared.worker.database.prepare("INSERT INTO dropped_attachments VALUES (?, 0)").bind(key).run();
  await shared.worker.tick();
  assert.ok(!(await objects()).includes(key));
});

test("a start that is refused puts nothing into the bucket", async () => {
  const before = await objects();
  const message = mixed();
  const threadId = await sends(message);
  await moved(threadId);
  const after = await objects();
  assert.equal(after.length, before.length + 2);
  const input = runInput({ threadId, owner: "bob", messages: [mixed()] });
  await refusedRun(shared.worker, input, 403);
  assert.deepEqual(await objects(), after);
});
