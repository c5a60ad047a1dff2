//! The end of execd (protocol.md, How execd ends): a state that the
//! turn moves along, not a function that waits.

use std::io::Write;

use serde_json::{Value, json};

use super::client::Client;
use super::clients::STDIN_CLIENT;
use super::logs::errno_text;
use super::{Daemon, Owner};
use crate::config::OnEof;
use crate::limits::{
    LAST_FLUSH_MS, LAST_REAPS, NS_PER_MS, READ_TURN_BYTES, SHUTDOWN_GIVE_UP_MS, SHUTDOWN_GRACE_MS,
};
use crate::session::ending::{Ending, SIGKILL, SIGTERM};
use crate::session::{ClientId, Listing, SessionId, Ticket};

/// SIGHUP's number, signal(7).
const SIGHUP: i32 = 1;

/// Exit status where stdin cannot be read: what timeout(1) and env(1) have for their own failures.
const EXIT_INPUT_FAILED: i32 = 125;

/// Why execd ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// stdin has ended and all requests are answered.
    EndOfInput,
    /// The same, but stdin has not ended: it cannot be read.
    InputFailed,
    /// Nobody reads stdout any more.
    ReaderGone,
    /// SIGTERM, SIGINT or SIGHUP.
    Signal(i32),
    /// The method shutdown.
    Asked,
    /// Nothing came for --exit-after-silence.
    Silence,
    /// The command of `execd run` has ended: execd's exit status.
    Ran(i32),
}

/// Where the end has got to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Sessions are being ended.
    Ending,
    /// The logs and the last replies go out.
    Flushing,
}

/// The end in progress.
#[derive(Debug)]
pub struct Closing {
    cause: Cause,
    phase: Phase,
    /// When the present phase is given up.
    until_ns: u64,
    /// The request that asked for it.
    ticket: Option<Ticket>,
    /// What was ended, for its answer.
    ended: Vec<Value>,
    /// A second signal asked for SIGKILL.
    hurried: bool,
    /// What was unsent when the last flush was last looked at.
    unsent: usize,
}

impl Closing {
    /// Whether pending requests of a client answer with what they have. At the end of stdin
    /// its own run to their end, and nobody else's keep execd alive.
    pub fn answers_pending(&self, client: ClientId) -> bool {
        !matches!(self.cause, Cause::EndOfInput | Cause::InputFailed) || client != STDIN_CLIENT
    }

    /// Notes what is still unsent. A reader that takes some of it, however slowly, gets all of
    /// it, unless a signal asked for the end: only one that never reads is given up.
    fn note_unsent(&mut self, unsent: usize, now_ns: u64) {
        if unsent < self.unsent && !matches!(self.cause, Cause::Signal(_)) {
            self.until_ns = now_ns + LAST_FLUSH_MS * NS_PER_MS;
        }
        self.unsent = unsent;
    }

    fn status(&self) -> i32 {
        match self.cause {
            Cause::EndOfInput | Cause::Asked | Cause::Silence => 0,
            Cause::InputFailed => EXIT_INPUT_FAILED,
            Cause::ReaderGone => 1,
            Cause::Ran(status) => status,
            Cause::Signal(signal) => 128 + signal,
        }
    }
}

impl Daemon {
    /// Begins the end. Once begun, only a signal changes it: it means SIGKILL now.
    pub fn close(&mut self, cause: Cause, ticket: Option<Ticket>) {
        if self.closing.is_some() {
            self.hurry(cause);
            return;
        }
        self.debug(format_args!("closing: {cause:?}"));
        let live: Vec<SessionId> = self
            .sessions
            .values()
            .filter(|session| !session.life.finished())
            .map(|session| session.id)
            .collect();
        let ended = live.iter().filter_map(|id| self.sessions.get(id)).map(|session| {
            let facts = &session.facts;
            json!({"session_id": session.id, "pid": facts.pid, "command": facts.command})
        });
        let ended = ended.collect();
        let until_ns = self.now_ns + (SHUTDOWN_GRACE_MS + SHUTDOWN_GIVE_UP_MS) * NS_PER_MS;
        self.closing = Some(Closing {
            cause,
            phase: Phase::Ending,
            until_ns,
            ticket,
            ended,
            hurried: false,
            unsent: 0,
        });
        self.deadlines.set(Owner::Closing, Some(until_ns));
        let all: Vec<SessionId> = self.sessions.keys().copied().collect();
        for id in all {
            self.begin_ending(id, SIGTERM, SHUTDOWN_GRACE_MS);
        }
        self.end_leftovers(SIGTERM);
    }

