// The same conversations through every client version and transport: the same messages must come out of all.
//
// `make test` has the newest and the oldest version that tells of HTTP errors; `make test-matrix` all of them.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { HttpAgent } from "@ag-ui/client";
import { WebSocketAgent } from "../../clients/websocket-agent.mjs";
import { judge } from "./support/judge.mjs";
import { answer, calls, says, text } from "./support/openai.mjs";
import { PROTOBUF } from "./support/protobuf.mjs";
import { fresh, giveResult, tool, user } from "./support/run.mjs";
import { EventStream } from "./support/sse.mjs";
import { suite, test } from "./support/suite.mjs";

const shared = suite({
  agents: (stub) => [
    stub({ maxRetries: 0, tools: ["current_time"] }),
    stub({ id: "next", frontendTools: "next-run", tools: ["current_time"], maxRetries: 0 }),
    stub({ id: "lively", keepAliveMs: 15, maxRetries: 0 }),
  ],
});

const require = createRequire(import.meta.url);

/** An older client out of tests/matrix, with its own copy of everything; its module build does not load in Node. */
function older(name) {
  const folder = fileURLToPath(new URL(`../matrix/node_modules/${name}`, import.meta.url));
  assert.ok(existsSync(folder), "the clients of tests/matrix are missing: `node scripts/matrix.mjs` installs them");
  return require(folder).HttpAgent;
}

class ProtobufAgent extends HttpAgent {
  requestInit(input) {
    const init = super.requestInit(input);
    return { ...init, headers: { ...init.headers, Accept: PROTOBUF.accept } };
  }
}

const clients = {
  "1.0.0 SSE": HttpAgent,
  "1.0.0 protobuf": ProtobufAgent,
  "1.0.0 WebSocket": WebSocketAgent,
  "0.0.47 SSE": older("ag-ui-client-0047"),
  ...(process.env.CLIENTS === "all"
    ? { "0.0.59 SSE": older("ag-ui-client-0059"), "0.0.36 SSE": older("ag-ui-client-0036") }
    : {}),
};

/** Posts the result, or sends it over the socket there is. */
const deliver = (agent, runId, toolCallId, result) =>
  agent instanceof WebSocketAgent
    ? agent.sendToolResult(toolCallId, result)
    : giveResult(shared.worker, runId, toolCallId, { result });

/** Runs once; gives the events, which are judged like those of every other test. `onCall` is told of each call of a front-end tool that has ended. */
async function runOnce(agent, { name = "stub", tools = [], onCall = () => {} } = {}) {
  const runId = fresh("run");
  const events = [];
  const names = new Map();
  const answers = [];
  let input;
  await agent.runAgent(
    { runId, tools, forwardedProps: { agentId: name } },
    {
      onRunInitialized: (parameters) => void (input = parameters.input),
      onEvent: ({ event }) => {
        events.push(event);
        if (event.type === "TOOL_CALL_START") names.set(event.toolCallId, event.toolCallName);
        const isFrontEnd = tools.some((one) => one.name === names.get(event.toolCallId));
        if (event.type === "TOOL_CALL_END" && isFrontEnd) answers.push(onCall(event.toolCallId, input));
      },
    },
  );
  await Promise.all(answers);
  // 0.0.36 drops the one member it does not know before anybody sees it.
  const sent = events.map((event) => (event.type === "RUN_STARTED" ? { protocolVersion: "1.0", ...event } : event));
  await judge(sent, { input });
  return events;
}

/** Waits until a viewer of its own has seen keep-alives of the run. */
async function silence(toolCallId, input) {
  const abort = new AbortController();
  const path = `/runs/${input.runId}/events?address=${toolCallId.slice(3, 46)}`;
  const viewer = new EventStream(await shared.worker.fetch(path, { signal: abort.signal }), { input, abort });
  for (let count = 0; count < 5; count += 1) await viewer.untilKeepAlive();
  return () => viewer.rest();
}

const tools = [tool("pick")];

