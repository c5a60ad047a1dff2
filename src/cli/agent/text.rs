//! What people see of a run (docs/agent.md, From a shell): its events and its result, from execd's
//! JSON to text and to an exit status. Where the text goes is left to `streams`.

use std::borrow::Cow;
use std::mem;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::streams::Streams;
use crate::cli::say::{EXIT_FAILED, EXIT_TIMEOUT, EXIT_USAGE};
use crate::limits::AGENT_SHOWN_CHARS;
use crate::mcp::summary;
use crate::pure::text::fit::{columns, cut, wrapped};
use crate::pure::text::visible::one_line;
use crate::sys::{host, stdio};

/// Bytes of what the model thinks that `execd agent -v` shows as a line at most.
const AGENT_THINKING_LINE_BYTES: usize = 4 * 1024;

/// Tools at once whose names `execd agent` remembers to say which one runs.
const AGENT_SHOWN_TOOLS: usize = 64;

/// The exit status after Ctrl-C or another cancel.
const EXIT_CANCELLED: i32 = 130;
/// What stands before the first line of what the model thinks; the others begin below its end.
const THINKING: &str = "thinking: ";

/// An event, as far as people are shown it.
#[derive(Debug, Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(borrow, default)]
    delta: Cow<'a, str>,
    #[serde(borrow, default)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output: Cow<'a, str>,
    #[serde(default)]
    is_error: bool,
    #[serde(borrow, default)]
    message: Cow<'a, str>,
    #[serde(default)]
    attempt: u64,
    #[serde(default)]
    max_attempts: u64,
}

/// How a run ended.
#[derive(Debug)]
pub struct RunEnd {
    /// What people should know: what went wrong, and the run in one line.
    pub lines: Vec<String>,
    /// The exit status.
    pub status: i32,
}

/// What text looks like here.
#[derive(Clone, Copy, Debug)]
struct Style {
    /// Stands before the line of a tool that failed.
    failed: &'static str,
    /// Stands where the rest of a line is left out.
    more: &'static str,
    /// What is dimmed, is.
    dim: bool,
}

impl Style {
    /// By the locale, and by what the terminal and its user take.
    fn of_environment() -> Self {
        let set = |name: &str| host::variable(name).filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default();
        let locale = locale.to_string_lossy().to_ascii_lowercase();
        let utf8 = locale.contains("utf-8") || locale.contains("utf8");
        let colours = set("NO_COLOR").is_none() && set("TERM").is_some_and(|term| term != "dumb");
        Self {
            failed: if utf8 { "✗" } else { "x" },
            more: if utf8 { "…" } else { "..." },
            dim: colours && stdio::is_terminal(2),
        }
    }
}

/// Shows a run to people.
#[derive(Debug)]
pub struct Teller {
    style: Style,
    /// What the model thinks is shown too.
    verbose: bool,
    /// What the model thinks, in the line that is not shown yet.
    thinking: String,
    /// A line of it was shown.
    thought: bool,
    /// An error that may be the run's own, which is told at its end.
    error: Option<String>,
    /// Tools that run: the id of the call, and the tool's name.
    tools: Vec<(String, String)>,
}

impl Teller {
    /// Of a run of which nothing was shown.
    pub fn new(verbose: bool) -> Self {
        Self {
            style: Style::of_environment(),
            verbose,
            thinking: String::new(),
            thought: false,
            error: None,
            tools: Vec::new(),
        }
    }

    /// The beginning of a text, in one line of the terminal.
    fn shortened(&self, text: &str, streams: &Streams) -> String {
        let most = streams.columns().unwrap_or(AGENT_SHOWN_CHARS);
        cut(&one_line(text), most, self.style.more)
    }

