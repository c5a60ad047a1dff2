//! Bounds of what a wait may be asked to end by (waits.md).

/// Patterns of one call, `until` and `stop` together.
pub const UNTIL_PATTERNS_MAX: usize = 16;
/// Bytes of one pattern.
pub const UNTIL_PATTERN_BYTES: usize = 4_096;
/// Largest `count`.
pub const UNTIL_COUNT_MAX: u64 = 1_000_000;
/// Bytes of a matched line, and of one capture, as a reply tells them.
pub const UNTIL_TEXT_BYTES: usize = 500;
/// Groups of a regex that a reply tells.
pub const UNTIL_CAPTURES_MAX: usize = 16;
/// Shortest and longest `idle_ms`.
pub const UNTIL_IDLE_RANGE_MS: (u64, u64) = (1, 3_600_000);
/// Bytes of the path of `http`.
pub const UNTIL_PATH_BYTES: usize = 2_048;
/// Statuses that HTTP knows (RFC 9110, 15).
pub const HTTP_STATUS_RANGE: (u16, u16) = (100, 599);
/// Statuses that `http` takes for an answer when none are given.
pub const HTTP_STATUS_DEFAULT: (u16, u16) = (200, 399);
/// How deep groups of a regex may stand in one another.
pub const REGEX_NEST: u32 = 100;
/// Memory of one compiled regex: what one byte of output costs at worst grows with it.
pub const REGEX_NFA_BYTES: usize = 256 * 1024;
/// The same of a regex that is read backwards, while a match is looked at: whole characters take
/// more there.
pub const REGEX_BACK_NFA_BYTES: usize = 4 * REGEX_NFA_BYTES;
/// Memory of one regex's lazily built automaton: when it is full, it is emptied and built anew.
pub const REGEX_CACHE_BYTES: usize = 512 * 1024;
/// The start of a match whose end is no further away is searched for by the threads of a regex;
/// of one that is, an automaton finds it.
pub const REGEX_NEAR_BYTES: usize = 2 * 1024;
/// Of a line that is longer, only so much of its end is looked at when it goes on.
pub const LIVE_LINE_BYTES: usize = 64 * 1024;
/// Memory of the lines that a wait looks at.
pub const LIVE_TEXT_BYTES: usize = 128 * 1024;
/// Plain output of at least so many bytes is looked at as it is; less goes line by line.
pub const LIVE_FAST_BYTES: usize = 512;
/// So much of plain output is kept for redraws that come behind it.
pub const LIVE_REDRAW_BYTES: usize = 4 * 1024;
/// Literals of which a regex needs one, for a quick search; with more it is matched at once.
pub const REGEX_NEEDLES_MAX: usize = 8;
/// Classes of which a regex needs a byte each, for a quick look whether there is any.
pub const REGEX_AMONG_MAX: usize = 4;
/// Bytes of one class in succession that are worth a search of their own.
pub const REGEX_RUN_BYTES: usize = 4;
/// Lines in succession that have such a run and do not match: then the automaton goes on alone.
pub const REGEX_RUN_MISSES: usize = 4;
/// Parts of a text that the automaton goes through at the same time.
pub const REGEX_LANES: usize = 4;
/// Bytes of such a part at least.
pub const REGEX_LANE_BYTES: usize = 1024;
/// Matches of one pattern that are counted in one line.
pub const UNTIL_LINE_MATCHES_MAX: usize = 1_024;
/// Lines of output in which an echo is expected.
pub const ECHO_LINES: usize = 64;
/// Lines of input whose echo is expected at once.
pub const ECHO_SENT_MAX: usize = 256;
/// Bytes of a line of input that are looked for.
pub const ECHO_LINE_BYTES: usize = 4_096;
/// Bytes of a prompt, before the input that is echoed behind it.
pub const PROMPT_BYTES_MAX: usize = 256;
/// Bytes of output before the first one that is looked at, in which a sequence may have begun that
/// goes on there.
pub const LEAD_BYTES: usize = 4 * 1024;
/// So much of the end of a long line of input is enough to know its echo.
pub const ECHO_RUN_BYTES: usize = 24;
