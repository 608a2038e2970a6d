// How many events per second a server turns over when the model is faster than it, and what they cost the processor.

import { cpuMs } from "../process.mjs";
import { spread } from "../statistics.mjs";
import { runToEnd, variantsWithoutPeers } from "./run.mjs";

/** Floods in turns; peers, which take a hundred times as long, get one a round and the others some more. */
export async function flood({ contenders, servers, size }) {
  const scene = { kind: "flood", deltaCount: size.floodDeltas };
  const warmUp = { ...scene, deltaCount: 2000 };
  const rows = variantsWithoutPeers(contenders).map((variant) => ({ ...variant, rates: [], cpu: [] }));
  for (let round = -1; round < size.floodRounds; round += 1) {
    for (const { contender, owner, rates, cpu } of rows) {
      const server = servers[contender.name];
      for (let turn = 0; turn < (contender.role === "peer" ? 1 : size.floodTurns); turn += 1) {
        const before = server.pid && cpuMs(server.pid);
        const { totalMs, textCount } = await runToEnd(contender, server, round < 0 ? warmUp : scene, { owner });
        if (round < 0) continue;
        rates.push((textCount / totalMs) * 1000);
        if (server.pid) cpu.push(((cpuMs(server.pid) - before) / textCount) * 1000);
      }
    }
  }
  return rows.map(({ key, label, rates, cpu }) => ({
    key,
    label,
    eventsPerSecond: spread(rates),
    // A mean: the kernel counts in hundredths of a second, which single floods are too short for.
    cpuMsPerThousand: cpu.length > 0 ? cpu.reduce((sum, ms) => sum + ms, 0) / cpu.length : undefined,
  }));
}
