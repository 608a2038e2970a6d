import { HttpAgent, type AgentSubscriber, type HttpAgentConfig, type RunAgentParameters, type RunAgentResult } from "@ag-ui/client";

/** Takes the place of `HttpAgent`; its runs survive a broken connection. */
export declare class RunConnection extends HttpAgent {
  constructor(
    config: HttpAgentConfig & {
      /** How long a connection may be silent, in milliseconds. Default: 45,000. */
      silenceMs?: number;
      /** Pause before the first attempt to reconnect, in milliseconds; it doubles. Default: 500. */
      retryMs?: number;
      /** Longest pause, in milliseconds. Default: 10,000. */
      retryMaxMs?: number;
      /** Without a new event for so long it fails, in milliseconds. Default: 300,000. */
      giveUpMs?: number;
      /** Told of every attempt. */
      onReconnect?: (attempt: { runId: string; attempt: number }) => void;
    },
  );
  /** Shows a run that is there already, from its first event: one of a thread's `activeRuns`, after a reload. */
  follow(runId: string, parameters?: RunAgentParameters, subscriber?: AgentSubscriber): Promise<RunAgentResult>;
  /** Stops a run on the server; closing the connection does not. Gives its state. */
  cancel(runId: string): Promise<{ runId: string; status: "running" | "waiting" | "finished" | "failed" | "cancelled" }>;
  clone(): RunConnection;
}
