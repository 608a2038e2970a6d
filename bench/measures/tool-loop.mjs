// From the result of a front-end tool to the next words: a POST into the run that waits, against a second request.

import { sceneText, TOOL } from "../mock/scene.mjs";
import { tail } from "../statistics.mjs";
import { judge } from "./run.mjs";

const SCENE = { kind: "call", deltaCount: 20 };

export async function toolLoop({ contenders, servers, size }) {
  const rows = contenders.filter(({ answerCall }) => answerCall).map((contender) => ({ contender, times: [] }));
  for (let round = -size.warmUpCount; round < size.toolRounds; round += 1) {
    for (const { contender, times } of rows) {
      const run = { text: sceneText(SCENE), tools: [TOOL], result: { color: "amber" } };
      const recording = await contender.answerCall(servers[contender.name], run);
      await recording.done;
      const events = recording.read();
      const first = events.find(({ event }) => contender.textOf(event) !== undefined);
      judge(contender, recording, SCENE);
      if (round >= 0) times.push(first.atMs - recording.startMs);
    }
  }
  return rows.map(({ contender: { name, label }, times }) => ({ key: name, label, nextTextMs: tail(times) }));
}
