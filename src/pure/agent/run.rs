//! What each event means for the run.

use super::report::{AgentReport, End};
use super::told::Told;

/// How a run is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunSettings {
    /// Whether raw events are kept for the report.
    pub keep_events: bool,
}

/// What the deadlines of a run go by. Times are milliseconds since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// When the model's first event came: an assistant message_start, or a message_update.
    pub first_event_ms: Option<u64>,
    /// When the last event of any kind came.
    pub last_event_ms: u64,
    /// Tools that run now; while there is one, the idle clock stands still.
    pub tools_running: usize,
    /// Since when the run is done and pi should exit; None while it is not.
    pub settled_ms: Option<u64>,
}

/// The stream of one run: bytes in, normalized events out, totals kept.
#[derive(Debug)]
pub struct AgentRun {
    clocks: Clocks,
}

impl AgentRun {
    /// A run of which nothing was read.
    pub fn new(_settings: RunSettings) -> Self {
        Self { clocks: Clocks::default() }
    }

    /// Takes bytes of pi's stdout as they came. `now_ms` is the time since the run's start.
    pub fn push(&mut self, _bytes: &[u8], _now_ms: u64, _tell: &mut dyn FnMut(&Told<'_>)) {}

    /// The stream has ended: what is left of it is looked at.
    pub fn finish(&mut self, _now_ms: u64, _tell: &mut dyn FnMut(&Told<'_>)) {}

    /// What the deadlines go by.
    pub fn clocks(&self) -> Clocks {
        self.clocks
    }

    /// USD spent so far.
    pub fn cost_usd(&self) -> f64 {
        0.0
    }

    /// Tokens that count for max_tokens: input, cache writes and output with its reasoning.
    pub fn budget_tokens(&self) -> u64 {
        0
    }

    /// The result of the run.
    pub fn report<'a>(&'a self, _end: &'a End<'_>) -> AgentReport<'a> {
        unreachable!()
    }

    /// Bytes of heap owned now, about.
    pub fn heap_bytes(&self) -> usize {
        0
    }
}
