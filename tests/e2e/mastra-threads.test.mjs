// The thread routes where a Mastra server keeps the threads (contract 4, 6): which server is asked, and what it is asked.

import assert from "node:assert/strict";
import { fresh, ok, refused } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";
import { startWorker } from "./support/worker.mjs";

const shared = suite({
  agents: (stub) => [
    stub(),
    {
      id: "rememberer",
      provider: "mastra",
      model: "rememberer",
      memory: "mastra",
      baseUrl: stub().baseUrl.replace("/v1", ""),
      apiKeySecret: "MASTRA_TOKEN",
    },
  ],
  secrets: { MASTRA_TOKEN: "mastra-token" },
});

const AT = "2026-11-29T00:00:00.000Z";
const kept = (id, owner, more) => ({ id, resourceId: owner, title: "", createdAt: AT, updatedAt: AT, metadata: null, ...more });

/** The next request to the server gets this answer. */
const answers = (status, body) =>
  shared.upstream.reply(async (exchange) => {
    exchange.head(status, { "content-type": "application/json" });
    exchange.end(JSON.stringify(body));
  });

const asked = () => shared.upstream.requests.map(({ method, path }) => `${method} ${path.split("?")[0]}`);

const of = (path, query = "") => `${path}?agentId=rememberer${query}`;

test("the agent the query names says who keeps the threads, and an unknown one says nothing", async () => {
  const owner = fresh("owner");
  const created = await ok(await shared.worker.fetch("/threads", { json: { resourceId: owner, title: "Ours" } }));
  for (const query of ["", "&agentId=stub", "&agentId=nobody"]) {
    const { threads } = await ok(await shared.worker.fetch(`/threads?resourceId=${owner}${query}`));
    assert.deepEqual(threads, [created]);
  }
  assert.deepEqual(asked(), []);
  answers(200, { threads: [kept("theirs", owner)], total: 1, page: 0, perPage: 100, hasMore: false });
  const listed = await ok(await shared.worker.fetch(of("/threads", `&resourceId=${owner}`)));
  assert.deepEqual(listed, {
    threads: [{ id: "theirs", resourceId: owner, createdAt: AT, updatedAt: AT, metadata: {} }],
    total: 1,
    page: 0,
    perPage: 100,
    hasMore: false,
  });
  assert.deepEqual(asked(), ["GET /api/memory/threads"]);
  assert.equal(shared.upstream.requests[0].headers.authorization, "Bearer mastra-token");
});

test("a list without an owner is refused, an empty owner has no threads, and nobody is asked [4]", async () => {
  await refused(await shared.worker.fetch(of("/threads")), 400, "owner_required");
  assert.deepEqual((await ok(await shared.worker.fetch(of("/threads", "&resourceId=")))).threads, []);
  await refused(await shared.worker.fetch(of("/threads", "&resourceId=a&cursor=x")), 400, "invalid_query");
  assert.deepEqual(asked(), []);
});

test("the owner is looked up before anything is done with a thread [D4]", async () => {
  const path = of("/threads/t", "&resourceId=bob");
  const theirs = kept("t", "ada");
  for (const [route, init] of [
    [path, {}],
    [path, { method: "PATCH", json: { title: "Mine" } }],
    [path, { method: "DELETE" }],
    [of("/threads/t/messages", "&resourceId=bob"), {}],
    [of("/threads/t/export", "&resourceId=bob"), {}],
    [of("/threads"), { json: { threadId: "t", resourceId: "bob" } }],
  ]) {
    answers(200, theirs);
    await refused(await shared.worker.fetch(route, init), 403, "forbidden");
  }
  assert.deepEqual(new Set(asked()), new Set(["GET /api/memory/threads/t"]));
});

