// Runs the commands of the guides.

import { join } from "node:path";
import { run } from "./tools.mjs";

run("node", ["--test", "--test-concurrency=1", "--test-reporter=spec", join("tests", "guides", "guides.test.mjs")]);
