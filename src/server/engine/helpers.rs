//! The two helper processes, log writer and guard, and their pipes in the poll: started, lost,
//! started again (architecture.md, The keeper).

use std::os::fd::RawFd;

use mio::Interest;

use super::contract::Families;
use super::watch::{KEEPER_ACKS, KEEPER_GUARD, KEEPER_LOG};
use super::{Engine, Owner};
use crate::server::session::SessionId;
use crate::sys::errno::errno_text;

/// What the poll tells of the helpers' pipes.
#[derive(Debug, Default)]
pub struct Helpers {
    /// The log writer has written acknowledgements.
    pub acks_ready: bool,
    /// Whether the poll is asked to tell when the log pipe becomes writable.
    log_watched: bool,
    /// Whether the poll is asked to tell when the guard pipe becomes writable.
    guard_watched: bool,
}

impl<F: Families> Engine<F> {
    /// Starts the helpers.
    pub(crate) fn start_helpers(&mut self) {
        if self.cx.config.keeper {
            self.start_writer(false);
            self.restart_guard();
        }
    }

    fn watch_writer(&mut self, (log, acks): (RawFd, RawFd)) {
        let watch = &self.cx.watch;
        let watched = watch
            .add(log, KEEPER_LOG, Interest::PRIORITY)
            .and_then(|()| watch.add(acks, KEEPER_ACKS, Interest::READABLE));
        if watched.is_err() {
            self.keeper_gone();
        }
        self.cx.lookout.borrow_mut().helpers = self.cx.keeper.helpers();
    }

    fn watch_guard(&mut self, guard: RawFd) {
        self.cx.lookout.borrow_mut().helpers = self.cx.keeper.helpers();
        if self.cx.watch.add(guard, KEEPER_GUARD, Interest::PRIORITY).is_err() {
            self.guard_gone();
        }
    }

    /// A deadline for the log writer has come: it may be started again.
    pub(crate) fn restart_writer(&mut self) {
        if self.cx.keeper.pid().is_none() && self.cx.closing.is_none() {
            self.start_writer(true);
            self.tell_all_facts();
        }
    }

    /// Starts a log writer and watches its pipes. Without one execd goes on: log trouble.
    fn start_writer(&mut self, again: bool) {
        match self.cx.keeper.start_writer(&self.launcher.spawner, again, self.cx.now_ns) {
            Ok(fds) => self.watch_writer(fds),
            Err(errno) => {
                self.cx.debug(format_args!("keeper: {}", errno_text(errno)));
                self.keeper_gone();
            }
        }
    }

    /// Starts a guard where there is none: at the start, and when a deadline for it has come, also
    /// while execd ends, for that takes its time.
    pub(crate) fn restart_guard(&mut self) {
        if self.cx.keeper.has_a_guard() {
            return;
        }
        match self.cx.keeper.start_guard(&self.launcher.spawner, self.cx.now_ns) {
            Ok(fd) => self.watch_guard(fd),
            Err(errno) => {
                self.cx.debug(format_args!("guard: {}", errno_text(errno)));
                self.guard_gone();
            }
        }
    }

    /// The guard is gone: started again when it may be, which mostly is in this turn, before any
    /// request is taken up.
    fn guard_gone(&mut self) {
        let due_ns = self.cx.keeper.guard_lost(self.cx.now_ns);
        self.helpers.guard_watched = false;
        self.cx.debug(format_args!("guard lost"));
        self.cx.deadlines.set(Owner::Guard, Some(due_ns));
    }

    /// Step: notices that the guard is gone.
    pub(crate) fn look_after_guard(&mut self) {
        if self.cx.keeper.guard_is_gone() {
            self.guard_gone();
        }
    }

    /// Asks the poll to tell when the log pipe has room, while it has none.
    pub(crate) fn watch_log_pipe(&mut self) {
        let full = self.cx.keeper.is_full();
        if let Some(fd) = self.cx.keeper.log_fd()
            && full != self.helpers.log_watched
        {
            let interest = if full { Interest::WRITABLE } else { Interest::PRIORITY };
            if self.cx.watch.change(fd, KEEPER_LOG, interest).is_ok() {
                self.helpers.log_watched = full;
            }
        }
    }

    /// Asks the poll to tell when the guard pipe has room, while records wait for it.
    pub(crate) fn watch_guard_pipe(&mut self) {
        if let Some((fd, waiting)) = self.cx.keeper.guard_fd()
            && waiting != self.helpers.guard_watched
        {
            let interest = if waiting { Interest::WRITABLE } else { Interest::PRIORITY };
            if self.cx.watch.change(fd, KEEPER_GUARD, interest).is_ok() {
                self.helpers.guard_watched = waiting;
            }
        }
    }

    /// The log writer is gone: started again when it may be.
    pub(crate) fn keeper_gone(&mut self) {
        // What it had acknowledged before its end still counts.
        let mut changed = Vec::new();
        self.cx.keeper.take_acks(&mut self.cx.reading.buffer, &mut changed);
        let due_ns = self.cx.keeper.lost(self.cx.now_ns);
        self.answer_pages();
        self.give_up_pages(true, "nobody can read it now: its keeper is gone");
        self.helpers.log_watched = false;
        self.cx.debug(format_args!("keeper lost"));
        self.cx.deadlines.set(Owner::Keeper, Some(due_ns));
        // Output that was held back for the log goes on; waits for the log are over.
        let ids: Vec<SessionId> = self.sessions.iter().map(|one| one.core.id).collect();
        for id in ids {
            self.log_moved(id);
        }
    }
}
