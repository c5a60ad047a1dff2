//! Members that outlive their sessions: looked for, listed, taken back to be ended. What ends them
//! is `session/ending.rs`, as for members of sessions that go on.

use super::{Leftover, Sessions};
use crate::limits::NAMED_PROCESSES;
use crate::server::engine::contract::Families;
use crate::server::engine::contract::cx::Cx;
use crate::server::session::SessionId;
use crate::server::session::members::Number;
use crate::server::session::report::NamedProcess;
use crate::sys::proc_view;

impl<F: Families> Sessions<F> {
    /// Step, after the replies: looks whether members of sessions that are over run on, and
    /// whether those known to do so still do. That costs a question a session and no look at all
    /// processes, but with --kill-detached.
    pub fn look_after_members(&mut self, cx: &mut Cx<F>) {
        if std::mem::take(&mut self.outlived.recheck) {
            self.recheck_numbers(cx);
            let gone =
                self.outlived.left.extract_if(.., |_, left| is_gone(left, cx)).collect::<Vec<_>>();
            for (_, left) in gone {
                cx.keeper.guard_remove(left.members.sid, left.id);
            }
        }
        while let Some(over) = self.outlived.over.pop_front() {
            if is_gone(&over, cx) {
                cx.keeper.guard_remove(over.members.sid, over.id);
            } else {
                cx.debug(format_args!("session {}: members run on", over.id));
                self.outlived.left.insert(over.id, over);
            }
        }
    }

    /// An orphan was reaped: it may have been the last who had a session's number, which is then
    /// anybody's.
    fn recheck_numbers(&mut self, cx: &mut Cx<F>) {
        let mut headless = std::mem::take(&mut self.outlived.headless);
        headless.retain(|id| {
            if let Some(left) = self.outlived.left.get_mut(id) {
                left.members.number = left.members.number.now(left.members.sid);
                left.entry.core.number = left.members.number;
                return left.members.number == Number::Inherited;
            }
            let Some(entry) = self.by_id.get_mut(id) else { return false };
            let core = &mut entry.core;
            core.number = core.number.now(core.facts.pid);
            if core.number == Number::Free {
                // A wait may be for the end of all members.
                cx.touch(core);
            }
            if core.number == Number::Free {
                cx.keeper.guard_remove(core.facts.pid, *id);
            }
            core.number == Number::Inherited
        });
        self.outlived.headless = headless;
    }

    /// What is left of sessions that are over: each with its living members.
    pub fn left_members(&mut self, cx: &mut Cx<F>) -> Vec<(SessionId, NamedProcess)> {
        self.outlived.recheck = !self.outlived.left.is_empty();
        self.look_after_members(cx);
        let mut left: Vec<(SessionId, NamedProcess)> = Vec::new();
        for one in self.outlived.left.values() {
            let members = cx.living(&one.members).into_iter().take(NAMED_PROCESSES);
            left.extend(members.map(|member| (one.id, NamedProcess::of(&member))));
        }
        left
    }

    /// The members that outlived a session are to be ended under its old id: what is known of
    /// the session comes back for that. Whether there were any that live.
    pub fn readopt_left(&mut self, id: SessionId, cx: &mut Cx<F>) -> bool {
        self.look_after_members(cx);
        // Who has ended and is not reaped yet has the number still.
        let lives = |left: &Leftover<F>| {
            let unknown = left.members.takes_detached || !proc_view::tells();
            unknown || !cx.living(&left.members).is_empty()
        };
        if !self.outlived.left.get(&id).is_some_and(lives) {
            return false;
        }
        let left = self.outlived.left.remove(&id);
        left.is_some_and(|left| {
            self.put(left.entry);
            true
        })
    }
}

/// Whether nobody of those that outlived a session lives.
fn is_gone<F: Families>(left: &Leftover<F>, cx: &Cx<F>) -> bool {
    let ours = |sid: i32| cx.leaders.contains_key(&sid);
    left.members.is_gone(&mut cx.lookout.borrow_mut(), &ours)
}
