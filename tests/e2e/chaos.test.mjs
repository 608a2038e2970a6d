// Runs of every kind while cables are pulled, objects are reset and the whole process is killed: contract 8.
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

/** A thread without what no two threads share. */
function told(messages, id) {
  return messages.map(({ role, content, toolCalls }) => ({
    role,
    content: role === "tool" ? undefined : content?.replaceAll(id, "id"),
    calls: toolCalls?.map((call) => `${call.function.name} ${call.function.arguments.replaceAll(id, "id")}`),
  }));
}

class Chaos {
  counts = { pulls: 0, resets: 0, kills: 0, reconnects: 0, posts: 0, restarted: 0, again: 0 };
  live = new Set();

  constructor(cable) {
    this.cable = cable;
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
      });
      agent.addMessage(user(`kind ${kind} of ${id}`));
      let hasStarted = false;
      const onEvent = ({ event }) => {
        hasStarted ||= event.type === "RUN_STARTED";
        if (event.type === "TOOL_CALL_START" && event.toolCallName === "ask") void this.answer(runId, event.toolCallId);
      };
      const parameters = { runId, tools: [tool("ask")], forwardedProps: { agentId: "stub", resourceId: "una" } };
      this.live.add(runId);
      try {
        await agent.runAgent(parameters, { onEvent });
      } catch {
        // What was lost before it had begun is begun again.
      }
      this.live.delete(runId);
      if (hasStarted) return { kind, id, threadId, runId };
      this.counts.again += 1;
      await pause(200);
    }
  }

  /** The front end answers; the same call may be shown to it in every generation. */
  async answer(runId, toolCallId) {
    this.counts.posts += 1;
    const { status, body } = await this.ask(`/runs/${runId}/tool-calls/${toolCallId}/result`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ result: `answer to ${toolCallId.split("_").at(-1)}` }),
    });
    // A call whose run has gone on without it may be over, but never another's.
    assert.ok(status === 200 || status === 410, `${status} ${JSON.stringify(body)}`);
  }

  /** What became of it: its state, its thread, and all its events. */
  async result(run) {
    let state;
    do {
      state = (await this.ask(`/runs/${run.runId}`)).body;
      if (["running", "waiting"].includes(state.status)) await pause(100);
    } while (["running", "waiting"].includes(state.status));
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
  let nextKill = RUN_COUNT / (KILL_COUNT + 1);
  while (!isOver) {
    await pause(100 + random() * 500);
    const [victim] = [...chaos.live].slice(Math.floor(random() * chaos.live.size));
    if (chaos.counts.kills < KILL_COUNT && runs.length >= nextKill) {
      nextKill += RUN_COUNT / (KILL_COUNT + 1);
      cable.unplug();
      await worker.kill();
      chaos.counts.kills += 1;
      worker = await startWorkerProcess(options);
      cable.plug(worker);
    } else if (random() < 0.4) {
      cable.pull();
      chaos.counts.pulls += 1;
    } else if (victim !== undefined) {
      const viewer = await fetch(`${cable.origin}/io-bridge/runs/${victim}/events`).catch(() => undefined);
      const address = viewer?.headers.get("io-run-address");
      if (address) {
        await worker.break(address, "reset").catch(() => {});
        chaos.counts.resets += 1;
      }
      await viewer?.body?.cancel().catch(() => {});
    }
  }
  await all;

  for (const run of runs) {
    const { state, messages, events } = await chaos.result(run);
    assert.equal(state.status, "finished", JSON.stringify(state));
    assert.deepEqual(told(messages, run.id), twins.get(run.kind), run.runId);
    await judge(events, { input: { threadId: run.threadId, runId: run.runId } });
    const answered = messages.filter(({ role }) => role === "tool").map(({ toolCallId }) => toolCallId);
    assert.equal(new Set(answered).size, answered.length, "a call was answered twice");
  }
  for (const [of, count] of world.booked) assert.equal(count, 1, `${of} was booked ${count} times`);
  t.diagnostic(`seed ${SEED}, ${runs.length} runs: ${JSON.stringify(chaos.counts)}`);
});
