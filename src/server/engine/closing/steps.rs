//! The steps of execd's end: when the end begins, and what is waited for before execd exits. How a
//! session's members are ended is left to `session/ending.rs`.

use serde_json::{Value, json};

use super::{Cause, Closing, EXIT_LINE_FAILED, Phase, SIGHUP};
use crate::config::OnEof;
use crate::limits::{LAST_FLUSH_MS, NS_PER_MS, READ_TURN_BYTES, SHUTDOWN_GRACE_MS};
use crate::pure::process::killed::KilledBy;
use crate::pure::text::visible;
use crate::server::engine::client::Client;
use crate::server::engine::contract::Families;
use crate::server::engine::ledger::kept::By;
use crate::server::engine::run_front::RunFront;
use crate::server::engine::{Engine, Owner};
use crate::server::session::ending::{Ending, SIGKILL, SIGTERM};
use crate::server::session::{Listing, Ticket};
use crate::sys::errno::errno_text;
use crate::sys::signals::Came;
use crate::sys::stdio::tell_people;
use crate::sys::tree::Orphans;
use crate::sys::{pidfd, poll};

/// Rounds of that before execd exits: what is reaped last leaves no zombie to somebody else.
const LAST_REAPS: usize = 64;

/// See [`ORPHAN_LOOKS`].
const ORPHAN_PAUSE_MS: u64 = 5;

/// Looks for orphans that are to end with execd, and the pause between two of them.
const ORPHAN_LOOKS: usize = 200;

/// How long after SIGKILL the end waits for processes that do not go.
const SHUTDOWN_GIVE_UP_MS: u64 = 2_000;

impl<F: Families> Engine<F> {
    /// Begins the end. Once begun, only a signal changes it: it means SIGKILL now.
    pub fn close(&mut self, cause: Cause, ticket: Option<Ticket>) {
        let cx = &mut self.cx;
        if cx.closing.is_some() {
            self.hurry(cause);
            return;
        }
        cx.debug(format_args!("closing: {cause:?}"));
        self.note_background();
        let cx = &mut self.cx;
        let live = self.sessions.iter().filter(|one| !one.core.life.finished());
        let ended = live.map(|one| {
            let facts = &one.core.facts;
            json!({"session_id": one.core.id, "pid": facts.pid, "command": facts.command})
        });
        let ended = ended.collect();
        let until_ns = cx.now_ns + (SHUTDOWN_GRACE_MS + SHUTDOWN_GIVE_UP_MS) * NS_PER_MS;
        cx.closing = Some(Closing {
            cause,
            phase: Phase::Ending,
            until_ns,
            ticket,
            ended,
            hurried: false,
            unsent: 0,
        });
        cx.deadlines.set(Owner::Closing, Some(until_ns));
        self.refuse_kept_at_end();
        self.end_everything(SIGTERM, SHUTDOWN_GRACE_MS);
        self.end_leftovers(SIGTERM);
        self.signal_orphans(SIGTERM);
    }

    /// execd is ending already: a signal means SIGKILL now, and that no reader is waited for
    /// any longer than the last flush takes.
    fn hurry(&mut self, cause: Cause) {
        let now_ns = self.cx.now_ns;
        let unsent = self.cx.front.as_ref().is_some_and(|front| front.unsent_errors() > 0)
            || !self.cx.clients.stdin.outbox.is_empty();
        let Some(closing) = &mut self.cx.closing else { return };
        let Cause::Signal(signal) = cause else { return };
        // A command in front that has ended, and whose output is written, has its own status.
        let told = matches!(closing.cause, Cause::Ran(_)) && !unsent;
        if let Some(front) = self.cx.front.as_mut().filter(|_| told) {
            front.ask_to_end(signal);
        }
        if !told && !matches!(closing.cause, Cause::Signal(_)) {
            closing.cause = cause;
        }
        if closing.phase == Phase::Flushing {
            closing.until_ns = closing.until_ns.min(now_ns + LAST_FLUSH_MS * NS_PER_MS);
        }
        // A terminal that goes away says so in several ways at once: SIGHUP hurries nothing.
        if !closing.hurried && cause != Cause::Signal(SIGHUP) {
            closing.hurried = true;
            self.cx.debug(format_args!("closing: hurried"));
            self.end_everything(SIGKILL, 0);
            self.signal_orphans(SIGKILL);
        }
    }

