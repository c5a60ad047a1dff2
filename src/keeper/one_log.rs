//! One log: its file, its books (frames.rs), and what the log writer says of the log in that file.
//! Which session has it, and when it is opened and closed, writer.rs decides.

use super::bounded::BoundedFile;
use super::frames::{Ack, AckKind};
use super::index::Index;
use crate::limits::{FREE_SPACE_MIN_BYTES, FREE_SPACE_MIN_PERCENT};
use crate::pure::buffer::bound::Kept;
use crate::pure::buffer::source::Source;
use crate::sys::clock;
use crate::sys::io::{ENODATA, ENOENT, ENOSYS, EOPNOTSUPP};
use crate::sys::log_files::{LogDir, LogFile};

/// ... or after this part of what may still be written, where that is less: so many logs at a time
/// stop before the disk is full.
const FREE_SPACE_CHECK_PARTS: u64 = 4;

/// The keeper looks at the file system's free space after this much growth of one log, ...
const FREE_SPACE_CHECK_BYTES: u64 = 8 * 1024 * 1024;

/// The last line of a log that cannot lose its beginning.
const NO_HOLES_LINE: &str =
    "\n[the log ends here: --log-keep-bytes is reached, and its file system makes no holes]\n";

/// Whether a log's last write or open worked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) errno: i32,
    pub(super) failing: bool,
    pub(super) truncated: bool,
    /// Truncated for want of space: until there is some.
    pub(super) space: bool,
    /// There is a file.
    pub(super) named: bool,
    pub(super) noted: u64,
    /// The file's first byte that is kept.
    pub(super) from: u64,
    /// The first byte of the output that is kept.
    pub(super) from_output: u64,
}

/// What the log writer alone knows of a log, and adds to its facts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beside {
    /// By what its file is known (`LogFile::id`).
    pub(super) file_id: Option<u64>,
    /// It ended at a limit, before its session.
    pub(super) truncated: bool,
}

#[derive(Debug)]
pub(super) struct Log {
    /// The file's name.
    pub(super) name: String,
    /// None: it could not be opened, or has been deleted.
    file: Option<BoundedFile>,
    /// By what its file is known.
    file_id: Option<u64>,
    /// How much of it is kept; None: all.
    kept: Option<Kept>,
    pub(super) logged: u64,
    pub(super) missing: u64,
    /// How many of the missing bytes no line in the log tells of yet.
    pub(super) untold: u64,
    pub(super) state: State,
    /// The state that execd knows.
    pub(super) acked: State,
    /// From this many logged bytes on, the free space is to be looked at.
    pub(super) next_check: u64,
    /// When it was last looked at whether the file is where its path leads.
    pub(super) looked_ns: u64,
    /// Which of its bytes are whose.
    pub(super) index: Index,
    /// The line that says why the log stands still could not be written yet.
    owed: bool,
}

/// Why a log ends before its stream.
enum Limit {
    /// `--log-max-bytes`.
    Bytes(u64),
    /// `--log-keep-bytes`, where the beginning of the log cannot be given back.
    NoHoles,
    Space,
}

impl Log {
    pub(super) fn new(name: &str, kept: Option<Kept>) -> Log {
        Log {
            name: name.to_owned(),
            file: None,
            file_id: None,
            kept,
            logged: 0,
            missing: 0,
            untold: 0,
            state: State::default(),
            acked: State::default(),
            next_check: 0,
            looked_ns: clock::now_ns(),
            index: Index::new(kept.map(Kept::bytes)),
            owed: false,
        }
    }

    pub(super) fn created(&mut self, file: Result<LogFile, i32>) {
        let kept = self.kept;
        if file.is_ok() {
            self.state.from_output = self.missing;
        }
        self.opened(file.map(|file| BoundedFile::new(file, kept)));
    }

    pub(super) fn opened(&mut self, file: Result<BoundedFile, i32>) {
        match file {
            Ok(file) => {
                self.state.failing = false;
                self.state.named = true;
                self.file_id = file.file().id();
                self.file = Some(file);
            }
            Err(errno) => self.fail(errno),
        }
    }

