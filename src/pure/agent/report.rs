//! The result of agent_execute: how the run ended, in fields and in words (agent.md, The result). A
//! field that could not be known is absent.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::cause::cleaned_stderr;
use super::end::{End, Policy};
use super::ending::is_success;
use super::kind::ErrorKind;
use super::run::AgentRun;
use super::told::{Compactions, Cost, Retries, UsageReport};

/// The result of agent_execute.
#[derive(Debug, Serialize)]
pub struct AgentReport<'a> {
    /// Exit 0 with finish_reason stop, length or tool_calls.
    pub success: bool,
    /// All text of the assistant; of more than AGENT_OUTPUT_BYTES the middle is left out.
    pub output: String,
    /// The text of the last of the assistant's messages alone, bounded as `output`.
    pub final_output: String,
    /// What went wrong, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Of which kind that is, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<ErrorKind>,
    /// Why the run ended.
    pub finish_reason: &'a str,
    /// What the provider itself said of why the last answer ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_stop_reason: Option<&'a str>,
    /// The provider that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<&'a str>,
    /// The model that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<&'a str>,
    /// The provider of the last of the assistant's messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_provider: Option<&'a str>,
    /// Its model, as the provider calls it where that is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_model: Option<&'a str>,
    /// Another model than the one that was asked has answered; absent if none has.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub model_mismatch: bool,
    /// What the client calls the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<&'a str>,
    /// When pi was started.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub started_at: &'a str,
    /// From pi's start to its end.
    pub duration_ms: u64,
    /// Turns begun.
    pub num_turns: u64,
    /// Tool calls told.
    pub tool_call_count: u64,
    /// Tool calls by the tool's name.
    pub tool_calls: &'a Map<String, Value>,
    /// The tokens of the whole run, each number a field of the result.
    #[serde(flatten)]
    pub usage: UsageReport,
    /// What it has cost in USD.
    pub cost_usd: f64,
    /// The parts of that cost.
    pub cost: Cost,
    /// pi's own id of its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<&'a str>,
    /// Always `pi`.
    pub executor: &'static str,
    /// What `pi --version` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor_version: Option<&'a str>,
    /// When the model's first event came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_event_ms: Option<u64>,
    /// When its first text came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_text_ms: Option<u64>,
    /// When the first tool was called that changes something: write, edit or bash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_attempt_ms: Option<u64>,
    /// Output and reasoning by the time between the start and the end of the answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_second: Option<f64>,
    /// The time that pi's processes have had on a processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// The most memory that one of them has had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rss_kib: Option<u64>,
    /// What the run was allowed.
    pub policy: Policy<'a>,
    /// The program and its arguments, as they were run, without a key.
    pub args: &'a [String],
    /// The agent directory that was made for the run and kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_dir: Option<&'a str>,
    /// What is pi's alone.
    pub provider_data: ProviderData<'a>,
    /// pi's exit code; absent if a signal ended it or it never ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// By whom the run was ended; absent where it ended by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub killed_by: Option<&'static str>,
    /// The last of pi's stderr.
    pub stderr_tail: String,
}

/// What pi said that is no part of the result's own fields. Counts of nothing are absent.
#[derive(Debug, Serialize)]
pub struct ProviderData<'a> {
    /// Lines that are no event: no JSON object with a type, cut, or too long.
    pub unparsed_lines: u64,
    /// Event types that are not known, with how many came.
    pub unknown_events: &'a Map<String, Value>,
    /// Fields that are not known of an event that is, with the first value.
    pub unknown_fields: &'a Map<String, Value>,
    /// Of the two, what did not fit AGENT_DRIFT_BYTES.
    #[serde(skip_serializing_if = "is_zero")]
    pub drift_dropped: u64,
    /// Messages whose end has another text than their deltas.
    #[serde(skip_serializing_if = "is_zero")]
    pub text_mismatches: u64,
    /// Answers of which only another event than their own end has told what they have used.
    #[serde(skip_serializing_if = "is_zero")]
    pub recovered: u64,
    /// How often pi has made its conversation shorter; absent if it has not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compactions: Option<Compactions>,
    /// pi's attempts to have an answer after a failure.
    pub retries: Retries,
    /// The raw events, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<&'a RawValue>>,
    /// How many events did not fit AGENT_EVENTS_BYTES.
    #[serde(skip_serializing_if = "is_zero")]
    pub events_dropped: u64,
    /// How many were left out since they could give away the api_key.
    #[serde(skip_serializing_if = "is_zero")]
    pub events_left_out: u64,
}

