// Identity by tokens of an issuer, and by a gateway in front: real signatures, real workerd (docs/authentication.md).

import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { after, before } from "node:test";
import { signed, startIssuer } from "./support/issuer.mjs";
import { calls, says } from "./support/openai.mjs";
import { fresh, ok, openRun, refused, runInput, tool } from "./support/run.mjs";
import { Socket } from "./support/socket.mjs";
import { API_KEY, stubAgent, suite, test } from "./support/suite.mjs";
import { startWorker } from "./support/worker.mjs";

const shared = suite();

let issuer;
before(async () => (issuer = await startIssuer()));
after(() => issuer.stop());

/** Stands in front of the Worker: a request's `x-clock-ahead-ms` says how far its clock is ahead from then on. */
const CLOCK = `
import Bridge from "./index.js";
export * from "./index.js";
const now = Date.now;
let aheadMs = 0;
Date.now = () => now() + aheadMs;
export default class extends Bridge {
  fetch(request) {
    aheadMs = Number(request.headers.get("x-clock-ahead-ms") ?? aheadMs);
    return super.fetch(request);
  }
}
`;

async function workerWith(t, auth, secrets = {}, front = undefined) {
  const worker = await startWorker({
    agents: [stubAgent(shared.upstream)],
    vars: { AUTH: auth, LOG_LEVEL: "debug" },
    secrets: { OPENAI_API_KEY: API_KEY, ...secrets },
    front,
  });
  t.after(() => worker.stop());
  return worker;
}

const list = (worker, token, path = "/threads") =>
  worker.fetch(path, { headers: token === undefined ? {} : { authorization: `Bearer ${token}` } });

test("tokens of an issuer, signed in each way, and what is not one", async (t) => {
  const worker = await workerWith(t, issuer.auth({ adminScope: "bridge:admin" }));
  for (const algorithm of ["RS256", "ES256", "EdDSA"]) {
    const token = issuer.token({ algorithm });
    const thread = await ok(await worker.fetch("/threads", { json: {}, headers: { authorization: `Bearer ${token}` } }));
    assert.equal(thread.resourceId, "ada", algorithm);
    const [head, payload, signature] = token.split(".");
    const broken = `${head}.${payload}.${signature.startsWith("A") ? "B" : "A"}${signature.slice(1)}`;
    await refused(await list(worker, broken), 401);
  }
  assert.equal((await ok(await list(worker, issuer.token()))).total, 3);
  await refused(await list(worker, issuer.token(), "/threads?resourceId=bob"), 403);
  assert.equal((await ok(await list(worker, issuer.token({ claims: { sub: "bob" } })))).total, 0);

  const admin = issuer.token({ claims: { sub: "root", scope: "openid bridge:admin" } });
  assert.equal((await ok(await list(worker, admin, "/threads?resourceId=ada"))).total, 3);
  await refused(await list(worker, admin), 400);

  const nowS = Math.floor(Date.now() / 1000);
  const mallory = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const publicPem = issuer.keys[0].publicKey.export({ format: "pem", type: "spki" });
  const bad = {
    none: undefined,
    expired: issuer.token({ claims: { exp: nowS - 61 } }),
    "not valid yet": issuer.token({ claims: { nbf: nowS + 90 } }),
    "another audience": issuer.token({ claims: { aud: "elsewhere" } }),
    "another issuer": issuer.token({ claims: { iss: "https://evil.example/" } }),
    "another's key": issuer.token({ key: { kid: "ES256-1", privateKey: mallory.privateKey } }),
    "a key in the header": issuer.token({
      key: { kid: "x", privateKey: mallory.privateKey },
      header: { jwk: mallory.publicKey.export({ format: "jwk" }), jku: `${issuer.url}/evil`, x5u: `${issuer.url}/evil` },
    }),
    "alg none": `${issuer.token({ header: { alg: "none" } }).split(".").slice(0, 2).join(".")}.`,
    "HMAC with the public key": signed({ claims: issuer.claims(), header: { kid: "RS256-1" }, algorithm: "HS256", key: publicPem }),
    "RS256 said, ES256 done": issuer.token({ header: { alg: "RS256" } }),
  };
  const { fetchCount } = issuer;
  for (const [what, token] of Object.entries(bad)) {
    const { code } = await refused(await list(worker, token), 401);
    assert.equal(code, "unauthenticated", what);
  }
  assert.equal(issuer.fetchCount, fetchCount, "no forged token became a request");
  assert.equal((await refused(await list(worker, issuer.token({ claims: { sub: undefined } })), 403)).code, "owner_unknown");
  for (const token of [issuer.token(), ...Object.values(bad)].filter(Boolean)) {
    assert.ok(!worker.logText().includes(token), "a token is in the log");
  }
  await worker.logged(/"event":"token_refused".*"reason":"the token has expired"/);
});

