//! The guard's half of the link: telling which sessions to end when execd is killed
//! (architecture.md, The keeper).

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::KeeperLink;
use crate::keeper::frames::{
    GuardRecord, guard_add_around_sid, push_guard_add, push_guard_goodbye, push_guard_remove,
};
use crate::limits::GUARD_STAGING_BYTES;
use crate::server::session::SessionId;
use crate::sys::io::{self, Io};
use crate::sys::spawn::Announcement;

/// A running guard.
#[derive(Debug)]
pub(super) struct GuardProcess {
    /// None once it was reaped: its number may be another process's then.
    pub(super) pid: Option<i32>,
    pub(super) pipe: OwnedFd,
}

impl KeeperLink {
    /// What a leader is to tell the guard about itself, so that execd may be killed at any
    /// moment; `None` while records wait that must come before. The record's sid is the leader's
    /// to fill in.
    pub fn announcement(&self, record: GuardRecord) -> Option<Announcement> {
        let fd = self.guard.as_ref()?.pipe.as_raw_fd();
        let (head, tail) = guard_add_around_sid(record);
        self.guard_staging.is_empty().then_some(Announcement { fd, head, tail })
    }

    /// The leader `sid` has announced itself and then not started.
    pub fn withdraw(&mut self, sid: i32) {
        push_guard_remove(self.guard_staging.buffer(), sid);
        self.pump_guard();
    }

    /// Tells the guard of a session's leader, unless that has `announced` itself. Written at
    /// once: it must be there before the session is answered.
    pub fn guard_add(&mut self, record: GuardRecord, announced: bool) {
        self.guarded.insert(record.sid, record);
        if !announced && self.guard.is_some() {
            push_guard_add(self.guard_staging.buffer(), record);
            self.pump_guard();
        }
    }

    /// A leader could not announce itself after all: the guard is told now.
    pub fn guard_anew(&mut self, sid: i32) {
        if let Some(record) = self.guarded.get(&sid) {
            self.guard_add(*record, false);
        }
    }

    /// Tells the guard that nothing of this kernel session is left, unless a later session of
    /// ours has its number by now.
    pub fn guard_remove(&mut self, sid: i32, session: SessionId) {
        if self.guarded.get(&sid).is_some_and(|record| record.session == session) {
            self.guarded.remove(&sid);
            if self.guard.is_some() {
                self.withdraw(sid);
            }
        }
    }

    /// Writes guard records. A guard that lets too many of them wait (somebody has stopped it)
    /// counts as gone, and is replaced.
    pub fn pump_guard(&mut self) {
        let Some(guard) = &self.guard else { return self.guard_staging.clear() };
        while !self.guard_staging.is_empty() {
            match io::write(guard.pipe.as_raw_fd(), self.guard_staging.front()) {
                Io::Moved(bytes) => self.guard_staging.consume(bytes),
                Io::WouldBlock => {
                    self.guard_is_gone |= self.guard_staging.len() > GUARD_STAGING_BYTES;
                    return;
                }
                Io::Ended | Io::HungUp | Io::Failed(_) => {
                    self.guard_is_gone = true;
                    return self.guard_staging.clear();
                }
            }
        }
    }

    /// The poll has said that nobody reads the guard pipe any more.
    pub fn guard_hung_up(&mut self) {
        self.guard_is_gone = true;
    }

    /// A child of execd was reaped: it may have been the guard, or one that tidied up.
    pub fn note_reaped(&mut self, pid: i32) {
        self.others.remove(&pid);
        if let Some(guard) = self.guard.as_mut().filter(|guard| guard.pid == Some(pid)) {
            guard.pid = None;
            self.guard_is_gone = true;
        }
    }

    /// Whether the guard has died and was not started again.
    pub fn guard_is_gone(&self) -> bool {
        self.guard_is_gone && self.guard.is_some()
    }

    /// Whether there is a guard.
    pub fn has_a_guard(&self) -> bool {
        self.guard.is_some()
    }

    /// A clean end: what is left behind is left on purpose.
    pub fn goodbye(&mut self) {
        push_guard_goodbye(self.guard_staging.buffer());
        self.pump_guard();
        let mut touched = Vec::new();
        self.pump(&mut touched);
    }

    /// The guard pipe's descriptor, and whether records wait for room in it.
    pub fn guard_fd(&self) -> Option<(RawFd, bool)> {
        let guard = self.guard.as_ref()?;
        Some((guard.pipe.as_raw_fd(), !self.guard_staging.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::buffer::bound::Bounds;
    use crate::server::engine::keeper_link::{KeeperPlan, Place};

    /// Each session of a guard that did not read took its records' room for ever.
    /// rule: architecture.md, The keeper: A guard that does not read is replaced
    #[test]
    fn a_guard_that_does_not_read_counts_as_gone() {
        let (_reader, pipe) = io::pipe().unwrap();
        io::set_nonblocking(pipe.as_raw_fd()).unwrap();
        let (flags, place, envp, bounds) = (vec![], vec![], vec![], Bounds::default());
        let plan = KeeperPlan { flags, place, execd_pid: 1, envp, bounds, by_path: false };
        let mut link = KeeperLink::new(plan, Place::Off, None);
        link.guard = Some(GuardProcess { pid: None, pipe });
        let mut sessions = 0;
        while !link.guard_is_gone() {
            sessions += 1;
            let record = GuardRecord {
                sid: 7,
                start_ticks: 1,
                session: sessions,
                whole: false,
                ends_itself: false,
            };
            link.guard_add(record, false);
            link.guard_remove(7, sessions);
            assert!(link.guard_staging.len() <= GUARD_STAGING_BYTES + 64, "{sessions}");
        }
        assert!(sessions > 16_384, "a busy guard is not given up: {sessions}");
        link.guard_lost(0);
        assert!(!link.has_a_guard() && link.guard_staging.is_empty());
    }
}
