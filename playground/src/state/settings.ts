// What a person chose, kept in this browser.

import { effect, signal, type Signal } from "@preact/signals";

export type Binding = "sse" | "protobuf" | "websocket";
export const bindingNames: Record<Binding, string> = { sse: "SSE", protobuf: "Protobuf", websocket: "WebSocket" };

export type Theme = "system" | "light" | "dark";

declare const IO_BRIDGE_PREFIX: string;

/** PREFIX of wrangler.toml when the page was built. */
export const builtPrefix = IO_BRIDGE_PREFIX;

const stored = <T>(name: string, initial: T): Signal<T> => {
  const key = `io-bridge.${name}`;
  const text = read(key);
  const value = signal<T>(text === undefined ? initial : (JSON.parse(text) as T));
  effect(() => write(key, JSON.stringify(value.value)));
  return value;
};

// A browser may forbid storage: the page works all the same, and forgets.
function read(key: string): string | undefined {
  try {
    return localStorage.getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
}

function write(key: string, text: string): void {
  try {
    localStorage.setItem(key, text);
  } catch {
    // See above.
  }
}

/** `resourceId` of every request; empty: none is sent. */
export const owner = stored("owner", `guest-${crypto.randomUUID().slice(0, 8)}`);
/** Sent as `Authorization: Bearer`; empty: none. */
export const token = stored("token", "");
export const prefix = stored("prefix", builtPrefix);
export const binding = stored<Binding>("binding", "sse");
export const theme = stored<Theme>("theme", "system");
export const agentId = stored("agent", "");
export const disabledTools = stored<string[]>("disabledTools", []);
export const isInspectorWanted = stored("inspector", true);
