//! What a session's state leads to: the way into the table, the way to its end, answers to its
//! waits, progress, the word of its exit (architecture.md, The contract). Only sessions that
//! something happened to are judged. A session is out of the table while it is judged, and goes
//! back, or is forgotten, at the end. When a wait is over and what its answer says is left to the
//! families.

use mio::Interest;
use std::collections::BTreeSet;

use super::Engine;
use super::conditions;
use super::contract::Families;
use super::contract::cx::{Cx, Effect};
use super::sessions::Entry;
use super::streams;
use super::watch::{Port, token_of};
use crate::limits::{
    DOING_FRESH_MS, LOG_ACK_WAIT_MS, NEVER_ESCALATES_MS, NS_PER_MS, POST_EXIT_CLOSE_WAIT_MS,
};
use crate::pure::process::killed::KilledBy;
use crate::pure::process::life::{ExitStatus, Fact};
use crate::pure::process::signal_names::signal_name;
use crate::server::session::ending::SIGKILL;
use crate::server::session::output::{Hold, Source};
use crate::server::session::wait::{Moment, Wait, WaitKind, Why};
use crate::server::session::{Listing, Session, SessionId};

/// Sessions judged in one turn.
const JUDGED_PER_TURN: usize = 128;

/// Unread output that replies are made from in one turn; the reply that reaches it is the last.
const TEXT_TURN_BYTES: usize = 1024 * 1024;

/// An exit status as the two fields that exclude each other.
pub fn status_fields(status: Option<ExitStatus>) -> (Option<i32>, Option<String>) {
    match status {
        Some(ExitStatus::Code(code)) => (Some(code), None),
        Some(ExitStatus::Signal(signal)) => (None, Some(signal_name(signal))),
        None => (None, None),
    }
}

impl<F: Families> Engine<F> {
    /// Step: judges the sessions that something happened to. Judging one may touch another (an
    /// eviction), never without bound: each is on the list once. Making clean text costs more
    /// than all else here, so it is bounded too; who is left is judged in the next turn.
    pub(super) fn judge_sessions(&mut self) {
        let mut seen = BTreeSet::new();
        let mut again = Vec::new();
        let mut told_bytes = 0;
        while told_bytes < TEXT_TURN_BYTES
            && seen.len() < JUDGED_PER_TURN
            && let Some(id) = self.cx.queues.touched.pop_front()
        {
            if !seen.insert(id) {
                // Touched again by its own judgement: next turn.
                again.push(id);
                continue;
            }
            self.judge(id);
            told_bytes += std::mem::take(&mut self.cx.text_bytes);
        }
        self.cx.queues.touched.extend(again);
        F::go_on(self);
    }

    fn judge(&mut self, id: SessionId) {
        if let Some(mut entry) = self.sessions.take(id) {
            entry.core.touched = false;
            self.judge_entry(&mut entry);
            self.sessions.put_or_forget(entry, &mut self.cx);
            for effect in std::mem::take(&mut self.cx.effects) {
                match effect {
                    Effect::Close(cause) => self.close(cause, None),
                    Effect::FollowFront => self.follow_front(),
                    other => self.sessions.apply(other, &mut self.cx),
                }
            }
            self.sessions.keep_to_cap(&mut self.cx);
        }
        self.arm_session(id);
    }

    fn judge_entry(&mut self, entry: &mut Entry<F>) {
        let cx = &mut self.cx;
        step_ending(&mut entry.core, cx);
        leave_detached_holders(entry, cx);
        let core = &mut entry.core;
        // A session that has outlived its first 150 ms enters the table.
        if core.grace_ends_ns().is_some_and(|at| at <= cx.now_ns) {
            self.sessions.register(core, cx);
        }
        if core.step_drain(cx.now_ns, &mut cx.lookout.borrow_mut()) {
            cx.touch(core);
        }
        kill_what_is_late(core, cx);
        conditions::step(core, cx);
        look_at_processes(core, cx);
        cx.tell_passwords(core);
        cx.tell_facts(core, entry.family.family_name());
        // A family sees what has come true.
        entry.family.step(core, cx);
        cx.note_end(core, entry.family.family_name());
        cx.send_progress(core, &entry.family);
        self.answer_waits(entry);
        entry.family.settle(&mut entry.core, &mut self.cx);
        self.conclude(entry);
    }

