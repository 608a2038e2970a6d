import { HttpAgent, type HttpAgentConfig } from "@ag-ui/client";

/** A result the server did not take: HTTP status and error body. */
export interface Rejection {
  type: "REJECTED";
  /** Absent when the frame named no call. */
  toolCallId?: string;
  status: number;
  error: string;
  code: string;
  issues?: { field: string; message: string }[];
}

/** Takes the place of `HttpAgent`; its runs go over a WebSocket. */
export declare class WebSocketAgent extends HttpAgent {
  constructor(config: HttpAgentConfig & { onRejected?: (rejection: Rejection) => void; pingMs?: number });
  onRejected: (rejection: Rejection) => void;
  /** How often the connection is kept alive, in milliseconds; 0 = never, default 20 s. */
  pingMs: number;
  /** The socket of the last run. */
  socket: WebSocket | undefined;
  /** Answers a call of the run under way. Throws when there is none. */
  sendToolResult(toolCallId: string, result: unknown): void;
  clone(): WebSocketAgent;
}
