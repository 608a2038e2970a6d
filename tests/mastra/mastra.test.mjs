// The Worker in front of a real Mastra server (contract 6): what its clients see is what they see of any other upstream.
// Needs packages of its own: `make test-mastra`.

import assert from "node:assert/strict";
import { after } from "node:test";
import { Client } from "../e2e/support/client.mjs";
import { outline } from "../e2e/support/judge.mjs";
import { answer, call, calls, finish, refuses, says, systemText, text, textOf, usage } from "../e2e/support/openai.mjs";
import { eventually, fresh, giveResult, history, ok, openRun, refused, run, runInput, tool, user } from "../e2e/support/run.mjs";
import { suite, test } from "../e2e/support/suite.mjs";
import { startMastra } from "./support/server.mjs";

const mastra = await startMastra(() => shared.upstream.url);

const shared = suite({
  agents: (stub) => [
    stub({ tools: ["current_time"] }),
    { id: "helper", provider: "mastra", model: "helper", baseUrl: mastra.url },
    { id: "rememberer", provider: "mastra", model: "rememberer", baseUrl: mastra.url, memory: "mastra" },
    { id: "nobody", provider: "mastra", model: "nobody", baseUrl: mastra.url },
  ],
});

after(() => mastra.stop());

const PICK = tool("pick", {
  type: "object",
  properties: { palette: { type: "string" } },
  required: ["palette"],
});

/** Runs a stock client that answers calls of `pick`, and gives the judged events. */
async function runClient(agentId, { client = new Client(shared.worker), ...parameters } = {}) {
  const names = new Map();
  const runId = fresh("run");
  const given = [];
  const onEvent = (event) => {
    if (event.type === "TOOL_CALL_START") names.set(event.toolCallId, event.toolCallName);
    if (event.type === "TOOL_CALL_END" && names.get(event.toolCallId) === "pick") {
      given.push(giveResult(shared.worker, runId, event.toolCallId, { result: { color: "red" } }));
    }
  };
  client.agent.addMessage(user("Hello"));
  const { forwardedProps, ...more } = parameters;
  const { events } = await client.run({
    runId,
    onEvent,
    tools: [PICK],
    forwardedProps: { agentId, ...forwardedProps },
    ...more,
  });
  await Promise.all(given);
  return events;
}

