//! By whom a session is ended, as far as the session itself knows (protocol.md, killed_by).

use super::{ClientId, Session};
use crate::limits::NEVER_ESCALATES_MS;
use crate::pure::process::killed::{Ended, KilledBy, Killing, killed_by};
use crate::server::session::ending::SIGKILL;

/// What the ledger of events has been told of a session, and what its end will be told by.
#[derive(Debug, Default)]
pub struct Noted {
    /// Its end.
    pub end: bool,
    /// That answers may tell its end before that is an event.
    pub may_be_early: bool,
    /// The last trouble of its log.
    pub log_trouble: Option<String>,
    /// That its log has lost its beginning.
    pub log_trimmed: bool,
    /// The family that started it; `None` of a helper of execd's own, of which nobody is told.
    pub family: Option<&'static str>,
    /// Who asked for its end while its leader ran.
    killing: Option<Killing>,
    /// The client that asked for the end that is told as the reason, where one did.
    pub killer: Option<ClientId>,
}

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
        let news = sure && self.noted.killing.is_none_or(|first| !first.sure);
        self.noted.killing = Some(Killing::or_later(self.noted.killing, later));
        news
    }

    /// Notes what the end that is under way has sent by now.
    pub fn note_sent_signals(&mut self) {
        let Some(ending) = &self.ending else { return };
        self.killed_by_us |= ending.sent_sigkill();
        if let Some(killing) = self.noted.killing.as_mut().filter(|_| ending.reached_leader()) {
            killing.reached = true;
        }
    }

    /// By whom it is being ended, while its leader may run.
    pub fn is_killed_by(&self) -> Option<&'static str> {
        self.noted.killing.filter(|one| one.sure).map(|one| one.by.as_str())
    }

    /// By whom it was ended, once its leader has ended; `None` where it ended by itself.
    pub fn killed_by(&self) -> Option<&'static str> {
        let ended = Ended {
            status: self.status()?,
            at_ns: self.reaped_ns?,
            sigkill_sent: self.killed_by_us,
            tty: self.facts.tty,
        };
        killed_by(ended, self.noted.killing).map(KilledBy::as_str)
    }
}
