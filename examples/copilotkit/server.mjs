// CopilotKit's runtime in front of the bridge, and the page. The token, if there is one, stays here.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { HttpAgent } from "@ag-ui/client";
import { CopilotRuntime, ExperimentalEmptyAdapter, copilotRuntimeNodeHttpEndpoint } from "@copilotkit/runtime";

const bridgeUrl = process.env.BRIDGE_URL ?? "http://localhost:8787/io-bridge";
const token = process.env.BRIDGE_TOKEN;
const port = Number(process.env.PORT ?? 3000);
const endpoint = "/api/copilotkit";

// The runtime tells CopilotKit of its use unless it is asked not to.
process.env.COPILOTKIT_TELEMETRY_DISABLED ??= "true";

const agent = new HttpAgent({ url: `${bridgeUrl}/run`, headers: token ? { authorization: `Bearer ${token}` } : {} });
const runtime = new CopilotRuntime({ agents: { "io-agent": agent } });
const answer = copilotRuntimeNodeHttpEndpoint({ endpoint, runtime, serviceAdapter: new ExperimentalEmptyAdapter() });

const folder = fileURLToPath(new URL("./public/", import.meta.url));
const types = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css" };

const server = createServer(async (request, response) => {
  const { pathname } = new URL(request.url, "http://localhost");
  if (pathname.startsWith(endpoint)) return answer(request, response);
  const file = path.join(folder, pathname === "/" ? "index.html" : path.basename(pathname));
  const body = await readFile(file).catch(() => undefined);
  response.writeHead(body ? 200 : 404, { "content-type": types[path.extname(file)] ?? "text/plain" }).end(body);
});
server.listen(port, () => console.log(`http://localhost:${server.address().port}`));
