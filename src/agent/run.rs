//! A run of pi (agent.md): its stream, its clocks, its budgets, and why it is ended.

use crate::limits::{AGENT_FIRST_EVENT_TIMEOUT_MS, AGENT_STDERR_BYTES};
use crate::pure::agent::mask::MaskedText;
use crate::pure::agent::{AgentRun, Doing, End, Policy, RunSettings, Stop};
use crate::pure::buffer::head_tail::TailRing;
use crate::pure::text::utf8::{ceil_boundary, continuation_len, lossy};

/// How much longer each run that starts at the same time makes the start of pi: about two seconds
/// of a processor's time, which may be one for all of them.
const AGENT_STARTING_MS: u64 = 2_000;

/// How long pi may take to exit after its last agent_end.
const AGENT_EXIT_MS: u64 = 10_000;

/// What a run goes by.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentSpec {
    /// The run is ended after so long.
    pub timeout_ms: u64,
    /// The run is ended when no event came for so long, after the model's first one; not while a
    /// tool runs.
    pub idle_timeout_ms: u64,
    /// The run is ended when the model's first event did not come within this, where the call says
    /// so.
    pub first_event_timeout_ms: Option<u64>,
    /// The run is ended when it has cost more.
    pub max_cost_usd: Option<f64>,
    /// The run is ended when it has used more.
    pub max_tokens: Option<u64>,
    /// The run's log has pi's stream as it came, in place of events.
    pub raw_log: bool,
    /// The run is ended when another model answers.
    pub strict_model: bool,
}

/// How pi was called, for the record.
#[derive(Debug, Default)]
pub struct Called {
    /// Its version, once that is known.
    pub version: Option<String>,
    /// The tools that it may use; `None`: its own defaults.
    pub tools: Option<Vec<String>>,
    /// The extensions that were named.
    pub extensions: Vec<String>,
    /// Its session that was named.
    pub session: Option<String>,
    /// It has an agent directory of its own.
    pub isolated: bool,
    /// Where that directory is, where it is kept.
    pub agent_dir: Option<String>,
    /// The program and its arguments, without the key.
    pub args: Vec<String>,
}

impl Called {
    /// The end of a run, as far as it is known from how pi was called.
    pub fn end(&self) -> End<'_> {
        let policy = Policy {
            tools: self.tools.as_deref(),
            extensions: &self.extensions,
            session: self.session.as_deref(),
            isolation: if self.isolated { "run" } else { "shared" },
        };
        End {
            executor_version: self.version.as_deref(),
            policy,
            args: &self.args,
            agent_dir: self.agent_dir.as_deref(),
            ..End::default()
        }
    }
}

/// A run of pi.
#[derive(Debug)]
pub struct PiRun {
    /// What the run goes by.
    pub spec: AgentSpec,
    /// How pi was called.
    pub called: Called,
    /// The stream of pi so far.
    pub run: AgentRun,
    /// Why execd ended the run, where it did.
    pub stop: Option<Stop>,
    /// What it has told last.
    pub doing: Doing,
    /// The run's stream is not read now, for want of a reader of its events or its log:
    /// no clock that waits for events counts.
    pub held: bool,
    /// When the stream was last read again after such a time.
    released_ms: u64,
    /// When the program was exec'ed; `None` while it is on its way there.
    pub exec_ms: Option<u64>,
    /// How many other runs have been starting while this one was.
    pub others_starting: u64,
    stderr: TailRing,
    /// What may be the beginning of the run's key at the end of it.
    errors: MaskedText,
}

impl PiRun {
    /// A run that has just been started.
    pub fn new(spec: AgentSpec, called: Called, settings: RunSettings) -> Self {
        let errors = MaskedText::new(settings.secret.clone());
        let run = AgentRun::new(settings);
        Self {
            spec,
            called,
            run,
            stop: None,
            doing: Doing::default(),
            held: false,
            released_ms: 0,
            exec_ms: None,
            others_starting: 0,
            stderr: TailRing::new(AGENT_STDERR_BYTES),
            errors,
        }
    }

