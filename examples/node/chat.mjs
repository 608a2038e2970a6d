// Asks one question and prints the answer as it comes. The model may roll a die, which this script does.
//
//   BRIDGE_URL=https://... BRIDGE_TOKEN=... node chat.mjs "call roll_dice"

import { randomInt, randomUUID } from "node:crypto";
import { HttpAgent } from "@ag-ui/client";

const url = process.env.BRIDGE_URL ?? "http://localhost:8787/io-bridge";
const token = process.env.BRIDGE_TOKEN;
const question = process.argv[2] ?? "Hello!";

const tools = [
  {
    name: "roll_dice",
    description: "Rolls a die and gives the number.",
    parameters: { type: "object", properties: { sides: { type: "integer", minimum: 2 } } },
    run: ({ sides = 6 }) => ({ rolled: randomInt(1, sides + 1) }),
  },
];

const agent = new HttpAgent({
  url: `${url}/run`,
  threadId: randomUUID(),
  headers: token ? { authorization: `Bearer ${token}` } : {},
});
const declared = tools.map(({ run, ...tool }) => tool);
const subscriber = { onTextMessageContentEvent: ({ event }) => void process.stdout.write(event.delta) };

agent.addMessage({ id: randomUUID(), role: "user", content: question });
for (;;) {
  // The run ends after the calls; their results come with the next one.
  await agent.runAgent({ tools: declared, forwardedProps: { frontendTools: "next-run" } }, subscriber);
  process.stdout.write("\n");
  const answered = new Set(agent.messages.map(({ toolCallId }) => toolCallId));
  const calls = agent.messages.flatMap(({ toolCalls }) => toolCalls ?? []).filter(({ id }) => !answered.has(id));
  if (calls.length === 0) break;
  for (const call of calls) {
    const tool = tools.find(({ name }) => name === call.function.name);
    const content = JSON.stringify(tool.run(JSON.parse(call.function.arguments)));
    console.log(`${call.function.name}: ${content}`);
    agent.addMessage({ id: randomUUID(), role: "tool", toolCallId: call.id, content });
  }
}
