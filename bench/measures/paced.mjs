// Many streams at once at the pace of a real model: how late each event is, and what a stream takes in memory.
//
// Every stream count gets a process of its own, since memory once taken is not given back.

import { nowMs, pause } from "../clock.mjs";
import { start } from "../contenders/index.mjs";
import { PACE_MS, readStamp, sceneText } from "../mock/scene.mjs";
import { cpuMs, memoryBytes } from "../process.mjs";
import { median, quantile } from "../statistics.mjs";
import { runToEnd, variantsOf } from "./run.mjs";

// Opened one by one, so that what opening costs does not fall into what is measured.
const OPEN_EVERY_MS = 15;
const SETTLE_MS = 500;
// What was written in the last moment need not have come.
const GRACE_MS = 500;

export async function paced({ contenders, mock, size }) {
  const rows = [];
  for (const streamCount of size.pacedStreams) {
    const measured = variantsOf(contenders).filter(isTaken).map((variant) => ({ ...variant, rounds: [] }));
    for (let round = 0; round < size.pacedRounds; round += 1) {
      for (const { contender, owner, rounds } of measured) {
        // Targets are about ours and the JS Worker without an object; for the others one round tells.
        const isAim = !owner && (contender.role === "ours" || contender.role === "yardstick");
        if (round === 0 || isAim) rounds.push(await pacedStreams(contender, mock, streamCount, size, { owner }));
      }
    }
    for (const { key, label, contender, rounds } of measured) {
      const of = (key) => median(rounds.map((round) => round[key]));
      rows.push({
        key,
        label,
        streamCount,
        latencyMs: { p50: of("p50"), p99: of("p99") },
        deliveredShare: of("deliveredShare"),
        bytesPerStream: contender.server ? of("bytesPerStream") : undefined,
        cpuMsPerThousand: contender.server ? of("cpuMsPerThousand") : undefined,
        rounds,
      });
    }
  }
  return rows;
}

// The JS Worker comes in its object, too: that is the way all our runs go.
const isTaken = ({ contender, owner }) => !owner || contender.role === "yardstick";

/** So many streams of a fresh server, each of the same run; `more` changes what the model says. */
export async function pacedStreams(contender, mock, streamCount, { holdMs, pacedWarmUp }, { owner, padding, ...run } = {}, more) {
  const rampMs = streamCount * OPEN_EVERY_MS;
  const server = await start(contender, mock.url);
  try {
    for (let at = 0; at < pacedWarmUp; at += 1) await runToEnd(contender, server, { kind: "say", deltaCount: 20 }, { owner });
    // The compiler's last tier, too, is to be done before the clock starts.
    await runToEnd(contender, server, { kind: "flood", deltaCount: 3000 }, { owner });
    await pause(SETTLE_MS);
    const memoryBefore = server.pid && memoryBytes(server.pid);
    const startMs = nowMs();
    const window = { fromMs: startMs + rampMs + SETTLE_MS, toMs: startMs + rampMs + holdMs - GRACE_MS };
    const deltaCount = Math.ceil((rampMs + holdMs) / PACE_MS) + 50;
    const recordings = [];
    for (let at = 0; at < streamCount; at += 1) {
      // One that does not open, or not in time, shows in what was delivered.
      const opening = contender.open(server, { text: sceneText({ kind: "pace", deltaCount, ...more }, padding), owner, ...run });
      opening.then((recording) => recordings.push(recording), () => {});
      await pause(Math.max(0, startMs + (at + 1) * OPEN_EVERY_MS - nowMs()));
    }
    let memoryPeak = 0;
    const opened = { atMs: nowMs(), cpuMs: server.pid && cpuMs(server.pid) };
    while (nowMs() < startMs + rampMs + holdMs) {
      await pause(100);
      if (server.pid) memoryPeak = Math.max(memoryPeak, memoryBytes(server.pid));
    }
    const held = { seconds: (nowMs() - opened.atMs) / 1000, cpuMs: server.pid && cpuMs(server.pid) - opened.cpuMs };
    const lateness = recordings.flatMap((recording) => latenesses(contender, recording, window));
    for (const recording of recordings) recording.close();
    const due = (streamCount * (window.toMs - window.fromMs)) / PACE_MS;
    return {
      p50: lateness.length > 0 ? quantile(lateness, 0.5) : Infinity,
      p99: lateness.length > 0 ? quantile(lateness, 0.99) : Infinity,
      deliveredShare: Math.min(1, lateness.length / due),
      bytesPerStream: server.pid ? (memoryPeak - memoryBefore) / streamCount : undefined,
      // Per thousand events the model wrote, which are all events where the server keeps up.
      cpuMsPerThousand: server.pid ? (held.cpuMs / ((streamCount * held.seconds * 1000) / PACE_MS)) * 1000 : undefined,
    };
  } finally {
    await server.stop();
  }
}

/** How late the events came that the model wrote inside the window. */
function latenesses(contender, recording, { fromMs, toMs }) {
  return recording.read().flatMap(({ atMs, event }) => {
    const text = contender.textOf(event);
    if (text === undefined) return [];
    const writtenMs = readStamp(text);
    return writtenMs >= fromMs && writtenMs <= toMs ? [atMs - writtenMs] : [];
  });
}
