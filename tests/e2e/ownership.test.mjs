// Every route of the route table x who calls: status and body (contract D4). The rows are README's table, which is the
// code's own (tests/readme.rs); a route that has no case here fails.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { startIssuer } from "./support/issuer.mjs";
import { calls, says } from "./support/openai.mjs";
import { eventually, openRun, runInput, tool, user } from "./support/run.mjs";
import { Socket } from "./support/socket.mjs";
import { API_KEY, stubAgent, suite, test } from "./support/suite.mjs";
import { startWorker } from "./support/worker.mjs";

const README = readFileSync(fileURLToPath(new URL("../../README.md", import.meta.url)), "utf8");
const ROUTES = README.split("<!-- table: routes -->\n")[1]
  .split("<!-- end -->")[0]
  .trim()
  .split("\n")
  .slice(2)
  .map((line) => line.split("|").map((cell) => cell.trim().replaceAll("`", "")))
  .map(([, method, path]) => `${method} ${path}`);

const ADA = "ada";
const SAID = "words-only-ada-may-read";

const shared = suite();
let issuer;
let worker;
let callers;

before(async () => {
  issuer = await startIssuer();
  worker = await startWorker({
    agents: [stubAgent(shared.upstream)],
    search: true,
    vars: { AUTH: issuer.auth({ adminScope: "bridge:admin" }) },
    secrets: { OPENAI_API_KEY: API_KEY },
  });
  callers = {
    "no token": undefined,
    expired: issuer.token({ claims: { exp: Math.floor(Date.now() / 1000) - 3600 } }),
    "wrong audience": issuer.token({ claims: { aud: "elsewhere" } }),
    "other owner": issuer.token({ claims: { sub: "bob" } }),
    "right owner": issuer.token({ claims: { sub: ADA } }),
    "admin scope": issuer.token({ claims: { sub: "root", scope: "bridge:admin" } }),
  };
});
after(async () => {
  await worker.stop();
  await issuer.stop();
});

const bearer = (token) => (token === undefined ? {} : { authorization: `Bearer ${token}` });
const asAda = () => bearer(callers["right owner"]);
const ADMIN = "admin scope";

/** A thread of Ada's with one answered turn, which the search index knows. */
async function thread() {
  shared.upstream.reply(says("ok"));
  const input = runInput({ owner: ADA, messages: [user(SAID)] });
  const stream = await openRun(worker, input, { headers: asAda() });
  await stream.rest();
  await eventually(
    () => worker.search.prepare("SELECT count(*) AS count FROM message_text WHERE thread_id = ?").bind(input.threadId).first(),
    ({ count }) => count === 2,
  );
  return { threadId: input.threadId, runId: input.runId, address: stream.address, close: async () => {} };
}

/** A run of Ada's that waits for the result of a call. */
async function waitingRun() {
  shared.upstream.reply(calls([["one", { said: SAID }]]));
  const input = runInput({ owner: ADA, tools: [tool("one")] });
  const stream = await openRun(worker, input, { headers: asAda() });
  const { toolCallId } = await stream.until("TOOL_CALL_END");
  const { threadId, runId } = input;
  const subject = { threadId, runId, toolCallId, address: stream.address };
  subject.finish = async () => {
    await stream.rest();
    subject.close = async () => {};
  };
  subject.close = () => stream.abandon();
  return subject;
}

const nothing = async () => ({ close: async () => {} });

// What each of the six callers gets: statuses in the order of `callers`.
const OPEN = [200, 200, 200, 200, 200, 200];
const MEMBERS = [401, 401, 401, 200, 200, 200];
const OWNED = [401, 401, 401, 403, 200, 200];

const get = (path) => ({ path });
const post = (path, json) => ({ path, json });
const named = (path, who) => (who === ADMIN ? `${path}${path.includes("?") ? "&" : "?"}resourceId=${ADA}` : path);

