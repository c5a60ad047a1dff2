//! What bounds logs: how much of one is kept, and where the kept part begins (docs/unified-exec.md,
//! Logs).
//!
//! A log that has more than `keep` bytes loses its oldest ones, a step at a time. Its places never
//! change: the beginning becomes a hole in the file. Where a file system has no holes, the log is
//! a row of segments of one step each, of which the oldest are deleted.

use crate::limits::{LOG_BLOCK_BYTES, LOG_KEEP_STEPS};

/// The bounds that the flags set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of a session's output after which its log ends (`--log-max-bytes`).
    pub max_bytes: Option<u64>,
    /// Bytes of a log that are kept (`--log-keep-bytes`); `None`: all.
    pub keep_bytes: Option<u64>,
    /// Bytes of disk that all logs of a directory take (`--log-total-bytes`); `None`: any number.
    pub total_bytes: Option<u64>,
}

/// The step by which a log loses its oldest bytes, and the size of a segment.
pub const fn step_bytes(keep_bytes: u64) -> u64 {
    let step = keep_bytes / LOG_KEEP_STEPS / LOG_BLOCK_BYTES * LOG_BLOCK_BYTES;
    if step < LOG_BLOCK_BYTES { LOG_BLOCK_BYTES } else { step }
}

/// The name of one of a log's segments, the first of which is number 1 and has the log's own name.
pub fn segment_name(log: &str, number: u64) -> String {
    if number <= 1 { log.to_owned() } else { format!("{log}.{number}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_a_sixteenth_in_whole_blocks() {
        for (keep_bytes, step) in [
            (1 << 30, 64 << 20),
            (16 << 20, 1 << 20),
            (1 << 20, 64 << 10),
            ((1 << 20) + 4096 * 16 - 1, 64 << 10),
            ((1 << 20) + 4096 * 16, 68 << 10),
            (4096, 4096),
            (1, 4096),
        ] {
            assert_eq!(step_bytes(keep_bytes), step, "{keep_bytes}");
        }
    }

    #[test]
    fn the_first_segment_has_the_name_of_its_log() {
        assert_eq!(segment_name("execd-3-ab12cd34.log", 1), "execd-3-ab12cd34.log");
        assert_eq!(segment_name("execd-3-ab12cd34.log", 12), "execd-3-ab12cd34.log.12");
    }
}