    /// By whom sessions are ended now.
    fn ends_by(&self) -> KilledBy {
        self.cx.closing.as_ref().map_or(KilledBy::Shutdown, Closing::killed_by)
    }

    fn end_everything(&mut self, signal: i32, grace_ms: u64) {
        let by = By::from(self.ends_by());
        for one in self.sessions.iter_mut() {
            self.cx.begin_ending(&mut one.core, signal, grace_ms, by);
        }
    }

    /// Members of sessions that are over are ended too: under their old ids.
    fn end_leftovers(&mut self, signal: i32) {
        self.sessions.look_after_members(&mut self.cx);
        for mut left in std::mem::take(&mut self.sessions.outlived.left).into_values() {
            self.cx.end_members(&mut left.entry.core, signal, SHUTDOWN_GRACE_MS);
            self.sessions.put(left.entry);
        }
    }

    /// A signal that ends execd was read.
    pub(crate) fn take_termination(&mut self, came: Came) {
        if self.pass_signal(came) {
            return;
        }
        self.close(Cause::Signal(came.number), None);
    }

    /// Step: notices that execd is to end, and moves the end along. Gives the exit status when
    /// it is done.
    pub(in crate::server::engine) fn step_closing(&mut self) -> Option<i32> {
        let failed = self.cx.clients.stdin.failed.take();
        if let Some((what, errno)) = failed {
            tell_people(&format!("{what}: {}", errno_text(errno)), 0);
        }
        if self.cx.front.is_some() {
            self.look_at_front_readers(failed.is_some());
            self.look_at_background();
        } else if self.cx.clients.stdin.reader_gone {
            self.close(Cause::ReaderGone, None);
        } else if self.cx.closing.is_none() && self.nothing_more_is_to_do() {
            let failed = self.cx.clients.stdin.input_failed;
            self.close(if failed { Cause::InputFailed } else { Cause::EndOfInput }, None);
        }
        let hurried = self.cx.closing.as_ref()?.hurried;
        self.answer_events();
        // Sessions that ended meanwhile may have left members too.
        self.end_leftovers(if hurried { SIGKILL } else { SIGTERM });
        let over = self.sessions_are_over() && !self.signal_orphans(0);
        let (now_ns, rest_ms) = (self.cx.now_ns, self.last_flush_ms());
        let closing = self.cx.closing.as_mut()?;
        if closing.phase == Phase::Ending && (over || now_ns >= closing.until_ns) {
            closing.phase = Phase::Flushing;
            closing.until_ns = now_ns + rest_ms * NS_PER_MS;
            self.answer_shutdown();
            self.give_up_front();
            self.cx.keeper.ask_all_syncs();
        }
        let cx = &mut self.cx;
        let closing = cx.closing.as_mut()?;
        if closing.phase == Phase::Flushing {
            let errors = cx.front.as_ref().map_or(0, RunFront::unsent_errors);
            let asked = cx.front.as_ref().and_then(RunFront::asked_to_end);
            let stdin = &cx.clients.stdin;
            let unsent = stdin.outbox.len() + errors;
            closing.note_unsent(unsent + stdin.untaken(), rest_ms, now_ns);
            let answered = cx.clients.iter().all(Client::is_served) && errors == 0;
            // The output of `execd run` is its purpose: a slow reader gets all of it.
            let ran = matches!(closing.cause, Cause::Ran(_));
            let patient = ran && asked.is_none() && !stdin.reader_gone;
            let late = now_ns >= closing.until_ns && (!patient || unsent == 0);
            if let (Some(signal), true) = (asked, late && ran && unsent > 0) {
                closing.cause = Cause::Signal(signal);
            }
            if (answered && cx.keeper.all_settled()) || late {
                let status = closing.status();
                let status = if status == 0 { self.status_of_lines() } else { status };
                self.reap_the_last();
                self.kill_orphans();
                self.cx.keeper.goodbye();
                return Some(status);
            }
        }
        let until_ns = closing.until_ns;
        cx.deadlines.set(Owner::Closing, (until_ns > now_ns).then_some(until_ns));
        None
    }