    pub(super) fn fail(&mut self, errno: i32) {
        self.state.errno = errno;
        self.state.failing = true;
    }

    pub(super) fn ack(&mut self, kind: AckKind, session: u64, token: u64) -> Ack {
        self.acked = self.state;
        let State { errno, failing, truncated, space, named, noted, from, from_output } =
            self.state;
        let (logged, missing) = (self.logged, self.missing);
        Ack {
            kind,
            session,
            token,
            logged,
            missing,
            noted,
            from,
            from_output,
            errno,
            truncated,
            failing,
            space,
            named,
        }
    }

    /// Takes in bytes of one of its streams.
    pub(super) fn data(
        &mut self,
        source: Source,
        bytes: &[u8],
        max_bytes: u64,
        dir: Option<&LogDir>,
    ) {
        if let (None, false, Some(dir)) = (&self.file, self.state.truncated, dir) {
            // A log that is gone begins anew, with a line of what it lacks.
            self.created(dir.create(&self.name));
        }
        self.try_space(dir);
        if !self.state.truncated && self.logged >= self.next_check {
            // At the first byte, not at the opening: a silent command's log is never cut.
            match self.space_left() {
                // The less is left, the sooner it is looked again: other logs take of it too.
                Some(left) => {
                    let next = FREE_SPACE_CHECK_BYTES.min(left / FREE_SPACE_CHECK_PARTS);
                    self.next_check = self.logged.saturating_add(next);
                }
                None => self.truncate(Limit::Space, dir),
            }
        }
        // Bytes behind a gap may come only after the line that tells of the gap.
        self.tell_missing(dir);
        let writable = self.untold == 0 && !self.state.truncated;
        let Some(file) = self.file.as_mut().filter(|_| writable) else {
            return self.lose(source, bytes.len());
        };
        let room = usize::try_from(max_bytes.saturating_sub(self.logged)).unwrap_or(usize::MAX);
        let (within, beyond) = bytes.split_at(room.min(bytes.len()));
        let (done, outcome) = file.append(within);
        if self.logged == 0 && done > 0 {
            // What was lost until now stood before all that is kept.
            self.state.from_output = self.state.from_output.max(self.missing);
        }
        self.logged = self.logged.saturating_add(done as u64);
        self.index.logged(source, done as u64);
        match outcome {
            Err(EOPNOTSUPP | ENOSYS) => {
                self.truncate(Limit::NoHoles, dir);
                self.lose(source, bytes.len() - done);
            }
            Err(errno) => {
                self.fail(errno);
                self.lose(source, bytes.len() - done);
            }
            Ok(()) if beyond.is_empty() => {}
            Ok(()) => {
                self.truncate(Limit::Bytes(max_bytes), dir);
                self.lose(source, beyond.len());
            }
        }
        self.note_trimmed(dir);
    }

    /// How many bytes may be written until its file system is nearly full; `None`: it is.
    fn space_left(&self) -> Option<u64> {
        self.file.as_ref().map_or(Some(u64::MAX), |file| file.file().space_left())
    }

    /// What is added to its facts.
    pub(super) fn beside(&self) -> Beside {
        let truncated = self.state.truncated && !self.state.space;
        Beside { file_id: self.file_id, truncated }
    }

    /// Notes where the kept part of its file begins.
    fn note_trimmed(&mut self, dir: Option<&LogDir>) {
        let Some(file) = &self.file else { return };
        if file.from() != self.state.from {
            self.state.from = file.from();
            let from_output = self.output_at(self.state.from, dir);
            self.state.from_output = self.state.from_output.max(from_output);
            if let Some(dir) = dir {
                self.index.give_back(dir, &self.name, self.state.from);
            }
        }
    }

    /// The first byte of the output that lies at this place of its file or behind it.
    pub(super) fn output_at(&self, place: u64, dir: Option<&LogDir>) -> u64 {
        dir.map_or(place, |dir| self.index.output_at(dir, &self.name, place))
    }

    fn lose(&mut self, source: Source, len: usize) {
        self.missing = self.missing.saturating_add(len as u64);
        self.index.missing(source, len as u64);
        // The last line of a log that has ended at a limit already says that more was to come.
        if !self.state.truncated || self.state.space {
            self.untold = self.untold.saturating_add(len as u64);
        }
    }

