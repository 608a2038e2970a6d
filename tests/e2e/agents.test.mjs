// Discovery: contract 5.

import assert from "node:assert/strict";
import { AgentCapabilitiesSchema } from "@ag-ui/core/schemas";
import { says } from "./support/openai.mjs";
import { ok, refused, run, runInput, user } from "./support/run.mjs";
import { API_KEY, suite, test } from "./support/suite.mjs";

const shared = suite({
  agents: (stub) => [
    stub({ name: "Stub", description: "Says what it is told.", aliases: ["stubby"], instructions: "PRIVATE INSTRUCTIONS", tools: ["current_time"], maxSteps: 3 }),
    { id: "demo-two", provider: "demo" },
  ],
});

test("the list has every agent, in the shape of the contract", async () => {
  const { agents, ...rest } = await ok(await shared.worker.fetch("/agents"));
  assert.deepEqual(rest, {});
  assert.ok(agents.length >= 2);
  for (const agent of agents) {
    const { description, ...required } = agent;
    assert.deepEqual(Object.keys(required).sort(), ["capabilities", "id", "modelId", "name", "provider"]);
    if (description !== undefined) assert.equal(typeof description, "string");
    assert.deepEqual(AgentCapabilitiesSchema.parse(agent.capabilities), agent.capabilities);
  }
  assert.deepEqual(agents.slice(-2).map(({ id }) => id), ["stub", "demo-two"]);
});

test("one agent is found by its id and by its alias, an unknown one is 404", async () => {
  const { agents } = await ok(await shared.worker.fetch("/agents"));
  const stub = await ok(await shared.worker.fetch("/agents/stub"));
  assert.deepEqual(stub, agents.find(({ id }) => id === "stub"));
  assert.deepEqual(await ok(await shared.worker.fetch("/agents/stubby")), stub);
  assert.deepEqual([stub.name, stub.description, stub.provider, stub.modelId], ["Stub", "Says what it is told.", "openai", "stub-1"]);
  await refused(await shared.worker.fetch("/agents/nobody"), 404);
});

test("capabilities are true", async () => {
  const { capabilities } = await ok(await shared.worker.fetch("/agents/stub"));
  assert.equal(capabilities.transport.streaming, true);
  assert.equal(capabilities.execution.maxIterations, 3);
  assert.deepEqual(capabilities.tools.items.map(({ name }) => name), ["current_time"]);
  assert.equal(capabilities.transport.resumable, undefined);
  // Of the shipped agents, which have names of a model too, one goes on without viewers.
  const shipped = (await ok(await shared.worker.fetch("/agents"))).agents.slice(0, 2);
  const said = shipped.map(({ id, modelId, capabilities }) => [id, modelId, capabilities.transport.resumable]);
  assert.deepEqual(said, [["io-agent", "demo", undefined], ["demo", "demo", true]]);
});

test("instructions, keys and addresses never leak", async () => {
  for (const path of ["/agents", "/agents/stub"]) {
    const text = await (await shared.worker.fetch(path)).text();
    for (const secret of ["PRIVATE", API_KEY, "OPENAI_API_KEY", shared.upstream.url]) assert.ok(!text.includes(secret), secret);
  }
});

test("a run's agentId may be an alias, and is the first agent when absent [2.1]", async () => {
  shared.upstream.reply(says("ok"));
  await run(shared.worker, runInput({ agent: "stubby" }));
  const [first] = (await ok(await shared.worker.fetch("/agents"))).agents;
  const named = await run(shared.worker, runInput({ agent: first.id }));
  const absent = await run(shared.worker, runInput({ agent: null }));
  const kinds = (events) => events.map(({ type }) => type).filter((type, index, all) => type !== all[index - 1]);
  assert.deepEqual(kinds(absent), kinds(named));
});

test("what the demo agent refuses before any output is an HTTP error [D14]", async () => {
  const say = (text) => shared.worker.fetch("/run", { json: runInput({ agent: "demo-two", messages: [user(text)] }) });
  await refused(await say("refuse"), 502, "upstream_error");
  const limited = await say("rate limit");
  assert.equal(limited.headers.get("retry-after"), "30");
  await refused(limited, 429, "upstream_rate_limited");
});

test("the demo agent answers without any upstream", async () => {
  const events = await run(shared.worker, runInput({ agent: "demo-two" }));
  assert.ok(events.some(({ type }) => type === "TEXT_MESSAGE_CONTENT"));
  assert.equal(events.at(-1).type, "RUN_FINISHED");
});
