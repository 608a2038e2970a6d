// Puts nginx in front of the Worker and runs tests/proxy. Installs nginx and openssl from the system's packages where
// they are missing.

import { join } from "node:path";
import { fail, output, run, which } from "./tools.mjs";

const missing = ["nginx", "openssl"].filter((command) => !which(command));
if (missing.length > 0) {
  if (!output("apt-get", ["--version"])) fail(`missing, and this system has no apt-get: ${missing.join(", ")}.`);
  run("apt-get", ["update", "-q"]);
  run("apt-get", ["install", "-y", "-q", ...missing], { DEBIAN_FRONTEND: "noninteractive" });
}
run("node", ["--test", "--test-reporter=spec", join("tests", "proxy", "*.test.mjs")]);
