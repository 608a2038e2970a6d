// Short runs, one behind the other, by eight clients at once.

import { nowMs } from "../clock.mjs";
import { cpuMs } from "../process.mjs";
import { median, spread } from "../statistics.mjs";
import { runToEnd, variantsOf } from "./run.mjs";

export const CLIENT_COUNT = 8;
const SCENE = { kind: "say", deltaCount: 20 };

export async function throughput({ contenders, servers, size }) {
  const rows = variantsOf(contenders).map((variant) => ({ ...variant, rates: [], spentMs: [] }));
  for (let round = 0; round < size.throughputRounds; round += 1) {
    for (const { contender, owner, rates, spentMs } of rows) {
      const server = servers[contender.name];
      const beforeMs = server.pid && cpuMs(server.pid);
      const { rate, runCount } = await underLoad(() => runToEnd(contender, server, SCENE, { owner }), CLIENT_COUNT, size.throughputMs);
      rates.push(rate);
      if (server.pid) spentMs.push((cpuMs(server.pid) - beforeMs) / runCount);
    }
  }
  return rows.map(({ key, label, rates, spentMs }) => ({
    key,
    label,
    runsPerSecond: spread(rates),
    cpuMsPerRun: spentMs.length > 0 ? median(spentMs) : undefined,
  }));
}

/** How many runs end per second, and ended, while so many clients do one after the other. */
export async function underLoad(run, clientCount, ms) {
  const startMs = nowMs();
  let runCount = 0;
  const client = async () => {
    for (; nowMs() - startMs < ms; runCount += 1) await run();
  };
  await Promise.all(Array.from({ length: clientCount }, client));
  return { rate: (runCount / (nowMs() - startMs)) * 1000, runCount };
}
