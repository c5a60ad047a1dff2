//! The source keeps its own rules: the place of `unsafe` and of system calls, sizes of files,
//! functions and lines, reasons for dependencies (architecture.md). Which file may import which is
//! tests/it/graph.rs.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;

use crate::source::{Source, assert_none, indent_of, root, sources};

const MAX_COLUMNS: usize = 100;
const MAX_FUNCTION_LINES: usize = 75;
const MAX_CRATES: usize = 40;

const LONG_FUNCTIONS: &[(&str, &str)] = &[];

/// The lines of code of a directory, with the file of each and the place that a complaint names.
fn lines_of(dir: &str) -> impl Iterator<Item = (String, String, String)> {
    sources(dir).into_iter().flat_map(|source| {
        let name = source.name;
        let place = move |(at, line)| (name.clone(), format!("{name}:{}", at + 1), line);
        source.code.into_iter().enumerate().map(place)
    })
}

/// Where `word` stands in a line as a word of its own.
fn has_word(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

// ---- What is where ----------------------------------------------------------------------

/// rule: architecture.md, The floors: `pure/` has no I/O, no clock, no fd
#[test]
fn pure_rooms_have_no_way_to_the_world() {
    let of_std = ["fs", "io", "os", "process", "time", "env", "net", "thread"];
    let mut forbidden: Vec<String> = of_std.iter().map(|name| format!("std::{name}")).collect();
    forbidden.extend(["libc", "nix", "mio"].map(str::to_owned));
    let complaint = |(_, place, line): (String, String, String)| {
        let word = forbidden.iter().find(|word| has_word(&line, word))?;
        Some(format!("{place} {word}"))
    };
    let complaints: Vec<String> = lines_of("src/pure").filter_map(complaint).collect();
    assert_none("src/pure has no I/O, no clock, no descriptors", &complaints);
}

/// std's Command leaks execd's blocked signal mask into the child (architecture.md, Starting a
/// child). mio is the daemon's loop; nix gives the names of errors, which the log's books tell.
/// rule: architecture.md, The floors: `unsafe` and system calls are in `sys/` only
/// rule: architecture.md, The floors: `std::process::Command` is banned in src
#[test]
fn crates_are_named_only_where_they_may_be_and_no_child_is_started_through_std() {
    const MAY: [(&str, &[&str]); 5] = [
        ("libc::", &["src/sys/"]),
        ("nix::", &["src/sys/", "src/server/engine/logs.rs"]),
        ("mio::", &["src/server/engine/"]),
        ("process::Command", &[]),
        ("Command::new", &[]),
    ];
    let mut complaints = Vec::new();
    for (file, place, line) in lines_of("src") {
        for (path, places) in MAY {
            let name = path.trim_end_matches("::");
            let used = line.contains(path) && has_word(&line, name);
            if used && !places.iter().any(|place| file.starts_with(place)) {
                complaints.push(format!("{place} {name}"));
            }
        }
    }
    assert_none("it is used outside of its room", &complaints);
}

/// rule: architecture.md, The floors: `unsafe` and system calls are in `sys/` only
#[test]
fn unsafe_is_in_sys_only_and_each_place_says_why_it_is_sound() {
    let mut complaints = Vec::new();
    for source in sources("src") {
        let lines: Vec<&str> = source.text.lines().collect();
        for (number, line) in source.code.iter().enumerate() {
            if !has_word(line, "unsafe") || line.contains("unsafe_code") {
                continue;
            }
            let place = format!("{}:{}", source.name, number + 1);
            if !source.name.starts_with("src/sys/") {
                complaints.push(format!("{place} outside of src/sys"));
            }
            let above = &lines[number.saturating_sub(12)..=number];
            if !above.iter().any(|line| line.contains("SAFETY") || line.contains("# Safety")) {
                complaints.push(format!("{place} has no SAFETY note"));
            }
        }
    }
    assert_none("unsafe", &complaints);
}

// ---- Sizes ------------------------------------------------------------------------------

/// rule: architecture.md, The floors: Files and functions stay short
#[test]
fn no_line_is_longer_than_a_hundred_columns() {
    let mut complaints = Vec::new();
    for source in ["src", "tests"].into_iter().flat_map(sources) {
        for (number, line) in source.text.lines().enumerate() {
            // A line of the protocol or of help that is quoted as it is can't be wrapped.
            if line.chars().count() > MAX_COLUMNS && !line.contains('"') {
                complaints.push(format!("{}:{}", source.name, number + 1));
            }
        }
    }
    assert_none("lines over 100 columns", &complaints);
}

/// The functions of a file with their lines. Relies on rustfmt's layout, as [`code_of`].
fn functions(source: &Source) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (start, line) in source.code.iter().enumerate() {
        let Some((before, after)) = line.split_once("fn ") else { continue };
        let keywords = ["pub", "const", "unsafe", "extern", "\"C\"", "pub(super)", "pub(crate)"];
        if !before.split_whitespace().all(|word| keywords.contains(&word)) {
            continue;
        }
        let name: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let end = format!("{}}}", indent_of(line));
        let body = &source.code[start..];
        let one_line = line.ends_with('}') || line.ends_with(';');
        // A signature over several lines that has no body.
        let bare = format!("{})", indent_of(line));
        let ends = |line: &String| *line == end || (line.starts_with(&bare) && line.ends_with(';'));
        let lines =
            if one_line { 1 } else { body.iter().position(ends).map_or(body.len(), |at| at + 1) };
        found.push((name, lines));
    }
    found
}

