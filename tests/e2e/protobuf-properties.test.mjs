// Generated events through the reference library: what it decodes from our frames is the event's JSON, and what it
// encodes from that JSON are our bytes. SEED=<n> takes another seed, EVENTS=<n> more events. Without Node:
// tests/protobuf_properties.rs.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import test from "node:test";
import { decode, encode } from "@ag-ui/proto";
import { path, root } from "../../scripts/tools.mjs";
import { EVENT_TYPES } from "./support/judge.mjs";

const seed = process.env.SEED ?? String(Math.floor(Math.random() * 1e9));
const count = Number(process.env.EVENTS ?? 10_000);

/** As JSON has it: the reference decoder leaves absent members as `undefined`. */
const plain = (value) => JSON.parse(JSON.stringify(value));

test(`${count} events of SEED=${seed} are the same in protobuf and JSON`, { timeout: 600_000 }, async (t) => {
  const args = ["run", "--quiet", "--example", "protobuf_frames", "--", seed, String(count)];
  const frames = spawn("cargo", args, { cwd: root, env: { ...process.env, PATH: path }, stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(frames, "close");
  const counts = {};
  for await (const line of createInterface({ input: frames.stdout })) {
    const [event, hex] = JSON.parse(line);
    const frame = Buffer.from(hex, "hex");
    const message = frame.subarray(4);
    assert.equal(frame.readUInt32BE(0), message.length, line);
    assert.deepEqual(plain(decode(message)), plain(event), line);
    assert.ok(message.equals(encode(event)), `other bytes than the reference: ${line}`);
    counts[event.type] = (counts[event.type] ?? 0) + 1;
  }
  assert.deepEqual(await ended, [0, null]);
  assert.equal(Object.values(counts).reduce((sum, of) => sum + of, 0), count);
  assert.deepEqual(Object.keys(counts).sort(), [...EVENT_TYPES].sort(), "every kind was made");
  for (const [type, of] of Object.entries(counts)) t.diagnostic(`${type} ${of}`);
});
