// CopilotKit's runtime on Hono with its own agent, the model an OpenAI-compatible server.

import { createOpenAI } from "@ai-sdk/openai";
import { BuiltInAgent, CopilotRuntime } from "@copilotkit/runtime/v2";
import { createCopilotHonoHandler } from "@copilotkit/runtime/v2/hono";
import { serve } from "@hono/node-server";

const openai = createOpenAI({ baseURL: `${process.env.UPSTREAM}/v1`, apiKey: "unused" });
const runtime = new CopilotRuntime({ agents: { default: new BuiltInAgent({ model: openai.chat("stub-1") }) } });
const app = createCopilotHonoHandler({ runtime, basePath: "/copilotkit" });

const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) =>
  process.send?.({ url: `http://127.0.0.1:${port}/copilotkit` }),
);
process.once("disconnect", () => process.exit());
server.keepAliveTimeout = 60_000;
