//! Tests of truncation: pi's own answers as a table, and a naive model on random text.

use super::*;
use crate::pure::tests_random::random;

/// Text, max lines, max bytes; kept text, truncatedBy, [totalLines, totalBytes, outputLines,
/// outputBytes], lastLinePartial: what truncateTail of @earendil-works/pi-coding-agent 0.87.1
/// answered when it was run on these.
type Vector = (&'static str, usize, usize, &'static str, &'static str, [usize; 4], bool);
#[rustfmt::skip]
const PI: &[Vector] = &[
    ("", 10, 100, "", "", [0, 0, 0, 0], false),
    ("\n", 1, 0, "", "lines", [1, 1, 1, 0], false),
    ("a\nb", 2, 100, "a\nb", "", [2, 3, 2, 3], false),
    ("a\nb\n\n", 2, 100, "b\n", "lines", [3, 5, 2, 2], false),
    ("a\nb\nc\n", 2, 100, "b\nc", "lines", [3, 6, 2, 3], false),
    ("a\nb\nc\n", 3, 6, "a\nb\nc\n", "", [3, 6, 3, 6], false),
    ("a\nb\nc\n", 3, 5, "a\nb\nc", "lines", [3, 6, 3, 5], false),
    ("a\nb\nc\n", 3, 2, "c", "bytes", [3, 6, 1, 1], false),
    ("a\nb\nc\n", 3, 0, "", "bytes", [3, 6, 1, 0], true),
    ("\n\n\n", 2, 100, "\n", "lines", [3, 3, 2, 1], false),
    ("\n\n\n", 5, 1, "\n", "bytes", [3, 3, 2, 1], false),
    ("\n\n\n", 5, 0, "", "bytes", [3, 3, 1, 0], false),
    ("hello\n", 10, 5, "hello", "lines", [1, 6, 1, 5], false),
    ("hello\n", 10, 4, "ello", "bytes", [1, 6, 1, 4], true),
    ("hello", 1, 4, "ello", "lines", [1, 5, 1, 4], true),
    ("one\ntwo\nthree", 10, 9, "two\nthree", "bytes", [3, 13, 2, 9], false),
    ("one\ntwo\nthree", 2, 9, "two\nthree", "lines", [3, 13, 2, 9], false),
    ("one\ntwo\nthree\n", 10, 13, "one\ntwo\nthree", "lines", [3, 14, 3, 13], false),
    ("x\nhello", 5, 3, "llo", "bytes", [2, 7, 1, 3], true),
    ("x\nhello", 1, 3, "llo", "lines", [2, 7, 1, 3], true),
    ("h\u{e9}llo", 5, 4, "llo", "bytes", [1, 6, 1, 3], true),
    ("a\u{20ac}b\u{20ac}", 9, 5, "b\u{20ac}", "bytes", [1, 8, 1, 4], true),
    ("a\u{20ac}b\u{20ac}", 9, 3, "\u{20ac}", "bytes", [1, 8, 1, 3], true),
    ("\u{1f600}", 9, 3, "", "bytes", [1, 4, 1, 0], true),
    ("\u{1f600}\n", 9, 4, "\u{1f600}", "lines", [1, 5, 1, 4], false),
    ("a\r\nb\r\nc\r\n", 2, 100, "b\r\nc\r", "lines", [3, 9, 2, 5], false),
    ("\n\nabc", 3, 4, "\nabc", "bytes", [3, 5, 2, 4], false),
    ("abc\n\n", 3, 1, "", "bytes", [2, 5, 1, 0], false),
    ("l1\nl2\n\nl4\n", 3, 6, "l2\n\nl4", "lines", [4, 10, 3, 6], false),
];

fn counts(t: &Truncation) -> [usize; 4] {
    [t.total_lines, t.total_bytes, t.output_lines, t.output_bytes]
}

fn by(t: &Truncation) -> &'static str {
    t.cut_by.map_or("", CutBy::as_str)
}

/// rule: unified-exec.md, Truncation, retention, text: A truncated text has no newline at its end
/// rule: unified-exec.md, Truncation, retention, text: Line and byte counts are pi's
#[test]
fn every_count_is_what_pi_gives() {
    for (text, max_lines, max_bytes, kept, cut_by, numbers, partial) in PI {
        let (got, t) = truncate_tail(text, *max_lines, *max_bytes);
        let case = format!("{text:?} {max_lines} {max_bytes}");
        assert_eq!((got, by(&t)), (*kept, *cut_by), "{case}");
        assert_eq!((counts(&t), t.last_line_partial), (*numbers, *partial), "{case}");
        assert_eq!((t.max_lines, t.max_bytes), (*max_lines, *max_bytes));
    }
}

