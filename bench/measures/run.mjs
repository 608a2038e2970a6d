// One run of a contender, judged: what the measures are made of.

import assert from "node:assert/strict";
import { answerText, sceneText } from "../mock/scene.mjs";

/** The contenders as they are measured for a run: those that can store a thread come twice. */
export const variantsOf = (contenders) =>
  contenders.flatMap((contender) => [
    { key: contender.name, label: contender.label, contender },
    ...(contender.canStore
      ? [{ key: `${contender.name}, stored`, label: `${contender.label}, thread stored`, contender, owner: "ada" }]
      : []),
  ]);

/** Asks for a scene, waits for its end and makes sure that the whole answer came. */
export async function runToEnd(contender, server, scene, { padding, ...run } = {}) {
  const recording = await contender.open(server, { text: sceneText(scene, padding), ...run });
  await recording.done;
  return judge(contender, recording, scene);
}

/** Times of a run that has ended, from when it was asked for. */
export function judge(contender, recording, scene) {
  const events = recording.read();
  const texts = events.flatMap(({ atMs, event }) => {
    const text = contender.textOf(event);
    return text === undefined ? [] : [{ atMs, text }];
  });
  assert.equal(texts.map(({ text }) => text).join(""), answerText(scene), `${contender.name} lost text`);
  assert.ok(events.some(({ event }) => contender.isEnd(event)), `${contender.name} did not finish`);
  return {
    firstEventMs: events[0].atMs - recording.startMs,
    firstTextMs: texts[0].atMs - recording.startMs,
    totalMs: recording.endMs - recording.startMs,
    textCount: texts.length,
  };
}
