// Every limit of README's table, at the edge of a Worker that has small ones: refused just above, taken just below.

import assert from "node:assert/strict";
import { calls, finish, says, text, usage } from "./support/openai.mjs";
import { eventually, fresh, giveResult, history, ok, openRun, postResult, refused, run, runInput, tool, user } from "./support/run.mjs";
import { Socket } from "./support/socket.mjs";
import { API_KEY, stubAgent, suite, test } from "./support/suite.mjs";
import { startWorker } from "./support/worker.mjs";

const shared = suite({
  vars: {
    RUN_BODY_MAX_BYTES: 20_000,
    RESULT_BODY_MAX_BYTES: 1000,
    MESSAGES_MAX_COUNT: 3,
    TOOLS_MAX_COUNT: 2,
    JSON_MAX_DEPTH: 12,
    SCHEMA_MAX_BYTES: 500,
    SCHEMA_MAX_DEPTH: 6,
    ID_MAX_BYTES: 64,
    HEADERS_MAX_BYTES: 4096,
    RESULTS_PER_CALL_MAX_COUNT: 3,
    SOCKET_FRAMES_MAX_COUNT: 4,
    CONCURRENT_RUNS_MAX_COUNT: 2,
  },
});

const nested = (levels) => (levels === 0 ? 1 : { a: nested(levels - 1) });
const list = (count, make) => Array.from({ length: count }, (_, index) => make(index));

/** Runs what is just within, and wants what is just over refused with a sentence that names the limit. */
async function bounded(within, over, status, sentence) {
  shared.upstream.reply(says("ok"));
  assert.equal((await run(shared.worker, runInput(within))).at(-1).type, "RUN_FINISHED");
  const body = await refused(await shared.worker.fetch("/run", { json: runInput(over) }), status);
  assert.match(body.error + JSON.stringify(body.issues ?? ""), sentence);
}

test("RUN_BODY_MAX_BYTES", () =>
  bounded({ messages: [user("x".repeat(19_000))] }, { messages: [user("x".repeat(20_000))] }, 413, /larger than 20000 bytes/));

test("MESSAGES_MAX_COUNT", () =>
  bounded({ messages: list(3, () => user("x")) }, { messages: list(4, () => user("x")) }, 413, /more than 3 messages/));

test("TOOLS_MAX_COUNT", () =>
  bounded({ tools: list(2, (at) => tool(`f${at}`)) }, { tools: list(3, (at) => tool(`f${at}`)) }, 413, /more than 2 tools/));

test("JSON_MAX_DEPTH", () => bounded({ state: nested(11) }, { state: nested(12) }, 413, /more than 12 levels/));

test("SCHEMA_MAX_BYTES", async () => {
  const schema = (bytes) => ({ tools: [tool("f", { type: "object", description: "x".repeat(bytes) })] });
  await bounded(schema(400), schema(500), 413, /parameters of a tool are larger than 500 bytes/);
  const output = (bytes) => ({ forwardedProps: { structuredOutput: { schema: { type: "object", description: "x".repeat(bytes) } } } });
  await bounded(output(400), output(500), 413, /schema of the output are larger than 500 bytes/);
});

test("SCHEMA_MAX_DEPTH", () =>
  bounded({ tools: [tool("f", nested(6))] }, { tools: [tool("f", nested(7))] }, 413, /more than 6 levels/));

test("ID_MAX_BYTES", () =>
  bounded({ runId: "r".repeat(63) + "1" }, { runId: "r".repeat(65) }, 400, /"field":"\/runId".*at most 64 bytes/));

test("HEADERS_MAX_BYTES", async () => {
  const ask = (bytes) => shared.worker.fetch("/agents", { headers: { "x-long": "x".repeat(bytes) } });
  await ok(await ask(3000));
  assert.equal((await refused(await ask(4096), 413)).code, "headers_too_large");
});

/** A run of an owner's that waits for the result of a call. */
async function waiting(owner) {
  shared.upstream.reply(calls([["one", {}]]));
  const input = runInput({ owner, tools: [tool("one")] });
  const stream = await openRun(shared.worker, input);
  const { toolCallId } = await stream.until("TOOL_CALL_END");
  return { stream, toolCallId, runId: input.runId };
}

test("RESULT_BODY_MAX_BYTES and RESULTS_PER_CALL_MAX_COUNT", async () => {
  const { stream, toolCallId, runId } = await waiting();
  const held = shared.upstream.next();
  await refused(await postResult(shared.worker, runId, toolCallId, { result: "x".repeat(1000) }), 413);
  for (let count = 0; count < 2; count += 1) await giveResult(shared.worker, runId, toolCallId, { result: 1 });
  await refused(await postResult(shared.worker, runId, toolCallId, { result: 2 }), 409);
  const response = await postResult(shared.worker, runId, toolCallId, { result: 1 });
  assert.equal(response.headers.get("retry-after"), "60");
  assert.equal((await refused(response, 429)).code, "too_many_results");
  await says("ok")(await held);
  await stream.rest();
});

test("SOCKET_FRAMES_MAX_COUNT", async () => {
  shared.upstream.reply(calls([["one", {}]]));
  const socket = new Socket(shared.worker, runInput({ tools: [tool("one")] }));
  await socket.until("TOOL_CALL_END");
  for (let count = 0; count < 3; count += 1) socket.send("x");
  const { code, reason } = await socket.closed();
  assert.equal(code, 4429);
  assert.match(reason, /More than 4 frames/);
  assert.equal(socket.rejections.length, 3);
});

