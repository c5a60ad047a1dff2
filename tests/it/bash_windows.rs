//! Background windows: how a command gets there, the word of its end (exactly once), how long it
//! stays listed, its name, what other families see of it.

use std::collections::BTreeSet;

use crate::common::wire::Wire;
use crate::common::*;
use crate::window_help::*;
use serde_json::{Value, json};

const REPORTED: &str = "Result will be reported when it finishes.";

// ---- Into the background ----------------------------------------------------------------

/// rule: bash.md, bash and tmux: `background: true` answers at once, with the attach command
#[test]
fn one_that_ends_at_once_is_answered_first_and_reported_then() {
    let mut execd = Execd::start();
    for n in 1..=8 {
        let id = begin(&mut execd, "echo hi", json!({"background": true}));
        assert_eq!(execd.result_of(id)["status"], "background");
        let window = format!("@{n}");
        let done = "Background command finished with exit code 0\n\n```\nhi\n```";
        assert_eq!(text(&ended(&mut execd, &window)), done);
        let told = |line: &Value| {
            line["method"] == "window_exited" && line["params"]["window"] == window.as_str()
        };
        let place = execd.position(told).expect("it came");
        assert!(execd.reply_position(id) < place, "the reply comes first");
    }
}

/// rule: bash.md, bash and tmux: `background: true` answers at once, with the attach command
#[test]
fn the_texts_name_the_callers_tool_and_how_to_attach() {
    let mut execd = Execd::start();
    let context = json!({"tmuxToolName": "windows", "tmuxEnabledActions": ["kill", "poll"],
        "attachCommand": "/opt/execd attach @123 --pid 7"});
    let more = json!({"timeout": 0.2, "context": context});
    let result = bash_with(&mut execd, "sleep 300", more.clone());
    let expected = "Still running after 0.2s in background window @1. Use windows kill to inspect \
                    or stop it. ";
    assert_eq!(text(&result), format!("{expected}{REPORTED}"));
    let result = bash_with(&mut execd, "sleep 300", merged(more, json!({"background": true})));
    assert!(text(&result).ends_with("\n\nAttach with: /opt/execd attach @2 --pid 7"), "{result}");
}

// ---- The end ----------------------------------------------------------------------------

/// rule: bash.md, bash and tmux: The end of a background window is told exactly once, with the last
///   20 lines in a block
/// rule: bash.md, bash and tmux: Every field of a context changes what it should
#[test]
fn completions_have_the_last_lines_and_say_what_was_cut() {
    let mut execd = Execd::start();
    let last: Vec<String> = (81..=100).map(|i| i.to_string()).collect();
    let last = format!(
        "137\n\n```\n{}\n```\n\n[Showing lines 81-100 of 100. Full output: LOG]",
        last.join("\n")
    );
    let two = json!({"completedContextLines": 2, "alwaysShowOutputFilePath": true});
    for (command, context, bytes, said) in [
        ("seq 1 100; kill -9 $$", json!({}), 292, &*last),
        (
            "seq 1 5",
            two.clone(),
            10,
            "0\n\n```\n4\n5\n```\n\n[Showing lines 4-5 of 5. Full output: LOG]",
        ),
        ("echo '```'", two, 4, "0\n\n````\n```\n````\n\n[Full output: LOG]"),
    ] {
        let window = background_with(&mut execd, command, json!({"context": context}));
        let note = ended(&mut execd, &window);
        let shown = settled_text(text(&note)).replace(&log(&note), "LOG");
        let expected = format!("Background command finished with exit code {said}");
        assert_eq!(shown, expected, "{command}");
        assert_eq!(note.get("exit_code").is_none(), note["signal"] == "SIGKILL", "{note}");
        let logged = std::fs::read(log(&note)).expect("the log");
        assert_eq!(logged.len(), bytes, "it is complete when it is named");
    }
}

/// rule: bash.md, bash and tmux: The shell is gone, background children hold the output: 50 ms
///   later pi's text and who runs where
/// rule: bash.md, bash and tmux: The shell is gone: the window lives until its children end, and is
///   not told twice
#[test]
fn a_shell_that_is_gone_is_reported_although_others_go_on_and_only_then() {
    let mut execd = Execd::start();
    let command = format!("({}; echo late) & echo up; exit 2", until_file("go"));
    let window = background(&mut execd, &command);
    let note = ended(&mut execd, &window);
    let holder = &note["still_running"][0];
    let head =
        "Background command finished with exit code 2\nStill running in background window @1: ";
    assert!(text(&note).starts_with(head), "{note}");
    assert!(text(&note).contains(&format!("(pid {})", holder["pid"])), "{note}");
    assert!(text(&note).ends_with("\n\n```\nup\n```"), "{note}");
    assert_eq!(listed(&mut execd), ["@1"], "the window lives on");
    go(&execd, "go");
    execd.notification("session_exited", |_| true);
    assert_eq!(ends_of(&mut execd, &window).len(), 1, "not told twice");
    assert!(listed(&mut execd).is_empty());
}

