//! poll_process: what it drains, how long it waits, killIf, abort, and what it gives of a
//! process that has ended, however often somebody looks.

use crate::common::data::assert_same;
use crate::common::*;
use crate::stream_help::*;
use serde_json::{Value, json};

// ---- What it drains ---------------------------------------------------------------------

/// A poll for the end ended at the first output, so that a chatty build of five seconds took 42 of
/// them.
/// rule: bash-stream.md, The stream family: The running form has what came since the last call
/// rule: bash-stream.md, The stream family: poll_process waits waitMs for the end, 1,800,000 at
///   most; of both what is over first; 0 says nothing
#[test]
fn each_poll_has_what_came_since_the_last_one_and_one_for_the_end_all_of_it() {
    let mut execd = Execd::with(&["--on-impossible", "wait"], &[]);
    let opened = open(&mut execd, "while read x; do echo \"$x\"; echo \"$x!\" >&2; done; exit 3");
    let end = execd.start_request("poll_process", json!({"sessionId": 1, "waitMs": 60_000}));
    for word in ["one", "two", "three"] {
        execd.write(json!({"session_id": 1, "chars": format!("{word}\\n")}));
        until_printed(&opened, &format!("{word}!\n"));
        let [polled, again] = [(); 2].map(|()| poll(&mut execd, 1));
        assert_eq!(polled["stdout"], format!("{word}\n"));
        assert_eq!(polled["stderr"], format!("{word}!\n"));
        assert_eq!((&again["stdout"], &again["stderr"]), (&json!(""), &json!("")));
        assert!(text(&again, "tail").contains(word), "the tail is no drained text: {again}");
        execd.no_reply_yet(end);
    }
    execd.write(json!({"session_id": 1, "eof": true}));
    let over = execd.result_of(end);
    assert_eq!((&over["status"], &over["exitCode"]), (&json!("failed"), &json!(3)));
    assert_eq!(over["stdout"], "one\ntwo\nthree\n", "the whole life");
    assert_eq!(over["stderr"], "one!\ntwo!\nthree!\n");
}

/// rule: bash-stream.md, The stream family: Caps by characters: the tail, with a first line that
///   counts what is missing
#[test]
fn a_flood_that_nobody_polled_keeps_its_last_characters() {
    // More than is held of what no call has told.
    let mut execd = Execd::start();
    let opened = open_with(&mut execd, "seq -w 1 200000; read x", json!({"stream": false}));
    until_printed(&opened, "200000\n");
    let polled = poll(&mut execd, 1);
    assert_eq!(polled["truncated"], true);
    let all: String = (1..=200_000).map(|i| format!("{i:06}\n")).collect();
    let (omitted, last) = all.split_at(all.len() - 30_000);
    let log = text(&polled, "logPath");
    let first = format!("[... {} characters omitted; full output: {log}]", omitted.len());
    let (told, kept) = text(&polled, "stdout").split_once('\n').expect("two lines");
    assert_eq!(told, first);
    assert_same("the last characters", kept.as_bytes(), last.as_bytes());
    assert_eq!(poll(&mut execd, 1)["stdout"], "", "it is drained");
}

// ---- How long it waits ------------------------------------------------------------------

/// rule: bash-stream.md, The stream family: poll_process drains what is there now, or waits
///   maxDrainMs for output or exit, 120,000 at most
/// rule: bash-stream.md, The stream family: poll_process waits waitMs for the end, 1,800,000 at
///   most; of both what is over first; 0 says nothing
#[test]
fn a_poll_waits_two_minutes_for_output_and_thirty_for_the_end_at_most() {
    for (field, most_ms) in [("maxDrainMs", 120_000), ("waitMs", 1_800_000)] {
        let Some(clock) = Clock::new() else { return };
        let mut execd = clock.start(&[], &[]);
        open(&mut execd, "sleep 600");
        // More than a day.
        let params = json!({"sessionId": 1, field: 100_000_000});
        let request = execd.start_request("poll_process", params);
        execd.no_reply_yet(request);
        clock.set_ahead_ms(most_ms - 30_000);
        execd.no_reply_yet(request);
        clock.set_ahead_ms(most_ms + 1);
        execd.ping();
        assert_eq!(execd.result_of(request)["status"], "running");
    }
}

