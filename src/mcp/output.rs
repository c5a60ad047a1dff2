//! What programs have written, as a result shows it: the beginning and the end of what is long, and
//! between two lines with a word that the program could not know, so that nobody takes it for words
//! of ours.

use serde_json::{Value, json};

use super::fields::{items, shown, str_of};
use super::tools::{Settings, Tool};
use crate::pure::text::shell_word::as_word;
use crate::pure::text::utf8::{ceil_boundary, floor_boundary};
use crate::server::session::view::{TextLimits, head_and_tail};
use crate::sys::host;

/// The fields of a reply that have output, each alone in its result.
const ALONE: [&str; 4] = ["output", "final_output", "tail", "aggregated"];
/// Those that share the room with the other one, as the outputs of several sessions do.
const SHARED: [&str; 2] = ["stdout", "stderr"];
/// Bytes of the word of a fence.
const WORD_BYTES: usize = 4;
/// How often a word is drawn that no output has; each eighth time it is longer.
const DRAWS: usize = 64;
/// Bytes that are read at a time of what was left out.
const PAGE_BYTES: usize = 10 * 1024;
/// What execd itself says behind output that it has cut.
const NOTICE: &str = "[Showing ";

/// A call whose reply is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShownCall<'a> {
    pub settings: &'a Settings,
    pub tool: Tool,
    /// Its output is the log's from the beginning.
    pub starts: bool,
    /// How much output its result shows.
    pub limits: TextLimits,
}

/// The lines around output.
#[derive(Debug, Default)]
pub(super) struct Fence {
    word: String,
}

impl Fence {
    /// A fence whose word stands nowhere in these outputs.
    fn unlike<'o>(outputs: impl Iterator<Item = &'o str> + Clone) -> Self {
        let mut word = String::new();
        for draw in 0..DRAWS {
            word = host::random_hex();
            word.truncate(WORD_BYTES + draw / 8);
            if !outputs.clone().any(|output| output.contains(&word)) {
                break;
            }
        }
        Self { word }
    }

    /// Output between its lines; `none` stands for no output.
    pub(super) fn around(&self, label: &str, output: &str, none: &str) -> String {
        if output.is_empty() {
            return format!("---\n{none}");
        }
        let (word, end) = (&self.word, if output.ends_with('\n') { "" } else { "\n" });
        format!("--- {label} {word}\n{output}{end}--- end {word}")
    }

    /// The text that execd has made, with its outputs as they are shown, each behind `before`.
    fn put_into(&self, text: &str, before: &str, outputs: &[(String, String)]) -> String {
        let (mut made, mut rest) = (String::new(), text);
        for (whole, shown) in outputs {
            let whole = whole.trim_end_matches('\n');
            let behind = format!("{before}{whole}");
            let at = match rest.find(&behind) {
                _ if made.is_empty() && before == "\n" && rest.starts_with(whole) => 0,
                Some(at) => at + 1,
                None => continue,
            };
            let (ours, from) = rest.split_at(at);
            let from = from.strip_prefix(&before[1..]).unwrap_or(from);
            made += &format!("{ours}{}", self.around("output", shown, ""));
            rest = &from[whole.len()..];
            let notice = rest.trim_start_matches('\n');
            if whole.len() != shown.trim_end_matches('\n').len() && notice.starts_with(NOTICE) {
                rest = notice.find(']').map_or(rest, |end| &notice[end + 1..]);
            }
        }
        made + rest
    }
}

/// The outputs of a reply that share their room: the objects that have them, as JSON pointers, and
/// their fields.
fn shared(reply: &Value) -> Vec<(String, &'static str)> {
    let rows = 0..items(reply, "sessions").len();
    let rows = rows.map(|row| (format!("/sessions/{row}"), "output"));
    rows.chain(SHARED.map(|name| (String::new(), name))).collect()
}

/// What each of several texts gets of so much room: those that are short what they need, the
/// others the same.
fn shares(room: usize, lengths: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&at| lengths[at]);
    let (mut left, mut shares) = (room, vec![0; lengths.len()]);
    for (done, &at) in order.iter().enumerate() {
        shares[at] = lengths[at].min(left / (lengths.len() - done));
        left -= shares[at];
    }
    shares
}