test("a scope, an owner inside a claim, and a header of its own", async (t) => {
  const auth = issuer.auth({
    ownerClaim: "app_metadata.tenant",
    scopeClaim: "permissions",
    requiredScope: "chat",
    tokenHeader: "Cf-Access-Jwt-Assertion",
  });
  const worker = await workerWith(t, auth);
  const ask = (claims) =>
    worker.fetch("/threads", { headers: { "cf-access-jwt-assertion": issuer.token({ claims }), authorization: "Bearer x" } });
  await ok(await ask({ app_metadata: { tenant: "t1" }, permissions: ["chat"] }));
  assert.equal((await refused(await ask({ app_metadata: { tenant: "t1" } }), 403)).code, "scope_missing");
  assert.equal((await refused(await ask({ permissions: ["chat"] }), 403)).code, "owner_unknown");
  await refused(await list(worker, issuer.token()), 401);
});

test("the issuer may be away", async (t) => {
  const other = await startIssuer();
  t.after(() => other.stop());
  const worker = await workerWith(t, other.auth({ jwksCacheMs: 0 }));
  other.isDown = true;
  const response = await list(worker, other.token());
  assert.equal(response.headers.get("retry-after"), "2");
  const error = await refused(response, 503);
  assert.equal(error.code, "identity_unavailable");
  const { fetchCount } = other;
  for (let count = 0; count < 5; count += 1) await refused(await list(worker, other.token()), 503);
  assert.equal(other.fetchCount, fetchCount, "a failure is remembered");

  const fresh = await workerWith(t, other.auth({ jwksCacheMs: 0 }));
  other.isDown = false;
  await ok(await list(fresh, other.token()));
  other.isDown = true;
  await ok(await list(fresh, other.token()));
  assert.ok(!worker.logText().includes("private words"));
});

test("the issuer changes its keys, and then is away", async (t) => {
  const other = await startIssuer();
  t.after(() => other.stop());
  const worker = await workerWith(t, other.auth(), {}, CLOCK);
  const [MINUTE_S, HOUR_S] = [60, 60 * 60];
  let aheadS = 0;
  const tokenOf = (key) => other.token({ key, claims: { exp: Math.floor(Date.now() / 1000) + 100 * HOUR_S } });
  const ask = (key) =>
    worker.fetch("/threads", { headers: { authorization: `Bearer ${tokenOf(key)}`, "x-clock-ahead-ms": `${aheadS * 1000}` } });
  /** Asks at once, as often as said: the statuses, and how many requests the issuer got. */
  const asked = async (key, count = 1) => {
    const before = other.fetchCount;
    const responses = await Promise.all(Array.from({ length: count }, () => ask(key)));
    return [...new Set(responses.map(({ status }) => status)), other.fetchCount - before];
  };
  const first = other.keys.find(({ algorithm }) => algorithm === "ES256");
  assert.deepEqual(await asked(first), [200, 1]);
  assert.deepEqual(await asked(first, 5), [200, 0]);

  const stranger = { ...first, kid: "nobody's" };
  assert.deepEqual(await asked(stranger, 5), [401, 0], "the set is younger than half a minute");
  aheadS += 31;
  assert.deepEqual(await asked(stranger, 5), [401, 1], "unknown keys are one request");
  assert.deepEqual(await asked(stranger, 5), [401, 0], "that nobody has the key is remembered");

  const second = other.addKey("ES256", "ES256-2");
  assert.deepEqual(await asked(second), [401, 0], "still remembered");
  aheadS += 31;
  assert.deepEqual(await asked(second), [200, 1], "the new key is found");
  assert.deepEqual(await asked(second, 5), [200, 0]);
  assert.deepEqual(await asked(first), [200, 0], "the old one is good for as long as it is published");
  other.keys = other.keys.filter((key) => key !== first);
  aheadS += 11 * MINUTE_S;
  assert.deepEqual(await asked(second), [200, 1], "a set is good for ten minutes");
  assert.deepEqual(await asked(first), [401, 0]);

  other.isDown = true;
  aheadS += 11 * MINUTE_S;
  assert.deepEqual(await asked(second, 5), [200, 1], "an old set is used while there is no newer one");
  assert.deepEqual(await asked(second, 5), [200, 0], "a failure is remembered");
  aheadS += 6;
  assert.deepEqual(await asked(second, 5), [200, 1]);
  assert.deepEqual(await asked(stranger), [401, 0]);
  aheadS += 24 * HOUR_S;
  assert.deepEqual(await asked(second), [503, 1], "but not for more than a day");
  other.isDown = false;
  aheadS += 6;
  assert.deepEqual(await asked(second), [200, 1]);
});

