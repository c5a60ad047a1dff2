//! The command in front: started, given what stdin brings, its output passed on, its end made
//! execd's. What a person is told of the end is left to `cli/run.rs`.

use super::RunFront;
use crate::engine::clients::STDIN_CLIENT;
use crate::engine::closing::Cause;
use crate::engine::contract::Families;
use crate::engine::contract::cx::{Cx, Effect};
use crate::engine::launch::LaunchSpec;
use crate::engine::{Engine, Pending};
use crate::limits::{NS_PER_S, OUTBOX_HIGH_BYTES, REQUEST_READ_TURN_BYTES, STDIN_BACKLOG_BYTES};
use crate::pure::process::life::ExitStatus;
use crate::pure::process::signal_names::parse_signal;
use crate::session::report::ExecReport;
use crate::session::wait::{Wait, WaitKind};
use crate::session::{Session, SessionId};
use crate::sys::io::Io;
use crate::wire::RequestId;

/// Exit statuses of shells and of timeout(1): timed out, not executable, not found.
const EXIT_TIMEOUT: i32 = 124;
const EXIT_NOT_EXECUTABLE: i32 = 126;
const EXIT_NOT_FOUND: i32 = 127;
/// A signal's number is added to this, as shells do.
const EXIT_SIGNAL: i32 = 128;

/// The exit status for a command that could not be started, as shells give it.
fn status_of_failure(failure: &str) -> i32 {
    if failure.contains("ENOENT") { EXIT_NOT_FOUND } else { EXIT_NOT_EXECUTABLE }
}

impl<F: Families> Engine<F> {
    /// Starts the command; `collect` keeps its output for the report. Gives the failure and the
    /// exit status to end with where it can't be started.
    pub fn run_in_front(
        &mut self,
        spec: &LaunchSpec,
        timeout_s: Option<u64>,
        collect: bool,
    ) -> Result<(), (String, i32)> {
        self.cx.clients.stdin.quiet = true;
        let session = self.launch(spec).map_err(|failure| {
            let status = status_of_failure(&failure);
            (failure, status)
        })?;
        let feeds_terminal = spec.tty.is_some();
        self.cx.front = Some(RunFront { session, collect, feeds_terminal, report: None });
        let stdin = &mut self.cx.clients.stdin;
        if !feeds_terminal {
            // stdin is the command's own: we neither read nor watch it.
            if let Some(fd) = stdin.input.poll_fd() {
                self.cx.watch.remove(fd);
            }
            stdin.input_ready = false;
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        stdin.in_flight.insert(RequestId::null(), ticket);
        let (client, id) = (STDIN_CLIENT, RequestId::null());
        self.cx.pending.insert(ticket, Pending { client, id, sessions: vec![session] });
        let now_ns = self.cx.now_ns;
        let due_ns = timeout_s.map(|seconds| now_ns + seconds * NS_PER_S);
        let wait = Wait::new(ticket, F::FRONT, WaitKind::Start, now_ns);
        self.add_wait(session, Wait { due_ns, drains: false, ..wait });
        Ok(())
    }

    /// Gives what stdin brings to the command's terminal; its end becomes the terminal's
    /// end-of-file character.
    pub(in crate::engine) fn feed_front(&mut self) {
        let cx = &mut self.cx;
        let Some(front) = cx.front.as_ref().filter(|front| front.feeds_terminal) else { return };
        let id = front.session;
        let Some(entry) = self.sessions.get_mut(id) else { return };
        let (input, stdin) = (&mut entry.core.input, &mut cx.clients.stdin);
        let mut total = 0;
        while stdin.input_ready && !stdin.input_ended && total < REQUEST_READ_TURN_BYTES {
            if input.backlog_bytes() > STDIN_BACKLOG_BYTES / 2 {
                // Goes on when the command has read some of it: see front_fed.
                stdin.stopped = true;
                break;
            }
            match stdin.input.read(&mut cx.reading.buffer) {
                Io::Moved(bytes) => {
                    total += bytes;
                    input.push(&cx.reading.buffer[..bytes]);
                }
                Io::WouldBlock => stdin.input_ready = false,
                Io::Ended | Io::HungUp | Io::Failed(_) => {
                    stdin.input_ended = true;
                    total += 1;
                }
            }
        }
        if total > 0 {
            if stdin.input_ended
                && let Some(chars) = entry.core.canonical_mode()
            {
                entry.core.input.push(&[chars.eof]);
            }
            self.feed_now(id);
        }
    }

    /// How the command in front ended, once it has.
    pub fn take_front_report(&mut self) -> Option<ExecReport> {
        self.cx.front.as_mut().and_then(|front| front.report.take())
    }
}

impl<F: Families> Cx<F> {
    /// Passes a piece of output on to stdout, where it is that of the command in front. Whether
    /// reading may go on is [`Self::front_has_room`]'s.
    pub(in crate::engine) fn pass_on(&mut self, id: SessionId, bytes: usize) {
        if self.front.as_ref().is_some_and(|front| front.session == id && !front.collect) {
            self.clients.stdin.outbox.push(&self.reading.buffer[..bytes]);
        }
    }

    /// Whether a session's output may be read as far as stdout goes: the command in front waits
    /// for a slow reader, as it would without execd.
    pub(in crate::engine) fn front_has_room(&self, id: SessionId) -> bool {
        let stdin = &self.clients.stdin;
        let full = stdin.outbox.len() > OUTBOX_HIGH_BYTES && !stdin.reader_gone;
        !full || self.front.as_ref().is_none_or(|front| front.session != id)
    }

    /// A command has taken input: stdin may be read on.
    pub(in crate::engine) fn front_fed(&mut self, core: &Session) {
        if self.front.as_ref().is_some_and(|front| front.session == core.id)
            && core.input.backlog_bytes() <= STDIN_BACKLOG_BYTES / 2
        {
            self.clients.stdin.stopped = false;
        }
    }

    /// The command in front has ended (or its time is over): execd ends with it.
    pub fn front_ended(&mut self, core: &Session, report: ExecReport) {
        let status = match (core.start.failure(), report.exit_code, &report.signal) {
            (Some(failure), _, _) => status_of_failure(failure),
            (None, Some(code), _) => code,
            (None, None, Some(signal)) => EXIT_SIGNAL + parse_signal(signal).unwrap_or(0),
            // Others still hold the output: what counts is how the command itself ended.
            (None, None, None) => match core.status() {
                Some(ExitStatus::Code(code)) => code,
                Some(ExitStatus::Signal(signal)) => EXIT_SIGNAL + signal,
                None => EXIT_TIMEOUT,
            },
        };
        if let Some(front) = &mut self.front {
            front.report = Some(report);
        }
        self.effects.push(Effect::Close(Cause::Ran(status)));
    }
}
