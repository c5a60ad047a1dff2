//! The logs of all sessions: appends what comes, keeps the books (frames.rs), and says in the
//! log itself what it lacks or why it ends.
//!
//! Invariants: `logged + missing` is every byte handed over; `logged + noted` is the file's
//! size; an ack reports each change of the state, and only changes.

use super::bounded::BoundedFile;
use super::frames::{Ack, AckKind, ReadRange, Reopen};
use super::index::Index;
use super::meta::{self, Waiting};
use super::one_log::Log;
use super::range::{self, Layout};
use crate::limits::NS_PER_MS;
use crate::pure::buffer::bound::{Bounds, Kept};
use crate::pure::buffer::source::Source;
use crate::sys::clock;
use crate::sys::io::ENOENT;
use crate::sys::log_clean::HourlyCleaning;
use crate::sys::log_files::{LogDir, ensure_private_dir};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The keeper looks at most so often whether a log that grows is still where its path leads.
const LOG_PLACE_CHECK_MS: u64 = 1_000;

/// All logs of one execd.
#[derive(Debug)]
pub struct Writer {
    /// The log directory, or the errno that every Open is answered with.
    dir: Result<LogDir, i32>,
    /// How large logs become.
    bounds: Bounds,
    logs: BTreeMap<u64, Log>,
    /// Sessions whose logs have got something that their indexes on the disk do not have.
    unindexed: Vec<u64>,
    /// Acks of logs that were found gone while another was dealt with.
    told: Vec<Ack>,
    /// The directory's path, where it was had at first.
    path: Option<PathBuf>,
    /// The deletion of old logs and of too many; `None` where nothing is to be deleted.
    cleaning: Option<HourlyCleaning>,
    /// Facts that are not written yet.
    facts: Waiting,
}

impl Writer {
    /// Takes the log directory (or the errno that opening it gave) and the bounds of the flags.
    pub fn new(dir: Result<LogDir, i32>, bounds: Bounds) -> Writer {
        let path = dir.as_ref().ok().map(|dir| dir.path().to_path_buf());
        let logs = BTreeMap::new();
        let (told, unindexed) = (Vec::new(), Vec::new());
        let (cleaning, facts) = (None, Waiting::default());
        Writer { dir, bounds, logs, unindexed, told, path, cleaning, facts }
    }

    fn dir(&self) -> Result<&LogDir, i32> {
        self.dir.as_ref().map_err(|errno| *errno)
    }

    /// Takes `--log-keep-days`: what is to be kept for good is made so that others keep it too, and
    /// from `clean_due_ns` on this writer deletes logs that are old or too much.
    pub fn keep(&mut self, keep_days: u64, clean_due_ns: u64) {
        if let Ok(dir) = &mut self.dir {
            if keep_days == 0 {
                dir.keep_for_good();
            }
            let total_bytes = self.bounds.total_bytes;
            self.cleaning = Some(HourlyCleaning::new(keep_days, total_bytes, clean_due_ns));
        }
    }

    /// When there is something to do although nothing comes: logs to delete or facts to write.
    pub fn due_ns(&self) -> Option<u64> {
        let cleaning = self.cleaning.as_ref().filter(|_| self.dir.is_ok());
        cleaning.map(HourlyCleaning::due_ns).into_iter().chain(self.facts.due_ns()).min()
    }

    /// Looks for logs to delete, when that is due.
    pub fn clean(&mut self) {
        if let (Ok(dir), Some(cleaning)) = (&self.dir, &mut self.cleaning) {
            cleaning.step(dir);
        }
    }

    /// Nothing more will come, all logs are closed, and nobody waits.
    pub fn end_cleaning(&mut self) {
        if let (Ok(dir), Some(cleaning)) = (&self.dir, &mut self.cleaning) {
            cleaning.end(dir);
        }
    }

    /// Creates a new log. A second Open of a session is another try under another name; what
    /// came in between is counted.
    pub fn open(&mut self, session: u64, name: &str) -> Ack {
        self.look_at_dir();
        let (opened, kept) = (self.dir().and_then(|dir| dir.create(name)), self.kept());
        let log = self.logs.entry(session).or_insert_with(|| Log::new(name, kept));
        name.clone_into(&mut log.name);
        log.created(opened);
        log.ack(AckKind::Opened, session, 0)
    }

