// Another AG-UI agent as upstream: one Worker in front of another, and the client sees what it sees of one (contract 6).

import assert from "node:assert/strict";
import { after } from "node:test";
import { outline } from "./support/judge.mjs";
import { calls, refuses, says, textOf } from "./support/openai.mjs";
import { giveResult, openRun, runInput, tool } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";
import { startUpstream } from "./support/upstream.mjs";
import { startWorker } from "./support/worker.mjs";

const model = await startUpstream();
const inner = await startWorker({
  agents: [{ id: "inner", provider: "openai", model: "stub-1", baseUrl: `${model.url}/v1`, tools: ["current_time"] }],
  secrets: { OPENAI_API_KEY: "sk-inner" },
});
after(async () => {
  await inner.stop();
  await model.stop();
});

const shared = suite({
  agents: (stub) => [
    stub({ tools: ["current_time"] }),
    { id: "outer", provider: "ag-ui", model: "inner", baseUrl: inner.url("/run"), maxRetries: 0 },
  ],
});

/** Runs once, the front-end calls answered, and gives the events in short. */
async function play(agent, replies) {
  const upstream = agent === "outer" ? model : shared.upstream;
  for (const reply of replies) upstream.reply(reply);
  const input = runInput({ agent, tools: [tool("pick")], forwardedProps: { modelSettings: { topP: 0.5 } } });
  const stream = await openRun(shared.worker, input);
  const isLast = ({ type }) => type === "RUN_FINISHED" || type === "RUN_ERROR";
  const names = new Map();
  for (let event; !event || !isLast(event); ) {
    event = await stream.next();
    if (event.type === "TOOL_CALL_START") names.set(event.toolCallId, event.toolCallName);
    if (event.type === "TOOL_CALL_END" && names.get(event.toolCallId) === "pick") {
      await giveResult(shared.worker, input.runId, event.toolCallId, { result: { color: "red" } });
    }
  }
  const lines = outline(await stream.rest());
  return lines.map((line) => line.replace(/(RESULT \S+ )\{"iso":.*/, "$1the time"));
}

const SCENARIOS = {
  "text alone": [says("Hello ", "there.")],
  "a server tool": [calls([["current_time", {}]], { before: ["Let me look."] }), says("It is noon.")],
  "a front-end tool": [calls([["pick", { palette: "warm" }]], { before: ["Let me see."] }), says("Red.")],
  "a mixed turn": [calls([["pick", {}], ["current_time", {}]]), says("Red at noon.")],
};

for (const [scenario, replies] of Object.entries(SCENARIOS)) {
  test(`${scenario} gives the same events through another agent [6]`, async () => {
    assert.deepEqual(await play("outer", replies), await play("stub", replies));
    const asked = model.requests.map(({ body }) => [body.top_p, body.messages.map((message) => [message.role, textOf(message)])]);
    const expected = shared.upstream.requests.map(({ body }) => [
      body.top_p,
      body.messages.map((message) => [message.role, textOf(message)]),
    ]);
    const withoutTime = (requests) => JSON.stringify(requests).replace(/\{\\"iso\\":[^}]*\}/g, "the time");
    assert.equal(withoutTime(asked), withoutTime(expected));
    model.reset();
  });
}

test("a refusal of the other agent's model is a failure of the run [2.4]", async () => {
  model.reply(refuses(401));
  const response = await shared.worker.fetch("/run", { json: runInput({ agent: "outer" }) });
  assert.equal(response.status, 502);
  assert.doesNotMatch(await response.text(), /private words/);
  model.reset();
});
