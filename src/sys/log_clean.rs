//! Deleting logs: those of sessions that ended too long ago, and where all files together take too
//! much, those that ended first (docs/logs.md, Bounds and Cleaning). A log that an execd uses is
//! locked and stays, and one with the sticky bit is kept for good ([`LogDir::keep_for_good`]).
//! A log writer cleans once an hour at most, a few names at a time; a person cleans at once.

use super::clock;
use super::io::ENOENT;
use super::log_files::LogDir;
use super::log_walk::{
    Deleted, Found, Names, Part, delete, exists, log_name, look_at, part_of, seconds_ago_ns,
};
use crate::limits::{CLEAN_EVERY_S, CLEAN_NAMES, CLEAN_PAUSE_MS, NS_PER_MS, NS_PER_S};
use std::collections::BinaryHeap;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, UNIX_EPOCH};

/// How long a log writer whose execd has ended goes on with a look.
const CLEAN_LINGER_MS: u64 = 2_000;

/// A step of a look ends after this time, for the disk may be slow.
const CLEAN_TURN_MS: u64 = 5;

/// Names looked at between two looks at the clock.
const CLEAN_NAMES_UNTIMED: usize = 16;

/// Logs that one look deletes at most for what all take: the ends and names of so many are
/// remembered, in 10 MiB.
const CLEAN_LOGS_MAX: usize = 100_000;

/// A log is not deleted for what all take within this time after its end.
const CLEAN_SPARED_S: i64 = 60;

/// Where all files take too much, this part of what they may take is made free.
const CLEAN_FREED_PARTS: u64 = 8;

/// All logs of a directory take at most this part of its file system.
const LOG_TOTAL_PERCENT: u64 = 10;

/// The file whose last change says when the directory was last cleaned: no log has its name.
const STAMP: &str = ".execd-cleaned";
const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// Which logs are deleted.
#[derive(Clone, Copy, Debug)]
pub struct CleanLimits {
    /// Logs of sessions that ended before this are too old, in nanoseconds of the wall clock.
    before_ns: i64,
    /// What all files may take together; `None`: any number of bytes.
    total_bytes: Option<u64>,
    /// Logs for good are deleted like all others.
    for_good_too: bool,
}

impl CleanLimits {
    /// All logs.
    pub const ALL: Self = Self { before_ns: i64::MAX, total_bytes: None, for_good_too: true };

    /// Logs of sessions that ended longer ago than this.
    pub fn older_than_s(seconds: u64) -> Self {
        let before_ns = seconds_ago_ns(i64::try_from(seconds).unwrap_or(i64::MAX));
        Self { before_ns, total_bytes: None, for_good_too: false }
    }

    /// What the flags of an execd say; 0 days: age deletes no log.
    fn of_flags(keep_days: u64, total_bytes: Option<u64>) -> Self {
        let by_age = Self::older_than_s(keep_days.saturating_mul(SECONDS_PER_DAY));
        let before_ns = if keep_days == 0 { i64::MIN } else { by_age.before_ns };
        Self { before_ns, total_bytes, ..by_age }
    }
}

/// What became of the logs of a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Logs that were deleted.
    pub logs: u64,
    /// What they and what belonged to them took on the disk.
    pub bytes: u64,
    /// Logs that are left because an execd uses them.
    pub used: u64,
    /// Logs that are left because they are for good.
    pub kept: u64,
    /// Logs that could not be deleted.
    pub failed: u64,
}

/// Cleans a directory by these limits. Errors: opendir(3).
pub fn clean_logs(dir: &LogDir, limits: CleanLimits) -> Result<Cleaned, i32> {
    let mut cleaning = Cleaning::begin(dir, limits)?;
    while cleaning.step(dir, u64::MAX) {}
    Ok(cleaning.cleaned)
}

/// The bound in bytes that `total_bytes` means: no more than a part of the file system.
fn bound_bytes(dir: &LogDir, total_bytes: u64) -> u64 {
    let part = u128::from(LOG_TOTAL_PERCENT) * u128::from(dir.disk_bytes()) / 100;
    match u64::try_from(part) {
        // A file system that has no size, or does not say.
        Ok(0) | Err(_) => total_bytes,
        Ok(part) => part.min(total_bytes),
    }
}

