// The processes of a benchmark, and what the kernel counts of them.

import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";

const TICKS_PER_SECOND = 100;
const PAGE_BYTES = 4096;

/**
 * Where objects and databases keep their files: in memory where the system has a place for that, since not the disk of
 * this machine is to be measured.
 */
export const storageFolder = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** Starts a module as a process; gives the first thing it says and a way to end it. */
export async function startProcess(url, { env = {}, cwd } = {}) {
  const child = fork(url, { env: { ...process.env, ...env }, cwd, stdio: ["ignore", "ignore", "pipe", "ipc"] });
  let errors = "";
  child.stderr.on("data", (piece) => (errors = (errors + piece).slice(-4000)));
  const [told] = await Promise.race([
    once(child, "message"),
    once(child, "exit").then(([code]) => assert.fail(`${url} ended with code ${code}\n${errors}`)),
  ]);
  return {
    ...told,
    pid: told.pid ?? child.pid,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, "exit");
      child.disconnect();
      const late = setTimeout(() => child.kill("SIGKILL"), 3000);
      await gone;
      clearTimeout(late);
    },
  };
}

/** The one child of a process whose command is this. */
export function childOf(pid, command) {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean);
  const found = children.filter((child) => readFileSync(`/proc/${child}/comm`, "utf8").trim() === command);
  assert.equal(found.length, 1, `${command} runs ${found.length} times`);
  return Number(found[0]);
}

/** CPU time a process has used, in milliseconds. */
export function cpuMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
}

/** Memory a process has in RAM, in bytes. */
export const memoryBytes = (pid) => Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * PAGE_BYTES;
