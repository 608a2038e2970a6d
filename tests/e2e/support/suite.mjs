// What every test file shares: one Worker, one upstream, and the checks that nothing was left over.

import assert from "node:assert/strict";
import * as runner from "node:test";
import { EventStream } from "./sse.mjs";
import { startUpstream } from "./upstream.mjs";
import { startWorker } from "./worker.mjs";

// Longer than any test takes on a busy machine, where a Worker needs seconds to start; a test that waits for what never
// comes fails alone.
const TEST_TIMEOUT_MS = 60_000;

/** A test of Node's runner that cannot hang. */
export const test = (name, ...rest) => {
  const body = rest.pop();
  return runner.test(name, { timeout: TEST_TIMEOUT_MS, ...rest[0] }, body);
};

export const API_KEY = "sk-secret-of-the-tests";

/** The agent `stub`: an OpenAI-compatible upstream that is the test itself. */
export const stubAgent = (upstream, { id = "stub", ...options } = {}) => ({
  id,
  provider: "openai",
  model: "stub-1",
  baseUrl: `${upstream.url}/v1`,
  ...options,
});

/**
 * Starts the suite's Worker before its tests and stops it after them. `agents` gets the upstream's stub agent
 * builder; by default there is one agent, `stub`. `vars` may be a function of the upstream.
 */
export function suite({ agents = (stub) => [stub()], vars = {}, ...options } = {}) {
  const shared = {};
  const start = async () => {
    const stub = (agent) => stubAgent(shared.upstream, agent);
    shared.worker = await startWorker({
      agents: agents(stub),
      vars: typeof vars === "function" ? vars(shared.upstream) : vars,
      ...options,
      secrets: { OPENAI_API_KEY: API_KEY, ...options.secrets },
    });
  };
  const stop = async () => {
    await shared.worker.stop();
    assert.ok(!shared.worker.logText().includes(API_KEY), "the key is in the log");
  };
  runner.before(async () => {
    shared.upstream = await startUpstream();
    await start();
  });
  runner.afterEach(async ({ passed }) => {
    const openCount = EventStream.dropOpen();
    const unexpected = shared.upstream.unexpected.map(({ text }) => text);
    const unused = shared.upstream.reset();
    if (passed && openCount === 0 && unexpected.length === 0 && unused === 0) return;
    // What a failed test left running must not fail the next one too.
    await stop();
    shared.upstream.reset();
    await start();
    assert.equal(openCount, 0, "a stream was neither read to its end nor abandoned, so nobody judged it");
    assert.deepEqual(unexpected, [], "the upstream got requests no test had scripted");
    assert.equal(unused, 0, "the upstream was not asked as often as scripted");
  });
  runner.after(async () => {
    await stop();
    await shared.upstream.stop();
  });
  return shared;
}
