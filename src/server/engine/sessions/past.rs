//! What is remembered of sessions that have left the table, of whatever family: enough to answer
//! with their exit and their log as long as execd lives (logs.md, Reading).

use std::collections::VecDeque;

use crate::limits::EVENT_COMMAND_BYTES;
use crate::pure::process::life::ExitStatus;
use crate::pure::text::truncate::truncate_tail;
use crate::server::engine::notices::{command_for_lists, tail_text};
use crate::server::session::output::Source;
use crate::server::session::{ClientId, Session, SessionId};

/// Its lines.
const LAST_SEEN_LINES: usize = 40;

/// That output.
const LAST_SEEN_OUTPUT_BYTES: usize = 1_024;

/// Of so many sessions that were ended for another reason than their own the last output is
/// remembered too.
const LAST_SEEN_MAX: usize = 256;

/// What one of them takes in memory at most.
const PAST_SESSION_BYTES: usize = 200;

/// Sessions that are remembered when they have left the table.
const PAST_SESSIONS_MAX: usize = 4_096;

/// A session that has left the table.
#[derive(Clone, Debug)]
pub struct PastSession {
    /// Its number.
    pub id: SessionId,
    /// The family that started it, in a word.
    pub family: &'static str,
    /// Its log's name in the log directory; none where nothing was logged.
    pub log: Option<Box<str>>,
    /// How its leader ended, where it did.
    pub status: Option<ExitStatus>,
    /// By whom it was ended, where that is known.
    pub killed_by: Option<&'static str>,
    /// The client that asked for that end, where one did.
    pub killer: Option<ClientId>,
    /// Bytes of its output.
    pub total: u64,
    /// Those of them that came on stderr, where that was apart.
    pub errors_total: u64,
    /// When it was started, in milliseconds since 1970.
    pub started_wall_ms: i64,
    /// How long it ran.
    pub elapsed_ms: u64,
}

impl PastSession {
    /// What is remembered of a session that ran for so long.
    pub fn new(core: &Session, family: &'static str, log: Option<&str>, elapsed_ms: u64) -> Self {
        Self {
            id: core.id,
            family,
            log: log.map(Box::from),
            status: core.status(),
            killed_by: core.killed_by(),
            killer: core.noted.killer,
            total: core.output_bytes_total(),
            errors_total: core.errors_total,
            started_wall_ms: core.facts.started_wall_ms,
            elapsed_ms,
        }
    }

    /// One that could not be started.
    pub fn failed(id: SessionId, family: &'static str, wall_ms: i64) -> Self {
        Self {
            id,
            family,
            log: None,
            status: Some(ExitStatus::Code(-1)),
            killed_by: None,
            killer: None,
            total: 0,
            errors_total: 0,
            started_wall_ms: wall_ms,
            elapsed_ms: 0,
        }
    }

    /// Bytes of one of its streams, or of both.
    pub fn total_of(&self, source: Option<Source>) -> u64 {
        match source {
            None => self.total,
            Some(Source::Output) => self.total - self.errors_total.min(self.total),
            Some(Source::Errors) => self.errors_total,
        }
    }
}

/// What the name of a log takes at most, as malloc(3) gives it.
const NAME_BYTES: usize = 48;
const _: () = assert!(size_of::<PastSession>() + NAME_BYTES <= PAST_SESSION_BYTES);

/// What was last seen of a session that somebody has ended.
#[derive(Clone, Debug, Default)]
pub struct LastSeen {
    /// Its number.
    pub id: SessionId,
    /// Its command, cut where it is long.
    pub command: Box<str>,
    /// Its working directory.
    pub cwd: Box<str>,
    /// Whether it had a terminal.
    pub tty: bool,
    /// The end of its output as clean text.
    pub output: Box<str>,
}

impl LastSeen {
    /// What is seen of a session now.
    pub fn new(core: &Session) -> Self {
        let text = tail_text(core);
        let (output, _) = truncate_tail(&text, LAST_SEEN_LINES, LAST_SEEN_OUTPUT_BYTES);
        let command = command_for_lists(&core.facts.command, EVENT_COMMAND_BYTES);
        Self {
            id: core.id,
            command: command.into(),
            cwd: core.facts.cwd.as_str().into(),
            tty: core.facts.tty,
            output: output.into(),
        }
    }
}

/// The last sessions that have left the table, and what was last seen of those that somebody has
/// ended.
#[derive(Debug, Default)]
pub struct Past(VecDeque<PastSession>, VecDeque<LastSeen>);

impl Past {
    /// Remembers what was last seen of a session, in place of that of the first where there are
    /// many.
    pub fn note_last(&mut self, last: LastSeen) {
        if self.1.len() >= LAST_SEEN_MAX {
            self.1.pop_front();
        }
        self.1.push_back(last);
    }

    /// What was last seen of a session, where it is remembered.
    pub fn last(&self, id: SessionId) -> Option<&LastSeen> {
        self.1.iter().rev().find(|one| one.id == id)
    }

    /// Remembers one more session, in place of the one that left first where there are many. One
    /// that comes back for what it has left behind is remembered once.
    pub fn note(&mut self, one: PastSession) {
        if self.get(one.id).is_some() {
            return;
        }
        if self.0.len() >= PAST_SESSIONS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(one);
    }

    /// The session of this id. The last ones are asked for most.
    pub fn get(&self, id: SessionId) -> Option<&PastSession> {
        self.0.iter().rev().find(|one| one.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What malloc(3) of glibc takes for so many bytes.
    fn allocated(bytes: usize) -> usize {
        if bytes == 0 { 0 } else { (bytes + 8).next_multiple_of(16).max(32) }
    }

    fn bytes_of(one: &PastSession) -> usize {
        let log = one.log.as_deref().map_or(0, str::len);
        size_of::<PastSession>() + allocated(log)
    }

    /// rule: logs.md, Reading: The last 4,096 sessions that have left every list are remembered, in
    ///   200 bytes each
    #[test]
    fn a_session_that_has_left_takes_two_hundred_bytes_at_most() {
        let mut past = Past::default();
        assert_eq!(past.0.capacity(), 0, "nothing is held before the first has left");
        for id in 1..=PAST_SESSIONS_MAX as u64 + 10 {
            let one = PastSession {
                log: Some(Box::from(format!("execd-{}-0123abcd.log", 1_u64 << 53))),
                ..PastSession::failed(id, "unified", 0)
            };
            assert!(
                bytes_of(&one) <= PAST_SESSION_BYTES && allocated(38) <= NAME_BYTES,
                "{}",
                bytes_of(&one)
            );
            past.note(one);
        }
        assert!(past.get(10).is_none() && past.get(11).is_some());
        assert_eq!(past.0.len(), PAST_SESSIONS_MAX);
        let spare = past.0.capacity() - past.0.len();
        assert!(spare * size_of::<PastSession>() < 1024, "no room is held in advance: {spare}");
    }

    #[test]
    fn a_session_that_comes_back_is_remembered_as_it_left() {
        let mut past = Past::default();
        past.note(PastSession { total: 7, ..PastSession::failed(1, "unified", 0) });
        past.note(PastSession::failed(1, "unified", 0));
        assert_eq!((past.0.len(), past.get(1).map(|one| one.total)), (1, Some(7)));
    }
}