/// rule: unified-exec.md, Truncation, retention, text: Line and byte counts are pi's
/// rule: unified-exec.md, Truncation, retention, text: Truncation keeps the tail: whole lines, at
///   most 2,000
/// rule: unified-exec.md, Truncation, retention, text: Truncation keeps at most 50 KiB
#[test]
fn large_texts_are_cut_as_pi_cuts_them() {
    let seq = |n: usize| (1..=n).map(|i| format!("{i}\n")).collect::<String>();
    let wide = format!("{}\n", "y".repeat(99)).repeat(900);
    let huge = "z".repeat(70_000);
    let table = [
        (seq(3000), "lines", [3000, 13893, 2000, 9999], false),
        (seq(2001), "lines", [2001, 8898, 2000, 8895], false),
        (wide, "bytes", [900, 90_000, 512, 51_199], false),
        (format!("first\n{huge}\n"), "bytes", [2, 70_007, 1, 51_200], true),
        (format!("{}\n", "z".repeat(51_200)), "lines", [1, 51_201, 1, 51_200], false),
        ("\u{20ac}".repeat(20_000), "bytes", [1, 60_000, 1, 51_198], true),
    ];
    for (text, cut_by, numbers, partial) in table {
        let (kept, t) = truncate_tail(&text, 2000, 50 * 1024);
        assert_eq!((by(&t), counts(&t), t.last_line_partial), (cut_by, numbers, partial));
        assert!(text.trim_end_matches('\n').ends_with(kept.trim_end_matches('\n')));
    }
}

/// rule: unified-exec.md, Truncation, retention, text: Line and byte counts are pi's
#[test]
fn sizes_are_written_as_pi_writes_them() {
    let table = [
        (1023, "1023B"),
        (1075, "1.0KB"),
        (1076, "1.1KB"),
        (1280, "1.3KB"),
        (51_200, "50.0KB"),
        (1_048_575, "1024.0KB"),
        (1_048_576, "1.0MB"),
        (52_428_800, "50.0MB"),
    ];
    for (bytes, expected) in table {
        assert_eq!(format_size(bytes), expected, "{bytes}");
    }
    assert!(format_size(usize::MAX).ends_with("MB"));
}

/// The rule told with a list of lines.
fn model(text: &str, max_lines: usize, max_bytes: usize) -> String {
    let mut lines: Vec<&str> = text.split('\n').collect();
    if lines.last() == Some(&"") {
        lines.pop();
    }
    if lines.len() <= max_lines && text.len() <= max_bytes {
        return text.to_owned();
    }
    if max_lines > 0 && lines.last().is_some_and(|line| line.len() > max_bytes) {
        let mut end = *lines.last().unwrap();
        while end.len() > max_bytes {
            end = &end[end.chars().next().unwrap().len_utf8()..];
        }
        return end.to_owned();
    }
    while lines.len() > max_lines || lines.join("\n").len() > max_bytes {
        lines.remove(0);
    }
    lines.join("\n")
}

#[test]
fn random_text_is_cut_as_the_model_cuts_it() {
    let mut random = random(0xA076_1D64_78BD_642F);
    let alphabet = ['a', 'b', '\n', '\n', '\u{e9}', '\u{20ac}', '\u{1f600}'];
    for _ in 0..7_000 {
        let text: String = (0..random(30)).map(|_| alphabet[random(alphabet.len())]).collect();
        let (max_lines, max_bytes) = (random(8), random(40));
        let (kept, t) = truncate_tail(&text, max_lines, max_bytes);
        let case = format!("{text:?} {max_lines} {max_bytes}");
        assert_eq!(kept, model(&text, max_lines, max_bytes), "{case}");
        assert_eq!(t.output_bytes, kept.len(), "{case}");
        assert!(t.cut_by.is_some() == (kept.len() < text.len()), "{case}");
        assert!(t.cut_by.is_none() || (t.output_lines <= max_lines && kept.len() <= max_bytes));
        assert_eq!(footer(&t, None).is_some(), t.cut_by.is_some());
    }
}
