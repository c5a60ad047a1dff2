//! Tests of what is made of errors for people.

use super::*;
use crate::pure::tests_random::random;

/// rule: agent.md, error_kind: An error's text is one paragraph: of a provider's JSON the message
///   alone
#[test]
fn bodies_are_reduced_to_their_message() {
    for (text, words) in [
        ("529 overloaded", "529 overloaded"),
        (r#"529 {"type":"error","error":{"type":"x","message":"Overloaded"}}"#, "529 Overloaded"),
        (r#"400 {"error":"invalid","message":"It is \"long\""}"#, r#"400 It is "long""#),
        (r#"{"detail":"Not Found"} twice {"errors":[{"message":"two"}]}"#, "Not Found twice two"),
        (r#"{"error":{"message":"{\n \"error\": {\"message\": \"deep\"}}","code":429}}"#, "deep"),
        (r#"{"error":{"message":"An error","metadata":{"raw":"busy"}}}"#, "An error: busy"),
        (r#"400: {"kind":"odd"}"#, r#"400: {"kind":"odd"}"#),
        (r#"400: {"message":"cut here","more":"... [truncated 9 chars]"#, "400: cut here"),
        ("502 <html>\n<head><title> 502 Bad </title></head>\n<body>x</body></html>", "502 Bad"),
        ("503 <!DOCTYPE html><p>x", "503 an HTML page"),
        ("İ <HTML><h1>Ł</h1>", "İ Ł"),
        ("two\nlines\n\nare one.\nAll", "two; lines; are one. All"),
        ("\x1b[31mError: red\x1b[39m\n", "Error: red"),
        ("turned \u{202e}text", "turned text"),
        ("{", ""),
        ("Warning: later\nError: first", "Error: first; Warning: later"),
    ] {
        assert_eq!(paragraph(text), words, "{text}");
    }
}

/// What node 22 writes of an exception that nobody caught.
const UNCAUGHT: &str = "\
file:///home/user/pi/dist/cli.js:12
    throw new Error('boom');
          ^

Error: boom
    at start (file:///home/user/pi/dist/cli.js:12:11)
    at async node:internal/modules/esm/loader:639:26
    at process.processTicksAndRejections (node:internal/process/task_queues:105:5) {
  [cause]: Error: connect ECONNREFUSED 127.0.0.1:8080
}

Node.js v22.23.3
";

/// What V8 writes when its heap is full.
const OUT_OF_MEMORY: &str = "
<--- Last few GCs --->

[4242:0x2f0e2000]     1234 ms: Mark-Compact 29.9 (34.5) -> 29.5 (34.8) MB, 12.34 / 0.00 ms

<--- JS stacktrace --->

FATAL ERROR: Reached heap limit - JavaScript heap out of memory
----- Native stack trace -----

 1: 0xe44e56 node::OOMErrorHandler(char const*, v8::OOMDetails const&) [/usr/bin/node]
 2: 0x1269750 v8::Utils::ReportOOMFailure(v8::internal::Isolate*, char const*) [/usr/bin/node]
";

/// rule: agent.md, error_kind: An error's text has no source code and no frames of a stack
#[test]
fn source_code_and_frames_are_left_out() {
    let minified = "var a=(b,c)=>{if(!b){return c(b)}};".repeat(200);
    let of_bundle = format!(
        "file:///home/user/pi/dist/bundle/cli.js:2\n{minified}\n       ^^^^^^\n\nSyntaxError: The \
         requested module 'node:module' does not provide an export named 'x'\n    at \
         node:internal/modules/esm/loader:1:2\n\nNode.js v20.1.0\n"
    );
    let syntax = "SyntaxError: The requested module 'node:module' does not provide an export \
        named 'x'";
    for (stderr, words) in [
        (UNCAUGHT, "Error: boom; [cause]: Error: connect ECONNREFUSED 127.0.0.1:8080"),
        (OUT_OF_MEMORY, "FATAL ERROR: Reached heap limit - JavaScript heap out of memory"),
        (&of_bundle, syntax),
        (&of_bundle[500..], syntax),
        ("    at f (/a.js:1:1)\n", ""),
        ("at last it failed", "at last it failed"),
    ] {
        assert_eq!(paragraph(stderr), words);
        assert_eq!(with_stderr("", stderr), words);
    }
    let prose = "It failed, since the model gave no answer in time (see the log). ".repeat(5);
    assert_eq!(paragraph(&prose), prose.trim());
}

/// rule: agent.md, error_kind: The end of pi's stderr follows where it says more
#[test]
fn the_end_of_stderr_follows_where_it_says_more() {
    for (cause, stderr, words) in [
        ("529 Overloaded", "", "529 Overloaded"),
        ("529 Overloaded", "529 Overloaded\n", "529 Overloaded"),
        ("529 Overloaded.", "Warning: old", "529 Overloaded: Warning: old"),
        ("No key", "Error: No key for x", "Error: No key for x"),
        ("pi ended", "why\nreally", "pi ended: why; really"),
    ] {
        assert_eq!(with_stderr(cause, stderr), words, "{cause} {stderr}");
    }
    let many: String = (0..1000).map(|number| format!("line {number}\n")).collect();
    let told = with_stderr("pi ended", &many);
    assert!(told.ends_with("; line 999") && !told.contains("line 1;"), "{told}");
    assert!(told.len() <= AGENT_CAUSE_BYTES + "pi ended: ".len(), "{}", told.len());
    let long = paragraph(&"é ".repeat(AGENT_CAUSE_BYTES));
    assert!(long.ends_with('…') && long.len() <= AGENT_CAUSE_BYTES, "{}", long.len());
}

/// rule: agent.md, The result: stderr_tail: the last 4 KiB of pi's stderr, without escape
///   sequences, control characters and source code
#[test]
fn a_cleaned_stderr_keeps_its_lines() {
    assert_eq!(
        cleaned_stderr(UNCAUGHT),
        "file:///home/user/pi/dist/cli.js:12\n\nError: boom\n    at start \
         (file:///home/user/pi/dist/cli.js:12:11)\n  [cause]: Error: connect ECONNREFUSED \
         127.0.0.1:8080\n}\n\nNode.js v22.23.3"
    );
    assert_eq!(cleaned_stderr("\x1b[33mWarning:\x1b[0m a\x07\r\nb\n"), "Warning: a\nb");
    assert_eq!(cleaned_stderr(""), "");
    let long = "é".repeat(AGENT_STDERR_BYTES);
    let kept = cleaned_stderr(&long);
    assert!(kept.len() <= AGENT_STDERR_BYTES && long.ends_with(&kept), "{}", kept.len());
}

/// Nothing that pi or a provider writes makes these panic, or grow beyond their bounds.
#[test]
fn any_text_is_taken() {
    const PIECES: &str = "{|}|[|]|\"|\\|:|,|\"message\":|{\"error\":|\"errors\":[|\"raw\":\"|\n|\r|\
        \t|^|node:internal| |    at |<html>|<title>|</title>|é|😀|İ|\u{202e}|\x1b[2A|\x1b]0;|\
        \u{9b}|429|(|Warning: |file:///a:1|\
        aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa;;;;";
    let pieces: Vec<&str> = PIECES.split('|').collect();
    let mut below = random(17);
    for _ in 0..1_000 {
        let count = below(60);
        let text: String = (0..count).map(|_| pieces[below(pieces.len())]).collect();
        let text = if below(50) == 0 { text.repeat(300) } else { text };
        assert!(paragraph(&text).len() <= AGENT_CAUSE_BYTES, "{text:?}");
        assert!(!paragraph(&text).contains(['\n', '\x1b', '\r', '\t']), "{text:?}");
        assert!(cleaned_stderr(&text).len() <= AGENT_STDERR_BYTES, "{text:?}");
        assert!(!cleaned_stderr(&text).contains('\x1b'), "{text:?}");
        let both = with_stderr(&paragraph(&text), &text);
        assert!(both.len() <= 2 * AGENT_CAUSE_BYTES + 2, "{text:?}");
        complaints(&text);
        is_crash(&text);
    }
}
