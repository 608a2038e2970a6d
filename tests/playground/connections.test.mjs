// Connections break; runs go on, and so does the page (clients/run-connection.mjs).

import assert from "node:assert/strict";
import { eventually } from "../e2e/support/run.mjs";
import { Line, suite, test } from "./support/page.mjs";

const shared = suite();

test("a run goes on over a new connection", async () => {
  const visitor = await shared.visit();
  const { page } = visitor;
  await visitor.say("Write 40 words slowly");
  await page.locator(".answer").filter({ hasText: "A run begins" }).waitFor();
  await page.getByRole("button", { name: "Reconnect" }).click();
  await visitor.idle();
  const turns = await visitor.turns();
  assert.equal(turns.length, 2);
  assert.equal(turns[1].split(" ").length, 40);
});

for (const binding of ["SSE", "Protobuf", "WebSocket"]) {
  test(`the cable is pulled, and the answer goes on, over ${binding}`, async (context) => {
    const line = await Line.to(shared.worker);
    context.after(() => line.close());
    const visitor = await shared.visit({ origin: line.origin });
    const { page } = visitor;
    await page.getByRole("radio", { name: binding }).check();
    await visitor.say("Write 40 words slowly");
    await page.locator(".answer").filter({ hasText: "A run begins" }).waitFor();
    line.cut();
    await page.locator(".run-footer").getByText("Reconnecting").waitFor();
    line.mend();
    await visitor.idle();
    const turns = await visitor.turns();
    assert.equal(turns[1].split(" ").length, 40);
    await page.reload();
    await page.locator(".answer").waitFor();
    assert.deepEqual(await visitor.turns(), turns, "what was shown is what was stored");
  });
}

test("a connection that stays broken is said, and mended by hand", async (context) => {
  const line = await Line.to(shared.worker);
  context.after(() => line.close());
  const visitor = await shared.visit({ origin: line.origin });
  const { page } = visitor;
  await visitor.say("Write 40 words slowly");
  await page.locator(".answer").filter({ hasText: "A run begins" }).waitFor();
  line.cut();
  const notice = page.getByRole("alert");
  await notice.getByText("The connection was lost").waitFor();
  line.mend();
  await notice.getByRole("button", { name: "Reconnect" }).click();
  await notice.waitFor({ state: "hidden" });
  await visitor.idle();
  // Of a run that has ended meanwhile the page reads the rest from its thread.
  const wordCount = async () => (await visitor.turns())[1].split(" ").length;
  assert.equal(await eventually(wordCount, (count) => count >= 40), 40);
});

test("an answer given while the line is down arrives when it is mended", async (context) => {
  const line = await Line.to(shared.worker);
  context.after(() => line.close());
  const visitor = await shared.visit({ origin: line.origin });
  const { page } = visitor;
  await visitor.say('Ask for confirmation: "Shall I?"');
  await page.getByRole("alertdialog").waitFor();
  line.cut();
  await page.getByRole("button", { name: "Yes, go ahead" }).click();
  await page.locator(".run-footer").getByText("Reconnecting").waitFor();
  line.mend();
  await visitor.idle();
  assert.match((await visitor.turns()).at(-1), /"confirmed":true/);
});

test("what a run said before it was restarted gives way to what it says now", async () => {
  const visitor = await shared.visit();
  const { page } = visitor;
  await visitor.say("Write 40 words slowly");
  await page.locator(".answer").filter({ hasText: "A run begins" }).waitFor();
  // As the server answers once it has restarted a run; nothing outside it can make it do so.
  const ids = { threadId: "t", runId: "r" };
  const events = [
    { type: "RUN_STARTED", ...ids },
    { type: "TEXT_MESSAGE_START", messageId: "anew", role: "assistant" },
    { type: "TEXT_MESSAGE_CONTENT", messageId: "anew", delta: "Once more." },
    { type: "TEXT_MESSAGE_END", messageId: "anew" },
    { type: "RUN_FINISHED", ...ids },
  ];
  const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
  const anew = { headers: { "content-type": "text/event-stream", "io-run-generation": "1" }, body };
  const changed = { status: 409, json: { error: "The run was restarted.", code: "generation_changed", generation: 1 } };
  await page.route(/\/runs\/[^/]+\/events/, (route) => route.fulfill(/generation=0/.test(route.request().url()) ? changed : anew));
  await page.getByRole("button", { name: "Reconnect" }).click();
  await visitor.idle();
  assert.deepEqual(await visitor.turns(), ["Write 40 words slowly", "Once more."]);
});
