//! Bounds that users meet or that several files share, named with their units (architecture.md,
//! Bounds).
//!
//! A bound of one file stands in that file. Relations between bounds are checked when the program
//! is compiled, at the end of this file.

// ---- Time -------------------------------------------------------------------------------

/// One millisecond in the loop's unit of time.
pub const NS_PER_MS: u64 = 1_000_000;
/// One second in the loop's unit of time.
pub const NS_PER_S: u64 = 1_000_000_000;

/// Shortest wait of exec_command and of write_stdin with input (protocol.md, Bounds).
pub const MIN_YIELD_TIME_MS: u64 = 250;
/// Longest wait of exec_command and of write_stdin with input.
pub const MAX_YIELD_TIME_MS: u64 = 30_000;
/// Wait of exec_command when none is given.
pub const DEFAULT_EXEC_YIELD_MS: u64 = 10_000;
/// Shortest wait of an empty poll.
pub const MIN_EMPTY_YIELD_TIME_MS: u64 = 5_000;
/// Longest wait of an empty poll when nothing else is configured.
pub const DEFAULT_MAX_BACKGROUND_POLL_MS: u64 = 1_800_000;
/// A cap for empty polls above this is taken as this (ten years: no overflow in nanoseconds).
pub const MAX_CONFIGURABLE_POLL_MS: u64 = 315_360_000_000;
/// As good as never: from a signal to a SIGKILL that nobody asked for.
pub const NEVER_ESCALATES_MS: u64 = MAX_CONFIGURABLE_POLL_MS;
/// A process that ends sooner never enters the session table.
pub const EARLY_EXIT_GRACE_PERIOD_MS: u64 = 150;
/// Progress notifications of one request come no closer together than this.
pub const PROGRESS_INTERVAL_MS: u64 = 250;
/// From the first signal of kill_session to SIGKILL.
pub const KILL_GRACE_MS: u64 = 2_000;
/// How long after SIGKILL kill_session waits before it names the survivors.
pub const KILL_GIVE_UP_MS: u64 = 3_000;
/// From SIGTERM to SIGKILL when execd ends.
pub const SHUTDOWN_GRACE_MS: u64 = 1_000;
/// How long the last flush to a reader that takes nothing may last.
pub const LAST_FLUSH_MS: u64 = 2_000;
/// How long a reply that says exited waits for the keeper's acknowledgement of its log.
pub const LOG_ACK_WAIT_MS: u64 = 250;
/// A stale timer this near is left to fire once: re-arming it would cost the same call.
pub const STALE_TIMER_MS: u64 = 200;

// ---- Sessions ---------------------------------------------------------------------------

/// Sessions held at once unless --max-sessions says otherwise.
pub const MAX_SESSIONS: usize = 64;
/// Largest value of --max-sessions.
pub const MAX_SESSIONS_LIMIT: usize = 16_384;
/// File descriptors a session takes in execd: output, stdin, pidfd, and one in reserve.
pub const FDS_PER_SESSION: u64 = 4;

/// Columns of a new PTY.
pub const PTY_COLS: u16 = 120;
/// Rows of a new PTY.
pub const PTY_ROWS: u16 = 30;
/// Columns a PTY may have: smallest and largest.
pub const PTY_COLS_RANGE: (u16, u16) = (20, 500);
/// Rows a PTY may have: smallest and largest.
pub const PTY_ROWS_RANGE: (u16, u16) = (5, 300);

