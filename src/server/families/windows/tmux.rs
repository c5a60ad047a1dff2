//! tmux: looks after the windows of bash. There is no program tmux behind the method: a
//! window is a session. What the windows show is made in `books`.

use serde_json::value::RawValue;

use super::books::{self, PeekLimits, Seen};
use super::killed;
use super::window::{Scope, Stage, Window};
use super::window_context::{CONTEXT, Context};
use crate::limits::KILL_GRACE_MS;
use crate::pure::process::killed::KilledBy;
use crate::server::engine::contract::{Answer, Call};
use crate::server::families::{Engine, Entry, Method, Numbered, State};
use crate::server::session::SessionId;
use crate::server::session::ending::SIGTERM;
use crate::server::session::wait::{Wait, WaitKind};
use crate::wire::{self, Int, Kind, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "tmux",
    summary: "Lists, shows, ends and polls background windows of bash.",
    params: Params::TABLE,
    other_params: None,
    waits: true,
    starts: false,
    while_closing: false,
    models: &[super::model::TMUX],
    check: |raw| read(raw).map(drop),
    call,
};

wire::params! {
    struct Params {
        action "action": String = required(
            Kind::Choice(&["list", "list-polls", "peek", "kill", "poll", "unpoll"]),
            "what to do",
        );
        window "window": Option<String> = optional(Kind::Text, "the window: \"@3\", or \"3\"");
        poll_interval "pollInterval": Option<f64> = optional(
            Kind::Number,
            "of poll: seconds, more than 0",
        );
        poll_lines "pollLines": Option<Int> = optional(Kind::Integer, "of poll: lines; default 30");
        all "all": bool = optional(
            Kind::Bool,
            "of peek: everything, not only what is new to this client, at most 5 KiB; default false",
        );
        context "context": Option<Box<RawValue>> = optional(
            Kind::Object(CONTEXT),
            "the caller's settings",
        );
    }
}

fn read(raw: &str) -> Result<(Params, Context), RpcError> {
    let params: Params = wire::read_params(raw)?;
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
        let Some(since_ns) = engine.look_for_list(call, METHOD.name) else {
            return Ok(Answer::Waits);
        };
        let seen = books::list(engine, since_ns, &fits);
        engine.cx.answer_tells(call, &seen.told_ends(), false);
        return Ok(Answer::of(&seen));
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
            let (lines, bytes) = (context.peek_lines(), context.max_bytes());
            let limits = PeekLimits { lines, bytes, all: params.all };
            books::peek(engine, id, call.client, limits, &fits)
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
    engine.cx.answer_tells(call, &seen.told_ends(), false);
    Ok(Answer::of(&seen))
}

/// Ends a window: it is listed no more, and nobody is told of its end. Answers when all in it is
/// gone.
fn kill(engine: &mut Engine, call: &Call<'_>, id: SessionId, name: &str) -> Answer {
    let Engine { sessions, cx, .. } = engine;
    cx.books.windows.remove(id);
    let by = call.by(KilledBy::KillWindow);
    if let Some(Entry { core, family: State::Window(own) }) = sessions.get_mut(id) {
        (own.stage, own.poll) = (Stage::Closed, None);
        cx.debug(format_args!("session {id}: its window is closed"));
        cx.kill(core, SIGTERM, KILL_GRACE_MS, by);
        return engine.wait_for(call, id, |ticket, now_ns| {
            Wait::new(ticket, Window::ID, WaitKind::Kill, now_ns)
        });
    }
    if sessions.readopt_left(id, cx)
        && let Some(entry) = sessions.get_mut(id)
    {
        cx.kill(&mut entry.core, SIGTERM, KILL_GRACE_MS, by);
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
