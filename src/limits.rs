//! Every bound of execd, named with its unit, in one place (architecture.md, Bounds).
//!
//! A loop, queue, buffer or wait elsewhere takes its bound from here. Relations between
//! bounds are checked when the program is compiled, at the end of this file.

mod agent;
mod clients;
mod doing;
mod drain;
mod ledger;
mod logs;
mod mcp;
mod ports;
mod processes;
mod reading;
mod stream;
mod turn;
mod until;
mod waits;
mod windows;

pub use agent::*;
pub use clients::*;
pub use doing::*;
pub use drain::*;
pub use ledger::*;
pub use logs::*;
pub use mcp::*;
pub use ports::*;
pub use processes::*;
pub use reading::*;
pub use stream::*;
pub use turn::*;
pub use until::*;
pub use waits::*;
pub use windows::*;

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
/// Wait of write_stdin with input when none is given.
pub const DEFAULT_WRITE_STDIN_YIELD_MS: u64 = 250;
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
/// Of that time the first part, in which a leader that ends what it has started is left to do so.
pub const LEADER_FIRST_MS: u64 = 1_000;
/// How long after SIGKILL kill_session waits before it names the survivors.
pub const KILL_GIVE_UP_MS: u64 = 3_000;
/// From SIGTERM to SIGKILL when execd ends.
pub const SHUTDOWN_GRACE_MS: u64 = 1_000;
/// How long after SIGKILL the end waits for processes that do not go.
pub const SHUTDOWN_GIVE_UP_MS: u64 = 2_000;
/// How long the last flush to a reader that takes nothing may last.
pub const LAST_FLUSH_MS: u64 = 2_000;
/// How long one that has taken something since the end of stdin may rest before it takes more.
pub const SLOW_FLUSH_MS: u64 = 10_000;
/// How long a reply that says exited waits for the keeper's acknowledgement of its log.
pub const LOG_ACK_WAIT_MS: u64 = 250;
/// Two starts of the guard, or of the log writer, are at least this far apart.
pub const KEEPER_RESTART_MIN_MS: u64 = 50;
/// The distance doubles up to this while the helper dies before it is over.
pub const KEEPER_RESTART_MAX_MS: u64 = 5_000;
/// How soon a timer that could not be armed is tried again.
pub const CLOCK_RETRY_MS: u64 = 20;
/// A stale timer this near is left to fire once: re-arming it would cost the same call.
pub const STALE_TIMER_MS: u64 = 200;

// ---- Sessions ---------------------------------------------------------------------------

/// Highest session id that can be reserved: what comes after it is still an exact number in JSON.
pub const MAX_RESERVED_SESSION_ID: u64 = (1 << 53) - 1;

/// Sessions held at once unless --max-sessions says otherwise.
pub const MAX_SESSIONS: usize = 64;
/// Largest value of --max-sessions.
pub const MAX_SESSIONS_LIMIT: usize = 16_384;
/// Warnings start this many below the cap (60 of 64).
pub const WARNING_BELOW_MAX: usize = 4;
/// The most recently used sessions that eviction never takes.
pub const LRU_PROTECTED_COUNT: usize = 8;
/// Sessions whose id still gets a message saying that they were evicted, and where the log is.
pub const EVICTED_REMEMBERED: usize = 1_024;
/// File descriptors a session takes in execd: output, stdin, pidfd, and one in reserve.
pub const FDS_PER_SESSION: u64 = 4;
/// Below so many file descriptors execd holds none that only spare work, and `execd run` has no
/// control socket.
pub const FDS_LOW: u64 = 32;
/// File descriptors execd needs besides its sessions and clients.
pub const FDS_RESERVED: u64 = 48;

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
/// Bytes of an escape sequence's parameters that are looked at.
pub const CSI_PARAM_BYTES: usize = 32;
/// Bytes of the longest question to a terminal that is looked for.
pub const QUERY_BYTES: usize = 256;
/// Keyboard modes that programs in a terminal have put on one another.
pub const KEYBOARD_STACK: usize = 8;
/// Bytes of model-facing text in one reply.
pub const DEFAULT_MAX_BYTES: usize = 50 * 1024;
/// Lines of model-facing text in one reply.
pub const DEFAULT_MAX_LINES: usize = 2_000;
/// Bytes at the start of a window that begins anywhere: they only tell whether it begins inside
/// an escape sequence, most of which are shorter.
pub const WINDOW_LEAD_BYTES: usize = 64;
/// How many lines up a cursor-up redraw may reach (unified-exec.md, Clean text).
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
/// Bytes before the unread ones that are read again, to know whether these begin inside an escape
/// sequence.
pub const UNREAD_LEAD_BYTES: usize = 4 * 1024;
/// Bytes of one log page when none are asked for.
pub const LOG_PAGE_BYTES: u64 = 30_000;
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
/// Pipes of children are raised to this by F_SETPIPE_SZ.
pub const CHILD_PIPE_BYTES: usize = 256 * 1024;
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
/// Bytes of their params; a longer request waits there alone.
pub const START_QUEUE_BYTES: usize = 8 * 1024 * 1024;
/// Longest id of a request that is kept and echoed.
pub const MAX_ID_BYTES: usize = 4_096;
/// Longest name of a session, which lists and notifications repeat, also when it has ended.
pub const MAX_LABEL_BYTES: usize = 1_024;
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

