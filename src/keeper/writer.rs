//! The logs of all sessions: appends what comes, keeps the books (frames.rs), and says in the
//! log itself what it lacks or why it ends.
//!
//! Invariants: `logged + missing` is every byte handed over; `logged + noted` is the file's
//! size; an ack reports each change of the state, and only changes.

use super::frames::{Ack, AckKind, ReadPage, Reopen};
use crate::limits::{
    FREE_SPACE_CHECK_BYTES, FREE_SPACE_MIN_BYTES, FREE_SPACE_MIN_PERCENT, LOG_PAGE_LOOKBACK_BYTES,
    LOG_PAGE_MAX_BYTES, LOG_PLACE_CHECK_MS, NS_PER_MS,
};
use crate::sys::clock;
use crate::sys::log_clean::Cleaner;
use crate::sys::log_files::{ENOENT, LogDir, LogFile, ensure_private_dir, errno_of};
use std::collections::HashMap;
use std::path::PathBuf;

/// All logs of one execd.
#[derive(Debug)]
pub struct Writer {
    /// The log directory, or the errno that every Open is answered with.
    dir: Result<LogDir, i32>,
    /// Stream bytes after which a log ends.
    max_bytes: u64,
    logs: HashMap<u64, Log>,
    /// Acks of logs that were found gone while another was dealt with.
    told: Vec<Ack>,
    /// The directory's path, where it was had at first.
    path: Option<PathBuf>,
    /// The look for old logs, while there is one.
    cleaner: Option<Cleaner>,
}

/// Whether a log's last write or open worked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    errno: i32,
    failing: bool,
    truncated: bool,
    /// Truncated for want of space: until there is some.
    space: bool,
    /// There is a file.
    named: bool,
    noted: u64,
}

#[derive(Debug)]
struct Log {
    /// The file's name.
    name: String,
    /// None: it could not be opened, or has been deleted.
    file: Option<LogFile>,
    logged: u64,
    missing: u64,
    /// Those of the missing bytes that no line in the log tells of yet.
    untold: u64,
    state: State,
    /// The state that execd knows.
    acked: State,
    /// From this many logged bytes on, the free space is to be looked at.
    next_check: u64,
    /// When it was last looked at whether the file is where its path leads.
    looked_ns: u64,
    /// The line that says why the log stands still could not be written yet.
    owed: bool,
}

/// Why a log ends before its stream.
enum Limit {
    Bytes(u64),
    Space,
}

impl Writer {
    /// Takes the log directory (or the errno that opening it gave) and `--log-max-bytes`.
    pub fn new(dir: Result<LogDir, i32>, max_bytes: Option<u64>) -> Writer {
        let path = dir.as_ref().ok().map(|dir| dir.path().to_path_buf());
        let (max_bytes, logs) = (max_bytes.unwrap_or(u64::MAX), HashMap::new());
        Writer { dir, max_bytes, logs, told: Vec::new(), path, cleaner: None }
    }

    /// Takes `--log-keep-days`: what is to be kept for good is made so that others keep it too.
    pub fn keep(&mut self, keep_days: u64) {
        if let Ok(dir) = &mut self.dir
            && keep_days == 0
        {
            dir.keep_for_good();
        }
    }

    /// Begins to look for old logs, if it is time, and looks at the first names.
    pub fn begin_cleaning(&mut self, keep_days: u64) {
        self.cleaner = self.dir.as_ref().ok().and_then(|dir| Cleaner::begin(dir, keep_days));
        self.clean();
    }

    /// Milliseconds until more names are to be looked at; `None` when there is nothing to do.
    pub fn clean_in_ms(&self) -> Option<u64> {
        self.cleaner.as_ref().map(Cleaner::due_in_ms)
    }

    /// Looks at some more names for old logs, when they are due.
    pub fn clean(&mut self) {
        if let (Some(cleaner), Ok(dir)) = (&mut self.cleaner, &self.dir)
            && !cleaner.step(dir)
        {
            self.cleaner = None;
        }
    }

    /// Creates a new log. A second Open of a session is another try under another name; what
    /// came in between is counted.
    pub fn open(&mut self, session: u64, name: &str) -> Ack {
        self.look_at_dir();
        let opened = self
            .dir
            .as_ref()
            .map_err(|errno| *errno)
            .and_then(|dir| dir.create(name).map_err(|error| errno_of(&error)));
        let log = self.logs.entry(session).or_insert_with(|| Log::new(name));
        name.clone_into(&mut log.name);
        log.opened(opened);
        log.ack(AckKind::Opened, session, 0)
    }

