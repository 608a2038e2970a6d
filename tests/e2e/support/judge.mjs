// The judge of every stream: the AG-UI 1.0 schema, the official client's checks, and the guarantees of contract 2.4.

import assert from "node:assert/strict";
import { verifyEvents } from "@ag-ui/client";
import { EventSchema } from "@ag-ui/core/schemas";
import { from, lastValueFrom, toArray } from "rxjs";

// Members by event type; `?` = optional. Nothing else may be sent (contract 2.4).
const MEMBERS = {
  RUN_STARTED: ["threadId", "runId", "protocolVersion"],
  RUN_FINISHED: ["threadId", "runId", "result?", "outcome?", "usage?"],
  RUN_ERROR: ["message", "code"],
  STEP_STARTED: ["stepName"],
  STEP_FINISHED: ["stepName"],
  TEXT_MESSAGE_START: ["messageId", "role"],
  TEXT_MESSAGE_CONTENT: ["messageId", "delta"],
  TEXT_MESSAGE_END: ["messageId"],
  REASONING_START: ["messageId"],
  REASONING_MESSAGE_START: ["messageId", "role"],
  REASONING_MESSAGE_CONTENT: ["messageId", "delta"],
  REASONING_MESSAGE_END: ["messageId"],
  REASONING_END: ["messageId"],
  TOOL_CALL_START: ["toolCallId", "toolCallName", "parentMessageId"],
  TOOL_CALL_ARGS: ["toolCallId", "delta"],
  TOOL_CALL_END: ["toolCallId"],
  TOOL_CALL_RESULT: ["messageId", "toolCallId", "content", "role"],
};

/** The types of events we may send. */
export const EVENT_TYPES = Object.keys(MEMBERS);

const ERROR_CODES = [
  "upstream_error",
  "upstream_rate_limited",
  "upstream_timeout",
  "upstream_truncated",
  "invalid_upstream_response",
  "output_truncated",
  "content_filtered",
  "context_length_exceeded",
  "max_steps_exceeded",
  "run_timeout",
  "run_interrupted",
  "storage_error",
  "cancelled",
  "internal_error",
];

export const TOOL_CALL_ID = /^tc_[A-Za-z0-9_-]{43}_[0-9a-z]+$/;

/**
 * Throws unless the events are a legal stream of ours.
 *
 * `input` = the run's body; `cut` = the connection died, so a prefix is judged; `liveToolCallIds` = calls whose
 * arguments may be no JSON because they were streamed live and cut (D8).
 */
export async function judge(events, { input, cut = false, liveToolCallIds = [] }) {
  for (const event of events) judgeShape(event, input);
  if (!cut) await lastValueFrom(from(events).pipe(verifyEvents(false), toArray()));
  new Lifecycle(input, liveToolCallIds).judge(events, cut);
}

function judgeShape(event, input) {
  const members = MEMBERS[event.type];
  assert.ok(members, `an event of type ${event.type}`);
  const known = members.map((name) => name.replace("?", ""));
  const required = members.filter((name) => !name.endsWith("?"));
  const present = Object.keys(event).filter((name) => name !== "type");
  assert.deepEqual(present.filter((name) => !known.includes(name)), [], `unknown members of ${JSON.stringify(event)}`);
  assert.deepEqual(required.filter((name) => !present.includes(name)), [], `missing in ${JSON.stringify(event)}`);
  assert.ok(!hasNull(event), `null in ${JSON.stringify(event)}`);
  const parsed = EventSchema.safeParse(event);
  assert.ok(parsed.success, `${JSON.stringify(event)} does not fit the schema: ${parsed.error}`);
  const isNewPeer = typeof input?.protocolVersion === "string";
  assert.ok(isNewPeer || !event.type.startsWith("REASONING_"), `${event.type} was sent to a peer without a protocolVersion`);
  for (const gated of ["outcome", "usage", "result"]) {
    assert.ok(isNewPeer || !(gated in event), `${gated} was sent to a peer without a protocolVersion`);
  }
  if (event.type === "RUN_ERROR") assert.ok(ERROR_CODES.includes(event.code), `unknown code ${event.code}`);
}

function hasNull(value) {
  if (value === null) return true;
  return typeof value === "object" && Object.values(value).some(hasNull);
}

/** The guarantees of contract 2.4, restated independently of the Worker's own machine. */
class Lifecycle {
  #input;
  #live;
  #phase = "before";
  #step = undefined;
  #stepNumber = 0;
  #text = undefined;
  #reasoning = undefined;
  #call = undefined;
  #calls = new Map();
  #messageIds = new Set();
  #lastText = undefined;
  #sharedParent = undefined;
  #resultSeenInStep = false;
  #textOutsideStep = false;

  constructor(input, live) {
    this.#input = input;
    this.#live = live;
  }

