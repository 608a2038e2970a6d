// A person talks to the demo agent: what is said, called, asked, and what becomes of it.

import assert from "node:assert/strict";
import { suite, test } from "./support/page.mjs";

const shared = suite();

test("an answer streams in as Markdown, with its time and tokens", async () => {
  const visitor = await shared.visit();
  await visitor.ask("Show me some Markdown");
  const { page } = visitor;
  await page.getByRole("heading", { name: "A sample of Markdown" }).waitFor();
  await page.locator(".answer pre code").waitFor();
  assert.deepEqual(await page.locator(".answer th").allInnerTexts(), ["Event", "Sent"]);
  assert.match(await page.locator("dl.run-footer").innerText(), /Took\s+\d.*First word\s+\d.*Tokens\s+\d+ in, \d+ out/s);
});

for (const binding of ["SSE", "Protobuf", "WebSocket"]) {
  test(`tools of the page are executed and shown, over ${binding}`, async () => {
    const visitor = await shared.visit();
    const { page } = visitor;
    await page.getByRole("radio", { name: binding }).check();
    await visitor.ask("Draw a shape: a large orange star then draw a shape: a small teal circle");
    await page.getByRole("img", { name: "The canvas: a large orange star, a small teal circle" }).waitFor();
    const cards = page.getByRole("group", { name: "Tool call draw_shape" });
    assert.deepEqual(await cards.locator(".call-status").allInnerTexts(), ["Done", "Done"]);
    await cards.first().locator("summary").click();
    const shown = await cards.first().locator("pre").allInnerTexts();
    assert.deepEqual(shown.map((text) => JSON.parse(text)), [
      { shape: "star", color: "orange", size: "large" },
      { drawn: "a large orange star" },
    ]);
  });
}

test("the agent changes the colours of the page", async () => {
  const visitor = await shared.visit();
  assert.equal(await visitor.isDark(), false);
  await visitor.ask("Set the theme to dark");
  assert.equal(await visitor.isDark(), true);
});

test("a dialog waits for the person, and the answer goes on from what they say", async () => {
  const visitor = await shared.visit();
  const { page } = visitor;
  await visitor.say('Ask for confirmation: "Shall I publish the report?"');
  const dialog = page.getByRole("alertdialog", { name: "The agent asks" });
  await dialog.getByText("Shall I publish the report?").waitFor();
  await page.getByText("Waiting for you").waitFor();
  await dialog.getByRole("button", { name: "Yes, go ahead" }).click();
  await visitor.idle();
  assert.equal((await visitor.turns()).at(-1), 'The tool ask_confirmation answered: {"confirmed":true}');
});

test("Escape in a dialog is a no", async () => {
  const visitor = await shared.visit();
  await visitor.say('Ask for confirmation: "Shall I publish the report?"');
  await visitor.page.getByRole("alertdialog").waitFor();
  await visitor.page.keyboard.press("Escape");
  await visitor.idle();
  assert.equal((await visitor.turns()).at(-1), 'The tool ask_confirmation answered: {"confirmed":false}');
});

test("what a tool refuses goes back to the agent as a failure", async () => {
  const visitor = await shared.visit();
  await visitor.ask('use draw_shape with {"shape": "star", "color": "no such colour", "size": "small"}');
  await visitor.page.getByText("Failed", { exact: true }).waitFor();
  assert.match((await visitor.turns()).at(-1), /failed: no such colour is not a CSS colour/);
});

test("the end of an answer stays in sight, unless the person looks elsewhere", async () => {
  const visitor = await shared.visit();
  const { page } = visitor;
  const isAtEnd = () => {
    const { scrollHeight, scrollTop, clientHeight } = document.querySelector(".chat");
    return scrollHeight - scrollTop - clientHeight < 2;
  };
  await visitor.ask("Write 300 words");
  await page.locator("dl.run-footer").waitFor();
  await visitor.ask("Show me some Markdown");
  await page.waitForFunction(isAtEnd);
  await page.locator(".chat").evaluate((chat) => (chat.scrollTop = 0));
  await page.getByRole("button", { name: "Latest" }).waitFor();
  assert.equal(await page.evaluate(isAtEnd), false);
  await page.getByRole("button", { name: "Latest" }).click();
  await page.waitForFunction(isAtEnd);
});

test("what the agent thinks is there to be opened, also after a reload", async () => {
  const visitor = await shared.visit();
  const { page } = visitor;
  await visitor.ask("think");
  for (const isAgain of [false, true]) {
    if (isAgain) await page.reload();
    await page.getByText("Thought first").click();
    await page.getByText("The person wants to see reasoning.").waitFor();
  }
});

test("a run is stopped, and what it said stays", async () => {
  const visitor = await shared.visit();
  const { page } = visitor;
  await visitor.say("Write 200 words slowly");
  await page.locator(".answer").filter({ hasText: "A run" }).waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Stopped", { exact: true }).first().waitFor();
  await visitor.idle();
  const turns = await visitor.turns();
  await page.reload();
  await page.locator(".answer").waitFor();
  assert.deepEqual(await visitor.turns(), turns);
});

test("a failure is said in plain words, and can be tried again", async () => {
  const visitor = await shared.visit();
  const { page } = visitor;
  await visitor.say("fail");
  const notice = page.getByRole("alert");
  await notice.getByText("The model's server reported an error.").waitFor();
  await notice.getByText("upstream_error").waitFor();
  await notice.getByRole("button", { name: "Try again" }).click();
  await notice.getByText("The answer was interrupted").waitFor();
  assert.equal(await page.locator(".said").count(), 2);
});

test("a refusal before the stream says when to come back", async () => {
  const visitor = await shared.visit();
  await visitor.say("rate limit");
  await visitor.page.getByRole("alert").getByText(/Wait 30 seconds, then try again/).waitFor();
});