/// Unread output kept in memory per session; half for the head, half for the tail.
pub const HEAD_TAIL_MAX_BYTES: usize = 1024 * 1024;
/// The last output of a session as progress and final tails show it.
pub const STREAM_TAIL_BYTES: usize = 32 * 1024;
/// The last output of a session that is kept whatever was told: who attaches gets it.
pub const REPLAY_BYTES: usize = 64 * 1024;
/// How long a terminal has another size to have its program redraw: long enough for it to look.
pub const JIGGLE_MS: u64 = 60;
/// Bytes of model-facing text in one reply.
pub const DEFAULT_MAX_BYTES: usize = 50 * 1024;
/// Lines of model-facing text in one reply.
pub const DEFAULT_MAX_LINES: usize = 2_000;
/// Bytes at the start of a window that begins anywhere: they only tell whether it begins inside
/// an escape sequence, most of which are shorter.
pub const WINDOW_LEAD_BYTES: usize = 64;
/// How many lines up a cursor-up redraw may reach.
pub const REDRAW_LINES: usize = 50;
/// Columns that cursor movement alone may open up on a line of clean text.
pub const MAX_CURSOR_COLUMN: usize = 4_096;
/// Blanks that cursor movement may add to one call's clean text in all.
pub const CLEAN_PADDING_CHARS: usize = 1024 * 1024;
/// Characters that erasing, shifting and going back up to lines may touch in one call's clean text.
pub const CLEAN_EDIT_CHARS: usize = 4 * 1024 * 1024;
/// Input queued for a child that does not read.
pub const STDIN_BACKLOG_BYTES: usize = 256 * 1024;
/// Bytes of one line that a canonical-mode terminal delivers; n_tty(4) cuts what is longer.
pub const CANONICAL_LINE_BYTES: usize = 4_095;
/// Bytes waiting per session until the log pipe takes them; above, its output is not read.
pub const LOG_QUEUE_BYTES: usize = 1024 * 1024;
/// Most bytes of one log page.
pub const LOG_PAGE_MAX_BYTES: u64 = 150_000;
/// Bytes read before a page of text: where it begins inside a character is told from these.
pub const LOG_PAGE_LOOKBACK_BYTES: u64 = 3;
/// Log pages that the keeper is asked for at once; the others wait in line.
pub const LOG_PAGES_ASKED_MAX: usize = 4;
/// How long a log page is waited for: a disk may stand still for ever.
pub const LOG_PAGE_WAIT_MS: u64 = 10_000;
/// Bytes of the longest character in UTF-8.
pub const MAX_CHAR_BYTES: usize = 4;
/// All raised pipes of execd together (the kernel's soft limit is per user, see pipe(7)).
pub const CHILD_PIPES_TOTAL_BYTES: usize = 16 * 1024 * 1024;
/// Characters of a command in list_sessions' text.
pub const LIST_COMMAND_CHARS: usize = 60;
/// Bytes of a command in a row of list_sessions.
pub const LISTED_COMMAND_BYTES: usize = 8 * 1024;

// ---- The wire ---------------------------------------------------------------------------

/// Longest request line unless --max-line-bytes says otherwise.
pub const MAX_LINE_BYTES: usize = 8 * 1024 * 1024;
/// Smallest value of --max-line-bytes.
pub const MIN_MAX_LINE_BYTES: usize = 1024;
/// Largest value of --max-line-bytes.
pub const MAX_MAX_LINE_BYTES: usize = 64 * 1024 * 1024;
/// Nesting of a request's JSON; deeper is -32700.
pub const MAX_JSON_DEPTH: usize = 128;
/// Requests of one client that may wait at once.
pub const MAX_PENDING_REQUESTS: usize = 1_024;
/// The most commands at once that `--jobs` may ask for: as many as the table of sessions has room
/// for, so that none of them is evicted.
pub const JOBS_MAX: usize = MAX_SESSIONS;
/// Requests that wait for their turn to start a command; while there are so many, no client that
/// has one more is read.
pub const START_QUEUE_REQUESTS: usize = MAX_PENDING_REQUESTS;
/// Longest id of a request that is kept and echoed.
pub const MAX_ID_BYTES: usize = 4_096;
/// Above this much unsent output no further reply of a wait is built, and progress is dropped.
pub const OUTBOX_HIGH_BYTES: usize = 1024 * 1024;
/// Above this much unsent output stdin is not read.
pub const OUTBOX_STOP_BYTES: usize = 8 * 1024 * 1024;
/// Below this much unsent output building replies and reading stdin go on.
pub const OUTBOX_LOW_BYTES: usize = 256 * 1024;
/// Params of one request that are looked at: more than any method has.
pub const MAX_PARAMS: usize = 64;
/// A quoted value in an error message is cut to this.
pub const QUOTED_VALUE_BYTES: usize = 120;
/// Memory that a line buffer or outbox may keep when it is empty; what is larger is given back.
pub const BUFFER_KEEP_BYTES: usize = 256 * 1024;

// ---- Runs of pi ------------------------------------------------------------------------

