/**
 * What the model reads about the unified-exec tools. This is product text: every sentence should
 * change what a model does.
 */
import { conditions, fullTexts, onImpossible, sameAs, sessionIds } from "./conditions.ts";
import { ENV, type LogPlace, farNote, workdir } from "./place.ts";
import { flag, integer, oneOf, schema, text } from "./schema.ts";
import type { ToolText } from "./tool.ts";

const ON_EXIT = ["none", "wake"];

const SESSION_ID = integer("The session_id that exec_command gave.");

/** The longest empty poll as a model reads it: `1800000 ms (30 min)`. */
function capText(maxEmptyPollMs: number): string {
  const minutes = maxEmptyPollMs / 60_000;
  const words = minutes >= 1 ? ` (${Number(minutes.toFixed(1))} min)` : "";
  return `${maxEmptyPollMs} ms${words}`;
}

const LOGS: Record<LogPlace, string> = {
  far: " Commands run on another machine, and log_path is a file there: read it with exec_command "
    + "(sed -n, tail, grep), not with a file tool.",
  here: " log_path is a file with every byte of it: read or grep that for the rest (grep -a where a "
    + "line log: says that the beginning is gone).",
  nowhere: " There are no log files: what a result leaves out is kept nowhere, so have long output "
    + "filtered by the command itself (grep, tail).",
};

/**
 * The texts of exec_command. `remote`: commands run on another machine; `maxEmptyPollMs`: how long a
 * call may wait that says what it waits for.
 */
export function execCommandText(
  remote: boolean,
  logs: LogPlace,
  maxEmptyPollMs: number,
): ToolText {
  return {
    label: "Exec",
    description:
      "Runs a shell command in a session. It answers when the command has ended (exit_code), when "
      + "it waits for input and nothing else runs (state), or when yield_time_ms is over; then the "
      + "command goes on and session_id takes you back to it with write_stdin (poll, type, Ctrl-C) "
      + "or kill_session. Nothing is lost between calls, and an end that none of them waited for is "
      + "told once by a line event: of the next result. "
      + "Shows the last 2000 lines or 50 KiB of output."
      + farNote(remote, logs) + LOGS[logs],
    promptSnippet: "Run a shell command; one that goes on gives a session_id",
    promptGuidelines: [
      "exec_command: yield_time_ms is how long this call waits, no timeout: the command is never "
        + "ended by it. Leave the default for quick commands, and never sleep to wait.",
      'exec_command, a server: until: {port: 5173} or {text: "ready"} with stop: {regex: "rror"} '
        + "and yield_time_ms 120000 answers once it is up, or has failed.",
      "exec_command: use it for file operations too (ls, rg, find), unless there is a tool of its "
        + "own for what you do.",
      "exec_command: start a server or watcher as the command itself, without & or nohup: the "
        + "session is its background. Use tty: true only for programs that need a terminal "
        + "(REPLs, ssh, sudo, password prompts, full-screen programs).",
      'exec_command: with on_exit: "wake" you are told when the session ends; then don\'t poll it, '
        + "go on with other work or end your turn.",
    ],
    parameters: schema({
      cmd: text("The shell command."),
      workdir: workdir(remote),
      yield_time_ms: integer(
        "How long this call waits for the end. Default 10000, 250 to 30000; with until or stop up "
          + `to ${maxEmptyPollMs}.`,
      ),
      ...conditions("snake", fullTexts("snake")),
      on_impossible: onImpossible(
        '"wait": goes on waiting also where only your input can end it. Default "answer".',
      ),
      tty: flag("Run it on a terminal (PTY). Default false."),
      on_exit: oneOf(
        ON_EXIT,
        '"wake": a message tells you when the session ends, if no call of yours has by then. '
          + 'Default "none".',
      ),
      stdin: oneOf(
        ["pipe", "null"],
        'Without tty: "null" gives an empty stdin. Default "pipe", for write_stdin.',
      ),
      shell: text("Runs it as SHELL -c CMD. Default bash."),
      env: ENV,
      cols: integer("Columns of the terminal. Default 120, 20 to 500."),
      rows: integer("Rows of the terminal. Default 30, 5 to 300."),
      name: text("A label for list_sessions."),
    }, ["cmd"]),
  };
}

