//! Tests of what is found in output as it comes: tables, every cut, and a naive model that has the
//! whole text and another engine.

use std::rc::Rc;

use super::*;
use crate::pure::buffer::head_tail::Kept;
use crate::pure::tests_random::random;
use crate::pure::text::clean::Cleaner;

fn condition(patterns: &[&str], count: u32) -> Rc<Condition> {
    let patterns = patterns.iter().enumerate().map(|(index, pattern)| {
        match pattern.strip_prefix('/') {
            Some(regex) => Pattern::regex(index, regex),
            None => Pattern::text(index, pattern),
        }
        .expect(pattern)
    });
    Rc::new(Condition { patterns: patterns.collect(), count, ..Condition::default() })
}

/// A watch of `until` patterns; a regex begins with a slash.
fn watch(patterns: &[&str]) -> TextWatch {
    TextWatch::new(Some(condition(patterns, 1)), None, 0).expect("patterns")
}

/// The line that is hit when these pieces have come and the output has ended.
fn hit(pattern: &str, pieces: &[&str]) -> Option<String> {
    let mut watch = watch(&[pattern]);
    for piece in pieces {
        watch.push(piece.as_bytes());
    }
    watch.end();
    watch.hit().map(|hit| hit.text.clone())
}

#[test]
fn lines_match_as_they_are_shown() {
    let table: &[(&str, &str, Option<&str>)] = &[
        ("ready", "it is\nread\ny", None),
        ("/^ready$", "x ready\n", None),
        ("/a.b", "a\nb a\u{20ac}b\n", Some("b a\u{20ac}b")),
        ("/a[^x]b", "a\nb", None),
        ("/^..$", "\u{20ac}\n", None),
        ("/[✓✗] \\w+", "  ✓ built\n", Some("  ✓ built")),
        ("➜", "  ➜  Local\n", Some("  ➜  Local")),
        ("/(?i)[a-c]x(?-i:Y)", "BXy\n", None),
        ("/\\berror\\b", "errors\n", None),
        ("/\\d+", "٣\n", None),
        ("/^\\W$", "é\n", Some("é")),
        ("/\\w$", "é\n", None),
        ("/^[^\\s\\d]x", "✓x\n", Some("✓x")),
        ("/(?i)é", "É\n", Some("É")),
        ("/(?x) a \\d # a digit", "a1\n", Some("a1")),
        // The ends of a line, however they are written, and nothing beyond them.
        ("/\\Aready\\z", "x\nready\nx", Some("ready")),
        ("/\\w\\sready", "x\nready\n", None),
        // Escapes do not split a match, rewritten lines are as they stand.
        ("ready", "re\x1b[31mad\x1b[0my\n", Some("ready")),
        ("ready", "re\x1b]0;title\x07ady\n", Some("ready")),
        ("ready", "abc\x1b[2K\rready", Some("ready")),
        ("50%", "10%\r50%\r99%\n", None),
        ("99%", "10%\r50%\r99%\n", Some("99%")),
        ("Xb", "a\nab\n\x1b[1AX\n", Some("Xb")),
        ("/^ready$", "ready\r\n", Some("ready")),
        ("a\u{fffd}b", "a\u{fffd}b", Some("a\u{fffd}b")),
    ];
    for (pattern, output, expected) in table {
        let expected = expected.map(str::to_owned);
        assert_eq!(hit(pattern, &[output]), expected, "{pattern} in {output:?}");
    }
}

/// rule: waits.md, What is looked at: The unfinished last line counts too
#[test]
fn what_comes_next_may_change_a_match_at_the_end() {
    // Pattern, output, whether it counts at once, whether it does when output is quiet.
    let table = [
        ("ready", "ready", true, true),
        ("/ready$", "ready", false, true),
        ("/ready\\b", "ready ", true, true),
        ("/http\\S+", "http://l", false, true),
        ("/foobar|foo", "a foox", false, true),
        ("/foobar|foo", "a foobar", true, true),
        ("/^", "", false, false),
        ("/x$", "y", false, false),
        ("/[$>] $", "$ ", false, true),
        ("/.*", "abc", false, true),
    ];
    for (pattern, output, at_once, when_quiet) in table {
        let mut watch = watch(&[pattern]);
        watch.push(output.as_bytes());
        assert_eq!(watch.hit().is_some(), at_once, "{pattern} in {output:?}");
        assert_eq!(watch.wants_quiet(), !at_once && when_quiet, "{pattern} in {output:?}");
        watch.quiet();
        assert_eq!(watch.hit().is_some(), when_quiet, "{pattern} in {output:?}, quiet");
        assert!(!watch.wants_quiet());
    }
    assert_eq!(hit("/ready$", &["ready", "ing\n"]), None);
    assert_eq!(hit("/http\\S+", &["http://l", "ocal\n"]).as_deref(), Some("http://local"));
}

