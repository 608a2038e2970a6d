// Input that nobody well-meaning sends: a clear 4xx within a second, and the next request is served.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { afterEach } from "node:test";
import { calls, says } from "./support/openai.mjs";
import { ok, openRun, readRun, refused, run, runInput, tool, user } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";

const shared = suite();

const JSON_TYPE = { "content-type": "application/json" };
const LEVELS = 100_000;
const nested = "[".repeat(LEVELS) + "]".repeat(LEVELS);
const nestedObjects = '{"a":'.repeat(LEVELS) + "1" + "}".repeat(LEVELS);

const PATHS = ["/run", "/threads", "/runs/r/tool-calls/c/result"];

// What takes more than its share takes minutes of these inputs; a busy machine takes a second for any.
const ANSWERED_MAX_MS = 5000;

/** Sends a body and wants a 4xx soon. */
async function clearly(path, body, { method = "POST", headers = JSON_TYPE } = {}) {
  const startMs = performance.now();
  const response = await shared.worker.fetch(path, { method, body, headers });
  assert.ok(response.status >= 400 && response.status < 500, `${response.status} for ${path}`);
  await refused(response, response.status);
  assert.ok(performance.now() - startMs < ANSWERED_MAX_MS, `${performance.now() - startMs} ms`);
}

afterEach(async () => {
  await ok(await shared.worker.fetch("/agents"));
  shared.upstream.reply(says("still here"));
  assert.equal((await run(shared.worker, runInput())).at(-1).type, "RUN_FINISHED");
});

test("random bytes", async () => {
  for (const path of PATHS) {
    for (const size of [1, 100, 100_000]) await clearly(path, randomBytes(size));
  }
});

test("ten megabytes", async () => {
  for (const path of PATHS) await clearly(path, JSON.stringify({ a: "x".repeat(10 * 1024 * 1024) }));
});

test("ten megabytes in chunks, of no declared length", async () => {
  const piece = Buffer.alloc(64 * 1024, " ");
  for (const path of PATHS) {
    const body = new ReadableStream({
      start: (controller) => {
        for (let sent = 0; sent < 160; sent += 1) controller.enqueue(piece);
        controller.close();
      },
    });
    const startMs = performance.now();
    const response = await shared.worker.fetch(path, { method: "POST", body, headers: JSON_TYPE, duplex: "half" });
    assert.ok(response.status >= 400 && response.status < 500, `${response.status} for ${path}`);
    assert.ok(performance.now() - startMs < ANSWERED_MAX_MS);
    await response.text();
  }
});

test("nesting a hundred thousand levels deep", async () => {
  for (const body of [nested, nestedObjects]) {
    for (const path of PATHS) await clearly(path, body);
    const input = JSON.stringify(runInput());
    await clearly("/run", input.replace('"tools":[]', `"tools":${body}`));
    await clearly("/run", input.replace('"state":{}', `"state":${body}`));
    await clearly("/threads", `{"resourceId":"x","metadata":${body}}`);
  }
});

test("an id of a megabyte", async () => {
  const id = "x".repeat(1024 * 1024);
  for (const members of [{ runId: id }, { threadId: id }, { messages: [user("a", id)] }, { agent: id }, { owner: id }]) {
    await clearly("/run", JSON.stringify(runInput(members)));
  }
  await clearly("/threads", JSON.stringify({ threadId: id, resourceId: "x" }));
  await clearly("/threads", JSON.stringify({ resourceId: id }));
});

test("ids in paths that are long, or hold control characters", async () => {
  for (const path of [`/threads/${"x".repeat(4000)}`, "/threads/a%00b", "/threads/a%0d%0ab"]) await clearly(path, undefined, { method: "GET", headers: {} });
  await clearly("/runs/a%00/tool-calls/b%0a/result", "{}");
});

test("query parameters that are nonsense", async () => {
  for (const query of ["limit=-1", "limit=1e9", "limit=abc", "offset=-5", "page=x", "perPage=0.5", "orderBy=password", "direction=UP", "cursor=%00"]) {
    const response = await shared.worker.fetch(`/threads?resourceId=x&${query}`);
    assert.ok(response.status < 500, `${response.status} for ${query}`);
    await response.text();
  }
});

test("keys of Object.prototype are keys like others", async () => {
  shared.upstream.reply(says("ok"));
  const input = runInput();
  const body = JSON.stringify(input).replace("{", '{"__proto__":{"polluted":true},"constructor":1,"toString":2,');
  const response = await shared.worker.fetch("/run", { method: "POST", body, headers: JSON_TYPE });
  assert.equal((await readRun(response, input)).at(-1).type, "RUN_FINISHED");
});

test("lone surrogates everywhere are a normal run", async () => {
  shared.upstream.reply(says("ok"));
  const input = runInput({
    threadId: "t@", runId: "r@", messages: [user("c@", "m@")], context: [{ description: "d@", value: "v@" }], state: { "k@": "s@" },
    tools: [tool("f", { type: "object", description: "p@" })],
  });
  const body = JSON.stringify(input).replaceAll("@", "\\udfff");
  const response = await shared.worker.fetch("/run", { method: "POST", body, headers: JSON_TYPE });
  const events = await readRun(response, { threadId: "t\ufffd", runId: "r\ufffd" });
  assert.equal(events.at(-1).type, "RUN_FINISHED");
  assert.ok(!shared.upstream.requests[0].text.includes("udfff"));
});

test("a schema that never ends, and one that is none, do not stop a run", async () => {
  for (const parameters of [{ $ref: "#" }, { type: "object", properties: { a: { $ref: "#/properties/a" } } }, { type: "no such type" }, { pattern: "(a+)+$" }]) {
    shared.upstream.reply(calls([["odd", { a: "a".repeat(40) }]]));
    shared.upstream.reply(says("ok"));
    const input = runInput({ tools: [{ name: "odd", description: "Odd.", parameters }], forwardedProps: { frontendTools: "next-run" } });
    const events = await run(shared.worker, input);
    assert.equal(events.at(-1).type, "RUN_FINISHED");
    // Where the arguments did not fit, the model was told and went on.
    if (shared.upstream.reset() === 1) assert.ok(events.some(({ type }) => type === "TOOL_CALL_END"));
  }
  // What is no schema at all means any object.
  for (const parameters of [[], "x", 7, null]) {
    shared.upstream.reply(says("ok"));
    await run(shared.worker, runInput({ tools: [{ name: "odd", description: "Odd.", parameters }] }));
    const [{ function: offered }] = shared.upstream.requests.at(-1).body.tools;
    assert.equal(offered.parameters.type, "object");
  }
});

test("a header that is as long as may be", async () => {
  const response = await shared.worker.fetch("/agents", { headers: { "x-long": "x".repeat(8000), "accept": ",".repeat(4000) } });
  assert.equal(response.status, 200);
  await response.text();
});

test("two thousand messages are a run, more are refused or served, never a fault", async () => {
  shared.upstream.reply(says("ok"));
  const messages = (count) => Array.from({ length: count }, (_, index) => user(`m${index}`, `m${index}`));
  const stream = await openRun(shared.worker, runInput({ owner: "x", messages: messages(2000) }));
  assert.equal((await stream.rest()).at(-1).type, "RUN_FINISHED");
  const response = await shared.worker.fetch("/run", { json: runInput({ messages: messages(2001) }) });
  assert.ok([400, 413].includes(response.status), `${response.status}`);
  await response.text();
});
