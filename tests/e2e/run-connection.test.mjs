// The client that keeps a run in sight over broken connections (clients/run-connection.mjs).

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
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

test("a cable that is pulled again and again costs no event and doubles none", async (t) => {
  const cable = await layCable();
  t.after(() => cable.stop());
  cable.plug(shared.worker);
  const agent = connection(cable);
  agent.addMessage(user("Hello"));
  const asked = shared.upstream.next();
  const { events, running } = start(agent, (...all) => agent.runAgent(...all));
  const exchange = await asked;
  exchange.head();
  for (const word of ["Once", " upon", " a", " time"]) {
    await exchange.writeAll(text(word));
    await eventually(() => events.at(-1)?.delta, (delta) => delta === word);
    cable.pull();
  }
  await exchange.writeAll(finish());
  exchange.end();
  await running;
  await judge(events, {});
  assert.equal(agent.messages.at(-1).content, "Once upon a time");
});

test("a page that was reloaded finds its run and shows the whole answer once", async (t) => {
  const cable = await layCable();
  t.after(() => cable.stop());
  cable.plug(shared.worker);
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
  const cable = await layCable();
  t.after(() => cable.stop());
  cable.plug(shared.worker);
  const agent = connection(cable);
  agent.addMessage(user("Hello"));
  const asked = shared.upstream.next();
  const runId = fresh("run");
  const { events, running } = start(agent, (...all) => agent.runAgent(...all), { runId });
  const exchange = await asked;
  exchange.head();
  await exchange.writeAll(text("Once"));
  await eventually(() => events.at(-1)?.delta, (delta) => delta === "Once");
  assert.equal((await agent.cancel(runId)).status, "cancelled");
  await exchange.closedByPeer;
  await running.catch(() => {});
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