/// Runs of pi that go on at once.
pub const RUNNING_AGENTS_MAX: usize = 64;
/// A run of pi is ended after this, unless the call says otherwise.
pub const AGENT_TIMEOUT_MS: u64 = 600_000;
/// A run of pi is ended when no event came for this long, unless the call says otherwise.
pub const AGENT_IDLE_TIMEOUT_MS: u64 = 180_000;
/// A run of pi is ended when the model's first event took longer, unless the call says otherwise.
pub const AGENT_FIRST_EVENT_TIMEOUT_MS: u64 = 30_000;
/// Bytes of a version, and of what was said in its place, that are told.
pub const AGENT_VERSION_BYTES: usize = 200;
/// How much of an api_key's beginning, and never more than a quarter of the key, is told as the end
/// of a text when it is not known yet whether the key goes on.
pub const AGENT_SECRET_HINT_BYTES: usize = 16;
/// Bytes of pi's stderr that are kept for its error.
pub const AGENT_STDERR_BYTES: usize = 4 * 1024;
/// Characters of an argument, or of an event, where people see it in a line.
pub const AGENT_SHOWN_CHARS: usize = 160;
/// Longest line of pi's stream that is kept; of a longer one only the type is read.
pub const AGENT_LINE_MAX_BYTES: usize = 16 * 1024 * 1024;
/// First bytes of a line that are looked at to know whether the others are needed, and that have
/// the type of one that is too long.
pub const AGENT_HEAD_BYTES: usize = 4 * 1024;
/// A line that is kept has at most this much room more than it takes.
pub const AGENT_LINE_STEP_BYTES: usize = 512 * 1024;
/// Text of one event of an agent.
pub const AGENT_DELTA_BYTES: usize = 64 * 1024;
/// Text of an assistant that its result has, and that is told of one line.
pub const AGENT_OUTPUT_BYTES: usize = 4 * 1024 * 1024;
/// Output of one tool call that is told; the same for the JSON of its input.
pub const AGENT_TOOL_OUTPUT_BYTES: usize = 256 * 1024;
/// Nesting of a tool's input that is told, and of a raw event that is kept: what is around them
/// must fit below MAX_JSON_DEPTH.
pub const AGENT_JSON_DEPTH: usize = 100;
/// Raw events that are kept for a result.
pub const AGENT_EVENTS_BYTES: usize = 8 * 1024 * 1024;
/// What is kept of event types and fields that are not known: the JSON that they make.
pub const AGENT_DRIFT_BYTES: usize = 64 * 1024;
/// Tool calls of one turn, and running ones, that are remembered by their ids.
pub const AGENT_TOOL_IDS: usize = 4_096;
/// Bytes of a name or an id that pi gives.
pub const AGENT_NAME_BYTES: usize = 256;
/// Bytes of an error's text.
pub const AGENT_ERROR_BYTES: usize = 16 * 1024;
/// Bytes of a paragraph that says why a run failed.
pub const AGENT_CAUSE_BYTES: usize = 2 * 1024;

// ---- The control socket ----------------------------------------------------------------

/// Clients of the control socket at once.
pub const SOCKET_CLIENTS_MAX: usize = 64;
/// Bytes of requests read from one client of the socket in one turn.
pub const SOCKET_READ_TURN_BYTES: usize = 64 * 1024;
/// Bytes written to one client of the socket in one turn.
pub const SOCKET_WRITE_TURN_BYTES: usize = 128 * 1024;
/// A client of the socket with more than this unsent reads nothing: it is hung up on.
pub const OUTBOX_GIVE_UP_BYTES: usize = 16 * 1024 * 1024;
/// What clients of the socket have sent and execd has not taken up yet, all together: above, the
/// one with the most of it is hung up on.
pub const CLIENTS_UNREAD_BYTES: usize = 64 * 1024 * 1024;
/// What is unsent to clients of the socket, all together: above, the one with the most of it is
/// hung up on.
pub const CLIENTS_UNSENT_BYTES: usize = 64 * 1024 * 1024;
/// A client of the socket that has been idle for longer makes room for one more.
pub const CLIENT_IDLE_MS: u64 = 30_000;
/// Above this much unsent an attached client is sent no more output.
pub const VIEW_STOP_BYTES: usize = 256 * 1024;
/// Below this much unsent it is sent what is kept of what it has missed.
pub const VIEW_RESUME_BYTES: usize = 64 * 1024;
/// How long `execd ls` and its like wait for an execd's answer.
pub const CLIENT_WAIT_MS: u64 = 2_000;

/// Columns of `execd ls` where it prints to no terminal.
pub const LIST_COLUMNS: usize = 160;
/// The narrowest column of commands in `execd ls`.
pub const LIST_COMMAND_MIN_COLUMNS: usize = 20;

