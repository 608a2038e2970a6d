// Reasoning as events, in every binding and from every form a model's server has (AG-UI 1.17, 6). The servers are played
// by `@copilotkit/aimock`, whose reasoning is in each vendor's own members.

import assert from "node:assert/strict";
import { after, beforeEach } from "node:test";
import { LLMock } from "@copilotkit/aimock";
import { Client } from "./support/client.mjs";
import { normalise, outline } from "./support/judge.mjs";
import { play } from "./support/play.mjs";
import { PROTOBUF, ProtobufStream } from "./support/protobuf.mjs";
import { fresh, history, ok, run, runInput, user } from "./support/run.mjs";
import { Socket } from "./support/socket.mjs";
import { suite, test } from "./support/suite.mjs";

const mock = new LLMock({ port: 0, logLevel: "silent" });
await mock.start();
after(() => mock.stop());
beforeEach(() => mock.reset());

const FORMS = {
  openai: { model: "gpt-5", baseUrl: `${mock.url}/v1` },
  "openai-responses": { model: "gpt-5", baseUrl: `${mock.url}/v1` },
  anthropic: { model: "claude-sonnet-4-5", baseUrl: mock.url },
  google: { model: "gemini-2.5-flash", baseUrl: `${mock.url}/v1beta` },
  demo: {},
};

const shared = suite({
  agents: () => [
    ...Object.entries(FORMS).map(([provider, keys]) => ({ id: provider, provider, reasoning: "emit", maxRetries: 0, ...keys })),
    { id: "hidden", provider: "openai", maxRetries: 0, ...FORMS.openai },
  ],
});

const think = () => {
  const pick = { name: "pick", arguments: '{"palette":"warm"}' };
  mock.on({ userMessage: "think", hasToolResult: false }, { content: "Picking.", reasoning: "Which one?", toolCalls: [pick] });
  mock.on({ userMessage: "think", hasToolResult: true }, { content: "Red.", reasoning: "Red it is." });
};

const LINES = [
  "RUN_STARTED",
  "STEP_STARTED step-1",
  "REASONING_START m1",
  "REASONING_MESSAGE_START m1",
  "REASONING_MESSAGE_CONTENT m1 Which one?",
  "REASONING_MESSAGE_END m1",
  "REASONING_END m1",
  "TEXT_MESSAGE_START m2",
  "TEXT_MESSAGE_CONTENT m2 Picking.",
  "TEXT_MESSAGE_END m2",
  "TOOL_CALL_START c1 pick in m2",
  'TOOL_CALL_ARGS c1 {"palette":"warm"}',
  "TOOL_CALL_END c1",
  'TOOL_CALL_RESULT c1 {"color":"red"}',
  "STEP_FINISHED step-1",
  "STEP_STARTED step-2",
  "REASONING_START m4",
  "REASONING_MESSAGE_START m4",
  "REASONING_MESSAGE_CONTENT m4 Red it is.",
  "REASONING_MESSAGE_END m4",
  "REASONING_END m4",
  "TEXT_MESSAGE_START m5",
  "TEXT_MESSAGE_CONTENT m5 Red.",
  "TEXT_MESSAGE_END m5",
  "STEP_FINISHED step-2",
  "RUN_FINISHED",
];

const withoutReasoning = LINES.filter((line) => !line.startsWith("REASONING_")).map((line) =>
  line.replace(/\bm[25]\b/, (id) => ({ m2: "m1", m5: "m3" })[id]),
);

for (const provider of Object.keys(FORMS).filter((name) => name !== "demo")) {
  test(`${provider}: reasoning is streamed in its place, and goes back to no model as text`, async () => {
    think();
    const events = await play(shared.worker, provider, "think", { protocolVersion: "1.0" });
    assert.deepEqual(outline(events), LINES);
    // What the vendor itself wants back, signed, is no text of the conversation.
    const [, second] = mock.getRequests();
    const texts = JSON.stringify(second.body.messages.map(({ content }) => content));
    if (provider !== "anthropic") assert.doesNotMatch(texts, /Which one\?/);
  });
}

test("nothing of it is sent where the agent hides it, or to a peer that declares no version", async () => {
  for (const [agent, members] of [["hidden", { protocolVersion: "1.0" }], ["openai", {}]]) {
    mock.reset();
    think();
    assert.deepEqual(outline(await play(shared.worker, agent, "think", members)), withoutReasoning, agent);
  }
});

test("protobuf and WebSocket carry the same events", async () => {
  const input = (words) => runInput({ agent: "openai", messages: [user(words)], protocolVersion: "1.0" });
  mock.onMessage("hello", { content: "Hi.", reasoning: "A greeting: é漢😀." });
  const plain = (events) => normalise(events).map(({ runId, threadId, ...rest }) => rest);
  const expected = plain(await run(shared.worker, input("hello")));
  assert.equal(expected.filter(({ type }) => type.startsWith("REASONING_")).length >= 5, true);
  const asked = input("hello");
  const response = await shared.worker.fetch("/run", { json: asked, headers: PROTOBUF });
  assert.deepEqual(plain(await new ProtobufStream(response).rest(asked)), expected);
  assert.deepEqual(plain(await new Socket(shared.worker, input("hello")).rest()), expected);
});

test("the official client shows it, the thread keeps it, and sent back nothing doubles [2.3, D19]", async () => {
  const owner = fresh("owner");
  mock.onMessage("hello", { content: "Hi.", reasoning: "A greeting." });
  mock.onMessage("again", { content: "Hi again." });
  const client = new Client(shared.worker);
  const { threadId } = client.agent;
  client.agent.addMessage(user("hello"));
  const forwardedProps = { agentId: "openai", resourceId: owner };
  await client.run({ forwardedProps });
  const shown = client.messages.map(({ role, content }) => [role, content]);
  assert.deepEqual(shown, [["user", "hello"], ["reasoning", "A greeting."], ["assistant", "Hi."]]);
  assert.deepEqual(await history(shared.worker, threadId), JSON.parse(JSON.stringify(client.messages)));
  const { messages } = await ok(await shared.worker.fetch(`/threads/${threadId}/messages`));
  assert.deepEqual(messages.map(({ role, content }) => [role, content.content]), [["user", "hello"], ["assistant", "Hi."]]);

  client.agent.addMessage(user("again"));
  await client.run({ forwardedProps });
  const roles = (await history(shared.worker, threadId)).map(({ role }) => role);
  assert.deepEqual(roles, ["user", "reasoning", "assistant", "user", "assistant"]);
  const told = mock.getLastRequest().body.messages;
  assert.deepEqual(told.map(({ role, content }) => [role, content]), [["user", "hello"], ["assistant", "Hi."], ["user", "again"]]);
});

test("an agent says that it sends it, the demo agent as well [5]", async () => {
  const { capabilities } = await ok(await shared.worker.fetch("/agents/openai"));
  assert.deepEqual(capabilities.reasoning, { supported: true, streaming: true, encrypted: false });
  assert.equal((await ok(await shared.worker.fetch("/agents/hidden"))).capabilities.reasoning, undefined);
  const events = await run(shared.worker, runInput({ agent: "demo", messages: [user("think")], protocolVersion: "1.0" }));
  assert.ok(events.some(({ type }) => type === "REASONING_MESSAGE_CONTENT"));
});
