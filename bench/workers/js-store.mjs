// The Worker that does what the contract asks, storing what io-bridge stores: RECORDED has the database batches of one
// run of io-bridge on a new thread, and the ids it had. They are sent again with other ids.

import { RunObject as Contract } from "./js-contract.mjs";

export { default } from "./js-contract.mjs";

export class RunObject extends Contract {
  async begin({ threadId, runId, messages: [{ id }] }) {
    await this.#send(this.env.RECORDED.start, { threadId, runId, userMessageId: id });
  }

  async end({ threadId, runId }, { messageId }) {
    await this.#send(this.env.RECORDED.end, { threadId, runId, messageId });
  }

  #send(batch, ids) {
    const named = (value) =>
      Object.entries(ids).reduce((text, [name, id]) => text.replaceAll(this.env.RECORDED.ids[name], id), value);
    const parameters = (values) => values.map((value) => (typeof value === "string" ? named(value) : value));
    const database = this.env.DB;
    return database.batch(batch.map(({ sql, values }) => database.prepare(sql).bind(...parameters(values))));
  }
}
