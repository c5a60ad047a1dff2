/**
 * What can run commands for a model in pi, and by which calls: execd's tools, pi's own bash, and
 * pi-unified-exec, which is asked in the same way as execd's unified tools.
 */
import type { ScriptedCall } from "./model-server.ts";

/** How a command is run. */
export interface How {
  tty?: boolean;
}

/** How a server is started: the call ends when it is ready, where that can be said. */
export interface Ready {
  port: number;
  /** A server is ready after this; a call that cannot say what it waits for waits as long. */
  withinSeconds: number;
}

/** The calls of one set of tools. What is missing, these tools cannot do. */
export interface Hands {
  /** Runs a command as one does that ends soon. */
  run(cmd: string, how?: How): ScriptedCall;
  /** Starts what goes on. */
  start(cmd: string, how?: How): ScriptedCall;
  /** Starts a server and waits until it is ready. */
  serve(cmd: string, ready: Ready): ScriptedCall;
  /** Types into what was started; `told` is the newest result. */
  type?(told: string, chars: string): ScriptedCall;
  /** Waits for the end of what was started; without it the end is told by a message. */
  wait?(told: string): ScriptedCall;
  /** Starts a command that would run for minutes, and the call that ends it, where it takes two. */
  startEndless(cmd: string): ScriptedCall;
  /** Ends what was started. */
  kill(told: string): ScriptedCall | undefined;
}

/** The first number that a pattern finds. */
function idIn(told: string, pattern: RegExp): number {
  const id = pattern.exec(told)?.[1];
  if (id === undefined) throw new Error(`no ${pattern} in a result:\n${told.slice(0, 2_000)}`);
  return Number(id);
}

const session = (told: string) => idIn(told, /^session_id: (\d+)/m);
const window = (told: string) => `@${idIn(told, /@(\d+)/)}`;

/** A call of exec_command. */
function exec(cmd: string, more: Record<string, unknown> = {}): ScriptedCall {
  return { name: "exec_command", args: { cmd, ...more } };
}

/** A call of write_stdin on the session that a result names. */
function stdin(told: string, more: Record<string, unknown>): ScriptedCall {
  return { name: "write_stdin", args: { session_id: session(told), ...more } };
}

/** A call of bash. */
function bash(command: string, more: Record<string, unknown> = {}): ScriptedCall {
  return { name: "bash", args: { command, ...more } };
}

/** The calls that execd's unified tools and pi-unified-exec have in common. */
const shared = {
  run: (cmd: string, how: How = {}) => exec(cmd, { ...how }),
  start: (cmd: string, how: How = {}) => exec(cmd, { ...how, yield_time_ms: 1_000 }),
  type: (told: string, chars: string) => stdin(told, { chars }),
  wait: (told: string) => stdin(told, { yield_time_ms: 30_000 }),
  startEndless: (cmd: string) => exec(cmd, { yield_time_ms: 1_000 }),
  kill: (told: string): ScriptedCall =>
    ({ name: "kill_session", args: { session_id: session(told) } }),
};

/** execd's unified tools: a wait says what it waits for. */
export const unified: Hands = {
  ...shared,
  serve: (cmd, { port }) => exec(cmd, { until: { port } }),
};

/** pi-unified-exec 0.11.0: a wait has a time alone. */
export const unifiedExec: Hands = {
  ...shared,
  serve: (cmd, { withinSeconds }) => exec(cmd, { yield_time_ms: withinSeconds * 1_000 }),
};

/** execd's bash tools: what goes on is a window. */
export const bashTools: Hands = {
  run: (cmd, how = {}) => bash(cmd, { ...how }),
  start: (cmd, how = {}) => bash(cmd, { ...how, background: true }),
  serve: (cmd, { withinSeconds }) => bash(cmd, { timeout: withinSeconds }),
  startEndless: (cmd) => bash(cmd, { timeout: 1, timeoutAction: "kill" }),
  kill: (told) => told.includes("timed out")
    ? undefined
    : { name: "tmux", args: { action: "kill", window: window(told) } },
};

/** pi's own bash: what is to go on is left to the shell, with a file for its output. */
export const pisBash: Hands = {
  run: (cmd) => bash(cmd),
  start: (cmd) => bash(`{ ${cmd}; } > job.log 2>&1 & echo $!`),
  serve: (cmd, { withinSeconds }) =>
    bash(`${cmd} > server.log 2>&1 & echo "pid: $!"; sleep ${withinSeconds}; cat server.log`),
  wait: (told) => bash(`tail --pid=${idIn(told, /(\d+)/)} -f /dev/null; cat job.log`),
  startEndless: (cmd) => bash(cmd, { timeout: 1 }),
  kill: (told) => told.includes("timed out")
    ? undefined
    : bash(`kill ${idIn(told, /pid: (\d+)/)}`),
};
