// The HTTP surface: contract 1 and 9.

import assert from "node:assert/strict";
import { says } from "./support/openai.mjs";
import { fresh, ok, openRun, postResult, readRun, refused, run, runInput } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";
import { ORIGIN, startWorker } from "./support/worker.mjs";

const shared = suite();

// Every route of contract 1, and the description, with its methods.
const ROUTES = {
  "": ["GET"],
  "/openapi.json": ["GET"],
  "/health": ["GET"],
  "/run": ["POST"],
  "/runs/r/tool-calls/c/result": ["POST"],
  "/threads": ["GET", "POST"],
  "/threads/t": ["GET", "PATCH", "DELETE"],
  "/threads/t/messages": ["GET"],
  "/agents": ["GET"],
  "/agents/a": ["GET"],
};

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];

test("the prefix says who answers [9]", async () => {
  for (const path of ["", "/"]) {
    const { name, version, ...rest } = await ok(await shared.worker.fetch(path));
    assert.equal(name, "io-bridge");
    assert.match(version, /^\d+\.\d+\.\d+$/);
    assert.deepEqual(rest, { protocol: "io.intelligence/agent-protocol", protocolVersion: "1.0", conformanceLevel: 4 });
  }
});

test("anybody may read the API's description, which names the prefix and the version", async (t) => {
  const AUTH = { mode: "bearer", tokens: [{ secret: "TOKEN", owner: "*" }] };
  const worker = await startWorker({ vars: { PREFIX: "/p", AUTH }, secrets: { TOKEN: "t" } });
  t.after(() => worker.stop());
  const { openapi, info, servers } = await ok(await worker.fetch("/openapi.json"));
  const { version } = await ok(await worker.fetch(""));
  assert.deepEqual({ openapi, version: info.version, servers }, { openapi: "3.1.0", version, servers: [{ url: "/p" }] });
});

test("every route refuses the methods it has not, and says which it has [D2]", async () => {
  for (const [path, allowed] of Object.entries(ROUTES)) {
    for (const method of METHODS.filter((one) => !allowed.includes(one))) {
      const response = await shared.worker.fetch(path, { method });
      await refused(response, 405);
      const allow = response.headers.get("allow").split(", ");
      assert.deepEqual(allow.filter((one) => !["HEAD", "OPTIONS"].includes(one)).sort(), allowed.toSorted(), `${method} ${path}`);
    }
  }
});

test("unknown paths are 404 in JSON [D1, D2]", async () => {
  for (const path of ["/nothing", "/runs", "/runs/r/tool-calls", "/runs/r/tool-calls/c", "/threads/t/messages/m", "/agents/a/b", "/RUN"]) {
    await refused(await shared.worker.fetch(path, { method: "POST" }), 404);
  }
});

test("paths outside the prefix are 404", async () => {
  for (const path of ["/", "/run", "/io-bridgex/run", "/io-bridg"]) {
    await refused(await fetch(shared.worker.origin + path, { method: "POST" }), 404);
  }
});

test("an empty path parameter is 404 [1]", async () => {
  for (const path of ["/threads//messages", "/runs//tool-calls/c/result", "/runs/r/tool-calls//result"]) {
    const method = path.endsWith("result") ? "POST" : "GET";
    await refused(await shared.worker.fetch(path, { method }), 404);
  }
});

test("a trailing slash is tolerated [1]", async () => {
  await ok(await shared.worker.fetch("/agents/"));
  await ok(await shared.worker.fetch("/threads/?resourceId=zed"));
  const { id } = await ok(await shared.worker.fetch("/threads/", { json: { resourceId: "zed" } }));
  await ok(await shared.worker.fetch(`/threads/${id}/`));
  await ok(await shared.worker.fetch(`/threads/${id}/messages/`));
  shared.upstream.reply(says("ok"));
  const input = runInput();
  const events = await readRun(await shared.worker.fetch("/run/", { json: input }), input);
  assert.equal(events.at(-1).type, "RUN_FINISHED");
});

test("path parameters are percent-decoded [1]", async () => {
  for (const threadId of ["a/b c", "100%", "ü+?&#", "..", "a%2Fb"]) {
    const id = `${threadId} ${fresh("x")}`;
    await ok(await shared.worker.fetch("/threads", { json: { threadId: id, resourceId: "zed" } }));
    assert.equal((await ok(await shared.worker.fetch(`/threads/${encodeURIComponent(id)}`))).id, id);
  }
});

test("a path that cannot be decoded is refused", async () => {
  for (const path of ["/threads/%", "/threads/%zz", "/threads/%ff"]) {
    const response = await shared.worker.fetch(path);
    assert.ok([400, 404].includes(response.status), `${response.status}`);
    await refused(response, response.status);
  }
});

test("HEAD answers like GET, without a body [D1]", async () => {
  const { id } = await ok(await shared.worker.fetch("/threads", { json: { resourceId: "zed" } }));
  for (const path of ["", "/agents", `/threads/${id}`, `/threads/${id}/messages`, "/threads?resourceId=zed"]) {
    const response = await shared.worker.fetch(path, { method: "HEAD" });
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("content-type"), "application/json");
    assert.equal(await response.text(), "");
  }
  const response = await shared.worker.fetch("/nothing", { method: "HEAD" });
  assert.equal(response.status, 404);
});