// ---- Logs and the keeper ----------------------------------------------------------------

/// Size of the pipe to the keeper: pipe-max-size of an unprivileged user, see pipe(7).
pub const LOG_PIPE_BYTES: usize = 1024 * 1024;
/// Bytes of logs whose session is gone that wait for a stalled disk, all together.
pub const ORPHAN_LOG_BYTES: usize = 16 * 1024 * 1024;
/// Frames of all sessions together that may wait for the log pipe in one buffer; what is more
/// waits in the session's own queue.
pub const LOG_STAGING_BYTES: usize = 256 * 1024;
/// A guard for which more than this waits does not read, and is replaced.
pub const GUARD_STAGING_BYTES: usize = 1024 * 1024;
/// Payload of one log frame.
pub const LOG_FRAME_BYTES: usize = 64 * 1024;
/// The pipe through which a flood's pages go into the log pipe: a frame and a page more.
pub const TRAY_PIPE_BYTES: usize = 128 * 1024;
/// The keeper looks at most so often whether a log that grows is still where its path leads.
pub const LOG_PLACE_CHECK_MS: u64 = 1_000;
/// From this size on replies warn of a log that nothing bounds.
pub const LOG_WARNING_BYTES: u64 = 1024 * 1024 * 1024;
/// The keeper looks at the file system's free space after this much growth of one log, ...
pub const FREE_SPACE_CHECK_BYTES: u64 = 8 * 1024 * 1024;
/// ... or after this part of what may still be written, where that is less: so many logs at a time
/// stop before the disk is full.
pub const FREE_SPACE_CHECK_PARTS: u64 = 4;
/// Logging stops below this much free space when it is also below the percentage.
pub const FREE_SPACE_MIN_BYTES: u64 = 1024 * 1024 * 1024;
/// Logging stops below this part of the file system when it is also below the bytes.
pub const FREE_SPACE_MIN_PERCENT: u64 = 5;
/// Logs older than this are deleted at start.
pub const LOG_KEEP_DAYS: u64 = 7;
/// Largest value of --log-keep-days.
pub const MAX_LOG_KEEP_DAYS: u64 = 36_500;
/// Bytes of the longest path, see PATH_MAX.
pub const PATH_BYTES: u64 = 4096;
/// Random digits in the name of a log directory that is used in place of the default one.
pub const RANDOM_NAME_DIGITS: usize = 8;
/// Names beside the default log directory among which one that was made earlier is looked for.
pub const NAMES_BESIDE: usize = 64 * 1024;
/// How long execd waits at its start for the word whether the log directory that was asked for can
/// be had; a disk may stand still.
pub const LOG_DIR_WAIT_MS: u64 = 1_000;
/// Bytes the keeper reads from the log pipe at a time.
pub const KEEPER_READ_BYTES: usize = 128 * 1024;
/// Longest name of a log file: NAME_MAX, see pathconf(3).
pub const LOG_NAME_BYTES: usize = 255;
/// Scans the guard makes for processes to end after execd was killed.
pub const GUARD_SCANS: usize = 200;
/// The guard's pause between two scans.
pub const GUARD_SCAN_PAUSE_MS: u64 = 5;

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
