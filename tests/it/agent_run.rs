//! agent_execute from its params to its result (agent.md): what pi is started with, and what is
//! told of it. All of a result is in tests/fixtures/said/agent.txt.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use crate::agent_help::*;
use crate::common::*;
use serde_json::{Value, json};

/// Has our pi note its arguments and its stdin, and answer.
const NOTE: &str = r#"
printf '%s\0' "$@" > argv
readlink /proc/self/fd/0 > stdin
cat answer.ndjson
"#;

fn noted(execd: &Execd, name: &str) -> String {
    std::fs::read_to_string(execd.file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn arguments(execd: &mut Execd, more: Value) -> (Vec<String>, Value) {
    stream_file(execd, "answer.ndjson", &answer("Done."));
    let result = run(execd, NOTE, more);
    let argv = noted(execd, "argv");
    let mut words: Vec<String> = argv.split('\0').map(str::to_owned).collect();
    words.pop();
    (words, result)
}

/// rule: agent.md, agent_execute, params: system_prompt is put before the prompt with a blank line,
///   or handed to pi's flag
/// rule: agent.md, agent_execute, params: allowed_tools: absent, `[]`, a list
/// rule: agent.md, agent_execute, params: thinking and session become `--thinking`, `--session`,
///   without a session `--no-session`
/// rule: agent.md, agent_execute, params: workspace, env, pi_path (PATH, EXECD_PI), extra_args,
///   extensions
/// rule: agent.md, Invocation: `pi --mode json --model M --no-session -p … PROMPT`, argv exactly
/// rule: agent.md, Invocation: A prompt that starts with `-` or `@` is no flag and no file to pi
/// rule: agent.md, Invocation: stdin of pi is /dev/null
#[test]
fn pi_is_started_as_the_invocation_says() {
    let mut execd = Execd::start();
    let head = ["--mode", "json", "--model", "fake/scripted"];
    for (more, rest) in [
        (json!({}), vec!["--no-session", "-p", "Do it"]),
        (json!({"prompt": "@/etc/passwd"}), vec!["--no-session", "-p", " @/etc/passwd"]),
        (json!({"prompt": "a\nb 'c' \"d\" $e"}), vec!["--no-session", "-p", "a\nb 'c' \"d\" $e"]),
        (
            json!({"allowed_tools": ["read", "bash"], "session": "abc", "thinking": "high"}),
            vec!["--session", "abc", "-p", "--tools", "read,bash", "--thinking", "high", "Do it"],
        ),
        (
            json!({"extensions": ["/a", "/b"], "extra_args": ["--offline"]}),
            vec!["--no-session", "-p", "-e", "/a", "-e", "/b", "--offline", "Do it"],
        ),
        (json!({"api_key": "key"}), vec!["--no-session", "-p", "Do it"]),
    ] {
        let (words, result) = arguments(&mut execd, more.clone());
        assert_eq!(words, [&head[..], &rest[..]].concat(), "{more}");
        assert_eq!(result["success"], true, "{result}");
        assert_eq!(noted(&execd, "stdin"), "/dev/null\n");
    }
}

/// rule: agent.md, agent_execute, params: raw_log: the log has pi's stream as pi wrote it, and no
///   events; not with an api_key
#[test]
fn the_log_has_the_raw_stream_where_that_is_asked_for() {
    let mut execd = Execd::start();
    let text = ndjson(&answer("Done.")) + "no event\n";
    std::fs::write(execd.file("stream"), &text).expect("a stream");
    let result = run(&mut execd, "cat stream", json!({"raw_log": true}));
    assert_eq!(String::from_utf8_lossy(&log_of(&result)), text);
    let pi = execd.file("pi").to_string_lossy().into_owned();
    let error = execd.error("agent_execute", params(&pi, json!({"raw_log": true, "api_key": "k"})));
    let message = "raw_log must not be given with api_key: pi may write the key";
    assert_eq!(error["message"], message);
}

/// rule: agent.md, Ends: What is told when the stream has ended is in the log too
#[test]
fn what_is_told_at_the_end_of_the_stream_is_logged() {
    let mut execd = Execd::start();
    let lines = ndjson(&begun());
    std::fs::write(execd.file("stream"), lines.trim_end()).expect("a stream");
    let turn = r#"{"type":"turn_start"}"#;
    let script = format!("cat stream; printf '\\n{turn}'; printf oops >&2");
    let result = run(
        &mut execd,
        &script,
        json!({"stream": false, "model": "anthropic/x", "api_key": "oops/oops"}),
    );
    let log = String::from_utf8(log_of(&result)).expect("UTF-8");
    assert!(log.contains(r#""delta":"Half"}"#) && log.contains("oops"), "{log}");
    assert_eq!(log.matches("turn_start").count(), 2, "{log}");
}

/// rule: agent.md, agent_health, agent_capabilities: agent_health takes 5 s at most
#[test]
fn a_pi_that_does_not_tell_its_version_holds_nobody_up_for_long() {
    let mut execd = Execd::start();
    let hangs = execd.file("hangs");
    let script = "#!/bin/bash\n[ \"$1\" = --version ] && { sleep 1000 & sleep 1000; }\ntouch ran\n";
    std::fs::write(&hangs, script).expect("a script");
    std::fs::set_permissions(&hangs, PermissionsExt::from_mode(0o700)).expect("its mode");
    let begun = now();
    let health = execd.start_request("agent_health", json!({"pi_path": hangs}));
    let pi = hangs.to_string_lossy().into_owned();
    let result = execd.result("agent_execute", params(&pi, json!({})));
    let late = "did not answer within 5000 ms";
    assert_eq!((&result["success"], &result["finish_reason"]), (&json!(false), &json!("error")));
    let error = result["error"].as_str().expect("an error");
    assert!(error.contains(late) && error.contains("0.70.0"), "{error}");
    assert_absent(&result, &["executor_version", "exit_code", "log_path"]);
    let health = execd.result_of(health);
    let error = health["error"].as_str().expect("an error");
    assert!(error.contains(late), "{error}");
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    // One that is cancelled answers at once.
    let id = execd.start_request("agent_health", json!({"pi_path": hangs}));
    assert!(execd.cancel(id));
    let health = execd.result_of(id);
    assert_eq!(health["ok"], false, "{health}");
    assert!(health["error"].as_str().is_some_and(|text| text.contains("cancelled")), "{health}");
    execd.until_no_session_process();
    assert!(!execd.file("ran").exists(), "a pi without a version was started");
}

/// The answer touched its own session in each turn while it had no room: execd spun.
#[test]
fn an_answer_of_health_waits_for_its_reader_without_a_turn() {
    let mut execd = Execd::start();
    let pi = execd.file("late-pi");
    let script = format!("#!/bin/bash\n{}\necho 1.2.3\n", until_file("go"));
    std::fs::write(&pi, script).expect("a script");
    std::fs::set_permissions(&pi, PermissionsExt::from_mode(0o700)).expect("its mode");
    execd.ping();
    let mut deaf = wire::connect(&execd.socket());
    let health = json!({"id": 0, "method": "agent_health", "params": {"pi_path": pi}});
    deaf.write_all(format!("{health}\n").as_bytes()).expect("sent");
    let info = "{\"id\":1,\"method\":\"server_info\"}\n".repeat(2_000);
    deaf.set_nonblocking(true).expect("a flag");
    let mut refused = 0;
    eventually("it is not read any more", || {
        let sent = deaf.write(info.as_bytes()).unwrap_or(0);
        refused = if sent == 0 { refused + 1 } else { 0 };
        execd.ping();
        refused > 20
    });
    go(&execd, "go");
    let mut counters = || execd.result("server_info", json!({}))["counters"].clone();
    eventually("pi has ended", || counters()["exits"] == 1);
    let mut turns = || counters()["loop_turns"].as_u64().expect("a number");
    eventually("there is nothing to do", || {
        let before = turns();
        std::thread::sleep(std::time::Duration::from_millis(400));
        turns() - before < 20
    });
}

/// rule: agent.md, The result: policy and args: what was really run, without the key, also where
///   nothing was started
/// rule: agent.md, The result: label, in each event too; started_at
#[test]
fn the_record_tells_what_was_run_and_what_it_was_called() {
    let mut execd = Execd::start();
    stream_file(&execd, "answer.ndjson", &answer("Done."));
    let key = "k3y-of-a-test";
    let more = json!({"label": "task é 1", "allowed_tools": ["Read", "bash"], "api_key": key,
        "model": "anthropic/x", "extensions": ["/e.ts"], "session": "abc",
        "prompt": format!("Say {key}"), "strict_model": false});
    let pi = fake_pi(&execd, NOTE);
    let id = execd.start_request("agent_execute", params(&pi, more.clone()));
    let result = execd.result_of(id);
    assert_eq!(result["success"], true, "{result}");
    let policy = json!({"tools": ["read", "bash"], "extensions": ["/e.ts"], "session": "abc",
        "isolation": "shared"});
    assert_eq!(result["policy"], policy);
    let mut ran: Vec<String> = noted(&execd, "argv").split('\0').map(str::to_owned).collect();
    ran.pop();
    assert_eq!(ran.last().map(String::as_str), Some("Say k3y-of-a-test"), "what pi was given");
    ran.pop();
    let args = json!([&[pi][..], &ran, &["Say ***".to_owned()]].concat());
    assert_eq!(result["args"], args, "{result}");
    let asked = (&result["provider"], &result["model"], &result["label"]);
    assert_eq!(asked, (&json!("anthropic"), &json!("x"), &json!("task é 1")));
    let events = events_of(&mut execd, id);
    assert!(!events.is_empty() && events.iter().all(|event| event["label"] == "task é 1"));
    assert_utc_stamp(&result["started_at"]);
    // The same of one that was not started.
    let result = execd.result("agent_execute", merged(params("/no/such/pi", more), json!({})));
    assert_eq!([&result["policy"]["session"], &result["label"]], ["abc", "task é 1"], "{result}");
    let args = result["args"].as_array().expect("arguments");
    assert_eq!((&args[0], args.last()), (&json!("/no/such/pi"), Some(&json!("Say ***"))));
    assert!(!result.to_string().contains(key), "{result}");
}

/// rule: agent.md, The result: strict_model ends a run that another model answers, at the first
///   event that shows it
/// rule: agent.md, agent_execute, params: strict_model: another model ends the run at the first
///   event that shows it; false lets it go on
#[test]
fn a_run_that_another_model_answers_is_ended_unless_any_may() {
    let mut execd = Execd::start();
    let message = json!({"role": "assistant", "content": [], "provider": "fake", "model": "other"});
    let mut lines = answer("Done.");
    lines[3] = json!({"type": "message_start", "message": message});
    let file = stream_file(&execd, "begun", &lines[..5]);
    let rest = stream_file(&execd, "rest", &lines[5..]);
    // The end comes at the first event that shows it, not at the answer's.
    let script = format!("cat {}; {}; cat {}", file.display(), until_file("go"), rest.display());
    let pi = fake_pi(&execd, &script);
    let result = execd.result("agent_execute", params(&pi, json!({})));
    let found = (&result["success"], &result["finish_reason"], &result["model_mismatch"]);
    assert_eq!(found, (&json!(false), &json!("model_mismatch"), &json!(true)), "{result}");
    let told = (&result["model"], &result["response_model"]);
    assert_eq!(told, (&json!("scripted"), &json!("other")), "{result}");
    assert_eq!(result["error_kind"], "model_not_found", "{result}");
    execd.until_no_session_process();
    go(&execd, "go");
    let result = execd.result("agent_execute", params(&pi, json!({"strict_model": false})));
    let found = (&result["success"], &result["finish_reason"], &result["model_mismatch"]);
    assert_eq!(found, (&json!(true), &json!("stop"), &json!(true)), "{result}");
}

/// rule: agent.md, The stream: No tree and no copy of what is skipped, streams of 1 GiB
/// rule: agent.md, The stream: Peak memory at most the longest line and 1 MiB
/// rule: agent.md, The stream: A line over 16 MiB counts as unparsed, also where it is skipped
#[test]
fn what_is_skipped_takes_no_memory_and_a_line_that_is_needed_is_kept_once() {
    let mut execd = Execd::start();
    let all = answer("Done.");
    stream_file(&execd, "head", &all[..4]);
    stream_file(&execd, "rest", &all[4..]);
    run(&mut execd, "cat head rest", json!({"stream": false}));
    let before_kib = execd.peak_rss_kib();
    let text = r#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"","partial":{"content":[{"type":"text","text":""#;
    let tool = r#"{"type":"tool_execution_update","toolCallId":"a","toolName":"bash","args":{},"partialResult":{"content":[{"type":"text","text":""#;
    let ended = r#"{"type":"tool_execution_end","toolCallId":"a","toolName":"bash","result":""#;
    // How a line begins and ends, its mebibytes, how often it comes, what that may take; whether it
    // is too long.
    for (begin, end, mib, times, most_mib, unparsed) in [
        (text, r#""}]}},"message":{}}"#, 1, 256, 4, 0),
        (tool, r#""}]}}"#, 1, 32, 4, 0),
        (ended, r#""}"#, 15, 1, 20, 0),
        (r#"{"type":"agent_start","a":""#, r#""}"#, 40, 1, 22, 1),
    ] {
        let line = format!("{begin}{}{end}\n", "x".repeat(mib << 20));
        std::fs::write(execd.file("line"), line).expect("a line");
        let script = format!("cat head; for n in $(seq {times}); do cat line; done; cat rest");
        let result = run(&mut execd, &script, json!({"stream": false}));
        assert_eq!(result["output"], "Done.", "{begin}: {result}");
        assert_eq!(result["provider_data"]["unparsed_lines"], unparsed, "{begin}: {result}");
        let more_kib = execd.peak_rss_kib() - before_kib;
        assert!(more_kib <= most_mib << 10, "{begin}: {more_kib} KiB");
    }
}
