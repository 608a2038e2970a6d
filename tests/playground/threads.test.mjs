// Threads outlive the page, and so do runs.

import assert from "node:assert/strict";
import { suite, test } from "./support/page.mjs";

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
