//! How a run has ended and how pi was called, as far as its owner knows.

use serde::Serialize;

/// Why execd ended the run. It wins over what pi said of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    /// No event came from the model within so many milliseconds.
    FirstEventTimeout(u64),
    /// No event came for so many milliseconds.
    IdleTimeout(u64),
    /// The run was not done within so many milliseconds.
    HardTimeout(u64),
    /// The run has cost more than so many USD.
    Cost(f64),
    /// The run has used more than so many tokens.
    Tokens(u64),
    /// Another model has answered than the one that was asked.
    ModelMismatch,
    /// Somebody cancelled it.
    Cancelled,
    /// The run was done, and pi did not exit: the run keeps its success.
    Lingered,
}

/// What a run of pi may do, as pi was called.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Policy<'a> {
    /// Its tools; None: pi's own defaults.
    pub tools: Option<&'a [String]>,
    /// The extensions that were named.
    pub extensions: &'a [String],
    /// The session of pi that it goes on with; None: none is kept.
    pub session: Option<&'a str>,
    /// `shared` or `run`: whose agent directory pi has.
    pub isolation: &'a str,
}

impl Default for Policy<'_> {
    fn default() -> Self {
        Self { tools: None, extensions: &[], session: None, isolation: "shared" }
    }
}

/// How the process ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct End<'a> {
    /// Why execd ended it, if it did.
    pub stop: Option<Stop>,
    /// Why pi could not be started: the whole text for people.
    pub failure: Option<&'a str>,
    /// Its exit code, if it exited.
    pub exit_code: Option<i32>,
    /// The name of the signal that ended it, if one did.
    pub signal: Option<&'a str>,
    /// By whom it was ended; None where it ended by itself.
    pub killed_by: Option<&'static str>,
    /// The last of its stderr; of a longer one the last AGENT_STDERR_BYTES are told.
    pub stderr: &'a str,
    /// From its start to its end.
    pub duration_ms: u64,
    /// What `pi --version` says.
    pub executor_version: Option<&'a str>,
    /// When it was started, as `2026-11-22T17:45:03.123Z`; empty if that is not known.
    pub started_at: &'a str,
    /// The time that its processes have had on a processor, as far as they were reaped.
    pub cpu_seconds: Option<f64>,
    /// The most memory that one of them has had.
    pub max_rss_kib: Option<u64>,
    /// What it may do.
    pub policy: Policy<'a>,
    /// The program and its arguments, without a key.
    pub args: &'a [String],
    /// The agent directory that was made for it and kept.
    pub agent_dir: Option<&'a str>,
    /// How many runs started at once, where a default limit of time was made longer for that.
    pub started_at_once: Option<u64>,
}