test("the routes answer as they do for threads of our own [4]", async () => {
  const call = (path, init) => shared.worker.fetch(path, init);
  answers(404, { error: "Thread not found" });
  answers(200, kept("t", "ada", { title: "Plan" }));
  const shown = { id: "t", title: "Plan", resourceId: "ada", createdAt: AT, updatedAt: AT, metadata: {} };
  assert.deepEqual(await ok(await call(of("/threads"), { json: { id: "t", resourceId: "ada", title: "Plan" } })), shown);
  answers(200, kept("t", "ada", { title: "Plan" }));
  assert.deepEqual(await ok(await call(of("/threads/t"))), shown);
  answers(200, kept("t", "ada"));
  answers(200, kept("t", "ada", { title: "New", metadata: { a: 1 } }));
  const patched = await ok(await call(of("/threads/t"), { method: "PATCH", json: { title: "New", metadata: { a: 1 } } }));
  assert.deepEqual(patched, { ...shown, title: "New", metadata: { a: 1 } });
  answers(200, kept("t", "ada"));
  answers(200, { result: "Thread deleted" });
  assert.deepEqual(await ok(await call(of("/threads/t"), { method: "DELETE" })), { success: true, result: "Thread deleted" });
  answers(404, {});
  await refused(await call(of("/threads/t")), 404, "thread_not_found");
  assert.deepEqual(
    shared.upstream.requests.filter(({ text }) => text !== "").map(({ method, body }) => [method, body]),
    [
      ["POST", { resourceId: "ada", threadId: "t", metadata: {}, title: "Plan" }],
      ["PATCH", { title: "New", metadata: { a: 1 } }],
    ],
  );
});

test("messages come in either form, and the export is the thread with all of them [4]", async () => {
  const message = { id: "m", role: "user", createdAt: AT, content: { format: 2, parts: [{ type: "text", text: "Hi" }] } };
  const page = { messages: [message], total: 1, page: 0, perPage: 100, hasMore: false };
  const get = async (path) => {
    answers(200, kept("t", "ada"));
    answers(200, page);
    return ok(await shared.worker.fetch(path));
  };
  const envelope = { total: 1, page: 0, perPage: 100, hasMore: false };
  assert.deepEqual(await get(of("/threads/t/messages")), {
    messages: [
      {
        id: "m",
        role: "user",
        createdAt: AT,
        threadId: "t",
        resourceId: "ada",
        type: "v2",
        content: { format: 2, parts: [{ type: "text", text: "Hi" }], content: "Hi" },
      },
    ],
    ...envelope,
  });
  const plain = [{ id: "m", role: "user", content: "Hi" }];
  assert.deepEqual(await get(of("/threads/t/messages", "&format=ag-ui")), { messages: plain, ...envelope });
  assert.deepEqual((await get(of("/threads/t/export"))).messages, plain);
});

test("a server that fails is a bad gateway, without its words [D2]", async () => {
  answers(500, { error: "private words" });
  const body = await refused(await shared.worker.fetch(of("/threads/t")), 502, "upstream_error");
  assert.doesNotMatch(JSON.stringify(body), /private/);
});

test("an erasure reaches the threads of every keeper", async () => {
  answers(200, { threads: [kept("a", "eve"), kept("b", "eve")], total: 2, page: 0, perPage: 40, hasMore: false });
  answers(200, {});
  answers(200, {});
  const erased = await ok(await shared.worker.fetch("/owners/eve/erase", { json: { confirm: "eve" } }));
  assert.deepEqual(erased, { success: true, complete: true });
  assert.deepEqual(asked(), ["GET /api/memory/threads", "DELETE /api/memory/threads/a", "DELETE /api/memory/threads/b"]);
});

test("without a database the threads of such a default agent are still there [9]", async () => {
  const worker = await startWorker({
    agents: [{ id: "io-agent", provider: "mastra", model: "m", memory: "mastra", baseUrl: shared.upstream.url }],
    without: ["DB"],
  });
  try {
    assert.equal((await ok(await worker.fetch(""))).conformanceLevel, 4);
    answers(200, kept("t", "ada"));
    assert.equal((await ok(await worker.fetch("/threads/t"))).id, "t");
  } finally {
    await worker.stop();
  }
});
