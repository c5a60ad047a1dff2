//! Looks at the processes of a session while somebody waits for it, and what waits end by them: by
//! input that is waited for, and because nothing but input can move the session on (waits.md,
//! Impossible). `pure/time/quiet.rs` says when.

use super::Session;
use super::asked::{Asked, Outcome};
use super::doing::{Look, Sight, why};
use super::wait::{Wait, WaitKind};
use crate::limits::{DOING_EARLY_MS, DOING_READY_MS, NS_PER_MS};
use crate::pure::process::doing::{Input, Waiter};
use crate::pure::until::{Condition, InputWanted};

/// The longest pause before it is.
const DOING_RETRY_MAX_MS: u64 = 64;

/// How soon a look is tried again that could not be taken; each further time twice as long.
const DOING_RETRY_MS: u64 = 2;

impl Session {
    /// Takes the look that is due, if one is, and ends the waits that end by what it finds.
    pub fn step_quiet(&mut self, sight: &mut Sight<'_>) {
        let now_ns = sight.now_ns;
        self.refuse_input_of_nobody();
        if self.life.finished() || !self.waits.iter().any(Wait::ends_by_doing) {
            self.doing.quiet.stop();
        } else {
            self.doing.quiet.begin(now_ns);
        }
        if self.doing_due_ns().is_none_or(|due| due > now_ns) {
            return;
        }
        if self.output.queued || self.output.is_held() {
            // What was written and not read yet is part of what the session does.
            return self.look_later(now_ns);
        }
        let by_schedule = self.doing.quiet.due_ns().is_some_and(|due| due <= now_ns);
        if !self.look_at_processes(sight) {
            // Each turn has time for some.
            self.doing.put_off_ms = 0;
            return self.look_later(now_ns);
        }
        if by_schedule {
            self.hold_waits();
            self.end_waits();
            self.doing.quiet.looked(now_ns);
        }
    }

    /// A look that is due cannot be taken in this turn: it is tried again, while output
    /// comes ever more rarely.
    fn look_later(&mut self, now_ns: u64) {
        let put_off_ms = (self.doing.put_off_ms * 2).clamp(DOING_RETRY_MS, DOING_RETRY_MAX_MS);
        self.doing.put_off_ms = put_off_ms;
        self.doing.not_before_ns = now_ns + put_off_ms * NS_PER_MS;
    }

    /// Whether a look was taken in this turn that an answer is to tell which is due soon.
    pub fn tells_soon(&self, now_ns: u64) -> bool {
        let looked = self.doing.last.as_ref().is_some_and(|last| last.at_ns == now_ns);
        let ready_ns = DOING_READY_MS * NS_PER_MS;
        let soon =
            |wait: &Wait| wait.tells_ns.is_some_and(|due| now_ns < due && due <= now_ns + ready_ns);
        looked && self.waits.iter().any(soon)
    }

    /// When a look is due: by the schedule, and twice before an answer that tells the state.
    pub fn doing_due_ns(&self) -> Option<u64> {
        if self.life.finished() {
            return None;
        }
        let looked_ns = self.doing.last.as_ref().map_or(0, |last| last.at_ns);
        let open = |wait: &&Wait| !wait.held_back && wait.held_since_ns.is_none();
        let waits = self.waits.iter().filter(open);
        let telling = waits.filter(|wait| wait.outcome.is_none());
        let early = telling
            .filter_map(|wait| wait.tells_ns)
            .flat_map(|due| {
                [DOING_EARLY_MS, DOING_READY_MS].map(|ms| due.saturating_sub(ms * NS_PER_MS))
            })
            .filter(|early| looked_ns < *early);
        // Looks that nobody waits for any more have no deadline: all later turns would pay for it.
        let scheduled = self.doing.quiet.due_ns();
        let scheduled = scheduled.filter(|_| self.waits.iter().any(Wait::ends_by_doing));
        let due = early.chain(scheduled).min();
        due.map(|due| due.max(self.doing.not_before_ns))
    }

    /// Output came, or input was given: looks begin anew. Whether the session
    /// is to be judged for that, because its next look would come too late.
    pub fn note_move(&mut self, now_ns: u64) -> bool {
        let Some(due_ns) = self.doing.quiet.due_ns() else { return false };
        self.doing.quiet.moved(now_ns);
        self.doing.quiet.due_ns().is_some_and(|now_due_ns| now_due_ns < due_ns)
    }

    /// A new wait may be answered for what was found, and settled, for those before it.
    pub fn note_waiter(&mut self, now_ns: u64) {
        if !self.waits.iter().rev().skip(1).any(Wait::ends_by_doing) {
            // Looks for who waited earlier are over.
            self.doing.quiet.stop();
        }
        self.doing.quiet.joined(now_ns);
    }

    /// Input was given: what was found before says nothing any more.
    pub fn note_input(&mut self, now_ns: u64) {
        self.doing.last = None;
        self.waits.iter_mut().for_each(|wait| wait.go_on_behind_password(now_ns));
        self.note_move(now_ns);
    }

