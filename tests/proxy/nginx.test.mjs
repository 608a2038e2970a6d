// The Worker behind nginx with its default settings: nothing is held back (contract 2.4, `x-accel-buffering: no`).

import assert from "node:assert/strict";
import { after } from "node:test";
import { calls, finish, says, text } from "../e2e/support/openai.mjs";
import { PROTOBUF, ProtobufStream } from "../e2e/support/protobuf.mjs";
import { eventually, expectDeltasAsTheyCome, giveResult, openRun, run, runInput, tool } from "../e2e/support/run.mjs";
import { API_KEY, stubAgent, suite, test } from "../e2e/support/suite.mjs";
import { startWorkerProcess } from "../e2e/support/worker.mjs";
import { startNginx } from "./support/nginx.mjs";

const shared = suite({ agents: (stub) => [stub({ keepAliveMs: 40 })] });

let proxy;

/** The Worker as it is seen through nginx, which is started once. */
const behindNginx = () => (proxy ??= startNginx(shared.worker));

after(async () => (await proxy)?.stop());

test("each frame reaches the client before the upstream sends its next delta", async () => {
  const { worker } = await behindNginx();
  await expectDeltasAsTheyCome(shared.upstream, () => openRun(worker, runInput()));
});

test("keep-alives and a tool's loop pass", async () => {
  const { worker } = await behindNginx();
  shared.upstream.reply(calls([["ask", {}]]));
  shared.upstream.reply(says("Thanks."));
  const input = runInput({ tools: [tool("ask")] });
  const stream = await openRun(worker, input);
  const { toolCallId } = await stream.until("TOOL_CALL_END");
  await stream.untilKeepAlive();
  await giveResult(worker, input.runId, toolCallId, { result: "42" });
  assert.equal((await stream.rest()).at(-1).type, "RUN_FINISHED");
});

test("protobuf passes as it is", async () => {
  const { worker } = await behindNginx();
  const asked = shared.upstream.next();
  const input = runInput();
  const opening = worker.fetch("/run", { json: input, headers: PROTOBUF });
  const exchange = await asked;
  exchange.head();
  const stream = new ProtobufStream(await opening, worker);
  await exchange.write(text("one ")[0]);
  assert.equal((await stream.until("TEXT_MESSAGE_CONTENT")).delta, "one ");
  await exchange.writeAll(finish());
  exchange.end();
  await stream.rest(input);
});

test("a client that leaves the proxy stops the upstream [D11]", async () => {
  const { worker } = await behindNginx();
  const asked = shared.upstream.next();
  const opening = openRun(worker, runInput());
  const exchange = await asked;
  exchange.head();
  const stream = await opening;
  await exchange.writeAll(text("one "));
  await stream.until("TEXT_MESSAGE_CONTENT");
  await stream.abandon();
  let isClosed = false;
  void exchange.closedByPeer.then(() => (isClosed = true));
  await eventually(() => exchange.writeAll(text("more ")), () => isClosed);
});

test("a long answer is whole", async () => {
  const { worker } = await behindNginx();
  const words = Array.from({ length: 3000 }, (_, index) => ` word${index}`);
  shared.upstream.reply(says(...words));
  const events = await run(worker, runInput());
  const deltas = events.filter(({ type }) => type === "TEXT_MESSAGE_CONTENT").map(({ delta }) => delta);
  assert.equal(deltas.join(""), words.join(""));
});

// An older nginx (1.22, for one) asks with HTTP/1.0 by default, where a connection that dies looks like the end of the body.
test("a server that dies behind nginx breaks the client's connection, given `proxy_http_version 1.1`", async (t) => {
  const server = await startWorkerProcess({ agents: [stubAgent(shared.upstream)], secrets: { OPENAI_API_KEY: API_KEY } });
  t.after(() => server.kill());
  const { worker, stop } = await startNginx(server, { location: "proxy_http_version 1.1;" });
  t.after(stop);
  const asked = shared.upstream.next();
  const opening = openRun(worker, runInput());
  const exchange = await asked;
  exchange.head();
  const stream = await opening;
  await exchange.writeAll(text("half an ans"));
  await stream.until("TEXT_MESSAGE_CONTENT");
  await server.kill();
  await stream.untilCut();
});
