//! Tests of echo: what real programs on a terminal gave back, recorded, cut wherever reads may.

use std::rc::Rc;

use super::*;

fn watch(pattern: &str) -> TextWatch {
    let pattern = match pattern.strip_prefix('/') {
        Some(regex) => Pattern::regex(0, regex),
        None => Pattern::text(0, pattern),
    };
    let patterns = vec![pattern.expect("a pattern")];
    let condition = Condition { patterns, count: 1, ..Condition::default() };
    TextWatch::new(Some(Rc::new(condition)), None, 0).expect("a pattern")
}

const LONG: &str = "echo this is a long line of input that goes on and on until the width of the \
                    terminal is over and the rest of it has to be shown on the next one ready\n";

/// What stood there, what was sent, who echoes, the echo, and what came behind it.
fn recordings() -> Vec<(&'static str, &'static str, Echo, String, &'static str)> {
    vec![
        ("", "ready\n", Echo::Terminal, "ready\r\n".into(), "ready\r\n"),
        ("", "a\tready\x7fy\n", Echo::Terminal, "a\tready\x08 \x08y\r\n".into(), "ready\r\n"),
        ("", "ready\x03", Echo::Terminal, "ready^C".into(), "\r\nready\r\n"),
        (
            "\x1b[?2004h$ ",
            "echo ready\n",
            Echo::Program,
            "echo ready\r\n\x1b[?2004l\r".into(),
            "ready\r\n\x1b[?2004h$ ",
        ),
        (
            "\x1b[?2004h$ ",
            LONG,
            Echo::Program,
            LONG.replace('\n', "\r\n\x1b[?2004l\r"),
            "and ready\r\n\x1b[?2004h$ ",
        ),
        (
            "$ ",
            "echo one\necho ready\n",
            Echo::Program,
            "echo one\r\n\x1b[?2004l\rone\r\n\x1b[?2004h$ echo ready\r\n\x1b[?2004l\r".into(),
            "ready\r\n\x1b[?2004h$ ",
        ),
        (">>> ", "print('ready')\n", Echo::Program, "print('ready')\r\n".into(), "ready\r\n>>> "),
        (
            "\x1b[1G\x1b[0J> \x1b[3G",
            "console.log('ready')\n",
            Echo::Program,
            "console.log('ready')\r\r\n".into(),
            "ready\r\n\x1b[90mundefined\x1b[39m\r\n\x1b[1G\x1b[0J> \x1b[3G",
        ),
    ]
}

/// Shows that nothing of `back`, cut wherever reads may, counts as a match of "ready", and that
/// `answer` does.
fn check(start: impl Fn() -> TextWatch + Copy, before: &str, (back, answer): (&str, &str)) {
    let output = format!("{back}{answer}");
    let answered_at = answer.find("ready").expect("an answer");
    let real = (before.len() + back.len() + answered_at) as u64;
    for first in 0..=output.len() {
        for second in [first, (first + 3).min(output.len()), output.len()] {
            let mut watch = start();
            let pieces = [(0, first), (first, second), (second, output.len())];
            for (from, to) in pieces {
                watch.push(&output.as_bytes()[from..to]);
                let told = watch.hit().is_some();
                assert!(!told || to > back.len(), "{back:?} {first} {second}");
                if to < back.len() && watch.wants_quiet() {
                    watch.quiet();
                    assert!(watch.hit().is_none(), "{back:?} {first} {second}");
                }
            }
            watch.end();
            let hit = watch.hit().unwrap_or_else(|| panic!("{back:?} {first} {second}"));
            assert!(hit.next_offset > real, "{hit:?}");
        }
    }
}

const PATTERNS: [&str; 3] = ["ready", "/r[e]ady", "/\\bready\\b"];

/// rule: waits.md, Echo: The same word counts when the program prints it
/// rule: waits.md, Echo: A program that reads in raw mode (a REPL with line editing) echoes by
///   itself
#[test]
fn the_echo_of_real_programs_does_not_count_and_their_answer_does() {
    for (before, sent, echo, back, answer) in recordings() {
        for pattern in PATTERNS {
            let start = || {
                let mut watch = watch(pattern);
                watch.push(before.as_bytes());
                watch.sent(sent.as_bytes(), echo);
                watch
            };
            check(start, before, (&back, answer));
        }
    }
}

/// rule: waits.md, What is looked at: the rest of a sequence that the end of an earlier call has
///   cut is no text
#[test]
fn the_rest_of_a_sequence_that_began_before_is_no_text() {
    let output = "ré \x1b[1;31mred\x1b[0m \x1b]0;title 9m\x1b\\\u{9b}4mend\r\n".as_bytes();
    for cut in 0..output.len() {
        let shown = crate::pure::text::clean::text_behind(output, cut);
        let mut watch = watch("/^.*$");
        watch.goes_on_behind(&output[..cut]);
        watch.push(&output[cut..]);
        let text = watch.hit().map(|hit| hit.text.as_str());
        assert_eq!(text, shown.strip_suffix('\n'), "{cut}");
    }
}

#[test]
fn where_nobody_echoes_nothing_is_swallowed() {
    for (before, sent, echo, output) in [
        ("", "ready\n", Echo::Nothing, "ready\n"),
        ("", "\r", Echo::Program, "ready\n"),
        ("", "\x1b[A", Echo::Program, "ready\n"),
        ("$ ", "x\n", Echo::Program, "\r\nready\r\n"),
        ("", "go\n", Echo::Terminal, "go ready\r\n"),
    ] {
        let mut watch = watch("ready");
        watch.push(before.as_bytes());
        watch.sent(sent.as_bytes(), echo);
        for byte in output.as_bytes() {
            watch.push(&[*byte]);
        }
        assert!(watch.hit().is_some(), "{sent:?} {output:?}");
    }
    // What never comes back is given up: the sixty-fifth line is no echo any more.
    let mut watch = watch("ready");
    watch.sent(b"ready\n", Echo::Program);
    for _ in 0..70 {
        watch.push(b"working\n");
    }
    watch.push(b"ready\n");
    assert!(watch.hit().is_some());
}
