// Builds the search index anew from the main database: `--local` for this machine, `--remote` for the deployment.
// May run while the Worker serves; until it is through, searches find less.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messagesAfter, statements } from "./search_rows.mjs";
import { fail, output, root, run } from "./tools.mjs";

const MESSAGES_PER_READ = 200;

const where = process.argv[2] ?? "--remote";
if (!/^binding = "SEARCH"/m.test(readFileSync(join(root, "wrangler.toml"), "utf8"))) {
  fail("wrangler.toml binds no SEARCH database.");
}

const folder = mkdtempSync(join(tmpdir(), "io-bridge-"));
const file = join(folder, "rows.sql");
try {
  run("wrangler", ["d1", "execute", "SEARCH", where, "--yes", "--command", "DELETE FROM message_text"]);
  let row = 0;
  for (;;) {
    const json = output("wrangler", [
      "d1", "execute", "DB", where, "--json", "--command", messagesAfter(row, MESSAGES_PER_READ),
    ]);
    if (json === undefined) fail("the main database could not be read.");
    const [{ results }] = JSON.parse(json);
    if (results.length === 0) break;
    writeFileSync(file, statements(results).join("\n"));
    run("wrangler", ["d1", "execute", "SEARCH", where, "--yes", "--file", file]);
    row = results.at(-1).row;
  }
} finally {
  rmSync(folder, { recursive: true });
}