/// rule: bash.md, bash and tmux: kill closes at once and sends no completion
#[test]
fn kill_takes_what_ignores_sigterm_and_the_list_forgets_it_meanwhile() {
    let mut execd = Execd::start();
    for (cancelled, expected) in [
        (false, "Killed background window: trap @1."),
        (true, "Ending background window: trap @2, not done yet."),
    ] {
        let command = "trap '' TERM; echo up; while :; do sleep 1; done";
        let window = background(&mut execd, command);
        eventually("it is up", || peek(&mut execd, &window).ends_with("up"));
        let id = execd.start_request("tmux", json!({"action": "kill", "window": window}));
        if cancelled {
            assert!(execd.cancel(id));
        } else {
            assert!(listed(&mut execd).is_empty(), "closed at once");
            execd.no_reply_yet(id);
        }
        assert_eq!(done(&execd.result_of(id)), expected);
        execd.until_no_session_process();
    }
    assert!(execd.notified("window_exited").is_empty());
}

/// The word of a session's end once came first where a reply told it, and the extension then forgot
/// the window whose end it had not told the model yet.
/// rule: bash.md, bash and tmux: Whoever ends or observes a window, its end is told, and before
///   that of its session
#[test]
fn the_end_of_a_window_comes_before_that_of_its_session_whoever_is_told() {
    let mut execd = Execd::start();
    let mut person = Wire::connect(&execd.socket());
    for way in ["kill_session", "kill_process", "write_stdin", "shell"] {
        let window = background(&mut execd, "exec sleep 300");
        let id = session(&window);
        match way {
            "kill_session" => person.result(way, json!({"session_id": id})),
            "kill_process" => person.result(way, json!({"sessionId": id})),
            "write_stdin" => {
                let wait = person.send(way, json!({"session_id": id, "yield_time_ms": 30_000}));
                execd.kill(id);
                person.reply(wait)
            }
            _ => {
                let pid = pid_of(&execd.listed(id).expect("it runs"));
                send_signal(pid, libc::SIGKILL);
                Value::Null
            }
        };
        execd.notification("session_exited", |note| note["session_id"] == id);
        assert_eq!(ends_of(&mut execd, &window).len(), 1, "{way}");
        let end = execd.position(|line| {
            line["method"] == "window_exited" && line["params"]["window"] == window.as_str()
        });
        let exit = execd.position(|line| {
            line["method"] == "session_exited" && line["params"]["session_id"] == id
        });
        assert!(end < exit, "{way}");
    }
    // All are told of the sessions, and only who started them of the windows.
    person.note("session_exited", |note| note["session_id"] == 4);
    assert_eq!(person.notes("session_exited").len(), 4);
    assert_eq!(person.notes("window_exited").len(), 0);
    let started = person.notes("session_started");
    let windows: Vec<&Value> = started.iter().map(|note| &note["window"]).collect();
    assert_eq!(windows, ["@1", "@2", "@3", "@4"]);
}

/// rule: bash.md, bash and tmux: Notifications of a window go to the client that started it; others
///   attach, type and end
#[test]
fn windows_of_a_client_are_its_own_and_everybody_may_look() {
    let mut execd = Execd::start();
    let mut owner = Wire::connect(&execd.socket());
    let context = json!({"pollDelivery": "display", "minimumPollIntervalSeconds": 0.2});
    let params = json!({"command": "echo up; read x; echo got $x", "background": true,
        "pollInterval": 0.2, "context": merged(context, json!({"tty": true}))});
    assert_eq!(owner.result("bash", params)["window"], "@1");
    owner.note("window_poll", |note| note["window"] == "@1");
    // Another one attaches and types.
    let mut viewer = Wire::connect(&execd.socket());
    viewer.result("attach_session", json!({"session_id": 1}));
    viewer.result("attach_input", json!({"session_id": 1, "data_b64": "aGkK"}));
    assert_eq!(viewer.note("attach_ended", |_| true)["exit_code"], 0);
    let end = owner.note("window_exited", |note| note["window"] == "@1");
    assert!(end["tail"].as_str().is_some_and(|tail| tail.ends_with("got hi\n")), "{end}");
    for other in [viewer.notes("window_exited"), viewer.notes("window_poll")] {
        assert!(other.is_empty(), "{other:?}");
    }
    assert!(execd.notified("window_exited").is_empty());
    // Whose client is gone goes on, and is ended by anybody.
    owner.send("bash", json!({"command": "sleep 300"}));
    let pid = pid_of(&viewer.note("session_started", |note| note["session_id"] == 2));
    drop(owner);
    eventually("it is listed", || listed(&mut execd) == ["@2"]);
    assert_eq!(refusal_free(&tmux_on(&mut execd, "kill", "@2", json!({}))), "@2.");
    assert!(!is_alive(pid));
}