  judge(events, cut) {
    for (const event of events) {
      assert.notEqual(this.#phase, "after", `${event.type} after the terminal event`);
      if (this.#phase === "before") assert.equal(event.type, "RUN_STARTED", "RUN_STARTED comes first");
      this[event.type](event);
    }
    if (!cut) assert.equal(this.#phase, "after", "the stream ended without a terminal event");
    else assert.notEqual(this.#phase, "after", "a cut stream had its terminal event");
  }

  RUN_STARTED(event) {
    assert.equal(this.#phase, "before", "RUN_STARTED twice");
    this.#phase = "running";
    this.#echoes(event);
    assert.equal(event.protocolVersion, "1.0");
  }

  STEP_STARTED({ stepName }) {
    this.#nothingOpen("STEP_STARTED");
    assert.equal(this.#step, undefined, "a step inside a step");
    this.#stepNumber += 1;
    assert.equal(stepName, `step-${this.#stepNumber}`);
    this.#step = stepName;
    this.#lastText = undefined;
    this.#sharedParent = undefined;
    this.#resultSeenInStep = false;
  }

  STEP_FINISHED({ stepName }) {
    this.#nothingOpen("STEP_FINISHED");
    assert.equal(stepName, this.#step);
    this.#step = undefined;
  }

  TEXT_MESSAGE_START({ messageId, role }) {
    this.#nothingOpen("TEXT_MESSAGE_START");
    assert.equal(role, "assistant");
    this.#freshMessage(messageId);
    // showErrors may speak after the last step, directly before RUN_ERROR.
    if (this.#step === undefined) this.#textOutsideStep = true;
    this.#text = messageId;
    this.#lastText = messageId;
  }

  TEXT_MESSAGE_CONTENT({ messageId, delta }) {
    assert.equal(messageId, this.#text);
    assert.notEqual(delta, "");
  }

  TEXT_MESSAGE_END({ messageId }) {
    assert.equal(messageId, this.#text);
    this.#text = undefined;
  }

  REASONING_START({ messageId }) {
    this.#nothingOpen("REASONING_START");
    this.#inStep("REASONING_START");
    assert.ok(!this.#resultSeenInStep, "reasoning after a RESULT of its step");
    this.#freshMessage(messageId);
    this.#reasoning = { messageId, phase: "ahead" };
  }

  REASONING_MESSAGE_START({ messageId, role }) {
    assert.equal(role, "reasoning");
    this.#reasoningIs(messageId, "ahead", "open");
  }

  REASONING_MESSAGE_CONTENT({ messageId, delta }) {
    assert.notEqual(delta, "");
    this.#reasoningIs(messageId, "open", "open");
  }

  REASONING_MESSAGE_END({ messageId }) {
    this.#reasoningIs(messageId, "open", "ended");
  }

  REASONING_END({ messageId }) {
    this.#reasoningIs(messageId, "ended", "ended");
    this.#reasoning = undefined;
  }

  TOOL_CALL_START({ toolCallId, parentMessageId }) {
    this.#nothingOpen("TOOL_CALL_START");
    this.#inStep("TOOL_CALL_START");
    assert.ok(!this.#resultSeenInStep, "a call opened after a RESULT of its step");
    assert.ok(!this.#calls.has(toolCallId), "two calls with one id");
    assert.match(toolCallId, TOOL_CALL_ID);
    this.#judgeParent(parentMessageId);
    this.#call = { toolCallId, text: "", step: this.#step, hasResult: false };
    this.#calls.set(toolCallId, this.#call);
  }

  TOOL_CALL_ARGS({ toolCallId, delta }) {
    assert.equal(toolCallId, this.#call?.toolCallId);
    assert.notEqual(delta, "");
    this.#call.text += delta;
  }

  TOOL_CALL_END({ toolCallId }) {
    assert.equal(toolCallId, this.#call?.toolCallId);
    if (!this.#live.includes(toolCallId)) {
      const value = JSON.parse(this.#call.text);
      assert.ok(value !== null && typeof value === "object" && !Array.isArray(value), "arguments are a JSON object");
    }
    this.#call = undefined;
  }

  TOOL_CALL_RESULT({ messageId, toolCallId, content, role }) {
    this.#nothingOpen("TOOL_CALL_RESULT");
    const call = this.#calls.get(toolCallId);
    assert.ok(call, "a RESULT for a call that was never started");
    assert.equal(call.hasResult, false, "two RESULTs for one call");
    // A call left pending by the run before is completed by messages, never by an event of this run.
    assert.equal(call.step, this.#step, "a RESULT outside the step of its call");
    assert.equal(role, "tool");
    assert.notEqual(content, "");
    assert.notEqual(content, "null");
    this.#freshMessage(messageId);
    call.hasResult = true;
    this.#resultSeenInStep = true;
  }

  RUN_FINISHED(event) {
    this.#terminal("RUN_FINISHED");
    assert.ok(!this.#textOutsideStep, "text outside a step in a run that did not fail");
    this.#echoes(event);
    const unanswered = [...this.#calls.values()].filter((call) => !call.hasResult).map((call) => call.toolCallId);
    if (this.#input?.protocolVersion) assert.deepEqual(event.outcome?.pendingToolCallIds ?? [], unanswered);
    for (const id of unanswered) assert.equal(this.#calls.get(id).step, `step-${this.#stepNumber}`);
  }

  RUN_ERROR(event) {
    this.#terminal("RUN_ERROR");
    assert.match(event.message, /^\S.*\S$/);
    for (const call of this.#calls.values()) assert.ok(call.hasResult, "RUN_ERROR with a call that has no RESULT");
  }

  #terminal(type) {
    this.#nothingOpen(type);
    assert.equal(this.#step, undefined, `${type} inside a step`);
    this.#phase = "after";
  }

  #nothingOpen(type) {
    assert.equal(this.#text, undefined, `${type} while a text is open`);
    assert.equal(this.#call, undefined, `${type} while a call is open`);
    assert.equal(this.#reasoning, undefined, `${type} while reasoning is open`);
  }

  /** A span holds one message of its own id. */
  #reasoningIs(messageId, before, now) {
    assert.deepEqual(this.#reasoning, { messageId, phase: before });
    this.#reasoning.phase = now;
  }

  #inStep(type) {
    assert.ok(this.#step, `${type} outside a step`);
  }

  #freshMessage(messageId) {
    assert.match(messageId, /^\S+$/);
    assert.ok(!this.#messageIds.has(messageId), "a message id used twice");
    this.#messageIds.add(messageId);
  }

  #judgeParent(parentMessageId) {
    if (this.#lastText !== undefined) {
      assert.equal(parentMessageId, this.#lastText, "the parent is the nearest text before the call");
    } else if (this.#sharedParent === undefined) {
      this.#freshMessage(parentMessageId);
      this.#sharedParent = parentMessageId;
    } else {
      assert.equal(parentMessageId, this.#sharedParent, "calls without a text share one parent");
    }
  }

  #echoes({ threadId, runId }) {
    if (!this.#input) return;
    assert.equal(threadId, this.#input.threadId);
    assert.equal(runId, this.#input.runId);
  }
}

/** The events with ids replaced by their order of appearance: `m1`, `c1`, ..., so that whole lists can be compared. */
export function normalise(events) {
  const labels = new Map();
  const counts = { m: 0, c: 0 };
  const label = (kind, id) => {
    if (!labels.has(id)) labels.set(id, `${kind}${(counts[kind] += 1)}`);
    return labels.get(id);
  };
  return events.map((event) => ({
    ...event,
    ...("messageId" in event ? { messageId: label("m", event.messageId) } : {}),
    ...("parentMessageId" in event ? { parentMessageId: label("m", event.parentMessageId) } : {}),
    ...("toolCallId" in event ? { toolCallId: label("c", event.toolCallId) } : {}),
  }));
}

/** One line per event with consecutive deltas joined: `TEXT m1 "Hello"`. */
export function outline(events) {
  const lines = [];
  for (const event of normalise(events)) {
    const line = OUTLINES[event.type](event);
    const previous = lines.at(-1);
    if ("delta" in event && previous?.key === `${event.type} ${event.messageId ?? event.toolCallId}`) {
      previous.delta += event.delta;
    } else {
      lines.push({ line, delta: event.delta, key: `${event.type} ${event.messageId ?? event.toolCallId}` });
    }
  }
  return lines.map(({ line, delta }) => (delta === undefined ? line : `${line} ${delta}`));
}

const OUTLINES = {
  RUN_STARTED: () => "RUN_STARTED",
  RUN_FINISHED: () => "RUN_FINISHED",
  RUN_ERROR: ({ code }) => `RUN_ERROR ${code}`,
  STEP_STARTED: ({ stepName }) => `STEP_STARTED ${stepName}`,
  STEP_FINISHED: ({ stepName }) => `STEP_FINISHED ${stepName}`,
  TEXT_MESSAGE_START: ({ messageId }) => `TEXT_MESSAGE_START ${messageId}`,
  TEXT_MESSAGE_CONTENT: ({ messageId }) => `TEXT_MESSAGE_CONTENT ${messageId}`,
  TEXT_MESSAGE_END: ({ messageId }) => `TEXT_MESSAGE_END ${messageId}`,
  REASONING_START: ({ messageId }) => `REASONING_START ${messageId}`,
  REASONING_MESSAGE_START: ({ messageId }) => `REASONING_MESSAGE_START ${messageId}`,
  REASONING_MESSAGE_CONTENT: ({ messageId }) => `REASONING_MESSAGE_CONTENT ${messageId}`,
  REASONING_MESSAGE_END: ({ messageId }) => `REASONING_MESSAGE_END ${messageId}`,
  REASONING_END: ({ messageId }) => `REASONING_END ${messageId}`,
  TOOL_CALL_START: ({ toolCallId, toolCallName, parentMessageId }) =>
    `TOOL_CALL_START ${toolCallId} ${toolCallName} in ${parentMessageId}`,
  TOOL_CALL_ARGS: ({ toolCallId }) => `TOOL_CALL_ARGS ${toolCallId}`,
  TOOL_CALL_END: ({ toolCallId }) => `TOOL_CALL_END ${toolCallId}`,
  TOOL_CALL_RESULT: ({ toolCallId, content }) => `TOOL_CALL_RESULT ${toolCallId} ${content}`,
};
