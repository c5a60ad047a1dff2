//! tmux: looks after the windows of bash (bash.md). There is no tmux behind it: a window
//! is a session.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::window_context::{CONTEXT, Context};
use crate::engine::Daemon;
use crate::engine::contract::{Answer, Call, Method};
use crate::families::windows::window::Scope;
use crate::families::windows::{PeekLimits, Seen};
use crate::session::SessionId;
use crate::session::wait::{Wait, WaitKind};
use crate::wire::{self, Int, Kind, Param, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "tmux",
    summary: "Lists, shows, ends and polls background windows of bash.",
    params: &[
        Param {
            name: "action",
            kind: Kind::Choice(&["list", "list-polls", "peek", "kill", "poll", "unpoll"]),
            required: true,
            doc: "what to do",
        },
        Param::optional("window", Kind::Text, "the window: \"@3\", or \"3\""),
        Param::optional("pollInterval", Kind::Number, "of poll: seconds, more than 0"),
        Param::optional("pollLines", Kind::Integer, "of poll: lines; default 30"),
        Param::optional("context", Kind::Object(CONTEXT), "the caller's settings"),
    ],
    other_params: None,
    waits: true,
    while_closing: false,
    check,
    call,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Params {
    action: String,
    window: Option<String>,
    poll_interval: Option<f64>,
    poll_lines: Option<Int>,
    context: Option<Box<RawValue>>,
}

/// Reads the params without acting on them.
fn check(raw: &str) -> Result<(), RpcError> {
    read(raw).map(drop)
}

fn read(raw: &str) -> Result<(Params, Context), RpcError> {
    let params: Params = wire::read_params(raw, METHOD.params)?;
    let context = Context::read(params.context.as_deref())?;
    Ok((params, context))
}

/// The session that a window's name in a request means.
fn window_id(window: Option<&str>) -> Option<SessionId> {
    let window = window?.trim();
    let digits = window.strip_prefix('@').unwrap_or(window);
    let fits = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| fits)
}

fn call(daemon: &mut Daemon, call: &Call<'_>) -> Result<Answer, RpcError> {
    let (params, context) = read(call.params)?;
    let action = params.action.as_str();
    let fits = |window: &Scope| context.sees(window);
    if action == "list" {
        return Ok(Answer::of(&daemon.list_windows(&fits)));
    }
    if action == "list-polls" {
        return Ok(Answer::of(&daemon.list_polls(&fits)));
    }
    let Some(id) = window_id(params.window.as_deref()) else {
        let text = format!("Error: {action} requires a window id, e.g. @123.");
        return Ok(Answer::of(&Seen::error(text)));
    };
    let seen = match action {
        "peek" => {
            let limits = PeekLimits { lines: context.peek_lines(), bytes: context.max_bytes() };
            daemon.peek_window(id, limits, &fits)
        }
        "poll" => match context.poll(params.poll_interval, params.poll_lines) {
            Some(spec) => daemon.poll_window(id, spec, &fits),
            None => {
                let text = "Error: pollInterval must be greater than 0 for poll action.";
                Seen::error(text.to_owned())
            }
        },
        "unpoll" => daemon.unpoll_window(id, &fits),
        _ => match daemon.window_to_close(id, &fits) {
            Ok(name) => return Ok(kill(daemon, call, id, &name)),
            Err(none) => none,
        },
    };
    Ok(Answer::of(&seen))
}

/// Ends a window; answers when all in it is gone.
fn kill(daemon: &mut Daemon, call: &Call<'_>, id: SessionId, name: &str) -> Answer {
    if let Some(seen) = daemon.close_window(id, name) {
        return Answer::of(&seen);
    }
    if let Some(ticket) = daemon.open_ticket(call, Some(id)) {
        let now_ns = daemon.now_ns;
        daemon.add_wait(id, Wait::new(ticket, WaitKind::WindowKill, now_ns));
    }
    Answer::Waits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_named_with_or_without_its_sign() {
        for (given, id) in [
            (Some("@3"), Some(3)),
            (Some("3"), Some(3)),
            (Some(" @12 "), Some(12)),
            (Some("@"), None),
            (Some("@+3"), None),
            (Some("@@3"), None),
            (Some("dev"), None),
            (Some("@99999999999999999999999"), None),
            (None, None),
        ] {
            assert_eq!(window_id(given), id, "{given:?}");
        }
    }
}