const scenes = {
  text: async (agent) => {
    shared.upstream.reply(says("Hel", "lo é😀\n\n."));
    return (await runOnce(agent)).at(-1).type;
  },
  "tool, same run": async (agent) => {
    shared.upstream.reply(calls([["pick", { a: 1.5 }]], { before: ["Picking."] }));
    shared.upstream.reply(says("Picked."));
    const onCall = (id, { runId }) => deliver(agent, runId, id, { color: "red" });
    return (await runOnce(agent, { tools, onCall })).at(-1).type;
  },
  "tool, next run": async (agent) => {
    shared.upstream.reply(calls([["pick", {}]]));
    let pending;
    const first = await runOnce(agent, { name: "next", tools, onCall: (id) => void (pending = id) });
    agent.messages = [...agent.messages, { id: fresh("tool"), role: "tool", toolCallId: pending, content: "red" }];
    shared.upstream.reply(says("Picked."));
    return [first.at(-1).type, (await runOnce(agent, { name: "next", tools })).at(-1).type];
  },
  "mixed turn": async (agent) => {
    shared.upstream.reply(calls([["pick", {}], ["current_time", {}], ["pick", { b: [] }]], { before: ["Both."] }));
    shared.upstream.reply(says("Done."));
    // One after the other, when both calls are known: the order of results is the order of arrival.
    const ids = [];
    const onCall = async (id, { runId }) => {
      if (ids.push(id) < 2) return;
      for (const one of ids) await deliver(agent, runId, one, `result ${ids.indexOf(one)}`);
    };
    return (await runOnce(agent, { tools, onCall })).at(-1).type;
  },
  error: async (agent) => {
    shared.upstream.reply(answer(text("The answer is")));
    const { type, code } = (await runOnce(agent)).at(-1);
    return [type, code];
  },
  "long silent tool": async (agent) => {
    shared.upstream.reply(calls([["pick", {}]]));
    shared.upstream.reply(says("At last."));
    const onCall = async (id, input) => {
      const drain = await silence(id, input);
      await deliver(agent, input.runId, id, "slow");
      await drain();
    };
    return (await runOnce(agent, { name: "lively", tools, onCall })).at(-1).type;
  },
};

/** Messages with ids by order of appearance, and with no clock in them. */
function comparable(messages) {
  const labels = new Map();
  const label = (id) => labels.get(id) ?? labels.set(id, `id${labels.size}`).get(id);
  const plain = JSON.parse(JSON.stringify(messages));
  return plain.map((message) => ({
    ...message,
    id: label(message.id),
    ...(message.toolCallId ? { toolCallId: label(message.toolCallId) } : {}),
    ...(message.toolCalls ? { toolCalls: message.toolCalls.map((one) => ({ ...one, id: label(one.id) })) } : {}),
    ...(message.role === "tool" ? { content: /^\{"iso":/.test(message.content) ? "the time" : message.content } : {}),
  }));
}

const table = new Map(Object.keys(scenes).map((scene) => [scene, new Map()]));

for (const [scene, play] of Object.entries(scenes)) {
  test(`${scene}: every client ends with the same messages`, async (t) => {
    let expected;
    for (const [name, Agent] of Object.entries(clients)) {
      await t.test(name, async () => {
        table.get(scene).set(name, "fails");
        const agent = new Agent({ url: shared.worker.url("/run"), threadId: fresh("thread"), initialMessages: [user("Hi", "u1")] });
        const warnings = [];
        const { warn } = console;
        console.warn = (...words) => warnings.push(words.join(" "));
        try {
          const outcome = await play(agent);
          const seen = { outcome, messages: comparable(agent.messages) };
          expected ??= seen;
          assert.deepEqual(seen, expected);
          assert.deepEqual(warnings, []);
        } finally {
          console.warn = warn;
        }
        table.get(scene).set(name, "ok");
      });
    }
  });
}

test("a refusal is an error with status and body", async (t) => {
  for (const [name, Agent] of Object.entries(clients)) {
    // 0.0.36 takes any answer for a stream.
    if (name.startsWith("0.0.36")) continue;
    await t.test(name, async () => {
      const { error, log } = console;
      console.error = console.log = () => {};
      try {
        const agent = new Agent({ url: shared.worker.url("/run"), threadId: fresh("thread"), initialMessages: [user("Hi")] });
        await assert.rejects(runOnce(agent, { name: "nobody" }), ({ status, payload }) => {
          assert.deepEqual([status, payload.code], [404, "agent_not_found"]);
          return true;
        });
      } finally {
        Object.assign(console, { error, log });
      }
    });
  }
});

after(() => {
  const names = Object.keys(clients);
  const row = (cells) => `| ${cells.map((cell, index) => cell.padEnd(index ? names[index - 1].length : 16)).join(" | ")} |`;
  console.log(row(["scene", ...names]));
  console.log(row(["---", ...names.map(() => "---")]));
  for (const [scene, results] of table) console.log(row([scene, ...names.map((name) => results.get(name) ?? "-")]));
});
