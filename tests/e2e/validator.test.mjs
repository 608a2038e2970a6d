// A judge that is not ours: the third-party validator `ag-ui-validate`, against the running server.

import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { answer, calls, finish, refuses, says, text } from "./support/openai.mjs";
import { python, skip } from "./support/python.mjs";
import { eventually, fresh, ok, postResult, runInput, tool } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";

const shared = suite({
  agents: (stub) => [
    stub({ tools: ["current_time"], maxRetries: 0 }),
    stub({ id: "frank", showErrors: true, maxRetries: 0 }),
    stub({ id: "hasty", firstResponseWaitMs: 50, maxRetries: 0 }),
    { id: "demo-two", provider: "demo" },
  ],
});

/** What the validator finds in the stream of this input. */
async function validate(input) {
  const { eventCount, ...findings } = await python({
    environment: "ag-ui-validate-0.4.0",
    packages: ["ag-ui-validate[transport]==0.4.0"],
    script: "./validate.py",
    args: [shared.worker.url("/run")],
    input,
  });
  assert.ok(eventCount > 0);
  return findings;
}

/** The calls a run waits for, once they are so many: seen from outside, the validator only reads. */
async function pendingCalls({ runId, forwardedProps: { resourceId: owner } }, count) {
  const read = async () => (await shared.worker.fetch(`/runs/${runId}?resourceId=${owner}`)).json();
  return (await eventually(read, ({ pendingToolCalls }) => pendingToolCalls?.length === count)).pendingToolCalls;
}

const answers = (count) => async (input) => {
  const { runId, forwardedProps: { resourceId: owner } } = input;
  for (const { toolCallId } of await pendingCalls(input, count)) {
    await ok(await postResult(shared.worker, runId, toolCallId, { result: { n: 1 } }, { owner }));
  }
};

async function cancels(input) {
  await pendingCalls(input, 1);
  await ok(await shared.worker.fetch(`/runs/${input.runId}/cancel?resourceId=${input.forwardedProps.resourceId}`, { method: "POST" }));
}

const tools = [tool("one"), tool("two")];
const nextRun = { frontendTools: "next-run" };

/** Every kind of run: what the upstream says, what is asked, and what happens meanwhile. */
const SCENES = {
  text: { replies: [says("Hel", "lo.")] },
  "a server tool": { replies: [calls([["current_time", {}]], { before: ["Looking."] }), says("Noon.")] },
  "a tool of the front end": { replies: [calls([["one", { a: 1 }]]), says("Done.")], meanwhile: answers(1) },
  "a turn with calls of both kinds": {
    replies: [calls([["one", {}], ["current_time", {}], ["two", {}]], { before: ["All."] }), says("Done.")],
    meanwhile: answers(2),
  },
  "calls for the next run": { replies: [calls([["one", {}], ["two", { a: 1 }]])], forwardedProps: nextRun },
  "a call whose arguments do not fit": { replies: [calls([["current_time", { offset: [] }]]), says("Sorry.")] },
  "an answer that is cut": { replies: [answer(text("Hel"))] },
  "an answer that is withheld": { replies: [answer(text("Hel"), finish("content_filter"))] },
  "a length the client set": { replies: [answer(text("Hel"), finish("length"))], forwardedProps: { modelSettings: { maxTokens: 5 } } },
  "an error that is shown": { replies: [answer(text("Hel"))], agent: "frank" },
  "a refusal after the start": { replies: [refusesLate], agent: "hasty" },
  "a run that is cancelled": { replies: [calls([["one", {}]])], meanwhile: cancels },
};

/** Refuses when the run's stream has been open for a while. */
async function refusesLate(exchange) {
  await pause(300);
  await refuses(500)(exchange);
}

test("ag-ui-validate finds nothing to say", { skip, timeout: 180_000 }, async (t) => {
  for (const [name, { replies, meanwhile = () => {}, forwardedProps, ...members }] of Object.entries(SCENES)) {
    await t.test(`about ${name}`, async () => {
      for (const reply of replies) shared.upstream.reply(reply);
      const input = runInput({ owner: fresh("owner"), tools, forwardedProps, ...members });
      const [findings] = await Promise.all([validate(input), meanwhile(input)]);
      assert.deepEqual(findings, { found: [], internalErrors: [] });
    });
  }
  await t.test("about the demo agent", async () => {
    assert.deepEqual(await validate(runInput({ agent: "demo-two" })), { found: [], internalErrors: [] });
  });
});
