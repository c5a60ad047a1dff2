//! wait_for: one request for several sessions of any family, and exactly one reply, whatever
//! becomes of them (waits.md).

use crate::common::wire::Wire;
use crate::common::*;
use serde_json::{Value, json};

/// Sends a wait for sessions, of a minute unless `more` says otherwise.
fn wait_for(execd: &mut Execd, ids: &[u64], more: Value) -> u64 {
    let params = merged(json!({"session_ids": ids, "timeout_ms": 60_000}), more);
    execd.start_request("wait_for", params)
}

/// The same, and its result.
fn waited(execd: &mut Execd, ids: &[u64], more: Value) -> Value {
    let request = wait_for(execd, ids, more);
    execd.result_of(request)
}

/// The rows of an answer.
fn rows(answer: &Value) -> &Vec<Value> {
    answer["sessions"].as_array().unwrap_or_else(|| panic!("no sessions in {answer}"))
}

/// What an answer says of each session in one field.
fn each<'a>(answer: &'a Value, field: &str) -> Vec<&'a str> {
    rows(answer).iter().map(|row| row[field].as_str().unwrap_or("-")).collect()
}

/// A command that prints `word` and ends with `code` once the file of that name is there.
fn ends_at(word: &str, code: u8) -> String {
    format!("{}; echo {word}; exit {code}", until_file(word))
}

/// Starts a command for each word, which ends with its code once the file of that name is there.
fn gated(execd: &mut Execd, commands: &[(&str, u8)]) -> Vec<u64> {
    let commands: Vec<String> = commands.iter().map(|(word, code)| ends_at(word, *code)).collect();
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    execd.open_all(&commands)
}

/// rule: waits.md, wait_for: One reply with a row for each session in the order given: those whose
///   condition came true with their output, the others with their state
/// rule: waits.md, wait_for: `take: false` leaves the output and the exits to later calls
#[test]
fn any_ends_with_the_first_exit_and_leaves_the_others_as_they_are() {
    let mut execd = Execd::start();
    let ids = gated(&mut execd, &[("one", 0), ("two", 7)]);
    let request = wait_for(&mut execd, &ids, json!({"take": false}));
    execd.no_reply_yet(request);
    go(&execd, "two");
    let answer = execd.result_of(request);
    assert_eq!(each(&answer, "outcome"), ["pending", "exited"]);
    assert_eq!(
        (each(&answer, "output"), &rows(&answer)[1]["exit_code"]),
        (vec!["-"; 2], &json!(7))
    );
    let answer = waited(&mut execd, &ids, json!({}));
    assert_fields(&answer, &["wait", "sessions", "text", "tool_time_utc"]);
    assert_eq!(answer["wait"]["outcome"], "exited");
    assert_eq!(answer["wait"]["session_id"], ids[1]);
    assert_eq!(answer["wait"]["effective_timeout_ms"], 60_000);
    assert_eq!(each(&answer, "outcome"), ["pending", "exited"]);
    assert_eq!(each(&answer, "state"), ["running", "exited"]);
    assert_absent(&rows(&answer)[0], &["output", "exit_code", "signal"]);
    assert_eq!((&rows(&answer)[1]["exit_code"], each(&answer, "output")[1]), (&json!(7), "two\n"));
    // The first one still runs: who reads this can say until when to wait for it.
    let clock = answer["tool_time_utc"].as_str().expect("a stamp");
    let text = answer["text"].as_str().expect("a text");
    assert!(text.contains(&format!("\ntool_time_utc: {clock}\n")), "{text}");
    assert!(text.contains("exit_code: 7\n") && text.ends_with("---\ntwo"), "{text}");
    // The exit that was told is observed; what was not told is there for the next call.
    execd.failed("write_stdin", json!({"session_id": ids[1]}), "unknown_session");
    go(&execd, "one");
    let answer = waited(&mut execd, &ids[..1], json!({}));
    assert_eq!(each(&answer, "output"), ["one\n"]);
    // Nothing runs any more.
    assert_absent(&answer, &["tool_time_utc"]);
}

