/**
 * What of execd's replies and notifications the extension reads (docs/protocol.md,
 * docs/unified-exec.md, docs/bash-stream.md, docs/bash.md). This file is kept by hand: execd's table
 * of methods, which wire.ts is made of, has the params alone. A test holds it against the replies
 * in tests/fixtures/said.
 *
 * A field that does not apply is left out by execd, never null. Times are milliseconds unless the
 * name says otherwise, sizes are bytes.
 */
import type { Method } from "./wire.ts";

/** How much of a call's output was cut away, as pi's own truncateTail tells it. */
export interface Truncation {
  truncated: boolean;
  truncatedBy: "lines" | "bytes";
  totalLines: number;
  outputLines: number;
  outputBytes: number;
  lastLinePartial: boolean;
  maxBytes: number;
}

/** Something that has happened to a session (protocol.md, Events). */
export interface SessionEvent {
  /** Its number; what the extension itself has seen has none. */
  n?: number;
  /** When, in milliseconds since 1970. */
  at_ms: number;
  session_id: number;
  what: "exited" | "evicted" | "killed" | "wake" | "log_trouble";
  command: string;
  family?: string;
  exit_code?: number;
  signal?: string;
  killed_by?: string;
  /** Of log_trouble: what is wrong. */
  message?: string;
}

/** What a reply carries of other sessions, where it was asked to. */
interface Events {
  events?: SessionEvent[];
}

/** How a session ended, and what became of its log. */
interface Ending {
  exit_code?: number;
  signal?: string;
  /** By whom it was ended, where it did not end by itself. */
  killed_by?: string;
  failure_message?: string;
  log_path?: string;
  /** The first byte of the output that the log still has, where that is not the first of all. */
  log_from?: number;
  /** Whether all of the output is in the log (yet). */
  log_complete?: boolean;
  /** Whether the log ended at a limit. */
  log_truncated?: boolean;
}

/** How a wait ended that said what it waits for, or that only input could end. */
export interface WaitReport {
  outcome: "matched" | "stopped" | "exited" | "impossible" | "deadline" | "cancelled";
  /** The field of until or stop that came true, and which one of a list. */
  by?: string;
  index?: number;
  session_id?: number;
  /** The matched line, and what the groups of a regex took of it. */
  text?: string;
  captures?: (string | null)[];
  port?: number;
  /** Of http. */
  status?: number;
  /** Of input: what the session waits for. */
  state?: string;
  effective_timeout_ms?: number;
  why?: string;
}

/** What a session is doing. */
interface Doing {
  state?: string;
  /** `by: "text"`: told by a prompt alone, which a terminal within it shows. */
  state_detail?: { command: string; by?: "text" };
  full_screen?: true;
  listening?: { port: number; command: string }[];
}

/** The reply of exec_command, and of write_stdin with a session_id: one wait on a session. */
export interface WaitResult extends Ending, Doing, Events {
  /** Only while something still runs; never together with exit_code. */
  session_id?: number;
  cwd?: string;
  command?: string;
  tty?: boolean;
  pid?: number;
  /** The wait that was asked for, after clamping. */
  yield_time_ms?: number;
  effective_wait_ms?: number;
  wait_status?: string;
  wait?: WaitReport;
  wall_time_seconds?: number;
  output_bytes_total?: number;
  omitted_bytes?: number;
  output?: string;
  truncation?: Truncation;
  note?: string;
  warning?: string;
  on_exit?: string;
  completion_notification?: string;
  completion_delivery?: string;
  on_exit_wake?: string;
  /** Ready-made text for a model. */
  header?: string;
  footer?: string;
}

/** The reply of kill_session. */
export interface KillResult extends Ending, Events {
  found: boolean;
  session_id: number;
  killed?: boolean;
  /** Whether SIGKILL had to follow another signal. */
  escalated?: boolean;
  final_output?: string;
  omitted_bytes?: number;
  truncation?: Truncation;
  footer?: string;
  survivors?: { pid: number; command: string; reason: string }[];
  summary?: string;
}