    /// A session without stdin never waits for input: who asks for that alone is told. A `stop`
    /// that can't come true is no reason to end a wait: what is waited for still comes.
    fn refuse_input_of_nobody(&mut self) {
        if self.facts.tty || !(self.input.is_null() || self.input.is_closed()) {
            return;
        }
        let what = if self.input.is_null() { "/dev/null" } else { "closed" };
        for wait in
            self.waits.iter_mut().filter(|one| one.answers_impossible && one.ends_by_doing())
        {
            let until = wait.asked.as_ref().and_then(|asked| asked.until.as_ref());
            if until.is_some_and(|until| is_only_input(until)) {
                let why = format!("its stdin is {what}: no input is ever waited for");
                wait.outcome = Some(Box::new(Outcome::impossible(why)));
            }
        }
    }

    /// Notes in the waits whose clients are told of it that a password is asked for, as two looks
    /// agree, or is no more.
    fn hold_waits(&mut self) {
        let Some(last) = &self.doing.last else { return };
        let asks = |waiter: &Waiter| waiter.input == Input::Password;
        let (asked, agreed) = (last.found.waiter.as_ref(), last.waiter());
        for wait in self.waits.iter_mut().filter(|wait| wait.tells_password) {
            if agreed.is_some_and(asks) && wait.ends_by_doing() {
                wait.hold_for_password(last.at_ns);
            } else if !asked.is_some_and(asks) {
                wait.go_on_behind_password(last.at_ns);
            }
        }
    }

    /// Ends the waits that end by what two looks agree on.
    fn end_waits(&mut self) {
        let Some(last) = &self.doing.last else { return };
        let Some(waiter) = last.waiter() else { return };
        let seen = last.closed().map(|_| self.seen(last.at_ns));
        for wait in self.waits.iter_mut().filter(|wait| wait.ends_by_doing()) {
            if let Some(by_stop) = wait.input_came(waiter.input) {
                let outcome = Outcome {
                    state: Some(waiter.input.state()),
                    command: Some(waiter.name.clone()),
                    present_at_entry: last.waits_since_ns() < wait.since_ns,
                    ..Outcome::came_true("input", by_stop)
                };
                wait.outcome = Some(Box::new(outcome));
            } else if wait.answers_impossible
                && wait.password.is_none()
                && wait.nothing_comes_by_itself()
                && let Some(waiter) = Look::closed(last)
            {
                let state = Some(waiter.input.state());
                let seen = seen.clone();
                let outcome = Outcome { state, seen, ..Outcome::impossible(why(waiter)) };
                wait.outcome = Some(Box::new(outcome));
            }
        }
    }
}

/// Whether a condition comes true by input that is waited for, and by nothing else.
fn is_only_input(one: &Condition) -> bool {
    let others = one.port.is_some() || one.http.is_some() || one.idle_ms.is_some();
    one.input.is_some() && one.patterns.is_empty() && !others && !one.tree_exit
}

impl Wait {
    /// Whether what the processes do may end the wait, and has not yet.
    pub fn ends_by_doing(&self) -> bool {
        let open = self.outcome.is_none() && !self.cancelled && !self.held_back;
        open && self.kind != WaitKind::Kill && (self.answers_impossible || self.asks_input())
    }

    /// Whether it waits for the session's waiting for input.
    fn asks_input(&self) -> bool {
        let asked = self.asked.as_ref();
        let by = |asked: &Asked| asked.conditions().any(|(_, one)| one.input.is_some());
        let by_password = self.until_password || self.tells_password;
        by_password || asked.is_some_and(|asked| by(asked))
    }

    /// Which condition such input ends, where one does: that of `stop`, or of `until`.
    fn input_came(&self, input: Input) -> Option<bool> {
        let wanted = |one: &Condition| match one.input {
            None => false,
            Some(InputWanted::Any) => true,
            Some(InputWanted::Line) => input == Input::Line,
            Some(InputWanted::Password) => input == Input::Password,
            Some(InputWanted::Key) => input == Input::Key,
        };
        let asked = self.asked.as_ref();
        let found = asked.and_then(|asked| asked.conditions().find(|(_, one)| wanted(one)));
        let password = self.until_password && input == Input::Password;
        found.map(|(by_stop, _)| by_stop).or(password.then_some(false))
    }

    /// Whether a password that is asked for has ended the wait, which was to end by that whatever
    /// else it is for.
    pub fn is_asked_for_password(&self) -> bool {
        let state = self.outcome.as_ref().and_then(|outcome| outcome.state);
        self.until_password && state == Some(Input::Password.state())
    }

    /// Whether nothing that the wait asks for comes true while the session stands still.
    fn nothing_comes_by_itself(&self) -> bool {
        self.asked.as_ref().is_none_or(|asked| {
            let pending = asked.text.as_ref().is_some_and(|text| text.wants_quiet());
            !pending
                && !asked.catching_up
                && asked.conditions().all(|(_, one)| one.idle_ms.is_none())
        })
    }
}
