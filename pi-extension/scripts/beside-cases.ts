/**
 * What commands and sessions do in two sets of tools that are called alike. Each case gives a fact
 * in a few words, and says which fact is the right one.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Stub, Told } from "./pi-stub.ts";

/** One thing that is looked at. */
export interface Case {
  what: string;
  run(stub: Stub): Promise<string>;
  /** What is right; where neither is, or nothing is, the two are only different. */
  right?: RegExp;
}

/** How often a terminal's output is looked at for its end. */
const TIMES = 10;
/** How long something that comes by itself is waited for. */
const PATIENCE_MS = 10_000;

const exec = (stub: Stub, cmd: string, more: object = {}) =>
  stub.call("exec_command", { cmd, ...more });
const stdin = (stub: Stub, session_id: number | undefined, more: object = {}) =>
  stub.call("write_stdin", { session_id, ...more });
const kill = (stub: Stub, session_id: number | undefined) =>
  stub.call("kill_session", { session_id });

/** The value of a line of the header. */
function line(told: Told, name: string): string | undefined {
  return new RegExp(`^${name}: (.*)$`, "m").exec(told.text)?.[1];
}

function idOf(told: Told): number | undefined {
  const id = line(told, "session_id");
  return id === undefined ? undefined : Number(id);
}

/** How a command has ended, as the header says it. */
function ending(told: Told): string {
  const of = (name: string) => {
    const value = line(told, name);
    return value === undefined ? [] : [`\`${name}: ${value}\``];
  };
  const found = [...of("exit_code"), ...of("signal")];
  return found.length > 0 ? found.join(", ") : idOf(told) === undefined ? "ended" : "still running";
}

/** The output, below the header. */
function output(told: Told): string {
  return told.text.slice(told.text.indexOf("\n---\n") + 5);
}

/** A time in words that are the same on a slow machine. */
function when(told: Told, deadlineMs: number): string {
  return told.ms < deadlineMs * 0.8 ? "at once" : `after ${deadlineMs / 1_000} s`;
}

function firstLine(told: Told): string {
  const [first = ""] = told.text.split("\n");
  // Ids count up, and one of the two may have used more of them.
  const line = first.slice(0, 90).replace(/session(_id:)? \d+/, "session$1 N");
  return `${told.threw ? "error: " : ""}\`${line}\``;
}

/** How many processes have this number of seconds as the argument of their sleep. */
function sleepers(seconds: string): number {
  return readdirSync("/proc").filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "latin1") === `sleep\0${seconds}\0`;
    } catch {
      // It is no process, or has ended.
      return false;
    }
  }).length;
}

/** Ends the sleeps that a set of tools has left, so that nothing outlives the run. */
function endSleepers(seconds: string): void {
  for (const pid of readdirSync("/proc")) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, "latin1");
      if (command === `sleep\0${seconds}\0`) process.kill(Number(pid), "SIGKILL");
    } catch {
      // It is no process, or has ended.
    }
  }
}

/** Seconds that no other sleep on this machine has. */
let nonce = 0;
function uniqueSeconds(): string {
  return `86${process.pid}.${++nonce}`;
}

async function afterKill(stub: Stub, script: (seconds: string) => string): Promise<string> {
  const seconds = uniqueSeconds();
  const told = await exec(stub, script(seconds), { yield_time_ms: 1_000 });
  await kill(stub, idOf(told));
  const deadline = Date.now() + 2_000;
  while (sleepers(seconds) > 0 && Date.now() < deadline) await delay(50);
  const left = sleepers(seconds);
  // Nothing that a set of tools has left may outlive this run.
  endSleepers(seconds);
  await kill(stub, idOf(told));
  return left === 0 ? "none is left" : `${left} are left`;
}

async function flood(stub: Stub): Promise<string> {
  const cmd = "yes 'a line of text' | head -c 10000000";
  const told = await exec(stub, cmd, { yield_time_ms: 30_000 });
  const path = line(told, "log_path");
  const log = path === undefined ? "no log" : `log of ${statSync(path).size} bytes`;
  return `${ending(told)}, ${Math.round(told.text.length / 1_000)}k characters, ${log}`;
}

