//! Children that are started apart, because their directory or their program may lie on a file
//! system that does not answer. They are sessions like all others from the moment they have a
//! process: only who asked for one waits, as long as he asked for, and it can be ended.

use std::path::Path;

use super::Daemon;
use super::launch::spawn_failure;
use super::logs::LogStatus;
use crate::session::SessionId;

impl Daemon {
    /// The leader of a session has told something of its way to its program, or has ended.
    pub(crate) fn look_at_start(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(failure) = session.start.look() else { return };
        let why = spawn_failure(&session.start.program, Path::new(&session.facts.cwd), failure);
        session.start.fail(why);
        // Its end follows.
        self.touch(id);
    }

    /// What replies say of a session's log, with what went wrong with the session itself.
    pub(crate) fn log_status(&self, id: SessionId) -> Option<LogStatus> {
        let log = self.keeper.status(id);
        let session = self.sessions.get(&id);
        let Some(trouble) = session.and_then(|session| session.trouble()) else { return log };
        let mut log = log.unwrap_or(LogStatus { complete: true, ..LogStatus::default() });
        log.failure = Some(match log.failure {
            Some(failure) => format!("{trouble}; {failure}"),
            None => trouble,
        });
        Some(log)
    }
}
