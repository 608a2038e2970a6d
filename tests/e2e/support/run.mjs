// Inputs of POST /run, and the requests around a run.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { finish, text } from "./openai.mjs";
import { EventStream } from "./sse.mjs";

/** A fresh id that says what it names. */
export const fresh = (noun) => `${noun}-${randomUUID()}`;

export const user = (content, id = fresh("user")) => ({ id, role: "user", content });

/** A front-end tool that takes any object. */
export const tool = (name, parameters = { type: "object" }) => ({ name, description: `Runs ${name}.`, parameters });

/** A whole RunAgentInput; `agent` and `owner` are the forwardedProps most tests use. */
export function runInput({ agent = "stub", owner, forwardedProps, ...members } = {}) {
  return {
    threadId: fresh("thread"),
    runId: fresh("run"),
    messages: [user("Hello")],
    tools: [],
    context: [],
    state: {},
    ...members,
    forwardedProps: {
      agentId: agent,
      ...(owner === undefined ? {} : { resourceId: owner }),
      ...forwardedProps,
    },
  };
}

/** Starts a run that must stream. */
export async function openRun(worker, input, { headers } = {}) {
  const abort = new AbortController();
  const response = await worker.fetch("/run", { json: input, headers, signal: abort.signal });
  if (response.status !== 200) assert.fail(`${response.status}: ${await response.text()}`);
  return new EventStream(response, { input, abort, isProxied: worker.isProxied });
}

/** A run whose every delta must be here before the upstream sends the next; `open` opens it. */
export async function expectDeltasAsTheyCome(upstream, open) {
  const asked = upstream.next();
  const opening = open();
  const exchange = await asked;
  exchange.head();
  const stream = await opening;
  await stream.until("RUN_STARTED");
  for (const delta of ["one ", "two ", "three"]) {
    await exchange.write(text(delta)[0]);
    assert.equal((await stream.until("TEXT_MESSAGE_CONTENT")).delta, delta);
  }
  await exchange.writeAll(finish());
  exchange.end();
  await stream.rest();
}

/** Runs to the end and gives the judged events. */
export const run = async (worker, input, options) => (await openRun(worker, input, options)).rest();

/** Reads a run's answer to its end and gives the judged events. */
export const readRun = async (response, input) =>
  new EventStream(response, { input, abort: new AbortController() }).rest();

/** Asserts an error answer of D1 and D2 and gives its body. */
export async function refused(response, status, code) {
  const text = await response.text();
  assert.equal(response.status, status, text);
  assert.equal(response.headers.get("content-type"), "application/json");
  const body = JSON.parse(text);
  assert.equal(typeof body.error, "string");
  assert.match(body.error, /\S/);
  assert.match(body.code, /^[a-z]+(_[a-z0-9]+)*$/);
  if (code !== undefined) assert.equal(body.code, code);
  for (const issue of body.issues ?? []) {
    assert.deepEqual(Object.keys(issue).sort(), ["field", "message"]);
    assert.match(issue.field, /^(\/.*)?$/);
  }
  return body;
}

/** POST /run that must be refused. */
export const refusedRun = async (worker, input, status, code) =>
  refused(await worker.fetch("/run", { json: input }), status, code);

/** Asserts a JSON success and gives its body. */
export async function ok(response) {
  const text = await response.text();
  assert.equal(response.status, 200, text);
  assert.equal(response.headers.get("content-type"), "application/json");
  return JSON.parse(text);
}

/** Posts a result as the body text it is given, or as JSON. */
export const postResult = (worker, runId, toolCallId, body, { owner } = {}) =>
  worker.fetch(`/runs/${encodeURIComponent(runId)}/tool-calls/${encodeURIComponent(toolCallId)}/result${
    owner === undefined ? "" : `?resourceId=${encodeURIComponent(owner)}`
  }`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });

/** Posts a result that must be taken. */
export async function giveResult(worker, runId, toolCallId, body) {
  const answer = await ok(await postResult(worker, runId, toolCallId, body));
  assert.deepEqual(answer, { success: true, runId, toolCallId });
}

/** The stored rows of a thread. */
export const history = async (worker, threadId, query = "format=ag-ui") =>
  (await ok(await worker.fetch(`/threads/${encodeURIComponent(threadId)}/messages?${query}`))).messages;

/** Reads again and again until `isDone` likes what it reads, for what the Worker does in its own time. */
export async function eventually(read, isDone) {
  for (;;) {
    const value = await read();
    if (isDone(value)) return value;
    await pause(20);
  }
}