async function endsOfTerminals(stub: Stub): Promise<string> {
  let whole = 0;
  for (let round = 0; round < TIMES; round++) {
    let told = await exec(stub, "seq 20000", { tty: true });
    if (idOf(told) !== undefined) told = await stdin(stub, idOf(told));
    if (/\b20000\s*(\n\n\[|$)/.test(output(told))) whole += 1;
  }
  return `whole in ${whole} of ${TIMES} runs`;
}

async function bytesInLog(stub: Stub): Promise<string> {
  const told = await exec(stub, "printf '\\377\\376x'", { tty: true });
  const path = line(told, "log_path");
  if (path === undefined) return "no log";
  const bytes = readFileSync(path).toString("hex");
  return bytes.includes("fffe78") ? "as it was written" : `\`${bytes}\``;
}

async function wake(stub: Stub): Promise<string> {
  const before = stub.messages.length;
  await exec(stub, "sleep 1", { on_exit: "wake", yield_time_ms: 250 });
  const deadline = Date.now() + PATIENCE_MS;
  while (stub.messages.length === before && Date.now() < deadline) await delay(50);
  await delay(500);
  return `${stub.messages.length - before} message`;
}

async function abort(stub: Stub): Promise<string> {
  const seconds = uniqueSeconds();
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), 1_000);
  const told = await stub.call("exec_command", { cmd: `sleep ${seconds}`, yield_time_ms: 10_000 },
    stop.signal);
  clearTimeout(timer);
  const alive = sleepers(seconds) > 0 ? "goes on" : "has ended";
  const why = line(told, "wait_status");
  const said = why === undefined ? "" : `, \`wait_status: ${why}\``;
  await kill(stub, idOf(told));
  endSleepers(seconds);
  return `the command ${alive}${said}`;
}

