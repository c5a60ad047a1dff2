//! Signals that are passed on to the command in front, as it would get them without execd.

use std::os::fd::AsRawFd;

use crate::engine::Engine;
use crate::engine::contract::Families;
use crate::engine::ledger::kept::By;
use crate::limits::{INTERRUPT_AGAIN_MS, NEVER_ESCALATES_MS, NS_PER_MS};
use crate::pure::process::killed::KilledBy;
use crate::sys::signals::{
    self, SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGSTOP, SIGTERM, SIGTSTP, SIGWINCH,
};
use crate::sys::{doing, pidfd, pty};

impl<F: Families> Engine<F> {
    /// Passes a signal on to the command in front. False: there is none that runs, and the signal
    /// is execd's own.
    pub(in crate::engine) fn pass_signal(&mut self, signal: i32) -> bool {
        let cx = &mut self.cx;
        let Some(front) = &mut cx.front else { return false };
        let ends = [SIGTERM, SIGINT, SIGHUP].contains(&signal);
        if cx.closing.is_some() {
            // What asks for no end does not hurry it either.
            return !ends;
        }
        if ends && !signals::is_ignored(signal) {
            // Also a command that ends by this may leave output that nobody takes.
            front.ask_to_end(signal);
        }
        let entry = self.sessions.get_mut(front.session);
        let Some(entry) = entry.filter(|one| one.core.status().is_none()) else {
            // The command has ended, and its end is told in a moment, unless nobody takes its
            // output: then the signal is execd's own.
            let written = cx.clients.stdin.outbox.is_empty() && front.unsent_errors() == 0;
            return written || !ends;
        };
        // Under nohup(1) say, or behind `&` of a shell.
        if signals::is_ignored(signal) {
            return true;
        }
        let core = &mut entry.core;
        let master = core.output.fd().filter(|_| core.facts.tty);
        let group = master.and_then(doing::foreground).unwrap_or(core.facts.pid);
        match signal {
            SIGINT => {
                let (count, last_ns) = front.interrupts;
                let again = cx.now_ns.saturating_sub(last_ns) <= INTERRUPT_AGAIN_MS * NS_PER_MS;
                let count = if again { count + 1 } else { 1 };
                front.interrupts = (count, cx.now_ns);
                let by = By::from(KilledBy::Shutdown);
                match count {
                    1 => signals::signal_group(group, SIGINT),
                    2 => cx.begin_ending(core, SIGTERM, NEVER_ESCALATES_MS, by),
                    _ => cx.begin_ending(core, SIGKILL, 0, by),
                }
            }
            SIGTSTP => {
                // Whoever leads a kernel session of its own is not stopped by SIGTSTP (setpgid(2)).
                signals::signal_group(group, SIGSTOP);
                signals::stop_self();
            }
            SIGWINCH if master.is_some() => {
                if let (Some(master), Some(size)) = (master, pty::size_of(1)) {
                    // The kernel tells the command; a terminal that is gone needs no size.
                    let _ = pty::set_size(master, size);
                }
            }
            SIGCONT | SIGHUP | SIGQUIT | SIGWINCH => signals::signal_group(group, signal),
            _ => {
                if let Some(leader) = &core.pidfd {
                    // A refusal leaves the command as it is: so would kill(1).
                    let _ = pidfd::signal(leader.as_raw_fd(), signal);
                }
            }
        }
        true
    }
}
