// The conversation: what was said, what was called, what went wrong.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { agent, conversation, problem as connectProblem } from "../state/app.ts";
import type { CallItem, Item, NoticeItem, TextItem } from "../state/items.ts";
import { isSettingsOpen } from "../state/layout.ts";
import type { Run } from "../state/run.ts";
import { CallCard } from "./call-card.tsx";
import { Icon } from "./icon.tsx";
import { Markdown } from "./markdown.tsx";
import { memo } from "./memo.ts";
import { Suggestions } from "./suggestions.tsx";
import { duration } from "./words.ts";

const NEAR_PX = 80;

export function Chat() {
  const current = conversation.value;
  const items = current.items.value;
  const problem = connectProblem.value ?? current.problem.value;
  const isEmpty = items.length === 0 && !current.isLoading.value;
  const { scroller, isAway, toEnd } = useStickyEnd(items, current.threadId);
  return (
    <div class="chat" ref={scroller} tabIndex={-1}>
      <div class="column">
        {current.earlierCount.value > 0 && (
          <button class="quiet earlier" onClick={() => void current.loadEarlier()}>
            Show earlier messages
          </button>
        )}
        {problem && <Notice notice={{ kind: "notice", id: "problem", tone: "error", ...problem }} />}
        {current.isLoading.value && <Skeleton />}
        {isEmpty && !problem && <Suggestions />}
        <ol class="turns" aria-label="Conversation">
          {turnsOf(items).map((turn) => (
            <li key={turn[0]?.id} class={`turn turn-${turn[0]?.kind === "user" ? "user" : "agent"}`}>
              {turn.map((item) => (
                <ItemView key={`${item.kind}-${item.id}`} item={item} items={items} />
              ))}
            </li>
          ))}
        </ol>
        {current.run.value && <RunFooter run={current.run.value} />}
      </div>
      {isAway && (
        <button class="to-end" onClick={toEnd}>
          <Icon name="arrowDown" /> Latest
        </button>
      )}
    </div>
  );
}

/** Keeps the end in sight while it grows, unless the person has scrolled away from it. */
function useStickyEnd(items: Item[], threadId: string) {
  const scroller = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const hasItems = useRef(false);
  hasItems.current = items.length > 0;
  const [isAway, setAway] = useState(false);
  const toEnd = () => {
    const element = scroller.current;
    if (element) element.scrollTop = element.scrollHeight;
  };
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const look = () => {
      isAtEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_PX;
      setAway(!isAtEnd.current);
    };
    const keep = () => {
      if (isAtEnd.current && hasItems.current) toEnd();
      else look();
    };
    const watcher = new ResizeObserver(keep);
    for (const watched of [element, ...element.children]) watcher.observe(watched);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      watcher.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, []);
  // Who opens a thread, or has just spoken, wants to see its end.
  useLayoutEffect(() => {
    isAtEnd.current = true;
  }, [threadId, items.findLast(({ kind }) => kind === "user")?.id]);
  return { scroller, isAway, toEnd };
}

/** What the agent says and does between two user messages is one turn. */
function turnsOf(items: Item[]): Item[][] {
  const turns: Item[][] = [];
  for (const item of items) {
    const last = turns.at(-1);
    if (last && item.kind !== "user" && last[0]?.kind !== "user") last.push(item);
    else turns.push([item]);
  }
  return turns;
}

const isSameView = (before: { item: Item; items: Item[] }, now: { item: Item; items: Item[] }) =>
  before.item === now.item && (now.item.kind !== "call" || before.items === now.items);

const ItemView = memo(({ item, items }: { item: Item; items: Item[] }) => {
  switch (item.kind) {
    case "user":
      return <p class="said"><span class="hidden">You said: </span>{item.text}</p>;
    case "text":
      return (
        <div class={item.isOpen ? "answer is-open" : "answer"}>
          <Markdown text={item.text} />
        </div>
      );
    case "thought":
      return <Thought thought={item} />;
    case "call":
      return <CallCard call={item} calls={items.filter((other): other is CallItem => other.kind === "call")} />;
    case "notice":
      return <Notice notice={item} />;
  }
}, isSameView);

const Thought = ({ thought }: { thought: TextItem }) => (
  <details class="thought">
    <summary>
      <Icon name="bolt" /> {thought.isOpen ? "Thinking" : "Thought first"} <Icon name="chevron" />
    </summary>
    <p>{thought.text}</p>
  </details>
);

function Notice({ notice }: { notice: NoticeItem }) {
  const { tone, title, detail, code, action } = notice;
  return (
    <div class={`notice notice-${tone}`} role={tone === "error" ? "alert" : "status"}>
      <Icon name={tone === "error" ? "alert" : "stop"} />
      <div class="notice-words">
        <strong>{title}</strong>
        {detail && <p>{detail}</p>}
        {code && <code>{code}</code>}
      </div>
      {action === "settings" && (
        <button class="plain" onClick={() => (isSettingsOpen.value = true)}>Open settings</button>
      )}
      {action === "retry" && notice.id !== "problem" && (
        <button class="plain" onClick={() => conversation.value.retry(agent.value?.id ?? "")}>Try again</button>
      )}
      {action === "retry" && notice.id === "problem" && (
        <button class="plain" onClick={() => location.reload()}>Reload</button>
      )}
    </div>
  );
}

function RunFooter({ run }: { run: Run }) {
  const phase = run.phase.value;
  const { firstTextMs, durationMs } = run.timing.value;
  const usage = run.usage.value;
  if (phase === "connecting") return <p class="run-footer"><i class="pulse" /> Connecting</p>;
  if (phase === "reconnecting") return <p class="run-footer"><i class="pulse" /> Reconnecting</p>;
  if (phase === "lost") {
    return (
      <div class="notice notice-error" role="alert">
        <Icon name="plug" />
        <div class="notice-words">
          <strong>The connection was lost</strong>
          <p>The run may still be going on.</p>
        </div>
        <button class="plain" onClick={() => run.reconnect()}>Reconnect</button>
      </div>
    );
  }
  if (durationMs === undefined) return null;
  return (
    <dl class="run-footer">
      <div><dt>Took</dt><dd>{duration(durationMs)}</dd></div>
      {firstTextMs !== undefined && <div><dt>First word</dt><dd>{duration(firstTextMs)}</dd></div>}
      {usage && <div><dt>Tokens</dt><dd>{usage.inputTokens} in, {usage.outputTokens} out</dd></div>}
    </dl>
  );
}

const Skeleton = () => (
  <div class="skeleton" role="status">
    <span class="hidden">Loading the thread</span>
    <i /><i /><i /><i />
  </div>
);