    /// How long the last flush goes on while nothing is taken.
    fn last_flush_ms(&self) -> u64 {
        let of_lines = self.cx.closing.as_ref().is_some_and(Closing::tells_of_lines);
        if of_lines {
            self.cx.clients.stdin.rest_ms(self.cx.config.lease_ms)
        } else {
            LAST_FLUSH_MS
        }
    }

    /// The exit status that the lines of stdin lead to, where nothing else has decided it: not 0
    /// when one of them was answered with an error. People are told of the first of these, and of
    /// answers that are given up.
    fn status_of_lines(&self) -> i32 {
        let cx = &self.cx;
        let stdin = &cx.clients.stdin;
        let of_lines = cx.closing.as_ref().is_some_and(Closing::tells_of_lines);
        if of_lines && !stdin.outbox.is_empty() {
            let bytes = stdin.outbox.len();
            let gone = format!("{bytes} bytes of answers are lost: nobody has read them in time");
            tell_people(&gone, LAST_FLUSH_MS);
        }
        let Some((line, message)) = stdin.first_fault.as_ref() else { return 0 };
        if !of_lines || cx.config.lenient {
            return 0;
        }
        let lines = match stdin.faults {
            1 => format!("line {line} was refused"),
            more => format!("{more} lines were refused, line {line} first"),
        };
        let message = visible::one_line(message);
        tell_people(&format!("{lines}: {message}"), LAST_FLUSH_MS);
        EXIT_LINE_FAILED
    }

    /// Whether no session keeps execd from its end any more.
    fn sessions_are_over(&self) -> bool {
        let now_ns = self.cx.now_ns;
        let given_up = self.cx.closing.as_ref().is_some_and(|one| now_ns >= one.until_ns);
        let over = self.sessions.iter().all(|one| {
            let core = &one.core;
            let gone = core.listing == Listing::Gone && core.waits.is_empty();
            let ended = core.ending.as_ref().is_none_or(Ending::over);
            ended && (core.life.finished() || gone || given_up)
        });
        over && self.sessions.outlived.over.is_empty()
    }

    /// With `--kill-detached` the processes end with execd that have left their sessions and whose
    /// parents have ended: sends them a signal. Whether there are any.
    fn signal_orphans(&self, signal: i32) -> bool {
        let cx = &self.cx;
        if !cx.config.kill_detached {
            return false;
        }
        let leads = |pid: i32| cx.leaders.contains_key(&pid) || cx.keeper.helpers().contains(&pid);
        let orphans = Orphans::read(leads);
        let pids: Vec<i32> = orphans.strangers(|_| false).collect();
        for pid in &pids {
            // A child of ours that was not reaped: nobody else has its number.
            let _ = pidfd::by_number(*pid, signal);
        }
        !pids.is_empty()
    }

    /// Kills what is left of them. Their own children come to execd as they end.
    fn kill_orphans(&mut self) {
        for _ in 0..ORPHAN_LOOKS {
            if !self.signal_orphans(SIGKILL) {
                break;
            }
            poll::pause(ORPHAN_PAUSE_MS);
            self.reap_the_last();
        }
    }

    /// Orphans that ended a moment ago are zombies of ours, until they would be somebody else's.
    fn reap_the_last(&mut self) {
        self.reaping.look_for_children = true;
        for _ in 0..LAST_REAPS {
            if !self.reaping.look_for_children {
                break;
            }
            self.cx.reading.left = READ_TURN_BYTES;
            self.reap();
        }
    }

    /// stdin has ended, and nothing is left to be done for it.
    fn nothing_more_is_to_do(&mut self) -> bool {
        if !self.cx.clients.stdin.input_ended {
            return false;
        }
        self.make_way_for_starts();
        if let Some(until_ns) = self.unheard_ns() {
            self.cx.deadlines.set(Owner::Closing, Some(until_ns));
        }
        self.input_is_over() || self.only_the_reader_is_missing()
    }