    /// execd is ending already: a signal means SIGKILL now, and that no reader is waited for
    /// any longer than the last flush takes.
    fn hurry(&mut self, cause: Cause) {
        let now_ns = self.now_ns;
        let Some(closing) = &mut self.closing else { return };
        if !matches!(cause, Cause::Signal(_)) {
            return;
        }
        if !matches!(closing.cause, Cause::Signal(_)) {
            closing.cause = cause;
        }
        if closing.phase == Phase::Flushing {
            closing.until_ns = closing.until_ns.min(now_ns + LAST_FLUSH_MS * NS_PER_MS);
        }
        // A terminal that goes away says so in several ways at once: SIGHUP hurries nothing.
        if !closing.hurried && cause != Cause::Signal(SIGHUP) {
            closing.hurried = true;
            self.debug(format_args!("closing: hurried"));
            self.kill_everything_now();
        }
    }

    /// Members of sessions that are over are ended too: under their old ids.
    fn end_leftovers(&mut self, signal: i32) {
        self.look_after_members();
        let left = std::mem::take(&mut self.outlived.left);
        for (id, left) in left {
            self.sessions.insert(id, *left.session);
            self.begin_ending(id, signal, SHUTDOWN_GRACE_MS);
        }
    }

    fn kill_everything_now(&mut self) {
        let all: Vec<SessionId> = self.sessions.keys().copied().collect();
        for id in all {
            self.begin_ending(id, SIGKILL, 0);
        }
    }

    /// A signal that ends execd was read.
    pub(crate) fn take_termination(&mut self, signal: i32) {
        self.close(Cause::Signal(signal), None);
    }

    /// Step: notices that execd is to end, and moves the end along. Gives the exit status when
    /// it is done.
    pub(crate) fn step_closing(&mut self) -> Option<i32> {
        if let Some((what, errno)) = self.clients.stdin.failed.take() {
            // stderr is for people: one that can't be written to is their own affair.
            let _ = writeln!(std::io::stderr(), "execd: {what}: {}", errno_text(errno));
        }
        if self.clients.stdin.reader_gone {
            self.close(Cause::ReaderGone, None);
        } else if self.closing.is_none()
            && (self.input_is_over() || self.only_the_reader_is_missing())
        {
            let failed = self.clients.stdin.input_failed;
            self.close(if failed { Cause::InputFailed } else { Cause::EndOfInput }, None);
        }
        self.closing.as_ref()?;
        // Sessions that ended meanwhile may have left members too.
        self.end_leftovers(if self.is_hurried() { SIGKILL } else { SIGTERM });
        let now_ns = self.now_ns;
        let sessions_over = self.sessions.values().all(|session| {
            let gone = session.listing == Listing::Gone && session.waits.is_empty();
            let ended = session.ending.as_ref().is_none_or(Ending::over);
            ended && (session.life.finished() || gone || now_ns >= self.closing_until())
        });
        let over = sessions_over && self.outlived.over.is_empty();
        let closing = self.closing.as_mut()?;
        if closing.phase == Phase::Ending && (over || now_ns >= closing.until_ns) {
            closing.phase = Phase::Flushing;
            closing.until_ns = now_ns + LAST_FLUSH_MS * NS_PER_MS;
            self.answer_shutdown();
            self.keeper.ask_all_syncs();
        }
        let closing = self.closing.as_mut()?;
        if closing.phase == Phase::Flushing {
            closing.note_unsent(self.clients.stdin.outbox.len(), now_ns);
        }
        let until_ns = closing.until_ns;
        if closing.phase == Phase::Flushing {
            let reader_gone = self.clients.stdin.reader_gone;
            let answered = self.clients.iter().all(Client::is_served);
            // The output of `execd run` is its purpose: a slow reader gets all of it.
            let patient = matches!(closing.cause, Cause::Ran(_)) && !reader_gone;
            let late = now_ns >= until_ns && (!patient || self.clients.stdin.outbox.is_empty());
            if (answered && self.keeper.all_settled()) || late {
                let status = closing.status();
                self.reap_the_last();
                self.keeper.goodbye();
                return Some(status);
            }
        }
        self.deadlines.set(Owner::Closing, (until_ns > now_ns).then_some(until_ns));
        None
    }

