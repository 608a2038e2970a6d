// What the machine is, without saying which.

import { readFileSync } from "node:fs";
import os from "node:os";

const field = (text, name) => text.match(new RegExp(`^${name}\\s*[:=]\\s*"?(.+?)"?$`, "m"))?.[1];

const packageVersion = (name) =>
  JSON.parse(readFileSync(new URL(`../node_modules/${name}/package.json`, import.meta.url), "utf8")).version;

/** Cores, memory, system and the versions of the runtimes. */
export function machine() {
  return {
    processor: field(readFileSync("/proc/cpuinfo", "utf8"), "model name") ?? os.cpus()[0]?.model ?? "unknown",
    cores: os.cpus().length,
    memoryGib: Math.round(os.totalmem() / 1024 ** 3),
    system: `${field(readFileSync("/etc/os-release", "utf8"), "PRETTY_NAME") ?? os.type()}, ${os.type()} ${os.release().split(/[-+]/)[0]}`,
    node: process.versions.node,
    workerd: packageVersion("workerd"),
    miniflare: packageVersion("miniflare"),
    aimock: packageVersion("@copilotkit/aimock"),
    // Others' work on the machine shows here: a quiet one is near 0 when the run starts.
    loadAtStart: loadAtStart.toFixed(2),
    date: new Date().toISOString().slice(0, 10),
  };
}

const [loadAtStart] = os.loadavg();
