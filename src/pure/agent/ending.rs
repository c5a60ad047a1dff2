//! Why a run has ended, in one word, in a kind and in words for people (agent.md, Why a run ends).

use super::cause::{paragraph, with_stderr};
use super::end::{End, Stop};
use super::kind::{ErrorKind, Evidence, advice, kind_of};
use super::model::Answered;
use super::run::AgentRun;
use std::borrow::Cow;
use std::fmt::Write as _;

/// The finish_reason of an answer that was refused, or that a filter has held back.
const FILTERED: &str = "content_filter";
/// That of a run whose sums would be wrong.
const DRIFT: &str = "wire_drift";
/// That of a run which another model has answered.
const MISMATCH: &str = "model_mismatch";

/// Whether a run that has ended like this is a success.
pub fn is_success(finish_reason: &str) -> bool {
    matches!(finish_reason, "stop" | "length" | "tool_calls")
}

/// Whether pi has failed as a process, and not because execd has ended it.
fn died(end: &End<'_>) -> bool {
    end.stop.is_none() && end.exit_code != Some(0)
}

impl AgentRun {
    /// Why the run has ended. A reason of execd's wins; then the process counts more than its
    /// stream, of which the end may be missing.
    pub(super) fn finish_reason(&self, end: &End<'_>) -> &str {
        match end.stop {
            Some(Stop::FirstEventTimeout(_) | Stop::IdleTimeout(_) | Stop::HardTimeout(_)) => {
                return "timeout";
            }
            Some(Stop::Cost(_)) => return "cost_exhausted",
            Some(Stop::Tokens(_)) => return "token_exhausted",
            Some(Stop::Cancelled) => return "cancelled",
            Some(Stop::ModelMismatch) => return MISMATCH,
            Some(Stop::Lingered) | None => {}
        }
        if self.mismatch() {
            return MISMATCH;
        }
        if end.failure.is_some() || died(end) {
            return "error";
        }
        if self.wire_fault.is_some() {
            return DRIFT;
        }
        let reason = self.stop_word();
        // More may have been paid behind what was read last.
        let unsure = self.totals.is_nothing() || self.agent_open;
        if is_success(reason) && unsure { DRIFT } else { reason }
    }

    /// Why the last answer ended: in pi's word, or in the provider's where pi's says only that it
    /// failed, or is new.
    fn stop_word(&self) -> &str {
        let word = match self.stop_reason.as_deref() {
            None => "error",
            Some("stop" | "endTurn") => return "stop",
            Some("toolUse") => return "tool_calls",
            Some("maxTokens" | "length") => return "length",
            Some("refusal" | "safety") => return FILTERED,
            Some("aborted" | "error") => "error",
            Some(other) => other,
        };
        self.raw_stop_reason.as_deref().and_then(meaning_of).unwrap_or(word)
    }

    /// What went wrong, for people and for programs, and what people can do where that is known.
    pub(super) fn error(&self, end: &End<'_>, finish_reason: &str) -> (String, ErrorKind) {
        let stop = if finish_reason == MISMATCH { Some(Stop::ModelMismatch) } else { end.stop };
        let told = self.failure.as_ref().filter(|failure| failure.told);
        let evidence = Evidence {
            stop: end.stop,
            failure: end.failure,
            wire_fault: finish_reason == DRIFT,
            mismatch: finish_reason == MISMATCH,
            refused: self.stop_word() == FILTERED,
            exit_code: end.exit_code,
            signal: end.signal,
            words: told.map(|failure| failure.text.as_str()),
            stderr: end.stderr,
        };
        let cause = match stop {
            Some(Stop::FirstEventTimeout(ms)) => format!(
                "no event from the model within {ms} ms of pi's start (first_event_timeout_ms){}{}",
                self.came_from_pi(),
                started_at_once(end)
            ),
            Some(Stop::IdleTimeout(ms)) => {
                format!("no event for {ms} ms (idle_timeout_ms){}", self.waited_for())
            }
            Some(Stop::HardTimeout(ms)) => {
                format!("not done within {ms} ms (timeout_ms){}", self.waited_for())
            }
            Some(Stop::Cost(limit)) => {
                format!("{} USD spent, the limit is {limit} (max_cost_usd)", self.cost_usd())
            }
            Some(Stop::Tokens(limit)) => {
                let used = self.budget_tokens();
                format!("{used} tokens used, the limit is {limit} (max_tokens)")
            }
            Some(Stop::Cancelled) => String::from("cancelled"),
            Some(Stop::ModelMismatch) => self.model_fault(),
            Some(Stop::Lingered) | None => self.fault(end, finish_reason),
        };
        // What pi says while it is ended is not why it was, and execd's own words say all.
        let is_all = end.failure.is_some()
            || matches!(stop, Some(Stop::Cancelled | Stop::Cost(_) | Stop::Tokens(_)));
        let mut text = if is_all { cause } else { with_stderr(&cause, end.stderr) };
        if let Some(advice) = advice(&evidence) {
            let _ = write!(text, "; {advice}");
        }
        (text, kind_of(&evidence))
    }

