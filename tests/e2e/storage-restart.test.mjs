// An end the database did not take, and a restart before it is delivered (contract 2.3).

import assert from "node:assert/strict";
import { finish, text } from "./support/openai.mjs";
import { history, ok, openRun, runInput, user } from "./support/run.mjs";
import { faults, scene } from "./support/storage.mjs";
import { test } from "./support/suite.mjs";

test("what an object kept survives a restart, and who asks for the run has it delivered", { timeout: 60_000 }, async (t) => {
  const s = await scene(t);
  const input = runInput({ owner: "ada", messages: [user("one")] });
  const asked = s.upstream.next();
  const opening = openRun(s.worker, input);
  const exchange = await asked;
  exchange.head();
  await exchange.writeAll(text("1"));
  const stream = await opening;
  await stream.until("TEXT_MESSAGE_CONTENT");
  const repair = await faults["a table is gone"](s);
  await exchange.writeAll(...finish());
  exchange.end();
  assert.equal((await stream.rest()).at(-1).type, "RUN_FINISHED");
  await repair();
  const worker = await s.restart();
  assert.equal((await ok(await worker.fetch(`/runs/${input.runId}?resourceId=ada`))).status, "finished");
  assert.deepEqual((await history(worker, input.threadId)).map(({ content }) => content), ["one", "1"]);
});
