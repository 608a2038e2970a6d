// Deployments that differ: with tokens, without a database, without a prefix.

import assert from "node:assert/strict";
import { describe } from "node:test";
import { suite, test } from "./support/page.mjs";

describe("behind tokens", () => {
  const shared = suite({
    vars: { AUTH: { mode: "bearer", tokens: [{ secret: "TOKEN_ANN", owner: "ann" }] } },
    secrets: { TOKEN_ANN: "token-of-ann" },
  });

  test("the page says that a token is wanted, and takes it for every binding", async () => {
    const visitor = await shared.visit({ ready: ".notice" });
    const { page } = visitor;
    await page.getByText("The server wants a token").waitFor();
    await page.getByRole("button", { name: "Open settings" }).click();
    await page.getByLabel("Token").fill("token-of-ann");
    await page.getByLabel("Owner").fill("");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Say hello to Demo").waitFor();
    for (const binding of ["SSE", "Protobuf", "WebSocket"]) {
      await page.getByRole("radio", { name: binding }).check();
      await visitor.ask("Call get_location");
    }
    await page.reload();
    await page.locator(".said").nth(2).waitFor();
    assert.deepEqual(await page.locator(".row-title").allInnerTexts(), ["Call get_location"]);
  });
});

describe("without a database", () => {
  const shared = suite({ without: ["DB"] });

  test("runs work, tools too, and the list says that nothing is kept", async () => {
    const visitor = await shared.visit();
    const { page } = visitor;
    await page.getByText("This server keeps no threads").waitFor();
    await visitor.ask("Draw a shape: a small blue square");
    await page.getByRole("img", { name: "The canvas: a small blue square" }).waitFor();
    await visitor.say("Write 200 words slowly");
    await page.locator(".answer").filter({ hasText: "A run begins" }).waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.locator(".notice").getByText("Stopped").waitFor();
  });
});

describe("without a prefix", () => {
  const shared = suite({ vars: { PREFIX: "" } });

  test("page and API share the root once the page knows", async () => {
    const visitor = await shared.visit({ ready: ".notice" });
    const { page } = visitor;
    await page.getByText("There is no agent server at this address").waitFor();
    await page.getByRole("button", { name: "Open settings" }).click();
    await page.getByLabel("Path of the API").fill("");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Say hello to Demo").waitFor();
    await visitor.ask("hello");
    assert.equal((await visitor.turns()).length, 2);
  });
});
