// A strict reader of our protobuf streams: length-prefixed frames, decoded by the reference library.

import assert from "node:assert/strict";
import { AGUI_MEDIA_TYPE, decode } from "@ag-ui/proto";
import { judge } from "./judge.mjs";

export const PROTOBUF = { accept: AGUI_MEDIA_TYPE };

/** The events of a protobuf response, read as they come. */
export class ProtobufStream {
  events = [];
  #reader;
  #bytes = Buffer.alloc(0);

  constructor(response, { isProxied = false } = {}) {
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("content-type"), "application/vnd.ag-ui.event+proto");
    assert.equal(response.headers.get("cache-control"), "no-cache, no-transform");
    assert.equal(response.headers.get("x-accel-buffering"), isProxied ? null : "no");
    this.#reader = response.body.getReader();
  }

  /** The next event, or undefined at the clean end of the body. */
  async next() {
    for (;;) {
      if (this.#bytes.length >= 4) {
        const end = 4 + this.#bytes.readUInt32BE(0);
        if (this.#bytes.length >= end) {
          const event = decode(this.#bytes.subarray(4, end));
          this.#bytes = this.#bytes.subarray(end);
          this.events.push(event);
          return event;
        }
      }
      const { done, value } = await this.#reader.read();
      if (done) {
        assert.equal(this.#bytes.length, 0, "the body ended inside a frame");
        return undefined;
      }
      this.#bytes = Buffer.concat([this.#bytes, value]);
    }
  }

  async until(type) {
    for (;;) {
      const event = await this.next();
      assert.ok(event, `the stream ended before ${type}`);
      if (event.type === type) return event;
    }
  }

  /** Reads to the clean end, judges the whole stream and gives all its events. */
  async rest(input) {
    while (await this.next());
    return this.#judged({ input });
  }

  /** Reads until the connection dies and judges what came; a clean end is a failure. */
  async untilCut(input) {
    await assert.rejects(async () => {
      while (await this.next());
    }, TypeError);
    return this.#judged({ input, cut: true });
  }

  async #judged(options) {
    const events = this.events.map(plain);
    await judge(events, options);
    return events;
  }
}

/** As JSON has it: the reference decoder leaves absent members as `undefined`. */
const plain = (event) => JSON.parse(JSON.stringify(event));
