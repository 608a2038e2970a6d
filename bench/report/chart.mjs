// docs/benchmarks.svg: the main figures as bars on log axes, and the growth of a run's times.

import { byAxis } from "./tables.mjs";
import { KEEPS_UP_SHARE } from "./targets.mjs";

const WIDTH = 960;
const MARGIN = 24;
const PANEL_GAP = 28;
const ROW_HEIGHT = 20;
const TITLE_HEIGHT = 30;
const LABEL_WIDTH = 190;
const VALUE_WIDTH = 70;
const PLOT_HEIGHT = 150;

const FLOOR_COLOUR = "#cbd5e1";
const COLOURS = {
  "io-bridge": "#c2410c",
  "js-worker": "#475569",
  "pass-through": FLOOR_COLOUR,
  direct: FLOOR_COLOUR,
  trivial: FLOOR_COLOUR,
};
const PEER_COLOUR = "#7c9ccb";
const INK = "#1e293b";
const FAINT = "#94a3b8";

const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const colourOf = (key) => COLOURS[key.split(",")[0]] ?? PEER_COLOUR;
const shown = (value) => (value >= 100 ? Math.round(value).toLocaleString("en-US") : value.toPrecision(2));

const label = (x, y, text, { anchor = "start", size = 12, colour = INK, weight = "normal" } = {}) =>
  `<text x="${x}" y="${y}" text-anchor="${anchor}" font-size="${size}" fill="${colour}" font-weight="${weight}">${escape(text)}</text>`;

/** The panels of bars: a title, and a value for each contender. */
function panels(results) {
  const valued = (rows, value) => (rows ?? []).map((row) => ({ ...row, value: value(row) }));
  const pick = (rows, value) => valued(rows, value).filter((bar) => bar.value > 0);
  const streamCounts = (results.paced ?? []).map(({ streamCount }) => streamCount);
  const most = Math.max(...streamCounts);
  const crowd = (results.paced ?? []).filter(({ streamCount }) => streamCount === most);
  return [
    { title: "First text over the model, p50, ms (less is better)", bars: pick(results["first-text"], ({ overheadMs }) => overheadMs?.p50) },
    { title: "Flood, text deltas per second (more is better)", bars: pick(results.flood, ({ eventsPerSecond }) => eventsPerSecond.median) },
    { title: "Runs per second by eight clients (more is better)", bars: pick(results.throughput, ({ runsPerSecond }) => runsPerSecond.median) },
    { title: "Front-end tool's result to next words, p50, ms (less is better)", bars: pick(results["tool-loop"], ({ nextTextMs }) => nextTextMs.p50) },
    {
      title: `${most} streams at 50 tokens/s: late by, p99, ms (less is better)`,
      bars: valued(crowd, ({ latencyMs, deliveredShare }) => (deliveredShare < KEEPS_UP_SHARE ? undefined : latencyMs.p99)),
    },
    { title: "Cold start to first answer, ms (less is better)", bars: pick(results["cold-start"], ({ firstAnswerMs }) => firstAnswerMs.median) },
  ].filter(({ bars }) => bars.length > 0);
}

/** Bars on a log axis that starts a little below the smallest value; one without a value does not keep up. */
function barPanel({ title, bars }, x, width) {
  const values = bars.map(({ value }) => value).filter((value) => value > 0);
  const [low, high] = [Math.log(Math.min(...values) / 2), Math.log(Math.max(...values))];
  const room = width - LABEL_WIDTH - VALUE_WIDTH;
  const rows = bars.map(({ key, label: name, value }, index) => {
    const y = TITLE_HEIGHT + index * ROW_HEIGHT;
    const start = x + LABEL_WIDTH;
    const named = label(start - 6, y + 13, name.replace("Mastra with @ag-ui/mastra", "Mastra"), { anchor: "end", size: 11 });
    if (!(value > 0)) return named + label(start, y + 13, "does not keep up", { size: 11, colour: FAINT });
    const length = Math.max(2, (room * (Math.log(value) - low)) / (high - low));
    return [
      named,
      `<rect x="${start}" y="${y + 3}" width="${length.toFixed(1)}" height="${ROW_HEIGHT - 6}" fill="${colourOf(key)}"/>`,
      label(start + length + 5, y + 13, shown(value), { size: 11 }),
    ].join("");
  });
  return { height: TITLE_HEIGHT + bars.length * ROW_HEIGHT, content: label(x, 16, title, { weight: "bold" }) + rows.join("") };
}

