// What gives the model's own stream: the model itself, asked directly, and the Worker that hands its bytes through.

import { post } from "../client/recording.mjs";
import { runInput } from "./ag-ui.mjs";

const chatCompletions = {
  textOf: ({ choices }) => choices[0]?.delta.content || undefined,
  isEnd: ({ choices }) => choices[0]?.finish_reason === "stop",
  isError: () => false,
};

export const direct = {
  ...chatCompletions,
  name: "direct",
  label: "the model, asked directly",
  role: "floor",
  start: async (upstreamUrl) => ({ url: upstreamUrl, stop: async () => {} }),
  open: (server, run) => {
    const { messages } = runInput(run);
    const body = { model: "stub-1", stream: true, messages: messages.map(({ role, content }) => ({ role, content })) };
    return post(`${server.url}/v1/chat/completions`, body, { headers: { authorization: "Bearer unused" } });
  },
};

export const passThrough = {
  ...chatCompletions,
  name: "pass-through",
  label: "raw pass-through in workerd",
  role: "floor",
  runtime: "workerd",
  server: "servers/pass-through.mjs",
  open: (server, run) => post(server.url, runInput(run)),
};
