// Every measure, beside everyone else, in one run: `make bench`. A whole run writes docs/benchmarks.* and docs/cost.md;
// a part of one prints.
//
//   node bench/run.mjs [--only MEASURE[,...]] [--contenders NAME[,...]] [--quick] [--out FOLDER]

import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { fail, installPackages, root } from "../scripts/tools.mjs";
import { nowMs } from "./clock.mjs";
import { contenders as all, start, versions } from "./contenders/index.mjs";
import { machine } from "./machine.mjs";
import { bill } from "./measures/bill.mjs";
import { bundleSizes } from "./measures/bundles.mjs";
import { coldStart } from "./measures/cold-start.mjs";
import { firstText, firstTextOfAimock } from "./measures/first-text.mjs";
import { flood } from "./measures/flood.mjs";
import { growth } from "./measures/growth.mjs";
import { paced } from "./measures/paced.mjs";
import { profile } from "./measures/profile.mjs";
import { throughput } from "./measures/throughput.mjs";
import { toolLoop } from "./measures/tool-loop.mjs";
import { startProcess } from "./process.mjs";
import { chart } from "./report/chart.mjs";
import { costPage } from "./report/cost.mjs";
import { page } from "./report/page.mjs";
import { tables, text } from "./report/tables.mjs";
import { judgeTargets } from "./report/targets.mjs";

// `needsServers`: the contenders run side by side from before to after; the others start what they need.
const measures = {
  "first-text": { run: firstText, needsServers: true },
  aimock: { run: firstTextOfAimock },
  flood: { run: flood, needsServers: true },
  throughput: { run: throughput, needsServers: true },
  "tool-loop": { run: toolLoop, needsServers: true },
  growth: { run: growth, needsServers: true, roles: ["ours", "yardstick"] },
  paced: { run: paced },
  "cold-start": { run: coldStart },
  bundles: { run: bundleSizes },
  profile: { run: profile },
  bill: { run: bill },
};

const SIZES = {
  full: {
    warmUpCount: 10,
    firstTextRounds: 300,
    aimockRounds: 40,
    floodDeltas: 20_000,
    floodRounds: 4,
    floodTurns: 4,
    throughputRounds: 9,
    throughputMs: 1500,
    toolRounds: 60,
    growthDeltas: 2_000,
    growthRounds: 5,
    growthLoadMs: 500,
    pacedStreams: [100, 500],
    pacedRounds: 2,
    pacedWarmUp: 30,
    holdMs: 4000,
    coldRounds: 15,
    coldNodeRounds: 5,
    profiledRuns: 200,
    billRuns: 100,
  },
  quick: {
    warmUpCount: 2,
    firstTextRounds: 8,
    aimockRounds: 4,
    floodDeltas: 2_000,
    floodRounds: 2,
    floodTurns: 2,
    throughputRounds: 1,
    throughputMs: 700,
    toolRounds: 4,
    growthDeltas: 1_000,
    growthRounds: 1,
    growthLoadMs: 200,
    pacedStreams: [20, 50],
    pacedRounds: 1,
    pacedWarmUp: 15,
    holdMs: 2000,
    coldRounds: 1,
    coldNodeRounds: 1,
    profiledRuns: 20,
    billRuns: 10,
  },
};

const { values: options } = parseArgs({
  options: {
    only: { type: "string" },
    contenders: { type: "string" },
    quick: { type: "boolean", default: false },
    out: { type: "string" },
  },
});

/** The entries a comma-separated option names; all without it. */
function chosen(option, names) {
  const wanted = option?.split(",") ?? names;
  const unknown = wanted.find((name) => !names.includes(name));
  if (unknown) fail(`there is no ${unknown}: ${names.join(", ")}`);
  return wanted;
}

const measureNames = chosen(options.only, Object.keys(measures));
const contenderNames = chosen(options.contenders, all.map(({ name }) => name));
const contenders = all.filter(({ name }) => contenderNames.includes(name));
const size = options.quick ? SIZES.quick : SIZES.full;
const isWhole = !options.only && !options.contenders && !options.quick;

for (const { packages } of contenders) if (packages) installPackages(path.join("bench", packages.folder));

const mock = await startProcess(fileURLToPath(new URL("./mock/server.mjs", import.meta.url)));
const servers = {};
const results = {};
const failures = {};
const startMs = nowMs();

async function startServers(taking) {
  for (const contender of taking) servers[contender.name] ??= await start(contender, mock.url);
}

async function stopServers() {
  for (const [name, server] of Object.entries(servers)) {
    await server.stop();
    delete servers[name];
  }
}

/** Takes a measure; a peer that fails it is left out, and the others are measured without it. */
async function take(name, taking) {
  const { run, needsServers } = measures[name];
  try {
    await (needsServers ? startServers(taking) : stopServers());
    return await run({ contenders: taking, servers, mock, size });
  } catch (error) {
    const peer = taking.find((contender) => contender.name === error.contender && contender.role === "peer");
    if (!peer) throw error;
    console.error(`\n${peer.label} is left out of ${name}:`, error);
    failures[`${name}, ${peer.label}`] = firstLine(error);
    await stopServers();
    return take(name, taking.filter((contender) => contender !== peer));
  }
}

const firstLine = ({ message }) => message.split("\n")[0].replaceAll(root, "").slice(0, 200);

try {
  for (const name of measureNames) {
    const { roles } = measures[name];
    try {
      const isTaken = (contender) => contender.measures?.includes(name) ?? (!roles || roles.includes(contender.role));
      results[name] = await take(name, contenders.filter(isTaken));
      console.log(`\n${text(tables({ [name]: results[name] }))}`);
    } catch (error) {
      // The rest of a long run is not to be lost.
      failures[name] = firstLine(error);
      console.error(`\n${name} failed:`, error);
      await stopServers();
    }
    console.log(`(${Math.round((nowMs() - startMs) / 1000)} s)`);
  }
} finally {
  await stopServers();
  await mock.stop();
}

const targets = judgeTargets(results);
const report = {
  machine: machine(),
  versions: Object.assign({}, ...contenders.map(versions)),
  seconds: Math.round((nowMs() - startMs) / 1000),
  size,
  failures,
  targets,
  results,
};
console.log(`\n${text(tables({ targets }))}`);

const folder = options.out ?? (isWhole ? path.join(root, "docs") : undefined);
if (folder) {
  mkdirSync(folder, { recursive: true });
  const write = (name, content) => writeFileSync(path.join(folder, name), content);
  write("benchmarks.json", `${JSON.stringify(report, null, 1)}\n`);
  write("benchmarks.md", page(report));
  write("benchmarks.svg", chart(report));
  if (results.bill) write("cost.md", costPage(report));
  console.log(`written: ${folder}`);
}
process.exit(Object.keys(failures).length > 0 ? 1 : 0);
