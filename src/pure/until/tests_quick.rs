//! Tests of the quick searches: what they leave out matches nowhere, and what they find is in the
//! first line that matches.

use super::*;
use crate::limits::REGEX_NEAR_BYTES;
use crate::pure::tests_random::random;

/// Without a literal that each match has: a run of a class, or the automaton alone. `common` are
/// lines that do not match, `rare` one that does.
const TABLE: &[(&str, &[&str], &str)] = &[
    ("[0-9]{12}", &["12345678901", "a 1 b 22", "", "1234567890 12345678901 x"], "ab 123456789012"),
    ("[0-9]{5}", &["1234 1234", "abcd", "1a2b3c4d5e6f7"], "x12345"),
    ("^[a-f0-9]{8}$", &["0123456g", "abcdef012", " abcdef01", "abc"], "abcdef01"),
    ("[ab]{4}[0-9]+$", &["aaaabbbb", "abab1x", "aab1", "abab 1"], "xabab12"),
    ("[a-z]+[0-9]+[a-z]+$", &["ab12", "12ab", "ab 12 ab", ""], "12ab12ab"),
    ("[0-9][a-z]$", &["a1", "1a1", "1A", "aa"], "1a"),
    (r"\d{4}[x-z]", &["1234", "123x", "xyz 1234", "1234w"], "a1234y"),
    ("(a|b)[0-9]q?[^0-9]?7$", &["a1q", "77", "b1 8", "c17"], "ab1q7"),
    (r"^\w+ \w+ \d$", &["a b c", "a b 12", " a b 1", "a  b 1"], "ab cd 7"),
];

/// The number of the line in which the only probe of a regex says yes.
fn line_of(pattern: &Pattern, text: &str) -> Option<usize> {
    assert_eq!(pattern.probes(), 1);
    let at = pattern.probe(0, text, 0)?;
    Some(text[..at].matches('\n').count())
}

/// rule: waits.md, What is looked at: Each byte is looked at once, as it comes
#[test]
fn whole_blocks_are_searched_as_line_by_line() {
    let mut random = random(7);
    for (source, common, rare) in TABLE {
        let pattern = Pattern::regex(0, source).expect(source);
        let model = regex_lite::Regex::new(source).expect(source);
        assert!(model.is_match(rare) && !common.iter().any(|line| model.is_match(line)));
        for case in 0..60 {
            let count = [1, 3, 40, 2_000][case % 4];
            let mut lines: Vec<String> =
                (0..count).map(|_| common[random(common.len())].to_owned()).collect();
            assert_eq!(line_of(&pattern, &lines.join("\n")), None, "{source}");
            // A long line makes parts of different length.
            if random(3) == 0 {
                let at = random(count);
                lines[at] = "-".repeat(random(20_000));
            }
            let at = random(count);
            lines[at] = (*rare).to_owned();
            let later = at + random(count - at);
            lines[later] = (*rare).to_owned();
            assert_eq!(line_of(&pattern, &lines.join("\n")), Some(at), "{source}, case {case}");
        }
    }
}

/// A long line was searched by the threads of the regex, each byte for all of them: `(.*,){100}`
/// in 60 KB stood in the way of all other sessions for three seconds.
/// rule: waits.md, until and stop: Patterns are of linear time
#[test]
fn a_match_in_a_long_line_is_the_same_and_costs_less() {
    let mut random = random(11);
    let regexes = [
        "b",
        "a+b",
        "(a|b)*c",
        "a.{3,9}c",
        "^.*b",
        "(?i)B.*C",
        "(.*,){3}",
        "c*$",
        r"\bab\b",
        "a??b",
        "(a*)(b*)c",
        "ä.b",
        "[^a]+",
        "(b|ba)(c|ac)",
        "^",
        "x?",
        "abc|ab",
        "ab|abc",
    ];
    for source in regexes {
        let pattern = Pattern::regex(0, source).expect(source);
        let model = regex_lite::Regex::new(source).expect(source);
        for case in 0..24 {
            let letters = [&["a", "b", "c", ",", " ", "ä"][..], &["a", ",", "a"]][case % 2];
            let count = REGEX_NEAR_BYTES + random(3_000);
            let mut line: String = (0..count).map(|_| letters[random(letters.len())]).collect();
            line.push_str(["", "b", "abc", "c"][random(4)]);
            let from = if case < 12 { 0 } else { line.ceil_char_boundary(1) };
            let expected = model.find_at(&line, from).map(|found| found.range());
            let found = pattern.find(&line, from);
            assert_eq!(found, expected, "{source}, case {case}");
            let Some(found) = found else { continue };
            let groups = model.captures_at(&line, from).expect("it matches");
            let groups: Vec<_> =
                groups.iter().skip(1).map(|group| group.map(|group| group.range())).collect();
            assert_eq!(pattern.captures(&line, &found), groups, "{source}, case {case}");
        }
    }
    // What is found in such a line is found without the threads.
    for (source, text) in
        [("(.*,){100}", "field,"), ("(?:a?){500}a{500}", "aaaaaa"), (".{1,300}d$", "field")]
    {
        let pattern = Pattern::regex(0, source).expect(source);
        let Pattern::Regex { regex, .. } = &pattern else { panic!("no regex") };
        let line = text.repeat(1_000);
        let near = regex.find_near(&line, 0..line.len()).expect("it matches");
        let far = regex.find_far(&line, 0..near.end, source);
        assert_eq!(far.as_ref(), Some(&near), "{source}");
        assert_eq!(pattern.find(&line, 0), Some(near), "{source}");
    }
}