/// rule: bash-stream.md, The stream family: poll_process waits waitMs for the end, 1,800,000 at
///   most; of both what is over first; 0 says nothing
#[test]
fn of_two_waits_the_one_that_is_over_first_counts() {
    let mut execd = Execd::with(&["--on-impossible", "wait"], &[]);
    open(&mut execd, "read x; echo it; read x; exit 4");
    for more in [
        json!({"waitMs": 300, "maxDrainMs": 60_000}),
        json!({"waitMs": 600_000, "maxDrainMs": 300}),
    ] {
        let started = now();
        assert_eq!(poll_with(&mut execd, 1, more)["stdout"], "");
        let elapsed = started.elapsed();
        assert!(elapsed.as_millis() >= 300 && elapsed < AT_ONCE, "{elapsed:?}");
    }
    let both = json!({"sessionId": 1, "waitMs": 600_000, "maxDrainMs": 60_000});
    let request = execd.start_request("poll_process", both);
    execd.no_reply_yet(request);
    execd.write(json!({"session_id": 1, "chars": "\\n"}));
    assert_eq!(execd.result_of(request)["stdout"], "it\n", "output comes before the end");
    // What is 0 says nothing about the wait.
    let zero = json!({"sessionId": 1, "waitMs": 600_000, "maxDrainMs": 0});
    let request = execd.start_request("poll_process", zero);
    execd.no_reply_yet(request);
    execd.write(json!({"session_id": 1, "chars": "\\n"}));
    assert_eq!(execd.result_of(request)["exitCode"], 4);
}

// ---- killIf -----------------------------------------------------------------------------

/// It went by the time since the start: the window of bash_stream was over nearly always by the
/// first poll, so a poll that was to wait for a minute killed at once.
/// rule: bash-stream.md, The stream family: killIf always; timeout when this poll's wait is over
/// rule: protocol.md, Several clients, cancel in the families: bash_stream and poll_process answer
///   a cancel as their document says
/// rule: bash-stream.md, The stream family: cancel: bash_stream and poll_process answer running
#[test]
fn kill_if_timeout_spares_what_ends_while_the_poll_waits() {
    let mut execd = Execd::start();
    let opened =
        execd.result("bash_stream", json!({"command": "read x; exit 5", "yieldMs": 1_000}));
    assert_eq!(opened["status"], "running");
    for wait in ["waitMs", "maxDrainMs"] {
        let params = json!({"sessionId": 1, "killIf": "timeout", wait: 60_000});
        let request = execd.start_request("poll_process", params);
        execd.no_reply_yet(request);
        assert!(execd.cancel(request), "{wait}");
        assert_eq!(execd.result_of(request)["status"], "running", "a cancelled poll kills nobody");
    }
    let params = json!({"sessionId": 1, "killIf": "timeout", "waitMs": 60_000});
    let request = execd.start_request("poll_process", params);
    execd.write(json!({"session_id": 1, "chars": "\\n"}));
    let polled = execd.result_of(request);
    assert_eq!((&polled["status"], &polled["exitCode"]), (&json!("failed"), &json!(5)));
}

/// rule: bash-stream.md, The stream family: killIf always; timeout when this poll's wait is over
#[test]
fn kill_if_timeout_ends_what_has_not_ended_when_the_polls_wait_is_over() {
    for (wait, least_ms) in [("waitMs", 400_u64), ("maxDrainMs", 400), ("waitMs", 0)] {
        let mut execd = Execd::start();
        let command = "while :; do echo x; sleep 0.02; done";
        open_with(&mut execd, command, json!({"timeoutMs": 1_000_000}));
        let started = now();
        let polled = poll_with(&mut execd, 1, json!({"killIf": "timeout", wait: least_ms}));
        let waited = started.elapsed();
        assert!(waited.as_millis() >= u128::from(least_ms), "{waited:?}: output is no end");
        assert_eq!((&polled["status"], &polled["signal"]), (&json!("failed"), &json!("SIGKILL")));
        assert_absent(&polled, &["exitCode", "timedOut"]);
        assert!(execd.session_processes().is_empty(), "all are gone when the answer comes");
    }
}

/// rule: bash-stream.md, The stream family: killIf always; timeout when this poll's wait is over
#[test]
fn kill_if_timeout_spares_what_an_ended_command_left_behind() {
    let mut execd = Execd::start();
    let result = run(&mut execd, "sleep 300 & echo $!");
    let left = text(&result, "stdout").trim().parse().expect("a pid");
    for more in [json!({}), json!({"waitMs": 60_000}), json!({"maxDrainMs": 60_000})] {
        let polled = poll_with(&mut execd, 1, merged(more, json!({"killIf": "timeout"})));
        assert_eq!((&polled["status"], &polled["exitCode"]), (&json!("completed"), &json!(0)));
        assert!(is_alive(left), "the command has ended in time");
    }
    poll_with(&mut execd, 1, json!({"killIf": "always"}));
    assert!(!is_alive(left), "gone when the answer comes");
}

// ---- What has ended ---------------------------------------------------------------------

