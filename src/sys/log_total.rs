//! The bound of all logs of a directory together: what their files take is added up, some names at
//! a time with pauses, one fstatat(2) a name; where it is too much, the logs of sessions that have
//! ended go, oldest end first. The execds that share a directory share each such look, by a stamp
//! in it. Which logs may go, and when anybody looks: docs/logs.md, Bounds.

use super::log_files::LogDir;
use super::log_walk::{
    Deleted, Found, Names, Part, delete, delete_segment, log_name, look_at, part_of, seconds_ago_ns,
};
use super::{clock, log_stamp};
use crate::limits::{
    CLEAN_PAUSE_MS, LOG_TOTAL_PERCENT, NS_PER_MS, TOTAL_DELETED_AT_ONCE, TOTAL_PAUSE_MS,
    TOTAL_SPARED_S, TOTAL_STAMP_NAMES,
};
use crate::pure::buffer::log_total::{Bounds, Ended, Oldest, Stamp, begins_at};
use std::ffi::{CStr, CString};
use std::fs::File;

/// The stamp's name in the log directory: no log has it.
const STAMP: &str = ".execd-total";

/// The bound in bytes that is meant by `total_bytes`: no more than a part of the file system.
pub fn bound_bytes(dir: &LogDir, total_bytes: u64) -> u64 {
    let part = u128::from(LOG_TOTAL_PERCENT) * u128::from(dir.disk_bytes()) / 100;
    match u64::try_from(part) {
        // A file system that has no size, or does not say.
        Ok(0) | Err(_) => total_bytes,
        Ok(part) => part.min(total_bytes),
    }
}

impl LogDir {
    /// How large its file system is; 0 where it does not say.
    fn disk_bytes(&self) -> u64 {
        // SAFETY: statvfs is plain numbers, for which zeros are valid.
        let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
        // SAFETY: fstatvfs writes one statvfs, which lives through the call.
        let done = unsafe { libc::fstatvfs(self.raw_fd(), &raw mut found) } == 0;
        if done { found.f_blocks.saturating_mul(found.f_frsize) } else { 0 }
    }
}

/// What a turn has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is more to do.
    More,
    /// The look is over, and nothing more has to go.
    Done,
    /// The look is over, and so much should go, but nothing more can be deleted.
    Over(Over),
}

/// What is left for the logs that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over {
    /// So many bytes should go, ...
    pub bytes: u64,
    /// ... and each log keeps this much.
    pub least_bytes: u64,
}

/// What a look is at.
#[derive(Debug)]
enum Doing {
    Adding,
    /// Deleting those that ended first, from the end of the list.
    Deleting {
        logs: Vec<Ended>,
        /// There are more than these.
        more: bool,
        /// Some of them could be deleted.
        freed: bool,
    },
}

/// A look at all logs under way.
#[derive(Debug)]
pub struct Look {
    names: Names,
    bounds: Bounds,
    sum: Stamp,
    /// How many names were looked at.
    seen: usize,
    /// Of what ended before this, in nanoseconds of the wall clock, ...
    ended_before_ns: i64,
    /// ... those that ended first; `None`: what there is may all stay, as far as is known.
    oldest: Option<Oldest>,
    doing: Doing,
    /// Locked for as long as this execd looks.
    stamp: Option<File>,
    pause_ms: u64,
    due_ns: u64,
    finished: bool,
}

impl Look {
    /// Begins a look for an execd that starts, where one is due, or goes on with one that was
    /// broken off. `None`: there is nothing to do, or another execd does it.
    pub fn at_start(dir: &LogDir, total_bytes: u64) -> Option<Self> {
        let bounds = Bounds::of(bound_bytes(dir, total_bytes));
        let opened = log_stamp::open(dir, STAMP)?;
        let last = opened.as_ref().and_then(|(_, text)| Stamp::parse(text));
        let sum = begins_at(last, clock::wall_ms().div_euclid(1_000), bounds)?;
        Self::begin(dir, bounds, opened.map(|(file, _)| file), sum, CLEAN_PAUSE_MS)
    }

    /// Begins a look for an execd that has written much. `None`: another execd looks just now.
    pub fn while_writing(dir: &LogDir, total_bytes: u64) -> Option<Self> {
        let bounds = Bounds::of(bound_bytes(dir, total_bytes));
        let stamp = log_stamp::open(dir, STAMP)?.map(|(file, _)| file);
        let began_s = clock::wall_ms().div_euclid(1_000);
        let sum = Stamp { began_s, sum_bytes: 0, place: None };
        let mut look = Self::begin(dir, bounds, stamp, sum, TOTAL_PAUSE_MS)?;
        look.oldest = Some(Oldest::default());
        Some(look)
    }

    fn begin(
        dir: &LogDir,
        bounds: Bounds,
        stamp: Option<File>,
        sum: Stamp,
        pause_ms: u64,
    ) -> Option<Self> {
        let mut names = Names::open(dir).ok()?;
        if let Some(place) = sum.place {
            names.seek(place);
        }
        let ended_before_ns = seconds_ago_ns(TOTAL_SPARED_S);
        Some(Self {
            names,
            bounds,
            sum,
            seen: 0,
            ended_before_ns,
            oldest: None,
            doing: Doing::Adding,
            stamp,
            pause_ms,
            due_ns: 0,
            finished: false,
        })
    }

    /// When the next turn is due, on the monotonic clock.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Whether too much has been found already, or it is looked for what can go.
    pub fn is_urgent(&self) -> bool {
        self.is_over() || self.oldest.is_some()
    }

    fn is_over(&self) -> bool {
        self.sum.sum_bytes > self.bounds.high_bytes
    }

