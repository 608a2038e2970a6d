// The examples that need no packages of their own, against the demo agent. `make test-examples` has the others.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { converse, run } from "../../examples/web/bridge.mjs";
import { fresh, user } from "./support/run.mjs";
import { test } from "./support/suite.mjs";
import { startWorker } from "./support/worker.mjs";

let worker;
before(async () => {
  worker = await startWorker();
});
after(() => worker.stop());

const input = (content) => ({ threadId: fresh("thread"), runId: fresh("run"), messages: [user(content)] });

test("examples/web converses, and runs its tools in the same run", async () => {
  const ran = [];
  const tools = {
    set_color: {
      description: "Sets the colour.",
      parameters: { type: "object", required: ["color"], properties: { color: { type: "string" } } },
      run: (args) => {
        ran.push(args);
        return { done: args.color };
      },
    },
    fails: { description: "Fails.", parameters: { type: "object" }, run: () => assert.fail("on purpose") },
  };
  let said = "";
  const onText = (delta) => (said += delta);
  await converse(worker.url(""), input('use set_color with {"color":"teal"}'), { tools, onText });
  assert.deepEqual(ran, [{ color: "teal" }]);
  assert.match(said, /teal/);
  said = "";
  await converse(worker.url(""), input("call fails"), { tools, onText });
  assert.match(said, /on purpose/);
});

test("examples/web tells a refusal, an error and a cut", async () => {
  const onText = () => {};
  await assert.rejects(converse(worker.url(""), { ...input("Hi"), runId: "" }, { onText }), /not valid/);
  await assert.rejects(converse(worker.url(""), input("fail"), { onText }), /reported an error/);
  const signal = AbortSignal.timeout(1500);
  await assert.rejects(async () => {
    for await (const _ of run(worker.url(""), input("silence 20 seconds"), { signal })) continue;
  });
});

test("examples/node answers a tool with the next run", async () => {
  const script = fileURLToPath(new URL("../../examples/node/chat.mjs", import.meta.url));
  const child = spawn(process.execPath, [script, "call roll_dice"], { env: { ...process.env, BRIDGE_URL: worker.url("") } });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => (printed += piece));
  const code = await new Promise((resolve) => child.once("close", resolve));
  assert.equal(code, 0, printed);
  const [, rolled] = /^roll_dice: \{"rolled":(\d+)\}$/m.exec(printed) ?? assert.fail(printed);
  assert.match(printed.slice(printed.indexOf("roll_dice: ") + 20), new RegExp(rolled));
});