/** One session of wait_for. */
export interface WaitForRow extends Ending, Doing {
  session_id: number;
  name?: string;
  command: string;
  /** `exited`, or what the session is doing; absent where nobody could look in time. */
  state?: string;
  /** `pending`, or what has become of what was waited for. */
  outcome: string;
  wait?: WaitReport;
  note?: string;
  /** Only where the row tells the output, and the end. */
  output?: string;
  omitted_bytes?: number;
  truncation?: Truncation;
  footer?: string;
}

/** The reply of wait_for. */
export interface WaitForResult extends Events {
  /** Such as what a time was clamped to. */
  note?: string;
  wait: WaitReport;
  sessions: WaitForRow[];
  /** The host's clock, while something runs. */
  tool_time_utc?: string;
  /** Ready-made text for a model. */
  text: string;
}

/** One session of list_sessions. */
export interface SessionInfo extends Ending, Doing {
  session_id: number;
  name?: string;
  command: string;
  cwd: string;
  tty: boolean;
  pid: number;
  elapsed_ms: number;
  running: boolean;
  wake_armed: boolean;
  /** Only of what bash started. */
  window?: string;
  shell_exited?: boolean;
}

/** The reply of list_sessions. */
export interface ListResult extends Events {
  sessions: SessionInfo[];
  active_count: number;
  left?: { session_id: number; pid: number; command: string }[];
  text: string;
}

/** The reply of set_on_exit. */
export interface SetOnExitResult extends Events {
  found: boolean;
  status?: "disarmed" | "already_none" | "armed" | "already_armed" | "too_late";
}

/** The notification `progress`: the tail of a waiting request's session. */
export interface Progress {
  request_id: number;
  session_id: number;
  tail: string;
  total_bytes: number;
  elapsed_ms: number;
  running: boolean;
  pid?: number;
  /** Of bash: what was cut from the tail. */
  truncation?: Truncation;
  log_path?: string;
}

/** The notification `session_started`. */
export interface SessionStarted {
  session_id: number;
  pid: number;
  command: string;
  tty: boolean;
  cwd: string;
  log_path?: string;
}

/** The notification `password_asked`, to a call that goes on waiting. */
export interface PasswordAsked {
  session_id: number;
}

/** The notification `session_exited`. */
export interface SessionExited {
  session_id: number;
  name?: string;
  exit_code?: number;
  signal?: string;
  /** By whom it was ended. */
  killed_by?: string;
  /** What went wrong with it, with its log say. */
  failure_message?: string;
  /** Whether a call has told the exit. */
  observed: boolean;
  wake?: true;
  elapsed_ms: number;
  log_path?: string;
  log_from?: number;
}

/** What the stream tools tell of a session's log. */
interface StreamLog {
  logPath?: string;
  /** The first byte of the output that the log still has, where that is not the first of all. */
  logFrom?: number;
  /** Something of the output is missing from the log. */
  logComplete?: false;
  /** The log ended at a limit. */
  logTruncated?: true;
  /** What went wrong with the log. */
  failureMessage?: string;
  /** Some of the output came after the shell, later than an answer waits for it. */
  late?: true;
}

/** How a wait of the stream tools ended; as WaitReport, in the family's spelling. */
export interface StreamWait
  extends Omit<WaitReport, "session_id" | "effective_timeout_ms"> {
  sessionId?: number;
  effectiveTimeoutMs?: number;
}

/** What a session is doing, in the spelling of the stream tools. */
interface StreamDoing extends Pick<Doing, "state" | "listening"> {
  stateDetail?: { command: string };
  fullScreen?: true;
}

