//! One turn of the loop: wait, note what is ready, then act in fixed steps, each with a bound.
//! docs/architecture.md has the same steps with the same numbers.

use std::collections::BTreeMap;
use std::time::Duration;

use mio::event::Event;
use mio::{Events, Interest};

use super::client::Client;
use super::contract::Families;
use super::launch::learn_start;
use super::run_front::RunFront;
use super::watch::{
    CLOCK, ERRORS, KEEPER_ACKS, KEEPER_GUARD, KEEPER_LOG, LISTENER, Port, REPLIES, REQUESTS,
    SIGNALS, WALL_CLOCK, client_of, session_of,
};
use super::{Engine, Owner, Pending, streams};
use crate::limits::{NS_PER_MS, STALE_TIMER_MS};
use crate::pure::time::deadlines::Deadlines;
use crate::server::session::output::Source;
use crate::server::session::{ClientId, SessionId, Ticket};
use crate::sys::clock::{self, Timer, wall_ns};

/// How soon a timer that could not be armed is tried again.
const CLOCK_RETRY_MS: u64 = 20;

/// The timers, and what they are armed to.
#[derive(Debug)]
pub struct Clocks {
    clock: Timer,
    armed_ns: Option<u64>,
    /// The timer on the wall clock, made at the first yield_until.
    wall: Option<Timer>,
    wall_armed_ms: Option<i64>,
    /// When sessions are to be looked at by the wall clock, in milliseconds since 1970.
    pub wall_deadlines: Deadlines<SessionId>,
    /// A timer could not be armed.
    failed: bool,
}

impl Clocks {
    /// The monotonic timer alone. Errors: the errno of timerfd_create(2).
    pub fn new() -> Result<Self, i32> {
        Ok(Self {
            clock: Timer::monotonic()?,
            armed_ns: None,
            wall: None,
            wall_armed_ms: None,
            wall_deadlines: Deadlines::new(),
            failed: false,
        })
    }

    /// Whether a deadline has passed after the events of the turn were collected: execd was
    /// stopped, or lost its CPU, before it looked at the clocks. What came meanwhile is noted too
    /// then: a match in time was told as a deadline once in seven runs beside a build.
    fn is_late(&self, now_ns: u64, wall_ms: i64) -> bool {
        let wall = self.wall_armed_ms.is_some_and(|due_ms| due_ms <= wall_ms);
        !self.failed && (wall || self.armed_ns.is_some_and(|due_ns| due_ns <= now_ns))
    }

    /// The descriptor of the monotonic timer.
    pub fn fd(&self) -> i32 {
        self.clock.fd()
    }
}

impl<F: Families> Engine<F> {
    /// Deadlines that came although no timer could be armed for them.
    fn run_unarmed(&mut self) {
        if self.clocks.failed {
            self.touch_wall_waits();
        }
    }

