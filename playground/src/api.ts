// The JSON routes of the contract, as far as this page needs them.

import type { Message } from "@ag-ui/core";
import { owner, prefix, token } from "./state/settings.ts";

export interface Agent {
  id: string;
  name: string;
  description?: string;
  provider: string;
  modelId: string;
  capabilities: { transport?: { resumable?: boolean }; tools?: { items?: { name: string }[] } };
}

export interface Thread {
  id: string;
  title?: string;
  resourceId: string;
  createdAt: string;
  updatedAt: string;
  /** The words around what a search found. */
  snippet?: string;
  activeRuns?: string[];
}

export interface ThreadPage {
  threads: Thread[];
  total: number;
  nextCursor?: string;
}

export interface MessagePage {
  messages: Message[];
  total: number;
  hasMore: boolean;
}

export interface RunDescription {
  runId: string;
  agentId: string;
  status: "running" | "waiting" | "finished" | "failed" | "cancelled";
  /** How often it was restarted: each time its events begin anew. Absent, as `eventCount`, once they are gone. */
  generation?: number;
  eventCount?: number;
  pendingToolCalls: { toolCallId: string; toolName: string }[];
}

export interface Service {
  name: string;
  version: string;
  conformanceLevel: number;
}

/** An answer of the server that is not the one asked for. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  readonly retryAfterS: number | undefined;

  constructor(status: number, body: { error?: string; code?: string }, retryAfterS?: number) {
    super(body.error ?? `The server answered with status ${status}.`);
    this.status = status;
    this.code = body.code ?? "";
    this.retryAfterS = retryAfterS;
  }

  static async of(response: Response): Promise<Refusal> {
    const body = (await response.json().catch(() => ({}))) as { error?: string; code?: string };
    const retryAfter = Number(response.headers.get("retry-after") ?? NaN);
    return new Refusal(response.status, body, Number.isFinite(retryAfter) ? retryAfter : undefined);
  }
}

/** The whole address of a path below the prefix. */
export const address = (path: string): string => new URL(prefix.value + path, location.origin).href;

export const credentials = (): Record<string, string> =>
  token.value === "" ? {} : { authorization: `Bearer ${token.value}` };

interface Options {
  method?: string;
  query?: Record<string, string | number | undefined>;
  json?: unknown;
}

async function ask<T>(path: string, { method = "GET", query = {}, json }: Options = {}): Promise<T> {
  const url = new URL(address(path));
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") url.searchParams.set(name, String(value));
  }
  const response = await fetch(url, {
    method,
    headers: { ...credentials(), ...(json === undefined ? {} : { "content-type": "application/json" }) },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  });
  if (!response.ok) throw await Refusal.of(response);
  return (await response.json()) as T;
}

const id = encodeURIComponent;
const owned = () => ({ resourceId: owner.value });

export const describeService = () => ask<Service>("");

/** The list, whatever LIST_SHAPE the server has. */
export async function listAgents(): Promise<Agent[]> {
  const list = await ask<Agent[] | { agents: Agent[] }>("/agents");
  return Array.isArray(list) ? list : list.agents;
}

export async function listThreads(search: string, cursor?: string): Promise<ThreadPage> {
  const query = { ...owned(), q: search, cursor, limit: 30 };
  const list = await ask<Thread[] | ThreadPage>("/threads", { query });
  return Array.isArray(list) ? { threads: list, total: list.length } : list;
}

export const readThread = (threadId: string) => ask<Thread>(`/threads/${id(threadId)}`, { query: owned() });

export const readMessages = (threadId: string, offset: number) =>
  ask<MessagePage>(`/threads/${id(threadId)}/messages`, { query: { ...owned(), format: "ag-ui", limit: 100, offset } });

export const renameThread = (threadId: string, title: string) =>
  ask<Thread>(`/threads/${id(threadId)}`, { method: "PATCH", query: owned(), json: { title } });

export const deleteThread = (threadId: string) =>
  ask(`/threads/${id(threadId)}`, { method: "DELETE", query: owned() });

export const describeRun = (runId: string, runAddress?: string) =>
  ask<RunDescription>(`/runs/${id(runId)}`, { query: { ...owned(), address: runAddress } });

export const cancelRun = (runId: string, runAddress?: string) =>
  ask(`/runs/${id(runId)}/cancel`, { method: "POST", query: { ...owned(), address: runAddress } });

export const postResult = (runId: string, toolCallId: string, result: unknown) =>
  ask(`/runs/${id(runId)}/tool-calls/${id(toolCallId)}/result`, { method: "POST", query: owned(), json: result });
