// Runs that go on without a viewer: contract 8.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { calls, finish, says, text } from "./support/openai.mjs";
import { eventually, giveResult, history, ok, openRun, postResult, refused, run, runInput, tool } from "./support/run.mjs";
import { EventStream } from "./support/sse.mjs";
import { API_KEY, stubAgent, suite, test } from "./support/suite.mjs";
import { startUpstream } from "./support/upstream.mjs";
import { startWorker, startWorkerProcess } from "./support/worker.mjs";

const DURABLE = { onDisconnect: "continue", keepAliveMs: 40 };

const shared = suite({
  agents: (stub) => [stub(DURABLE), stub({ id: "brief", ...DURABLE, eventRetentionMs: 2000 }), stub({ id: "stops" })],
});

/** The stream of a run that is there already. */
async function follow(worker, input, query = "") {
  const abort = new AbortController();
  const response = await worker.fetch(`/runs/${input.runId}/events?${query}`, { signal: abort.signal });
  if (response.status !== 200) assert.fail(`${response.status}: ${await response.text()}`);
  return { generation: response.headers.get("io-run-generation"), stream: new EventStream(response, { input, abort }) };
}

const status = async (worker, input) => ok(await worker.fetch(`/runs/${input.runId}`));

/** A run that has said "Once", and the upstream's side of it. */
async function begun(input, worker = shared.worker, upstream = shared.upstream) {
  const asked = upstream.next();
  const opening = openRun(worker, input);
  const exchange = await asked;
  exchange.head();
  const stream = await opening;
  await exchange.writeAll(text("Once"));
  await stream.until("TEXT_MESSAGE_CONTENT");
  return { exchange, stream };
}

async function finished(exchange, words) {
  await exchange.writeAll(text(words), finish());
  exchange.end();
}

test("a run goes on without its client, and whoever comes later gets all of it", async () => {
  const input = runInput({ owner: "una" });
  const { exchange, stream } = await begun(input);
  await stream.abandon();
  await exchange.writeAll(text(" upon"), text(" a time"));
  const thread = await ok(await shared.worker.fetch(`/threads/${input.threadId}`));
  assert.deepEqual(thread.activeRuns, [input.runId]);
  const { generation, stream: late } = await follow(shared.worker, input);
  assert.equal(generation, "0");
  await late.until(({ delta }) => delta === " a time");
  await finished(exchange, ".");
  const events = await late.rest();
  assert.equal(events.at(-1).type, "RUN_FINISHED");
  assert.equal((await history(shared.worker, input.threadId))[1].content, "Once upon a time.");
  const after = await ok(await shared.worker.fetch(`/threads/${input.threadId}`));
  assert.ok(!("activeRuns" in after));
});

test("two viewers that join anywhere see the same events, each from where it says", async () => {
  const input = runInput({ owner: "una", tools: [tool("ask")] });
  shared.upstream.reply(calls([["ask", {}]], { before: ["Asking."] }));
  const stream = await openRun(shared.worker, input);
  const { toolCallId } = await stream.until("TOOL_CALL_END");
  const waiting = await status(shared.worker, input);
  assert.deepEqual([waiting.status, waiting.pendingToolCalls.map((call) => call.toolCallId)], ["waiting", [toolCallId]]);
  assert.equal(waiting.eventCount, stream.events.length);
  const viewers = await Promise.all([0, 0].map(() => follow(shared.worker, input)));
  shared.upstream.reply(says("Done."));
  await giveResult(shared.worker, input.runId, toolCallId, { result: 1 });
  const whole = await stream.rest();
  for (const viewer of viewers) assert.deepEqual(await viewer.stream.rest(), whole);
  for (let after = 0; after <= whole.length; after += 1) {
    const response = await shared.worker.fetch(`/runs/${input.runId}/events?after=${after}&generation=0`);
    const frames = (await response.text()).split("\n\n").filter((frame) => frame.startsWith("data: "));
    assert.deepEqual(frames.map((frame) => JSON.parse(frame.slice(6))), whole.slice(after));
  }
  await refused(await shared.worker.fetch(`/runs/${input.runId}/events?after=${whole.length + 1}`), 400);
  await refused(await shared.worker.fetch(`/runs/${input.runId}/events?generation=1`), 409, "generation_changed");
  await refused(await shared.worker.fetch(`/runs/${input.runId}/events?resourceId=bob`), 403);
  await refused(await shared.worker.fetch(`/runs/${input.runId}/cancel?resourceId=bob`, { method: "POST" }), 403);
});

