// How the times of a run and what it takes of the processor grow with what it is given, and what it asks of the database
// and of its object: nothing may grow faster than its input.

import { randomUUID } from "node:crypto";
import { answerText, sceneText, TOOL } from "../mock/scene.mjs";
import { cpuMs } from "../process.mjs";
import { growthPower, median } from "../statistics.mjs";
import { ended, judge, runToEnd } from "./run.mjs";

const OWNER = "ada";
const SAY = { kind: "say", deltaCount: 20 };

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
const axes = {
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

/** First text, a flood and the processor time of both at every point, in turns. */
export async function growth({ contenders, servers, size }) {
  const floodScene = { kind: "flood", deltaCount: size.growthDeltas };
  const rows = [];
  for (const [axis, { points, prepare, scene, run, isParallel, isStored }] of Object.entries(axes)) {
    for (const contender of contenders.filter(({ canStore }) => canStore || !isStored)) {
      const server = servers[contender.name];
      const measured = points.map((point) => ({ point, firstText: [], flood: [], cpuMs: 0 }));
      const prepared = new Map();
      for (const point of points) prepared.set(point, await prepare?.(point, contender, server));
      for (let round = -1; round < size.growthRounds; round += 1) {
        for (const at of measured) {
          const { point, firstText, flood } = at;
          const parallel = isParallel ? point : 1;
          const once = (what) =>
            together(parallel, () =>
              runToEnd(contender, server, { ...what, ...scene?.(point) }, run(point, prepared.get(point))),
            );
          const beforeMs = cpuMs(server.pid);
          const said = await once(SAY);
          const flooded = await once(floodScene);
          if (round < 0) continue;
          at.cpuMs += cpuMs(server.pid) - beforeMs;
          firstText.push(Math.max(...said.map(({ firstTextMs }) => firstTextMs)));
          flood.push(Math.max(...flooded.map(({ totalMs }) => totalMs)));
        }
      }
      rows.push({ axis, key: contender.name, label: contender.label, ...curves(measured) });
    }
  }
  return rows;
}

const together = (count, run) => Promise.all(Array.from({ length: count }, run));

function curves(measured) {
  const curve = (valueOf) => measured.map((at) => [at.point, valueOf(at)]);
  const firstTextMs = curve(({ firstText }) => median(firstText));
  const floodMs = curve(({ flood }) => median(flood));
  const processorMs = curve(({ flood, cpuMs: spentMs }) => spentMs / flood.length);
  const powers = { firstTextPower: growthPower(firstTextMs), floodPower: growthPower(floodMs), processorPower: growthPower(processorMs) };
  return { firstTextMs, floodMs, processorMs, ...powers };
}

/** What one stored run asks for at every point; `countsOf` runs it on a server that counts. */
export async function askedFor(contender, server, countsOf) {
  const rows = [];
  for (const [axis, { points, prepare, scene, run, isParallel }] of Object.entries(axes)) {
    if (isParallel) continue;
    const counts = [];
    for (const point of points) {
      const prepared = await prepare?.(point, contender, server);
      const asked = { owner: OWNER, ...run(point, prepared) };
      counts.push([point, await countsOf(() => runToEnd(contender, server, { ...SAY, ...scene?.(point) }, asked))]);
    }
    rows.push({ axis, key: contender.name, label: contender.label, counts });
  }
  return rows;
}