    /// Shows an event: what the model says on stdout, what it does on stderr.
    pub fn show(&mut self, event: &str, streams: &mut Streams) {
        let Ok(event) = serde_json::from_str::<Event<'_>>(event) else { return };
        let kind = event.event.as_ref();
        if kind == "thinking" {
            return self.think(&event.delta, streams);
        }
        self.end_thinking(streams);
        let Event { message, attempt, max_attempts, name, .. } = &event;
        match kind {
            // The retry has the reason.
            "retry" if self.error.as_deref() == Some(message.as_ref()) => {
                self.error = None;
            }
            "turn_start" | "turn_end" => {}
            _ => self.tell_error(streams),
        }
        match kind {
            "text" => streams.push_text(&event.delta),
            "tool_use" => {
                let input = event.input.map_or("null", RawValue::get);
                let line = self.shortened(&format!("{name} {input}"), streams);
                streams.push_note(&line);
                if self.tools.len() < AGENT_SHOWN_TOOLS {
                    self.tools.push((event.id.into_owned(), event.name.into_owned()));
                }
            }
            "tool_result" => {
                self.tools.retain(|(id, _)| *id != event.id);
                if event.is_error {
                    let first = event.output.lines().map(str::trim).find(|line| !line.is_empty());
                    let first = first.map(|line| format!(": {line}")).unwrap_or_default();
                    let line = format!("{} {name} failed{first}", self.style.failed);
                    streams.push_note(&self.shortened(&line, streams));
                }
            }
            "turn_end" => self.tools.clear(),
            "retry" => {
                let line = format!("retry {attempt} of {max_attempts}: {message}");
                streams.push_note(&self.shortened(&line, streams));
            }
            "error" => self.error = Some(message.clone().into_owned()),
            _ => {}
        }
    }

    /// Shows an error that was not the run's last word.
    fn tell_error(&mut self, streams: &mut Streams) {
        if let Some(message) = self.error.take() {
            streams.push_note(&self.shortened(&format!("error: {message}"), streams));
        }
    }

    /// Takes in what the model thinks, and shows what fills lines of it.
    fn think(&mut self, delta: &str, streams: &mut Streams) {
        if !self.verbose {
            return;
        }
        self.thinking.push_str(delta);
        while let Some(end) = self.thinking.find('\n') {
            let rest = self.thinking.split_off(end + 1);
            let line = mem::replace(&mut self.thinking, rest);
            self.show_thought(line.trim_end(), true, streams);
        }
        let text = mem::take(&mut self.thinking);
        let most = streams.columns().map(|most| most.saturating_sub(THINKING.len()));
        self.thinking = match most {
            Some(most) if columns(&text) > most => self.show_thought(&text, false, streams),
            None if text.len() > AGENT_THINKING_LINE_BYTES => {
                self.show_thought(&text, true, streams)
            }
            _ => text,
        };
    }

    /// Shows what is left of what the model thought.
    fn end_thinking(&mut self, streams: &mut Streams) {
        let rest = mem::take(&mut self.thinking);
        self.show_thought(&rest, true, streams);
        self.thought = false;
    }

    /// Shows what the model thinks, in lines that fit the terminal. The last one may grow where the
    /// text is not `whole`: it is given back.
    fn show_thought(&mut self, text: &str, whole: bool, streams: &mut Streams) -> String {
        let text = one_line(text);
        if text.trim().is_empty() {
            return if whole { String::new() } else { text };
        }
        let mut lines = match streams.columns() {
            Some(most) => wrapped(&text, most.saturating_sub(THINKING.len()), ""),
            None => vec![text.clone()],
        };
        let rest = if whole { None } else { lines.pop() };
        for line in lines {
            let width = if mem::replace(&mut self.thought, true) { THINKING.len() } else { 0 };
            let head = if width == 0 { THINKING } else { "" };
            let line = format!("{head}{:width$}{line}", "");
            let dimmed = if self.style.dim { format!("\x1b[2m{line}\x1b[0m") } else { line };
            streams.push_note(&dimmed);
        }
        // The blank that a word may follow.
        let blank = if text.ends_with(' ') { " " } else { "" };
        rest.map(|rest| rest + blank).unwrap_or_default()
    }

