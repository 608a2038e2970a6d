// The yardstick of `npm run speed`: a Worker that does nothing but translate Chat Completions into AG-UI events, as
// one would write it by hand in JavaScript. Streaming, incremental decoding, one write per piece that comes.

export default {
  async fetch(request, env) {
    const { threadId, runId, messages } = await request.json();
    const upstream = await fetch(`${env.UPSTREAM}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "stub-1", stream: true, messages }),
    });
    const { readable, writable } = new IdentityTransformStream();
    translate(upstream.body, writable.getWriter(), { threadId, runId });
    return new Response(readable, { headers: { "content-type": "text/event-stream", "cache-control": "no-cache" } });
  },
};

async function translate(body, writer, { threadId, runId }) {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const messageId = crypto.randomUUID();
  let pending = "";
  let out = "";
  const emit = (event) => (out += `data: ${JSON.stringify(event)}\n\n`);
  emit({ type: "RUN_STARTED", threadId, runId, protocolVersion: "1.0" });
  emit({ type: "STEP_STARTED", stepName: "step-1" });
  emit({ type: "TEXT_MESSAGE_START", messageId, role: "assistant" });
  for await (const piece of body) {
    const lines = (pending + decoder.decode(piece, { stream: true })).split("\n");
    pending = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data: ") || line === "data: [DONE]") continue;
      const delta = JSON.parse(line.slice(6)).choices[0]?.delta?.content;
      if (delta) emit({ type: "TEXT_MESSAGE_CONTENT", messageId, delta });
    }
    await writer.write(encoder.encode(out));
    out = "";
  }
  emit({ type: "TEXT_MESSAGE_END", messageId });
  emit({ type: "STEP_FINISHED", stepName: "step-1" });
  emit({ type: "RUN_FINISHED", threadId, runId });
  await writer.write(encoder.encode(out));
  await writer.close();
}
