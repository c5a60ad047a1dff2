//! What a client is told of a run of pi: the events while pi runs (agent.md, Events), the last line
//! of them, and the records that events and result share: tokens, costs, and what is wrong with
//! them, retries.

use crate::limits::{AGENT_SHOWN_CHARS, COUNT_MAX};
use crate::pure::json::fields::Fields;
use crate::pure::text::visible::one_line;
use serde::Serialize;
use serde_json::value::RawValue;

/// Bytes of the line of text that a run has told last.
const AGENT_DOING_BYTES: usize = 1024;

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

/// The last line of what a client is told of a run.
#[derive(Clone, Debug, Default)]
pub struct Doing(String);

impl Doing {
    /// Takes an event.
    pub fn note(&mut self, told: &Told<'_>) {
        match told.event {
            "text" => self.read_on(told.delta.unwrap_or_default()),
            "tool_use" => {
                let input = told.input.map_or("", |input| input.get());
                self.call(told.name.unwrap_or_default(), input);
            }
            _ => {}
        }
    }

    /// Takes a call of a tool.
    pub fn call(&mut self, name: &str, input: &str) {
        self.0.clear();
        for part in [name, " ", input] {
            self.0.extend(part.chars().take(AGENT_SHOWN_CHARS));
        }
        // Text that follows is another line.
        self.0.push('\n');
    }

    /// Takes more of a text that comes in pieces.
    pub fn read_on(&mut self, delta: &str) {
        for piece in delta.split_inclusive('\n') {
            if self.0.ends_with('\n') {
                // A blank line says less than the one before it.
                if piece.trim().is_empty() {
                    continue;
                }
                self.0.clear();
            }
            let (text, end) = piece.strip_suffix('\n').map_or((piece, ""), |text| (text, "\n"));
            let room = AGENT_DOING_BYTES.saturating_sub(self.0.len());
            self.0.push_str(&text[..text.floor_char_boundary(room)]);
            self.0.push_str(end);
        }
    }

    /// The line, with nothing in it that acts on a terminal.
    pub fn line(&self) -> String {
        one_line(self.0.trim()).chars().take(AGENT_SHOWN_CHARS).collect()
    }
}

/// Sums over answers. Tokens are as they are on the wire: reasoning is part of output.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// How many answers there were.
    pub answers: u64,
    input: u64,
    output: u64,
    reasoning: u64,
    cache_read: u64,
    cache_write: u64,
    total: u64,
    /// What they have cost.
    pub cost: Cost,
}

impl Totals {
    /// Adds those of another sum. What would be more than a number holds stays the largest one.
    pub fn add(&mut self, more: &Self) {
        for (sum, more) in [
            (&mut self.answers, more.answers),
            (&mut self.input, more.input),
            (&mut self.output, more.output),
            (&mut self.reasoning, more.reasoning),
            (&mut self.cache_read, more.cache_read),
            (&mut self.cache_write, more.cache_write),
            (&mut self.total, more.total),
        ] {
            *sum = sum.saturating_add(more);
        }
        for (sum, more) in [
            (&mut self.cost.input, more.cost.input),
            (&mut self.cost.output, more.cost.output),
            (&mut self.cost.cache_read, more.cost.cache_read),
            (&mut self.cost.cache_write, more.cost.cache_write),
            (&mut self.cost.total, more.cost.total),
        ] {
            *sum = (*sum + more).min(f64::MAX);
        }
    }

    /// Whether no token is in it.
    pub fn is_nothing(&self) -> bool {
        [self.input, self.output, self.cache_read, self.cache_write, self.total] == [0; 5]
    }

    /// What counts for max_tokens: all that was not read from a cache.
    pub fn budget_tokens(&self) -> u64 {
        self.input.saturating_add(self.cache_write).saturating_add(self.output)
    }

    /// Tokens that the model has written.
    pub fn written_tokens(&self) -> u64 {
        self.output
    }

    /// As it is told: without its reasoning in the output.
    pub fn report(&self) -> UsageReport {
        UsageReport {
            input_tokens: self.input,
            output_tokens: self.output - self.reasoning.min(self.output),
            reasoning_tokens: self.reasoning,
            cache_read_tokens: self.cache_read,
            cache_write_tokens: self.cache_write,
            total_tokens: self.total,
        }
    }
}

