// Stands in front of a Worker and records the batches its objects send to the database; `GET /batches` gives them.
// The Worker's own main module takes the place of INNER.

import * as inner from "INNER";

const batches = [];

const recordedDatabase = (database) => ({
  prepare: (sql) => ({
    bind: (...values) => Object.assign(database.prepare(sql).bind(...values), { recorded: { sql, values } }),
  }),
  batch(statements) {
    batches.push(statements.map(({ recorded }) => recorded));
    return database.batch(statements);
  },
});

export class RunObject {
  #inner;

  constructor(state, env) {
    this.#inner = new inner.RunObject(state, { ...env, DB: recordedDatabase(env.DB) });
  }

  fetch(request) {
    return this.#inner.fetch(request);
  }

  alarm(info) {
    return this.#inner.alarm(info);
  }
}

export default {
  async fetch(request, env, context) {
    if (new URL(request.url).pathname === "/batches") return Response.json(batches);
    return new inner.default(context, env).fetch(request);
  },
};
