// The model of every benchmark, in a process of its own: Chat Completions, answering at once, as fast as its reader
// reads, or at the pace of a real model. It tells its parent the address.

import { createServer } from "node:http";
import { chunk, DONE, call, finish, text, usage } from "../../tests/e2e/support/openai.mjs";
import { nowMs } from "../clock.mjs";
import { delta, PACE_MS, readScene, stamp, TOOL } from "./scene.mjs";

const PIECE_BYTES = 16 * 1024;
const HEAD = { "content-type": "text/event-stream" };
const ROLE = chunk({ role: "assistant", content: "" });

const answers = new Map();

/** The bytes of an answer, without its end. */
function answerBytes({ deltaCount, deltaLength }) {
  const key = `${deltaCount} ${deltaLength}`;
  if (!answers.has(key)) {
    const frames = Array.from({ length: deltaCount }, (_, index) => text(delta(index, deltaLength))[0]);
    answers.set(key, Buffer.from(ROLE + frames.join("")));
  }
  return answers.get(key);
}

function end(body, reason = "stop") {
  const [last] = finish(reason);
  return last + (body.stream_options?.include_usage ? usage(10, 10) : "") + DONE;
}

/** Everything in one write. */
function say(response, body, scene) {
  response.write(Buffer.concat([answerBytes(scene), Buffer.from(end(body))]));
  response.end();
}

/** As fast as the reader reads, in pieces the size of a socket's. */
async function flood(response, body, scene) {
  const bytes = answerBytes(scene);
  for (let at = 0; at < bytes.length && !response.destroyed; at += PIECE_BYTES) {
    if (response.write(bytes.subarray(at, at + PIECE_BYTES))) continue;
    await new Promise((resolve) => response.once("drain", resolve).once("close", resolve));
  }
  response.end(end(body));
}

function callTool(response, body, scene) {
  if (body.messages.at(-1).role === "tool") return say(response, body, scene);
  response.end(ROLE + call(TOOL.name, { palette: "warm" }) + end(body, "tool_calls"));
}

// The streams to be written to, by the millisecond of the pace at which each came, so that they do not beat together.
const slots = Array.from({ length: PACE_MS }, () => new Set());
let slotAt = 0;

function pace(response, body, { deltaCount, deltaLength }) {
  const stream = { response, left: deltaCount, deltaLength, last: end(body) };
  const slot = slots[slotAt % PACE_MS];
  slot.add(stream);
  response.once("close", () => slot.delete(stream));
  response.write(ROLE);
}

const [BEFORE_STAMP, AFTER_STAMP] = text("STAMP")[0].split("STAMP");

/**
 * The next delta of each stream of a slot, as a chunk of HTTP written to the socket itself: half the cost of
 * `response.write`, on a machine that the servers under test need.
 */
function writePaced(slot) {
  for (const stream of slot) {
    const { response } = stream;
    const frame = BEFORE_STAMP + stamp(nowMs(), stream.deltaLength) + AFTER_STAMP;
    response.socket?.write(`${frame.length.toString(16)}\r\n${frame}\r\n`, "latin1");
    stream.left -= 1;
    if (stream.left > 0) continue;
    slot.delete(stream);
    response.end(stream.last);
  }
}

const startMs = nowMs();
setInterval(() => {
  // A late timer makes up for the slots it missed.
  const dueAt = Math.floor(nowMs() - startMs);
  for (; slotAt < dueAt; slotAt += 1) writePaced(slots[slotAt % PACE_MS]);
}, 1);

const scenes = { say, flood, call: callTool, pace };

const contentText = ({ content }) =>
  typeof content === "string" ? content : content.map((part) => part.text ?? "").join("");

const server = createServer(async (request, response) => {
  request.socket.setNoDelay(true);
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  const body = JSON.parse(Buffer.concat(pieces).toString());
  const scene = readScene(contentText(body.messages.findLast(({ role }) => role === "user")));
  response.writeHead(200, HEAD);
  await scenes[scene.kind](response, body, scene);
});
server.listen(0, "127.0.0.1", () => process.send({ url: `http://127.0.0.1:${server.address().port}` }));
process.once("disconnect", () => process.exit());