    /// Answers the waits that are over, oldest first.
    fn answer_waits(&mut self, entry: &mut Entry<F>) {
        let mut at = 0;
        while let Some(wait) = entry.core.waits.get(at) {
            let cx = &mut self.cx;
            let Some(why) = verdict(entry, wait, cx) else {
                // A verdict may be withdrawn: the wall clock was set back.
                let wait = &mut entry.core.waits[at];
                (wait.held_since_ns, wait.held_back) = (None, false);
                at += 1;
                continue;
            };
            let room = cx.has_room_for(wait);
            let wait = &mut entry.core.waits[at];
            wait.shut_down |= why == Why::ShuttingDown;
            wait.held_back = !room;
            if !room {
                // Waits of other clients don't wait for the reader of this one.
                cx.queues.held_back.insert(entry.core.id);
                at += 1;
                continue;
            }
            if !log_allows(entry, at, why, cx) {
                // A younger wait must not take the output that this wait is to tell.
                return;
            }
            if !matches!(why, Why::Completed | Why::ShuttingDown) && !entry.core.ways.own_cap {
                // The answer tells the session's id: from now on the session is in the table.
                self.sessions.register(&mut entry.core, &mut self.cx);
            }
            let wait = entry.core.waits.remove(at);
            entry.core.stuck = why == Why::Impossible;
            let (core, cx) = (&mut entry.core, &mut self.cx);
            let fresh_ns = |due: u64| due.saturating_sub(DOING_FRESH_MS * NS_PER_MS);
            let told_ns = wait.tells_ns.or(wait.due_ns).map(|due| fresh_ns(due).max(wait.since_ns));
            let late = matches!(why, Why::Deadline | Why::AbsoluteDeadline);
            cx.answers_since_ns = told_ns.filter(|_| late);
            // The warning of a call says which sessions made room for the one that it has started.
            let client = cx.client_of(&wait);
            wait.evicted.iter().for_each(|id| cx.tell_eviction_to(client, *id));
            let tells_end = entry.family.answer(core, wait, why, cx);
            cx.answers_since_ns = None;
            if tells_end {
                tell_end(entry, true, cx);
            }
        }
    }

    /// What follows when nobody waits (any more): the word of the exit, and what is remembered.
    fn conclude(&mut self, entry: &mut Entry<F>) {
        let (core, cx) = (&mut entry.core, &mut self.cx);
        if core.is_awaited_now() {
            return;
        }
        if core.finished_ns.is_some() {
            let observed = core.observed;
            if observed || core.listing == Listing::Early || core.ways.own_cap {
                // Families with a cap of their own remember their sessions in their books.
                self.sessions.unlist(core);
            }
            core.awaits_log = !cx.is_over_and_logged(core);
            if core.awaits_log {
                cx.keeper.ask_sync(core.id);
                return;
            }
            cx.keeper.name_anyway(core.id);
            entry.family.remember(core, cx);
            // Who still waits for others too is going to tell the end: nobody is woken for it.
            let will_be_told = core.is_awaited();
            tell_end(entry, observed || will_be_told, cx);
            if !entry.core.output.dropped {
                // The session needs no descriptors any more.
                streams::close(&mut entry.core, cx);
            }
        }
        let ending = entry.core.ending.as_ref();
        if ending.is_some_and(|ending| ending.over() && !ending.all_gone()) {
            // A session that could not be ended stays listed, and may be tried again.
            entry.core.ending = None;
        }
    }
}

/// Tells everybody of a session's end, once; the session's family tells it first.
fn tell_end<F: Families>(entry: &mut Entry<F>, observed: bool, cx: &mut Cx<F>) {
    entry.family.tell_end(&mut entry.core, cx);
    cx.tell_exit(&mut entry.core, observed);
}

/// Goes on with ending a session's members, when there is a reason to look at them.
fn step_ending<F: Families>(core: &mut Session, cx: &mut Cx<F>) {
    let now_ns = cx.now_ns;
    let Some(ending) = &mut core.ending else { return };
    if !(ending.wants_look() || ending.next_due_ns().is_some_and(|due| due <= now_ns)) {
        return;
    }
    let ours = |sid: i32| cx.leaders.contains_key(&sid);
    let watch = ending.step(now_ns, &mut cx.lookout.borrow_mut(), &ours);
    let again = ending.wants_look();
    core.note_sent_signals();
    for fd in watch {
        // Without a watch the deadlines of the ending still look again.
        let _ = cx.watch.add(fd, token_of(core.id, Port::Member), Interest::READABLE);
    }
    if again {
        cx.touch(core);
    }
}

/// Looks at what the session's processes are at, when a wait may end by that, and when an answer
/// is about to tell it.
fn look_at_processes<F: Families>(core: &mut Session, cx: &mut Cx<F>) {
    cx.step_quiet(core);
    if core.tells_soon(cx.now_ns) {
        cx.note_listening(core);
    }
}

