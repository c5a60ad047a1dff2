//! The command in front: started, given what stdin brings, its output passed on, its end made
//! execd's. What a person is told of the end is left to `cli/run.rs`.

use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;

use mio::Interest;

use super::passed::resize;
use super::{FrontSpec, RunFront};
use crate::limits::{OUTBOX_HIGH_BYTES, REQUEST_READ_TURN_BYTES, STDIN_BACKLOG_BYTES};
use crate::pure::process::life::{EXIT_SIGNAL, ExitStatus};
use crate::server::engine::client::Client;
use crate::server::engine::clients::STDIN_CLIENT;
use crate::server::engine::closing::Cause;
use crate::server::engine::contract::Families;
use crate::server::engine::contract::cx::{Cx, Effect};
use crate::server::engine::judge::status_fields;
use crate::server::engine::launch::LaunchSpec;
use crate::server::engine::watch::ERRORS;
use crate::server::engine::{Engine, Owner, Pending};
use crate::server::session::output::Source;
use crate::server::session::report::ExecReport;
use crate::server::session::wait::{Wait, WaitKind};
use crate::server::session::{ClientId, Session, SessionId};
use crate::sys::errno::errno_text;
use crate::sys::given;
use crate::sys::io::{self, Io};
use crate::sys::stdio::Channel;
use crate::wire::RequestId;

/// Exit statuses of env(1) and timeout(1): timed out, a failure of their own, not executable, not
/// found.
pub(super) const EXIT_TIMEOUT: i32 = 124;
const EXIT_OWN_FAILURE: i32 = 125;
const EXIT_NOT_EXECUTABLE: i32 = 126;
const EXIT_NOT_FOUND: i32 = 127;
/// As after SIGPIPE, signal(7): nobody reads what the command writes.
const EXIT_NO_READER: i32 = EXIT_SIGNAL + 13;
/// The client that stderr is: none of the socket's has this number.
const ERRORS_CLIENT: ClientId = ClientId::MAX;

/// The exit status for a command that could not be started, as env(1) gives it: only what the
/// kernel says of the program itself is the program's.
fn status_of_failure(failure: &str) -> i32 {
    let of_program = failure.starts_with("spawn ") && !failure.ends_with("(starting a process)");
    match of_program {
        true if failure.contains("ENOENT") => EXIT_NOT_FOUND,
        true => EXIT_NOT_EXECUTABLE,
        false => EXIT_OWN_FAILURE,
    }
}

impl<F: Families> Engine<F> {
    /// Starts the command. Gives the failure and the exit status to end with where it can't be
    /// started.
    pub fn run_in_front(
        &mut self,
        launch: &LaunchSpec,
        spec: FrontSpec,
    ) -> Result<(), (String, i32)> {
        self.cx.clients.stdin.quiet = true;
        let own = |what: &str, errno| (format!("{what}: {}", errno_text(errno)), EXIT_OWN_FAILURE);
        self.signals.widen().map_err(|errno| own("signalfd", errno))?;
        let null = Rc::new(io::dev_null().map_err(|errno| own("/dev/null", errno))?);
        let errors = launch.split.then(|| self.errors(&null)).transpose();
        let errors = errors.map_err(|errno| own("stderr", errno))?;
        let feeds_terminal = launch.tty.is_some();
        if !feeds_terminal {
            self.leave_stdin(&null);
        }
        let session = self.launch(launch).map_err(|failure| {
            let status = status_of_failure(&failure);
            (failure, status)
        })?;
        // Its own command may ask which sessions there are.
        if let Some(mut entry) = self.sessions.take(session) {
            self.sessions.register(&mut entry.core, &mut self.cx);
            self.sessions.put(entry);
        }
        given::let_go();
        if !feeds_terminal {
            given::let_go_of_stdin(null.as_raw_fd());
        }
        let began_ns = self.cx.now_ns;
        self.cx.front = Some(RunFront {
            session,
            spec,
            feeds_terminal,
            last_fed: b'\n',
            errors,
            began_ns,
            timed_out: None,
            interrupts: (0, 0),
            asked_to_end: None,
            report: None,
            keys: vec![],
            died_of: None,
            kept: None,
        });
        if let Some(entry) = self.sessions.get(session) {
            // Our terminal may have changed before that could be told.
            resize(&entry.core);
        }
        let stdin = &mut self.cx.clients.stdin;
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        stdin.in_flight.insert(RequestId::null(), ticket);
        let (client, id) = (STDIN_CLIENT, RequestId::null());
        self.cx.pending.insert(ticket, Pending { client, id, sessions: vec![session], line: 0 });
        let wait = Wait::new(ticket, F::FRONT, WaitKind::Start, began_ns);
        self.add_wait(session, Wait { due_ns: None, drains: false, ..wait });
        self.cx.deadlines.set(Owner::Front, Some(began_ns));
        Ok(())
    }

