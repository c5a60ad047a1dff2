//! The facts beside each log (logs.md): told once when the session begins and once when it is over,
//! and again to a new log writer. What they say is left to `engine/log_facts.rs`.

use super::logs::{Facts, Log};
use super::{Hand, KeeperLink};
use crate::keeper::frames::push_facts;
use crate::pure::buffer::outbox::Outbox;
use crate::server::session::SessionId;

impl KeeperLink {
    /// Whether the facts of a session are to be told; `over`: with its end.
    pub fn wants_facts(&self, id: SessionId, over: bool) -> bool {
        self.logs.get(&id).is_some_and(|log| log.facts.told < Some(over))
    }

    /// Tells the facts of a session.
    pub fn tell_facts(&mut self, id: SessionId, over: bool, line: Vec<u8>) {
        if let Some(log) = self.logs.get_mut(&id) {
            log.facts = Facts { line: Some(line), told: Some(over) };
            self.make_busy(id);
        }
    }

    /// execd's process id, as the facts tell it.
    pub fn execd_pid(&self) -> i32 {
        self.plan.execd_pid
    }
}

impl Hand {
    /// Hands over the facts of a session, where there are any to be told.
    pub(super) fn send_facts(&mut self, id: SessionId, log: &mut Log, staging: &mut Outbox) {
        let Some(line) = log.facts.line.take() else { return };
        match self {
            Hand::Process(_) => push_facts(staging.buffer(), id, &line),
            Hand::Inline(writer) => {
                writer.facts(id, line);
                writer.write_all_facts();
            }
        }
    }
}
