// Runs of every kind while cables are pulled, objects are reset, tasks panic and the whole process is killed: contract 8.
//
// A panic takes the memory of every run of its isolate: their clients see silence, come back, and the runs go on; what
// their old streams wrote to is broken by a reset of each object some 25 s later, which they survive, too.
//
// CHAOS_RUNS=200 plays more runs, CHAOS_SEED=... the same disturbances in the same order.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { RunConnection } from "../../clients/run-connection.mjs";
import { layCable } from "./support/cable.mjs";
import { judge } from "./support/judge.mjs";
import { call, finish, text } from "./support/openai.mjs";
import { fresh, tool, user } from "./support/run.mjs";
import { API_KEY, stubAgent, test } from "./support/suite.mjs";
import { startWorkerProcess } from "./support/worker.mjs";

const RUN_COUNT = Number(process.env.CHAOS_RUNS ?? 40);
const SEED = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 31));
const KILL_COUNT = RUN_COUNT >= 200 ? 5 : 2;
const PANIC_COUNT = KILL_COUNT;

/** Result of a call that must not be made twice and may have been under way. */
const INTERRUPTED = '{"error":"The call was interrupted."}';

/** What each kind of run does, step by step: the calls of a step, or the last answer. */
const KINDS = {
  text: [],
  ask: [["ask"]],
  look: [["look"]],
  book: [["book"]],
  mixed: [["look", "ask"], ["ask"], ["book", "look"]],
};

/** A generator of numbers from 0 to 1 that repeats itself for a seed. */
function dice(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A model whose answer depends on nothing but the conversation, and tools that count their calls. */
async function startWorld() {
  const booked = new Map();
  const server = createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const body = JSON.parse(Buffer.concat(pieces).toString() || "{}");
    if (request.url.startsWith("/tools/")) {
      await pause(30);
      if (request.url === "/tools/book") booked.set(body.of, (booked.get(body.of) ?? 0) + 1);
      response.writeHead(200, { "content-type": "text/plain" });
      return void response.end(`did ${request.url}`);
    }
    const asked = body.messages.findLast(({ role }) => role === "user").content;
    const [, kind, id] = JSON.stringify(asked).match(/kind (\w+) of ([\w-]+)/);
    const step = body.messages.filter(({ role }) => role === "assistant").length;
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const word of [`Step ${step}`, " of", ` ${kind}`, "."]) {
      response.write(text(word).join(""));
      await pause(40);
    }
    const made = (KINDS[kind][step] ?? []).map((name, index) => call(name, { of: `${id}/${step}` }, { id: `call_${name}`, index }));
    response.end([...made, ...finish()].join(""));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    booked,
    stop: () => (server.closeAllConnections(), new Promise((resolve) => server.close(resolve))),
  };
}

/**
 * A thread without what no two threads share: an answer with its calls, and each call with its result, whatever the order
 * the results of a step came in.
 */
function told(messages, id) {
  const results = new Map(messages.filter(({ role }) => role === "tool").map(({ toolCallId, content }) => [toolCallId, content]));
  const lines = messages.filter(({ role }) => role !== "tool").map(({ role, content, toolCalls = [] }) => ({
    role,
    content,
    calls: toolCalls.map((call) => ({ name: call.function.name, arguments: call.function.arguments, result: results.get(call.id) })),
  }));
  return JSON.parse(JSON.stringify(lines).replaceAll(id, "id"));
}

/** As its twin, but for calls that may not be made twice: how many of them have no result of their own. */
function compare(thread, twin, runId) {
  const answers = thread.flatMap(({ calls }) => calls);
  const interrupted = answers.filter(({ name, result }) => name === "book" && result === INTERRUPTED);
  for (const call of interrupted) call.result = "did /tools/book";
  assert.deepEqual(thread, twin, runId);
  return interrupted.length;
}

class Chaos {
  counts = { pulls: 0, resets: 0, panics: 0, kills: 0, reconnects: 0, restarts: 0, posts: 0, restarted: 0, interrupted: 0 };
  /** Runs begun again under another id, by what happened last and what the client heard of it. */
  again = {};
  lastFault = "none";
  /** The runs in whose place they were begun. */
  lost = [];
  /** Answers that should have been taken. */
  refused = [];
  live = new Set();

