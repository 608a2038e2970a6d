// What an operator sees: log lines, traces, metrics, health.

import assert from "node:assert/strict";
import { DONE, answer, calls, chunk, refuses, says, text, usage } from "./support/openai.mjs";
import { eventually, ok, refused, run, runInput } from "./support/run.mjs";
import { API_KEY, stubAgent, suite, test } from "./support/suite.mjs";
import { startWorker } from "./support/worker.mjs";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-01$/;

const shared = suite({
  agents: (stub) => [stub(), stub({ id: "with-tools", tools: ["weather"] }), stub({ id: "with-mcp", tools: ["weather"], mcp: ["elsewhere"] })],
  vars: ({ url }) => ({
    TOOLS: { weather: { description: "The weather.", url: `${url}/weather`, allowPrivate: true } },
    MCP_SERVERS: { elsewhere: { url: `${url}/mcp`, allowPrivate: true } },
  }),
});

/** What `act` gives, and the lines of requests logged until there is one of this event; an isolate's own are left out. */
async function logged(event, act, worker = shared.worker) {
  const before = worker.lines.length;
  const result = await act();
  const read = () => worker.lines.slice(before).map(({ message }) => JSON.parse(message)).filter(({ requestId }) => requestId);
  const lines = await eventually(read, (lines) => lines.some((line) => line.event === event));
  return { result, lines };
}

/** A line without what differs each time, which is checked by its form. */
function steady({ requestId, traceId, object, durationMs, firstOutputMs, upstreamBytes, ...line }) {
  assert.match(requestId, /^[0-9a-f-]{36}$/);
  assert.match(traceId, /^[0-9a-f]{32}$/);
  if (object !== undefined) assert.match(object, /^[0-9a-f]{64}$/);
  for (const number of [durationMs, firstOutputMs, upstreamBytes]) assert.ok(number === undefined || Number.isInteger(number));
  return line;
}

test("a request is one line, which has its path as a template", async () => {
  const { result, lines } = await logged("request", () => shared.worker.fetch("/threads/a%20secret/"));
  const answerBytes = Buffer.byteLength(await result.text());
  assert.equal(lines[0].requestId, result.headers.get("x-request-id"));
  assert.deepEqual(lines.map(steady), [
    { level: "info", event: "request", method: "GET", route: "/threads/:threadId", status: 404, code: "thread_not_found", answerBytes },
  ]);
  const { result: other, lines: unknown } = await logged("request", () => shared.worker.fetch("/secret", { method: "POST" }));
  const otherBytes = Buffer.byteLength(await other.text());
  assert.deepEqual(unknown.map(steady), [
    { level: "info", event: "request", method: "POST", status: 404, code: "route_not_found", answerBytes: otherBytes },
  ]);
});

test("a run is one line of its object beside the request's, without a word that was said", async () => {
  shared.upstream.reply(calls([["current_time", {}]]));
  shared.upstream.reply(says("A private answer."));
  const input = runInput({ owner: "a private person" });
  const { lines } = await logged("run_ended", () => run(shared.worker, input));
  assert.equal(new Set(lines.map(({ requestId, traceId }) => requestId + traceId)).size, 1);
  const byEvent = Object.fromEntries(lines.map((line) => [line.event, steady(line)]));
  assert.deepEqual(byEvent, {
    request: { level: "info", event: "request", method: "POST", route: "/run", status: 200 },
    run_ended: {
      level: "info",
      event: "run_ended",
      runId: input.runId,
      threadId: input.threadId,
      agentId: "stub",
      provider: "openai",
      model: "stub-1",
      status: "finished",
      stepCount: 2,
      retryCount: 0,
      toolCallCount: 1,
    },
  });
  const ended = lines.find(({ event }) => event === "run_ended");
  assert.ok(ended.upstreamBytes > 100 && ended.firstOutputMs <= ended.durationMs);
  // Words that no id can hold by chance: a short name of the letters a to f would be found in one of them now and then.
  assert.doesNotMatch(JSON.stringify(lines), /private|Hello/);
});

test("the lines of a failing run say what failed, how often and with which end", async () => {
  const overloaded = refuses(503, { headers: { "retry-after": "0" }, body: { error: { message: "no GPU left", type: "overloaded" } } });
  shared.upstream.reply(overloaded);
  shared.upstream.reply(overloaded);
  const input = runInput({ forwardedProps: { modelSettings: { maxRetries: 1 } } });
  const { result, lines } = await logged("request", () => shared.worker.fetch("/run", { json: input }));
  await refused(result, 502, "upstream_error");
  const told = lines.map(steady).map(({ runId, threadId, agentId, provider, model, answerBytes, ...line }) => line);
  const failed = (attempt) => ({ level: "warn", event: "upstream_failed", attempt, error: told[0].error, detail: told[0].detail });
  assert.match(told[0].error, /503/);
  assert.match(told[0].detail, /no GPU left/);
  assert.deepEqual(told, [
    failed(1),
    failed(2),
    { level: "info", event: "run_ended", status: "failed", code: "upstream_error", stepCount: 1, retryCount: 1, toolCallCount: 0 },
    { level: "info", event: "run_refused", status: 502, code: "upstream_error" },
    { level: "info", event: "request", method: "POST", route: "/run", status: 502 },
  ]);
});

test("LOG_LEVEL says from which level on there are lines", async (t) => {
  const worker = await startWorker({ vars: { LOG_LEVEL: "error" } });
  t.after(() => worker.stop());
  await ok(await worker.fetch("/agents"));
  await refused(await worker.fetch("/nothing"), 404);
  assert.deepEqual(worker.lines, []);
});

