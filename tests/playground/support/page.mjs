// The playground of a fresh Worker, in a real Chromium.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import net from "node:net";
import { fileURLToPath } from "node:url";
import * as runner from "node:test";
import axe from "axe-core";
import { chromium } from "playwright-core";
import { startWorker } from "../../e2e/support/worker.mjs";

const SCREENSHOTS = fileURLToPath(new URL("../screenshots/", import.meta.url));
const TEST_TIMEOUT_MS = 40_000;
const STEP_TIMEOUT_MS = 15_000;

// The sandbox and the GPU are what a container lacks; the rest keeps Chromium from calling home.
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export const test = (name, body) => runner.test(name, { timeout: TEST_TIMEOUT_MS }, body);

/** One browser and one Worker for the tests of a file; each test opens its own visitors. */
export function suite(options = {}) {
  const shared = { visitors: [] };
  runner.before(async () => {
    mkdirSync(SCREENSHOTS, { recursive: true });
    shared.worker = await startWorker({ page: true, ...options });
    shared.browser = await chromium.launch({ executablePath: process.env.CHROMIUM_BIN ?? "/usr/bin/chromium", args: FLAGS });
  });
  runner.afterEach(async () => {
    for (const visitor of shared.visitors.splice(0)) await visitor.leave();
  });
  runner.after(async () => {
    await shared.browser?.close();
    await shared.worker?.stop();
  });
  shared.visit = async (visitorOptions) => {
    const visitor = await Visitor.come(shared, visitorOptions);
    shared.visitors.push(visitor);
    return visitor;
  };
  return shared;
}

/** A line to the Worker that can be cut, and mended. */
export class Line {
  static async to(worker) {
    const line = new Line();
    const { hostname, port } = new URL(worker.pageOrigin);
    line.sockets = new Set();
    line.isCut = false;
    line.server = net.createServer((near) => {
      if (line.isCut) return near.destroy();
      const far = net.connect(Number(port), hostname);
      for (const [from, to] of [[near, far], [far, near]]) {
        line.sockets.add(from);
        from.on("close", () => (line.sockets.delete(from), to.destroy())).on("error", () => {});
        from.pipe(to);
      }
    });
    await new Promise((listening) => line.server.listen(0, "127.0.0.1", listening));
    line.origin = `http://127.0.0.1:${line.server.address().port}`;
    return line;
  }

  cut() {
    this.isCut = true;
    for (const socket of this.sockets) socket.destroy();
  }

  mend() {
    this.isCut = false;
  }

  close() {
    this.cut();
    this.server.close();
  }
}

/** A person with a browser of their own. */
class Visitor {
  /** Requests that left the server, and what the page complained about. */
  strayRequests = [];
  complaints = [];

  static async come({ browser, worker }, { path = "/", width = 1280, height = 800, scheme = "light", ready = "#message", origin = worker.pageOrigin, ...context } = {}) {
    const visitor = new Visitor();
    visitor.worker = worker;
    visitor.context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, ...context });
    visitor.context.setDefaultTimeout(STEP_TIMEOUT_MS);
    const page = await visitor.context.newPage();
    visitor.page = page;
    visitor.context.on("request", (request) => {
      const asked = new URL(request.url());
      if (asked.protocol.startsWith("http") && asked.origin !== origin) visitor.strayRequests.push(request.url());
    });
    page.on("pageerror", (error) => visitor.complaints.push(error.message));
    page.on("console", (message) => {
      if (/Content.Security.Policy|TrustedScript|TrustedHTML/i.test(message.text())) visitor.complaints.push(message.text());
    });
    await page.goto(origin + path);
    await page.locator(ready).first().waitFor();
    return visitor;
  }

  async leave() {
    await this.context.close();
    assert.deepEqual(this.strayRequests, [], "requests to other servers");
    assert.deepEqual(this.complaints, [], "errors and policy violations");
  }

  /** Types a message and sends it. */
  async say(text) {
    const field = this.page.getByLabel("Message", { exact: true });
    await field.fill(text);
    // Not before the agents are known.
    await this.page.getByRole("button", { name: "Send", disabled: false }).waitFor();
    await field.press("Enter");
  }

  /** Waits until no run is under way. */
  async idle() {
    await this.page.getByRole("button", { name: "Send" }).waitFor();
  }

  async ask(text) {
    await this.say(text);
    await this.page.getByRole("button", { name: "Stop" }).waitFor();
    await this.idle();
  }

  /** The conversation's texts, in order. */
  async turns() {
    const texts = await this.page.locator(".said, .answer").allInnerTexts();
    return texts.map((text) => text.replace(/^You said:\s*/, "").trim());
  }

  isDark() {
    return this.page.evaluate(() => {
      const [red] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number);
      return red < 128;
    });
  }

  /** The rule and the places of everything axe finds wrong. */
  async faults() {
    await this.page.evaluate(axe.source);
    const { violations } = await this.page.evaluate(() => globalThis.axe.run());
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target).join(", ")}`);
  }

  async screenshot(name) {
    await this.page.screenshot({ path: `${SCREENSHOTS}${name}.png` });
  }
}
