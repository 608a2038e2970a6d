// The runtime dies under a WebSocket: any close but 1000 truncates the run (contract 7).

import assert from "node:assert/strict";
import { WebSocketAgent } from "../../clients/websocket-agent.mjs";
import { calls, text } from "./support/openai.mjs";
import { fresh, runInput, tool } from "./support/run.mjs";
import { Socket } from "./support/socket.mjs";
import { API_KEY, stubAgent, test } from "./support/suite.mjs";
import { startUpstream } from "./support/upstream.mjs";
import { startWorkerProcess } from "./support/worker.mjs";

test("a runtime that is killed never looks like a finished run", async (t) => {
  const upstream = await startUpstream();
  t.after(() => upstream.stop());
  for (const scene of ["while text flows", "while a result is awaited"]) {
    await t.test(scene, async () => {
      const worker = await startWorkerProcess({ agents: [stubAgent(upstream)], secrets: { OPENAI_API_KEY: API_KEY } });
      try {
        const socket = new Socket(worker, runInput({ tools: [tool("ask")] }));
        if (scene === "while text flows") {
          const exchange = await upstream.next();
          exchange.head();
          await exchange.writeAll(text("half an ans"));
          await socket.until("TEXT_MESSAGE_CONTENT");
        } else {
          upstream.reply(calls([["ask", {}]]));
          await socket.until("TOOL_CALL_END");
        }
        await worker.kill();
        assert.equal((await socket.closed()).code, 1006);
      } finally {
        await worker.kill();
      }
    });
  }
});

test("the client of this repository breaks the stream of a run that was cut off", async (t) => {
  const upstream = await startUpstream();
  t.after(() => upstream.stop());
  const worker = await startWorkerProcess({ agents: [stubAgent(upstream)], secrets: { OPENAI_API_KEY: API_KEY } });
  t.after(() => worker.kill());
  const agent = new WebSocketAgent({ url: worker.url("/run"), threadId: fresh("thread") });
  const asked = upstream.next();
  // What HttpAgent reads. Of a stream that breaks it makes an error, and leaves a promise behind that nobody handles.
  const opening = agent.fetch(agent.url, { body: JSON.stringify(runInput()) });
  const exchange = await asked;
  exchange.head();
  await exchange.writeAll(text("half an ans"));
  const reader = (await opening).body.getReader();
  let seen = "";
  while (!seen.includes("TEXT_MESSAGE_CONTENT")) seen += Buffer.from((await reader.read()).value).toString();
  await worker.kill();
  await assert.rejects(reader.read(), /cut off \(1006\)/);
});
