// What the contract asks of every run besides translating it, written by hand in JavaScript: the input is checked, the
// head waits for the model's, silence, the model and the run have limits, events pass one check of their order and are
// kept for other viewers, who may follow, cancel or ask how it stands; it logs. Only what a run without tools needs, and
// nothing of what io-bridge does beyond the contract.

import { DurableObject } from "cloudflare:workers";
import { askModel } from "./translate.mjs";

const STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
  "io-run-generation": "0",
};
const CORS_HEADERS = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers": "x-request-id, retry-after, io-run-address, io-run-generation",
  vary: "Origin",
};
const BODY_MAX_BYTES = 4 * 1024 * 1024;
const ID_MAX_BYTES = 1024;
const KEPT_EVENTS_MAX = 10_000;
const FIRST_RESPONSE_WAIT_MS = 5_000;
const KEEP_ALIVE_MS = 15_000;
const IDLE_TIMEOUT_MS = 60_000;
const RUN_TIMEOUT_MS = 15 * 60_000;

const encoder = new TextEncoder();
const KEEP_ALIVE = encoder.encode(": keep-alive\n\n");

class Refusal extends Error {
  constructor(status, code, message, issues) {
    super(message);
    Object.assign(this, { status, code, issues });
  }

  answer() {
    return Response.json({ error: this.message, code: this.code, issues: this.issues }, { status: this.status });
  }
}

const log = (event, fields) => console.log(JSON.stringify({ level: "info", event, ...fields }));

export default {
  async fetch(request, env) {
    const requestId = request.headers.get("x-request-id") ?? crypto.randomUUID();
    let answer;
    try {
      answer = await route(request, env, requestId);
    } catch (error) {
      if (!(error instanceof Refusal)) console.error(error);
      answer = (error instanceof Refusal ? error : new Refusal(500, "internal_error", "Something went wrong.")).answer();
    }
    const headers = new Headers(answer.headers);
    for (const [name, value] of Object.entries(CORS_HEADERS)) headers.set(name, value);
    headers.set("x-request-id", requestId);
    return new Response(answer.body, { status: answer.status, headers });
  },
};

async function route(request, env, requestId) {
  const { pathname, searchParams } = new URL(request.url);
  const address = searchParams.get("address");
  if (address) return env.RUNS.get(env.RUNS.idFromString(address)).fetch(request);
  if (pathname !== "/run") throw new Refusal(404, "route_not_found", "There is no such route.");
  if (request.method !== "POST") throw new Refusal(405, "method_not_allowed", "This route answers POST.");
  const input = checked(await bodyOf(request));
  const id = env.RUNS.newUniqueId();
  const headers = { "content-type": "application/json", "x-request-id": requestId };
  const answer = await env.RUNS.get(id).fetch(request.url, { method: "POST", headers, body: JSON.stringify(input) });
  return answer;
}

async function bodyOf(request) {
  const type = request.headers.get("content-type");
  if (type && !/^application\/json\s*(;|$)/i.test(type)) throw new Refusal(415, "unsupported_media_type", "Send JSON.");
  if (Number(request.headers.get("content-length")) > BODY_MAX_BYTES) throw new Refusal(413, "too_large", "Too long.");
  const text = await request.text();
  if (isLonger(text, BODY_MAX_BYTES)) throw new Refusal(413, "too_large", "Too long.");
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal(400, "invalid_json", "The body is not JSON.");
  }
}

/** Whether a text has more bytes than this; of most texts their length tells. */
const isLonger = (text, bytes) => text.length * 3 > bytes && encoder.encode(text).length > bytes;

/** The input with what is known of it, each of its type. */
function checked(input) {
  const issues = [];
  const need = (isGood, field, message) => isGood || issues.push({ field, message });
  const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  const isText = (value) => typeof value === "string" && value.isWellFormed();
  const id = (value, field) =>
    need(isText(value) && value !== "" && !isLonger(value, ID_MAX_BYTES) && !/\p{Cc}/u.test(value), field, "must be an id");
  const list = (value, field) => (Array.isArray(value) ? value : (need(value === undefined, field, "must be a list"), []));
  need(isObject(input), "", "must be an object");
  if (issues.length === 0) {
    id(input.threadId, "/threadId");
    id(input.runId, "/runId");
    for (const [at, message] of list(input.messages, "/messages").entries()) {
      const field = `/messages/${at}`;
      id(message?.id, `${field}/id`);
      need(["user", "assistant", "system", "developer"].includes(message?.role), `${field}/role`, "must be a known role");
      const parts = Array.isArray(message?.content) ? message.content : [{ type: "text", text: message?.content }];
      for (const part of parts) need(part?.type === "text" && isText(part.text), `${field}/content`, "must be text");
    }
    for (const [at, tool] of list(input.tools, "/tools").entries()) {
      need(isText(tool?.name) && isText(tool?.description), `/tools/${at}`, "must have a name and a description");
    }
    for (const [at, entry] of list(input.context, "/context").entries()) {
      need(isText(entry?.description) && isText(entry?.value), `/context/${at}`, "must have a description and a value");
    }
    const props = isObject(input.forwardedProps) ? input.forwardedProps : {};
    for (const name of ["agentId", "resourceId"]) {
      need(props[name] === undefined || isText(props[name]), `/forwardedProps/${name}`, "must be text");
    }
    need(input.messages?.some(({ role }) => role === "user"), "/messages", "must have something to answer");
  }
  if (issues.length > 0) throw new Refusal(400, "invalid_input", "The input is not valid.", issues);
  const { threadId, runId, messages, tools, context, state, protocolVersion } = input;
  return { threadId, runId, messages, tools, context, state, protocolVersion };
}

