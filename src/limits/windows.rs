//! Bounds of bash and its windows (bash.md, Logs and limits).

/// Windows that run at once.
pub const RUNNING_WINDOWS_MAX: usize = 64;
/// Windows that have ended and stay listed where autoCloseWindowsOnCompletion is false.
pub const FINISHED_WINDOWS_MAX: usize = 64;
/// The last clean text of a window that has ended.
pub const FINISHED_WINDOW_BYTES: usize = 60 * 1024;
/// Foreground seconds of bash when none are given, and the most that may be asked for, unless the
/// context says otherwise.
pub const BASH_TIMEOUT_S: f64 = 30.0;
/// See [`BASH_TIMEOUT_S`].
pub const BASH_TIMEOUT_MAX_S: f64 = 60.0;
/// Shortest time that may be waited for, and between two polls of a window.
pub const BASH_SHORTEST_MS: u64 = 100;
/// Pause between two progress notifications of bash: shortest and longest.
pub const BASH_UPDATE_RANGE_MS: (u64, u64) = (50, 60_000);
/// Seconds between two polls that are given to a model, unless the context says otherwise.
pub const WINDOW_POLL_MIN_S: f64 = 10.0;
/// Lines of a poll.
pub const WINDOW_POLL_LINES: u64 = 30;
/// Lines of a background command's completion.
pub const WINDOW_COMPLETED_LINES: u64 = 20;
/// Most lines of any text of a window.
pub const WINDOW_LINES_MAX: u64 = 100_000;
/// Most bytes of any text of a window.
pub const WINDOW_TEXT_MAX_BYTES: usize = 256 * 1024;
/// Raw bytes kept of a window for each byte of text that may be asked for: escape sequences take
/// room, and a text is made of what is kept.
pub const WINDOW_KEPT_FACTOR: usize = 4;
/// Characters of a window's name.
pub const WINDOW_NAME_CHARS: u64 = 30;
/// Most characters of it that may be configured.
pub const WINDOW_NAME_MAX_CHARS: u64 = 200;
/// Bytes of a window's command in lists, polls and completions.
pub const WINDOW_COMMAND_BYTES: usize = 4 * 1024;
/// Bytes of a string of a context that a window keeps.
pub const WINDOW_FIELD_BYTES: usize = 4 * 1024;
/// Bytes of output of a window that no unified-exec call has told.
pub const WINDOW_UNREAD_BYTES: usize = 224 * 1024;
/// Text of a peek that shows what is new.
pub const PEEK_NEW_BYTES: usize = 5 * 1024;
/// Clients whose last look at a window is remembered: all that may be connected.
pub const PEEKERS_MAX: usize = 65;
