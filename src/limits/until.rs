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
/// Memory of one regex's lazily built automaton: when it is full, it is emptied and built anew.
pub const REGEX_CACHE_BYTES: usize = 512 * 1024;
