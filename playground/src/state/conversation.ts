// One thread in this page: its items, and the runs that add to them.

import { computed, signal, untracked } from "@preact/signals";
import { Refusal, readMessages, readThread } from "../api.ts";
import { explain, type Problem } from "../problems.ts";
import { itemsOf, type Item, type NoticeItem } from "./items.ts";
import { Run } from "./run.ts";

export class Conversation {
  readonly threadId: string;
  readonly items = signal<Item[]>([]);
  readonly runs = signal<Run[]>([]);
  readonly isLoading = signal(false);
  readonly problem = signal<Problem | undefined>(undefined);
  /** Messages of the thread that are not loaded. */
  readonly earlierCount = signal(0);
  readonly run = computed(() => this.runs.value.at(-1));
  readonly isRunning = computed(() => {
    const phase = this.run.value?.phase.value;
    return phase === "connecting" || phase === "streaming" || phase === "reconnecting" || phase === "lost";
  });

  private loadedCount = 0;

  constructor(threadId: string) {
    this.threadId = threadId;
  }

  /** Reads the thread, and takes up a run of it that is under way. */
  async load(agentId: string): Promise<void> {
    this.isLoading.value = true;
    this.problem.value = undefined;
    try {
      const thread = await readThread(this.threadId);
      await this.readNewest();
      const [runId] = thread.activeRuns ?? [];
      if (runId !== undefined) this.begin(runId, agentId).takeUp();
    } catch (error) {
      this.problem.value = explain(error);
    } finally {
      this.isLoading.value = false;
    }
  }

  async loadEarlier(): Promise<void> {
    const page = await readMessages(this.threadId, this.loadedCount);
    this.loadedCount += page.messages.length;
    this.earlierCount.value = page.hasMore ? page.total - this.loadedCount : 0;
    this.items.value = [...itemsOf(page.messages), ...this.items.value];
  }

  send(text: string, agentId: string): void {
    const message = { id: crypto.randomUUID(), role: "user" as const, content: text };
    this.items.value = [...withoutProblems(this.items.value), { kind: "user", id: message.id, text }];
    this.begin(crypto.randomUUID(), agentId).start(message);
  }

  /** Says the last thing once more. */
  retry(agentId: string): void {
    const last = this.items.value.findLast((item) => item.kind === "user");
    if (last?.kind === "user") this.send(last.text, agentId);
  }

  private begin(runId: string, agentId: string): Run {
    const run = new Run(this.items, { runId, threadId: this.threadId, agentId });
    this.runs.value = [...this.runs.value, run];
    run.phase.subscribe(() => void untracked(() => this.conclude(run)));
    return run;
  }

  private async conclude(run: Run): Promise<void> {
    if (!run.isOver) return;
    if (run.isMissed) await this.reread();
    if (run.phase.value === "cancelled") this.notice(run, { tone: "plain", title: "Stopped", detail: "" });
    if (run.problem.value) this.notice(run, { tone: "error", ...run.problem.value });
  }

  private notice(run: Run, notice: Omit<NoticeItem, "kind" | "id">): void {
    this.items.value = [...this.items.value, { kind: "notice", id: run.runId, ...notice }];
  }

  private async reread(): Promise<void> {
    try {
      await this.readNewest();
    } catch (error) {
      // A thread that was never kept has nothing more to show.
      if (!(error instanceof Refusal)) this.problem.value = explain(error);
    }
  }

  private async readNewest(): Promise<void> {
    const page = await readMessages(this.threadId, 0);
    this.loadedCount = page.messages.length;
    this.earlierCount.value = page.hasMore ? page.total - this.loadedCount : 0;
    this.items.value = itemsOf(page.messages);
  }
}

const withoutProblems = (items: Item[]): Item[] => items.filter(({ kind }) => kind !== "notice");
