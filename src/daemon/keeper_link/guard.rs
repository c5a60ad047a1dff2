//! The guard's half of the link: telling the keeper which sessions to end when execd is killed
//! (architecture.md, 6b).

use std::os::fd::{AsRawFd, RawFd};

use super::{Hand, KeeperLink};
use crate::keeper::frames::{
    GuardRecord, guard_add_around_sid, push_goodbye, push_guard_add, push_guard_goodbye,
    push_guard_remove,
};
use crate::session::SessionId;
use crate::sys::io::{self, Io};
use crate::sys::spawn::Announcement;

impl KeeperLink {
    /// What a leader is to tell the guard about itself, so that execd may be killed at any
    /// moment; `None` while records wait that must come before.
    pub fn announcement(&self, session: SessionId, start_ticks: u64) -> Option<Announcement> {
        let Hand::Process(Some(keeper)) = &self.hand else { return None };
        let (head, tail) = guard_add_around_sid(start_ticks, session);
        let fd = keeper.guard.as_raw_fd();
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
        if announced {
            return;
        }
        push_guard_add(self.guard_staging.buffer(), record);
        self.pump_guard();
    }

    /// Tells the guard that nothing of this kernel session is left.
    pub fn guard_remove(&mut self, sid: i32) {
        if self.guarded.remove(&sid).is_some() {
            push_guard_remove(self.guard_staging.buffer(), sid);
            self.pump_guard();
        }
    }

    /// Writes guard records; the pipe is only full when the keeper is stuck in its disk.
    pub fn pump_guard(&mut self) {
        let Hand::Process(Some(keeper)) = &self.hand else {
            self.guard_staging.clear();
            return;
        };
        while !self.guard_staging.is_empty() {
            match io::write(keeper.guard.as_raw_fd(), self.guard_staging.front()) {
                Io::Moved(bytes) => self.guard_staging.consume(bytes),
                _ => break,
            }
        }
    }

    /// A clean end: what is left behind is left on purpose.
    pub fn goodbye(&mut self) {
        push_goodbye(self.staging.buffer());
        push_guard_goodbye(self.guard_staging.buffer());
        self.pump_guard();
        let mut touched = Vec::new();
        self.pump(&mut touched);
    }

    /// The guard pipe's descriptor, and whether records wait for room in it.
    pub fn guard_fd(&self) -> Option<(RawFd, bool)> {
        match &self.hand {
            Hand::Process(Some(keeper)) => {
                Some((keeper.guard.as_raw_fd(), !self.guard_staging.is_empty()))
            }
            _ => None,
        }
    }
}
