// Builds the examples that need packages of their own, and drives them in Chromium.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { fail, installPackages, run } from "./tools.mjs";

const example = join("examples", "copilotkit");
const tests = join("tests", "playground");
const chromium = process.env.CHROMIUM_BIN ?? "/usr/bin/chromium";

if (!existsSync(chromium)) {
  fail(`there is no Chromium at ${chromium}: \`apt-get install chromium\`, or give its address as CHROMIUM_BIN.`);
}
installPackages(example);
installPackages(tests);
run("node", [join(example, "build.mjs")]);
run("node", ["--test", "--test-timeout=120000", "--test-reporter=spec", join(tests, "examples", "pages.test.mjs")], {
  CHROMIUM_BIN: chromium,
});
