// Chat Completions as an upstream speaks it: frames, and scripts made of frames.

export const DONE = "data: [DONE]\n\n";

export const frame = (value) => `data: ${JSON.stringify(value)}\n\n`;

const envelope = (rest) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1760000000,
  model: "stub-1",
  ...rest,
});

export const chunk = (delta, finish_reason = null) =>
  frame(envelope({ choices: [{ index: 0, delta, finish_reason }] }));

/** One frame per delta. */
export const text = (...deltas) => deltas.map((content) => chunk({ content }));

/** A whole call in one frame. */
export const call = (name, args, { id = `call_${name}`, index = 0 } = {}) =>
  chunk({
    tool_calls: [
      {
        index,
        id,
        type: "function",
        function: { name, arguments: typeof args === "string" ? args : JSON.stringify(args) },
      },
    ],
  });

/** More argument text of the call at `index`. */
export const more = (args, index = 0) => chunk({ tool_calls: [{ index, function: { arguments: args } }] });

/** The end of an answer. */
export const finish = (reason = "stop") => [chunk({}, reason), DONE];

/** The usage-only chunk of `stream_options.include_usage`. */
export const usage = (prompt_tokens, completion_tokens) =>
  frame(envelope({ choices: [], usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens } }));

/** Answers 200 with these frames and ends the body. */
export const answer =
  (...frames) =>
  async (exchange) => {
    exchange.head();
    await exchange.writeAll(frames);
    exchange.end();
  };

/** A whole text answer. */
export const says = (...deltas) => answer(text(...deltas), finish());

/** A whole answer of calls: `[name, args]` pairs, after some text if given. */
export const calls = (pairs, { before = [] } = {}) =>
  answer(
    text(...before),
    pairs.map(([name, args], index) => call(name, args, { id: `call_${index}_${name}`, index })),
    finish("tool_calls"),
  );

/** Refuses with a status and a body. */
export const refuses =
  (status, { headers = {}, body = { error: { message: "private words of the upstream", type: "stub" } } } = {}) =>
  async (exchange) => {
    exchange.head(status, { "content-type": "application/json", ...headers });
    exchange.end(JSON.stringify(body));
  };

/** The messages a request carried, by role. */
export const roles = (request) => request.body.messages.map(({ role }) => role);

/** All system text of a request. */
export const systemText = (request) =>
  request.body.messages
    .filter(({ role }) => role === "system" || role === "developer")
    .map(({ content }) => (typeof content === "string" ? content : content.map((part) => part.text).join("\n")))
    .join("\n");

/** The text of one message, whichever form it was sent in. */
export const textOf = ({ content }) =>
  typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("");
