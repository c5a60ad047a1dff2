/**
 * What the model reads about the stream tools. This is product text: every sentence should change
 * what a model does.
 */
import { conditions, fullTexts, sameAs } from "./conditions.ts";
import { ENV, type LogPlace, farNote, workdir } from "./place.ts";
import { flag, integer, oneOf, schema, text } from "./schema.ts";
import type { ToolText } from "./tool.ts";

const SESSION_ID = integer("The sessionId that bash_stream gave.");

const LOGS: Record<LogPlace, string> = {
  far: " Commands run on another machine, and logPath is a file there: read it with get_process_log, "
    + "not with a file tool.",
  here: " logPath is a file with every byte of it: grep that, or read parts with get_process_log.",
  nowhere: " There are no log files: get_process_log reads the last of the output from memory, 1 "
    + "MiB at most, so have long output filtered by the command itself (grep, tail).",
};

/** Where commands run, and where their logs are. */
interface Where {
  /** On another machine. */
  remote: boolean;
  logs: LogPlace;
}

/**
 * The texts of bash_stream. `yieldMs`: how long it waits where the call does not say; `chars`: how
 * many of each stream it then shows.
 */
export function bashStreamText({ remote, logs }: Where, yieldMs: number, chars: number): ToolText {
  return {
    label: "Bash",
    description:
      "Runs a shell command. The user sees its output live. It answers when the command has "
      + "ended (completed, or failed with its exitCode), when it waits for input and nothing else "
      + "runs, or when yieldMs is over; then the command goes on and sessionId takes you back to it "
      + "with poll_process, write_stdin or kill_process. Nothing is lost between calls. stdout and "
      + `stderr come apart, the last ${chars} characters of each.`
      + farNote(remote, logs) + LOGS[logs],
    promptSnippet: "Run a shell command; one that goes on gives a sessionId",
    promptGuidelines: [
      "bash_stream: yieldMs is how long this call waits, no timeout: the command is never ended "
        + "by it. Builds, tests and installs: raise it to 120000, it answers the moment they end or "
        + "ask for something. Never sleep to wait.",
      'bash_stream, a server: until: {port: 5173} or {text: "ready"} with stop: {regex: "rror"} '
        + "and yieldMs 120000 answers once it is up, or has failed.",
      "bash_stream: use it for file operations too (ls, rg, find), unless there is a tool of its "
        + "own for what you do.",
      "bash_stream: start a server or watcher as the command itself, without & or nohup: the "
        + 'session is its background. Use stdinMode: "pty" only for programs that need a terminal '
        + "(REPLs, ssh, sudo, password prompts, full-screen programs); stderr is then in stdout.",
    ],
    parameters: schema({
      command: text("The shell command, run by bash."),
      workdir: workdir(remote),
      env: ENV,
      yieldMs: integer(
        `How long this call waits for the end. Default ${yieldMs}, 1000 to 120000; with until or `
          + "stop up to 1800000.",
      ),
      ...conditions("camel", fullTexts("camel")),
      stdinMode: oneOf(
        ["pipe", "pty", "null"],
        '"null": no stdin, for what reads it where no file is named. "pty": a terminal; what '
          + "the shell leaves behind on it (server &) gets SIGHUP when the shell ends. "
          + 'Default "pipe".',
      ),
      timeoutMs: integer("Ends the command and all it started after so long. Default: never."),
      maxOutputChars: integer(
        "The most characters of stdout and of stderr that results show, the last ones. "
          + `Default ${chars}, up to 150000${logs === "nowhere" ? "" : "; the log has all"}.`,
      ),
      name: text("A label for list_processes."),
    }, ["command"]),
  };
}