/** The reply of bash_stream, poll_process and kill_process. */
export interface StreamReport extends StreamLog, StreamDoing {
  wait?: StreamWait;
  status: "running" | "completed" | "failed";
  sessionId?: number;
  pid?: number;
  startedAt?: string;
  exitCode?: number;
  signal?: string;
  /** By whom it was ended, where it did not end by itself. */
  killedBy?: string;
  timedOut?: true;
  /** Why the command could not be started. */
  error?: string;
  /** Clean text: while the session runs what came since the last call, later the end of all. */
  stdout?: string;
  stderr?: string;
  /** Both streams in order of arrival, once the session has ended. */
  aggregated?: string;
  /** The raw end of the output, while the session runs. */
  tail?: string;
  durationMs?: number;
  truncated?: true;
  /** The processes that still hold the output after the shell's exit. */
  backgroundPids?: number[];
  /** What else there is to know of the session's end. */
  note?: string;
}

/** One session of list_processes. */
export interface StreamSession extends StreamDoing {
  sessionId: number;
  name?: string;
  command: string;
  cwd: string;
  /** Absent where the command could not be started. */
  pid?: number;
  status: StreamReport["status"];
  exitCode?: number;
  signal?: string;
  killedBy?: string;
  startedAt: string;
  durationMs: number;
  outputBytes: number;
  stdinMode: "pipe" | "pty" | "null";
  logPath?: string;
  logFrom?: number;
}

/** The reply of list_processes: running first, then what has ended, newest first. */
export interface StreamList {
  processes: StreamSession[];
  /** How many ended sessions are remembered no more, and the bounds of that; absent for none. */
  forgotten?: number;
  keptMax?: number;
  keptMs?: number;
}

/** The reply of get_process_log: a page of the raw output. */
export interface LogPage extends Omit<StreamLog, "logPath"> {
  sessionId: number;
  text: string;
  offset: number;
  nextOffset: number;
  totalBytes: number;
  /** Nothing will follow. */
  eof: boolean;
  /** Bytes that nobody has any more, between the offset that was asked for and the page. */
  omittedBytes?: number;
  encoding?: "base64";
}

/** The reply of write_stdin with a sessionId. */
export interface StdinResult {
  written: number;
  queued: number;
  eof: boolean;
}

/** The notification `tool_execution_output`: what a session wrote just now. */
export interface ChunkNote {
  request_id: number;
  sessionId: number;
  stream: "stdout" | "stderr";
  chunk: string;
}

/** What replies and notifications tell of a window. */
interface WindowFacts extends Omit<Ending, "failure_message"> {
  window: string;
  name: string;
  truncation?: Truncation;
  /** The processes that go on in the window although the command has ended. */
  still_running?: { pid: number; command: string }[];
  /** What the model reads. */
  text: string;
}

/** The reply of bash: a command that has ended, or a window in which it goes on. */
export interface BashResult extends Partial<WindowFacts> {
  status: "completed" | "failed" | "timed_out" | "aborted" | "background";
  output?: string;
  text: string;
  is_error: boolean;
}

/** The reply of tmux. */
export interface TmuxResult {
  text: string;
  is_error: boolean;
}

/** The notification `window_exited`: the end of a background window. */
export interface WindowExited extends WindowFacts {
  command: string;
  tail: string;
}

/** The notification `window_poll`: a check-in on a background window. */
export type WindowPoll = Pick<
  WindowExited, "window" | "name" | "command" | "tail" | "truncation" | "log_path" | "text"
>;

/** What execd answers to the methods that the extension asks for their answers. */
interface Replies {
  exec_command: WaitResult;
  write_stdin: WaitResult & Partial<StdinResult>;
  wait_for: WaitForResult;
  kill_session: KillResult;
  list_sessions: ListResult;
  set_on_exit: SetOnExitResult;
  resize_session: { cols?: number; rows?: number };
  bash_stream: StreamReport;
  poll_process: StreamReport;
  kill_process: StreamReport;
  list_processes: StreamList;
  get_process_log: LogPage;
  bash: BashResult;
  tmux: TmuxResult;
}

/** The reply of a method, as this extension's execd gives it. */
export type Reply<M extends Method> = M extends keyof Replies ? Replies[M] : unknown;
