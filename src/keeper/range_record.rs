//! Which part of a session's output is asked for, and what is said of the part that was read
//! (frames.rs has the frame and the record they stand in). Bytes in, values out, no I/O.

use super::records::{Nonsense, RANGE_HEAD_BYTES, take, take_u64};
use crate::pure::buffer::source::Source;

/// Bytes of a [`ReadRange`] before the name.
pub(super) const READ_RANGE_FIXED_BYTES: usize = 40;

/// Which part of the output is asked for. All offsets count bytes of the output, as a session gave
/// it: of both streams in the order in which they were read, or of the one that is asked for alone.
/// They are no places in the file, which has lines of the keeper's own and lacks what was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The stream that is asked for alone.
    pub only: Option<Source>,
    /// The first byte; a negative number counts from the end of the output.
    pub from: i64,
    /// The end of what is asked for; `u64::MAX` is the end of the output.
    pub to: u64,
    /// Bytes at most, and never more than `LOG_RANGE_ANSWER_BYTES`.
    pub max_bytes: u64,
    /// How many bytes the output has by now, as far as that is known.
    pub total: Option<u64>,
}

/// A part of the output that is asked for, of this log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRange {
    /// Comes back with the range.
    pub token: u64,
    /// Which part.
    pub wanted: Wanted,
    /// The log's name inside the log directory.
    pub name: String,
}

/// What is said of the part that was read: one run of bytes that lie together in the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Head {
    /// The first byte that was read.
    pub from: u64,
    /// Where the bytes that were read end.
    pub to: u64,
    /// Where to go on.
    pub next_offset: u64,
    /// What was asked for in front of `from` and is not in the log; equal where nothing is.
    pub gap: (u64, u64),
    /// The first byte that is still in the log: all before is gone.
    pub log_from: u64,
    /// Bytes of the output that the log writer knows of.
    pub known_total: u64,
}

impl ReadRange {
    pub(super) fn push(&self, out: &mut Vec<u8>) {
        let wanted = &self.wanted;
        out.extend_from_slice(&self.token.to_le_bytes());
        out.extend_from_slice(&wanted.from.to_le_bytes());
        out.extend_from_slice(&wanted.to.to_le_bytes());
        out.extend_from_slice(&wanted.max_bytes.to_le_bytes());
        out.extend_from_slice(&wanted.total.unwrap_or(u64::MAX).to_le_bytes());
        out.extend_from_slice(self.name.as_bytes());
    }

    /// Reads all but the name, which is left in `rest`. Errors: there is less than that.
    pub(super) fn take(only: Option<Source>, rest: &mut &[u8]) -> Result<(u64, Wanted), Nonsense> {
        let token = take_u64(rest)?;
        let from = i64::from_le_bytes(take(rest)?);
        let (to, max_bytes) = (take_u64(rest)?, take_u64(rest)?);
        let total = Some(take_u64(rest)?).filter(|total| *total != u64::MAX);
        Ok((token, Wanted { only, from, to, max_bytes, total }))
    }
}

impl Head {
    /// Its bytes as they stand in front of the range's own.
    pub fn encode(&self) -> [u8; RANGE_HEAD_BYTES] {
        let (gap_from, gap_to) = self.gap;
        let numbers = [
            self.from,
            self.to,
            self.next_offset,
            gap_from,
            gap_to,
            self.log_from,
            self.known_total,
        ];
        let mut out = [0; RANGE_HEAD_BYTES];
        for (place, number) in out.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        out
    }

    /// Takes it off the front of `rest`. Errors: there is less than one.
    pub fn take(rest: &mut &[u8]) -> Result<Self, Nonsense> {
        let mut next = || take_u64(rest);
        let (from, to, next_offset) = (next()?, next()?, next()?);
        let gap = (next()?, next()?);
        let (log_from, known_total) = (next()?, next()?);
        Ok(Self { from, to, next_offset, gap, log_from, known_total })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_range_is_read_back() {
        let head = Head {
            from: 1,
            to: 1 << 40,
            next_offset: 3,
            gap: (4, u64::MAX),
            log_from: 6,
            known_total: 7,
        };
        let bytes = [&head.encode()[..], b"text"].concat();
        let mut rest = bytes.as_slice();
        assert_eq!(Head::take(&mut rest), Ok(head));
        assert_eq!(rest, b"text");
        assert!(Head::take(&mut &bytes[..RANGE_HEAD_BYTES - 1]).is_err());
    }
}
