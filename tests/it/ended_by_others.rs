//! Sessions that somebody else has ended: whoever asks for one is told how and by whom.

use crate::common::wire::Wire;
use crate::common::*;
use serde_json::{Value, json};

/// A command that runs until it is ended.
const STAYS: &str = "echo ready; exec sleep 300";

fn is_forgotten(execd: &mut Execd, id: u64) {
    execd.notification("session_exited", |exit| exit["session_id"] == id);
    assert!(execd.listed(id).is_none());
}

/// Shows that an answer tells who has ended a session with such a command.
fn assert_told(told: &Value, id: u64, by: &str, who: &str) {
    assert_eq!((&told["status"], &told["killed_by"]), (&json!("killed"), &json!(by)), "{told}");
    assert!(told["ended_ms_ago"].is_u64(), "{told}");
    let line = told["note"].as_str().or_else(|| told["summary"].as_str()).expect("a line");
    let begins = format!("session {id} ({STAYS}) was ended by {who} ");
    assert!(line.starts_with(&begins) && line.ends_with(" ago"), "{line}");
}

/// rule: unified-exec.md, Ended by somebody else: is answered with how it ended, by whom, how long
///   ago, its last output and its log
#[test]
fn execd_kill_is_told_to_whoever_asks_for_the_session() {
    let mut execd = Execd::start();
    let id = execd.open_until(STAYS, "ready");
    let row = execd.listed(id).expect("the session");
    let (log, cwd) = (row["log_path"].clone(), row["cwd"].clone());
    let mut kill = crate::common::execd_command();
    kill.args(["kill", &format!("@{id}"), "--socket"]).arg(execd.socket());
    assert!(outside::status_of(&mut kill).success());
    is_forgotten(&mut execd, id);
    let poll = execd.write(json!({"session_id": id}));
    assert_told(&poll, id, "execd kill", "execd kill (a person)");
    assert_eq!((&poll["signal"], output(&poll)), (&json!("SIGTERM"), "ready\n"));
    assert_eq!((&poll["log_path"], &poll["cwd"]), (&log, &cwd));
    assert_absent(&poll, &["failure_message", "session_id"]);
    let write = execd.write(json!({"session_id": id, "chars": "x"}));
    assert_told(&write, id, "execd kill", "execd kill (a person)");
    assert_eq!(write["failure_message"], "the session has exited: the bytes were not delivered");
    let kill = execd.kill(id);
    assert_told(&kill, id, "execd kill", "execd kill (a person)");
    assert_eq!((&kill["found"], &kill["final_output"]), (&json!(true), &json!("ready\n")));
    let waited = execd.result("wait_for", json!({"session_ids": [id]}));
    let row = &waited["sessions"][0];
    assert_eq!((&row["outcome"], &row["killed_by"]), (&json!("exited"), &json!("execd kill")));
    assert_eq!((&row["output"], &row["log_path"]), (&json!("ready\n"), &log));
    let page = execd.result("read_output", json!({"session_id": id}));
    assert_eq!((&page["text"], &page["killed_by"]), (&json!("ready\n"), &json!("execd kill")));
}

/// rule: unified-exec.md, Ended by somebody else: Whoever has ended a session by a call of its own
///   was told by that call
#[test]
fn another_clients_kill_is_told_and_ones_own_is_not_told_twice() {
    let mut execd = Execd::start();
    let mut other = Wire::connect(&execd.socket());
    let id = execd.open_until(STAYS, "ready");
    other.result("kill_session", json!({"session_id": id}));
    is_forgotten(&mut execd, id);
    let poll = execd.write(json!({"session_id": id}));
    assert_told(&poll, id, "kill_session", "kill_session of another client");
    let gone = other.error("write_stdin", json!({"session_id": id}));
    assert_eq!(gone["data"]["reason"], "unknown_session");
    assert_eq!(other.result("kill_session", json!({"session_id": id}))["found"], false);
    // A person who acts through the client is somebody else than whoever asks through it.
    let id = execd.open_until(STAYS, "ready");
    let by = json!({"session_id": id, "by": "the user"});
    assert_eq!(execd.result("kill_session", by)["killed_by"], "the user");
    let poll = execd.write(json!({"session_id": id}));
    assert_told(&poll, id, "the user", "the user");
}

/// rule: unified-exec.md, The table, eviction and warnings: One that is being ended is waited for
/// rule: unified-exec.md, The table, eviction and warnings: One that is being ended is waited for
///   by `write_stdin` as any other
#[test]
fn an_evicted_session_tells_its_end() {
    let mut execd = Execd::with(&["--max-sessions", "2"], &[]);
    let id = execd.open_until(STAYS, "ready");
    let other = session_of(&execd.open("exec sleep 300"));
    execd.open("exec sleep 300");
    let evicted = if execd.listed(id).is_none() { id } else { other };
    let poll = execd.write(json!({"session_id": evicted, "yield_time_ms": 60_000}));
    assert_eq!((&poll["signal"], &poll["killed_by"]), (&json!("SIGTERM"), &json!("eviction")));
    is_forgotten(&mut execd, evicted);
    let poll = execd.write(json!({"session_id": evicted}));
    assert_eq!((&poll["status"], &poll["killed_by"]), (&json!("killed"), &json!("eviction")));
    let note = poll["note"].as_str().expect("a note");
    assert!(note.contains(" was ended by eviction (a new session needed its place) "), "{note}");
}

/// rule: unified-exec.md, Ended by somebody else: at most the last KiB of its output
#[test]
fn the_last_output_is_bounded_and_clean() {
    let mut execd = Execd::start();
    let cmd = "seq 2000; printf '\\033[31mred\\033[0m\\n'; exec sleep 300";
    let id = execd.open_until(cmd, "red");
    let mut other = Wire::connect(&execd.socket());
    other.result("kill_session", json!({"session_id": id, "by": "execd kill"}));
    is_forgotten(&mut execd, id);
    let poll = execd.write(json!({"session_id": id}));
    let text = output(&poll);
    assert!(text.len() <= 1_024 && text.ends_with("2000\nred"), "{text}");
}
