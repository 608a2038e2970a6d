// A tool call: who was asked, with what, and what came back.

import { pageTool } from "../tools/index.ts";
import type { CallItem, CallStatus } from "../state/items.ts";
import { Icon, type IconName } from "./icon.tsx";
import { pretty } from "./words.ts";

const words: Record<CallStatus, string> = {
  opening: "Preparing",
  running: "Running",
  waiting: "Waiting for you",
  done: "Done",
  failed: "Failed",
};

const icons: Record<string, IconName> = {
  set_theme: "moon",
  draw_shape: "shapes",
  get_location: "pin",
  ask_confirmation: "question",
  current_time: "clock",
};

export function CallCard({ call, calls }: { call: CallItem; calls: CallItem[] }) {
  const tool = pageTool(call.name);
  const Picture = tool?.Picture;
  return (
    <div class={`call call-${call.status}`} role="group" aria-label={`Tool call ${call.name}`}>
      <details>
        <summary>
          <Icon name={icons[call.name] ?? "tool"} />
          <span class="call-name">{call.name}</span>
          <span class="call-place">{tool ? "in this page" : "on the server"}</span>
          <span class="call-status">{words[call.status]}</span>
          <Icon name="chevron" />
        </summary>
        <div class="call-data">
          <Json title="Arguments" text={call.arguments} />
          {call.result !== undefined && <Json title="Result" text={call.result} />}
        </div>
      </details>
      <p class="call-summary">
        <code>{short(call.arguments)}</code>
        {call.result !== undefined && <> <span aria-label="gave">→</span> <code>{short(call.result)}</code></>}
      </p>
      {Picture && call.status !== "failed" && <Picture call={call} calls={calls} />}
    </div>
  );
}

const Json = ({ title, text }: { title: string; text: string }) => (
  <figure>
    <figcaption>{title}</figcaption>
    <pre tabIndex={0}>{pretty(text)}</pre>
  </figure>
);

const SHORT_CHARACTERS = 90;

const short = (text: string): string => (text.length > SHORT_CHARACTERS ? `${text.slice(0, SHORT_CHARACTERS)}…` : text);
