// How long a fresh process takes to its first answer, and to the first text of its first run.
//
// Workers start in plain `workerd serve`, since Miniflare's own start would hide theirs, from a configuration that is
// compiled beforehand, for reading the text of one takes longer the more its files weigh, and no deployed Worker comes that
// way. D1 is not bound, so the run is a stateless one.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { nowMs } from "../clock.mjs";
import { start } from "../contenders/index.mjs";
import { sceneText } from "../mock/scene.mjs";
import { storageFolder } from "../process.mjs";
import { spread } from "../statistics.mjs";
import { bundles } from "./bundles.mjs";

const SCENE = { kind: "say", deltaCount: 20 };
const STORAGE = "storage";
const COMPATIBILITY_DATE = "2026-11-01";

// AI Chat can take mail, and workerd alone has no mail; it is not asked to.
const EXTENSIONS = `(modules = [(name = "cloudflare-internal:email", internal = true, esModule = "export class EmailMessage {}; export default { EmailMessage };")])`;

const quoted = (text) => JSON.stringify(text);

/** A configuration of workerd with one Worker. */
function config(folder, { modules, objects = [], flags = [], bindings = [] }) {
  const list = (items) => `[${items.join(", ")}]`;
  const module = ({ name, isWasm }) => `(name = ${quoted(name)}, ${isWasm ? "wasm" : "esModule"} = embed ${quoted(name)})`;
  const namespaces = objects.map(({ className }) => `(className = ${quoted(className)}, uniqueKey = ${quoted(className)}, enableSql = true)`);
  const objectBindings = objects.map(({ binding, className }) => `(name = ${quoted(binding)}, durableObjectNamespace = ${quoted(className)})`);
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "internet", network = (allow = ["public", "private", "local"])),
    (name = "storage", disk = (path = ${quoted(path.join(folder, STORAGE))}, writable = true)),
  ],
  extensions = [${EXTENSIONS}],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const main :Workerd.Worker = (
  compatibilityDate = ${quoted(COMPATIBILITY_DATE)},
  compatibilityFlags = ${list(flags.map(quoted))},
  modules = ${list(modules.map(module))},
  bindings = ${list([...objectBindings, ...bindings])},
  durableObjectNamespaces = ${list(namespaces)},
  ${objects.length > 0 ? `durableObjectStorage = (localDisk = "storage"),` : ""}
);
`;
}

/** Compiles the configuration of a folder, files and all. */
function compileConfig(folder) {
  const options = { maxBuffer: 64 * 1024 * 1024 };
  const compiled = execFileSync("workerd", ["compile", "--config-only", path.join(folder, "config.capnp")], options);
  writeFileSync(path.join(folder, "config.bin"), compiled);
}

/** Starts workerd and gives its address once it listens. */
async function startWorkerd(folder) {
  const child = spawn("workerd", ["serve", "--experimental", "--binary", "--control-fd=3", path.join(folder, "config.bin")], {
    stdio: ["ignore", "ignore", "pipe", "pipe"],
  });
  let errors = "";
  child.stderr.on("data", (piece) => (errors += piece));
  const [line] = await Promise.race([
    once(child.stdio[3], "data"),
    once(child, "exit").then(([code]) => assert.fail(`workerd ended with code ${code}: ${errors}`)),
  ]);
  return {
    url: `http://127.0.0.1:${JSON.parse(String(line).split("\n")[0]).port}`,
    async stop() {
      const gone = once(child, "exit");
      child.kill("SIGKILL");
      await gone;
    },
  };
}

/** Reads one answer and gives when it was whole. */
async function answerAt(url) {
  const response = await fetch(url);
  await response.arrayBuffer();
  return nowMs();
}

async function firstTextAt(contender, server) {
  const recording = await contender.open(server, { text: sceneText(SCENE) });
  const { atMs } = await recording.until((event) => contender.textOf(event) !== undefined);
  await recording.done;
  return atMs;
}

export async function coldStart({ contenders, mock, size }) {
  const rows = [];
  const folders = [];
  const workers = await bundles(contenders, mock.url);
  for (const { key, label, worker, contender, prefix = "" } of workers) {
    const folder = mkdtempSync(path.join(storageFolder, "io-bridge-bench-"));
    folders.push(folder);
    for (const { name, contents } of worker.modules) writeFileSync(path.join(folder, name), contents);
    writeFileSync(path.join(folder, "config.capnp"), config(folder, worker));
    compileConfig(folder);
    mkdirSync(path.join(folder, STORAGE));
    const startServer = async () => {
      const server = await startWorkerd(folder);
      return { ...server, url: server.url + prefix };
    };
    rows.push({ key, label, startServer, contender, roundCount: size.coldRounds, answers: [], texts: [] });
  }
  for (const contender of contenders.filter(({ runtime }) => runtime === "node")) {
    const startServer = () => start(contender, mock.url);
    rows.push({ key: contender.name, label: contender.label, startServer, contender, roundCount: size.coldNodeRounds, answers: [], texts: [] });
  }
  try {
    for (let round = 0; round < size.coldRounds; round += 1) {
      for (const row of rows.filter(({ roundCount }) => round < roundCount)) await measure(row);
    }
  } finally {
    for (const folder of folders) rmSync(folder, { recursive: true });
  }
  return rows.map(({ key, label, answers, texts }) => ({
    key,
    label,
    firstAnswerMs: spread(answers),
    firstTextMs: texts.length > 0 ? spread(texts) : undefined,
  }));
}

/** Two fresh processes: one asked for an answer, one for a run. */
async function measure({ startServer, contender, answers, texts }) {
  answers.push(await inFreshProcess(startServer, ({ url }) => answerAt(url)));
  if (contender) texts.push(await inFreshProcess(startServer, (server) => firstTextAt(contender, server)));
}

/** Milliseconds from the start of a process to what happens in it. */
async function inFreshProcess(startServer, happensAt) {
  const startMs = nowMs();
  const server = await startServer();
  try {
    return (await happensAt(server)) - startMs;
  } finally {
    await server.stop();
  }
}
