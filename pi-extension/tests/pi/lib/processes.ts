/**
 * Who is still alive: processes are found by a variable of their environment, so that nobody
 * escapes the count by changing its process group, its session or its parent.
 */
import { readdirSync, readFileSync } from "node:fs";
import { PATIENCE_MS, until } from "./waiting.ts";

/** The variable that marks every process a test started, directly or not. */
export const TAG_VARIABLE = "EXECD_TEST_TAG";

/**
 * The variable that marks all that runs behind a test's sshd. execd's helpers keep it, which get no
 * EXECD_*: so they are seen too.
 */
export const FAR_VARIABLE = "FAR_OF_A_TEST";

/** A live process as /proc shows it. */
export interface LiveProcess {
  pid: number;
  /** Its arguments, joined with blanks. */
  command: string;
}

/** Every live process whose environment carries this tag. */
export function processesOf(tag: string, variable = TAG_VARIABLE): LiveProcess[] {
  const mark = `${variable}=${tag}`;
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => readProc(pid, "environ").includes(mark))
    .map((pid) => ({ pid: Number(pid), command: readProc(pid, "cmdline").join(" ").trim() }));
}

/** Those of them whose command line matches. */
export function processesLike(tag: string, pattern: RegExp): LiveProcess[] {
  return processesOf(tag).filter((one) => pattern.test(one.command));
}

/** Waits until a process with such a command line lives, and returns the first. */
export function waitProcess(tag: string, pattern: RegExp): Promise<LiveProcess> {
  return until(
    `a process like ${pattern}`,
    () => processesLike(tag, pattern)[0],
    PATIENCE_MS,
    () => listed(processesOf(tag)),
  );
}

/** Waits at most `ms` until no process carries the tag; returns how long that took. */
export function waitNone(tag: string, ms: number): Promise<number> {
  return waitNoneLike(tag, /^/, ms);
}

/** Waits at most `ms` until no process with such a command line lives. */
export async function waitNoneLike(tag: string, pattern: RegExp, ms: number): Promise<number> {
  const start = Date.now();
  await until(
    `the end of every process like ${pattern}`,
    () => processesLike(tag, pattern).length === 0,
    ms,
    () => listed(processesLike(tag, pattern)),
  );
  return Date.now() - start;
}

/**
 * Waits until nothing runs behind the sshd of a test, execd's helpers included. What stays is ended,
 * and fails the test.
 */
export async function waitNoneFar(tag: string, ms: number): Promise<void> {
  const left = () => processesOf(tag, FAR_VARIABLE);
  try {
    await until("nothing runs there any more", () => left().length === 0, ms, () => listed(left()));
  } finally {
    await killAll(tag, FAR_VARIABLE);
  }
}

/** Ends whatever a test left behind. */
export async function killAll(tag: string, variable = TAG_VARIABLE): Promise<void> {
  await until(`the end of all of ${tag}`, () => {
    const left = processesOf(tag, variable);
    for (const one of left) kill(one.pid);
    return left.length === 0;
  });
}

function listed(processes: LiveProcess[]): string {
  return processes.map((one) => `${one.pid} ${one.command}`).join("\n");
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended between the look and the signal, which is what was wanted.
  }
}

function readProc(pid: string, file: "environ" | "cmdline"): string[] {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1").split("\0");
  } catch {
    // It ended between the listing and the reading, or belongs to somebody else.
    return [];
  }
}
