//! Of which kind a failure is (agent.md, error_kind), so that a runner can decide on another try
//! without reading texts. execd's own reasons count first, then the status code of the provider's
//! answer and what it says besides, by one table of words.

use serde::Serialize;

use super::cause::{complaints, is_crash};
use super::end::Stop;
use crate::limits::AGENT_ERROR_BYTES;
use crate::pure::text::utf8::floor_boundary;

/// The kinds, as a result has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The key is missing or wrong, may not do this, or its account has no credit.
    Auth,
    /// Too many requests or tokens for now.
    RateLimit,
    /// The provider has no capacity, or fails itself.
    Overloaded,
    /// The model or a filter refused.
    Refusal,
    /// No answer came through, or half of one.
    Network,
    /// No such model or provider, or another one answered.
    ModelNotFound,
    /// The conversation is too long for the model.
    ContextOverflow,
    /// pi ended by a signal, by an exception, or in a way that says nothing else.
    Crash,
    /// One of the three timeouts.
    Timeout,
    /// One of the two budgets.
    Budget,
    /// pi is missing, too old, or could not work with what it was given.
    NotStarted,
    /// pi's stream lacks what the sums are made of.
    Drift,
    /// None of these.
    Other,
}

/// What is known of a failure.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence<'a> {
    /// Why execd ended the run, if it did.
    pub stop: Option<Stop>,
    /// Why pi could not be started.
    pub failure: Option<&'a str>,
    /// An answer came without what the sums are made of.
    pub wire_fault: bool,
    /// Another model answered than was asked.
    pub mismatch: bool,
    /// pi's own fields say that the model or a filter refused.
    pub refused: bool,
    /// pi's exit code, if it exited.
    pub exit_code: Option<i32>,
    /// The name of the signal that ended it, if one did.
    pub signal: Option<&'a str>,
    /// pi's errorMessage or finalError.
    pub words: Option<&'a str>,
    /// The last of its stderr.
    pub stderr: &'a str,
}

impl Evidence<'_> {
    /// Whether pi failed as a process, and not because execd ended it.
    fn died(&self) -> bool {
        let failed = self.signal.is_some() || self.exit_code.is_some_and(|code| code != 0);
        failed && self.stop.is_none()
    }

    /// Whether another pi held files of the agent directory. pi may only warn of that.
    fn locked(&self) -> bool {
        let stderr = self.died().then_some(self.stderr);
        let texts = [self.words, self.failure, stderr];
        texts.into_iter().flatten().any(|text| any(&lower(text), LOCKED))
    }
}

/// The kind of a run's failure. Of a run without one it says nothing.
pub fn kind_of(evidence: &Evidence<'_>) -> ErrorKind {
    match evidence.stop {
        Some(Stop::FirstEventTimeout(_) | Stop::IdleTimeout(_) | Stop::HardTimeout(_)) => {
            return ErrorKind::Timeout;
        }
        Some(Stop::Cost(_) | Stop::Tokens(_)) => return ErrorKind::Budget,
        Some(Stop::Cancelled) => return ErrorKind::Other,
        _ => {}
    }
    if evidence.mismatch {
        return ErrorKind::ModelNotFound;
    }
    if evidence.failure.is_some() {
        return ErrorKind::NotStarted;
    }
    let died = evidence.died();
    if died && (evidence.signal.is_some() || is_crash(evidence.stderr)) {
        return ErrorKind::Crash;
    }
    if evidence.wire_fault && !died {
        return ErrorKind::Drift;
    }
    if evidence.refused {
        return ErrorKind::Refusal;
    }
    if let Some(kind) = evidence.words.and_then(kind_of_text) {
        return kind;
    }
    // pi reads no key while another one holds its file: what it says then misleads.
    if evidence.locked() {
        return ErrorKind::NotStarted;
    }
    if died || evidence.words.is_none() {
        let lines = complaints(evidence.stderr);
        let said = lines.iter().find_map(|line| match any(&lower(line), NOT_STARTED) {
            true => Some(ErrorKind::NotStarted),
            false => kind_of_text(line),
        });
        if let Some(kind) = said {
            return kind;
        }
    }
    if died { ErrorKind::Crash } else { ErrorKind::Other }
}

