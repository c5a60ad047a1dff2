//! Signals that are passed on to the command in front, as it would get them without execd.

use std::os::fd::AsRawFd;

use crate::limits::{NEVER_ESCALATES_MS, NS_PER_MS};
use crate::pure::process::killed::KilledBy;
use crate::server::engine::Engine;
use crate::server::engine::contract::Families;
use crate::server::engine::ledger::kept::By;
use crate::server::session::{Session, SessionId};
use crate::sys::signals::{
    self, Came, SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGSTOP, SIGTERM, SIGTSTP, SIGWINCH,
};
use crate::sys::{doing, given, pidfd, proc, pty, terminal};

/// `execd run`: a Ctrl-C so soon after the last one asks for more than that one did.
const INTERRUPT_AGAIN_MS: u64 = 2_000;

/// The state of a process that a signal has stopped, as /proc has it.
const STOPPED: u8 = b'T';

/// Sends a signal to the command's leader. A refusal leaves the command as it is: so would kill(1).
fn signal_leader(core: &Session, signal: i32) {
    if let Some(leader) = &core.pidfd {
        let _ = pidfd::signal(leader.as_raw_fd(), core.facts.pid, signal);
    }
}

/// Sends a signal to the command: to the foreground process group of its own terminal, else to the
/// group that it leads; to the leader alone where its group is also that of execd and of whatever
/// else stands in the same pipeline of a shell.
fn signal_command(core: &Session, signal: i32) {
    if core.facts.joins.is_some() {
        return signal_leader(core, signal);
    }
    let master = core.output.fd().filter(|_| core.facts.tty);
    signals::signal_group(master.and_then(doing::foreground).unwrap_or(core.facts.pid), signal);
}

/// Gives the command's own terminal, where it has one, the size that ours has.
pub(super) fn resize(core: &Session) {
    let master = core.output.fd().filter(|_| core.facts.tty);
    if let (Some(master), Some(size)) = (master, pty::own_size()) {
        // The kernel tells the command; a terminal that is gone needs no size.
        let _ = pty::set_size(master, size);
    }
}

/// Whether our terminal, whose foreground process group the command is in too, has sent the signal
/// to the command already. A terminal that is gone tells the leader of its session alone.
fn has_got(core: &Session, came: Came) -> bool {
    let alone = came.number == SIGHUP && given::leads_session();
    core.facts.joins.is_some() && came.by_kernel && !alone
}

impl<F: Families> Engine<F> {
    /// Passes a signal on to the command in front. False: there is none that runs, and the signal
    /// is execd's own.
    pub(in crate::server::engine) fn pass_signal(&mut self, came: Came) -> bool {
        let (cx, signal) = (&mut self.cx, came.number);
        let Some(front) = &mut cx.front else { return false };
        let ends = [SIGTERM, SIGINT, SIGHUP].contains(&signal);
        let told_both = came.by_kernel && !front.feeds_terminal;
        if told_both && !front.keys.contains(&signal) {
            // The command may have died of it before execd has read it.
            front.keys.push(signal);
        }
        if cx.closing.is_some() {
            // What asks for no end does not hurry it either.
            return !ends;
        }
        let ignored = signals::is_ignored(signal);
        if ends && !ignored {
            // Also a command that ends by this may leave output that nobody takes.
            front.ask_to_end(signal);
        }
        let kept = front.spec.keeps_background;
        let entry = self.sessions.get_mut(front.session);
        let Some(entry) = entry.filter(|one| one.core.status().is_none()) else {
            if signal == SIGTSTP && kept {
                // The shell that waits for execd gets its terminal back.
                signals::stop_self();
            }
            // The command has ended, and its end is told in a moment, unless nobody takes its
            // output, or execd waits for what it has left: then the signal is execd's own.
            let stuck = cx.clients.stdin.is_stuck() || front.has_stuck_errors();
            return !ends || (!stuck && !kept) || (kept && ignored);
        };
        // Under nohup(1) say, or behind `&` of a shell.
        if ignored {
            return true;
        }
        let core = &mut entry.core;
        match signal {
            SIGINT => {
                let (count, last_ns) = front.interrupts;
                let again = cx.now_ns.saturating_sub(last_ns) <= INTERRUPT_AGAIN_MS * NS_PER_MS;
                let count = if again { count + 1 } else { 1 };
                front.interrupts = (count, cx.now_ns);
                let by = By::from(KilledBy::Shutdown);
                match count {
                    1 if has_got(core, came) => {}
                    1 => signal_command(core, SIGINT),
                    2 => cx.begin_ending(core, SIGTERM, NEVER_ESCALATES_MS, by),
                    _ => cx.begin_ending(core, SIGKILL, 0, by),
                }
            }
            // Who shares our terminal stops as it likes, and execd behind it: see front_stopped.
            SIGTSTP if core.facts.joins.is_some() => {
                if !has_got(core, came) {
                    signal_leader(core, SIGTSTP);
                }
            }
            SIGTSTP => {
                // Whoever leads a kernel session of its own is not stopped by SIGTSTP (setpgid(2)).
                signal_command(core, SIGSTOP);
                terminal::given_back(signals::stop_self);
                resize(core);
            }
            SIGWINCH if core.facts.tty => resize(core),
            SIGCONT => {
                // A shell that has let execd go on has told the command, where both are in one
                // group; and it has set the terminal as it likes it.
                terminal::take_again();
                let stopped = || proc::stat(core.facts.pid).is_some_and(|one| one.state == STOPPED);
                if core.facts.joins.is_none() || stopped() {
                    signal_command(core, SIGCONT);
                }
            }
            _ if has_got(core, came) => {}
            SIGHUP | SIGQUIT | SIGWINCH => signal_command(core, signal),
            _ => signal_leader(core, signal),
        }
        true
    }

    /// The leader of a session was stopped by `signal`. Where Ctrl-Z has stopped the command in
    /// front on our own terminal, execd stops too: the shell that waits for it goes on then. A stop
    /// by another signal is one that somebody means for the command alone, or has reached execd as
    /// well.
    pub(in crate::server::engine) fn front_stopped(&mut self, id: SessionId, signal: i32) {
        let ours = self.cx.front.as_ref().is_some_and(|front| front.session == id);
        let joins = || self.sessions.get(id).is_some_and(|one| one.core.facts.joins.is_some());
        if signal == SIGTSTP && ours && joins() {
            signals::stop_self();
        }
    }
}
