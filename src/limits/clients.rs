//! Bounds of the control socket, of its clients, and of the commands that are such clients.

/// Clients of the control socket at once.
pub const SOCKET_CLIENTS_MAX: usize = 64;
/// Connections that wait to be taken, see listen(2).
pub const SOCKET_BACKLOG_COUNT: usize = 64;
/// Connections taken in one turn.
pub const ACCEPTS_PER_TURN: usize = 16;
/// How soon a connection is tried again that could not be taken for want of descriptors or memory.
pub const ACCEPT_RETRY_MS: u64 = 500;
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
/// News of sessions that clients without room have not been told: so many are kept for them.
pub const NEWS_KEPT_COUNT: usize = 1_024;
/// Bytes of the texts of such news that are kept; what is more is only counted.
pub const NEWS_KEPT_BYTES: usize = 1024 * 1024;
/// Bytes of a command in a notification.
pub const TOLD_COMMAND_BYTES: usize = 4 * 1024;
/// Above this much unsent an attached client is sent no more output.
pub const VIEW_STOP_BYTES: usize = 256 * 1024;
/// Below this much unsent it is sent what is kept of what it has missed.
pub const VIEW_RESUME_BYTES: usize = 64 * 1024;
/// How long `execd ls` and its like wait for an execd's answer.
pub const CLIENT_WAIT_MS: u64 = 2_000;
/// How long Ctrl-\ is held back when nothing follows it.
pub const DETACH_KEY_WAIT_MS: u64 = 1_000;
/// How long a terminal may take for the last output when `execd attach` ends.
pub const TERMINAL_FLUSH_MS: u64 = 1_000;
/// Bytes of output that wait for the terminal of `execd attach`; above, it does not read on.
pub const TERMINAL_QUEUE_BYTES: usize = 64 * 1024;
/// Bytes of keys that wait to be sent by `execd attach`; above, it does not read on.
pub const KEYS_QUEUE_BYTES: usize = 64 * 1024;
/// Bytes of keys in one request.
pub const KEYS_READ_BYTES: usize = 4 * 1024;
/// A program redraws after a gap at most this often.
pub const REDRAW_PAUSE_MS: u64 = 1_000;
/// Longest word of `--marker`.
pub const MARKER_MAX_BYTES: usize = 64;

/// The word of a `--marker` that is given none.
pub const MARKER_WORD: &str = "ready";
/// Lines that `execd tail` prints when no number is given.
pub const TAIL_LINES: u64 = 10;
/// Logs that `execd logs` shows, unless it is asked for all.
pub const LOGS_SHOWN: usize = 50;
/// Logs of sessions of one number that `execd log` names where it cannot tell which one is meant.
pub const LOGS_OF_ONE_ID: usize = 5;
/// How long `execd log --follow` waits for output at a time.
pub const LOG_FOLLOW_WAIT_MS: u64 = 30_000;
/// Bytes of output that `execd tail` looks at for its lines.
pub const TAIL_BYTES: usize = 64 * 1024 * 1024;
/// Columns of `execd ls` where it prints to no terminal.
pub const LIST_COLUMNS: usize = 160;
/// The narrowest column of commands in `execd ls`.
pub const LIST_COMMAND_MIN_COLUMNS: usize = 20;
/// Bytes of the kernel's list of sockets in which those of execds are looked for.
pub const SOCKET_LIST_BYTES: u64 = 4 * 1024 * 1024;
/// How long answers of a terminal are waited for that was asked something just before the end of
/// `execd attach`, once it has answered us: whoever has it next would take them for keys.
pub const TERMINAL_ANSWER_MS: u64 = 50;
/// How long they are waited for where the terminal does not answer us.
pub const TERMINAL_LAST_ANSWER_MS: u64 = 500;
/// How long before the end the question may have been.
pub const TERMINAL_ASKED_MS: u64 = 1_000;
/// Bytes that are given back to a terminal: about what it holds of a line, see termios(3).
pub const TYPED_BACK_BYTES: usize = 4_095;
/// Sockets looked at in one directory.
pub const SOCKET_DIR_ENTRIES: usize = 4_096;
/// A socket this old that nobody listens on is no one's who is just starting.
pub const SOCKET_STALE_AFTER_S: i64 = 10;
/// `execd run`: a Ctrl-C so soon after the last one asks for more than that one did.
pub const INTERRUPT_AGAIN_MS: u64 = 2_000;
