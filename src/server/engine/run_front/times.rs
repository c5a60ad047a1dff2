//! The time that the command in front may take, with and without output.

use super::TimedOut;
use crate::limits::{KILL_GIVE_UP_MS, NS_PER_MS};
use crate::pure::process::killed::KilledBy;
use crate::server::engine::closing::Cause;
use crate::server::engine::contract::Families;
use crate::server::engine::ledger::kept::By;
use crate::server::engine::{Engine, Owner};

use super::steps::EXIT_TIMEOUT;

impl<F: Families> Engine<F> {
    /// Ends the command in front where its time is over; else says when to look again.
    pub(in crate::server::engine) fn front_is_due(&mut self) {
        let cx = &mut self.cx;
        let (Some(front), None) = (&mut cx.front, &cx.closing) else { return };
        if front.timed_out.is_some() {
            // Not even SIGKILL has ended it: nobody waits for that without end.
            self.close(Cause::Ran(EXIT_TIMEOUT), None);
            return;
        }
        let kept = front.kept.is_some();
        let entry = self.sessions.get_mut(front.session);
        let mut core = entry.map(|entry| &mut entry.core).filter(|core| core.status().is_none());
        if core.is_none() && !kept {
            return;
        }
        let times = front.spec.times;
        let after = |since_ns: u64, ms: u64| since_ns.saturating_add(ms.saturating_mul(NS_PER_MS));
        let all = times.timeout_ms.map(|ms| (after(front.began_ns, ms), TimedOut::Timeout));
        let written_ns = core.as_ref().map_or(0, |core| core.output_ns).max(front.began_ns);
        // What is left in the background may be silent for as long as it likes.
        let idle =
            times.idle_ms.filter(|_| !kept).map(|ms| (after(written_ns, ms), TimedOut::Idle));
        let first = all.into_iter().chain(idle).min_by_key(|(due_ns, _)| *due_ns);
        let Some((due_ns, why)) = first else { return };
        if due_ns > cx.now_ns {
            cx.deadlines.set(Owner::Front, Some(due_ns));
            return;
        }
        front.timed_out = Some(why);
        let Some(core) = &mut core else {
            self.close(Cause::Ran(EXIT_TIMEOUT), None);
            return;
        };
        let give_up_ms = times.kill_after_ms.saturating_add(KILL_GIVE_UP_MS);
        cx.deadlines.set(Owner::Front, Some(after(cx.now_ns, give_up_ms)));
        let by = By::from(KilledBy::Timeout);
        cx.begin_ending(core, times.signal, times.kill_after_ms, by);
    }

    /// What has ended the command in front, where its time was over.
    pub fn front_timed_out(&self) -> Option<TimedOut> {
        self.cx.front.as_ref().and_then(|front| front.timed_out)
    }
}
