// An HttpAgent whose runs survive a broken connection, for agents with `onDisconnect = "continue"`. It needs nothing but
// @ag-ui/client.
//
//   -const agent = new HttpAgent({ url: "https://io-bridge.example.workers.dev/io-bridge/run", threadId: "t1" });
//   +const agent = new RunConnection({ url: "https://io-bridge.example.workers.dev/io-bridge/run", threadId: "t1" });
//
// The client is fed one unbroken, valid stream. When the server had to restart the run, what is open is closed, and the
// run begins anew with the messages it began with. When the run cannot be followed any more, what is open is closed, and
// a RUN_ERROR of code `connection_lost` says so.

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

/** How often a run with an owner is asked for once more when its answer was lost: the server takes such an id once. */
const START_RETRIES = 5;

const SSE = "text/event-stream";
const PROTOBUF = "application/vnd.ag-ui.event+proto";
const LENGTH_BYTES = 4;

const encoder = new TextEncoder();

export class RunConnection extends HttpAgent {
  #following;
  /** The run under way. */
  #run;

  /** As HttpAgent's: `fetch` makes every request. The others are told in run-connection.d.mts. */
  constructor({ decode, silenceMs = 45_000, retryMs = 500, retryMaxMs = 10_000, giveUpMs = 300_000, onReconnect = () => {}, onRestart = () => {}, ...config }) {
    super(config);
    this.send = config.fetch ?? ((url, init) => fetch(url, init));
    Object.assign(this, { decode, silenceMs, retryMs, retryMaxMs, giveUpMs, onReconnect, onRestart });
    // HttpAgent's own seam: how the stream is read stays its affair.
    this.fetch = (url, init) => this.#exchange(url, init);
  }

  /**
   * Shows a run that is there already, from its first event: one of a thread's `activeRuns`, after a reload. One that is
   * not kept needs its `address`, as the header `io-run-address` gave it.
   */
  async follow(runId, { address, ...parameters } = {}, subscriber) {
    this.#following = { address };
    return this.runAgent({ ...parameters, runId }, subscriber);
  }

  /** Goes on over a new connection, before the old one shows that it is dead: the network has changed, the page is back. */
  async reconnect() {
    await this.#run?.reconnect();
  }

  /** Stops a run on the server; closing the connection does not. Gives its state. */
  async cancel(runId) {
    const whereabouts = this.#run?.runId === runId ? this.#run.whereabouts : {};
    const url = `${base(this.url)}/runs/${encodeURIComponent(runId)}/cancel?${new URLSearchParams(whereabouts)}`;
    const response = await this.send(url, { method: "POST", headers: this.headers });
    if (!response.ok) throw await refusal(response);
    return response.json();
  }

  clone() {
    const { send, decode, silenceMs, retryMs, retryMaxMs, giveUpMs, onReconnect, onRestart } = this;
    const copy = new RunConnection({ ...this, fetch: send, decode, silenceMs, retryMs, retryMaxMs, giveUpMs, onReconnect, onRestart });
    return Object.assign(copy, { threadId: this.threadId, messages: structuredClone(this.messages), state: structuredClone(this.state) });
  }

  /** A run over as many connections as it takes, shown as the one HTTP exchange it stands for. */
  async #exchange(url, init) {
    const following = this.#following;
    this.#following = undefined;
    const run = new Run(this, url, init, following?.address);
    this.#run = run;
    const first = await (following === undefined ? run.start(url) : run.attach());
    if (first !== undefined && !isStream(first)) return first;
    const events = run.events(first);
    const body = new ReadableStream({
      async pull(controller) {
        const { done, value } = await events.next();
        if (done) controller.close();
        else controller.enqueue(encoder.encode(`data: ${JSON.stringify(value)}\n\n`));
      },
      cancel: () => void events.return(),
    });
    return new Response(body, { status: 200, headers: { "content-type": SSE } });
  }
}

const base = (url) => url.replace(/\/run\/?(\?.*)?$/, "");

const bodyOf = (response) => response.clone().json().catch(() => ({}));

const isProtobuf = (response) => response.headers.get("content-type") === PROTOBUF;
const isStream = (response) => response.ok && (isProtobuf(response) || response.headers.get("content-type")?.startsWith(SSE));

/** As HttpAgent's errors: with `status`, and the body as `payload`. */
async function refusal(response) {
  const payload = await bodyOf(response);
  return Object.assign(new Error(payload.error ?? `the server answered ${response.status}`), { status: response.status, payload });
}