    /// stdin has ended, all waits are over, and nothing but a reader that does not read keeps
    /// them from being answered: that reader has as long as the last flush.
    fn only_the_reader_is_missing(&mut self) -> bool {
        let stdin = &self.cx.clients.stdin;
        // Those that are kept are not held back themselves.
        let waiting = stdin.waiting();
        let held_back = || stdin.in_flight.values().filter(|ticket| self.is_held_back(**ticket));
        let stuck = stdin.input_ended
            && stdin.crowded
            && waiting > 0
            && held_back().count() == waiting
            && (stdin.kept == 0 || self.starts_stand_still());
        let unsent = if stuck { stdin.outbox.len() + stdin.untaken() } else { 0 };
        let now_ns = self.cx.now_ns;
        let since_ns = match self.stuck_since {
            Some((since_ns, before)) if stuck && before == unsent => since_ns,
            _ => now_ns,
        };
        self.stuck_since = stuck.then_some((since_ns, unsent));
        let due_ns = since_ns + LAST_FLUSH_MS * NS_PER_MS;
        if stuck {
            self.cx.deadlines.set(Owner::Closing, (due_ns > now_ns).then_some(due_ns));
        }
        stuck && due_ns <= now_ns
    }

    /// stdin has ended, everything it asked for is answered, and nothing is waited for.
    fn input_is_over(&self) -> bool {
        let stdin = &self.cx.clients.stdin;
        self.cx.front.is_none()
            && stdin.input_ended
            && !stdin.lines.has_complete_line()
            && stdin.in_flight.is_empty()
            && stdin.kept == 0
            && self.unheard_ns().is_none()
            && self.cx.queues.touched.is_empty()
            && !(self.cx.config.on_eof == OnEof::Wait && self.has_live_session())
    }

    /// When the next command of a request of stdin without an id has had its time; `None`: none
    /// runs that is left any.
    fn unheard_ns(&self) -> Option<u64> {
        let now_ns = self.cx.now_ns;
        let running = self.sessions.iter().filter(|one| one.core.life.status().is_none());
        running.filter_map(|one| one.core.unheard_until_ns).filter(|until| *until > now_ns).min()
    }

    /// Whether a session runs, or its exit is still to be told.
    fn has_live_session(&self) -> bool {
        self.sessions.iter().any(|one| {
            let core = &one.core;
            let untold = core.announced && !core.exit_told;
            core.listing != Listing::Gone && (!core.life.finished() || untold)
        })
    }

    /// Who asked for the end is gone: it comes all the same.
    pub(in crate::server::engine) fn forget_shutdown(&mut self, ticket: Ticket) {
        if let Some(closing) = &mut self.cx.closing
            && closing.ticket == Some(ticket)
        {
            closing.ticket = None;
        }
    }

    /// Whether nothing but room keeps a waiting request from being answered.
    fn is_held_back(&self, ticket: Ticket) -> bool {
        let Some(pending) = self.cx.pending.get(&ticket) else { return false };
        let sessions = pending.sessions.iter().filter_map(|id| self.sessions.get(*id));
        let waits = sessions.flat_map(|one| &one.core.waits).filter(|wait| wait.ticket == ticket);
        // A wait for several sessions has one in each of them that is still to be asked.
        let mut held_back = waits.map(|wait| wait.held_back).peekable();
        held_back.peek().is_some() && held_back.all(|held_back| held_back)
    }

    fn answer_shutdown(&mut self) {
        let Some(closing) = &mut self.cx.closing else { return };
        let (ticket, ended) = (closing.ticket.take(), std::mem::take(&mut closing.ended));
        let endings = self.sessions.iter().filter_map(|one| one.core.ending.as_ref());
        let survivors: Vec<Value> = endings
            .filter(|ending| !ending.all_gone())
            .flat_map(Ending::survivors)
            .map(|one| json!(one))
            .collect();
        if let Some(pending) = ticket.and_then(|ticket| self.cx.take_pending(ticket)) {
            let mut result = json!({ "ended": ended });
            if !survivors.is_empty() {
                result["survivors"] = json!(survivors);
            }
            self.cx.clients.reply(&pending, &result);
        }
    }
}
