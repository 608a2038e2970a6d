// Our Worker as it ships, in workerd, without a proxy in front; with COUNTED, behind `workers/counting.mjs`;
// with INSPECTED, open to V8's inspector.

import { readFileSync } from "node:fs";
import { startWorker } from "../../tests/e2e/support/worker.mjs";
import { childOf } from "../process.mjs";

const counting = () => readFileSync(new URL("../workers/counting.mjs", import.meta.url), "utf8").replace('"INNER"', '"./index.js"');

const worker = await startWorker({
  agents: [{ id: "bench", provider: "openai", model: "stub-1", baseUrl: `${process.env.UPSTREAM}/v1` }],
  secrets: { OPENAI_API_KEY: "unused" },
  front: process.env.COUNTED ? counting() : undefined,
  inspect: process.env.INSPECTED === "1",
});
const { inspectorUrl } = worker;
process.send({ url: worker.url(""), inspectorUrl, pid: childOf(process.pid, "workerd") });
process.once("disconnect", () => worker.stop().finally(() => process.exit()));
