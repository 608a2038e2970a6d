// What the whole page shares: the server's agents, the threads, the conversation shown.

import { computed, effect, signal, untracked } from "@preact/signals";
import { Refusal, deleteThread, describeService, listAgents, listThreads, renameThread, type Agent, type Service, type Thread } from "../api.ts";
import { explain, type Problem } from "../problems.ts";
import { Conversation } from "./conversation.ts";
import { agentId } from "./settings.ts";

export const agents = signal<Agent[]>([]);
export const service = signal<Service | undefined>(undefined);
export const problem = signal<Problem | undefined>(undefined);
export const isReady = signal(false);

/** The agent chosen; else the first whose runs outlive a reload; else the first. */
export const agent = computed(() => {
  const list = agents.value;
  const chosen = list.find(({ id }) => id === agentId.value);
  return chosen ?? list.find(({ capabilities }) => capabilities.transport?.resumable) ?? list[0];
});

export const threads = signal<Thread[]>([]);
export const search = signal("");
export const threadsProblem = signal<Problem | undefined>(undefined);
const nextCursor = signal<string | undefined>(undefined);
export const hasMoreThreads = computed(() => nextCursor.value !== undefined);

export const conversation = signal(new Conversation(crypto.randomUUID()));
/** Conversations of this visit: a run goes on while another thread is looked at. */
const known = new Map<string, Conversation>();

/** Asks the server who is there; also after the settings have changed. */
export async function connect(): Promise<void> {
  problem.value = undefined;
  try {
    agents.value = await listAgents();
    service.value = await describeService().catch(() => undefined);
  } catch (error) {
    problem.value = explain(error);
  }
  isReady.value = true;
  if (problem.value) return;
  await refreshThreads();
  await openFromAddress();
}

let listing = 0;

export async function refreshThreads(): Promise<void> {
  const turn = ++listing;
  try {
    const page = await listThreads(search.value);
    if (turn !== listing) return;
    threads.value = page.threads;
    nextCursor.value = page.nextCursor;
    threadsProblem.value = undefined;
  } catch (error) {
    if (turn === listing) threadsProblem.value = explain(error);
  }
}

export async function moreThreads(): Promise<void> {
  const page = await listThreads(search.value, nextCursor.value);
  const seen = new Set(threads.value.map(({ id }) => id));
  threads.value = [...threads.value, ...page.threads.filter(({ id }) => !seen.has(id))];
  nextCursor.value = page.nextCursor;
}

export async function rename(thread: Thread, title: string): Promise<void> {
  await renameThread(thread.id, title);
  await refreshThreads();
}

export async function remove(thread: Thread): Promise<void> {
  try {
    await deleteThread(thread.id);
  } catch (error) {
    if (!(error instanceof Refusal && error.status === 404)) throw error;
  }
  known.get(thread.id)?.run.value?.leave();
  known.delete(thread.id);
  if (conversation.value.threadId === thread.id) newChat();
  await refreshThreads();
}

export function newChat(): void {
  conversation.value = new Conversation(crypto.randomUUID());
  history.pushState(null, "", location.pathname);
}

export async function openThread(threadId: string): Promise<void> {
  if (addressedThread() !== threadId) history.pushState(null, "", `#${encodeURIComponent(threadId)}`);
  const old = known.get(threadId);
  if (old) {
    conversation.value = old;
    return;
  }
  const opened = remember(new Conversation(threadId));
  conversation.value = opened;
  await opened.load(agent.value?.id ?? "");
}

export function send(text: string): void {
  const current = remember(conversation.value);
  if (addressedThread() !== current.threadId) {
    history.replaceState(null, "", `#${encodeURIComponent(current.threadId)}`);
  }
  current.send(text, agent.value?.id ?? "");
}

const addressedThread = (): string => decodeURIComponent(location.hash.slice(1));

/** Follows the address bar: a reload and the back button show the thread that was shown. */
export async function openFromAddress(): Promise<void> {
  const threadId = addressedThread();
  if (threadId === conversation.value.threadId) return;
  if (threadId === "") conversation.value = new Conversation(crypto.randomUUID());
  else await openThread(threadId);
}

function remember(opened: Conversation): Conversation {
  if (!known.has(opened.threadId)) {
    known.set(opened.threadId, opened);
    // The thread is there from the first event on, and its title may change until the last.
    effect(() => {
      const phase = opened.run.value?.phase.value;
      if (phase === "streaming" || phase === "finished") untracked(() => void refreshThreads());
    });
  }
  return opened;
}