/// rule: waits.md, wait_for: An id that is unknown is refused by name; ids given twice count once
/// rule: waits.md, wait_for: `"all"` are the sessions that list_sessions has; with none it answers at
///   once
/// rule: waits.md, wait_for: Where `"all"` are none, the answer comes at once: `exited`, without rows,
///   and a `note` says so
#[test]
fn ids_are_checked_and_all_sessions_are_those_that_are_listed() {
    let mut execd = Execd::start();
    let none = execd.result("wait_for", json!({"session_ids": "all"}));
    assert_eq!((&none["wait"]["outcome"], &none["sessions"]), (&json!("exited"), &json!([])));
    let note = "no session runs: there was nothing to wait for";
    assert_eq!(none["note"], note, "{none}");
    assert_eq!(none["text"], format!("wait: exited\nnote: {note}\nno session"), "{none}");
    let ids = gated(&mut execd, &[("one", 0), ("two", 0)]);
    let message = execd.failed("wait_for", json!({"session_ids": [1, 99]}), "unknown_session");
    assert_eq!(message, "session_ids: unknown session_id: 99");
    for ids in [json!([]), json!("some"), json!(["a"])] {
        execd.refused("wait_for", json!({"session_ids": ids}), "session_ids");
    }
    let twice = waited(&mut execd, &[1, 1], json!({"timeout_ms": 0}));
    assert_eq!(rows(&twice).len(), 1);
    let params = json!({"session_ids": "all", "mode": "all", "timeout_ms": 60_000});
    let request = execd.start_request("wait_for", params);
    go(&execd, "two");
    go(&execd, "one");
    let told: Vec<u64> = rows(&execd.result_of(request)).iter().map(session_of).collect();
    assert_eq!(told, ids);
}

/// rule: waits.md, wait_for: It works on sessions of every family, also on those that have ended
///   and are remembered
/// rule: waits.md, wait_for: An exit that a row tells wakes nobody
/// rule: waits.md, wait_for: The end of a background command is reported as ever, however long
///   others are waited for
/// rule: waits.md, wait_for: `any` ends with the first session that is done, `all` with the
///   last, `first_failure` with the first that fails or else with the last; `stop` ends each
#[test]
fn sessions_of_all_families_are_waited_for_together() {
    let mut execd = Execd::start();
    let unified = session_of(&execd.open_with(&ends_at("one", 0), json!({"on_exit": "wake"})));
    let command = format!("{}; echo err >&2; exit 4", ends_at("two", 0).replace("; exit 0", ""));
    let stream = crate::stream_help::id_of(&crate::stream_help::open(&mut execd, &command));
    let window = crate::window_help::background(&mut execd, &ends_at("three", 5));
    let ids = [unified, stream, crate::window_help::session(&window)];
    let request = wait_for(&mut execd, &ids, json!({"mode": "all"}));
    go(&execd, "three");
    assert_eq!(crate::window_help::ended(&mut execd, &window)["exit_code"], 5);
    go(&execd, "two");
    assert_eq!(crate::stream_help::until_over(&mut execd, stream)["exitCode"], 4);
    execd.no_reply_yet(request);
    go(&execd, "one");
    let answer = execd.result_of(request);
    assert_eq!(
        (&answer["wait"]["outcome"], &answer["wait"]["session_id"]),
        (&json!("exited"), &json!(unified))
    );
    assert_eq!(each(&answer, "outcome"), ["exited"; 3]);
    assert_eq!(each(&answer, "family"), ["unified", "stream", "windows"]);
    assert_eq!(each(&answer, "output"), ["one\n", "two\nerr\n", "three\n"]);
    let codes: Vec<&Value> = rows(&answer).iter().map(|row| &row["exit_code"]).collect();
    assert_eq!(codes, [&json!(0), &json!(4), &json!(5)]);
    assert_eq!(execd.peek()["sessions"], json!([]), "each exit was told");
    assert_eq!(crate::window_help::ends_of(&mut execd, &window).len(), 1);
    let note = execd.notification("session_exited", |note| note["session_id"] == unified);
    assert_eq!(note["observed"], true);
    assert_absent(&note, &["wake"]);
}

