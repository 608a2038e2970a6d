// Checks the playground's types and drives it in Chromium. Installs the packages of tests/playground where they are missing.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { fail, installPackages, run } from "./tools.mjs";

const folder = join("tests", "playground");
const chromium = process.env.CHROMIUM_BIN ?? "/usr/bin/chromium";

if (!existsSync(chromium)) {
  fail(`there is no Chromium at ${chromium}: \`apt-get install chromium\`, or give its address as CHROMIUM_BIN.`);
}
installPackages(folder);
run(join(folder, "node_modules", ".bin", "tsc"), ["--project", "playground"]);
run("node", ["--test", "--test-concurrency=1", "--test-timeout=120000", "--test-reporter=spec", join(folder, "*.test.mjs")], {
  CHROMIUM_BIN: chromium,
});
