// What runs may grow in, and a run at each point of it.

import { randomUUID } from "node:crypto";
import { answerText, sceneText, TOOL } from "../mock/scene.mjs";
import { ended, judge, runToEnd } from "./run.mjs";

export const OWNER = "ada";
export const SAY = { kind: "say", deltaCount: 20 };

const messages = (count) =>
  Array.from({ length: count }, (_, index) => ({
    id: randomUUID(),
    role: index % 2 === 0 ? "user" : "assistant",
    content: `Message ${index} of a long talk, with some words in it so that it is about as long as one is.`,
  }));

const tools = (count) => Array.from({ length: count }, (_, index) => ({ ...TOOL, name: `${TOOL.name}_${index}` }));

/** A thread that has so many messages, as a run that sends all of them again. */
async function stored(count, contender, server) {
  const thread = { threadId: randomUUID(), owner: OWNER };
  const asked = [...messages(count - 2), { id: randomUUID(), role: "user", content: sceneText(SAY) }];
  const recording = await contender.open(server, { ...thread, messages: asked });
  await ended(recording);
  judge(contender, recording, SAY);
  const { event } = recording.read().find(({ event }) => event.type === "TEXT_MESSAGE_START");
  return { ...thread, history: [...asked, { id: event.messageId, role: "assistant", content: answerText(SAY) }] };
}

/** What grows, at which points, and one run at a point; `prepare` is not timed, `scene` changes what the model says. */
export const axes = {
  "bytes of the user message": {
    points: [1_000, 10_000, 100_000, 1_000_000],
    run: (count) => ({ padding: "lorem ipsum ".repeat(Math.ceil(count / 12)).slice(0, count) }),
  },
  "characters of each delta": { points: [10, 100, 1000], scene: (deltaLength) => ({ deltaLength }), run: () => ({}) },
  "messages of a history the client sends": {
    points: [20, 100, 500, 2000],
    run: (count) => ({ history: messages(count - 1) }),
  },
  "messages stored in the thread": {
    points: [20, 100, 500, 2000],
    isStored: true,
    prepare: stored,
    run: (_, { threadId, owner }) => ({ threadId, owner }),
  },
  // Fewer, since a list has at most 2,000 with the new one.
  "messages stored in the thread, and sent again": {
    points: [20, 100, 500, 1500],
    isStored: true,
    prepare: stored,
    run: (_, prepared) => prepared,
  },
  "runs the owner has had": {
    points: [10, 100, 1000],
    isStored: true,
    async prepare(count, contender, server) {
      const owner = randomUUID();
      for (let at = 0; at < count; at += 1) await runToEnd(contender, server, SAY, { owner });
      return { owner };
    },
    run: (_, prepared) => prepared,
  },
  "declared tools": { points: [2, 10, 50, 250], run: (count) => ({ tools: tools(count) }) },
  "parallel runs": { points: [1, 4, 16, 64], isParallel: true, run: () => ({}) },
};
