//! When the log writer looks through its directory: for old logs at the start of its execd, and for
//! more than all logs together may take (docs/logs.md, Bounds) at the start and whenever it has
//! written much. Nothing of it is done before the first answer of an execd that starts, and never
//! more at a time than the pipe from execd can wait for.

use crate::limits::{NS_PER_MS, TOTAL_LINGER_MS, TOTAL_NOTED_STEPS, TOTAL_RETRY_MS};
use crate::pure::buffer::log_total::step_bytes;
use crate::sys::clock;
use crate::sys::log_clean::Cleaner;
use crate::sys::log_files::LogDir;
use crate::sys::log_total::{Look, Over, Step, bound_bytes, note_written};

/// The looks through a log directory.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// What all logs may take; `None`: any number of bytes.
    total_bytes: Option<u64>,
    /// After how many written bytes a look is due; `None`: nothing has been written yet.
    every: Option<u64>,
    /// What is to be done at the start, and when: age in days of logs that are old.
    start: Option<(u64, u64)>,
    /// The look for old logs, while there is one.
    cleaner: Option<Cleaner>,
    /// The look at all logs is due that comes with the start.
    adds_up: bool,
    /// The look at all logs, while there is one.
    look: Option<Look>,
    /// Bytes written since the last such look began.
    written: u64,
    /// Before that another execd is not asked again whether its look is over.
    retry_ns: u64,
}

impl Looks {
    pub(super) fn new(total_bytes: Option<u64>) -> Self {
        Self { total_bytes, ..Self::default() }
    }

    /// An execd starts: looks for logs older than these days, and at all logs, from then on.
    pub(super) fn at_start(&mut self, keep_days: u64, due_ns: u64) {
        self.start = Some((keep_days, due_ns));
        self.adds_up = self.total_bytes.is_some();
    }

    /// So many bytes were written.
    pub(super) fn wrote(&mut self, bytes: usize, dir: Option<&LogDir>) {
        if let (None, Some(dir), Some(total)) = (self.every, dir, self.total_bytes) {
            // A small file system may fill up long before all logs have reached the flag's bound.
            self.every = Some(step_bytes(bound_bytes(dir, total)).max(1));
        }
        self.written = self.written.saturating_add(bytes as u64);
    }

    /// What all logs may take, once so much was written that somebody has to look.
    fn wanted(&self) -> Option<u64> {
        self.total_bytes.filter(|_| self.every.is_some_and(|every| self.written >= every))
    }

    /// When something is to be done, on the monotonic clock; `None`: nothing is.
    pub(super) fn due_ns(&self) -> Option<u64> {
        match (&self.start, &self.cleaner, &self.look) {
            (Some((_, due_ns)), _, _) => Some(*due_ns),
            (None, Some(cleaner), _) => Some(cleaner.due_ns()),
            (None, None, Some(look)) => Some(look.due_ns()),
            (None, None, None) if self.adds_up => Some(0),
            (None, None, None) => self.wanted().map(|_| self.retry_ns),
        }
    }

    /// Does what is due. Gives what the logs of this execd's own sessions have to lose.
    pub(super) fn step(&mut self, dir: &LogDir) -> Option<Over> {
        if self.due_ns().is_none_or(|due_ns| clock::now_ns() < due_ns) {
            return None;
        }
        // One after the other, so that no turn has both.
        if self.clean(dir) { None } else { self.add_up(dir) }
    }

    /// Looks for old logs; whether there is more to do.
    fn clean(&mut self, dir: &LogDir) -> bool {
        if let Some((keep_days, _)) = self.start.take() {
            self.cleaner = Cleaner::begin(dir, keep_days);
        }
        self.cleaner = self.cleaner.take().and_then(|mut one| one.step(dir).then_some(one));
        self.cleaner.is_some()
    }

    fn add_up(&mut self, dir: &LogDir) -> Option<Over> {
        if self.look.is_none() {
            self.begin(dir);
        }
        let step = self.look.as_mut()?.step(dir);
        if step != Step::More {
            self.look = None;
        }
        if let Step::Over(over) = step { Some(over) } else { None }
    }

    fn begin(&mut self, dir: &LogDir) {
        let at_start = std::mem::take(&mut self.adds_up);
        if let Some(total_bytes) = self.wanted() {
            self.look = Look::while_writing(dir, total_bytes);
            match &self.look {
                Some(_) => self.written = 0,
                None => self.retry_ns = clock::now_ns() + TOTAL_RETRY_MS * NS_PER_MS,
            }
        } else if let (true, Some(total_bytes)) = (at_start, self.total_bytes) {
            self.look = Look::at_start(dir, total_bytes);
        }
    }

    /// The execd has ended, and nobody waits for this process any more: does what cannot wait for
    /// another execd, and a turn of what its start had to do, or execds that all live for a moment
    /// would never come to it.
    pub(super) fn end(&mut self, dir: &LogDir) {
        if self.start.is_some() {
            self.clean(dir);
        }
        if self.adds_up || self.wanted().is_some() {
            self.add_up(dir);
        }
        // Whoever has found too much leaves no more than there may be.
        let until_ns = clock::now_ns() + TOTAL_LINGER_MS * NS_PER_MS;
        while let Some(look) = &mut self.look
            && look.is_urgent()
            && clock::now_ns() < until_ns
        {
            look.hurry();
            self.add_up(dir);
        }
        (self.look, self.cleaner) = (None, None);
        let noted = |every: u64| self.written >= (every / TOTAL_NOTED_STEPS).max(1);
        if self.every.is_some_and(noted) {
            note_written(dir, self.written);
        }
    }
}
