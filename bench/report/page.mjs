// docs/benchmarks.md: the report of one run.

import { PACE_MS } from "../mock/scene.mjs";
import { markdown, tables } from "./tables.mjs";

const section = ({ title, ...table }) => `### ${title}\n\n${markdown(table)}`;

const sections = (results, ...names) =>
  names.filter((name) => results[name]).flatMap((name) => tables({ [name]: results[name] }).map(section)).join("\n\n");

const list = (entries) => entries.map((entry) => `- ${entry}`).join("\n");

const failed = (failures) =>
  Object.entries(failures).map(([name, message]) => `\nLeft out: ${name}, which failed: ${message}\n`).join("");

/** What the yardstick would need for the most streams, by what an event costs it with the fewest. */
function processorsNeeded(rows) {
  const counts = rows?.map(({ streamCount }) => streamCount) ?? [];
  const [few, many] = [Math.min(...counts), Math.max(...counts)];
  const cost = rows?.find(({ key, streamCount }) => key === "js-worker" && streamCount === few)?.cpuMsPerThousand;
  if (!cost) return "";
  const eventsPerSecond = (many * 1000) / PACE_MS;
  const needed = ((cost / 1000) * eventsPerSecond) / 1000;
  return `
An event that comes alone costs the hand-written JS Worker ${cost.toFixed(0)} µs with ${few} streams, so ${many} streams, ${eventsPerSecond.toLocaleString("en-US")}
events a second, would need ${needed.toFixed(1)} processors; a Worker has one thread, and this machine's two serve the model and the client as well.
`;
}

/** The whole page. */
export function page({ machine, versions, seconds, size, failures, targets, results }) {
  return `# Benchmarks

Written by \`make bench\`, from one run; the raw numbers are in [benchmarks.json](benchmarks.json). All processes of the run
are on one machine, so figures are for comparing within a run, not for quoting alone.

![Chart of the main figures](benchmarks.svg)

## Targets

${markdown(tables({ targets })[0])}

Every run of io-bridge lives in a Durable Object of its own, so that results, cancels and other viewers reach it, and a stored
one leaves behind what the API gives back later. The last column but one is what a hand-written Worker reaches by the same
measure that does nothing else than that; for stored runs and runs per second, one that also checks its input, keeps its
limits in time and its events, and logs, as the contract asks. Where it misses a target, running this way alone costs more
than the target allows.
${failed(failures)}
## Machine

${list([
  `${machine.cores} cores of ${machine.processor}, ${machine.memoryGib} GiB`,
  machine.system,
  `workerd ${machine.workerd}, Miniflare ${machine.miniflare}, Node ${machine.node}, aimock ${machine.aimock}`,
  Object.entries(versions).map(([name, version]) => `\`${name}\` ${version}`).join(", "),
  `${machine.date}, load ${machine.loadAtStart} when it started, ${Math.round(seconds / 60)} minutes`,
])}

## What is compared

${list([
  "**io-bridge**: the release build, in workerd without a proxy in front. Every run lives in a Durable Object; *thread stored* runs keep their thread in D1 as well.",
  "**hand-written JS Worker**: [`bench/workers/js-worker.mjs`](../bench/workers/js-worker.mjs), the least a good engineer would write for the same translation. *Thread stored*: in a Durable Object, one D1 batch at the start and one at the end.",
  "**the same JS Worker, run in an object**: nothing stored, but in a fresh Durable Object as every run of io-bridge is, so that results, cancels and other viewers reach it: what that alone costs.",
  "**a JS Worker in an object, doing what the contract asks**: [`bench/workers/js-contract.mjs`](../bench/workers/js-contract.mjs), of runs without tools: input checked, limits in time, one check of the events' order, events kept for other viewers, cancel, log.",
  "**the same, storing what io-bridge stores**: with the database batches of a run of io-bridge, recorded and sent again with other ids.",
  "**Mastra with @ag-ui/mastra**: a Mastra server on Hono, its agent's events encoded as they come, leaving out the CopilotKit runtime that `registerCopilotKit` would add. *Thread stored*: its memory, in an in-memory LibSQL.",
  "**CopilotKit runtime**: its Hono handler with its `BuiltInAgent` and in-memory runner.",
  "**Cloudflare AI Chat**: `AIChatAgent` in the same workerd, bundled and minified. It always stores its thread, in its object. Its WebSocket is open before a run's clock starts; for runs per second opening it counts.",
  "**raw pass-through** and **the model, asked directly**: what runtime, sockets and this measuring client cost alone.",
])}

The model is [\`bench/mock/server.mjs\`](../bench/mock/server.mjs), in a process of its own; every server is another, and the
client a third. Every run's joined text is compared with what the model said; a server that loses a word fails the benchmark.
Contenders take turns, so that what else the machine does hits all. Figures are medians with the middle half of the values, or
percentiles.

## First text

${size.firstTextRounds} runs of each in turns, of 20 deltas, each on a fresh thread; the clock starts with the request.

${sections(results, "first-text", "aimock")}

## Throughput

Floods of ${size.floodDeltas.toLocaleString("en-US")} text deltas, from the request to the last byte. CPU time is that of the server's process (workerd or Node), from
\`/proc\`.

${sections(results, "flood", "throughput")}

## Many streams

Each stream has its own phase; an event is late by the time from the model's write to the client's read. Latencies are of
events written in the ${((size.holdMs - 1000) / 1000).toFixed(1)} s in which all streams are open; a server that does not keep up has delivered less than 100 %
of them by the end, and its true latencies are worse than shown. Memory is what the process grew by, per stream.
${processorsNeeded(results.paced)}
${sections(results, "paced")}

## Front-end tools

The model calls a tool of the browser's. With io-bridge, and with the Worker in an object, the result is POSTed into the run
that waits, and the same stream goes on; the others end their answer and are asked again (AI Chat: over its open socket).

${sections(results, "tool-loop")}

## Cold start and size

${size.coldRounds} fresh processes of each Worker, ${size.coldNodeRounds} of each Node server. Workers start in plain \`workerd serve\`, from a
configuration that is compiled beforehand: reading its text takes longer the more a Worker weighs, and is no part of how a
deployed one starts. The trivial Worker that carries our wasm, compiled but not used, or started, shows what its size alone
costs. With \`LOG_LEVEL\` \`error\` nothing is logged: for the first line a process logs, workerd loads what formats lines.
What the bundle is made of, and why less would mean doing less: [size.md](size.md).

${sections(results, "cold-start", "bundles")}

## Growth

The power is that between the two largest points: 1 is linear, 0 is not growing. \`Flood\` is ${size.growthDeltas.toLocaleString("en-US")} deltas per run.
Under load, eight clients run one after the other (of parallel runs, as many as the point says), and 20 streams are paced (the
same) by a fresh server; not where each run moves the point, as it does the length of a thread. The 99th percentile is shown
but not held to the limit: one pause of the machine moves it.

${sections(results, "growth")}

## Profile

Where the time goes: CPU time of the server's process by the kernel's count, the time V8's sampling profiler saw code of the
Worker or V8 itself at work, and whose that was. *Builtins* are calls into the platform: streams, promises, text and bytes.
What the process uses beyond what is seen in V8 is the runtime's and the kernel's own, which no Worker can make faster, only
ask for less often. The profiler slows what it watches and counts waiting for a core: shares count, not times.

${sections(results, "profile")}

## The bill

What a run asks of Cloudflare, and what that costs: [cost.md](cost.md).
`;
}
