// What to try: the demo agent understands all of it, a model most of it.

import { agent, send } from "../state/app.ts";
import { Icon, type IconName } from "./icon.tsx";

interface Suggestion {
  icon: IconName;
  title: string;
  prompt: string;
  /** Only the demo agent does this on request. */
  isDemo?: boolean;
}

export const suggestions: Suggestion[] = [
  { icon: "shapes", title: "Draw in the page", prompt: "Draw a shape: a large orange star then draw a shape: a small teal circle" },
  { icon: "question", title: "Ask me first", prompt: 'Ask for confirmation: "Shall I publish the report?"' },
  { icon: "moon", title: "Change the colours", prompt: "Set the theme to dark" },
  { icon: "pin", title: "Find me, and the time", prompt: "Call get_location and current_time" },
  { icon: "text", title: "Format an answer", prompt: "Show me some Markdown" },
  { icon: "refresh", title: "Reload while it writes", prompt: "Write 120 words slowly", isDemo: true },
  { icon: "bolt", title: "Think first", prompt: "think", isDemo: true },
  { icon: "alert", title: "See it fail", prompt: "fail", isDemo: true },
];

const offered = () => suggestions.filter(({ isDemo }) => !isDemo || agent.value?.provider === "demo");

export function Suggestions() {
  const current = agent.value;
  return (
    <section class="welcome">
      <h2>{current ? `Say hello to ${current.name}` : "No agent is offered here"}</h2>
      <p>{current?.description ?? "Ask it anything. It may use the tools of this page."}</p>
      <ul class="suggestions">
        {offered()
          .slice(0, 6)
          .map(({ icon, title, prompt }) => (
            <li key={title}>
              <button onClick={() => send(prompt)}>
                <Icon name={icon} />
                <span><strong>{title}</strong><small>{prompt}</small></span>
              </button>
            </li>
          ))}
      </ul>
    </section>
  );
}

export const SuggestionChips = () => (
  <ul class="chips" aria-label="Suggestions">
    {offered().map(({ icon, title, prompt }) => (
      <li key={title}>
        <button title={prompt} onClick={() => send(prompt)}>
          <Icon name={icon} /> {title}
        </button>
      </li>
    ))}
  </ul>
);
