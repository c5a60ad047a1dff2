//! Tests of the kinds of failures.

use serde::Deserialize;

use super::*;
use crate::pure::agent::cause::{paragraph, with_stderr};
use crate::pure::tests_random::random;

/// What a real pi wrote when it failed (tests/fixtures/pi-errors).
#[derive(Debug, Deserialize)]
struct Entry {
    version: String,
    case: String,
    kind: String,
    error_message: Option<String>,
    final_error: Option<String>,
    stderr: String,
}

fn real_errors() -> Vec<Entry> {
    let json =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/pi-errors/texts.json"));
    serde_json::from_str(json).expect("the entries of the fixture")
}

/// What is made of what some of them wrote: version, case, text.
const TEXTS: [(&str, &str, &str); 10] = [
    ("1.5.2", "openai-503", "503: The engine is currently overloaded, please try again later"),
    ("1.5.2", "anthropic-529", "529 Overloaded"),
    ("1.5.2", "proxy-502", "502 Bad Gateway"),
    ("1.5.2", "google-400-key", "API key not valid. Please pass a valid API key."),
    ("1.5.2", "refused", "Connection error.: connect ECONNREFUSED 127.0.0.1:8079"),
    (
        "1.5.2",
        "unknown-model",
        "404: The model `nope` does not exist: Warning: Model \"nope\" not found for provider \
         \"fake\". Using custom model id.",
    ),
    ("0.87.1", "unknown-flag", "Error: Unknown option: --nope"),
    ("0.87.1", "uncaught", "Error: late"),
    ("1.5.2", "syntax-error", "SyntaxError: Unexpected token '=>'"),
    ("0.87.1", "out-of-memory", "ailed - JavaScript heap out of memory"),
];

/// rule: agent.md, error_kind: An error's text has no source code and no frames of a stack
#[test]
fn what_real_pis_wrote_becomes_one_paragraph() {
    let mut told = 0;
    for entry in real_errors() {
        let words = entry.final_error.as_deref().or(entry.error_message.as_deref());
        let text = with_stderr(&paragraph(words.unwrap_or("")), &entry.stderr);
        let place = format!("{} {}: {text}", entry.version, entry.case);
        let bare = matches!(entry.kind.as_str(), "none") || entry.case.starts_with("sig");
        assert_eq!(text.is_empty(), bare && entry.stderr.is_empty(), "{place}");
        let signs = ["\n", "\u{1b}", "node:internal", "    at ", "=>{", "{\"", "<html", "0x"];
        for sign in signs {
            assert!(!text.contains(sign), "{sign:?} in {place}");
        }
        assert!(text.len() < 1_000, "{place}");
        let expected = TEXTS.iter().find(|one| (one.0, one.1) == (&entry.version, &entry.case));
        if let Some((.., expected)) = expected {
            assert_eq!(text, *expected, "{place}");
            told += 1;
        }
    }
    assert_eq!(told, TEXTS.len());
}

/// The kind of an error that pi tells in words.
fn of_words(words: &str) -> ErrorKind {
    kind_of(&Evidence { words: Some(words), exit_code: Some(0), ..Evidence::default() })
}

/// The kind of a pi that exited with 1 and wrote this on stderr.
fn of_stderr(stderr: &str) -> ErrorKind {
    kind_of(&Evidence { stderr, exit_code: Some(1), ..Evidence::default() })
}

/// rule: agent.md, error_kind: What execd ended itself, and pi's own fields, count before any words
#[test]
fn execds_own_reasons_and_pis_fields_count_first() {
    let overloaded = Evidence {
        words: Some("529 Overloaded"),
        stderr: "Error: No API key found",
        signal: Some("SIGTERM"),
        ..Evidence::default()
    };
    let stopped = |stop| Evidence { stop: Some(stop), ..overloaded };
    let exited = |code| Evidence { exit_code: Some(code), signal: None, ..overloaded };
    let silent = Evidence { words: None, stderr: "", ..exited(0) };
    for (evidence, kind) in [
        (stopped(Stop::FirstEventTimeout(1)), ErrorKind::Timeout),
        (stopped(Stop::Tokens(1)), ErrorKind::Budget),
        (stopped(Stop::Cancelled), ErrorKind::Other),
        (stopped(Stop::Lingered), ErrorKind::Overloaded),
        (Evidence { mismatch: true, ..exited(0) }, ErrorKind::ModelNotFound),
        (Evidence { failure: Some("pi was not found"), ..silent }, ErrorKind::NotStarted),
        (overloaded, ErrorKind::Crash),
        (exited(1), ErrorKind::Overloaded),
        (Evidence { wire_fault: true, ..exited(0) }, ErrorKind::Drift),
        (Evidence { wire_fault: true, ..exited(1) }, ErrorKind::Overloaded),
        (Evidence { refused: true, ..exited(0) }, ErrorKind::Refusal),
        (Evidence { words: None, ..exited(1) }, ErrorKind::Auth),
        (Evidence { exit_code: Some(1), ..silent }, ErrorKind::Crash),
        (silent, ErrorKind::Other),
        (Evidence::default(), ErrorKind::Other),
    ] {
        assert_eq!(kind_of(&evidence), kind, "{evidence:?}");
    }
}

