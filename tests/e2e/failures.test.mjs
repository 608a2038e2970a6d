// Runs that fail: before the stream as HTTP (D3, D14), after it as RUN_ERROR with everything closed (2.4).

import assert from "node:assert/strict";
import { outline } from "./support/judge.mjs";
import { answer, call, calls, finish, frame, more, refuses, says, text } from "./support/openai.mjs";
import { history, openRun, refusedRun, run, runInput, tool, user } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";
import { gate } from "./support/upstream.mjs";

const shared = suite({
  agents: (stub) => [
    stub({ maxRetries: 0 }),
    stub({ id: "retrying" }),
    stub({ id: "hasty", firstResponseWaitMs: 60, maxRetries: 0 }),
    stub({ id: "instant", firstResponseWaitMs: 0 }),
    stub({ id: "hasty-retrying", firstResponseWaitMs: 60 }),
    stub({ id: "idle", upstreamIdleTimeoutMs: 1000, maxRetries: 0 }),
    stub({ id: "bounded", runTimeoutMs: 1500, maxRetries: 0 }),
    stub({ id: "frank", showErrors: true, maxRetries: 0 }),
    stub({ id: "limited", maxRetries: 0, modelSettings: { maxOutputTokens: 5 } }),
    stub({ id: "two-steps", maxSteps: 2, tools: ["current_time"] }),
  ],
});

const textThen = (...tail) => [
  "RUN_STARTED",
  "STEP_STARTED step-1",
  "TEXT_MESSAGE_START m1",
  "TEXT_MESSAGE_CONTENT m1 The answer is",
  "TEXT_MESSAGE_END m1",
  "STEP_FINISHED step-1",
  ...tail,
];

const cutOff = async (exchange) => {
  exchange.head();
  await exchange.writeAll(text("The answer is"));
  exchange.destroy();
};

test("a failure inside the stream closes text and step, then says RUN_ERROR [2.4]", async (t) => {
  const cases = [
    ["a body that ends in the middle", answer(text("The answer is")), "upstream_truncated"],
    ["a connection that dies", cutOff, "upstream_truncated"],
    ["an event that is no JSON", answer(text("The answer is"), 'data: {"choices":[\n\n', finish()), "invalid_upstream_response"],
    ["an error object", answer(text("The answer is"), frame({ error: { message: "private words", type: "server_error" } }), finish().at(-1)), "upstream_error"],
    ["a content filter", answer(text("The answer is"), finish("content_filter")), "content_filtered"],
    ["a length that nobody asked for", answer(text("The answer is"), finish("length")), "output_truncated"],
  ];
  for (const [name, script, code] of cases) {
    await t.test(name, async () => {
      shared.upstream.reply(script);
      const events = await run(shared.worker, runInput());
      assert.deepEqual(outline(events), textThen(`RUN_ERROR ${code}`));
      assert.doesNotMatch(events.at(-1).message, /private/);
    });
  }
});

test("a length the agent itself set is still a truncated answer [D9]", async () => {
  shared.upstream.reply(answer(text("The answer is"), finish("length")));
  assert.deepEqual(outline(await run(shared.worker, runInput({ agent: "limited" }))), textThen("RUN_ERROR output_truncated"));
});

test("a length the client set ends in RUN_FINISHED, with the reason for 1.0 peers [D9]", async () => {
  const forwardedProps = { modelSettings: { maxTokens: 5 } };
  shared.upstream.reply(answer(text("The answer is"), finish("length")));
  const newPeer = await run(shared.worker, runInput({ protocolVersion: "1.0", forwardedProps }));
  assert.deepEqual(outline(newPeer), textThen("RUN_FINISHED"));
  assert.deepEqual(newPeer.at(-1).result, { finishReason: "length" });
  shared.upstream.reply(answer(text("The answer is"), finish("length")));
  const oldPeer = await run(shared.worker, runInput({ forwardedProps }));
  assert.deepEqual(Object.keys(oldPeer.at(-1)).sort(), ["runId", "threadId", "type"]);
});

test("arguments cut at a limit are never a call [D8, D9]", async () => {
  shared.upstream.reply(answer(call("add", '{"a":'), more('1,"b'), finish("length")));
  const events = await run(shared.worker, runInput({ tools: [tool("add")] }));
  assert.deepEqual(outline(events), ["RUN_STARTED", "STEP_STARTED step-1", "STEP_FINISHED step-1", "RUN_ERROR output_truncated"]);
});

test("a call that is whole, though the finish reason is stop, is a call [D9]", async () => {
  shared.upstream.reply(answer(call("current_time", ""), finish("stop")));
  shared.upstream.reply(says("Noon."));
  const events = await run(shared.worker, runInput({ agent: "two-steps" }));
  assert.equal(events.filter(({ type }) => type === "TOOL_CALL_RESULT").length, 1);
  assert.equal(events.at(-1).type, "RUN_FINISHED");
});