/// rule: waits.md, wait_for: `cancel` ends the wait as any other and takes nothing
/// rule: waits.md, wait_for: The timeout is 30 s unless said, 0 looks without waiting; at the
///   deadline each row has its state, and that is no error
#[test]
fn a_wait_that_is_cancelled_or_over_by_its_time_has_taken_nothing() {
    let mut execd = Execd::start();
    let ids = gated(&mut execd, &[("one", 2), ("two", 0)]);
    for timeout_ms in [0, 300] {
        let answer = waited(&mut execd, &ids, json!({"timeout_ms": timeout_ms}));
        assert_eq!(answer["wait"]["outcome"], "deadline");
        assert_absent(&answer["wait"], &["session_id", "by"]);
        assert_eq!(answer["wait"]["effective_timeout_ms"], timeout_ms);
        assert_eq!(each(&answer, "outcome"), ["pending"; 2]);
    }
    let request = wait_for(&mut execd, &ids, json!({"mode": "all"}));
    go(&execd, "one");
    execd.notification("session_exited", |note| note["session_id"] == ids[0]);
    execd.no_reply_yet(request);
    assert!(execd.cancel(request));
    let answer = execd.result_of(request);
    assert_eq!(answer["wait"]["outcome"], "cancelled");
    assert_eq!(each(&answer, "outcome"), ["exited", "pending"]);
    assert_eq!(each(&answer, "output"), ["-"; 2]);
    let told = execd.until_exit(ids[0]);
    assert_eq!((&told["exit_code"], output(&told)), (&json!(2), "one\n"));
}

/// rule: waits.md, wait_for: A session that has ended and is remembered may be waited for too: its
///   row says which `family` started it
#[test]
fn what_has_ended_is_told_under_the_family_that_started_it() {
    let mut execd = Execd::start();
    let commands = ["told", "untold"].map(|word| (word, 2));
    let unified = gated(&mut execd, &commands);
    go(&execd, "told");
    execd.until_exit(unified[0]);
    let stream = crate::stream_help::id_of(&crate::stream_help::run(&mut execd, "echo stream"));
    let shown = json!({"context": {"autoCloseWindowsOnCompletion": false}});
    let kept = crate::window_help::background_with(&mut execd, "echo kept", shown);
    let closed = crate::window_help::background(&mut execd, "echo closed");
    let windows = [kept, closed].map(|window| {
        crate::window_help::ended(&mut execd, &window);
        crate::window_help::session(&window)
    });
    go(&execd, "untold");
    execd.notification("session_exited", |note| note["session_id"] == unified[1]);
    let ids = [unified[0], unified[1], stream, windows[0], windows[1]];
    for id in ids {
        let row = rows(&waited(&mut execd, &[id], json!({"take": false})))[0].clone();
        assert_eq!(row["session_id"], id);
    }
    let answer = waited(&mut execd, &ids, json!({"mode": "all"}));
    assert_eq!(each(&answer, "family"), ["unified", "unified", "stream", "windows", "windows"]);
    let output = ["told\n", "untold\n", "stream\n", "kept\n", "closed\n"];
    assert_eq!(each(&answer, "output"), output);
    assert_eq!(each(&answer, "state"), ["exited"; 5]);
    let codes: Vec<&Value> = rows(&answer).iter().map(|row| &row["exit_code"]).collect();
    assert_eq!(codes, [2, 2, 0, 0, 0]);
    // The exit that nobody had been told is observed now; all of them are still remembered.
    execd.failed("write_stdin", json!({"session_id": unified[1]}), "unknown_session");
    let again = waited(&mut execd, &ids, json!({"mode": "all"}));
    assert_eq!(each(&again, "family"), ["unified", "unified", "stream", "windows", "windows"]);
    assert_eq!(each(&again, "output"), output);
}

/// rule: waits.md, wait_for: Who is waited for is not evicted
/// rule: waits.md, wait_for: A session that somebody kills has ended
#[test]
fn where_all_sessions_are_waited_for_none_makes_room() {
    let mut execd = Execd::with(&["--max-sessions", "2"], &[]);
    let ids = gated(&mut execd, &[("one", 0), ("two", 0)]);
    let request = wait_for(&mut execd, &ids, json!({"mode": "all"}));
    let more = session_of(&execd.open("sleep 600"));
    assert!(execd.listed(more).is_some(), "there are more than fit, and nobody gives way");
    // Who nobody waits for gives way to the next.
    let next = session_of(&execd.open("sleep 600"));
    let open = |execd: &mut Execd, id: &u64| execd.listed(*id).is_some();
    assert!(!open(&mut execd, &more) && open(&mut execd, &next));
    assert!(ids.iter().all(|id| open(&mut execd, id)));
    go(&execd, "one");
    execd.notification("session_exited", |note| note["session_id"] == ids[0]);
    execd.no_reply_yet(request);
    let killed = execd.start_request("kill_session", json!({"session_id": ids[1]}));
    assert_eq!(each(&execd.result_of(request), "signal"), ["-", "SIGTERM"]);
    assert_eq!(execd.result_of(killed)["killed"], true);
}

