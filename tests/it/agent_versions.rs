//! What agent_execute finds out of a pi before it runs one (agent.md, Is pi there): its version and
//! its tools, each asked once, what is not started, and the requests that wait for that.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::agent_help::*;
use crate::common::wire::Wire;
use crate::common::*;
use serde_json::{Value, json};

/// Makes a pi that notes each of its calls in `calls`, says this to --version and this to --help,
/// and answers.
fn pi_that_says(execd: &Execd, version: &str, help: &str) -> String {
    let path = execd.file("noting-pi");
    write(&path, version, help);
    stream_file(execd, "answer.ndjson", &answer("Done."));
    path.to_string_lossy().into_owned()
}

/// Writes it as a new file that takes the place of an older one, as npm does.
fn write(path: &Path, version: &str, help: &str) {
    let script = format!(
        "#!/bin/bash\nprintf '%s\\n' \"$*\" >> calls\ncase $1 in\n\
         --version) {version}; exit;;\n--help) {help}; exit;;\nesac\ncat answer.ndjson\n"
    );
    let new = path.with_extension("new");
    std::fs::write(&new, script).expect("a script");
    std::fs::set_permissions(&new, PermissionsExt::from_mode(0o700)).expect("its mode");
    std::fs::rename(&new, path).expect("it takes its place");
}

fn calls(execd: &Execd, first: &str) -> Vec<String> {
    let all = std::fs::read_to_string(execd.file("calls")).unwrap_or_default();
    let ours = all.lines().filter(|line| line.split(' ').next() == Some(first));
    ours.map(str::to_owned).collect()
}

fn assert_not_started(result: &Value, words: &[&str]) {
    let found = (&result["success"], &result["finish_reason"], &result["num_turns"]);
    assert_eq!(found, (&json!(false), &json!("error"), &json!(0)), "{result}");
    assert_eq!(result["error_kind"], "not_started", "{result}");
    assert_absent(result, &["exit_code", "log_path", "executor_version"]);
    let error = result["error"].as_str().expect("an error");
    for word in words {
        assert!(error.contains(word), "{word:?} is not in {error:?}");
    }
}

const INSTALL: &str = "npm install -g @earendil-works/pi-coding-agent";

/// rule: agent.md, Is pi there: executor_version is asked before the first run of a path
/// rule: agent.md, Ends: 64 runs at once at most
/// rule: agent.md, The result: executor_version: `pi --version`, remembered for each path
/// rule: agent.md, Is pi there: Runs that wait for the version count for the cap of 64, and begin
///   in their order
#[test]
fn runs_ask_for_the_version_before_they_begin_and_later_ones_know_it() {
    let mut execd = Execd::start();
    let until = until_file("go");
    let pi = pi_that_says(&execd, &format!("{until}; echo 0.87.1"), ":");
    let ask = |execd: &mut Execd, n: usize| {
        let more = json!({"stream": false, "prompt": format!("Task {n:03}")});
        execd.start_request("agent_execute", params(&pi, more))
    };
    let ids: Vec<u64> = (0..64).map(|n| ask(&mut execd, n)).collect();
    for n in 64..200 {
        let id = ask(&mut execd, n);
        let error = execd.reply(id)["error"].clone();
        assert_eq!(error["data"]["reason"], "too_many_sessions", "{error}");
    }
    eventually("the version is asked for", || !calls(&execd, "--version").is_empty());
    assert!(calls(&execd, "--mode").is_empty(), "a run began before its version was known");
    go(&execd, "go");
    let mut sessions = Vec::new();
    for id in ids {
        let result = execd.result_of(id);
        let found = (&result["success"], &result["executor_version"]);
        assert_eq!(found, (&json!(true), &json!("0.87.1")), "{result}");
        let log = result["log_path"].as_str().expect("a log");
        let number = log.rsplit_once("/execd-").and_then(|(_, name)| name.split('-').next());
        sessions.push(number.and_then(|number| number.parse::<u64>().ok()).expect("an id"));
    }
    assert!(sessions.is_sorted(), "sessions in the order of the requests: {sessions:?}");
    // Each asks whose program nobody has asked for; later ones do not.
    let asked = calls(&execd, "--version").len();
    assert!(asked <= 64, "{asked}");
    assert_eq!(calls(&execd, "--mode").len(), 64);
    let id = ask(&mut execd, 200);
    assert_eq!(execd.result_of(id)["executor_version"], "0.87.1");
    assert_eq!(calls(&execd, "--version").len(), asked);
    let counters = execd.result("server_info", json!({}))["counters"].clone();
    assert_eq!(counters["spawns"], 65);
    execd.until_no_session_process();
}