/// A directory that is being cleaned.
#[derive(Debug)]
struct Cleaning {
    limits: CleanLimits,
    /// The names that were not looked at yet; `None`: all were.
    names: Option<Names>,
    /// What the files take that were looked at and are left.
    sum_bytes: u64,
    /// The end and the name of logs that may go for the sum: those that ended first.
    ended: BinaryHeap<(i64, CString)>,
    /// Those that do go, the one that ended first at the end.
    going: Vec<(i64, CString)>,
    cleaned: Cleaned,
}

impl Cleaning {
    fn begin(dir: &LogDir, limits: CleanLimits) -> Result<Self, i32> {
        let total_bytes = limits.total_bytes.map(|bytes| bound_bytes(dir, bytes));
        Ok(Self {
            limits: CleanLimits { total_bytes, ..limits },
            names: Some(Names::open(dir)?),
            sum_bytes: 0,
            ended: BinaryHeap::new(),
            going: Vec::new(),
            cleaned: Cleaned::default(),
        })
    }

    /// Looks at some names or deletes some logs, until it is late. False when nothing is left to
    /// do.
    fn step(&mut self, dir: &LogDir, until_ns: u64) -> bool {
        for count in 1..=CLEAN_NAMES {
            let Some(names) = &mut self.names else {
                if !self.delete_next(dir) {
                    return false;
                }
                if clock::now_ns() >= until_ns {
                    break;
                }
                continue;
            };
            match names.next().map(ToOwned::to_owned) {
                Some(name) => self.look(dir, &name),
                None => self.add_up(),
            }
            if count % CLEAN_NAMES_UNTIMED == 0 && clock::now_ns() >= until_ns {
                break;
            }
        }
        true
    }

    /// Takes in a file, and deletes it where it is too old.
    fn look(&mut self, dir: &LogDir, name: &CStr) {
        let Some((part, stem)) = part_of(name.to_bytes()) else { return };
        let Some(found) = look_at(dir, name) else { return };
        self.sum_bytes = self.sum_bytes.saturating_add(found.bytes);
        let is_old = found.at_ns < self.limits.before_ns;
        match part {
            Part::Log if found.kept && !self.limits.for_good_too => {
                self.cleaned.kept += u64::from(is_old)
            }
            Part::Log if is_old => self.delete(dir, name),
            Part::Log => self.remember(name, found),
            // Both go with their log, and at their own age where that is gone.
            Part::Index | Part::Meta if is_old && !exists(dir, &log_name(stem)) => {
                self.delete(dir, name);
            }
            Part::Index | Part::Meta => {}
        }
    }

    fn remember(&mut self, name: &CStr, found: Found) {
        if self.limits.total_bytes.is_some() && found.at_ns < seconds_ago_ns(CLEAN_SPARED_S) {
            self.ended.push((found.at_ns, name.to_owned()));
            if self.ended.len() > CLEAN_LOGS_MAX {
                // The one that ended last.
                self.ended.pop();
            }
        }
    }

    /// All names were looked at: decides what goes for the sum.
    fn add_up(&mut self) {
        self.names = None;
        let ended = std::mem::take(&mut self.ended);
        let Some(total_bytes) = self.limits.total_bytes.filter(|total| self.sum_bytes > *total)
        else {
            return;
        };
        self.limits.total_bytes = Some(total_bytes - total_bytes / CLEAN_FREED_PARTS);
        self.going = ended.into_sorted_vec();
        self.going.reverse();
    }

    /// Deletes the log that ended first of those that go; false when enough has gone.
    fn delete_next(&mut self, dir: &LogDir) -> bool {
        let enough = self.limits.total_bytes.is_none_or(|goal_bytes| self.sum_bytes <= goal_bytes);
        let Some((at_ns, name)) = self.going.pop().filter(|_| !enough) else { return false };
        self.limits.before_ns = at_ns.saturating_add(1);
        self.delete(dir, &name);
        true
    }