    /// How the run goes on, after so many seconds.
    pub fn status(&self, elapsed_s: u64, streams: &Streams) -> String {
        let what = match self.tools.last() {
            Some((_, name)) => format!("{name} runs"),
            None => "waiting for the model".to_owned(),
        };
        let line = one_line(&format!("[{}:{:02}] {what}", elapsed_s / 60, elapsed_s % 60));
        // A cursor behind the last column would go to the next line on some terminals.
        let most = streams.columns().unwrap_or(AGENT_SHOWN_CHARS).saturating_sub(1);
        cut(&line, most, self.style.more)
    }

    /// Shows the last of the events, and gives how the run ended, from its result.
    pub fn end(&mut self, result: &str, streams: &mut Streams) -> RunEnd {
        self.end_thinking(streams);
        let report: Value = serde_json::from_str(result).unwrap_or_default();
        let error = report["error"].as_str().unwrap_or_default();
        let failed = matches!(report["finish_reason"].as_str(), Some("error" | "content_filter"));
        // The last error of such a run is the run's own.
        self.error = self.error.take().filter(|message| !failed && !error.contains(message.trim()));
        self.tell_error(streams);
        streams.end_line();
        end_of(&report)
    }
}

/// How a run ended, from its result.
pub fn end_of(report: &Value) -> RunEnd {
    let reason = report["finish_reason"].as_str().unwrap_or_default();
    let status = match reason {
        _ if report["success"] == true => 0,
        "timeout" => EXIT_TIMEOUT,
        "cancelled" => EXIT_CANCELLED,
        _ if report["error_kind"] == "not_started" && report["exit_code"].is_null() => EXIT_USAGE,
        _ => EXIT_FAILED,
    };
    let mut lines = Vec::new();
    if let Some(error) = report["error"].as_str() {
        lines.push(one_line(error));
        lines.extend(report["log_path"].as_str().map(|path| format!("log: {path}")));
    }
    let kept = report["agent_dir"].as_str();
    lines.extend(kept.map(|path| format!("agent directory, with a copy of the keys: {path}")));
    lines.push(summary(reason, report));
    RunEnd { lines, status }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// rule: agent.md, execd agent: The summary has the kind of error, the time and a model that
    ///   answered in another's place
    #[test]
    fn a_summary_says_what_people_ask_first() {
        let mut report = json!({"success": true, "finish_reason": "stop", "num_turns": 2,
            "tool_call_count": 1, "total_tokens": 110, "input_tokens": 100, "output_tokens": 10,
            "cost_usd": 0.25, "duration_ms": 4_249});
        let line = "stop: 2 turns, 1 tool call, 110 tokens (100 in, 10 out), $0.2500, 4.2 s";
        assert_eq!(end_of(&report).lines, [line]);
        report["duration_ms"] = json!(185_000);
        report["model_mismatch"] = json!(true);
        report["response_provider"] = json!("openai");
        report["response_model"] = json!("gpt-4o");
        let last = end_of(&report).lines.pop().expect("a line");
        assert!(last.ends_with(", 3 min 5 s, answered by openai/gpt-4o"), "{last}");
        for (reason, kind, head) in [
            ("error", "rate_limit", "error (rate_limit): "),
            ("timeout", "timeout", "timeout: "),
            ("cancelled", "other", "cancelled: "),
            ("content_filter", "refusal", "content_filter (refusal): "),
        ] {
            let report = json!({"success": false, "finish_reason": reason, "error_kind": kind,
                "error": "Why.", "log_path": "/tmp/l"});
            let lines = end_of(&report).lines;
            assert_eq!(lines[..2], ["Why.", "log: /tmp/l"]);
            assert!(lines[2].starts_with(head), "{lines:?}");
        }
        let kept = json!({"success": true, "finish_reason": "stop", "agent_dir": "/tmp/d"});
        let lines = end_of(&kept).lines;
        assert_eq!(lines[0], "agent directory, with a copy of the keys: /tmp/d");
    }
}