    /// Goes on with a log that an earlier keeper wrote: finds out from its size how much of
    /// the stream it lacks, and says so in it.
    pub fn reopen(&mut self, session: u64, known: &Reopen) -> Ack {
        let kept = self.kept();
        let opened =
            self.dir().and_then(|dir| BoundedFile::again(dir, &known.name, kept, known.from));
        let mut log = Log::new(&known.name, kept);
        let (size, from) = opened.as_ref().map_or((0, 0), |file| (file.size(), file.from()));
        // A file that somebody changed meanwhile must not upset the books.
        log.logged = size.saturating_sub(known.noted).min(known.total);
        log.state.noted = size - log.logged;
        log.missing = known.total - log.logged;
        log.untold = log.missing;
        log.next_check = log.logged;
        log.state.truncated = known.truncated;
        log.state.from = from;
        let streams = [known.total.saturating_sub(known.errors_total), known.errors_total];
        if let (Ok(dir), true) = (&self.dir, opened.is_ok()) {
            let kept = kept.map(Kept::bytes);
            log.index = Index::again((dir, &known.name), kept, size, log.state.noted, streams);
        } else {
            log.index = Index::anew(kept.map(Kept::bytes), streams);
        }
        log.state.from_output = match size {
            0 => log.missing,
            _ if from == known.from => known.from_output,
            _ => log.output_at(from, self.dir.as_ref().ok()),
        };
        log.opened(opened);
        log.tell_missing(self.dir.as_ref().ok());
        self.logs.insert(session, log);
        self.unindexed.push(session);
        self.ack(AckKind::Opened, session, 0)
    }

    /// Appends bytes of the stream. Gives an ack when the state has changed.
    pub fn data(&mut self, session: u64, source: Source, bytes: &[u8]) -> Option<Ack> {
        let now_ns = clock::now_ns();
        let looked_ns = self.logs.get(&session)?.looked_ns;
        if now_ns.saturating_sub(looked_ns) >= LOG_PLACE_CHECK_MS * NS_PER_MS {
            self.look_at(session, now_ns);
        }
        let log = self.logs.get_mut(&session)?;
        let noted = log.index.is_noted();
        let max_bytes = self.bounds.max_bytes.unwrap_or(u64::MAX);
        log.data(source, bytes, max_bytes, self.dir.as_ref().ok());
        if !noted {
            self.unindexed.push(session);
        }
        let log = self.logs.get_mut(&session)?;
        let kind = match log.state {
            now if now == log.acked => return None,
            now if now.truncated && !log.acked.truncated => AckKind::Truncated,
            now if now.failing => AckKind::Trouble,
            now if now.from != log.acked.from => AckKind::Trimmed,
            _ => AckKind::Recovered,
        };
        Some(log.ack(kind, session, 0))
    }

    /// How much of a log is kept.
    fn kept(&self) -> Option<Kept> {
        Kept::within(&self.bounds)
    }

    /// Answers Sync: everything before it has been dealt with.
    pub fn sync(&mut self, session: u64, token: u64) -> Ack {
        self.look_at(session, clock::now_ns());
        if let Some(log) = self.logs.get_mut(&session) {
            log.try_space(self.dir.as_ref().ok());
            log.write_index(self.dir.as_ref().ok());
        }
        self.ack(AckKind::Synced, session, token)
    }

    /// Writes what the indexes on the disk do not have.
    pub fn write_indexes(&mut self) {
        for session in std::mem::take(&mut self.unindexed) {
            if let Some(log) = self.logs.get_mut(&session) {
                log.write_index(self.dir.as_ref().ok());
            }
        }
    }

    /// Takes in what is known of a session by now. Of a log that could not be made nothing is
    /// kept, but for one that was there.
    pub fn facts(&mut self, session: u64, line: Vec<u8>) {
        let is_kept = |log: &&Log| log.state.named || log.index.has_lost_its_log();
        let Some(log) = self.logs.get(&session).filter(is_kept) else { return };
        let full = self.facts.note((&log.name, log.beside()), line, clock::now_ns());
        if full {
            self.write_oldest_facts();
        }
    }

    /// Writes the facts of one session that are due; `idle`: nothing else waits.
    pub fn write_facts(&mut self, idle: bool) {
        let due = || self.facts.are_due(clock::now_ns(), idle);
        if self.facts.due_ns().is_some() && due() {
            self.write_oldest_facts();
        }
    }