    /// One turn; gives the exit status when execd is done.
    pub(crate) fn turn(&mut self, events: &mut Events) -> Option<i32> {
        // 0. Wait. A timer that could not be armed (never seen but with faults injected) must not
        // lose a deadline.
        let timeout = match (self.work_left(), self.clocks.failed) {
            (true, _) => Some(Duration::ZERO),
            (false, true) => Some(Duration::from_millis(CLOCK_RETRY_MS)),
            (false, false) => None,
        };
        self.cx.watch.wait(events, timeout);
        self.cx.now_ns = clock::now_ns();
        self.cx.wall_ms = clock::wall_ms();
        self.cx.counters.turns += 1;
        self.cx.lookout.borrow_mut().begin_turn(self.cx.counters.turns);
        // 1. Note what is ready; nothing acts here.
        self.note_events(events);
        if self.clocks.is_late(self.cx.now_ns, self.cx.wall_ms) {
            self.cx.watch.wait(events, Some(Duration::ZERO));
            self.note_events(events);
        }
        // 2. Signals.
        self.take_signals();
        // 3. What the keeper acknowledged; whether both its processes are there.
        self.take_acks();
        self.look_after_guard();
        // 4. Output of children.
        self.read_sessions();
        // 5. Children that ended.
        self.reap();
        // 6. Deadlines that are due.
        self.run_unarmed();
        self.run_due();
        self.note_ends();
        // 7. Requests.
        self.accept_clients();
        self.read_requests();
        // 8. Judge the sessions that something happened to; build replies.
        self.judge_sessions();
        self.answer_events();
        // 9. Replies out.
        self.write_replies();
        // 10. Input of children.
        self.feed_children();
        // 11. Clients that are gone; members that outlive their session.
        self.drop_clients();
        self.sessions.look_after_members(&mut self.cx);
        // 12. Logs out: a reply that does not point at the log never waits for it. The end of
        // execd.
        self.pump_logs();
        self.look_after_guard();
        let done = self.step_closing();
        if done.is_some() {
            return done;
        }
        // 13. Arm the clocks.
        self.arm();
        self.check();
        let took_ns = clock::now_ns() - self.cx.now_ns;
        let counters = &mut self.cx.counters;
        counters.slowest_turn_ns = counters.slowest_turn_ns.max(took_ns);
        None
    }

    /// Whether something can be done without waiting for an event. With an edge-triggered poll
    /// this is correctness: whoever stopped before WouldBlock is found here.
    fn work_left(&self) -> bool {
        let queues = &self.cx.queues;
        !queues.readable.is_empty()
            || !queues.touched.is_empty()
            || self.list_looks.goes_on()
            || !queues.feedable.is_empty()
            || !queues.ended_leaders.is_empty()
            || self.reaping.look_for_children
            || !self.sessions.outlived.over.is_empty()
            || self.cx.clients.iter().any(Client::has_work)
            || self.may_start_next()
            || self.cx.front.as_ref().is_some_and(RunFront::has_work)
            || self.door.knocked
            || self.cx.keeper.wants_pumping()
    }

    fn note_events(&mut self, events: &Events) {
        for event in events {
            match event.token() {
                REQUESTS => self.cx.clients.stdin.input_ready = true,
                REPLIES => {
                    let gone = event.is_error() || event.is_write_closed();
                    let client = &mut self.cx.clients.stdin;
                    // A command in front learns that nobody reads when it writes, as it would
                    // without execd.
                    client.output_ready |= event.is_writable() || gone;
                    client.reader_gone |= gone && self.cx.front.is_none();
                }
                ERRORS => {
                    if let Some(errors) = self.cx.front.as_mut().and_then(|one| one.errors_mut()) {
                        errors.output_ready = true;
                    }
                }
                SIGNALS => {}
                CLOCK => {
                    self.clocks.clock.drain();
                    self.clocks.armed_ns = None;
                }
                WALL_CLOCK => {
                    // Fired, or somebody set the clock: both mean looking at what is due.
                    if let Some(clock) = &self.clocks.wall {
                        clock.drain();
                    }
                    self.clocks.wall_armed_ms = None;
                    self.touch_wall_waits();
                }
                KEEPER_LOG => self.cx.keeper.pipe_writable(),
                KEEPER_ACKS => self.helpers.acks_ready = true,
                KEEPER_GUARD if event.is_error() => self.cx.keeper.guard_hung_up(),
                KEEPER_GUARD => self.cx.keeper.pump_guard(),
                LISTENER => self.door.knocked = true,
                token => match client_of(token) {
                    Some(id) => self.note_client_event(id, event),
                    None => self.note_session_event(event),
                },
            }
        }
    }

    fn note_client_event(&mut self, id: ClientId, event: &Event) {
        let Some(client) = self.cx.clients.get_mut(id) else {
            self.cx.counters.stale_events += 1;
            return;
        };
        client.input_ready |= event.is_readable() || event.is_read_closed();
        client.output_ready |= event.is_writable();
        // Both directions are over; a peer that only writes no more still reads.
        client.reader_gone |= event.is_error() || event.is_write_closed();
    }