test("a shared secret, a PEM and a JWK, by the name of a secret", async (t) => {
  const shared = "a shared secret of thirty-two bytes or more";
  const auth = (algorithm) => issuer.auth({ keySecret: "JWT_KEY", algorithms: [algorithm] });
  const hs256 = signed({ claims: issuer.claims(), algorithm: "HS256", key: shared });
  const byText = await workerWith(t, auth("HS256"), { JWT_KEY: shared });
  await ok(await list(byText, hs256));
  await refused(await list(byText, issuer.token()), 401);
  await refused(await list(byText, signed({ claims: issuer.claims(), algorithm: "HS256", key: `${shared}.` })), 401);

  const { publicKey } = issuer.keys.find(({ algorithm }) => algorithm === "RS256");
  const pem = publicKey.export({ format: "pem", type: "spki" });
  const byPem = await workerWith(t, auth("RS256"), { JWT_KEY: pem });
  await ok(await list(byPem, issuer.token({ algorithm: "RS256" })));
  await refused(await list(byPem, signed({ claims: issuer.claims(), algorithm: "HS256", key: pem })), 401);

  const jwk = issuer.keys.find(({ algorithm }) => algorithm === "EdDSA").publicKey.export({ format: "jwk" });
  const byJwk = await workerWith(t, auth("EdDSA"), { JWT_KEY: JSON.stringify(jwk) });
  await ok(await list(byJwk, issuer.token({ algorithm: "EdDSA" })));

  const without = await workerWith(t, auth("HS256"));
  await refused(await list(without, hs256), 503);
  await without.logged(/"event":"secret_missing".*JWT_KEY/);
});

test("a socket is opened with a token, and outlives it [7]", async (t) => {
  const worker = await workerWith(t, issuer.auth({ clockSkewMs: 0 }), {}, CLOCK);
  assert.equal((await new Socket(worker, runInput(), { protocols: ["bearer", "x.y.z"] }).closed()).code, 4401);
  shared.upstream.reply(calls([["one", {}]]));
  shared.upstream.reply(says("ok"));
  const token = issuer.token();
  const socket = new Socket(worker, runInput({ tools: [tool("one")] }), { protocols: ["bearer", token] });
  const { toolCallId } = await socket.until("TOOL_CALL_END");
  await ok(await list(worker, token));
  await refused(await worker.fetch("/threads", { headers: { authorization: `Bearer ${token}`, "x-clock-ahead-ms": "300000" } }), 401);
  socket.sendResult(toolCallId, 1);
  assert.equal((await socket.rest()).at(-1).type, "RUN_FINISHED");
});

test("a gateway says who calls, once it has shown itself", async (t) => {
  const auth = { mode: "header", ownerHeader: "X-Owner", proofHeader: "X-Gateway", proofSecret: "GATEWAY" };
  const worker = await workerWith(t, auth, { GATEWAY: "s3cret-of-the-gateway" });
  const as = (headers, path = "/threads", init = {}) => worker.fetch(path, { ...init, headers });
  const proof = { "x-gateway": "s3cret-of-the-gateway" };
  const thread = await ok(await as({ ...proof, "x-owner": "ada" }, "/threads", { json: {} }));
  assert.equal(thread.resourceId, "ada");
  await refused(await as({ ...proof, "x-owner": "bob" }, `/threads/${thread.id}`), 403);
  await refused(await as({ ...proof, "x-owner": "ada" }, "/threads?resourceId=bob"), 403);
  await ok(await as({ ...proof, "x-owner": "*" }, `/threads/${thread.id}`));
  for (const headers of [{}, { "x-owner": "ada" }, { "x-owner": "ada", "x-gateway": "wrong" }, proof, { ...proof, "x-owner": "" }]) {
    await refused(await as(headers), 401);
  }
  const unset = await workerWith(t, auth);
  await refused(await unset.fetch("/threads", { headers: { "x-owner": "ada", "x-gateway": "" } }), 401);

  const open = await workerWith(t, { mode: "header", ownerHeader: "x-owner" });
  await ok(await open.fetch("/threads", { headers: { "x-owner": "ada" } }));
  await refused(await open.fetch("/threads?resourceId=ada"), 401);
});

test("identity alone does not make a run persistent [D5]", async (t) => {
  const worker = await workerWith(t, issuer.auth());
  const headers = { authorization: `Bearer ${issuer.token({ claims: { sub: fresh("owner") } })}` };
  for (const [forwardedProps, total] of [[{}, 0], [{ resourceId: "" }, 1]]) {
    shared.upstream.reply(says("ok"));
    await (await openRun(worker, runInput({ forwardedProps }), { headers })).rest();
    assert.equal((await ok(await worker.fetch("/threads", { headers }))).total, total);
  }
});
