/**
 * What execd's replies and notifications look like, typed (docs/protocol.md, docs/unified-exec.md,
 * docs/bash-stream.md).
 *
 * A field that does not apply is left out by execd, never null. Times are milliseconds unless the
 * name says otherwise, sizes are bytes.
 */

/** How much of a call's output was cut away, as pi's own truncateTail tells it. */
export interface Truncation {
  truncated: boolean;
  truncatedBy: "lines" | "bytes";
  totalLines: number;
  totalBytes: number;
  outputLines: number;
  outputBytes: number;
  lastLinePartial: boolean;
  maxLines: number;
  maxBytes: number;
}

/** The reply of exec_command and write_stdin: one wait on a session. */
export interface WaitResult {
  /** Only while something still runs; never together with exit_code. */
  session_id?: number;
  exit_code?: number;
  signal?: string;
  failure_message?: string;
  log_path?: string;
  log_complete?: boolean;
  log_truncated?: boolean;
  cwd?: string;
  command?: string;
  tty?: boolean;
  pid?: number;
  /** The wait that was asked for, after clamping. */
  yield_time_ms?: number;
  yield_until?: string;
  effective_wait_ms?: number;
  wait_status?: string;
  wait_mode?: string;
  wall_time_seconds?: number;
  chunk_id?: string;
  original_token_count?: number;
  output_bytes_total?: number;
  omitted_bytes?: number;
  output?: string;
  truncation?: Truncation;
  note?: string;
  shell_exit_code?: number;
  warning?: string;
  on_exit?: string;
  completion_notification?: string;
  completion_delivery?: string;
  on_exit_wake?: string;
  tool_time_utc?: string;
  cpu_seconds?: number;
  max_rss_kib?: number;
  /** Ready-made text for a model. */
  header?: string;
  footer?: string;
}

/** The reply of kill_session. */
export interface KillResult {
  found: boolean;
  session_id: number;
  killed?: boolean;
  escalated?: boolean;
  exit_code?: number;
  signal?: string;
  failure_message?: string;
  log_path?: string;
  log_complete?: boolean;
  log_truncated?: boolean;
  final_output?: string;
  omitted_bytes?: number;
  truncation?: Truncation;
  footer?: string;
  survivors?: { pid: number; command: string; reason: string }[];
  wait_status?: string;
  summary?: string;
}

/** One session of list_sessions. */
export interface SessionInfo {
  session_id: number;
  name?: string;
  command: string;
  cwd: string;
  tty: boolean;
  pid: number;
  started_at_ms: number;
  elapsed_ms: number;
  running: boolean;
  exit_code?: number;
  signal?: string;
  failure_message?: string;
  output_bytes_total: number;
  log_path?: string;
  wake_armed: boolean;
  /** Only of what bash started. */
  window?: string;
  shell_exited?: boolean;
  detached?: { pid: number; command: string }[];
}

/** The reply of list_sessions. */
export interface ListResult {
  sessions: SessionInfo[];
  active_count: number;
  left?: { session_id: number; pid: number; command: string }[];
  text: string;
  tool_time_utc?: string;
}