test("a content type other than JSON is 415, none at all is JSON [D2]", async () => {
  const body = JSON.stringify({ resourceId: "zed" });
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/json-ish"]) {
    await refused(await shared.worker.fetch("/threads", { method: "POST", body, headers: { "content-type": type } }), 415);
    await refused(await shared.worker.fetch("/run", { method: "POST", body, headers: { "content-type": type } }), 415);
  }
  for (const type of ["application/json", "application/json; charset=utf-8", "Application/JSON"]) {
    await ok(await shared.worker.fetch("/threads", { method: "POST", body, headers: { "content-type": type } }));
  }
  // A byte body has no type of its own.
  await ok(await shared.worker.fetch("/threads", { method: "POST", body: Buffer.from(body) }));
});

test("every answer has a request id of its own [1]", async () => {
  const ids = [];
  for (const path of ["", "/agents", "/nothing", "/threads"]) {
    ids.push((await shared.worker.fetch(path)).headers.get("x-request-id"));
  }
  assert.equal(new Set(ids).size, ids.length);
});

test("a preflight of every route is answered 204, for any header [1]", async () => {
  for (const [path, methods] of Object.entries(ROUTES)) {
    for (const method of methods) {
      const response = await shared.worker.fetch(path, {
        method: "OPTIONS",
        headers: { "access-control-request-method": method, "access-control-request-headers": "authorization,content-type,x-custom" },
      });
      assert.equal(response.status, 204, `${method} ${path}`);
      assert.equal(await response.text(), "");
      assert.equal(response.headers.get("access-control-allow-origin"), "*");
      assert.equal(response.headers.get("access-control-allow-credentials"), null);
      const list = (name) => response.headers.get(name).toLowerCase().split(/\s*,\s*/);
      assert.ok(list("access-control-allow-methods").includes(method.toLowerCase()));
      for (const header of ["authorization", "content-type", "x-custom"]) assert.ok(list("access-control-allow-headers").includes(header));
    }
  }
});

test("successes, errors and streams carry the CORS headers and expose ours [1]", async () => {
  shared.upstream.reply(says("ok"));
  const stream = await shared.worker.fetch("/run", { json: runInput() });
  for (const response of [stream, await shared.worker.fetch("/agents"), await shared.worker.fetch("/nothing"), await postResult(shared.worker, "r", "c", {})]) {
    assert.equal(response.headers.get("access-control-allow-origin"), "*");
    assert.equal(response.headers.get("access-control-allow-credentials"), null);
    const exposed = response.headers.get("access-control-expose-headers").toLowerCase().split(/\s*,\s*/);
    assert.deepEqual(exposed.sort(), ["io-run-address", "io-run-generation", "retry-after", "x-request-id"]);
    await response.text();
  }
});

test("a run's answer says where the run lives [3, 8]", async () => {
  shared.upstream.reply(says("ok"));
  const input = runInput();
  const response = await shared.worker.fetch("/run", { json: input });
  assert.match(response.headers.get("io-run-address"), /^[A-Za-z0-9_-]{43}$/);
  assert.equal(response.headers.get("io-run-generation"), "0");
  await readRun(response, input);
});

test("a list of origins turns credentials on and shuts others out [1]", async (t) => {
  const worker = await startWorker({ vars: { CORS_ORIGINS: [ORIGIN, "https://*.friends.example"] } });
  t.after(() => worker.stop());
  const from = (origin, init = {}) => fetch(worker.url("/agents"), { ...init, headers: { origin, ...init.headers } });
  for (const origin of [ORIGIN, "https://a.friends.example"]) {
    const response = await from(origin);
    assert.equal(response.headers.get("access-control-allow-origin"), origin);
    assert.equal(response.headers.get("access-control-allow-credentials"), "true");
    assert.match(response.headers.get("vary"), /\borigin\b/i);
    const preflight = await from(origin, { method: "OPTIONS", headers: { "access-control-request-method": "GET" } });
    assert.equal(preflight.status, 204);
    assert.equal(preflight.headers.get("access-control-allow-origin"), origin);
  }
  for (const origin of ["https://evil.example", "https://friends.example.evil.example", "null", "http://app.example"]) {
    const response = await from(origin);
    assert.equal(response.headers.get("access-control-allow-origin"), null, origin);
    assert.match(response.headers.get("vary"), /\borigin\b/i);
    assert.ok(response.headers.get("x-request-id"));
  }
});

test("the prefix is a setting and may be empty [1]", async (t) => {
  for (const prefix of ["", "/api/v1"]) {
    const worker = await startWorker({ vars: { PREFIX: prefix } });
    t.after(() => worker.stop());
    assert.equal((await ok(await worker.fetch("/"))).name, "io-bridge");
    await ok(await worker.fetch("/agents"));
    if (prefix !== "") await refused(await fetch(`${worker.origin}/io-bridge/agents`), 404);
  }
});

test("the stream's headers keep proxies from buffering [2.4]", async () => {
  shared.upstream.reply(says("ok"));
  // The reader itself checks the headers.
  const stream = await openRun(shared.worker, runInput(), { headers: { "accept-encoding": "gzip, br" } });
  assert.equal((await stream.rest()).at(-1).type, "RUN_FINISHED");
  shared.upstream.reply(says("ok"));
  assert.equal((await run(shared.worker, runInput())).at(-1).type, "RUN_FINISHED");
});
