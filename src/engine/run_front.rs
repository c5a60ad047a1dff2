//! `execd run`: the daemon with one command in front instead of a client. Its output goes to
//! stdout as it comes, byte for byte; its end is execd's.

use super::clients::STDIN_CLIENT;
use super::closing::Cause;
use super::launch::LaunchSpec;
use super::{Daemon, Pending};
use crate::limits::{NS_PER_S, OUTBOX_HIGH_BYTES, REQUEST_READ_TURN_BYTES, STDIN_BACKLOG_BYTES};
use crate::pure::process::life::ExitStatus;
use crate::pure::process::signal_names::parse_signal;
use crate::session::output::{Hold, Source};
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

/// The command in front.
#[derive(Debug)]
pub struct RunFront {
    session: SessionId,
    /// Keep the output for the report instead of passing it on.
    collect: bool,
    /// What stdin brings goes to the command's terminal.
    feeds_terminal: bool,
    /// Reading of its output waits for stdout.
    held: bool,
    /// How it ended.
    pub report: Option<ExecReport>,
}

impl Daemon {
    /// Starts the command; `collect` keeps its output for the report. Gives the failure and the
    /// exit status to end with where it can't be started.
    pub fn run_in_front(
        &mut self,
        spec: &LaunchSpec,
        timeout_s: Option<u64>,
        collect: bool,
    ) -> Result<(), (String, i32)> {
        self.clients.stdin.quiet = true;
        let session = self.launch(spec).map_err(|failure| {
            let status = status_of_failure(&failure);
            (failure, status)
        })?;
        let feeds_terminal = spec.tty.is_some();
        let (held, report) = (false, None);
        self.front = Some(RunFront { session, collect, feeds_terminal, held, report });
        if !feeds_terminal {
            // stdin is the command's own: we neither read nor watch it.
            if let Some(fd) = self.clients.stdin.input.poll_fd() {
                self.unwatch(fd);
            }
            self.clients.stdin.input_ready = false;
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let pending =
            Pending { client: STDIN_CLIENT, id: RequestId::null(), session: Some(session) };
        self.clients.stdin.in_flight.insert(RequestId::null(), ticket);
        self.pending.insert(ticket, pending);
        let now_ns = self.now_ns;
        self.add_wait(
            session,
            Wait {
                due_ns: timeout_s.map(|seconds| now_ns + seconds * NS_PER_S),
                ..Wait::new(ticket, WaitKind::Exec, now_ns)
            },
        );
        Ok(())
    }

    /// Passes a piece of output on to stdout. Whether reading may go on is
    /// [`Self::front_has_room`]'s.
    pub(crate) fn pass_on(&mut self, id: SessionId, bytes: usize) {
        if self.front.as_ref().is_some_and(|front| front.session == id && !front.collect) {
            self.clients.stdin.outbox.push(&self.read_buffer[..bytes]);
        }
    }

    /// Whether a session's output may be read as far as stdout goes: the command in front waits
    /// for a slow reader, as it would without execd.
    pub(crate) fn front_has_room(&mut self, id: SessionId) -> bool {
        let full = self.clients.stdin.outbox.len() > OUTBOX_HIGH_BYTES;
        match &mut self.front {
            Some(front) if front.session == id && full && !self.clients.stdin.reader_gone => {
                front.held = true;
                false
            }
            _ => true,
        }
    }

    /// stdout has taken something: reading goes on.
    pub(crate) fn front_drained(&mut self) {
        let room = self.clients.stdin.outbox.len() <= OUTBOX_HIGH_BYTES;
        if let Some(front) = &mut self.front
            && front.held
            && room
        {
            front.held = false;
            let id = front.session;
            if let Some(session) = self.sessions.get_mut(&id) {
                session.output.release(Hold::Reader);
            }
            self.output_ready(id, Source::Output);
            self.touch(id);
        }
    }

    /// Gives what stdin brings to the command's terminal; its end becomes the terminal's
    /// end-of-file character.
    pub(crate) fn feed_front(&mut self) {
        let Some(front) = self.front.as_ref().filter(|front| front.feeds_terminal) else { return };
        let id = front.session;
        let mut total = 0;
        while self.clients.stdin.input_ready
            && !self.clients.stdin.input_ended
            && total < REQUEST_READ_TURN_BYTES
        {
            let Some(session) = self.sessions.get_mut(&id) else { return };
            if session.input.backlog_bytes() > STDIN_BACKLOG_BYTES / 2 {
                // Goes on when the command has read some of it: see front_fed.
                self.clients.stdin.stopped = true;
                break;
            }
            match self.clients.stdin.input.read(&mut self.read_buffer) {
                Io::Moved(bytes) => {
                    total += bytes;
                    session.input.push(&self.read_buffer[..bytes]);
                }
                Io::WouldBlock => self.clients.stdin.input_ready = false,
                Io::Ended | Io::HungUp | Io::Failed(_) => {
                    self.clients.stdin.input_ended = true;
                    if let Some(chars) = session.canonical_mode() {
                        session.input.push(&[chars.eof]);
                    }
                    total += 1;
                }
            }
        }
        if total > 0 {
            self.feed_now(id);
        }
    }

    /// A command has taken input: stdin may be read on.
    pub(crate) fn front_fed(&mut self, id: SessionId) {
        let room = |session: &Session| session.input.backlog_bytes() <= STDIN_BACKLOG_BYTES / 2;
        if self.front.as_ref().is_some_and(|front| front.session == id)
            && self.sessions.get(&id).is_some_and(room)
        {
            self.clients.stdin.stopped = false;
        }
    }

    /// The command in front has ended (or its time is over): execd ends with it.
    pub(crate) fn front_ended(&mut self, report: ExecReport) {
        let failed = self.front_session().and_then(|session| session.start.failure());
        let status = match (report.exit_code, &report.signal, self.front_session()) {
            _ if failed.is_some() => status_of_failure(failed.unwrap_or_default()),
            (Some(code), _, _) => code,
            (None, Some(signal), _) => EXIT_SIGNAL + parse_signal(signal).unwrap_or(0),
            // Jobs of it still hold the output: what counts is how the command itself ended.
            (None, None, Some(session)) => match session.status() {
                Some(ExitStatus::Code(code)) => code,
                Some(ExitStatus::Signal(signal)) => EXIT_SIGNAL + signal,
                None => EXIT_TIMEOUT,
            },
            (None, None, None) => EXIT_TIMEOUT,
        };
        if let Some(front) = &mut self.front {
            front.report = Some(report);
        }
        self.close(Cause::Ran(status), None);
    }

    /// The session of the command in front.
    pub fn front_session(&self) -> Option<&Session> {
        self.front.as_ref().and_then(|front| self.sessions.get(&front.session))
    }

    /// How the command in front ended, once it has.
    pub fn take_front_report(&mut self) -> Option<ExecReport> {
        self.front.as_mut().and_then(|front| front.report.take())
    }
}