/// What helps, where execd knows it.
pub fn advice(evidence: &Evidence<'_>) -> Option<&'static str> {
    let isolate = "give each run a directory of its own: isolation \"run\" (execd agent --isolate)";
    evidence.locked().then_some(isolate)
}

/// What the text of an error says; None if that is nothing known.
fn kind_of_text(text: &str) -> Option<ErrorKind> {
    let text = &*lower(text);
    match status(text) {
        Some(status) => kind_of_status(status, text),
        None => WORDS.iter().find(|(_, words)| any(text, words)).map(|(kind, _)| *kind),
    }
}

/// What an HTTP status says. Where providers use one for several things, the body decides.
fn kind_of_status(status: u16, text: &str) -> Option<ErrorKind> {
    use ErrorKind::*;
    let of = |kinds: &[ErrorKind]| {
        let mut rows = WORDS.iter().filter(|(kind, _)| kinds.contains(kind));
        rows.find(|(_, words)| any(text, words)).map(|(kind, _)| *kind)
    };
    match status {
        401 | 402 | 407 => Some(Auth),
        // A moderation of the input is a 403 too.
        403 => of(&[Refusal]).or(Some(Auth)),
        // Also where the address is wrong: no such model is there, now or later.
        404 => Some(ModelNotFound),
        408 => Some(Network),
        413 => Some(ContextOverflow),
        // This one request may be over the limit of a minute: no later try helps.
        429 => of(&[RateLimit, ContextOverflow, Auth, Overloaded]).or(Some(RateLimit)),
        500 | 502..=504 | 520..=530 => of(&[ContextOverflow]).or(Some(Overloaded)),
        // 400 and 422 are all that a provider finds wrong with a request.
        _ => of(&[Refusal, ContextOverflow, Auth, ModelNotFound, RateLimit, Overloaded]),
    }
}

/// The HTTP status of a text, at its beginning or behind a name. Other numbers are ports, tokens.
fn status(text: &str) -> Option<u16> {
    let begin = text.trim_start();
    let begin = begin.strip_prefix("error: ").unwrap_or(begin);
    let leading = || {
        let digits = begin.starts_with(|c: char| c.is_ascii_digit());
        let ends = matches!(begin.as_bytes().get(3), None | Some(b' ' | b':' | b'\n'));
        code(begin).filter(|_| digits && ends)
    };
    let named = || {
        STATUS_NAMES.iter().find_map(|name| {
            text.match_indices(name).find_map(|(at, _)| code(&text[at + name.len()..]))
        })
    };
    leading().or_else(named)
}

/// Three digits alone that are the status of an error, perhaps quoted.
fn code(text: &str) -> Option<u16> {
    let text = text.trim_start_matches([' ', '"', '(']);
    let digits = text.get(..3).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    let ends = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/');
    let status: u16 = digits.parse().ok()?;
    (!text[3..].starts_with(ends) && (400..600).contains(&status)).then_some(status)
}

/// The part of a text that is looked at, in lower case.
fn lower(text: &str) -> String {
    text[..floor_boundary(text, AGENT_ERROR_BYTES)].to_ascii_lowercase()
}

/// Whether one of these is in a text.
fn any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// What stands before a status code.
const STATUS_NAMES: &[&str] = &["api error (", "status code", "status:", "\"code\":", "http "];

/// What providers and pi say of each kind: identifiers, and the sentences that real ones have sent
/// (tests/fixtures/pi-errors), in lower case. The first row that fits counts.
const WORDS: &[(ErrorKind, &[&str])] = &[
    (
        ErrorKind::Refusal,
        &[
            "content_filter",
            "content management policy",
            "stopped with: safety",
            "model refused",
            "was flagged",
        ],
    ),
    // Over with time, though Google adds words of an unpaid account, Bedrock of a long text.
    (ErrorKind::RateLimit, &["resource_exhausted", "throttl"]),
    (
        ErrorKind::ContextOverflow,
        &[
            "context_length_exceeded",
            "request_too_large",
            "maximum context length",
            "exceeds the context window",
            "exceeds the available context size",
            "exceeds the maximum number of tokens",
            "prompt is too long",
            "tokens must be reduced",
            "too many tokens",
        ],
    ),
    // No later try helps where the account must be paid first: that is as a wrong key.
    (
        ErrorKind::Auth,
        &[
            "insufficient_quota",
            "insufficient credit",
            "credit balance",
            "billing details",
            "no api key",
            "no models available",
            "invalid_api_key",
            "api_key_invalid",
            "api key not valid",
            "authentication_error",
        ],
    ),
    (ErrorKind::Overloaded, &["overloaded", "unavailable"]),
    (
        ErrorKind::RateLimit,
        &["rate_limit", "rate limit", "rate-limit", "too many requests", "quota exceeded"],
    ),
    (
        ErrorKind::ModelNotFound,
        &["model_not_found", "not a valid model", "no endpoints found", "--list-models"],
    ),
    (
        ErrorKind::Network,
        &[
            "connection error",
            "fetch failed",
            "econnrefused",
            "econnreset",
            "enotfound",
            "etimedout",
            "eai_again",
            "und_err",
            "other side closed",
            "socket hang up",
            "disconnected",
            "terminated",
            "timed out",
            "ended without",
            "ended before",
            "ssl routines",
            "unexpected end of json",
        ],
    ),
    // Others use these for much else: they count last.
    (ErrorKind::Overloaded, &["server_error", "api_error", "provider returned error"]),
];

/// What pi says when it does not begin.
const NOT_STARTED: &[&str] = &[
    "failed to load extension",
    "unknown option",
    "no session found",
    "error: file not found: ",
    "eacces",
    "enospc",
];

/// What proper-lockfile says, with which pi guards the files of its agent directory.
const LOCKED: &[&str] = &["lock file is already being held", "elocked"];

#[cfg(test)]
#[path = "tests_kind.rs"]
mod tests;
