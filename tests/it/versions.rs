//! A release: one version, wherever one stands, a changelog of which people and programs can tell
//! what it has brought, and a crate that holds what builds it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The sections of <https://keepachangelog.com/en/1.1.0/>, in the order in which they stand here.
const SECTIONS: [&str; 6] = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn json(name: &str) -> Value {
    serde_json::from_str(&read(name)).expect("JSON")
}

fn between<'a>(text: &'a str, before: &str, after: char) -> Vec<&'a str> {
    text.split(before).skip(1).map(|rest| rest.split(after).next().unwrap_or("")).collect()
}

/// The versions of the package, where manifests and lock files name them.
#[test]
fn every_manifest_and_lock_file_has_the_same_version() {
    let manifest = read("Cargo.toml");
    assert_eq!(between(&manifest, "\nversion = \"", '"')[0], VERSION);
    assert!(manifest.contains("\npublish = false\n"), "a person decides on publishing");
    let lock = read("Cargo.lock");
    let locked = between(&lock, "name = \"execd\"\nversion = \"", '"');
    assert_eq!(locked, [VERSION], "Cargo.lock");
    let own = json("pi-extension/package.json");
    let locked = json("pi-extension/package-lock.json");
    assert_eq!(own["version"], VERSION, "package.json");
    assert_eq!(locked["version"], VERSION, "package-lock.json");
    assert_eq!(locked["packages"][""]["version"], VERSION, "package-lock.json");
}

#[test]
fn documents_name_packages_of_this_version() {
    let mut seen = 0;
    let names =
        ["docs/install.md", "docs/pi.md", "docs/compatibility.md", "pi-extension/README.md"];
    for name in names {
        let text = read(name);
        for before in ["npm:pi-execd@", "pi-execd-", "execd-", "execd_"] {
            for rest in text.split(before).skip(1) {
                let kept = |c: char| c.is_ascii_digit() || c == '.';
                let found = rest.split(|c| !kept(c)).next().unwrap_or("").trim_end_matches('.');
                if found.split('.').count() == 3 {
                    assert_eq!(found, VERSION, "{name}: {before}{found}");
                    seen += 1;
                }
            }
        }
    }
    assert!(seen >= 4, "{seen} of them");
}

/// The headings of releases: `## [1.2.3] - 2027-01-31`, newest first; above them what is not
/// released yet, which says of what version it will be.
#[test]
fn the_changelog_has_this_version_and_the_sections_that_everybody_knows() {
    let text = read("CHANGELOG.md");
    let mut parts = text.split("\n## ");
    assert!(parts.next().is_some_and(|head| head.starts_with("# Changelog\n")));
    let mut newest = None;
    for (number, part) in parts.enumerate() {
        let (heading, body) = part.split_once('\n').expect("something below the heading");
        let (intro, sections) = body.split_once("\n### ").expect("sections");
        let named = match heading {
            "[Unreleased]" => {
                assert_eq!(number, 0, "what is not released stands first");
                between(intro, "What will be ", '\n').first().map(|it| it.trim_end_matches('.'))
            }
            _ => {
                let (version, date) = heading.split_once("] - ").expect("[VERSION] - DATE");
                let digits = |c: char| if c.is_ascii_digit() { '0' } else { c };
                assert_eq!(date.chars().map(digits).collect::<String>(), "0000-00-00", "{heading}");
                version.strip_prefix('[')
            }
        };
        newest = newest.or(named);
        check_sections(heading, sections);
    }
    assert_eq!(newest, Some(VERSION));
}

#[test]
fn the_crate_holds_what_builds_it_and_nothing_of_the_tests() {
    let done = Command::new(env!("CARGO"))
        .args(["package", "--list", "--allow-dirty", "--offline", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let list = String::from_utf8_lossy(&done.stdout).into_owned();
    for needed in ["src/main.rs", "src/lib.rs", "LICENSE", "README.md"] {
        assert!(list.lines().any(|file| file == needed), "there is no {needed}");
    }
    for strange in ["tests/", "benches/", "pi-extension/", "fixtures"] {
        assert!(!list.contains(strange), "{strange} in {list}");
    }
}

/// Each section once, in order, with entries and nothing else.
fn check_sections(heading: &str, text: &str) {
    let mut last = None;
    for section in text.split("\n### ") {
        let (name, entries) = section.split_once("\n\n").expect("a blank line below a heading");
        let place = SECTIONS.iter().position(|known| *known == name);
        assert!(place.is_some(), "{heading}: there is no section {name}");
        assert!(place > last, "{heading}: {name} stands once, in the order {SECTIONS:?}");
        last = place;
        assert!(entries.starts_with("- "), "{heading}: {name} has entries");
        for line in entries.trim_end().lines() {
            let is_entry = line.starts_with("- ") || line.starts_with("  ");
            assert!(is_entry, "{heading}: {name}: no entry: {line:?}");
        }
    }
}