/** The cases of each route: what there is, the request, and the statuses; `good` looks at the body of a success. */
const CASES = {
  "GET (the prefix itself)": [{ of: nothing, ask: () => get(""), expected: OPEN }],
  "GET /openapi.json": [{ of: nothing, ask: () => get("/openapi.json"), expected: OPEN }],
  "GET /health": [
    { what: "alive", of: nothing, ask: () => get("/health"), expected: OPEN },
    { what: "deep", of: nothing, ask: () => get("/health?deep=1"), expected: [401, 401, 401, 403, 403, 200] },
  ],
  "POST /run": [
    {
      what: "on a thread of Ada's",
      of: thread,
      ask: ({ threadId }, who) => {
        shared.upstream.reply(says("fine"));
        return post("/run", runInput({ threadId, ...(who === ADMIN ? { owner: ADA } : {}) }));
      },
      expected: OWNED,
      good: (text) => assert.match(text, /"fine".*RUN_FINISHED/s),
    },
    {
      what: "as Ada by resourceId",
      of: nothing,
      ask: () => {
        shared.upstream.reply(says("fine"));
        return post("/run", runInput({ owner: ADA }));
      },
      expected: OWNED,
    },
  ],
  "GET (WebSocket) /run": [
    {
      of: thread,
      ask: ({ threadId }, who) => {
        shared.upstream.reply(says("fine"));
        return { socket: runInput({ threadId, ...(who === ADMIN ? { owner: ADA } : {}) }) };
      },
      expected: OWNED,
    },
  ],
  "POST /runs/:runId/tool-calls/:toolCallId/result": [
    {
      of: waitingRun,
      ask: ({ runId, toolCallId }, who) => {
        shared.upstream.reply(says("fine"));
        return post(named(`/runs/${runId}/tool-calls/${toolCallId}/result`, who), { result: 1 });
      },
      expected: OWNED,
      good: async (text, { finish }) => {
        assert.equal(JSON.parse(text).success, true);
        await finish();
      },
    },
  ],
  "GET /threads": [
    {
      what: "of Ada by resourceId",
      of: thread,
      ask: () => get(`/threads?resourceId=${ADA}`),
      expected: OWNED,
      good: (text, { threadId }) => assert.ok(text.includes(threadId)),
    },
    {
      what: "without a resourceId",
      of: thread,
      ask: () => get("/threads"),
      expected: [401, 401, 401, 200, 200, 400],
      good: (text, { threadId }, who) => assert.equal(text.includes(threadId), who === "right owner"),
    },
    {
      what: "found by what was said",
      of: thread,
      ask: (_, who) => get(named(`/threads?q=${SAID}`, who)),
      expected: MEMBERS,
      good: (text, { threadId }, who) => assert.equal(text.includes(threadId), who !== "other owner"),
    },
  ],
  "POST /threads": [
    {
      what: "with the id of a thread of Ada's",
      of: thread,
      ask: ({ threadId }, who) => post("/threads", { threadId, ...(who === ADMIN ? { resourceId: ADA } : {}) }),
      expected: OWNED,
      good: (text) => assert.equal(JSON.parse(text).resourceId, ADA),
    },
    { what: "for Ada by resourceId", of: nothing, ask: () => post("/threads", { resourceId: ADA }), expected: OWNED },
  ],
  "GET /threads/:threadId": [
    { of: thread, ask: ({ threadId }) => get(`/threads/${threadId}`), expected: OWNED, good: (text) => assert.ok(text.includes(SAID)) },
  ],
  "PATCH /threads/:threadId": [
    {
      of: thread,
      ask: ({ threadId }) => ({ path: `/threads/${threadId}`, method: "PATCH", json: { title: "New" } }),
      expected: OWNED,
      good: (text) => assert.equal(JSON.parse(text).title, "New"),
    },
  ],
  "DELETE /threads/:threadId": [
    { of: thread, ask: ({ threadId }) => ({ path: `/threads/${threadId}`, method: "DELETE" }), expected: OWNED },
  ],
  "GET /threads/:threadId/messages": [
    { of: thread, ask: ({ threadId }) => get(`/threads/${threadId}/messages`), expected: OWNED, good: (text) => assert.ok(text.includes(SAID)) },
  ],
  "GET /threads/:threadId/export": [
    { of: thread, ask: ({ threadId }) => get(`/threads/${threadId}/export`), expected: OWNED, good: (text) => assert.ok(text.includes(SAID)) },
  ],
  "GET /agents": [{ of: nothing, ask: () => get("/agents"), expected: MEMBERS }],
  "GET /agents/:agentId": [{ of: nothing, ask: () => get("/agents/stub"), expected: MEMBERS }],
  "GET /runs/:runId": [
    { what: "that waits", of: waitingRun, ask: ({ runId }) => get(`/runs/${runId}`), expected: OWNED, good: (text) => assert.match(text, /"waiting"/) },
    { what: "that waits, by its address", of: waitingRun, ask: ({ runId, address }) => get(`/runs/${runId}?address=${address}`), expected: OWNED },
    { what: "that is over", of: thread, ask: ({ runId }) => get(`/runs/${runId}`), expected: OWNED, good: (text) => assert.match(text, /"finished"/) },
  ],
  "GET /runs/:runId/events": [
    {
      what: "of a run that waits, by its address",
      of: waitingRun,
      ask: ({ runId, address }) => ({ path: `/runs/${runId}/events?address=${address}`, isOpenEnded: true }),
      expected: OWNED,
    },
    { what: "of a run that is over", of: thread, ask: ({ runId }) => get(`/runs/${runId}/events`), expected: [401, 401, 401, 403, 410, 410] },
  ],
  "POST /runs/:runId/cancel": [
    { of: waitingRun, ask: ({ runId }) => post(`/runs/${runId}/cancel`, {}), expected: OWNED, good: (text) => assert.ok(text.includes("runId")) },
  ],
  // Last, for it leaves nothing of Ada's.
  "POST /owners/:resourceId/erase": [
    { of: thread, ask: () => post(`/owners/${ADA}/erase`, { confirm: ADA }), expected: OWNED, good: (text) => assert.equal(JSON.parse(text).complete, true) },
  ],
};

