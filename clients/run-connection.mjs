// An HttpAgent whose runs survive a broken connection, for agents with `onDisconnect = "continue"`. It needs nothing but
// @ag-ui/client.
//
//   -const agent = new HttpAgent({ url: "https://io-bridge.example.workers.dev/io-bridge/run", threadId: "t1" });
//   +const agent = new RunConnection({ url: "https://io-bridge.example.workers.dev/io-bridge/run", threadId: "t1" });
//
// The client is fed one unbroken, valid stream. When the server had to restart the run, what is open is closed, and the
// run begins anew with the messages it began with.

import { HttpAgent } from "@ag-ui/client";

const TERMINAL = ["RUN_FINISHED", "RUN_ERROR"];

/** Ends of what may be open, innermost first; by the type that opens it and the member that names it. */
const CLOSED_BY = [
  ["TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "messageId"],
  ["REASONING_MESSAGE_START", "REASONING_MESSAGE_END", "messageId"],
  ["REASONING_START", "REASONING_END", "messageId"],
  ["TOOL_CALL_START", "TOOL_CALL_END", "toolCallId"],
  ["STEP_STARTED", "STEP_FINISHED", "stepName"],
];

const encoder = new TextEncoder();

export class RunConnection extends HttpAgent {
  #following;

  /** As HttpAgent's; besides how long it bears silence, how long it waits between attempts, and when it gives up. */
  constructor({ silenceMs = 45_000, retryMs = 500, retryMaxMs = 10_000, giveUpMs = 300_000, onReconnect = () => {}, ...config }) {
    super(config);
    Object.assign(this, { silenceMs, retryMs, retryMaxMs, giveUpMs, onReconnect });
    // HttpAgent's own seam: how the stream is read stays its affair.
    this.fetch = (url, init) => exchange(this, url, init, this.#takeFollowing());
  }

  /** Shows a run that is there already, from its first event: one of a thread's `activeRuns`, after a reload. */
  async follow(runId, parameters = {}, subscriber) {
    this.#following = runId;
    return this.runAgent({ ...parameters, runId }, subscriber);
  }

  /** Stops a run on the server; closing the connection does not. Gives its state. */
  async cancel(runId) {
    const response = await fetch(`${base(this.url)}/runs/${encodeURIComponent(runId)}/cancel`, { method: "POST", headers: this.headers });
    if (!response.ok) throw await refusal(response);
    return response.json();
  }

  #takeFollowing() {
    const following = this.#following;
    this.#following = undefined;
    return following;
  }

  clone() {
    const { silenceMs, retryMs, retryMaxMs, giveUpMs, onReconnect } = this;
    const copy = new RunConnection({ ...this, silenceMs, retryMs, retryMaxMs, giveUpMs, onReconnect });
    return Object.assign(copy, { threadId: this.threadId, messages: structuredClone(this.messages), state: structuredClone(this.state) });
  }
}

const base = (url) => url.replace(/\/run\/?(\?.*)?$/, "");

async function refusal(response) {
  const text = await response.text();
  try {
    return new Error(JSON.parse(text).error);
  } catch {
    return new Error(`the server answered ${response.status}`);
  }
}

/** A run over as many connections as it takes, shown as the one HTTP exchange it stands for. */
async function exchange(agent, url, init, following) {
  const run = new Run(agent, url, init);
  const first = following === undefined ? await fetch(url, init) : await run.request();
  if (!first.ok || !first.headers.get("content-type")?.startsWith("text/event-stream")) return first;
  const frames = run.frames(first);
  const body = new ReadableStream({
    async pull(controller) {
      const { done, value } = await frames.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(`data: ${JSON.stringify(value)}\n\n`));
    },
    cancel: () => void frames.return(),
  });
  return new Response(body, { status: 200, headers: { "content-type": "text/event-stream" } });
}

class Run {
  #agent;
  #init;
  #events;
  #input;
  #seen = 0;
  #generation;
  #address;
  #open = [];
  #isRestarted = false;