/// rule: waits.md, The reply: `index`: which one of a list, from 0
/// rule: waits.md, until and stop: What comes true in `stop` ends it with the outcome `stopped`
/// rule: waits.md, until and stop: Where until and stop are both matched, what stands first in the
///   output counts; at one place, until
/// rule: waits.md, The reply: `captures`: of a regex with groups
#[test]
fn a_hit_tells_its_place_and_its_groups() {
    let mut watch = TextWatch::new(Some(condition(&["x", "/(a)(b)?(?P<n>c+)"], 1)), None, 1_000)
        .expect("patterns");
    watch.push("\x1b[1m€\n.acc".as_bytes());
    assert!(watch.hit().is_none() && watch.wants_quiet());
    watch.push(b"c\nx\n");
    let hit = watch.hit().expect("a hit");
    assert_eq!((hit.by, hit.index, hit.by_stop), ("regex", 1, false));
    assert_eq!(hit.text, ".accc");
    assert_eq!(hit.captures, [Some("a".to_owned()), None, Some("ccc".to_owned())]);
    assert_eq!((hit.offset, hit.next_offset), (1_008, 1_014));
    // A long line is told around its match, at whole characters.
    let mut long = super::tests::watch(&["needle"]);
    long.push(format!("{}needle{}\n", "ä".repeat(2_000), "ö".repeat(2_000)).as_bytes());
    let text = &long.hit().expect("a hit").text;
    assert!(text.contains("needle") && text.len() <= 500 && text.len() > 490, "{text}");
    // Within one piece the first match in the output counts, whatever side; at one place until.
    for (until, stop, by_stop) in [("b", "a", true), ("a", "b", false), ("ab", "a", false)] {
        let sides = (condition(&[until], 1), condition(&[stop], 1));
        let mut watch = TextWatch::new(Some(sides.0), Some(sides.1), 0).expect("patterns");
        watch.push(b"-ab\n");
        assert_eq!(watch.hit().expect("a hit").by_stop, by_stop, "{until} {stop}");
    }
    assert!(TextWatch::new(Some(Rc::default()), None, 0).is_none());
}

#[test]
fn what_is_missing_parts_matches() {
    let mut watch = watch(&["/ab|^c$"]);
    watch.push(b"xa");
    watch.skip(100);
    watch.push(b"b\nc\n");
    let hit = watch.hit().expect("a hit");
    assert_eq!((hit.text.as_str(), hit.offset), ("c", 104));
}

/// rule: waits.md, What is looked at: Of a line of more than 8 KiB only the end is looked at
#[test]
fn a_line_without_end_is_looked_at_within_bounds() {
    let patterns = condition(&["needle", "/ne{2}d.{0,9}le\\d"], 3);
    let mut watch = TextWatch::new(Some(patterns), None, 0).expect("patterns");
    let piece = "0123456789abcdef".repeat(1_024);
    for _ in 0..128 {
        watch.push(piece.as_bytes());
    }
    watch.push(b"nee");
    watch.push(b"dle");
    for _ in 0..32 {
        watch.push(piece.as_bytes());
    }
    assert!(watch.hit().is_none(), "one needle, counted once");
    watch.push(b"needle needle0");
    let hit = watch.hit().expect("three needles");
    assert_eq!((hit.offset, hit.text.len()), (0, 500));
    assert_eq!(self::hit("/^needle", &[&piece.repeat(20), "needle"]), None);
    // Whole lines too, in a block of many.
    let block = |before: usize, behind: usize| {
        format!("{}needle{}\n{}", "-".repeat(before), "-".repeat(behind), "x\n".repeat(500))
    };
    assert_eq!(self::hit("needle", &[&block(20_000, 8_000)]).map(|text| text.len()), Some(500));
    assert_eq!(self::hit("needle", &[&block(0, 8_200)]), None);
    assert_eq!(self::hit("/^-*needle", &[&block(20_000, 0)]), None);
}

