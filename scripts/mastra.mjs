// Installs the packages of tests/mastra, where they are missing or of another version, and runs its tests.

import { join } from "node:path";
import { installPackages, run } from "./tools.mjs";

const folder = join("tests", "mastra");
installPackages(folder);
run("node", ["--test", "--test-concurrency=1", "--test-reporter=spec", join(folder, "*.test.mjs")]);
