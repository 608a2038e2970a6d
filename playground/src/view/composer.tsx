// Where a person writes, and how the run is sent.

import { useEffect, useRef } from "preact/hooks";
import { agent, conversation, send } from "../state/app.ts";
import { isNarrow } from "../state/layout.ts";
import { binding, bindingNames, type Binding } from "../state/settings.ts";
import { Icon } from "./icon.tsx";
import { SuggestionChips } from "./suggestions.tsx";

const bindings = Object.entries(bindingNames) as [Binding, string][];

export function Composer() {
  const field = useRef<HTMLTextAreaElement>(null);
  const current = conversation.value;
  const run = current.run.value;
  const isRunning = current.isRunning.value;
  const canSend = agent.value !== undefined && !isRunning;
  // On a phone that would bring up the keyboard over what was just opened.
  useEffect(() => {
    if (!isNarrow.value) field.current?.focus({ preventScroll: true });
  }, [current.threadId]);

  const submit = (event: Event) => {
    event.preventDefault();
    const text = field.current?.value.trim();
    if (!text || !canSend || !field.current) return;
    send(text);
    field.current.value = "";
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
    if (event.key === "Escape" && isRunning) void run?.cancel();
  };

  return (
    <div class="composer">
      <div class="column">
        {!isRunning && current.items.value.length > 0 && <SuggestionChips />}
        <form onSubmit={submit}>
          <label class="hidden" for="message">Message</label>
          <textarea id="message" ref={field} rows={1} placeholder={`Message ${agent.value?.name ?? "the agent"}`} onKeyDown={onKeyDown} />
          <div class="composer-row">
            <fieldset class="segments">
              <legend class="hidden">Binding of the stream</legend>
              {bindings.map(([value, label]) => (
                <label key={value}>
                  <input type="radio" name="binding" value={value} checked={binding.value === value} onChange={() => (binding.value = value)} />
                  <span>{label}</span>
                </label>
              ))}
            </fieldset>
            <span class="spacer" />
            {isRunning ? (
              <>
                <button type="button" class="plain" onClick={() => run?.reconnect()} title="Go on over a new connection">
                  <Icon name="refresh" /> Reconnect
                </button>
                <button type="button" class="primary round" aria-label="Stop" title="Stop (Esc)" onClick={() => void run?.cancel()}>
                  <Icon name="stop" />
                </button>
              </>
            ) : (
              <button class="primary round" aria-label="Send" title="Send (Enter)" disabled={!canSend}>
                <Icon name="arrowUp" />
              </button>
            )}
          </div>
        </form>
      </div>
    </div>
  );
}
