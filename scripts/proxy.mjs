// Puts nginx in front of the Worker and runs tests/proxy. Installs nginx from the system's packages where it is missing.

import { join } from "node:path";
import { fail, output, run, which } from "./tools.mjs";

if (!which("nginx")) {
  if (!output("apt-get", ["--version"])) fail("nginx is missing and this system has no apt-get: install it by hand.");
  run("apt-get", ["update", "-q"]);
  run("apt-get", ["install", "-y", "-q", "nginx"], { DEBIAN_FRONTEND: "noninteractive" });
}
run("node", ["--test", "--test-reporter=spec", join("tests", "proxy", "*.test.mjs")]);
