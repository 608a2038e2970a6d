// Every frame of a run, as it came.

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { asCurl } from "../curl.ts";
import { asSse, type Frame } from "../frames.ts";
import { conversation } from "../state/app.ts";
import { bindingNames } from "../state/settings.ts";
import { isInspectorOpen, toggleInspector } from "../state/layout.ts";
import type { Run } from "../state/run.ts";
import { Icon } from "./icon.tsx";
import { pretty, size } from "./words.ts";

const ROW_PX = 30;
const MARGIN_ROWS = 10;

const groups = ["All", "Run", "Text", "Tools"] as const;
type Group = (typeof groups)[number];

const isIn: Record<Group, (type: string) => boolean> = {
  All: () => true,
  Run: (type) => /^(RUN|STEP)_/.test(type),
  Text: (type) => /^(TEXT|REASONING)_/.test(type),
  Tools: (type) => type.startsWith("TOOL_"),
};

const group = signal<Group>("All");
const filter = signal("");
const chosenRunId = signal<string | undefined>(undefined);
const chosenFrame = signal<Frame | undefined>(undefined);

export function Inspector() {
  const { runs } = conversation.value;
  const run = runs.value.find(({ runId }) => runId === chosenRunId.value) ?? runs.value.at(-1);
  return (
    <aside class="inspector" aria-label="Event inspector" inert={!isInspectorOpen.value}>
      <header>
        <h2>Events</h2>
        {run && <Tools run={run} />}
        <button class="icon-button" aria-label="Close the inspector" onClick={toggleInspector}><Icon name="close" /></button>
      </header>
      {run ? <RunFrames run={run} runs={runs.value} /> : <Empty />}
    </aside>
  );
}

const Empty = () => (
  <div class="inspector-empty">
    <Icon name="bolt" />
    <p>Send a message, and every frame of its run shows here as it comes off the wire.</p>
  </div>
);

function Tools({ run }: { run: Run }) {
  const [isCopied, setCopied] = useState(false);
  const input = run.input.value;
  const copy = async () => {
    if (!input) return;
    await navigator.clipboard.writeText(asCurl(input, run.binding));
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  const download = () => {
    const url = URL.createObjectURL(new Blob([asSse(run.frames)], { type: "text/event-stream" }));
    Object.assign(document.createElement("a"), { href: url, download: `${run.runId}.sse` }).click();
    URL.revokeObjectURL(url);
  };
  return (
    <>
      <button class="plain small" disabled={!input} onClick={() => void copy()}>
        <Icon name={isCopied ? "check" : "copy"} /> {isCopied ? "Copied" : "curl"}
      </button>
      <button class="plain small" onClick={download} aria-label="Download the frames as .sse">
        <Icon name="download" /> .sse
      </button>
    </>
  );
}

function RunFrames({ run, runs }: { run: Run; runs: Run[] }) {
  const count = run.frameCount.value;
  const frames = shown(run.frames.slice(0, count), group.value, filter.value.toUpperCase());
  const byteCount = run.frames.reduce((sum, frame) => sum + frame.byteCount, 0);
  const frame = chosenFrame.value && run.frames.includes(chosenFrame.value) ? chosenFrame.value : undefined;
  return (
    <>
      <div class="inspector-bar">
        <div class="tabs" role="group" aria-label="Kind of event">
          {groups.map((name) => (
            <button key={name} aria-pressed={group.value === name} onClick={() => (group.value = name)}>{name}</button>
          ))}
        </div>
        {runs.length > 1 && (
          <select aria-label="Run" value={run.runId} onChange={(event) => (chosenRunId.value = event.currentTarget.value)}>
            {runs.map(({ runId }, index) => (
              <option key={runId} value={runId}>Run {index + 1}</option>
            ))}
          </select>
        )}
        <input type="search" aria-label="Filter frames" placeholder="Filter by any text" onInput={(event) => (filter.value = event.currentTarget.value)} />
      </div>
      <FrameList frames={frames} frame={frame} isLive={!run.isOver} />
      {frame && (
        <div class="frame-detail">
          <header>
            <h3>{frame.type}</h3>
            <button class="icon-button" aria-label="Close the frame" onClick={() => (chosenFrame.value = undefined)}><Icon name="close" /></button>
          </header>
          <pre tabIndex={0}>{pretty(frame.text.replace(/^data: /, ""))}</pre>
        </div>
      )}
      <p class="counts">{count} frames, {size(byteCount)} over {bindingNames[run.binding]}</p>
    </>
  );
}

function shown(frames: Frame[], kind: Group, wanted: string): Frame[] {
  if (kind === "All" && wanted === "") return frames;
  return frames.filter(({ type, text }) => isIn[kind](type) && text.toUpperCase().includes(wanted));
}

/** Only the rows in sight are drawn: a run may have thousands. */
function FrameList({ frames, frame, isLive }: { frames: Frame[]; frame: Frame | undefined; isLive: boolean }) {
  const list = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const look = () => {
    const element = list.current;
    if (element) setView({ top: element.scrollTop, height: element.clientHeight });
  };
  useEffect(() => {
    const watcher = new ResizeObserver(look);
    if (list.current) watcher.observe(list.current);
    return () => watcher.disconnect();
  }, []);
  useEffect(() => {
    const element = list.current;
    if (isLive && !frame && element) element.scrollTop = element.scrollHeight;
  }, [frames.length]);
  // The list may have become shorter than where it was scrolled to.
  const top = Math.max(0, Math.min(view.top, frames.length * ROW_PX - view.height));
  const first = Math.max(0, Math.floor(top / ROW_PX) - MARGIN_ROWS);
  const last = Math.min(frames.length, Math.ceil((top + view.height) / ROW_PX) + MARGIN_ROWS);
  return (
    <div class="frames" ref={list} onScroll={look} tabIndex={0} role="region" aria-label="Frames">
      <ol style={{ height: `${frames.length * ROW_PX}px` }}>
        {frames.slice(first, last).map((each, index) => (
          <li key={first + index} style={{ top: `${(first + index) * ROW_PX}px` }} aria-setsize={frames.length} aria-posinset={first + index + 1}>
            <button class={`frame ${kindOf(each.type)}`} aria-pressed={each === frame} onClick={() => (chosenFrame.value = each)}>
              <span class="frame-time">{Math.round(each.atMs)}</span>
              <span class="frame-type">{each.type}</span>
              <span class="frame-gist">{gist(each)}</span>
            </button>
          </li>
        ))}
      </ol>
    </div>
  );
}

const kindOf = (type: string): string => {
  if (type.endsWith("_ERROR")) return "is-error";
  if (isIn.Text(type)) return "is-text";
  if (isIn.Tools(type)) return "is-tool";
  return isIn.Run(type) ? "is-run" : "is-comment";
};

/** What tells one frame from the next. */
function gist({ event, text }: Frame): string {
  const members = (event ?? {}) as Record<string, unknown>;
  const value = members["delta"] ?? members["content"] ?? members["toolCallName"] ?? members["stepName"] ?? members["message"] ?? "";
  return event ? String(value).replaceAll("\n", "↵") : text;
}
