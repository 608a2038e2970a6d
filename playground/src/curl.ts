// A run as a command line.

import type { RunAgentInput } from "@ag-ui/core";
import { address } from "./api.ts";
import { token, type Binding } from "./state/settings.ts";

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The request that started a run; the token is left to the shell. */
export function asCurl(input: RunAgentInput, binding: Binding): string {
  const accept = binding === "protobuf" ? "application/vnd.ag-ui.event+proto" : "text/event-stream";
  const headers = [`-H 'content-type: application/json'`, `-H 'accept: ${accept}'`];
  if (token.value !== "") headers.push(`-H "authorization: Bearer $IO_BRIDGE_TOKEN"`);
  return ["curl -sN", quoted(address("/run")), ...headers, "-d", quoted(JSON.stringify(input))].join(" ");
}