/// All members are gone, but the output is still open: what holds it detached itself on purpose.
/// The session is over; what the holder still writes is read and dropped.
fn leave_detached_holders<F: Families>(entry: &mut Entry<F>, cx: &mut Cx<F>) {
    let ended = entry.core.ending.as_ref().is_some_and(|ending| ending.all_gone());
    if !ended || !entry.core.life.shell_gone() {
        return;
    }
    // The answer must not wait for a stalled log: what lies in the pipe now is queued for the log
    // although the queue may be full, and it is one pipe at most.
    if !streams::drain(entry, true, cx) {
        return cx.touch(&mut entry.core);
    }
    let core = &mut entry.core;
    core.output.release(Hold::Log);
    core.output.release(Hold::Reader);
    if let Some(errors) = &mut core.errors {
        errors.release(Hold::Reader);
    }
    if core.life.shell_gone() {
        core.drop_output();
        core.learn(Fact::Dropped, cx.now_ns);
        core.input.close();
        cx.debug(format_args!("session {}: output left to a detached holder", core.id));
        streams::output_ready(core, Source::Output, cx);
        streams::output_ready(core, Source::Errors, cx);
    }
}

/// Waits that were to end the session when their time is over do so, and go on as the wait of a
/// kill. Their reader is not asked: an end has no room to wait for. Where the command has ended in
/// time, who still holds its output is waited for no longer.
fn kill_what_is_late<F: Families>(core: &mut Session, cx: &mut Cx<F>) {
    let now_ns = cx.now_ns;
    let runs = core.status().is_none();
    // What lies in the pipe when a command ends is read first, as for all who wait.
    let left_ns = core.reaped_ns.unwrap_or(0) + POST_EXIT_CLOSE_WAIT_MS * NS_PER_MS;
    let (mut kills, mut leaves) = (false, false);
    for wait in core.waits.iter_mut().filter(|wait| wait.kills_now(now_ns)) {
        if runs {
            (wait.kind, wait.due_ns) = (WaitKind::Kill, None);
            kills = true;
        } else if now_ns < left_ns {
            wait.due_ns = Some(left_ns);
        } else {
            leaves = true;
        }
    }
    if leaves {
        core.leave_to_holders();
    }
    if kills {
        cx.begin_ending(core, SIGKILL, NEVER_ESCALATES_MS, KilledBy::Timeout.into());
    }
}

/// Why a wait of a session is over. A call that would be answered as soon as its session is started
/// (in the background) waits until the program runs, or until a session without one has ended.
fn verdict<F: Families>(entry: &Entry<F>, wait: &Wait, cx: &Cx<F>) -> Option<Why> {
    let why = entry.family.verdict(&entry.core, wait, &moment(&entry.core, wait, cx), cx)?;
    let at_once = wait.kind == WaitKind::Start && wait.due_ns.is_none() && why == Why::Deadline;
    (!at_once || entry.core.start.runs()).then_some(why)
}

/// What a wait of a session is judged against now.
pub fn moment<F: Families>(core: &Session, wait: &Wait, cx: &Cx<F>) -> Moment {
    Moment {
        now_ns: cx.now_ns,
        wall_ms: cx.wall_ms,
        finished: core.life.finished(),
        left_to_holders: if wait.drains {
            core.is_left_to_holders(cx.now_ns)
        } else {
            core.shell_grace_ends_ns().is_some_and(|at| at <= cx.now_ns)
        },
        closing: cx.closes_for(cx.client_of(wait)),
    }
}

/// Whether the log lets this wait be answered now; else it is held, 250 ms at most. There is no log
/// before it is known that the program runs.
fn log_allows<F: Families>(entry: &mut Entry<F>, at: usize, why: Why, cx: &mut Cx<F>) -> bool {
    let core = &entry.core;
    let points_at_log = entry.family.points_at_log(core, &core.waits[at], why, cx);
    let id = core.id;
    if cx.keeper.named(id) && (!points_at_log || cx.keeper.settled(id)) {
        return true;
    }
    let ended_ns = core.finished_ns.filter(|_| why == Why::Completed);
    let wait = &mut entry.core.waits[at];
    // An exit is told to all its waits 250 ms after it at the latest, not one by one.
    let begin_ns = ended_ns.map_or(cx.now_ns, |ended_ns| ended_ns.max(wait.since_ns));
    let since_ns = *wait.held_since_ns.get_or_insert(begin_ns);
    if points_at_log {
        cx.keeper.ask_sync(id);
    }
    let due = since_ns + LOG_ACK_WAIT_MS * NS_PER_MS <= cx.now_ns;
    if due {
        cx.keeper.name_anyway(id);
    }
    due
}
