// A strict reader of our own stream: the framing of contract 2.4 and nothing else.

import assert from "node:assert/strict";
import { judge } from "./judge.mjs";

export const KEEP_ALIVE = ": keep-alive";

/** The events of one run's response, read as they come. Every stream ends in `rest`, `untilCut` or `abandon`. */
export class EventStream {
  static #open = new Set();

  /** Drops every stream that was left open; gives how many there were. */
  static dropOpen() {
    const streams = [...this.#open];
    this.#open.clear();
    for (const stream of streams) stream.#abort.abort();
    return streams.length;
  }

  /** Events read so far. */
  events = [];
  /** Comments read so far. */
  commentCount = 0;
  #reader;
  #decoder = new TextDecoder("utf-8", { fatal: true });
  #buffer = "";
  #input;
  #abort;

  constructor(response, { input, abort, isProxied = false }) {
    assert.equal(response.headers.get("content-type"), "text/event-stream");
    assert.equal(response.headers.get("cache-control"), "no-cache, no-transform");
    // A proxy keeps this one: it is said to it.
    assert.equal(response.headers.get("x-accel-buffering"), isProxied ? null : "no");
    assert.equal(response.headers.get("content-encoding"), null);
    this.#reader = response.body.getReader();
    /** Where the run lives: its answer says so. */
    this.address = response.headers.get("io-run-address");
    this.#input = input;
    this.#abort = abort;
    EventStream.#open.add(this);
  }

  /** The next event, or undefined at the end of the body. */
  async next() {
    for (;;) {
      const frame = await this.#frame();
      if (frame === undefined) return undefined;
      if (frame.startsWith(":")) {
        assert.equal(frame, KEEP_ALIVE);
        this.commentCount += 1;
        continue;
      }
      const event = parseFrame(frame);
      this.events.push(event);
      return event;
    }
  }

  /** Reads until an event of this type (or one `wanted` says yes to) and gives it. */
  async until(wanted) {
    const matches = typeof wanted === "string" ? (event) => event.type === wanted : wanted;
    for (;;) {
      const event = await this.next();
      assert.ok(event, `the stream ended before ${wanted}; it had ${JSON.stringify(this.events)}`);
      if (matches(event)) return event;
    }
  }

  /** Reads until a keep-alive comes. */
  async untilKeepAlive() {
    const frame = await this.#frame();
    assert.ok(frame !== undefined, "the stream ended before a keep-alive");
    if (frame.startsWith(":")) {
      assert.equal(frame, KEEP_ALIVE);
      this.commentCount += 1;
      return;
    }
    this.events.push(parseFrame(frame));
    await this.untilKeepAlive();
  }

  /** Reads to the clean end, judges the whole stream and gives all its events. */
  async rest(options = {}) {
    while (await this.next());
    assert.equal(this.#buffer, "", "the body ended inside a frame");
    return this.#judged(options);
  }

  /** Reads until the connection dies and judges what came; a clean end is a failure. */
  async untilCut(options = {}) {
    await assert.rejects(async () => {
      while (await this.next());
    }, TypeError);
    return this.#judged({ cut: true, ...options });
  }

  /** Drops the connection, as a Stop button does, and judges what came. */
  async abandon() {
    this.#abort.abort();
    return this.#judged({ cut: true });
  }

  async #judged(options) {
    EventStream.#open.delete(this);
    await judge(this.events, { input: this.#input, ...options });
    return this.events;
  }

  async #frame() {
    for (;;) {
      const end = this.#buffer.indexOf("\n\n");
      if (end >= 0) {
        const frame = this.#buffer.slice(0, end);
        this.#buffer = this.#buffer.slice(end + 2);
        return frame;
      }
      const { done, value } = await this.#reader.read();
      if (done) return undefined;
      const piece = this.#decoder.decode(value, { stream: true });
      assert.ok(!piece.includes("\r"), "a CR in the stream");
      this.#buffer += piece;
    }
  }
}

function parseFrame(frame) {
  assert.match(frame, /^data: \{/, "a frame is one data line that holds one JSON object");
  assert.ok(!frame.includes("\n"), "a frame of more than one line");
  return JSON.parse(frame.slice("data: ".length));
}
