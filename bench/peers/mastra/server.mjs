// A Mastra server on Hono whose agents speak AG-UI by `@ag-ui/mastra`: one without memory, one with, each a route that
// encodes the agent's events as they come. (`registerCopilotKit` would put CopilotKit's runtime on top of the same.)

import { EventEncoder } from "@ag-ui/encoder";
import { getLocalAgent } from "@ag-ui/mastra";
import { serve } from "@hono/node-server";
import { Agent } from "@mastra/core/agent";
import { Mastra } from "@mastra/core/mastra";
import { MastraServer } from "@mastra/hono";
import { LibSQLStore } from "@mastra/libsql";
import { Memory } from "@mastra/memory";
import { Hono } from "hono";

const storage = new LibSQLStore({ id: "bench", url: ":memory:" });
const agent = (id, more) =>
  new Agent({
    id,
    name: id,
    instructions: "Be brief.",
    model: { id: "bench/stub-1", url: `${process.env.UPSTREAM}/v1`, apiKey: "unused" },
    ...more,
  });
const mastra = new Mastra({
  logger: false,
  storage,
  agents: { helper: agent("helper"), rememberer: agent("rememberer", { memory: new Memory({ storage }) }) },
});

const app = new Hono();
await new MastraServer({ app, mastra }).init();
app.post("/ag-ui/:agentId", async (context) => {
  const input = await context.req.json();
  const resourceId = input.forwardedProps?.resourceId ?? "anonymous";
  const events = getLocalAgent({ mastra, agentId: context.req.param("agentId"), resourceId }).run(input);
  const encoder = new EventEncoder({ accept: "text/event-stream" });
  const text = new TextEncoder();
  const body = new ReadableStream({
    start(controller) {
      events.subscribe({
        next: (event) => controller.enqueue(text.encode(encoder.encode(event))),
        error: (error) => controller.error(error),
        complete: () => controller.close(),
      });
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
});

const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) =>
  process.send?.({ url: `http://127.0.0.1:${port}/ag-ui` }),
);
process.once("disconnect", () => process.exit());
server.keepAliveTimeout = 60_000;
