// The order of a wasm file's functions in which they compress best.
//
// gzip finds what it has seen in the last 32 KiB, so functions that are alike belong beside each other: the next one is
// always that of which the most is in the window already. What comes of that depends on which is the first, by some
// thousandth parts and without a rule: several are tried.

import { gzipSync } from "node:zlib";

/** How many functions are tried as the first. */
const FIRST_COUNT = 8;
const WINDOW_BYTES = 32 * 1024;
/** Bytes that count as one piece when functions are compared. */
const PIECE_BYTES = 6;
/** A piece that more functions have than this says nothing about which of them are alike. */
const COMMON_COUNT = 300;

function pieces(bytes) {
  const found = new Set();
  for (let start = 0; start + PIECE_BYTES <= bytes.length; start++) {
    let hash = 0;
    for (const byte of bytes.subarray(start, start + PIECE_BYTES)) hash = (Math.imul(hash, 31) + byte) >>> 0;
    found.add(Math.imul(hash ^ (hash >>> 15), 2654435761) >>> 8);
  }
  return [...found];
}

/** The functions that have a piece, and what having it counts: the more of them there are, the less. */
function holders(piecesOf) {
  const found = new Map();
  piecesOf.forEach((own, index) => {
    for (const piece of own) {
      if (!found.has(piece)) found.set(piece, { functions: [], weight: 0 });
      found.get(piece).functions.push(index);
    }
  });
  for (const holder of found.values()) {
    holder.weight = 1 / Math.log2(holder.functions.length + 1);
    if (holder.functions.length >= COMMON_COUNT) holder.functions = [];
  }
  return found;
}

/** What the window holds, and how much of each function that is. */
class Window {
  constructor(bodies, piecesOf, holdersOf) {
    this.bodies = bodies;
    this.pieces = piecesOf;
    this.holders = holdersOf;
    this.counts = new Map();
    this.known = new Float64Array(bodies.length);
    this.queue = [];
    this.length = 0;
  }

  push(index) {
    this.queue.push(index);
    this.length += this.bodies[index].length;
    for (const piece of this.pieces[index]) {
      const count = this.counts.get(piece) ?? 0;
      this.counts.set(piece, count + 1);
      if (count === 0) this.#count(piece, 1);
    }
    while (this.length > WINDOW_BYTES) this.#shift();
  }

  #shift() {
    const index = this.queue.shift();
    this.length -= this.bodies[index].length;
    for (const piece of this.pieces[index]) {
      const count = this.counts.get(piece) - 1;
      this.counts.set(piece, count);
      if (count === 0) this.#count(piece, -1);
    }
  }

  #count(piece, sign) {
    const { functions, weight } = this.holders.get(piece);
    for (const index of functions) this.known[index] += sign * weight;
  }

  /** How much of a function is in the window, for its size; small ones are not worth a jump. */
  share(index) {
    return this.known[index] / (this.pieces[index].length + 8);
  }
}

/** The functions in their order, as indexes, that begins with `first`. */
function orderFrom(first, window) {
  const order = [first];
  const left = new Set(window.bodies.keys());
  for (let next = first; ; order.push(next)) {
    left.delete(next);
    window.push(next);
    if (left.size === 0) return order;
    let bestShare = -1;
    for (const index of left) {
      const share = window.share(index);
      if (share > bestShare) [next, bestShare] = [index, share];
    }
  }
}

/** The places of the functions with these bodies: `places[index]`. */
export function places(bodies) {
  const piecesOf = bodies.map(pieces);
  const holdersOf = holders(piecesOf);
  const orders = Array.from({ length: Math.min(FIRST_COUNT, bodies.length) }, (_, index) => {
    const first = Math.floor((index * bodies.length) / FIRST_COUNT);
    const order = orderFrom(first, new Window(bodies, piecesOf, holdersOf));
    return { order, size: gzipSync(Buffer.concat(order.map((each) => bodies[each])), { level: 9 }).length };
  });
  const { order } = orders.reduce((best, other) => (other.size < best.size ? other : best));
  const found = new Array(bodies.length);
  order.forEach((index, place) => (found[index] = place));
  return found;
}
