//! What a session's state leads to: registration, the way to its end, answers to its waits,
//! progress, the word of its exit. Only sessions that something happened to are judged.

use std::collections::BTreeSet;

use mio::Interest;

use super::clients::STDIN_CLIENT;
use super::{Daemon, Owner, Port, token_of};
use crate::limits::{JUDGED_PER_TURN, LOG_ACK_WAIT_MS, NS_PER_MS, TEXT_TURN_BYTES};
use crate::pure::process::life::{ExitStatus, Fact};
use crate::pure::process::signal_names::signal_name;
use crate::session::output::{Hold, Source};
use crate::session::wait::{Moment, Wait, WaitKind, Why};
use crate::session::{ClientId, Listing, Session, SessionId};
use crate::sys::clock;

/// An exit status as the two fields that exclude each other.
pub fn status_fields(status: Option<ExitStatus>) -> (Option<i32>, Option<String>) {
    match status {
        Some(ExitStatus::Code(code)) => (Some(code), None),
        Some(ExitStatus::Signal(signal)) => (None, Some(signal_name(signal))),
        None => (None, None),
    }
}

impl Daemon {
    /// Puts a session on the list to be judged in this turn.
    pub(crate) fn touch(&mut self, id: SessionId) {
        if let Some(session) = self.sessions.get_mut(&id)
            && !session.touched
        {
            session.touched = true;
            self.touched.push_back(id);
        }
    }

    /// Step: judges the sessions that something happened to. Judging one may touch another (an
    /// eviction), never without bound: each is on the list once. Making clean text costs more
    /// than all else here, so it is bounded too; who is left is judged in the next turn.
    pub(crate) fn judge_sessions(&mut self) {
        let mut seen = BTreeSet::new();
        let mut again = Vec::new();
        let mut told_bytes = 0;
        while told_bytes < TEXT_TURN_BYTES
            && seen.len() < JUDGED_PER_TURN
            && let Some(id) = self.touched.pop_front()
        {
            if !seen.insert(id) {
                // Touched again by its own judgement: next turn.
                again.push(id);
                continue;
            }
            if let Some(session) = self.sessions.get_mut(&id) {
                session.touched = false;
                let unread = session.view.retained_bytes();
                let waits = session.waits.len();
                // The three texts of a job are made anew for each answer.
                let text_bytes = session.job.as_ref().map_or(0, |job| 3 * job.spec.max_chars);
                self.judge(id);
                let left = self.sessions.get(&id);
                let answered = waits - left.map_or(0, |one| one.waits.len()).min(waits);
                let unread_left = left.map_or(0, |one| one.view.retained_bytes());
                told_bytes += unread.saturating_sub(unread_left) + answered * text_bytes;
                told_bytes += std::mem::take(&mut self.window_text_bytes);
            }
        }
        self.touched.extend(again);
    }

    fn judge(&mut self, id: SessionId) {
        self.step_ending(id);
        self.leave_detached_holders(id);
        self.end_early_grace(id);
        self.step_drain(id);
        self.step_job(id);
        self.step_late_polls(id);
        self.step_window(id);
        self.step_agent(id);
        self.step_probe(id);
        self.step_viewers(id);
        self.send_progress(id);
        self.send_window_progress(id);
        let observed = self.answer_waits(id);
        self.step_window_end(id);
        self.conclude(id, observed);
        if self.listed > self.config.max_sessions {
            // Over the cap because everybody had a pending request: perhaps not any more.
            self.evict_down_to(self.config.max_sessions);
        }
        if let Some(session) = self.sessions.get(&id) {
            let due = session.next_due_ns();
            let wall = session.next_wall_due_ms();
            debug_assert!(due.is_none_or(|due| due > self.now_ns), "session {id}: a past deadline");
            self.deadlines.set(Owner::Session(id), due);
            let wall = wall.map(|ms| u64::try_from(ms).unwrap_or(0));
            self.wall_deadlines.set(id, wall);
        } else {
            self.deadlines.set(Owner::Session(id), None);
            self.wall_deadlines.set(id, None);
        }
    }

    /// Goes on with ending a session's members, when there is a reason to look at them.
    fn step_ending(&mut self, id: SessionId) {
        let now_ns = self.now_ns;
        let leaders = &self.leaders;
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(ending) = &mut session.ending else { return };
        if !(ending.wants_look() || ending.next_due_ns().is_some_and(|due| due <= now_ns)) {
            return;
        }
        let ours = |sid: i32| leaders.contains_key(&sid);
        let watch = ending.step(now_ns, &mut self.lookout.borrow_mut(), &ours);
        session.killed_by_us |= ending.sent_sigkill();
        if ending.wants_look() {
            self.touch(id);
        }
        for fd in watch {
            // Without a watch the deadlines of the ending still look again.
            let _ = self.watch(fd, token_of(id, Port::Member), Interest::READABLE);
        }
    }

