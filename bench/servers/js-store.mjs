import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { startWorker } from "../../tests/e2e/support/worker.mjs";
import { sceneText } from "../mock/scene.mjs";
import { SCENE } from "../measures/first-text.mjs";
import { servePlain } from "./plain.mjs";

const front = readFileSync(new URL("../workers/recording.mjs", import.meta.url), "utf8").replace('"INNER"', '"./index.js"');

/** What io-bridge sends to its database in one run on a new thread. */
async function recorded() {
  const worker = await startWorker({
    agents: [{ id: "bench", provider: "openai", model: "stub-1", baseUrl: `${process.env.UPSTREAM}/v1` }],
    secrets: { OPENAI_API_KEY: "unused" },
    front,
  });
  const [threadId, runId, userMessageId] = [randomUUID(), randomUUID(), randomUUID()];
  const input = {
    threadId,
    runId,
    state: {},
    messages: [{ id: userMessageId, role: "user", content: sceneText(SCENE) }],
    tools: [],
    context: [],
    forwardedProps: { agentId: "bench", resourceId: "ada" },
  };
  const headers = { "content-type": "application/json" };
  const answer = await fetch(worker.url("/run"), { method: "POST", headers, body: JSON.stringify(input) });
  const [, messageId] = (await answer.text()).match(/"messageId":"([^"]+)"/);
  const batches = await (await fetch(new URL("/batches", worker.url("")))).json();
  await worker.stop();
  assert.equal(batches.length, 2, "a run has a start batch and an end batch");
  return { start: batches[0], end: batches[1], ids: { threadId, runId, userMessageId, messageId } };
}

await servePlain({
  name: "js-store",
  modules: ["js-store.mjs", "js-contract.mjs", "translate.mjs"],
  objects: { RUNS: { className: "RunObject", useSQLite: true } },
  schema: new URL("../../migrations/", import.meta.url),
  bindings: { RECORDED: await recorded() },
});
