// The database fails under a run, for real: a table is taken away, or the engine refuses every write. Nothing is lost,
// nothing doubled, nothing half-written (contract 2.3). Taking the file away does nothing: the runtime holds it open.

import assert from "node:assert/strict";
import { calls, says } from "./support/openai.mjs";
import { eventually, fresh, giveResult, history, ok, openRun, refused, run, runInput, tool, user } from "./support/run.mjs";
import { faults, scene } from "./support/storage.mjs";
import { test } from "./support/suite.mjs";

// The object delivers what it kept 30 seconds later.
const DELIVERED = { timeout: 90_000 };

const tables = async ({ worker }) => {
  const counts = ["threads", "runs", "messages", "message_pieces"].map((table) => `SELECT '${table}' AS name, count(*) AS count FROM ${table}`);
  const { results } = await worker.database.prepare(counts.join(" UNION ALL ")).all();
  return Object.fromEntries(results.map(({ name, count }) => [name, count]));
};

for (const [name, breaks] of Object.entries(faults)) {
  test(`a start while ${name} is 503 with Retry-After and stores nothing; the same run works afterwards`, { timeout: 60_000 }, async (t) => {
    const s = await scene(t);
    const threadId = fresh("thread");
    s.upstream.reply(says("1"));
    await run(s.worker, runInput({ threadId, owner: "ada", messages: [user("one")] }));
    const before = await tables(s);
    const repair = await breaks(s);
    const input = runInput({ threadId, owner: "ada", messages: [user("two")] });
    const response = await s.worker.fetch("/run", { json: input });
    assert.match(response.headers.get("retry-after") ?? "", /^\d+$/);
    await refused(response, 503, "storage_unavailable");
    await repair();
    assert.deepEqual(await tables(s), before);
    s.upstream.reply(says("2"));
    await run(s.worker, input);
    assert.deepEqual((await history(s.worker, threadId)).map(({ content }) => content), ["one", "1", "two", "2"]);
  });
}

test("an end that cannot be written is delivered once it can, in its place among later runs", DELIVERED, async (t) => {
  const s = await scene(t);
  const input = runInput({ owner: "ada", messages: [user("one")], tools: [tool("ask")] });
  s.upstream.reply(calls([["ask", {}]]));
  const stream = await openRun(s.worker, input);
  const { toolCallId } = await stream.until("TOOL_CALL_END");
  const repair = await faults["nothing can be written"](s);
  s.upstream.reply(says("1"));
  await giveResult(s.worker, input.runId, toolCallId, { result: "yes" });
  const events = await stream.rest();
  assert.equal(events.at(-1).type, "RUN_FINISHED", "the object has it");
  await repair();
  assert.deepEqual((await history(s.worker, input.threadId)).map(({ role }) => role), ["user"]);
  s.upstream.reply(says("2"));
  await run(s.worker, runInput({ threadId: input.threadId, owner: "ada", messages: [user("two")] }));
  const roles = ["user", "assistant", "tool", "assistant", "user", "assistant"];
  const read = () => history(s.worker, input.threadId);
  const rows = await eventually(read, (found) => found.length >= roles.length);
  assert.deepEqual(rows.map(({ role }) => role), roles);
  assert.deepEqual(rows.map(({ content }) => content), ["one", undefined, "yes", "1", "two", "2"]);
  assert.equal(new Set(rows.map(({ id }) => id)).size, rows.length);
  assert.equal((await ok(await s.worker.fetch(`/runs/${input.runId}?resourceId=ada`))).status, "finished");
});
