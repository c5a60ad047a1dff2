//! The books of the logs on execd's side: what was handed over, what the keeper acknowledged.
//! Moves no bytes itself.

use serde::Serialize;

use super::Place;
use crate::keeper::frames::{Ack, AckKind};
use crate::limits::{FREE_SPACE_MIN_BYTES, FREE_SPACE_MIN_PERCENT, LOG_QUEUE_BYTES};
use crate::pure::buffer::bound::Bounds;
use crate::pure::buffer::source::Source;
use crate::pure::buffer::stream_queue::StreamQueue;
use crate::pure::text::shell_word::as_word;
use crate::sys::errno::errno_text;
use crate::sys::log_files::short_name;

/// From this size on replies warn of a log that nothing bounds.
const LOG_WARNING_BYTES: u64 = 1024 * 1024 * 1024;

/// The facts of one session on their way.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// What is to be put on the pipe.
    pub(super) line: Option<Vec<u8>>,
    /// What the log writer was told: nothing, the start (false), or the end too.
    pub(super) told: Option<bool>,
}

/// One session's log.
#[derive(Debug)]
pub struct Log {
    /// The file's name in the log directory.
    pub name: String,
    /// Bytes that wait for the pipe to the keeper.
    pub queue: StreamQueue,
    /// Bytes of the output so far: queued, handed over or given up.
    pub total: u64,
    /// Those of them that are stderr's, where that is apart.
    pub errors_total: u64,
    /// It is not known yet whether the session's program could be started: there is no log if not.
    pub awaits_start: bool,
    /// Whether Open was put on the pipe.
    pub open_sent: bool,
    /// Whether the session is gone: close the log when the queue is empty.
    pub closing: bool,
    /// The total up to which a Sync is wanted.
    pub sync_wanted: Option<u64>,
    /// The total of the latest Sync put on the pipe.
    pub sync_sent: Option<u64>,
    /// The total of the latest Sync acknowledged.
    synced: Option<u64>,
    /// The file exists.
    opened: bool,
    /// An answer has waited for the file as long as answers do, and names it all the same.
    overdue: bool,
    /// The latest state the keeper told.
    pub noted: u64,
    pub from: u64,
    pub from_output: u64,
    pub truncated: bool,
    /// Truncated for want of space.
    pub space: bool,
    logged: u64,
    missing: u64,
    failing: bool,
    /// The keeper is gone, and no other has said anything of the log yet.
    unwritten: bool,
    /// The latest trouble, told in each reply from then on.
    trouble: Option<String>,
    /// The trouble before the keeper was gone.
    trouble_before: Option<String>,
    /// Whether the log is on the link's list of logs to send for.
    pub busy: bool,
    /// The facts beside the log.
    pub(super) facts: Facts,
}

/// What a reply says about a session's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogStatus {
    /// The file, once it exists; also before, where an answer has waited long enough for it.
    pub path: Option<String>,
    /// The file is named although nobody has said yet that it exists.
    pub unmade: bool,
    /// Nothing of the stream so far is missing from it.
    pub complete: bool,
    /// It ended at a limit.
    pub truncated: bool,
    /// Bytes of the stream that are known to be missing from it.
    pub missing: u64,
    /// Bytes of the stream that it has, or will have.
    pub logged: u64,
    /// The first byte of the output that it still has.
    pub log_from: u64,
    /// Bytes of the output so far.
    pub total: u64,
    /// What went wrong with it.
    pub failure: Option<String>,
    /// The log's writer is gone, and no other has looked at the log yet.
    pub unwritten: bool,
    /// Texts name the log by its short name, `3-ab12cd34`, as `execd logs` does; else by its path.
    pub is_short: bool,
    /// The limits that were set for it.
    pub bounds: Bounds,
}

/// What the stream family's replies say of a log with which something is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogTrouble {
    /// The first byte of the output that the log still has, where that is not the first of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_from: Option<u64>,
    /// Something of the stream so far is missing from the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_complete: Option<bool>,
    /// It ended at a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_truncated: Option<bool>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
}

/// What went wrong, and how much is missing for it.
fn with_missing(text: String, missing: u64) -> String {
    match missing {
        0 => text,
        1 => format!("{text}; 1 byte of the output is missing from the log"),
        _ => format!("{text}; {missing} bytes of the output are missing from the log"),
    }
}

/// A path, and what is said of its file.
fn beside(path: &str, said: Option<String>) -> String {
    said.map_or_else(|| path.to_owned(), |said| format!("{path} ({said})"))
}

impl LogStatus {
    /// What is said where nothing is logged: nothing of the output is missing.
    pub fn whole() -> Self {
        Self { complete: true, ..Self::default() }
    }