/// rule: agent.md, Is pi there: A version is remembered; agent_health asks anew, and that counts
#[test]
fn a_version_is_remembered_until_agent_health_is_told_another_one() {
    let mut execd = Execd::start();
    let pi = pi_that_says(&execd, "echo 0.87.1", ":");
    let version = |execd: &mut Execd, more: Value| {
        execd.result("agent_execute", params(&pi, more))["executor_version"].clone()
    };
    assert_eq!(version(&mut execd, json!({})), "0.87.1");
    write(Path::new(&pi), "echo 1.52.0", ":");
    let health = execd.result("agent_health", json!({"pi_path": pi}));
    assert_eq!(health["version"], "1.52.0", "{health}");
    // The program is not asked again for another workspace.
    let work = execd.file("work");
    std::fs::create_dir(&work).expect("a directory");
    stream_file(&execd, "work/answer.ndjson", &answer("Done."));
    assert_eq!(version(&mut execd, json!({})), "1.52.0");
    assert_eq!(version(&mut execd, json!({"workspace": work})), "1.52.0");
    assert_eq!(calls(&execd, "--version").len(), 2);
}

/// rule: agent.md, Is pi there: The version is parsed from whatever `pi --version` prints
/// rule: agent.md, Is pi there: A pi that is older than min_version, or tells no version, is not
///   started: both are named, and how to install
/// rule: agent.md, Is pi there: A prerelease of the oldest supported version is older than it
#[test]
fn a_pi_that_is_too_old_or_tells_no_version_is_not_started() {
    let mut execd = Execd::start();
    for (says, version, error) in [
        ("echo 0.69.9", Some("0.69.9"), "pi 0.69.9 is older than 0.70.0"),
        ("echo v0.70.0-beta.1 >&2", Some("0.70.0-beta.1"), "pi 0.70.0-beta.1 is older than 0.70.0"),
        ("true", None, "pi --version printed no version"),
        ("echo garbage", None, "pi --version printed no version: garbage"),
        ("echo 0.87.1; exit 3", None, "pi --version ended with exit code 3: 0.87.1"),
        ("kill -9 $$", None, "pi --version was ended by SIGKILL"),
    ] {
        let pi = pi_that_says(&execd, says, ":");
        let result = execd.result("agent_execute", params(&pi, json!({})));
        assert_not_started(&result, &[error, "0.70.0", "min_version", INSTALL]);
        let health = execd.result("agent_health", json!({"pi_path": pi}));
        assert_eq!((&health["ok"], health["version"].as_str()), (&json!(false), version));
        assert_eq!(health["error"], result["error"], "the same words");
    }
    assert!(calls(&execd, "--mode").is_empty());
    // The warnings of Node come first, and 0.73.1 tells it on stderr.
    let warned = "echo '(node:1) Warning: Node 20.1.0 is old' >&2; echo v0.73.1 >&2";
    let pi = pi_that_says(&execd, warned, ":");
    let result = execd.result("agent_execute", params(&pi, json!({})));
    assert_eq!(result["executor_version"], "0.73.1", "{result}");
    // The same pi is asked again for a newer one: somebody may have brought it up to date.
    let newer = json!({"min_version": "0.80.0"});
    let result = execd.result("agent_execute", params(&pi, newer));
    assert_not_started(&result, &["pi 0.73.1 is older than 0.80.0", INSTALL]);
    let asked = calls(&execd, "--version").len();
    let health = execd.result("agent_health", json!({"pi_path": pi, "min_version": "0.73.1"}));
    assert_eq!((&health["ok"], &health["version"]), (&json!(true), &json!("0.73.1")));
    assert_eq!(calls(&execd, "--version").len(), asked + 1, "health asks itself");
    let old = execd.file("old-pi");
    write(&old, "echo 0.60.0", ":");
    let old = old.to_string_lossy().into_owned();
    let older = json!({"min_version": "0.60.0-rc.1"});
    let result = execd.result("agent_execute", params(&old, older));
    assert_eq!(result["executor_version"], "0.60.0", "{result}");
}

/// rule: agent.md, Is pi there: A version that was not told is asked for again by the next run
#[test]
fn a_version_that_was_not_told_is_asked_for_again() {
    let mut execd = Execd::start();
    let pi = pi_that_says(&execd, "[ -e ready ] && echo 0.87.1", ":");
    let result = execd.result("agent_execute", params(&pi, json!({})));
    assert_not_started(&result, &["pi --version ended with exit code 1"]);
    go(&execd, "ready");
    let result = execd.result("agent_execute", params(&pi, json!({})));
    assert_eq!(result["executor_version"], "0.87.1", "{result}");
    assert_eq!(calls(&execd, "--version").len(), 2);
}

