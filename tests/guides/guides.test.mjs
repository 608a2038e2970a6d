// Runs what the guides tell to run. A block ```sh run or ```js run is run in an empty folder, against a Worker of its
// guide's own; the block ```text output after it is what it prints, `...` standing for anything.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { startWorker } from "../e2e/support/worker.mjs";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const DOCS = path.join(ROOT, "docs");

/** The blocks of a guide that are run, each with what it must print. */
function runnable(text) {
  const blocks = [...text.matchAll(/^```(\w+)([^\n]*)\n([\s\S]*?)^```$/gm)].map(([, language, mark, body]) => ({
    language,
    mark: mark.trim(),
    body,
  }));
  return blocks.flatMap(({ language, mark, body }, index) => {
    if (mark !== "run") return [];
    const next = blocks[index + 1];
    return [{ language, body, expected: next?.mark === "output" ? next.body : undefined }];
  });
}

/** What a text with `...` for anything stands for; blanks at the ends of lines do not count. */
function pattern(text) {
  const escape = (line) => line.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const piece = (part) => part.trim().split(/\s*\n\s*/).map(escape).join("\\s*");
  return new RegExp(`^${text.trim().split("...").map(piece).join("[\\s\\S]*")}\\s*$`);
}

async function program(command, args, cwd) {
  const child = spawn(command, args, { cwd, stdio: ["ignore", "pipe", "pipe"] });
  let printed = "";
  let complaint = "";
  child.stdout.on("data", (piece) => (printed += piece));
  child.stderr.on("data", (piece) => (complaint += piece));
  const code = await new Promise((resolve, reject) => child.once("error", reject).once("close", resolve));
  assert.equal(code, 0, `${printed}\n${complaint}`);
  return printed.replaceAll("\r", "");
}

const folder = mkdtempSync(path.join(os.tmpdir(), "guides-"));
// What `npm install` would have put there.
symlinkSync(path.join(ROOT, "node_modules"), path.join(folder, "node_modules"));
after(() => rmSync(folder, { recursive: true, force: true }));

const guides = readdirSync(DOCS)
  .filter((name) => name.endsWith(".md"))
  .map((name) => ({ name, blocks: runnable(readFileSync(path.join(DOCS, name), "utf8")) }));

for (const { name, blocks } of guides.filter(({ blocks }) => blocks.length > 0)) {
  test(`docs/${name} does what it says`, { timeout: 120_000 }, async (t) => {
    const worker = await startWorker();
    t.after(() => worker.stop());
    for (const [index, { language, body, expected }] of blocks.entries()) {
      // The guides speak of `make dev`.
      const text = body.replaceAll("http://localhost:8787", worker.origin).replaceAll("localhost:8787", worker.origin);
      const file = path.join(folder, `${index}.${language === "js" ? "mjs" : "sh"}`);
      writeFileSync(file, language === "js" ? text : `set -eu\n${text}`);
      const printed = await program(language === "js" ? process.execPath : "sh", [file], folder);
      if (expected !== undefined) assert.match(printed, pattern(expected), `block ${index + 1}`);
    }
  });
}

const hasJq = spawnSync("jq", ["--version"]).status === 0;

test("docs/tail.jq makes lines of what wrangler tail prints", { skip: hasJq ? false : "jq is not on this machine" }, async () => {
  const line = (members) => ({ level: "log", message: [JSON.stringify({ level: "info", ...members, requestId: "q1", traceId: "t1" })] });
  const tail = {
    outcome: "ok",
    logs: [
      line({ event: "request", method: "POST", route: "/run", status: 200, durationMs: 41 }),
      line({ event: "run_ended", object: "0a", runId: "r7", status: "finished", durationMs: 2310, stepCount: 2 }),
      { level: "log", message: ["not ours"] },
    ],
  };
  writeFileSync(path.join(folder, "tail.json"), JSON.stringify(tail, null, 2) + JSON.stringify({ logs: [] }));
  assert.deepEqual((await program("jq", ["-rf", path.join(DOCS, "tail.jq"), "tail.json"], folder)).trim().split("\n"), [
    "info  request          POST /run 200 41ms requestId=q1 traceId=t1",
    "info  run_ended        runId=r7 stepCount=2 status=finished durationMs=2310 requestId=q1 traceId=t1",
  ]);
});
