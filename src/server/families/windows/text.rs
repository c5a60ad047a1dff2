//! What a model reads of bash and its windows, word by word. The texts of a
//! command that ended are those of pi's built-in bash; tests/it/bash_run.rs compares the two.

use std::fmt::Write as _;

use crate::pure::process::life::ExitStatus;
use crate::pure::text::truncate::{Truncation, format_size, showing};
use crate::pure::text::visible;

/// The text of a command that wrote nothing.
const NO_OUTPUT: &str = "(no output)";
/// What a template of the attach command has in the place of the window's id.
const ID_IN_TEMPLATE: &str = "@123";
/// Said of a background command that asked for input and got none.
/// The shortest fence of a block of code.
const FENCE: &str = "```";

/// Output as a text shows it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shown<'a> {
    /// The output, cut to its end.
    pub output: &'a str,
    /// The line that says what was cut, or only where all of it is.
    pub notice: Option<&'a str>,
}

/// Who a text is about.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The window's name.
    pub name: &'a str,
    /// Its id.
    pub id: u64,
}

/// The actions that texts name, in their order.
pub const INSPECTING: [&str; 3] = ["peek", "list", "kill"];

/// Milliseconds as seconds, as pi writes them: `30`, `0.5`.
pub fn seconds(ms: u64) -> String {
    let fraction = format!("{:03}", ms % 1_000);
    let fraction = fraction.trim_end_matches('0');
    let dot = if fraction.is_empty() { "" } else { "." };
    format!("{}{dot}{fraction}", ms / 1_000)
}

/// What a shell reports of an exit: a signal n is 128 + n.
pub fn shell_code(status: ExitStatus) -> i32 {
    match status {
        ExitStatus::Code(code) => code,
        ExitStatus::Signal(signal) => 128 + signal,
    }
}

/// The line that says what was cut and where all of it is; with `always` also where nothing was.
/// `line_bytes` is the size of the last line.
pub fn notice(
    cut: &Truncation,
    line_bytes: usize,
    log_path: Option<&str>,
    always: bool,
) -> Option<String> {
    let Some(cut_by) = cut.cut_by else {
        return log_path.filter(|_| always).map(|path| format!("[Full output: {path}]"));
    };
    let part = || {
        let [shown, whole] = [cut.output_bytes, line_bytes].map(format_size);
        format!("last {shown} of line {} (line is {whole})", cut.total_lines)
    };
    Some(showing(cut, cut_by, part, log_path))
}

/// Output with its notice; `empty` stands for none.
fn body(shown: Shown<'_>, empty: &str) -> String {
    let output = if shown.output.is_empty() { empty } else { shown.output };
    shown.notice.map_or_else(|| output.to_owned(), |notice| below(output.to_owned(), notice))
}

/// A word about the command below its output.
fn below(text: String, word: &str) -> String {
    if text.is_empty() { word.to_owned() } else { format!("{text}\n\n{word}") }
}

/// A command that ended: its output, and its exit where that is a failure.
pub fn ended(shown: Shown<'_>, status: ExitStatus) -> String {
    let text = body(shown, NO_OUTPUT);
    match shell_code(status) {
        0 => text,
        code => below(text, &format!("Command exited with code {code}")),
    }
}

/// A window in which others go on although its shell has ended.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    /// Its id.
    pub id: u64,
    /// The processes that go on, each as `sleep (pid 4242)`.
    pub holders: &'a [String],
    /// The log that gets what they write.
    pub log_path: Option<&'a str>,
}

/// A command that ended, when others go on in its window.
pub fn ended_but_held(shown: Shown<'_>, status: ExitStatus, held: Held<'_>) -> String {
    below(ended(shown, status), &still_running(held))
}

/// Which processes go on in a window whose shell has ended, and where to find what they write.
fn still_running(held: Held<'_>) -> String {
    let nobody = held.holders.is_empty();
    let who = if nobody { "its output is held".to_owned() } else { held.holders.join(", ") };
    let log = held.log_path.map(|path| format!(". Later output: {path}")).unwrap_or_default();
    format!("Still running in background window @{}: {who}{log}", held.id)
}

/// A notice with the word that some of the output came later than an answer would have waited.
pub fn late_notice(notice: Option<String>, log_path: Option<&str>) -> String {
    let full = log_path.map(|path| format!(" Full output: {path}")).unwrap_or_default();
    let late = format!("[Some of it came after the command had ended.{full}]");
    notice.map_or_else(|| late.clone(), |notice| format!("{notice}\n{late}"))
}

/// A notice with what the command in the window is doing.
pub fn doing_notice(notice: Option<String>, doing: &str) -> String {
    let doing = format!("[{doing}]");
    notice.map_or_else(|| doing.clone(), |notice| format!("{notice}\n{doing}"))
}

/// One of the processes that go on: the program's name and the pid.
pub fn holder(command: &str, pid: i32) -> String {
    let program = command.split_whitespace().next().unwrap_or_default();
    let base = program.rsplit('/').next().filter(|base| !base.is_empty());
    format!("{} (pid {pid})", base.unwrap_or("process"))
}

/// A command that the caller ended.
pub fn aborted(shown: Shown<'_>) -> String {
    below(body(shown, ""), "Command aborted")
}

/// A command that was ended because its time was over.
pub fn timed_out(shown: Shown<'_>, timeout_ms: u64) -> String {
    below(body(shown, ""), &format!("Command timed out after {} seconds", seconds(timeout_ms)))
}

