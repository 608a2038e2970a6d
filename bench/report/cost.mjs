// docs/cost.md: what runs cost, from what they ask of the platform and its list prices.

import { byAxis, markdown } from "./tables.mjs";

// Dollars per million, beyond what the paid plan includes. List prices of Workers, Durable Objects (SQLite storage) and
// D1 as Cloudflare publishes them; check them before you rely on them.
const PRICES = [
  ["workerRequests", "Worker requests", 0.3],
  ["cpuMs", "CPU milliseconds", 0.02],
  ["objectRequests", "object requests (alarms count)", 0.15],
  ["objectGbSeconds", "object GB-seconds, at 128 MB each", 12.5],
  ["objectRowsRead", "object rows read", 0.001],
  ["objectRowsWritten", "object rows written (keys and alarms count)", 1],
  ["d1RowsRead", "D1 rows read", 0.001],
  ["d1RowsWritten", "D1 rows written (index entries count)", 1],
];

const OBJECT_GB = 0.128;

/** How long a run's object is awake where the model's pace does not say it: a short answer's time. */
const SHORT_SECONDS = 6;

/** How much of each priced thing a run takes. */
function amounts({ counts, cpuMs, seconds = SHORT_SECONDS }) {
  return {
    ...counts,
    objectRequests: counts.objectRequests + counts.objectAlarms,
    cpuMs,
    objectGbSeconds: counts.objectRequests > 0 ? seconds * OBJECT_GB : 0,
  };
}

/** Dollars of a million such runs, by what they are for. */
export function costOf(run) {
  const taken = amounts(run);
  const parts = Object.fromEntries(PRICES.map(([key, , price]) => [key, taken[key] * price]));
  return { parts, total: Object.values(parts).reduce((sum, part) => sum + part, 0) };
}

const dollars = (value) => (value < 0.005 ? "0" : value.toFixed(2));

/** What is counted of a run that grows. */
const GROWING = [
  ["objectRequests", "object requests"],
  ["objectRowsWritten", "object rows written"],
  ["d1Statements", "D1 statements"],
  ["d1RowsRead", "D1 rows read"],
  ["d1RowsWritten", "D1 rows written"],
];

/** What runs ask for at each point of an axis. */
function growthTable({ axis, rows }) {
  return markdown({
    columns: [axis, ...rows[0].counts.map(([point]) => point.toLocaleString("en-US"))],
    rows: rows.flatMap(({ label, counts }) => GROWING.map(([key, name]) => [`${label}: ${name}`, ...counts.map(([, counted]) => String(counted[key]))])),
  });
}

/** The whole page. */
export function costPage({ results: { bill }, machine }) {
  const rows = bill.runs.map((run) => {
    const { parts, total } = costOf(run);
    const sum = (...keys) => keys.reduce((all, key) => all + parts[key], 0);
    return [
      run.label,
      dollars(sum("workerRequests")),
      dollars(sum("cpuMs")),
      dollars(sum("objectRequests", "objectRowsRead", "objectRowsWritten")),
      dollars(sum("objectGbSeconds")),
      dollars(sum("d1RowsRead", "d1RowsWritten")),
      `**${dollars(total)}**`,
    ];
  });
  const counts = bill.runs.map(({ label, counts: counted, cpuMs }) => [
    label,
    ...["workerRequests", "objectRequests", "objectAlarms", "objectRowsRead", "objectRowsWritten", "d1Batches", "d1Statements", "d1RowsRead", "d1RowsWritten"].map((key) => String(counted[key])),
    cpuMs.toFixed(1),
  ]);
  const axes = byAxis(bill.growth).map(growthTable);
  const waitMinutes = 10;
  const waitCost = waitMinutes * 60 * OBJECT_GB * 12.5;
  return `# What runs cost

Written by \`make bench\` (${machine.date}). Requests, statements and rows are counted by a module in front of the Worker
([\`bench/workers/counting.mjs\`](../bench/workers/counting.mjs)) for one run of each kind; D1 says itself how many rows it read
and wrote.

## What a run asks for

${markdown({ columns: ["", "Worker requests", "object requests", "alarms", "object rows read", "written", "D1 batches", "statements", "rows read", "written", "CPU ms"], rows: counts })}

CPU time is that of the whole workerd process on this machine, so it is more than Cloudflare's meter would show.

## How that grows

One stored run, by what it is given and what is there already.

${axes.join("\n\n")}

## Dollars per million runs

${markdown({ columns: ["", "Worker requests", "CPU", "object requests and rows", "object time", "D1 rows", "all"], rows })}

From the list prices below, without what the paid plan includes each month, and without the model. An object is paid for
while it is awake, 128 MB of it whatever it holds: ${SHORT_SECONDS} s are reckoned for an answer of 300 tokens, 12 s for 600. A run that waits
${waitMinutes} minutes for a person costs ${((waitCost / 1e6) * 100).toFixed(2)} cents more in object time.

${markdown({ columns: ["", "dollars per million"], rows: PRICES.map(([, name, price]) => [name, String(price)]) })}

Storage: D1 0.75 dollars per GB and month; objects keep nothing once their run is over.
`;
}