test("events are kept for a while after the end, and the status for good", async () => {
  const input = runInput({ owner: "una", agent: "brief" });
  shared.upstream.reply(says("Short."));
  const whole = await run(shared.worker, input);
  assert.deepEqual(await (await follow(shared.worker, input)).stream.rest(), whole);
  assert.equal((await status(shared.worker, input)).eventCount, whole.length);
  const gone = await eventually(
    () => shared.worker.fetch(`/runs/${input.runId}/events`),
    (response) => response.status !== 200 || void response.body.cancel(),
  );
  await refused(gone, 410, "run_over");
  const left = await status(shared.worker, input);
  assert.deepEqual([left.status, "eventCount" in left, "generation" in left], ["finished", false, false]);
});

test("a cancel stops the upstream at once, says how the run ended, and may be repeated", async () => {
  const closedAfterMs = [];
  for (const agent of ["stub", "stops"]) {
    for (const protocolVersion of ["1.0", undefined]) {
      const input = runInput({ owner: "una", agent, protocolVersion });
      const { exchange, stream } = await begun(input);
      const from = performance.now();
      const closed = exchange.closedByPeer.then(() => performance.now() - from);
      const cancel = () => shared.worker.fetch(`/runs/${input.runId}/cancel?address=${stream.address}`, { method: "POST" });
      const [answer, again] = (await Promise.all([cancel(), cancel()])).map(ok);
      assert.equal((await answer).status, "cancelled");
      assert.equal((await again).status, "cancelled");
      const closedMs = await closed;
      if (agent === "stops") closedAfterMs.push(closedMs);
      const last = (await stream.rest()).at(-1);
      const expected = protocolVersion ? ["RUN_FINISHED", { type: "cancelled" }] : ["RUN_ERROR", undefined];
      assert.deepEqual([last.type, last.outcome], expected);
      assert.equal((await history(shared.worker, input.threadId))[1].content, "Once");
      assert.equal((await ok(await cancel())).status, "cancelled");
    }
  }
  // Not at the next keep-alive, which this agent sends after fifteen seconds of silence.
  assert.ok(Math.max(...closedAfterMs) < 5000, `the upstream was closed after ${closedAfterMs} ms`);
});

test("a cancel that comes with the end does not change it", async () => {
  const input = runInput({ owner: "una" });
  const { exchange, stream } = await begun(input);
  const ending = finished(exchange, " more");
  const answer = await ok(await shared.worker.fetch(`/runs/${input.runId}/cancel`, { method: "POST" }));
  await ending;
  const last = (await stream.rest()).at(-1);
  assert.ok(["finished", "cancelled"].includes(answer.status), answer.status);
  assert.equal(last.type, answer.status === "finished" ? "RUN_FINISHED" : "RUN_ERROR");
  assert.equal((await status(shared.worker, input)).status, answer.status);
});

test("a long run is replayed from storage", async () => {
  const input = runInput({ owner: "una" });
  const { exchange, stream } = await begun(input);
  await stream.abandon();
  const delta = "y".repeat(16 * 1024);
  for (let count = 0; count < 90; count += 1) await exchange.write(text(delta)[0]);
  await finished(exchange, "end");
  await eventually(() => status(shared.worker, input), (run) => run.status === "finished");
  const { stream: late } = await follow(shared.worker, input);
  const events = await late.rest();
  assert.equal(events.filter((event) => event.delta === delta).length, 90);
  const { stream: later } = await follow(shared.worker, input, "after=60");
  const rest = [];
  for (let event; (event = await later.next()); ) rest.push(event);
  EventStream.dropOpen();
  assert.deepEqual(rest, events.slice(60));
});

// A Worker is started several times.
const RESTARTS = { timeout: 90_000 };

/** A Worker that can be killed and started again on what it kept. */
async function killable(t, agent = DURABLE) {
  const stateFolder = mkdtempSync(path.join(tmpdir(), "io-bridge-"));
  const upstream = await startUpstream();
  const vars = { MCP_SERVERS: { docs: { url: `${upstream.url}/mcp`, allowPrivate: true } } };
  const options = { agents: [stubAgent(upstream, agent)], vars, secrets: { OPENAI_API_KEY: API_KEY }, stateFolder };
  const scene = { upstream, worker: await startWorkerProcess(options) };
  scene.restart = async () => {
    await scene.worker.kill();
    scene.worker = await startWorkerProcess(options);
  };
  t.after(async () => {
    await scene.worker.kill();
    await upstream.stop();
    rmSync(stateFolder, { recursive: true, force: true });
  });
  return scene;
}