    /// stdin is the command's own: execd neither reads nor watches it, and leaves its flags as they
    /// were. `null` is /dev/null.
    fn leave_stdin(&mut self, null: &Rc<OwnedFd>) {
        let stdin = &mut self.cx.clients.stdin;
        if let Some(fd) = stdin.input.poll_fd() {
            self.cx.watch.remove(fd);
        }
        stdin.input_ready = false;
        stdin.input = Channel::of_connection(Rc::clone(null));
    }

    /// stderr as a client that is only sent something: `null`, from which it reads nothing, is
    /// /dev/null. Errors: an errno.
    fn errors(&self, null: &Rc<OwnedFd>) -> Result<Client, i32> {
        let input = Channel::of_connection(Rc::clone(null));
        let output = Channel::open(2)?;
        let mut client = Client::new(ERRORS_CLIENT, input, output, 0);
        client.output_watch = (ERRORS, Interest::PRIORITY, Interest::WRITABLE);
        if let Some(fd) = client.output.poll_fd() {
            let watched = self.cx.watch.add_or_always(fd, ERRORS, Interest::PRIORITY);
            if watched.map_err(|error| error.raw_os_error().unwrap_or(0))? {
                client.output.always_ready();
            }
        }
        Ok(client)
    }

    /// Nobody reads what the command writes, or it `failed` to be written: execd ends, quietly as
    /// after SIGPIPE or as after a failure of its own.
    pub(in crate::server::engine) fn look_at_front_readers(&mut self, mut failed: bool) {
        let cx = &mut self.cx;
        let Some(front) = &mut cx.front else { return };
        let mut gone = cx.clients.stdin.reader_gone;
        if let Some(errors) = &mut front.errors {
            failed |= errors.failed.take().is_some();
            gone |= errors.reader_gone;
        }
        let status = if failed { EXIT_OWN_FAILURE } else { EXIT_NO_READER };
        match &mut cx.closing {
            Some(closing) if failed => closing.fail_front(status),
            None if gone => self.close(Cause::Ran(status), None),
            _ => {}
        }
    }

    /// Gives what stdin brings to the command's terminal; its end becomes the terminal's
    /// end-of-file character.
    pub(in crate::server::engine) fn feed_front(&mut self) {
        let cx = &mut self.cx;
        let Some(front) = cx.front.as_mut().filter(|front| front.feeds_terminal) else { return };
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
                    let piece = &cx.reading.buffer[..bytes];
                    front.last_fed = piece.last().copied().unwrap_or(front.last_fed);
                    input.push(piece);
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
                // Behind the beginning of a line the character only hands that over (termios(3)).
                let times = if front.last_fed == b'\n' { 1 } else { 2 };
                entry.core.input.push(&[chars.eof].repeat(times));
            }
            self.feed_now(id);
        }
    }

    /// How the command in front ended, once it has; `execd run` is about to end then.
    pub fn take_front_report(&mut self) -> Option<ExecReport> {
        let front = self.cx.front.as_mut()?;
        let mut report = front.report.take()?;
        if front.kept.is_some() {
            // What was left in the background is a part of the run.
            report.took(self.cx.now_ns.saturating_sub(front.began_ns));
        }
        report.is_over();
        Some(report)
    }

    /// The signal that has ended the command in front, where a key of our terminal has sent it to
    /// both.
    pub fn front_died_of(&self) -> Option<i32> {
        let front = self.cx.front.as_ref()?;
        front.died_of.filter(|signal| front.keys.contains(signal))
    }

    /// The command in front has ended, and others hold its output or are in its session: what is
    /// told of the end is told once that is over too.
    pub(in crate::server::engine) fn follow_front(&mut self) {
        let Some(front) = &self.cx.front else { return };
        let (session, began_ns) = (front.session, front.began_ns);
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let (client, id) = (STDIN_CLIENT, RequestId::null());
        self.cx.clients.stdin.in_flight.insert(RequestId::null(), ticket);
        self.cx.pending.insert(ticket, Pending { client, id, sessions: vec![session], line: 0 });
        let wait = Wait::new(ticket, F::FRONT, WaitKind::End { or_kill: false }, began_ns);
        self.add_wait(session, Wait { saw_leader: false, drains: false, ..wait });
    }

    /// The session of the command in front is waited for no more, over or not.
    pub(in crate::server::engine) fn give_up_front(&mut self) {
        let Some(front) = &self.cx.front else { return };
        if let Some(entry) = self.sessions.get_mut(front.session) {
            self.cx.touch(&mut entry.core);
        }
    }
}

