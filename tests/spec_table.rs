//! tests/SPEC.md names the tests that show each rule of the specification; this holds the names
//! against the tests, so that a renamed or deleted test does not leave a rule without one.
#![allow(clippy::disallowed_methods, clippy::print_stderr)] // Tests may use all of std.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Rules of the specification that the table has at least.
const FEWEST_RULES: usize = 150;

/// One row: a rule, and the tests that show it.
struct Rule {
    line: usize,
    text: String,
    tests: Vec<String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The rows of the tables in tests/SPEC.md.
fn rules() -> Vec<Rule> {
    let table = std::fs::read_to_string(root().join("tests/SPEC.md")).expect("tests/SPEC.md");
    table
        .lines()
        .enumerate()
        .filter_map(|(number, line)| {
            let row = line.strip_prefix("| ")?.strip_suffix(" |")?;
            // A rule may hold a bar of its own; the cell of the tests never does.
            let (text, cell) = row.rsplit_once(" | ")?;
            if text == "rule" {
                return None;
            }
            let tests = cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            Some(Rule { line: number + 1, text: text.to_owned(), tests })
        })
        .collect()
}

/// Whether a test is there and runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Runs,
    Ignored,
}

/// The tests of a source file: functions with `#[test]` above them.
fn tests_in(source: &str) -> BTreeMap<String, State> {
    let mut found = BTreeMap::new();
    // The state of the item that the attributes read so far belong to.
    let mut above: Option<State> = None;
    for line in source.lines().map(str::trim) {
        if line == "#[test]" {
            above = Some(State::Runs);
        } else if line.starts_with("#[ignore") && above.is_some() {
            above = Some(State::Ignored);
        } else if let (Some(state), Some(rest)) = (above, line.strip_prefix("fn ")) {
            let name = rest.split('(').next().unwrap_or(rest);
            found.insert(name.to_owned(), state);
            above = None;
        }
    }
    found
}

/// The tests of one of the extension's files: the names given to `it(` or `test(`, on its own line
/// or the next; of a template its text as it is written, `${…}` and all.
fn script_tests_in(source: &str) -> BTreeMap<String, State> {
    let mut found = BTreeMap::new();
    let mut opened: Option<State> = None;
    for line in source.lines().map(str::trim) {
        let (state, rest) = match (opened.take(), line.split_once('(')) {
            (Some(state), _) => (state, line),
            (None, Some(("it" | "test", rest))) => (State::Runs, rest),
            (None, Some(("it.skip" | "test.skip" | "it.todo", rest))) => (State::Ignored, rest),
            _ => continue,
        };
        if rest.is_empty() {
            opened = Some(state);
            continue;
        }
        let named = |quote: char| rest.strip_prefix(quote)?.split_once(quote);
        if let Some((name, _)) = named('"').or_else(|| named('`')) {
            found.insert(name.to_owned(), state);
        }
    }
    found
}

/// The tests of the file that a name in the table begins with.
fn tests_of(file: &str) -> Option<BTreeMap<String, State>> {
    if file.starts_with("pi-extension/") {
        let path = root().join(format!("{file}.test.ts"));
        return std::fs::read_to_string(path).ok().map(|source| script_tests_in(&source));
    }
    let path = if file.starts_with("src/") {
        root().join(format!("{file}.rs"))
    } else {
        root().join(format!("tests/{file}.rs"))
    };
    std::fs::read_to_string(path).ok().map(|source| tests_in(&source))
}

#[test]
fn every_test_in_the_table_exists_and_runs() {
    let mut files = BTreeMap::new();
    let mut complaints = Vec::new();
    for rule in rules() {
        for test in &rule.tests {
            let place = format!("tests/SPEC.md:{} {test}", rule.line);
            let Some((file, name)) = test.rsplit_once("::") else {
                complaints.push(format!("{place} is no file::test"));
                continue;
            };
            match files.entry(file.to_owned()).or_insert_with(|| tests_of(file)) {
                None => complaints.push(format!("{place}: there is no such file")),
                Some(tests) => match tests.get(name) {
                    None => complaints.push(format!("{place}: there is no such test")),
                    Some(State::Ignored) => complaints.push(format!("{place} is ignored")),
                    Some(State::Runs) => {}
                },
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn the_table_has_the_whole_specification() {
    let rules = rules();
    assert!(rules.len() >= FEWEST_RULES, "only {} rules", rules.len());
    let mut seen = BTreeSet::new();
    for rule in &rules {
        assert!(!rule.text.is_empty(), "tests/SPEC.md:{} has no rule", rule.line);
        // Rules that go on from the one above them may have the same words.
        let new = seen.insert(&rule.text) || rule.text.starts_with('…');
        assert!(new, "tests/SPEC.md:{} is there twice: {}", rule.line, rule.text);
    }
    let bare: Vec<&str> =
        rules.iter().filter(|rule| rule.tests.is_empty()).map(|rule| rule.text.as_str()).collect();
    eprintln!("{} rules, {} without a test:\n  {}", rules.len(), bare.len(), bare.join("\n  "));
    assert!(bare.len() * 20 <= rules.len(), "more than one rule in twenty has no test");
}

#[test]
fn tests_are_found_with_their_state() {
    let source =
        "#[test]\nfn one() {}\nfn two() {}\n#[test]\n#[ignore = \"a \\\n  b\"]\nfn three() {}";
    let found = tests_in(source);
    assert_eq!(found.get("one"), Some(&State::Runs));
    assert_eq!(found.get("two"), None);
    assert_eq!(found.get("three"), Some(&State::Ignored));

    let script = "it(\"one\", () => {\n  test(\n    \"two: it's\",\n  it.skip(\"three\", \
                  submit(\"four\"\n test(`five ${n}: \"x\"`, async () => {";
    let found = script_tests_in(script);
    assert_eq!(found.get("one"), Some(&State::Runs));
    assert_eq!(found.get("two: it's"), Some(&State::Runs));
    assert_eq!(found.get("three"), Some(&State::Ignored));
    assert_eq!(found.get("five ${n}: \"x\""), Some(&State::Runs));
    assert_eq!(found.len(), 4);
}
