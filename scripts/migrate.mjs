// Brings the database up to date: `--local` for this machine, `--remote` for the deployment.
// A deployment without a database is sound (every run is stateless then): nothing to do.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fail, root, run } from "./tools.mjs";

const where = process.argv[2];
const settings = readFileSync(join(root, "wrangler.toml"), "utf8");

if (!/^\[\[d1_databases\]\]/m.test(settings)) {
  console.log("wrangler.toml binds no database");
} else if (where === "--remote" && settings.includes('"00000000-0000-0000-0000-000000000000"')) {
  fail("put your database's id into wrangler.toml: `npx wrangler d1 create io-bridge` makes one.");
} else {
  run("wrangler", ["d1", "migrations", "apply", "DB", where]);
  if (/^binding = "SEARCH"/m.test(settings)) run("wrangler", ["d1", "migrations", "apply", "SEARCH", where]);
}