// ---- States of sessions ----------------------------------------------------------------

/// So long after the last output or input of a session the first looks are taken; most have gone on
/// by the first.
pub const LOOKS_AFTER_MS: [u64; 3] = [15, 50, 150];
/// Two looks that are at least so far apart and agree say that somebody waits.
pub const DOING_AGREE_MS: u64 = 15;
/// How long before an answer that tells the state a first look is taken, for the second one to
/// agree with. It is far more than two looks must be apart: on a busy machine turns begin late.
pub const DOING_EARLY_MS: u64 = 120;
/// How long before such an answer the second look is taken, so that the answer itself has none to
/// wait for. Where many answers are due at once, their looks take several turns. If a program
/// begins to wait between the two looks, a look at the answer is far enough from this one to tell.
pub const DOING_READY_MS: u64 = 40;
/// How long before an answer was due a look may have been taken that it tells, unless something has
/// moved since.
pub const DOING_FRESH_MS: u64 = 50;

const _: () = {
    assert!(LOOKS_AFTER_MS[0] >= DOING_AGREE_MS);
    assert!(LOOKS_AFTER_MS[1] >= LOOKS_AFTER_MS[0] + DOING_AGREE_MS);
    assert!(DOING_EARLY_MS >= 2 * DOING_AGREE_MS + DOING_READY_MS);
    assert!(DOING_READY_MS >= DOING_AGREE_MS);
    assert!(DOING_FRESH_MS >= DOING_READY_MS);
};

// ---- Ends of output --------------------------------------------------------------------

/// How long a wait goes on after the shell is gone while its output is still held open: the wait of
/// unified-exec, and at least so long those that answer with an end.
pub const POST_EXIT_CLOSE_WAIT_MS: u64 = 50;
/// An answer that tells an end waits for output at most this long after the shell.
pub const DRAIN_MAX_MS: u64 = 2_000;
/// From the shell's end to the first look at who holds its output; most are gone by then.
pub const DRAIN_FIRST_LOOK_MS: u64 = 20;
/// From one look to the next.
pub const DRAIN_LOOK_MS: u64 = 30;
/// Looks come at multiples of this: what ended at about the same time shares a census.
pub const DRAIN_GRID_MS: u64 = 10;
/// A process that used less CPU time between two looks counts as asleep: some wake by a timer
/// only to sleep again.
pub const HOLDER_BUSY_NS: u64 = 100_000;

const _: () = {
    assert!(DRAIN_FIRST_LOOK_MS + DRAIN_LOOK_MS <= POST_EXIT_CLOSE_WAIT_MS);
    assert!(DRAIN_GRID_MS < DRAIN_LOOK_MS && POST_EXIT_CLOSE_WAIT_MS < DRAIN_MAX_MS);
};

// ---- What is remembered of ends --------------------------------------------------------

/// Events that are kept: the last ones.
pub const EVENTS_KEPT: usize = 1_024;
/// Events that one reply of a method other than `events` carries.
pub const EVENTS_PER_REPLY: usize = 16;
/// Bytes of a command in an event.
pub const EVENT_COMMAND_BYTES: usize = 200;

// ---- Logs ------------------------------------------------------------------------------

/// Smallest value of `--log-keep-bytes` and of `--log-total-bytes` but for 0.
pub const MIN_LOG_BOUND_BYTES: u64 = 1024 * 1024;
/// Largest value of both: what every JSON reader takes as a whole number.
pub const MAX_LOG_BOUND_BYTES: u64 = 1 << 53;
/// What a file system gives to a file at a time.
pub const LOG_BLOCK_BYTES: u64 = 4096;
/// A log directory is cleaned at most once in this time.
pub const CLEAN_EVERY_S: i64 = 60 * 60;
/// Names that a log writer looks at at a time.
pub const CLEAN_NAMES: usize = 256;
/// The pause between two steps, and before the first one: beside 100,000 logs and their facts less
/// than 1 % of a core for 80 s.
pub const CLEAN_PAUSE_MS: u64 = 100;

/// Most bytes of one part of a session's output that is read from its log.
pub const LOG_RANGE_MAX_BYTES: u64 = 1024 * 1024;
/// Most bytes of one answer of the log writer: those of a part, and the few before it that tell how
/// it may begin.
pub const LOG_RANGE_ANSWER_BYTES: u64 = LOG_RANGE_MAX_BYTES + LOG_PAGE_LOOKBACK_BYTES;
/// Bytes of the line of facts beside a log: it lies in one block of the disk, so that it is written
/// whole or not at all, and an end that takes the place of a start needs no more room.
pub const LOG_FACTS_BYTES: usize = 4_000;