    /// Orphans that ended a moment ago are zombies of ours, until they would be somebody else's.
    fn reap_the_last(&mut self) {
        self.look_for_children = true;
        for _ in 0..LAST_REAPS {
            if !self.look_for_children {
                break;
            }
            self.read_left = READ_TURN_BYTES;
            self.reap();
        }
    }

    fn is_hurried(&self) -> bool {
        self.closing.as_ref().is_some_and(|closing| closing.hurried)
    }

    fn closing_until(&self) -> u64 {
        self.closing.as_ref().map_or(u64::MAX, |closing| closing.until_ns)
    }

    /// stdin has ended, all waits are over, and nothing but a reader that does not read keeps
    /// them from being answered: that reader has as long as the last flush.
    fn only_the_reader_is_missing(&mut self) -> bool {
        let stuck = self.clients.stdin.input_ended
            && self.clients.stdin.crowded
            && !self.clients.stdin.in_flight.is_empty()
            && self.clients.stdin.in_flight.values().all(|ticket| self.is_held_back(*ticket));
        let unsent = self.clients.stdin.outbox.len();
        match self.stuck_since {
            Some((since_ns, before)) if stuck && before == unsent => {
                let due_ns = since_ns + LAST_FLUSH_MS * NS_PER_MS;
                self.deadlines.set(Owner::Closing, (due_ns > self.now_ns).then_some(due_ns));
                due_ns <= self.now_ns
            }
            _ => {
                self.stuck_since = stuck.then_some((self.now_ns, unsent));
                if stuck {
                    let due_ns = self.now_ns + LAST_FLUSH_MS * NS_PER_MS;
                    self.deadlines.set(Owner::Closing, Some(due_ns));
                }
                false
            }
        }
    }

    /// stdin has ended, everything it asked for is answered, and nothing is waited for.
    fn input_is_over(&self) -> bool {
        self.front.is_none()
            && self.clients.stdin.input_ended
            && !self.clients.stdin.lines.has_complete_line()
            && self.clients.stdin.in_flight.is_empty()
            && self.touched.is_empty()
            && !(self.config.on_eof == OnEof::Wait && self.has_live_session())
    }

    /// Whether a session runs, or its exit is still to be told.
    fn has_live_session(&self) -> bool {
        self.sessions.values().any(|session| {
            let untold = session.announced && !session.exit_told;
            session.listing != Listing::Gone && (!session.life.finished() || untold)
        })
    }

    /// Who asked for the end is gone: it comes all the same.
    pub(crate) fn forget_shutdown(&mut self, ticket: Ticket) {
        if let Some(closing) = &mut self.closing
            && closing.ticket == Some(ticket)
        {
            closing.ticket = None;
        }
    }

    /// Whether nothing but room keeps a waiting request from being answered.
    fn is_held_back(&self, ticket: Ticket) -> bool {
        let session = self.pending.get(&ticket).and_then(|pending| pending.session);
        let Some(session) = session.and_then(|id| self.sessions.get(&id)) else { return false };
        session.waits.iter().any(|wait| wait.ticket == ticket && wait.held_back)
    }

    fn answer_shutdown(&mut self) {
        let Some(closing) = &mut self.closing else { return };
        let (ticket, ended) = (closing.ticket.take(), std::mem::take(&mut closing.ended));
        let survivors: Vec<Value> = self
            .sessions
            .values()
            .filter_map(|session| session.ending.as_ref().filter(|ending| !ending.all_gone()))
            .flat_map(Ending::survivors)
            .map(|one| json!(one))
            .collect();
        if let Some(pending) = ticket.and_then(|ticket| self.take_pending(ticket)) {
            let mut result = json!({ "ended": ended });
            if !survivors.is_empty() {
                result["survivors"] = json!(survivors);
            }
            self.clients.reply(&pending, &result);
        }
    }
}