    /// The first byte of the output that the log still has, where it has lost some before it.
    pub fn from(&self) -> Option<u64> {
        Some(self.log_from).filter(|from| *from > 0 && self.path.is_some())
    }

    /// What is kept of a log that has lost its beginning, and how that is read.
    pub fn kept(&self) -> Option<String> {
        let (from, total, path) = (self.from()?, self.total, self.path.as_deref()?);
        let file = path.rsplit('/').next().unwrap_or(path);
        // A number would mean another log where this execd is gone or another one has it too.
        let log = if self.is_short { short_name(file).to_owned() } else { as_word(path) };
        Some(format!("bytes {from}–{total} of {total} kept: execd log {log} --from {from}"))
    }

    /// The path as a footer has it: with what is kept and what it lacks, where that is not all.
    /// `over`: all output has come.
    pub fn in_footer(&self, over: bool) -> Option<String> {
        Some(beside(self.path.as_deref()?, self.gaps(over)))
    }

    /// What it has lost and what it lacks.
    fn gaps(&self, over: bool) -> Option<String> {
        let lacks = match self.missing {
            0 if self.complete => None,
            0 if self.unwritten => Some("the log writer is gone: it may lack some".to_owned()),
            0 if !over && !self.unmade => None,
            // Nobody has counted yet.
            0 => Some("it may not have all of it yet".to_owned()),
            1 => Some("1 byte is missing from it".to_owned()),
            missing => Some(format!("{missing} bytes are missing from it")),
        };
        match (self.kept(), lacks) {
            (Some(kept), Some(lacks)) => Some(format!("{kept}; {lacks}")),
            (kept, lacks) => kept.or(lacks),
        }
    }

    /// The path as texts for models and people name it: with what it lacks, and a word where it
    /// has become very large. `over`: all output has come; before, every log has more to get.
    pub fn shown(&self, over: bool) -> Option<String> {
        let said = self.gaps(over).or_else(|| self.warning());
        Some(beside(self.path.as_deref()?, said))
    }

    /// What a reply warns of: a log that nothing bounds, or that ended at a bound.
    pub fn warning(&self) -> Option<String> {
        let tenths = self.logged / (LOG_WARNING_BYTES / 10);
        let gib = format!("{}.{}", tenths / 10, tenths % 10);
        let large = self.logged >= LOG_WARNING_BYTES;
        let ended = self.truncated && self.failure.is_none() && self.missing > 0;
        if ended {
            let missing = self.missing;
            let bound = match self.bounds.max_bytes {
                Some(max_bytes) if self.logged >= max_bytes => "--log-max-bytes",
                _ => "--log-keep-bytes (its file system makes no holes)",
            };
            return Some(format!("the log ended at {bound}, without {missing} bytes"));
        }
        let advice = match self.bounds.max_bytes {
            Some(_) => "",
            None => ": --log-keep-bytes bounds it",
        };
        let large = large && self.bounds.keep_bytes.is_none();
        large.then(|| format!("the log has {gib} GiB by now{advice}"))
    }

    /// What a reply says of it; `over`: all output has come, so that what is not in the log yet is
    /// missing.
    pub fn trouble(self, over: bool) -> LogTrouble {
        let incomplete = !self.complete && (over || self.unmade || self.failure.is_some());
        LogTrouble {
            log_from: self.from(),
            log_complete: incomplete.then_some(false),
            log_truncated: self.truncated.then_some(true),
            failure_message: self.failure,
        }
    }
}

impl Log {
    /// The books of a new log.
    pub fn new(name: String) -> Self {
        Self {
            name,
            queue: StreamQueue::new(LOG_QUEUE_BYTES),
            total: 0,
            errors_total: 0,
            awaits_start: false,
            open_sent: false,
            closing: false,
            sync_wanted: None,
            sync_sent: None,
            synced: None,
            opened: false,
            overdue: false,
            noted: 0,
            from: 0,
            from_output: 0,
            truncated: false,
            space: false,
            logged: 0,
            missing: 0,
            failing: false,
            unwritten: false,
            trouble: None,
            trouble_before: None,
            busy: false,
            facts: Facts::default(),
        }
    }