/// Up to here a number in JSON is exact, also with a point or an exponent.
pub const COUNT_MAX: f64 = 9_007_199_254_740_992.0;

// ---- execd mcp -------------------------------------------------------------------------

/// The shortest pause between two notifications of progress for one call.
pub const MCP_PROGRESS_MS: u64 = 1_000;
/// After so long without output a call that waits tells all the same that it does, so that its
/// client does not give it up.
pub const MCP_ALIVE_MS: u64 = 15_000;
/// Bytes of their texts, all together: one whole answer, with its header. Beside it there must be
/// room for a short result.
pub const MCP_LATE_BYTES: usize = MCP_TEXT_BYTES + MCP_AROUND_BYTES - 1024;
/// Bytes of a result beside the output of a command: its header and footer, and as far as there is
/// room what it tells of other calls.
pub const MCP_AROUND_BYTES: usize = 3_000;
/// Bytes of a log that one reading of its resource gives. Hosts cut what is longer: Codex takes the
/// middle out above 10,000 tokens, which it counts as 40,000 bytes, Gemini CLI above 40,000
/// characters; OpenCode keeps the first 50 KiB, and of more than 50,000 characters Claude Code
/// shows its model the first 2 KB.
pub const MCP_READ_BYTES: u64 = 36 * 1024;
/// Bytes of output in one result, unless the call says otherwise: a model pays for each of them in
/// each request that follows.
pub const MCP_TEXT_BYTES: usize = 10 * 1024;
/// The fewest and the most that a call may ask for.
pub const MCP_OUTPUT_RANGE: (usize, usize) = (1024, 50 * 1024);

// ---- Ports -----------------------------------------------------------------------------

/// While somebody waits for a port, its listeners are looked at no more often than this.
pub const PORT_LOOK_MS: u64 = 50;
/// Descriptors of one process that are looked at.
pub const PORT_FDS_PER_PROCESS: usize = 1_024;

// ---- Processes -------------------------------------------------------------------------

/// Processes named in a note, in detached, left or survivors.
pub const NAMED_PROCESSES: usize = 16;
/// Longest single argument that execve takes: MAX_ARG_STRLEN, 32 pages, see execve(2).
pub const MAX_ARG_BYTES: usize = 128 * 1024;

// ---- bash_stream -----------------------------------------------------------------------

/// Longest wait of poll_process for the end.
pub const JOB_WAIT_MAX_MS: u64 = 1_800_000;
/// Finished sessions that are remembered when nothing else is configured.
pub const FINISHED_JOBS_MAX: usize = 256;
/// Fewest and most finished sessions that may be configured.
pub const FINISHED_JOBS_RANGE: (u64, u64) = (1, 1_024);
/// Memory of what is remembered of finished sessions, all together: above, the texts of the oldest
/// are cut. At the default cap 256 of them fit, whatever their characters.
pub const FINISHED_JOBS_BYTES: usize = 64 * 1024 * 1024;
/// Sessions of the family that run at once.
pub const RUNNING_JOBS_MAX: usize = 64;
/// Most bytes that are kept of one stream of a session: 150,000 characters of three bytes.
pub const JOB_RING_BYTES_MAX: usize = 450_000;
/// Runs of bytes of one stream behind which the order of a session's two streams is forgotten.
pub const ARRIVAL_RUNS_MAX: usize = 16 * 1024;
/// Unsent chunks of one call; above, its chunks are dropped and counted until all are sent, so that
/// a flood leaves room for the chunks of others.
pub const LIVE_BACKLOG_BYTES: usize = 768 * 1024;
/// Live chunks of one call; then one notification says that no more of them come.
pub const LIVE_CHUNKS_MAX: usize = 10_000;
/// Characters of each text of a reply unless something else is asked for.
pub const JOB_OUTPUT_CHARS: usize = 30_000;
/// Most characters of each text that may be asked for.
pub const JOB_OUTPUT_CHARS_MAX: usize = 150_000;
/// Wait of bash_stream when none is given.
pub const JOB_YIELD_MS: u64 = 60_000;
/// Shortest wait of bash_stream.
pub const JOB_YIELD_MIN_MS: u64 = 1_000;
/// Longest wait of bash_stream, and of poll_process for the next output.
pub const JOB_YIELD_MAX_MS: u64 = 120_000;
/// How long kill_process waits for a signal other than SIGKILL.
pub const JOB_KILL_WAIT_MS: u64 = 2_000;

