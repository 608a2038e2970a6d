// Failures in plain words.

import { Refusal } from "./api.ts";
import type { NoticeItem } from "./state/items.ts";

export type Problem = Pick<NoticeItem, "title" | "detail" | "code" | "action">;

const words: Record<string, Omit<Problem, "code">> = {
  unauthenticated: { title: "The server wants a token", detail: "Put it into the settings, then try again.", action: "settings" },
  forbidden: { title: "This belongs to somebody else", detail: "The owner in the settings may not see or change it.", action: "settings" },
  owner_required: { title: "Whose threads?", detail: "Give an owner in the settings.", action: "settings" },
  thread_not_found: { title: "This thread is gone", detail: "It was deleted, or it never was." },
  agent_not_found: { title: "No such agent", detail: "The server no longer has the agent that was chosen. Choose another one." },
  agent_not_configured: { title: "The agent is not ready", detail: "Its key or its address is missing on the server." },
  config_invalid: { title: "The server is set up wrongly", detail: "Its log names the key." },
  persistence_not_configured: { title: "This server keeps no threads", detail: "Runs work, but nothing is remembered." },
  storage_unavailable: { title: "The database cannot be reached", detail: "Try again in a moment.", action: "retry" },
  route_not_found: { title: "There is no agent server at this address", detail: "Check the path in the settings.", action: "settings" },
};

export function explain(error: unknown): Problem {
  if (error instanceof Refusal) return explainRefusal(error);
  if (error instanceof TypeError) {
    return { title: "The server cannot be reached", detail: "Is it running, and is this device online?", action: "retry" };
  }
  const detail = error instanceof Error ? error.message : String(error);
  return { title: "Something went wrong", detail, action: "retry" };
}

function explainRefusal({ status, code, message, retryAfterS }: Refusal): Problem {
  const known = words[code];
  if (known) return { ...known, code };
  if (status === 429) {
    const wait = retryAfterS === undefined ? "Wait a little" : `Wait ${retryAfterS} seconds`;
    return { title: "Too many requests", detail: `${message} ${wait}, then try again.`, code, action: "retry" };
  }
  if (status >= 500) return { title: "The run could not start", detail: message, code, action: "retry" };
  return { title: "The server refused", detail: message, code };
}

/** A run that ended with RUN_ERROR. */
export const explainRunError = (message: string, code: string | undefined): Problem => ({
  title: "The answer was interrupted",
  detail: message,
  ...(code === undefined ? {} : { code }),
  action: "retry",
});
