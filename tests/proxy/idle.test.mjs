// A front-end tool that takes longer than the proxy in between lets a connection be silent: keep-alives carry it over
// (contract 2.4). Nginx gives up after 60 seconds unless told otherwise; it is said here because the test is about it.

import assert from "node:assert/strict";
import { calls, says } from "../e2e/support/openai.mjs";
import { giveResult, openRun, runInput, tool } from "../e2e/support/run.mjs";
import { suite, test } from "../e2e/support/suite.mjs";
import { startNginx } from "./support/nginx.mjs";

const shared = suite({ agents: (stub) => [stub(), stub({ id: "mute", keepAliveMs: 0 })] });

const IDLE_S = 60;
const TOOL_MS = 70_000;

test("a tool that is silent for 70 seconds survives a proxy that allows 60", { timeout: 120_000 }, async (t) => {
  const { worker, stop } = await startNginx(shared.worker, { location: `proxy_http_version 1.1; proxy_read_timeout ${IDLE_S}s;` });
  t.after(stop);
  const open = async (agent) => {
    shared.upstream.reply(calls([["ask", {}]]));
    const input = runInput({ agent, tools: [tool("ask")] });
    const stream = await openRun(worker, input);
    const { toolCallId } = await stream.until("TOOL_CALL_END");
    return { input, stream, toolCallId };
  };
  const startedAtMs = performance.now();
  const mute = await open("mute");
  const { input, stream, toolCallId } = await open("stub");
  const cut = mute.stream.untilCut();
  while (performance.now() - startedAtMs < TOOL_MS) await stream.untilKeepAlive();
  await cut;
  assert.equal(mute.stream.commentCount, 0);
  shared.upstream.reply(says("Thanks."));
  await giveResult(worker, input.runId, toolCallId, { result: "42" });
  const events = await stream.rest();
  assert.equal(events.find(({ type }) => type === "TOOL_CALL_RESULT").content, "42");
  assert.equal(events.at(-1).type, "RUN_FINISHED");
});
