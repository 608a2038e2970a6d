// One run over each binding, read and judged the same way.

import assert from "node:assert/strict";
import { PROTOBUF, ProtobufStream } from "./protobuf.mjs";
import { openRun } from "./run.mjs";
import { Socket } from "./socket.mjs";

/**
 * Each opens a run. `until(type)` reads on; `rest()` reads to the clean end; `broken(code)` reads until the connection
 * visibly breaks, which for a socket is this close code; `leave()` goes away as a Stop button does.
 */
export const BINDINGS = {
  async SSE(worker, input) {
    const stream = await openRun(worker, input);
    return {
      until: (type) => stream.until(type),
      rest: () => stream.rest(),
      broken: () => stream.untilCut(),
      leave: () => stream.abandon(),
    };
  },

  async protobuf(worker, input) {
    const abort = new AbortController();
    const stream = new ProtobufStream(await worker.fetch("/run", { json: input, headers: PROTOBUF, signal: abort.signal }));
    return {
      until: (type) => stream.until(type),
      rest: () => stream.rest(input),
      broken: () => stream.untilCut(input),
      leave: () => abort.abort(),
    };
  },

  async WebSocket(worker, input) {
    const socket = new Socket(worker, input);
    return {
      until: (type) => socket.until(type),
      rest: () => socket.rest(),
      broken: async (code) => {
        assert.equal((await socket.closed()).code, code);
        return socket.events;
      },
      leave: () => socket.abandon(),
    };
  },
};

