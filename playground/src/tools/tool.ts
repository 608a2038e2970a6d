// A front-end tool: declared to the agent, executed by this page.

import type { ComponentType } from "preact";
import type { CallItem } from "../state/items.ts";

export type Arguments = Record<string, unknown>;

export interface PageTool {
  name: string;
  /** A few words for people. */
  label: string;
  description: string;
  /** JSON Schema. */
  parameters: object;
  /** Whether it asks the person and so takes as long as they like. */
  isAsking?: boolean;
  /** A thrown error becomes the call's result, as a failure the model can mend. */
  execute(args: Arguments, signal: AbortSignal): unknown;
  /** What the call did, drawn; gets all calls of the conversation, for tools that build on each other. */
  Picture?: ComponentType<{ call: CallItem; calls: CallItem[] }>;
}

/** The arguments of a call that may still be coming in. */
export function argumentsOf(call: CallItem): Arguments {
  try {
    return JSON.parse(call.arguments) as Arguments;
  } catch {
    return {};
  }
}
