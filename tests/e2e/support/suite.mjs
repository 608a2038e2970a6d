// What every test file shares: one Worker, one upstream, and the checks that nothing was left over.

import assert from "node:assert/strict";
import { after, afterEach, before } from "node:test";
import { startUpstream } from "./upstream.mjs";
import { startWorker } from "./worker.mjs";

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
 * builder; by default there is one agent, `stub`.
 */
export function suite({ agents = (stub) => [stub()], ...options } = {}) {
  const shared = {};
  before(async () => {
    shared.upstream = await startUpstream();
    const stub = (agent) => stubAgent(shared.upstream, agent);
    shared.worker = await startWorker({
      agents: agents(stub),
      ...options,
      secrets: { OPENAI_API_KEY: API_KEY, ...options.secrets },
    });
  });
  afterEach(() => {
    const unexpected = shared.upstream.unexpected.map(({ text }) => text);
    const unused = shared.upstream.reset();
    assert.deepEqual(unexpected, [], "the upstream got requests no test had scripted");
    assert.equal(unused, 0, "the upstream was not asked as often as scripted");
  });
  after(async () => {
    await shared.worker?.stop();
    await shared.upstream?.stop();
    if (shared.worker) assert.ok(!shared.worker.logText().includes(API_KEY), "the key is in the log");
  });
  return shared;
}
