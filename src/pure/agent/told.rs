//! What a client is told of a run of pi: the events while pi runs (agent.md, Events), and the
//! records of tokens, costs and retries that events and result share.

use serde::Serialize;
use serde_json::value::RawValue;

/// What hands an event on to the client.
pub type Tell<'t> = &'t mut dyn FnMut(&Told<'_>);

/// One normalized event, named by `event`, with the fields that it has: one flat object, whose
/// first field is `event`. Each has the run's `label`, where it has one.
///
/// | event | fields |
/// |---|---|
/// | `turn_start` | turn, provider, model, response_provider, response_model |
/// | `text`, `thinking` | delta |
/// | `tool_use` | id, name, input, omitted_bytes |
/// | `tool_result` | id, name, output, is_error, omitted_bytes |
/// | `turn_end` | turn, usage, cost_usd |
/// | `retry` | attempt, max_attempts, message |
/// | `error` | message |
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Told<'a> {
    /// Which event it is.
    pub event: &'static str,
    /// What the client calls the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<&'a str>,
    /// The turn's number, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// The provider that was asked for the turn's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<&'a str>,
    /// The model that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<&'a str>,
    /// The provider that answers; absent if pi has not told it yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_provider: Option<&'a str>,
    /// The model that answers; absent as `response_provider` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_model: Option<&'a str>,
    /// Text that follows what was told before, at most AGENT_DELTA_BYTES and a separator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<&'a str>,
    /// The id of a tool call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    /// The name of a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    /// The arguments of a tool call; null when they are too long, see `omitted_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<&'a RawValue>,
    /// What a tool gave back, at most AGENT_TOOL_OUTPUT_BYTES.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<&'a str>,
    /// Whether a tool failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// The tokens of a turn; absent if the model gave no answer in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageReport>,
    /// The cost of a turn in USD; absent as `usage` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Which attempt begins, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u64>,
    /// How many attempts there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u64>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<&'a str>,
    /// Bytes that were left out of `output`, or the length of an `input` that was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_bytes: Option<u64>,
}

/// Tokens, as they are told: reasoning is not part of the output here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UsageReport {
    /// Tokens of input that came from no cache.
    pub input_tokens: u64,
    /// Tokens of output without those of reasoning.
    pub output_tokens: u64,
    /// Tokens of reasoning.
    pub reasoning_tokens: u64,
    /// Tokens of input that were read from a cache.
    pub cache_read_tokens: u64,
    /// Tokens of input that were written to a cache.
    pub cache_write_tokens: u64,
    /// All of them, as pi counts.
    pub total_tokens: u64,
}

/// Costs in USD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Of the input that came from no cache.
    pub input: f64,
    /// Of the output, reasoning included.
    pub output: f64,
    /// Of what was read from a cache.
    pub cache_read: f64,
    /// Of what was written to a cache.
    pub cache_write: f64,
    /// As pi sums it.
    pub total: f64,
}

/// How often pi made its conversation shorter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compactions {
    /// Those that gave a summary.
    pub count: u64,
    /// Those of them that do not say what the summary has cost: the totals lack it.
    pub without_usage: u64,
}

/// How often pi tried again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Retries {
    /// Attempts begun after the first.
    pub count: u64,
    /// How many pi allows itself; absent if it never tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u64>,
    /// Whether it has given up.
    pub exhausted: bool,
}

/// What an answer failed with, or the last of pi's retries.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The text for people.
    pub text: String,
    /// Whether it is in pi's words.
    pub told: bool,
}