// ---- A turn ----------------------------------------------------------------------------

/// The buffer that children's output is read into.
pub const READ_BUFFER_BYTES: usize = 64 * 1024;
/// A read of a pipe that gives so much: what follows is worth passing on whole.
pub const FLOOD_READ_BYTES: usize = 16 * 1024;
/// Output read from one session in one turn.
pub const READ_SESSION_TURN_BYTES: usize = 64 * 1024;
/// Output read from all sessions in one turn.
pub const READ_TURN_BYTES: usize = 512 * 1024;
/// Of the output read in one turn what is left to leaders that have ended, while there are any.
pub const DRAIN_TURN_BYTES: usize = READ_TURN_BYTES / 2;
/// Requests taken up in one turn.
pub const REQUESTS_PER_TURN: usize = 32;
/// Bytes of requests read from stdin in one turn.
pub const REQUEST_READ_TURN_BYTES: usize = 1024 * 1024;
/// Bytes written to stdout in one turn.
pub const REPLY_WRITE_TURN_BYTES: usize = 256 * 1024;

/// Counts up when the protocol changes in a way that a client can notice.
pub const PROTOCOL_REVISION: u32 = 1;

// ---- Patterns --------------------------------------------------------------------------

/// Of a line that is longer, only so much of its end is looked at when it goes on.
pub const LIVE_LINE_BYTES: usize = 8 * 1024;

// ---- wait_for --------------------------------------------------------------------------

/// Output that has not come for so long is quiet: the end of its unfinished line may be judged.
pub const QUIET_MS: u64 = 20;

// ---- Windows of bash -------------------------------------------------------------------

/// Windows that run at once.
pub const RUNNING_WINDOWS_MAX: usize = 64;
/// The last clean text of a window that has ended.
pub const FINISHED_WINDOW_BYTES: usize = 60 * 1024;
/// Most bytes of any text of a window.
pub const WINDOW_TEXT_MAX_BYTES: usize = 256 * 1024;
/// Raw bytes kept of a window for each byte of text that may be asked for: escape sequences take
/// room, and a text is made of what is kept.
pub const WINDOW_KEPT_FACTOR: usize = 4;
/// Bytes of a window's command in lists, polls and completions.
pub const WINDOW_COMMAND_BYTES: usize = 4 * 1024;
/// Bytes of output of a window that no unified-exec call has told.
pub const WINDOW_UNREAD_BYTES: usize = 224 * 1024;

// ---- Logs and the keeper ----------------------------------------------------------------

/// Size of the pipe to the keeper: pipe-max-size of an unprivileged user, see pipe(7).
pub const LOG_PIPE_BYTES: usize = 1024 * 1024;
/// Frames of all sessions together that may wait for the log pipe in one buffer; what is more
/// waits in the session's own queue.
pub const LOG_STAGING_BYTES: usize = 256 * 1024;
/// A guard for which more than this waits does not read, and is replaced.
pub const GUARD_STAGING_BYTES: usize = 1024 * 1024;
/// Payload of one log frame.
pub const LOG_FRAME_BYTES: usize = 64 * 1024;
/// The pipe through which a flood's pages go into the log pipe: a frame and a page more.
pub const TRAY_PIPE_BYTES: usize = 128 * 1024;
/// Logging stops below this much free space when it is also below the percentage.
pub const FREE_SPACE_MIN_BYTES: u64 = 1024 * 1024 * 1024;
/// Logging stops below this part of the file system when it is also below the bytes.
pub const FREE_SPACE_MIN_PERCENT: u64 = 5;
/// Logs older than this are deleted at start.
pub const LOG_KEEP_DAYS: u64 = 7;
/// Largest value of --log-keep-days.
pub const MAX_LOG_KEEP_DAYS: u64 = 36_500;

