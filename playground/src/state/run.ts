// One run as this page sees it: its stream, its frames, the tools it calls here, its end.

import { EventType, type BaseEvent, type RunAgentInput, type Tool, type UserMessage } from "@ag-ui/core";
import { signal, type Signal } from "@preact/signals";
import { Refusal, cancelRun, describeRun, type RunDescription } from "../api.ts";
import { connect, type Connection, type Hearer } from "../connection.ts";
import type { Frame } from "../frames.ts";
import { explain, explainRunError, type Problem } from "../problems.ts";
import { offeredTools, pageTool } from "../tools/index.ts";
import { after, change, settled, type CallItem, type CallStatus, type Item } from "./items.ts";
import { binding, type Binding } from "./settings.ts";

export type Phase = "connecting" | "streaming" | "reconnecting" | "lost" | "finished" | "failed" | "cancelled";

export interface Usage {
  inputTokens: number;
  outputTokens: number;
}

export interface Timing {
  firstFrameMs?: number;
  firstTextMs?: number;
  durationMs?: number;
}

/** Pauses between attempts to send a result; the last one for good. */
const RETRY_DELAYS_MS = [300, 1500, 4000];

/** Each model a run used has an entry of its own. */
const sum = (usage: Partial<Usage>[]): Usage => ({
  inputTokens: usage.reduce((total, { inputTokens = 0 }) => total + inputTokens, 0),
  outputTokens: usage.reduce((total, { outputTokens = 0 }) => total + outputTokens, 0),
});

const isOver = (phase: Phase): boolean => phase === "finished" || phase === "failed" || phase === "cancelled";

export class Run {
  readonly runId: string;
  readonly agentId: string;
  readonly threadId: string;
  readonly binding: Binding;
  readonly phase = signal<Phase>("connecting");
  readonly problem = signal<Problem | undefined>(undefined);
  readonly usage = signal<Usage | undefined>(undefined);
  readonly timing = signal<Timing>({});
  /** Grows with `frames`, which is one array: a copy per frame would be slow. */
  readonly frameCount = signal(0);
  readonly frames: Frame[] = [];
  /** What was sent; absent when the run was found, not started. */
  readonly input = signal<RunAgentInput | undefined>(undefined);
  /** It ended unseen: what it said is in its thread only. */
  isMissed = false;
  /** Settles when nothing more will come by itself. */
  ended: Promise<void> = Promise.resolve();

  private readonly items: Signal<Item[]>;
  private readonly startedMs = performance.now();
  private readonly tools = new AbortController();
  /** Calls this page has taken up. */
  private readonly taken = new Set<string>();
  /** Messages and calls it brought. */
  private readonly brought = new Set<string>();
  private generation = 0;
  private connection: Connection | undefined;
  private address: string | undefined;
  private isCancelled = false;
  /** What comes before the next RUN_STARTED ends what the restarted run had said. */
  private isRestarting = false;
  /** Of a stream that is read again: how many events are old, and the calls among them that still wait. */
  private replay = { left: 0, pending: new Set<string>() };

  constructor(items: Signal<Item[]>, ids: { runId: string; threadId: string; agentId: string }) {
    this.items = items;
    this.runId = ids.runId;
    this.threadId = ids.threadId;
    this.agentId = ids.agentId;
    this.binding = binding.value;
  }

  get isOver(): boolean {
    return isOver(this.phase.value);
  }

  /** Starts it. */
  start(message: UserMessage): void {
    this.ended = this.listen({ message, tools: offeredTools() });
  }

  /** Takes up a run that is under way: this page was reloaded, or has lost it. */
  takeUp(): void {
    this.ended = this.follow();
  }

  /** Goes on over a new connection. */
  reconnect(): void {
    if (this.phase.value === "lost") this.takeUp();
    else void this.connection?.reconnect();
  }

  async cancel(): Promise<void> {
    this.isCancelled = true;
    this.tools.abort();
    try {
      await cancelRun(this.runId, this.address);
    } catch (error) {
      // Nothing to cancel yet, or no longer: then it is enough to hang up.
      if (!(error instanceof Refusal)) throw error;
      this.connection?.close();
      this.end("cancelled");
    }
  }

  /** Lets go of it without a word to the server. */
  leave(): void {
    const { connection } = this;
    this.connection = undefined;
    this.tools.abort();
    connection?.close();
  }

  private async listen(how: { message?: UserMessage; tools?: Tool[] }): Promise<void> {
    const { runId, threadId, agentId, address: runAddress } = this;
    const connection = connect({ runId, threadId, agentId, runAddress, ...how }, this.binding, this.hearer());
    this.connection = connection;
    const failure = await connection.done.then(
      () => undefined,
      (error: unknown) => error,
    );
    if (this.connection !== connection || this.isOver) return;
    if (this.isCancelled) return this.end("cancelled");
    if (failure !== undefined) return this.fail(explain(failure));
    await this.follow();
  }

  /** Reads it from its first event on, unless it is over. */
  private async follow(): Promise<void> {
    this.phase.value = "reconnecting";
    try {
      const description = await describeRun(this.runId, this.address);
      if (description.status !== "running" && description.status !== "waiting") return this.missed(description);
      this.beginReplay(description);
    } catch (error) {
      if (error instanceof Refusal && error.status < 500) return this.fail({ ...explain(error), title: "The run was lost" });
      this.phase.value = "lost";
      return;
    }
    await this.listen({});
  }

