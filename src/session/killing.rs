//! By whom a session is ended, as far as the session itself knows (protocol.md, killed_by).

use super::Session;
use crate::limits::NEVER_ESCALATES_MS;
use crate::pure::process::killed::{Ended, KilledBy, Killing, killed_by};
use crate::session::ending::SIGKILL;

impl Session {
    /// Notes who asked for its end with `signal`, which SIGKILL follows `grace_ms` later. What
    /// becomes of the members of a session whose leader has ended is not the session's end.
    /// Whether that is a new reason for an end that is sure.
    pub fn note_killing(&mut self, by: KilledBy, signal: i32, grace_ms: u64, now_ns: u64) -> bool {
        if self.status().is_some() {
            return false;
        }
        let sure = signal == SIGKILL || grace_ms < NEVER_ESCALATES_MS;
        let later = Killing { by, signal, since_ns: now_ns, sure, reached: false };
        let news = sure && self.killing.is_none_or(|first| !first.sure);
        self.killing = Some(Killing::or_later(self.killing, later));
        news
    }

    /// Notes what the end that is under way has sent by now.
    pub fn note_sent_signals(&mut self) {
        let Some(ending) = &self.ending else { return };
        self.killed_by_us |= ending.sent_sigkill();
        if let Some(killing) = self.killing.as_mut().filter(|_| ending.reached_leader()) {
            killing.reached = true;
        }
    }

    /// By whom it was ended, once its leader has ended; `None` where it ended by itself.
    pub fn killed_by(&self) -> Option<&'static str> {
        let ended = Ended {
            status: self.status()?,
            at_ns: self.reaped_ns?,
            sigkill_sent: self.killed_by_us,
            tty: self.facts.tty,
        };
        killed_by(ended, self.killing).map(KilledBy::as_str)
    }
}
