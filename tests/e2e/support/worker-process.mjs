// What startWorkerProcess runs: the Worker, its address told to the parent.

import { startWorker } from "./worker.mjs";

const { origin, prefix } = await startWorker(JSON.parse(process.env.WORKER_OPTIONS));
process.send({ origin, prefix });
