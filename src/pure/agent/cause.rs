//! What pi and node write when something fails, made readable: one paragraph without escape
//! sequences and source code, and of a provider's JSON the message alone (agent.md, error_kind).

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::limits::{AGENT_CAUSE_BYTES, AGENT_ERROR_BYTES, AGENT_STDERR_BYTES};
use crate::pure::json::fields::{Fields, each_item};
use crate::pure::json::text::string;
use crate::pure::text::clean::window_text;
use crate::pure::text::utf8::{ceil_boundary, floor_boundary};
use crate::pure::text::visible::is_hidden;

/// A longer line of stderr may be source code.
const AGENT_SOURCE_BYTES: usize = 200;

/// How deep such a message may be inside of others: JSON in a text in JSON.
const AGENT_BODY_LEVELS: usize = 6;

/// Objects in such a text that are read for their message.
const AGENT_BODIES: usize = 8;

/// One paragraph of what pi says of a failure: the first AGENT_CAUSE_BYTES of it.
pub fn paragraph(text: &str) -> String {
    let head = &text[..floor_boundary(text, AGENT_ERROR_BYTES)];
    let text = without_bodies(&window_text(head.as_bytes(), false), AGENT_BODY_LEVELS);
    let (words, warnings) = lines_for_people(&text);
    joined(words.into_iter().chain(warnings))
}

/// `cause`, and behind it what the end of pi's stderr says besides.
pub fn with_stderr(cause: &str, stderr: &str) -> String {
    let besides = end_of_stderr(stderr);
    if besides.is_empty() || cause.contains(besides.as_str()) {
        cause.to_owned()
    } else if besides.contains(cause) {
        // The same words with more around them.
        besides
    } else {
        format!("{}: {besides}", cause.trim_end_matches(['.', ':', ' ']))
    }
}

/// One paragraph of the last that a stderr says; what is no warning goes first, and stays longest.
fn end_of_stderr(stderr: &str) -> String {
    let shown = window_text(last_bytes(stderr, AGENT_STDERR_BYTES).as_bytes(), false);
    let (mut words, mut warnings) = lines_for_people(&without_bodies(&shown, AGENT_BODY_LEVELS));
    let bytes = |lines: &[String]| lines.iter().map(|line| line.len() + 2).sum::<usize>();
    while bytes(&words) + bytes(&warnings) > AGENT_CAUSE_BYTES && !warnings.is_empty() {
        warnings.remove(0);
    }
    while bytes(&words) > AGENT_CAUSE_BYTES && words.len() > 1 {
        words.remove(0);
    }
    joined(words.into_iter().chain(warnings))
}

/// The last AGENT_STDERR_BYTES of a stderr, line by line, without escape sequences, control
/// characters, source code and the frames inside of node.
pub fn cleaned_stderr(stderr: &str) -> String {
    let shown = window_text(last_bytes(stderr, AGENT_ERROR_BYTES).as_bytes(), false);
    let mut text = String::new();
    for (kind, line) in kinds_of_lines(&shown) {
        if !matches!(kind, Line::Source | Line::Inside) {
            text.extend(line.trim_end().chars().filter(|c| *c == '\t' || !is_hidden(*c)));
            text.push('\n');
        }
    }
    last_bytes(text.trim(), AGENT_STDERR_BYTES).to_owned()
}

/// The lines of a stderr that say something: no source code, no frames, no warnings. pi's warnings
/// are about what it does without.
pub(super) fn complaints(stderr: &str) -> Vec<String> {
    let shown = window_text(last_bytes(stderr, AGENT_ERROR_BYTES).as_bytes(), false);
    let lines = kinds_of_lines(&shown);
    let words = lines.into_iter().filter(|(kind, _)| *kind == Line::Words);
    words.map(|(_, line)| line.trim().to_owned()).collect()
}

/// Whether node itself ended the process: an exception that nobody caught, or no memory was left.
pub(super) fn is_crash(stderr: &str) -> bool {
    let end = last_bytes(stderr, AGENT_ERROR_BYTES);
    let by_exception = end.lines().any(|line| line.starts_with("Node.js v"));
    by_exception || end.contains("JavaScript heap out of memory")
}