/// rule: architecture.md, The floors: Files and functions stay short
#[test]
fn no_function_is_longer_than_a_screen() {
    let mut complaints = Vec::new();
    let mut longest = Vec::new();
    for source in sources("src") {
        for (name, lines) in functions(&source) {
            let place = format!("{} {name}", source.name);
            let excused = LONG_FUNCTIONS.iter().any(|(name, _)| *name == place);
            if lines > MAX_FUNCTION_LINES && !excused {
                complaints.push(format!("{place}: {lines} lines"));
            }
            if lines > MAX_FUNCTION_LINES {
                longest.push(place);
            }
        }
    }
    for (name, _) in LONG_FUNCTIONS {
        if !longest.iter().any(|place| place == name) {
            complaints.push(format!("{name} needs no exception any more"));
        }
    }
    assert_none("functions over 75 lines", &complaints);
}

// ---- Words ------------------------------------------------------------------------------

#[test]
fn every_file_begins_with_what_it_is() {
    let mut complaints = Vec::new();
    for source in ["src", "tests"].into_iter().flat_map(sources) {
        if !source.text.starts_with("//! ") {
            complaints.push(source.name);
        }
    }
    assert_none("files without a doc comment at their beginning", &complaints);
}

#[test]
fn nothing_is_left_to_do() {
    // Written in two halves, so that this file is none of those that it complains about.
    let words = ["TO", "FIX", "XX", "HA"].into_iter().zip(["DO", "ME", "X", "CK"]);
    let mut words: Vec<String> = words.map(|(one, other)| format!("{one}{other}")).collect();
    words.extend(["todo!", "unimplemented!", "dbg!"].map(str::to_owned));
    let mut complaints = Vec::new();
    for source in sources("src") {
        for (number, line) in source.text.lines().enumerate() {
            if let Some(word) = words.iter().find(|word| has_word(line, word)) {
                complaints.push(format!("{}:{} {word}", source.name, number + 1));
            }
        }
    }
    assert_none("unfinished", &complaints);
}

/// rule: architecture.md, Bounds: Every bound is a named constant
#[test]
fn every_bound_of_limits_has_its_meaning_and_is_used() {
    let of_limits = |source: &&Source| source.name.starts_with("src/limits");
    let all = sources("src");
    let limits: Vec<&str> = all.iter().filter(of_limits).map(|one| one.text.as_str()).collect();
    let limits = limits.concat();
    let lines: Vec<&str> = limits.lines().collect();
    let code: String = sources("src").iter().fold(String::new(), |mut all, source| {
        let _ = write!(all, "{}", source.code.join("\n"));
        all
    });
    let mut complaints = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let Some(rest) = line.strip_prefix("pub const ") else { continue };
        let name = rest.split(':').next().unwrap_or(rest);
        if !lines[number - 1].starts_with("/// ") {
            complaints.push(format!("{name} does not say what it bounds"));
        }
        let uses = code.lines().filter(|line| has_word(line, name)).count();
        if uses < 2 {
            complaints.push(format!("{name} bounds nothing"));
        }
    }
    assert_none("src/limits.rs", &complaints);
}

// ---- Dependencies -----------------------------------------------------------------------

/// rule: architecture.md, The floors: Dependencies have a written reason; `cargo tree` stays within
///   40 crates
#[test]
fn every_dependency_has_its_reason_above_it() {
    let mut complaints = Vec::new();
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml");
    let mut in_dependencies = false;
    let mut above = "";
    for line in manifest.lines() {
        if line.starts_with('[') {
            in_dependencies = line == "[dependencies]";
        } else if in_dependencies && line.contains('=') && !above.starts_with('#') {
            complaints.push(line.to_owned());
        }
        above = line;
    }
    assert_none("dependencies without a reason", &complaints);
}

/// rule: architecture.md, The floors: Dependencies have a written reason; `cargo tree` stays within
///   40 crates
#[test]
fn the_tree_of_dependencies_stays_small_and_locked() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--edges", "normal", "--prefix", "none", "--offline", "--locked"])
        .args(["--format", "{p}"])
        .current_dir(root())
        .output()
        .expect("cargo starts");
    let errors = String::from_utf8_lossy(&tree.stderr);
    assert!(tree.status.success(), "cargo tree: {errors}");
    let text = String::from_utf8_lossy(&tree.stdout);
    let names = text.lines().filter_map(|line| line.split(" (").next());
    let crates: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
    assert!(crates.len() <= MAX_CRATES, "{} crates: {crates:#?}", crates.len());
    assert!(crates.iter().any(|name| name.starts_with("execd ")), "{text}");
}

/// Comments once cited pages that were never in the repository. A `rule:` names a page of the
/// specification, which is elsewhere.
#[test]
fn each_page_that_a_comment_cites_is_in_the_repository() {
    let places = ["", "docs", "tests", "tests/fixtures/pi-json", "pi-extension"];
    let is_there = |page: &str| places.iter().any(|place| root().join(place).join(page).is_file());
    let in_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
    let mut missing = Vec::new();
    for dir in ["src", "tests", "benches"] {
        for source in sources(dir) {
            let mut in_rule = false;
            for (number, line) in source.text.lines().enumerate() {
                let Some((_, comment)) = line.split_once("//") else { continue };
                let said = comment.trim_start_matches('/');
                in_rule = said.starts_with(" rule: ") || (in_rule && said.starts_with("   "));
                if in_rule {
                    continue;
                }
                let words = comment.split(|c| !in_name(c)).map(|word| word.trim_matches('.'));
                for page in words.filter(|word| word.len() > 3 && word.ends_with(".md")) {
                    if !is_there(page) {
                        missing.push(format!("{}:{}: {page}", source.name, number + 1));
                    }
                }
            }
        }
    }
    assert_none("comments cite pages that are not there", &missing);
}