    /// Takes in what pi wrote to stderr. Gives what others may see of it.
    pub fn push_stderr(&mut self, bytes: &[u8]) -> Vec<u8> {
        let seen = self.errors.take(bytes);
        self.stderr.push(&seen);
        seen
    }

    /// No more comes on stderr: gives what was held back.
    pub fn end_stderr(&mut self) -> Vec<u8> {
        let rest = self.errors.end();
        self.stderr.push(&rest);
        rest
    }

    /// The last of what pi wrote to stderr.
    pub fn stderr(&self) -> String {
        let (bytes, starts_at) = self.stderr.last(AGENT_STDERR_BYTES);
        last_text(&bytes, starts_at > 0)
    }

    /// Whether its stream has told what the run is ended for: another model has answered, or its
    /// budget is used up.
    pub fn over_bounds(&self) -> Option<Stop> {
        if self.spec.strict_model && self.run.mismatch() {
            return Some(Stop::ModelMismatch);
        }
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

    /// Whether the run's program is on its way to the model's first event.
    pub fn is_starting(&self) -> bool {
        self.stop.is_none() && self.run.clocks().first_event_ms.is_none()
    }

    /// How many runs were starting at once, this one with them, where that has made the time for
    /// the model's first event longer.
    pub fn started_at_once(&self) -> Option<u64> {
        let grown = self.spec.first_event_timeout_ms.is_none() && self.others_starting > 0;
        grown.then_some(self.others_starting + 1)
    }

    /// How long the model's first event may take. Runs that start at once share the processors:
    /// unless the call says otherwise, each makes it later.
    fn first_event_timeout_ms(&self) -> u64 {
        let grown = AGENT_FIRST_EVENT_TIMEOUT_MS + self.others_starting * AGENT_STARTING_MS;
        self.spec.first_event_timeout_ms.unwrap_or(grown)
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
                let limit = self.first_event_timeout_ms();
                // The way of a program that hangs is no fault of the model.
                let Some(exec_ms) = self.exec_ms else { return hard };
                (after(exec_ms, limit), Stop::FirstEventTimeout(limit))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn run(first_event_timeout_ms: Option<u64>) -> PiRun {
        let spec = AgentSpec {
            timeout_ms: 600_000,
            idle_timeout_ms: 180_000,
            first_event_timeout_ms,
            max_cost_usd: None,
            max_tokens: None,
            raw_log: false,
            strict_model: true,
        };
        PiRun::new(spec, Called::default(), RunSettings::default())
    }

    /// rule: agent.md, Timeouts: first_event_timeout_ms counts from when pi was exec'ed; the
    ///   default grows with the runs that start at once
    #[test]
    fn the_first_event_has_more_time_where_more_runs_start_and_counts_from_the_exec() {
        let mut alone = run(None);
        assert_eq!(alone.due_ms(), 600_000, "a program that hangs on its way is no silent model");
        alone.exec_ms = Some(250);
        assert_eq!((alone.due_ms(), alone.started_at_once()), (30_250, None));
        let mut of_many = run(None);
        (of_many.exec_ms, of_many.others_starting) = (Some(0), 63);
        assert_eq!((of_many.due_ms(), of_many.started_at_once()), (30_000 + 63 * 2_000, Some(64)));
        assert_eq!(of_many.late(156_000), Some(Stop::FirstEventTimeout(156_000)));
        let mut given = run(Some(300));
        (given.exec_ms, given.others_starting) = (Some(0), 63);
        assert_eq!((given.due_ms(), given.started_at_once()), (300, None));
        // The model has begun: it is starting no more.
        assert!(given.is_starting());
        let begun = b"{\"type\":\"message_start\",\"message\":{\"role\":\"assistant\"}}\n";
        given.run.push(begun, 100, &mut |_| {});
        assert!(!given.is_starting());
        assert_eq!(given.due_ms(), 180_100);
    }
}
