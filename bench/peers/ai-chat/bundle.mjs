// The Worker of AI Chat as one minified file, the way wrangler would bundle it.

import { builtinModules } from "node:module";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

// CommonJS packages require Node's modules, which workerd has under their `node:` names and for `import` only.
const nodeModules = {
  name: "node-modules",
  setup({ onResolve, onLoad }) {
    const names = new RegExp(`^(node:)?(${builtinModules.filter((name) => !name.startsWith("_")).join("|")})$`);
    onResolve({ filter: names }, ({ path, kind }) => {
      const name = path.replace(/^node:/, "");
      return kind === "require-call" ? { path: name, namespace: "node" } : { path: `node:${name}`, external: true };
    });
    onLoad({ filter: /.*/, namespace: "node" }, ({ path }) => ({
      contents: `import * as module from "node:${path}"; export * from "node:${path}"; export default module.default;`,
    }));
  },
};

/** Its text. */
export async function bundleAiChat() {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL("./worker.mjs", import.meta.url))],
    bundle: true,
    minify: true,
    keepNames: true,
    write: false,
    format: "esm",
    target: "es2024",
    platform: "neutral",
    mainFields: ["module", "main"],
    conditions: ["workerd", "worker", "browser", "module", "import"],
    external: ["cloudflare:*"],
    define: { "process.env.NODE_ENV": '"production"' },
    plugins: [nodeModules],
    logLevel: "error",
  });
  return outputFiles[0].text;
}
