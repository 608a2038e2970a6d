// A strict client of the WebSocket transport: contract 7 and nothing else.

import assert from "node:assert/strict";
import { judge } from "./judge.mjs";

/** One run over one socket. */
export class Socket {
  /** Events so far. */
  events = [];
  /** REJECTED frames so far. */
  rejections = [];
  #socket;
  #input;
  #arrived = [];
  #wake = () => {};
  #close;
  #pongCount = 0;

  constructor(worker, input, { query = "", protocols = [], first } = {}) {
    this.#input = input;
    this.#socket = new WebSocket(worker.url("/run").replace(/^http/, "ws") + query, protocols);
    this.#socket.addEventListener("open", () => this.#socket.send(first ?? JSON.stringify(input)));
    this.#socket.addEventListener("message", ({ data }) => this.#arrive(data));
    this.#socket.addEventListener("close", ({ code, reason }) => {
      this.#close = { code, reason };
      this.#wake();
    });
  }

  get protocol() {
    return this.#socket.protocol;
  }

  /** The next event, or undefined when the socket is closed. */
  async next() {
    for (;;) {
      const frame = this.#arrived.shift();
      if (frame?.type === "REJECTED") this.rejections.push(frame);
      else if (frame !== undefined) {
        this.events.push(frame);
        return frame;
      } else if (this.#close) return undefined;
      else await new Promise((resolve) => (this.#wake = resolve));
    }
  }

  async until(type) {
    for (;;) {
      const event = await this.next();
      assert.ok(event, `the socket was closed before ${type}: ${JSON.stringify(this.#close)}`);
      if (event.type === type) return event;
    }
  }

  /** Waits for a REJECTED frame; events may come before it. */
  async rejection() {
    while (this.rejections.length === 0) {
      const at = this.#arrived.findIndex(({ type }) => type === "REJECTED");
      if (at >= 0) this.rejections.push(...this.#arrived.splice(at, 1));
      else await new Promise((resolve) => (this.#wake = resolve));
    }
    return this.rejections.shift();
  }

  send(frame) {
    this.#socket.send(typeof frame === "string" || frame instanceof Uint8Array ? frame : JSON.stringify(frame));
  }

  /** Sends a PING and waits for its PONG; events may come before it. */
  async ping() {
    const before = this.#pongCount;
    this.send({ type: "PING" });
    while (this.#pongCount === before) {
      assert.equal(this.#close, undefined, "the socket was closed before PONG");
      await new Promise((resolve) => (this.#wake = resolve));
    }
  }

  sendResult(toolCallId, result) {
    this.send({ type: "TOOL_RESULT", toolCallId, result });
  }

  /** Reads to close code 1000, judges the whole stream and gives all its events. */
  async rest() {
    while (await this.next());
    assert.deepEqual(this.#close, { code: 1000, reason: "" });
    await judge(this.events, { input: this.#input });
    return this.events;
  }

  /** Waits for a close that is not 1000 and judges what came. */
  async closed() {
    while (await this.next());
    if (this.events.length > 0) await judge(this.events, { input: this.#input, cut: true });
    return this.#close;
  }

  /** Closes as a Stop button does. */
  async abandon() {
    this.#socket.close(1000);
    await judge(this.events, { input: this.#input, cut: true });
  }

  #arrive(data) {
    assert.equal(typeof data, "string", "events are text frames");
    assert.ok(!data.includes("\n"), "a frame of more than one line");
    if (data === '{"type":"PONG"}') this.#pongCount += 1;
    else this.#arrived.push(JSON.parse(data));
    this.#wake();
  }
}
