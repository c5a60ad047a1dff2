//! tests/SPEC.md, the rules of the specification and the tests that show each. It is made from the
//! lines `/// rule: DOCUMENT, SECTION: TEXT` above the tests (`//` in the extension's), and this
//! holds it against them: `make spec`, which is this test with `EXECD_BLESS=1`, writes it anew.
//! Lines that begin with three blanks go on with the one above.
#![allow(clippy::disallowed_methods, clippy::print_stderr)] // Tests may use all of std.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The documents of docs/ that have rules, in the order of the table.
const DOCUMENTS: [&str; 14] = [
    "protocol.md",
    "unified-exec.md",
    "bash-stream.md",
    "bash.md",
    "waits.md",
    "logs.md",
    "attach.md",
    "agent.md",
    "pi.md",
    "machines.md",
    "mcp.md",
    "architecture.md",
    "cli.md",
    "scale.md",
];

/// Rules that no test shows.
const WITHOUT_A_TEST: [&str; 2] = [
    "architecture.md, Bounds: A bug that panics ends sessions cleanly and says where",
    "agent.md, The stream: At least 1 GB/s on skipped lines of a stream: a row of `make bench`, \
     not a test",
];

/// Rules that the table has at least.
const FEWEST_RULES: usize = 700;

const HEAD: &str = "# The specification, rule by rule

Each row is one rule of the specification and names the tests that show it: `file::test` is a test
in `tests/file.rs`, `src/path::test` one in `src/path.rs`, `pi-extension/path::test` one in
`pi-extension/path.test.ts`. `—` marks a rule that no test shows. `make spec` writes this file from
the lines `rule:` above the tests; tests/spec_table.rs fails when it is not up to date.
";

/// A test, and the rules that it shows.
#[derive(Debug)]
struct Test {
    name: String,
    state: State,
    rules: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Runs,
    Ignored,
    /// Something that has rules above it and is no test.
    NoTest,
}

/// The rules in the comments since the last item.
#[derive(Debug, Default)]
struct Rules(Vec<String>);

impl Rules {
    /// Takes a line; false when it belongs to no rule.
    fn take(&mut self, line: &str) -> bool {
        let Some(comment) = line.strip_prefix("//") else { return false };
        let comment = comment.strip_prefix('/').unwrap_or(comment);
        match (comment.strip_prefix(" rule: "), comment.strip_prefix("   "), self.0.last_mut()) {
            (Some(rule), ..) => self.0.push(rule.to_owned()),
            (None, Some(more), Some(last)) => {
                last.push(' ');
                last.push_str(more);
            }
            _ => return false,
        }
        true
    }

    fn test(&mut self, name: &str, state: State) -> Test {
        Test { name: name.to_owned(), state, rules: std::mem::take(&mut self.0) }
    }
}

/// The tests of a source file: functions with `#[test]` above them.
fn rust_tests(source: &str) -> Vec<Test> {
    let (mut found, mut rules) = (Vec::new(), Rules::default());
    // The state of the item that the attributes read so far belong to.
    let mut above: Option<State> = None;
    for line in source.lines().map(str::trim) {
        if line == "#[test]" {
            above = Some(State::Runs);
        } else if line.starts_with("#[ignore") && above.is_some() {
            above = Some(State::Ignored);
        } else if let (Some(state), Some(rest)) = (above, line.strip_prefix("fn ")) {
            found.push(rules.test(rest.split('(').next().unwrap_or(rest), state));
            above = None;
        } else if !rules.take(line) && above.is_none() && !rules.0.is_empty() {
            let goes_on = line.starts_with("//") || line.starts_with("#[");
            if !goes_on {
                found.push(rules.test(line, State::NoTest));
            }
        }
    }
    found
}

