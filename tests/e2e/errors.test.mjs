// Every error status of D2, and who is let in: contract 1 (D2, D4) and 9.

import assert from "node:assert/strict";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { calls, refuses, says } from "./support/openai.mjs";
import { fresh, giveResult, history, ok, openRun, postResult, readRun, refused, refusedRun, run, runInput, tool, user } from "./support/run.mjs";
import { API_KEY, stubAgent, suite, test } from "./support/suite.mjs";
import { startWorker } from "./support/worker.mjs";

const shared = suite({
  agents: (stub) => [stub(), stub({ id: "keyless", apiKeySecret: "NO_SUCH_SECRET" }), stub({ id: "impatient", toolTimeoutMs: 50 })],
});

const post = (path, body, headers = { "content-type": "application/json" }) =>
  shared.worker.fetch(path, { method: "POST", body, headers });

test("400: a body that is no JSON, or not an object", async () => {
  for (const path of ["/run", "/threads"]) {
    for (const body of ["", "{", "[]", "null", "7", '{"a":1}x']) await refused(await post(path, body), 400);
  }
});

test("400: missing and wrong members are named, all at once [2.1]", async () => {
  const { issues } = await refused(await post("/run", JSON.stringify({ threadId: 1, messages: {}, tools: "x" })), 400);
  assert.deepEqual(issues.map(({ field }) => field).sort(), ["/messages", "/runId", "/threadId", "/tools"]);
});

test("400: a wrong type is named by its pointer, at any depth [2.1]", async () => {
  const cases = [
    [{ runId: "" }, "/runId"],
    [{ runId: "a\u0007" }, "/runId"],
    [{ runId: "x".repeat(1025) }, "/runId"],
    [{ threadId: "é".repeat(513) }, "/threadId"],
    [{ messages: [{ id: "u1", role: "user" }] }, "/messages/0/content"],
    [{ messages: [user("a"), { id: 7, role: "user", content: "b" }] }, "/messages/1/id"],
    [{ messages: [{ id: "u1", content: "b" }] }, "/messages/0/role"],
    [{ messages: [{ id: "t1", role: "tool", content: "b" }] }, "/messages/0/toolCallId"],
    [{ messages: [{ id: "u1", role: "user", content: [{ type: "text", text: 5 }] }] }, "/messages/0/content/0/text"],
    [{ messages: [{ id: "a1", role: "assistant", toolCalls: [{ id: "c", type: "function", function: { name: "f", arguments: {} } }] }] }, "/messages/0/toolCalls/0/function/arguments"],
    [{ tools: [{ name: 5, description: "d", parameters: {} }] }, "/tools/0/name"],
    [{ context: [{ description: "d", value: 5 }] }, "/context/0/value"],
    [{ protocolVersion: 1 }, "/protocolVersion"],
    [{ forwardedProps: { agentId: 5 } }, "/forwardedProps/agentId"],
    [{ forwardedProps: { resourceId: ["x"] } }, "/forwardedProps/resourceId"],
  ];
  for (const [members, field] of cases) {
    const { issues } = await refusedRun(shared.worker, { ...runInput(), ...members }, 400);
    assert.deepEqual(issues?.map((issue) => issue.field), [field], JSON.stringify(members).slice(0, 80));
  }
});