/** The texts of write_stdin, with the cap of empty polls in force. */
export function writeStdinText(maxEmptyPollMs: number, logs: LogPlace): ToolText {
  const cap = capText(maxEmptyPollMs);
  const grep = logs === "nowhere" ? ""
    : " Where they print much, grep the log at log_path instead of reading it by polls.";
  return {
    label: "Stdin",
    description:
      "Writes to a session, or polls it when there is nothing to write. Answers with the output "
      + "that no earlier call showed, as soon as the session ends or when the wait is over. "
      + "`chars` takes C-style escapes: \\n (end of a line), \\r (the Enter key of full-screen "
      + "programs and menus), \\x03 (Ctrl-C), \\x04 (Ctrl-D, end of input), \\x1b (Esc), \\x1b[A "
      + "(arrow up), \\t, \\xHH, \\uHHHH, \\\\ for a backslash. "
      + "`chars_b64` takes exact bytes in base64 instead.",
    promptSnippet: "Type into, interrupt or poll a running session",
    promptGuidelines: [
      "write_stdin: a line needs its \\n to be sent. Ctrl-C is \\x03, arrow up is \\x1b[A; for "
        + "arbitrary bytes use chars_b64. Where the answer takes seconds, raise yield_time_ms.",
      "write_stdin, a REPL: until: {input: true} with each input answers when it wants more.",
      "write_stdin, a build, tests, a download: no until, ONE long empty poll "
        + `(yield_time_ms up to ${cap}): it answers the moment they end or ask for something.${grep}`,
    ],
    parameters: schema({
      session_id: SESSION_ID,
      chars: text("Text to write, with C-style escapes. Left out or empty: a poll."),
      chars_b64: text("Exact bytes to write, in base64."),
      eof: flag("Close stdin after the bytes (on a terminal: Ctrl-D). Default false."),
      yield_time_ms: integer(
        "How long this call waits. With input: default 250, 250 to 30000. "
          + `Empty poll, until or stop: default 5000, up to ${cap}.`,
      ),
      ...conditions("snake", sameAs("exec_command")),
      on_impossible: onImpossible("As in exec_command."),
      yield_until: text(
        "Empty poll until this moment instead, e.g. 2026-07-21T18:30:00Z (UTC); for jobs that "
          + "end by themselves. Not together with yield_time_ms.",
      ),
    }, ["session_id"]),
  };
}

/** The texts of wait_for, with the cap of empty polls in force. */
export function waitForText(maxEmptyPollMs: number): ToolText {
  return {
    label: "Wait",
    description: "Waits for several sessions at once; shows the output of those it waited for.",
    promptSnippet: "Wait for several running sessions at once",
    promptGuidelines: ["wait_for: two builds or servers at once are one wait, not polls in turns."],
    parameters: schema({
      session_ids: sessionIds("Default: all that run."),
      ...conditions("snake", sameAs("exec_command", " Default: their ends.")),
      mode: oneOf(
        ["any", "all", "first_failure"],
        'Until one of them, all, or the first that fails (else all). Default "any".',
      ),
      timeout_ms: integer(`Default 30000, up to ${maxEmptyPollMs}.`),
      take: flag("false leaves their output unread. Default true."),
    }),
  };
}

export const killSessionText: ToolText = {
  label: "Kill",
  description:
    "Ends everything in a session, background jobs included: the signal first, SIGKILL 2 s later "
    + "if anything is left. Shows the output that no call has shown.",
  promptSnippet: "End a session and all its processes",
  promptGuidelines: ["kill_session: end servers and watchers that you started when done."],
  parameters: schema({
    session_id: SESSION_ID,
    signal: text("First signal: SIGTERM (default), SIGINT, SIGHUP, SIGKILL, …"),
  }, ["session_id"]),
};

/** The texts of list_sessions. */
export function listSessionsText(logs: LogPlace): ToolText {
  const log = logs === "nowhere" ? "" : ", log";
  return {
    label: "Sessions",
    description:
      `Lists the sessions: id, pid, age, command${log}. One that has exited is shown once, with `
      + "its exit, and then leaves the list.",
    promptSnippet: "List the running sessions",
    promptGuidelines: [],
    parameters: schema({}),
  };
}

export const setOnExitText: ToolText = {
  label: "On exit",
  description:
    'Arms ("wake") or disarms ("none") the message that tells you when a running session ends.',
  promptSnippet: "Be told, or not, when a session ends",
  promptGuidelines: [],
  parameters: schema({
    session_id: SESSION_ID,
    on_exit: oneOf(ON_EXIT, '"wake" or "none".'),
  }, ["session_id", "on_exit"]),
};

export const resizeSessionText: ToolText = {
  label: "Resize",
  description: "Sets the size of a session's terminal; the program in it is told (SIGWINCH).",
  promptSnippet: "Resize a session's terminal",
  promptGuidelines: [],
  parameters: schema({
    session_id: SESSION_ID,
    cols: integer("Columns, 20 to 500."),
    rows: integer("Rows, 5 to 300."),
  }, ["session_id", "cols", "rows"]),
};
