//! Deleting old logs: at most once an hour a directory, some names at a time with pauses between,
//! one fstatat(2) a name. Only a log that is old by its times is opened, to see whether an execd
//! holds it. A log with the sticky bit is kept for good ([`LogDir::keep_for_good`]).

use super::log_files::LogDir;
use super::log_walk::{self, Deleted, Names, Part, delete, exists, log_name, part_of};
use super::{clock, log_stamp};
use crate::limits::{CLEAN_PAUSE_MS, NS_PER_MS, NS_PER_S};
use crate::pure::time::clean_stamp::{Stamp, begins_at};
use std::ffi::CStr;
use std::fs::File;
use std::os::unix::fs::MetadataExt;

/// The stamp's name in the log directory: no log has it.
const STAMP: &str = ".execd-cleaned";
const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// A look for old logs under way.
#[derive(Debug)]
pub struct Cleaner {
    names: Names,
    keep_days: u64,
    /// Logs last written before this are old, in nanoseconds of the wall clock.
    oldest_ns: i64,
    /// Locked for as long as this execd looks.
    stamp: Option<File>,
    /// When the next names are due.
    due_ns: u64,
    /// Segments were left because their log was there.
    passed_segments: bool,
    /// Logs were deleted.
    deleted: bool,
    finished: bool,
}

impl Cleaner {
    /// Begins to look for logs last written more than `keep_days` days ago; goes on where an
    /// earlier look was broken off. `None`: nothing is to be done now, or another execd does it.
    pub fn begin(dir: &LogDir, keep_days: u64) -> Option<Self> {
        if keep_days == 0 {
            return None;
        }
        let now_s = clock::wall_ms().div_euclid(1_000);
        let keep_s = i64::try_from(keep_days.saturating_mul(SECONDS_PER_DAY)).ok()?;
        let oldest_ns = now_s.checked_sub(keep_s)?.saturating_mul(NS_PER_S.cast_signed());
        let (stamp, last) = match log_stamp::open(dir, STAMP)? {
            Some((file, text)) => {
                let age_s = now_s.saturating_sub(file.metadata().ok()?.mtime());
                (Some(file), Stamp::parse(&text).map(|stamp| (stamp, age_s)))
            }
            None => (None, None),
        };
        let place = begins_at(last, keep_days)?;
        let mut names = Names::open(dir).ok()?;
        if place != 0 {
            names.seek(place);
        }
        let (passed_segments, deleted, finished) = (false, false, false);
        let due_ns = 0;
        let cleaner =
            Self { names, keep_days, oldest_ns, stamp, due_ns, passed_segments, deleted, finished };
        cleaner.write_stamp(Some(place).filter(|place| *place != 0));
        Some(cleaner)
    }

    /// When the next names are due, on the monotonic clock.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Looks at some names, when they are due. False when all have been looked at.
    pub fn step(&mut self, dir: &LogDir) -> bool {
        let now_ns = clock::now_ns();
        if now_ns < self.due_ns {
            return true;
        }
        self.names.begin_turn(now_ns);
        while self.names.may_go_on() {
            let Some(name) = self.names.next() else {
                // What is left of logs that were deleted behind it.
                if !(self.deleted && self.passed_segments) {
                    self.finished = true;
                    return false;
                }
                (self.deleted, self.passed_segments) = (false, false);
                self.names.seek(0);
                continue;
            };
            let name = name.to_owned();
            let Some((part, stem)) = part_of(name.to_bytes()) else { continue };
            if !self.is_old(dir, &name) {
                continue;
            }
            // What belongs to a log goes with it, however long it was not written itself.
            if part != Part::Log && exists(dir, &log_name(stem)) {
                self.passed_segments |= part == Part::Segment;
                continue;
            }
            if !self.has_stamp(dir) {
                return false;
            }
            self.deleted |= matches!(delete(dir, &name, self.oldest_ns), Deleted::Freed(_));
        }
        if !self.has_stamp(dir) {
            return false;
        }
        self.due_ns = clock::now_ns() + CLEAN_PAUSE_MS * NS_PER_MS;
        true
    }

    /// Makes the stamp, where there is none: a few names of which none is old need none. False
    /// where another execd was faster.
    fn has_stamp(&mut self, dir: &LogDir) -> bool {
        if self.stamp.is_none() {
            self.stamp = log_stamp::make(dir, STAMP);
            self.finished = self.stamp.is_none();
            self.write_stamp(None);
        }
        self.stamp.is_some()
    }

    fn write_stamp(&self, place: Option<i64>) {
        if let Some(file) = &self.stamp {
            log_stamp::write(file, &Stamp { keep_days: self.keep_days, place }.text());
        }
    }

    fn is_old(&self, dir: &LogDir, name: &CStr) -> bool {
        log_walk::look_at(dir, name).is_some_and(|one| !one.kept && one.at_ns < self.oldest_ns)
    }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        let place = (!self.finished).then(|| self.names.place());
        self.write_stamp(place);
    }
}

#[cfg(test)]
#[path = "log_clean_tests.rs"]
mod tests;
