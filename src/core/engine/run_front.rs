//! `execd run`: the engine with one command in front instead of a client. The command's output goes
//! to stdout as it comes, byte for byte, and its end is execd's.

mod steps;

use crate::session::SessionId;
use crate::session::report::ExecReport;

/// The command in front.
#[derive(Debug)]
pub struct RunFront {
    session: SessionId,
    /// Keep the output for the report instead of passing it on.
    collect: bool,
    /// What stdin brings goes to the command's terminal.
    feeds_terminal: bool,
    /// How it ended.
    pub report: Option<ExecReport>,
}
