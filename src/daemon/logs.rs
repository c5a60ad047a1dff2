//! The books of the logs on execd's side: what was handed over, what the keeper acknowledged
//! (process-model.md, Logs). Moves no bytes itself.

use nix::errno::Errno;
use serde::Serialize;

use super::keeper_link::Place;
use crate::keeper::frames::{Ack, AckKind};
use crate::limits::LOG_QUEUE_BYTES;
use crate::pure::byte_queue::ByteQueue;

/// One session's log.
#[derive(Debug)]
pub struct Log {
    /// The file's name in the log directory.
    pub name: String,
    /// Bytes that wait for the pipe to the keeper.
    pub queue: ByteQueue,
    /// Bytes of the stream so far: queued, handed over or given up.
    pub total: u64,
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
    /// The latest state the keeper told.
    pub noted: u64,
    pub truncated: bool,
    missing: u64,
    failing: bool,
    /// The latest trouble, told in each reply from then on.
    trouble: Option<String>,
    /// Whether the log is on the link's list of logs to send for.
    pub busy: bool,
}

/// What a reply says about a session's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogStatus {
    /// The file, once it exists.
    pub path: Option<String>,
    /// Nothing of the stream so far is missing from it.
    pub complete: bool,
    /// It ended at a limit.
    pub truncated: bool,
    /// What went wrong with it.
    pub failure: Option<String>,
}

/// What the stream family's replies say of a log with which something is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogTrouble {
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

impl LogStatus {
    /// What a reply says of it; `over`: all output has come, so that what is not in the log yet is
    /// missing.
    pub fn trouble(self, over: bool) -> LogTrouble {
        let incomplete = !self.complete && (over || self.failure.is_some());
        LogTrouble {
            log_complete: incomplete.then_some(false),
            log_truncated: self.truncated.then_some(true),
            failure_message: self.failure,
        }
    }
}

/// `ENOSPC: No space left on device`: an errno for people.
pub fn errno_text(errno: i32) -> String {
    let known = Errno::from_raw(errno);
    if known == Errno::UnknownErrno {
        return format!("errno {errno}");
    }
    format!("{known:?}: {}", known.desc())
}

impl Log {
    /// The books of a new log.
    pub fn new(name: String) -> Self {
        Self {
            name,
            queue: ByteQueue::new(LOG_QUEUE_BYTES),
            total: 0,
            open_sent: false,
            closing: false,
            sync_wanted: None,
            sync_sent: None,
            synced: None,
            opened: false,
            noted: 0,
            truncated: false,
            missing: 0,
            failing: false,
            trouble: None,
            busy: false,
        }
    }

