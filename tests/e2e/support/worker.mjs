// The built Worker in real workerd, with the bindings of wrangler.toml and the migrations of migrations/.
//
// Miniflare rather than wrangler's test harness: the harness sends the Worker's own requests through Node's fetch
// (the stub would not see connections close) and keeps no state folder (nothing could be restarted). Requests go to
// the Worker's direct socket, so no proxy stands between a test and what it measures.

import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Log, LogLevel, Miniflare, convertV4MiniflareOptions } from "miniflare";
import { unstable_getMiniflareWorkerOptions, unstable_splitSqlQuery } from "wrangler";

const PROJECT = fileURLToPath(new URL("../../../", import.meta.url));
const CONFIG_FILE = path.join(PROJECT, "wrangler.toml");

/** The page every test request claims to come from. */
export const ORIGIN = "https://app.example";

/** Takes data points as Analytics Engine does, and gives them back. */
const DATASET = `
import { WorkerEntrypoint } from "cloudflare:workers";
const points = [];
export class Dataset extends WorkerEntrypoint {
  writeDataPoint(point) { points.push(point); }
}
export default { fetch: () => Response.json(points) };
`;

/** A test's agents as the variable that puts them beside those of agents.toml. */
const agentsVariable = (agents) => ({ AGENTS: Object.fromEntries(agents.map(({ id, ...keys }) => [id, keys])) });

/** What wrangler.toml says, and the built Worker: with `breakable`, the build that has the commands of `Worker.break`. */
function built(breakable) {
  const { workerOptions, main: shipped } = unstable_getMiniflareWorkerOptions(CONFIG_FILE);
  const main = breakable ? path.join(PROJECT, "build-test", path.basename(shipped)) : shipped;
  if (!existsSync(main)) {
    // Not thrown: what a test has open already, its upstream for one, would keep the process waiting.
    console.error(`The Worker is not built: ${path.relative(PROJECT, main)} is missing.`);
    process.exit(1);
  }
  return { workerOptions, main };
}

/**
 * Starts the Worker.
 *
 * `vars` and `secrets` come on top of wrangler.toml's; `without` names bindings to leave out; `breakable` takes the build
 * with the commands of `Worker.break`; `search` binds a search index, `attachments` a bucket; `page` serves the static files too, at `pageOrigin`; `metrics` binds a data set and gives its `points`; `stateFolder` keeps D1 and the objects' storage over a restart; `ai` is the address at which the binding AI finds Workers AI;
 * `front` is the text of a module that stands in front of the Worker's own, `./index.js`; `inspect` opens V8's inspector, at `inspectorUrl`.
 */
export async function startWorker({ agents, vars = {}, secrets = {}, without = [], breakable = false, search = false, attachments = false, page = false, metrics = false, stateFolder, ai, front, inspect = false, ratelimits } = {}) {
  const { workerOptions, main } = built(breakable);
  const { modulesRules: _, assets, ...fromConfig } = workerOptions;
  const lines = [];
  const options = convertV4MiniflareOptions({
    host: "127.0.0.1",
    port: 0,
    cf: false,
    log: new Log(LogLevel.NONE),
    handleStructuredLogs: (line) => lines.push(line),
    ...(inspect ? { inspectorPort: 0 } : {}),
    workers: [
      {
        ...fromConfig,
        ...(page ? { assets } : {}),
        d1Databases: { ...withoutKeys(fromConfig.d1Databases, without), ...(search ? { SEARCH: "search" } : {}) },
        ...(attachments ? { r2Buckets: { ATTACHMENTS: "attachments" } } : {}),
        durableObjects: withoutKeys(fromConfig.durableObjects, without),
        name: "io-bridge",
        modulesRoot: path.dirname(main),
        modules: modules(main, front),
        bindings: { ...fromConfig.bindings, ...(agents ? agentsVariable(agents) : {}), ...vars, ...secrets },
        ...(metrics ? { serviceBindings: { METRICS: { name: "metrics", entrypoint: "Dataset" } } } : {}),
        ...(ratelimits ? { ratelimits } : {}),
        ...(ai ? { ai: { binding: "AI", remoteProxyConnectionString: new URL(ai) } } : {}),
        unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
      },
      ...(metrics ? [{ name: "metrics", modules: true, script: DATASET, compatibilityDate: fromConfig.compatibilityDate }] : []),
    ],
  });
  options.resourcePersistencePath = stateFolder;
  const miniflare = new Miniflare(options);
  const { origin: pageOrigin } = await miniflare.ready;
  const [databaseBinding] = Object.keys(withoutKeys(fromConfig.d1Databases, without));
  const database = databaseBinding && (await miniflare.getD1Database(databaseBinding));
  if (database) await applyMigrations(database, "migrations");
  const index = search ? await miniflare.getD1Database("SEARCH") : undefined;
  if (index) await applyMigrations(index, "migrations-search");
  const prefix = vars.PREFIX ?? fromConfig.bindings.PREFIX ?? "/io-bridge";
  return new Worker({
    origin: (await miniflare.unsafeGetDirectURL()).origin,
    pageOrigin,
    prefix,
    lines,
    database,
    search: index,
    inspectorUrl: inspect ? new URL("/core:user:io-bridge", await miniflare.getInspectorURL()).href : undefined,
    points: async () => (await (await miniflare.getWorker("metrics")).fetch("http://metrics/")).json(),
    bucket: attachments ? await miniflare.getR2Bucket("ATTACHMENTS") : undefined,
    // What a cron trigger does.
    tick: async () => assert.equal((await (await miniflare.getWorker()).scheduled()).outcome, "ok"),
    stop: () => miniflare.dispose(),
  });
}

