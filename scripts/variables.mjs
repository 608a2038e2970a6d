// Refuses a variable in wrangler.toml that Cloudflare would not take: local runs accept any length, a deployment 5 KB.

import { join } from "node:path";
import { experimental_readRawConfig as readRawConfig } from "wrangler";
import { fail, root } from "./tools.mjs";

const limitBytes = 5000;

const { rawConfig } = readRawConfig({ config: join(root, "wrangler.toml") });
const tables = [
  ["vars", rawConfig.vars],
  ...Object.entries(rawConfig.env ?? {}).map(([name, env]) => [`env.${name}.vars`, env.vars]),
];
for (const [table, vars] of tables) {
  for (const [name, value] of Object.entries(vars ?? {})) {
    const bytes = Buffer.byteLength(typeof value === "string" ? value : JSON.stringify(value));
    if (bytes > limitBytes) {
      fail(`${table}.${name} in wrangler.toml has ${bytes} bytes, ${limitBytes} are allowed: put it into agents.toml.`);
    }
  }
}