    /// Goes on with a log that an earlier keeper wrote: finds out from its size how much of
    /// the stream it lacks, and says so in it.
    pub fn reopen(&mut self, session: u64, known: &Reopen) -> Ack {
        let opened = self.dir.as_ref().map_err(|errno| *errno).and_then(|dir| {
            let opened = dir.reopen(&known.name).and_then(|file| Ok((file.size()?, file)));
            opened.map_err(|error| errno_of(&error))
        });
        let mut log = Log::new(&known.name);
        let size = opened.as_ref().map_or(0, |(size, _)| *size);
        // A file that somebody changed meanwhile must not upset the books.
        log.logged = size.saturating_sub(known.noted).min(known.total);
        log.state.noted = size - log.logged;
        log.missing = known.total - log.logged;
        log.untold = log.missing;
        log.next_check = log.logged;
        log.state.truncated = known.truncated;
        log.opened(opened.map(|(_, file)| file));
        log.tell_missing();
        self.logs.insert(session, log);
        self.ack(AckKind::Opened, session, 0)
    }

    /// Appends bytes of the stream. Gives an ack when the state has changed.
    pub fn data(&mut self, session: u64, bytes: &[u8]) -> Option<Ack> {
        let now_ns = clock::now_ns();
        let looked_ns = self.logs.get(&session)?.looked_ns;
        if now_ns.saturating_sub(looked_ns) >= LOG_PLACE_CHECK_MS * NS_PER_MS {
            self.look_at(session, now_ns);
        }
        let log = self.logs.get_mut(&session)?;
        log.data(bytes, self.max_bytes, self.dir.as_ref().ok());
        let kind = match log.state {
            now if now == log.acked => return None,
            now if now.truncated && !log.acked.truncated => AckKind::Truncated,
            now if now.failing => AckKind::Trouble,
            _ => AckKind::Recovered,
        };
        Some(log.ack(kind, session, 0))
    }

    /// Answers Sync: everything before it has been dealt with.
    pub fn sync(&mut self, session: u64, token: u64) -> Ack {
        self.look_at(session, clock::now_ns());
        if let Some(log) = self.logs.get_mut(&session) {
            log.try_space();
        }
        self.ack(AckKind::Synced, session, token)
    }

    /// Reads a page of a log, also of one whose session is gone: what is said of it, and its
    /// bytes. What was handed over before is in it.
    pub fn page(&self, wanted: &ReadPage) -> (Ack, Vec<u8>) {
        let length = wanted.length.min(LOG_PAGE_MAX_BYTES + LOG_PAGE_LOOKBACK_BYTES);
        let read = self.dir.as_ref().map_err(|errno| *errno).and_then(|dir| {
            let page = dir.read_page(&wanted.name, wanted.offset, length);
            page.map_err(|error| errno_of(&error))
        });
        let errno = read.as_ref().err().copied().unwrap_or(0);
        let page = read.unwrap_or_default();
        let ack = Ack {
            kind: AckKind::Page,
            session: 0,
            token: wanted.token,
            logged: page.offset,
            missing: page.bytes.len() as u64,
            noted: page.size,
            errno,
            truncated: false,
            failing: errno != 0,
            space: false,
            named: false,
        };
        (ack, page.bytes)
    }

    /// Closes a log and forgets its session.
    pub fn close(&mut self, session: u64) {
        if let Some(mut log) = self.logs.remove(&session) {
            log.end();
        }
    }

    /// Closes all logs: nothing more will come.
    pub fn close_all(&mut self) {
        for (_, mut log) in self.logs.drain() {
            log.end();
        }
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
        for (&session, log) in &mut self.logs {
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
        let mut unknown = Log::new("");
        unknown.fail(ENOENT);
        unknown.ack(kind, session, token)
    }
}

impl Log {
    fn new(name: &str) -> Log {
        let (errno, noted) = (0, 0);
        let (failing, truncated, space, named) = (false, false, false, false);
        let state = State { errno, failing, truncated, space, named, noted };
        Log {
            name: name.to_owned(),
            file: None,
            logged: 0,
            missing: 0,
            untold: 0,
            state,
            acked: state,
            next_check: 0,
            looked_ns: clock::now_ns(),
            owed: false,
        }
    }

    fn opened(&mut self, file: Result<LogFile, i32>) {
        match file {
            Ok(file) => {
                self.state.failing = false;
                self.state.named = true;
                self.file = Some(file);
            }
            Err(errno) => self.fail(errno),
        }
    }

    fn fail(&mut self, errno: i32) {
        self.state.errno = errno;
        self.state.failing = true;
    }

    fn ack(&mut self, kind: AckKind, session: u64, token: u64) -> Ack {
        self.acked = self.state;
        let State { errno, failing, truncated, space, named, noted } = self.state;
        let (logged, missing) = (self.logged, self.missing);
        Ack {
            kind,
            session,
            token,
            logged,
            missing,
            noted,
            errno,
            truncated,
            failing,
            space,
            named,
        }
    }

