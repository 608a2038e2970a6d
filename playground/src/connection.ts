// The seam to the wire: a run is opened or followed, its events and frames are heard. Nothing else in this page knows
// about bindings.

import { HttpAgent, type HttpAgentConfig } from "@ag-ui/client";
import { EventType, type BaseEvent, type RunAgentInput, type Tool, type UserMessage } from "@ag-ui/core";
import { WebSocketAgent } from "../../clients/websocket-agent.mjs";
import { Refusal, address, credentials, eventsAddress, postResult } from "./api.ts";
import { watched, type Listener } from "./frames.ts";
import type { Binding } from "./state/settings.ts";

export interface RunRequest {
  runId: string;
  threadId: string;
  /** The new message only: the server has the others. */
  message: UserMessage;
  tools: Tool[];
  forwardedProps: Record<string, unknown>;
}

export interface Hearer {
  onRequest?(input: RunAgentInput): void;
  /** The head of the answer is here. */
  onOpen(runAddress: string | undefined): void;
  onFrame: Listener;
  onEvent(event: BaseEvent): void;
  /** The server did not take a result sent over the socket. */
  onRejected(toolCallId: string | undefined, refusal: Refusal): void;
}

export interface Connection {
  /** Settles with the stream: fulfilled at its clean end, rejected with what broke it or a `Refusal`. */
  done: Promise<void>;
  /** Lets go of the stream; the run itself is not cancelled. */
  close(): void;
  sendResult(runId: string, toolCallId: string, result: unknown): Promise<unknown>;
}

const accept: Record<Binding, string> = {
  sse: "text/event-stream",
  protobuf: "application/vnd.ag-ui.event+proto",
  websocket: "text/event-stream",
};

/** Starts a run. */
export function openRun(request: RunRequest, binding: Binding, hearer: Hearer): Connection {
  const config = { url: address("/run"), threadId: request.threadId, initialMessages: [request.message] };
  const agent = binding === "websocket" ? webSocketAgent(config, hearer) : new HttpAgent(withHeaders(config));
  const send = agent.fetch;
  agent.fetch = (url, init) => heard(send(url, as(binding, init)), hearer);
  const { runId, tools, forwardedProps } = request;
  const done = run(agent, { runId, tools, forwardedProps }, hearer);
  const sendResult = (id: string, toolCallId: string, result: unknown) =>
    agent instanceof WebSocketAgent && agent.socket?.readyState === WebSocket.OPEN
      ? Promise.resolve(agent.sendToolResult(toolCallId, result))
      : postResult(id, toolCallId, { result });
  return { done, close: () => agent.abortRun(), sendResult };
}

/** Reads a run's events from the first one on, and follows it to its end. */
export function followRun(threadId: string, runId: string, runAddress: string | undefined, hearer: Hearer): Connection {
  const agent = new HttpAgent(withHeaders({ url: eventsAddress(runId, runAddress), threadId }));
  agent.fetch = (url, { signal, headers }) => heard(fetch(url, { headers: headers ?? {}, signal: signal ?? null }), hearer);
  const done = run(agent, { runId }, hearer);
  return { done, close: () => agent.abortRun(), sendResult: (id, callId, result) => postResult(id, callId, { result }) };
}

const withHeaders = (config: HttpAgentConfig): HttpAgentConfig => ({ ...config, headers: credentials() });

function webSocketAgent(config: HttpAgentConfig, hearer: Hearer): WebSocketAgent {
  return new WebSocketAgent({
    ...withHeaders(config),
    onRejected: ({ toolCallId, status, ...body }) => hearer.onRejected(toolCallId, new Refusal(status, body)),
  });
}

const as = (binding: Binding, init: RequestInit): RequestInit => ({
  ...init,
  headers: { ...(init.headers as Record<string, string>), accept: accept[binding] },
});

async function heard(answer: Promise<Response>, hearer: Hearer): Promise<Response> {
  const response = await answer;
  if (!response.ok) throw await Refusal.of(response);
  hearer.onOpen(response.headers.get("io-run-address") ?? undefined);
  return watched(response, hearer.onFrame);
}

async function run(agent: HttpAgent, parameters: Parameters<HttpAgent["runAgent"]>[0], hearer: Hearer): Promise<void> {
  await agent.runAgent(parameters, {
    onRunInitialized: ({ input }) => hearer.onRequest?.(input),
    onEvent: ({ event }) => {
      if (!isTheClientsOwn(event)) hearer.onEvent(event);
    },
  });
}

/** The client reports an abort as if the server had said it. */
const isTheClientsOwn = (event: BaseEvent & { code?: string }): boolean =>
  event.type === EventType.RUN_ERROR && event.code === "abort";
