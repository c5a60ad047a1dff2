//! exec_command: starts a command in a session and waits for it, a bounded while.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::{Unified, tool_time_utc};
use crate::limits::{
    DEFAULT_EXEC_YIELD_MS, MAX_ARG_BYTES, MAX_YIELD_TIME_MS, MIN_EMPTY_YIELD_TIME_MS,
    MIN_YIELD_TIME_MS, NS_PER_MS, PTY_COLS, PTY_COLS_RANGE, PTY_ROWS, PTY_ROWS_RANGE,
};
use crate::pure::text::utf8::floor_boundary;
use crate::server::engine::conditions;
use crate::server::engine::contract::{Answer, Call};
use crate::server::engine::launch::{LaunchSpec, Stdin};
use crate::server::families::{Engine, Method, Numbered};
use crate::server::session::asked::Asked;
use crate::server::session::report::ExecReport;
use crate::server::session::wait::{Progress, Wait, WaitKind};
use crate::server::session::wait_report::WaitReport;
use crate::wire::until::{self, Spelling::Snake, UNTIL};
use crate::wire::{self, Int, Kind, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "exec_command",
    summary: "Runs a command in a session. Answers when it has exited and its output has ended, \
              or when yield_time_ms is over; then session_id names the running session.",
    params: Params::TABLE,
    other_params: None,
    waits: true,
    starts: true,
    while_closing: false,
    models: &[super::model::EXEC_COMMAND],
    check,
    call,
};

wire::params! {
    struct Params {
        cmd "cmd": String = required(Kind::NonEmptyText, "the command, run as SHELL -c CMD")
            or "command";
        stdin "stdin": Option<String> = optional(
            Kind::Choice(&["pipe", "null"]),
            "the command's stdin: \"pipe\" (default) or \"null\"; a terminal has its own",
        );
        workdir "workdir": Option<String> = optional(
            Kind::NonEmptyText,
            "working directory; default execd's own, against which a relative one is resolved",
        ) or "cwd";
        shell "shell": Option<String> = optional(
            Kind::NonEmptyText,
            "the shell, looked up on PATH; default bash",
        );
        command_prefix "command_prefix": Option<String> = optional(
            Kind::Text,
            "a line before the command, which no text shows",
        );
        tty "tty": bool = optional(
            Kind::Bool,
            "runs the command on a pseudo-terminal; default false",
        );
        cols "cols": Option<Int> = optional(
            Kind::Integer,
            "columns of the terminal, clamped to 20..500; default 120",
        );
        rows "rows": Option<Int> = optional(
            Kind::Integer,
            "rows of the terminal, clamped to 5..300; default 30",
        );
        yield_time_ms "yield_time_ms": Option<Int> = optional(
            Kind::Integer,
            "how long to wait, clamped to 250..30000 ms, with until or stop to 5000 ms..cap of a \
             poll; default 10000",
        );
        max_empty_poll_ms "max_empty_poll_ms": Option<Int> = optional(
            Kind::Integer,
            super::CAP_DOC,
        );
        until "until": Option<Box<RawValue>> = optional(Kind::Object(UNTIL), super::UNTIL_DOC);
        stop "stop": Option<Box<RawValue>> = optional(Kind::Object(UNTIL), super::STOP_DOC);
        on_impossible "on_impossible": Option<String> = optional(
            Kind::Choice(&["answer", "wait"]),
            super::ON_IMPOSSIBLE_DOC,
        );
        env "env": BTreeMap<String, Option<String>> = optional(
            Kind::Env,
            "variables to set (a string) or to unset (null)",
        );
        on_exit "on_exit": Option<String> = optional(
            Kind::Choice(&["none", "wake"]),
            "\"wake\" sends a notification when the session ends and no call observed it",
        );
        stream "stream": bool = optional(Kind::Bool, "sends progress notifications while waiting");
        name "name": Option<String> = optional(Kind::Label, "a label for lists; 1 KiB at most");
        raw_output "raw_output": bool = optional(
            Kind::Bool,
            "gives output unprocessed instead of clean text",
        );
        header "header": Option<String> = optional(
            Kind::Choice(super::HEADER_WORDS),
            super::HEADER_DOC,
        );
        events "events": bool = optional(Kind::Bool, super::EVENTS_DOC);
        until_password "until_password": bool = optional(Kind::Bool, super::UNTIL_PASSWORD_DOC);
    }
}