fn refusal_free(result: &Value) -> &str {
    assert_eq!(result["is_error"], false, "{result}");
    result["text"].as_str().and_then(|text| text.rsplit(' ').next()).expect("words")
}

/// rule: bash.md, bash and tmux: The end of a background window is not told for what ends with
///   execd
#[test]
fn what_ends_with_execd_is_not_reported() {
    let mut execd = Execd::start();
    background(&mut execd, "echo up; sleep 300");
    let held = bash(&mut execd, "sleep 300 & echo up");
    assert_eq!(held["status"], "completed");
    execd.close_stdin();
    assert!(execd.wait_exit().success());
    let lines = execd.remaining_lines();
    assert!(!lines.iter().any(|line| line["method"] == "window_exited"), "{lines:?}");
    execd.until_no_session_process();
}

// ---- Windows that stay ------------------------------------------------------------------

/// rule: bash.md, bash and tmux: A window's memory is bounded
/// rule: bash.md, bash and tmux: autoCloseWindowsOnCompletion: false keeps what has ended listed
///   and peekable
#[test]
fn windows_that_stay_are_bounded_the_oldest_go_first() {
    let mut execd = Execd::start();
    let more = json!({"context": {"autoCloseWindowsOnCompletion": false}});
    for _ in 0..70 {
        bash_with(&mut execd, "seq 1 20000", more.clone());
    }
    let kept = listed(&mut execd);
    let expected: Vec<String> = (7..=70).map(|n| format!("@{n}")).collect();
    assert_eq!(kept.iter().collect::<BTreeSet<_>>(), expected.iter().collect::<BTreeSet<_>>());
    let peeked = peek(&mut execd, "@70");
    assert!(peeked.contains("[Showing lines 18001-20000 of 20000. Full output: "), "{peeked}");
}

// ---- Names ------------------------------------------------------------------------------

// ---- Beside the other families ----------------------------------------------------------

/// rule: bash.md, bash and tmux: A window is a session, and window `@N` is session N
#[test]
fn a_window_is_a_session_that_the_other_families_see() {
    let mut execd = Execd::start();
    let command = format!("echo one; {}; exit 3", until_file("go"));
    let result = bash_with(&mut execd, &command, json!({"background": true, "name": "dev"}));
    assert_eq!(result["window"], "@1");
    eventually("it has printed", || peek(&mut execd, "@1").ends_with("one"));
    let row = execd.listed(1).expect("it is listed");
    assert_eq!((&row["name"], &row["running"]), (&json!("dev"), &json!(true)));
    assert_eq!(execd.poll_now(1)["output"], "one\n");
    assert_eq!(peek(&mut execd, "@1").lines().last(), Some("one"), "a read takes nothing away");
    let page = execd.result("get_process_log", json!({"sessionId": 1}));
    assert_eq!(page["text"], "one\n");
    execd.failed("write_stdin", json!({"session_id": 1, "chars": "x"}), "stdin_closed");
    go(&execd, "go");
    ended(&mut execd, "@1");
    execd.notification("session_exited", |_| true);
    assert!(execd.listed(1).is_none(), "it leaves that table with its end");
    let polled = execd.result("poll_process", json!({"sessionId": 1}));
    assert_eq!((&polled["exitCode"], &polled["aggregated"]), (&json!(3), &json!("one\n")));
    let page = execd.result("get_process_log", json!({"sessionId": 1}));
    assert_eq!((&page["text"], &page["eof"]), (&json!("one\n"), &json!(true)));
}

#[test]
fn a_foreground_command_is_listed_as_a_session_after_150_ms_and_is_no_background_window() {
    let mut execd = Execd::start();
    let id = begin(&mut execd, &until_file("go"), json!({}));
    let started = execd.notification("session_started", |_| true);
    assert_eq!(started["session_id"], 1);
    assert!(execd.listed(1).is_some());
    assert_eq!(done(&tmux(&mut execd, "list")), "Background windows — 0 window(s)");
    assert_eq!(refusal(&tmux_on(&mut execd, "kill", "@1", json!({}))), "No background window @1.");
    go(&execd, "go");
    assert_eq!(execd.result_of(id)["exit_code"], 0);
    let exit = execd.notification("session_exited", |_| true);
    assert_eq!(exit["observed"], true, "the reply told it");
    bash(&mut execd, "true");
    assert_eq!(execd.notified("session_started").len(), 1, "short ones are never announced");
}

