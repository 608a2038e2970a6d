// The yardstick: a Worker written by hand in JavaScript. A run with an owner lives in a Durable Object and is stored in
// D1 with one batch at its start and one at its end; any other is translated where it arrives, or, if it asks for that,
// in an object without being stored. There it waits for the results of its calls, and goes on.

import { DurableObject } from "cloudflare:workers";
import { askModel, translate } from "./translate.mjs";

const HEADERS = { "content-type": "text/event-stream", "cache-control": "no-cache, no-transform" };

export default {
  async fetch(request, env, context) {
    if (request.method !== "POST") return new Response("Not found", { status: 404 });
    const address = new URL(request.url).searchParams.get("resultFor");
    if (address) return env.RUNS.get(env.RUNS.idFromString(address)).fetch(request);
    const input = await request.json();
    if (input.forwardedProps?.resourceId || input.forwardedProps?.inObject) {
      const object = env.RUNS.get(env.RUNS.newUniqueId());
      const response = await object.fetch(request.url, { method: "POST", body: JSON.stringify(input) });
      return new Response(response.body, { headers: response.headers });
    }
    const { readable, writable } = new IdentityTransformStream();
    const body = await askModel(env, input);
    context.waitUntil(translate(body, writable, input));
    return new Response(readable, { headers: HEADERS });
  },
};

export class RunObject extends DurableObject {
  #takeResult;

  async fetch(request) {
    const input = await request.json();
    if (this.#takeResult) {
      this.#takeResult(input.result);
      return Response.json({ success: true });
    }
    const isStored = Boolean(input.forwardedProps.resourceId);
    const history = isStored ? await begin(this.env.DB, input) : [];
    const body = await askModel(this.env, { ...input, messages: [...history, ...input.messages] });
    const { readable, writable } = new IdentityTransformStream();
    const steps = isStored
      ? { beforeEnd: (answer) => end(this.env.DB, input, answer) }
      : { answer: (calls, emit) => this.#answer(input, calls, emit) };
    this.ctx.waitUntil(translate(body, writable, input, steps));
    return new Response(readable, { headers: { ...HEADERS, "run-object": this.ctx.id.toString() } });
  }

  /** Waits for the one result, tells the client and asks the model again. */
  async #answer(input, [{ id, name, text }], emit) {
    const result = await new Promise((resolve) => (this.#takeResult = resolve));
    const content = JSON.stringify(result);
    emit({ type: "TOOL_CALL_RESULT", messageId: crypto.randomUUID(), toolCallId: id, content, role: "tool" });
    const call = { id, type: "function", function: { name, arguments: text } };
    const messages = [...input.messages, { role: "assistant", content: "", tool_calls: [call] }, { role: "tool", tool_call_id: id, content }];
    return askModel(this.env, { ...input, messages });
  }
}

/** Stores what came, and reads what was there before it. */
async function begin(database, { threadId, runId, messages, forwardedProps }) {
  const owner = forwardedProps.resourceId;
  const now = Date.now();
  const [before] = await database.batch([
    database
      .prepare("SELECT role, content FROM messages WHERE thread_id = ? ORDER BY place DESC LIMIT 40")
      .bind(threadId),
    database
      .prepare("INSERT INTO threads VALUES (?1, ?2, ?3, ?4, ?4) ON CONFLICT (id) DO UPDATE SET updated_at = ?4")
      .bind(threadId, owner, messages[0]?.content.slice(0, 50) ?? "New chat", now),
    database.prepare("INSERT INTO runs VALUES (?, ?, ?, 'running', ?)").bind(runId, owner, threadId, now),
    ...messages.map(({ id, role, content }, index) => insertMessage(database, threadId, id, now * 1000 + index, role, content)),
  ]);
  return before.results.reverse();
}

async function end(database, { threadId, runId, forwardedProps }, { messageId, text }) {
  const now = Date.now();
  await database.batch([
    insertMessage(database, threadId, messageId, now * 1000 + 999, "assistant", text),
    database
      .prepare("UPDATE runs SET status = 'finished' WHERE id = ? AND resource_id = ?")
      .bind(runId, forwardedProps.resourceId),
    database.prepare("UPDATE threads SET updated_at = ? WHERE id = ?").bind(now, threadId),
  ]);
}

const insertMessage = (database, ...values) =>
  database.prepare("INSERT INTO messages VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING").bind(...values);
