// Nothing private turns up where it does not belong: canaries go through every way to fail, then logs, answers and
// storage are looked through.

import assert from "node:assert/strict";
import { call, calls, chunk, refuses, says, text } from "./support/openai.mjs";
import { fresh, openRun, runInput, tool, user } from "./support/run.mjs";
import { Socket } from "./support/socket.mjs";
import { suite, test } from "./support/suite.mjs";

const CANARIES = {
  key: "sk-canary-key-1f0a",
  token: "canary-token-2b1c",
  instructions: "canary-instructions-3c2d",
  message: "canary-message-4d3e",
  result: "canary-result-5e4f",
  query: "canary-query-6f50",
  upstream: "canary-upstream-7061",
  argument: "canary-argument-8172",
  toolKey: "canary-toolkey-9283",
};

const shared = suite({
  agents: (stub) => [stub({ instructions: CANARIES.instructions, maxRetries: 0, tools: ["weather"] })],
  vars: (upstream) => ({
    LOG_LEVEL: "debug",
    AUTH: { mode: "bearer", tokens: [{ secret: "TOKEN", owner: "ada" }] },
    TOOLS: {
      weather: {
        description: "Weather.",
        url: `${upstream.url}/weather/{city}?secret=${CANARIES.query}`,
        headers: { authorization: "Bearer ${TOOL_KEY}" },
        parameters: { type: "object", properties: { city: { type: "string" } } },
        allowPrivate: true,
      },
    },
  }),
  secrets: { OPENAI_API_KEY: CANARIES.key, TOKEN: CANARIES.token, TOOL_KEY: CANARIES.toolKey },
});

const headers = { authorization: `Bearer ${CANARIES.token}`, "content-type": "application/json" };
const asks = (more) => runInput({ owner: "ada", messages: [user(CANARIES.message)], ...more });
const post = (path, body) => shared.worker.fetch(path, { method: "POST", headers, body: typeof body === "string" ? body : JSON.stringify(body) });

/** Everything an answer says, and its headers. */
async function said(response) {
  let body = "";
  try {
    body = await response.text();
  } catch {
    // Cut off: what came before is not told by fetch.
  }
  return `${response.status} ${JSON.stringify([...response.headers])} ${body}`;
}

/** Each way to fail; gives what the client was told. */
const FAILURES = {
  "the body is no JSON": () => post(`/run?resourceId=ada&x=${CANARIES.query}`, `{"messages": "${CANARIES.message}`),
  "the body is of another form": () => post("/run", { ...asks(), messages: [{ id: "x", role: "user", content: { secret: CANARIES.message } }] }),
  "the agent is unknown": () => post("/run", asks({ agent: "none" })),
  "the token is wrong": () => shared.worker.fetch(`/threads?token=${CANARIES.query}`, { headers: { authorization: `Bearer ${CANARIES.token}x` } }),
  "the owner is another": () => post("/run", asks({ owner: "bob" })),
  "the route is unknown": () => shared.worker.fetch(`/nothing/${fresh("x")}?q=${CANARIES.query}`, { headers }),
  "the query is wrong": () => shared.worker.fetch(`/threads?limit=${CANARIES.query}`, { headers }),
  "the upstream refuses": () => {
    shared.upstream.reply(refuses(401, { body: {
      error: { message: `${CANARIES.upstream} bad key ${CANARIES.key} at https://x.test/?k=${CANARIES.query}`, prompt: CANARIES.instructions, key: CANARIES.key },
    } }));
    return post("/run", asks());
  },
  "the upstream fails": () => {
    shared.upstream.reply(refuses(500, { body: `<html>${CANARIES.upstream}</html>` }));
    return post("/run", asks());
  },
  "the upstream limits": () => {
    shared.upstream.reply(refuses(429, { headers: { "retry-after": "3600" }, body: { error: { message: CANARIES.upstream } } }));
    return post("/run", asks());
  },
  "the upstream speaks of an error in its stream": () => {
    shared.upstream.reply(async (exchange) => {
      exchange.head();
      await exchange.writeAll(text("a"), `data: {"error":{"message":"${CANARIES.upstream}","code":"x"}}\n\n`);
      exchange.end();
    });
    return post("/run", asks());
  },
  "the upstream sends nonsense": () => {
    shared.upstream.reply(async (exchange) => {
      exchange.head();
      await exchange.writeAll(`data: ${CANARIES.upstream}\n\n`);
      exchange.end();
    });
    return post("/run", asks());
  },
  "the upstream breaks off": () => {
    shared.upstream.reply(async (exchange) => {
      exchange.head();
      await exchange.writeAll(chunk({ content: "a" }), call("weather", `{"city":"${CANARIES.argument}`));
      exchange.destroy();
    });
    return post("/run", asks());
  },
  "the socket's input is wrong": async () => {
    const input = asks({ threadId: 7 });
    const { code, reason } = await new Socket(shared.worker, input, { protocols: ["bearer", CANARIES.token] }).closed();
    return new Response(`${code} ${reason}`);
  },
  "the result is for nobody": () => post(`/runs/r/tool-calls/c/result?x=${CANARIES.query}`, { result: CANARIES.result }),
};

