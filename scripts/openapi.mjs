// Installs the linter of tests/openapi, where it is missing or of another version, and runs its tests.

import { join } from "node:path";
import { installPackages, run } from "./tools.mjs";

const folder = join("tests", "openapi");
installPackages(folder);
run("node", ["--test", "--test-reporter=spec", join(folder, "openapi.test.mjs")]);
