// A cable between clients and a Worker: one address whatever Worker is plugged in, and it can be pulled.

import { connect, createServer } from "node:net";

/** Lays a cable; nothing is plugged in yet. */
export async function layCable() {
  const open = new Set();
  let target;
  const server = createServer((client) => {
    if (target === undefined) return void client.destroy();
    const worker = connect(target);
    for (const [from, to] of [[client, worker], [worker, client]]) {
      open.add(from);
      from.on("error", () => {}).on("close", () => {
        open.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    /** From now on it leads there. */
    plug: (worker) => void (target = Number(new URL(worker.origin).port)),
    /** Every connection breaks. */
    pull() {
      for (const socket of open) socket.destroy();
    },
    unplug() {
      target = undefined;
      this.pull();
    },
    stop: () => new Promise((resolve) => (open.forEach((socket) => socket.destroy()), server.close(resolve))),
  };
}
