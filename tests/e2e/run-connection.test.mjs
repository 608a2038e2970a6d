// The client that keeps a run in sight over broken connections (clients/run-connection.mjs).

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { decode } from "@ag-ui/proto";
import { RunConnection } from "../../clients/run-connection.mjs";
import { layCable } from "./support/cable.mjs";
import { judge } from "./support/judge.mjs";
import { calls, finish, says, text } from "./support/openai.mjs";
import { eventually, fresh, giveResult, history, ok, tool, user } from "./support/run.mjs";
import { API_KEY, stubAgent, suite, test } from "./support/suite.mjs";
import { startUpstream } from "./support/upstream.mjs";
import { startWorkerProcess } from "./support/worker.mjs";

const shared = suite({ agents: (stub) => [stub({ onDisconnect: "continue" })] });

const connection = (cable, members = {}) =>
  new RunConnection({ url: `${cable.origin}/io-bridge/run`, threadId: fresh("thread"), retryMs: 20, ...members });

/** Runs and records; gives what was said and what the client was fed. */
function start(agent, how, parameters) {
  const events = [];
  const props = { forwardedProps: { agentId: "stub", resourceId: "una" } };
  const running = how({ ...props, ...parameters }, { onEvent: ({ event }) => void events.push(event) });
  return { events, running };
}

/** A cable to the suite's Worker. */
async function laid(t) {
  const cable = await layCable();
  t.after(() => cable.stop());
  cable.plug(shared.worker);
  return cable;
}

/** A run that has been asked for, and the upstream's side of it. */
async function asking(agent, parameters) {
  agent.addMessage(user("Hello"));
  const asked = shared.upstream.next();
  const started = start(agent, (...all) => agent.runAgent(...all), parameters);
  return { ...started, exchange: await asked };
}

/** The upstream says it, and the client has heard it. */
async function saying({ exchange, events }, word) {
  await exchange.writeAll(text(word));
  await eventually(() => events.at(-1)?.delta, (delta) => delta === word);
}

async function finishing({ exchange, running }) {
  await exchange.writeAll(finish());
  exchange.end();
  await running;
}

for (const [binding, members] of [["SSE", {}], ["protobuf", { decode }]]) {
  test(`a cable that is pulled again and again costs no event and doubles none, over ${binding}`, async (t) => {
    const cable = await laid(t);
    const types = new Set();
    const send = async (...all) => {
      const response = await fetch(...all);
      types.add(response.headers.get("content-type"));
      return response;
    };
    const agent = connection(cable, { ...members, fetch: send });
    const run = await asking(agent);
    run.exchange.head();
    for (const word of ["Once", " upon", " a", " time"]) {
      await saying(run, word);
      cable.pull();
    }
    await finishing(run);
    await judge(run.events, {});
    assert.equal(agent.messages.at(-1).content, "Once upon a time");
    assert.deepEqual([...types], [members.decode ? "application/vnd.ag-ui.event+proto" : "text/event-stream"]);
  });
}

test("a run whose answer was lost before it began is not begun twice", async (t) => {
  const cable = await laid(t);
  const agent = connection(cable);
  const run = await asking(agent);
  cable.pull();
  run.exchange.head();
  await saying(run, "Once.");
  await finishing(run);
  await judge(run.events, {});
  assert.deepEqual(agent.messages, await history(shared.worker, agent.threadId));
});

test("a run that is not kept is not asked for twice", async (t) => {
  const cable = await laid(t);
  const agent = connection(cable);
  const run = await asking(agent, { forwardedProps: { agentId: "stub" } });
  cable.pull();
  await assert.rejects(run.running, TypeError);
  run.exchange.head();
  await run.exchange.writeAll(text("Unheard."), finish());
  run.exchange.end();
});