    fn note_session_event(&mut self, event: &Event) {
        let Some((id, port)) = session_of(event.token()) else { return };
        let cx = &mut self.cx;
        let Some(entry) = self.sessions.get_mut(id) else {
            cx.counters.stale_events += 1;
            return;
        };
        let core = &mut entry.core;
        match port {
            // A hang-up comes without readable: read anyway.
            Port::Output => {
                if event.is_writable() {
                    cx.queues.input_ready(id);
                }
                streams::output_ready(core, Source::Output, cx);
            }
            Port::Errors => streams::output_ready(core, Source::Errors, cx),
            Port::Start => learn_start(core, cx),
            Port::Probe => cx.touch(core),
            Port::Input => cx.queues.input_ready(id),
            Port::Leader => _ = cx.queues.ended_leaders.insert(id),
            Port::Member => {
                if let Some(ending) = &mut core.ending {
                    ending.ask(cx.counters.turns);
                }
                // An orphan is reaped before anybody tells what the session has used.
                self.reaping.look_for_children = true;
                cx.touch(core);
            }
        }
    }

    fn take_acks(&mut self) {
        if !std::mem::take(&mut self.helpers.acks_ready) {
            return;
        }
        let mut changed = Vec::new();
        let cx = &mut self.cx;
        if !cx.keeper.take_acks(&mut cx.reading.buffer, &mut changed) {
            self.keeper_gone();
        }
        self.logs_moved(changed);
        self.tell_of_log_dir();
    }

    fn pump_logs(&mut self) {
        let mut changed = Vec::new();
        if !self.cx.keeper.pump(&mut changed) {
            self.keeper_gone();
        }
        self.watch_log_pipe();
        self.watch_guard_pipe();
        // Without a keeper pages are read by the step above.
        self.logs_moved(changed);
    }

    fn logs_moved(&mut self, changed: Vec<SessionId>) {
        self.answer_pages();
        for id in changed {
            self.log_moved(id);
        }
    }

    fn run_due(&mut self) {
        for came in std::mem::take(&mut self.reaping.terminations) {
            self.take_termination(came);
        }
        while let Some(owner) = self.cx.deadlines.pop_due(self.cx.now_ns) {
            match owner {
                Owner::Session(id) => self.touch(id),
                Owner::Keeper => self.restart_writer(),
                Owner::Guard => self.restart_guard(),
                Owner::Pages => self.give_up_pages(false, "the disk does not answer"),
                Owner::Silence => self.silence_is_over(),
                Owner::Listener => self.door.knocked = self.door.is_open(),
                Owner::Reaping => self.reap_now(),
                Owner::Front => self.front_is_due(),
                Owner::Secrets => self.look_at_secrets(),
                // Looked at in their own steps.
                Owner::Closing | Owner::Events | Owner::Lists => {}
            }
        }
    }

    fn touch_wall_waits(&mut self) {
        let now = u64::try_from(self.cx.wall_ms).unwrap_or(0);
        while let Some(id) = self.clocks.wall_deadlines.pop_due(now) {
            self.touch(id);
        }
    }

    /// Puts a session on the list to be judged.
    pub fn touch(&mut self, id: SessionId) {
        if let Some(entry) = self.sessions.get_mut(id) {
            self.cx.touch(&mut entry.core);
        }
    }

    fn write_replies(&mut self) {
        let mut room = false;
        for client in self.cx.clients.iter_mut() {
            client.note_activity(self.cx.now_ns);
            room |= client.write_output();
            client.watch_output(self.cx.watch.registry());
        }
        self.cx.write_front_errors();
        self.hang_up_on_the_worst();
        self.resume_readers();
        self.wake_viewers();
        if room {
            self.cx.clients.tell_on();
            self.answer_events();
            for id in std::mem::take(&mut self.cx.queues.held_back) {
                self.touch(id);
            }
            self.ask_pages();
        }
    }

