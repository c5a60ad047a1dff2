//! The words by which the kind of a failure is known. All are in lower case: texts are held against
//! them so.

use super::ErrorKind;

/// Whether one of these is in a text. `*` stands for anything between two parts.
pub fn any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| {
        let mut rest = text;
        word.split('*').all(|part| match rest.find(part) {
            Some(at) => {
                rest = &rest[at + part.len()..];
                true
            }
            None => false,
        })
    })
}

/// The words of each kind, in the order in which they are looked for. Identifiers of providers are
/// among them, and the texts of pi's own list of contexts that are too long.
pub const ORDER: &[(ErrorKind, &[&str])] = &[
    (ErrorKind::Refusal, REFUSAL),
    (ErrorKind::RateLimit, THROTTLED),
    (ErrorKind::ContextOverflow, CONTEXT_OVERFLOW),
    (ErrorKind::Auth, UNPAID),
    (ErrorKind::Overloaded, OVERLOADED),
    (ErrorKind::RateLimit, RATE_LIMIT),
    (ErrorKind::Auth, AUTH),
    (ErrorKind::ModelNotFound, MODEL_NOT_FOUND),
    (ErrorKind::Network, NETWORK),
    (ErrorKind::Overloaded, FAILING),
];

const REFUSAL: &[&str] = &[
    "content_filter",
    "content filter",
    "content_policy",
    "content policy",
    "content management policy",
    "responsibleaipolicy",
    "usage polic",
    "stopped with: refusal",
    "stopped with: sensitive",
    "stopped with: safety",
    "stopped with: prohibited_content",
    "stopped with: blocklist",
    "stopped with: recitation",
    "stopped with: spii",
    "model refused",
    "prohibited_content",
    "requires moderation",
    "was flagged",
    "refusal",
];

/// Google's daily and per-minute limits have the words of an unpaid account, and Bedrock's those of
/// a text that is too long: both are over with time.
const THROTTLED: &[&str] = &["resource_exhausted", "throttl", "too many tokens, please wait"];

const CONTEXT_OVERFLOW: &[&str] = &[
    "prompt is too long",
    "prompt too long",
    "request_too_large",
    "input is too long for requested model",
    "exceeds the context window",
    "exceeds*maximum context length",
    "input token count*exceeds the maximum",
    "maximum prompt length is",
    "reduce the length of the messages",
    "maximum context length is",
    "exceeds*maximum allowed input length",
    "longer than the model*context length",
    "exceeds the limit of",
    "exceeds the available context size",
    "greater than the context length",
    "context window exceeds limit",
    "exceeded model token limit",
    "too large for model with*maximum context length",
    "prompt has*but the configured context size is",
    "model_context_window_exceeded",
    "range of input length should be",
    "context_length_exceeded",
    "context length exceeded",
    "too many tokens",
    "token limit exceeded",
];

/// One request that is over a limit of tokens in a minute: the same one will be over it again.
pub const TOO_LARGE: &[&str] = &["request too large*must be reduced"];

/// The account must be paid: for a runner this is as a wrong key, since no later try helps.
const UNPAID: &[&str] = &[
    "insufficient_quota",
    "insufficient quota",
    "insufficient credit",
    "insufficient balance",
    "insufficient_balance",
    "insufficient funds",
    "credit balance is too low",
    "requires more credits",
    "out of credits",
    "out of budget",
    "payment required",
    "billing details",
    "billing_",
    "billing hard limit",
    "billing is not active",
    "extra usage is required",
];

const OVERLOADED: &[&str] =
    &["overloaded", "high demand", "no capacity", "at capacity", "unavailable"];

const RATE_LIMIT: &[&str] = &[
    "rate_limit",
    "rate limit",
    "rate-limit",
    "ratelimit",
    "too many requests",
    "resourceexhausted",
    "usage limit",
    "quota exceeded",
    "exceeded your current quota",
    "retry delay",
];

const AUTH: &[&str] = &[
    "no api key",
    "api key not found",
    "no models available",
    "invalid_api_key",
    "invalid api key",
    "incorrect api key",
    "api key not valid",
    "api_key_invalid",
    "invalid x-api-key",
    "authentication_error",
    "authentication error",
    "authentication failed",
    "permission_error",
    "permission_denied",
    "accessdenied",
    "unauthorized",
    "unauthenticated",
    "unrecognizedclient",
    "expiredtoken",
    "token has expired",
    "credentials",
    "not logged in",
];

const MODEL_NOT_FOUND: &[&str] = &[
    "model_not_found",
    "not a valid model",
    "no such model",
    "unknown model",
    "unknown provider",
    "unsupported model",
    "invalid model",
    "no model selected",
    "no endpoints found",
    "not_found_error*model:",
    "model \"*\" not found",
    "model '*' not found",
    "the model*does not exist",
    "model*is not supported",
    "models/*is not found",
];

/// Of pi's own list of what it tries again.
const NETWORK: &[&str] = &[
    "network_error",
    "network error",
    "connection error",
    "connection refused",
    "connection lost",
    "connection was closed",
    "connection reset",
    "econnrefused",
    "econnreset",
    "econnaborted",
    "epipe",
    "ehostunreach",
    "enetunreach",
    "enotfound",
    "eai_again",
    "etimedout",
    "getaddrinfo",
    "und_err",
    "other side closed",
    "fetch failed",
    "upstream connect",
    "reset before headers",
    "socket hang up",
    "disconnected",
    "terminated",
    "timed out",
    "timeout",
    "premature close",
    "websocket closed",
    "websocket error",
    "ended without",
    "ended before",
    "did not get a response",
    "certificate",
    "ssl routines",
    "packet length too long",
    "could not parse*sse",
    "unexpected end of json",
];

/// A provider that fails says it in words that others use for much else: they count last.
const FAILING: &[&str] = &[
    "server_error",
    "server error",
    "internal error",
    "internal_error",
    "api_error",
    "bad gateway",
    "provider returned error",
];

/// What pi says when it does not begin.
pub const NOT_STARTED: &[&str] = &[
    "failed to load extension",
    "unknown option",
    "no session found",
    "error: file not found: ",
    "eacces",
    "erofs",
    "enospc",
    "conflicts with /",
];

/// What proper-lockfile says, with which pi guards the files of its agent directory.
pub const LOCKED: &[&str] =
    &["lock file is already being held", "elocked", "ecompromised", "unable to update lock"];