test("a model that calls on its last step fails the run [D10]", async () => {
  shared.upstream.reply(calls([["current_time", {}]]));
  shared.upstream.reply(calls([["current_time", {}]]));
  const events = await run(shared.worker, runInput({ agent: "two-steps" }));
  assert.equal(events.at(-1).code, "max_steps_exceeded");
});

test("a silent upstream ends the run after upstreamIdleTimeoutMs [D10]", async () => {
  const asked = shared.upstream.next();
  const running = run(shared.worker, runInput({ agent: "idle" }));
  const exchange = await asked;
  exchange.head();
  await exchange.writeAll(text("The answer is"));
  assert.deepEqual(outline(await running), textThen("RUN_ERROR upstream_timeout"));
  await exchange.closedByPeer;
});

test("a run that takes longer than runTimeoutMs ends [D10]", async () => {
  const asked = shared.upstream.next();
  const running = run(shared.worker, runInput({ agent: "bounded" }));
  const exchange = await asked;
  exchange.head();
  await exchange.writeAll(text("The answer is"));
  assert.deepEqual(outline(await running), textThen("RUN_ERROR run_timeout"));
  await exchange.closedByPeer;
});

test("showErrors says the failure in a text message that is not stored [2.4]", async () => {
  const input = runInput({ agent: "frank", owner: "frank" });
  shared.upstream.reply(cutOff);
  const events = await run(shared.worker, input);
  const texts = outline(events).filter((line) => line.startsWith("TEXT_MESSAGE_CONTENT"));
  assert.equal(texts[0], "TEXT_MESSAGE_CONTENT m1 The answer is");
  assert.match(texts[1], /^TEXT_MESSAGE_CONTENT m2 The answer was interrupted: \S/);
  assert.equal(texts.length, 2);
  assert.equal(events.at(-1).type, "RUN_ERROR");
  const rows = await history(shared.worker, input.threadId);
  assert.deepEqual(rows.map(({ content }) => content), ["Hello", "The answer is"]);
});

test("a refusal before the stream is HTTP [D14]", async (t) => {
  for (const status of [400, 401, 403, 404, 500, 503]) {
    await t.test(`upstream ${status}`, async () => {
      shared.upstream.reply(refuses(status));
      const body = await refusedRun(shared.worker, runInput(), 502);
      assert.doesNotMatch(JSON.stringify(body), /private|127\.0\.0\.1/);
    });
  }
  await t.test("upstream 429", async () => {
    shared.upstream.reply(refuses(429, { headers: { "retry-after": "7" } }));
    const response = await shared.worker.fetch("/run", { json: runInput() });
    assert.equal(response.status, 429);
    assert.equal(response.headers.get("retry-after"), "7");
    assert.match((await response.json()).code, /^[a-z_]+$/);
  });
  await t.test("a connection that is cut before the head", async () => {
    shared.upstream.reply((exchange) => exchange.destroy());
    await refusedRun(shared.worker, runInput(), 502);
  });
});

test("a context that does not fit fails with its own code [2.4]", async () => {
  const tooLong = refuses(400, { body: { error: { message: "private", type: "invalid_request_error", code: "context_length_exceeded" } } });
  shared.upstream.reply(tooLong);
  const asked = shared.upstream.next();
  const response = shared.worker.fetch("/run", {
    json: runInput({ messages: [user("one"), { id: "a1", role: "assistant", content: "two" }, user("three"), { id: "a2", role: "assistant", content: "four" }, user("five")] }),
  });
  // After one retry with a smaller window it gives up.
  await tooLong(await asked);
  const body = await (await response).json();
  assert.equal(body.code, "context_length_exceeded");
  const [first, second] = shared.upstream.requests;
  assert.ok(second.body.messages.length < first.body.messages.length);
});

test("after firstResponseWaitMs the stream starts, and a refusal is RUN_ERROR [D14]", async () => {
  for (const [status, code] of [[500, "upstream_error"], [429, "upstream_rate_limited"]]) {
    const asked = shared.upstream.next();
    const stream = await openRun(shared.worker, runInput({ agent: "hasty" }));
    await stream.until("RUN_STARTED");
    await refuses(status)(await asked);
    const events = await stream.rest();
    assert.equal(events.at(-1).code, code);
    assert.doesNotMatch(events.at(-1).message, /private/);
  }
});

test("a firstResponseWaitMs that is over before the upstream is asked starts the stream at once [D14]", async () => {
  const asked = shared.upstream.next();
  const stream = await openRun(shared.worker, runInput({ agent: "instant", owner: "olga" }));
  await stream.until("RUN_STARTED");
  await says("The answer is")(await asked);
  assert.deepEqual(outline(await stream.rest()), textThen("RUN_FINISHED"));
});

