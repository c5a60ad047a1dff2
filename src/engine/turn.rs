//! One turn of the loop: wait, note what is ready, then act in fixed steps, each with a bound.
//! docs/architecture.md has the same steps with the same numbers.

use std::time::Duration;

use mio::Events;
use mio::event::Event;

use super::client::Client;
use super::{
    CLOCK, Daemon, KEEPER_ACKS, KEEPER_GUARD, KEEPER_LOG, LISTENER, Owner, Port, REPLIES, REQUESTS,
    SIGNALS, WALL_CLOCK, client_of, session_of,
};
use crate::limits::{CLOCK_RETRY_MS, NS_PER_MS, STALE_TIMER_MS};
use crate::session::output::Source;
use crate::session::{ClientId, Session, SessionId};
use crate::sys::clock::{self, Timer, wall_ns};

impl Daemon {
    /// Deadlines that came although no timer could be armed for them.
    fn run_unarmed(&mut self) {
        if self.clock_failed {
            self.touch_wall_waits();
        }
    }

    /// One turn; gives the exit status when execd is done.
    pub(crate) fn turn(&mut self, events: &mut Events) -> Option<i32> {
        // 0. Wait. A wait that a signal interrupted is a turn without events. A timer that could
        // not be armed (never seen but with faults injected) must not lose a deadline.
        let timeout = match (self.work_left(), self.clock_failed) {
            (true, _) => Some(Duration::ZERO),
            (false, true) => Some(Duration::from_millis(CLOCK_RETRY_MS)),
            (false, false) => None,
        };
        if self.poll.poll(events, timeout).is_err() {
            events.clear();
        }
        self.now_ns = clock::now_ns();
        self.counters.turns += 1;
        self.lookout.borrow_mut().begin_turn(self.counters.turns);
        // 1. Note what is ready; nothing acts here.
        self.note_events(events);
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
        // 7. Requests.
        self.accept_clients();
        self.read_requests();
        // 8. Judge the sessions that something happened to; build replies.
        self.judge_sessions();
        // 9. Replies out.
        self.write_replies();
        // 10. Input of children.
        self.feed_children();
        // 11. Clients that are gone; members that outlive their session.
        self.drop_clients();
        self.look_after_members();
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
        let took_ns = clock::now_ns() - self.now_ns;
        self.counters.slowest_turn_ns = self.counters.slowest_turn_ns.max(took_ns);
        None
    }

    /// Whether something can be done without waiting for an event. With an edge-triggered poll
    /// this is correctness: whoever stopped before WouldBlock is found here.
    fn work_left(&self) -> bool {
        !self.readable.is_empty()
            || !self.touched.is_empty()
            || !self.feedable.is_empty()
            || self.look_for_children
            || !self.ended_leaders.is_empty()
            || !self.outlived.over.is_empty()
            || self.clients.iter().any(Client::has_work)
            || self.accept_ready
            || self.keeper.wants_pumping()
    }

    fn note_events(&mut self, events: &Events) {
        for event in events {
            match event.token() {
                REQUESTS => self.clients.stdin.input_ready = true,
                REPLIES => {
                    let client = &mut self.clients.stdin;
                    client.output_ready |= event.is_writable();
                    client.reader_gone |= event.is_error() || event.is_write_closed();
                }
                SIGNALS => {}
                CLOCK => {
                    self.clock.drain();
                    self.armed_ns = None;
                }
                WALL_CLOCK => {
                    // Fired, or somebody set the clock: both mean looking at what is due.
                    if let Some(clock) = &self.wall_clock {
                        clock.drain();
                    }
                    self.wall_armed_ms = None;
                    self.touch_wall_waits();
                }
                KEEPER_LOG => self.keeper.pipe_writable(),
                KEEPER_ACKS => self.acks_ready = true,
                KEEPER_GUARD if event.is_error() => self.keeper.guard_hung_up(),
                KEEPER_GUARD => self.keeper.pump_guard(),
                LISTENER => self.accept_ready = true,
                token => match client_of(token) {
                    Some(id) => self.note_client_event(id, event),
                    None => self.note_session_event(event),
                },
            }
        }
    }

    fn note_client_event(&mut self, id: ClientId, event: &Event) {
        let Some(client) = self.clients.get_mut(id) else {
            self.counters.stale_events += 1;
            return;
        };
        client.input_ready |= event.is_readable() || event.is_read_closed();
        client.output_ready |= event.is_writable();
        // Both directions are over; a peer that only writes no more still reads.
        client.reader_gone |= event.is_error() || event.is_write_closed();
    }

