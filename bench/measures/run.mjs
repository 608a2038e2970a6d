// One run of a contender, judged: what the measures are made of.

import assert from "node:assert/strict";
import { answerText, sceneText } from "../mock/scene.mjs";

/** Longer than any run takes. */
const RUN_TIMEOUT_MS = 180_000;

/** The contenders as they are measured for a run: those that can store a thread come twice. */
export const variantsOf = (contenders) =>
  contenders.flatMap((contender) => [
    { key: contender.name, label: contender.label, contender },
    ...(contender.canStore
      ? [{ key: `${contender.name}, stored`, label: `${contender.label}, thread stored`, contender, owner: "ada" }]
      : []),
  ]);

/** The same, but peers as they come: where a peer is far behind, its other form is no news. */
export const variantsWithoutPeers = (contenders) =>
  variantsOf(contenders).filter(({ contender, owner }) => contender.role !== "peer" || !owner);

/** Asks for a scene, waits for its end and makes sure that the whole answer came. */
export async function runToEnd(contender, server, scene, { padding, ...run } = {}) {
  try {
    const recording = await contender.open(server, { text: sceneText(scene, padding), ...run });
    await ended(recording);
    return judge(contender, recording, scene);
  } catch (error) {
    throw blamed(error, contender);
  }
}

/** Waits for the end of a run, which a server that hangs never comes to. */
export async function ended(recording) {
  let late;
  const timeout = new Promise((_, reject) => {
    late = setTimeout(() => reject(new Error("a run does not end")), RUN_TIMEOUT_MS);
  });
  try {
    await Promise.race([recording.done, timeout]);
  } finally {
    clearTimeout(late);
  }
}

/** The error, with whose it is: a peer that fails a measure is left out of it. */
export const blamed = (error, { name }) => Object.assign(error, { contender: error.contender ?? name });

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
