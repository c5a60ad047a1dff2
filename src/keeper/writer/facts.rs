//! The files of facts beside the logs (`meta`): taken in at once, and written when the log writer
//! has nothing else to do.

use super::Writer;
use crate::keeper::log_bytes::Beside;
use crate::keeper::one_log::Log;
use crate::sys::clock;

impl Writer {
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

    /// A log has become a row of segments: the facts beside it are to say how large these are.
    pub(super) fn tell_segments(&mut self, session: u64) {
        let Some(log) = self.logs.get(&session) else { return };
        let segment_bytes = log.segment_bytes();
        if !self.facts.cut_up(&log.name, segment_bytes)
            && let Ok(line) = self.dir().and_then(|dir| dir.read_meta(&log.name))
        {
            let line = line.trim_ascii_end().to_vec();
            // The other one stands in that line.
            let beside = Beside { segment_bytes, file_id: None };
            self.facts.note((&log.name, beside), line, clock::now_ns());
        }
    }

    /// When facts are due, on the monotonic clock; `None` where none wait.
    pub fn facts_due_ns(&self) -> Option<u64> {
        self.facts.due_ns()
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

    /// Writes the facts of the log of this name, where they wait.
    pub(super) fn write_facts_of(&mut self, log: &str) {
        let dir = self.dir.as_ref().ok();
        self.facts.write_of(log, |log, line| {
            let _ = dir.map(|dir| dir.write_meta(log, line));
        });
    }

    /// Facts that cannot be written are left out: the log is there without them.
    fn write_oldest_facts(&mut self) -> bool {
        let dir = self.dir.as_ref().ok();
        self.facts.write(|log, line| {
            let _ = dir.map(|dir| dir.write_meta(log, line));
        })
    }
}
