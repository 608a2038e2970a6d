// Stands in front of a Worker and counts what it asks of the platform; `GET /counts` gives the counts and starts anew.
// The Worker's own main module takes the place of INNER.

import * as inner from "INNER";

const zero = () => ({
  workerRequests: 0,
  objectRequests: 0,
  objectAlarms: 0,
  objectRowsRead: 0,
  objectRowsWritten: 0,
  d1Batches: 0,
  d1Statements: 0,
  d1RowsRead: 0,
  d1RowsWritten: 0,
});
let counts = zero();

/** An object whose methods are as they were, but for those named here. */
const changed = (target, methods) =>
  new Proxy(target, {
    get(_, name) {
      if (Object.hasOwn(methods, name)) return methods[name];
      const value = target[name];
      return typeof value === "function" && name !== "constructor" ? value.bind(target) : value;
    },
  });

const countedDatabase = (database) =>
  changed(database, {
    async batch(statements) {
      const results = await database.batch(statements);
      counts.d1Batches += 1;
      counts.d1Statements += statements.length;
      for (const { meta } of results) {
        counts.d1RowsRead += meta.rows_read;
        counts.d1RowsWritten += meta.rows_written;
      }
      return results;
    },
  });

/** A method that costs rows, as list prices count them: each key and each alarm is a row. */
const counted = (storage, name, key) => (...values) => {
  counts[key] += 1;
  return storage[name](...values);
};

const countedStorage = (storage) =>
  changed(storage, {
    get: counted(storage, "get", "objectRowsRead"),
    ...Object.fromEntries(
      ["put", "delete", "deleteAll", "setAlarm", "deleteAlarm"].map((name) => [name, counted(storage, name, "objectRowsWritten")]),
    ),
    sql: changed(storage.sql, {
      exec(...values) {
        const cursor = storage.sql.exec(...values);
        counts.objectRowsRead += cursor.rowsRead;
        counts.objectRowsWritten += cursor.rowsWritten;
        return cursor;
      },
    }),
  });

const countedEnv = (env) => ({ ...env, DB: countedDatabase(env.DB) });

export class RunObject {
  #inner;

  constructor(state, env) {
    // In its place, since a class of the platform takes no other state than its own.
    Object.defineProperty(state, "storage", { value: countedStorage(state.storage) });
    this.#inner = new inner.RunObject(state, countedEnv(env));
  }

  fetch(request) {
    counts.objectRequests += 1;
    return this.#inner.fetch(request);
  }

  alarm(info) {
    counts.objectAlarms += 1;
    return this.#inner.alarm(info);
  }
}

export default {
  async fetch(request, env, context) {
    if (new URL(request.url).pathname === "/counts") {
      const counted = counts;
      counts = zero();
      return Response.json(counted);
    }
    counts.workerRequests += 1;
    const Inner = inner.default;
    if (typeof Inner === "function") return new Inner(context, countedEnv(env)).fetch(request);
    return Inner.fetch(request, countedEnv(env), context);
  },
};