/// rule: agent.md, Is pi there: cancel, the end of a client, a signal and the end of stdin reach a
///   run that waits for the version
#[test]
fn a_run_that_waits_for_the_version_can_be_cancelled() {
    let mut execd = Execd::start();
    let pi = pi_that_says(&execd, &format!("{}; echo 0.87.1", until_file("go")), ":");
    let (first, second) = (params(&pi, json!({})), params(&pi, json!({"prompt": "Second"})));
    let first = execd.start_request("agent_execute", first);
    let second = execd.start_request("agent_execute", second);
    // The end of a client takes along what it has asked for.
    execd.ping();
    let mut other = Wire::connect(&execd.socket());
    other.send("agent_execute", params(&pi, json!({"prompt": "Third"})));
    eventually("the version is asked for", || !calls(&execd, "--version").is_empty());
    assert!(execd.cancel(first));
    let result = execd.result_of(first);
    assert_eq!(
        (&result["success"], &result["finish_reason"]),
        (&json!(false), &json!("cancelled"))
    );
    assert_eq!(result["error_kind"], "other", "{result}");
    assert_eq!(result["args"][0], json!(pi), "{result}");
    assert_absent(&result, &["exit_code", "log_path", "executor_version"]);
    drop(other);
    go(&execd, "go");
    assert_eq!(execd.result_of(second)["success"], true);
    execd.until_no_session_process();
    let ran = calls(&execd, "--mode");
    assert!(matches!(&ran[..], [one] if one.ends_with("Second")), "{ran:?}");
}

/// rule: agent.md, Is pi there: cancel, the end of a client, a signal and the end of stdin reach a
///   run that waits for the version
#[test]
fn the_end_of_execd_reaches_a_run_that_waits_for_the_version() {
    let mut execd = Execd::start();
    let pi = pi_that_says(&execd, "sleep 1000 & sleep 1000", ":");
    let id = execd.start_request("agent_execute", params(&pi, json!({})));
    eventually("the version is asked for", || !calls(&execd, "--version").is_empty());
    execd.signal(libc::SIGTERM);
    assert_eq!(execd.result_of(id)["finish_reason"], "cancelled");
    execd.wait_exit();
    execd.until_no_session_process();
    // At the end of stdin it is asked to the end, and the run goes on to its own.
    let mut execd = Execd::start();
    let pi = pi_that_says(&execd, &format!("{}; echo 0.87.1", until_file("go")), ":");
    let id = execd.start_request("agent_execute", params(&pi, json!({})));
    execd.close_stdin();
    go(&execd, "go");
    assert_eq!(execd.result_of(id)["success"], true);
    assert!(execd.wait_exit().success());
}

/// rule: agent.md, agent_execute, params: Names of tools are mapped without regard to case
/// rule: agent.md, agent_execute, params: Names of tools are held against what `pi --help` lists,
///   else against the known set
#[test]
fn tools_are_held_against_the_list_of_pi() {
    let mut execd = Execd::start();
    let help = "printf 'Built-in Tool Names:\\n  read - Read\\n  shell - Run\\n'";
    let pi = pi_that_says(&execd, "echo 0.87.1", help);
    let tools_of = |execd: &mut Execd, pi: &str, more: Value| {
        let ran = calls(execd, "--mode").len();
        let result = execd.result("agent_execute", params(pi, more));
        assert_eq!(result["success"], true, "{result}");
        let all = calls(execd, "--mode");
        assert_eq!(all.len(), ran + 1);
        let words: Vec<&str> = all[ran].split(' ').collect();
        let at = words.iter().position(|word| *word == "--tools");
        at.map_or(String::new(), |at| words[at + 1].to_owned())
    };
    // Who names none asks for none.
    assert_eq!(tools_of(&mut execd, &pi, json!({})), "");
    assert_eq!(tools_of(&mut execd, &pi, json!({"allowed_tools": []})), "");
    assert!(calls(&execd, "--help").is_empty());
    for _ in 0..2 {
        let tools = json!({"allowed_tools": ["Read", "SHELL"]});
        assert_eq!(tools_of(&mut execd, &pi, tools), "read,shell");
    }
    assert_eq!(calls(&execd, "--help"), ["--help --no-extensions --offline"], "once");
    let unknown = json!({"allowed_tools": ["read", "Bash"]});
    let message = execd.refused("agent_execute", params(&pi, unknown), "allowed_tools");
    let expected = r#"allowed_tools: pi 0.87.1 has no tool "Bash": it has read, shell"#;
    assert_eq!(message, expected);
    // What an extension may have is taken as it is.
    for more in [
        json!({"extensions": ["/x.ts"]}),
        json!({"extra_args": ["-e", "/x.ts"]}),
        json!({"extra_args": ["--extension", "/x.ts"]}),
    ] {
        let more = merged(json!({"allowed_tools": ["READ", "Deploy"]}), more);
        assert_eq!(tools_of(&mut execd, &pi, more), "read,Deploy");
    }
    // One that lists none, or fails, has those that are known.
    for (name, help) in [("pi-1", "echo Usage"), ("pi-2", "exit 1")] {
        let pi = execd.file(name);
        write(&pi, "echo 0.87.1", help);
        let pi = pi.to_string_lossy().into_owned();
        let tools = json!({"allowed_tools": ["Bash", "PowerShell", "ls"]});
        assert_eq!(tools_of(&mut execd, &pi, tools), "bash,powershell,ls");
        let unknown = json!({"allowed_tools": ["shell"]});
        let message = execd.refused("agent_execute", params(&pi, unknown), "allowed_tools");
        let expected = "allowed_tools: pi 0.87.1 has no tool \"shell\": it has read, bash, \
                        powershell, edit, write, grep, find, ls";
        assert_eq!(message, expected);
    }
}
