// A Worker that keeps its state over a restart, and ways to break its database.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { API_KEY, stubAgent } from "./suite.mjs";
import { startUpstream } from "./upstream.mjs";
import { startWorker } from "./worker.mjs";

export async function scene(t) {
  const stateFolder = mkdtempSync(path.join(tmpdir(), "io-bridge-"));
  const upstream = await startUpstream();
  const options = { agents: [stubAgent(upstream)], secrets: { OPENAI_API_KEY: API_KEY }, stateFolder };
  let worker = await startWorker(options);
  t.after(async () => {
    await worker.stop();
    await upstream.stop();
    rmSync(stateFolder, { recursive: true, force: true });
  });
  const restart = async () => {
    await worker.stop();
    worker = await startWorker(options);
    return worker;
  };
  return { worker, upstream, restart };
}

/** Ways to break the database, each with its repair. */
export const faults = {
  "a table is gone": async ({ worker }) => {
    await worker.database.prepare("ALTER TABLE messages RENAME TO messages_away").run();
    return () => worker.database.prepare("ALTER TABLE messages_away RENAME TO messages").run();
  },
  "nothing can be written": async ({ worker }) => {
    const writes = ["threads", "runs", "messages"].flatMap((table) => [[table, "INSERT"], [table, "UPDATE"]]);
    const name = ([table, write]) => `refuse_${write}_${table}`;
    const batch = (sql) => worker.database.batch(writes.map((write) => worker.database.prepare(sql(write))));
    await batch((write) => `CREATE TRIGGER ${name(write)} BEFORE ${write[1]} ON ${write[0]} BEGIN SELECT RAISE(ABORT, 'read only'); END`);
    return () => batch((write) => `DROP TRIGGER ${name(write)}`);
  },
};