impl<F: Families> Cx<F> {
    /// Passes a piece of output on to stdout or stderr, where it is that of the command in front.
    /// Whether reading may go on is [`Self::front_has_room`]'s.
    pub(in crate::server::engine) fn pass_on(
        &mut self,
        id: SessionId,
        source: Source,
        bytes: usize,
    ) {
        let ours = |front: &&mut RunFront| front.session == id && !front.spec.collect;
        let Some(front) = self.front.as_mut().filter(ours) else { return };
        let reader = match &mut front.errors {
            Some(errors) if source == Source::Errors => errors,
            _ => &mut self.clients.stdin,
        };
        reader.outbox.push(&self.reading.buffer[..bytes]);
    }

    /// Whether one stream of a session may be read as far as stdout or stderr goes, whichever gets
    /// it: the command in front waits for the slow reader of one, as it would without execd, and
    /// nobody waits for the reader of the other.
    pub(in crate::server::engine) fn front_has_room(&self, id: SessionId, source: Source) -> bool {
        let Some(front) = self.front.as_ref().filter(|front| front.session == id) else {
            return true;
        };
        let reader = match &front.errors {
            Some(errors) if source == Source::Errors => errors,
            _ => &self.clients.stdin,
        };
        reader.outbox.len() <= OUTBOX_HIGH_BYTES || reader.reader_gone
    }

    /// Whether a session's output was passed on as it came, so that no report tells it.
    pub fn passes_on(&self, id: SessionId) -> bool {
        self.front.as_ref().is_some_and(|front| front.session == id && !front.spec.collect)
    }

    /// Whether this is the session of the command in front.
    pub fn is_front(&self, id: SessionId) -> bool {
        self.front.as_ref().is_some_and(|front| front.session == id)
    }

    /// Writes what stderr takes.
    pub(in crate::server::engine) fn write_front_errors(&mut self) {
        if let Some(errors) = self.front.as_mut().and_then(|front| front.errors.as_mut()) {
            errors.write_output();
            errors.watch_output(self.watch.registry());
        }
    }

    /// A command has taken input: stdin may be read on.
    pub(in crate::server::engine) fn front_fed(&mut self, core: &Session) {
        if self.front.as_ref().is_some_and(|front| front.session == core.id)
            && core.input.backlog_bytes() <= STDIN_BACKLOG_BYTES / 2
        {
            self.clients.stdin.stopped = false;
        }
    }

    /// The command in front has ended: execd ends with it.
    pub fn front_ended(&mut self, core: &Session, mut report: ExecReport) {
        let timed_out = self.front.as_ref().is_some_and(|front| front.timed_out.is_some());
        let status = match (core.start.failure(), core.status()) {
            (Some(failure), _) => status_of_failure(failure),
            _ if timed_out => EXIT_TIMEOUT,
            (None, Some(ExitStatus::Code(code))) => code,
            (None, Some(ExitStatus::Signal(signal))) => EXIT_SIGNAL + signal,
            // Nothing else ends the wait for a command in front.
            (None, None) => EXIT_OWN_FAILURE,
        };
        // Others may still hold the output: what counts is how the command itself ended. When
        // somebody reads this, there is no such session any more.
        let ran = core.start.failure().is_none();
        // What could not be started has no end of its own.
        (report.exit_code, report.signal) = status_fields(core.status().filter(|_| ran));
        let goes_on = report.session_id.take().is_some() && ran;
        // What holds the output is ended, or waited for: see background.rs.
        report.note = None;
        let Some(front) = &mut self.front else { return };
        if let Some(before) = front.report.take() {
            report.note = before.note;
            report.failure_message = report.failure_message.or(before.failure_message);
            front.report = Some(report);
            return;
        }
        front.report = Some(report);
        front.died_of = match core.status() {
            Some(ExitStatus::Signal(signal)) if !timed_out => Some(signal),
            _ => None,
        };
        if goes_on {
            self.effects.push(Effect::FollowFront);
        }
        if front.spec.keeps_background && ran && !timed_out {
            front.kept = Some(status);
            // The time that all of it may take goes on.
            self.deadlines.set(Owner::Front, Some(self.now_ns));
        } else {
            self.effects.push(Effect::Close(Cause::Ran(status)));
        }
    }
}
