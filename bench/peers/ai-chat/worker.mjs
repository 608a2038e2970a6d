// Cloudflare's AI Chat as its own pages show it, its model an OpenAI-compatible server.

import { createOpenAI } from "@ai-sdk/openai";
import { AIChatAgent, createToolsFromClientSchemas } from "@cloudflare/ai-chat";
import { routeAgentRequest } from "agents";
import { convertToModelMessages, streamText } from "ai";

export class ChatAgent extends AIChatAgent {
  async onChatMessage(_onFinish, options) {
    const openai = createOpenAI({ baseURL: `${this.env.UPSTREAM}/v1`, apiKey: "unused" });
    const result = streamText({
      model: openai.chat("stub-1"),
      messages: await convertToModelMessages(this.messages),
      tools: createToolsFromClientSchemas(options?.clientTools),
      abortSignal: options?.abortSignal,
    });
    return result.toUIMessageStreamResponse();
  }
}

export default {
  fetch: async (request, env) => (await routeAgentRequest(request, env)) ?? new Response("Not found", { status: 404 }),
};
