// Workers AI through the Worker's own binding (contract 6): the platform's real binding, its service played by a stub.

import assert from "node:assert/strict";
import { after } from "node:test";
import { outline } from "./support/judge.mjs";
import { DONE, calls, frame, says } from "./support/openai.mjs";
import { eventually, giveResult, openRun, refusedRun, runInput, tool } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";
import { startUpstream } from "./support/upstream.mjs";
import { startWorker } from "./support/worker.mjs";

const service = await startUpstream();
const AGENT = { id: "cloud", provider: "workers-ai", model: "@cf/test/model" };
const shared = suite({ agents: (stub) => [stub(), AGENT], ai: service.url });
after(() => service.stop());

/** An answer in the dialect of Workers AI's own models. */
const native = (...chunks) => async (exchange) => {
  exchange.head();
  await exchange.writeAll(chunks.map(frame), DONE);
  exchange.end();
};

/** Runs once against the service and gives the events in short, and the requests the service got. */
async function play(agent, upstream, replies) {
  for (const reply of replies) upstream.reply(reply);
  const input = runInput({ agent, tools: [tool("pick")] });
  const stream = await openRun(shared.worker, input);
  const end = await stream.until(({ type }) => type === "TOOL_CALL_END" || type === "RUN_FINISHED");
  if (end.type === "TOOL_CALL_END") await giveResult(shared.worker, input.runId, end.toolCallId, { result: 1 });
  const lines = outline(await stream.rest());
  const requests = upstream.requests.map(({ body }) => body);
  upstream.reset();
  return { lines, requests };
}

const DIALECTS = {
  "its own": {
    "text alone": [native({ response: "It is ", p: "ab" }, { response: 2 }, { response: "", usage: {} })],
    "a call": [native({ response: null, tool_calls: [{ name: "pick", arguments: { n: 1 } }] }), native({ response: "Done." })],
  },
  "that of OpenAI": {
    "text alone": [says("It is ", "2")],
    "a call": [calls([["pick", { n: 1 }]]), says("Done.")],
  },
};

for (const scenario of ["text alone", "a call"]) {
  test(`${scenario} gives the same events in either dialect of the binding [6]`, async () => {
    const expected = await play("stub", shared.upstream, DIALECTS["that of OpenAI"][scenario]);
    for (const [dialect, replies] of Object.entries(DIALECTS)) {
      const { lines, requests } = await play("cloud", service, replies[scenario]);
      assert.deepEqual(lines, expected.lines, dialect);
      const asked = requests.map(({ inputs }) => inputs.messages.map(({ role, content }) => [role, content ?? ""]));
      const told = expected.requests.map(({ messages }) => messages.map(({ role, content }) => [role, content ?? ""]));
      assert.deepEqual(asked, told, dialect);
    }
  });
}

test("a refusal of the service is an HTTP error before the stream [D14]", async () => {
  for (let attempt = 0; attempt < 3; attempt += 1) {
    service.reply(async (exchange) => {
      exchange.head(429, { "content-type": "application/json", "retry-after": "60" });
      exchange.end(JSON.stringify({ internalCode: 3036, description: "private words", name: "Limit" }));
    });
  }
  const body = await refusedRun(shared.worker, runInput({ agent: "cloud" }), 429, "upstream_rate_limited");
  assert.doesNotMatch(JSON.stringify(body), /private words/);
  service.reset();
});

test("a stopped run stops the model [D11]", async () => {
  const reached = service.next();
  const stream = await openRun(shared.worker, runInput({ agent: "cloud" }));
  const exchange = await reached;
  exchange.head();
  await exchange.writeAll(frame({ response: "Once" }));
  await stream.until("TEXT_MESSAGE_CONTENT");
  await stream.abandon();
  let isClosed = false;
  exchange.closedByPeer.then(() => (isClosed = true));
  await eventually(
    async () => {
      await exchange.writeAll(frame({ response: " more" }));
      return isClosed;
    },
    (closed) => closed,
  );
  service.reset();
});

test("without the binding the agent is not configured [D3]", async () => {
  const worker = await startWorker({ agents: [AGENT] });
  try {
    await refusedRun(worker, runInput({ agent: "cloud" }), 503, "agent_not_configured");
  } finally {
    await worker.stop();
  }
});
