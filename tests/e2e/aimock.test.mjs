// Model servers that are not ours, first: `@copilotkit/aimock` plays OpenAI, Anthropic and Google (contract 6). Others
// wrote what it takes and gives, so a wire format misread here is not misread there too.

import assert from "node:assert/strict";
import { after, beforeEach } from "node:test";
import { LLMock } from "@copilotkit/aimock";
import { outline } from "./support/judge.mjs";
import { play, scene } from "./support/play.mjs";
import { refusedRun, run, runInput, user } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";

const mock = new LLMock({ port: 0, logLevel: "silent" });
await mock.start();
after(() => mock.stop());
beforeEach(() => mock.reset());

const FORMS = {
  openai: { model: "gpt-4o", baseUrl: `${mock.url}/v1` },
  "openai-responses": { model: "gpt-4o", baseUrl: `${mock.url}/v1` },
  anthropic: { model: "claude-sonnet-4-5", baseUrl: mock.url },
  google: { model: "gemini-2.5-flash", baseUrl: `${mock.url}/v1beta` },
};

const shared = suite({
  agents: () =>
    Object.entries(FORMS).map(([provider, keys]) => ({
      id: provider,
      provider,
      tools: ["current_time"],
      maxRetries: 0,
      ...keys,
    })),
});

const pick = (palette) => ({ name: "pick", arguments: JSON.stringify({ palette }) });
const time = { name: "current_time", arguments: "{}" };

/** What the mock says: at first, and once the turn has results. */
const SCENES = {
  text: {
    first: { content: "Hello there, é 漢 😀." },
    lines: ["TEXT_MESSAGE_START m1", "TEXT_MESSAGE_CONTENT m1 Hello there, é 漢 😀.", "TEXT_MESSAGE_END m1"],
  },
  "a front-end call behind text": {
    first: { content: "Picking.", toolCalls: [pick("warm")] },
    then: { content: "Red." },
    lines: [
      "TEXT_MESSAGE_START m1",
      "TEXT_MESSAGE_CONTENT m1 Picking.",
      "TEXT_MESSAGE_END m1",
      "TOOL_CALL_START c1 pick in m1",
      'TOOL_CALL_ARGS c1 {"palette":"warm"}',
      "TOOL_CALL_END c1",
      'TOOL_CALL_RESULT c1 {"color":"red"}',
      "STEP_FINISHED step-1",
      "STEP_STARTED step-2",
      "TEXT_MESSAGE_START m3",
      "TEXT_MESSAGE_CONTENT m3 Red.",
      "TEXT_MESSAGE_END m3",
    ],
  },
  "a server call": {
    first: { toolCalls: [time] },
    then: { content: "Noon." },
    lines: [
      "TOOL_CALL_START c1 current_time in m1",
      "TOOL_CALL_ARGS c1 {}",
      "TOOL_CALL_END c1",
      "TOOL_CALL_RESULT c1 the time",
      "STEP_FINISHED step-1",
      "STEP_STARTED step-2",
      "TEXT_MESSAGE_START m3",
      "TEXT_MESSAGE_CONTENT m3 Noon.",
      "TEXT_MESSAGE_END m3",
    ],
  },
  "two front-end calls in parallel": {
    first: { toolCalls: [pick("warm"), pick("cold")] },
    then: { content: "Both red." },
    lines: [
      "TOOL_CALL_START c1 pick in m1",
      'TOOL_CALL_ARGS c1 {"palette":"warm"}',
      "TOOL_CALL_END c1",
      "TOOL_CALL_START c2 pick in m1",
      'TOOL_CALL_ARGS c2 {"palette":"cold"}',
      "TOOL_CALL_END c2",
      'TOOL_CALL_RESULT c1 {"color":"red"}',
      'TOOL_CALL_RESULT c2 {"color":"red"}',
      "STEP_FINISHED step-1",
      "STEP_STARTED step-2",
      "TEXT_MESSAGE_START m4",
      "TEXT_MESSAGE_CONTENT m4 Both red.",
      "TEXT_MESSAGE_END m4",
    ],
  },
};

for (const provider of Object.keys(FORMS)) {
  for (const [name, { first, then, lines }] of Object.entries(SCENES)) {
    test(`${provider}: ${name} [6]`, async () => {
      mock.on({ userMessage: "play", hasToolResult: false }, first, { chunkSize: 5 });
      if (then) mock.on({ userMessage: "play", hasToolResult: true }, then);
      const start = ["RUN_STARTED", "STEP_STARTED step-1"];
      const end = [then ? "STEP_FINISHED step-2" : "STEP_FINISHED step-1", "RUN_FINISHED"];
      assert.deepEqual(scene(await play(shared.worker, provider, "play")), [...start, ...lines, ...end]);
      assert.ok(mock.getRequests().every(({ response }) => response.status === 200));
    });
  }

  test(`${provider}: an answer that must fit a schema, and its usage [2.1]`, async () => {
    const usage = { prompt_tokens: 11, completion_tokens: 7, input_tokens: 11, output_tokens: 7, promptTokenCount: 11, candidatesTokenCount: 7 };
    mock.onMessage("play", { content: '{"n":1}', usage });
    const schema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
    const input = runInput({ agent: provider, messages: [user("play")], protocolVersion: "1.0", forwardedProps: { structuredOutput: { schema } } });
    const events = await run(shared.worker, input);
    assert.equal(events.flatMap(({ delta }) => delta ?? []).join(""), '{"n":1}');
    assert.deepEqual(events.at(-1).usage, [
      { provider, model: FORMS[provider].model, inputTokens: 11, outputTokens: 7, totalTokens: 18 },
    ]);
  });

  test(`${provider}: a fault ends in an error, never in a finished run [2.4, D14]`, async () => {
    const words = "Hello there, you all, and everybody else too.";
    const refusals = {
      "an error instead of an answer": [{ chaos: { dropRate: 1 } }, 502, "upstream_error"],
      "a connection that dies at once": [{ chaos: { disconnectRate: 1 } }, 502, "upstream_error"],
      "a limit of the rate": [{ chaos: { rateLimitRate: 1 } }, 429, "upstream_rate_limited"],
    };
    for (const [fault, [options, status, code]] of Object.entries(refusals)) {
      mock.reset();
      mock.onMessage("play", { content: words }, options);
      const body = await refusedRun(shared.worker, runInput({ agent: provider, messages: [user("play")] }), status, code);
      assert.ok(body.error, fault);
    }
    const failures = {
      "no stream but something unreadable": [{ chaos: { malformedRate: 1 } }, "invalid_upstream_response"],
      "a connection that dies behind some words": [{ truncateAfterChunks: 6, latency: 10, chunkSize: 5 }, "upstream_truncated"],
    };
    for (const [fault, [options, code]] of Object.entries(failures)) {
      mock.reset();
      mock.onMessage("play", { content: words }, options);
      const events = await run(shared.worker, runInput({ agent: provider, messages: [user("play")] }));
      assert.equal(outline(events).at(-1), `RUN_ERROR ${code}`, fault);
    }
  });
}