fn last_bytes(text: &str, most_bytes: usize) -> &str {
    &text[ceil_boundary(text, text.len().saturating_sub(most_bytes))..]
}

// ---- Lines ------------------------------------------------------------------------------

/// What a line of a stderr is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Line {
    /// Words for people.
    Words,
    /// A warning: it is told behind what ended the run.
    Warning,
    /// Where it happened: a frame of the stack, the version of node, a number of the heap.
    Place,
    /// The same inside of node.
    Inside,
    /// Source code, and the mark below it.
    Source,
}

fn kinds_of_lines(text: &str) -> Vec<(Line, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let kind = |(number, line): (usize, &&str)| {
        // node shows the line of source that failed, and below it where.
        let marked = lines.get(number + 1).is_some_and(|next| is_mark(next));
        if marked || is_mark(line) || is_source(line) { Line::Source } else { kind_of_line(line) }
    };
    lines.iter().enumerate().map(|at| (kind(at), *at.1)).collect()
}

/// The `^^^^` below a line of source.
fn is_mark(line: &str) -> bool {
    line.contains('^') && line.bytes().all(|byte| matches!(byte, b'^' | b'~' | b' ' | b'\t'))
}

/// Whether a line is program text: long, and full of what sentences and JSON have little of.
fn is_source(line: &str) -> bool {
    let sign = |byte: &u8| b";{}()=&|!?[]<>".contains(byte);
    line.len() > AGENT_SOURCE_BYTES && line.bytes().filter(sign).count() > line.len() / 16
}

fn kind_of_line(line: &str) -> Line {
    let text = line.trim();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let behind_number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_place = text.rsplit_once(':').is_some_and(|(_, line)| is_number(line))
        && !text.contains(' ')
        && ["file://", "/", "node:"].iter().any(|start| text.starts_with(start));
    if (text.starts_with("at ") && line != text && text.contains(['(', ':', '<'])) || is_place {
        return if text.contains("node:") { Line::Inside } else { Line::Place };
    }
    let of_heap = (text.contains(":0x") && text.contains(" ms: "))
        || (behind_number.len() < text.len() && behind_number.starts_with(": 0x"))
        || (text.ends_with("/node]") && text.contains(" [/"));
    let is_field = line != text && FIELDS.iter().any(|name| text.starts_with(name));
    let nothing = text.bytes().all(|byte| byte.is_ascii_punctuation());
    if nothing || of_heap || is_field || ASIDES.iter().any(|start| text.starts_with(start)) {
        return Line::Place;
    }
    let warning = text.get(..7).is_some_and(|word| word.eq_ignore_ascii_case("warning"))
        || (text.starts_with("(node:") && text.contains("Warning: "));
    if warning { Line::Warning } else { Line::Words }
}

/// What node writes around an exception and a full heap.
const ASIDES: [&str; 5] = ["Node.js v", "<--- ", "(Use `node ", "Emitted 'error' event", "---"];
/// The fields of an exception that repeat its message.
const FIELDS: [&str; 9] = [
    "errno: ",
    "code: ",
    "syscall: ",
    "path: ",
    "dest: ",
    "url: ",
    "address: ",
    "port: ",
    "hostname: ",
];

/// The lines that people need: words and warnings. The same line again says nothing new.
fn lines_for_people(text: &str) -> (Vec<String>, Vec<String>) {
    let lines = kinds_of_lines(text);
    let of = |wanted: Line| {
        let ours = lines.iter().filter(|(kind, _)| *kind == wanted);
        let mut told: Vec<String> = ours.map(|(_, line)| one_line(line)).collect();
        told.retain(|line| !line.is_empty());
        told.dedup();
        told
    };
    (of(Line::Words), of(Line::Warning))
}

