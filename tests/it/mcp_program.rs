//! `execd mcp` as a process between its host and its execd: what the end of each means, and what of
//! a host's lines is refused.

use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::outside::{children, comm, output_at_end};
use crate::common::{Execd, eventually, execd_command, is_alive, now, send_signal};
use crate::mcp_help::{call, connected, mcp, output_of, stateless, text_of, tool};

/// The execd that the program has started.
fn execd_of(program: &Execd) -> i32 {
    let all = children(program.pid());
    assert_eq!(all.len(), 1, "{all:?}");
    // It takes its name a moment after it has begun.
    eventually("it has its name", || comm(all[0].0) == "execd");
    all[0].0
}

/// A command that goes on, and its pid.
fn sleeper(program: &mut Execd) -> i32 {
    let params = json!({"cmd": "echo pid $$; exec sleep 1000", "until": {"text": "pid"}});
    let said = call(program, "exec_command", &params);
    let pid = said.lines().find_map(|line| line.strip_prefix("pid "));
    pid.and_then(|pid| pid.parse().ok()).expect(&said)
}

/// rule: mcp.md, The end: When execd ends although nobody has asked it to, open calls are answered,
///   another execd is started, and the next result says so
#[test]
fn when_execd_is_killed_calls_are_answered_and_another_one_serves() {
    let mut program = connected(&[], &json!({}));
    for _ in 0..2 {
        // One that has just begun is not replaced.
        let since = now();
        eventually("it has lived for a while", || since.elapsed() > Duration::from_millis(1_100));
        let (execd, pid) = (execd_of(&program), sleeper(&mut program));
        let waits = json!({"cmd": "echo up; exec sleep 1000", "yield_time_ms": 30_000});
        let mut params = tool("exec_command", &waits);
        params["_meta"] = json!({"progressToken": execd});
        let open = program.start_request("tools/call", &params);
        let is_ours = |note: &Value| note["progressToken"] == execd;
        program.notification("notifications/progress", is_ours);
        send_signal(execd, 9);
        let reply = program.result_of(open);
        let (text, is_error) = text_of(&reply);
        assert!(is_error && text.contains("execd has ended (by signal 9)"), "{text}");
        eventually("its sessions have ended", || !is_alive(pid));
        let said = call(&mut program, "exec_command", &json!({"cmd": "echo again"}));
        assert_eq!(output_of(&said), "again\n");
        assert!(said.contains("event: execd has ended (by signal 9)") || text.contains("event:"));
        assert_ne!(execd_of(&program), execd);
    }
}

/// rule: mcp.md, The end: A SIGKILL of the program, and of it and execd, leaves nothing behind
#[test]
fn when_the_program_is_killed_nothing_is_left() {
    for both in [false, true] {
        let mut program = connected(&[], &json!({}));
        let (execd, pid) = (execd_of(&program), sleeper(&mut program));
        send_signal(program.pid(), 9);
        if both {
            send_signal(execd, 9);
        }
        eventually("all have ended", || ![execd, pid].iter().any(|pid| is_alive(*pid)));
        program.wait_exit();
    }
}

/// rule: mcp.md, The end: A signal ends the sessions, and the exit status names it
#[test]
fn a_signal_ends_both() {
    for (signal, status) in [(15, 143), (1, 129)] {
        let mut program = connected(&[], &json!({}));
        let (execd, pid) = (execd_of(&program), sleeper(&mut program));
        send_signal(program.pid(), signal);
        assert_eq!(program.exit_code(), Some(status));
        assert!(!is_alive(execd) && !is_alive(pid));
    }
}

/// rule: mcp.md, The end: Calls that a shell pipes in are answered before the program ends
#[test]
fn calls_of_a_pipe_are_answered_before_its_end() {
    let lines: String = ["sleep 0.3; echo first", "sleep 0.6; echo second"]
        .iter()
        .zip(1..)
        .map(|(cmd, id)| {
            let params = tool("exec_command", &json!({"cmd": cmd}));
            let line =
                json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            format!("{line}\n")
        })
        .collect();
    let mut command = execd_command();
    command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("execd mcp");
    std::io::Write::write_all(&mut child.stdin.take().expect("stdin"), lines.as_bytes()).unwrap();
    let ended = output_at_end(child);
    assert_eq!(ended.status.code(), Some(0));
    let said = String::from_utf8(ended.stdout).expect("UTF-8");
    let texts: Vec<String> = said
        .lines()
        .map(|line| text_of(&serde_json::from_str::<Value>(line).expect(line)["result"]).0.into())
        .collect();
    assert_eq!(texts.len(), 2, "{said}");
    assert_eq!([output_of(&texts[0]), output_of(&texts[1])], ["first\n", "second\n"]);
}

