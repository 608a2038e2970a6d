// The official AG-UI client, driven as an application drives it; whatever it warns about is a failure.

import assert from "node:assert/strict";
import { HttpAgent } from "@ag-ui/client";
import { judge } from "./judge.mjs";
import { fresh } from "./run.mjs";

/** One conversation of a stock HttpAgent. */
export class Client {
  constructor(worker, { threadId = fresh("thread"), messages = [] } = {}) {
    this.agent = new HttpAgent({ url: worker.url("/run"), threadId, initialMessages: messages });
  }

  get messages() {
    return this.agent.messages;
  }

  /** Runs once; `onEvent` may answer calls meanwhile. Gives the judged events and the client's own result. */
  async run({ onEvent = () => {}, runId = fresh("run"), forwardedProps, ...parameters } = {}) {
    const warnings = [];
    const { warn } = console;
    console.warn = (...words) => warnings.push(words.join(" "));
    const events = [];
    let input;
    try {
      const result = await this.agent.runAgent(
        { runId, forwardedProps: { agentId: "stub", ...forwardedProps }, ...parameters },
        {
          onRunInitialized: (parameters) => void (input = parameters.input),
          onEvent: ({ event }) => {
            events.push(event);
            onEvent(event);
          },
        },
      );
      assert.deepEqual(warnings, []);
      assert.ok(input, "the client said what it sent");
      await judge(events, { input });
      return { events, result, runId };
    } finally {
      console.warn = warn;
    }
  }
}