test("CONCURRENT_RUNS_MAX_COUNT: runs at work count, those that wait do not [2.2]", async () => {
  const owner = fresh("owner");
  const parked = [await waiting(owner), await waiting(owner), await waiting(owner)];
  const working = [];
  for (let count = 0; count < 2; count += 1) {
    const asked = shared.upstream.next();
    const stream = openRun(shared.worker, runInput({ owner }));
    const exchange = await asked;
    exchange.head();
    working.push({ stream: await stream, exchange });
  }
  const response = await shared.worker.fetch("/run", { json: runInput({ owner }) });
  assert.equal(response.headers.get("retry-after"), "5");
  assert.equal((await refused(response, 429)).code, "too_many_runs");
  shared.upstream.reply(says("another's"));
  await run(shared.worker, runInput({ owner: fresh("owner") }));
  for (const { stream, exchange } of working) {
    await exchange.writeAll(text("done"), finish());
    exchange.end();
    await stream.rest();
  }
  shared.upstream.reply(says("now"));
  await run(shared.worker, runInput({ owner }));
  for (const { stream } of parked) await stream.abandon();
});

const limited = async (t, vars, options = {}) => {
  const worker = await startWorker({ agents: [stubAgent(shared.upstream)], vars, secrets: { OPENAI_API_KEY: API_KEY }, ...options });
  t.after(() => worker.stop());
  return worker;
};

test("TOKENS_PER_DAY_MAX_COUNT and STORED_MAX_BYTES", async (t) => {
  const worker = await limited(t, { TOKENS_PER_DAY_MAX_COUNT: 30, STORED_MAX_BYTES: 5000 });
  const spend = async (owner, tokens, words = "Hello") => {
    shared.upstream.reply(async (exchange) => {
      exchange.head();
      await exchange.writeAll(text("ok"), finish().slice(0, 1), usage(tokens, 1), finish().slice(1));
      exchange.end();
    });
    assert.equal((await run(worker, runInput({ owner, messages: [user(words)] }))).at(-1).type, "RUN_FINISHED");
  };
  const [ada, bob] = [fresh("owner"), fresh("owner")];
  await spend(ada, 10);
  await spend(ada, 18);
  const response = await worker.fetch("/run", { json: runInput({ owner: ada }) });
  const wait = Number(response.headers.get("retry-after"));
  assert.ok(wait > 0 && wait <= 86_400, `${wait}`);
  assert.equal((await refused(response, 429)).code, "tokens_used_up");
  await spend(bob, 1, "x".repeat(5000));
  assert.equal((await refused(await worker.fetch("/run", { json: runInput({ owner: bob }) }), 413)).code, "storage_full");
});

test("ATTACHMENT_MAX_BYTES, where no bucket is bound", async (t) => {
  const worker = await limited(t, { ATTACHMENT_MAX_BYTES: 100_000 });
  const showing = (length) => user([{ type: "image", source: { type: "data", value: "A".repeat(length), mimeType: "image/png" } }]);
  const send = async (message, members) => {
    shared.upstream.reply(says("ok"));
    const input = runInput({ messages: [message], ...members });
    await run(worker, input);
    return input.threadId;
  };
  const kept = showing(100_000);
  const threadId = await send(kept, { owner: "ada" });
  assert.deepEqual((await history(worker, threadId))[0], kept);
  const larger = showing(100_001);
  const body = await refused(await worker.fetch("/run", { json: runInput({ owner: "ada", messages: [larger] }) }), 413, "body_too_large");
  assert.match(body.error, /100000 bytes/);
  // What is not stored may be as long as the body.
  await send(larger, {});
  await send(larger, { owner: "ada", forwardedProps: { memoryOptions: { readOnly: true } } });
});

test("RUNS_PER_OWNER and RUNS_PER_ADDRESS, where they are bound", async (t) => {
  // The platform's copy on this machine counts by the minute of the clock.
  await eventually(() => Date.now() % 60_000, (ms) => ms < 45_000);
  const simple = (limit) => ({ namespace_id: `limit-${limit}`, simple: { limit, period: 60 } });
  const worker = await limited(t, {}, { ratelimits: { RUNS_PER_OWNER: simple(2), RUNS_PER_ADDRESS: simple(3) } });
  const attempt = (owner, address) =>
    worker.fetch("/run", { json: runInput({ owner }), headers: { "cf-connecting-ip": address } });
  const taken = async (owner, address) => {
    shared.upstream.reply(says("ok"));
    const response = await attempt(owner, address);
    assert.match(await response.text(), /RUN_FINISHED/);
  };
  await taken("ada", "192.0.2.1");
  await taken("ada", "192.0.2.2");
  const response = await attempt("ada", "192.0.2.3");
  assert.equal(response.headers.get("retry-after"), "60");
  assert.equal((await refused(response, 429)).code, "rate_limited");
  await taken("bob", "192.0.2.2");
  await taken("cid", "192.0.2.2");
  await refused(await attempt("dan", "192.0.2.2"), 429);
  assert.ok(!worker.logText().includes("no_rate_limit"));
  await ok(await shared.worker.fetch("/agents"));
  for (const binding of ["RUNS_PER_OWNER", "RUNS_PER_ADDRESS"]) {
    await shared.worker.logged(new RegExp(`"event":"no_rate_limit","binding":"${binding}"`));
  }
});
