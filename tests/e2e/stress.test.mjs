// Front-end results under stress (contract 3): many runs at once, results in any order, early, twice, wrong, by strangers.

import assert from "node:assert/strict";
import { calls, says } from "./support/openai.mjs";
import { fresh, openRun, postResult, runInput, tool, user } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";

const shared = suite();

const RUN_COUNT = 50;
const CALL_COUNT = 5;
const STRANGER = "value-of-a-stranger";

/** Mulberry32: a schedule is told by its seed. */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const shuffled = (items, random) =>
  items.map((item) => [random(), item]).sort(([a], [b]) => a - b).map(([, item]) => item);

const names = Array.from({ length: CALL_COUNT }, (_, index) => `ask${index}`);

/** Scripts the two answers of a run's model. */
function scriptModel(index) {
  const asks = (role) => ({ body: { messages } }) =>
    messages.some(({ content }) => JSON.stringify(content ?? "").includes(`number ${index}.`)) && messages.at(-1).role === role;
  shared.upstream.reply(calls(names.map((name) => [name, { run: index }])), { when: asks("user") });
  shared.upstream.reply(says(`Done with ${index}.`), { when: asks("tool") });
}

/** Posts and counts the answer by status. */
async function post(figures, expected, runId, toolCallId, body, options) {
  const response = await postResult(shared.worker, runId, toolCallId, body, options);
  await response.text();
  figures.statuses[response.status] = (figures.statuses[response.status] ?? 0) + 1;
  assert.ok(expected.includes(response.status), `${response.status} instead of ${expected}`);
}

/** What is wrong with a post, while the call is open or answered. */
const WRONG_POSTS = [
  (figures, { input, others }, id) => post(figures, [404], input.runId, id.replace(/_[0-9a-z]+$/, "_zz"), { result: STRANGER }),
  (figures, { others }, id) => post(figures, [404], others[0], id, { result: STRANGER }),
  (figures, { input }, id) => post(figures, [403], input.runId, id, { result: STRANGER }, { owner: "a-stranger" }),
  (figures, { input }) => post(figures, [404], input.runId, "no-id-of-ours", { result: STRANGER }),
];

/** Answers one call: strangers first, sometimes the value twice or another value after it. */
async function answerCall(figures, one, id, value, random) {
  if (random() < 0.4) await WRONG_POSTS[Math.floor(random() * WRONG_POSTS.length)](figures, one, id);
  const { runId } = one.input;
  const owner = one.owner;
  one.postedAtMs.set(id, performance.now());
  await post(figures, [200], runId, id, { result: value }, { owner });
  // After its last result a run may be over: the object then remembers, or the row says so.
  if (random() < 0.3) await post(figures, [200, 410], runId, id, { result: value }, { owner });
  if (random() < 0.3) await post(figures, [409, 410], runId, id, { result: STRANGER }, { owner });
}

async function play(figures, one, random) {
  const stream = await openRun(shared.worker, one.input);
  const posts = [];
  const late = [];
  for (let ended = 0; ended < CALL_COUNT; ) {
    const event = await stream.next();
    assert.ok(event, "the stream ended early");
    if (event.type === "TOOL_CALL_START") {
      one.values.set(event.toolCallId, `${one.input.runId}/${event.toolCallName}`);
      // Some answer as soon as they know the id, before END is read.
      if (random() < 0.3) posts.push(answerCall(figures, one, event.toolCallId, one.values.get(event.toolCallId), random));
      else late.push(event.toolCallId);
    }
    if (event.type === "TOOL_CALL_END") ended += 1;
    if (event.type === "TOOL_CALL_RESULT") noteResult(figures, one, event);
  }
  for (const id of shuffled(late, random)) posts.push(answerCall(figures, one, id, one.values.get(id), random));
  for (;;) {
    const event = await stream.next();
    if (!event) break;
    if (event.type === "TOOL_CALL_RESULT") noteResult(figures, one, event);
  }
  await Promise.all(posts);
  one.events = await stream.rest();
}

function noteResult(figures, one, { toolCallId }) {
  figures.latenciesMs.push(performance.now() - one.postedAtMs.get(toolCallId));
}

const percentile = (values, share) => values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * share)];

test("fifty runs with five calls each get every result once and no stranger's [3]", { timeout: 60_000 }, async (context) => {
  const seed = Number(process.env.STRESS_SEED ?? Math.floor(Math.random() * 2 ** 31));
  context.diagnostic(`STRESS_SEED=${seed}`);
  const random = randomFrom(seed);
  const figures = { statuses: {}, latenciesMs: [] };
  const runs = Array.from({ length: RUN_COUNT }, (_, index) => {
    const owner = `owner-${index}`;
    scriptModel(index);
    const input = runInput({ owner, runId: fresh("run"), messages: [user(`I am number ${index}.`)], tools: names.map((name) => tool(name)) });
    return { input, owner, values: new Map(), postedAtMs: new Map() };
  });
  for (const [index, one] of runs.entries()) one.others = [runs[(index + 1) % RUN_COUNT].input.runId];
  const startedMs = performance.now();
  await Promise.all(runs.map((one) => play(figures, one, random)));
  const tookMs = performance.now() - startedMs;
  for (const { events, values } of runs) {
    const results = events.filter(({ type }) => type === "TOOL_CALL_RESULT");
    assert.deepEqual(
      Object.fromEntries(results.map(({ toolCallId, content }) => [toolCallId, content])),
      Object.fromEntries(values),
    );
    assert.equal(results.length, CALL_COUNT, "every call has one RESULT");
    assert.deepEqual(events.filter(({ type }) => type.startsWith("RUN_")).map(({ type }) => type), ["RUN_STARTED", "RUN_FINISHED"]);
    assert.ok(!JSON.stringify(events).includes(STRANGER));
  }
  assert.ok(!shared.upstream.requests.some(({ text }) => text.includes(STRANGER)), "a stranger's value reached the model");
  const postCount = Object.values(figures.statuses).reduce((sum, count) => sum + count, 0);
  const [half, most] = [0.5, 0.95].map((share) => percentile(figures.latenciesMs, share).toFixed(1));
  context.diagnostic(
    `${RUN_COUNT} runs, ${RUN_COUNT * CALL_COUNT} calls, ${postCount} posts ${JSON.stringify(figures.statuses)} in ${tookMs.toFixed(0)} ms; post to RESULT ${half} ms (median), ${most} ms (95 %)`,
  );
});
