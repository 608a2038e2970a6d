// Installs the older AG-UI clients of tests/matrix; with `--all`, also runs the client matrix over every one of them.

import { join } from "node:path";
import { installPackages, run } from "./tools.mjs";

installPackages(join("tests", "matrix"));
if (process.argv.includes("--all")) {
  run("node", ["--test", "--test-reporter=spec", join("tests", "e2e", "matrix.test.mjs")], { CLIENTS: "all" });
}
