// Short runs, one behind the other, by eight clients at once.

import { nowMs } from "../clock.mjs";
import { spread } from "../statistics.mjs";
import { runToEnd, variantsOf } from "./run.mjs";

const CLIENT_COUNT = 8;
const SCENE = { kind: "say", deltaCount: 20 };

export async function throughput({ contenders, servers, size }) {
  const rows = variantsOf(contenders).map((variant) => ({ ...variant, rates: [] }));
  for (let round = 0; round < size.throughputRounds; round += 1) {
    for (const { contender, owner, rates } of rows) {
      const startMs = nowMs();
      let runCount = 0;
      const client = async () => {
        for (; nowMs() - startMs < size.throughputMs; runCount += 1) {
          await runToEnd(contender, servers[contender.name], SCENE, { owner });
        }
      };
      await Promise.all(Array.from({ length: CLIENT_COUNT }, client));
      rates.push((runCount / (nowMs() - startMs)) * 1000);
    }
  }
  return rows.map(({ key, label, rates }) => ({ key, label, runsPerSecond: spread(rates) }));
}
