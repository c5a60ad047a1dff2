//! When a session is to be looked at although nothing happens to it, and why its waits are over.

use super::Session;
use super::ending::Ending;
use super::wait::{Moment, Wait, WaitKind, Why};
use crate::limits::{LOG_ACK_WAIT_MS, NS_PER_MS};

impl Session {
    /// When something about this session has to be looked at next if nothing else happens,
    /// on the monotonic clock. Waits that are held back for want of room for their answers have
    /// no deadline: room is an event. `of_family`: when the family wants the session judged.
    pub fn next_due_ns(&self, of_family: Option<u64>) -> Option<u64> {
        let log_wait_ns = LOG_ACK_WAIT_MS * NS_PER_MS;
        let mut due = [self.grace_ends_ns(), self.ending.as_ref().and_then(Ending::next_due_ns)]
            .into_iter()
            .flatten()
            .min();
        let mut also = |at: Option<u64>| due = due.into_iter().chain(at).min();
        also(self.drain_due_ns());
        also(self.doing_due_ns());
        also(of_family);
        also(self.viewers.jiggle_ends_ns());
        also(self.ports.as_ref().and_then(|look| look.rests_due_ns()));
        if self.awaits_log && self.waits.iter().all(|wait| wait.parked) {
            also(self.finished_ns.map(|ended| ended + log_wait_ns));
        }
        for wait in self.waits.iter().filter(|wait| !wait.held_back) {
            if let Some(since) = wait.held_since_ns {
                // This wait has its verdict, and the waits behind it are not answered before it:
                // only the log's time counts.
                also(Some(since + log_wait_ns));
                break;
            }
            also(wait.due_ns);
            if wait.parked {
                continue;
            }
            also(wait.look_ns);
            let drains = self.draining.is_some() && wait.drains;
            if wait.ends_with_shell() && wait.kind != WaitKind::Kill && !drains {
                also(self.shell_grace_ends_ns());
            }
            if self.finished_ns.is_none() {
                also(wait.progress_due_ns(self.output_bytes_total()));
            }
        }
        due
    }

    /// Why a wait for the session is over; `None` while the wait goes on. The wait of a kill is for
    /// the end of all members, not of the leader, also while execd ends.
    pub fn verdict(&self, wait: &Wait, at: &Moment) -> Option<Why> {
        if wait.kind != WaitKind::Kill || wait.cancelled {
            return wait.verdict(at);
        }
        let over = self.ending.as_ref().is_none_or(Ending::over);
        let gone = self.ending.as_ref().is_none_or(Ending::all_gone);
        if over && (self.life.finished() || !gone) {
            return Some(if gone { Why::Completed } else { Why::Deadline });
        }
        wait.due_ns.is_some_and(|due| due <= at.now_ns).then_some(Why::Deadline)
    }

    /// When the earliest wall-clock wait is over, in milliseconds since 1970.
    pub fn next_wall_due_ms(&self) -> Option<i64> {
        let open = |wait: &&Wait| !wait.held_back && wait.held_since_ns.is_none();
        let waits = self.waits.iter().filter(open);
        waits.filter_map(|wait| wait.until.as_ref()).map(|until| until.wall_ms).min()
    }
}