// ---- The naive model ------------------------------------------------------------------------

/// Another engine's regex, and how many bytes from its beginning a match may depend on.
#[derive(Clone)]
struct Lite(regex_lite::Regex, Option<usize>);

impl Lite {
    fn new(regex: &str) -> Self {
        let (_, reach) = REGEXES.iter().find(|(one, _)| one[1..] == *regex).expect("one of them");
        Lite(regex_lite::Regex::new(regex).expect("a regex"), *reach)
    }
}

/// What a wait would answer that has the whole text: each line anew, after each piece.
struct Model {
    patterns: [Vec<(String, Option<Lite>)>; 2],
    left: [u32; 2],
    output: Vec<u8>,
    counted: Vec<[usize; 2]>,
}

impl Model {
    fn new(sides: &[Vec<&str>; 2], left: [u32; 2]) -> Self {
        let patterns = sides.clone().map(|side| {
            let made = side.iter().map(|one| match one.strip_prefix('/') {
                Some(regex) => (regex.to_owned(), Some(Lite::new(regex))),
                None => ((*one).to_owned(), None),
            });
            made.collect()
        });
        Model { patterns, left, output: Vec::new(), counted: Vec::new() }
    }

    fn text(&self) -> String {
        let kept = Kept { head: self.output.clone(), omitted_bytes: 0, tail: Vec::new() };
        Cleaner::new().call_text(&kept, "", false)
    }

    /// The side and the line that end the wait, when this piece has come too.
    fn push(&mut self, piece: &[u8], at_rest: bool) -> Option<(usize, String)> {
        self.output.extend_from_slice(piece);
        let text = self.text();
        let lines: Vec<&str> = text.split('\n').collect();
        self.counted.resize(lines.len(), [0, 0]);
        for (number, line) in lines.iter().enumerate() {
            let goes_on = number + 1 == lines.len() && !at_rest;
            let mut found = Vec::new();
            for (side, patterns) in self.patterns.iter().enumerate() {
                for (source, regex) in patterns {
                    let mut from = 0;
                    while from <= line.len() {
                        let next = match regex {
                            None => line[from..]
                                .find(source)
                                .map(|at| from + at..from + at + source.len()),
                            Some(Lite(regex, _)) => {
                                regex.find_at(line, from).map(|found| found.range())
                            }
                        };
                        let Some(next) = next else { break };
                        // A match that what comes next could change does not count yet.
                        let has_come = line.len() - next.start;
                        let is_final = |Lite(_, reach): &Lite| reach.is_some_and(|r| has_come >= r);
                        if goes_on && !regex.as_ref().is_none_or(is_final) {
                            break;
                        }
                        from = if next.is_empty() { next.end + 1 } else { next.end };
                        found.push((next.start, side));
                    }
                }
            }
            found.sort_unstable();
            let mut seen = [0, 0];
            for (_, side) in found {
                seen[side] += 1;
                if seen[side] > self.counted[number][side] {
                    self.counted[number][side] += 1;
                    self.left[side] -= 1;
                    if self.left[side] == 0 {
                        return Some((side, (*line).to_owned()));
                    }
                }
            }
        }
        None
    }
}

const TEXTS: &[&str] = &["a", "ab", "ba", "aab", "x", "b a"];
/// Regexes, with the bytes from its beginning that a match may depend on; none: no bound.
const REGEXES: &[(&str, Option<usize>)] = &[
    ("/a", Some(1)),
    ("/ab", Some(2)),
    ("/a+b", None),
    ("/^a", Some(2)),
    ("/b$", Some(2)),
    ("/^ab?$", Some(3)),
    (r"/\bab\b", Some(3)),
    ("/(?i)AB", Some(2)),
    // A character may be four bytes long.
    ("/a.b", Some(6)),
    ("/[ab]{3}", Some(3)),
    ("/[ab]{5}x", Some(6)),
    ("/[abx]{12}", Some(12)),
    ("/ab|b a", Some(3)),
    ("/(a|ab)(x|bx)", Some(4)),
    ("/a *b", None),
    ("/[^b]x", Some(5)),
    (r"/\w \w", Some(3)),
    ("/x*b", None),
    ("/ab+x|b", None),
    ("/b.*x", None),
    (r"/\Bb", Some(2)),
    ("/x?$", Some(2)),
    ("/(?i)xA|B+x", None),
    (r"/\Aab|x\z", Some(3)),
    (r"/b\s", Some(2)),
];

