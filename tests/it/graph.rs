//! Which file of src imports which: an import goes down the floors, never up, and never in a
//! circle (docs/architecture.md, The floors). A module and its children may import each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{assert_none, sources};

/// The floors from the top. What stands beside each other in a row may not import its neighbour.
const FLOORS: [&[&str]; 13] = [
    &["main"],
    &["cli"],
    &["mcp"],
    &["front"],
    &["families"],
    &["engine"],
    &["agent"],
    &["wire", "config"],
    &["session"],
    &["keeper", "client"],
    &["sys"],
    &["pure"],
    &["limits"],
];

/// A module by its path in its crate: `engine/turn`.
type Module = String;

type Graph = BTreeMap<Module, BTreeSet<Module>>;

/// The module that a file holds; the crate's root has an empty path.
fn module_of(file: &str) -> Module {
    let path = file.trim_start_matches("src/").trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if path == "lib" { String::new() } else { path.to_owned() }
}

/// The file of a module, as complaints name it.
fn shown(module: &str) -> String {
    if module.is_empty() { "src/lib.rs".to_owned() } else { format!("src/{module}") }
}

fn floor_of(module: &str) -> Option<usize> {
    // The folders of the loop are floors of their own.
    let within = module.strip_prefix("server/").unwrap_or(module);
    let first = within.split('/').next().unwrap_or(within);
    FLOORS.iter().position(|floor| floor.contains(&first))
}

/// The paths that one `use` names, its braces taken apart: `a::{b, c::{d, e}}`.
fn taken_apart(path: &str) -> Vec<String> {
    let Some(open) = path.find('{') else {
        return vec![path.split(" as ").next().unwrap_or(path).trim().to_owned()];
    };
    let (before, inner) = (&path[..open], &path[open + 1..path.rfind('}').unwrap_or(path.len())]);
    let (mut parts, mut depth, mut begin) = (Vec::new(), 0, 0);
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[begin..]);
    let parts = parts.into_iter().map(str::trim).filter(|part| !part.is_empty());
    parts.flat_map(|part| taken_apart(&format!("{before}{part}"))).collect()
}

/// All paths of this crate that code names, in `use` or where it stands.
fn paths_in(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':')) {
                continue;
            }
            let rest = &code[at..];
            let line = code[..at].rsplit(['\n', ';']).next().unwrap_or_default().trim_start();
            let visible = line.strip_prefix("pub").map(|line| line.trim_start_matches("(crate)"));
            let is_use = visible.unwrap_or(line).trim_start().starts_with("use ");
            let end = if is_use {
                rest.find(';')
            } else {
                rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | ':')))
            };
            let path: String = rest[..end.unwrap_or(rest.len())].split_whitespace().fold(
                String::new(),
                |all, word| match word {
                    "as" => all + " as ",
                    word => all + word,
                },
            );
            found.extend(taken_apart(&path));
        }
    }
    found
}

/// The module that a path leads to from `from`: the longest part of it that is one.
fn target(path: &str, from: &str, modules: &BTreeSet<Module>) -> Option<Module> {
    let mut base: Vec<&str> = from.split('/').filter(|part| !part.is_empty()).collect();
    let mut parts = path.split("::").peekable();
    match parts.next()? {
        "crate" => base.clear(),
        "super" => _ = base.pop(),
        _ => {}
    }
    while parts.next_if_eq(&"super").is_some() {
        base.pop();
    }
    base.extend(parts);
    let longest = (0..=base.len()).rev().map(|length| base[..length].join("/"));
    longest.into_iter().find(|module| modules.contains(module))
}

fn related(one: &str, other: &str) -> bool {
    let under = |child: &str, parent: &str| {
        parent.is_empty() || child.strip_prefix(parent).is_some_and(|rest| rest.starts_with('/'))
    };
    one == other || under(one, other) || under(other, one)
}

/// What each module of some files (name and code) imports, but for its parents and children.
fn graph_of(files: &[(String, String)]) -> Graph {
    let modules: BTreeSet<Module> = files.iter().map(|(name, _)| module_of(name)).collect();
    let imports = |(name, code): &(String, String)| {
        let from = module_of(name);
        let to = paths_in(code).into_iter().filter_map(|path| target(&path, &from, &modules));
        let to = to.filter(|to| !related(&from, to)).collect();
        (from, to)
    };
    files.iter().map(imports).collect()
}

fn upward(graph: &Graph) -> Vec<String> {
    let mut complaints = Vec::new();
    for (from, imports) in graph {
        for to in imports {
            let (Some(one), Some(other)) = (floor_of(from), floor_of(to)) else {
                complaints.push(format!("{} or {} is on no floor", shown(from), shown(to)));
                continue;
            };
            let beside = one == other && from.split('/').next() != to.split('/').next();
            if other < one || beside {
                complaints.push(format!("{} imports {}", shown(from), shown(to)));
            }
        }
    }
    complaints
}

fn circles(graph: &Graph) -> Vec<String> {
    let reach = |from: &Module| {
        let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
        while let Some(next) = left.pop() {
            for to in graph.get(next).into_iter().flatten() {
                if seen.insert(to) {
                    left.push(to);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        graph.keys().map(|module| (module, reach(module))).collect();
    let mut found = BTreeSet::new();
    for (module, to) in &reached {
        if to.contains(*module) {
            let mates = to.iter().filter(|other| reached[**other].contains(*module));
            found.insert(mates.map(|one| shown(one)).collect::<Vec<_>>().join(", "));
        }
    }
    found.into_iter().collect()
}

fn own_graph() -> Graph {
    let files = sources("src").into_iter().filter(|file| !file.name.contains("/echo/"));
    let files: Vec<(String, String)> =
        files.map(|file| (file.name, file.code.join("\n"))).collect();
    graph_of(&files)
}

/// rule: architecture.md, The floors: Floors and their directions are enforced, and no imports run
///   in a circle
#[test]
fn an_import_goes_down_the_floors_and_never_up() {
    assert_none("imports that go up (docs/architecture.md, The floors)", &upward(&own_graph()));
}

/// rule: architecture.md, The floors: Floors and their directions are enforced, and no imports run
///   in a circle
#[test]
fn no_imports_run_in_a_circle() {
    assert_none("files that import each other in a circle", &circles(&own_graph()));
}

/// The test's own eyes: what it must see, it sees.
///
/// rule: architecture.md, The floors: Floors and their directions are enforced, and no imports run
///   in a circle
#[test]
fn an_upward_import_and_a_circle_are_found_and_named() {
    let file = |name: &str, code: &str| (name.to_owned(), code.to_owned());
    let files = [
        file("src/lib.rs", ""),
        file("src/pure/a.rs", "use crate::limits::X;\nfn f() { crate::sys::io::write() }"),
        file("src/sys/io.rs", "use super::{\n    fd::{Fd, self as other},\n};"),
        file("src/sys/fd.rs", "pub use super::pipe;"),
        file("src/sys/pipe.rs", "use crate::sys::io;\nmod inner;"),
        file("src/sys/pipe/inner.rs", "use super::Pipe;"),
        file("src/sys/mod.rs", "mod io;"),
        file("src/limits.rs", ""),
        file("src/wire/mod.rs", "use crate::config::Config;"),
        file("src/config.rs", ""),
    ];
    let graph = graph_of(&files);
    let up = ["src/pure/a imports src/sys/io", "src/wire imports src/config"];
    assert_eq!(upward(&graph), up);
    assert_eq!(circles(&graph), ["src/sys/fd, src/sys/io, src/sys/pipe"]);
}