/** What a server tool gave differs between the two servers; everything else is the same. */
const withoutTime = (lines) => lines.map((line) => line.replace(/(RESULT \S+ )\{"(time|iso)":.*/, "$1the time"));

const SCENARIOS = {
  "text alone": [says("Hello ", "there.")],
  "a server tool": [calls([["current_time", {}]], { before: ["Let me look."] }), says("It is noon.")],
  "a front-end tool": [calls([["pick", { palette: "warm" }]], { before: ["Let me ", "see."] }), says("Red.")],
  "a mixed turn": [
    calls([["pick", { palette: "warm" }], ["current_time", {}]], { before: ["Both."] }),
    says("Red at noon."),
  ],
  "a server tool before a front-end tool": [
    calls([["current_time", {}]]),
    calls([["pick", { palette: "warm" }]]),
    says("Red."),
  ],
  "two front-end calls": [calls([["pick", { palette: "warm" }], ["pick", { palette: "cold" }]]), says("Red.")],
};

for (const [scenario, replies] of Object.entries(SCENARIOS)) {
  test(`${scenario} gives the same events as from an OpenAI upstream [6]`, async () => {
    for (const reply of replies) shared.upstream.reply(reply);
    const expected = withoutTime(outline(await runClient("stub")));
    for (const reply of replies) shared.upstream.reply(reply);
    assert.deepEqual(withoutTime(outline(await runClient("helper"))), expected);
    assert.equal(expected.at(-1), "RUN_FINISHED");
  });
}

test("the model behind the server is asked as if there were no server between [2.1, 2.3]", async () => {
  shared.upstream.reply(calls([["current_time", {}]], { before: ["First."] }));
  shared.upstream.reply(calls([["pick", { palette: "warm" }]], { before: ["Second."] }));
  shared.upstream.reply(answer(text("Red."), usage(7, 5), finish()));
  const input = { context: [{ description: "Page", value: "Grid" }], forwardedProps: { modelSettings: { topP: 0.5 } } };
  const events = await runClient("helper", input);
  const [first, , last] = shared.upstream.requests;
  assert.match(systemText(first), /Be brief\.[^]*Page: Grid/);
  assert.equal(last.body.top_p, 0.5);
  assert.deepEqual(
    last.body.messages.filter(({ role }) => role !== "system").map((message) => [
      message.role,
      textOf(message),
      ...(message.tool_calls ?? []).map(({ function: { name, arguments: args } }) => `${name} ${args}`),
    ]),
    [
      ["user", "Hello"],
      ["assistant", "First.", "current_time {}"],
      ["tool", '{"time":"noon"}'],
      ["assistant", "Second.", 'pick {"palette":"warm"}'],
      ["tool", '{"color":"red"}'],
    ],
  );
  assert.deepEqual(events.at(-1).usage, [
    { provider: "mastra", model: "helper", inputTokens: 7, outputTokens: 5, totalTokens: 12 },
  ]);
});

test("pictures and files reach the model behind the server [2.1]", async () => {
  shared.upstream.reply(says("I see."));
  const source = (mimeType) => ({ type: "data", value: "QUJD", mimeType });
  const content = [
    { type: "text", text: "What is this?" },
    { type: "image", source: source("image/png") },
    { type: "document", source: source("application/pdf"), metadata: { filename: "a.pdf" } },
  ];
  await run(shared.worker, runInput({ agent: "helper", messages: [user(content)] }));
  assert.deepEqual(shared.upstream.requests[0].body.messages.at(-1).content, [
    { type: "text", text: "What is this?" },
    { type: "image_url", image_url: { url: "data:image/png;base64,QUJD" } },
    { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,QUJD" } },
  ]);
});

test("an answer that must fit a schema streams as text [2.1]", async () => {
  shared.upstream.reply(says('{"n":', "1}"));
  const schema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
  const input = runInput({ agent: "helper", forwardedProps: { structuredOutput: { schema } } });
  const deltas = (await run(shared.worker, input)).flatMap(({ delta }) => delta ?? []);
  assert.equal(deltas.join(""), '{"n":1}');
});

test("a forced call is made once [2.1]", async () => {
  shared.upstream.reply(calls([["current_time", {}]]));
  shared.upstream.reply(says("Noon."));
  await run(shared.worker, runInput({ agent: "helper", forwardedProps: { toolChoice: "required" } }));
  assert.deepEqual(shared.upstream.requests.map(({ body }) => body.tool_choice), ["required", "auto"]);
});

test("a failing server tool is an error result, and the run goes on [2.5]", async () => {
  shared.upstream.reply(calls([["broken", {}]]));
  shared.upstream.reply(says("Sorry."));
  const events = await run(shared.worker, runInput({ agent: "helper" }));
  const { content } = events.find(({ type }) => type === "TOOL_CALL_RESULT");
  assert.equal(content, '{"error":"It is broken."}');
  assert.equal(events.at(-1).type, "RUN_FINISHED");
});

test("a call that needs an approval is an error result, and the model is told [6]", async () => {
  shared.upstream.reply(calls([["pay", {}]]));
  shared.upstream.reply(says("Sorry."));
  const events = await run(shared.worker, runInput({ agent: "helper" }));
  const { content } = events.find(({ type }) => type === "TOOL_CALL_RESULT");
  assert.match(JSON.parse(content).error, /needs an approval/);
  assert.equal(textOf(shared.upstream.requests[1].body.messages.at(-1)), content);
  assert.equal(events.at(-1).type, "RUN_FINISHED");
});

test("threads are kept here, and their history goes along [2.3]", async () => {
  const owner = fresh("owner");
  const threadId = fresh("thread");
  shared.upstream.reply(calls([["current_time", {}]], { before: ["Look."] }));
  shared.upstream.reply(says("Noon."));
  await run(shared.worker, runInput({ agent: "helper", owner, threadId, messages: [user("Time?")] }));
  shared.upstream.reply(says("Welcome."));
  await run(shared.worker, runInput({ agent: "helper", owner, threadId, messages: [user("Thanks.")] }));
  const rows = await history(shared.worker, threadId);
  assert.deepEqual(rows.map(({ role, content }) => [role, content ?? ""]), [
    ["user", "Time?"],
    ["assistant", "Look."],
    ["tool", '{"time":"noon"}'],
    ["assistant", "Noon."],
    ["user", "Thanks."],
    ["assistant", "Welcome."],
  ]);
  const told = shared.upstream.requests[2].body.messages.filter(({ role }) => role !== "system");
  assert.deepEqual(told.map((message) => [message.role, textOf(message)]), [
    ["user", "Time?"],
    ["assistant", "Look."],
    ["tool", '{"time":"noon"}'],
    ["assistant", "Noon."],
    ["user", "Thanks."],
  ]);
});

test("threads kept by the server get only what is new, each message once [6]", async () => {
  const owner = fresh("owner");
  const client = new Client(shared.worker);
  const { threadId } = client.agent;
  const forwardedProps = { resourceId: owner };
  shared.upstream.reply(calls([["current_time", {}]], { before: ["First."] }));
  shared.upstream.reply(calls([["pick", { palette: "warm" }], ["current_time", {}]], { before: ["Second."] }));
  shared.upstream.reply(says("Red."));
  await runClient("rememberer", { client, forwardedProps });
  shared.upstream.reply(says("Welcome."));
  await runClient("rememberer", { client, forwardedProps });

  const query = `agentId=rememberer&resourceId=${owner}`;
  const stored = await (await fetch(`${mastra.url}/api/memory/threads/${threadId}/messages?${query}`)).json();
  const parts = ({ type, text: words, toolInvocation }) =>
    type === "tool-invocation"
      ? [toolInvocation.state, toolInvocation.toolName, JSON.stringify(toolInvocation.args), JSON.stringify(toolInvocation.result)].join(" ")
      : (words ?? type);
  assert.deepEqual(stored.messages.map(({ role, content }) => [role, ...content.parts.map(parts)]), [
    ["user", "Hello"],
    [
      "assistant",
      "First.",
      'result current_time {} {"time":"noon"}',
      "step-start",
      "Second.",
      'result pick {"palette":"warm"} {"color":"red"}',
      'result current_time {} {"time":"noon"}',
      "step-start",
      "Red.",
    ],
    ["user", "Hello"],
    ["assistant", "Welcome."],
  ]);
  const told = shared.upstream.requests[3].body.messages.filter(({ role }) => role !== "system");
  assert.deepEqual(told.map(({ role }) => role), ["user", "assistant", "tool", "assistant", "tool", "tool", "assistant", "user"]);
});

test("a thread kept by the server is only read where the run says so [2.1]", async () => {
  const [owner, threadId] = [fresh("owner"), fresh("thread")];
  const ask = async (words, memoryOptions) => {
    const forwardedProps = memoryOptions && { memoryOptions };
    const input = runInput({ agent: "rememberer", owner, threadId, messages: [user(words)], forwardedProps });
    shared.upstream.reply(says("Yes."));
    await run(shared.worker, input);
    const told = shared.upstream.requests.at(-1).body.messages.filter(({ role }) => role === "user");
    return told.map(textOf);
  };
  assert.deepEqual(await ask("one"), ["one"]);
  assert.deepEqual(await ask("two", { readOnly: true }), ["one", "two"]);
  assert.deepEqual(await ask("three"), ["one", "three"]);
  // Without history the server stores nothing either.
  assert.deepEqual(await ask("four", { lastMessages: 0 }), ["four"]);
  assert.deepEqual(await ask("five"), ["one", "three", "five"]);
});

test("the thread routes show and change what the server keeps, for its owner alone [4]", async () => {
  const owner = fresh("owner");
  const client = new Client(shared.worker);
  const { threadId } = client.agent;
  const call = (path, init) => shared.worker.fetch(path, init);
  const of = (path, query = "") => `${path}?agentId=rememberer&resourceId=${owner}${query}`;
  shared.upstream.reply(calls([["current_time", {}]], { before: ["First."] }));
  shared.upstream.reply(calls([["pick", { palette: "warm" }]], { before: ["Second."] }));
  shared.upstream.reply(says("Red."));
  await runClient("rememberer", { client, forwardedProps: { resourceId: owner } });

  const [listed] = (await ok(await call(of("/threads")))).threads;
  assert.deepEqual([listed.id, listed.resourceId, listed.metadata], [threadId, owner, {}]);
  assert.deepEqual(await ok(await call(of(`/threads/${threadId}`))), listed);

  const [question, answered] = (await ok(await call(of(`/threads/${threadId}/messages`)))).messages;
  assert.deepEqual([question.role, question.content.parts], ["user", [{ type: "text", text: "Hello" }]]);
  const parts = answered.content.parts.map(({ type, text: words, toolInvocation }) => [type, words ?? toolInvocation]);
  assert.deepEqual(parts.map(([type, what]) => [type, what.toolName ?? what, what.state ?? "", what.result ?? ""]), [
    ["text", "First.", "", ""],
    ["tool-invocation", "current_time", "result", { time: "noon" }],
    ["text", "Second.", "", ""],
    ["tool-invocation", "pick", "result", { color: "red" }],
    ["text", "Red.", "", ""],
  ]);
  const plain = (await ok(await call(of(`/threads/${threadId}/messages`, "&format=ag-ui")))).messages;
  assert.deepEqual(plain.map(({ role, content }) => [role, content]), [
    ["user", "Hello"],
    ["assistant", "First."],
    ["tool", '{"time":"noon"}'],
    ["assistant", "Second."],
    ["tool", '{"color":"red"}'],
    ["assistant", "Red."],
  ]);
  assert.equal(new Set(plain.map(({ id }) => id)).size, plain.length);
  const newest = (await ok(await call(of(`/threads/${threadId}/messages`, "&limit=1")))).messages;
  assert.deepEqual(newest, [answered]);

  const patch = { title: "Colours", metadata: { seen: true } };
  const patched = await ok(await call(of(`/threads/${threadId}`), { method: "PATCH", json: patch }));
  assert.deepEqual([patched.title, patched.metadata], ["Colours", { seen: true }]);
  const foreign = `/threads/${threadId}?agentId=rememberer&resourceId=bob`;
  for (const init of [{}, { method: "PATCH", json: patch }, { method: "DELETE" }]) {
    await refused(await call(foreign, init), 403, "forbidden");
  }
  await refused(await call("/threads?agentId=rememberer", { json: { threadId, resourceId: "bob" } }), 403, "forbidden");

  const made = await ok(await call("/threads?agentId=rememberer", { json: { resourceId: owner, title: "Empty" } }));
  const titles = async (query) => (await ok(await call(of("/threads", query)))).threads.map(({ title }) => title);
  assert.deepEqual(await titles("&orderBy=createdAt&direction=ASC"), ["Colours", "Empty"]);
  assert.deepEqual(await titles("&orderBy=createdAt&direction=ASC&limit=1&offset=1"), ["Empty"]);
  assert.deepEqual(await titles("&q=COLOUR"), ["Colours"]);
  await ok(await call(of(`/threads/${made.id}`), { method: "DELETE" }));
  await refused(await call(of(`/threads/${made.id}`)), 404, "thread_not_found");
  assert.deepEqual(await titles(""), ["Colours"]);
});

test("a stopped run stops the server's model [D11]", async () => {
  const reached = shared.upstream.next();
  const stream = await openRun(shared.worker, runInput({ agent: "helper" }));
  const exchange = await reached;
  exchange.head();
  await exchange.writeAll(text("Once"));
  await stream.until("TEXT_MESSAGE_CONTENT");
  await stream.abandon();
  let isClosed = false;
  exchange.closedByPeer.then(() => (isClosed = true));
  await eventually(
    async () => {
      await exchange.writeAll(text(" more"));
      return isClosed;
    },
    (closed) => closed,
  );
});

test("failures of the server and of its model are failures of the run [2.4, D14]", async () => {
  const codeOf = async (members, ...replies) => {
    for (const reply of replies) shared.upstream.reply(reply);
    return (await run(shared.worker, runInput(members))).at(-1).code;
  };
  const cut = async (exchange) => {
    exchange.head();
    await exchange.writeAll(text("Hel"));
    exchange.end();
  };
  assert.equal(await codeOf({ agent: "helper" }, refuses(401)), "upstream_error");
  assert.equal(await codeOf({ agent: "helper" }, cut, says("Once more.")), "upstream_truncated");
  assert.equal(await codeOf({ agent: "helper" }, answer(text("Hel"), finish("length"))), "output_truncated");
  assert.equal(await codeOf({ agent: "helper" }, answer(text("Hel"), finish("content_filter"))), "content_filtered");
  assert.equal(
    await codeOf({ agent: "helper", tools: [PICK] }, answer(call("pick", '{"palette":'), finish("length"))),
    "output_truncated",
  );
  const refused = await shared.worker.fetch("/run", { json: runInput({ agent: "nobody" }) });
  assert.equal(refused.status, 502);
  await refused.text();
});
