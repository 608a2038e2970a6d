// The page: threads, chat, inspector.

import { useEffect, useRef } from "preact/hooks";
import * as app from "../state/app.ts";
import { announcement, isCovered, isInspectorOpen, isListOpen, isSettingsOpen, toggleInspector, uncover } from "../state/layout.ts";
import { agentId } from "../state/settings.ts";
import { Chat } from "./chat.tsx";
import { Composer } from "./composer.tsx";
import { Questions, Settings } from "./dialogs.tsx";
import { Icon } from "./icon.tsx";
import { Inspector } from "./inspector.tsx";
import { Threads } from "./threads.tsx";

function onKeyDown(event: KeyboardEvent): void {
  if (event.key === "Escape" && isCovered.value) uncover();
  if (event.key !== "k" || !(event.metaKey || event.ctrlKey)) return;
  event.preventDefault();
  isListOpen.value = true;
  requestAnimationFrame(() => document.getElementById("search")?.focus());
}

/** Focus follows what lies over the chat, and goes back when that is gone. */
function useCoverFocus(): void {
  const before = useRef<Element | null>(null);
  useEffect(() => {
    const cover = document.querySelector<HTMLElement>(isListOpen.value ? ".threads" : ".inspector");
    if (isCovered.value) {
      before.current = document.activeElement;
      cover?.querySelector<HTMLElement>("[aria-label^=Close]")?.focus();
    } else if (before.current instanceof HTMLElement) {
      before.current.focus();
    }
  }, [isCovered.value]);
}

export function App() {
  useEffect(() => {
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
  useCoverFocus();
  return (
    <div class="page" data-list={isListOpen.value ? "open" : "shut"} data-inspector={isInspectorOpen.value ? "open" : "shut"}>
      <Threads />
      <main inert={isCovered.value}>
        <Header />
        <Chat />
        <Composer />
      </main>
      <Inspector />
      {isCovered.value && <div class="scrim" onClick={uncover} />}
      <Settings />
      <Questions />
      <p class="hidden" role="status">{announcement.value}</p>
    </div>
  );
}

function Header() {
  const list = app.agents.value;
  return (
    <header class="top">
      <button class="icon-button" aria-label="Threads" aria-expanded={isListOpen.value} onClick={() => (isListOpen.value = !isListOpen.value)}>
        <Icon name="menu" />
      </button>
      <h1 class="hidden">io-bridge playground</h1>
      <label class="hidden" for="agent">Agent</label>
      <select id="agent" value={app.agent.value?.id} disabled={list.length === 0} onChange={(event) => (agentId.value = event.currentTarget.value)}>
        {list.map(({ id, name }) => (
          <option key={id} value={id}>{name}</option>
        ))}
      </select>
      {app.agent.value && <span class="model">{app.agent.value.modelId || app.agent.value.provider}</span>}
      <span class="spacer" />
      <button class="icon-button" aria-label="Settings" title="Settings" onClick={() => (isSettingsOpen.value = true)}>
        <Icon name="gear" />
      </button>
      <button class="icon-button" aria-label="Event inspector" title="Event inspector" aria-expanded={isInspectorOpen.value} onClick={toggleInspector}>
        <Icon name="panel" />
      </button>
    </header>
  );
}
