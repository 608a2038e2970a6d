// `make try-provider`: its verdicts on a server that works, on one that does not, and on a missing key.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { LLMock } from "@copilotkit/aimock";

const SCRIPT = fileURLToPath(new URL("../../scripts/try-provider.mjs", import.meta.url));
const mock = new LLMock({ port: 0, logLevel: "silent" });
await mock.start();
after(() => mock.stop());

/** Exit code and lines, times and token counts left out. */
async function tried(variables) {
  const { OPENAI_API_KEY: _, ...rest } = process.env;
  const env = { ...rest, DEV_VARS: "/nonexistent", ...variables };
  const child = spawn(process.execPath, [SCRIPT], { env });
  let said = "";
  for (const output of [child.stdout, child.stderr]) output.on("data", (piece) => (said += piece));
  const code = await new Promise((resolve) => child.once("close", resolve));
  const lines = said.trim().split("\n").map((line) => line.trim().replace(/ [\d.]+ s, \S+ tokens in, \S+ out$/, "").trimEnd());
  return [code, ...lines];
}

const says = (message, content) => mock.on({ userMessage: message, hasToolResult: false }, content);

test("a server that works is told so, check by check", { timeout: 60_000 }, async () => {
  mock.reset();
  says("pineapple", { content: "Pineapple" });
  says("get_secret_number", { toolCalls: [{ name: "get_secret_number", arguments: "{}" }] });
  mock.on({ userMessage: "get_secret_number", hasToolResult: true }, { content: "It is 4217." });
  says("capital of France", { content: '{"city":"Paris","population":2103000}' });
  const at = `${mock.url}/v1`;
  assert.deepEqual(await tried({ PROVIDER: "openai", MODEL: "gpt-4o", BASE_URL: at, OPENAI_API_KEY: "key" }), [
    0,
    `openai gpt-4o at ${at}`,
    "ok    text",
    "ok    a tool loop",
    "ok    structured output",
    "works",
  ]);
});

test("a server that fails is told with its own words", { timeout: 60_000 }, async () => {
  mock.reset();
  says("pineapple", { error: { message: "no such key", type: "authentication_error" }, status: 401 });
  says("get_secret_number", { content: "I will not." });
  says("capital of France", { content: "Paris, with two million people." });
  const [code, , text, words, ...rest] = await tried({ PROVIDER: "openai", MODEL: "gpt-4o", BASE_URL: `${mock.url}/v1` });
  assert.equal(code, 1);
  assert.match(text, /^FAIL +text +.*502/);
  assert.match(words, /the server says: .*no such key/);
  assert.deepEqual(rest, [
    "FAIL  a tool loop        the tool was not called: I will not.",
    "FAIL  structured output  the answer is no JSON: Paris, with two million people.",
    "does not work: 3 of 3 checks failed",
  ]);
});

test("what is missing is named", { timeout: 60_000 }, async () => {
  const [code, line] = await tried({ PROVIDER: "openai", MODEL: "gpt-5-mini" });
  assert.deepEqual([code, line], [1, "io-bridge: OPENAI_API_KEY is missing: put the line OPENAI_API_KEY=<your key> into .dev.vars, which git ignores."]);
  assert.match((await tried({ PROVIDER: "openai" })).at(-1), /MODEL must name a model/);
  assert.match((await tried({ PROVIDER: "nobody" })).at(-1), /PROVIDER must be one of demo, openai, /);
});
