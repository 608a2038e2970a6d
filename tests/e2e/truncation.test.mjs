// A stream that ends without a terminal event never looks like a clean end: contract 2.4.

import assert from "node:assert/strict";
import { finish, text } from "./support/openai.mjs";
import { openRun, runInput } from "./support/run.mjs";
import { EventStream } from "./support/sse.mjs";
import { suite, test } from "./support/suite.mjs";

const shared = suite();

// More than a viewer's queue and every buffer between it and a client hold.
const DELTA = "x".repeat(64 * 1024);
const DELTA_COUNT = 700;

test("a viewer that does not read is cut off visibly, and the others get everything", { timeout: 60_000 }, async () => {
  const input = runInput();
  const asked = shared.upstream.next();
  const opening = openRun(shared.worker, input);
  const exchange = await asked;
  exchange.head();
  const reading = await opening;
  const abort = new AbortController();
  const response = await shared.worker.fetch(`/runs/${input.runId}/events?address=${reading.address}`, { signal: abort.signal });
  const idle = new EventStream(response, { input, abort });

  const all = reading.rest();
  for (let count = 0; count < DELTA_COUNT; count += 1) await exchange.write(text(DELTA)[0]);
  await exchange.writeAll(finish());
  exchange.end();
  const events = await all;
  assert.equal(events.at(-1).type, "RUN_FINISHED");
  assert.equal(events.filter(({ delta }) => delta === DELTA).length, DELTA_COUNT);

  const seen = await idle.untilCut();
  assert.equal(seen[0].type, "RUN_STARTED");
  assert.ok(seen.length < events.length);
});
