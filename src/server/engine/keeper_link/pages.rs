//! Parts of sessions' output by its offsets: the keeper is asked for them, or they are read here
//! with `--no-keeper`. Which request is asked for when is left to
//! `engine/pages/line.rs`.

use std::collections::VecDeque;

use super::logs::{Log, LogStatus};
use super::{Hand, KeeperLink};
use crate::keeper::frames::{Ack, Head, ReadRange, push_read_range};
use crate::keeper::range::Range;
use crate::server::session::SessionId;

/// A part of the output that has come, or why it could not be read, and the token of who asked.
pub type CameRange = (u64, Result<Range, i32>);

/// What is asked of logs, and what has come of it.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// What the bytes that are coming belong to.
    pub(super) coming: Option<(Ack, Vec<u8>)>,
    /// What waits to be read by ourselves (`--no-keeper`): a few, see LOG_PAGES_ASKED_MAX.
    to_read: VecDeque<ReadRange>,
    /// What the keeper is to be asked behind bytes that wait for its pipe: as few.
    held: Vec<Held>,
    /// Ranges that have come whole.
    ranges: Vec<(Ack, Vec<u8>)>,
}

/// A question that must not overtake the output that it is about.
#[derive(Debug)]
struct Held {
    session: SessionId,
    /// So many bytes of the session's log go onto the pipe before it.
    behind: usize,
    asked: ReadRange,
}

impl Reading {
    /// `bytes` of a session's log were put onto `pipe`; `all`: nothing of the log waits any more.
    /// What was held back for them follows.
    pub(super) fn sent(
        &mut self,
        session: SessionId,
        (bytes, all): (usize, bool),
        pipe: &mut Vec<u8>,
    ) {
        self.held.retain_mut(|held| {
            if held.session != session {
                return true;
            }
            held.behind = held.behind.saturating_sub(bytes);
            if held.behind == 0 || all {
                push_read_range(pipe, &held.asked);
            }
            held.behind > 0 && !all
        });
    }

    /// Takes in what has come whole.
    pub(super) fn take(&mut self, came: Option<(Ack, Vec<u8>)>) {
        self.ranges.extend(came);
    }

    /// Whether something waits to be read by ourselves.
    pub(super) fn waits(&self) -> bool {
        !self.to_read.is_empty()
    }
}

impl KeeperLink {
    /// The name of a session's log in the log directory; `None` where nothing is logged.
    pub fn log_name(&self, id: SessionId) -> Option<&str> {
        self.logs.get(&id).map(|log| log.name.as_str())
    }

    /// Where the log of this name is, as far as the log directory is known.
    pub fn path_of(&self, name: &str) -> Option<String> {
        self.place.path().map(|dir| dir.join(name).to_string_lossy().into_owned())
    }

    /// The name of a session's log, unless it is known that there is no such file; `None` too
    /// where nothing is logged.
    pub fn readable(&self, id: SessionId) -> Option<&str> {
        let there = |status: LogStatus| status.path.is_some();
        let unmade = self.logs.get(&id).is_some_and(|log| log.awaits_start);
        let known = unmade || (self.named(id) && !self.status(id).is_some_and(there));
        self.log_name(id).filter(|_| !known)
    }

    /// Asks for a part of a session's output; [`Self::take_ranges`] gives it when it has come, with
    /// all that was queued for the log before. False when there is nobody to ask.
    pub fn ask_range(&mut self, asked: &ReadRange) -> bool {
        let waits = |log: &Log| log.name == asked.name && !(log.open_sent && log.queue.is_empty());
        match &mut self.hand {
            Hand::Process(Some(_)) => match self.logs.iter().find(|(_, log)| waits(log)) {
                Some((&session, log)) => {
                    let (behind, asked) = (log.queue.len(), asked.clone());
                    self.reading.held.push(Held { session, behind, asked });
                }
                None => push_read_range(self.staging.buffer(), asked),
            },
            Hand::Process(None) => return false,
            // Behind what is queued, as with a keeper.
            Hand::Inline(_) => self.reading.to_read.push_back(asked.clone()),
        }
        true
    }

    /// Reads here what waits for it.
    pub(crate) fn read_ranges(&mut self) {
        let Hand::Inline(writer) = &mut self.hand else { return };
        while let Some(asked) = self.reading.to_read.pop_front() {
            self.reading.take(Some(writer.range(&asked)));
        }
    }

    /// Nobody waits for any part any more.
    pub(crate) fn drop_held_ranges(&mut self) {
        self.reading.held.clear();
    }

    /// The parts of the output that have come.
    pub fn take_ranges(&mut self) -> Vec<CameRange> {
        let came = std::mem::take(&mut self.reading.ranges);
        came.into_iter().map(|(ack, bytes)| (ack.token, range_of(&ack, &bytes))).collect()
    }
}

fn range_of(ack: &Ack, mut bytes: &[u8]) -> Result<Range, i32> {
    if ack.errno != 0 {
        return Err(ack.errno);
    }
    // An answer without its head is none.
    let head = Head::take(&mut bytes).map_err(|_| crate::sys::io::EIO)?;
    Ok(Range { head, bytes: bytes.to_vec() })
}