  constructor(cable) {
    this.cable = cable;
  }

  happened(fault) {
    this.counts[`${fault}s`] += 1;
    this.lastFault = fault;
  }

  /** Asks until there is an answer: the Worker may be away. */
  async ask(path, init) {
    for (;;) {
      try {
        const response = await fetch(`${this.cable.origin}/io-bridge${path}`, { ...init, signal: AbortSignal.timeout(5000) });
        const body = await response.json();
        if (response.status < 500) return { status: response.status, body };
      } catch {
        // The cable was pulled, or nothing is plugged in.
      }
      await pause(100);
    }
  }

  /** One run to its end, whatever happens. Gives its thread and its id. */
  async play(kind) {
    for (;;) {
      const id = fresh("c");
      const [threadId, runId] = [`t-${id}`, `r-${id}`];
      const agent = new RunConnection({
        url: `${this.cable.origin}/io-bridge/run`,
        threadId,
        retryMs: 50,
        retryMaxMs: 400,
        silenceMs: 3000,
        onReconnect: () => (this.counts.reconnects += 1),
        onRestart: () => (this.counts.restarts += 1),
      });
      agent.addMessage(user(`kind ${kind} of ${id}`));
      let hasStarted = false;
      const subscriber = {
        onRunStartedEvent: () => void (hasStarted = true),
        onToolCallEndEvent: ({ event, toolCallName, toolCallArgs }) => {
          if (toolCallName === "ask") void this.answer(runId, event.toolCallId, toolCallArgs.of);
        },
      };
      const parameters = { runId, tools: [tool("ask")], forwardedProps: { agentId: "stub", resourceId: "una" } };
      this.live.add(runId);
      // What was lost before it had begun is begun again.
      const failure = await agent.runAgent(parameters, subscriber).then(() => "no event", (error) => error);
      this.live.delete(runId);
      const run = { kind, id, threadId, runId };
      if (hasStarted) return run;
      const heard = failure.payload?.code ?? failure.message ?? failure;
      const cause = `${this.lastFault}: ${heard}`;
      this.again[cause] = (this.again[cause] ?? 0) + 1;
      this.lost.push(run);
      await pause(200);
    }
  }

  /** The front end answers; the same call may be shown to it in every generation. */
  async answer(runId, toolCallId, of) {
    this.counts.posts += 1;
    const { status, body } = await this.ask(`/runs/${runId}/tool-calls/${toolCallId}/result`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ result: `answer to ${of}` }),
    });
    // A call whose run has gone on without it may be over, but never another's.
    if (status !== 200 && status !== 410) this.refused.push({ runId, toolCallId, of, status, ...body });
  }

  /** Breaks the object of a run, if it can be found; says whether it did. */
  async breaks(worker, runId, command) {
    const viewer = await fetch(`${this.cable.origin}/io-bridge/runs/${runId}/events`).catch(() => undefined);
    const address = viewer?.headers.get("io-run-address");
    const isBroken = address ? await worker.break(address, command).then(() => true, () => false) : false;
    if (isBroken) this.happened(command);
    await viewer?.body?.cancel().catch(() => {});
    return isBroken;
  }

  /** What became of it: its state, its thread, and all its events; nothing if it never began. */
  async result(run) {
    let state;
    for (;;) {
      const { status, body } = await this.ask(`/runs/${run.runId}`);
      if (status === 404) return undefined;
      state = body;
      if (!["running", "waiting"].includes(state.status)) break;
      // Whoever asked for it may have gone.
      for (const call of state.pendingToolCalls) await this.answer(run.runId, call.toolCallId, JSON.parse(call.arguments).of);
      await pause(100);
    }
    this.counts.restarted += Number(state.generation > 0);
    const { messages } = (await this.ask(`/threads/${run.threadId}/messages?format=ag-ui`)).body;
    const replay = await fetch(`${this.cable.origin}/io-bridge/runs/${run.runId}/events`);
    assert.equal(replay.status, 200);
    const frames = (await replay.text()).split("\n\n").filter((frame) => frame.startsWith("data: "));
    return { state, messages, events: frames.map((frame) => JSON.parse(frame.slice(6))) };
  }
}

