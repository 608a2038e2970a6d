// HTTP tools of agents.toml, end to end (contract 2.5): the test is the tool's server.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { calls, says } from "./support/openai.mjs";
import { giveResult, ok, openRun, run, runInput, tool } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";

const KEY = "tool-key-of-the-tests";

const parameters = (properties) => ({
  type: "object",
  properties: Object.fromEntries(properties.map((name) => [name, { type: ["string", "integer"] }])),
});

const shared = suite({
  agents: (stub) => [
    stub({ tools: ["current_time", "order", "create", "fetch", "hurry", "small", "guarded"] }),
    stub({ id: "keyless", tools: ["unset"] }),
  ],
  secrets: { TOOL_KEY: KEY },
  vars: ({ url }) => {
    const common = { description: "A tool of the tests.", allowPrivate: true };
    return {
      TOOLS: {
        order: {
          ...common,
          url: `${url}/tools/orders/{id}?limit={limit}`,
          headers: { authorization: "Bearer ${TOOL_KEY}", "x-plain": "yes" },
          parameters: parameters(["id", "limit", "more"]),
        },
        create: { ...common, method: "POST", url: `${url}/tools/create/{kind}`, parameters: parameters(["kind", "name"]) },
        fetch: { ...common, url: `${url}/tools/fetch` },
        hurry: { ...common, url: `${url}/tools/hurry`, timeoutMs: 150 },
        small: { ...common, url: `${url}/tools/small`, resultMaxBytes: 100_000 },
        guarded: { ...common, url: `${url}/tools/guarded`, allowPrivate: false },
        unset: { ...common, url: `${url}/tools/unset`, headers: { authorization: "Bearer ${NOT_SET}" } },
      },
    };
  },
});

const ofModel = { when: ({ path }) => path.startsWith("/v1/") };
const ofTool = { when: ({ path }) => path.startsWith("/tools/") };

const answers =
  (status, body, headers = {}) =>
  (exchange) => {
    exchange.head(status, { "content-type": "application/json", ...headers });
    exchange.end(body);
  };

/** A run whose model calls this tool once; the tool's server answers by these scripts. Gives the RESULT's content. */
async function resultOf(name, args, ...scripts) {
  shared.upstream.reply(calls([[name, args]]), ofModel);
  shared.upstream.reply(says("Done."), ofModel);
  for (const script of scripts) shared.upstream.reply(script, ofTool);
  const events = await run(shared.worker, runInput());
  assert.equal(events.at(-1).type, "RUN_FINISHED");
  const results = events.filter(({ type }) => type === "TOOL_CALL_RESULT");
  assert.equal(results.length, 1);
  return results[0].content;
}

const toolRequests = () => shared.upstream.requests.filter(ofTool.when);

test("arguments go into path and query, secrets into headers", async () => {
  const args = { id: "a/b ü", limit: 3, more: "x&y" };
  assert.equal(await resultOf("order", args, answers(200, '{"total": 1.0}')), '{"total":1.0}');
  const [request] = toolRequests();
  assert.equal(request.method, "GET");
  assert.equal(request.path, "/tools/orders/a%2Fb%20%C3%BC?limit=3&more=x%26y");
  assert.equal(request.headers.authorization, `Bearer ${KEY}`);
  assert.equal(request.headers["x-plain"], "yes");
});

test("what the path does not name is the body of a POST", async () => {
  assert.equal(await resultOf("create", { kind: "note", name: "n" }, answers(201, "null")), '{"result":null}');
  const [request] = toolRequests();
  assert.deepEqual([request.method, request.path, request.text], ["POST", "/tools/create/note", '{"name":"n"}']);
  assert.equal(request.headers["content-type"], "application/json");
});

test("an argument cannot leave its path", async () => {
  const content = await resultOf("order", { id: ".." });
  assert.match(JSON.parse(content).error, /must be a text or number that can stand in an address/);
  assert.deepEqual(toolRequests(), []);
});

