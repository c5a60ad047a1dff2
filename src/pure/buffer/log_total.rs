//! The bound of all logs of a directory together (docs/logs.md, Bounds): what the stamp of the last
//! look at them says, when another look is due, and which logs have ended first.
//! src/sys/log_total.rs does the looking.

use crate::limits::{
    CLEAN_EVERY_S, TOTAL_EVERY_S, TOTAL_OLDEST_LOGS, TOTAL_ROOM_STEPS, TOTAL_STEP_BYTES,
    TOTAL_STEPS,
};
use std::ffi::CString;

/// What the last look at all logs has left in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// When it began, in seconds of the wall clock.
    pub began_s: i64,
    /// What the files take that it has looked at, and what execds have written since that have
    /// ended.
    pub sum_bytes: u64,
    /// Where it was broken off by the end of its execd: a place as telldir(3) gives it.
    pub place: Option<i64>,
}

impl Stamp {
    /// Reads a stamp's text; `None` for what is none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let began_s = words.next()?.parse().ok()?;
        let sum_bytes = words.next()?.parse().ok()?;
        let place = words.next().map(str::parse).transpose().ok()?;
        words.next().is_none().then_some(Self { began_s, sum_bytes, place })
    }

    /// The text that [`Self::parse`] reads.
    pub fn text(self) -> String {
        let place = self.place.map_or_else(String::new, |place| format!(" {place}"));
        format!("{} {}{place}\n", self.began_s, self.sum_bytes)
    }
}

/// Where the look of an execd that starts is to begin: a new one, or what the last one has left;
/// `None` when there is nothing to do yet.
pub fn begins_at(last: Option<Stamp>, now_s: i64, bounds: Bounds) -> Option<Stamp> {
    let anew = Stamp { began_s: now_s, sum_bytes: 0, place: None };
    let Some(stamp) = last else { return Some(anew) };
    // A stamp of the future is a clock that was set.
    let age_s = now_s.saturating_sub(stamp.began_s);
    match stamp.place {
        Some(_) if (0..CLEAN_EVERY_S).contains(&age_s) => Some(stamp),
        None if (0..TOTAL_EVERY_S).contains(&age_s) && stamp.sum_bytes <= bounds.high_bytes => None,
        _ => Some(anew),
    }
}

/// After how many written bytes a log writer looks again.
pub fn step_bytes(total_bytes: u64) -> u64 {
    TOTAL_STEP_BYTES.min(total_bytes / TOTAL_STEPS)
}

/// What follows from how much all logs may take. Some writers at a time may each write a step
/// before they look: so that all logs stay within the bound, something goes already before it is
/// reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Above this, something has to go, ...
    pub high_bytes: u64,
    /// ... until this is left.
    pub goal_bytes: u64,
    /// A log that runs is cut down to so much at least.
    pub least_bytes: u64,
}

impl Bounds {
    /// Of logs that may take so much.
    pub fn of(total_bytes: u64) -> Self {
        let least_bytes = step_bytes(total_bytes);
        let room = TOTAL_ROOM_STEPS * least_bytes;
        let (high_bytes, goal_bytes) = (total_bytes - room, total_bytes - 2 * room);
        Self { high_bytes, goal_bytes, least_bytes }
    }
}

/// A log that may be deleted, or a segment of one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ended {
    /// When its session ended, in nanoseconds of the wall clock.
    pub at_ns: i64,
    /// The name of its file.
    pub name: CString,
    /// What the file takes on the disk.
    pub bytes: u64,
}

/// Those that ended first.
#[derive(Debug, Default)]
pub struct Oldest {
    logs: Vec<Ended>,
    /// There were more.
    forgot: bool,
}

impl Oldest {
    /// Takes in another.
    pub fn add(&mut self, ended: Ended) {
        self.logs.push(ended);
        if self.logs.len() >= 2 * TOTAL_OLDEST_LOGS {
            self.logs.sort();
            self.logs.truncate(TOTAL_OLDEST_LOGS);
            self.forgot = true;
        }
    }

