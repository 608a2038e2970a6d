// Cloudflare's AI Chat: an object per thread, spoken to over a WebSocket that is open before the clock starts.

import { randomUUID } from "node:crypto";
import { Recording } from "../client/recording.mjs";

const REQUEST = "cf_agent_use_chat_request";
const RESPONSE = "cf_agent_use_chat_response";
// The client is told of an answer it did not ask for, and says that it wants it.
const RESUMING = "cf_agent_stream_resuming";
const RESUME = "cf_agent_stream_resume_ack";

/** The chunk of the answer in a frame, if it is one. */
const chunkOf = ({ type, body }) => (type === RESPONSE && body ? JSON.parse(body) : undefined);

/** Opens the thread's socket and waits for what the object says of itself. */
async function connect(server, threadId) {
  const socket = new WebSocket(new URL(`agents/chat-agent/${threadId}`, server.url.replace("http", "ws")));
  const greetings = new Set(["cf_agent_identity", "cf_agent_mcp_servers"]);
  await new Promise((resolve, reject) => {
    socket.onerror = () => reject(new Error("AI Chat takes no socket"));
    socket.onmessage = ({ data }) => {
      greetings.delete(JSON.parse(data).type);
      if (greetings.size === 0) resolve();
    };
  });
  return socket;
}

/** Records what comes over the socket from now to the end of the next answer. */
function record(socket) {
  const recording = new Recording({ isFramed: true });
  recording.close = () => socket.close();
  socket.onmessage = ({ data }) => {
    if (data.includes(RESUMING)) return socket.send(JSON.stringify({ type: RESUME, id: JSON.parse(data).id }));
    if (!data.includes(RESPONSE)) return undefined;
    recording.add(data);
    if (data.includes('"done":true')) recording.end();
  };
  socket.onclose = () => recording.endMs || recording.fail(new Error("AI Chat closed the socket"));
  return recording;
}

/** Asks, and records the answer. */
function ask(socket, { history = [], text, tools = [] }) {
  const messages = [...history, { role: "user", content: text }].map(({ role, content }) => ({
    id: randomUUID(),
    role,
    parts: [{ type: "text", text: content }],
  }));
  const body = JSON.stringify({ messages, clientTools: tools, trigger: "submit-message" });
  const recording = record(socket);
  socket.send(JSON.stringify({ type: REQUEST, id: randomUUID(), init: { method: "POST", body } }));
  return recording;
}

/** Closes the socket behind the answer. */
function closeAfter(recording) {
  recording.done.then(recording.close, recording.close);
  return recording;
}

export const aiChat = {
  name: "ai-chat",
  label: "Cloudflare AI Chat",
  role: "peer",
  runtime: "workerd",
  server: "servers/ai-chat.mjs",
  packages: { folder: "peers/ai-chat", shown: ["@cloudflare/ai-chat", "agents", "ai"] },
  keepsThreads: true,
  textOf: (frame) => {
    const chunk = chunkOf(frame);
    return chunk?.type === "text-delta" ? chunk.delta : undefined;
  },
  isEnd: ({ type, done, error }) => type === RESPONSE && done === true && !error,
  isError: ({ type, error }) => type === RESPONSE && error === true,
  open: async (server, run) => closeAfter(ask(await connect(server, run.threadId ?? randomUUID()), run)),
  async answerCall(server, { text, tools, result }) {
    const socket = await connect(server, randomUUID());
    const first = await ask(socket, { text, tools }).done;
    const chunks = first.read().map(({ event }) => chunkOf(event));
    const { toolCallId, toolName } = chunks.find((chunk) => chunk?.type === "tool-input-available");
    const second = closeAfter(record(socket));
    const answer = { type: "cf_agent_tool_result", toolCallId, toolName, output: result };
    socket.send(JSON.stringify({ ...answer, autoContinue: true, clientTools: tools }));
    return second;
  },
};