/// What had come was left where the end of stdin was read while much was unsent.
/// rule: mcp.md, The end: Calls that a shell pipes in are answered before the program ends
#[test]
fn all_of_a_long_file_is_answered() {
    let dir = tempfile::tempdir().expect("a directory");
    let (from, to) = (dir.path().join("in"), dir.path().join("out"));
    let line =
        |id: u64| format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}));
    // Some 8 KiB each: more than what may be unsent.
    std::fs::write(&from, (1..=2_000).map(line).collect::<String>()).expect("lines");
    let mut command = execd_command();
    command.arg("mcp").stdin(File::open(&from).expect("in"));
    command.stdout(File::create(&to).expect("out")).stderr(Stdio::piped());
    let ended = output_at_end(command.spawn().expect("execd mcp"));
    assert_eq!(ended.status.code(), Some(0));
    let said = std::fs::read_to_string(&to).expect("answers");
    assert_eq!(said.lines().count(), 2_000);
}

/// The execd behind the program took the program's own silence for the host's.
/// rule: mcp.md, The end: A host that beats keeps its execd
#[test]
fn a_lease_is_about_the_hosts_lines() {
    let mut program = mcp(&["--lease", "1500ms"]);
    let pid = sleeper(&mut program);
    let execd = execd_of(&program);
    let since = now();
    eventually("the lease has passed twice", || {
        program.result("tools/list", json!({}));
        since.elapsed() > Duration::from_millis(3_200)
    });
    assert!(is_alive(execd) && is_alive(pid));
    assert_eq!(program.exit_code(), Some(0));
    assert!(!is_alive(execd) && !is_alive(pid));
}

/// rule: mcp.md, The end: A request that listens gets its result at the end of stdin
#[test]
fn a_request_that_listens_is_answered_at_the_end() {
    let mut program = mcp(&[]);
    let params = json!({"_meta": stateless("2026-07-28"), "notifications": {}});
    let listens = program.start_request("subscriptions/listen", &params);
    program.notification("notifications/subscriptions/acknowledged", |_| true);
    program.close_stdin();
    let reply = program.reply(listens);
    assert_eq!(reply["result"]["resultType"], "complete", "{reply}");
    let id = &reply["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(*id, json!(listens), "{reply}");
    assert_eq!(program.exit_code(), Some(0));
}

/// rule: mcp.md, Versions: What a version asks of a request is asked
#[test]
fn requests_that_are_unlike_their_version_are_refused() {
    let mut program = mcp(&[]);
    let version = "io.modelcontextprotocol/protocolVersion";
    for (line, code, id, part) in [
        (json!({"id": 1, "method": "ping"}), -32600, json!(1), "jsonrpc"),
        (json!({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}), -32600, Value::Null, "id"),
        (
            json!({"jsonrpc": "2.0", "id": 2, "method": "initialize"}),
            -32602,
            json!(2),
            "protocolVersion",
        ),
        (
            json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list",
                "params": {"_meta": {version: "2026-07-28"}}}),
            -32602,
            json!(3),
            "clientCapabilities",
        ),
    ] {
        program.send_line(&line.to_string());
        let reply: Value = serde_json::from_str(&program.line()).expect("JSON");
        assert_eq!(reply["error"]["code"], code, "{reply}");
        assert_eq!(reply["id"], id, "{reply}");
        let said = reply["error"].to_string();
        assert!(said.contains(part), "{reply}");
    }
    // What a client could do at `initialize` is nothing to a request that says it anew.
    let params = |channel: Value| {
        let mut meta = stateless("2026-07-28");
        meta["io.modelcontextprotocol/clientCapabilities"] = channel;
        json!({ "_meta": meta })
    };
    let bare = program.result("tools/list", params(json!({})));
    let mut program = connected(&[], &json!({"experimental": {"claude/channel": {}}}));
    assert_eq!(program.result("tools/list", params(json!({}))), bare);
    let channel = json!({"experimental": {"claude/channel": {}}});
    assert_ne!(program.result("tools/list", params(channel)), bare);
}
