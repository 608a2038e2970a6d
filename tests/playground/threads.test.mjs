// Threads outlive the page, and so do runs.

import assert from "node:assert/strict";
import { Line, suite, test } from "./support/page.mjs";

const shared = suite();

test("a reload keeps the history, tools and all", async () => {
  const visitor = await shared.visit();
  const { page } = visitor;
  await visitor.ask("Draw a shape: a large red heart");
  await visitor.ask("hello");
  const turns = await visitor.turns();
  assert.equal(turns.length, 5);
  await page.reload();
  await page.getByRole("img", { name: "The canvas: a large red heart" }).waitFor();
  assert.deepEqual(await visitor.turns(), turns);
});

test("an answer in flight goes on after a reload, and shows once", async () => {
  const visitor = await shared.visit();
  const { page } = visitor;
  await visitor.say("Write 40 words slowly");
  await page.locator(".answer").filter({ hasText: "A run begins" }).waitFor();
  await page.reload();
  await page.getByRole("button", { name: "Stop" }).waitFor();
  await visitor.idle();
  const turns = await visitor.turns();
  assert.equal(turns.length, 2);
  assert.equal(turns[1].split(" ").length, 40);
  await page.reload();
  await page.locator(".answer").waitFor();
  assert.deepEqual(await visitor.turns(), turns);
});

test("a question still open is asked again after a reload, an answered one is not", async () => {
  const visitor = await shared.visit();
  const { page } = visitor;
  await visitor.say('Ask for confirmation: "First?" then ask for confirmation: "Second?"');
  await page.getByRole("alertdialog").getByText("First?").waitFor();
  await page.getByRole("button", { name: "Yes, go ahead" }).click();
  await page.getByRole("alertdialog").getByText("Second?").waitFor();
  await page.reload();
  await page.getByRole("alertdialog").getByText("Second?").waitFor();
  await page.getByRole("button", { name: "No", exact: true }).click();
  await visitor.idle();
  assert.deepEqual(await page.locator(".call-status").allInnerTexts(), ["Done", "Done"]);
});

test("a stream is read again over a new connection, and the run goes on", async () => {
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

test("a connection that breaks is taken up again by itself", async (context) => {
  const line = await Line.to(shared.worker);
  context.after(() => line.close());
  const visitor = await shared.visit({ origin: line.origin });
  const { page } = visitor;
  await visitor.say("Write 40 words slowly");
  await page.locator(".answer").filter({ hasText: "A run begins" }).waitFor();
  line.cut();
  await page.locator(".run-footer").getByText("Reconnecting").waitFor();
  line.mend();
  await visitor.idle();
  assert.equal((await visitor.turns())[1].split(" ").length, 40);
});

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
  await visitor.idle();
  assert.equal((await visitor.turns())[1].split(" ").length, 40);
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
  const json = { ...ids, status: "running", generation: 1, eventCount: 0, pendingToolCalls: [] };
  await page.route(/\/runs\/[^/]+\?/, (route) => route.fulfill({ json }));
  const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
  await page.route(/\/runs\/[^/]+\/events/, (route) => route.fulfill({ contentType: "text/event-stream", body }));
  await page.getByRole("button", { name: "Reconnect" }).click();
  await visitor.idle();
  assert.deepEqual(await visitor.turns(), ["Write 40 words slowly", "Once more."]);
});

test("threads are listed, searched, renamed and deleted", async () => {
  const visitor = await shared.visit();
  const { page } = visitor;
  const rows = page.getByRole("navigation", { name: "Threads" }).locator(".row-title");
  await visitor.ask("hello apples");
  await page.getByRole("button", { name: "New chat" }).first().click();
  await visitor.ask("hello pears");
  await rows.nth(1).waitFor();
  assert.deepEqual(await rows.allInnerTexts(), ["hello pears", "hello apples"]);

  await page.getByLabel("Search threads").fill("apple");
  await page.waitForFunction(() => document.querySelectorAll(".row").length === 1);
  await page.getByRole("button", { name: "Rename hello apples" }).click();
  await page.getByLabel("Title").fill("Fruit, with apples");
  await page.keyboard.press("Enter");
  await rows.getByText("Fruit, with apples").waitFor();

  await rows.getByText("Fruit, with apples").click();
  await page.locator(".said").getByText("hello apples").waitFor();
  await page.getByRole("button", { name: "Delete Fruit, with apples" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("Nothing found.").waitFor();
  assert.equal(await page.locator(".said").count(), 0);
  await page.getByLabel("Search threads").fill("");
  await rows.getByText("hello pears").waitFor();
  assert.deepEqual(await rows.allInnerTexts(), ["hello pears"]);
});

test("a run goes on while another thread is looked at", async () => {
  const visitor = await shared.visit();
  const { page } = visitor;
  await visitor.say("Write 40 words slowly");
  await page.locator(".answer").filter({ hasText: "A run begins" }).waitFor();
  await page.getByRole("button", { name: "New chat" }).first().click();
  await visitor.ask("hello");
  await page.goBack();
  await page.locator(".said").getByText("Write 40 words slowly").waitFor();
  await visitor.idle();
  const turns = await visitor.turns();
  assert.equal(turns.length, 2);
  assert.equal(turns[1].split(" ").length, 40);
});

test("an agent that stops with its last viewer keeps what it had said", async () => {
  const visitor = await shared.visit();
  const { page } = visitor;
  await page.getByLabel("Agent", { exact: true }).selectOption("io-agent");
  await visitor.say("Write 200 words slowly");
  await page.locator(".answer").filter({ hasText: "A run begins" }).waitFor();
  await page.reload();
  await page.locator(".answer").waitFor();
  const turns = await visitor.turns();
  assert.equal(turns[0], "Write 200 words slowly");
  assert.match(turns[1], /^A run begins/);
});

test("two people see their own threads only", async () => {
  const [ada, bob] = [await shared.visit(), await shared.visit()];
  await ada.ask("hello from Ada");
  await bob.ask("hello from Bob");
  assert.deepEqual(await bob.page.locator(".row-title").allInnerTexts(), ["hello from Bob"]);
  await bob.page.goto(ada.page.url());
  await bob.page.getByText("This belongs to somebody else").waitFor();
});