test(`${RUN_COUNT} disturbed runs end as their undisturbed twins (seed ${SEED})`, { timeout: 30 * 60_000 }, async (t) => {
  const stateFolder = mkdtempSync(path.join(tmpdir(), "io-bridge-"));
  const world = await startWorld();
  const cable = await layCable();
  const toolOf = (name, keys) => ({
    description: `Does ${name}.`,
    url: `${world.url}/tools/${name}`,
    method: "POST",
    parameters: { type: "object", properties: { of: { type: "string" } } },
    allowPrivate: true,
    ...keys,
  });
  const options = {
    agents: [stubAgent(world, { onDisconnect: "continue", tools: ["look", "book"], keepAliveMs: 500 })],
    vars: { TOOLS: { look: toolOf("look"), book: toolOf("book", { idempotent: false }) } },
    secrets: { OPENAI_API_KEY: API_KEY },
    breakable: true,
    stateFolder,
  };
  let worker = await startWorkerProcess(options);
  t.after(async () => {
    await worker.kill();
    await cable.stop();
    await world.stop();
    rmSync(stateFolder, { recursive: true, force: true });
  });
  cable.plug(worker);
  const chaos = new Chaos(cable);
  const twins = new Map();
  for (const kind of Object.keys(KINDS)) {
    const run = await chaos.play(kind);
    const { state, messages } = await chaos.result(run);
    assert.equal(state.status, "finished");
    twins.set(kind, told(messages, run.id));
  }

  const random = dice(SEED);
  const kinds = Object.keys(KINDS);
  let left = RUN_COUNT;
  const runs = [];
  const players = Array.from({ length: 8 }, async () => {
    while (left > 0) {
      left -= 1;
      runs.push(await chaos.play(kinds[left % kinds.length]));
    }
  });
  let isOver = false;
  const all = Promise.all(players).finally(() => (isOver = true));
  // Kills and panics by turns, each when so many runs are over.
  const great = Array.from({ length: KILL_COUNT + PANIC_COUNT }, (_, index) => (index % 2 === 0 ? "panic" : "kill"));
  const spacing = RUN_COUNT / (great.length + 1);
  let nextGreat = spacing;
  while (!isOver && !t.signal.aborted) {
    await pause(100 + random() * 500);
    const [victim] = [...chaos.live].slice(Math.floor(random() * chaos.live.size));
    const [fault] = runs.length >= nextGreat ? great : [];
    if (fault === "kill") {
      great.shift();
      nextGreat += spacing;
      cable.unplug();
      await worker.kill();
      chaos.happened("kill");
      worker = await startWorkerProcess(options);
      cable.plug(worker);
    } else if (fault === undefined && random() < 0.4) {
      cable.pull();
      chaos.happened("pull");
    } else if (victim !== undefined) {
      const command = fault ?? "reset";
      if (!(await chaos.breaks(worker, victim, command)) || fault === undefined) continue;
      great.shift();
      nextGreat += spacing;
    }
  }
  await all;

  assert.deepEqual(chaos.refused, []);
  let lostCount = 0;
  for (const run of [...runs, ...chaos.lost]) {
    const result = await chaos.result(run);
    if (result === undefined && chaos.lost.includes(run)) continue;
    lostCount += Number(chaos.lost.includes(run));
    const { state, messages, events } = result;
    assert.equal(state.status, "finished", JSON.stringify(state));
    chaos.counts.interrupted += compare(told(messages, run.id), twins.get(run.kind), run.runId);
    await judge(events, { input: { threadId: run.threadId, runId: run.runId } });
    const answered = messages.filter(({ role }) => role === "tool").map(({ toolCallId }) => toolCallId);
    assert.equal(new Set(answered).size, answered.length, "a call was answered twice");
  }
  for (const [of, count] of world.booked) assert.equal(count, 1, `${of} was booked ${count} times`);
  assert.ok(chaos.counts.kills > 0 && chaos.counts.panics > 0, JSON.stringify(chaos.counts));
  t.diagnostic(`seed ${SEED}, ${runs.length} runs: ${JSON.stringify(chaos.counts)}`);
  t.diagnostic(`begun again under another id: ${JSON.stringify(chaos.again)}; ${lostCount} of those they replace went on by themselves`);
});
