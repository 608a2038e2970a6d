// Which pages may call, on every kind of answer: successes, errors, streams, preflights (contract 1).

import assert from "node:assert/strict";
import { says } from "./support/openai.mjs";
import { runInput } from "./support/run.mjs";
import { API_KEY, stubAgent, suite, test } from "./support/suite.mjs";
import { startWorker } from "./support/worker.mjs";

const shared = suite();

const LISTED = ["https://app.example", "https://a.example.com", "https://a.b.example.com", "http://x.localhost:4003"];
const OTHERS = [
  "https://evil.test", "https://example.com", "https://evilexample.com", "https://a.example.com.evil.test", "http://a.example.com",
  "https://a.example.com:8443", "https://app.example.evil.test", "null",
];
const EXPOSED = "x-request-id, retry-after, io-run-address, io-run-generation";

const cors = (response) =>
  Object.fromEntries([...response.headers].filter(([name]) => name.startsWith("access-control-") || name === "vary"));

/** Sends a request straight: the suite's own `fetch` wants an allowed origin. */
const from = (worker, origin, path, init = {}) =>
  fetch(worker.url(path), { ...init, headers: { ...(origin ? { origin } : {}), ...init.headers } });

/** One answer of each kind. */
async function answers(worker, origin, authorization) {
  const post = (body) => ({ method: "POST", body, headers: { authorization, "content-type": "application/json" } });
  shared.upstream.reply(says("ok"));
  const kinds = {
    200: from(worker, origin, "/agents", { headers: { authorization } }),
    "200 of a stream": from(worker, origin, "/run", post(JSON.stringify(runInput()))),
    400: from(worker, origin, "/run", post("{}")),
    401: from(worker, origin, "/agents"),
    404: from(worker, origin, "/no/such/route"),
    405: from(worker, origin, "/threads", { method: "PUT", headers: { authorization } }),
    413: from(worker, origin, "/run", post("x".repeat(2000))),
    415: from(worker, origin, "/threads", { method: "POST", body: "x", headers: { authorization, "content-type": "text/plain" } }),
    "200 of HEAD": from(worker, origin, "/agents", { method: "HEAD", headers: { authorization } }),
  };
  const found = {};
  for (const [kind, pending] of Object.entries(kinds)) {
    const response = await pending;
    await response.text();
    assert.equal(String(response.status), kind.slice(0, 3), kind);
    found[kind] = cors(response);
  }
  return found;
}

const start = (vars) =>
  startWorker({
    agents: [stubAgent(shared.upstream)],
    vars: { AUTH: { mode: "bearer", tokens: [{ secret: "TOKEN", owner: "ada" }] }, RUN_BODY_MAX_BYTES: 1000, ...vars },
    secrets: { OPENAI_API_KEY: API_KEY, TOKEN: "token-of-ada" },
  });

test("listed origins and sub-domains are echoed with credentials, others get nothing", async (t) => {
  const worker = await start({ CORS_ORIGINS: ["https://app.example", "https://*.example.com", "http://*.localhost:4003"] });
  t.after(() => worker.stop());
  for (const origin of LISTED) {
    for (const [kind, headers] of Object.entries(await answers(worker, origin, "Bearer token-of-ada"))) {
      const expected = {
        vary: "Origin",
        "access-control-allow-origin": origin,
        "access-control-allow-credentials": "true",
        "access-control-expose-headers": EXPOSED,
      };
      assert.deepEqual(headers, expected, `${kind} for ${origin}`);
    }
  }
  for (const origin of [...OTHERS, undefined]) {
    for (const [kind, headers] of Object.entries(await answers(worker, origin, "Bearer token-of-ada"))) {
      assert.deepEqual(headers, { vary: "Origin" }, `${kind} for ${origin}`);
    }
  }
});

test("any origin, then without credentials", async (t) => {
  const worker = await start({ CORS_ORIGINS: "*" });
  t.after(() => worker.stop());
  for (const origin of [...LISTED.slice(0, 1), ...OTHERS.slice(0, 1), undefined]) {
    for (const [kind, headers] of Object.entries(await answers(worker, origin, "Bearer token-of-ada"))) {
      const expected = { vary: "Origin", "access-control-allow-origin": "*", "access-control-expose-headers": EXPOSED };
      assert.deepEqual(headers, expected, `${kind} for ${origin}`);
    }
  }
});

test("a preflight needs no token, allows what is asked for, and may be kept", async (t) => {
  const worker = await start({ CORS_ORIGINS: ["https://*.example.com"] });
  t.after(() => worker.stop());
  const preflight = (origin, path) =>
    from(worker, origin, path, {
      method: "OPTIONS",
      headers: { "access-control-request-method": "POST", "access-control-request-headers": "authorization, x-custom, x-mastra-client-type" },
    });
  for (const path of ["/run", "/runs/r/tool-calls/c/result", "/threads/t", "/no/such/route"]) {
    const response = await preflight("https://a.example.com", path);
    assert.equal(response.status, 204);
    assert.deepEqual(cors(response), {
      vary: "Origin, Access-Control-Request-Headers",
      "access-control-allow-origin": "https://a.example.com",
      "access-control-allow-credentials": "true",
      "access-control-allow-methods": "GET, HEAD, POST, PATCH, DELETE, OPTIONS",
      "access-control-allow-headers": "authorization, x-custom, x-mastra-client-type",
      "access-control-max-age": "7200",
    });
    const refused = await preflight("https://evil.test", path);
    assert.equal(refused.status, 204);
    assert.deepEqual(cors(refused), { vary: "Origin, Access-Control-Request-Headers" });
  }
});
