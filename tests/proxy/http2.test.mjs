// The Worker behind nginx that speaks HTTP/2 over TLS, as browsers do: nothing is held back (contract 2.4).

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import http2 from "node:http2";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { after } from "node:test";
import { calls, finish, says, text } from "../e2e/support/openai.mjs";
import { PROTOBUF, ProtobufStream } from "../e2e/support/protobuf.mjs";
import { eventually, expectDeltasAsTheyCome, giveResult, runInput, tool } from "../e2e/support/run.mjs";
import { EventStream } from "../e2e/support/sse.mjs";
import { suite, test } from "../e2e/support/suite.mjs";
import { startNginx } from "./support/nginx.mjs";

const shared = suite({ agents: (stub) => [stub({ keepAliveMs: 40 })] });
const { HTTP2_HEADER_METHOD, HTTP2_HEADER_PATH, HTTP2_HEADER_STATUS, NGHTTP2_CANCEL } = http2.constants;

/** A key and a certificate nobody signed. */
function selfSigned() {
  const folder = mkdtempSync(path.join(tmpdir(), "io-bridge-tls-"));
  const [key, certificate] = [path.join(folder, "key.pem"), path.join(folder, "certificate.pem")];
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"];
  const args = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", certificate, ...names];
  const { status, stderr, error } = spawnSync("openssl", args, { encoding: "utf8" });
  assert.equal(status, 0, error?.message ?? stderr);
  return { folder, key, certificate };
}

/** One connection, over which every request of this file goes. */
let connection;

async function connect() {
  const { folder, key, certificate } = selfSigned();
  const ca = readFileSync(certificate);
  const open = async ({ origin }) => {
    const session = http2.connect(origin.replace("http:", "https:"), { ca });
    await new Promise((resolve, reject) => session.once("connect", resolve).once("error", reject));
    return session;
  };
  const settings = { listen: "ssl http2", server: `ssl_certificate ${certificate}; ssl_certificate_key ${key};` };
  const { worker, stop } = await startNginx(shared.worker, settings, async (worker) => {
    (await open(worker)).close();
    return true;
  });
  const session = await open(worker);
  return { worker, session, stop: () => (session.destroy(), rmSync(folder, { recursive: true }), stop()) };
}

after(async () => (await connection)?.stop());

/** POST /run over the one connection, as the answer `fetch` would give. */
async function post(input, headers = {}) {
  const { worker, session } = await (connection ??= connect());
  assert.equal(session.alpnProtocol, "h2");
  const request = session.request({
    [HTTP2_HEADER_METHOD]: "POST",
    [HTTP2_HEADER_PATH]: `${worker.prefix}/run`,
    "content-type": "application/json",
    ...headers,
  });
  request.end(JSON.stringify(input));
  const fields = await new Promise((resolve, reject) => request.once("response", resolve).once("error", reject));
  const plain = Object.entries(fields).filter(([name]) => !name.startsWith(":"));
  const response = new Response(Readable.toWeb(request), { status: fields[HTTP2_HEADER_STATUS], headers: plain });
  return { response, worker, abort: { abort: () => request.close(NGHTTP2_CANCEL) } };
}

async function openRun(input) {
  const { response, abort } = await post(input);
  return new EventStream(response, { input, abort, isProxied: true });
}

test("each frame reaches the client before the upstream sends its next delta", async () => {
  await expectDeltasAsTheyCome(shared.upstream, () => openRun(runInput()));
});

test("protobuf frames pass as they come", async () => {
  const asked = shared.upstream.next();
  const input = runInput();
  const opening = post(input, PROTOBUF);
  const exchange = await asked;
  exchange.head();
  const stream = new ProtobufStream((await opening).response, { isProxied: true });
  for (const delta of ["one ", "two "]) {
    await exchange.write(text(delta)[0]);
    assert.equal((await stream.until("TEXT_MESSAGE_CONTENT")).delta, delta);
  }
  await exchange.writeAll(finish());
  exchange.end();
  await stream.rest(input);
});

test("a run that waits for its tool and one that streams share a connection", async () => {
  const waiting = runInput({ tools: [tool("ask")] });
  shared.upstream.reply(calls([["ask", {}]]));
  const parked = await openRun(waiting);
  const { toolCallId } = await parked.until("TOOL_CALL_END");
  await parked.untilKeepAlive();
  shared.upstream.reply(says("Hello."));
  assert.equal((await (await openRun(runInput())).rest()).at(-1).type, "RUN_FINISHED");
  shared.upstream.reply(says("Thanks."));
  await giveResult(shared.worker, waiting.runId, toolCallId, { result: "42" });
  assert.equal((await parked.rest()).at(-1).type, "RUN_FINISHED");
});

test("a client that resets its stream stops the upstream [D11]", async () => {
  const asked = shared.upstream.next();
  const opening = openRun(runInput());
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
