// Everything that is measured, and how to start it.

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startProcess, storageFolder } from "../process.mjs";
import { agUiContender, answerInRun } from "./ag-ui.mjs";
import { aiChat } from "./ai-chat.mjs";
import { direct, passThrough } from "./chat-completions.mjs";

const folder = new URL("../", import.meta.url);

const ours = agUiContender(
  {
    name: "io-bridge",
    label: "io-bridge",
    role: "ours",
    runtime: "workerd",
    server: "servers/io-bridge.mjs",
    canStore: true,
    answerCall: (server, run) =>
      answerInRun(ours.open, server, run, (recording, { toolCallId }) => {
        const [{ event: started }] = recording.read();
        return `${server.url}/runs/${started.runId}/tool-calls/${toolCallId}/result`;
      }),
  },
  "/run",
  { agentId: "bench" },
);

const jsWorker = agUiContender(
  {
    name: "js-worker",
    label: "hand-written JS Worker",
    role: "yardstick",
    runtime: "workerd",
    server: "servers/js-worker.mjs",
    canStore: true,
    answerCall: undefined,
  },
  "",
);

/** What a run costs that lives in an object, as any must that a later request, such as a tool's result, is to reach. */
const jsObject = agUiContender(
  {
    name: "js-object",
    label: "the same JS Worker, run in an object",
    role: "floor",
    runtime: "workerd",
    server: "servers/js-worker.mjs",
    answerCall: (server, run) =>
      answerInRun(jsObject.open, server, run, ({ headers }) => `${server.url}?resultFor=${headers["run-object"]}`),
  },
  "",
  { inObject: true },
);

/** What it costs to do, in an object, what the contract asks of every run, stored or not. */
const jsContract = agUiContender(
  {
    name: "js-contract",
    label: "a JS Worker in an object, doing what the contract asks",
    role: "floor",
    runtime: "workerd",
    server: "servers/js-contract.mjs",
    measures: ["first-text", "throughput"],
  },
  "run",
);

/** The same, with what it costs to store what a run of ours must leave behind. */
const jsStore = agUiContender(
  {
    name: "js-store",
    label: "the same, storing what io-bridge stores",
    role: "floor",
    runtime: "workerd",
    server: "servers/js-store.mjs",
    measures: ["first-text", "throughput"],
  },
  "run",
);

const mastra = agUiContender(
  {
    name: "mastra",
    label: "Mastra with @ag-ui/mastra",
    role: "peer",
    runtime: "node",
    server: "peers/mastra/server.mjs",
    packages: { folder: "peers/mastra", shown: ["@ag-ui/mastra", "@mastra/core", "@mastra/hono"] },
    canStore: true,
  },
  ({ owner }) => (owner ? "/rememberer" : "/helper"),
);

const copilotKit = agUiContender(
  {
    name: "copilotkit",
    label: "CopilotKit runtime",
    role: "peer",
    runtime: "node",
    server: "peers/copilotkit/server.mjs",
    packages: { folder: "peers/copilotkit", shown: ["@copilotkit/runtime"] },
    env: { COPILOTKIT_TELEMETRY_DISABLED: "true", DO_NOT_TRACK: "1" },
  },
  "/agent/default/run",
);

/** Ours first, then what it is held against, then the floors. */
export const contenders = [ours, jsWorker, mastra, copilotKit, aiChat, jsObject, jsContract, jsStore, passThrough, direct];

/** Starts a contender in a process of its own; `more` = environment of this start alone. */
export async function start(contender, upstreamUrl, more = {}) {
  if (contender.start) return contender.start(upstreamUrl);
  const env = { UPSTREAM: upstreamUrl, NODE_ENV: "production", TMPDIR: storageFolder, ...contender.env, ...more };
  try {
    return await startProcess(fileURLToPath(new URL(contender.server, folder)), { env });
  } catch (error) {
    throw Object.assign(error, { contender: contender.name });
  }
}

/** The versions of a peer's packages that are installed. */
export function versions({ packages }) {
  if (!packages) return {};
  const read = (name) => new URL(`${packages.folder}/node_modules/${name}/package.json`, folder);
  return Object.fromEntries(
    packages.shown.filter((name) => existsSync(read(name))).map((name) => [name, JSON.parse(readFileSync(read(name))).version]),
  );
}
