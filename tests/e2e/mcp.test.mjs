// A real MCP server end to end (contract 2.5): the one its authors publish to exercise every feature.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import path from "node:path";
import { after, before } from "node:test";
import { calls, says, textOf } from "./support/openai.mjs";
import { ok, openRun, run, runInput } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";

const MANIFEST = createRequire(import.meta.url).resolve("@modelcontextprotocol/server-everything/package.json");

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const port = await freePort();
let server;

async function startServer() {
  server = spawn(process.execPath, [path.join(path.dirname(MANIFEST), "dist/index.js"), "streamableHttp"], {
    env: { ...process.env, PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  await once(server.stderr, "data");
  server.stderr.resume();
}

async function stopServer() {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const gone = once(server, "exit");
  server.kill("SIGKILL");
  await gone;
}

before(startServer);
after(stopServer);

const shared = suite({
  agents: (stub) => [stub({ mcp: ["everything"] }), stub({ id: "cautious", mcp: ["few"] }), stub({ id: "lost", mcp: ["down"] })],
  vars: () => {
    const url = `http://127.0.0.1:${port}/mcp`;
    return {
      MCP_SERVERS: {
        everything: { url, allowPrivate: true, prefix: "every_" },
        few: { url, allowPrivate: true, allow: ["echo", "get-sum"], deny: ["get-sum"] },
        down: { url: "http://127.0.0.1:9/mcp", allowPrivate: true },
      },
    };
  },
});

const toolNames = async (agent) => {
  const { capabilities } = await ok(await shared.worker.fetch(`/agents/${agent}`));
  return capabilities.tools.items.map(({ name }) => name);
};

/** A run whose model makes this call, and the call's RESULT. */
async function resultOf(name, args) {
  shared.upstream.reply(calls([[name, args]]));
  shared.upstream.reply(says("Done."));
  const events = await run(shared.worker, runInput());
  assert.equal(events.at(-1).type, "RUN_FINISHED");
  const results = events.filter(({ type }) => type === "TOOL_CALL_RESULT");
  assert.equal(results.length, 1);
  return JSON.parse(results[0].content);
}

test("discovery lists the server's tools, as the lists of the configuration allow", async () => {
  const names = await toolNames("stub");
  for (const name of ["every_echo", "every_get-sum", "every_get-structured-content"]) assert.ok(names.includes(name), `${names}`);
  assert.deepEqual(await toolNames("cautious"), ["echo"]);
  assert.deepEqual(await toolNames("lost"), []);
});

test("a call works end to end and the model reads its text", async () => {
  const result = await resultOf("every_echo", { message: "hello" });
  assert.deepEqual(result, { content: [{ type: "text", text: "Echo: hello" }] });
  const [asked, told] = shared.upstream.requests;
  const offered = asked.body.tools.find(({ function: { name } }) => name === "every_echo").function;
  assert.equal(offered.parameters.properties.message.type, "string");
  assert.equal(textOf(told.body.messages.at(-1)), "Echo: hello");
});

test("structured content and pictures are kept", async () => {
  const structured = await resultOf("every_get-structured-content", { location: "Chicago" });
  assert.equal(typeof structured.structuredContent.temperature, "number");
  shared.upstream.requests.length = 0;
  const picture = await resultOf("every_get-tiny-image", {});
  assert.ok(picture.content.some(({ type }) => type === "image"));
  assert.match(textOf(shared.upstream.requests[1].body.messages.at(-1)), /\[image\/png\]/);
});

test("a call that reports progress is answered", async () => {
  const result = await resultOf("every_trigger-long-running-operation", { duration: 0.3, steps: 3 });
  assert.match(result.content[0].text, /completed/);
});

test("a run without its server goes on without its tools", async () => {
  shared.upstream.reply(says("Alone."));
  const events = await run(shared.worker, runInput({ agent: "lost" }));
  assert.equal(events.at(-1).type, "RUN_FINISHED");
  assert.equal(shared.upstream.requests[0].body.tools, undefined);
  await shared.worker.logged(/mcp_server_failed/);
});

test("a server that dies during a call gives an error result and a finished run", async () => {
  shared.upstream.reply(calls([["every_trigger-long-running-operation", { duration: 60, steps: 2 }]]));
  shared.upstream.reply(says("Never mind."));
  const stream = await openRun(shared.worker, runInput());
  await stream.until("TOOL_CALL_END");
  await stopServer();
  const events = await stream.rest();
  assert.equal(events.at(-1).type, "RUN_FINISHED");
  const { content } = events.find(({ type }) => type === "TOOL_CALL_RESULT");
  assert.match(JSON.parse(content).error, /^The tool's server /);
  await startServer();
});
