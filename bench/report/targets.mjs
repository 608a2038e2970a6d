// What the project wants to reach, judged by one run's results; a target whose measure was not taken is not judged.

/** Below this share of events that came in time, a server does not keep up. */
export const KEEPS_UP_SHARE = 0.95;

const PEERS = ["mastra", "copilotkit", "ai-chat"];

const times = (ratio) => `${ratio.toFixed(2)} x`;

/** The row of a result. */
const row = (rows, key) => rows?.find((candidate) => candidate.key === key);

/** The best of the peers by a number. */
function bestPeer(rows, valueOf, isBetter) {
  const values = PEERS.map((key) => row(rows, key)).filter(Boolean).map(valueOf);
  return values.length > 0 ? values.reduce((best, value) => (isBetter(value, best) ? value : best)) : undefined;
}

const larger = (a, b) => a > b;
const smaller = (a, b) => a < b;

/** A target on the ratio of ours to another value. */
function ratio(name, target, [ours, other], limit, isGood) {
  const has = ours !== undefined && other !== undefined;
  const measured = has ? ours / other : undefined;
  return {
    name,
    target,
    measured: has ? shown(ours, other) : undefined,
    isReached: has ? Number.isFinite(ours) && isGood(measured, limit) : undefined,
  };
}

function shown(ours, other) {
  if (Number.isFinite(ours)) return times(ours / other);
  return Number.isFinite(other) ? "does not keep up" : "neither keeps up";
}

/** A target with what a hand-written Worker reaches that runs, works and stores as every run of ours must. */
function withFloor(target, floor, show = times) {
  if (floor === Infinity) return { ...target, floor: "does not keep up" };
  return { ...target, floor: Number.isFinite(floor) ? show(floor) : undefined };
}

const atLeast = (value, limit) => value >= limit;
const atMost = (value, limit) => value <= limit;

function value(name, target, ours, limit, show) {
  return {
    name,
    target,
    measured: ours === undefined ? undefined : show(ours),
    isReached: ours === undefined ? undefined : ours <= limit,
  };
}

export function judgeTargets(results) {
  const floods = results.flood;
  const rate = (found) => found?.eventsPerSecond.median;
  const first = results["first-text"];
  const overhead = (found) => found?.overheadMs?.p50;
  const storedText = (key, share) => row(first, `${key}, stored`)?.firstTextMs[share];
  const runs = (found) => found?.runsPerSecond.median;
  const next = (found) => found?.nextTextMs.p50;
  const most = Math.max(...(results.paced ?? []).map(({ streamCount }) => streamCount));
  const crowd = results.paced?.filter(({ streamCount }) => streamCount === most);
  // How late events are says nothing where many of them have not come.
  const late = (found) => (found?.deliveredShare < KEEPS_UP_SHARE ? Infinity : found?.latencyMs.p99);
  const floor = late(row(crowd, "direct"));
  const added = (key) => (late(row(crowd, key)) === undefined || floor === undefined ? undefined : late(row(crowd, key)) - floor);
  const size = row(results.bundles, "io-bridge")?.gzipBytes;
  const cold = (key) => row(results["cold-start"], key)?.firstAnswerMs.median;
  const coldOver = cold("io-bridge") === undefined ? undefined : cold("io-bridge") - cold("trivial");
  const crowdCount = Number.isFinite(most) ? most : 500;
  const [ours, yardstick, inObject, contract, storing] = ["io-bridge", "js-worker", "js-object", "js-contract", "js-store"];
  const objectsShare = (rows, valueOf, isBetter) => valueOf(row(rows, inObject)) / bestPeer(rows, valueOf, isBetter);
  const kilobytes = (bytes) => `${Math.round(bytes / 1000)} KB`;
  const againstYardstick = (rows, valueOf) => [valueOf(row(rows, ours)), valueOf(row(rows, yardstick))];
  const againstPeers = (rows, valueOf, isBetter) => [valueOf(row(rows, ours)), bestPeer(rows, valueOf, isBetter)];
  const stored = (share) => [storedText(ours, share), storedText(yardstick, share)];
  const { throughput } = results;
  const loops = results["tool-loop"];
  return [
    ratio("flood, events/s against the JS Worker", "2.0 x", againstYardstick(floods, rate), 2, atLeast),
    ratio("flood against the best peer", "15 x", againstPeers(floods, rate, larger), 15, atLeast),
    withFloor(
      ratio("first text, persistent run, p50, against the JS Worker", "at most 1.1 x", stored("p50"), 1.1, atMost),
      row(first, storing)?.firstTextMs.p50 / storedText(yardstick, "p50"),
    ),
    withFloor(
      ratio("first text, persistent run, p95, against the JS Worker", "at most 1.1 x", stored("p95"), 1.1, atMost),
      row(first, storing)?.firstTextMs.p95 / storedText(yardstick, "p95"),
    ),
    withFloor(
      ratio("first text, stateless run, p50 over the model, against the best peer", "at most 0.25 x", againstPeers(first, overhead, smaller), 0.25, atMost),
      objectsShare(first, overhead, smaller),
    ),
    withFloor(
      ratio("runs/s at 8 clients, stateless, against the best peer", "4 x", againstPeers(throughput, runs, larger), 4, atLeast),
      runs(row(throughput, contract)) / bestPeer(throughput, runs, larger),
    ),
    withFloor(
      ratio("result POST to next words, p50, against the best peer's second request", "at most 0.2 x", againstPeers(loops, next, smaller), 0.2, atMost),
      objectsShare(loops, next, smaller),
    ),
    withFloor(
      ratio(`${crowdCount} paced streams: added p99 per event against the JS Worker`, "at most 1.1 x", [added(ours), added(yardstick)], 1.1, atMost),
      Number.isFinite(added(inObject)) ? added(inObject) / added(yardstick) : added(inObject),
    ),
    withFloor(
      value("memory per stream at that", "60 KB", row(crowd, ours)?.bytesPerStream, 60_000, kilobytes),
      row(crowd, inObject)?.bytesPerStream,
      kilobytes,
    ),
    value("bundle, gzipped", "400 KiB", size, 400 * 1024, (bytes) => `${Math.round(bytes / 1024)} KiB`),
    value("cold start over a trivial JS Worker", "+25 ms", coldOver, 25, (ms) => `+${Math.round(ms)} ms`),
    ...growthTargets(results.growth),
  ];
}

// What the noise of a power between two points may be.
const GROWTH_LIMIT = 1.15;

function growthTargets(rows) {
  const ours = rows?.filter(({ key }) => key === "io-bridge") ?? [];
  if (ours.length === 0) return [];
  const held = ours.flatMap(({ curves }) => curves).filter(({ isHeld }) => isHeld);
  const worst = Math.max(...held.map(({ power }) => power));
  return [
    {
      name: "growth with message length, history, tools, parallel runs",
      target: "nothing worse than linear",
      measured: `largest power ${worst.toFixed(2)}`,
      isReached: worst <= GROWTH_LIMIT,
    },
  ];
}