    /// All of them, the one that ended last first; and whether there were more.
    pub fn take(&mut self) -> (Vec<Ended>, bool) {
        let mut logs = std::mem::take(&mut self.logs);
        logs.sort();
        if self.forgot {
            // The later ones are not the next ones: some before them are forgotten.
            logs.truncate(TOTAL_OLDEST_LOGS);
        }
        logs.reverse();
        (logs, std::mem::take(&mut self.forgot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::tests_random::Random;

    #[test]
    fn a_stamp_is_read_back_and_nothing_else_is_taken_for_one() {
        for stamp in [
            Stamp { began_s: 0, sum_bytes: 0, place: None },
            Stamp { began_s: 1_800_000_000, sum_bytes: u64::MAX, place: Some(i64::MAX) },
            Stamp { began_s: -1, sum_bytes: 1, place: Some(-1) },
        ] {
            assert_eq!(Stamp::parse(&stamp.text()), Some(stamp));
        }
        for text in ["", "7", "7 x", "7 8 9 10", "7 -1", "7 99999999999999999999", "x 1"] {
            assert_eq!(Stamp::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_start_looks_again_after_a_minute_or_where_there_is_too_much() {
        let (now_s, total) = (10_000, Bounds { high_bytes: 100, goal_bytes: 90, least_bytes: 1 });
        let anew = Stamp { began_s: now_s, sum_bytes: 0, place: None };
        let done = |age_s, sum_bytes| Stamp { began_s: now_s - age_s, sum_bytes, place: None };
        let broken_off = |age_s| Stamp { place: Some(44), ..done(age_s, 30) };
        for (last, begins) in [
            (None, Some(anew)),
            (Some(done(0, 100)), None),
            (Some(done(TOTAL_EVERY_S - 1, 100)), None),
            (Some(done(TOTAL_EVERY_S, 100)), Some(anew)),
            (Some(done(-1, 100)), Some(anew)),
            (Some(done(1, 101)), Some(anew)),
            (Some(broken_off(1)), Some(broken_off(1))),
            (Some(broken_off(CLEAN_EVERY_S - 1)), Some(broken_off(CLEAN_EVERY_S - 1))),
            (Some(broken_off(CLEAN_EVERY_S)), Some(anew)),
            (Some(broken_off(-1)), Some(anew)),
        ] {
            assert_eq!(begins_at(last, now_s, total), begins, "{last:?}");
        }
    }

    #[test]
    fn something_goes_before_the_bound_is_reached() {
        assert_eq!(step_bytes(8 << 30), 64 << 20);
        assert_eq!(step_bytes(16 << 20), 256 << 10);
        let of =
            |high_bytes, goal_bytes, least_bytes| Bounds { high_bytes, goal_bytes, least_bytes };
        assert_eq!(Bounds::of(16 << 20), of(15 << 20, 14 << 20, 256 << 10));
        assert_eq!(Bounds::of(0), of(0, 0, 0));
        let (high_bytes, goal_bytes) = ((8 << 30) - (256 << 20), (8 << 30) - (512 << 20));
        assert_eq!(Bounds::of(8 << 30), of(high_bytes, goal_bytes, 64 << 20));
    }

    /// Against a sorted list of all of them.
    #[test]
    fn the_oldest_are_found_among_any_number() {
        for (seed, count) in (1..).zip([0, 1, 100, TOTAL_OLDEST_LOGS, 5 * TOTAL_OLDEST_LOGS]) {
            let mut random = Random(seed);
            let mut all = Vec::new();
            let mut oldest = Oldest::default();
            for n in 0..count {
                let name = CString::new(format!("{n}")).unwrap();
                let at_ns = random.below(1_000_i64);
                let ended = Ended { at_ns, name, bytes: n as u64 };
                oldest.add(ended.clone());
                all.push(ended);
            }
            all.sort();
            let (mut found, forgot) = oldest.take();
            found.reverse();
            assert_eq!(found, all[..found.len()], "{count}");
            assert!(found.len() == count || (forgot && found.len() >= TOTAL_OLDEST_LOGS));
        }
    }
}
