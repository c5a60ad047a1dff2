//! What bounds logs: how much of one is kept, and where the kept part begins (docs/logs.md).
//!
//! A log that has more than `keep` bytes loses its oldest ones, a step at a time. Its places never
//! change: the beginning becomes a hole in the file.

use crate::limits::LOG_BLOCK_BYTES;

/// See [`LOG_SPARE_PARTS`].
const LOG_SPARE_BLOCKS_MIN: u64 = 4;

/// This part of a step, and so many blocks at least, are left for the file system's own books of a
/// log's blocks, which count as the log's.
const LOG_SPARE_PARTS: u64 = 8;

/// A log loses its oldest bytes in steps of this part of what is kept.
const LOG_KEEP_STEPS: u64 = 16;

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

/// The step by which a log loses its oldest bytes.
pub const fn step_bytes(keep_bytes: u64) -> u64 {
    let step = whole_blocks(keep_bytes / LOG_KEEP_STEPS);
    if step < LOG_BLOCK_BYTES { LOG_BLOCK_BYTES } else { step }
}

const fn whole_blocks(bytes: u64) -> u64 {
    bytes / LOG_BLOCK_BYTES * LOG_BLOCK_BYTES
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

    /// How many bytes those are.
    pub const fn bytes(self) -> u64 {
        self.bytes
    }

    /// Bytes that the log may get before it has to lose its oldest ones. What it takes stays within
    /// what is kept and one step, of which some are left for the file system's own books of the
    /// file's blocks.
    pub fn room(self, size: u64, from: u64) -> u64 {
        let most = self.bytes.saturating_add(self.step);
        let spare = (self.step / LOG_SPARE_PARTS).max(LOG_SPARE_BLOCKS_MIN * LOG_BLOCK_BYTES);
        let end = from.saturating_add(whole_blocks(most.saturating_sub(spare)));
        end.saturating_sub(size)
    }

    /// Where the kept part begins when the oldest bytes go, as far as whole blocks have none of the
    /// last bytes that are kept.
    pub const fn trimmed(self, size: u64, from: u64) -> u64 {
        let gone = whole_blocks(size.saturating_sub(self.bytes));
        if gone > from { gone } else { from }
    }
}
