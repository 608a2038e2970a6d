// Plays a run against a model server nobody scripts byte by byte.

import { outline } from "./judge.mjs";
import { giveResult, openRun, runInput, tool, user } from "./run.mjs";

/** A front-end tool; `play` answers its calls. */
export const PICK = tool("pick", {
  type: "object",
  properties: { palette: { type: "string", enum: ["warm", "cold"] } },
  required: ["palette"],
});

/** Runs to the end, answers the calls of `pick`, and gives the judged events. */
export async function play(worker, agent, words, members) {
  const input = runInput({ agent, messages: [user(words)], tools: [PICK], ...members });
  const stream = await openRun(worker, input);
  const names = new Map();
  for (let event = await stream.next(); event; event = await stream.next()) {
    if (event.type === "TOOL_CALL_START") names.set(event.toolCallId, event.toolCallName);
    if (event.type === "TOOL_CALL_END" && names.get(event.toolCallId) === "pick") {
      await giveResult(worker, input.runId, event.toolCallId, { result: { color: "red" } });
    }
  }
  return stream.rest();
}

/** The events in short; what the server tool `current_time` told is left out. */
export const scene = (events) =>
  outline(events).map((line) => line.replace(/(RESULT \S+ )\{"(time|iso)":.*/, "$1the time"));