/** The reply of set_on_exit. */
export interface SetOnExitResult {
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

/** The notification `session_exited`. */
export interface SessionExited {
  session_id: number;
  exit_code?: number;
  signal?: string;
  /** Whether a call has told the exit. */
  observed: boolean;
  wake?: true;
  elapsed_ms: number;
  log_path?: string;
}

/** What the extension shows of a wait while it lasts (`details` of pi's onUpdate). */
export interface ProgressDetails {
  session_id: number;
  pid?: number;
  running: boolean;
  total_bytes: number;
  tty?: boolean;
  command?: string;
  cwd?: string;
  log_path?: string;
  output: string;
}

/** The reply of bash_stream, poll_process and kill_process. */
export interface JobReport {
  status: "running" | "completed" | "failed";
  sessionId?: number;
  pid?: number;
  startedAt?: string;
  exitCode?: number;
  signal?: string;
  timedOut?: true;
  /** Why it could not be started. */
  error?: string;
  /** Clean text; while it runs what came since the last call, then the tails of the whole life. */
  stdout?: string;
  stderr?: string;
  /** Both in order of arrival, of what has ended. */
  aggregated?: string;
  /** The raw end of the output of what runs. */
  tail?: string;
  durationMs?: number;
  truncated?: true;
  /** Who still holds the output after the shell's exit. */
  backgroundPids?: number[];
  /** Some of the output came after the shell, later than an answer waits for it. */
  late?: true;
  /** Bytes of live chunks that were not sent. */
  droppedBytes?: number;
  /** What else there is to know of its end. */
  note?: string;
  logPath?: string;
  /** Something of the output is missing from the log. */
  logComplete?: false;
  /** The log ended at a limit. */
  logTruncated?: true;
  /** What went wrong with the log. */
  failureMessage?: string;
}

/** One process of list_processes. */
export interface JobRow {
  sessionId: number;
  name?: string;
  command: string;
  cwd: string;
  /** Absent where the command could not be started. */
  pid?: number;
  status: "running" | "completed" | "failed";
  exitCode?: number;
  signal?: string;
  startedAt: string;
  endedAt?: string;
  durationMs: number;
  outputBytes: number;
  stdinMode: "pipe" | "pty" | "null";
  stdinOpen: boolean;
  logPath?: string;
}

/** The reply of list_processes: running first, then what has ended, newest first. */
export interface JobList {
  processes: JobRow[];
  /** How many that have ended are remembered no more, and the bounds of that; once there are any. */
  forgotten?: number;
  keptMax?: number;
  keptMs?: number;
}

/** The reply of get_process_log: a page of the raw output. */
export interface LogPage {
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
  /** The page has output that came after the shell, later than an answer waits for it. */
  late?: true;
  logComplete?: false;
  logTruncated?: true;
  failureMessage?: string;
}

/** The reply of write_stdin with a sessionId. */
export interface StdinResult {
  written: number;
  queued: number;
  eof: boolean;
}

/** The notification `tool_execution_output`: what a process wrote just now. */
export interface ChunkNote {
  request_id: number;
  sessionId: number;
  stream: "stdout" | "stderr";
  chunk: string;
  /** Bytes left out before this chunk. */
  droppedBytes?: number;
}

/** The notification `tool_execution_truncated`: no more chunks come for this call. */
export interface TruncatedNote {
  request_id: number;
  sessionId: number;
  /** How many were sent. */
  chunks: number;
  logPath?: string;
}

/** The notification `tool_execution_progress`: bash_stream yields. */
export interface YieldNote {
  request_id: number;
  sessionId: number;
  pid: number;
  startedAt: string;
  lastOutputTail: string;
}

/** The reply of bash: a command that has ended, or a window in which it goes on. */
export interface BashResult {
  status: "completed" | "failed" | "timed_out" | "aborted" | "background";
  /** Absent where the command could not be started. */
  window?: string;
  name?: string;
  exit_code?: number;
  signal?: string;
  output?: string;
  truncation?: Truncation;
  log_path?: string;
  /** Not all of the output is in the log (yet). */
  log_complete?: false;
  /** The log ended at a limit. */
  log_truncated?: true;
  /** What goes on in the window although the command has ended. */
  still_running?: { pid: number; command: string }[];
  /** What the model reads. */
  text: string;
  is_error: boolean;
}

/** The reply of tmux. */
export interface TmuxResult {
  text: string;
  is_error: boolean;
  /** Of `list`, and the one of `peek`. */
  windows?: WindowRow[];
}

/** A background window in the reply of tmux: what of it is looked at. */
export interface WindowRow {
  window: string;
  name: string;
  command: string;
  running: boolean;
  log_path?: string;
}

/** The notification `window_exited`: the end of a background window. */
export interface WindowExited {
  window: string;
  name: string;
  command: string;
  exit_code?: number;
  signal?: string;
  tail: string;
  truncation?: Truncation;
  log_path?: string;
  /** Not all of the output is in the log (yet). */
  log_complete?: false;
  /** The log ended at a limit. */
  log_truncated?: true;
  still_running?: { pid: number; command: string }[];
  text: string;
}

/** The notification `window_poll`: a check-in on a background window. */
export interface WindowPoll {
  window: string;
  name: string;
  command: string;
  tail: string;
  truncation?: Truncation;
  log_path?: string;
  text: string;
}
