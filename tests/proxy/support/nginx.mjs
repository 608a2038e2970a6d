// nginx in front of a Worker.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { eventually } from "../../e2e/support/run.mjs";

/** nginx as it comes: only where to listen, where to send, and where it may write are said. */
const config = (folder, port, upstream, { listen = "", server = "", location = "" }) => `
  daemon off;
  pid ${folder}/nginx.pid;
  error_log ${folder}/error.log;
  events {}
  http {
    access_log off;
    client_body_temp_path ${folder}/body;
    proxy_temp_path ${folder}/proxy;
    fastcgi_temp_path ${folder}/fastcgi;
    uwsgi_temp_path ${folder}/uwsgi;
    scgi_temp_path ${folder}/scgi;
    server {
      listen 127.0.0.1:${port} ${listen};
      ${server}
      location / { proxy_pass ${upstream}; ${location} }
    }
  }`;

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/**
 * Starts nginx in front of a Worker: gives the Worker as it is seen through it, and `stop`. `settings` are words of its
 * configuration; `isUp` asks whether it serves, for one that does not speak HTTP/1.
 */
export async function startNginx(server, settings = {}, isUp = async (worker) => (await fetch(worker.url("/agents"))).ok) {
  const folder = mkdtempSync(path.join(tmpdir(), "io-bridge-nginx-"));
  const port = await freePort();
  writeFileSync(`${folder}/nginx.conf`, config(folder, port, server.origin, settings));
  const nginx = spawn("nginx", ["-e", `${folder}/error.log`, "-c", `${folder}/nginx.conf`], { stdio: "inherit" });
  const worker = Object.assign(Object.create(server), { origin: `http://127.0.0.1:${port}`, isProxied: true });
  await eventually(
    () => isUp(worker).catch(() => assert.equal(nginx.exitCode, null, "nginx ended")),
    (isServing) => isServing,
  );
  const stop = async () => {
    const gone = once(nginx, "exit");
    nginx.kill("SIGTERM");
    await gone;
    rmSync(folder, { recursive: true, force: true });
  };
  return { worker, stop };
}
