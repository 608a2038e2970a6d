// What a person chose, kept in this browser.

import { effect, signal, type Signal } from "@preact/signals";

export type Binding = "sse" | "protobuf" | "websocket";
export const bindingNames: Record<Binding, string> = { sse: "SSE", protobuf: "Protobuf", websocket: "WebSocket" };

export type Theme = "system" | "light" | "dark";

declare const IO_BRIDGE_PREFIX: string;

/** PREFIX of wrangler.toml when the page was built. */
export const builtPrefix = IO_BRIDGE_PREFIX;

/** A default is not kept, unless it was drawn by lot: a page built anew may bring another one. */
function stored<T>(name: string, initial: T, isDrawn = false): Signal<T> {
  const value = signal(read(name, initial));
  effect(() => write(name, value.value === initial && !isDrawn ? undefined : JSON.stringify(value.value)));
  return value;
}

const key = (name: string): string => `io-bridge.${name}`;

// A browser may forbid storage, and somebody may have put nonsense there: the page works all the same, and forgets.
function read<T>(name: string, initial: T): T {
  try {
    const text = localStorage.getItem(key(name));
    return text === null ? initial : (JSON.parse(text) as T);
  } catch {
    return initial;
  }
}

function write(name: string, text: string | undefined): void {
  try {
    if (text === undefined) localStorage.removeItem(key(name));
    else localStorage.setItem(key(name), text);
  } catch {
    // See above.
  }
}

/** `resourceId` of every request; empty: none is sent. */
export const owner = stored("owner", `guest-${crypto.randomUUID().slice(0, 8)}`, true);
/** Sent as `Authorization: Bearer`; empty: none. */
export const token = stored("token", "");
export const prefix = stored("prefix", builtPrefix);
export const binding = stored<Binding>("binding", "sse");
export const theme = stored<Theme>("theme", "system");
export const agentId = stored("agent", "");
export const disabledTools = stored<string[]>("disabledTools", []);
export const isInspectorWanted = stored("inspector", true);
