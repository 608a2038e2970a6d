// Servers that want more than a base address and a key: what an agent's `headers` and `query` send (contract 6).

import assert from "node:assert/strict";
import { says } from "./support/openai.mjs";
import { refusedRun, run, runInput } from "./support/run.mjs";
import { suite, test } from "./support/suite.mjs";

const GATEWAY = "/v1/account/gateway";

const shared = suite({
  agents: (stub) => [
    stub(),
    stub({
      id: "azure",
      baseUrl: `${stub().baseUrl.replace("/v1", "")}/openai/deployments/mine`,
      model: "gpt-4o",
      apiKeySecret: "",
      headers: { "Api-Key": "${AZURE_OPENAI_API_KEY}" },
      query: { "api-version": "2024-10-21" },
    }),
    stub({
      id: "gateway",
      baseUrl: `${stub().baseUrl.replace("/v1", GATEWAY)}/openai`,
      headers: { "cf-aig-authorization": "Bearer ${CF_AIG_TOKEN}", "cf-aig-cache-ttl": "60" },
    }),
    stub({
      id: "gateway-anthropic",
      provider: "anthropic",
      model: "claude-sonnet-4-5",
      baseUrl: `${stub().baseUrl.replace("/v1", GATEWAY)}/anthropic`,
      maxRetries: 0,
    }),
    stub({
      id: "gateway-google",
      provider: "google",
      model: "gemini-2.5-flash",
      baseUrl: `${stub().baseUrl.replace("/v1", GATEWAY)}/google-ai-studio/v1beta`,
      query: { trace: "a b" },
      maxRetries: 0,
    }),
    stub({ id: "incomplete", headers: { "api-key": "${NO_SUCH_SECRET}" } }),
  ],
  secrets: {
    AZURE_OPENAI_API_KEY: "azure-key",
    CF_AIG_TOKEN: "gateway-token",
    ANTHROPIC_API_KEY: "anthropic-key",
    GEMINI_API_KEY: "google-key",
  },
});

/** Path and named headers of the one request a run of this agent makes. */
async function asked(agent, names) {
  await run(shared.worker, runInput({ agent }));
  const [{ path, headers }] = shared.upstream.requests;
  return [path, Object.fromEntries(names.map((name) => [name, headers[name]]))];
}

test("Azure OpenAI: deployment, api-version and its own key header, and no other key", async () => {
  shared.upstream.reply(says("Hello."));
  assert.deepEqual(await asked("azure", ["api-key", "authorization"]), [
    "/openai/deployments/mine/chat/completions?api-version=2024-10-21",
    { "api-key": "azure-key", authorization: undefined },
  ]);
});

test("Cloudflare AI Gateway: its token beside the vendor's key", async () => {
  shared.upstream.reply(says("Hello."));
  assert.deepEqual(await asked("gateway", ["authorization", "cf-aig-authorization", "cf-aig-cache-ttl"]), [
    `${GATEWAY}/openai/chat/completions`,
    {
      authorization: "Bearer sk-secret-of-the-tests",
      "cf-aig-authorization": "Bearer gateway-token",
      "cf-aig-cache-ttl": "60",
    },
  ]);
});

test("Cloudflare AI Gateway: the paths of vendors with a form of their own", async () => {
  for (const [agent, path, header] of [
    ["gateway-anthropic", "/anthropic/v1/messages", "x-api-key"],
    ["gateway-google", "/google-ai-studio/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse&trace=a%20b", "x-goog-api-key"],
  ]) {
    shared.upstream.requests.length = 0;
    shared.upstream.reply(async (exchange) => {
      exchange.head(401, { "content-type": "application/json" });
      exchange.end("{}");
    });
    await refusedRun(shared.worker, runInput({ agent }), 502, "upstream_error");
    const [request] = shared.upstream.requests;
    assert.equal(request.path, `${GATEWAY}${path}`);
    assert.match(request.headers[header], /-key$/);
  }
});

test("an agent whose header lacks its secret is not configured [D3]", async () => {
  await refusedRun(shared.worker, runInput({ agent: "incomplete" }), 503, "agent_not_configured");
  await shared.worker.logged(/NO_SUCH_SECRET/);
});