/// rule: waits.md, wait_for: A wait for all is impossible as soon as one of them can't go on; the
///   others, when none of them can
#[test]
fn sessions_of_which_none_can_go_on_are_answered() {
    let mut execd = Execd::start();
    let ids = execd.open_all(&["exec cat", "read -r x", "exec sleep 600"]);
    let reply = waited(&mut execd, &ids[..2], json!({"mode": "first_failure"}));
    assert_eq!(reply["wait"]["outcome"], "impossible", "{reply}");
    assert_eq!(each(&reply, "outcome"), ["impossible"; 2], "{reply}");
    // The third can still end.
    let any = wait_for(&mut execd, &ids, json!({"mode": "any"}));
    let all = waited(&mut execd, &ids, json!({"mode": "all"}));
    assert_eq!(all["wait"]["outcome"], "impossible", "{all}");
    // The first that can't go on decides; the other may not have been looked at twice yet.
    assert!(each(&all, "outcome").contains(&"impossible"), "{all}");
    assert_eq!(rows(&all)[2]["state"], "running", "{all}");
    execd.no_reply_yet(any);
    let killed = execd.start_request("kill_session", json!({"session_id": ids[2]}));
    assert_eq!(execd.result_of(any)["wait"]["outcome"], "exited");
    execd.result_of(killed);
}

/// The rows of many are made in one turn, which has no time to look at all of them again.
/// rule: waits.md, wait_for: The row of such a session says what it was seen to wait for
/// rule: waits.md, wait_for: A wait for one of them is impossible when none of them can go on; each
///   row says so, and why
#[test]
fn the_rows_of_many_that_can_not_go_on_all_say_what_they_wait_for() {
    const SESSIONS: usize = 60;
    let mut execd = Execd::start();
    let ids = execd.open_all(&["exec cat"; SESSIONS]);
    let answer = waited(&mut execd, &ids, json!({}));
    let wait = &answer["wait"];
    assert_eq!(wait["outcome"], "impossible", "{answer}");
    assert_eq!(each(&answer, "outcome"), ["impossible"; SESSIONS]);
    assert_eq!(each(&answer, "state"), ["waiting_for_line"; SESSIONS]);
    let why = "cat waits for a line on stdin; nothing else runs";
    assert_eq!(wait["why"], why);
    for row in rows(&answer).iter().filter(|row| row["session_id"] != wait["session_id"]) {
        assert_eq!(row["wait"]["why"], why, "{answer}");
    }
    // Each row says once who waits: its state does, or, where the last look came too late for that
    // on a busy machine, its wait.
    let text = answer["text"].as_str().expect("a text");
    let states = text.matches("\nstate: waiting for a line (cat)").count();
    let waits = text.matches(&format!("\nwait: impossible: {why}\nlog_path")).count();
    assert!(states + waits <= SESSIONS, "{text}");
}

/// rule: waits.md, wait_for: A client that goes away takes its waits along, never a session
/// rule: waits.md, wait_for: The end of execd answers it with what there is
#[test]
fn a_client_that_goes_away_takes_its_waits_along_and_the_end_of_execd_answers() {
    let mut execd = Execd::with(&["--socket", "here.sock"], &[]);
    let ids = gated(&mut execd, &[("one", 0), ("two", 0)]);
    let mut other = Wire::connect(&execd.file("here.sock"));
    other.send("wait_for", json!({"session_ids": ids, "mode": "all", "timeout_ms": 60_000}));
    other.result("ping", json!({}));
    drop(other);
    let request = wait_for(&mut execd, &ids, json!({"mode": "all"}));
    go(&execd, "one");
    execd.notification("session_exited", |note| note["session_id"] == ids[0]);
    execd.no_reply_yet(request);
    execd.signal(libc::SIGTERM);
    let answer = execd.result_of(request);
    assert_eq!(answer["wait"]["outcome"], "cancelled");
    assert_eq!(rows(&answer).len(), 2);
    assert_eq!(execd.exit_code(), Some(143));
}

