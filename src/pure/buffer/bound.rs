//! What bounds logs: how much of one is kept, and where the kept part begins (docs/unified-exec.md,
//! Logs).
//!
//! A log that has more than `keep` bytes loses its oldest ones, a step at a time. Its places never
//! change: the beginning becomes a hole in the file. Where a file system has no holes, the log is
//! a row of segments of one step each, of which the oldest are deleted.

use crate::limits::{LOG_BLOCK_BYTES, LOG_KEEP_STEPS, LOG_SPARE_BLOCKS_MIN, LOG_SPARE_PARTS};

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
    let step = whole_blocks(keep_bytes / LOG_KEEP_STEPS);
    if step < LOG_BLOCK_BYTES { LOG_BLOCK_BYTES } else { step }
}

/// The name of one of a log's segments, the first of which is number 1 and has the log's own name.
pub fn segment_name(log: &str, number: u64) -> String {
    if number <= 1 { log.to_owned() } else { format!("{log}.{number}") }
}

const fn whole_blocks(bytes: u64) -> u64 {
    bytes / LOG_BLOCK_BYTES * LOG_BLOCK_BYTES
}

/// In which form a log loses its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Whole blocks at its beginning become a hole.
    Holes,
    /// It is a row of segments.
    Segments,
}

/// How much of one log is kept. A log has `size` bytes, of which the first `from` are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    bytes: u64,
    step: u64,
}

impl Kept {
    /// At least so many bytes, but for a log that has had no more.
    pub const fn of(bytes: u64) -> Self {
        Self { bytes, step: step_bytes(bytes) }
    }

    /// What these bounds keep of one log, which is no more than all logs may take; `None`: all.
    pub fn within(bounds: &Bounds) -> Option<Self> {
        let most = bounds.total_bytes.unwrap_or(u64::MAX);
        bounds.keep_bytes.map(|keep| Self::of(keep.min(most)))
    }

    /// The step by which the log loses its oldest bytes, and the size of its segments.
    pub const fn step(self) -> u64 {
        self.step
    }

    /// Bytes that the log may get before it has to lose its oldest ones, or has to go on in another
    /// segment. What it takes stays within what is kept and one step; where its blocks are one
    /// file's, some of that are left for the file system's own books of them.
    pub fn room(self, form: Form, size: u64, from: u64) -> u64 {
        let most = self.bytes.saturating_add(self.step);
        match form {
            Form::Holes => {
                let least = LOG_SPARE_BLOCKS_MIN * LOG_BLOCK_BYTES;
                let spare = (self.step / LOG_SPARE_PARTS).max(least);
                let end = from.saturating_add(whole_blocks(most.saturating_sub(spare)));
                end.saturating_sub(size)
            }
            Form::Segments => {
                let segment = self.step - size % self.step;
                from.saturating_add(most).saturating_sub(size).min(segment)
            }
        }
    }

    /// Where the kept part begins when the oldest bytes go, as far as whole blocks or segments have
    /// none of the last `keep` bytes, a block at least; `None`: as many as are kept anyway.
    pub fn trimmed(self, form: Form, size: u64, from: u64, keep: Option<u64>) -> u64 {
        let keep = keep.map_or(self.bytes, |keep| keep.max(LOG_BLOCK_BYTES));
        let gone = size.saturating_sub(keep);
        let gone = match form {
            Form::Holes => whole_blocks(gone),
            Form::Segments => gone / self.step * self.step,
        };
        gone.max(from)
    }

    /// The segment of the byte at this place.
    pub const fn segment_of(self, place: u64) -> u64 {
        place / self.step + 1
    }
}

#[cfg(test)]
#[path = "bound_tests.rs"]
mod tests;
