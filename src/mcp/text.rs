//! What a model reads of a result: the same text that it reads in pi (docs/pi.md). The replies of
//! most methods have it already; what is left is put together here.

use serde_json::Value;

use super::fields::{is_set, items, shown, str_of};
use super::output::Fence;
use super::stream_text;
use super::tools::Tool;

/// What bash says of a command in the background, and what is true here.
const PROMISE: &str = "Result will be reported when it finishes.";
const TRUTH: &str = "The next result of a tool after its end tells it; tmux peek shows its output.";

/// What to do about a session that there is not.
const KNOWN: &str = "; list_sessions has those that there are";
const KNOWN_TO_STREAM: &str = "; list_processes has those that there are";

/// The text of a refusal, with a next step.
pub(super) fn refused(tool: Tool, message: &str) -> String {
    let next = match tool.model.set {
        _ if !message.contains("unknown session") => "",
        "stream" => KNOWN_TO_STREAM,
        _ => KNOWN,
    };
    format!("{message}{next}")
}

/// Whether a cancelled call's reply tells what no other one tells: output, events, how a session
/// has ended, what a wait has come to.
pub(super) fn is_news(reply: &Value) -> bool {
    let ended =
        |one: &Value| ["exit_code", "signal", "exitCode"].iter().any(|name| !one[*name].is_null());
    let rows = items(reply, "sessions");
    has_output(reply)
        || ended(reply)
        || !items(reply, "events").is_empty()
        || rows.iter().any(|row| ended(row) || !matches!(str_of(row, "outcome"), "" | "pending"))
}

/// Whether a reply has output of a command, which no other reply has.
fn has_output(reply: &Value) -> bool {
    ["output", "stdout", "stderr", "final_output"]
        .iter()
        .any(|name| !str_of(reply, name).is_empty())
}

/// The text of a tool's result, and whether it is an error's; `asked`: the call's params.
pub(super) fn of(tool: Tool, reply: &Value, asked: &Value, fence: &Fence) -> (String, bool) {
    if tool.model.set == "stream" {
        return (stream_text::of(tool.row.name, reply, asked, fence), false);
    }
    let unknown = reply.get("found").is_some_and(|found| found == false);
    let said = match tool.row.name {
        "kill_session" => killed(reply, fence),
        "set_on_exit" if unknown => {
            format!("unknown session_id: {}{KNOWN}", shown(asked, "session_id"))
        }
        "set_on_exit" => {
            let status = str_of(reply, "status").replace('_', " ");
            let status = if status.is_empty() { "unknown" } else { &status };
            format!("session {}: {status}", shown(asked, "session_id"))
        }
        "resize_session" => {
            let (cols, rows) = (shown(reply, "cols"), shown(reply, "rows"));
            format!("session {}: {cols}x{rows}", shown(asked, "session_id"))
        }
        _ if reply.get("header").is_some() => {
            let output = fence.around("output", str_of(reply, "output"), "(no output)");
            format!("{}\n{output}", str_of(reply, "header"))
        }
        _ if reply.get("text").is_some() => str_of(reply, "text").replace(PROMISE, TRUTH),
        _ => reply.to_string(),
    };
    (said, unknown || is_set(reply, "is_error"))
}

fn killed(reply: &Value, fence: &Fence) -> String {
    if !is_set(reply, "found") {
        let mut said = format!("unknown session_id: {}{KNOWN}", shown(reply, "session_id"));
        // Its text has no place for the events that came with the answer.
        for event in items(reply, "events") {
            let (id, what) = (shown(event, "session_id"), str_of(event, "what"));
            let command = shown(event, "command");
            let how = shown(event, "exit_code") + &shown(event, "signal");
            said += &format!("\nevent: session {id} ({command}) {what} {how}");
        }
        return said;
    }
    let mut said = str_of(reply, "summary").to_owned();
    for one in items(reply, "survivors") {
        let (pid, command) = (shown(one, "pid"), shown(one, "command"));
        said += &format!("\nnot ended: {pid} {command} ({})", str_of(one, "reason"));
    }
    match str_of(reply, "final_output") {
        "" => said,
        output => said + "\n" + &fence.around("output", output, ""),
    }
}
