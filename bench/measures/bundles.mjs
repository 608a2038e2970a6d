// The Workers as the files that are deployed, and what those weigh.

import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { buildSync } from "esbuild";
import { fileURLToPath } from "node:url";
import { contenders } from "../contenders/index.mjs";
import { bundleAiChat } from "../peers/ai-chat/bundle.mjs";

const bench = (name) => fileURLToPath(new URL(`../${name}`, import.meta.url));
const named = (name) => contenders.find((contender) => contender.name === name);

const minified = (name) =>
  buildSync({ entryPoints: [bench(name)], bundle: true, minify: true, write: false, format: "esm", external: ["cloudflare:*"] })
    .outputFiles[0].text;

const ourWasm = () => ({ name: "index_bg.wasm", contents: readFileSync(bench("../build/index_bg.wasm")), isWasm: true });
const ourScript = (name) => ({ name, contents: readFileSync(bench("../build/index.js")) });
const OUR_FLAGS = ["no_nodejs_compat", "no_nodejs_compat_v2"];

const text = (name, value) => `(name = ${JSON.stringify(name)}, text = ${JSON.stringify(value)})`;

/** What a Worker begins with that carries our wasm and does not use it. */
const IDLE = {
  compiled: 'import wasm from "./index_bg.wasm";globalThis.unused = wasm;',
  started: 'import * as unused from "./index.js";globalThis.unused = unused;',
};

/** The Workers taken, each with its files, its objects and its bindings, in the terms of workerd's configuration. */
export async function bundles(taken, upstreamUrl = "") {
  const upstream = text("UPSTREAM", upstreamUrl);
  const agents = JSON.stringify({ bench: { provider: "openai", model: "stub-1", baseUrl: `${upstreamUrl}/v1` } });
  const single = (contents) => [{ name: "index.js", contents }];
  const ours = {
    modules: [ourScript("index.js"), ourWasm()],
    objects: [{ binding: "RUNS", className: "RunObject" }],
    flags: OUR_FLAGS,
    bindings: [text("OPENAI_API_KEY", "unused"), `(name = "AGENTS", json = ${JSON.stringify(agents)})`],
  };
  const all = [
    { key: "io-bridge", label: "io-bridge", contender: named("io-bridge"), prefix: "/io-bridge", worker: ours },
    {
      key: "io-bridge, silent",
      label: "io-bridge with LOG_LEVEL error",
      isPart: true,
      prefix: "/io-bridge",
      worker: { ...ours, bindings: [...ours.bindings, text("LOG_LEVEL", "error")] },
    },
    { key: "trivial", label: "trivial JS Worker", worker: { modules: single(minified("workers/trivial.mjs")) } },
    ...["compiled", "started"].map((how) => ({
      key: `trivial, ${how}`,
      label: `trivial JS Worker, with io-bridge's wasm ${how}`,
      isPart: true,
      worker: {
        modules: [
          { name: "main.js", contents: IDLE[how] + minified("workers/trivial.mjs") },
          ...(how === "started" ? [ourScript("index.js")] : []),
          ourWasm(),
        ],
        flags: OUR_FLAGS,
      },
    })),
    {
      key: "js-worker",
      label: "hand-written JS Worker",
      contender: named("js-worker"),
      worker: {
        modules: single(minified("workers/js-worker.mjs")),
        objects: [{ binding: "RUNS", className: "RunObject" }],
        bindings: [upstream],
      },
    },
  ];
  if (taken.some(({ name }) => name === "ai-chat")) {
    all.push({
      key: "ai-chat",
      label: "Cloudflare AI Chat",
      contender: named("ai-chat"),
      prefix: "/",
      worker: {
        modules: single(await bundleAiChat()),
        objects: [{ binding: "ChatAgent", className: "ChatAgent" }],
        bindings: [upstream],
      },
    });
  }
  return all.filter(({ contender }) => !contender || taken.includes(contender));
}

/** What each weighs, plain and gzipped. */
export async function bundleSizes({ contenders: taken }) {
  const whole = (await bundles(taken)).filter(({ isPart }) => !isPart);
  return whole.map(({ key, label, worker }) => {
    const files = worker.modules.map(({ contents }) => Buffer.from(contents));
    const sum = (sizes) => sizes.reduce((total, size) => total + size, 0);
    return {
      key,
      label,
      plainBytes: sum(files.map(({ length }) => length)),
      gzipBytes: sum(files.map((file) => gzipSync(file, { level: 9 }).length)),
    };
  });
}
