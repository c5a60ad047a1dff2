//! What a model reads of the stream tools' results (docs/pi.md): facts, a rule, output, how to go
//! on.

use serde_json::Value;

use super::fields::{is_set, items, number, plain, shown, str_of};
use super::output::Fence;
use crate::pure::text::clean::window_text;

/// The fields that a report begins with, where they are there.
const FACTS: &[&str] = &[
    "sessionId",
    "name",
    "exitCode",
    "signal",
    "timedOut",
    "error",
    "pid",
    "durationMs",
    "logPath",
];

/// The text of a result of the tool of this name; `asked`: the call's params.
pub(super) fn of(tool: &str, reply: &Value, asked: &Value, fence: &Fence) -> String {
    match tool {
        "list_processes" => list(reply),
        "get_process_log" => page(reply, fence),
        "write_stdin" => stdin(reply),
        _ => report(reply, asked, fence),
    }
}

/// Says a field, where it is there, between these words.
fn field(said: &mut String, reply: &Value, before: &str, name: &str) {
    let shown = shown(reply, name);
    if !shown.is_empty() {
        *said += &format!("{before}{shown}");
    }
}

/// The report of a session.
fn report(reply: &Value, asked: &Value, fence: &Fence) -> String {
    let status = str_of(reply, "status");
    let runs = status == "running";
    let mut said = format!("[{status}]");
    for name in FACTS {
        if runs || *name != "pid" {
            field(&mut said, reply, &format!("\n{name}: "), name);
        }
    }
    let none = Value::Null;
    let wait = reply.get("wait").unwrap_or(&none);
    let impossible = str_of(wait, "outcome") == "impossible" && wait.get("state").is_some();
    let stuck = runs && impossible && reply.get("note").is_some();
    if stuck {
        said.push_str("\nwait: impossible");
    } else {
        ended(&mut said, wait, asked);
    }
    if runs {
        doing(&mut said, "\n", reply, !stuck);
    }
    said.push('\n');
    said += &output(reply, runs, fence);
    said + &notes(reply, runs, stuck)
}

/// How a wait ended that said what it waits for, or that nothing but input could end.
fn ended(said: &mut String, wait: &Value, asked: &Value) {
    match str_of(wait, "outcome") {
        "matched" => matched(said, "\nwait: matched ", wait, asked.get("until")),
        "stopped" => matched(said, "\nwait: stopped by ", wait, asked.get("stop")),
        "impossible" => said.push_str("\nwait: impossible"),
        "deadline" => {
            let s = number(wait, "effectiveTimeoutMs") / 1_000;
            *said += &format!("\nwait: not within {s} s");
        }
        "exited" => said.push_str("\nwait: ended"),
        _ => return,
    }
    field(said, wait, ": ", "why");
}

/// What came true: the pattern and its line, the port, the kind of input.
fn matched(said: &mut String, before: &str, wait: &Value, condition: Option<&Value>) {
    let by = str_of(wait, "by");
    let given = condition.and_then(|all| all.get(by));
    let index = usize::try_from(number(wait, "index")).unwrap_or_default();
    let pattern = given.and_then(|all| all.get(index)).or(given).map(plain).unwrap_or_default();
    said.push_str(before);
    *said += &match by {
        "text" => format!("\"{pattern}\""),
        "regex" => format!("/{pattern}/"),
        "port" => format!("port {}", shown(wait, "port")),
        "input" => format!("input: {}", kind(str_of(wait, "state"))),
        _ => by.to_owned(),
    };
    field(said, wait, " → ", "text");
}

fn kind(state: &str) -> &'static str {
    match state {
        "waiting_for_line" => "a line",
        "waiting_for_password" => "a password",
        "waiting_for_key" => "a key",
        _ => "",
    }
}

/// Says who something is of, where that is known.
fn whose(said: &mut String, of: &Value) {
    let command = shown(of, "command");
    if !command.is_empty() {
        *said += &format!(" ({command})");
    }
}

/// What a session is doing, where that is told, each behind `before`.
fn doing(said: &mut String, before: &str, session: &Value, tells_state: bool) {
    let state = str_of(session, "state");
    let kind = kind(state);
    if tells_state && !kind.is_empty() {
        *said += &format!("{before}waits for {kind}");
        whose(said, session.get("stateDetail").unwrap_or(&Value::Null));
    } else if tells_state && state == "stopped" {
        *said += &format!("{before}stopped");
    }
    if is_set(session, "fullScreen") {
        *said += &format!("{before}full screen");
    }
    for (at, one) in items(session, "listening").iter().enumerate() {
        *said += &if at == 0 { format!("{before}listens on ") } else { ", ".to_owned() };
        *said += &shown(one, "port");
        whose(said, one);
    }
}

/// The output, both streams under their names where there is more than stdout; or what is said
/// where there is none.
fn output(reply: &Value, runs: bool, fence: &Fence) -> String {
    let (stdout, stderr) = (str_of(reply, "stdout"), str_of(reply, "stderr"));
    if runs && reply.get("stdout").is_none() {
        return fence.around("output", str_of(reply, "tail"), "(no output so far)");
    }
    let none = if runs { "(no new output)" } else { "(no output)" };
    match (stdout, stderr) {
        (stdout, "") => fence.around("output", stdout, none),
        ("", stderr) => fence.around("stderr", stderr, none),
        _ => [("stdout", stdout), ("stderr", stderr)]
            .map(|(label, output)| fence.around(label, output, none))
            .join("\n"),
    }
}