  /** It ended while nobody here listened. */
  private missed({ status }: RunDescription): void {
    this.isMissed = true;
    if (status === "failed") this.fail(explainRunError("It failed while this page was not connected.", undefined));
    else this.end(status === "cancelled" ? "cancelled" : "finished");
  }

  private beginReplay({ eventCount = 0, generation = 0, pendingToolCalls }: RunDescription): void {
    if (generation !== this.generation) this.forget(generation);
    this.frames.length = 0;
    this.frameCount.value = 0;
    this.replay = { left: eventCount, pending: new Set(pendingToolCalls.map(({ toolCallId }) => toolCallId)) };
  }

  /** A run that was restarted may say other things, under other ids: what it had said before does not count. */
  private forget(generation: number): void {
    this.generation = generation;
    for (const item of this.items.value) if (item.kind === "call" && item.result !== undefined) this.taken.add(item.id);
    this.items.value = this.items.value.filter(({ id }) => !this.brought.has(id));
  }

  private hearer(): Hearer {
    return {
      onRequest: (input) => void (this.input.value ??= input),
      onOpen: (address) => {
        this.address = address ?? this.address;
        this.phase.value = "streaming";
      },
      onFrame: (frame) => {
        this.note({ firstFrameMs: this.elapsedMs() });
        this.frames.push({ ...frame, atMs: this.elapsedMs() });
        this.frameCount.value = this.frames.length;
      },
      onEvent: (event) => {
        this.isRestarting &&= event.type !== EventType.RUN_STARTED;
        if (!this.isRestarting) this.hear(event);
      },
      onReconnect: () => (this.phase.value = "reconnecting"),
      onRestart: (generation) => {
        this.forget(generation);
        this.replay.left = 0;
        this.isRestarting = this.frames.length > 0;
      },
      onRejected: (toolCallId, refusal) => this.rejected(toolCallId, refusal),
    };
  }

  private hear(event: BaseEvent): void {
    const { toolCallId, messageId, message, code, outcome, usage } = event as BaseEvent & {
      toolCallId?: string;
      messageId?: string;
      message?: string;
      code?: string;
      outcome?: { type: string };
      usage?: Partial<Usage>[];
    };
    for (const id of [toolCallId, messageId]) if (id && event.type.endsWith("_START")) this.brought.add(id);
    this.items.value = after(this.items.value, event);
    if (event.type === EventType.TEXT_MESSAGE_CONTENT) this.note({ firstTextMs: this.elapsedMs() });
    if (event.type === EventType.TOOL_CALL_END && toolCallId && this.isWaiting(toolCallId)) void this.execute(toolCallId);
    if (event.type === EventType.RUN_FINISHED) {
      this.usage.value = usage && sum(usage);
      this.end(outcome?.type === "cancelled" ? "cancelled" : "finished");
    }
    // A connection that is given up is not the run's end: it is looked for once more.
    if (event.type === EventType.RUN_ERROR && code !== "connection_lost") this.fail(explainRunError(message ?? "", code));
    if (this.replay.left > 0) this.replay.left -= 1;
  }

  /** Whether a call that has just been read is still to be answered. */
  private isWaiting(toolCallId: string): boolean {
    return this.replay.left === 0 || this.replay.pending.has(toolCallId);
  }

  private async execute(toolCallId: string): Promise<void> {
    const call = this.items.value.find((item): item is CallItem => item.kind === "call" && item.id === toolCallId);
    const tool = call && pageTool(call.name);
    if (!tool || this.taken.has(toolCallId)) return;
    this.taken.add(toolCallId);
    this.mark(toolCallId, tool.isAsking ? "waiting" : "running");
    const { signal } = this.tools;
    const result = await Promise.resolve()
      .then(() => tool.execute(JSON.parse(call.arguments) as Record<string, unknown>, signal))
      .catch((error: unknown) => ({ error: error instanceof Error ? error.message : String(error) }));
    if (signal.aborted) return;
    this.mark(toolCallId, "running");
    await this.send(toolCallId, result);
  }

  /** A person's answer must not be lost with a line that is down for a moment. */
  private async send(toolCallId: string, result: unknown): Promise<void> {
    for (let failures = 0; !this.isOver; failures += 1) {
      try {
        await this.connection?.sendResult(toolCallId, result);
        return;
      } catch (error) {
        if (error instanceof Refusal) return this.rejected(toolCallId, error);
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_DELAYS_MS[failures] ?? RETRY_DELAYS_MS.at(-1)));
    }
  }

  /** A result came too late, or second: what the run says counts, so this is only shown. */
  private rejected(toolCallId: string | undefined, error: unknown): void {
    if (toolCallId && !this.isOver) this.mark(toolCallId, "failed");
    console.warn("a result was not taken:", error);
  }

  private mark(toolCallId: string, status: CallStatus): void {
    this.items.value = change<CallItem>(this.items.value, toolCallId, "call", (call) =>
      call.result === undefined ? { ...call, status } : call,
    );
  }

  private fail(problem: Problem): void {
    this.problem.value = problem;
    this.end("failed");
  }

  private end(phase: Phase): void {
    if (this.isOver) return;
    this.tools.abort();
    this.note({ durationMs: this.elapsedMs() });
    this.items.value = settled(this.items.value);
    this.phase.value = phase;
  }

  private elapsedMs(): number {
    return performance.now() - this.startedMs;
  }

  /** Keeps the first value of each. */
  private note(timing: Timing): void {
    const [name] = Object.keys(timing) as (keyof Timing)[];
    if (name && this.timing.value[name] === undefined) this.timing.value = { ...this.timing.value, ...timing };
  }
}
