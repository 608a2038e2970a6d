// What a client saw of a run: events in the form of its protocol, each with the time at which it was whole.
//
// Pieces are kept as they come and read when somebody asks, so that while a stream flows the client costs next to
// nothing.

import { once } from "node:events";
import { Agent, request as httpRequest } from "node:http";
import { nowMs } from "../clock.mjs";

const agent = new Agent({ keepAlive: true, maxSockets: Infinity });

export class Recording {
  /** Every event read so far, `{ atMs, event }`. */
  events = [];
  #pieces = [];
  #readTo = 0;
  #wake;
  #rest = "";
  #decoder = new TextDecoder();

  constructor({ isFramed }) {
    // Whether each piece is one whole event, as a WebSocket's are.
    this.isFramed = isFramed;
    this.startMs = nowMs();
    this.done = new Promise((resolve, reject) => Object.assign(this, { finish: resolve, fail: reject }));
    // Whoever waits for the end hears of a failure; who does not must not bring the process down.
    this.done.catch(() => {});
    this.done.finally(() => this.#wake?.()).catch(() => {});
  }

  add(piece) {
    this.#pieces.push({ atMs: nowMs(), piece });
    this.#wake?.();
  }

  end() {
    this.endMs = nowMs();
    this.finish(this);
  }

  /** Reads what has come since last time. */
  read() {
    for (; this.#readTo < this.#pieces.length; this.#readTo += 1) {
      const { atMs, piece } = this.#pieces[this.#readTo];
      this.#pieces[this.#readTo] = undefined;
      for (const text of this.isFramed ? [piece] : this.#frames(piece)) this.events.push({ atMs, event: JSON.parse(text) });
    }
    return this.events;
  }

  /** Waits for the first event, from a place on, that is as asked; gives it with its time. */
  async until(matches, from = 0) {
    for (;;) {
      const found = this.read().slice(from).find(({ event }) => matches(event));
      if (found) return found;
      if (this.endMs) throw new Error(`the run ended without it: ${JSON.stringify(this.events.slice(-3))}`);
      await Promise.race([new Promise((resolve) => (this.#wake = resolve)), this.done]);
    }
  }

  #frames(bytes) {
    const lines = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split("\n");
    this.#rest = lines.pop();
    const data = [];
    for (const line of lines) if (line.startsWith("data: ") && line !== "data: [DONE]") data.push(line.slice(6));
    return data;
  }
}

/** Posts JSON and records the stream that comes back. */
export async function post(url, body, { headers = {} } = {}) {
  const bytes = Buffer.from(JSON.stringify(body));
  for (;;) {
    const recording = new Recording({ isFramed: false });
    const request = httpRequest(url, {
      method: "POST",
      agent,
      headers: { "content-type": "application/json", "content-length": bytes.length, accept: "text/event-stream", ...headers },
    });
    recording.close = () => request.destroy();
    request.on("error", recording.fail);
    request.end(bytes);
    try {
      await take(recording, request);
      return recording;
    } catch (error) {
      // The server closed a kept connection in the moment it was to be used again.
      if (error.code !== "ECONNRESET" || !request.reusedSocket) throw error;
    }
  }
}

/** Waits for the head of the answer, and lets the recording have the rest. */
async function take(recording, request) {
  const [response] = await Promise.race([once(request, "response"), recording.done]);
  response.on("error", recording.fail);
  if (response.statusCode !== 200) {
    const text = Buffer.concat(await response.toArray()).toString();
    throw new Error(`${request.path} was answered ${response.statusCode}: ${text}`);
  }
  recording.headers = response.headers;
  response.on("data", (piece) => recording.add(piece));
  response.once("end", () => recording.end());
}

/** Posts JSON and gives the JSON that comes back. */
export async function postJson(url, body) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return response.json();
}
