//! tmux: looks after the windows of bash (bash.md). There is no tmux behind it: a window
//! is a session.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::window_context::{CONTEXT, Context};
use super::books::{self, PeekLimits, Seen};
use super::window::{Scope, Stage, Window};
use super::killed;
use crate::engine::contract::{Answer, Call};
use crate::families::{Engine, Entry, Method, Numbered, State};
use crate::limits::KILL_GRACE_MS;
use crate::session::SessionId;
use crate::session::ending::SIGTERM;
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

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let (params, context) = read(call.params)?;
    let action = params.action.as_str();
    let fits = |window: &Scope| context.sees(window);
    if action == "list" {
        return Ok(Answer::of(&books::list(engine, &fits)));
    }
    if action == "list-polls" {
        return Ok(Answer::of(&books::list_polls(engine, &fits)));
    }
    let Some(id) = window_id(params.window.as_deref()) else {
        let text = format!("Error: {action} requires a window id, e.g. @123.");
        return Ok(Answer::of(&Seen::error(text)));
    };
    let seen = match action {
        "peek" => {
            let limits = PeekLimits { lines: context.peek_lines(), bytes: context.max_bytes() };
            books::peek(engine, id, limits, &fits)
        }
        "poll" => match context.poll(params.poll_interval, params.poll_lines) {
            Some(spec) => books::poll(engine, id, spec, &fits),
            None => {
                let text = "Error: pollInterval must be greater than 0 for poll action.";
                Seen::error(text.to_owned())
            }
        },
        "unpoll" => books::unpoll(engine, id, &fits),
        _ => match books::name_of(engine, id, &fits) {
            Ok(name) => return Ok(kill(engine, call, id, &name)),
            Err(none) => none,
        },
    };
    Ok(Answer::of(&seen))
}

/// Ends a window: it is listed no more, and nobody is told of its end. Answers when all in it is
/// gone.
fn kill(engine: &mut Engine, call: &Call<'_>, id: SessionId, name: &str) -> Answer {
    let Engine { sessions, cx, .. } = engine;
    cx.books.windows.remove(id);
    if let Some(Entry { core, family: State::Window(own) }) = sessions.get_mut(id) {
        (own.stage, own.poll) = (Stage::Closed, None);
        cx.debug(format_args!("session {id}: its window is closed"));
        cx.kill(core, SIGTERM, KILL_GRACE_MS);
        return engine.wait_for(call, id, |ticket, now_ns| {
            Wait::new(ticket, Window::ID, WaitKind::Kill, now_ns)
        });
    }
    if sessions.readopt_left(id, cx)
        && let Some(entry) = sessions.get_mut(id)
    {
        cx.kill(&mut entry.core, SIGTERM, KILL_GRACE_MS);
        return Answer::of(&killed(name, id));
    }
    let text = format!("Closed background window: {name} @{id}. It had ended before.");
    Answer::of(&Seen::text(text))
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
