//! A session in which pi runs a task (agent.md): its stream, its clocks, its budgets, and
//! why it was ended.

use crate::limits::{
    AGENT_EXIT_MS, AGENT_STDERR_BYTES, AGENT_VERSION_BYTES, AGENT_VERSION_MS, NS_PER_MS,
};
use crate::pure::agent::mask::Secret;
use crate::pure::agent::{AgentRun, RunSettings, Stop};
use crate::pure::buffer::head_tail::TailRing;
use crate::pure::text::utf8::{ceil_boundary, continuation_len, floor_boundary, lossy};
use crate::sys::memory_file::MemoryFile;

/// What a run goes by.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentSpec {
    /// The run is ended after so long.
    pub timeout_ms: u64,
    /// The run is ended when no event came for so long, after the model's first one; not while a
    /// tool runs.
    pub idle_timeout_ms: u64,
    /// The run is ended when the model's first event did not come within this.
    pub first_event_timeout_ms: u64,
    /// The run is ended when it has cost more.
    pub max_cost_usd: Option<f64>,
    /// The run is ended when it has used more.
    pub max_tokens: Option<u64>,
    /// The run's events are sent as they come.
    pub stream: bool,
    /// Pi's raw events are kept for the result.
    pub keep_events: bool,
}

/// A run of pi.
#[derive(Debug)]
pub struct Run {
    /// What the run goes by.
    pub spec: AgentSpec,
    /// The key that the version of the run's program is known by.
    pub program: String,
    /// The stream of pi so far.
    pub run: AgentRun,
    /// Why execd ended the run, where it did.
    pub stop: Option<Stop>,
    /// The run's program has ended, and what it left behind is being ended.
    pub swept: bool,
    /// Somebody waits for the run's result, or did until the connection was gone.
    pub awaited: bool,
    /// The run's stream is not read now, for want of a reader of its events or of room in its log:
    /// no clock that waits for events counts.
    pub held: bool,
    /// The run has files of its own that are to be removed at its end.
    pub leaves_files: bool,
    /// When the stream was last read again after such a time.
    released_ms: u64,
    stderr: TailRing,
    /// The file that the run's prompt is in; gone with the run.
    _prompt: Option<MemoryFile>,
}

impl Run {
    /// A run that has just been started; `prompt`: the file that has its prompt, where there is
    /// one; `secret`: what nobody may read in its output.
    pub fn new(
        spec: AgentSpec,
        program: String,
        prompt: Option<MemoryFile>,
        secret: Option<Secret>,
    ) -> Self {
        let run = AgentRun::new(RunSettings {
            keep_events: spec.keep_events,
            secret,
            ..RunSettings::default()
        });
        Self {
            spec,
            program,
            run,
            stop: None,
            swept: false,
            awaited: false,
            held: false,
            leaves_files: false,
            released_ms: 0,
            stderr: TailRing::new(AGENT_STDERR_BYTES),
            _prompt: prompt,
        }
    }

    /// Takes in what pi wrote to stderr.
    pub fn push_stderr(&mut self, bytes: &[u8]) {
        self.stderr.push(bytes);
    }

    /// The last of what pi wrote to stderr.
    pub fn stderr(&self) -> String {
        let (bytes, starts_at) = self.stderr.last(AGENT_STDERR_BYTES);
        last_text(&bytes, starts_at > 0)
    }

    /// Whether its budget is used up, checked at each message_end.
    pub fn over_budget(&self) -> Option<Stop> {
        let cost = self.run.cost_usd();
        if let Some(limit) = self.spec.max_cost_usd.filter(|limit| cost > *limit) {
            return Some(Stop::Cost(limit));
        }
        let tokens = self.run.budget_tokens();
        self.spec.max_tokens.filter(|limit| tokens > *limit).map(Stop::Tokens)
    }

    /// Notes whether its stream is held up `now_ms` after its start.
    pub fn note_held(&mut self, held: bool, now_ms: u64) {
        if self.held && !held {
            self.released_ms = now_ms;
        }
        self.held = held;
    }

    /// Which of its deadlines has passed `now_ms` after its start, if one has.
    pub fn late(&self, now_ms: u64) -> Option<Stop> {
        let (at_ms, stop) = self.deadline();
        (at_ms <= now_ms).then_some(stop)
    }

    /// When the run is to be looked at next if nothing comes, in milliseconds since its start.
    pub fn due_ms(&self) -> u64 {
        self.deadline().0
    }

    /// The run's next deadline, in milliseconds since its start, and what passing it means.
    fn deadline(&self) -> (u64, Stop) {
        let (spec, clocks) = (&self.spec, self.run.clocks());
        let hard = (spec.timeout_ms, Stop::HardTimeout(spec.timeout_ms));
        let after =
            |event_ms: u64, limit_ms| event_ms.max(self.released_ms).saturating_add(limit_ms);
        let next = match (clocks.settled_ms, clocks.first_event_ms) {
            // The run keeps its success whichever time is over now.
            (Some(settled_ms), _) if !self.held => {
                return (after(settled_ms, AGENT_EXIT_MS).min(hard.0), Stop::Lingered);
            }
            // A tool may be silent for as long as it likes.
            _ if self.held || clocks.tools_running > 0 => return hard,
            (_, None) => {
                let limit = spec.first_event_timeout_ms;
                (after(0, limit), Stop::FirstEventTimeout(limit))
            }
            (_, Some(_)) => {
                let limit = spec.idle_timeout_ms;
                (after(clocks.last_event_ms, limit), Stop::IdleTimeout(limit))
            }
        };
        if next.0 < hard.0 { next } else { hard }
    }
}

/// The last bytes of a text as text; `cut`: they may begin inside a character.
fn last_text(bytes: &[u8], cut: bool) -> String {
    let inside = continuation_len(bytes);
    let text = lossy(&bytes[if cut { inside } else { 0 }..]);
    // What is no UTF-8 has become longer.
    let from = ceil_boundary(&text, text.len().saturating_sub(AGENT_STDERR_BYTES));
    text[from..].trim().to_owned()
}

/// A session that asks a pi for its version.
#[derive(Debug)]
pub struct Probe {
    /// The key that the version of the program that is asked is known by.
    pub program: String,
    /// Runs wait for the version.
    pub for_runs: bool,
    /// The session's time was over, and it was ended for that.
    pub timed_out: bool,
    /// The program has ended, and what it left behind is being ended.
    pub swept: bool,
}

impl Probe {
    /// When an answer that has not come is given up, for one that was started at `started_ns`.
    pub fn due_ns(&self, started_ns: u64) -> u64 {
        started_ns + AGENT_VERSION_MS * NS_PER_MS
    }
}

/// The version in what a program said to `--version`: its first line that begins with a number,
/// or else its first one with something in it (Node's warnings come before).
pub fn version_of(output: &[u8]) -> Option<String> {
    let text = lossy(output);
    let numbered = |line: &&str| line.trim_start_matches('v').starts_with(|c: char| c.is_numeric());
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.clone().next()?;
    let line = lines.find(numbered).unwrap_or(first);
    Some(line[..floor_boundary(line, AGENT_VERSION_BYTES)].to_owned())
}