const _: () = {
    assert!(
        MIN_YIELD_TIME_MS <= DEFAULT_EXEC_YIELD_MS && DEFAULT_EXEC_YIELD_MS <= MAX_YIELD_TIME_MS
    );
    assert!(MIN_EMPTY_YIELD_TIME_MS <= DEFAULT_MAX_BACKGROUND_POLL_MS);
    // Registering at the end of the early-exit grace must come before the shortest yield.
    assert!(EARLY_EXIT_GRACE_PERIOD_MS < MIN_YIELD_TIME_MS);
    assert!(MAX_CONFIGURABLE_POLL_MS < u64::MAX / NS_PER_MS / 2);
    // JSON escapes one byte as six at most: a model-facing reply always fits below the mark.
    assert!(DEFAULT_MAX_BYTES * 6 < OUTBOX_HIGH_BYTES);
    // Two texts at the default cap; the order of both is told by bits.
    assert!(FINISHED_JOBS_MAX * 2 * JOB_OUTPUT_CHARS * MAX_CHAR_BYTES < FINISHED_JOBS_BYTES);
    // What is kept for the stream family leaves something to unified-exec.
    assert!(
        2 * (JOB_RING_BYTES_MAX + WINDOW_LEAD_BYTES) + 4 * ARRIVAL_RUNS_MAX < HEAD_TAIL_MAX_BYTES
    );
    assert!(LIVE_BACKLOG_BYTES < OUTBOX_HIGH_BYTES);
    assert!(OUTBOX_LOW_BYTES < OUTBOX_HIGH_BYTES && OUTBOX_HIGH_BYTES < OUTBOX_STOP_BYTES);
    assert!(OUTBOX_STOP_BYTES < OUTBOX_GIVE_UP_BYTES);
    // A client that alone holds much is judged by its own bounds.
    assert!(OUTBOX_GIVE_UP_BYTES < CLIENTS_UNSENT_BYTES && MAX_LINE_BYTES < CLIENTS_UNREAD_BYTES);
    assert!(SOCKET_READ_TURN_BYTES <= REQUEST_READ_TURN_BYTES);
    assert!(SOCKET_WRITE_TURN_BYTES <= REPLY_WRITE_TURN_BYTES);
    // What a session is read of in a turn, in base64, goes out in a turn.
    assert!(READ_SESSION_TURN_BYTES * 3 / 2 < SOCKET_WRITE_TURN_BYTES);
    assert!(READ_BUFFER_BYTES <= READ_SESSION_TURN_BYTES);
    assert!(READ_SESSION_TURN_BYTES <= READ_TURN_BYTES);
    assert!(LOG_FRAME_BYTES <= LOG_PIPE_BYTES && LOG_FRAME_BYTES < TRAY_PIPE_BYTES);
    // What is handed over in one piece is read in one piece.
    assert!(LOG_FRAME_BYTES <= READ_BUFFER_BYTES);
    assert!(STREAM_TAIL_BYTES <= REPLAY_BYTES && REPLAY_BYTES <= HEAD_TAIL_MAX_BYTES);
    assert!(VIEW_RESUME_BYTES < VIEW_STOP_BYTES && VIEW_STOP_BYTES < OUTBOX_HIGH_BYTES);
    // A window's buffers stay within 2.3 MiB (architecture.md, Bounds).
    assert!(
        WINDOW_TEXT_MAX_BYTES * WINDOW_KEPT_FACTOR
            + WINDOW_UNREAD_BYTES
            + REPLAY_BYTES
            + LOG_QUEUE_BYTES
            <= 2355 * 1024
    );
    // A finished window keeps at most 64 KiB with its command.
    assert!(FINISHED_WINDOW_BYTES + WINDOW_COMMAND_BYTES <= 64 * 1024);
    assert!(MAX_LINE_BYTES >= MIN_MAX_LINE_BYTES && MAX_LINE_BYTES <= MAX_MAX_LINE_BYTES);
    assert!(AGENT_JSON_DEPTH < MAX_JSON_DEPTH);
    assert!(AGENT_HEAD_BYTES <= AGENT_LINE_STEP_BYTES);
    // A line, its room and what is made of it stay within the line's length and 1 MiB.
    assert!(AGENT_LINE_STEP_BYTES + AGENT_TOOL_OUTPUT_BYTES < 1024 * 1024);
    // A guard that was just started may be told of the largest table of sessions, with as many that
    // are over.
    assert!(MAX_SESSIONS_LIMIT * 2 * 32 <= GUARD_STAGING_BYTES);
    // Bytes queued for a log while a read of full size comes overflow by no more than that.
    assert!(READ_BUFFER_BYTES < LOG_QUEUE_BYTES);
};
