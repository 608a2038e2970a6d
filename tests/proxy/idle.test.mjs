// A front-end tool that takes longer than the proxy in between lets a connection be silent: keep-alives carry it over
// (contract 2.4). Nginx gives up after 60 seconds unless told otherwise; it is said here because the test is about it.

import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { WebSocketAgent } from "../../clients/websocket-agent.mjs";
import { calls, says } from "../e2e/support/openai.mjs";
import { fresh, giveResult, openRun, runInput, tool, user } from "../e2e/support/run.mjs";
import { suite, test } from "../e2e/support/suite.mjs";
import { startNginx } from "./support/nginx.mjs";

const shared = suite({ agents: (stub) => [stub(), stub({ id: "mute", keepAliveMs: 0 })] });

const IDLE_S = 60;
const TOOL_MS = 70_000;

/** What nginx needs to pass a WebSocket on. */
const UPGRADE = 'proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade";';
const SETTINGS = `proxy_http_version 1.1; proxy_read_timeout ${IDLE_S}s;`;

test("a tool that is silent for 70 seconds survives a proxy that allows 60", { timeout: 120_000 }, async (t) => {
  const { worker, stop } = await startNginx(shared.worker, { location: SETTINGS });
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

test("so does one whose run goes over a WebSocket, by the pings of its client", { timeout: 120_000 }, async (t) => {
  const { worker, stop } = await startNginx(shared.worker, { location: SETTINGS + UPGRADE });
  t.after(stop);
  shared.upstream.reply(calls([["ask", {}]]));
  const agent = new WebSocketAgent({ url: worker.url("/run"), threadId: fresh("thread"), initialMessages: [user("Hi")] });
  const answered = [];
  await agent.runAgent(
    { tools: [tool("ask")], forwardedProps: { agentId: "stub" } },
    {
      onToolCallEndEvent: ({ event }) => {
        shared.upstream.reply(says("Thanks."));
        answered.push(pause(TOOL_MS).then(() => agent.sendToolResult(event.toolCallId, "42")));
      },
    },
  );
  await Promise.all(answered);
  assert.deepEqual(agent.messages.map(({ role, content }) => [role, content]).slice(-2), [["tool", "42"], ["assistant", "Thanks."]]);
});
