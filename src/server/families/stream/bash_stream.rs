//! bash_stream: starts a command whose output comes live, stdout and stderr apart.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::output::{Stream, StreamSpec};
use super::{asked, failed, room_for_one};
use crate::limits::{
    JOB_OUTPUT_CHARS_MAX, JOB_WAIT_MAX_MS, JOB_YIELD_MAX_MS, JOB_YIELD_MIN_MS,
    MAX_CONFIGURABLE_POLL_MS, NS_PER_MS, PTY_COLS, PTY_ROWS,
};
use crate::server::engine::conditions::answers_impossible;
use crate::server::engine::contract::{Answer, Call};
use crate::server::engine::launch::{LaunchSpec, Stdin};
use crate::server::families::unified::exec_command::with_prefix;
use crate::server::families::{Engine, Entry, Method, Numbered, unified};
use crate::server::session::Ways;
use crate::server::session::asked::Asked;
use crate::server::session::view::{View, head_and_tail};
use crate::server::session::wait::{Wait, WaitKind};
use crate::server::session::wait_report::WaitReport;
use crate::sys::pty::Size;
use crate::wire::until::UNTIL_CAMEL;
use crate::wire::{self, Int, Kind, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "bash_stream",
    summary: "Runs a command with stdout and stderr apart and its output live. Answers when it \
              has ended, or when yieldMs is over: then poll_process goes on with it.",
    params: Params::TABLE,
    other_params: None,
    waits: true,
    starts: true,
    while_closing: false,
    models: &[super::model::BASH_STREAM],
    check,
    call,
};

wire::params! {
    struct Params {
        command "command": String = required(
            Kind::NonEmptyText,
            "the command, run as bash -c COMMAND",
        ) or "cmd";
        workdir "workdir": Option<String> = optional(
            Kind::NonEmptyText,
            "working directory; default execd's own, against which a relative one is resolved",
        ) or "cwd";
        shell "shell": Option<String> = optional(
            Kind::NonEmptyText,
            "the shell, looked up on PATH; default bash",
        );
        command_prefix "commandPrefix": Option<String> = optional(
            Kind::Text,
            "a line before the command, which no text shows",
        );
        env "env": BTreeMap<String, Option<String>> = optional(
            Kind::Env,
            "variables to set (a string) or to unset (null)",
        );
        yield_ms "yieldMs": Option<Int> = optional(
            Kind::Integer,
            "how long to wait, clamped to 1000..120000 ms, with until or stop to 1000..1800000; \
             default 60000",
        );
        until "until": Option<Box<RawValue>> = optional(
            Kind::Object(UNTIL_CAMEL),
            unified::UNTIL_DOC,
        );
        stop "stop": Option<Box<RawValue>> = optional(
            Kind::Object(UNTIL_CAMEL),
            unified::STOP_DOC,
        );
        on_impossible "onImpossible": Option<String> = optional(
            Kind::Choice(&["answer", "wait"]),
            unified::ON_IMPOSSIBLE_DOC,
        );
        tell_password "tellPassword": bool = optional(Kind::Bool, unified::TELL_PASSWORD_DOC);
        stdin_mode "stdinMode": Option<String> = optional(
            Kind::Choice(&["pipe", "pty", "null"]),
            "\"pipe\" (default); \"pty\": a terminal, with one stream, where what the shell leaves \
             behind gets SIGHUP when the shell ends; \"null\": /dev/null, so that what reads it is at \
             its end",
        );
        timeout_ms "timeoutMs": Option<Int> = optional(
            Kind::Integer,
            "ends the process after so many ms",
        );
        stream "stream": Option<bool> = optional(
            Kind::Bool,
            "sends its output as it comes; default true",
        );
        max_output_chars "maxOutputChars": Option<Int> = optional(
            Kind::Integer,
            "characters of each text of a reply, clamped to 1..150000; default 30000",
        );
        name "name": Option<String> = optional(Kind::Label, "a label for lists; 1 KiB at most");
    }
}

/// Reads the params without acting on them.
fn check(raw: &str) -> Result<(), RpcError> {
    let params: Params = wire::read_params(raw)?;
    asked::conditions(params.until.as_deref(), params.stop.as_deref()).map(drop)
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params)?;
    let conditions = asked::conditions(params.until.as_deref(), params.stop.as_deref())?;
    let asks = conditions.0.is_some() || conditions.1.is_some();
    let answers_impossible = answers_impossible(params.on_impossible.as_deref(), &engine.cx.config);
    room_for_one(engine)?;
    let (settings, text) = (engine.cx.config.stream, engine.cx.config.text);
    let most_ms = if asks { JOB_WAIT_MAX_MS } else { JOB_YIELD_MAX_MS };
    let yield_ms =
        params.yield_ms.map_or(settings.yield_ms, |given| given.clamped(JOB_YIELD_MIN_MS, most_ms));
    let chars = |given: Int| given.clamped(1, JOB_OUTPUT_CHARS_MAX as u64);
    let max_chars =
        params.max_output_chars.map(chars).and_then(|chars| usize::try_from(chars).ok());
    let mode = params.stdin_mode.as_deref();
    let pty = mode == Some("pty");
    let own = StreamSpec {
        yield_ms,
        timeout_ms: params.timeout_ms.map(|given| given.clamped(1, MAX_CONFIGURABLE_POLL_MS)),
        max_chars: max_chars.unwrap_or(settings.max_chars),
        pty,
        head_bytes: if text.keeps_head { head_and_tail(text.max_bytes).0 } else { 0 },
    };
    let spec = LaunchSpec {
        program: params.shell.unwrap_or_else(|| "bash".to_owned()),
        arguments: vec![
            "-c".into(),
            with_prefix(params.command_prefix.as_deref(), &params.command).into(),
        ],
        own_program: None,
        command: params.command,
        name: params.name,
        workdir: params.workdir,
        env: params.env.into_iter().collect(),
        stdin: if mode == Some("null") { Stdin::Null } else { Stdin::Pipe },
        tty: pty.then_some(Size { cols: PTY_COLS, rows: PTY_ROWS }),
        split: true,
        whole: false,
    };
    let id = match engine.launch(&spec) {
        Ok(id) => id,
        Err(failure) => {
            let mut report = failed(engine, &spec, failure);
            report.wait = asks.then(|| WaitReport::not_started(yield_ms).into());
            return Ok(Answer::of(&report));
        }
    };
    let answer = engine.wait_for(call, id, |ticket, now_ns| Wait {
        tells_state: true,
        due_ns: Some(now_ns + yield_ms * NS_PER_MS),
        asked: Asked::new(conditions, 0, now_ns),
        answers_impossible,
        tells_password: params.tell_password && pty,
        ..Wait::new(ticket, Stream::ID, WaitKind::Start, now_ns)
    });
    let used = engine.sessions.next_use();
    if let Some(Entry { core, family }) = engine.sessions.get_mut(id) {
        core.view = View::new(own.unified_bytes());
        core.ways =
            Ways { own_cap: true, drains: true, apart: true, listed_early: true, ..core.ways };
        core.input.cap_bytes = settings.stdin_cap_bytes;
        core.last_used = used;
        let mut stream = Stream::new(own);
        let live = core.waits.first().filter(|_| params.stream.unwrap_or(true));
        live.iter().for_each(|wait| stream.send_live(wait.ticket));
        *family = stream.into();
    }
    Ok(answer)
}
