//! The ledger of events: what has happened to sessions, each with a number that rises by one, the
//! last 1,024 of them; and for each reader how far it has been told (protocol.md, Events).
//!
//! A reader is told most events in their order, and some ahead: those of a session whose end a
//! reply tells by itself. So its place is a number up to which all is told, and the numbers behind
//! it that are told too, which are never more than are kept.

use std::collections::VecDeque;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::limits::EVENTS_KEPT;

/// What has happened to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Its command has ended, and so has its output.
    Exited,
    /// It has left the table for a new one.
    Evicted,
    /// execd has begun to end it.
    Killed,
    /// A wake was sent.
    Wake,
    /// Something is wrong with its log, or the log has lost its beginning.
    LogTrouble,
}

/// One event.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// Its number: 1 for the first.
    pub n: u64,
    /// When it happened, in milliseconds since 1970.
    pub at_ms: i64,
    /// The session.
    pub session_id: u64,
    /// What happened.
    pub what: What,
    /// The label of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The first bytes of the session's command.
    pub command: String,
    /// The family that started it.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub family: &'static str,
    /// How it ended, if it did by itself or by a handled signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// By whom it was ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub killed_by: Option<&'static str>,
    /// The request that asked for its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Box<RawValue>>,
    /// What is wrong with its log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The log file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_path: Option<String>,
    /// The event as a line for models, in the reply that carries it.
    #[serde(skip)]
    pub line: String,
}

impl Event {
    /// An event that the ledger gives its number.
    pub fn new(what: What, session_id: u64, at_ms: i64) -> Self {
        Self {
            n: 0,
            at_ms,
            session_id,
            what,
            name: None,
            command: String::new(),
            family: "",
            exit_code: None,
            signal: None,
            killed_by: None,
            request_id: None,
            message: None,
            log_path: None,
            line: String::new(),
        }
    }
}

/// How far a reader has been told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// All events up to this number are told, or no affair of this reader's.
    told: u64,
    /// Those behind it that are told too, in their order.
    ahead: Vec<u64>,
}

impl Place {
    /// Whether the event of this number is told.
    pub fn is_told(&self, n: u64) -> bool {
        n <= self.told || self.ahead.binary_search(&n).is_ok()
    }
}

/// The last events.
#[derive(Debug, Default)]
pub struct Ledger {
    kept: VecDeque<Event>,
    /// The number of the last event.
    last: u64,
}

impl Ledger {
    /// Adds an event; gives its number.
    pub fn push(&mut self, mut event: Event) -> u64 {
        self.last += 1;
        event.n = self.last;
        if self.kept.len() == EVENTS_KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(event);
        self.last
    }

    /// The number of the last event; 0 before the first.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The number of the oldest event that is kept.
    pub fn oldest(&self) -> Option<u64> {
        self.kept.front().map(|event| event.n)
    }

    /// The events behind a number, oldest first.
    pub fn after(&self, after: u64) -> impl Iterator<Item = &Event> {
        let gone = self.last - self.kept.len() as u64;
        let skipped = usize::try_from(after.saturating_sub(gone)).unwrap_or(usize::MAX);
        self.kept.iter().skip(skipped)
    }

    /// The numbers behind `after` that are kept no more: the first and the last of them.
    pub fn lost(&self, after: u64) -> Option<[u64; 2]> {
        let gone = self.last - self.kept.len() as u64;
        (after < gone).then_some([after + 1, gone])
    }

    /// A reader from now on: what was before is not its affair.
    pub fn reader(&self) -> Place {
        Place { told: self.last, ahead: Vec::new() }
    }

    /// The events that a reader has not been told, oldest first. Those that are kept no more are
    /// never told.
    pub fn untold<'a>(&'a self, place: &'a Place) -> impl Iterator<Item = &'a Event> {
        self.after(place.told).filter(|event| !place.is_told(event.n))
    }

    /// Notes that a reader has been told an event.
    pub fn tell(&self, place: &mut Place, n: u64) {
        let Err(at) = place.ahead.binary_search(&n) else { return };
        if n <= place.told || n > self.last {
            return;
        }
        place.ahead.insert(at, n);
        // Those that are kept no more can't be told any more.
        place.told = place.told.max(self.last - self.kept.len() as u64);
        let mut settled = 0;
        for n in &place.ahead {
            if *n > place.told + 1 {
                break;
            }
            place.told = place.told.max(*n);
            settled += 1;
        }
        place.ahead.drain(..settled);
    }

    /// Notes that a reader has been told the events of a session that `fits` picks.
    pub fn tell_of(&self, place: &mut Place, session: u64, fits: fn(What) -> bool) {
        let own = |event: &&Event| event.session_id == session && fits(event.what);
        // Its own are picked first: that is a comparison, and there are few of them.
        let told: Vec<u64> = self.after(place.told).filter(own).map(|event| event.n).collect();
        for n in told {
            self.tell(place, n);
        }
    }
}

#[cfg(test)]
#[path = "tests_ledger.rs"]
mod tests;