/// rule: waits.md, wait_for: `wait_for` waits for several sessions of any family at once
#[test]
fn a_run_of_pi_is_waited_for_as_any_session_and_answers_as_ever() {
    let mut execd = Execd::start();
    let said = crate::agent_help::stream_file(&execd, "said", &crate::agent_help::answer("done"));
    let script = format!("{}; cat '{}'", until_file("go"), said.display());
    let pi = crate::agent_help::fake_pi(&execd, &script);
    let params = crate::agent_help::params(&pi, json!({}));
    let run = execd.start_request("agent_execute", params);
    let is_run = |note: &Value| {
        note["command"].as_str().is_some_and(|command| command.contains("--mode json"))
    };
    let id = execd.notification("session_started", is_run)["session_id"].as_u64().expect("an id");
    let other = execd.open_all(&["sleep 600"])[0];
    let request = wait_for(&mut execd, &[id, other], json!({"mode": "any"}));
    let until = json!({"until": {"text": "\"done\""}, "on_impossible": "answer"});
    let text = wait_for(&mut execd, &[id], until);
    execd.no_reply_yet(request);
    execd.no_reply_yet(text);
    go(&execd, "go");
    let answer = execd.result_of(request);
    assert_eq!(each(&answer, "family"), ["agent", "unified"], "{answer}");
    assert_eq!(each(&answer, "outcome"), ["exited", "pending"], "{answer}");
    assert_eq!(rows(&answer)[0]["exit_code"], 0);
    assert_eq!(execd.result_of(text)["wait"]["outcome"], "matched");
    let result = execd.result_of(run);
    assert_eq!((&result["success"], &result["output"]), (&json!(true), &json!("done")));
}

/// A shell that has ended counts as ended although others hold its output.
/// rule: waits.md, wait_for: Without `until` a shell's end is its session's, also where others hold
///   the output
#[test]
fn a_shell_that_leaves_others_behind_has_ended() {
    let mut execd = Execd::start();
    let command = format!("{}; sleep 60 & exit 3", until_file("one"));
    let ids = [session_of(&execd.open(&command)), execd.open_until("sleep 60", "")];
    let request = wait_for(&mut execd, &ids, json!({}));
    execd.no_reply_yet(request);
    go(&execd, "one");
    let answer = execd.result_of(request);
    assert_eq!(each(&answer, "outcome"), ["exited", "pending"]);
    assert_eq!(each(&answer, "state"), ["held", "running"]);
    assert_eq!(rows(&answer)[0]["exit_code"], 3);
    assert!(execd.listed(ids[0]).is_some(), "it goes on");
}

/// rule: waits.md, wait_for: Each wait is answered once: those of others for the same sessions too
#[test]
fn a_text_is_waited_for_in_one_of_several_or_in_all() {
    let mut execd = Execd::start();
    let serves = |word: &str| format!("{}; echo {word} at 80; sleep 60", until_file(word));
    let ids = execd.open_all(&[&serves("one"), &serves("two")]);
    let until = json!({"until": {"regex": "(\\w+) at (\\d+)"}});
    let any = wait_for(&mut execd, &ids, merged(until.clone(), json!({"take": false})));
    let all = wait_for(&mut execd, &ids, merged(until, json!({"mode": "all"})));
    go(&execd, "two");
    let answer = execd.result_of(any);
    let wait = &answer["wait"];
    assert_eq!((&wait["outcome"], &wait["by"]), (&json!("matched"), &json!("regex")));
    assert_eq!((&wait["session_id"], &wait["text"]), (&json!(ids[1]), &json!("two at 80")));
    assert_eq!(wait["captures"], json!(["two", "80"]));
    assert_eq!(wait["present_at_entry"], false);
    assert_eq!(each(&answer, "outcome"), ["pending", "matched"]);
    execd.no_reply_yet(all);
    go(&execd, "one");
    let answer = execd.result_of(all);
    assert_eq!(answer["wait"]["session_id"], ids[0]);
    assert_eq!(each(&answer, "outcome"), ["matched"; 2]);
    assert_eq!(each(&answer, "output"), ["one at 80\n", "two at 80\n"]);
    assert_eq!(rows(&answer)[1]["wait"]["captures"], json!(["two", "80"]));
    assert_absent(&rows(&answer)[0], &["wait", "exit_code"]);
}

