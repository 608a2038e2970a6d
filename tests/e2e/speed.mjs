// How fast a run streams: the Worker beside a hand-written JavaScript one that only translates, both in workerd
// without a proxy in front, in turns, so that what else the machine does hits both. `npm run speed`.

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { Miniflare, convertV4MiniflareOptions } from "miniflare";
import { DONE, chunk, text } from "./support/openai.mjs";
import { runInput } from "./support/run.mjs";
import { API_KEY, stubAgent } from "./support/suite.mjs";
import { startUpstream } from "./support/upstream.mjs";
import { startWorker } from "./support/worker.mjs";

const DELTA_COUNT = 20_000;
const ROUND_COUNT = 15;
const WARM_UP_COUNT = 3;
// Around the deltas: RUN_STARTED, STEP_STARTED, TEXT_MESSAGE_START and their three ends.
const EVENT_COUNT = DELTA_COUNT + 6;
const PIECE_BYTES = 16 * 1024;

const answerBytes = Buffer.from(
  Array.from({ length: DELTA_COUNT }, (_, index) => text(` word${index}`)[0]).join("") + chunk({}, "stop") + DONE,
);

async function sendAnswer(exchange) {
  exchange.head();
  for (let at = 0; at < answerBytes.length; at += PIECE_BYTES) await exchange.write(answerBytes.subarray(at, at + PIECE_BYTES));
  exchange.end();
}

async function startPlainWorker(upstreamUrl) {
  const folder = fileURLToPath(new URL("./support/", import.meta.url));
  const options = convertV4MiniflareOptions({
    cf: false,
    workers: [
      {
        name: "plain",
        compatibilityDate: "2026-11-01",
        modulesRoot: folder,
        modules: [{ type: "ESModule", path: `${folder}plain-worker.mjs` }],
        bindings: { UPSTREAM: upstreamUrl },
        unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
      },
    ],
  });
  const miniflare = new Miniflare(options);
  await miniflare.ready;
  return { url: (await miniflare.unsafeGetDirectURL()).href, stop: () => miniflare.dispose() };
}

/** One run; gives events per second from the request to the last byte. */
async function measure(url) {
  upstream.reply(sendAnswer);
  const body = JSON.stringify(runInput());
  const startMs = performance.now();
  const response = await fetch(url, { method: "POST", body, headers: { "content-type": "application/json" } });
  assert.equal(response.status, 200);
  let eventCount = 0;
  let last;
  for await (const piece of response.body) {
    last = piece;
    for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10, at + 1)) eventCount += 0.5;
  }
  const seconds = (performance.now() - startMs) / 1000;
  assert.equal(eventCount, EVENT_COUNT);
  assert.match(Buffer.from(last).toString(), /RUN_FINISHED/);
  return EVENT_COUNT / seconds;
}

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];
const thousands = (number) => `${(number / 1000).toFixed(0).padStart(5)} k events/s`;

const upstream = await startUpstream();
const worker = await startWorker({ agents: [stubAgent(upstream)], secrets: { OPENAI_API_KEY: API_KEY } });
const plain = await startPlainWorker(upstream.url);
const speeds = { ours: [], plain: [] };
for (let round = -WARM_UP_COUNT; round < ROUND_COUNT; round += 1) {
  for (const [name, url] of [["ours", worker.url("/run")], ["plain", plain.url]]) {
    const speed = await measure(url);
    if (round >= 0) speeds[name].push(speed);
  }
}
await Promise.all([worker.stop(), plain.stop()]);
await upstream.stop();

console.log(`${DELTA_COUNT} deltas, median of ${ROUND_COUNT} rounds in turns`);
console.log(`io-bridge, through its object   ${thousands(median(speeds.ours))}`);
console.log(`hand-written JavaScript Worker  ${thousands(median(speeds.plain))}`);
console.log(`ratio                           ${(median(speeds.ours) / median(speeds.plain)).toFixed(2)}`);
