//! The end of execd (protocol.md, How execd ends): a state that the turn moves along, not a
//! function that waits. Here is what the end is begun for and how far it is; `steps` moves it.

mod steps;

use serde_json::Value;

use super::clients::STDIN_CLIENT;
use crate::limits::NS_PER_MS;
use crate::pure::process::killed::KilledBy;
use crate::server::session::{ClientId, Ticket};

/// SIGHUP's number, signal(7).
const SIGHUP: i32 = 1;

/// Exit status where stdin cannot be read: what timeout(1) and env(1) have for their own failures.
const EXIT_INPUT_FAILED: i32 = 125;

/// Exit status at the end of stdin where a line of it was answered with an error.
const EXIT_LINE_FAILED: i32 = 1;

/// Why execd ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// stdin has ended and all requests are answered.
    EndOfInput,
    /// All requests are answered, and stdin has not ended but cannot be read.
    InputFailed,
    /// Nobody reads stdout any more.
    ReaderGone,
    /// SIGTERM, SIGINT or SIGHUP.
    Signal(i32),
    /// The method shutdown.
    Asked,
    /// Nothing came on stdin for the time of --lease.
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
    /// The request that asked for the end.
    ticket: Option<Ticket>,
    /// The sessions that were ended, for that request's answer.
    ended: Vec<Value>,
    /// A second signal asked for SIGKILL.
    hurried: bool,
    /// What was unsent or untaken when the last flush was last looked at.
    unsent: usize,
}

impl Closing {
    /// Whether pending requests of a client answer with what they have. At the end of stdin the
    /// requests of its own client run to their end, and those of nobody else keep execd alive.
    pub fn answers_pending(&self, client: ClientId) -> bool {
        !matches!(self.cause, Cause::EndOfInput | Cause::InputFailed) || client != STDIN_CLIENT
    }

    /// Whether sessions are waited for no more.
    pub fn is_flushing(&self) -> bool {
        self.phase == Phase::Flushing
    }

    /// Whether the lines of stdin decide execd's exit status.
    fn tells_of_lines(&self) -> bool {
        self.cause == Cause::EndOfInput
    }

    /// Notes what is still unsent or untaken. A reader that takes some of it, however slowly, gets
    /// all of it, unless a signal asked for the end: only one that takes nothing for `rest_ms` is
    /// given up.
    fn note_unsent(&mut self, unsent: usize, rest_ms: u64, now_ns: u64) {
        if unsent < self.unsent && !matches!(self.cause, Cause::Signal(_)) {
            self.until_ns = now_ns + rest_ms * NS_PER_MS;
        }
        self.unsent = unsent;
    }

    /// By whom execd's end ends sessions.
    pub fn killed_by(&self) -> KilledBy {
        match self.cause {
            Cause::EndOfInput | Cause::InputFailed | Cause::ReaderGone => KilledBy::ClientGone,
            Cause::Signal(_) | Cause::Asked | Cause::Silence | Cause::Ran(_) => KilledBy::Shutdown,
        }
    }

    /// The output of the command in front could not be written: that is execd's exit status,
    /// whatever the command's is.
    pub fn fail_front(&mut self, status: i32) {
        if matches!(self.cause, Cause::Ran(_)) {
            self.cause = Cause::Ran(status);
        }
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
