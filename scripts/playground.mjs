// Bundles the playground: dist/ is what the assets binding of wrangler.toml serves.

import { copyFileSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { experimental_readRawConfig as readRawConfig } from "wrangler";
import { root } from "./tools.mjs";

const source = join(root, "playground");
const target = join(root, "dist");

const { rawConfig } = readRawConfig({ config: join(root, "wrangler.toml") });
const prefix = rawConfig.vars?.PREFIX ?? "/io-bridge";

rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });
for (const name of readdirSync(join(source, "public"))) copyFileSync(join(source, "public", name), join(target, name));
// The viewer of the API's description, as it is published.
for (const name of ["swagger-ui-bundle.js", "swagger-ui.css"]) copyFileSync(join(root, "node_modules", "swagger-ui-dist", name), join(target, name));
await build({
  entryPoints: [
    { in: join(source, "src", "main.tsx"), out: "playground" },
    { in: join(source, "src", "style", "index.css"), out: "playground" },
    { in: join(source, "src", "docs.ts"), out: "docs" },
  ],
  outdir: target,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  loader: { ".woff2": "file" },
  assetNames: "[name]",
  legalComments: "linked",
  define: { IO_BRIDGE_PREFIX: JSON.stringify(prefix) },
  logLevel: "warning",
});