/** One object, one run. */
export class RunObject extends DurableObject {
  #run;

  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    if (!this.#run && pathname === "/run") return this.#start(request);
    if (!this.#run) return new Refusal(404, "run_not_found", "There is no such run.").answer();
    if (pathname.endsWith("/events")) return new Response(this.#follow(Number(searchParams.get("after") ?? 0)), { headers: STREAM_HEADERS });
    if (pathname.endsWith("/cancel")) this.#run.abort.abort("cancelled");
    return Response.json(this.#run.description());
  }

  async #start(request) {
    const input = await request.json();
    const run = new Run(input, request.headers.get("x-request-id"), this);
    this.#run = run;
    const stream = this.#follow(0);
    const head = Promise.withResolvers();
    this.ctx.waitUntil(run.drive(this.env, head));
    const refusal = await head.promise;
    if (refusal) return refusal.answer();
    return new Response(stream, { headers: { ...STREAM_HEADERS, "io-run-address": this.ctx.id.toString() } });
  }

  /** Stores what came. */
  async begin() {}

  /** Stores what was said. */
  async end() {}

  #follow(after) {
    const { readable, writable } = new IdentityTransformStream();
    this.ctx.waitUntil(this.#run.feed(writable.getWriter(), after));
    return readable;
  }
}

/** Whether an event may come while this is open; then also what is open afterwards. */
const follows = {
  RUN_STARTED: (open) => !open.run && (open.run = true),
  STEP_STARTED: (open) => open.run && !open.step && (open.step = true),
  TEXT_MESSAGE_START: (open, { messageId }) => open.step && !open.message && (open.message = messageId),
  TEXT_MESSAGE_CONTENT: (open, { messageId, delta }) => open.message === messageId && delta !== "",
  TEXT_MESSAGE_END: (open, { messageId }) => open.message === messageId && !(open.message = undefined),
  STEP_FINISHED: (open) => open.step && !open.message && !(open.step = false),
  RUN_FINISHED: (open) => open.run && !open.step && !(open.run = false),
  RUN_ERROR: (open) => open.run && !open.step && !(open.run = false),
};

/** The events of one run in their order, who watches them, and its limits in time. */
class Run {
  abort = new AbortController();
  #input;
  #requestId;
  #store;
  #startedMs = Date.now();
  #status = "running";
  #kept = [];
  #forgotten = 0;
  #viewers = 0;
  #isOver = false;
  #moved = Promise.withResolvers();
  #open = { run: false, step: false, message: undefined };
  #timer;
  #due = {};

  constructor(input, requestId, store) {
    this.#input = input;
    this.#requestId = requestId;
    this.#store = store;
  }

  description() {
    const { threadId, runId } = this.#input;
    return { runId, threadId, status: this.#status, generation: 0, startedAt: new Date(this.#startedMs), eventCount: this.#forgotten + this.#kept.length };
  }

  async drive(env, head) {
    const { threadId, runId } = this.#input;
    const names = { requestId: this.#requestId, runId, threadId };
    log("run_started", names);
    const open = () => {
      delete this.#due.head;
      if (this.#open.run) return;
      head.resolve();
      this.#emit({ type: "RUN_STARTED", threadId, runId, protocolVersion: "1.0" });
      this.#emit({ type: "STEP_STARTED", stepName: "step-1" });
      this.#show();
    };
    this.#setDue("head", FIRST_RESPONSE_WAIT_MS, open);
    this.#setDue("run", RUN_TIMEOUT_MS, () => this.abort.abort("run_timeout"));
    this.#setDue("idle", IDLE_TIMEOUT_MS, () => this.abort.abort("upstream_timeout"));
    try {
      await this.#store.begin(this.#input);
      const body = await askModel(env, this.#input, this.abort.signal);
      open();
      const answer = await this.#translate(body);
      this.#emit({ type: "STEP_FINISHED", stepName: "step-1" });
      await this.#store.end(this.#input, answer);
      this.#emit({ type: "RUN_FINISHED", threadId, runId });
      this.#status = "finished";
    } catch (error) {
      const { aborted: isStopped, reason } = this.abort.signal;
      const code = isStopped ? reason : "internal_error";
      this.#status = code === "cancelled" ? "cancelled" : "failed";
      if (this.#open.run) this.#fail(code);
      else head.resolve(new Refusal(502, "upstream_error", "The model refused."));
      console.error(error);
    }
    clearTimeout(this.#timer);
    this.#isOver = true;
    this.#show();
    log("run_finished", { ...names, status: this.#status, durationMs: Date.now() - this.#startedMs });
  }

  async #translate(body) {
    const decoder = new TextDecoder();
    const messageId = crypto.randomUUID();
    let pending = "";
    let text = "";
    let isEnded = false;
    for await (const piece of body) {
      this.#due.idle.ms = Date.now() + IDLE_TIMEOUT_MS;
      const lines = (pending + decoder.decode(piece, { stream: true })).split("\n");
      pending = lines.pop();
      for (const line of lines) {
        if (!line.startsWith("data: ")) continue;
        if (line === "data: [DONE]") {
          isEnded = true;
          continue;
        }
        const delta = JSON.parse(line.slice(6)).choices[0]?.delta;
        if (!delta?.content) continue;
        if (!this.#open.message) this.#emit({ type: "TEXT_MESSAGE_START", messageId, role: "assistant" });
        this.#emit({ type: "TEXT_MESSAGE_CONTENT", messageId, delta: delta.content });
        text += delta.content;
      }
      this.#show();
      if (this.#viewers === 0) throw new Error("nobody watches");
    }
    if (!isEnded) throw new Error("the model's answer was cut off");
    if (this.#open.message) this.#emit({ type: "TEXT_MESSAGE_END", messageId });
    return { messageId, text };
  }

  #fail(code) {
    if (this.#open.message) this.#emit({ type: "TEXT_MESSAGE_END", messageId: this.#open.message });
    if (this.#open.step) this.#emit({ type: "STEP_FINISHED", stepName: "step-1" });
    this.#emit({ type: "RUN_ERROR", message: "The run did not come to its end.", code });
  }

  /** The one door to the wire: an event that does not follow is a fault of ours. */
  #emit(event) {
    if (!follows[event.type](this.#open, event)) throw new Error(`${event.type} does not follow`);
    this.#kept.push(`data: ${JSON.stringify(event)}\n\n`);
  }

  /** Lets the viewers see what is new. */
  #show() {
    if (this.#kept.length > KEPT_EVENTS_MAX) {
      this.#forgotten += this.#kept.length - KEPT_EVENTS_MAX;
      this.#kept = this.#kept.slice(-KEPT_EVENTS_MAX);
    }
    this.#wake();
  }

  /** Wakes the viewers' feeds, to write what is new or this comment. */
  #wake(comment) {
    this.#moved.resolve(comment);
    this.#moved = Promise.withResolvers();
    this.#setDue("keepAlive", KEEP_ALIVE_MS, () => this.#wake(KEEP_ALIVE));
  }

  /** Writes the events after the first `seen` to one viewer until the run is over or the viewer is gone. */
  async feed(writer, seen) {
    this.#viewers += 1;
    try {
      for (;;) {
        const count = this.#forgotten + this.#kept.length;
        if (seen < count) {
          const frames = this.#kept.slice(seen - this.#forgotten).join("");
          seen = count;
          await writer.write(encoder.encode(frames));
        } else if (this.#isOver) {
          return await writer.close();
        } else {
          const comment = await this.#moved.promise;
          if (comment) await writer.write(comment);
        }
      }
    } catch {
      // The viewer is gone.
    } finally {
      this.#viewers -= 1;
    }
  }

  /** One timer for all limits, set anew only when another is due before it. */
  #setDue(name, ms, act) {
    this.#due[name] = { ms: Date.now() + ms, act };
    if (this.#timer === undefined) this.#wait();
  }

  #wait() {
    const next = Math.min(...Object.values(this.#due).map(({ ms }) => ms));
    this.#timer = setTimeout(() => {
      for (const [name, { ms, act }] of Object.entries(this.#due)) {
        if (ms > Date.now()) continue;
        delete this.#due[name];
        act();
      }
      if (!this.#isOver) this.#wait();
    }, next - Date.now());
  }
}
