// The runtime is killed and started again on the same state: contract 8 first stage, D12.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { calls, says, text } from "./support/openai.mjs";
import { eventually, fresh, history, ok, openRun, postResult, refused, run, runInput, tool, user } from "./support/run.mjs";
import { API_KEY, stubAgent, test } from "./support/suite.mjs";
import { startUpstream } from "./support/upstream.mjs";
import { startWorkerProcess } from "./support/worker.mjs";

async function scene(t) {
  const stateFolder = mkdtempSync(path.join(tmpdir(), "io-bridge-"));
  const upstream = await startUpstream();
  let worker;
  t.after(async () => {
    await worker?.kill();
    await upstream.stop();
    rmSync(stateFolder, { recursive: true, force: true });
  });
  const start = async () => {
    const options = { agents: [stubAgent(upstream, { runTimeoutMs: 2000, toolTimeoutMs: 2000 })], secrets: { OPENAI_API_KEY: API_KEY }, stateFolder };
    worker = await startWorkerProcess(options);
    return worker;
  };
  const kill = async () => {
    await worker.kill();
    worker = undefined;
  };
  return { upstream, start, kill };
}

/** The status a second POST of the same run is refused with, once that run is over. */
const statusOnceOver = (worker, input) =>
  eventually(
    async () => (await refused(await worker.fetch("/run", { json: input }), 409, "run_conflict")).status,
    (status) => !["running", "waiting"].includes(status),
  );

test("threads are whole after a restart, also when a run was cut by it", async (t) => {
  const { upstream, start, kill } = await scene(t);
  const before = await start();
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
  await kill();
  await stream.untilCut();

  const after = await start();
  const rows = await history(after, threadId);
  assert.deepEqual(rows.slice(0, 2), whole);
  assert.deepEqual(rows[2], { id: cut.messages[0].id, role: "user", content: "two" });

  // The row of the cut run reads as failed once its deadline has passed.
  assert.equal(await statusOnceOver(after, cut), "failed");

  upstream.reply(says("3"));
  await run(after, runInput({ threadId, owner: "ike", messages: [user("three")] }));
  const told = upstream.requests.at(-1).body.messages.map(({ content }) => content);
  assert.deepEqual([told.includes("one"), told.includes("1"), told.at(-1).endsWith("three")], [true, true, true]);
  assert.deepEqual((await history(after, threadId)).slice(-2).map(({ content }) => content), ["three", "3"]);
  assert.equal((await ok(await after.fetch("/threads?resourceId=ike"))).total, 1);
});

test("a call that waited over a restart answers 410, and its run reads as failed", async (t) => {
  const { upstream, start, kill } = await scene(t);
  const before = await start();
  upstream.reply(calls([["ask", {}]]));
  const input = runInput({ owner: "ike", tools: [tool("ask")] });
  const stream = await openRun(before, input);
  const { toolCallId } = await stream.until("TOOL_CALL_END");
  await kill();
  await stream.untilCut();

  const after = await start();
  await refused(await postResult(after, input.runId, toolCallId, { result: 1 }, { owner: "ike" }), 410);
  await refused(await postResult(after, input.runId, toolCallId, { result: 1 }, { owner: "bob" }), 403);
  await refused(await postResult(after, fresh("run"), toolCallId, { result: 1 }), 404);
  assert.equal(await statusOnceOver(after, input), "failed");
});
