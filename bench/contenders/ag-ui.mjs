// What the contenders that speak AG-UI over server-sent events have in common.

import { randomUUID } from "node:crypto";
import { post, postJson } from "../client/recording.mjs";
import { nowMs } from "../clock.mjs";

/** The input of a run: `messages` before the new one, the new one's text, tools, the owner of a stored thread. */
export function runInput({ threadId = randomUUID(), history = [], text, messages, tools = [], owner, forwardedProps = {} }) {
  return {
    threadId,
    runId: randomUUID(),
    messages: messages ?? [...history, { id: randomUUID(), role: "user", content: text }],
    tools,
    context: [],
    state: {},
    forwardedProps: { ...forwardedProps, ...(owner ? { resourceId: owner } : {}) },
  };
}

const TEXTS = new Set(["TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK"]);

export const agUi = {
  /** The text of a text-delta event. */
  textOf: ({ type, delta }) => (TEXTS.has(type) && delta ? delta : undefined),
  isEnd: ({ type }) => type === "RUN_FINISHED",
  isError: ({ type }) => type === "RUN_ERROR",
};

/** A second run that brings the result of the call the first one ended with. */
export async function answerWithSecondRun(send, server, { text, tools, result }) {
  const threadId = randomUUID();
  const user = { id: randomUUID(), role: "user", content: text };
  const first = await send(server, { threadId, messages: [user], tools });
  await first.done;
  const events = first.read().map(({ event }) => event);
  const { toolCallId, toolCallName, parentMessageId } = events.find(({ type }) => type === "TOOL_CALL_START");
  const argumentText = events.filter(({ type }) => type === "TOOL_CALL_ARGS").map(({ delta }) => delta).join("");
  const call = { id: toolCallId, type: "function", function: { name: toolCallName, arguments: argumentText } };
  return send(server, {
    threadId,
    messages: [
      user,
      { id: parentMessageId ?? randomUUID(), role: "assistant", content: "", toolCalls: [call] },
      { id: randomUUID(), role: "tool", toolCallId, content: JSON.stringify(result) },
    ],
    tools,
  });
}

/** A result posted into the run that waits for it; the same stream goes on. `addressOf` = where it is posted. */
export async function answerInRun(send, server, { result, ...run }, addressOf) {
  const recording = await send(server, run);
  const { event } = await recording.until(({ type }) => type === "TOOL_CALL_END");
  recording.startMs = nowMs();
  await postJson(addressOf(recording, event), { result });
  return recording;
}

/** A contender whose run is one POST. */
export const agUiContender = (parts, path, forwardedProps = {}) => {
  const send = (server, run) =>
    post(server.url + (typeof path === "function" ? path(run) : path), runInput({ ...run, forwardedProps }));
  return {
    ...agUi,
    open: send,
    answerCall: (server, run) => answerWithSecondRun(send, server, run),
    ...parts,
  };
};
