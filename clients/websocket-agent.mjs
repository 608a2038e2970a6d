// An HttpAgent whose runs go over a WebSocket. It needs nothing but @ag-ui/client and a platform with WebSocket
// (browsers, Node 22, Deno, Bun).
//
//   -const agent = new HttpAgent({ url: "https://io-bridge.example.workers.dev/io-bridge/run", threadId: "t1" });
//   +const agent = new WebSocketAgent({ url: "https://io-bridge.example.workers.dev/io-bridge/run", threadId: "t1" });

import { HttpAgent } from "@ag-ui/client";

const DONE = 1000;
const REFUSED_MIN = 4400;
const REFUSED_MAX = 4599;

const PING = JSON.stringify({ type: "PING" });
const PONG = JSON.stringify({ type: "PONG" });
// Well below the minute after which proxies drop a silent connection.
const PING_MS = 20_000;

const encoder = new TextEncoder();
const KEEP_ALIVE = encoder.encode(": keep-alive\n\n");

export class WebSocketAgent extends HttpAgent {
  /**
   * As HttpAgent's; besides `onRejected`, told of every result the server did not take, and `pingMs`, how often the
   * connection is kept alive (0 = never).
   */
  constructor({ onRejected = () => {}, pingMs = PING_MS, ...config }) {
    super(config);
    this.onRejected = onRejected;
    this.pingMs = pingMs;
    this.socket = undefined;
    // HttpAgent's own seam: how the stream is read stays its affair.
    this.fetch = overSocket(this);
  }

  /** Answers a call of the run under way. */
  sendToolResult(toolCallId, result) {
    if (this.socket?.readyState !== WebSocket.OPEN) throw new Error("no run is under way");
    this.socket.send(JSON.stringify({ type: "TOOL_RESULT", toolCallId, result }));
  }

  clone() {
    const copy = super.clone();
    return Object.assign(copy, { onRejected: this.onRejected, pingMs: this.pingMs, socket: undefined, fetch: overSocket(copy) });
  }
}

const overSocket = (agent) => (url, init) => exchange(agent, url, init);

/** A run over a socket, shown as the HTTP exchange it stands for. */
function exchange(agent, url, { body, headers, signal }) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const socket = new WebSocket(url.replace(/^http/, "ws"), protocols(headers));
    agent.socket = socket;
    let stream;
    const events = new ReadableStream({
      start: (controller) => void (stream = controller),
      cancel: () => end(() => socket.close(DONE)),
    });
    let isAnswered = false;
    const answer = (status, type, content) => {
      if (isAnswered) return;
      isAnswered = true;
      resolve(new Response(content, { status, headers: { "content-type": type } }));
    };
    let isOver = false;
    const end = (how) => {
      if (isOver) return;
      isOver = true;
      how();
    };
    const fail = (error) =>
      end(() => {
        reject(error);
        stream.error(error);
      });
    signal?.addEventListener("abort", () => {
      fail(signal.reason);
      socket.close(DONE);
    });
    let pinging;
    socket.addEventListener("open", () => {
      socket.send(body);
      if (agent.pingMs > 0) pinging = setInterval(() => socket.send(PING), agent.pingMs);
    });
    socket.addEventListener("message", ({ data }) => {
      if (isOver) return;
      // A sign of life for whoever watches the stream.
      if (data === PONG) return isAnswered ? stream.enqueue(KEEP_ALIVE) : undefined;
      if (data.startsWith('{"type":"REJECTED"')) return agent.onRejected(JSON.parse(data));
      stream.enqueue(encoder.encode(`data: ${data}\n\n`));
      answer(200, "text/event-stream", events);
    });
    socket.addEventListener("close", ({ code, reason }) => {
      clearInterval(pinging);
      if (code === DONE) end(() => stream.close());
      else if (code >= REFUSED_MIN && code <= REFUSED_MAX) end(() => answer(code - 4000, "application/json", errorBody(reason)));
      else fail(new Error(`the run was cut off (${code})`));
    });
  });
}

/** A token goes where a page can put one. */
function protocols(headers) {
  const authorization = new Headers(headers).get("authorization") ?? "";
  const [, token] = authorization.match(/^bearer (.+)$/i) ?? [];
  return token === undefined ? [] : ["bearer", token];
}

/** The reason of a refusal is the start of an error's body: whole if it is short, else its sentence. */
function errorBody(reason) {
  try {
    return JSON.stringify(JSON.parse(reason));
  } catch {
    const [, error = "The run was refused."] = reason.match(/^\{"error":"((?:[^"\\]|\\.)*)/) ?? [];
    return JSON.stringify({ error });
  }
}
