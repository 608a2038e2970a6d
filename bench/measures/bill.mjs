// What runs ask of the platform: requests, statements, rows, processor time. The counts come from a module in front of
// the Worker; processor time is measured without it.

import { randomUUID } from "node:crypto";
import { start } from "../contenders/index.mjs";
import { PACE_MS, sceneText, TOOL } from "../mock/scene.mjs";
import { cpuMs } from "../process.mjs";
import { askedFor } from "./growth.mjs";
import { judge, runToEnd } from "./run.mjs";

const SAY = { kind: "say", deltaCount: 300 };
const OWNER = "ada";
// Twelve seconds at the pace of a real model: long enough for the object to keep its row.
const PACED = { kind: "pace", deltaCount: 600 };

const say = (run) => (contender, server) => runToEnd(contender, server, SAY, run?.());

/** The kinds of runs; `together` = so many at once, `seconds` = how long one takes by the model's pace alone. */
const kinds = [
  { key: "stateless", label: "300 tokens, nothing stored", run: say() },
  { key: "first", label: "300 tokens, first run of a thread", run: say(() => ({ owner: OWNER })) },
  {
    key: "next",
    label: "300 tokens, tenth run of a thread",
    async prepare(contender, server) {
      const run = { owner: OWNER, threadId: randomUUID() };
      for (let at = 0; at < 9; at += 1) await runToEnd(contender, server, SAY, run);
      return run;
    },
    run: (contender, server, prepared) => runToEnd(contender, server, SAY, prepared),
  },
  {
    key: "paced",
    label: "600 tokens in 12 s, stored",
    seconds: (PACED.deltaCount * PACE_MS) / 1000,
    together: 10,
    async run(contender, server) {
      const recording = await contender.open(server, { text: sceneText(PACED), owner: OWNER });
      await recording.done;
    },
  },
  {
    key: "tool",
    label: "a front-end tool's result between a call and 300 tokens, stored",
    needs: ({ answerCall }) => answerCall,
    async run(contender, server) {
      const scene = { kind: "call", deltaCount: 300 };
      const run = { text: sceneText(scene), tools: [TOOL], result: { color: "amber" }, owner: OWNER };
      const recording = await contender.answerCall(server, run);
      await recording.done;
      judge(contender, recording, scene);
    },
  },
];

/** Ours, and the JS Worker to hold it against. */
export async function bill({ contenders, mock, size }) {
  const [runs, growth] = [[], []];
  for (const contender of contenders.filter(({ role }) => role === "ours" || role === "yardstick")) {
    const taken = kinds.filter(({ needs }) => !needs || needs(contender));
    const rows = taken.map(({ key, label, seconds }) => ({ key: `${contender.name}, ${key}`, label: `${contender.label}: ${label}`, seconds }));
    await onServer(contender, mock, { COUNTED: "1" }, async (server) => {
      for (const [index, { prepare, run }] of taken.entries()) {
        const prepared = await prepare?.(contender, server);
        rows[index].counts = await countsOf(server, () => run(contender, server, prepared));
      }
      growth.push(...(await askedFor(contender, server, (run) => countsOf(server, run))));
    });
    await onServer(contender, mock, {}, async (server) => {
      for (const [index, kind] of taken.entries()) rows[index].cpuMs = await cpuOf(kind, contender, server, size.billRuns);
    });
    runs.push(...rows);
  }
  return { runs, growth };
}

async function onServer(contender, mock, env, measure) {
  const server = await start(contender, mock.url, env);
  try {
    // What is done once for a fresh process is not a run's.
    await runToEnd(contender, server, SAY, { owner: OWNER });
    await measure(server);
  } finally {
    await server.stop();
  }
}

/** What is asked for while something runs. */
async function countsOf(server, run) {
  const read = async () => (await fetch(new URL("/counts", server.url))).json();
  await read();
  await run();
  return read();
}

async function cpuOf({ prepare, run, together }, contender, server, billRuns) {
  // Runs that take their time do so at once; those that need others before them are few.
  const [rounds, width] = together ? [1, together] : [prepare ? Math.ceil(billRuns / 10) : billRuns, 1];
  let spentMs = 0;
  for (let round = 0; round < rounds; round += 1) {
    const prepared = await prepare?.(contender, server);
    const before = cpuMs(server.pid);
    await Promise.all(Array.from({ length: width }, () => run(contender, server, prepared)));
    spentMs += cpuMs(server.pid) - before;
  }
  return spentMs / (rounds * width);
}