    fn data(&mut self, bytes: &[u8], max_bytes: u64, dir: Option<&LogDir>) {
        if let (None, false, Some(dir)) = (&self.file, self.state.truncated, dir) {
            // One that is gone begins anew, with a line of what it lacks.
            self.opened(dir.create(&self.name).map_err(|error| errno_of(&error)));
        }
        self.try_space();
        if !self.state.truncated && self.logged >= self.next_check {
            // At the first byte, not at the opening: a silent command's log is never cut.
            self.next_check = self.logged.saturating_add(FREE_SPACE_CHECK_BYTES);
            if self.file.as_ref().is_some_and(LogFile::is_space_low) {
                self.truncate(Limit::Space);
            }
        }
        // Bytes behind a gap may come only after the line that tells of the gap.
        self.tell_missing();
        let Some(file) = self.file.as_ref().filter(|_| self.untold == 0 && !self.state.truncated)
        else {
            return self.lose(bytes.len());
        };
        let room = usize::try_from(max_bytes.saturating_sub(self.logged)).unwrap_or(usize::MAX);
        let (within, beyond) = bytes.split_at(room.min(bytes.len()));
        let (done, outcome) = file.append(within);
        self.logged = self.logged.saturating_add(done as u64);
        match outcome {
            Err(errno) => {
                self.fail(errno);
                self.lose(bytes.len() - done);
            }
            Ok(()) if beyond.is_empty() => {}
            Ok(()) => {
                self.truncate(Limit::Bytes(max_bytes));
                self.lose(beyond.len());
            }
        }
    }

    fn lose(&mut self, len: usize) {
        self.missing = self.missing.saturating_add(len as u64);
        // The last line of a log that has ended at a limit already says that more was to come.
        if !self.state.truncated || self.state.space {
            self.untold = self.untold.saturating_add(len as u64);
        }
    }

    /// Appends a line about bytes that were lost; when that works, writing works again.
    fn tell_missing(&mut self) {
        if self.untold == 0 || self.state.truncated || self.file.is_none() {
            return;
        }
        match self.note(&format!("\n[{} bytes were not logged]\n", self.untold)) {
            Ok(()) => {
                self.untold = 0;
                self.state.failing = false;
            }
            Err(errno) => self.fail(errno),
        }
    }

    /// Ends the log at a limit. Its last line says so if that can still be written.
    fn truncate(&mut self, limit: Limit) {
        self.tell_missing();
        let line = match limit {
            Limit::Bytes(max) => format!("\n[the log ends here: --log-max-bytes is {max}]\n"),
            Limit::Space => {
                let gib = FREE_SPACE_MIN_BYTES >> 30;
                let percent = FREE_SPACE_MIN_PERCENT;
                format!(
                    "\n[the log ends here: less than {gib} GiB and {percent} % of the disk are free]\n"
                )
            }
        };
        // Without room for the line, the acks alone say it, until there is room.
        let written = self.note(&line);
        self.state.truncated = true;
        self.state.space = matches!(limit, Limit::Space);
        self.owed = self.state.space && written.is_err();
        if let Err(errno) = written {
            self.fail(errno);
        }
    }

    /// A log that stands still for want of space goes on when there is some.
    fn try_space(&mut self) {
        if !self.state.space {
            return;
        }
        if !self.file.as_ref().is_some_and(LogFile::is_space_low) {
            self.owed = false;
            (self.state.truncated, self.state.space) = (false, false);
            self.tell_missing();
        } else if self.owed {
            self.truncate(Limit::Space);
        }
    }

    /// Nothing more will come: what it lacks is said in it, where there is room by now.
    fn end(&mut self) {
        self.try_space();
        self.tell_missing();
    }

    fn note(&mut self, line: &str) -> Result<(), i32> {
        let Some(file) = &self.file else { return Ok(()) };
        let (done, outcome) = file.append(line.as_bytes());
        self.state.noted = self.state.noted.saturating_add(done as u64);
        outcome
    }

    /// A log that was deleted or moved takes more bytes and shows them to nobody: that is log
    /// trouble. The file is let go, which also gives back the space that its deletion was meant
    /// to free. Whether it is gone.
    fn notice_gone(&mut self, dir: Option<&LogDir>) -> bool {
        let Some(file) = &self.file else { return false };
        if dir.is_some_and(|dir| dir.holds(&self.name, file)) {
            return false;
        }
        self.file = None;
        self.missing = self.missing.saturating_add(self.logged);
        self.logged = 0;
        self.next_check = 0;
        self.untold = self.missing;
        self.state.noted = 0;
        self.state.named = false;
        self.fail(ENOENT);
        true
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