    /// Appends a line about bytes that were lost; when that works, writing works again.
    pub(super) fn tell_missing(&mut self, dir: Option<&LogDir>) {
        if self.untold == 0 || self.state.truncated || self.file.is_none() {
            return;
        }
        let line = format!("\n[{} bytes were not logged]\n", self.untold);
        match self.note(&line, dir) {
            Ok(()) => {
                self.untold = 0;
                self.state.failing = false;
            }
            Err(errno) => self.fail(errno),
        }
    }

    /// Ends the log at a limit. Its last line says so if that can still be written.
    fn truncate(&mut self, limit: Limit, dir: Option<&LogDir>) {
        self.tell_missing(dir);
        let line = match limit {
            Limit::Bytes(max) => format!("\n[the log ends here: --log-max-bytes is {max}]\n"),
            Limit::NoHoles => NO_HOLES_LINE.to_owned(),
            Limit::Space => {
                let gib = FREE_SPACE_MIN_BYTES >> 30;
                let percent = FREE_SPACE_MIN_PERCENT;
                format!(
                    "\n[the log ends here: less than {gib} GiB and {percent} % of the disk are free]\n"
                )
            }
        };
        // Without room for the line, the acks alone say it, until there is room.
        let written = self.note(&line, dir);
        self.state.truncated = true;
        self.state.space = matches!(limit, Limit::Space);
        self.owed = self.state.space && written.is_err();
        if let Err(errno) = written {
            self.fail(errno);
        }
    }

    /// A log that stands still for want of space goes on when there is some.
    pub(super) fn try_space(&mut self, dir: Option<&LogDir>) {
        if !self.state.space {
            return;
        }
        if self.space_left().is_some() {
            self.owed = false;
            (self.state.truncated, self.state.space) = (false, false);
            self.tell_missing(dir);
        } else if self.owed {
            self.truncate(Limit::Space, dir);
        }
    }

    /// Nothing more will come: what it lacks is said in it, where there is room by now.
    pub(super) fn end(&mut self, dir: Option<&LogDir>) {
        self.try_space(dir);
        self.tell_missing(dir);
        self.write_index(dir);
        if let Some(file) = &self.file {
            file.file().set_ended();
        }
    }

    fn note(&mut self, line: &str, dir: Option<&LogDir>) -> Result<(), i32> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if let Some(dir) = dir {
            self.index.before_note(dir, &self.name)?;
        }
        let (done, outcome) = file.append_anyway(line.as_bytes());
        self.state.noted = self.state.noted.saturating_add(done as u64);
        self.index.own(done as u64);
        outcome
    }

    /// Writes what its index on the disk does not have.
    pub(super) fn write_index(&mut self, dir: Option<&LogDir>) {
        match dir.filter(|_| self.file.is_some() || self.index.has_lost_its_log()) {
            Some(dir) => self.index.flush(dir, &self.name, self.file.is_some()),
            None => self.index.looked(),
        }
    }

    /// A log that was deleted or moved takes more bytes and shows them to nobody: that is log
    /// trouble. The file is let go, which also gives back the space that its deletion was meant
    /// to free. One that somebody has made shorter begins anew where it is: no book of its bytes is
    /// right any more. Whether it is gone.
    pub(super) fn notice_gone(&mut self, dir: Option<&LogDir>) -> bool {
        let Some(file) = &mut self.file else { return false };
        let held = dir.filter(|dir| dir.holds(&self.name, file.file()));
        if held.is_some() && !file.is_cut() {
            return false;
        }
        if held.is_none() || file.empty().is_err() {
            // What its index tells is that all of it is lost, whatever stands there.
            (self.file, self.file_id) = (None, None);
        }
        self.index.begin_anew();
        self.missing = self.missing.saturating_add(self.logged);
        self.logged = 0;
        self.next_check = 0;
        self.untold = self.missing;
        self.state.noted = 0;
        (self.state.from, self.state.from_output) = (0, self.missing);
        self.state.named = self.file.is_some();
        self.fail(if held.is_some() { ENODATA } else { ENOENT });
        true
    }
}
