//! `execd run`: the engine with one command in front instead of a client. The command's output goes
//! to stdout and stderr as it comes, byte for byte, and its end is execd's.

mod background;
mod passed;
mod steps;
mod times;

use super::client::Client;
use crate::server::session::SessionId;
use crate::server::session::report::ExecReport;

/// How the command in front is run.
#[derive(Clone, Copy, Debug)]
pub struct FrontSpec {
    /// Keep the output for the report instead of passing it on.
    pub collect: bool,
    /// Wait for what the command leaves in the background instead of ending it.
    pub keeps_background: bool,
    /// When the command is ended, and how.
    pub times: Times,
}

/// When the command in front is ended, and how.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// How long it may take.
    pub timeout_ms: Option<u64>,
    /// How long it may write nothing.
    pub idle_ms: Option<u64>,
    /// What is sent then.
    pub signal: i32,
    /// How long after that SIGKILL is sent to what is left.
    pub kill_after_ms: u64,
}

/// What has ended the command in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimedOut {
    /// The time it may take is over.
    Timeout,
    /// It has written nothing for so long.
    Idle,
}

/// The command in front.
#[derive(Debug)]
pub struct RunFront {
    session: SessionId,
    spec: FrontSpec,
    /// What stdin brings goes to the command's terminal.
    feeds_terminal: bool,
    /// The last byte that stdin has brought.
    last_fed: u8,
    /// stderr, where it is apart from stdout: a client that is sent bytes and asks for nothing.
    errors: Option<Client>,
    /// When the command was started.
    began_ns: u64,
    /// Its time was over.
    timed_out: Option<TimedOut>,
    /// How often Ctrl-C came in a row, and when it came last.
    interrupts: (u32, u64),
    /// The last signal that asked for the end while execd was not ending yet: a reader that takes
    /// nothing is waited for no longer than the last flush takes then, as if the command itself
    /// had been writing to that reader.
    asked_to_end: Option<i32>,
    /// The signals that keys of our terminal have sent to it and to us, each once.
    keys: Vec<i32>,
    /// The signal that has ended it, where no timeout has.
    died_of: Option<i32>,
    /// How it ended.
    report: Option<ExecReport>,
    /// The command has ended with this exit status, and execd waits for what it has left.
    kept: Option<i32>,
}

impl RunFront {
    /// stderr, where it is apart.
    pub(super) fn errors_mut(&mut self) -> Option<&mut Client> {
        self.errors.as_mut()
    }

    /// How many bytes stderr has not taken yet.
    pub(super) fn unsent_errors(&self) -> usize {
        self.errors.as_ref().map_or(0, |errors| errors.outbox.len())
    }

    /// Whether stderr has no room for what is to be written to it.
    pub(super) fn has_stuck_errors(&self) -> bool {
        self.errors.as_ref().is_some_and(Client::is_stuck)
    }

    /// The signal that asked for the end, where one did.
    pub(super) fn asked_to_end(&self) -> Option<i32> {
        self.asked_to_end
    }

    /// Notes such a signal.
    pub(super) fn ask_to_end(&mut self, signal: i32) {
        self.asked_to_end = Some(signal);
    }

    /// Whether stderr may take something now.
    pub(super) fn has_work(&self) -> bool {
        self.errors.as_ref().is_some_and(|one| one.output_ready && !one.outbox.is_empty())
    }
}
