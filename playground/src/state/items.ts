// What a conversation shows, as a pure function of stored messages and of events.

import { EventType, type BaseEvent, type Message } from "@ag-ui/core";

export type CallStatus =
  /** Its arguments come in. */
  | "opening"
  /** Its result is awaited: from the server, or from a tool of this page. */
  | "running"
  /** A person is asked. */
  | "waiting"
  | "done"
  | "failed";

export interface UserItem {
  kind: "user";
  id: string;
  text: string;
}

/** What the agent says, or thinks before it says it. */
export interface TextItem {
  kind: "text" | "thought";
  id: string;
  text: string;
  isOpen: boolean;
}

export interface CallItem {
  kind: "call";
  id: string;
  name: string;
  /** JSON text. */
  arguments: string;
  result?: string;
  status: CallStatus;
}

/** What became of a run that did not simply finish. */
export interface NoticeItem {
  kind: "notice";
  id: string;
  tone: "plain" | "error";
  title: string;
  detail: string;
  code?: string;
  action?: "retry" | "settings" | "reconnect";
}

export type Item = UserItem | TextItem | CallItem | NoticeItem;

export const textOf = (content: unknown): string => {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((part: { type: string; text?: string }) => (part.type === "text" ? part.text : `[${part.type}]`))
    .join("\n\n");
};

/** A value that says of itself that it is a failure. */
export function isFailure(result: string): boolean {
  try {
    const value: unknown = JSON.parse(result);
    if (typeof value !== "object" || value === null) return false;
    return ("error" in value && value.error != null) || ("isError" in value && value.isError === true);
  } catch {
    return false;
  }
}

/** A thread's messages (`format=ag-ui`) as items. */
export function itemsOf(messages: Message[]): Item[] {
  const items: Item[] = [];
  for (const message of messages) {
    if (message.role === "user") {
      items.push({ kind: "user", id: message.id, text: textOf(message.content) });
    } else if (message.role === "assistant") {
      const text = textOf(message.content);
      if (text !== "") items.push({ kind: "text", id: message.id, text, isOpen: false });
      for (const call of message.toolCalls ?? []) {
        const { name, arguments: args } = call.function;
        items.push({ kind: "call", id: call.id, name, arguments: args, status: "running" });
      }
    } else if (message.role === "reasoning") {
      items.push({ kind: "thought", id: message.id, text: textOf(message.content), isOpen: false });
    } else if (message.role === "tool") {
      const { toolCallId, content } = message;
      const at = items.findIndex((item) => item.kind === "call" && item.id === toolCallId);
      if (at >= 0) items[at] = withResult(items[at] as CallItem, textOf(content));
    }
  }
  return items;
}

const withResult = (call: CallItem, result: string): CallItem => ({
  ...call,
  result,
  status: isFailure(result) ? "failed" : "done",
});

/** Changes one item; the others stay the objects they were. */
export function change<I extends Item>(items: Item[], id: string, kind: I["kind"], how: (item: I) => I): Item[] {
  const at = items.findLastIndex((item) => item.kind === kind && item.id === id);
  return at < 0 ? items : items.with(at, how(items[at] as I));
}

/** Puts an item at the end, or anew where one of its id stands: a run that is read again shows once. */
function open(items: Item[], item: Item): Item[] {
  const at = items.findIndex(({ kind, id }) => kind === item.kind && id === item.id);
  return at < 0 ? [...items, item] : items.with(at, item);
}

/** The items after an event. */
export function after(items: Item[], event: BaseEvent): Item[] {
  const { messageId = "", toolCallId = "", delta = "", toolCallName = "", content = "" } = event as unknown as Record<
    string,
    string | undefined
  >;
  switch (event.type) {
    case EventType.TEXT_MESSAGE_START:
      return open(items, { kind: "text", id: messageId, text: "", isOpen: true });
    case EventType.TEXT_MESSAGE_CONTENT:
      return change<TextItem>(items, messageId, "text", (item) => ({ ...item, text: item.text + delta }));
    case EventType.TEXT_MESSAGE_END:
      return change<TextItem>(items, messageId, "text", (item) => ({ ...item, isOpen: false }));
    case EventType.REASONING_MESSAGE_START:
      return open(items, { kind: "thought", id: messageId, text: "", isOpen: true });
    case EventType.REASONING_MESSAGE_CONTENT:
      return change<TextItem>(items, messageId, "thought", (item) => ({ ...item, text: item.text + delta }));
    case EventType.REASONING_MESSAGE_END:
      return change<TextItem>(items, messageId, "thought", (item) => ({ ...item, isOpen: false }));
    case EventType.TOOL_CALL_START:
      return open(items, { kind: "call", id: toolCallId, name: toolCallName, arguments: "", status: "opening" });
    case EventType.TOOL_CALL_ARGS:
      return change<CallItem>(items, toolCallId, "call", (item) => ({ ...item, arguments: item.arguments + delta }));
    case EventType.TOOL_CALL_END:
      return change<CallItem>(items, toolCallId, "call", (item) => ({ ...item, status: "running" }));
    case EventType.TOOL_CALL_RESULT:
      return change<CallItem>(items, toolCallId, "call", (item) => withResult(item, content));
    default:
      return items;
  }
}

/** The items of a run that is over: nothing is open any more. */
export const settled = (items: Item[]): Item[] =>
  items.map((item) => {
    if ("isOpen" in item && item.isOpen) return { ...item, isOpen: false };
    if (item.kind === "call" && item.result === undefined) return { ...item, status: "failed" as const };
    return item;
  });
