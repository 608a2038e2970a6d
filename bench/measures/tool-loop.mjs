// From the result of a front-end tool to the next words: a POST into the run that waits, against a second request.

import { sceneText, TOOL } from "../mock/scene.mjs";
import { tail } from "../statistics.mjs";
import { blamed, ended, judge } from "./run.mjs";

const CALL = { kind: "call", deltaCount: 20 };

export async function toolLoop({ contenders, servers, size }) {
  const rows = contenders.filter(({ answerCall }) => answerCall).map((contender) => ({ contender, times: [] }));
  for (let round = -size.warmUpCount; round < size.toolRounds; round += 1) {
    for (const { contender, times } of rows) {
      const nextTextMs = await nextText(contender, servers[contender.name]);
      if (round >= 0) times.push(nextTextMs);
    }
  }
  return rows.map(({ contender: { name, label }, times }) => ({ key: name, label, nextTextMs: tail(times) }));
}

/** Time from the result to the next words, in milliseconds; `more` changes what the model says. */
export async function nextText(contender, server, { padding, tools = [], ...run } = {}, more) {
  const scene = { ...CALL, ...more };
  try {
    const asked = { text: sceneText(scene, padding), tools: [TOOL, ...tools], result: { color: "amber" }, ...run };
    const recording = await contender.answerCall(server, asked);
    await ended(recording);
    judge(contender, recording, scene);
    return recording.read().find(({ event }) => contender.textOf(event) !== undefined).atMs - recording.startMs;
  } catch (error) {
    throw blamed(error, contender);
  }
}
