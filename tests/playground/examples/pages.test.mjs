// The pages of examples/ in a real Chromium, against the demo agent: each calls a tool that changes it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { suite, test } from "../support/page.mjs";

const EXAMPLES = fileURLToPath(new URL("../../../examples/", import.meta.url));
const TEAL = "rgb(0, 128, 128)";
const CALL = 'use set_color with {"color":"teal"}';

const shared = suite();

const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const becomesTeal = (page) => page.waitForFunction((teal) => getComputedStyle(document.body).backgroundColor === teal, TEAL);

test("examples/web sets the colour when the model says so, and shows the answer", async () => {
  const files = createServer(async (request, response) => {
    const name = new URL(request.url, "http://x").pathname.slice(1) || "index.html";
    const type = name.endsWith(".mjs") ? "text/javascript" : "text/html";
    response.writeHead(200, { "content-type": type }).end(await readFile(path.join(EXAMPLES, "web", path.basename(name))).catch(() => ""));
  });
  await new Promise((listening) => files.listen(0, "127.0.0.1", listening));
  const page = await (await shared.browser.newContext()).newPage();
  await page.goto(`http://127.0.0.1:${files.address().port}/?bridge=${encodeURIComponent(shared.worker.url(""))}`);
  assert.notEqual(await background(page), TEAL);
  await page.getByLabel("Message").fill(CALL);
  await page.getByRole("button", { name: "Send" }).click();
  await becomesTeal(page);
  await page.locator("#log .assistant", { hasText: "teal" }).last().waitFor();
  await page.context().close();
  files.closeAllConnections();
  files.close();
});

test("examples/copilotkit sets the colour when the model says so, and shows the answer", async (t) => {
  const env = { ...process.env, PORT: "0", BRIDGE_URL: shared.worker.url("") };
  const server = spawn(process.execPath, [path.join(EXAMPLES, "copilotkit", "server.mjs")], { env, stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => server.kill());
  let url;
  for await (const piece of server.stdout) {
    url = /http:\S+/.exec(piece)?.[0];
    if (url) break;
  }
  const page = await (await shared.browser.newContext()).newPage();
  await page.goto(url);
  // What is typed before it has connected to its agent is lost.
  await page.locator('[data-test-id="copilot-chat-ready"]').waitFor();
  await page.waitForLoadState("networkidle");
  const field = page.getByRole("textbox").first();
  await field.pressSequentially(CALL);
  await field.press("Enter");
  await becomesTeal(page);
  await page.locator(".copilotKitAssistantMessage", { hasText: "teal" }).last().waitFor();
  await page.screenshot({ path: fileURLToPath(new URL("../screenshots/copilotkit.png", import.meta.url)) });
  await page.context().close();
});
