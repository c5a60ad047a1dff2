//! What waits are for besides their time and the exit: looked at each time a session is judged,
//! before its waits are (waits.md). A condition that comes true leaves its [`Outcome`] in the wait;
//! the verdict follows from that. A session is judged for a condition when output matched, or when
//! a look is due that the condition asked for.

use super::contract::Families;
use super::contract::cx::Cx;
use super::ports;
use crate::config::{Config, OnImpossible};
use crate::limits::{NS_PER_MS, QUIET_MS};
use crate::pure::process::life::Stream;
use crate::server::session::Session;
use crate::server::session::asked::{Conditions, Outcome};
use crate::server::session::idle::{Step, Used};
use crate::server::session::wait::Wait;
use crate::sys::tree::{self, Orphans};
use crate::sys::{proc, proc_work};
use crate::wire::{Reason, RpcError};

/// Waits of one session that look for patterns: each byte of output is looked at by all of them.
const TEXT_WAITS_MAX: usize = 16;

/// Members that outlive their session are looked at again after this, where no end of an orphan has
/// told before that they are gone.
const MEMBERS_LOOK_MS: u64 = 500;

/// Whether a wait that nothing but input can end any more is answered then, as its call says,
/// or else as the settings say.
pub fn answers_impossible(given: Option<&str>, config: &Config) -> bool {
    given.map_or(config.on_impossible == OnImpossible::Answer, |word| word == "answer")
}

/// Refuses conditions with patterns where a session has as many waits already that look for some.
pub fn check_room(core: &Session, (until, stop): &Conditions) -> Result<(), RpcError> {
    let looks = until.iter().chain(stop).any(|one| one.has_patterns());
    let waits = core.waits.iter().filter(|wait| wait.looks_for_text()).count();
    if looks && waits >= TEXT_WAITS_MAX {
        let id = core.id;
        let message =
            format!("{waits} calls wait for text of session {id}: await or cancel some first");
        return Err(RpcError::failed(Reason::TooManyRequests, message));
    }
    Ok(())
}

/// Looks at the conditions of a session's waits.
pub fn step<F: Families>(core: &mut Session, cx: &mut Cx<F>) {
    ports::read_rests(core, cx);
    if core.waits.is_empty() {
        return;
    }
    let mut waits = std::mem::take(&mut core.waits);
    for wait in &mut waits {
        wait.look_ns = None;
        if wait.wants_look() {
            look_at_text(core, wait, cx.now_ns);
        }
        if wait.wants_look() {
            look_at_members(core, wait, cx);
        }
        if wait.wants_look() && !core.life.finished() {
            look_at_idle(core, wait, cx);
        }
        if wait.outcome.is_some() {
            wait.look_ns = None;
        }
    }
    ports::step(core, &mut waits, cx);
    core.waits = waits;
}

/// Whether a pattern matched. The end of an unfinished line is told by quiet, or by the end of the
/// output.
fn look_at_text(core: &Session, wait: &mut Wait, now_ns: u64) {
    let Some(asked) = &mut wait.asked else { return };
    let Some(text) = &mut asked.text else { return };
    if text.hit().is_none() && asked.catching_up {
        return;
    }
    if text.hit().is_none() && core.life.stream == Stream::Ended {
        text.end();
    }
    asked.quiet_asked = text.hit().is_none() && text.wants_quiet();
    if asked.quiet_asked {
        let quiet_ns = core.output_ns + QUIET_MS * NS_PER_MS;
        if quiet_ns > now_ns {
            return wait.look_at(quiet_ns);
        }
        text.quiet();
        asked.quiet_asked = false;
    }
    if let Some(hit) = text.hit() {
        wait.outcome = Some(Box::new(Outcome::of_hit(hit, wait.began_total)));
    }
}

/// Whether everything of a session has gone whose leader has.
fn look_at_members<F: Families>(core: &Session, wait: &mut Wait, cx: &Cx<F>) {
    let Some(asked) = &mut wait.asked else { return };
    let Some(by_stop) = asked.awaits_members() else { return };
    if core.status().is_none() {
        return;
    }
    let members = cx.members_of(core);
    let ours = |sid: i32| cx.leaders.contains_key(&sid);
    if members.is_gone(&mut cx.lookout.borrow_mut(), &ours) {
        let present_at_entry = wait.since_ns == cx.now_ns;
        let outcome = Outcome { present_at_entry, ..Outcome::came_true("tree_exit", by_stop) };
        wait.outcome = Some(Box::new(outcome));
        return;
    }
    if core.life.finished() && wait.due_ns.is_some_and(|due| due <= cx.now_ns) {
        asked.left = Some(cx.living(&members).len()).filter(|left| *left > 0);
    }
    wait.look_at(cx.now_ns + MEMBERS_LOOK_MS * NS_PER_MS);
}

/// Whether a session has been idle for as long as was asked.
fn look_at_idle<F: Families>(core: &Session, wait: &mut Wait, cx: &Cx<F>) {
    let Some(asked) = &mut wait.asked else { return };
    let mut due_ns: Option<u64> = None;
    for idle in &mut asked.idle {
        match idle.step(cx.now_ns, core.output_ns, || cpu_times(core, cx)) {
            Step::Idle => {
                let outcome = Outcome::came_true("idle_ms", idle.by_stop);
                wait.outcome = Some(Box::new(outcome));
                return;
            }
            Step::At(at_ns) => due_ns = due_ns.into_iter().chain([at_ns]).min(),
        }
    }
    if let Some(at_ns) = due_ns {
        wait.look_at(at_ns);
    }
}

/// The CPU time that each process of a session has used; None where it can't be told of all, and
/// where one has work to do: on a busy machine it may not have come to use any time.
fn cpu_times<F: Families>(core: &Session, cx: &Cx<F>) -> Option<Vec<Used>> {
    let orphans = Orphans::read(|pid| cx.leaders.contains_key(&pid));
    let found = tree::walk(core.facts.pid, core.status().is_none(), &orphans);
    let used = |pid: &i32| (*pid, proc_work::cpu_ns(*pid));
    let rests = !found.pids.iter().any(|pid| proc::has_work(*pid));
    (found.complete && rests).then(|| found.pids.iter().map(used).collect())
}
