// A real Mastra server on a free port. Its model is the test itself: an OpenAI-compatible upstream stub.

import { serve } from "@hono/node-server";
import { Agent } from "@mastra/core/agent";
import { Mastra } from "@mastra/core/mastra";
import { createTool } from "@mastra/core/tools";
import { MastraServer } from "@mastra/hono";
import { LibSQLStore } from "@mastra/libsql";
import { Memory } from "@mastra/memory";
import { Hono } from "hono";
import { z } from "zod";

const TOOLS = {
  current_time: createTool({
    id: "current_time",
    description: "Tells the time.",
    inputSchema: z.object({}),
    execute: async () => ({ time: "noon" }),
  }),
  broken: createTool({
    id: "broken",
    description: "Fails.",
    inputSchema: z.object({}),
    execute: async () => {
      throw new Error("It is broken.");
    },
  }),
  pay: createTool({
    id: "pay",
    description: "Pays.",
    inputSchema: z.object({}),
    requireApproval: true,
    execute: async () => ({ paid: true }),
  }),
};

/**
 * Starts a server with the agents `helper` and, with threads of its own, `rememberer`. `upstreamUrl` is asked at each
 * model call.
 */
export async function startMastra(upstreamUrl) {
  const storage = new LibSQLStore({ id: "tests", url: ":memory:" });
  const agent = (id, more) =>
    new Agent({
      id,
      name: id,
      instructions: "Be brief.",
      model: () => ({ id: "stub/stub-1", url: `${upstreamUrl()}/v1`, apiKey: "unused" }),
      tools: TOOLS,
      ...more,
    });
  const mastra = new Mastra({
    logger: false,
    storage,
    agents: { helper: agent("helper"), rememberer: agent("rememberer", { memory: new Memory({ storage }) }) },
  });
  const app = new Hono();
  await new MastraServer({ app, mastra }).init();
  const server = await new Promise((resolve) => {
    const started = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, () => resolve(started));
  });
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await mastra.shutdown();
    },
  };
}