test("faults of the server are error results", async () => {
  assert.equal(
    await resultOf("fetch", {}, answers(500, '{"message":"private words"}')),
    '{"error":"The tool\'s server answered with status 500."}',
  );
  let closed;
  const content = await resultOf("hurry", {}, (exchange) => void (closed = exchange.closedByPeer));
  assert.equal(content, '{"error":"The tool did not answer in time."}');
  await closed;
});

test("a long answer is given up before its end", async () => {
  let closed;
  const content = await resultOf("small", {}, async (exchange) => {
    closed = exchange.closedByPeer;
    exchange.head(200, { "content-type": "text/plain" });
    for (let index = 0; index < 160; index += 1) await exchange.write("x".repeat(65_536));
  });
  assert.equal(content, '{"error":"The tool\'s answer is longer than 100000 bytes."}');
  await closed;
});

test("ten megabytes are over the default limit too", async () => {
  const content = await resultOf("fetch", {}, async (exchange) => {
    exchange.head(200, { "content-type": "text/plain" });
    for (let index = 0; index < 160; index += 1) await exchange.write("x".repeat(65_536));
  });
  assert.equal(content, '{"error":"The tool\'s answer is longer than 4194304 bytes."}');
});

test("a private address is refused, directly and behind a redirect", async () => {
  const refused = '{"error":"The tool\'s address is not allowed."}';
  assert.equal(await resultOf("guarded", {}), refused);
  let wasAsked = false;
  const neighbour = createServer((_, response) => {
    wasAsked = true;
    response.end("secrets of the network");
  });
  await new Promise((resolve) => neighbour.listen(0, "127.0.0.1", resolve));
  const location = `http://127.0.0.1:${neighbour.address().port}/latest/meta-data`;
  assert.equal(await resultOf("fetch", {}, answers(302, "", { location })), refused);
  neighbour.close();
  assert.equal(wasAsked, false);
});

test("a redirect to the tool's own server is followed with its headers", async () => {
  const moved = answers(307, "", { location: "/tools/moved?x=1" });
  assert.equal(await resultOf("order", { id: 1 }, moved, answers(200, "text", { "content-type": "text/plain" })), "text");
  const [first, second] = toolRequests();
  assert.deepEqual([first.path, second.path], ["/tools/orders/1", "/tools/moved?x=1"]);
  assert.equal(second.headers.authorization, `Bearer ${KEY}`);
});

test("eight calls, some refused, run beside a front-end call and each other", async () => {
  const names = Array.from({ length: 8 }, () => ["fetch", {}]);
  shared.upstream.reply(calls([["ask", {}], ...names]), ofModel);
  shared.upstream.reply(says("Done."), ofModel);
  for (let index = 0; index < 8; index += 1) shared.upstream.reply(answers(index % 2 ? 401 : 200, `"${index}"`), ofTool);
  const input = runInput({ tools: [tool("ask")] });
  const stream = await openRun(shared.worker, input);
  const { toolCallId } = await stream.until("TOOL_CALL_END");
  for (let index = 0; index < 8; index += 1) await stream.until("TOOL_CALL_RESULT");
  await giveResult(shared.worker, input.runId, toolCallId, { result: "asked" });
  const results = (await stream.rest()).filter(({ type }) => type === "TOOL_CALL_RESULT");
  assert.equal(results.at(-1).content, "asked");
  assert.equal(new Set(results.map((result) => result.toolCallId)).size, 9);
});

test("discovery lists the tools that work, and a missing secret costs its tool", async () => {
  const { capabilities } = await ok(await shared.worker.fetch("/agents/stub"));
  assert.deepEqual(
    capabilities.tools.items.map(({ name }) => name),
    ["current_time", "order", "create", "fetch", "hurry", "small", "guarded"],
  );
  const keyless = await ok(await shared.worker.fetch("/agents/keyless"));
  assert.deepEqual(keyless.capabilities.tools.items, []);
  await shared.worker.logged(/secret_missing/);
  assert.ok(!shared.worker.logText().includes(KEY));
});
