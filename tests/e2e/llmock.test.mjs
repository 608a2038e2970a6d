// Model servers that are not ours, second: `llmock` of PyPI breaks OpenAI, Anthropic and Google the way they break, and
// judges how its client took it (contract 2.4, 6).

import assert from "node:assert/strict";
import { after } from "node:test";
import { outline } from "./support/judge.mjs";
import { play, scene } from "./support/play.mjs";
import { skip, startPython } from "./support/python.mjs";
import { refusedRun, run, runInput, user } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";

const FORMS = {
  openai: { model: "gpt-4o", path: "/v1" },
  "openai-responses": { model: "gpt-4o", path: "/v1" },
  anthropic: { model: "claude-sonnet-4-5", path: "/anthropic" },
  google: { model: "gemini-2.5-flash", path: "/gemini/v1beta" },
};

const mock = skip
  ? undefined
  : await startPython({ environment: "llmock-0.2.2", packages: ["llmock==0.2.2"], script: "./serve_llmock.py" });
after(() => mock?.stop());

const shared = suite({
  agents: () =>
    Object.entries(FORMS).map(([provider, { model, path }]) => ({
      id: provider,
      provider,
      model,
      baseUrl: `${mock?.line ?? "http://127.0.0.1"}${path}`,
      upstreamIdleTimeoutMs: 2500,
    })),
});

const control = async (path, body) => {
  const response = await fetch(`${mock.line}/_llmock/${path}`, body && { method: "POST", body: JSON.stringify(body) });
  assert.ok(response.ok, await response.clone().text());
  return response.json();
};

/** What the next requests meet. */
async function script(...behaviors) {
  await control("reset", {});
  if (behaviors.length > 0) await control("scenario", { behaviors });
}

/** What llmock has to say about us. */
const findings = async () => (await control("verdict")).findings.map(({ code }) => code);

const input = (agent, members) => runInput({ agent, messages: [user("play")], ...members });

for (const provider of Object.keys(FORMS)) {
  test(`${provider}: text and a loop of calls [6]`, { skip }, async () => {
    const reply = (members) => ({ type: "reply", ...members });
    const pick = (palette) => ({ name: "pick", arguments: { palette } });
    await script(reply({ tool_calls: [pick("warm"), pick("cold")] }), reply({ text: "Both red." }));
    const lines = scene(await play(shared.worker, provider, "play"));
    // Where a wire has arguments as text, its blanks stay.
    assert.deepEqual(lines.map((line) => line.replace(/": "/, '":"')), [
      "RUN_STARTED",
      "STEP_STARTED step-1",
      "TOOL_CALL_START c1 pick in m1",
      'TOOL_CALL_ARGS c1 {"palette":"warm"}',
      "TOOL_CALL_END c1",
      "TOOL_CALL_START c2 pick in m1",
      'TOOL_CALL_ARGS c2 {"palette":"cold"}',
      "TOOL_CALL_END c2",
      'TOOL_CALL_RESULT c1 {"color":"red"}',
      'TOOL_CALL_RESULT c2 {"color":"red"}',
      "STEP_FINISHED step-1",
      "STEP_STARTED step-2",
      "TEXT_MESSAGE_START m4",
      "TEXT_MESSAGE_CONTENT m4 Both red.",
      "TEXT_MESSAGE_END m4",
      "STEP_FINISHED step-2",
      "RUN_FINISHED",
    ]);
  });

  test(`${provider}: a stream that breaks ends in an error, never in a finished run [2.4]`, { skip }, async () => {
    const faults = {
      disconnect: "upstream_truncated",
      truncate: "upstream_truncated",
      malformed: "invalid_upstream_response",
      stall: "upstream_timeout",
    };
    for (const [kind, code] of Object.entries(faults)) {
      const text = "One two three four five six seven eight.";
      await script({ type: "reply", text }, { type: "stream_fault", kind, after_chunks: 5, stall_seconds: 5 });
      const events = await run(shared.worker, input(provider));
      assert.equal(outline(events).at(-1), `RUN_ERROR ${code}`, kind);
      // What was shown is not asked for again: a second answer would be other words.
      assert.equal((await control("requests")).count, 1, kind);
    }
  });

  test(`${provider}: arguments that are no JSON, and a tool nobody offered, are the model's to mend [2.5]`, { skip }, async () => {
    for (const kind of ["malformed_arguments", "unknown_tool"]) {
      await script({ type: "tool_fault", kind });
      const lines = scene(await play(shared.worker, provider, "pick a palette"));
      const words = /^TEXT_MESSAGE_CONTENT m1 /;
      assert.deepEqual(lines.map((line) => (words.test(line) ? "words" : line)), [
        "RUN_STARTED",
        "STEP_STARTED step-1",
        "STEP_FINISHED step-1",
        "STEP_STARTED step-2",
        "TEXT_MESSAGE_START m1",
        "words",
        "TEXT_MESSAGE_END m1",
        "STEP_FINISHED step-2",
        "RUN_FINISHED",
      ], kind);
    }
  });

  test(`${provider}: refusals are HTTP errors, and a wait is kept [D14]`, { skip }, async () => {
    await script({ type: "fail", status: 429, retry_after: 0.5 }, { type: "fail", status: 503 }, { type: "reply", text: "Hello." });
    assert.equal(scene(await run(shared.worker, input(provider))).at(-1), "RUN_FINISHED");
    assert.deepEqual(await findings(), []);

    await script({ type: "fail", status: 401, times: null });
    await refusedRun(shared.worker, input(provider), 502, "upstream_error");
    assert.deepEqual(await findings(), []);

    await script({ type: "fail", status: 429, retry_after: 60, times: null });
    await refusedRun(shared.worker, input(provider), 429, "upstream_rate_limited");
  });
}
