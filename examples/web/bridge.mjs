// All a page needs of the protocol: a run as a stream of events, and the result of a tool.

/** Starts a run and gives its events as they come; fails when the run is refused, or cut off. */
export async function* run(bridgeUrl, input, { headers, signal } = {}) {
  const response = await fetch(`${bridgeUrl}/run`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(input),
    signal,
  });
  if (!response.ok) throw new Error((await response.json()).error);
  let rest = "";
  let last;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const frames = (rest + value).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      // Everything else is a keep-alive.
      if (!frame.startsWith("data: ")) continue;
      last = JSON.parse(frame.slice("data: ".length));
      yield last;
    }
  }
  if (!["RUN_FINISHED", "RUN_ERROR"].includes(last?.type)) throw new Error("The answer was cut off.");
}

/** Posts the result of a call; the run that waits for it goes on. */
export async function postResult(bridgeUrl, runId, toolCallId, result, { headers } = {}) {
  const path = `/runs/${encodeURIComponent(runId)}/tool-calls/${encodeURIComponent(toolCallId)}/result`;
  const response = await fetch(bridgeUrl + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ result }),
  });
  if (!response.ok) throw new Error((await response.json()).error);
}

/**
 * Runs to the end: texts go to `onText`, calls to `tools` by name (`{description, parameters, run}`), their results back.
 */
export async function converse(bridgeUrl, input, { tools = {}, onText, ...options }) {
  const declared = Object.entries(tools).map(([name, { run: _, ...tool }]) => ({ name, ...tool }));
  const calls = new Map();
  for await (const event of run(bridgeUrl, { ...input, tools: declared }, options)) {
    if (event.type === "TEXT_MESSAGE_CONTENT") onText(event.delta, event.messageId);
    if (event.type === "TOOL_CALL_START") calls.set(event.toolCallId, { name: event.toolCallName, args: "" });
    if (event.type === "TOOL_CALL_ARGS") calls.get(event.toolCallId).args += event.delta;
    if (event.type === "TOOL_CALL_END") {
      const { name, args } = calls.get(event.toolCallId);
      // A tool of the server runs there.
      const tool = tools[name];
      if (tool === undefined) continue;
      // Not awaited: the stream goes on meanwhile, with other calls too.
      Promise.resolve()
        .then(() => tool.run(JSON.parse(args)))
        .catch((error) => ({ error: String(error.message ?? error) }))
        .then((result) => postResult(bridgeUrl, input.runId, event.toolCallId, result, options));
    }
    if (event.type === "RUN_ERROR") throw new Error(event.message);
  }
}
