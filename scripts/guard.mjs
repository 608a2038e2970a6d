// Refuses to deploy what lets everybody in, unless the deployment says that this is meant.
// `node scripts/guard.mjs [wrangler.toml]`

import { join } from "node:path";
import { experimental_readRawConfig as readRawConfig } from "wrangler";
import { fail, root } from "./tools.mjs";

const { rawConfig } = readRawConfig({ config: process.argv[2] ?? join(root, "wrangler.toml") });
const vars = rawConfig.vars ?? {};

/** A variable that holds JSON may be written as its text. */
function value(name) {
  const given = vars[name];
  if (typeof given !== "string") return given;
  try {
    return JSON.parse(given);
  } catch {
    return given;
  }
}

const auth = value("AUTH");
const mode = auth?.mode ?? "none";
const isReachable = rawConfig.workers_dev !== false || Boolean(rawConfig.route ?? rawConfig.routes?.length);

if (mode === "none") {
  if (value("ALLOW_UNAUTHENTICATED") !== true) {
    fail(
      "AUTH is `none`: anybody who knows an owner's id could read and write that owner's threads, and spend your model's tokens.\n" +
        "Set AUTH in wrangler.toml (docs/authentication.md), or ALLOW_UNAUTHENTICATED = true if this is what you mean.",
    );
  }
  console.warn("warning: AUTH is `none`, and ALLOW_UNAUTHENTICATED says that this is meant: everybody may call.");
} else if (mode === "header" && !auth.proofSecret && isReachable) {
  console.warn(
    "warning: AUTH is `header` without a proof, and this Worker has an address of its own: who calls it there is whoever they say.\n" +
      "Set proofHeader and proofSecret, or workers_dev = false and no routes (docs/authentication.md).",
  );
} else if (mode === "jwt" && auth.audience === "*") {
  console.warn("warning: AUTH.audience is `*`: tokens the issuer made for any other application are good here, too.");
}
