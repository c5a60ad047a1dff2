//! The guard's half of the link: telling which sessions to end when execd is killed
//! (architecture.md, The keeper). The log writer is told too, with the next frames of log data.

use std::os::fd::{AsRawFd, RawFd};

use super::{Hand, KeeperLink};
use crate::keeper::frames::{
    GuardRecord, guard_add_around_sid, push_goodbye, push_guard_frame, push_guard_goodbye,
    push_guard_remove,
};
use crate::session::SessionId;
use crate::sys::io::{self, Io};
use crate::sys::spawn::Announcement;

/// The guard's pipe has records and nothing else.
pub(crate) fn put_bare(out: &mut Vec<u8>, record: &[u8]) {
    out.extend_from_slice(record);
}

impl KeeperLink {
    /// What a leader is to tell the guard about itself, so that execd may be killed at any
    /// moment; `None` while records wait that must come before. The record's sid is the leader's
    /// to fill in.
    pub fn announcement(&self, record: GuardRecord) -> Option<Announcement> {
        let fd = self.guard.as_ref()?.as_raw_fd();
        let (head, tail) = guard_add_around_sid(record);
        let waits = !self.guard_staging.is_empty() || self.guard_told.is_behind();
        (!waits).then_some(Announcement { fd, head, tail })
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
        self.tell_writer(record.sid);
        if announced {
            self.guard_told.knows(record);
        }
        self.tell_guard(record.sid);
    }

    /// Tells the guard that nothing of this kernel session is left, unless a later session of
    /// ours has its number by now.
    pub fn guard_remove(&mut self, sid: i32, session: SessionId) {
        if self.guarded.get(&sid).is_some_and(|record| record.session == session) {
            self.guarded.remove(&sid);
            self.tell_writer(sid);
            self.tell_guard(sid);
        }
    }

    fn tell_writer(&mut self, sid: i32) {
        if let Hand::Process(Some(_)) = &self.hand {
            self.writer_told.change(sid, &self.guarded, &mut self.staging, push_guard_frame);
        }
    }

    fn tell_guard(&mut self, sid: i32) {
        if self.guard.is_some() {
            self.guard_told.change(sid, &self.guarded, &mut self.guard_staging, put_bare);
            self.pump_guard();
        }
    }

    /// Writes guard records.
    pub fn pump_guard(&mut self) {
        let Some(guard) = &self.guard else { return self.guard_staging.clear() };
        loop {
            self.guard_told.catch_up(&self.guarded, &mut self.guard_staging, put_bare);
            if self.guard_staging.is_empty() {
                return;
            }
            match io::write(guard.as_raw_fd(), self.guard_staging.front()) {
                Io::Moved(bytes) => self.guard_staging.consume(bytes),
                Io::WouldBlock => return,
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
        push_goodbye(self.staging.buffer());
        push_guard_goodbye(self.guard_staging.buffer());
        self.pump_guard();
        let mut touched = Vec::new();
        self.pump(&mut touched);
    }

    /// The guard pipe's descriptor, and whether records wait for room in it.
    pub fn guard_fd(&self) -> Option<(RawFd, bool)> {
        let guard = self.guard.as_ref()?;
        Some((guard.as_raw_fd(), !self.guard_staging.is_empty()))
    }
}
