// How the times of a run, and what it takes of processor and memory, grow with what it is given, and what it asks of the
// database and of its object: nothing may grow faster than its input.

import { cpuMs } from "../process.mjs";
import { growthPower, mean, median } from "../statistics.mjs";
import { axes, OWNER, SAY } from "./axes.mjs";
import { pacedStreams } from "./paced.mjs";
import { runToEnd } from "./run.mjs";
import { CLIENT_COUNT, underLoad } from "./throughput.mjs";
import { nextText } from "./tool-loop.mjs";

const PACED_COUNT = 20;

/** Everything at every point, in turns. Where each run moves the point, as it does a thread's length, few are made. */
export async function growth({ contenders, servers, mock, size }) {
  const rows = [];
  for (const axis of Object.keys(axes)) {
    for (const contender of contenders.filter(({ canStore }) => canStore || !axes[axis].isStored)) {
      const measured = await inTurns(axes[axis], contender, servers[contender.name], size);
      if (!axes[axis].isStored && contender.role === "ours") await paced(axes[axis], contender, mock, size, measured);
      rows.push({ axis, key: contender.name, label: contender.label, curves: curvesOf(measured) });
    }
  }
  return rows;
}

async function inTurns(axis, contender, server, size) {
  const measured = axis.points.map((point) => ({ point, values: {} }));
  for (const at of measured) at.prepared = await axis.prepare?.(at.point, contender, server);
  for (let round = -1; round < size.growthRounds; round += 1) {
    for (const { point, prepared, values } of measured) {
      const taken = await atPoint(axis, point, prepared, contender, server, size);
      if (round >= 0) for (const [name, value] of Object.entries(taken)) (values[name] ??= []).push(value);
    }
  }
  return measured;
}

/** One round at one point. */
async function atPoint({ scene, run, isParallel, isStored }, point, prepared, contender, server, { growthDeltas, growthLoadMs }) {
  const more = scene?.(point);
  const asked = () => run(point, prepared);
  const say = (what) => () => runToEnd(contender, server, { ...what, ...more }, asked());
  const together = (once) => Promise.all(Array.from({ length: isParallel ? point : 1 }, once));
  const slowest = (times) => Math.max(...times);
  const beforeMs = cpuMs(server.pid);
  const said = await together(say(SAY));
  const flooded = await together(say({ kind: "flood", deltaCount: growthDeltas }));
  const taken = {
    firstText: slowest(said.map(({ firstTextMs }) => firstTextMs)),
    flood: slowest(flooded.map(({ totalMs }) => totalMs)),
    processor: cpuMs(server.pid) - beforeMs,
  };
  // Each run of these moves the point.
  if (isStored) return taken;
  taken.load = 1000 / (await underLoad(say(SAY), isParallel ? point : CLIENT_COUNT, growthLoadMs)).rate;
  if (contender.answerCall) taken.nextText = slowest(await together(() => nextText(contender, server, asked(), more)));
  return taken;
}

/** Adds what streams at the pace of a real model are late by, and take in memory. */
async function paced({ scene, run, isParallel }, contender, mock, size, measured) {
  for (const { point, values } of measured) {
    const count = isParallel ? point : PACED_COUNT;
    const { p50, p99, bytesPerStream } = await pacedStreams(contender, mock, count, size, run(point), scene?.(point));
    Object.assign(values, { late: [p50], latest: [p99], memory: [bytesPerStream / 1024] });
  }
}

/** What is measured: its name, one number of a point's many, whether it is held to be no worse than linear. */
const quantities = {
  firstText: ["first text, ms", median, true],
  flood: ["flood, ms", median, true],
  // The kernel counts in steps of ten.
  processor: ["CPU of both, ms", mean, true],
  load: ["under load, ms per run", median, true],
  nextText: ["tool's result to next words, ms", median, true],
  late: ["paced, late by p50, ms", median, true],
  // One pause of the machine moves it.
  latest: ["paced, late by p99, ms", median, false],
  memory: ["paced, KiB per stream", median, true],
};

function curvesOf(measured) {
  return Object.entries(quantities).flatMap(([key, [name, of, isHeld]]) => {
    if (!measured.every(({ values }) => values[key])) return [];
    const points = measured.map(({ point, values }) => [point, of(values[key])]);
    return [{ key, name, points, power: growthPower(points), isHeld }];
  });
}

/** What one stored run asks for at every point; `countsOf` runs it on a server that counts. */
export async function askedFor(contender, server, countsOf) {
  const rows = [];
  for (const [axis, { points, prepare, scene, run, isParallel }] of Object.entries(axes)) {
    if (isParallel) continue;
    const counts = [];
    for (const point of points) {
      const prepared = await prepare?.(point, contender, server);
      const asked = { owner: OWNER, ...run(point, prepared) };
      counts.push([point, await countsOf(() => runToEnd(contender, server, { ...SAY, ...scene?.(point) }, asked))]);
    }
    rows.push({ axis, key: contender.name, label: contender.label, counts });
  }
  return rows;
}
