// The runtime is killed and started again on the same state: contract 8 first stage, D12.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { calls, says, text } from "./support/openai.mjs";
import { fresh, history, ok, openRun, postResult, refused, run, runInput, tool, user } from "./support/run.mjs";
import { API_KEY, stubAgent, test } from "./support/suite.mjs";
import { startUpstream } from "./support/upstream.mjs";
import { startWorker, startWorkerProcess } from "./support/worker.mjs";

async function scene(t) {
  const stateFolder = mkdtempSync(path.join(tmpdir(), "io-bridge-"));
  const upstream = await startUpstream();
  const options = { agents: [stubAgent(upstream)], secrets: { OPENAI_API_KEY: API_KEY }, stateFolder };
  const ends = [];
  t.after(async () => {
    for (const end of ends) await end();
    await upstream.stop();
    rmSync(stateFolder, { recursive: true, force: true });
  });
  const before = await startWorkerProcess(options);
  ends.push(() => before.kill());
  const restart = async () => {
    await before.kill();
    const after = await startWorker(options);
    ends.push(() => after.stop());
    return after;
  };
  return { upstream, before, restart };
}

/** The status a second POST of the same run is refused with. */
const statusOf = async (worker, input) => (await refused(await worker.fetch("/run", { json: input }), 409, "run_conflict")).status;

/** Lets the deadline of every run pass. */
const passDeadlines = (worker) => worker.database.prepare("UPDATE runs SET deadline_ms = 1").run();

test("threads are whole after a restart, also when a run was cut by it", async (t) => {
  const { upstream, before, restart } = await scene(t);
  const threadId = fresh("thread");
  upstream.reply(says("1"));
  await run(before, runInput({ threadId, owner: "ike", messages: [user("one")] }));
  const whole = await history(before, threadId);

  const cut = runInput({ threadId, owner: "ike", messages: [user("two")] });
  const asked = upstream.next();
  const opening = openRun(before, cut);
  const exchange = await asked;
  exchange.head();
  const stream = await opening;
  await exchange.writeAll(text("half an ans"));
  await stream.until("TEXT_MESSAGE_CONTENT");
  const restarting = restart();
  await stream.untilCut();
  const after = await restarting;
  const rows = await history(after, threadId);
  assert.deepEqual(rows.slice(0, 2), whole);
  assert.deepEqual(rows[2], { id: cut.messages[0].id, role: "user", content: "two" });

  const found = await ok(await after.fetch(`/runs/${cut.runId}?resourceId=ike`));
  assert.equal(found.status, "failed", "who asks for the cut run closes it");
  assert.equal(await statusOf(after, cut), "failed", "the row of the cut run does not run for ever");

  upstream.reply(says("3"));
  await run(after, runInput({ threadId, owner: "ike", messages: [user("three")] }));
  const told = upstream.requests.at(-1).body.messages.map(({ content }) => content);
  assert.deepEqual([told.includes("one"), told.includes("1"), told.at(-1).endsWith("three")], [true, true, true]);
  assert.deepEqual((await history(after, threadId)).slice(-2).map(({ content }) => content), ["three", "3"]);
  assert.equal((await ok(await after.fetch("/threads?resourceId=ike"))).total, 1);
});

test("a call that waited over a restart answers 410, and its run reads as failed", async (t) => {
  const { upstream, before, restart } = await scene(t);
  upstream.reply(calls([["ask", {}]]));
  const input = runInput({ owner: "ike", tools: [tool("ask")] });
  const stream = await openRun(before, input);
  const { toolCallId } = await stream.until("TOOL_CALL_END");
  const restarting = restart();
  await stream.untilCut();
  const after = await restarting;
  await refused(await postResult(after, input.runId, toolCallId, { result: 1 }, { owner: "ike" }), 410);
  await refused(await postResult(after, input.runId, toolCallId, { result: 1 }, { owner: "bob" }), 403);
  await refused(await postResult(after, fresh("run"), toolCallId, { result: 1 }), 404);
  await passDeadlines(after);
  assert.equal(await statusOf(after, input), "failed");
});
