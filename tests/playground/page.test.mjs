// What the page is to everyone: readable by screen readers, usable on a phone, private, and looked at.

import assert from "node:assert/strict";
import { suite, test } from "./support/page.mjs";

const shared = suite({
  agents: [{ id: "keyless", name: "Without a key", provider: "openai", model: "m", apiKeySecret: "NO_SUCH_SECRET" }],
});

const phone = { width: 390, height: 844, hasTouch: true, isMobile: true };

/** A conversation with a bit of everything. */
async function conversation(visitor) {
  await visitor.ask("Show me some Markdown");
  await visitor.ask("Draw a shape: a large orange star then draw a shape: a small teal circle");
  await visitor.ask("Call get_location and current_time");
}

for (const scheme of ["light", "dark"]) {
  test(`axe finds nothing in the ${scheme} theme: empty, talking, asking, set up`, async () => {
    const visitor = await shared.visit({ scheme, width: 1440, height: 900 });
    const { page } = visitor;
    assert.equal(await visitor.isDark(), scheme === "dark");
    assert.deepEqual(await visitor.faults(), []);
    await visitor.screenshot(`wide-${scheme}-empty`);
    await conversation(visitor);
    await page.locator(".frame").first().click();
    assert.deepEqual(await visitor.faults(), []);
    await visitor.screenshot(`wide-${scheme}`);
    await visitor.say('Ask for confirmation: "Shall I publish the report?"');
    await page.getByRole("alertdialog").waitFor();
    assert.deepEqual(await visitor.faults(), []);
    await visitor.screenshot(`wide-${scheme}-dialog`);
    await page.keyboard.press("Escape");
    await visitor.idle();
    await visitor.say("fail");
    await page.getByRole("alert").waitFor();
    await page.getByRole("button", { name: "Settings" }).click();
    assert.deepEqual(await visitor.faults(), []);
    await visitor.screenshot(`wide-${scheme}-settings`);
  });

  test(`on a phone in the ${scheme} theme everything is reached, and nothing is cut off`, async () => {
    const visitor = await shared.visit({ scheme, ...phone });
    const { page } = visitor;
    const isWide = () => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    await visitor.screenshot(`phone-${scheme}-empty`);
    await conversation(visitor);
    assert.equal(await isWide(), false);
    assert.deepEqual(await visitor.faults(), []);
    await visitor.screenshot(`phone-${scheme}`);
    await page.getByRole("button", { name: "Threads", exact: true }).click();
    await page.getByLabel("Search threads").waitFor();
    assert.deepEqual(await visitor.faults(), []);
    await visitor.screenshot(`phone-${scheme}-threads`);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Event inspector" }).click();
    await page.locator(".frame").first().waitFor();
    assert.deepEqual(await visitor.faults(), []);
    await visitor.screenshot(`phone-${scheme}-inspector`);
    assert.equal(await isWide(), false);
  });
}

test("a person with a keyboard sends, answers and finds threads", async () => {
  const visitor = await shared.visit();
  const { page } = visitor;
  const focused = () => page.evaluate(() => document.activeElement?.id);
  assert.equal(await focused(), "message");
  await page.keyboard.type('Ask for confirmation: "Shall I?"');
  await page.keyboard.press("Enter");
  await page.getByRole("alertdialog").waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await visitor.idle();
  assert.match((await visitor.turns()).at(-1), /"confirmed":true/);
  assert.equal(await focused(), "message");
  await page.keyboard.press("Control+k");
  await page.waitForFunction(() => document.activeElement?.id === "search");
});

test("the inspector shows every frame, filters them, and gives them away", async () => {
  const visitor = await shared.visit({ width: 1440, height: 900, permissions: ["clipboard-read", "clipboard-write"] });
  const { page } = visitor;
  await visitor.ask("Call current_time");
  const types = await page.locator(".frame-type").allInnerTexts();
  assert.deepEqual([types[0], types.at(-1)], ["RUN_STARTED", "RUN_FINISHED"]);

  await page.getByRole("group", { name: "Kind of event" }).getByText("Tools").click();
  assert.deepEqual(await page.locator(".frame-type").allInnerTexts(), ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"]);
  await page.locator(".frame").first().click();
  const frame = JSON.parse(await page.locator(".frame-detail pre").innerText());
  assert.deepEqual([frame.type, frame.toolCallName], ["TOOL_CALL_START", "current_time"]);
  await page.getByLabel("Filter frames").fill("weekday");
  assert.deepEqual(await page.locator(".frame-type").allInnerTexts(), ["TOOL_CALL_RESULT"]);

  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download the frames as .sse" }).click()]);
  const chunks = await (await download.createReadStream()).toArray();
  const frames = Buffer.concat(chunks).toString().trimEnd().split("\n\n");
  assert.deepEqual(frames.map((text) => JSON.parse(text.replace(/^data: /, "")).type), types);

  await page.getByRole("button", { name: "curl" }).click();
  await page.getByText("Copied").waitFor();
  const command = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(command, /^curl -sN 'http:\/\/127\.0\.0\.1:\d+\/io-bridge\/run' .*-d '\{/);
  assert.equal(JSON.parse(command.match(/ -d '(.*)'$/s)[1]).messages[0].content, "Call current_time");
});

test("an agent without a key says what is missing", async () => {
  const visitor = await shared.visit();
  const { page } = visitor;
  await page.getByLabel("Agent", { exact: true }).selectOption("keyless");
  await visitor.say("hello");
  await page.getByRole("alert").getByText("The agent is not ready").waitFor();
});

test("files of the page and routes of the API do not get into each other's way", async () => {
  const { pageOrigin } = shared.worker;
  const navigation = { headers: { "sec-fetch-mode": "navigate", accept: "text/html" } };
  const answers = {};
  for (const path of ["/", "/playground.js", "/io-bridge", "/io-bridge/agents", "/io-bridge/nothing", "/nothing"]) {
    const response = await fetch(pageOrigin + path, navigation);
    answers[path] = `${response.status} ${response.headers.get("content-type")}`;
    await response.arrayBuffer();
  }
  assert.deepEqual(answers, {
    "/": "200 text/html; charset=utf-8",
    "/playground.js": "200 text/javascript; charset=utf-8",
    "/io-bridge": "200 application/json",
    "/io-bridge/agents": "200 application/json",
    "/io-bridge/nothing": "404 application/json",
    "/nothing": "404 application/json",
  });
});