    /// Writes the facts of all sessions.
    pub fn write_all_facts(&mut self) {
        while self.write_oldest_facts() {}
    }

    /// Facts that cannot be written are left out: the log is there without them.
    fn write_oldest_facts(&mut self) -> bool {
        let dir = self.dir.as_ref().ok();
        self.facts.write(|log, line| {
            let _ = dir.map(|dir| dir.write_meta(log, line));
        })
    }

    /// Reads a part of a session's output, also where the session is gone: what is said of it, and
    /// the bytes that stand behind that. What was handed over before is in it.
    pub fn range(&mut self, asked: &ReadRange) -> (Ack, Vec<u8>) {
        self.look_at_log(&asked.name);
        if !self.logs.values().any(|log| log.name == asked.name) {
            // By what the file of a log that was closed is known is told by its facts.
            let dir = self.dir.as_ref().ok();
            self.facts.write_of(&asked.name, |log, line| {
                let _ = dir.map(|dir| dir.write_meta(log, line));
            });
        }
        let log = self.logs.values().find(|log| log.name == asked.name);
        let read = self.dir().and_then(|dir| match log {
            Some(log) => {
                let layout = Layout {
                    kept_from: log.state.from,
                    size: log.logged.saturating_add(log.state.noted),
                };
                range::read_live(dir, &log.name, &asked.wanted, (&log.index, layout))
            }
            None => match meta::check(dir, &asked.name) {
                Ok(()) | Err(ENOENT) => range::read(dir, &asked.name, &asked.wanted),
                Err(errno) => Err(-errno),
            },
        });
        let errno = read.as_ref().err().copied().unwrap_or(0);
        let bytes = read.map_or_else(|_| Vec::new(), |found| found.encode());
        let ack = Ack {
            token: asked.token,
            missing: bytes.len() as u64,
            errno,
            failing: errno != 0,
            ..Ack::of(AckKind::Range)
        };
        (ack, bytes)
    }

    /// A log that was deleted, or in whose place there is another file, is not read on.
    fn look_at_log(&mut self, name: &str) {
        self.look_at_dir();
        let found = self.logs.iter_mut().find(|(_, log)| log.name == name);
        if let Some((&session, log)) = found {
            log.looked_ns = clock::now_ns();
            if log.notice_gone(self.dir.as_ref().ok()) {
                self.told.push(log.ack(AckKind::Trouble, session, 0));
            }
        }
    }

    /// Closes a log and forgets its session.
    pub fn close(&mut self, session: u64) {
        if let Some(mut log) = self.logs.remove(&session) {
            log.end(self.dir.as_ref().ok());
            self.facts.hold(log);
        }
    }

    /// Closes all logs: nothing more will come.
    pub fn close_all(&mut self) {
        for (_, mut log) in std::mem::take(&mut self.logs) {
            log.end(self.dir.as_ref().ok());
            self.facts.hold(log);
        }
        self.write_all_facts();
    }

    /// What is to be told of other logs than the one that was just dealt with.
    pub fn take_told(&mut self) -> Vec<Ack> {
        std::mem::take(&mut self.told)
    }

    /// A directory that was moved or deleted is made anew, and the logs in it are gone.
    fn look_at_dir(&mut self) {
        let Some(path) = &self.path else { return };
        if self.dir.as_ref().is_ok_and(LogDir::is_in_place) {
            return;
        }
        let anew = ensure_private_dir(path).ok().and_then(|path| LogDir::open(&path).ok());
        self.dir = anew.ok_or(ENOENT);
        let dir = self.dir.as_ref().ok();
        for (&session, log) in self.logs.iter_mut() {
            if log.notice_gone(dir) {
                self.told.push(log.ack(AckKind::Trouble, session, 0));
            }
        }
    }

    fn look_at(&mut self, session: u64, now_ns: u64) {
        self.look_at_dir();
        if let Some(log) = self.logs.get_mut(&session) {
            log.looked_ns = now_ns;
            log.notice_gone(self.dir.as_ref().ok());
        }
    }

    fn ack(&mut self, kind: AckKind, session: u64, token: u64) -> Ack {
        if let Some(log) = self.logs.get_mut(&session) {
            return log.ack(kind, session, token);
        }
        // A session that was never opened: answered all the same, for somebody waits.
        let mut unknown = Log::new("", None);
        unknown.fail(ENOENT);
        unknown.ack(kind, session, token)
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