/// rule: bash.md, bash and tmux: The end of a background window is told exactly once also for ten
///   that end together, and for a reader that is slow
#[test]
fn many_that_end_together_are_reported_once_each() {
    let mut execd = Execd::start();
    // More than the outbox takes before it counts as crowded, in replies that nobody asked to
    // be short.
    let big = json!({"context": {"completedContextLines": 100_000, "maxOutputBytes": 262_144}});
    let windows: Vec<String> = (0..12)
        .map(|n| {
            let command = format!("{}; seq 1 40000; echo {n}; exit {n}", until_file("go"));
            background_with(&mut execd, &command, big.clone())
        })
        .collect();
    go(&execd, "go");
    for (n, window) in windows.iter().enumerate() {
        let note = ended(&mut execd, window);
        assert_eq!(note["exit_code"], n);
        let tail = note["tail"].as_str().expect("a tail");
        assert!(tail.ends_with(&format!("\n40000\n{n}\n")), "{}", tail.len());
    }
    assert_eq!(execd.notified("window_exited").len(), 12);
    eventually("they are closed", || listed(&mut execd).is_empty());
}

// ---- What else ends the foreground ------------------------------------------------------

/// rule: bash.md, bash and tmux: `until` and `stop` end the foreground: the command goes on in the
///   background, and a line before the text says why
#[test]
fn a_foreground_command_goes_on_in_the_background_when_its_text_has_come() {
    let mut execd = Execd::start();
    let more = json!({"until": {"regex": "port (\\d+)"}, "stop": {"text": "failed"}});
    let result = bash_with(&mut execd, "echo up on port 80; sleep 60", more.clone());
    assert_eq!((&result["status"], &result["is_error"]), (&json!("background"), &json!(false)));
    let wait = &result["wait"];
    assert_eq!((&wait["outcome"], &wait["captures"]), (&json!("matched"), &json!(["80"])));
    let window = window_of(&result);
    let expected = format!(
        "wait: matched /port (\\d+)/ → 80\nup on port 80\n\n\nStill running in background window \
         {window}. Use tmux peek/list/kill to inspect or stop it. Result will be reported when it \
         finishes."
    );
    assert_eq!(text(&result), expected);
    let stopped = bash_with(&mut execd, "echo it failed >&2; sleep 60", more.clone());
    assert_eq!(stopped["wait"]["outcome"], "stopped");
    // A command that ends is told as ever.
    let ended = bash_with(&mut execd, "echo done", more.clone());
    assert_eq!((text(&ended), &ended["wait"]["outcome"]), ("done\n", &json!("exited")));
    let more = merged(json!({"command": "true", "background": true}), more);
    execd.refused("bash", more, "until");
}

/// rule: bash.md, bash and tmux: A foreground command that only input can move on goes on in the
///   background at once; lists and peeks say what a command does
#[test]
fn a_question_on_a_terminal_goes_to_the_background_at_once() {
    let mut execd = Execd::start();
    let command = "read -r -p 'Proceed? [Y/n] ' x; echo got $x";
    let more = json!({"tty": true, "onImpossible": "answer"});
    let result = bash_with(&mut execd, command, more);
    assert_eq!(result["status"], "background");
    assert_eq!(result["wait"]["outcome"], "impossible");
    assert_eq!(result["state"], "waiting_for_line");
    assert!(text(&result).starts_with("wait: impossible: bash waits for a line"), "{result}");
    let window = window_of(&result);
    let end = format!(
        "Still running in background window {window}. It gets no input here: end it (tmux kill) and \
         run it again so that it does not ask, or have the user answer (execd attach {window}). \
         Result will be reported when it finishes."
    );
    assert!(text(&result).ends_with(&end), "{result}");
    // Two looks 15 ms apart are needed to say so.
    eventually("a list says what it does", || {
        text(&tmux(&mut execd, "list")).contains("waiting for a line (bash)")
    });
    eventually("a peek says what it does", || {
        peek(&mut execd, &window).ends_with("[waiting for a line (bash)]")
    });
    execd.write(json!({"session_id": session(&window), "chars": "y\\n"}));
    let end = ended(&mut execd, &window);
    assert_eq!(end["exit_code"], 0);
}