async function message(stub: Stub): Promise<string> {
  await stub.emit("agent_start");
  const begun = await exec(stub, "sleep 60", { yield_time_ms: 250 });
  const timer = setTimeout(() => {
    stub.hasPending = true;
    void stub.emit("input", { source: "interactive", streamingBehavior: "steer", text: "stop" });
  }, 500);
  const told = await stdin(stub, idOf(begun), { yield_time_ms: 8_000 });
  clearTimeout(timer);
  stub.hasPending = false;
  await kill(stub, idOf(begun));
  const why = line(told, "wait_status");
  return `answers ${when(told, 8_000)}${why === undefined ? "" : `, \`wait_status: ${why}\``}`;
}

/** Starts cat, does something to it, and ends it. */
async function withCat(
  stub: Stub,
  act: (id: number | undefined) => Promise<string>,
): Promise<string> {
  const told = await exec(stub, "cat", { yield_time_ms: 250 });
  const fact = await act(idOf(told));
  await kill(stub, idOf(told));
  return fact;
}

/** Runs a command to the end of its call and ends what goes on. */
async function once(
  stub: Stub,
  cmd: string,
  more: object,
  fact: (told: Told) => string,
): Promise<string> {
  const told = await exec(stub, cmd, more);
  if (idOf(told) !== undefined) await kill(stub, idOf(told));
  return fact(told);
}

/** All of them, in the order of the table. */
export const CASES: Case[] = [
  { what: "a command that fails", run: (stub) => once(stub, "exit 3", {}, ending) },
  { what: "a command that a signal ends", run: (stub) => once(stub, "kill -KILL $$", {}, ending) },
  {
    what: "`sleep 60 & echo up`: a background child holds the output, the call may take 5 s",
    run: (stub) => once(stub, "sleep 60 & echo up", { yield_time_ms: 5_000 }, (told) =>
      `answers ${when(told, 5_000)}, ${ending(told)}`),
    right: /at once/,
  },
  { what: "10 MB of output in one call", run: flood },
  {
    what: "a progress bar of 200 states in a terminal",
    run: (stub) => once(stub, "for i in $(seq 200); do printf '\\r%d %%' $i; done", { tty: true },
      (told) => `${output(told).length} characters`),
    right: /^\d{1,2} /,
  },
  {
    what: "`seq 20000` in a terminal: the end of its output",
    run: endsOfTerminals,
    right: /10 of 10/,
  },
  { what: "bytes that are no UTF-8, in a terminal: the log", run: bytesInLog, right: /written/ },
  {
    what: "an empty poll without a time, of a command that ends after 2 s",
    run: async (stub) => {
      const begun = await exec(stub, "sleep 2", { yield_time_ms: 250 });
      const told = await stdin(stub, idOf(begun));
      return `answers ${told.ms < 4_000 ? "when it ends" : "later"}, ${ending(told)}`;
    },
  },
  {
    what: "an empty poll of 250 ms",
    run: async (stub) => {
      const begun = await exec(stub, "sleep 60", { yield_time_ms: 250 });
      const told = await stdin(stub, idOf(begun), { yield_time_ms: 250 });
      await kill(stub, idOf(begun));
      return `lasts ${Math.round(told.ms / 1_000)} s${noted(told)}`;
    },
  },
  {
    what: "`yield_time_ms: 999999` of a first call",
    run: (stub) => once(stub, "true", { yield_time_ms: 999_999 }, (told) =>
      `${ending(told)}${noted(told)}`),
  },
  {
    what: "`cat` without input, the call may take 5 s",
    run: (stub) => once(stub, "cat", { yield_time_ms: 5_000 }, (told) =>
      `answers ${when(told, 5_000)}`),
    right: /at once/,
  },
  {
    what: "Ctrl-C (`\\x03`) to `sleep` in a terminal",
    run: async (stub) => {
      const begun = await exec(stub, "sleep 60", { tty: true, yield_time_ms: 500 });
      const told = await stdin(stub, idOf(begun), { chars: "\\x03", yield_time_ms: 5_000 });
      if (idOf(told) !== undefined) await kill(stub, idOf(told));
      return ending(told);
    },
  },
  {
    what: "`kill_session` of a command with two background children",
    run: (stub) => afterKill(stub, (seconds) => `sleep ${seconds} & sleep ${seconds} & wait`),
  },
  {
    what: "the same with `set -m`, each child in a process group of its own",
    run: (stub) =>
      afterKill(stub, (seconds) => `set -m; sleep ${seconds} & sleep ${seconds} & wait`),
    right: /none/,
  },
  {
    what: "`env: {\"A\": \"1\"}`",
    run: (stub) => once(stub, "echo \"A=$A\"", { env: { A: "1" } }, (told) =>
      `\`${output(told).trim()}\``),
    right: /A=1/,
  },
  {
    what: "a `workdir` that is not there",
    run: (stub) => once(stub, "true", { workdir: "/no/such/directory" }, (told) =>
      `\`${line(told, "failure") ?? told.text.split("\n")[0]}\``),
  },
  {
    what: "`less` on a file, in a terminal",
    run: (stub) => once(stub, "less /etc/services", { tty: true, yield_time_ms: 1_500 }, (told) => {
      const state = line(told, "state");
      const escapes = told.text.includes("\x1b") ? "escape sequences" : "no escape sequences";
      return `${escapes}${state === undefined ? "" : `, \`state: ${state}\``}`;
    }),
  },
  {
    what: "an id that there never was",
    run: async (stub) => firstLine(await stdin(stub, 999_999)),
  },
  {
    what: "a poll after the end has been told",
    run: async (stub) => {
      const begun = await exec(stub, "sleep 1; echo done", { yield_time_ms: 250 });
      const [first, second] = [await stdin(stub, idOf(begun)), await stdin(stub, idOf(begun))];
      return `${ending(first)}, then ${firstLine(second)}`;
    },
  },
  {
    what: "`input` in place of `chars`",
    run: (stub) => withCat(stub, async (id) => {
      const told = await stdin(stub, id, { input: "hello\n" });
      return output(told).includes("hello") ? "is written" : "an empty poll";
    }),
    right: /written|did you mean/,
  },
  {
    what: "a parameter that there is not (`chrs`)",
    run: (stub) => withCat(stub, async (id) => {
      const told = await stdin(stub, id, { chrs: "hello\n" });
      return told.threw ? firstLine(told) : "an empty poll";
    }),
    right: /did you mean/,
  },
  { what: "`on_exit: \"wake\"`", run: wake },
  { what: "a message of the user during a wait of 8 s", run: message, right: /at once/ },
  { what: "Esc during a wait", run: abort },
];

/** What a note of the header says. */
function noted(told: Told): string {
  const note = line(told, "note");
  return note === undefined ? "" : `, \`note: ${note}\``;
}
