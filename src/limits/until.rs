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
/// Memory of one compiled regex: what one byte of output costs at worst grows with it.
pub const REGEX_BYTES: usize = 256 * 1024;
/// Memory of one lazily built automaton of it: any regex of that size has room to run in it.
pub const REGEX_CACHE_BYTES: usize = 1024 * 1024;
/// A regex that takes more memory than this finds its groups slowly: it takes a step for each byte
/// of the match and each part of the regex.
pub const REGEX_SMALL_BYTES: usize = 16 * 1024;
/// The groups of such a regex are looked for in a match of at most so many bytes.
pub const REGEX_SMALL_MATCH_BYTES: usize = 1024;
/// Of a line that is longer, only so much of its end is looked at when it goes on.
pub const LIVE_LINE_BYTES: usize = 8 * 1024;
/// Memory of the lines that a wait looks at.
pub const LIVE_TEXT_BYTES: usize = 128 * 1024;
/// Plain output of at least so many bytes is looked at as it is; less goes line by line.
pub const LIVE_FAST_BYTES: usize = 512;
/// So much of plain output is kept for redraws that come behind it.
pub const LIVE_REDRAW_BYTES: usize = 4 * 1024;
/// Matches of one pattern that are counted in one line.
pub const UNTIL_LINE_MATCHES_MAX: usize = 1_024;
/// Lines of output in which an echo is expected.
pub const ECHO_LINES: usize = 64;
/// Lines of input whose echo is expected at once.
pub const ECHO_SENT_MAX: usize = 256;
/// Bytes of a line of input that are looked for.
pub const ECHO_LINE_BYTES: usize = 4_096;
/// Bytes of output before the first one that is looked at, in which a sequence may have begun that
/// goes on there.
pub const LEAD_BYTES: usize = 4 * 1024;
/// So much of the end of a long line of input is enough to know its echo.
pub const ECHO_RUN_BYTES: usize = 24;
