// Who may open a socket: the token of contract 7, and the origins of the deployment.

import assert from "node:assert/strict";
import { WebSocketAgent } from "../../clients/websocket-agent.mjs";
import { says } from "./support/openai.mjs";
import { fresh, runInput, user } from "./support/run.mjs";
import { Socket } from "./support/socket.mjs";
import { suite, test } from "./support/suite.mjs";

const shared = suite({
  vars: {
    AUTH: { mode: "bearer", tokens: [{ secret: "TOKEN_WES", owner: "wes" }] },
    CORS_ORIGINS: ["https://app.example"],
  },
  secrets: { TOKEN_WES: "token-of-wes" },
});

test("a token comes as a subprotocol where headers cannot be set", async () => {
  shared.upstream.reply(says("ok"));
  const socket = new Socket(shared.worker, runInput(), { protocols: ["bearer", "token-of-wes"] });
  await socket.rest();
  assert.equal(socket.protocol, "bearer");
});

test("a wrong token or none closes with 4401", async () => {
  for (const protocols of [["bearer", "wrong"], []]) {
    const { code, reason } = await new Socket(shared.worker, runInput(), { protocols }).closed();
    assert.equal(code, 4401);
    assert.match(reason, /"code":"unauthenticated"/);
  }
});

test("another's resourceId closes with 4403", async () => {
  const options = { protocols: ["bearer", "token-of-wes"] };
  assert.equal((await new Socket(shared.worker, runInput({ owner: "eve" }), options).closed()).code, 4403);
  assert.equal((await new Socket(shared.worker, runInput(), { ...options, query: "?resourceId=eve" }).closed()).code, 4403);
});

test("the client of this repository sends its token so", async () => {
  shared.upstream.reply(says("ok"));
  const agent = new WebSocketAgent({
    url: shared.worker.url("/run"),
    headers: { Authorization: "Bearer token-of-wes" },
    threadId: fresh("thread"),
    initialMessages: [user("Hi")],
  });
  await agent.runAgent({ forwardedProps: { agentId: "stub" } });
  assert.equal(agent.messages.at(-1).content, "ok");
});