test("who asked for a run whose object is reset as it starts is answered by it all the same", async (t) => {
  const upstream = await startUpstream();
  const vars = { MCP_SERVERS: { docs: { url: `${upstream.url}/mcp`, allowPrivate: true } } };
  const agents = [stubAgent(upstream, { ...DURABLE, mcp: ["docs"] })];
  const worker = await startWorker({ agents, vars, secrets: { OPENAI_API_KEY: API_KEY }, breakable: true });
  t.after(() => Promise.all([worker.stop(), upstream.stop()]));
  const input = runInput({ owner: "ike" });
  const toServer = { when: ({ path }) => path === "/mcp" };
  const asked = upstream.next(toServer.when);
  const opening = openRun(worker, input);
  await asked;
  const row = () => worker.database.prepare("SELECT object FROM runs WHERE id = ?").bind(input.runId).first("object");
  const address = await eventually(row, Boolean);
  upstream.reply((exchange) => exchange.head(500).end(), toServer);
  upstream.reply(says("Once upon a time."));
  await worker.break(address, "reset");
  const stream = await opening;
  assert.equal(stream.address, address);
  assert.equal((await stream.rest()).at(-1).type, "RUN_FINISHED");
  assert.equal((await status(worker, input)).generation, 1);
  assert.deepEqual((await history(worker, input.threadId)).map(({ content }) => content), ["Hello", "Once upon a time."]);
});

test("a run that was starting starts after a restart, and its thread has it once", RESTARTS, async (t) => {
  const scene = await killable(t, { ...DURABLE, mcp: ["docs"] });
  const input = runInput({ owner: "ike" });
  const toServer = { when: ({ path }) => path === "/mcp" };
  const asked = scene.upstream.next(toServer.when);
  const opening = scene.worker.fetch("/run", { json: input }).catch((error) => error);
  await asked;
  // The start batch is through, and the head waits for the MCP server.
  await eventually(() => scene.worker.fetch(`/threads/${input.threadId}`).then((thread) => thread.json()), ({ activeRuns }) => activeRuns);
  await scene.restart();
  assert.ok((await opening) instanceof TypeError, "nobody was answered");
  scene.upstream.reply((exchange) => exchange.head(500).end(), toServer);
  scene.upstream.reply(says("Once upon a time."));
  const { generation, stream } = await follow(scene.worker, input);
  assert.equal(generation, "1");
  assert.equal((await stream.rest()).at(-1).type, "RUN_FINISHED");
  assert.deepEqual((await history(scene.worker, input.threadId)).map(({ content }) => content), ["Hello", "Once upon a time."]);
  assert.equal((await status(scene.worker, input)).status, "finished");
  await refused(await scene.worker.fetch("/run", { json: input }), 409, "run_conflict");
});

test("a run that was answering is asked again after a restart, in a new generation", RESTARTS, async (t) => {
  const scene = await killable(t);
  const input = runInput({ owner: "ike" });
  const { stream } = await begun(input, scene.worker, scene.upstream);
  const restarting = scene.restart();
  await stream.untilCut();
  await restarting;
  scene.upstream.reply(says("Once upon a time."));
  await refused(await scene.worker.fetch(`/runs/${input.runId}/events?after=3&generation=0`), 409, "generation_changed");
  const { generation, stream: again } = await follow(scene.worker, input, "generation=1");
  assert.equal(generation, "1");
  assert.equal((await again.rest()).at(-1).type, "RUN_FINISHED");
  assert.deepEqual((await history(scene.worker, input.threadId)).map(({ content }) => content), ["Hello", "Once upon a time."]);
  await scene.restart();
  const over = await status(scene.worker, input);
  assert.deepEqual([over.status, over.generation], ["finished", 1]);
  assert.deepEqual(await (await follow(scene.worker, input)).stream.rest(), again.events);
});

test("a wait for a person survives a restart, and so does what was answered", RESTARTS, async (t) => {
  const scene = await killable(t);
  const input = runInput({ owner: "ike", tools: [tool("ask"), tool("tell")] });
  scene.upstream.reply(calls([["ask", {}], ["tell", {}]], { before: ["Asking."] }));
  const stream = await openRun(scene.worker, input);
  const { toolCallId: ask } = await stream.until("TOOL_CALL_END");
  const { toolCallId: tell } = await stream.until("TOOL_CALL_END");
  await giveResult(scene.worker, input.runId, ask, { result: "first" });
  const restarting = scene.restart();
  await stream.untilCut();
  await restarting;
  await ok(await postResult(scene.worker, input.runId, ask, { result: "first" }));
  await refused(await postResult(scene.worker, input.runId, ask, { result: "second" }), 409, "result_conflict");
  const { stream: again } = await follow(scene.worker, input);
  await again.until("TOOL_CALL_RESULT");
  assert.deepEqual((await status(scene.worker, input)).pendingToolCalls.map((call) => call.toolCallId), [tell]);
  scene.upstream.reply(says("Thanks."));
  await giveResult(scene.worker, input.runId, tell, { result: "other" });
  const events = await again.rest();
  assert.deepEqual(events.filter(({ type }) => type === "TOOL_CALL_RESULT").map((event) => [event.toolCallId, event.content]), [
    [ask, "first"],
    [tell, "other"],
  ]);
  assert.equal(scene.upstream.requests.length, 2, "the model is not asked again for what it has answered");
});
