// The runtime dies under a WebSocket: any close but 1000 truncates the run (contract 7).

import assert from "node:assert/strict";
import { calls, text } from "./support/openai.mjs";
import { runInput, tool } from "./support/run.mjs";
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