  constructor(agent, url, init) {
    this.#agent = agent;
    this.#init = init;
    this.#input = JSON.parse(init.body);
    this.#events = `${base(url)}/runs/${encodeURIComponent(this.#input.runId)}/events`;
  }

  /** Asks for what was not seen yet. */
  request() {
    const query = new URLSearchParams({ after: this.#seen });
    if (this.#generation !== undefined) query.set("generation", this.#generation);
    if (this.#address !== undefined) query.set("address", this.#address);
    const headers = new Headers(this.#init.headers);
    headers.delete("content-type");
    headers.set("accept", "text/event-stream");
    return fetch(`${this.#events}?${query}`, { headers, signal: this.#init.signal });
  }

  /** Every event once, to the end of the run. */
  async *frames(first) {
    let response = first;
    let failures = 0;
    let progressMs = Date.now();
    for (;;) {
      if (response !== undefined) {
        this.#generation = Number(response.headers.get("io-run-generation") ?? 0);
        this.#address ??= response.headers.get("io-run-address") ?? undefined;
        for await (const event of this.#read(response)) {
          failures = 0;
          progressMs = Date.now();
          yield event;
          if (event.type === "RUN_STARTED" && this.#isRestarted) {
            this.#isRestarted = false;
            yield { type: "MESSAGES_SNAPSHOT", messages: this.#input.messages };
          }
          if (TERMINAL.includes(event.type)) return;
        }
      }
      if (Date.now() - progressMs > this.#agent.giveUpMs) throw new Error("the run cannot be reached any more");
      await this.#pause(failures);
      failures += 1;
      response = await this.request().catch((error) => {
        if (this.#init.signal?.aborted) throw error;
      });
      if (response === undefined || response.ok) continue;
      const body = await response.clone().json().catch(() => ({}));
      if (body.code === "generation_changed") {
        yield* this.#restart(body.generation);
      } else if (response.status !== 429 && response.status < 500) {
        throw await refusal(response);
      }
      response = undefined;
    }
  }

  /** The events of one connection, until it ends, breaks, or is silent for too long. */
  async *#read(response) {
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    let text = "";
    try {
      for (;;) {
        const { done, value } = await this.#soon(reader.read());
        if (done) return;
        text += decoder.decode(value, { stream: true });
        for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
          const frame = text.slice(0, end);
          if (!frame.startsWith("data: ")) continue;
          const event = JSON.parse(frame.slice(6));
          this.#seen += 1;
          this.#note(event);
          yield event;
        }
      }
    } catch (error) {
      if (this.#init.signal?.aborted) throw error;
    } finally {
      reader.cancel().catch(() => {});
    }
  }

  #soon(promise) {
    let timer;
    const silence = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error("the connection is silent")), this.#agent.silenceMs);
    });
    return Promise.race([promise, silence]).finally(() => clearTimeout(timer));
  }

  async #pause(failures) {
    const { retryMs, retryMaxMs, onReconnect } = this.#agent;
    onReconnect({ runId: this.#input.runId, attempt: failures + 1 });
    const ms = Math.min(retryMaxMs, retryMs * 2 ** failures) * (0.5 + Math.random() / 2);
    await new Promise((resolve) => setTimeout(resolve, ms));
    this.#init.signal?.throwIfAborted();
  }

  #note(event) {
    for (const [opens, closes, member] of CLOSED_BY) {
      if (event.type === opens) this.#open.push([closes, member, event[member]]);
      if (event.type === closes) this.#open = this.#open.filter(([type, , id]) => type !== closes || id !== event[member]);
    }
  }

  /** The run begins anew: what the client has open is ended, and then the run as it knows it. */
  *#restart(generation) {
    const { threadId, runId } = this.#input;
    for (const [type, member, id] of this.#open.reverse()) yield { type, [member]: id };
    if (this.#seen > 0) yield { type: "RUN_FINISHED", threadId, runId };
    this.#isRestarted = this.#seen > 0;
    this.#open = [];
    this.#seen = 0;
    this.#generation = generation;
  }
}