test("the head of the answer waits for the upstream's head [D14]", async () => {
  const asked = shared.upstream.next();
  let hasHead = false;
  const opening = openRun(shared.worker, runInput()).finally(() => (hasHead = true));
  const exchange = await asked;
  // A second request is served meanwhile, so the answer to the first could have come.
  assert.equal((await shared.worker.fetch("/agents")).status, 200);
  assert.equal(hasHead, false);
  exchange.head();
  const stream = await opening;
  await exchange.writeAll(text("ok"), finish());
  exchange.end();
  await stream.rest();
});

test("a failed first attempt is retried before anything was sent [2.4]", async (t) => {
  const first = { "a 503": refuses(503), "a 500": refuses(500), "a cut connection": (exchange) => exchange.destroy() };
  for (const [name, script] of Object.entries(first)) {
    await t.test(name, async () => {
      shared.upstream.reply(script);
      shared.upstream.reply(says("The answer is"));
      assert.deepEqual(outline(await run(shared.worker, runInput({ agent: "retrying" }))), textThen("RUN_FINISHED"));
      const [one, two] = shared.upstream.requests.slice(-2);
      assert.equal(one.text, two.text);
    });
  }
});

test("Retry-After is waited for [2.4]", async () => {
  shared.upstream.reply(refuses(429, { headers: { "retry-after": "1" } }));
  shared.upstream.reply(says("The answer is"));
  assert.deepEqual(outline(await run(shared.worker, runInput({ agent: "retrying" }))), textThen("RUN_FINISHED"));
  const [one, two] = shared.upstream.requests;
  // Two clocks, of which one counts whole milliseconds.
  assert.ok(two.atMs - one.atMs >= 990, `${two.atMs - one.atMs} ms`);
});

test("a Retry-After longer than the time left fails at once [D14]", async () => {
  shared.upstream.reply(refuses(429, { headers: { "retry-after": "60" } }));
  const startMs = performance.now();
  const response = await shared.worker.fetch("/run", { json: runInput({ agent: "retrying" }) });
  assert.equal(response.status, 429);
  assert.equal(response.headers.get("retry-after"), "60");
  assert.ok(performance.now() - startMs < 20_000, "it did not wait for it");
  await response.text();
});

test("maxRetries attempts follow the first, and the run's own setting wins [2.1, 2.4]", async () => {
  for (let attempt = 0; attempt < 2; attempt += 1) shared.upstream.reply(refuses(503));
  await refusedRun(shared.worker, runInput({ agent: "retrying", forwardedProps: { modelSettings: { maxRetries: 1 } } }), 502);
  assert.equal(shared.upstream.requests.length, 2);
});

test("a refusal that cannot heal is not retried", async () => {
  shared.upstream.reply(refuses(400));
  await refusedRun(shared.worker, runInput({ agent: "retrying" }), 502);
  assert.equal(shared.upstream.requests.length, 1);
});

test("nothing is retried once text was sent [2.4]", async () => {
  shared.upstream.reply(cutOff);
  assert.deepEqual(outline(await run(shared.worker, runInput({ agent: "retrying" }))), textThen("RUN_ERROR upstream_truncated"));
  assert.equal(shared.upstream.requests.length, 1);
});

test("a retry may go on after the stream has started [D14]", async () => {
  const refuse = gate();
  shared.upstream.reply(async (exchange) => {
    await refuse.opened;
    await refuses(503)(exchange);
  });
  shared.upstream.reply(says("The answer is"));
  const stream = await openRun(shared.worker, runInput({ agent: "hasty-retrying" }));
  await stream.until("RUN_STARTED");
  refuse.open();
  assert.deepEqual(outline(await stream.rest()), textThen("RUN_FINISHED"));
});

test("a failed run stores its closed segments [2.3]", async () => {
  const input = runInput({ owner: "olga" });
  shared.upstream.reply(cutOff);
  const events = await run(shared.worker, input);
  const { messageId } = events.find(({ type }) => type === "TEXT_MESSAGE_START");
  assert.deepEqual(await history(shared.worker, input.threadId), [
    { id: input.messages[0].id, role: "user", content: "Hello" },
    { id: messageId, role: "assistant", content: "The answer is" },
  ]);
});

test("a run refused before its stream keeps its message and gives its id back [D12]", async () => {
  const input = runInput({ owner: "olga" });
  shared.upstream.reply(refuses(400));
  await refusedRun(shared.worker, input, 502);
  assert.deepEqual(await history(shared.worker, input.threadId), [{ id: input.messages[0].id, role: "user", content: "Hello" }]);
  shared.upstream.reply(says("The answer is"));
  assert.deepEqual(outline(await run(shared.worker, input)), textThen("RUN_FINISHED"));
  assert.deepEqual((await history(shared.worker, input.threadId)).map(({ content }) => content), ["Hello", "The answer is"]);
});