    /// Whether another read's worth of bytes fits the queue.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.queue.len() + bytes <= LOG_QUEUE_BYTES
    }

    /// Whether something is to be put on the pipe.
    pub fn wants_sending(&self) -> bool {
        !self.open_sent || !self.queue.is_empty() || self.sync_due() || self.closing
    }

    /// Whether a Sync is wanted that was not sent yet.
    pub fn sync_due(&self) -> bool {
        self.sync_wanted.is_some() && self.sync_wanted != self.sync_sent
    }

    /// Whether the keeper has dealt with everything so far and the file's fate is known.
    pub fn settled(&self) -> bool {
        // Nothing written: that the file exists is all there is to know.
        let written = self.total == 0 || self.synced.is_some_and(|total| total >= self.total);
        (self.opened || self.trouble.is_some()) && written
    }

    /// Whether the file can be named in a reply, or its failure told.
    pub fn named(&self) -> bool {
        self.opened || self.trouble.is_some()
    }

    /// Takes in an acknowledgement.
    pub fn acknowledge(&mut self, ack: &Ack) {
        match ack.kind {
            AckKind::Opened => {
                self.opened = !ack.failing;
                if self.opened && ack.missing == 0 {
                    // A new keeper found the file whole: nothing was lost after all.
                    self.trouble = None;
                }
            }
            AckKind::Synced => self.synced = self.synced.max(Some(ack.token)),
            // A page says nothing about a log's books and never comes here.
            AckKind::Trouble
            | AckKind::Recovered
            | AckKind::Truncated
            | AckKind::Page
            | AckKind::Place => {}
        }
        self.noted = ack.noted;
        self.truncated |= ack.truncated;
        self.missing = ack.missing;
        self.failing = ack.failing;
        if ack.failing && ack.errno != 0 {
            self.trouble = Some(format!("log write failed: {}", errno_text(ack.errno)));
        }
    }

    /// The keeper is gone: what waited is given up and counted by the next one.
    pub fn keeper_lost(&mut self) {
        self.queue.clear();
        self.open_sent = false;
        self.sync_sent = None;
        self.synced = None;
        self.failing = true;
        self.trouble = Some("log write failed: the log writer is gone".to_owned());
    }

    /// What a reply says, of a log at this place.
    pub fn status(&self, place: &Place) -> LogStatus {
        let lost = self.missing > 0 && !self.truncated;
        let path = place.path().filter(|_| self.opened).map(|dir| dir.join(&self.name));
        let refused = place.refusal().map(|reason| format!("log write failed: {reason}"));
        LogStatus {
            path: path.map(|path| path.to_string_lossy().into_owned()),
            complete: self.settled() && !self.failing && !lost,
            truncated: self.truncated,
            failure: refused.or_else(|| self.trouble.clone()),
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
        Ack {
            kind,
            session: 1,
            token,
            logged: 0,
            missing: 0,
            noted: 0,
            errno: 0,
            truncated: false,
            failing: false,
        }
    }

    #[test]
    fn a_log_is_settled_when_it_exists_and_all_of_it_was_synced() {
        let mut log = Log::new("a".into());
        assert!(!log.settled() && log.status(&tmp()).path.is_none());
        log.acknowledge(&ack(AckKind::Opened, 0));
        assert!(log.settled() && log.status(&tmp()).complete);
        log.total = 10;
        assert!(!log.settled() && !log.status(&tmp()).complete);
        log.acknowledge(&ack(AckKind::Synced, 9));
        assert!(!log.settled());
        log.acknowledge(&ack(AckKind::Synced, 10));
        assert_eq!(log.status(&tmp()).path.as_deref(), Some("/tmp/a"));
        assert!(log.settled() && log.status(&tmp()).complete);
    }

    #[test]
    fn trouble_stays_in_every_later_answer() {
        let mut log = Log::new("a".into());
        log.acknowledge(&ack(AckKind::Opened, 0));
        log.acknowledge(&Ack { errno: 28, missing: 5, failing: true, ..ack(AckKind::Trouble, 0) });
        log.acknowledge(&Ack { missing: 5, ..ack(AckKind::Recovered, 0) });
        let status = log.status(&tmp());
        assert!(!status.complete);
        let failure = "log write failed: ENOSPC: No space left on device";
        assert_eq!(status.failure.as_deref(), Some(failure));
    }

    #[test]
    fn a_log_that_cannot_be_created_has_no_path() {
        let mut log = Log::new("a".into());
        log.acknowledge(&Ack { errno: 13, failing: true, ..ack(AckKind::Opened, 0) });
        assert!(log.named() && log.settled());
        assert_eq!(log.status(&tmp()).path, None);
        assert!(log.status(&tmp()).failure.is_some_and(|text| text.contains("EACCES")));
    }

    #[test]
    fn a_new_keeper_that_finds_the_file_whole_ends_the_trouble() {
        let mut log = Log::new("a".into());
        log.acknowledge(&ack(AckKind::Opened, 0));
        log.total = 4;
        log.keeper_lost();
        assert!(log.status(&tmp()).failure.is_some());
        log.acknowledge(&ack(AckKind::Opened, 0));
        log.acknowledge(&ack(AckKind::Synced, 4));
        assert!(log.status(&tmp()).complete && log.status(&tmp()).failure.is_none());
    }

    #[test]
    fn truncation_by_a_limit_is_no_failure() {
        let mut log = Log::new("a".into());
        log.acknowledge(&ack(AckKind::Opened, 0));
        log.total = 100;
        log.acknowledge(&Ack { missing: 90, truncated: true, ..ack(AckKind::Truncated, 0) });
        log.acknowledge(&Ack { missing: 90, truncated: true, ..ack(AckKind::Synced, 100) });
        assert!(log.status(&tmp()).truncated && log.status(&tmp()).complete);
        assert_eq!(log.status(&tmp()).failure, None);
    }
}