/// What a piece is made of; the later ones only where lines are rewritten.
const PARTS: &[&str] = &[
    "a", "b", "x", " ", "a", "b", "ab", "\n", "\r\n", "\x1b[1m", "\t", "\r", "\x1b[K", "\x08",
    "\x1b[A", "\x1b[2A", "\x1b[D", "\x1b[1G", "\x1b[2K",
];

fn pattern(number: usize) -> &'static str {
    number.checked_sub(TEXTS.len()).map_or_else(|| TEXTS[number], |regex| REGEXES[regex].0)
}

/// Runs `cases` outputs of up to `parts` parts through a watch and the model.
fn against_the_model(seed: u64, cases: usize, parts: usize, kinds: usize) {
    let mut random = random(seed);
    let mut hits = 0;
    for case in 0..cases {
        let mut side = |most: usize| -> Vec<&str> {
            let count = random(most + 1);
            (0..count).map(|_| pattern(random(TEXTS.len() + REGEXES.len()))).collect()
        };
        let mut sides = [side(3), side(2)];
        if sides[0].is_empty() {
            sides[0].push(pattern(random(TEXTS.len() + REGEXES.len())));
        }
        let left = [0, 1].map(|_| if random(2) == 0 { 1 } else { 1 + random(parts / 4) as u32 });
        let mut model = Model::new(&sides, left);
        let stop = (!sides[1].is_empty()).then(|| condition(&sides[1], left[1]));
        let mut watch = TextWatch::new(Some(condition(&sides[0], left[0])), stop, 0).unwrap();
        let output: String = (0..random(parts)).map(|_| PARTS[random(kinds)]).collect();
        let mut rest = output.as_bytes();
        let mut expected = None;
        let shown = || format!("case {case}: {sides:?} {left:?} in {output:?}");
        while !rest.is_empty() && expected.is_none() {
            let (piece, later) = rest.split_at(1 + random(rest.len().min(1 + parts / 3)));
            rest = later;
            watch.push(piece);
            expected = model.push(piece, false);
            if expected.is_none() && random(4) == 0 {
                watch.quiet();
                expected = model.push(b"", true);
            }
            let hit = watch.hit().map(|hit| (usize::from(hit.by_stop), hit.text.clone()));
            let told =
                expected.clone().map(|(side, line)| (side, around_start(&line, hit.as_ref())));
            assert_eq!(hit, told, "{} at {}", shown(), output.len() - rest.len());
        }
        hits += usize::from(expected.is_some());
    }
    assert!(hits > cases / 4, "{hits} of {cases} are hits");
}

/// A long line is not told whole.
fn around_start(line: &str, hit: Option<&(usize, String)>) -> String {
    match hit {
        Some((_, text)) if line.len() > 500 && line.contains(text) => text.clone(),
        _ => line.to_owned(),
    }
}

/// rule: waits.md, What is looked at: Each byte is looked at once, as it comes, wherever reads and
///   pieces split it
/// rule: waits.md, until and stop: `count`: not at the first match but at the N-th
/// rule: waits.md, What is looked at: It is the clean text that is matched, a line at a time
#[test]
fn random_output_is_matched_as_by_a_model_that_has_the_whole_text() {
    against_the_model(1, 1_000, 30, 11);
    against_the_model(2, 1_000, 12, 9);
}

#[test]
fn rewritten_lines_are_matched_as_by_a_model_that_has_the_whole_text() {
    against_the_model(3, 1_000, 30, PARTS.len());
}

#[test]
fn plain_blocks_are_matched_as_by_a_model_that_has_the_whole_text() {
    against_the_model(4, 3, 4_000, 8);
}
