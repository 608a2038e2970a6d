// What a good engineer would write by hand to turn Chat Completions into AG-UI events: streaming, an incremental
// decoder, real JSON both ways, one write per piece that comes. Calls are held until they are whole.

const encoder = new TextEncoder();

/** Asks the model and gives its answer's body. */
export async function askModel(env, { messages, tools }, signal) {
  const response = await fetch(`${env.UPSTREAM}/v1/chat/completions`, {
    method: "POST",
    signal,
    headers: { "content-type": "application/json", authorization: "Bearer unused" },
    body: JSON.stringify({
      model: "stub-1",
      stream: true,
      stream_options: { include_usage: true },
      messages: messages.map(({ role, content, tool_calls, tool_call_id }) => ({ role, content, tool_calls, tool_call_id })),
      ...(tools?.length > 0 ? { tools: tools.map((tool) => ({ type: "function", function: tool })) } : {}),
    }),
  });
  if (!response.ok) throw new Error(`the model answered ${response.status}`);
  return response.body;
}

/**
 * Writes a run's events to `writable` while the model answers; `beforeEnd` is given the text before the run is told to
 * be finished. With `answer`, calls are answered in this run: it is given them, and gives the body of the model's next
 * answer.
 */
export async function translate(body, writable, { threadId, runId }, { beforeEnd = async () => {}, answer } = {}) {
  const writer = writable.getWriter();
  const decoder = new TextDecoder();
  const messageId = crypto.randomUUID();
  let calls = [];
  let isOpen = false;
  let said = "";
  let pending = "";
  let out = "";
  const emit = (event) => (out += `data: ${JSON.stringify(event)}\n\n`);
  const flush = async () => {
    if (out === "") return;
    const bytes = encoder.encode(out);
    out = "";
    await writer.write(bytes);
  };
  const close = () => {
    if (isOpen) emit({ type: "TEXT_MESSAGE_END", messageId });
    isOpen = false;
  };
  const take = (line) => {
    if (!line.startsWith("data: ") || line === "data: [DONE]") return;
    const delta = JSON.parse(line.slice(6)).choices[0]?.delta;
    if (delta?.content) {
      if (!isOpen) emit({ type: "TEXT_MESSAGE_START", messageId, role: "assistant" });
      isOpen = true;
      said += delta.content;
      emit({ type: "TEXT_MESSAGE_CONTENT", messageId, delta: delta.content });
    }
    for (const { index, id, function: piece } of delta?.tool_calls ?? []) {
      calls[index] ??= { id, name: piece.name, text: "" };
      calls[index].text += piece.arguments ?? "";
    }
  };

  try {
    emit({ type: "RUN_STARTED", threadId, runId, protocolVersion: "1.0" });
    emit({ type: "STEP_STARTED", stepName: "step-1" });
    await flush();
    for (let next = body; next; ) {
      for await (const piece of next) {
        const lines = (pending + decoder.decode(piece, { stream: true })).split("\n");
        pending = lines.pop();
        lines.forEach(take);
        await flush();
      }
      close();
      for (const { id, name, text } of calls) {
        emit({ type: "TOOL_CALL_START", toolCallId: id, toolCallName: name, parentMessageId: messageId });
        emit({ type: "TOOL_CALL_ARGS", toolCallId: id, delta: text });
        emit({ type: "TOOL_CALL_END", toolCallId: id });
      }
      if (calls.length > 0) await flush();
      next = calls.length > 0 ? await answer?.(calls, emit) : undefined;
      calls = [];
    }
    emit({ type: "STEP_FINISHED", stepName: "step-1" });
    await beforeEnd({ messageId, text: said });
    emit({ type: "RUN_FINISHED", threadId, runId });
  } catch (error) {
    close();
    emit({ type: "RUN_ERROR", message: "The run failed.", code: "internal_error" });
    console.error(error);
  }
  await flush();
  await writer.close();
}
