// Numbers out of numbers.

const sorted = (numbers) => numbers.toSorted((a, b) => a - b);

/** The value below which this share of the numbers lies. */
export function quantile(numbers, share) {
  const ordered = sorted(numbers);
  return ordered[Math.min(ordered.length - 1, Math.floor(ordered.length * share))];
}

/** The middle of the numbers, and their spread: the middle half. */
export const spread = (numbers) => ({
  median: quantile(numbers, 0.5),
  low: quantile(numbers, 0.25),
  high: quantile(numbers, 0.75),
  count: numbers.length,
});

export const mean = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length;

export const median = (numbers) => quantile(numbers, 0.5);

/** p50, p95 and p99. */
export const tail = (numbers) => ({
  p50: quantile(numbers, 0.5),
  p95: quantile(numbers, 0.95),
  p99: quantile(numbers, 0.99),
  count: numbers.length,
});

/**
 * The power with which `y` grows between the two largest `x` of `[x, y]` points: 1 is linear, below it something fixed
 * still weighs in.
 */
export function growthPower(points) {
  const [[x0, y0], [x1, y1]] = points.slice(-2);
  return Math.log(y1 / y0) / Math.log(x1 / x0);
}
