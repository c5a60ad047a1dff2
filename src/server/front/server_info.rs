//! server_info: what this execd is, its limits in force, its counts and counters.

use serde_json::json;

use crate::config::OnEof;
use crate::limits::{
    HEAD_TAIL_MAX_BYTES, MAX_PENDING_REQUESTS, NS_PER_MS, PROTOCOL_REVISION, SOCKET_CLIENTS_MAX,
    STDIN_BACKLOG_BYTES,
};
use crate::server::engine::contract::{Answer, Call};
use crate::server::families::{Engine, Method};
use crate::sys::host;
use crate::wire::{self, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "server_info",
    summary: "Name, version, pid, protocol revision, limits in force, counts and counters.",
    params: Params::TABLE,
    other_params: None,
    waits: false,
    starts: false,
    while_closing: true,
    models: &[],
    check: wire::check::<Params>,
    call,
};

wire::params! {
    struct Params {}
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let Params {} = wire::read_params(call.params)?;
    let live = engine.sessions.live_count();
    let finished = engine.sessions.listed().count() - live;
    let (config, counters) = (&engine.cx.config, engine.cx.counters);
    let on_eof = if config.on_eof == OnEof::Wait { "wait" } else { "end" };
    let mut info = json!({
        "name": "execd",
        "version": env!("CARGO_PKG_VERSION"),
        "pid": host::pid(),
        "protocol": PROTOCOL_REVISION,
        "instance": engine.launcher.instance,
        "uptime_ms": (engine.cx.now_ns - engine.started_ns) / NS_PER_MS,
        "limits": {
            "max_sessions": config.max_sessions,
            "max_line_bytes": config.max_line_bytes,
            "max_pending_requests": MAX_PENDING_REQUESTS,
            "max_output_bytes": config.text.max_bytes,
            "max_output_lines": config.text.max_lines,
            "max_empty_poll_ms": config.max_empty_poll_ms,
            "retention_bytes": HEAD_TAIL_MAX_BYTES,
            "stdin_backlog_bytes": STDIN_BACKLOG_BYTES,
            "on_eof": on_eof,
        },
        "sessions": {"live": live, "finished": finished},
        "clients": {"connected": engine.cx.clients.connected(), "max": SOCKET_CLIENTS_MAX},
        "pending_requests": engine.pending_count(),
        "counters": {
            "requests": counters.requests,
            "spawns": counters.spawns,
            "exits": counters.exits,
            "bytes_read": counters.bytes_read,
            "bytes_logged": engine.cx.keeper.bytes_handed,
            "loop_turns": counters.turns,
            "stale_events": counters.stale_events,
            "log_write_stalls": engine.cx.keeper.stalls,
            "slowest_turn_us": counters.slowest_turn_ns / 1_000,
        },
    });
    // A field that does not apply is left out, never null (protocol.md).
    let degraded: Vec<&String> = engine.degraded.all().collect();
    if !degraded.is_empty() {
        info["degraded"] = json!(degraded);
    }
    if let Some(path) = engine.socket_path() {
        info["socket"] = json!(path.to_string_lossy());
    }
    if let Some(pid) = engine.cx.keeper.pid() {
        info["keeper_pid"] = json!(pid);
    }
    Ok(Answer::of(&info))
}