/// How far a run is that goes on, where its request is answered before its end.
#[derive(Debug, Default, Serialize)]
pub struct SoFar<'a> {
    /// What the client calls the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<&'a str>,
    /// Turns begun.
    pub num_turns: u64,
    /// Tool calls told.
    pub tool_call_count: u64,
    /// All tokens of the answers that have ended, as pi counts.
    pub total_tokens: u64,
    /// What they have cost in USD.
    pub cost_usd: f64,
    /// The last line of what it has told: of its text, or the tool that it has called.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub doing: String,
}

impl AgentRun {
    /// How far it is, as far as its stream tells.
    pub fn so_far(&self) -> SoFar<'_> {
        SoFar {
            label: self.settings.label.as_deref(),
            num_turns: self.turn_starts.max(self.turn_ends),
            tool_call_count: self.tool_call_count,
            total_tokens: self.totals.report().total_tokens,
            cost_usd: self.totals.cost.total,
            ..SoFar::default()
        }
    }

    /// The result of the run, after [`AgentRun::finish`].
    pub fn report<'a>(&'a self, end: &'a End<'_>) -> AgentReport<'a> {
        let finish_reason = self.finish_reason(end);
        let success = is_success(finish_reason);
        let (error, error_kind) = if success {
            (None, None)
        } else {
            let (text, kind) = self.error(end, finish_reason);
            (Some(text), Some(kind))
        };
        let clocks = self.clocks();
        let asked = self.settings.asked.known();
        AgentReport {
            success,
            output: self.transcript.output.all(),
            final_output: self.transcript.output.last(),
            error,
            error_kind,
            finish_reason,
            raw_stop_reason: self.raw_stop_reason.as_deref(),
            provider: asked.map(|asked| asked.provider.as_str()),
            model: asked.map(|asked| asked.model.as_str()),
            response_provider: self.answered.provider.as_deref(),
            response_model: self.answered.model(),
            model_mismatch: self.other_model.is_some(),
            label: self.settings.label.as_deref(),
            started_at: end.started_at,
            duration_ms: end.duration_ms,
            num_turns: self.turn_starts.max(self.turn_ends),
            tool_call_count: self.tool_call_count,
            tool_calls: &self.tool_calls,
            usage: self.totals.report(),
            cost_usd: self.totals.cost.total,
            cost: self.totals.cost,
            session_id: self.session_id.as_deref(),
            executor: "pi",
            executor_version: end.executor_version,
            first_event_ms: clocks.first_event_ms,
            first_text_ms: self.transcript.first_text_ms,
            first_attempt_ms: self.first_attempt_ms,
            tokens_per_second: self.tokens_per_second(),
            cpu_seconds: end.cpu_seconds,
            max_rss_kib: end.max_rss_kib,
            policy: end.policy,
            args: end.args,
            agent_dir: end.agent_dir,
            provider_data: ProviderData {
                unparsed_lines: self.unparsed_lines,
                unknown_events: &self.drift.events,
                unknown_fields: &self.drift.fields,
                drift_dropped: self.drift.dropped,
                text_mismatches: self.transcript.mismatches,
                recovered: self.recovered,
                compactions: self.compactions,
                retries: self.retries,
                events: self.raw_events(),
                events_dropped: self.events_dropped,
                events_left_out: self.events_left_out,
            },
            exit_code: end.exit_code,
            killed_by: end.killed_by,
            stderr_tail: cleaned_stderr(end.stderr),
        }
    }

    /// Two digits behind the point; None if no time passed between an answer's start and end.
    #[allow(clippy::cast_precision_loss)] // Far below 2^52.
    fn tokens_per_second(&self) -> Option<f64> {
        let rate = self.answers_tokens as f64 * 1000.0 / self.answers_ms as f64;
        (self.answers_ms > 0).then(|| (rate * 100.0).round() / 100.0)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde gives a reference.
fn is_zero(count: &u64) -> bool {
    *count == 0
}
