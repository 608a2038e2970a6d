// What a run is to be answered with travels in its last user message, so that every server under test forwards it
// without knowing, and the model behind them needs no state.

const MARK = "bench ";

/** Time between the deltas of a paced stream: 50 tokens per second. */
export const PACE_MS = 20;

/** The front-end tool the scene `call` asks for. */
export const TOOL = {
  name: "pick_color",
  description: "Asks the user for a colour.",
  parameters: { type: "object", properties: { palette: { type: "string" } }, required: ["palette"] },
};

/** The user message that asks for a scene; `padding` makes it as long as a measure wants. */
export const sceneText = (scene, padding = "") => `${MARK}${JSON.stringify(scene)}\n${padding}`;

/** The scene a user message asks for. */
export function readScene(text) {
  const start = text.indexOf(MARK) + MARK.length;
  return JSON.parse(text.slice(start, text.indexOf("\n", start)));
}

/**
 * The delta at a place of an answer: a word, now and then a quote, a line break or letters beyond ASCII; filled up to a
 * length where a measure wants long ones.
 */
export function delta(index, deltaLength) {
  return filled(word(index), deltaLength);
}

const filled = (text, length = 0) => text.padEnd(length, " more words");

function word(index) {
  if (index % 16 === 7) return ` "quoted ${index}"`;
  if (index % 16 === 11) return `.\n${index}`;
  if (index % 16 === 15) return ` é漢😀${index}`;
  return ` word${index}`;
}

/** A whole answer's text. */
export const answerText = ({ deltaCount, deltaLength }) =>
  Array.from({ length: deltaCount }, (_, index) => delta(index, deltaLength)).join("");

/** A delta of a paced stream carries when it was written. */
export const stamp = (atMs, deltaLength) => filled(` @${atMs.toFixed(3)}`, deltaLength);

/** When the delta of a paced stream was written. */
export const readStamp = (text) => Number.parseFloat(text.slice(text.indexOf("@") + 1));