/// How the tool that looks after windows is called and what it may do.
#[derive(Clone, Copy, Debug)]
pub struct Inspector<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The actions that a model has, of [`INSPECTING`].
    pub actions: &'a [&'static str],
}

/// A command that goes on in the background because its time was over; without `timeout_ms`,
/// because of something else, that a line before this tells.
pub fn went_on(
    shown: Shown<'_>,
    timeout_ms: Option<u64>,
    id: u64,
    inspector: Inspector<'_>,
    poll_ms: Option<u64>,
) -> String {
    let polling =
        poll_ms.map_or_else(String::new, |ms| format!(" and polling every {}s", seconds(ms)));
    let hint = if inspector.actions.is_empty() {
        String::new()
    } else {
        format!("Use {} {} to inspect or stop it. ", inspector.tool, inspector.actions.join("/"))
    };
    let after = timeout_ms.map_or_else(String::new, |ms| format!(" after {}s", seconds(ms)));
    let word = format!(
        "Still running{after} in background window @{id}{polling}. {hint}Result will be reported \
         when it finishes."
    );
    below(body(shown, ""), &word)
}

/// A command that goes on in the background because nothing but input moves it on, which a line
/// before this tells; `attach` is as of [`started`].
pub fn awaits_input(
    shown: Shown<'_>,
    id: u64,
    inspector: Inspector<'_>,
    poll_ms: Option<u64>,
    attach: &str,
) -> String {
    let polling =
        poll_ms.map_or_else(String::new, |ms| format!(" and polling every {}s", seconds(ms)));
    let kills = inspector.actions.contains(&"kill");
    let end =
        if kills { format!("end it ({} kill) and run", inspector.tool) } else { "run".to_owned() };
    let attach = match attach {
        "" => String::new(),
        attach => {
            let attach = attach.replace(ID_IN_TEMPLATE, &format!("@{id}"));
            format!(", or have the user answer ({attach})")
        }
    };
    let word = format!(
        "Still running in background window @{id}{polling}. It gets no input here: {end} it again \
         so that it does not ask{attach}. Result will be reported when it finishes."
    );
    below(body(shown, ""), &word)
}

/// A command that was started in the background; `attach` is the template of the command that
/// attaches to it, empty where nobody can.
pub fn started(window: Named<'_>, poll_ms: Option<u64>, attach: &str) -> String {
    let Named { name, id } = window;
    let polling =
        poll_ms.map_or_else(String::new, |ms| format!(" Polling every {}s.", seconds(ms)));
    let mut text = format!(
        "Started in background window: {name} @{id}.{polling}\nResult will be reported when it \
         finishes."
    );
    if !attach.is_empty() {
        let attach = attach.replace(ID_IN_TEMPLATE, &format!("@{id}"));
        let _ = write!(text, "\n\nAttach with: {attach}");
    }
    text
}

/// How a background command has ended.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// The exit of its shell.
    pub status: ExitStatus,
    /// The window in which others go on.
    pub held: Option<Held<'a>>,
}

/// A background command has ended: the summary, its last lines as a block of code, what was cut.
pub fn completion(shown: Shown<'_>, end: End<'_>) -> String {
    let code = shell_code(end.status);
    let mut text = format!("Background command finished with exit code {code}");
    if let Some(held) = end.held {
        let _ = write!(text, "\n{}", still_running(held));
    }
    let output = shown.output.trim_end_matches('\n');
    if !output.is_empty() {
        let fence = fence(output);
        let _ = write!(text, "\n\n{fence}\n{output}\n{fence}");
    }
    shown.notice.map_or(text.clone(), |notice| below(text, notice))
}

/// A fence that no line of the output ends.
fn fence(output: &str) -> String {
    let runs = output.lines().map(|line| {
        let line = line.trim_start();
        line.len() - line.trim_start_matches('`').len()
    });
    "`".repeat(runs.max().map_or(0, |longest| longest + 1).max(FENCE.len()))
}

/// What is in a window now: for peek with `word` "window", for a poll with "poll".
pub fn look(word: &str, window: Named<'_>, command: &str, shown: Shown<'_>) -> String {
    let Named { name, id } = window;
    let output = Shown { output: shown.output.trim_end_matches('\n'), ..shown };
    let command = visible::lines(command);
    format!("{word}: {name} @{id}\n$ {command}\n{}", body(output, NO_OUTPUT))
}

/// One line of a list of windows; `ended` where the command is over.
pub fn listed(
    window: Named<'_>,
    age_s: u64,
    ended: Option<ExitStatus>,
    doing: Option<&str>,
) -> String {
    let Named { name, id } = window;
    if let Some(doing) = doing {
        return format!("  {name} @{id} ({age_s}s) {doing}");
    }
    let ended = ended.map(|status| format!(" finished with exit code {}", shell_code(status)));
    format!("  {name} @{id} ({age_s}s){}", ended.unwrap_or_default())
}

/// The list of windows.
pub fn list(lines: &[String]) -> String {
    let head = format!("Background windows — {} window(s)", lines.len());
    if lines.is_empty() { head } else { format!("{head}\n\n{}", lines.join("\n")) }
}

/// The list of polls: name, milliseconds, lines.
pub fn polls(active: &[(String, u64, usize)]) -> String {
    if active.is_empty() {
        return "No active polls.".to_owned();
    }
    let line = |(name, ms, lines): &(String, u64, usize)| {
        format!("  {name} every {}s ({lines} lines)", seconds(*ms))
    };
    let lines: Vec<String> = active.iter().map(line).collect();
    format!("Active polls:\n\n{}", lines.join("\n"))
}

#[cfg(test)]
#[path = "tests_text.rs"]
mod tests;
