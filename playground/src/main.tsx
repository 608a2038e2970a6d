import "./schemas.ts";

import { effect } from "@preact/signals";
import { render } from "preact";
import { connect, conversation, openFromAddress } from "./state/app.ts";
import { announcement } from "./state/layout.ts";
import type { Phase } from "./state/run.ts";
import { App } from "./view/app.tsx";

const said: Partial<Record<Phase, string>> = {
  streaming: "The agent answers.",
  reconnecting: "Reconnecting.",
  lost: "The connection was lost.",
  finished: "The answer is complete.",
  failed: "The answer was interrupted.",
  cancelled: "Stopped.",
};

effect(() => {
  const phase = conversation.value.run.value?.phase.value;
  announcement.value = (phase && said[phase]) ?? "";
});

addEventListener("popstate", () => void openFromAddress());

const place = document.getElementById("app");
if (place) render(<App />, place);
void connect();
