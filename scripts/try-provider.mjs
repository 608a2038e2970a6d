// Tries a vendor with your key: text, a tool loop and structured output, through the Worker on this machine.
// `make try-provider PROVIDER=openai MODEL=gpt-5-mini`, the key in `.dev.vars`; BASE_URL for another server.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { giveResult, openRun, runInput, tool, user } from "../tests/e2e/support/run.mjs";
import { startWorker } from "../tests/e2e/support/worker.mjs";
import { fail, root } from "./tools.mjs";

const { PROVIDER, MODEL, BASE_URL, DEV_VARS = join(root, ".dev.vars") } = process.env;

/** Provider -> name of its secret, as README's table has them, which the code writes. */
function providers() {
  const [, table] = readFileSync(join(root, "README.md"), "utf8").match(/<!-- table: providers -->\n([^]*?)<!-- end -->/);
  const cells = (line) => line.split("|").map((cell) => cell.trim().replaceAll("`", ""));
  return new Map(table.trim().split("\n").slice(2).map(cells).map(([, name, , secret]) => [name, secret]));
}

/** The lines `NAME=value` of a file, quotes around a value left out. */
function secretsOf(file) {
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
  const pairs = lines.map((line) => line.match(/^\s*(?:export\s+)?(\w+)\s*=\s*(.*?)\s*$/)).filter(Boolean);
  return Object.fromEntries(pairs.map(([, name, value]) => [name, value.replace(/^(["'])(.*)\1$/, "$2")]));
}

const SECRET = tool("get_secret_number", { type: "object", properties: {} });

const CITY = {
  type: "object",
  properties: { city: { type: "string" }, population: { type: "integer" } },
  required: ["city", "population"],
  additionalProperties: false,
};

/** Name -> what is asked, and what is wrong with the answer, if anything is. */
const CHECKS = {
  "text": {
    input: { messages: [user("Answer with exactly this one word: pineapple")] },
    fault: ({ text }) => !/pineapple/i.test(text) && `the answer has no pineapple in it: ${text}`,
  },
  "a tool loop": {
    input: { messages: [user("Call get_secret_number, then tell me the number it gives.")], tools: [SECRET] },
    fault: ({ text, calls }) =>
      (calls === 0 && `the tool was not called: ${text}`) ||
      (!text.includes("4217") && `the answer does not have the tool's number: ${text}`),
  },
  "structured output": {
    input: {
      messages: [user("Which city is the capital of France, and how many people live there?")],
      forwardedProps: { structuredOutput: { schema: CITY } },
    },
    fault: ({ text }) => {
      try {
        const { city, population, ...more } = JSON.parse(text);
        const fits = typeof city === "string" && Number.isInteger(population) && Object.keys(more).length === 0;
        return !fits && `the answer does not fit the schema: ${text}`;
      } catch {
        return `the answer is no JSON: ${text}`;
      }
    },
  },
};

/** Runs to the end, answers calls of the tool, and gives what was said. */
async function ask(worker, members) {
  const input = runInput({ agent: "tried", protocolVersion: "1.0", ...members });
  const stream = await openRun(worker, input);
  const said = { text: "", calls: 0 };
  for (let event = await stream.next(); event; event = await stream.next()) {
    if (event.type === "TEXT_MESSAGE_CONTENT") said.text += event.delta;
    if (event.type === "TOOL_CALL_END") {
      said.calls += 1;
      await giveResult(worker, input.runId, event.toolCallId, { result: { number: 4217 } });
    }
  }
  const last = (await stream.rest()).at(-1);
  if (last.type === "RUN_ERROR") throw new Error(`${last.code}: ${last.message}`);
  return { ...said, usage: last.usage?.[0] };
}

/** The upstream's own words, which clients never see. */
function upstreamWords(worker) {
  const lines = worker.lines.splice(0).map(({ message }) => {
    try {
      return JSON.parse(message);
    } catch {
      return {};
    }
  });
  const details = lines.filter(({ event, detail }) => event === "upstream_failed" && detail).map(({ detail }) => detail);
  return [...new Set(details)].map((detail) => `\n      the server says: ${detail}`).join("");
}

async function check(worker, name, { input, fault }) {
  const began = performance.now();
  const verdict = (word, rest) => console.log(`${word.padEnd(5)} ${name.padEnd(18)} ${rest}`);
  try {
    const said = await ask(worker, input);
    const wrong = fault(said);
    if (wrong) throw new Error(wrong);
    const { inputTokens = "?", outputTokens = "?" } = said.usage ?? {};
    verdict("ok", `${((performance.now() - began) / 1000).toFixed(1)} s, ${inputTokens} tokens in, ${outputTokens} out`);
    return true;
  } catch (error) {
    verdict("FAIL", `${error.message}${upstreamWords(worker)}`);
    return false;
  }
}

const known = providers();
if (!known.has(PROVIDER)) fail(`PROVIDER must be one of ${[...known.keys()].join(", ")}.`);
if (!MODEL && !["demo", "ag-ui"].includes(PROVIDER)) fail("MODEL must name a model of the provider.");
const name = known.get(PROVIDER);
const secret = name && (secretsOf(DEV_VARS)[name] ?? process.env[name]);
if (name && !secret && !BASE_URL) {
  fail(`${name} is missing: put the line ${name}=<your key> into .dev.vars, which git ignores.`);
}
const agent = { id: "tried", provider: PROVIDER, ...(MODEL ? { model: MODEL } : {}), ...(BASE_URL ? { baseUrl: BASE_URL } : {}) };
const worker = await startWorker({ agents: [agent], secrets: secret ? { [name]: secret } : {} });
try {
  console.log(`${PROVIDER} ${MODEL ?? ""}${BASE_URL ? ` at ${BASE_URL}` : ""}`);
  const verdicts = [];
  for (const [title, what] of Object.entries(CHECKS)) verdicts.push(await check(worker, title, what));
  const failures = verdicts.filter((isOk) => !isOk).length;
  console.log(failures === 0 ? "works" : `does not work: ${failures} of ${verdicts.length} checks failed`);
  process.exitCode = failures === 0 ? 0 : 1;
} finally {
  await worker.stop();
}