const CODES = { 400: "owner_required", 401: "unauthenticated", 403: "forbidden", 410: "run_over" };

/** Status and body, of a socket those of the answer it stands for. */
async function answer(request, token) {
  if (request.socket) {
    const protocols = token === undefined ? [] : ["bearer", token];
    const socket = new Socket(worker, request.socket, { protocols });
    if (await socket.next()) return { status: 200, text: JSON.stringify(await socket.rest()) };
    const { code, reason } = await socket.closed();
    return { status: code - 4000, text: reason };
  }
  const { path, isOpenEnded, ...init } = request;
  const abort = new AbortController();
  const response = await worker.fetch(path, { ...init, headers: bearer(token), signal: abort.signal });
  if (isOpenEnded && response.status === 200) {
    const { value } = await response.body.getReader().read();
    abort.abort();
    return { status: 200, text: Buffer.from(value).toString() };
  }
  return { status: response.status, text: await response.text() };
}

async function judge({ of, ask, good = () => {} }, who, expected) {
  const subject = await of();
  const { status, text } = await answer(ask(subject, who), callers[who]);
  assert.equal(status, expected, text);
  if (status === 200) await good(text, subject, who);
  await subject.close();
  shared.upstream.reset();
  if (status === 200) return;
  const body = JSON.parse(text);
  assert.equal(body.code, CODES[status]);
  for (const secret of [SAID, subject.threadId, subject.runId].filter(Boolean)) {
    assert.ok(!text.includes(secret), `a refusal tells ${secret}`);
  }
}

test("every route of the table has its cases, and no others have", () => {
  assert.deepEqual([...ROUTES].sort(), Object.keys(CASES).sort());
});

test("every route x every caller", { timeout: 120_000 }, async (t) => {
  const names = Object.keys(callers);
  const rows = [["Route", ...names]];
  for (const [route, cases] of Object.entries(CASES)) {
    for (const row of cases) {
      const title = [route, row.what].filter(Boolean).join(", ");
      await t.test(title, { timeout: 60_000 }, async () => {
        for (const [index, who] of names.entries()) {
          await judge(row, who, row.expected[index]).catch((error) => {
            error.message = `${who}: ${error.message}`;
            throw error;
          });
        }
        rows.push([title, ...row.expected.map((status) => `${status} ${CODES[status] ?? ""}`.trim())]);
      });
    }
  }
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  for (const row of rows) t.diagnostic(row.map((cell, column) => cell.padEnd(widths[column])).join(" | "));
});
