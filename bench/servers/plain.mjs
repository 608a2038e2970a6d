// A Worker in workerd, without a proxy in front: the files of a folder or the text of one bundled file, with an object
// and a database where it wants them.

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Miniflare, convertV4MiniflareOptions } from "miniflare";
import { unstable_splitSqlQuery } from "wrangler";
import { childOf } from "../process.mjs";

const COMPATIBILITY_DATE = "2026-11-01";
const folder = fileURLToPath(new URL("../workers/", import.meta.url));

const isInspected = process.env.INSPECTED === "1";

/** Starts it and tells the parent process; `schema` = a file of SQL, or a folder of them. */
export async function servePlain({ name, modules, objects = {}, schema, bindings = {}, flags = [] }) {
  const options = convertV4MiniflareOptions({
    host: "127.0.0.1",
    port: 0,
    cf: false,
    ...(isInspected ? { inspectorPort: 0 } : {}),
    workers: [
      {
        name,
        compatibilityDate: COMPATIBILITY_DATE,
        compatibilityFlags: flags,
        modulesRoot: folder,
        modules: modules.map((module) => (typeof module === "string" ? { type: "ESModule", path: folder + module } : module)),
        bindings: { UPSTREAM: process.env.UPSTREAM, ...bindings },
        durableObjects: objects,
        ...(schema ? { d1Databases: { DB: name } } : {}),
        unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
      },
    ],
  });
  const miniflare = new Miniflare(options);
  await miniflare.ready;
  if (schema) {
    const database = await miniflare.getD1Database("DB");
    const files = schema.href.endsWith("/") ? readdirSync(schema).sort().map((file) => new URL(file, schema)) : [schema];
    for (const file of files) {
      const statements = unstable_splitSqlQuery(readFileSync(file, "utf8"));
      await database.batch(statements.map((statement) => database.prepare(statement)));
    }
  }
  const inspectorUrl = isInspected ? new URL(`/core:user:${name}`, await miniflare.getInspectorURL()).href : undefined;
  process.send({ url: (await miniflare.unsafeGetDirectURL()).href, inspectorUrl, pid: childOf(process.pid, "workerd") });
  process.once("disconnect", () => miniflare.dispose().finally(() => process.exit()));
}