/// rule: agent.md, error_kind: The status code of the provider's answer counts before words
#[test]
fn a_status_code_counts_before_words() {
    for (words, kind) in [
        ("401 rate limit", ErrorKind::Auth),
        ("402 overloaded", ErrorKind::Auth),
        ("403: {\"message\":\"model not found\"}", ErrorKind::Auth),
        ("404 connection error", ErrorKind::ModelNotFound),
        ("408 status code (no body)", ErrorKind::Network),
        ("413 status code (no body)", ErrorKind::ContextOverflow),
        ("429", ErrorKind::RateLimit),
        ("502 <html><title>Bad</title></html>", ErrorKind::Overloaded),
        ("529 anything", ErrorKind::Overloaded),
        ("OpenAI API error (503): no", ErrorKind::Overloaded),
        ("got status: 429 . {}", ErrorKind::RateLimit),
        ("{\"error\":{\"code\":403,\"message\":\"no\"}}", ErrorKind::Auth),
        ("{\"error\":{\"code\": \"503\"}}", ErrorKind::Overloaded),
        ("Error: 401 no", ErrorKind::Auth),
        ("HTTP 503", ErrorKind::Overloaded),
    ] {
        assert_eq!(of_words(words), kind, "{words}");
    }
}

/// rule: agent.md, error_kind: Where a status has several meanings, the identifiers and words of
///   the answer decide
#[test]
fn where_a_status_has_several_meanings_its_body_decides() {
    for (words, kind) in [
        ("429 You exceeded your current quota: insufficient_quota", ErrorKind::Auth),
        ("429 RESOURCE_EXHAUSTED: check your billing details", ErrorKind::RateLimit),
        ("429 Rate limit reached. Add a payment at https://x/billing", ErrorKind::RateLimit),
        ("429 Request too large: the input tokens must be reduced", ErrorKind::ContextOverflow),
        ("429 engine_overloaded_error", ErrorKind::Overloaded),
        ("400 prompt is too long: 210000 tokens > 200000 maximum", ErrorKind::ContextOverflow),
        ("400 Your credit balance is too low", ErrorKind::Auth),
        ("400 API key not valid. Please pass a valid API key.", ErrorKind::Auth),
        ("400 x/y is not a valid model ID", ErrorKind::ModelNotFound),
        ("400: {\"code\":\"content_filter\"}", ErrorKind::Refusal),
        ("403 Input was flagged by moderation", ErrorKind::Refusal),
        ("500 the request exceeds the available context size", ErrorKind::ContextOverflow),
        ("400 messages: roles must alternate", ErrorKind::Other),
        ("422 the field is missing", ErrorKind::Other),
        ("ThrottlingException: Too many tokens, please wait.", ErrorKind::RateLimit),
        ("Too many tokens in the prompt", ErrorKind::ContextOverflow),
    ] {
        assert_eq!(of_words(words), kind, "{words}");
    }
}

/// rule: agent.md, error_kind: A number that is no status code says nothing
#[test]
fn numbers_that_only_look_like_codes_say_nothing() {
    let all = "429tokens|4290 things|the answer to 429 is unknown|/srv/401/agent is odd|401/agent|\
        line 503 of the script|v4.0.429|status 200|status code 4290|\"code\": 42900|| \n |42|é|\
        \"code\": 429_000|４２９ overrun";
    for words in all.split('|') {
        assert_eq!(of_words(words), ErrorKind::Other, "{words:?}");
    }
    assert_eq!(of_words("connect ECONNREFUSED 127.0.0.1:4290"), ErrorKind::Network);
}

/// rule: agent.md, error_kind: crash: pi ended by a signal or by an exception
#[test]
fn a_pi_that_ends_without_words_is_told_by_its_stderr() {
    let locked = "Error: Lock file is already being held";
    for (stderr, kind) in [
        ("", ErrorKind::Crash),
        ("something odd", ErrorKind::Crash),
        ("No Api Key found for anthropic.\n\nUse /login to log in", ErrorKind::Auth),
        ("Error: Unknown option: --nope", ErrorKind::NotStarted),
        ("Error: Failed to load extension \"/e\": no", ErrorKind::NotStarted),
        ("Error: EACCES: permission denied, mkdir '/a'", ErrorKind::NotStarted),
        ("Error: Unknown provider \"x\". Use --list-models.", ErrorKind::ModelNotFound),
        ("Warning: rate limit\nodd", ErrorKind::Crash),
        (locked, ErrorKind::NotStarted),
        (&format!("{locked}\nNo API key found for anthropic."), ErrorKind::NotStarted),
        ("Error: 429 limits\n    at f (/a.js:1:1)\n\nNode.js v22.23.3", ErrorKind::Crash),
    ] {
        assert_eq!(of_stderr(stderr), kind, "{stderr}");
    }
}

/// Nothing that pi or a provider writes makes these panic, and what is a status is one anywhere.
#[test]
fn any_text_has_a_kind() {
    const PIECES: &str = "429|529|40|1| |:|(|)|\"|{|}|\n|status|code|error|api error (|tokens|\
        é|４|😀|model|not found|Warning: |ELOCKED|Node.js v|    at f (/a)";
    let pieces: Vec<&str> = PIECES.split('|').collect();
    let mut below = random(42);
    for _ in 0..1_700 {
        let count = below(12);
        let text: String = (0..count).map(|_| pieces[below(pieces.len())]).collect();
        of_words(&text);
        of_stderr(&text);
        advice(&Evidence { words: Some(&text), stderr: &text, ..Evidence::default() });
        if !text.is_empty() && text.is_ascii() {
            let told = format!("529 {{{text}");
            let known = [ErrorKind::Overloaded, ErrorKind::ContextOverflow];
            assert!(known.contains(&of_words(&told)), "{told:?}");
        }
    }
}
