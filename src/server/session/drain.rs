//! A session after its shell's end while others hold its output: what is waited for before the end
//! is told, and what comes later still.

use super::Session;
use super::census::Lookout;
use super::holders::Holders;
use super::output::{Output, Source};
use crate::limits::{NS_PER_MS, POST_EXIT_CLOSE_WAIT_MS};
use crate::pure::time::drain::{Drain, Step};
use crate::server::session::members::Number;
use crate::sys::proc_work;

/// The time after a shell's end.
#[derive(Debug)]
pub struct Draining {
    times: Drain,
    holders: Holders,
    /// A look is under way, by a census of this turn or a later one.
    asked: Option<u64>,
    /// What had come when the output was left to others; None while answers wait for it.
    left: Option<Came>,
}

/// How much output has come, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    whole: u64,
    stdout: u64,
    stderr: u64,
}

impl Came {
    /// The bytes of one stream, or of both.
    pub fn of(&self, source: Option<Source>) -> u64 {
        match source {
            None => self.whole,
            Some(Source::Output) => self.stdout,
            Some(Source::Errors) => self.stderr,
        }
    }
}

impl Draining {
    /// Of a session whose shell ended at `ended_ns`.
    pub fn new(ended_ns: u64) -> Self {
        let (times, holders) = (Drain::new(ended_ns), Holders::default());
        Self { times, holders, asked: None, left: None }
    }
}

impl Session {
    /// Output has come, which tells that more of it may come.
    pub fn note_output(&mut self, now_ns: u64) {
        if let Some(draining) = &mut self.draining {
            draining.times.output(now_ns);
        }
    }

    /// The next step after the shell's end, where one is due. True: a look at the holders is under
    /// way and goes on in the next turn.
    pub fn step_drain(&mut self, now_ns: u64, lookout: &mut Lookout) -> bool {
        let may = self.may_drain();
        let Some(draining) = self.draining.as_mut().filter(|_| may) else { return false };
        if draining.asked.is_none() && draining.times.step(now_ns) == Step::Look {
            draining.asked = Some(lookout.turn());
        }
        if let Some(turn) = draining.asked {
            let Some(busy) = self.look_at_holders(turn, lookout) else { return true };
            let Some(draining) = &mut self.draining else { return false };
            draining.asked = None;
            draining.times.looked(now_ns, busy);
        }
        if self.draining.as_ref().is_some_and(|one| one.times.over()) {
            self.leave_to_holders();
        }
        false
    }

    /// Whether a holder has worked since the last look. None: the look goes on in the next turn.
    fn look_at_holders(&mut self, turn: u64, lookout: &mut Lookout) -> Option<bool> {
        if !lookout.may_look() {
            return None;
        }
        let draining = self.draining.as_mut()?;
        if draining.holders.have_worked() {
            return Some(true);
        }
        // Who has left the session holds the output alone: only what he writes is waited for.
        if self.number.now(self.facts.pid) == Number::Free {
            return Some(false);
        }
        let outputs = self.output_pipes();
        let draining = self.draining.as_mut()?;
        match lookout.since(turn) {
            Ok(census) => Some(draining.holders.find(census?, self.facts.pid, &outputs)),
            // Whoever cannot be looked at now may be working.
            Err(_) => Some(true),
        }
    }

    /// Nothing that others still write is waited for: it is told later.
    pub fn leave_to_holders(&mut self) {
        let came = self.came();
        if let Some(draining) = &mut self.draining {
            draining.times.give_up();
            draining.asked = None;
            draining.left.get_or_insert(came);
        }
    }

    fn came(&self) -> Came {
        let whole = self.output_bytes_total();
        Came { whole, stdout: whole - self.errors_total, stderr: self.errors_total }
    }

    /// While reading is held up, who holds the output can't be told.
    fn may_drain(&self) -> bool {
        let held = self.errors.as_ref().is_some_and(Output::is_held);
        self.life.shell_gone() && !self.output.is_held() && !held
    }

    /// The pipes that its output is read from.
    pub(super) fn output_pipes(&self) -> Vec<u64> {
        let fds = [self.output.fd(), self.errors.as_ref().and_then(Output::fd)];
        fds.into_iter().flatten().filter_map(proc_work::own_pipe).collect()
    }

    /// When something is to be done after the shell's end; a look that is under way goes on by
    /// itself.
    pub fn drain_due_ns(&self) -> Option<u64> {
        let draining = self.draining.as_ref().filter(|one| one.asked.is_none())?;
        draining.times.due_ns().filter(|_| self.may_drain())
    }

    /// When the waits of unified-exec that saw the shell end give up on the output that others
    /// hold.
    pub fn shell_grace_ends_ns(&self) -> Option<u64> {
        let gone_ns = self.reaped_ns.filter(|_| self.may_drain())?;
        Some(gone_ns + POST_EXIT_CLOSE_WAIT_MS * NS_PER_MS)
    }

    /// Whether its shell has ended, others hold the output, and an answer that tells the end does
    /// not wait for them any more.
    pub fn is_left_to_holders(&self, now_ns: u64) -> bool {
        let left = match &self.draining {
            Some(draining) => draining.times.over(),
            None => self.shell_grace_ends_ns().is_some_and(|at| at <= now_ns),
        };
        left && self.life.shell_gone()
    }

    /// Whether an answer may tell its end: it has ended, or its shell has and the output is left to
    /// others.
    pub fn is_over(&self, now_ns: u64) -> bool {
        self.life.finished() || self.is_left_to_holders(now_ns)
    }

    /// What had come when its output was left to others, where it was.
    pub fn left_at(&self) -> Option<Came> {
        self.draining.as_ref().and_then(|draining| draining.left)
    }

    /// Whether output came after that.
    pub fn has_late_output(&self) -> bool {
        self.left_at().is_some_and(|left| self.output_bytes_total() > left.whole)
    }
}