class Run {
  #agent;
  #init;
  #url;
  #input;
  #seen = 0;
  #generation;
  #address;
  #open = [];
  /** Events of a call that is not complete. */
  #held = [];
  #isRestarted = false;
  /** Of the connection that is read. */
  #reader;
  /** A connection to be read in its place, and how many events were seen when it was asked for. */
  #next;
  /** Ends a pause. */
  #wake = () => {};
  /** When the server was last heard. */
  #heardMs = Date.now();

  constructor(agent, url, init, address) {
    this.#agent = agent;
    this.#address = address;
    const headers = new Headers(init.headers);
    headers.set("accept", agent.decode ? PROTOBUF : SSE);
    this.#init = { ...init, headers: Object.fromEntries(headers) };
    this.#input = JSON.parse(init.body);
    this.#url = `${base(url)}/runs/${encodeURIComponent(this.runId)}/events`;
  }

  get runId() {
    return this.#input.runId;
  }

  /** What leads to it, as members of a query. */
  get whereabouts() {
    const known = { address: this.#address, resourceId: this.#input.forwardedProps?.resourceId };
    return Object.fromEntries(Object.entries(known).filter(([, value]) => value));
  }

  /** The answer to its POST; none when an earlier one was lost and the run is there. */
  async start(url) {
    const retries = this.whereabouts.resourceId === undefined ? 0 : START_RETRIES;
    for (let failures = 0; ; failures += 1) {
      const isLast = failures === retries;
      const response = await this.#agent.send(url, this.#init).catch((error) => {
        // What fetch throws when there is no answer.
        if (isLast || this.#isAborted || !(error instanceof TypeError)) throw error;
      });
      const { code, threadId } = response === undefined || response.ok ? {} : await bodyOf(response);
      if (failures > 0 && code === "run_conflict" && threadId === this.#input.threadId) return undefined;
      // A failure without a code is not this server's own word.
      const isLost = response === undefined || code === "storage_unavailable" || (response.status >= 500 && code === undefined);
      if (isLast || !isLost) return response;
      await this.#pause(failures);
    }
  }

  /** The first answer of a run that is there; none when the server is away. */
  async attach() {
    const response = await this.request().catch(() => undefined);
    return response?.status >= 500 ? undefined : response;
  }

  /** Asks for what was not seen yet. */
  request() {
    const query = new URLSearchParams({ after: this.#seen, ...this.whereabouts });
    if (this.#generation !== undefined) query.set("generation", this.#generation);
    const { "content-type": _, ...headers } = this.#init.headers;
    return this.#agent.send(`${this.#url}?${query}`, { headers, signal: this.#init.signal });
  }

  /** The old connection is left last: a run without a viewer may stop. */
  async reconnect() {
    if (this.#reader === undefined) return;
    const seen = this.#seen;
    this.#tell(1);
    const response = await this.request().catch(() => undefined);
    if (response === undefined || response.status >= 500) return;
    if (isStream(response)) this.#next = { response, seen };
    this.#reader.cancel().catch(() => {});
    this.#wake();
  }

  /** Every event once, to the end of the run. */
  async *events(first) {
    let [response, skip] = [first, 0];
    let failures = 0;
    for (;;) {
      if (response !== undefined) {
        this.#generation = generationOf(response);
        this.#address ??= response.headers.get("io-run-address") ?? undefined;
        for await (const event of this.#read(response, skip)) {
          failures = 0;
          yield* this.#shown(event);
          if (event.type === "RUN_STARTED" && this.#isRestarted) {
            this.#isRestarted = false;
            yield { type: "MESSAGES_SNAPSHOT", messages: this.#input.messages };
          }
          if (TERMINAL.includes(event.type)) return;
        }
      }
      if (this.#next === undefined) {
        if (Date.now() - this.#heardMs > this.#agent.giveUpMs) return yield* this.#lost();
        await this.#pause(failures);
        failures += 1;
      }
      [response, skip] = this.#takeNext() ?? [await this.#again(), 0];
      if (response === undefined || isStream(response)) continue;
      const { code, generation, error } = await bodyOf(response);
      if (code === "generation_changed") {
        yield* this.#restart(generation);
      } else if (response.status !== 429 && response.status < 500) {
        return yield* this.#lost(error);
      }
      response = undefined;
    }
  }

  #takeNext() {
    const next = this.#next;
    this.#next = undefined;
    return next && [next.response, this.#seen - next.seen];
  }

  #again() {
    return this.request().catch((error) => {
      if (this.#isAborted) throw error;
    });
  }

  /** The events of one connection behind the first `skip`, until it ends, breaks, or is silent for too long. */
  async *#read(response, skip) {
    const reader = response.body.getReader();
    this.#reader = reader;
    const decode = isProtobuf(response) ? protobufReader(this.#agent.decode) : sseReader();
    try {
      for (;;) {
        // Protobuf has no keep-alives: its silence says nothing.
        const reading = reader.read();
        const { done, value } = await (isProtobuf(response) ? reading : this.#soon(reading));
        if (done) return;
        this.#heardMs = Date.now();
        for (const event of decode(value)) {
          skip -= 1;
          if (skip >= 0) continue;
          this.#seen += 1;
          yield event;
        }
      }
    } catch (error) {
      if (this.#isAborted) throw error;
    } finally {
      reader.cancel().catch(() => {});
    }
  }

  get #isAborted() {
    return this.#init.signal?.aborted ?? false;
  }

  #soon(promise) {
    let timer;
    const silence = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error("the connection is silent")), this.#agent.silenceMs);
    });
    return Promise.race([promise, silence]).finally(() => clearTimeout(timer));
  }

  async #pause(failures) {
    const { retryMs, retryMaxMs } = this.#agent;
    this.#tell(failures + 1);
    const ms = Math.min(retryMaxMs, retryMs * 2 ** failures) * (0.5 + Math.random() / 2);
    await new Promise((resolve) => {
      this.#wake = resolve;
      setTimeout(resolve, ms);
    });
    this.#init.signal?.throwIfAborted();
  }

  #tell(attempt) {
    this.#agent.onReconnect({ runId: this.runId, attempt });
  }

  /**
   * A front end acts on the end of a call, and a restart must not end one that is half there: of a call that may be the
   * front end's nothing is shown before all of it is.
   */
  #shown(event) {
    const isOfCall = event.type === "TOOL_CALL_START" || event.type === "TOOL_CALL_ARGS";
    const { tools = [] } = this.#input;
    const mayBeOurs = tools.length === 0 || tools.some(({ name }) => name === event.toolCallName);
    if (isOfCall && (this.#held.length > 0 || (event.type === "TOOL_CALL_START" && mayBeOurs))) {
      this.#held.push(event);
      return [];
    }
    const shown = [...this.#held.splice(0), event];
    for (const each of shown) this.#note(each);
    return shown;
  }

  #note(event) {
    for (const [opens, closes, member] of CLOSED_BY) {
      if (event.type === opens) this.#open.push([closes, member, event[member]]);
      if (event.type === closes) this.#open = this.#open.filter(([type, , id]) => type !== closes || id !== event[member]);
    }
  }

  *#close() {
    this.#held = [];
    for (const [type, member, id] of this.#open.reverse()) yield { type, [member]: id };
    this.#open = [];
  }

  /** The run begins anew: what the client has open is ended, and then the run as it knows it. */
  *#restart(generation) {
    const { threadId, runId } = this.#input;
    this.#agent.onRestart({ runId, generation });
    yield* this.#close();
    if (this.#seen > 0) yield { type: "RUN_FINISHED", threadId, runId };
    // It may begin anew once more before anything was heard.
    this.#isRestarted ||= this.#seen > 0;
    this.#seen = 0;
    this.#generation = generation;
  }

  /** The run cannot be followed any more; `message` is what the server says of that. */
  *#lost(message = "The run cannot be reached any more.") {
    const { threadId, runId } = this.#input;
    yield* this.#close();
    if (this.#seen === 0) yield { type: "RUN_STARTED", threadId, runId };
    yield { type: "RUN_ERROR", message, code: "connection_lost" };
  }
}

const generationOf = (response) => Number(response.headers.get("io-run-generation") ?? 0);

/** Gives the events that bytes complete. */
function sseReader() {
  const decoder = new TextDecoder();
  let text = "";
  return (bytes) => {
    const frames = (text + decoder.decode(bytes, { stream: true })).split("\n\n");
    text = frames.pop();
    return frames.filter((frame) => frame.startsWith("data: ")).map((frame) => JSON.parse(frame.slice(6)));
  };
}

/** The same for protobuf: each event behind its length, four bytes with the highest first. */
function protobufReader(decode) {
  let rest = new Uint8Array();
  return (bytes) => {
    const joined = new Uint8Array(rest.length + bytes.length);
    joined.set(rest);
    joined.set(bytes, rest.length);
    const view = new DataView(joined.buffer);
    const events = [];
    let at = 0;
    while (at + LENGTH_BYTES <= joined.length && at + LENGTH_BYTES + view.getUint32(at) <= joined.length) {
      const start = at + LENGTH_BYTES;
      at = start + view.getUint32(at);
      events.push(decode(joined.subarray(start, at)));
    }
    rest = joined.subarray(at);
    return events;
  };
}
