//! Bounds of read_output, and of what is remembered of sessions that have left the table (logs.md,
//! Reading).

/// Output of one page when nothing else is asked for.
pub const READ_OUTPUT_BYTES: u64 = 64 * 1024;
/// Most output of one page.
pub const READ_OUTPUT_MAX_BYTES: u64 = 1024 * 1024;
/// Lines that may be asked for.
pub const READ_LINES_MAX: u64 = 1_000_000;
/// How long read_output waits with `until` or `stop` when nothing else is asked for.
pub const READ_UNTIL_MS: u64 = 5_000;
/// Output that is looked at in one step for what `until` and `stop` ask for, where it is there
/// already: so long a turn may take for one reader.
pub const READ_SCAN_BYTES: u64 = 256 * 1024;
/// How often the log is asked again for one page, because what was found ends before the page
/// begins, or before the last lines: so often that a log of the default bound is read to its end,
/// 8 MiB an answer.
pub const READ_AGAIN_MAX: u32 = 128;
/// Output in which the last lines are looked for first.
pub const READ_LINES_FIRST_BYTES: u64 = 4 * 1024;
/// How many times more output they are looked for in, each time that it has fewer.
pub const READ_LINES_WIDER: u64 = 4;
/// Places inside of lines at which pages have ended that are remembered.
pub const READ_PLACES_MAX: usize = 1_024;
/// Sessions that are remembered when they have left the table.
pub const PAST_SESSIONS_MAX: usize = 4_096;
/// What one of them takes in memory at most.
pub const PAST_SESSION_BYTES: usize = 200;
/// Of so many sessions that were ended for another reason than their own the last output is
/// remembered too.
pub const LAST_SEEN_MAX: usize = 256;
/// That output.
pub const LAST_SEEN_OUTPUT_BYTES: usize = 1_024;
/// Its lines.
pub const LAST_SEEN_LINES: usize = 40;