/// The tests of one of the extension's files: the names given to `it(` or `test(`, on its own line
/// or the next; of a template its text as it is written, `${…}` and all.
fn script_tests(source: &str) -> Vec<Test> {
    let (mut found, mut rules) = (Vec::new(), Rules::default());
    let mut opened: Option<State> = None;
    for line in source.lines().map(str::trim) {
        let (state, rest) = match (opened.take(), line.split_once('(')) {
            (Some(state), _) => (state, line),
            (None, Some(("it" | "test", rest))) => (State::Runs, rest),
            (None, Some(("it.skip" | "test.skip" | "it.todo", rest))) => (State::Ignored, rest),
            _ => {
                if !rules.take(line) && !line.starts_with("//") && !rules.0.is_empty() {
                    found.push(rules.test(line, State::NoTest));
                }
                continue;
            }
        };
        if rest.is_empty() {
            opened = Some(state);
            continue;
        }
        let named = |quote: char| rest.strip_prefix(quote)?.split_once(quote);
        if let Some((name, _)) = named('"').or_else(|| named('`')) {
            found.push(rules.test(name, state));
        }
    }
    found
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files under a directory whose names end so, sorted.
fn files_under(directory: &Path, end: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let entries = std::fs::read_dir(directory).expect("a directory of the repository").flatten();
    for path in entries.map(|entry| entry.path()) {
        if path.is_dir() {
            files.append(&mut files_under(&path, end));
        } else if path.to_str().is_some_and(|path| path.ends_with(end)) {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// All tests of the repository by the names that the table gives them.
fn all_tests() -> Vec<Test> {
    let mut all = Vec::new();
    let places = [("tests", ".rs"), ("src", ".rs"), ("pi-extension/tests", ".test.ts")];
    for (directory, end) in places {
        for path in files_under(&root().join(directory), end) {
            let source = std::fs::read_to_string(&path).expect("a source file");
            let file = path.strip_prefix(root()).expect("below the root").to_str().expect("UTF-8");
            let file = file.trim_end_matches(end).trim_start_matches("tests/");
            let tests = if end == ".rs" { rust_tests(&source) } else { script_tests(&source) };
            all.extend(tests.into_iter().map(|test| {
                let name = format!("{file}::{}", test.name);
                Test { name, ..test }
            }));
        }
    }
    all
}

/// The rules of a section with the tests of each.
type Section<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Document, section and text of a rule.
fn parts(rule: &str) -> Option<(usize, &str, &str)> {
    let (document, rest) = rule.split_once(", ")?;
    let document = DOCUMENTS.iter().position(|known| *known == document)?;
    let (section, text) = rest.split_once(": ")?;
    (!text.trim().is_empty()).then_some((document, section, text))
}

/// The table's text.
fn table(tests: &[Test]) -> Result<String, String> {
    let mut sections: BTreeMap<(usize, &str), Section<'_>> = BTreeMap::new();
    let mut complaints = Vec::new();
    for rule in WITHOUT_A_TEST {
        let (document, section, text) = parts(rule).expect("a rule of this file");
        sections.entry((document, section)).or_default().entry(text).or_default();
    }
    for test in tests {
        for rule in &test.rules {
            match (test.state, parts(rule)) {
                (State::Runs, Some((document, section, text))) => {
                    let rules = sections.entry((document, section)).or_default();
                    rules.entry(text).or_default().insert(&test.name);
                }
                (State::Runs, None) => complaints.push(format!("{}: {rule:?}", test.name)),
                (state, _) => complaints.push(format!("{}: {state:?}: {rule:?}", test.name)),
            }
        }
    }
    if !complaints.is_empty() {
        return Err(complaints.join("\n"));
    }
    let (mut text, mut last) = (HEAD.to_owned(), usize::MAX);
    for ((document, section), rules) in &sections {
        if *document != last {
            let _ = write!(text, "\n## {}\n", DOCUMENTS[*document]);
            last = *document;
        }
        let _ = write!(text, "\n### {section}\n\n| rule | test |\n|---|---|\n");
        for (rule, tests) in rules {
            let names: Vec<String> = tests.iter().map(|name| format!("`{name}`")).collect();
            let names = if names.is_empty() { "—".to_owned() } else { names.join(", ") };
            let _ = writeln!(text, "| {rule} | {names} |");
        }
    }
    Ok(text)
}

#[test]
fn the_table_is_what_the_rules_above_the_tests_say() {
    let made = table(&all_tests()).unwrap_or_else(|complaints| panic!("{complaints}"));
    let path = root().join("tests/SPEC.md");
    if std::env::var_os("EXECD_BLESS").is_some() {
        std::fs::write(&path, made).expect("tests/SPEC.md can be written");
        return;
    }
    let written = std::fs::read_to_string(&path).expect("tests/SPEC.md");
    let differs = made.lines().zip(written.lines()).find(|(made, written)| made != written);
    assert_eq!(differs, None, "tests/SPEC.md is not what `make spec` writes");
    assert_eq!(made.len(), written.len(), "tests/SPEC.md is not what `make spec` writes");
}

#[test]
fn the_table_has_the_whole_specification() {
    let tests = all_tests();
    let rules: BTreeSet<&String> = tests.iter().flat_map(|test| &test.rules).collect();
    assert!(rules.len() >= FEWEST_RULES, "only {} rules", rules.len());
    for document in DOCUMENTS {
        assert!(root().join("docs").join(document).exists(), "there is no docs/{document}");
        let of_it = |rule: &&&String| rule.starts_with(document);
        assert!(rules.iter().any(|rule| of_it(&rule)), "no rule of {document}");
    }
}

/// The other documents' sections here are chapters of the specification, not headings.
#[test]
fn the_rules_of_these_documents_name_sections_that_they_have() {
    let tests = all_tests();
    for name in ["architecture.md", "waits.md", "logs.md"] {
        let path = root().join("docs").join(name);
        let text = std::fs::read_to_string(path).expect("it is there");
        let headings: BTreeSet<&str> =
            text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        for rule in tests.iter().flat_map(|test| &test.rules) {
            let Some(rest) = rule.strip_prefix(&format!("{name}, ")) else { continue };
            let section = rest.split(": ").next().unwrap_or(rest);
            assert!(headings.contains(section), "docs/{name} has no section {section}");
        }
    }
}

#[test]
fn tests_are_found_with_their_state_and_rules() {
    let source = [
        "/// Says.",
        "/// rule: pi.md, S: one",
        "///   and more",
        "/// rule: pi.md, S: two",
        "#[test]",
        "fn one() {}",
        "fn two() {}",
        "#[test]",
        "#[ignore = \"a \\\n  b\"]",
        "fn three() {}",
        "/// rule: pi.md, S: lost",
        "struct Four;",
    ];
    let found = rust_tests(&source.join("\n"));
    let told = |test: &Test| (test.name.clone(), test.state, test.rules.join("|"));
    let told: Vec<_> = found.iter().map(told).collect();
    let one = ("one".to_owned(), State::Runs, "pi.md, S: one and more|pi.md, S: two".to_owned());
    let three = ("three".to_owned(), State::Ignored, String::new());
    let four = ("struct Four;".to_owned(), State::NoTest, "pi.md, S: lost".to_owned());
    assert_eq!(told, [one, three, four]);

    let script = [
        "// rule: pi.md, S: one",
        "it(\"one\", () => {",
        "  test(",
        "    \"two: it's\",",
        "  it.skip(\"three\", submit(\"four\"",
        " test(`five ${n}: \"x\"`, async () => {",
    ];
    let found = script_tests(&script.join("\n"));
    let names: Vec<(&str, State)> =
        found.iter().map(|test| (test.name.as_str(), test.state)).collect();
    let runs = |name| (name, State::Runs);
    let skipped = ("three", State::Ignored);
    assert_eq!(names, [runs("one"), runs("two: it's"), skipped, runs("five ${n}: \"x\"")]);
    assert_eq!(found[0].rules, ["pi.md, S: one"]);
    assert_eq!(parts("pi.md, A, b: c: d"), Some((8, "A, b", "c: d")));
    assert_eq!(parts("other, A: b"), None);
}