/** The texts of poll_process. */
export function pollProcessText(logs: LogPlace): ToolText {
  const grep = logs === "nowhere" ? ""
    : " Where a command prints much, grep its log instead of reading it by polls.";
  return {
    label: "Poll",
    description:
      "Shows what a process wrote since your last poll; once it has ended, how it ended and the end "
      + "of its whole output, each time you ask. waitMs waits for its end (builds, tests, installs), "
      + "maxDrainMs only for its next output (a server's start, a prompt); without either it answers "
      + "at once.",
    promptSnippet: "See what a running command has written, or how it ended",
    promptGuidelines: [
      "poll_process, a REPL: after each write_stdin until: {input: true} answers when it wants the "
        + "next input.",
      "poll_process: one call with waitMs (up to 1800000) instead of polling again and again; it "
        + `answers the moment the command ends.${grep}`,
    ],
    parameters: schema({
      sessionId: SESSION_ID,
      waitMs: integer("How long to wait for the end. Default 0, up to 1800000."),
      maxDrainMs: integer("How long to wait for output or the end. Default 0, up to 120000."),
      ...conditions("camel", sameAs("bash_stream")),
      killIf: oneOf(
        ["timeout", "always"],
        '"timeout" ends it unless it ends within this call\'s waitMs or maxDrainMs (with neither: '
          + 'at once); "always" ends it at once.',
      ),
    }, ["sessionId"]),
  };
}

export const writeStdinText: ToolText = {
  label: "Stdin",
  description:
    "Writes to the stdin of a process and answers at once; poll_process shows what came of it. "
    + "`data` is taken literally, it has no escapes of its own: end a line with a real newline. On "
    + "a terminal (pty) the byte U+0003 is Ctrl-C, U+0004 Ctrl-D, U+001B Esc.",
  promptSnippet: "Type into a running command, or close its stdin",
  promptGuidelines: [
    "write_stdin: a line needs its newline to be sent. Then poll_process with maxDrainMs.",
  ],
  parameters: schema({
    sessionId: SESSION_ID,
    data: {
      anyOf: [
        { type: "string" },
        { type: "object", properties: { base64: { type: "string" } }, required: ["base64"] },
      ],
      description: 'The text, or {"base64": …} for exact bytes. Left out: nothing is written.',
    },
    eof: flag("Close stdin after the data (on a terminal: Ctrl-D). Default false."),
  }, ["sessionId"]),
};

export const killProcessText: ToolText = {
  label: "Kill",
  description:
    "Ends a process with everything that it started, background jobs included, and shows its "
    + "final status and output. A signal other than SIGKILL may leave it running.",
  promptSnippet: "End a running command and all its processes",
  promptGuidelines: ["kill_process: end servers and watchers that you started when done."],
  parameters: schema({
    sessionId: SESSION_ID,
    signal: text("SIGKILL (default), SIGTERM, SIGINT, SIGHUP, …"),
  }, ["sessionId"]),
};

/** The texts of list_processes. */
export function listProcessesText(logs: LogPlace): ToolText {
  const log = logs === "nowhere" ? "" : ", log";
  return {
    label: "Processes",
    description:
      "Lists what runs, then what has ended lately, newest first: sessionId, status, age, "
      + `command${log}.`,
    promptSnippet: "List running and recent commands",
    promptGuidelines: [],
    parameters: schema({}),
  };
}

/** The texts of get_process_log. */
export function getProcessLogText(logs: LogPlace): ToolText {
  const grep = logs === "nowhere" ? ""
    : " Where you look for something, grep the log instead of paging through it.";
  const what = logs === "nowhere"
    ? "Shows a part of a process's output as clean text, by byte offset: of the last of it, which "
      + "memory holds"
    : "Shows a part of a process's whole output as clean text, by byte offset: also of one that has "
      + "ended, and of what results have cut";
  const snippet = logs === "nowhere" ? "Read more of the end of a command's output"
    : "Read any part of a command's output";
  return {
    label: "Log",
    description: `${what}. The answer says at which offset the next part begins.`,
    promptSnippet: snippet,
    promptGuidelines: [
      `get_process_log: offset -10000 shows the end.${grep}`,
    ],
    parameters: schema({
      sessionId: SESSION_ID,
      offset: integer("First byte. Default 0; a negative one counts from the end."),
      limit: integer("Bytes. Default 30000, up to 150000."),
      stream: oneOf(
        ["stdout", "stderr"],
        "Only this stream; offsets count its bytes. Default: both, as they came.",
      ),
      encoding: oneOf(["utf8", "base64"], '"base64" gives exact bytes. Default "utf8".'),
      raw: flag("true: as it was written, with escape sequences and controls. Default false."),
    }, ["sessionId"]),
  };
}