/// rule: bash-stream.md, The stream family: A finished process polled again: the same answer
/// rule: bash-stream.md, The stream family: What comes later still is told by later polls and
///   pages, with `late: true`
#[test]
fn a_job_whose_background_holds_on_gives_the_same_before_and_after_and_what_came_later() {
    let mut execd = Execd::start();
    let command = format!("({}; echo late) & echo hi; exit 4", until_file("go"));
    let result = run(&mut execd, &command);
    let told = |result: &Value| {
        ["status", "exitCode", "stderr", "durationMs"].map(|field| result[field].clone())
    };
    let texts = |result: &Value| ["stdout", "aggregated"].map(|field| result[field].clone());
    let before = poll(&mut execd, 1);
    assert_eq!((told(&before), texts(&before)), (told(&result), texts(&result)));
    go(&execd, "go");
    execd.until_no_session_process();
    execd.notification("session_exited", |_| true);
    for _ in 0..3 {
        let polled = poll(&mut execd, 1);
        assert_eq!(told(&polled), told(&result));
        assert_eq!(
            (texts(&polled), &polled["late"]),
            (["hi\nlate\n"; 2].map(Value::from), &json!(true))
        );
        assert_absent(&polled, &["backgroundPids"]);
    }
}

// ---- until and stop ---------------------------------------------------------------------

/// rule: bash-stream.md, The stream family: `until` and `stop` end a wait where output alone does
///   not; fields are spelt in camelCase
#[test]
fn a_poll_ends_with_the_text_that_it_waits_for_and_not_with_other_output() {
    let mut execd = Execd::start();
    let command =
        format!("echo first; {}; echo noise; echo port 80 open >&2; read x", until_file("go"),);
    let opened = open_until(&mut execd, &command, "first");
    let session = id_of(&opened);
    let params = json!({
        "sessionId": session, "maxDrainMs": 60_000, "until": {"regex": "port (\\d+)"},
    });
    let request = execd.start_request("poll_process", params);
    execd.no_reply_yet(request);
    go(&execd, "go");
    let answer = execd.result_of(request);
    let wait = &answer["wait"];
    assert_eq!((&answer["status"], &wait["outcome"]), (&json!("running"), &json!("matched")));
    assert_eq!((&wait["sessionId"], &wait["captures"]), (&json!(session), &json!(["80"])));
    assert_eq!((&wait["presentAtEntry"], &wait["sawNewOutput"]), (&json!(false), &json!(true)));
    assert_eq!(wait["effectiveTimeoutMs"], 60_000);
    assert!(answer["state"].is_string(), "{answer}");
    assert!(row(&mut execd, session).is_some_and(|row| row["state"].is_string()));
    assert_eq!(answer["stdout"], "first\nnoise\n");
    assert_eq!(answer["stderr"], "port 80 open\n");

    // What was told counts no more; a failure that comes ends a wait as such.
    let gone = json!({"waitMs": 1, "onImpossible": "wait", "until": {"text": ["first", "port"]}});
    assert_eq!(poll_with(&mut execd, session, gone)["wait"]["outcome"], "deadline");
    execd.refused(
        "poll_process",
        json!({"sessionId": session, "until": {"idle": 5}}),
        "until.idle",
    );
    let idle = json!({"until": {"idleMs": 50}, "waitMs": 60_000, "onImpossible": "wait"});
    assert_eq!(poll_with(&mut execd, session, idle)["wait"]["by"], "idle_ms");
}

/// rule: bash-stream.md, The stream family: `until` and `stop` end a wait where output alone does
///   not; fields are spelt in camelCase
/// rule: bash-stream.md, The stream family: A text in the output of a process that has ended is
///   matched, and the same answer tells the end
#[test]
fn the_first_call_ends_with_what_it_waits_for_and_polls_of_the_end_match_all() {
    let mut execd = Execd::start();
    let start = |execd: &mut Execd, command: &str| {
        let until = json!({"until": {"text": "ready"}, "stop": {"text": "failed"}});
        let params = json!({"command": command, "stream": false, "onImpossible": "wait"});
        execd.result("bash_stream", merged(params, until))
    };
    let answer = start(&mut execd, "echo out; echo failed >&2; read x");
    let told = (&answer["status"], &answer["wait"]["outcome"]);
    assert_eq!(told, (&json!("running"), &json!("stopped")));
    let polled = poll(&mut execd, 1);
    assert_eq!((&polled["stdout"], &polled["stderr"]), (&json!("out\n"), &json!("failed\n")));
    let answer = start(&mut execd, "echo ready; exit 3");
    assert_eq!(answer["wait"]["outcome"], "matched");
    assert_eq!(until_over(&mut execd, 2)["exitCode"], 3);
    for (text, outcome) in [("ready", "matched"), ("else", "exited")] {
        let polled = poll_with(&mut execd, 2, json!({"until": {"text": text}}));
        assert_eq!((&polled["exitCode"], &polled["wait"]["outcome"]), (&json!(3), &json!(outcome)));
    }
}
