// What `make deploy` asks before anything leaves this machine: scripts/guard.mjs.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));

function guard(t, vars, rest = "") {
  const folder = mkdtempSync(path.join(tmpdir(), "io-bridge-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, "wrangler.toml");
  writeFileSync(file, `name = "x"\nmain = "x.js"\ncompatibility_date = "2026-11-01"\n${rest}\n[vars]\n${vars}\n`);
  const { status, stderr } = spawnSync("node", [path.join(PROJECT, "scripts", "guard.mjs"), file], { encoding: "utf8" });
  return { status, stderr };
}

test("a Worker that everybody may call is not deployed", (t) => {
  for (const vars of ["", 'AUTH = { mode = "none" }', `AUTH = '{"mode":"none"}'`, 'ALLOW_UNAUTHENTICATED = "yes"']) {
    const { status, stderr } = guard(t, vars);
    assert.equal(status, 1, vars);
    assert.match(stderr, /AUTH is `none`: anybody .*\n.*ALLOW_UNAUTHENTICATED = true/, vars);
  }
});

test("unless that is said to be meant, with a warning", (t) => {
  for (const vars of ["ALLOW_UNAUTHENTICATED = true", 'ALLOW_UNAUTHENTICATED = "true"']) {
    const { status, stderr } = guard(t, vars);
    assert.equal(status, 0, stderr);
    assert.match(stderr, /warning: AUTH is `none`/);
  }
});

test("modes that let in whom they can tell are deployed, weak settings with a warning", (t) => {
  const jwt = 'mode = "jwt", issuer = "i", jwksUrl = "https://i/keys"';
  for (const [vars, rest, warning] of [
    ['AUTH = { mode = "bearer", tokens = [{ secret = "A", owner = "*" }] }', "", /^$/],
    [`AUTH = { ${jwt}, audience = "app" }`, "", /^$/],
    [`AUTH = { ${jwt}, audience = "*" }`, "", /AUTH.audience is `\*`/],
    ['AUTH = { mode = "header", ownerHeader = "x" }', "", /AUTH is `header` without a proof/],
    ['AUTH = { mode = "header", ownerHeader = "x" }', "workers_dev = false", /^$/],
    ['AUTH = { mode = "header", ownerHeader = "x", proofHeader = "y", proofSecret = "S" }', "", /^$/],
  ]) {
    const { status, stderr } = guard(t, vars, rest);
    assert.equal(status, 0, stderr);
    assert.match(stderr, warning, vars);
  }
});

test("`make deploy` asks the guard before it builds and sends anything", () => {
  const makefile = readFileSync(path.join(PROJECT, "Makefile"), "utf8");
  const [recipe] = makefile.match(/^deploy:.*\n(\t.*\n)+/m);
  const steps = recipe.split("\n\t").slice(1);
  assert.match(steps[0], /guard\.mjs/);
  assert.match(steps.at(-1), /wrangler deploy/);
});