    /// What pi has said last, where it was waited for more.
    fn waited_for(&self) -> String {
        self.last_event().map_or_else(
            || String::from("; pi has said nothing"),
            |event| format!("; pi has told {event:?} last"),
        )
    }

    /// What pi has said last while the model said nothing: a run's first events are pi's own, of
    /// the prompt that it has taken.
    fn came_from_pi(&self) -> String {
        self.last_event().map_or_else(
            || String::from("; pi has said nothing"),
            |event| format!("; pi has started, and its own last event is {event:?}"),
        )
    }

    /// Which model has answered in place of which.
    fn model_fault(&self) -> String {
        let asked = &self.settings.asked;
        let other = self.other_model.as_ref();
        let provider = other.and_then(|one| one.provider.as_deref()).unwrap_or("?");
        let model = other.and_then(Answered::model).unwrap_or("?");
        format!(
            "{provider}/{model} has answered, {}/{} was asked (strict_model): does pi know a \
             model of that name?",
            asked.provider, asked.model
        )
    }

    /// What went wrong when execd has not ended the run.
    fn fault(&self, end: &End<'_>, finish_reason: &str) -> String {
        if let Some(failure) = end.failure {
            return failure.to_owned();
        }
        let how = match (end.exit_code, end.signal) {
            (_, Some(signal)) => format!(" ({signal})"),
            (Some(code), None) => format!(" (exit code {code})"),
            (None, None) => String::new(),
        };
        // That the model failed says nothing where it is known how.
        let failure = self.failure.as_ref().filter(|one| one.told || finish_reason != FILTERED);
        let words = failure.map(|failure| words_of(&failure.text));
        if finish_reason == DRIFT {
            let missing = if self.agent_open {
                "the end of the stream is missing (agent_end)"
            } else {
                "pi told of no tokens"
            };
            let fault = self.wire_fault.as_deref().unwrap_or(missing);
            // Most often the failure is why the answer has no sums: it is what helps.
            let (words, semicolon) = words.as_ref().map_or(("", ""), |words| (&**words, "; "));
            return format!(
                "{words}{semicolon}{fault}: tokens and costs would be wrong. Is this version of pi \
                 known?"
            );
        }
        match words {
            Some(words) if end.exit_code == Some(0) => words.into_owned(),
            Some(words) => format!("{words}{how}"),
            None if self.stop_reason.is_none() && finish_reason != FILTERED => {
                format!("pi ended without an answer{how}")
            }
            None => match (self.stop_word(), died(end)) {
                (FILTERED, false) => String::from("the answer was refused or filtered"),
                (_, true) => format!("pi failed after its answer{how}"),
                (other, false) => format!("pi stopped by {other:?}, which is no answer{how}"),
            },
        }
    }
}

/// What a provider's own word for the end of an answer means, where it says more than pi's. Google
/// writes such words in capitals, OpenAI behind a status and a point.
fn meaning_of(raw: &str) -> Option<&'static str> {
    let raw = raw.to_ascii_lowercase();
    match raw.rsplit('.').next().unwrap_or_default() {
        "refusal" | "safety" | "content_filter" => Some(FILTERED),
        // Bedrock; then Anthropic.
        "content_filtered" | "guardrail_intervened" | "sensitive" => Some(FILTERED),
        "prohibited_content" | "blocklist" | "spii" | "recitation" => Some(FILTERED),
        "image_safety" | "image_prohibited_content" | "image_recitation" => Some(FILTERED),
        "length" | "max_tokens" | "max_output_tokens" | "model_length" => Some("length"),
        _ => None,
    }
}

/// How many runs began together, where that has made a limit longer.
fn started_at_once(end: &End<'_>) -> String {
    end.started_at_once.map_or_else(String::new, |runs| {
        format!("; {runs} runs started at once, and the default limit was made longer for that")
    })
}

/// The words of a failure in one paragraph.
fn words_of(text: &str) -> Cow<'_, str> {
    let words = paragraph(text);
    if words.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(words) }
}