    /// Whether another read's worth of bytes fits the queue.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.queue.has_room(bytes)
    }

    /// Counts bytes of one of the streams.
    pub fn count(&mut self, source: Source, bytes: usize) {
        self.total += bytes as u64;
        if source == Source::Errors {
            self.errors_total += bytes as u64;
        }
    }

    /// Whether something is to be put on the pipe.
    pub fn wants_sending(&self) -> bool {
        let more = self.sync_due() || self.closing || self.facts.line.is_some();
        !self.awaits_start && (!self.open_sent || !self.queue.is_empty() || more)
    }

    /// Whether a Sync is wanted that was not sent yet.
    pub fn sync_due(&self) -> bool {
        self.sync_wanted.is_some() && self.sync_wanted != self.sync_sent
    }

    /// Whether the keeper has dealt with everything so far and the file's fate is known.
    pub fn settled(&self) -> bool {
        // Nothing written: that the file exists is all there is to know.
        let written = self.total == 0 || self.synced.is_some_and(|total| total >= self.total);
        self.awaits_start || ((self.opened || self.trouble.is_some()) && written)
    }

    /// Whether the file can be named in a reply, or its failure told.
    pub fn named(&self) -> bool {
        !self.awaits_start && (self.opened || self.trouble.is_some())
    }

    /// An answer could wait no longer for the file. Its name is known all along, and whoever reads
    /// that answer has no other way to learn it: from now on the file is named.
    pub fn name_anyway(&mut self) {
        self.overdue = !self.awaits_start;
    }

    /// Takes in an acknowledgement.
    pub fn acknowledge(&mut self, ack: &Ack) {
        match ack.kind {
            AckKind::Opened => {
                let before = self.trouble_before.take();
                let lost_no_more = ack.missing == self.missing || (self.truncated && ack.truncated);
                if ack.named && ack.missing == 0 {
                    // A new keeper found the file whole: nothing was lost after all.
                    self.trouble = None;
                } else if ack.named && self.unwritten && lost_no_more {
                    // What is missing was missing before the last keeper was gone.
                    self.trouble = before;
                }
            }
            AckKind::Synced => self.synced = self.synced.max(Some(ack.token)),
            // A range says nothing about a log's books and never comes here.
            AckKind::Trouble
            | AckKind::Recovered
            | AckKind::Truncated
            | AckKind::Trimmed
            | AckKind::Range
            | AckKind::Place => {}
        }
        self.unwritten = false;
        self.opened = ack.named;
        (self.noted, self.from, self.from_output) = (ack.noted, ack.from, ack.from_output);
        self.logged = ack.logged;
        self.truncated = ack.truncated;
        self.space = ack.space;
        self.missing = ack.missing;
        self.failing = ack.failing;
        // What failed may work again by the time that it is told, without what was lost.
        if ack.errno != 0 && (ack.failing || ack.missing > 0) {
            self.trouble = Some(format!("log write failed: {}", errno_text(ack.errno)));
        } else if ack.space {
            let (gib, percent) = (FREE_SPACE_MIN_BYTES >> 30, FREE_SPACE_MIN_PERCENT);
            self.trouble = Some(format!(
                "log write failed: less than {gib} GiB and {percent} % of its disk were free"
            ));
        }
    }

    /// What went wrong, as a writer has told it, and the first byte of the output that the log
    /// still has; `None` while there is no writer, for the next one looks at the log first.
    pub fn news(&self) -> Option<(Option<&str>, u64)> {
        (!self.unwritten).then_some((self.trouble.as_deref(), self.from_output))
    }

    /// The keeper is gone: what waited is given up and counted by the next one.
    pub fn keeper_lost(&mut self) {
        self.queue.clear();
        self.open_sent = false;
        self.sync_sent = None;
        self.synced = None;
        self.failing = true;
        if !std::mem::replace(&mut self.unwritten, true) {
            self.trouble_before = self.trouble.take();
        }
        self.trouble = Some("log write failed: the log writer is gone".to_owned());
    }

    /// What a reply says, of a log at this place.
    pub fn status(&self, place: &Place) -> LogStatus {
        let lost = self.missing > 0 && (self.space || !self.truncated);
        // A log that has nothing of the output is not worth looking at.
        let empty = self.missing > 0 && self.logged + self.noted == 0;
        let unmade = self.overdue && !self.named();
        let shown = (self.opened && !empty) || unmade;
        let path = place.path().filter(|_| shown).map(|dir| dir.join(&self.name));
        let refused = place.refusal().map(|reason| format!("log write failed: {reason}"));
        LogStatus {
            unmade: unmade && path.is_some(),
            path: path.map(|path| path.to_string_lossy().into_owned()),
            complete: self.settled() && !self.failing && !lost,
            truncated: self.truncated,
            missing: self.missing,
            logged: self.total.saturating_sub(self.missing),
            log_from: self.from_output,
            total: self.total,
            failure: refused
                .or_else(|| self.trouble.clone())
                .map(|text| with_missing(text, self.missing)),
            unwritten: self.unwritten,
            is_short: false,
            bounds: Bounds::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tmp() -> Place {
        Place::At("/tmp".into())
    }

    fn ack(kind: AckKind, token: u64) -> Ack {
        Ack { session: 1, token, named: true, ..Ack::of(kind) }
    }

    /// The death of its writer was told as the cause, and as a beginning that was lost.
    /// rule: architecture.md, The keeper: Log trouble: the session goes on, missing bytes are
    ///   counted, each reply says so
    #[test]
    fn a_writer_that_dies_is_not_blamed_for_what_was_missing_before() {
        let mut log = Log::new("a".into());
        log.acknowledge(&ack(AckKind::Opened, 0));
        let deleted = Ack {
            errno: 2,
            missing: 4,
            from_output: 4,
            named: false,
            failing: true,
            ..ack(AckKind::Trouble, 0)
        };
        log.acknowledge(&deleted);
        let trouble = "log write failed: ENOENT: No such file or directory";
        assert_eq!(log.news(), Some((Some(trouble), 4)));
        for _ in 0..2 {
            log.keeper_lost();
            assert_eq!(log.news(), None, "nobody has looked at the log yet");
        }
        let again = |missing| Ack { missing, from_output: 4, ..ack(AckKind::Opened, 0) };
        log.acknowledge(&again(4));
        assert_eq!(log.news(), Some((Some(trouble), 4)));
        log.keeper_lost();
        log.acknowledge(&again(7));
        let gone = "log write failed: the log writer is gone";
        assert_eq!(log.news(), Some((Some(gone), 4)));
        log.keeper_lost();
        log.acknowledge(&again(7));
        assert_eq!(log.news(), Some((Some(gone), 4)), "it was told");
    }

    /// rule: unified-exec.md, Logs: It exists when the first reply or notification that names it is
    ///   written, or is still to be made where a reply has waited 250 ms for it
    #[test]
    fn a_log_that_is_made_late_is_named_by_who_waited_for_it() {
        let mut log = Log::new("a".into());
        assert_eq!(log.status(&tmp()).path, None);
        log.name_anyway();
        assert_eq!(log.status(&Place::Unknown).path, None, "nobody knows where it will be");
        let status = log.status(&tmp());
        assert!(status.unmade && !status.complete);
        assert_eq!(status.shown(false).as_deref(), Some("/tmp/a (it may not have all of it yet)"));
        assert_eq!(status.trouble(false).log_complete, Some(false));
        log.acknowledge(&ack(AckKind::Opened, 0));
        let status = log.status(&tmp());
        assert!(!status.unmade && status.complete && status.path.is_some());
        // It could not be made after all.
        log.acknowledge(&Ack { errno: 28, failing: true, named: false, ..ack(AckKind::Opened, 0) });
        assert_eq!(log.status(&tmp()).path, None);
    }

    /// An answer waits 250 ms for the log and no longer: nobody has counted then.
    /// rule: architecture.md, The keeper: A text that names a log says what it lacks; none is named
    ///   that has nothing
    #[test]
    fn a_log_that_nobody_has_vouched_for_is_not_named_bare() {
        let mut log = Log::new("a".into());
        log.acknowledge(&ack(AckKind::Opened, 0));
        log.total = 4;
        let shown = |log: &Log| log.status(&tmp()).shown(true).unwrap();
        assert_eq!(shown(&log), "/tmp/a (it may not have all of it yet)");
        assert_eq!(log.status(&tmp()).shown(false).as_deref(), Some("/tmp/a"));
        log.keeper_lost();
        assert_eq!(shown(&log), "/tmp/a (the log writer is gone: it may lack some)");
        log.acknowledge(&ack(AckKind::Opened, 0));
        assert_eq!(shown(&log), "/tmp/a (it may not have all of it yet)");
        log.acknowledge(&ack(AckKind::Synced, 4));
        assert_eq!(shown(&log), "/tmp/a");
    }

    /// rule: architecture.md, The keeper: Replies warn of a log of 1 GiB
    #[test]
    fn a_log_of_a_gibibyte_is_warned_of() {
        let mut log = Log::new("a".into());
        log.acknowledge(&ack(AckKind::Opened, 0));
        log.total = LOG_WARNING_BYTES - 1;
        log.acknowledge(&ack(AckKind::Synced, LOG_WARNING_BYTES));
        assert_eq!(log.status(&tmp()).warning(), None);
        log.total += 1;
        let status = log.status(&tmp());
        let said = "the log has 1.0 GiB by now: --log-keep-bytes bounds it";
        assert_eq!(status.warning().as_deref(), Some(said));
        assert_eq!(status.shown(true), Some(format!("/tmp/a ({said})")));
        let ends = Bounds { max_bytes: Some(1 << 40), ..Bounds::default() };
        let bounded = LogStatus { bounds: ends, ..status.clone() };
        assert_eq!(bounded.warning().as_deref(), Some("the log has 1.0 GiB by now"));
        let keeps = Bounds { keep_bytes: Some(1 << 30), ..ends };
        assert_eq!(LogStatus { bounds: keeps, ..status }.warning(), None);
    }
}