    /// Goes on with what is waited for after a shell's end.
    fn step_drain(&mut self, id: SessionId) {
        let now_ns = self.now_ns;
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if session.step_drain(now_ns, &mut self.lookout.borrow_mut()) {
            self.touch(id);
        }
    }

    /// All members are gone, but the output is still open: what holds it detached itself on
    /// purpose. The session is over; what the holder still writes is read and dropped.
    fn leave_detached_holders(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get(&id) else { return };
        let ended = session.ending.as_ref().is_some_and(|ending| ending.all_gone());
        if !ended || !session.life.shell_gone() {
            return;
        }
        // The answer must not wait for a stalled log: what lies in the pipe now is queued for
        // it although the queue may be full, and it is one pipe at most.
        if !self.drain(id, true) {
            return self.touch(id);
        }
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.output.release(Hold::Log);
        session.output.release(Hold::Reader);
        if session.life.shell_gone() {
            session.drop_output();
            session.learn(Fact::Dropped, self.now_ns);
            session.input.close();
            self.debug(format_args!("session {id}: output left to a detached holder"));
            self.output_ready(id, Source::Output);
            self.output_ready(id, Source::Errors);
        }
    }

    /// The session has outlived its first 150 ms: it enters the table.
    fn end_early_grace(&mut self, id: SessionId) {
        let now_ns = self.now_ns;
        let due = |session: &Session| session.grace_ends_ns().is_some_and(|at| at <= now_ns);
        if !self.sessions.get(&id).is_some_and(due) {
            return;
        }
        self.register(id);
    }

    /// Answers the waits that are over, oldest first. Whether one of them was told the exit.
    fn answer_waits(&mut self, id: SessionId) -> bool {
        let mut observed = false;
        let mut output_taken = false;
        let mut at = 0;
        loop {
            let Some(session) = self.sessions.get(&id) else { return observed };
            let Some(wait) = session.waits.get(at) else { return observed };
            let Some(why) = self.verdict(session, wait) else {
                if let Some(session) = self.sessions.get_mut(&id) {
                    // A verdict may be withdrawn: the wall clock was set back.
                    session.waits[at].held_since_ns = None;
                    session.waits[at].held_back = false;
                }
                at += 1;
                continue;
            };
            let room = self.has_room_for(wait);
            if let Some(session) = self.sessions.get_mut(&id) {
                session.waits[at].shut_down |= why == Why::ShuttingDown;
                session.waits[at].held_back = !room;
            }
            if !room {
                // Those of other clients don't wait for this one's reader.
                self.held_back.insert(id);
                at += 1;
                continue;
            }
            if !self.log_allows(id, at, why) {
                // A younger wait must not take what this one is to tell.
                return observed;
            }
            let Some(session) = self.sessions.get_mut(&id) else { return observed };
            let mut wait = session.waits.remove(at);
            if wait.kind.is_job() {
                let told = session.life.finished() && session.wake.is_none();
                // The reply tells the end also where its background goes on.
                let ours = session.job.is_some() && session.wake.is_none();
                session.observed |= ours && session.job_over(self.now_ns);
                self.answer_job(id, &mut wait);
                if told {
                    self.tell_exit(id, true);
                }
                continue;
            }
            if wait.kind.is_window() {
                self.answer_window(id, &wait, why);
                continue;
            }
            if wait.kind.is_agent() {
                self.answer_agent(id, &wait);
                observed = true;
                self.tell_exit(id, true);
                continue;
            }
            let exited = why == Why::Completed;
            self.answer(id, &wait, why, !output_taken);
            output_taken |= exited;
            if exited && !observed {
                observed = true;
                self.tell_exit(id, true);
            }
        }
    }

    /// Whose a wait is.
    pub(crate) fn client_of(&self, wait: &Wait) -> ClientId {
        self.pending.get(&wait.ticket).map_or(STDIN_CLIENT, |pending| pending.client)
    }

    /// Whether the answer of a wait may be built.
    fn has_room_for(&self, wait: &Wait) -> bool {
        self.clients.has_room(self.client_of(wait))
    }

