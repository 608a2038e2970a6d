// Finding threads by what was said, with a SEARCH binding.

import assert from "node:assert/strict";
import { messagesAfter, statements } from "../../scripts/search_rows.mjs";
import { says } from "./support/openai.mjs";
import { eventually, fresh, ok, run, runInput, user } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";

const shared = suite({ search: true });

const list = async (owner, q) => (await ok(await shared.worker.fetch(`/threads?resourceId=${owner}&q=${encodeURIComponent(q)}`))).threads;
const rows = async () =>
  (await shared.worker.search.prepare("SELECT keys, text, resource_id, thread_id, message_id FROM message_text ORDER BY thread_id, message_id").all()).results;

/** A thread of one turn whose texts are in the index; gives its id. */
async function said(owner, asked, answered) {
  shared.upstream.reply(says(answered));
  const input = runInput({ owner, messages: [user(asked)] });
  await run(shared.worker, input);
  await eventually(rows, (all) => all.filter((row) => row.thread_id === input.threadId).length === 2);
  return input.threadId;
}

test("a thread is found by the words of its messages, with a snippet, by its owner only", async () => {
  const [owner, other] = [fresh("owner"), fresh("owner")];
  const bakery = await said(owner, "When?", "The bakery opens at eight.");
  const tokyo = await said(owner, "Wo?", "明日は東京で雨が降ります。");
  await said(other, "When?", "The bakery is closed.");
  const found = await list(owner, "BAKER eight");
  assert.deepEqual(found.map(({ id, snippet }) => [id, snippet]), [[bakery, "The bakery opens at eight."]]);
  assert.deepEqual((await list(owner, "東京")).map(({ id, snippet }) => [id, snippet]), [[tokyo, "明日は東京で雨が降ります。"]]);
  assert.deepEqual(await list(owner, '" OR NOT ('), []);
  assert.equal((await list(other, "bakery")).length, 1);
});

test("a thread is found by its title, whatever the case of its letters", async () => {
  const owner = fresh("owner");
  const thread = await said(owner, "Über die ΟΔΟΣ in İzmir", "Yes.");
  for (const q of ["ÜBER DIE", "οδος", "ΟΔΟΣ", "i\u0307zmir"]) {
    assert.deepEqual((await list(owner, q)).map(({ id }) => id), [thread], q);
  }
});

test("a deleted thread leaves the index, an erased owner too", async () => {
  const owner = fresh("owner");
  const [first, second] = [await said(owner, "Apples", "Pears"), await said(owner, "Plums", "Pears")];
  await ok(await shared.worker.fetch(`/threads/${first}`, { method: "DELETE" }));
  assert.deepEqual((await list(owner, "pears")).map(({ id }) => id), [second]);
  assert.equal((await rows()).filter((row) => row.resource_id === owner).length, 2);
  assert.deepEqual(await ok(await shared.worker.fetch(`/owners/${owner}/erase`, { json: { confirm: owner } })), { success: true, complete: true });
  assert.equal((await rows()).filter((row) => row.resource_id === owner).length, 0);
});

test("the index built anew has the same rows", async () => {
  const owner = fresh("owner/é");
  await said(owner, [{ type: "text", text: "It's" }, { type: "text", text: "here" }], "สวัสดี ".repeat(4000));
  await said(owner, "東京".repeat(30_000), "x".repeat(900_000));
  const before = await rows();
  await shared.worker.search.prepare("DELETE FROM message_text").run();
  const { results } = await shared.worker.database.prepare(messagesAfter(0, 1000)).all();
  for (const statement of statements(results)) {
    assert.ok(Buffer.byteLength(statement) < 100_000);
    await shared.worker.search.prepare(statement).run();
  }
  assert.deepEqual(await rows(), before);
});
