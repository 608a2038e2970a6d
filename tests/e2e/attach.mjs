// What a long durable run with many viewers costs, and how soon a viewer that comes back is served: `npm run attach`.

import { readFileSync, readdirSync } from "node:fs";
import { text, finish, says } from "./support/openai.mjs";
import { fresh, runInput } from "./support/run.mjs";
import { stubAgent, API_KEY } from "./support/suite.mjs";
import { startUpstream } from "./support/upstream.mjs";
import { startWorker } from "./support/worker.mjs";

const EVENT_COUNT = Number(process.env.EVENTS ?? 100_000);
const VIEWER_COUNT = 20;
const SAMPLE_COUNT = 30;

/** Memory of the runtime's process, the children of this one, in MiB. */
function memoryMib() {
  const ofPid = (pid) => readFileSync(`/proc/${pid}/status`, "utf8");
  const children = readdirSync("/proc").filter((pid) => /^\d+$/.test(pid)).filter((pid) => {
    try {
      return ofPid(pid).match(/^PPid:\s+(\d+)/m)[1] === String(process.pid);
    } catch {
      return false;
    }
  });
  const kib = children.map((pid) => Number(ofPid(pid).match(/^VmRSS:\s+(\d+)/m)?.[1] ?? 0));
  return Math.round(Math.max(0, ...kib) / 1024);
}

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)].toFixed(1);

async function drain(response) {
  let bytes = 0;
  for await (const chunk of response.body) bytes += chunk.length;
  return bytes;
}

/** Time to the first byte of a stream, in milliseconds. */
async function firstByteMs(request) {
  const from = performance.now();
  const response = await request();
  const reader = response.body.getReader();
  await reader.read();
  const ms = performance.now() - from;
  await reader.cancel();
  return ms;
}

const upstream = await startUpstream();
const worker = await startWorker({ agents: [stubAgent(upstream, { onDisconnect: "continue" })], secrets: { OPENAI_API_KEY: API_KEY } });
const post = (input) => fetch(worker.url("/run"), { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(input) });

const input = runInput({ owner: "una" });
const asked = upstream.next();
const opening = post(input);
const exchange = await asked;
exchange.head();
const first = await opening;
const events = (after = 0) => fetch(worker.url(`/runs/${input.runId}/events?after=${after}`));
const readers = [drain(first)];
for (let count = 1; count < VIEWER_COUNT; count += 1) readers.push(events().then(drain));
const beforeMib = memoryMib();
let peakMib = 0;
const watch = setInterval(() => (peakMib = Math.max(peakMib, memoryMib())), 100);
const batch = Array.from({ length: 1000 }, (_, index) => text(`word ${index} `)[0]).join("");
const from = performance.now();
for (let sent = 0; sent < EVENT_COUNT; sent += 1000) await exchange.write(batch);
await exchange.writeAll(finish());
exchange.end();
const bytes = await Promise.all(readers);
clearInterval(watch);
const seconds = ((performance.now() - from) / 1000).toFixed(1);
console.log(`${EVENT_COUNT} events to ${VIEWER_COUNT} viewers: ${seconds} s, ${(bytes[0] / 2 ** 20).toFixed(1)} MiB each, all alike: ${new Set(bytes).size === 1}`);
console.log(`memory of the runtime: ${beforeMib} MiB before, at most ${peakMib} MiB, ${memoryMib()} MiB after`);

const fresher = [];
const again = [];
for (let count = 0; count < SAMPLE_COUNT; count += 1) {
  upstream.reply(says("ok"));
  fresher.push(await firstByteMs(() => post(runInput({ owner: "una", threadId: fresh("thread") }))));
  again.push(await firstByteMs(() => events(EVENT_COUNT - 10)));
}
console.log(`first byte, p50: a fresh run ${median(fresher)} ms, a viewer that comes back ${median(again)} ms`);
await worker.stop();
await upstream.stop();
