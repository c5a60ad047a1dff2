//! The names of params: which param a name means, and which one somebody may have meant whose name
//! means none (protocol.md, Names of params).

use super::{Param, quoted};
use crate::pure::text::near::{nearest, snake};
use crate::pure::text::visible::one_line;
use crate::wire::RpcError;

/// Words that other tools have for one thing: of a method that knows one of a line, that one is
/// named to whoever gives another.
const WORDS: &[&[&str]] = &[
    &["cmd", "command", "script"],
    &["chars", "data", "input", "text", "stdin"],
    &["yield_time_ms", "yield_ms", "wait_ms", "timeout_ms", "timeout", "yield_time"],
    &["workdir", "cwd", "directory", "working_directory", "dir"],
    &["session_id", "session", "id", "pid", "process_id", "job_id"],
];

/// The param that is called so: by its own name, by that name in the other case (camelCase and
/// snake_case are one), or else by another name that it has.
pub fn known<'t>(table: &'t [Param], name: &str) -> Option<&'t Param> {
    if let Some(exact) = table.iter().find(|param| param.name == name) {
        return Some(exact);
    }
    if name.starts_with(|first: char| first.is_ascii_uppercase()) {
        return None;
    }
    let given = snake(name);
    let own = table.iter().find(|param| snake(param.name) == given);
    let other = |param: &&Param| param.aliases.iter().any(|alias| snake(alias) == given);
    own.or_else(|| table.iter().find(other))
}

/// The param that somebody may have meant by a name that means none.
fn meant<'t>(table: &'t [Param], name: &str) -> Option<&'t Param> {
    let given = snake(name);
    let words = WORDS.iter().find(|words| words.contains(&given.as_str()));
    let same = |param: &&Param| words.is_some_and(|words| words.contains(&&*snake(param.name)));
    if let Some(same) = table.iter().find(same) {
        return Some(same);
    }
    let all = table
        .iter()
        .flat_map(|param| std::iter::once(param.name).chain(param.aliases.iter().copied()));
    known(table, nearest(name, all)?)
}

/// The error of a name that means none.
pub fn unknown(name: &str, table: &[Param], inside: &str) -> RpcError {
    let path = format!("{inside}{}", quoted(name));
    let what = match meant(table, name) {
        Some(param) => format!("; did you mean {inside}{}?", param.name),
        None if table.is_empty() => "; it takes none".to_owned(),
        None => {
            let all: Vec<&str> = table.iter().map(|param| param.name).collect();
            let whose = inside.strip_suffix('.').unwrap_or("it");
            format!("; {whose} takes {}", all.join(", "))
        }
    };
    RpcError::unknown_param(&path, &one_line(&path), &what)
}

/// The error of a param that is given a second time.
pub fn twice(path: &str, first: &str, second: &str, inside: &str) -> RpcError {
    if first == second {
        return RpcError::invalid_param(path, format!("{path} is given twice"));
    }
    let message = format!("{inside}{first} and {inside}{second} are one param: give one of them");
    RpcError::invalid_param(&format!("{inside}{second}"), message)
}
