// Results as tables: title, columns, rows of text; and those as Markdown or for a terminal.

const number = (value, digits = 1) =>
  value === undefined || value === null || !Number.isFinite(value)
    ? "-"
    : value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });

const whole = (value) => number(value, 0);
const significant = (value) => number(value, value < 10 ? 2 : value < 100 ? 1 : 0);
const spreadOf = ({ median, low, high }, show) => `${show(median)} (${show(low)}-${show(high)})`;
const kib = (bytes) => (bytes === undefined ? "-" : whole(bytes / 1024));

/** What was measured of growth, `[{ axis, rows }]`. */
export const byAxis = (all) =>
  [...new Set(all.map(({ axis }) => axis))].map((axis) => ({ axis, rows: all.filter((row) => row.axis === axis) }));

const firstTextTable = (title) => (rows) => [
  {
    title,
    columns: ["", "first event p50, ms", "p95", "first text p50, ms", "p95", "over the model p50, ms", "p95"],
    rows: rows.map(({ label, firstEventMs, firstTextMs, overheadMs }) => [
      label,
      significant(firstEventMs.p50),
      significant(firstEventMs.p95),
      significant(firstTextMs.p50),
      significant(firstTextMs.p95),
      significant(overheadMs?.p50),
      significant(overheadMs?.p95),
    ]),
  },
];

const makers = {
  targets: (rows) => [
    {
      title: "Targets",
      columns: ["", "target", "measured", "a JS Worker that does it that way", ""],
      rows: rows.map(({ name, target, measured, floor, isReached }) => [
        name,
        target,
        measured ?? "not measured",
        floor ?? "",
        isReached === undefined ? "" : isReached ? "reached" : "**not reached**",
      ]),
    },
  ],
  "first-text": firstTextTable("Time to first event and first text"),
  aimock: firstTextTable("The same with another model server, `@copilotkit/aimock`"),
  flood: (rows) => [
    {
      title: "A flood",
      columns: ["", "text deltas/s, median (middle half)", "CPU ms per 1,000"],
      rows: rows.map(({ label, eventsPerSecond, cpuMsPerThousand }) => [
        label,
        spreadOf(eventsPerSecond, whole),
        significant(cpuMsPerThousand),
      ]),
    },
  ],
  throughput: (rows) => [
    {
      title: "Short runs by eight clients",
      columns: ["", "runs/s, median (middle half)", "CPU ms per run"],
      rows: rows.map(({ label, runsPerSecond, cpuMsPerRun }) => [label, spreadOf(runsPerSecond, whole), significant(cpuMsPerRun)]),
    },
  ],
  "tool-loop": (rows) => [
    {
      title: "From a front-end tool's result to the next words",
      columns: ["", "p50, ms", "p95, ms"],
      rows: rows.map(({ label, nextTextMs }) => [label, significant(nextTextMs.p50), significant(nextTextMs.p95)]),
    },
  ],
  paced: (rows) =>
    [...new Set(rows.map(({ streamCount }) => streamCount))].map((count) => ({
      title: `${count} streams at 50 tokens/s`,
      columns: ["", "late by p50, ms", "p99, ms", "came in time, %", "memory per stream, KiB", "CPU ms per 1,000"],
      rows: rows
        .filter(({ streamCount }) => streamCount === count)
        .map(({ label, latencyMs, deliveredShare, bytesPerStream, cpuMsPerThousand }) => [
          label,
          significant(latencyMs.p50),
          significant(latencyMs.p99),
          whole(deliveredShare * 100),
          kib(bytesPerStream),
          significant(cpuMsPerThousand),
        ]),
    })),
  "cold-start": (rows) => [
    {
      title: "Cold start",
      columns: ["", "process start to first answer, ms", "to the first text of a first run, ms"],
      rows: rows.map(({ label, firstAnswerMs, firstTextMs }) => [
        label,
        spreadOf(firstAnswerMs, whole),
        firstTextMs ? spreadOf(firstTextMs, whole) : "-",
      ]),
    },
  ],
  bundles: (rows) => [
    {
      title: "Bundle",
      columns: ["", "KiB", "KiB gzipped"],
      rows: rows.map(({ label, plainBytes, gzipBytes }) => [label, kib(plainBytes), kib(gzipBytes)]),
    },
  ],
  growth: (all) =>
    byAxis(all).map(({ axis, rows }) => ({
      title: `Growth: ${axis}`,
      columns: ["", ...rows[0].curves[0].points.map(([point]) => whole(point)), "power"],
      rows: rows.flatMap(({ label, curves }) =>
        curves.map(({ name, points, power }) => [`${label}, ${name}`, ...points.map(([, value]) => significant(value)), number(power, 2)]),
      ),
    })),
  profile: (rows) => [
    {
      title: "Where the processor time goes",
      columns: ["", "per", "process, CPU ms", "seen in V8, ms", "wasm, %", "JavaScript, %", "builtins, %", "collector, %"],
      rows: rows.map(({ label, unit, processMs, seenMs, shares }) => [
        label,
        unit,
        significant(processMs),
        significant(seenMs),
        ...["wasm", "script", "builtin", "collector"].map((name) => whole(shares[name] * 100)),
      ]),
    },
  ],
  bill: ({ runs }) => [
    {
      title: "What a run asks of the platform",
      columns: ["", "Worker requests", "object requests", "object rows read", "written", "D1 statements", "rows read", "written", "CPU ms"],
      rows: runs.map(({ label, counts, cpuMs }) => [
        label,
        ...["workerRequests", "objectRequests", "objectRowsRead", "objectRowsWritten", "d1Statements", "d1RowsRead", "d1RowsWritten"].map((key) =>
          significant(counts[key]),
        ),
        significant(cpuMs),
      ]),
    },
  ],
};

/** The tables of some results. */
export const tables = (results) => Object.entries(results).flatMap(([name, result]) => makers[name](result));

const row = (cells) => `| ${cells.join(" | ")} |`;

export const markdown = ({ columns, rows }) =>
  [row(columns), row(columns.map((_, index) => (index === 0 ? "---" : "--:"))), ...rows.map(row)].join("\n");

/** Tables for a terminal. */
export function text(all) {
  return all.map(({ title, columns, rows }) => {
    const widths = columns.map((_, index) => Math.max(...[columns, ...rows].map((cells) => cells[index].length)));
    const line = (cells) => cells.map((cell, index) => (index === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[index]))).join("  ");
    return [title, ...[columns, ...rows].map(line)].join("\n");
  }).join("\n\n");
}