/// The tokens and cost of one answer, given by the fields of its message. With them comes the first
/// thing that is wrong: then the sums would be, and the run must say so.
pub fn of_answer(message: &Fields<'_>) -> (Totals, Option<String>) {
    let (used, fault) = of_usage(message.get("usage"));
    (Totals { answers: 1, ..used }, fault)
}

/// The tokens and cost that a usage tells, and the first thing that is wrong with it.
pub fn of_usage(raw: Option<&RawValue>) -> (Totals, Option<String>) {
    if raw.is_none_or(|raw| !raw.get().starts_with('{')) {
        return (Totals::default(), Some(wrong("usage", raw, "an object")));
    }
    let usage = Fields::of(raw);
    let costs = Fields::of(usage.get("cost"));
    let mut fault = None;
    let mut counted = |path: &str, raw: Option<&RawValue>, is_needed: bool| {
        let raw = raw.filter(|raw| is_needed || raw.get() != "null");
        let number = number(raw);
        if number.is_none() && fault.is_none() && (is_needed || raw.is_some()) {
            fault = Some(wrong(path, raw, "a number from 0 to 2^53"));
        }
        number
    };
    let mut tokens = |name: &str, is_needed: bool| {
        counted(&format!("usage.{name}"), usage.get(name), is_needed).map(whole)
    };
    let (input, output) = (tokens("input", true), tokens("output", true));
    let (input, output) = (input.unwrap_or_default(), output.unwrap_or_default());
    let cache_read = tokens("cacheRead", false).unwrap_or_default();
    let cache_write = tokens("cacheWrite", false).unwrap_or_default();
    let (reasoning, total) = (tokens("reasoning", false), tokens("totalTokens", false));
    let all = [input, output, cache_read, cache_write];
    let all = all.into_iter().fold(0, u64::saturating_add);
    let mut cost = |name: &str, is_needed: bool| {
        let path = format!("usage.cost.{name}");
        counted(&path, costs.get(name), is_needed).unwrap_or_default()
    };
    let totals = Totals {
        answers: 0,
        input,
        output,
        reasoning: reasoning.unwrap_or_default().min(output),
        cache_read,
        cache_write,
        total: total.unwrap_or(all),
        cost: Cost {
            total: cost("total", true),
            input: cost("input", false),
            output: cost("output", false),
            cache_read: cost("cacheRead", false),
            cache_write: cost("cacheWrite", false),
        },
    };
    (totals, fault)
}

fn number(raw: Option<&RawValue>) -> Option<f64> {
    let fits = |number: &f64| (0.0..=COUNT_MAX).contains(number);
    serde_json::from_str(raw?.get()).ok().filter(fits)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates.
fn whole(number: f64) -> u64 {
    number as u64
}

fn wrong(path: &str, raw: Option<&RawValue>, wanted: &str) -> String {
    match raw {
        Some(_) => format!("{path} is not {wanted}"),
        None => format!("{path} is missing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_tool_that_was_called_until_there_is_text_again() {
        let mut doing = Doing::default();
        doing.read_on("I look");
        let input = serde_json::value::RawValue::from_string(r#"{"command":"ls"}"#.to_owned());
        let input = input.expect("JSON");
        doing.note(&Told {
            event: "tool_use",
            name: Some("bash"),
            input: Some(&input),
            ..Told::default()
        });
        assert_eq!(doing.line(), r#"bash {"command":"ls"}"#);
        doing.note(&Told { event: "thinking", delta: Some("hm"), ..Told::default() });
        assert_eq!(doing.line(), r#"bash {"command":"ls"}"#);
        doing.note(&Told { event: "text", delta: Some("\n\nTwo"), ..Told::default() });
        assert_eq!(doing.line(), "Two");
        doing.read_on(" lines.\n\n\x1b[2J  \n");
        assert_eq!(doing.line(), "\\x1b[2J");
        doing.read_on(" \n");
        assert_eq!(doing.line(), "\\x1b[2J", "a blank line is none");
    }

    #[test]
    fn a_line_without_an_end_takes_no_more_than_its_bound() {
        let mut doing = Doing::default();
        for _ in 0..1_000 {
            doing.read_on(&"é".repeat(1_000));
        }
        assert!(doing.0.len() <= AGENT_DOING_BYTES);
        assert_eq!(doing.line().chars().count(), AGENT_SHOWN_CHARS);
        doing.read_on("\nNext");
        assert_eq!(doing.line(), "Next");
    }
}
