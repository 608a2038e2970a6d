// Where the processor time of a run goes: V8's sampling profiler over the Worker, beside what the kernel counts for the
// whole process. What the profiler does not see is the runtime's own: sockets, streams, SQLite, compiling.

import { once } from "node:events";
import { start } from "../contenders/index.mjs";
import { sceneText } from "../mock/scene.mjs";
import { cpuMs } from "../process.mjs";
import { runToEnd } from "./run.mjs";

const SAMPLE_EVERY_US = 200;
const OWNER = "ada";
const SAY = { kind: "say", deltaCount: 20 };

/** What is profiled: `unit` names what the times are divided by, `work` gives how many of it were done. */
const scenes = [
  {
    label: "flood",
    unit: "1,000 events",
    async work(contender, server, { floodDeltas }) {
      for (let at = 0; at < 5; at += 1) await runToEnd(contender, server, { kind: "flood", deltaCount: floodDeltas });
      return (5 * floodDeltas) / 1000;
    },
  },
  {
    label: "20 paced streams",
    unit: "1,000 events",
    async work(contender, server) {
      const scene = { kind: "pace", deltaCount: 150 };
      const run = async () => (await contender.open(server, { text: sceneText(scene) })).done;
      await Promise.all(Array.from({ length: 20 }, run));
      return (20 * scene.deltaCount) / 1000;
    },
  },
  { label: "short runs", unit: "run", work: (contender, server, { profiledRuns }) => shortRuns(contender, server, profiledRuns) },
  {
    label: "short runs, thread stored",
    unit: "run",
    work: (contender, server, { profiledRuns }) => shortRuns(contender, server, profiledRuns, OWNER),
  },
];

async function shortRuns(contender, server, count, owner) {
  for (let at = 0; at < count; at += 1) await runToEnd(contender, server, SAY, { owner });
  return count;
}

export async function profile({ contenders, mock, size }) {
  const rows = [];
  for (const contender of contenders.filter(({ role }) => role === "ours" || role === "yardstick")) {
    const server = await start(contender, mock.url, { INSPECTED: "1" });
    try {
      const inspector = await connect(server.inspectorUrl);
      for (const { label, unit, work } of scenes) {
        await work(contender, server, size);
        const parts = await profiled(inspector, server, () => work(contender, server, size));
        rows.push({ key: contender.name, label: `${contender.label}: ${label}`, unit, ...parts });
      }
      inspector.close();
    } finally {
      await server.stop();
    }
  }
  return rows;
}

/** V8's inspector of a Worker. */
async function connect(url) {
  const socket = new WebSocket(url);
  await once(socket, "open");
  const waiting = new Map();
  socket.onmessage = ({ data }) => {
    const { id, result } = JSON.parse(data);
    waiting.get(id)?.(result);
  };
  let lastId = 0;
  const call = (method, params = {}) =>
    new Promise((resolve) => {
      lastId += 1;
      waiting.set(lastId, resolve);
      socket.send(JSON.stringify({ id: lastId, method, params }));
    });
  await call("Profiler.enable");
  await call("Profiler.setSamplingInterval", { interval: SAMPLE_EVERY_US });
  return { call, close: () => socket.close() };
}

async function profiled(inspector, server, work) {
  const before = cpuMs(server.pid);
  await inspector.call("Profiler.start");
  const doneCount = await work();
  const { profile: taken } = await inspector.call("Profiler.stop");
  const processMs = cpuMs(server.pid) - before;
  const parts = partsOf(taken);
  const seenMs = Object.values(parts).reduce((sum, ms) => sum + ms, 0);
  return {
    processMs: processMs / doneCount,
    seenMs: seenMs / doneCount,
    shares: Object.fromEntries(Object.entries(parts).map(([name, ms]) => [name, ms / seenMs])),
  };
}

/** Milliseconds by whose code ran; when none of V8's ran, or it was idle, it is the runtime's or nobody's. */
function partsOf({ nodes, samples, timeDeltas }) {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const parts = { wasm: 0, script: 0, builtin: 0, collector: 0 };
  samples.forEach((id, index) => {
    const part = partOf(frames.get(id));
    if (part) parts[part] += Math.max(0, timeDeltas[index]) / 1000;
  });
  return parts;
}

function partOf({ functionName, url }) {
  if (functionName === "(garbage collector)") return "collector";
  if (functionName.startsWith("(")) return undefined;
  if (url.startsWith("wasm")) return "wasm";
  return url === "" ? "builtin" : "script";
}