test("a run that is refused is refused at once, and as HttpAgent says it", async (t) => {
  const cable = await laid(t);
  const agent = connection(cable);
  shared.upstream.reply(says("Once."));
  agent.addMessage(user("Hello"));
  const parameters = { runId: fresh("run"), forwardedProps: { agentId: "stub", resourceId: "una" } };
  await agent.runAgent(parameters);
  await assert.rejects(agent.runAgent(parameters), ({ status, payload }) => status === 409 && payload.code === "run_conflict");
});

test("a page that comes back goes on over a new connection, without a gap", async (t) => {
  const cable = await laid(t);
  const attempts = [];
  const agent = connection(cable, { onReconnect: ({ attempt }) => attempts.push(attempt), retryMs: 1_000_000 });
  const run = await asking(agent);
  run.exchange.head();
  await saying(run, "Once");
  const back = agent.reconnect();
  await saying(run, " upon");
  await back;
  await saying(run, " a");
  await agent.reconnect();
  await saying(run, " time");
  await finishing(run);
  await judge(run.events, {});
  assert.equal(agent.messages.at(-1).content, "Once upon a time");
  assert.deepEqual(attempts, [1, 1]);
});

test("a run that cannot be reached any more ends for the client, with nothing open", async (t) => {
  const cable = await laid(t);
  const agent = connection(cable, { giveUpMs: 100 });
  const run = await asking(agent);
  run.exchange.head();
  await saying(run, "Once");
  cable.unplug();
  await run.running;
  assert.deepEqual(run.events.slice(-3).map(({ type, code }) => [type, code]), [
    ["TEXT_MESSAGE_END", undefined],
    ["STEP_FINISHED", undefined],
    ["RUN_ERROR", "connection_lost"],
  ]);
  await run.exchange.writeAll(finish());
  run.exchange.end();
});

test("the owner goes with every request: two may have runs of one id", async (t) => {
  const cable = await laid(t);
  const runId = fresh("run");
  for (const [resourceId, word] of [["una", "Hers."], ["bob", "His."]]) {
    const agent = connection(cable);
    const run = await asking(agent, { runId, forwardedProps: { agentId: "stub", resourceId } });
    run.exchange.head();
    await saying(run, word);
    agent.abortRun();
    await run.running;
    const later = connection(cable, { threadId: agent.threadId });
    const again = start(later, (...all) => later.follow(runId, ...all), { forwardedProps: { agentId: "stub", resourceId } });
    await eventually(() => again.events.at(-1)?.delta, (delta) => delta === word);
    assert.equal((await later.cancel(runId)).status, "cancelled");
    await again.running;
  }
});

test("a page that was reloaded finds its run and shows the whole answer once", async (t) => {
  const cable = await laid(t);
  const first = connection(cable);
  first.addMessage(user("Hello"));
  shared.upstream.reply(calls([["ask", {}]], { before: ["Asking."] }));
  const { events, running } = start(first, (...all) => first.runAgent(...all), { tools: [tool("ask")] });
  const { toolCallId } = await eventually(() => events.find(({ type }) => type === "TOOL_CALL_END"), Boolean);
  first.abortRun();
  await running.catch(() => {});
  const { activeRuns } = await ok(await shared.worker.fetch(`/threads/${first.threadId}`));
  const second = connection(cable, { threadId: first.threadId });
  second.setMessages(await history(shared.worker, first.threadId));
  const again = start(second, (...all) => second.follow(activeRuns[0], ...all));
  await eventually(() => again.events.some((event) => event.toolCallId === toolCallId), Boolean);
  shared.upstream.reply(says("Thanks."));
  await giveResult(shared.worker, activeRuns[0], toolCallId, { result: "yes" });
  await again.running;
  await judge(again.events, {});
  assert.deepEqual(second.messages, await history(shared.worker, first.threadId));
});

test("a cancel stops the run, not only the connection", async (t) => {
  const cable = await laid(t);
  const agent = connection(cable);
  const runId = fresh("run");
  const run = await asking(agent, { runId });
  run.exchange.head();
  await saying(run, "Once");
  assert.equal((await agent.cancel(runId)).status, "cancelled");
  await run.exchange.closedByPeer;
  await run.running.catch(() => {});
});

