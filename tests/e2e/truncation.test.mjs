// Every way a stream can die ends with one terminal event, or with a connection that visibly breaks; never with a clean
// end without a terminal event, and never in silence for ever: contract 2.4, 8.

import assert from "node:assert/strict";
import { BINDINGS } from "./support/bindings.mjs";
import { calls, finish, says, text } from "./support/openai.mjs";
import { eventually, fresh, history, ok, openRun, postResult, refused, run, runInput, tool, user } from "./support/run.mjs";
import { EventStream } from "./support/sse.mjs";
import { API_KEY, stubAgent, suite, test } from "./support/suite.mjs";
import { startUpstream } from "./support/upstream.mjs";
import { startWorkerProcess } from "./support/worker.mjs";

const agents = (stub) => [stub({ maxRetries: 0, keepAliveMs: 40 }), stub({ id: "idle", upstreamIdleTimeoutMs: 1000 })];
const shared = suite({ agents, breakable: true });

// Clients may treat 45 seconds of silence as death (contract 8); a panic is over well before.
const SILENCE_MAX_MS = 35_000;

/** What a stream is doing when it dies: gives it, and the upstream's exchange where that is still open. */
const DOING = {
  async "while text flows"(open, upstream) {
    const asked = upstream.next();
    const opening = open();
    const exchange = await asked;
    exchange.head();
    await exchange.writeAll(text("half an ans"));
    const stream = await opening;
    await stream.until("TEXT_MESSAGE_CONTENT");
    return { stream, exchange };
  },
  async "while a result is awaited"(open, upstream) {
    upstream.reply(calls([["ask", {}]]));
    const stream = await open();
    const { toolCallId } = await stream.until("TOOL_CALL_END");
    return { stream, toolCallId };
  },
};

/** One stream of each binding in each state. */
async function everyStream(worker, upstream) {
  const streams = [];
  for (const open of Object.values(BINDINGS)) {
    for (const start of Object.values(DOING)) {
      const input = runInput({ owner: fresh("owner"), tools: [tool("ask")] });
      const started = await start(() => open(worker, input), upstream);
      streams.push({ input, ...started });
    }
  }
  return streams;
}

/** Address of the object a run lives in. */
const addressOf = ({ runId }) =>
  shared.worker.database.prepare("SELECT object FROM runs WHERE id = ?").bind(runId).first("object");

/** What is left of a run that broke: it has failed, takes no result, and its thread goes on. */
async function judgeRemains({ input, toolCallId, exchange }) {
  const owner = input.forwardedProps.resourceId;
  if (exchange) await exchange.closedByPeer;
  if (toolCallId) await refused(await postResult(shared.worker, input.runId, toolCallId, { result: 1 }, { owner }), 410);
  const { status } = await ok(await shared.worker.fetch(`/runs/${input.runId}?resourceId=${owner}`));
  assert.equal(status, "failed");
  shared.upstream.reply(says("Here again."));
  const { threadId } = input;
  await run(shared.worker, runInput({ owner, threadId, messages: [user("And now?")] }));
  const texts = (await history(shared.worker, threadId)).map(({ content }) => content);
  assert.deepEqual([texts[0], ...texts.slice(-2)], ["Hello", "And now?", "Here again."]);
}

test("an upstream that dies or falls silent ends every stream with RUN_ERROR", async (t) => {
  const deaths = [
    ["its connection dies", "stub", (exchange) => exchange.destroy(), "upstream_truncated"],
    ["its answer has no end mark", "stub", (exchange) => exchange.end(), "upstream_truncated"],
    ["it falls silent", "idle", () => {}, "upstream_timeout"],
  ];
  for (const [binding, open] of Object.entries(BINDINGS)) {
    for (const [death, agent, die, code] of deaths) {
      await t.test(`${binding}, ${death}`, async () => {
        const { stream, exchange } = await DOING["while text flows"](() => open(shared.worker, runInput({ agent })), shared.upstream);
        die(exchange);
        assert.equal((await stream.rest()).at(-1).code, code);
      });
    }
  }
});

test("a reset of a run's object breaks its stream at once and no other", async () => {
  const bystander = await DOING["while text flows"](() => openRun(shared.worker, runInput()), shared.upstream);
  for (const broken of await everyStream(shared.worker, shared.upstream)) {
    await shared.worker.break(await addressOf(broken.input), "reset");
    await broken.stream.broken(1011);
    await judgeRemains(broken);
  }
  await bystander.exchange.writeAll(text("wer"), finish());
  bystander.exchange.end();
  assert.equal((await bystander.stream.rest()).at(-1).type, "RUN_FINISHED");
});

test("a panic breaks every stream of its isolate and closes their rows, and the next run is whole", { timeout: 90_000 }, async () => {
  const { worker, upstream } = shared;
  const streams = await everyStream(worker, upstream);
  const ids = streams.map(({ input }) => input.runId);
  const startedAtMs = performance.now();
  await worker.break(await addressOf(streams[0].input), "panic");
  await eventually(() => worker.logText(), (log) => log.includes("a test wanted this panic"));
  upstream.reply(says("Whole."));
  assert.equal((await run(worker, runInput({ owner: fresh("owner") }))).at(-1).type, "RUN_FINISHED");
  await Promise.all(streams.map(({ stream }) => stream.broken(1011)));
  // Nobody asks for them.
  const rows = worker.database.prepare("SELECT DISTINCT status FROM runs WHERE id IN (SELECT value FROM json_each(?))").bind(JSON.stringify(ids));
  await eventually(() => rows.all(), ({ results }) => results.every(({ status }) => status === "failed"));
  assert.ok(performance.now() - startedAtMs < SILENCE_MAX_MS);
  for (const broken of streams) await judgeRemains(broken);
});

test("a server that stops breaks every stream", async (t) => {
  const upstream = await startUpstream();
  t.after(() => upstream.stop());
  const worker = await startWorkerProcess({ agents: agents((agent) => stubAgent(upstream, agent)), secrets: { OPENAI_API_KEY: API_KEY } });
  t.after(() => worker.kill());
  const streams = await everyStream(worker, upstream);
  await worker.kill();
  for (const { stream } of streams) await stream.broken(1006);
});

// More than a viewer's queue and every buffer between it and a client hold.
const DELTA = "x".repeat(64 * 1024);
const DELTA_COUNT = 700;

test("a viewer that does not read is cut off visibly, and the others get everything", { timeout: 60_000 }, async () => {
  const input = runInput();
  const asked = shared.upstream.next();
  const opening = openRun(shared.worker, input);
  const exchange = await asked;
  exchange.head();
  const reading = await opening;
  const abort = new AbortController();
  const response = await shared.worker.fetch(`/runs/${input.runId}/events?address=${reading.address}`, { signal: abort.signal });
  const idle = new EventStream(response, { input, abort });

  const all = reading.rest();
  for (let count = 0; count < DELTA_COUNT; count += 1) await exchange.write(text(DELTA)[0]);
  await exchange.writeAll(finish());
  exchange.end();
  const events = await all;
  assert.equal(events.at(-1).type, "RUN_FINISHED");
  assert.equal(events.filter(({ delta }) => delta === DELTA).length, DELTA_COUNT);

  const seen = await idle.untilCut();
  assert.equal(seen[0].type, "RUN_STARTED");
  assert.ok(seen.length < events.length);
});