/// Cuts the outputs of a reply, also in the text that execd has made of it, where they get their
/// fences.
pub(super) fn frame(reply: &mut Value, called: ShownCall<'_>) -> Fence {
    let mut outputs = Vec::new();
    let places = shared(reply);
    let length = |(object, field): &(String, &str)| {
        reply.pointer(object).map_or(0, |one| str_of(one, field).len())
    };
    let lengths: Vec<usize> = places.iter().map(length).collect();
    let shares = shares(called.limits.max_bytes, &lengths).into_iter();
    let alone = ALONE.map(|name| ((String::new(), name), called.limits.max_bytes));
    for ((object, field), max_bytes) in places.into_iter().zip(shares).chain(alone) {
        let Some(of) = reply.pointer(&object) else { continue };
        let whole = str_of(of, field).to_owned();
        if whole.is_empty() {
            continue;
        }
        let limits = TextLimits { max_bytes, ..called.limits };
        let shown = shortened(&whole, limits, called, (of, field)).unwrap_or_else(|| whole.clone());
        if let Some(of) = reply.pointer_mut(&object) {
            of[field] = shown.as_str().into();
        }
        outputs.push((whole, shown));
    }
    let text = str_of(reply, "text").to_owned();
    let all = outputs.iter().map(|(_, shown)| shown.as_str()).chain([text.as_str()]);
    let fence = Fence::unlike(all);
    let before = if called.tool.row.name == "wait_for" { "\n---\n" } else { "\n" };
    if called.tool.model.set != "stream" && !outputs.is_empty() && !text.is_empty() {
        reply["text"] = fence.put_into(&text, before, &outputs).into();
    }
    fence
}

/// The beginning and the end of a text that is longer than the limits, with a line between them
/// that says how to read the rest; at the ends of lines where some are near.
fn shortened(
    text: &str,
    limits: TextLimits,
    called: ShownCall<'_>,
    (of, field): (&Value, &str),
) -> Option<String> {
    let (head_bytes, tail_bytes) = head_and_tail(limits.max_bytes);
    let (head_lines, tail_lines) = head_and_tail(limits.max_lines);
    let lines = memchr::memchr_iter(b'\n', text.as_bytes());
    if text.len() <= limits.max_bytes && lines.clone().count() <= limits.max_lines {
        return None;
    }
    let by_lines = lines.clone().nth(head_lines.saturating_sub(1)).map_or(text.len(), |at| at + 1);
    let head = &text[..floor_boundary(text, head_bytes.min(by_lines))];
    let head_end = head.rfind('\n').map(|at| at + 1).filter(|at| *at >= head.len() / 2);
    let head = &head[..head_end.unwrap_or(head.len())];
    // The newline at the end of the text ends its last line.
    let by_lines = lines.rev().nth(tail_lines).map_or(0, |at| at + 1);
    let tail_start = text.len().saturating_sub(tail_bytes).max(by_lines).max(head.len());
    let tail = &text[ceil_boundary(text, tail_start)..];
    let line_start = tail.find('\n').map(|at| at + 1).filter(|at| *at <= tail.len() / 2);
    let is_at_line = tail_start == by_lines || text[..text.len() - tail.len()].ends_with('\n');
    let tail = &tail[line_start.filter(|_| !is_at_line).unwrap_or(0)..];
    let before: u64 = of.get("omitted_bytes").and_then(Value::as_u64).unwrap_or_default();
    let left_out = before + (text.len() - head.len() - tail.len()) as u64;
    let more = if of["truncated"] == true { "over " } else { "" };
    let rest = called.rest(of, field, head.len(), tail.len());
    let newline = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    Some(format!("{head}{newline}[... {more}{left_out} bytes left out{rest}]\n{tail}"))
}

impl ShownCall<'_> {
    /// How to read what was left out between the beginning and the end of an output.
    fn rest(&self, of: &Value, field: &str, head_bytes: usize, tail_bytes: usize) -> String {
        let log = [shown(of, "log_path"), shown(of, "logPath")].concat();
        let before_tail = tail_bytes + PAGE_BYTES;
        if self.tool.model.set == "stream" {
            let id = of["sessionId"].as_u64();
            let before_end = -i64::try_from(before_tail).unwrap_or(i64::MAX);
            let offset = if self.starts { json!(head_bytes) } else { json!(before_end) };
            let mut page = json!({"sessionId": id, "offset": offset, "limit": PAGE_BYTES});
            if SHARED.iter().all(|name| !str_of(of, name).is_empty()) {
                page["stream"] = field.into();
            }
            let log = if log.is_empty() { log } else { format!("; log: {log}") };
            return format!(": get_process_log {page}{log}");
        }
        let is_agent = self.tool.model.set == "agent";
        let (name, param) = match self.settings.shell_for(self.tool).filter(|_| !is_agent) {
            _ if log.is_empty() => return String::new(),
            Some(shell) => shell,
            None => return format!("; log: {log}"),
        };
        let from =
            if self.starts { format!("+{}", head_bytes + 1) } else { before_tail.to_string() };
        let cmd = format!("tail -c {from} {} | head -c {PAGE_BYTES}", as_word(&log));
        format!(": {name} {}", json!({param: cmd}))
    }
}