/// Without characters that act on a terminal, and with single blanks.
fn one_line(line: &str) -> String {
    let line = line.trim_end().strip_suffix(" {").unwrap_or(line);
    let seen: String = line.chars().map(|c| if is_hidden(c) { ' ' } else { c }).collect();
    seen.split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// One paragraph of lines, at most AGENT_CAUSE_BYTES of it.
fn joined(lines: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    for line in lines {
        if !text.is_empty() {
            let ended = text.ends_with(['.', ':', ';', ',', '!', '?', '{', '-']);
            text.push_str(if ended { " " } else { "; " });
        }
        text.push_str(&line);
    }
    if text.len() > AGENT_CAUSE_BYTES {
        text.truncate(floor_boundary(&text, AGENT_CAUSE_BYTES - '…'.len_utf8()));
        text.push('…');
    }
    text
}

// ---- Bodies of providers ----------------------------------------------------------------

/// `text` with each JSON object reduced to its message, and an HTML page to its title. What has no
/// message stays as it is. `levels`: a message may be JSON again, so often.
fn without_bodies(text: &str, levels: usize) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    for _ in 0..AGENT_BODIES {
        let Some(at) = body_begin(rest) else { break };
        kept.push_str(&rest[..at]);
        let mut values = serde_json::Deserializer::from_str(&rest[at..]).into_iter::<&RawValue>();
        if let Some(Ok(value)) = values.next() {
            let message = message_of(value, levels);
            kept.push_str(message.as_deref().unwrap_or_else(|| value.get()));
            rest = &rest[at + value.get().len()..];
        } else if let Some(message) = message_of_cut(&rest[at..]) {
            kept.push_str(&message);
            rest = "";
        } else {
            kept.push('{');
            rest = &rest[at + 1..];
        }
    }
    kept.push_str(rest);
    without_page(kept)
}

/// Where an object with a field begins.
fn body_begin(text: &str) -> Option<usize> {
    let is_body = |at: &usize| text[at + 1..].trim_start().starts_with('"');
    text.match_indices('{').map(|(at, _)| at).find(is_body)
}

/// The message of a provider's error, wherever the object has it.
fn message_of(value: &RawValue, levels: usize) -> Option<String> {
    let levels = levels.checked_sub(1)?;
    let fields = Fields::of(Some(value));
    let error = fields.get("error");
    if let Some(message) = error.and_then(|error| message_of(error, levels)) {
        return Some(message);
    }
    let words = ["message", "error", "detail", "error_description"].iter().find_map(|name| {
        string(fields.get(name), AGENT_ERROR_BYTES).filter(|words| !words.trim().is_empty())
    });
    let Some(words) = words else {
        let mut first = None;
        let errors = fields.get("errors")?;
        each_item(errors, &mut |item| {
            first = message_of(item, levels);
            false
        });
        return first;
    };
    // A router's own words say only that somebody else failed; what that one said is in `raw`.
    let metadata = Fields::of(fields.get("metadata"));
    let raw = string(metadata.get("raw"), AGENT_ERROR_BYTES).unwrap_or(Cow::Borrowed(""));
    let words = if raw.is_empty() { words } else { Cow::Owned(format!("{words}: {raw}")) };
    Some(without_bodies(&words, levels))
}

/// The message in JSON that was cut: pi keeps the first 4,000 characters of a body.
fn message_of_cut(body: &str) -> Option<String> {
    let name = r#""message":"#;
    let behind = &body[body.find(name)? + name.len()..];
    let mut values = serde_json::Deserializer::from_str(behind).into_iter::<&RawValue>();
    let value = values.next()?.ok()?;
    string(Some(value), AGENT_ERROR_BYTES).map(Cow::into_owned)
}

/// A proxy's page reduced to its title.
fn without_page(text: String) -> String {
    let lower = text.to_ascii_lowercase();
    let begin = lower.find("<!doctype html").or_else(|| lower.find("<html"));
    let Some(begin) = begin else { return text };
    let title = ["title", "h1"].iter().find_map(|tag| {
        let from = begin + lower[begin..].find(&format!("<{tag}>"))? + tag.len() + 2;
        let to = from + lower[from..].find(&format!("</{tag}>"))?;
        Some(text[from..to].trim()).filter(|title| !title.is_empty())
    });
    // Most titles begin with the status that stands before the page.
    let before = title.filter(|title| title.starts_with(text[..begin].trim()));
    let before = before.map_or(&text[..begin], |_| "");
    format!("{before}{}", title.unwrap_or("an HTML page"))
}

#[cfg(test)]
#[path = "tests_cause.rs"]
mod tests;