/** The Worker in a process of its own, which `kill` ends the way a crash does. */
export async function startWorkerProcess(options) {
  built(options.breakable);
  const child = fork(fileURLToPath(new URL("./worker-process.mjs", import.meta.url)), {
    detached: true,
    env: { ...process.env, WORKER_OPTIONS: JSON.stringify(options) },
  });
  const [{ origin, prefix }] = await Promise.race([
    once(child, "message"),
    once(child, "exit").then(([code]) => assert.fail(`the Worker's process ended with code ${code}`)),
  ]);
  return Object.assign(new Worker({ origin, prefix, lines: [] }), {
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, "exit");
      process.kill(-child.pid, "SIGKILL");
      await gone;
    },
  });
}

class Worker {
  constructor(parts) {
    Object.assign(this, parts);
  }

  /** The whole address of a path below the prefix. */
  url(relative) {
    return this.origin + this.prefix + relative;
  }

  /** Sends a request as a browser would and checks what every answer has: CORS headers and a request id. */
  async fetch(relative, { json, headers, ...init } = {}) {
    const response = await fetch(this.url(relative), {
      ...init,
      headers: { origin: ORIGIN, ...(json === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(json === undefined ? {} : { body: JSON.stringify(json), method: init.method ?? "POST" }),
    });
    assert.ok(response.headers.get("access-control-allow-origin"), `no CORS header on ${response.status} ${relative}`);
    assert.ok(response.headers.get("x-request-id"), `no x-request-id on ${response.status} ${relative}`);
    return response;
  }

  /**
   * Breaks the object of a run, whose address its `io-run-address` header gave: `reset` (a deployment), `panic` (a fault
   * of ours). `alarm` lets its watchdog look now. Only a `breakable` Worker can.
   */
  async break(address, command) {
    const response = await fetch(`${this.origin}/test-commands/${address}/${command}`, { method: "POST" });
    assert.equal(await response.text(), command);
  }

  /** Everything the Worker logged so far. */
  logText() {
    return this.lines.map((line) => line.message).join("\n");
  }

  /** Wants this in the log, where a line may come after the answer it belongs to; gives the log. */
  async logged(pattern) {
    for (let count = 0; count < 500 && !pattern.test(this.logText()); count += 1) await pause(20);
    assert.match(this.logText(), pattern);
    return this.logText();
  }
}

function withoutKeys(record, keys) {
  return Object.fromEntries(Object.entries(record ?? {}).filter(([key]) => !keys.includes(key)));
}

function modules(main, front) {
  const root = path.dirname(main);
  const files = readdirSync(root, { recursive: true }).map((name) => path.join(root, name));
  const others = files.filter((file) => file !== main && /\.(js|mjs|wasm)$/.test(file));
  const own = [main, ...others].map((file) => ({
    type: file.endsWith(".wasm") ? "CompiledWasm" : "ESModule",
    path: file,
  }));
  return front ? [{ type: "ESModule", path: path.join(root, "front.js"), contents: front }, ...own] : own;
}

async function applyMigrations(database, folder) {
  await database.prepare("CREATE TABLE IF NOT EXISTS d1_migrations (name TEXT PRIMARY KEY)").run();
  const { results } = await database.prepare("SELECT name FROM d1_migrations").all();
  const applied = new Set(results.map(({ name }) => name));
  const names = readdirSync(path.join(PROJECT, folder)).filter((name) => name.endsWith(".sql") && !applied.has(name));
  for (const name of names.sort()) {
    const parts = unstable_splitSqlQuery(readFileSync(path.join(PROJECT, folder, name), "utf8"));
    await database.batch([
      ...parts.map((part) => database.prepare(part)),
      database.prepare("INSERT INTO d1_migrations VALUES (?)").bind(name),
    ]);
  }
}
