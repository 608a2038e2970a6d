// How long until the first event and the first text of a run, and how much of it is the server's.

import assert from "node:assert/strict";
import { start } from "../contenders/index.mjs";
import { startProcess } from "../process.mjs";
import { tail } from "../statistics.mjs";
import { blamed, ended, runToEnd, variantsOf } from "./run.mjs";

export const SCENE = { kind: "say", deltaCount: 20 };
const ANSWER = "An answer of some words that somebody else's model says.";

/** Runs of every contender in turns. */
export async function firstText({ contenders, servers, size }) {
  const variants = variantsOf(contenders);
  const times = Object.fromEntries(variants.map(({ key }) => [key, []]));
  for (let round = -size.warmUpCount; round < size.firstTextRounds; round += 1) {
    for (const { key, contender, owner } of variants) {
      const run = await runToEnd(contender, servers[contender.name], SCENE, { owner });
      if (round >= 0) times[key].push(run);
    }
  }
  return summary(variants, times);
}

function summary(variants, times) {
  const firstTexts = (key) => tail(times[key].map(({ firstTextMs }) => firstTextMs));
  const floor = times.direct && firstTexts("direct");
  return variants.map(({ key, label }) => {
    const firstTextMs = firstTexts(key);
    return {
      key,
      label,
      firstEventMs: tail(times[key].map(({ firstEventMs }) => firstEventMs)),
      firstTextMs,
      overheadMs: floor && { p50: firstTextMs.p50 - floor.p50, p95: firstTextMs.p95 - floor.p95 },
    };
  });
}

/** The same with a model that others wrote, as a check on ours: whoever leads must lead there, too. */
export async function firstTextOfAimock({ contenders, size }) {
  const mock = await startProcess(new URL("../mock/aimock.mjs", import.meta.url), { env: { ANSWER } });
  const variants = variantsOf(contenders);
  const times = Object.fromEntries(variants.map(({ key }) => [key, []]));
  const servers = {};
  try {
    for (const contender of contenders) servers[contender.name] = await start(contender, mock.url);
    for (let round = -size.warmUpCount; round < size.aimockRounds; round += 1) {
      for (const { key, contender, owner } of variants) {
        const run = await runOfAimock(contender, servers[contender.name], owner);
        if (round >= 0) times[key].push(run);
      }
    }
  } finally {
    await Promise.all([...Object.values(servers).map((server) => server.stop()), mock.stop()]);
  }
  return summary(variants, times);
}

async function runOfAimock(contender, server, owner) {
  try {
    const recording = await contender.open(server, { text: "Say something.", owner });
    await ended(recording);
    const events = recording.read();
    const texts = events.filter(({ event }) => contender.textOf(event) !== undefined);
    assert.equal(texts.map(({ event }) => contender.textOf(event)).join(""), ANSWER, `${contender.name} lost text`);
    const [firstEventMs, firstTextMs] = [events[0], texts[0]].map(({ atMs }) => atMs - recording.startMs);
    return { firstEventMs, firstTextMs };
  } catch (error) {
    throw blamed(error, contender);
  }
}