test("a call that a restart cuts short is not shown, however often it is restarted: a front end acts on its end", async () => {
  const ids = { threadId: "t", runId: "r" };
  const begin = [{ type: "RUN_STARTED", ...ids }, { type: "STEP_STARTED", stepName: "step-1" }];
  const asks = (toolCallId, ...deltas) => [
    { type: "TOOL_CALL_START", toolCallId, toolCallName: "ask", parentMessageId: "m" },
    ...deltas.map((delta) => ({ type: "TOOL_CALL_ARGS", toolCallId, delta })),
  ];
  const rest = [{ type: "TOOL_CALL_END", toolCallId: "c2" }, { type: "STEP_FINISHED", stepName: "step-1" }, { type: "RUN_FINISHED", ...ids }];
  const stream = (generation, ...events) => {
    const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
    return new Response(body, { headers: { "content-type": "text/event-stream", "io-run-generation": generation } });
  };
  const asked = [];
  const answers = [
    stream("0", ...begin, ...asks("c1", '{"n":')),
    Response.json({ error: "Again.", code: "generation_changed", generation: 1 }, { status: 409 }),
    Response.json({ error: "Again.", code: "generation_changed", generation: 2 }, { status: 409 }),
    stream("2", ...begin, ...asks("c2", '{"n":')),
    stream("2", { type: "TOOL_CALL_ARGS", toolCallId: "c2", delta: "1}" }, ...rest),
  ];
  const agent = connection({ origin: "http://server" }, { fetch: async (url) => (asked.push(new URL(url).search), answers.shift()) });
  agent.addMessage(user("Hello"));
  const { events, running } = start(agent, (...all) => agent.runAgent(...all), { ...ids, tools: [tool("ask")] });
  await running;
  const asking = [[4, 0], [0, 1], [0, 2], [4, 2]];
  assert.deepEqual(asked, ["", ...asking.map(([after, generation]) => `?after=${after}&resourceId=una&generation=${generation}`)]);
  const shown = [...begin.map(({ type }) => type), "STEP_FINISHED", "RUN_FINISHED", "RUN_STARTED", "MESSAGES_SNAPSHOT", "STEP_STARTED"];
  const call = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_ARGS", "TOOL_CALL_END"];
  assert.deepEqual(events.map(({ type }) => type), [...shown, ...call, "STEP_FINISHED", "RUN_FINISHED"]);
  assert.deepEqual([...new Set(events.map(({ toolCallId }) => toolCallId))], [undefined, "c2"]);
});

test("a run that the server restarts begins anew for the client too", { timeout: 90_000 }, async (t) => {
  const stateFolder = mkdtempSync(path.join(tmpdir(), "io-bridge-"));
  const upstream = await startUpstream();
  const options = { agents: [stubAgent(upstream, { onDisconnect: "continue" })], secrets: { OPENAI_API_KEY: API_KEY }, stateFolder };
  const cable = await layCable();
  let worker = await startWorkerProcess(options);
  t.after(async () => {
    await worker.kill();
    await cable.stop();
    await upstream.stop();
    rmSync(stateFolder, { recursive: true, force: true });
  });
  cable.plug(worker);
  const agent = connection(cable);
  agent.addMessage(user("Hello"));
  const asked = upstream.next();
  const { events, running } = start(agent, (...all) => agent.runAgent(...all));
  const exchange = await asked;
  exchange.head();
  await exchange.writeAll(text("Half an ans"));
  await eventually(() => events.at(-1)?.delta, Boolean);
  cable.unplug();
  await worker.kill();
  upstream.reply(says("A whole answer."));
  worker = await startWorkerProcess(options);
  cable.plug(worker);
  await running;
  assert.deepEqual(agent.messages, await history(worker, agent.threadId));
  assert.deepEqual(agent.messages.map(({ content }) => content), ["Hello", "A whole answer."]);
});
