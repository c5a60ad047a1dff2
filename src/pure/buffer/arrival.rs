//! The order in which the bytes of two streams came, without a second copy of them.
//!
//! A session of the stream family tells stdout and stderr apart and also merged as they arrived.
//! The last bytes of both are kept once; how they interleave is a list
//! of runs.

use std::collections::VecDeque;

use crate::limits::ARRIVAL_RUNS_MAX;

/// The bit of an entry that says that its run is of the second stream.
const SECOND: u32 = 1 << 31;
/// The longest run that one entry tells.
const LONGEST: u32 = SECOND - 1;

/// The newest runs of bytes, alternately of the one and the other stream.
#[derive(Clone, Debug, Default)]
pub struct Arrival {
    runs: VecDeque<u32>,
}

impl Arrival {
    /// No byte yet; takes no heap.
    pub const fn new() -> Self {
        Self { runs: VecDeque::new() }
    }

    /// So many bytes came of the first stream, or of the `second`. The oldest runs are forgotten
    /// above ARRIVAL_RUNS_MAX.
    pub fn push(&mut self, second: bool, bytes: usize) {
        let mark = if second { SECOND } else { 0 };
        let mut left = bytes;
        while left > 0 {
            let room = match self.runs.back() {
                Some(last) if last & SECOND == mark => LONGEST - (last & LONGEST),
                _ => 0,
            };
            if room == 0 {
                if self.runs.len() == ARRIVAL_RUNS_MAX {
                    self.runs.pop_front();
                }
                self.runs.push_back(mark);
                continue;
            }
            let taken = u32::try_from(left).unwrap_or(LONGEST).min(room);
            if let Some(last) = self.runs.back_mut() {
                *last += taken;
            }
            left -= taken as usize;
        }
    }

    /// The last bytes of each, made of the last bytes of both in order of arrival: no further back
    /// than the list of runs reaches.
    pub fn apart(&self, merged: &[u8]) -> [Vec<u8>; 2] {
        let (mut left, mut pieces) = (merged, [vec![], vec![]]);
        for run in self.runs.iter().rev() {
            let taken = ((run & LONGEST) as usize).min(left.len());
            let (before, piece) = left.split_at(left.len() - taken);
            left = before;
            pieces[usize::from(run & SECOND != 0)].push(piece);
        }
        pieces.map(|mut pieces| {
            pieces.reverse();
            pieces.concat()
        })
    }

    /// Bytes of heap it owns.
    pub fn heap_bytes(&self) -> usize {
        self.runs.capacity() * size_of::<u32>()
    }

    /// The last bytes of both in order of arrival, made of the last bytes of `first` and of
    /// `second`: at most `most_bytes`, and no further back than both and the list of runs reach.
    pub fn merged(&self, first: &[u8], second: &[u8], most_bytes: usize) -> Vec<u8> {
        let (mut sources, mut left) = ([first, second], most_bytes);
        let mut pieces = Vec::new();
        for run in self.runs.iter().rev() {
            let source = &mut sources[usize::from(run & SECOND != 0)];
            let length = (run & LONGEST) as usize;
            let taken = length.min(left).min(source.len());
            let (before, piece) = source.split_at(source.len() - taken);
            *source = before;
            pieces.push(piece);
            left -= taken;
            if taken < length {
                break;
            }
        }
        pieces.reverse();
        pieces.concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::tests_random::Random;

    #[test]
    fn same_as_a_merged_copy() {
        let mut random = Random(0x2545_f491_4f6c_dd1d);
        for _ in 0..170 {
            let mut arrival = Arrival::new();
            let (mut streams, mut all) = ([Vec::new(), Vec::new()], Vec::new());
            let mut order = Vec::new();
            for at in 0..random.below(40) {
                let (second, bytes) = (random.below(2) == 1, random.below(9));
                let piece = vec![u8::try_from(at).unwrap(); bytes];
                arrival.push(second, bytes);
                streams[usize::from(second)].extend_from_slice(&piece);
                all.extend_from_slice(&piece);
                order.extend(std::iter::repeat_n(usize::from(second), bytes));
            }
            let most = random.below(200);
            let whole = arrival.merged(&streams[0], &streams[1], most);
            assert_eq!(whole, all[all.len().saturating_sub(most)..]);
            let kept = &all[random.below(all.len() + 1)..];
            let from = all.len() - kept.len();
            let ends = arrival.apart(kept);
            for (source, end) in ends.iter().enumerate() {
                let wanted: Vec<u8> = order[from..]
                    .iter()
                    .zip(kept)
                    .filter_map(|(whose, byte)| (*whose == source).then_some(*byte))
                    .collect();
                assert_eq!(*end, wanted);
            }
            // Rings that have lost their beginning give a shorter end, never a wrong one.
            let lost = [random.below(streams[0].len() + 1), random.below(streams[1].len() + 1)];
            let end = arrival.merged(&streams[0][lost[0]..], &streams[1][lost[1]..], usize::MAX);
            let mut left = [streams[0].len() - lost[0], streams[1].len() - lost[1]];
            let reached = order.iter().rev().take_while(|source| {
                let has = left[**source] > 0;
                left[**source] = left[**source].saturating_sub(1);
                has
            });
            assert_eq!(end, all[all.len() - reached.count()..]);
        }
    }

    #[test]
    fn the_list_of_runs_is_bounded() {
        let mut arrival = Arrival::new();
        let streams = [vec![b'a'; 2 * ARRIVAL_RUNS_MAX], vec![b'b'; 2 * ARRIVAL_RUNS_MAX]];
        for _ in 0..2 * ARRIVAL_RUNS_MAX {
            arrival.push(false, 1);
            arrival.push(true, 1);
        }
        assert_eq!(arrival.runs.len(), ARRIVAL_RUNS_MAX);
        let end = arrival.merged(&streams[0], &streams[1], usize::MAX);
        assert_eq!(end, b"ab".repeat(ARRIVAL_RUNS_MAX / 2));
    }

    #[test]
    fn a_run_longer_than_an_entry_tells_is_two() {
        let mut arrival = Arrival::new();
        for _ in 0..3 {
            arrival.push(true, LONGEST as usize - 1);
        }
        assert_eq!(arrival.runs, [SECOND | LONGEST, SECOND | LONGEST, SECOND | (LONGEST - 3)]);
    }
}