test("401 and 403: bearer tokens decide who the caller is [D4]", async (t) => {
  const worker = await startWorker({
    agents: [stubAgent(shared.upstream)],
    vars: { AUTH: { mode: "bearer", tokens: [{ secret: "TOKEN_ANN", owner: "ann" }, { secret: "TOKEN_BOB", owner: "bob" }, { secret: "TOKEN_ALL", owner: "*" }] } },
    secrets: { OPENAI_API_KEY: API_KEY, TOKEN_ANN: "token-of-ann", TOKEN_BOB: "token-of-bob", TOKEN_ALL: "token-of-all" },
  });
  t.after(() => worker.stop());
  const as = (who, path, init = {}) =>
    worker.fetch(path, { ...init, headers: { ...(who ? { authorization: `Bearer ${who}` } : {}), ...init.headers } });
  const ann = "token-of-ann";
  const bob = "token-of-bob";

  await t.test("no or wrong credentials are 401, also on the stream and the callback", async () => {
    for (const who of [undefined, "", "wrong", "token-of-ann2"]) {
      await refused(await as(who, "/agents"), 401);
      await refused(await as(who, "/threads?resourceId=ann"), 401);
      await refused(await as(who, "/run", { json: runInput() }), 401);
      await refused(await as(who, "/runs/r/tool-calls/c/result", { json: {} }), 401);
    }
    await refused(await as(undefined, "/agents", { headers: { authorization: "Basic dG9rZW4tb2YtYW5u" } }), 401);
  });

  await t.test("a preflight needs no credentials", async () => {
    const response = await worker.fetch("/run", { method: "OPTIONS", headers: { "access-control-request-method": "POST", "access-control-request-headers": "authorization" } });
    assert.equal(response.status, 204);
  });

  await t.test("the principal owns what it makes, and lists its own without a resourceId", async () => {
    const thread = await ok(await as(ann, "/threads", { json: {} }));
    assert.equal(thread.resourceId, "ann");
    assert.deepEqual((await ok(await as(ann, "/threads"))).threads.map(({ id }) => id), [thread.id]);
    assert.deepEqual((await ok(await as(bob, "/threads"))).threads, []);
    await refused(await as(bob, `/threads/${thread.id}`), 403);
    await refused(await as(bob, `/threads/${thread.id}/messages`), 403);
    await refused(await as(bob, `/threads/${thread.id}`, { method: "PATCH", json: { title: "x" } }), 403);
    await refused(await as(bob, `/threads/${thread.id}`, { method: "DELETE" }), 403);
  });

  await t.test("a resourceId that is not the principal's is 403 everywhere", async () => {
    await refused(await as(ann, "/threads?resourceId=bob"), 403);
    await refused(await as(ann, "/threads", { json: { resourceId: "bob" } }), 403);
    await refused(await as(ann, "/run", { json: runInput({ owner: "bob" }) }), 403);
  });

  await t.test("identity alone does not make a run persistent; an empty resourceId does [D5]", async () => {
    for (const [forwardedProps, status] of [[{}, 404], [{ resourceId: "" }, 200], [{ resourceId: "ann" }, 200]]) {
      shared.upstream.reply(says("ok"));
      const input = runInput({ forwardedProps });
      await readRun(await as(ann, "/run", { json: input }), input);
      assert.equal((await as(ann, `/threads/${input.threadId}`)).status, status, JSON.stringify(forwardedProps));
    }
  });

  await t.test("an existing thread of the principal is used without a resourceId, a foreign one is 403 [D5]", async () => {
    const { id: threadId } = await ok(await as(ann, "/threads", { json: {} }));
    shared.upstream.reply(says("ok"));
    const input = runInput({ threadId });
    await readRun(await as(ann, "/run", { json: input }), input);
    assert.equal((await ok(await as(ann, `/threads/${threadId}/messages`))).total, 2);
    await refused(await as(bob, "/run", { json: runInput({ threadId }) }), 403);
  });

  await t.test("only its owner may answer a run's calls [3]", async () => {
    shared.upstream.reply(calls([["one", {}]]));
    shared.upstream.reply(says("ok"));
    const input = runInput({ tools: [tool("one")] });
    const stream = await openRun(worker, input, { headers: { authorization: `Bearer ${ann}` } });
    const { toolCallId } = await stream.until("TOOL_CALL_END");
    const path = `/runs/${input.runId}/tool-calls/${toolCallId}/result`;
    await refused(await as(bob, path, { json: { result: 1 } }), 403);
    await ok(await as(ann, path, { json: { result: 1 } }));
    await stream.rest();
  });

  await t.test("a token for all speaks for whom it names", async () => {
    const thread = await ok(await as("token-of-all", "/threads", { json: { resourceId: "cid" } }));
    assert.equal(thread.resourceId, "cid");
    assert.equal((await ok(await as("token-of-all", "/threads?resourceId=cid"))).total, 1);
    await refused(await as("token-of-all", "/threads"), 400);
  });
});

test("404: an unknown agent, before any stream [2.1]", async () => {
  await refusedRun(shared.worker, runInput({ agent: "nobody" }), 404);
});

test("409: another result of a call, a second run of one id", async () => {
  shared.upstream.reply(calls([["one", {}], ["two", {}]]));
  shared.upstream.reply(says("ok"));
  const input = runInput({ owner: "eve", tools: [tool("one"), tool("two")] });
  const stream = await openRun(shared.worker, input);
  const { toolCallId: one } = await stream.until("TOOL_CALL_END");
  const { toolCallId: two } = await stream.until("TOOL_CALL_END");
  await giveResult(shared.worker, input.runId, one, { result: 1 });
  await refused(await postResult(shared.worker, input.runId, one, { result: 2 }), 409, "result_conflict");
  await refusedRun(shared.worker, input, 409, "run_conflict");
  await giveResult(shared.worker, input.runId, two, { result: 2 });
  await stream.rest();
});

test("410: a call whose deadline has passed", async () => {
  shared.upstream.reply(calls([["one", {}]]));
  shared.upstream.reply(says("ok"));
  const input = runInput({ agent: "impatient", tools: [tool("one")] });
  const events = await run(shared.worker, input);
  const { toolCallId } = events.find(({ type }) => type === "TOOL_CALL_START");
  await refused(await postResult(shared.worker, input.runId, toolCallId, { result: 1 }), 410);
});

test("413: a body over the limit, told before it is read whole", async () => {
  await refused(await post("/run", JSON.stringify(runInput({ messages: [user("x".repeat(9 * 1024 * 1024))] }))), 413);
});

test("413: more JSON values than memory allows, and the limit is named", async () => {
  const dense = `[${"0,".repeat(250_000)}0]`;
  const bodies = { "/run": JSON.stringify(runInput()).replace('"state":{}', `"state":${dense}`), "/threads": dense, "/runs/r/tool-calls/c/result": dense };
  for (const [path, body] of Object.entries(bodies)) {
    const { error } = await refused(await post(path, body), 413, "body_too_large");
    assert.equal(error, "There are more than 250000 JSON values.");
  }
});

