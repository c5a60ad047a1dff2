//! exec_command: starts a command in a session and waits for it, a bounded while
//! (unified-exec.md).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Unified;
use crate::engine::contract::{Answer, Call};
use crate::engine::launch::{LaunchSpec, Stdin};
use crate::limits::{
    DEFAULT_EXEC_YIELD_MS, MAX_ARG_BYTES, MAX_YIELD_TIME_MS, MIN_YIELD_TIME_MS, NS_PER_MS,
    PTY_COLS, PTY_COLS_RANGE, PTY_ROWS, PTY_ROWS_RANGE,
};
use crate::pure::text::utf8::floor_boundary;
use crate::session::report::ExecReport;
use crate::families::{Engine, Method, Numbered};
use crate::session::wait::{Progress, Wait, WaitKind};
use crate::wire::{self, Int, Kind, Param, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "exec_command",
    summary: "Runs a command in a session. Answers when it has exited and its output has ended, \
              or when yield_time_ms is over; then session_id names the running session.",
    params: &[
        Param {
            name: "cmd",
            kind: Kind::NonEmptyText,
            required: true,
            doc: "the command, run as SHELL -c CMD",
        },
        Param::optional(
            "stdin",
            Kind::Choice(&["pipe", "null"]),
            "the command's stdin: \"pipe\" (default) or \"null\"; a terminal has its own",
        ),
        Param::optional(
            "workdir",
            Kind::NonEmptyText,
            "working directory; default execd's own, against which a relative one is resolved",
        ),
        Param::optional("shell", Kind::NonEmptyText, "the shell, looked up on PATH; default bash"),
        Param::optional("tty", Kind::Bool, "runs the command on a pseudo-terminal; default false"),
        Param::optional(
            "cols",
            Kind::Integer,
            "columns of the terminal, clamped to 20..500; default 120",
        ),
        Param::optional(
            "rows",
            Kind::Integer,
            "rows of the terminal, clamped to 5..300; default 30",
        ),
        Param::optional(
            "yield_time_ms",
            Kind::Integer,
            "how long to wait, clamped to 250..30000 ms; default 10000",
        ),
        Param::optional("env", Kind::Env, "variables to set (a string) or to unset (null)"),
        Param::optional(
            "on_exit",
            Kind::Choice(&["none", "wake"]),
            "\"wake\" sends a notification when the session ends and no call observed it",
        ),
        Param::optional("stream", Kind::Bool, "sends progress notifications while waiting"),
        Param::optional("name", Kind::Text, "a label for lists"),
        Param::optional("raw_output", Kind::Bool, "gives output unprocessed instead of clean text"),
    ],
    other_params: None,
    waits: true,
    while_closing: false,
    check,
    call,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    cmd: String,
    stdin: Option<String>,
    workdir: Option<String>,
    shell: Option<String>,
    #[serde(default)]
    tty: bool,
    cols: Option<Int>,
    rows: Option<Int>,
    yield_time_ms: Option<Int>,
    #[serde(default)]
    env: BTreeMap<String, Option<String>>,
    on_exit: Option<String>,
    #[serde(default)]
    stream: bool,
    name: Option<String>,
    #[serde(default)]
    raw_output: bool,
}

/// Reads the params without acting on them.
fn check(raw: &str) -> Result<(), RpcError> {
    wire::read_params::<Params>(raw, METHOD.params).map(drop)
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params, METHOD.params)?;
    let yield_time_ms = params
        .yield_time_ms
        .map_or(DEFAULT_EXEC_YIELD_MS, |given| given.clamped(MIN_YIELD_TIME_MS, MAX_YIELD_TIME_MS));
    let size = crate::sys::pty::Size {
        cols: params.cols.map_or(PTY_COLS, |given| given.clamped_u16(PTY_COLS_RANGE)),
        rows: params.rows.map_or(PTY_ROWS, |given| given.clamped_u16(PTY_ROWS_RANGE)),
    };
    let null = params.stdin.as_deref() == Some("null");
    let spec = LaunchSpec {
        program: params.shell.unwrap_or_else(|| "bash".to_owned()),
        arguments: vec!["-c".to_owned(), params.cmd.clone()],
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
        Err(failure) => return Ok(Answer::of(&failed(engine, &spec, yield_time_ms, failure))),
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
        progress: params.stream.then(Progress::default),
        drains: false,
        ..Wait::new(ticket, Unified::ID, WaitKind::Start, now_ns)
    }))
}

/// The result of a command that could not be started: no protocol error, the tool ran and
/// failed (protocol.md, Errors).
fn failed(
    engine: &mut Engine,
    spec: &LaunchSpec,
    yield_time_ms: u64,
    failure: String,
) -> ExecReport {
    let mut report = ExecReport {
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
        ..ExecReport::default()
    };
    report.write_header();
    report
}

/// The command in the result of one that could not be started: cut, when it is longer than any
/// that can be.
fn shortened(command: &str) -> String {
    let cut = floor_boundary(command, MAX_ARG_BYTES);
    if cut == command.len() { command.to_owned() } else { format!("{}…", &command[..cut]) }
}
