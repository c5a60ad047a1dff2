//! The source as tests that hold its rules read it: files with their comments and their tests taken
//! out.
#![allow(dead_code)] // Each of these tests uses a part.

use std::path::{Path, PathBuf};

/// One source file with its comments and its tests taken out of `code`.
pub struct Source {
    /// From the crate's root, with slashes.
    pub name: String,
    /// All of it.
    pub text: String,
    /// The lines that are compiled into the program; others are empty.
    pub code: Vec<String>,
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a source directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
}

pub fn sources(dir: &str) -> Vec<Source> {
    let mut files = Vec::new();
    rust_files(&root().join(dir), &mut files);
    assert!(!files.is_empty(), "nothing in {dir}");
    files
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("source is UTF-8");
            let name = path.strip_prefix(root()).expect("under the root").to_string_lossy();
            let name = name.into_owned();
            let code = if is_test_file(&name) { Vec::new() } else { code_of(&text) };
            Source { name, text, code }
        })
        .collect()
}

pub fn is_test_file(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    file == "tests.rs" || file.ends_with("_tests.rs") || file.starts_with("tests_")
}

pub fn indent_of(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// The lines without comments and without `#[cfg(test)]` items. Relies on rustfmt's layout: an
/// item ends with a semicolon, or with a brace at its own indentation.
pub fn code_of(text: &str) -> Vec<String> {
    let mut code = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" {
            code.push(String::new());
            let end = format!("{}}}", indent_of(line));
            let mut in_item = false;
            for line in lines.by_ref() {
                code.push(String::new());
                let attribute = line.trim_start().starts_with("#[");
                if line == end || (!in_item && !attribute && line.ends_with(';')) {
                    break;
                }
                in_item |= !attribute;
            }
            continue;
        }
        let comment = line.trim_start().starts_with("//");
        let plain = line.split_once(" // ").map_or(line, |(code, _)| code);
        code.push(if comment { String::new() } else { plain.to_owned() });
    }
    code
}

/// All complaints at once: the first one alone would mean a run for each.
pub fn assert_none(rule: &str, complaints: &[String]) {
    assert!(complaints.is_empty(), "{rule}:\n  {}", complaints.join("\n  "));
}
