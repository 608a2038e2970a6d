// Bundles the page into public/.

import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const at = (file) => fileURLToPath(new URL(file, import.meta.url));

await build({
  entryPoints: [at("./src/app.jsx")],
  outdir: at("./public"),
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  loader: { ".woff2": "dataurl", ".woff": "dataurl", ".ttf": "dataurl", ".svg": "dataurl" },
  define: { "process.env.NODE_ENV": '"production"' },
  logLevel: "warning",
});
