// The page at /docs: the API's description, shown by the server itself.

import assert from "node:assert/strict";
import { ok } from "../e2e/support/run.mjs";
import { suite, test } from "./support/page.mjs";

const shared = suite();
const open = () => shared.visit({ path: "/docs", ready: ".opblock" });

test("every operation is shown, without a request to anybody else", async () => {
  const { page, ...visitor } = await open();
  const { paths, info } = await ok(await shared.worker.fetch("/openapi.json"));
  const described = Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item).filter((name) => name !== "parameters").map((method) => `${method.toUpperCase()} ${path}`),
  );
  const shown = await page.locator(".opblock-summary").evaluateAll((rows) =>
    rows.map((row) => `${row.querySelector(".opblock-summary-method").textContent} ${row.querySelector("[data-path]").dataset.path}`),
  );
  assert.deepEqual(shown.sort(), described.sort());
  assert.match(await page.locator(".info .title").innerText(), new RegExp(`${info.title}[\\s\\S]*${info.version}`));
  assert.deepEqual(visitor.strayRequests, []);
});

test("a request can be tried from the page", async () => {
  const visitor = await open();
  const { page } = visitor;
  await page.locator('.opblock-summary [data-path="/agents"]').click();
  await page.getByRole("button", { name: "Execute" }).click();
  const answer = page.locator(".live-responses-table .response").first();
  await answer.getByText("io-agent").first().waitFor();
  assert.match(await answer.innerText(), /200/);
  await visitor.screenshot("docs");
});