/// What else is to be known, each in brackets on a line of its own.
fn notes(reply: &Value, runs: bool, stuck: bool) -> String {
    let mut notes = Vec::new();
    let id = shown(reply, "sessionId");
    let path = str_of(reply, "logPath");
    let log = if path.is_empty() { String::new() } else { format!(" (log: {path})") };
    notes.extend(["note", "failureMessage"].map(|name| shown(reply, name)));
    if is_set(reply, "logTruncated") {
        notes.push(LOG_ENDED.to_owned());
    }
    if is_set(reply, "late") {
        notes.push(format!("Some of this came after the command had ended{log}"));
    }
    let pids: Vec<String> = items(reply, "backgroundPids").iter().map(plain).collect();
    if !pids.is_empty() {
        notes.push(format!(
            "Still running in the background: pid {}; poll_process with sessionId {id} tells what \
             comes later{log}; kill_process ends what runs",
            pids.join(", ")
        ));
    }
    let tail = reply.get("stdout").is_none();
    if stuck && tail && !str_of(reply, "tail").is_empty() {
        notes.push("This is the end of its output so far".to_owned());
    } else if runs && !stuck {
        let tail = if tail { ", this is the end of its output so far" } else { "" };
        // A password is not the model's to type.
        let asks_password = str_of(reply, "state") == "waiting_for_password";
        let types = if asks_password { "" } else { "write_stdin types into it, " };
        notes.push(format!(
            "Still running{tail}. poll_process with sessionId {id} and waitMs waits for the end, \
             with maxDrainMs for more output; {types}kill_process ends it"
        ));
    }
    let told = notes.iter().filter(|note| !note.is_empty());
    told.map(|note| format!("\n[{note}]")).collect()
}

/// What is said of a log that is full.
const LOG_ENDED: &str = "the log ended at its limit, what came later is not in it";

fn age(ms: u64) -> String {
    match ms / 1_000 {
        s @ 0..60 => format!("{s}s"),
        s => format!("{}m", s / 60),
    }
}

/// A line for each session.
fn list(reply: &Value) -> String {
    let all = items(reply, "processes");
    let running = all.iter().filter(|one| str_of(one, "status") == "running").count();
    let mut said = if all.is_empty() {
        "no processes".to_owned()
    } else {
        format!("{running} running, {} ended", all.len() - running)
    };
    for one in all {
        row(&mut said, one);
    }
    if number(reply, "forgotten") > 0 {
        said += &format!("\nforgotten: {} that ended earlier", shown(reply, "forgotten"));
    }
    said
}

fn row(said: &mut String, one: &Value) {
    let runs = str_of(one, "status") == "running";
    field(said, one, "\n- sessionId ", "sessionId");
    field(said, one, " · ", "status");
    field(said, one, " · exitCode ", "exitCode");
    field(said, one, " · ", "signal");
    *said += &format!(" · {}", age(number(one, "durationMs")));
    if runs {
        field(said, one, " · pid ", "pid");
    }
    doing(said, " · ", one, true);
    field(said, one, " · ", "name");
    *said += &format!(" · {} ({})", shown(one, "command"), shown(one, "cwd"));
    match str_of(one, "stdinMode") {
        "null" => said.push_str(" · no stdin"),
        "pty" => said.push_str(" · pty"),
        _ => {}
    }
    *said += &format!(" · {} bytes", shown(one, "outputBytes"));
    field(said, one, " · log ", "logPath");
}

/// A page of a log.
fn page(reply: &Value, fence: &Fence) -> String {
    let mut said = String::new();
    field(&mut said, reply, "[log of sessionId ", "sessionId");
    field(&mut said, reply, ", bytes ", "offset");
    field(&mut said, reply, " to ", "nextOffset");
    field(&mut said, reply, " of ", "totalBytes");
    if is_set(reply, "eof") {
        said.push_str("; end of the log");
    } else if number(reply, "nextOffset") >= number(reply, "totalBytes") {
        said.push_str("; all there is so far");
    } else {
        field(&mut said, reply, "; next page: offset ", "nextOffset");
    }
    if number(reply, "omittedBytes") > 0 {
        field(&mut said, reply, "; bytes before it that cannot be given: ", "omittedBytes");
    }
    if is_set(reply, "late") {
        said.push_str("; some of it came after the command had ended");
    }
    field(&mut said, reply, "; ", "failureMessage");
    if is_set(reply, "logTruncated") {
        said += &format!("; {LOG_ENDED}");
    }
    let text = window_text(str_of(reply, "text").as_bytes(), false);
    said + "]\n" + &fence.around("output", &text, "(nothing)")
}

/// What became of input.
fn stdin(reply: &Value) -> String {
    let unit = if number(reply, "written") == 1 { "byte" } else { "bytes" };
    let mut said = format!("wrote {} {unit}", shown(reply, "written"));
    if number(reply, "queued") > 0 {
        said += &format!("; {} of its input are not read yet", shown(reply, "queued"));
    }
    if is_set(reply, "eof") {
        said.push_str("; stdin is closed");
    }
    said + ". poll_process shows what it answers."
}
