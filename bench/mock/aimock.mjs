// The independent model: `@copilotkit/aimock`, which others wrote, with one answer to everything.

import { LLMock } from "@copilotkit/aimock";

const mock = new LLMock({ port: 0, logLevel: "silent" });
mock.onMessage(/./, { content: process.env.ANSWER });
await mock.start();
process.send({ url: mock.url });
process.once("disconnect", () => process.exit());
