import { HttpAgent, type AgentSubscriber, type BaseEvent, type HttpAgentConfig, type RunAgentParameters, type RunAgentResult } from "@ag-ui/client";

/** Takes the place of `HttpAgent`; its runs survive a broken connection. */
export declare class RunConnection extends HttpAgent {
  constructor(
    config: HttpAgentConfig & {
      /** `decode` of `@ag-ui/proto`: runs come as protobuf then. */
      decode?: (bytes: Uint8Array) => BaseEvent;
      /** How long a connection may be silent, in milliseconds. Default: 45,000. */
      silenceMs?: number;
      /** Pause before the first attempt to reconnect, in milliseconds; it doubles. Default: 500. */
      retryMs?: number;
      /** Longest pause, in milliseconds. Default: 10,000. */
      retryMaxMs?: number;
      /** When the server was not heard for so long, the run ends as RUN_ERROR `connection_lost`, in milliseconds. Default: 300,000. */
      giveUpMs?: number;
      /** Told of every attempt. */
      onReconnect?: (attempt: { runId: string; attempt: number }) => void;
      /** Told that the server begins the run anew, before the client is fed what that means. */
      onRestart?: (restart: { runId: string; generation: number }) => void;
    },
  );
  /**
   * Shows a run that is there already, from its first event: one of a thread's `activeRuns`, after a reload. One that is
   * not kept needs its `address`, as the header `io-run-address` gave it.
   */
  follow(runId: string, parameters?: RunAgentParameters & { address?: string }, subscriber?: AgentSubscriber): Promise<RunAgentResult>;
  /** Goes on over a new connection, before the old one shows that it is dead: the network has changed, the page is back. */
  reconnect(): Promise<void>;
  /** Stops a run on the server; closing the connection does not. Gives its state. */
  cancel(runId: string): Promise<{ runId: string; status: "running" | "waiting" | "finished" | "failed" | "cancelled" }>;
  clone(): RunConnection;
}
