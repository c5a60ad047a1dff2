//! The line that is being read: what is kept of the line, and what was found out about it. run.rs
//! decides what to find out.

use super::long::LongLine;
use crate::limits::{AGENT_LINE_MAX_BYTES, AGENT_LINE_STEP_BYTES, BUFFER_KEEP_BYTES};

/// What is known of a line whose end has not come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Known {
    /// Nothing yet: all of it is kept.
    #[default]
    Nothing,
    /// All of it is needed, and kept.
    Whole,
    /// The event of the line was told. Nothing more is needed, but raw events may be kept.
    Told,
    /// The line is no event, or too long to be one. Nothing of it is kept.
    Unparsed,
}

/// The open line.
#[derive(Debug, Default)]
pub struct OpenLine {
    /// The bytes that are kept.
    pub kept: Vec<u8>,
    /// What is known of it.
    pub known: Known,
    /// How long it is so far, whether it is kept or not.
    pub bytes: usize,
    /// So many of its bytes were looked at in vain: it is looked at again when there are twice as
    /// many, so that all looks together cost no more than the line is long.
    pub looked_bytes: usize,
    /// The raw text of the line is wanted and did not fit.
    pub lost: bool,
    /// What was read of a line that is long.
    pub long: Option<Box<LongLine>>,
}

impl OpenLine {
    /// Keeps more bytes. The room for them grows in steps: a long line takes its own length and a
    /// step, not twice its length. False if the line is too long; then nothing of it is kept.
    pub fn keep(&mut self, bytes: &[u8]) -> bool {
        let needed = self.kept.len() + bytes.len();
        if needed > AGENT_LINE_MAX_BYTES {
            self.kept = Vec::new();
            self.known = Known::Unparsed;
            return false;
        }
        if needed > self.kept.capacity() {
            let step = needed.min(AGENT_LINE_STEP_BYTES);
            self.kept.reserve_exact(needed + step - self.kept.len());
        }
        self.kept.extend_from_slice(bytes);
        true
    }

    /// Nothing is kept of this line any more.
    pub fn forget(&mut self) {
        let kept = std::mem::take(&mut self.kept);
        self.reuse(kept);
    }

    /// Takes a buffer back for what is kept next, unless it is a large one.
    pub fn reuse(&mut self, mut kept: Vec<u8>) {
        if kept.capacity() <= BUFFER_KEEP_BYTES {
            kept.clear();
            self.kept = kept;
        }
    }

    /// The line has ended, the next one begins.
    pub fn next(&mut self) {
        self.forget();
        *self = Self { kept: std::mem::take(&mut self.kept), ..Self::default() };
    }
}