const of = (path) => ({ when: (request) => request.path.startsWith(path) });

/** Runs with this `traceparent`, which calls the model twice, an HTTP tool and perhaps an MCP server: what they got. */
async function traced(traceparent, agent = "with-tools") {
  const before = shared.upstream.requests.length;
  if (agent === "with-mcp") shared.upstream.reply(refuses(404), of("/mcp"));
  shared.upstream.reply(calls([["weather", {}]]), of("/v1/"));
  shared.upstream.reply((exchange) => exchange.head(200, { "content-type": "application/json" }).end("{}"), of("/weather"));
  shared.upstream.reply(says("Sunny."), of("/v1/"));
  const headers = traceparent === undefined ? {} : { traceparent };
  const { lines } = await logged("run_ended", () => run(shared.worker, runInput({ agent }), { headers }));
  const sent = shared.upstream.requests.slice(before).map((request) => TRACEPARENT.exec(request.headers.traceparent));
  assert.equal(sent.length, agent === "with-mcp" ? 4 : 3);
  assert.equal(new Set(sent.map(([, , span]) => span)).size, sent.length, "each call is a span of its own");
  const traces = new Set([...sent.map(([, trace]) => trace), ...lines.map(({ traceId }) => traceId)]);
  assert.equal(traces.size, 1);
  return { trace: [...traces][0], spans: sent.map(([, , span]) => span) };
}

test("the trace of a request goes on to the model, to tools and to MCP servers", async () => {
  const { trace, spans } = await traced(`00-${TRACE}-00f067aa0ba902b7-01`, "with-mcp");
  assert.equal(trace, TRACE);
  assert.ok(!spans.includes("00f067aa0ba902b7"));
});

test("a trace begins here where there is none that can be read", async () => {
  const { trace } = await traced(undefined);
  assert.match(trace, /^[0-9a-f]{32}$/);
  const { trace: other } = await traced(`00-${TRACE}-0000000000000000-01`);
  assert.ok(![TRACE, trace].includes(other));
});

test("each run is a data point where there is a data set", async (t) => {
  const worker = await startWorker({ agents: [stubAgent(shared.upstream)], secrets: { OPENAI_API_KEY: API_KEY }, metrics: true });
  t.after(() => worker.stop());
  shared.upstream.reply(answer(text("Hi."), chunk({}, "stop"), usage(11, 7), DONE));
  await run(worker, runInput());
  const [point] = await eventually(worker.points, (points) => points.length === 1);
  const { doubles: [durationMs, firstOutputMs, stepCount, retryCount, toolCallCount, upstreamBytes, ...tokens], ...rest } = point;
  assert.deepEqual(rest, { indexes: ["stub"], blobs: ["finished", "", "stub", "openai", "stub-1"] });
  assert.deepEqual({ stepCount, retryCount, toolCallCount, tokens }, { stepCount: 1, retryCount: 0, toolCallCount: 0, tokens: [11, 7] });
  assert.ok(durationMs >= firstOutputMs && upstreamBytes > 0);
});

test("health is known to anybody, the health of the parts to who runs them", async (t) => {
  const tokens = [{ secret: "ADMIN", owner: "*" }, { secret: "ADA", owner: "ada" }];
  const secrets = { ADMIN: "admin-token", ADA: "ada-token", OPENAI_API_KEY: API_KEY };
  const worker = await startWorker({ agents: [stubAgent(shared.upstream)], vars: { AUTH: { mode: "bearer", tokens } }, secrets });
  t.after(() => worker.stop());
  const deep = (token) => worker.fetch("/health?deep=1", { headers: token ? { authorization: `Bearer ${token}` } : {} });
  assert.deepEqual(await ok(await worker.fetch("/health")), { status: "ok" });
  assert.deepEqual(await ok(await worker.fetch("/health?deep=0")), { status: "ok" });
  await refused(await worker.fetch("/health?deep=maybe"), 400, "invalid_query");
  await refused(await deep(), 401, "unauthenticated");
  await refused(await deep(secrets.ADA), 403, "forbidden");
  const { agents } = await ok(await worker.fetch("/agents", { headers: { authorization: `Bearer ${secrets.ADMIN}` } }));
  const each = Object.fromEntries(agents.map(({ id }) => [id, "ok"]));
  const checks = { database: "ok", search: "absent", object: "ok", agents: each };
  assert.deepEqual(await ok(await deep(secrets.ADMIN)), { status: "ok", checks });
});

test("what does not work is told by name, with the reason in the log only", async (t) => {
  const agents = [stubAgent(shared.upstream, { id: "keyless", apiKeySecret: "NOT_SET" })];
  const worker = await startWorker({ agents, search: true });
  t.after(() => worker.stop());
  const response = await worker.fetch("/health?deep=1");
  assert.equal(response.headers.get("retry-after"), "60");
  const { error: _, ...body } = await refused(response, 503, "unhealthy");
  const { agents: listed } = await ok(await worker.fetch("/agents"));
  const each = Object.fromEntries(listed.map(({ id }) => [id, id === "keyless" ? "not_configured" : "ok"]));
  const checks = { database: "ok", search: "ok", object: "ok", agents: each };
  assert.deepEqual(body, { code: "unhealthy", status: "failing", checks });
  assert.ok(!JSON.stringify(body).includes("NOT_SET"));
});
