// A loopback upstream: the test decides every byte, every pause and every cut, and sees when the peer closes.

import { createServer } from "node:http";

/** Starts a stub on a free port. */
export async function startUpstream() {
  const stub = new Upstream();
  await new Promise((resolve) => stub.server.listen(0, "127.0.0.1", resolve));
  stub.url = `http://127.0.0.1:${stub.server.address().port}`;
  return stub;
}

class Upstream {
  /** Every request that came, in order. */
  requests = [];
  /** Requests nobody had scripted an answer for. */
  unexpected = [];
  #replies = [];
  #waiting = [];
  #exchanges = new Set();

  constructor() {
    this.server = createServer((request, response) => this.#receive(request, response));
  }

  /** Scripts the answer of the next request (`when`: of the next one it says yes to). */
  reply(script, { when = () => true } = {}) {
    this.#replies.push({ script, when });
  }

  /** The next request, for a test that answers by hand. */
  next(when = () => true) {
    return new Promise((resolve) => this.reply((exchange) => resolve(exchange), { when }));
  }

  /** Resolves when `count` requests have come since the stub was started or reset. */
  async received(count) {
    while (this.requests.length < count) await new Promise((resolve) => this.#waiting.push(resolve));
    return this.requests.slice(0, count);
  }

  /** Forgets what was and cuts what is open; gives how many scripted answers nobody asked for. */
  reset() {
    for (const exchange of this.#exchanges) if (!exchange.ended) exchange.destroy();
    this.#exchanges.clear();
    const left = this.#replies.length;
    this.#replies = [];
    this.requests.length = 0;
    this.unexpected.length = 0;
    return left;
  }

  async stop() {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  async #receive(request, response) {
    request.socket.setNoDelay(true);
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const text = Buffer.concat(pieces).toString("utf8");
    const seen = { method: request.method, path: request.url, headers: request.headers, text, atMs: performance.now() };
    try {
      seen.body = JSON.parse(text);
    } catch {
      seen.body = undefined;
    }
    this.requests.push(seen);
    for (const wake of this.#waiting.splice(0)) wake();
    const index = this.#replies.findIndex(({ when }) => when(seen));
    const exchange = new Exchange(seen, response);
    this.#exchanges.add(exchange);
    if (index < 0) {
      this.unexpected.push(seen);
      exchange.head(500, { "content-type": "text/plain" });
      exchange.end("nothing scripted");
      return;
    }
    const [{ script }] = this.#replies.splice(index, 1);
    await script(exchange);
  }
}

/** One request being answered. */
class Exchange {
  #response;

  constructor(request, response) {
    this.request = request;
    this.#response = response;
    /** Resolves when the connection is closed before we have ended the answer. */
    this.closedByPeer = new Promise((resolve) => response.once("close", () => !this.ended && resolve()));
    this.ended = false;
  }

  head(status = 200, headers = { "content-type": "text/event-stream" }) {
    this.#response.writeHead(status, headers);
    this.#response.flushHeaders();
    return this;
  }

  /** Writes bytes as a piece of their own; resolves when the kernel has them. */
  async write(bytes) {
    if (this.#response.destroyed) return;
    await new Promise((resolve) => this.#response.write(bytes, resolve));
    await new Promise((resolve) => setImmediate(resolve));
  }

  async writeAll(...frames) {
    for (const frame of frames.flat(Infinity)) await this.write(frame);
  }

  end(bytes) {
    this.ended = true;
    this.#response.end(bytes);
  }

  /** Cuts the connection without ending the answer. */
  destroy() {
    this.ended = true;
    this.#response.destroy();
  }
}

/** A promise and the function that fulfils it. */
export function gate() {
  let open;
  const opened = new Promise((resolve) => (open = resolve));
  return { opened, open };
}
