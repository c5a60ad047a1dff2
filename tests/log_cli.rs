//! The facts beside each log, and `execd log` and `execd logs`, for people (logs.md).
#![allow(clippy::disallowed_methods, clippy::print_stderr)] // Tests may use all of std.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use common::outside::until_runs;
use common::{
    Execd, assert_absent, eventually, is_alive, log_of, log_path, pid_of, send_signal, session_of,
};
use serde_json::{Value, json};

// ---- Facts beside each log --------------------------------------------------------------------

/// The file of facts beside the log of a result.
fn meta_of(result: &Value) -> PathBuf {
    log_path(result).with_extension("meta")
}

/// The facts in a file, once there are any that fit.
fn facts(path: &Path, fits: impl Fn(&Value) -> bool) -> Value {
    let mut found = Value::Null;
    eventually("the facts are written", || {
        let text = fs::read_to_string(path).unwrap_or_default();
        found = serde_json::from_str(&text).unwrap_or_default();
        found.is_object() && fits(&found)
    });
    found
}

/// Types what a session ends by; its last result.
fn last_input(execd: &mut Execd, session: u64, chars: &str) -> Value {
    execd.write(json!({"session_id": session, "chars": chars, "yield_time_ms": 60_000}))
}

fn is_over(facts: &Value) -> bool {
    facts["ended_at_ms"].is_i64()
}

/// rule: logs.md, Facts beside each log: Beside `execd-3-ab12cd34.log` stands
///   `execd-3-ab12cd34.meta` (mode 0600): one line of JSON
/// rule: logs.md, Facts beside each log: The command stands there as lists show it, cut at 2,000
///   bytes; never the environment, never input
#[test]
fn the_facts_of_a_session_stand_beside_its_log() {
    let mut execd = Execd::start();
    let cwd = execd.workdir().to_string_lossy().into_owned();
    let cmd = "read line; echo done; exit 7";
    let secret = json!({"env": {"TOKEN": "of-the-environment"}});
    let opened = execd.open_with(cmd, secret);
    let session = session_of(&opened);
    let path = meta_of(&opened);
    let begun = facts(&path, |_| true);
    assert_eq!(begun["session_id"], session);
    assert_eq!((&begun["family"], &begun["command"]), (&json!("unified"), &json!(cmd)));
    assert_eq!((&begun["cwd"], &begun["pid"]), (&json!(cwd), &json!(pid_of(&opened))));
    assert_eq!(begun["execd_pid"], execd.pid());
    assert_absent(&begun, &["ended_at_ms", "exit_code", "total_bytes"]);
    assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o7777, 0o600);
    last_input(&mut execd, session, "of-the-input\n");
    let over = facts(&path, is_over);
    assert_eq!((&over["exit_code"], &over["total_bytes"]), (&json!(7), &json!(5)));
    assert!(over["ended_at_ms"].as_i64() >= over["started_at_ms"].as_i64(), "{over}");
    assert_absent(&over, &["signal", "killed_by", "name", "env"]);
    let text = fs::read_to_string(&path).expect("it is there");
    assert!(!text.contains("of-the-") && text.ends_with("}\n"), "{text}");
    let killed = execd.open("sleep 1000");
    execd.kill(session_of(&killed));
    let over = facts(&meta_of(&killed), is_over);
    assert_eq!((&over["signal"], &over["killed_by"]), (&json!("SIGTERM"), &json!("kill_session")));
    let long = execd.run(&format!(": {}", "x".repeat(9_000)));
    let cut = facts(&meta_of(&long), is_over);
    let cut = cut["command"].as_str().expect("a command").to_owned();
    assert!(cut.len() <= 2_003 && cut.ends_with("x…"), "{cut}");
}

/// rule: logs.md, Facts beside each log: A log writer that was killed is followed by one that
///   writes the facts again
#[test]
fn a_new_log_writer_writes_the_facts_again() {
    let mut execd = Execd::start();
    let opened = execd.open("sleep 1000");
    let over = execd.open("sleep 0.5; exit 3");
    execd.until_listed_exited(session_of(&over));
    let paths = [&opened, &over].map(meta_of);
    facts(&paths[0], |_| true);
    facts(&paths[1], is_over);
    let keeper = execd.keeper();
    until_runs(keeper, "execd-keeper");
    send_signal(keeper, libc::SIGKILL);
    eventually("the keeper is gone", || !is_alive(keeper));
    // Whether the new one has written them before this does not matter: it writes them once.
    for path in &paths {
        fs::write(path, "").expect("it can be written");
    }
    send_signal(execd.keeper(), libc::SIGKILL);
    assert_eq!(facts(&paths[0], |_| true)["command"], "sleep 1000");
    assert_eq!(facts(&paths[1], is_over)["exit_code"], 3);
}

/// rule: logs.md, Facts beside each log: Facts that cannot be written are left out; nothing depends
///   on them
#[test]
fn facts_that_cannot_be_written_are_no_trouble() {
    for more in [&[][..], &["--no-keeper"]] {
        let mut execd = Execd::with(more, &[]);
        let opened = execd.open("read line; echo $line");
        let path = meta_of(&opened);
        facts(&path, |_| true);
        fs::remove_file(&path).expect("it is there");
        fs::create_dir(&path).expect("a directory in its place");
        let session = session_of(&opened);
        let result = last_input(&mut execd, session, "all of it\n");
        assert_absent(&result, &["failure_message", "log_complete", "log_truncated"]);
        assert_eq!(log_of(&result), b"all of it\n");
        let next = execd.run("echo next");
        assert_eq!(facts(&meta_of(&next), is_over)["exit_code"], 0);
    }
}
