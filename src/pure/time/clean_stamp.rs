//! When old logs are looked for: what the stamp in a log directory says, and what follows from it.
//! src/sys/log_clean.rs reads the stamp and does the looking.

use crate::limits::{CLEAN_EVERY_S, MAX_LOG_KEEP_DAYS};

/// What the last look for old logs has left in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Logs older than this were deleted.
    pub keep_days: u64,
    /// Where it was broken off by the end of its execd: a place as telldir(3) gives it.
    pub place: Option<i64>,
}

impl Stamp {
    /// Reads a stamp's text; `None` for what is none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let keep_days = words.next()?.parse().ok().filter(|days| *days <= MAX_LOG_KEEP_DAYS)?;
        let place = words.next().map(str::parse).transpose().ok()?;
        words.next().is_none().then_some(Self { keep_days, place })
    }

    /// The text that [`Self::parse`] reads.
    pub fn text(self) -> String {
        let place = self.place.map_or_else(String::new, |place| format!(" {place}"));
        format!("{}{place}\n", self.keep_days)
    }
}

/// Where a look for logs older than `keep_days` is to begin (0: the front); `None` when there is
/// nothing to do yet. `last` is the stamp that was found, and its age.
pub fn begins_at(last: Option<(Stamp, i64)>, keep_days: u64) -> Option<i64> {
    let Some((stamp, age_s)) = last else { return Some(0) };
    // An execd that keeps less does not wait for the hour to end; a stamp of the future is a clock
    // that was set.
    if keep_days < stamp.keep_days || !(0..CLEAN_EVERY_S).contains(&age_s) {
        return Some(stamp.place.filter(|_| keep_days >= stamp.keep_days).unwrap_or(0));
    }
    stamp.place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_back_and_nothing_else_is_taken_for_one() {
        for stamp in [
            Stamp { keep_days: 7, place: None },
            Stamp { keep_days: 0, place: Some(i64::MAX) },
            Stamp { keep_days: 36_500, place: Some(-1) },
        ] {
            assert_eq!(Stamp::parse(&stamp.text()), Some(stamp));
        }
        for text in ["", "x", "7 x", "7 8 9", "-1", "99999999999999999999", "36501"] {
            assert_eq!(Stamp::parse(text), None, "{text:?}");
        }
    }

    /// rule: architecture.md, The keeper: Old logs are looked for at most once an hour a directory,
    ///   by one execd, from where the last look was broken off
    #[test]
    fn a_directory_is_looked_at_once_an_hour() {
        let done = Stamp { keep_days: 7, place: None };
        let broken_off = Stamp { place: Some(44), ..done };
        for (last, keep_days, begins) in [
            (None, 7, Some(0)),
            (Some((done, 0)), 7, None),
            (Some((done, CLEAN_EVERY_S - 1)), 7, None),
            (Some((done, CLEAN_EVERY_S)), 7, Some(0)),
            (Some((done, -1)), 7, Some(0)),
            (Some((done, 5)), 8, None),
            (Some((done, 5)), 6, Some(0)),
            (Some((broken_off, 5)), 7, Some(44)),
            (Some((broken_off, CLEAN_EVERY_S)), 7, Some(44)),
            (Some((broken_off, 5)), 6, Some(0)),
        ] {
            assert_eq!(begins_at(last, keep_days), begins, "{last:?} {keep_days}");
        }
    }
}
