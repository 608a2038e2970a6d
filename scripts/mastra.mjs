// Installs the packages of tests/mastra, where they are missing or of another version, and runs its tests.

import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, run } from "./tools.mjs";

const folder = join("tests", "mastra");
const stamp = join(root, folder, "node_modules", ".package-lock.sha256");
const wanted = createHash("sha256").update(readFileSync(join(root, folder, "package-lock.json"))).digest("hex");
if (!existsSync(stamp) || readFileSync(stamp, "utf8") !== wanted) {
  run("npm", ["ci", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
  writeFileSync(stamp, wanted);
}
run("node", ["--test", "--test-concurrency=1", "--test-reporter=spec", join(folder, "*.test.mjs")]);