test("what fails tells neither client nor log anything private", async () => {
  for (const [what, fail] of Object.entries(FAILURES)) {
    const told = await said(await fail());
    for (const [name, canary] of Object.entries(CANARIES)) assert.ok(!told.includes(canary), `${what}: the client is told the ${name}: ${told}`);
  }
});

test("a server tool that fails tells the model only what it may know", async () => {
  const isModel = ({ path }) => path.startsWith("/v1/");
  shared.upstream.reply(calls([["weather", { city: CANARIES.argument }]]), { when: isModel });
  shared.upstream.reply(refuses(500, { body: { error: CANARIES.upstream } }), { when: ({ path }) => path.startsWith("/weather/") });
  shared.upstream.reply(says("ok"), { when: isModel });
  const events = await (await openRun(shared.worker, asks(), { headers })).rest();
  const told = JSON.stringify(events);
  for (const name of ["key", "token", "toolKey", "query", "instructions", "upstream"]) assert.ok(!told.includes(CANARIES[name]), name);
  const toModel = shared.upstream.requests.filter(isModel).at(-1).text;
  for (const name of ["key", "token", "toolKey", "query"]) assert.ok(!toModel.includes(CANARIES[name]), `the model reads the ${name}`);
});

test("results that are refused are not told either", async () => {
  shared.upstream.reply(calls([["one", {}]]));
  shared.upstream.reply(says("ok"));
  const input = asks({ tools: [tool("one")] });
  const stream = await openRun(shared.worker, input, { headers });
  const { toolCallId } = await stream.until("TOOL_CALL_END");
  const send = (body) => post(`/runs/${input.runId}/tool-calls/${toolCallId}/result`, body);
  const answers = [await send(`{"result": "${CANARIES.result}`), await send({ result: CANARIES.result }), await send({ result: `${CANARIES.result} again` })];
  await stream.rest();
  answers.push(await send({ result: CANARIES.result }));
  assert.deepEqual(answers.map(({ status }) => status), [400, 200, 409, 410]);
  for (const answer of answers) assert.ok(!(await said(answer)).includes(CANARIES.result));
});

test("the log has nothing of all this, and the rows only what people said", async () => {
  await shared.worker.logged(/"event":"request"/);
  // An upstream's own words of what went wrong are for the operator: without addresses and keys, which it repeats above.
  const log = await shared.worker.logged(new RegExp(`"event":"upstream_failed".*"detail":"${CANARIES.upstream} bad key \\[removed\\] at \\[removed\\]"`));
  for (const [name, canary] of Object.entries(CANARIES).filter(([name]) => name !== "upstream")) {
    const line = log.split("\n").find((line) => line.includes(canary));
    assert.equal(line, undefined, `the log has the ${name}: ${line}`);
  }
  const { results: tables } = await shared.worker.database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE '\\_cf%' ESCAPE '\\'")
    .all();
  // A message is where messages are, and in the title that is cut from it; what tools said is in messages.
  const belongs = { messages: ["message", "result", "argument"], message_pieces: ["message", "result", "argument"], threads: ["message"] };
  for (const { name: table } of tables) {
    const { results } = await shared.worker.database.prepare(`SELECT * FROM "${table}"`).all();
    const rows = JSON.stringify(results);
    for (const [name, canary] of Object.entries(CANARIES)) {
      if (!belongs[table]?.includes(name)) assert.ok(!rows.includes(canary), `${table} has the ${name}`);
    }
  }
});