/** First text and flood of ours against what grows, both axes logarithmic. */
function growthPanel({ axis, rows }, x, width) {
  const dashes = { firstText: "", flood: "4 3" };
  const curves = rows.flatMap(({ key, curves: all }) =>
    all.filter((curve) => curve.key in dashes).map((curve) => ({ key, points: curve.points, dash: dashes[curve.key] })),
  );
  const logs = (index) => curves.flatMap(({ points }) => points.map((point) => Math.log10(point[index])));
  const [x0, x1] = [Math.min(...logs(0)), Math.max(...logs(0))];
  const [y0, y1] = [Math.floor(Math.min(...logs(1))), Math.ceil(Math.max(...logs(1)))];
  const left = x + 44;
  const right = x + width - 12;
  const at = ([along, up]) => [
    left + ((right - left) * (Math.log10(along) - x0)) / (x1 - x0),
    TITLE_HEIGHT + PLOT_HEIGHT * (1 - (Math.log10(up) - y0) / (y1 - y0)),
  ];
  const grid = Array.from({ length: y1 - y0 + 1 }, (_, index) => {
    const [, y] = at([10 ** x0, 10 ** (y0 + index)]);
    return `<line x1="${left}" x2="${right}" y1="${y}" y2="${y}" stroke="#e2e8f0"/>${label(left - 4, y + 4, `${10 ** (y0 + index)} ms`, { anchor: "end", size: 10, colour: FAINT })}`;
  });
  const ticks = curves[0].points.map(([point]) => {
    const [tick] = at([point, 10 ** y0]);
    return label(tick, TITLE_HEIGHT + PLOT_HEIGHT + 14, point.toLocaleString("en-US"), { anchor: "middle", size: 10, colour: FAINT });
  });
  const lines = curves.map(({ key, points, dash }) => {
    const path = points.map((point) => at(point).map((value) => value.toFixed(1)).join(",")).join(" ");
    return `<polyline points="${path}" fill="none" stroke="${colourOf(key)}" stroke-width="2" stroke-dasharray="${dash}"/>`;
  });
  return {
    height: TITLE_HEIGHT + PLOT_HEIGHT + 20,
    content: label(x, 16, axis, { weight: "bold" }) + [...grid, ...ticks, ...lines].join(""),
  };
}

/** The whole picture: panels in two columns. */
export function chart({ results }) {
  const width = (WIDTH - 2 * MARGIN - PANEL_GAP) / 2;
  const axes = byAxis(results.growth ?? []);
  const drawn = [
    ...panels(results).map((panel) => (x) => barPanel(panel, x, width)),
    ...axes.map((panel) => (x) => growthPanel(panel, x, width)),
  ];
  let y = MARGIN;
  const parts = [];
  for (let at = 0; at < drawn.length; at += 2) {
    const pair = drawn.slice(at, at + 2).map((draw, column) => draw(MARGIN + column * (width + PANEL_GAP)));
    parts.push(...pair.map(({ content }) => `<g transform="translate(0 ${y})">${content}</g>`));
    y += Math.max(...pair.map(({ height }) => height)) + PANEL_GAP;
  }
  if (axes.length > 0) {
    parts.push(label(MARGIN, y, "Growth: solid = first text, dashed = flood; io-bridge in red, the JS Worker in grey", { size: 11, colour: FAINT }));
    y += PANEL_GAP;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" font-family="system-ui, sans-serif">
<rect width="${WIDTH}" height="${y}" fill="#fff"/>
${parts.join("\n")}
</svg>
`;
}