    fn delete(&mut self, dir: &LogDir, name: &CStr) {
        let is_log = u64::from(matches!(part_of(name.to_bytes()), Some((Part::Log, _))));
        match delete(dir, name, self.limits.before_ns) {
            Deleted::Freed(bytes) => {
                self.cleaned.logs += is_log;
                self.cleaned.bytes += bytes;
                self.sum_bytes = self.sum_bytes.saturating_sub(bytes);
            }
            Deleted::Used => self.cleaned.used += is_log,
            Deleted::Left => self.cleaned.failed += is_log,
            Deleted::Gone => {}
        }
    }
}

/// The cleaning that a log writer does: once after its start, and then once an hour, where no other
/// execd has done it meanwhile.
#[derive(Debug)]
pub struct HourlyCleaning {
    keep_days: u64,
    total_bytes: Option<u64>,
    /// When there is something to do, on the monotonic clock.
    due_ns: u64,
    /// Nothing was looked at yet.
    is_new: bool,
    /// What is under way, and the stamp that is locked meanwhile.
    under_way: Option<(Cleaning, File)>,
}

impl HourlyCleaning {
    /// What the flags of an execd say, from `due_ns` on; 0 days: age deletes no log.
    pub fn new(keep_days: u64, total_bytes: Option<u64>, due_ns: u64) -> Self {
        Self { keep_days, total_bytes, due_ns, is_new: true, under_way: None }
    }

    /// When there is something to do, on the monotonic clock.
    pub const fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Does some of what is due.
    pub fn step(&mut self, dir: &LogDir) {
        let now_ns = clock::now_ns();
        if now_ns < self.due_ns {
            return;
        }
        self.is_new = false;
        if self.under_way.is_none() {
            let limits = CleanLimits::of_flags(self.keep_days, self.total_bytes);
            self.under_way =
                lock_stamp(dir).and_then(|stamp| Some((Cleaning::begin(dir, limits).ok()?, stamp)));
        }
        let until_ns = now_ns + CLEAN_TURN_MS * NS_PER_MS;
        let goes_on =
            self.under_way.as_mut().is_some_and(|(cleaning, _)| cleaning.step(dir, until_ns));
        if !goes_on {
            self.under_way = None;
        }
        let pause_ns = if goes_on {
            CLEAN_PAUSE_MS * NS_PER_MS
        } else {
            CLEAN_EVERY_S.unsigned_abs() * NS_PER_S
        };
        self.due_ns = clock::now_ns() + pause_ns;
    }

    /// The execd has ended and nobody waits any more: does what its start had to do, or ends what
    /// is under way, but for a directory that would take too long.
    pub fn end(&mut self, dir: &LogDir) {
        let until_ns = clock::now_ns() + CLEAN_LINGER_MS * NS_PER_MS;
        while (self.is_new || self.under_way.is_some()) && clock::now_ns() < until_ns {
            self.due_ns = 0;
            self.step(dir);
        }
    }
}

/// Takes the stamp of a directory that nobody has cleaned for an hour; `None`: somebody has, or
/// does it just now.
fn lock_stamp(dir: &LogDir) -> Option<File> {
    let stamp = match dir.open_ours(STAMP, libc::O_RDWR) {
        Ok(stamp) => {
            let age_s = clock::wall_ms().div_euclid(1_000) - stamp.metadata().ok()?.mtime();
            // A stamp of the future is a clock that was set.
            if (0..CLEAN_EVERY_S).contains(&age_s) {
                return None;
            }
            stamp
        }
        Err(ENOENT) => dir.open_at(STAMP, libc::O_CREAT | libc::O_EXCL | libc::O_RDWR).ok()?,
        Err(_) => return None,
    };
    stamp.try_lock().ok()?;
    let now = Duration::from_millis(u64::try_from(clock::wall_ms()).ok()?);
    stamp.set_modified(UNIX_EPOCH + now).ok()?;
    Some(stamp)
}

#[cfg(test)]
#[path = "log_clean_tests.rs"]
mod tests;
