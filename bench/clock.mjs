// One clock for every process of a benchmark: the kernel's monotonic one, in milliseconds.

const offsetMs = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** The time now; comparable with what another process on this machine was told. */
export const nowMs = () => performance.now() + offsetMs;

/** Fulfils after a while. */
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