    fn note_session_event(&mut self, event: &Event) {
        let Some((id, port)) = session_of(event.token()) else { return };
        let Some(session) = self.sessions.get_mut(&id) else {
            self.counters.stale_events += 1;
            return;
        };
        match port {
            // A hang-up comes without readable: read anyway.
            Port::Output => {
                if event.is_writable() {
                    self.input_ready(id);
                }
                self.output_ready(id, Source::Output);
            }
            Port::Errors => self.output_ready(id, Source::Errors),
            Port::Start => self.look_at_start(id),
            Port::Input => self.input_ready(id),
            Port::Leader => _ = self.ended_leaders.insert(id),
            Port::Member => {
                if let Some(ending) = &mut session.ending {
                    ending.ask(self.counters.turns);
                }
                self.touch(id);
            }
        }
    }

    fn take_acks(&mut self) {
        if !std::mem::take(&mut self.acks_ready) {
            return;
        }
        let mut changed = Vec::new();
        if !self.keeper.take_acks(&mut self.read_buffer, &mut changed) {
            self.keeper_gone();
        }
        self.answer_pages();
        self.logs_moved(changed);
        self.tell_of_log_dir();
    }

    fn pump_logs(&mut self) {
        let mut changed = Vec::new();
        if !self.keeper.pump(&mut changed) {
            self.keeper_gone();
        }
        self.watch_log_pipe();
        self.watch_guard_pipe();
        // Without a keeper pages are read by the step above.
        self.answer_pages();
        self.logs_moved(changed);
    }

    fn logs_moved(&mut self, changed: Vec<SessionId>) {
        for id in changed {
            self.log_moved(id);
        }
    }

    fn run_due(&mut self) {
        for signal in std::mem::take(&mut self.signal_to_take) {
            self.take_termination(signal);
        }
        while let Some(owner) = self.deadlines.pop_due(self.now_ns) {
            match owner {
                Owner::Session(id) => self.touch(id),
                Owner::Keeper => self.restart_writer(),
                Owner::Guard => self.restart_guard(),
                Owner::Pages => self.give_up_pages(false, "the disk does not answer"),
                Owner::Silence => self.silence_is_over(),
                Owner::Listener => self.accept_ready = self.listener.is_some(),
                Owner::Reaping => self.reap_now(),
                Owner::Closing => {}
            }
        }
    }

    fn touch_wall_waits(&mut self) {
        let now = u64::try_from(clock::wall_ms()).unwrap_or(0);
        while let Some(id) = self.wall_deadlines.pop_due(now) {
            self.touch(id);
        }
    }

    fn write_replies(&mut self) {
        let mut room = false;
        for client in self.clients.iter_mut() {
            client.note_activity(self.now_ns);
            room |= client.write_output();
            client.watch_output(self.poll.registry());
        }
        self.hang_up_on_the_worst();
        self.front_drained();
        self.wake_viewers();
        if room {
            self.clients.tell_on();
            for id in std::mem::take(&mut self.held_back) {
                self.touch(id);
            }
            self.ask_pages();
            self.resume_agents();
        }
    }

    fn arm(&mut self) {
        let head = self.deadlines.head();
        let stale = STALE_TIMER_MS * NS_PER_MS;
        let keep = match (self.armed_ns, head) {
            (None, None) => true,
            (Some(armed), Some(head)) if armed == head => true,
            // It fires too early, once, soon: cheaper than arming it again for each short wait.
            (Some(armed), Some(head)) if armed < head => armed <= self.now_ns + stale,
            (Some(armed), None) => armed <= self.now_ns + stale,
            _ => false,
        };
        self.clock_failed = false;
        if !keep {
            match self.clock.arm(head) {
                Ok(()) => self.armed_ns = head,
                Err(_) => self.clock_failed = true,
            }
        }
        let wall = self.wall_deadlines.head().and_then(|ms| i64::try_from(ms).ok());
        if wall != self.wall_armed_ms {
            self.arm_wall(wall);
        }
    }

    fn arm_wall(&mut self, at_ms: Option<i64>) {
        if self.wall_clock.is_none()
            && let Ok(timer) = Timer::wall()
            && self.watch(timer.fd(), WALL_CLOCK, mio::Interest::READABLE).is_ok()
        {
            self.wall_clock = Some(timer);
        }
        match &self.wall_clock {
            Some(clock) if clock.arm(at_ms.map(wall_ns)).is_ok() => self.wall_armed_ms = at_ms,
            _ => self.clock_failed = true,
        }
    }

    /// Asserts what holds between turns (in debug builds).
    fn check(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        self.sessions.values().for_each(Session::check);
        let waits: usize = self.sessions.values().map(|session| session.waits.len()).sum();
        let others = self.pending.values().filter(|pending| pending.session.is_none()).count();
        debug_assert_eq!(self.pending.len(), waits + others, "each pending request waits once");
        let in_flight: usize = self.clients.iter().map(|client| client.in_flight.len()).sum();
        debug_assert_eq!(in_flight, self.pending.len(), "one id each");
        for session in self.sessions.values().filter(|session| Self::is_readable(session)) {
            debug_assert!(session.output.queued, "session {} forgotten by reading", session.id);
        }
        let listed = self.listed().filter(|session| !session.has_own_cap()).count();
        debug_assert_eq!(self.listed, listed, "the count of the table");
    }
}