    /// Why a wait of `session` is over.
    fn verdict(&self, session: &Session, wait: &Wait) -> Option<Why> {
        let client = self.client_of(wait);
        let moment = Moment {
            now_ns: self.now_ns,
            wall_ms: if wait.until.is_some() { clock::wall_ms() } else { 0 },
            finished: session.life.finished(),
            left_to_holders: if wait.kind.is_unified() {
                session.shell_grace_ends_ns().is_some_and(|at| at <= self.now_ns)
            } else {
                session.is_left_to_holders(self.now_ns)
            },
            closing: self.closing.as_ref().is_some_and(|one| one.answers_pending(client)),
        };
        if let Some(why) = self.job_verdict(session, wait) {
            return Some(why);
        }
        if wait.kind == WaitKind::Bash {
            return self.window_verdict(session, wait);
        }
        if wait.kind.is_agent() {
            return self.agent_verdict(session, wait);
        }
        if wait.kind.is_kill() && !wait.cancelled {
            let over = session.ending.as_ref().is_none_or(|ending| ending.over());
            let gone = session.ending.as_ref().is_none_or(|ending| ending.all_gone());
            if over && (session.life.finished() || !gone) {
                return Some(if gone { Why::Completed } else { Why::Deadline });
            }
            if wait.due_ns.is_some_and(|due| due <= self.now_ns) {
                return Some(Why::Deadline);
            }
            // The shutdown ends it too: its answer comes with its end.
            return None;
        }
        wait.verdict(&moment)
    }

    /// Whether the log lets this wait be answered now; else it is held, 250 ms at most.
    fn log_allows(&mut self, id: SessionId, at: usize, why: Why) -> bool {
        let limits = self.config.text;
        let Some(session) = self.sessions.get_mut(&id) else { return true };
        let ended_ns = session.finished_ns;
        let Some(wait) = session.waits.get_mut(at) else { return true };
        let takes_nothing = why == Why::Cancelled && wait.kind == WaitKind::Poll;
        let takes_text = !takes_nothing && wait.kind != WaitKind::WindowKill;
        let window = session.window.as_ref().filter(|_| wait.kind == WaitKind::Bash);
        let cut = window.map_or_else(|| session.view.may_be_cut(limits), |one| one.may_be_cut());
        let points_at_log = why == Why::Completed || (takes_text && cut);
        let allowed = if points_at_log { self.keeper.settled(id) } else { self.keeper.named(id) };
        if allowed {
            return true;
        }
        // An exit is told to all its waits 250 ms after it at the latest, not one by one.
        let begin_ns = match ended_ns.filter(|_| why == Why::Completed) {
            Some(ended_ns) => ended_ns.max(wait.since_ns),
            None => self.now_ns,
        };
        let since_ns = *wait.held_since_ns.get_or_insert(begin_ns);
        if points_at_log {
            self.keeper.ask_sync(id);
        }
        since_ns + LOG_ACK_WAIT_MS * NS_PER_MS <= self.now_ns
    }

    /// What follows when nobody waits (any more): the word of the exit, removal.
    fn conclude(&mut self, id: SessionId, observed: bool) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if let Some(ended_ns) = session.finished_ns
            && session.waits.is_empty()
        {
            let observed = observed || session.observed;
            let early = session.listing == Listing::Early;
            // A job is remembered in books of its own.
            let leaves = observed || early || session.has_own_cap();
            if leaves || session.listing == Listing::Gone {
                self.set_listing(id, Listing::Gone);
            }
            let due = ended_ns + LOG_ACK_WAIT_MS * NS_PER_MS <= self.now_ns;
            let Some(session) = self.sessions.get_mut(&id) else { return };
            session.awaits_log = false;
            if self.keeper.settled(id) || due {
                self.remember_finished(id);
                self.report_window_end(id);
                self.keep_window(id);
                self.tell_exit(id, observed);
            } else {
                session.awaits_log = true;
                self.keeper.ask_sync(id);
                return;
            }
            self.release_finished(id);
            self.remove_if_over(id);
        }
        if let Some(session) = self.sessions.get_mut(&id)
            && session.waits.is_empty()
            && session.ending.as_ref().is_some_and(|ending| ending.over() && !ending.all_gone())
        {
            // What could not be ended stays listed, and may be tried again.
            session.ending = None;
        }
    }

    /// A finished session needs no descriptors any more, but one whose output is left to a
    /// detached holder.
    fn release_finished(&mut self, id: SessionId) {
        if let Some(session) = self.sessions.get(&id)
            && !session.output.dropped
        {
            self.close_streams(id);
        }
    }
}