    fn arm(&mut self) {
        if self.cx.config.lease_ms.is_some() {
            self.cx.clients.stdin.note_unread();
        }
        let (clocks, now_ns) = (&mut self.clocks, self.cx.now_ns);
        let head = self.cx.deadlines.head();
        let stale = STALE_TIMER_MS * NS_PER_MS;
        let keep = match (clocks.armed_ns, head) {
            (None, None) => true,
            (Some(armed), Some(head)) if armed == head => true,
            // The timer fires too early, once, soon: cheaper than arming it for each short wait.
            (Some(armed), Some(head)) if armed < head => armed <= now_ns + stale,
            (Some(armed), None) => armed <= now_ns + stale,
            _ => false,
        };
        clocks.failed = false;
        if !keep {
            match clocks.clock.arm(head) {
                Ok(()) => clocks.armed_ns = head,
                Err(_) => clocks.failed = true,
            }
        }
        let wall = clocks.wall_deadlines.head().and_then(|ms| i64::try_from(ms).ok());
        if wall != clocks.wall_armed_ms {
            self.arm_wall(wall);
        }
    }

    fn arm_wall(&mut self, at_ms: Option<i64>) {
        let clocks = &mut self.clocks;
        if clocks.wall.is_none()
            && let Ok(timer) = Timer::wall()
            && self.cx.watch.add(timer.fd(), WALL_CLOCK, Interest::READABLE).is_ok()
        {
            clocks.wall = Some(timer);
        }
        match &clocks.wall {
            Some(clock) if clock.arm(at_ms.map(wall_ns)).is_ok() => clocks.wall_armed_ms = at_ms,
            _ => clocks.failed = true,
        }
    }

    /// Asserts what holds between turns (in debug builds).
    fn check(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        self.sessions.check();
        let pending = &self.cx.pending;
        let mut waits: BTreeMap<Ticket, Vec<SessionId>> = BTreeMap::new();
        for core in self.sessions.iter().map(|one| &one.core) {
            core.waits.iter().for_each(|wait| waits.entry(wait.ticket).or_default().push(core.id));
        }
        for (ticket, sessions) in waits.iter() {
            let once = |one: &Pending| {
                let asked = sessions.iter().all(|id| one.sessions.contains(id));
                asked && sessions.is_sorted_by(|one, next| one < next)
            };
            debug_assert!(pending.get(ticket).is_some_and(once), "each wait has its request");
        }
        let others = pending.values().filter(|pending| pending.sessions.is_empty()).count();
        debug_assert_eq!(pending.len(), waits.len() + others, "each pending request waits");
        let in_flight: usize = self.cx.clients.iter().map(|one| one.in_flight.len()).sum();
        debug_assert_eq!(in_flight, pending.len(), "one id each");
        for one in self.sessions.iter().filter(|one| streams::is_readable(&one.core)) {
            debug_assert!(one.core.output.queued, "session {} forgotten by reading", one.core.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only the monotonic clock was looked at: a match that came before the moment of
    /// `yield_until` was told as a deadline.
    #[test]
    fn a_deadline_of_either_clock_that_passes_within_a_turn_is_late() {
        let mut clocks = Clocks::new().expect("a timer");
        assert!(!clocks.is_late(u64::MAX, i64::MAX), "nothing is armed");
        clocks.armed_ns = Some(500);
        assert_eq!([499, 500].map(|now_ns| clocks.is_late(now_ns, i64::MAX)), [false, true]);
        clocks.armed_ns = None;
        clocks.wall_armed_ms = Some(500);
        assert_eq!([499, 500].map(|wall_ms| clocks.is_late(u64::MAX, wall_ms)), [false, true]);
        // Those that no timer could be armed for are looked at in every turn.
        clocks.failed = true;
        assert!(!clocks.is_late(u64::MAX, i64::MAX));
    }
}