    /// Makes the next turn due at once.
    pub fn hurry(&mut self) {
        (self.due_ns, self.pause_ms) = (0, 0);
    }

    /// Looks at some names, or deletes some logs, when that is due.
    pub fn step(&mut self, dir: &LogDir) -> Step {
        let now_ns = clock::now_ns();
        if now_ns < self.due_ns {
            return Step::More;
        }
        let step = match self.doing {
            Doing::Adding => self.add_up(dir, now_ns),
            Doing::Deleting { .. } => self.delete_some(dir),
        };
        self.finished |= step != Step::More;
        self.due_ns = clock::now_ns() + self.pause_ms * NS_PER_MS;
        step
    }

    fn add_up(&mut self, dir: &LogDir, now_ns: u64) -> Step {
        self.names.begin_turn(now_ns);
        while self.names.may_go_on() {
            let Some(name) = self.names.next() else { return self.added_up(dir) };
            self.seen += 1;
            let name = name.to_owned();
            if let Some((part, stem)) = part_of(name.to_bytes())
                && let Some(found) = look_at(dir, &name)
            {
                self.sum.sum_bytes = self.sum.sum_bytes.saturating_add(found.bytes);
                self.remember(dir, &name, (part, stem), found);
            }
        }
        if self.seen >= TOTAL_STAMP_NAMES && !self.has_stamp(dir) {
            return Step::Done;
        }
        Step::More
    }

    /// Remembers what may be deleted.
    fn remember(&mut self, dir: &LogDir, name: &CStr, of: (Part, &[u8]), found: Found) {
        let Some(oldest) = &mut self.oldest else { return };
        let ended = match of.0 {
            // They go with their log.
            Part::Index | Part::Meta => return,
            Part::Log => found,
            // A log has its time at its first segment. Of one that is gone, its own counts.
            Part::Segment => {
                Found { bytes: found.bytes, ..look_at(dir, &log_name(of.1)).unwrap_or(found) }
            }
        };
        if !ended.kept && ended.at_ns < self.ended_before_ns {
            oldest.add(Ended { at_ns: ended.at_ns, name: name.to_owned(), bytes: ended.bytes });
        }
    }

    fn added_up(&mut self, dir: &LogDir) -> Step {
        self.sum.place = None;
        let many = self.seen >= TOTAL_STAMP_NAMES;
        if ((many || self.is_over()) && !self.has_stamp(dir)) || !self.is_over() {
            return Step::Done;
        }
        match &mut self.oldest {
            Some(oldest) => {
                let (logs, more) = oldest.take();
                let none = logs.is_empty();
                self.doing = Doing::Deleting { logs, more, freed: false };
                if none { self.delete_some(dir) } else { Step::More }
            }
            None => self.again(),
        }
    }

    /// Begins at the front, to find out what may be deleted.
    fn again(&mut self) -> Step {
        self.names.seek(0);
        self.sum = Stamp { sum_bytes: 0, place: None, ..self.sum };
        self.oldest = Some(Oldest::default());
        self.doing = Doing::Adding;
        self.pause_ms = self.pause_ms.min(TOTAL_PAUSE_MS);
        Step::More
    }

    fn delete_some(&mut self, dir: &LogDir) -> Step {
        let goal_bytes = self.bounds.goal_bytes;
        let Doing::Deleting { logs, more, freed } = &mut self.doing else { return Step::Done };
        for _ in 0..TOTAL_DELETED_AT_ONCE {
            if self.sum.sum_bytes <= goal_bytes {
                return Step::Done;
            }
            let Some(Ended { name, bytes, .. }) = logs.pop() else {
                let goes_on = *more && *freed;
                return match self.is_over() {
                    false => Step::Done,
                    true if goes_on => self.again(),
                    true => Step::Over(Over {
                        bytes: self.sum.sum_bytes - goal_bytes,
                        least_bytes: self.bounds.least_bytes,
                    }),
                };
            };
            let became = delete_part(dir, &name, self.ended_before_ns);
            let less = match became {
                Deleted::Freed(freed) => freed,
                // Another execd has made room.
                Deleted::Gone => bytes,
                Deleted::Used | Deleted::Left => continue,
            };
            *freed = true;
            self.sum.sum_bytes = self.sum.sum_bytes.saturating_sub(less);
        }
        Step::More
    }

    /// Makes the stamp, where there is none. False where another execd was faster.
    fn has_stamp(&mut self, dir: &LogDir) -> bool {
        if self.stamp.is_none() {
            self.stamp = log_stamp::make(dir, STAMP);
            self.finished = self.stamp.is_none();
        }
        self.stamp.is_some()
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        let Some(file) = &self.stamp else { return };
        if !self.finished && matches!(self.doing, Doing::Adding) {
            self.sum.place = Some(self.names.place());
        }
        log_stamp::write(file, &self.sum.text());
    }
}

fn delete_part(dir: &LogDir, name: &CString, before_ns: i64) -> Deleted {
    match part_of(name.to_bytes()) {
        Some((Part::Segment, stem)) => delete_segment(dir, name, stem, before_ns),
        _ => delete(dir, name, before_ns),
    }
}

/// Notes what an execd has written that ends, for those that start soon: they would trust the last
/// look otherwise.
pub fn note_written(dir: &LogDir, bytes: u64) {
    let Some(Some((file, text))) = log_stamp::open(dir, STAMP) else { return };
    if let Some(last) = Stamp::parse(&text) {
        let sum_bytes = last.sum_bytes.saturating_add(bytes);
        log_stamp::write(&file, &Stamp { sum_bytes, ..last }.text());
    }
}

#[cfg(test)]
#[path = "log_total_tests.rs"]
mod tests;