test("415: a compressed body, and what to send instead is said", async () => {
  const input = runInput();
  const plain = JSON.stringify(input);
  const bodies = { gzip: gzipSync(plain), deflate: deflateSync(plain), br: brotliCompressSync(plain) };
  for (const [encoding, body] of Object.entries(bodies)) {
    for (const path of ["/run", "/threads", "/runs/r/tool-calls/c/result"]) {
      const headers = { "content-type": "application/json", "content-encoding": encoding };
      const { error } = await refused(await post(path, body, headers), 415, "unsupported_media_type");
      assert.equal(error, "The body must not be compressed: send it without a content-encoding.");
    }
  }
  shared.upstream.reply(says("ok"));
  const response = await post("/run", plain, { "content-type": "application/json", "content-encoding": "identity" });
  await readRun(response, input);
});

test("429 and 502: what the upstream refuses, without its words [D14]", async () => {
  for (const [upstreamStatus, status] of [[429, 429], [400, 502]]) {
    shared.upstream.reply(refuses(upstreamStatus, { headers: { "retry-after": "60" } }));
    const response = await shared.worker.fetch("/run", { json: runInput() });
    if (status === 429) assert.equal(response.headers.get("retry-after"), "60");
    const body = await refused(response, status);
    assert.doesNotMatch(JSON.stringify(body), /private|http|sk-/);
  }
});

test("503: an agent without its key, with Retry-After", async () => {
  const response = await shared.worker.fetch("/run", { json: runInput({ agent: "keyless" }) });
  assert.match(response.headers.get("retry-after"), /^\d+$/);
  await refused(response, 503);
});

test("501: without a database thread routes say so, runs work, and the level is honest [9]", async (t) => {
  const worker = await startWorker({ agents: [stubAgent(shared.upstream)], secrets: { OPENAI_API_KEY: API_KEY }, without: ["DB"] });
  t.after(() => worker.stop());
  for (const [path, init] of [
    ["/threads?resourceId=x", {}],
    ["/threads", { json: { resourceId: "x" } }],
    ["/threads/t", {}],
    ["/threads/t", { method: "DELETE" }],
    ["/threads/t", { method: "PATCH", json: { title: "x" } }],
    ["/threads/t/messages", {}],
  ]) {
    await refused(await worker.fetch(path, init), 501, "persistence_not_configured");
  }
  shared.upstream.reply(calls([["one", {}]]));
  shared.upstream.reply(says("ok"));
  const input = runInput({ owner: "x", tools: [tool("one")] });
  const stream = await openRun(worker, input);
  const { toolCallId } = await stream.until("TOOL_CALL_END");
  await giveResult(worker, input.runId, toolCallId, { result: 1 });
  assert.equal((await stream.rest()).at(-1).type, "RUN_FINISHED");
  assert.equal((await ok(await worker.fetch(""))).conformanceLevel, 2);
});

test("500: a configuration that cannot be right answers config_invalid, the key but no value", async (t) => {
  const cases = [
    [/ RUNS /, { without: ["RUNS"] }],
    [/ AGENTS\.broken\.provider /, { vars: { AGENTS: { broken: { provider: "no-such-provider" } } } }],
    [/ PREFIX /, { vars: { PREFIX: "no slash" } }],
    [/ CORS_ORIGINS /, { vars: { CORS_ORIGINS: ["https://*"] } }],
    [/ AUTH\.tokens\[0\]\.secret /, { vars: { AUTH: { mode: "bearer", tokens: [{ secret: "sk-live-token!", owner: "x" }] } } }],
  ];
  for (const [key, options] of cases) {
    const worker = await startWorker(options);
    t.after(() => worker.stop());
    const response = await fetch(`${worker.origin}/io-bridge/agents`, { headers: { origin: "https://app.example" } });
    const body = await refused(response, 500, "config_invalid");
    assert.ok(response.headers.get("access-control-allow-origin"));
    assert.match(body.error, key);
    assert.doesNotMatch(JSON.stringify(body), /sk-live|no-such|no slash|\*/);
  }
});

test("a storage fault before the stream is 503 with Retry-After, and nothing is left behind [D2]", async (t) => {
  const worker = await startWorker({ agents: [stubAgent(shared.upstream)], secrets: { OPENAI_API_KEY: API_KEY } });
  t.after(() => worker.stop());
  const tables = await worker.database.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'messages'").all();
  assert.equal(tables.results.length, 1);
  await worker.database.prepare("ALTER TABLE messages RENAME TO elsewhere").run();
  const response = await worker.fetch("/run", { json: runInput({ owner: "x" }) });
  assert.ok([500, 503].includes(response.status));
  const body = await refused(response, response.status);
  assert.doesNotMatch(JSON.stringify(body), /SQL|table|messages/i);
  await worker.database.prepare("ALTER TABLE elsewhere RENAME TO messages").run();
  const input = runInput({ owner: "x", threadId: fresh("thread") });
  shared.upstream.reply(says("ok"));
  await run(worker, input);
  assert.equal((await history(worker, input.threadId)).length, 2);
});
