// The owner's threads.

import { useRef, useState } from "preact/hooks";
import type { Thread } from "../api.ts";
import { explain } from "../problems.ts";
import * as app from "../state/app.ts";
import { isListOpen, isNarrow } from "../state/layout.ts";
import { askPerson } from "../state/questions.ts";
import { owner } from "../state/settings.ts";
import { Icon } from "./icon.tsx";
import { ago } from "./words.ts";

const SEARCH_PAUSE_MS = 200;

const isMac = navigator.userAgent.includes("Mac");

const closeIfNarrow = () => {
  if (isNarrow.value) isListOpen.value = false;
};

export function Threads() {
  const threads = app.threads.value;
  const isSearching = app.search.value !== "";
  const start = () => {
    app.newChat();
    closeIfNarrow();
  };
  return (
    <nav class="threads" aria-label="Threads" inert={!isListOpen.value}>
      <div class="brand">
        <Logo />
        <span>io-bridge</span>
        {isNarrow.value && (
          <button class="icon-button" aria-label="Close the list" onClick={() => (isListOpen.value = false)}>
            <Icon name="close" />
          </button>
        )}
      </div>
      <button class="new-chat" onClick={start}>
        <Icon name="plus" /> New chat
      </button>
      <Search />
      {app.threadsProblem.value && <p class="list-note">{app.threadsProblem.value.title}. {app.threadsProblem.value.detail}</p>}
      {threads.length === 0 && !app.threadsProblem.value && app.isReady.value && (
        <p class="list-note">{isSearching ? "Nothing found." : "Your chats will be kept here."}</p>
      )}
      <ul>
        {threads.map((thread) => (
          <Row key={thread.id} thread={thread} />
        ))}
      </ul>
      {app.hasMoreThreads.value && (
        <button class="quiet" onClick={() => void app.moreThreads()}>Show more</button>
      )}
      <p class="owner">
        <span>Owner <code>{owner.value || "from the token"}</code></span>
        <a href="/docs">API</a>
      </p>
    </nav>
  );
}

function Search() {
  const timer = useRef(0);
  const onInput = (event: InputEvent) => {
    app.search.value = (event.currentTarget as HTMLInputElement).value;
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => void app.refreshThreads(), SEARCH_PAUSE_MS);
  };
  return (
    <div class="search">
      <Icon name="search" />
      <label class="hidden" for="search">Search threads</label>
      <input id="search" type="search" placeholder="Search" autocomplete="off" onInput={onInput} />
      <kbd aria-hidden="true">{isMac ? "⌘K" : "Ctrl K"}</kbd>
    </div>
  );
}

function Row({ thread }: { thread: Thread }) {
  const [isEditing, setEditing] = useState(false);
  const [fault, setFault] = useState("");
  const title = thread.title || "New chat";
  const isCurrent = app.conversation.value.threadId === thread.id;
  const attempt = (change: Promise<void>) => change.then(() => setFault(""), (error: unknown) => setFault(explain(error).title));
  const open = () => {
    void app.openThread(thread.id);
    closeIfNarrow();
  };
  const remove = async () => {
    const text = `“${title}” and all its messages will be gone.`;
    const isSure = await askPerson({ from: "Delete this thread?", text, yes: "Delete", no: "Keep it", isGrave: true });
    if (isSure) await attempt(app.remove(thread));
  };
  const rename = (wanted: string) => {
    setEditing(false);
    if (wanted !== "" && wanted !== title) void attempt(app.rename(thread, wanted));
  };
  if (isEditing) return <li><TitleField title={title} onDone={rename} /></li>;
  return (
    <li class={isCurrent ? "row is-current" : "row"}>
      <button class="row-open" aria-current={isCurrent ? "page" : undefined} onClick={open}>
        <span class="row-title">{title}</span>
        <small>{fault || thread.snippet || ago(thread.updatedAt)}</small>
      </button>
      <span class="row-actions">
        <button class="icon-button" aria-label={`Rename ${title}`} title="Rename" onClick={() => setEditing(true)}>
          <Icon name="pencil" />
        </button>
        <button class="icon-button" aria-label={`Delete ${title}`} title="Delete" onClick={() => void remove()}>
          <Icon name="trash" />
        </button>
      </span>
    </li>
  );
}

function TitleField({ title, onDone }: { title: string; onDone(wanted: string): void }) {
  const isLeft = useRef(false);
  const done = (wanted: string) => {
    if (isLeft.current) return;
    isLeft.current = true;
    onDone(wanted.trim());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter") done((event.currentTarget as HTMLInputElement).value);
    if (event.key === "Escape") done(title);
  };
  return (
    <input
      class="title-field"
      aria-label="Title"
      maxLength={512}
      defaultValue={title}
      ref={(field) => field?.select()}
      onKeyDown={onKeyDown}
      onBlur={(event) => done(event.currentTarget.value)}
    />
  );
}

/** Two piers and the span between them. */
const Logo = () => (
  <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="9" />
    <path d="M7 22V11M25 22V11M7 13c3 6.5 15 6.5 18 0M4.5 22h23M13 17.200V22M19 17.200V22" />
  </svg>
);