/// Reads the params without acting on them.
fn check(raw: &str) -> Result<(), RpcError> {
    let params: Params = wire::read_params(raw)?;
    until::read(params.until.as_deref(), params.stop.as_deref(), Snake).map(drop)
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params)?;
    let conditions = until::read(params.until.as_deref(), params.stop.as_deref(), Snake)?;
    let asks = conditions.0.is_some() || conditions.1.is_some();
    let own_cap_ms = engine.cx.config.max_empty_poll_ms;
    let (low_ms, high_ms) = match asks {
        true => (MIN_EMPTY_YIELD_TIME_MS, super::poll_cap_ms(params.max_empty_poll_ms, own_cap_ms)),
        false => (MIN_YIELD_TIME_MS, MAX_YIELD_TIME_MS),
    };
    let yield_time_ms = params
        .yield_time_ms
        .map_or(DEFAULT_EXEC_YIELD_MS.min(high_ms), |given| given.clamped(low_ms, high_ms));
    let answers_impossible =
        conditions::answers_impossible(params.on_impossible.as_deref(), &engine.cx.config);
    let size = crate::sys::pty::Size {
        cols: params.cols.map_or(PTY_COLS, |given| given.clamped_u16(PTY_COLS_RANGE)),
        rows: params.rows.map_or(PTY_ROWS, |given| given.clamped_u16(PTY_ROWS_RANGE)),
    };
    let null = params.stdin.as_deref() == Some("null");
    let spec = LaunchSpec {
        program: params.shell.unwrap_or_else(|| "bash".to_owned()),
        arguments: vec![
            "-c".into(),
            with_prefix(params.command_prefix.as_deref(), &params.cmd).into(),
        ],
        own_program: None,
        command: params.cmd,
        name: params.name,
        workdir: params.workdir,
        env: params.env.into_iter().collect(),
        stdin: if null { Stdin::Null } else { Stdin::Pipe },
        tty: params.tty.then_some(size),
        split: false,
        whole: false,
    };
    let id = match engine.launch(&spec) {
        Ok(id) => id,
        Err(failure) => {
            let mut report = failed(engine, &spec, yield_time_ms, failure);
            report.wait = asks.then(|| WaitReport::not_started(yield_time_ms));
            report.events = engine.cx.answer_tells(call, &[], params.events);
            let compact = super::is_compact(params.header.as_deref());
            report.write_header(super::header_style(compact, &engine.cx));
            return Ok(Answer::of(&report));
        }
    };
    if let Some(entry) = engine.sessions.get_mut(id) {
        entry.family = Unified.into();
        let wakes = params.on_exit.as_deref() == Some("wake");
        entry.core.wake = wakes.then_some(call.client);
    }
    Ok(engine.wait_for(call, id, |ticket, now_ns| Wait {
        due_ns: Some(now_ns + yield_time_ms * NS_PER_MS),
        yield_time_ms: Some(yield_time_ms),
        raw_output: params.raw_output,
        tells_events: params.events,
        compact: super::is_compact(params.header.as_deref()),
        progress: params.stream.then(Progress::default),
        drains: false,
        note: super::clamp_note("yield_time_ms", params.yield_time_ms, yield_time_ms),
        asked: Asked::new(conditions, 0, now_ns),
        answers_impossible,
        until_password: params.until_password && params.tty,
        tells_state: true,
        ..Wait::new(ticket, Unified::ID, WaitKind::Start, now_ns)
    }))
}

/// A command as its shell gets it: behind the line that is to stand before it, if any.
pub(crate) fn with_prefix(prefix: Option<&str>, command: &str) -> String {
    match prefix {
        Some(prefix) => format!("{prefix}\n{command}"),
        None => command.to_owned(),
    }
}

/// The result of a command that could not be started: no protocol error, the tool ran and
/// failed (protocol.md, Errors).
fn failed(
    engine: &mut Engine,
    spec: &LaunchSpec,
    yield_time_ms: u64,
    failure: String,
) -> ExecReport {
    ExecReport {
        exit_code: Some(-1),
        failure_message: Some(failure),
        cwd: engine.cx.resolved_cwd(spec.workdir.as_deref()),
        command: shortened(&spec.command),
        tty: spec.tty.is_some(),
        yield_time_ms: Some(yield_time_ms),
        chunk_id: engine.cx.chunk_id(),
        wait_status: Some("completed"),
        wait_mode: Some("relative"),
        effective_wait_ms: Some(0),
        tool_time_utc: engine.cx.others_run(0).then(tool_time_utc),
        ..ExecReport::default()
    }
}

/// The command in the result of one that could not be started: cut, when it is longer than any
/// that can be.
fn shortened(command: &str) -> String {
    let cut = floor_boundary(command, MAX_ARG_BYTES);
    if cut == command.len() { command.to_owned() } else { format!("{}…", &command[..cut]) }
}
