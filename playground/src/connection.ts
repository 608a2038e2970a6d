// The seam to the wire: a run is opened or followed, its events and frames are heard. Nothing else in this page knows
// about bindings, or of the connections a run takes.

import { EventType, type BaseEvent, type RunAgentInput, type Tool, type UserMessage } from "@ag-ui/core";
import { decode } from "@ag-ui/proto";
import { RunConnection } from "../../clients/run-connection.mjs";
import { WebSocketAgent } from "../../clients/websocket-agent.mjs";
import { Refusal, address, credentials, postResult } from "./api.ts";
import { watched, type Listener } from "./frames.ts";
import { owner, type Binding } from "./state/settings.ts";

export interface RunRequest {
  runId: string;
  threadId: string;
  agentId: string;
  /** The new message only: the server has the others. Absent for a run that is there already. */
  message?: UserMessage;
  tools?: Tool[];
  /** Where the run is, if it is known. */
  runAddress?: string | undefined;
}

export interface Hearer {
  onRequest(input: RunAgentInput): void;
  /** The head of an answer is here. */
  onOpen(runAddress: string | undefined): void;
  onFrame: Listener;
  onEvent(event: BaseEvent): void;
  /** The connection is gone, another one is tried. */
  onReconnect(): void;
  /** The server begins the run anew. */
  onRestart(generation: number): void;
  /** The server did not take a result sent over the socket. */
  onRejected(toolCallId: string | undefined, refusal: Refusal): void;
}

export interface Connection {
  /** Settles with the stream: fulfilled at its end, rejected with a `Refusal` or what kept it from beginning. */
  done: Promise<void>;
  /** Goes on over a new connection. */
  reconnect(): Promise<void>;
  /** Lets go of the stream; the run itself is not cancelled. */
  close(): void;
  sendResult(toolCallId: string, result: unknown): Promise<unknown>;
}

/** How soon a lost connection is given up, so that the page says so: a person can do something about it. */
const PATIENCE = { retryMs: 300, retryMaxMs: 4000, giveUpMs: 6000 };

/** Starts a run, or follows one from its first event on, to its end. */
export function connect(request: RunRequest, binding: Binding, hearer: Hearer): Connection {
  const { runId, threadId, agentId, message, tools = [], runAddress } = request;
  const url = address("/run");
  const config = { url, threadId, initialMessages: message ? [message] : [], headers: credentials() };
  const socket = binding === "websocket" && message ? webSocketAgent(config, hearer) : undefined;
  let refusal: Refusal | undefined;
  const agent = new RunConnection({
    ...config,
    ...PATIENCE,
    ...(binding === "protobuf" ? { decode } : {}),
    onReconnect: hearer.onReconnect,
    onRestart: ({ generation }) => hearer.onRestart(generation),
    async fetch(to, init) {
      const response = await (socket && to === url ? socket.fetch(to, init) : fetch(to, init));
      if (!response.ok) {
        refusal = await Refusal.of(response.clone());
        return response;
      }
      hearer.onOpen(response.headers.get("io-run-address") ?? undefined);
      return watched(response, hearer.onFrame);
    },
  });
  const parameters = { runId, tools, forwardedProps: { agentId, resourceId: owner.value } };
  const subscriber = {
    onRunInitialized: ({ input }: { input: RunAgentInput }) => {
      if (message) hearer.onRequest(input);
    },
    onEvent: ({ event }: { event: BaseEvent }) => {
      if (!isTheClientsOwn(event)) hearer.onEvent(event);
    },
  };
  const running = message
    ? agent.runAgent(parameters, subscriber)
    : agent.follow(runId, { ...parameters, ...(runAddress === undefined ? {} : { address: runAddress }) }, subscriber);
  const done = running.then(
    () => undefined,
    (error: unknown) => Promise.reject(refusal ?? error),
  );
  const sendResult = (toolCallId: string, result: unknown) =>
    socket?.socket?.readyState === WebSocket.OPEN
      ? Promise.resolve(socket.sendToolResult(toolCallId, result))
      : postResult(runId, toolCallId, { result });
  return { done, reconnect: () => agent.reconnect(), close: () => agent.abortRun(), sendResult };
}

function webSocketAgent(config: ConstructorParameters<typeof WebSocketAgent>[0], hearer: Hearer): WebSocketAgent {
  return new WebSocketAgent({
    ...config,
    onRejected: ({ toolCallId, status, ...body }) => hearer.onRejected(toolCallId, new Refusal(status, body)),
  });
}

/** The client reports an abort as if the server had said it. */
const isTheClientsOwn = (event: BaseEvent & { code?: string }): boolean =>
  event.type === EventType.RUN_ERROR && event.code === "abort";