/// A wait for one of several did not end for a password that one of them was asked for while
/// another went on by itself: whoever was to give it was asked when the wait was over by its time.
/// rule: waits.md, wait_for: `"until_password": true` ends a wait of any mode as soon as the terminal
///   of one of its sessions is asked for a password; it takes nothing
#[test]
fn a_password_ends_a_wait_of_any_mode_and_the_next_wait_tells_everything() {
    let mut execd = Execd::start();
    let ask = format!("{}; read -rsp 'PIN: ' pin; echo; echo \"got $pin\"", until_file("go"));
    let asks = session_of(&execd.open_with(&ask, json!({"tty": true})));
    let done = ends_at("done", 0);
    let ids = [asks, session_of(&execd.open(&done)), session_of(&execd.open("sleep 1000"))];
    go(&execd, "done");
    execd.until_listed_exited(ids[1]);
    let modes = [("any", vec![0, 2]), ("all", vec![0, 1, 2]), ("first_failure", vec![0, 1, 2])];
    let requests: Vec<u64> = modes
        .iter()
        .map(|(mode, places)| {
            let ids: Vec<u64> = places.iter().map(|at| ids[*at]).collect();
            wait_for(&mut execd, &ids, json!({"mode": mode, "until_password": true}))
        })
        .collect();
    execd.no_reply_yet(requests[0]);
    go(&execd, "go");
    for (request, (mode, places)) in requests.iter().zip(&modes) {
        let answer = execd.result_of(*request);
        let wait = &answer["wait"];
        assert_eq!(wait["outcome"], "matched", "{mode}: {answer}");
        assert_eq!((&wait["by"], &wait["session_id"]), (&json!("input"), &json!(asks)), "{mode}");
        assert_eq!(rows(&answer)[0]["state"], "waiting_for_password", "{mode}: {answer}");
        assert_eq!(rows(&answer).len(), places.len());
        rows(&answer).iter().for_each(|row| assert_absent(row, &["output"]));
    }

    // What is there is told by the wait that goes on: the prompt, and the exit of before.
    execd.write(json!({"session_id": asks, "chars": "1234\\r", "secret": true}));
    let more = json!({"mode": "all", "until_password": true});
    let answer = waited(&mut execd, &ids[..2], more);
    assert_eq!(each(&answer, "outcome"), ["exited"; 2], "{answer}");
    assert_eq!(rows(&answer)[1]["output"], "done\n");
}

#[test]
fn nothing_but_a_terminal_is_asked_for_a_password() {
    let mut execd = Execd::with(&["--on-impossible", "wait"], &[]);
    // A line is no password, and a pipe has no echo to turn off.
    let line = session_of(&execd.open_with("read -rp 'name: ' name", json!({"tty": true})));
    let pipe = session_of(&execd.open("read -rs pin"));
    let request = wait_for(&mut execd, &[line, pipe], json!({"until_password": true}));
    execd.no_reply_yet(request);
    execd.write(json!({"session_id": pipe, "chars": "1234\\n"}));
    assert_eq!(execd.result_of(request)["wait"]["outcome"], "exited");
}

/// rule: waits.md, wait_for: What is there already counts, in each session for what no call of its
///   family has told
#[test]
fn what_nobody_has_been_told_counts_at_once() {
    let mut execd = Execd::with(&["--on-impossible", "wait"], &[]);
    let unified = execd.open_until("sleep 0.5; echo ready; read x", "ready");
    let stream = crate::stream_help::open_until(&mut execd, "echo ready >&2; read x", "ready");
    let ids = [unified, crate::stream_help::id_of(&stream)];
    let until = json!({"until": {"text": "ready"}, "mode": "all"});
    let answer = waited(&mut execd, &ids, until.clone());
    assert_eq!(each(&answer, "outcome"), ["matched"; 2]);
    assert_eq!(each(&answer, "output"), ["ready\n"; 2]);
    assert_eq!(rows(&answer)[0]["wait"]["present_at_entry"], true);
    let again = waited(&mut execd, &ids, merged(until, json!({"timeout_ms": 100})));
    assert_eq!(again["wait"]["outcome"], "deadline", "it was told");
}
