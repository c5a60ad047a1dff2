//! The ledger of events: what each event says, that replies tell it once to each client, and that
//! who asks by number loses none (protocol.md, Events).

use crate::common::wire::Wire;
use crate::common::*;
use serde_json::{Value, json};

const SOCKET: [&str; 2] = ["--socket", "here.sock"];
const KEPT: u64 = 1_024;

fn with_client(flags: &[&str]) -> (Execd, Wire) {
    let execd = Execd::with(&[&SOCKET, flags].concat(), &[]);
    let wire = Wire::connect(&execd.file("here.sock"));
    (execd, wire)
}

/// Events as `number session what by`.
fn told(events: &Value) -> Vec<String> {
    let one = |event: &Value| {
        let by = event["killed_by"].as_str().unwrap_or("-");
        format!(
            "{} {} {} {by}",
            event["n"],
            event["session_id"],
            event["what"].as_str().expect("a word")
        )
    };
    events.as_array().map(|all| all.iter().map(one).collect()).unwrap_or_default()
}

/// A call whose reply tells nothing but what it carries.
fn carrier() -> Value {
    json!({"session_id": 777_777, "on_exit": "none", "events": true})
}

fn carried(wire: &mut Wire) -> Vec<String> {
    told(&wire.result("set_on_exit", carrier())["events"])
}

fn carried_by(execd: &mut Execd) -> Vec<String> {
    told(&execd.result("set_on_exit", carrier())["events"])
}

fn after(wire: &mut Wire, after: u64) -> Vec<String> {
    told(&wire.result("events", json!({"after": after}))["events"])
}

// ---- events -----------------------------------------------------------------------------

/// rule: protocol.md, Events: `events` gives what is behind a number, at most `max`, and where to
///   go on
#[test]
fn events_are_numbered_and_given_from_any_number_on() {
    let mut execd = Execd::start();
    let empty = execd.result("events", json!({}));
    assert_eq!(empty, json!({"events": [], "next_after": 0}));
    execd.run("exit 3");
    execd.result("bash_stream", json!({"command": "sleep 300", "timeoutMs": 100}));
    execd.run("kill -KILL $$");
    let all = execd.result("events", json!({}));
    assert_eq!((&all["next_after"], &all["oldest"]), (&json!(4), &json!(1)));
    assert_absent(&all, &["lost"]);
    let events = &all["events"];
    assert_eq!(
        told(events),
        [
            "1 1 exited -",
            "2 2 killed timeout",
            "3 2 exited timeout",
            "4 3 exited signal from outside"
        ]
    );
    assert_eq!((&events[0]["command"], &events[0]["exit_code"]), (&json!("exit 3"), &json!(3)));
    assert_eq!((&events[0]["family"], &events[1]["family"]), (&json!("unified"), &json!("stream")));
    assert_eq!(events[2]["signal"], "SIGKILL");
    assert!(events[0]["at_ms"].as_i64() > Some(1_700_000_000_000), "{events}");
    let page = execd.result("events", json!({"after": 1, "max": 2}));
    assert_eq!(told(&page["events"]), ["2 2 killed timeout", "3 2 exited timeout"]);
    assert_eq!(page["next_after"], 3);
    let none = execd.result("events", json!({"after": 4}));
    assert_eq!((&none["events"], &none["next_after"]), (&json!([]), &json!(4)), "numbers go on");
}

/// Who came back to another execd was never told its first events, and waited through new ones.
/// rule: protocol.md, Events: A number that was not given out yet stands for 0
#[test]
fn a_number_of_another_execd_leads_to_all_that_is_kept() {
    let (mut execd, mut wire) = with_client(&[]);
    let waits = execd.start_request("events", json!({"after": 900, "wait_ms": 300_000}));
    execd.no_reply_yet(waits);
    wire.result("exec_command", json!({"cmd": "exit 3", "yield_time_ms": 30_000}));
    let page = execd.result_of(waits);
    assert_eq!(
        (told(&page["events"]), &page["next_after"]),
        (vec!["1 1 exited -".into()], &json!(1))
    );
    for wait_ms in [0, 300_000] {
        let page = execd.result("events", json!({"after": 2, "wait_ms": wait_ms}));
        let expected = (vec!["1 1 exited -".to_owned()], &json!(1));
        assert_eq!((told(&page["events"]), &page["next_after"]), expected);
    }
}

/// rule: protocol.md, Events: With `wait_ms` it answers as soon as there is one; `cancel`, the time
///   and the end of execd end the wait
#[test]
fn a_request_waits_for_the_next_event_its_time_its_cancel_or_the_end() {
    let (mut execd, mut wire) = with_client(&[]);
    let session = session_of(&execd.open(&format!("{}; exit 5", until_file("go"))));
    let waits = |more: u64| json!({"after": 0, "wait_ms": more});
    let late = execd.result("events", waits(1));
    assert_eq!(late["events"], json!([]));
    let cancelled = execd.start_request("events", waits(300_000));
    let stays = execd.start_request("events", waits(300_000));
    execd.no_reply_yet(cancelled);
    assert!(execd.cancel(cancelled));
    assert_eq!(execd.result_of(cancelled), json!({"events": [], "next_after": 0}));
    go(&execd, "go");
    let page = execd.result_of(stays);
    assert_eq!(told(&page["events"]), [format!("1 {session} exited -")]);
    assert_eq!(page["events"][0]["exit_code"], 5);
    // The end of execd answers who waits, also where nothing happens by it.
    let last = wire.send("events", json!({"after": 1, "wait_ms": 300_000}));
    wire.result("ping", json!({}));
    execd.start_request("shutdown", json!({}));
    assert_eq!(wire.reply(last)["result"]["next_after"], 1);
    assert_eq!(execd.wait_exit().code(), Some(0));
}

/// rule: protocol.md, Events: A client that has ended its requests waits for no event that can't
///   come
#[test]
fn who_has_ended_its_requests_does_not_wait_for_what_cannot_come() {
    let mut execd = Execd::start();
    let waits = execd.start_request("events", json!({"wait_ms": 300_000}));
    execd.no_reply_yet(waits);
    execd.close_stdin();
    assert_eq!(execd.result_of(waits)["events"], json!([]));
    assert_eq!(execd.wait_exit().code(), Some(0));
}

/// rule: protocol.md, Events: The last 1,024 are kept; what is asked for and kept no more is told
///   as `lost`
#[test]
fn what_the_ring_has_no_more_is_told_as_lost() {
    let mut execd = Execd::start();
    let more = 70;
    let mut pending = std::collections::VecDeque::new();
    for _ in 0..KEPT + more {
        let params = json!({"cmd": "-", "shell": "/bin/true", "yield_time_ms": 30_000});
        pending.push_back(execd.start_request("exec_command", params));
        if pending.len() == 16
            && let Some(id) = pending.pop_front()
        {
            execd.result_of(id);
        }
    }
    pending.into_iter().for_each(|id| drop(execd.result_of(id)));
    let page = execd.result("events", json!({"after": 5, "max": 1}));
    assert_eq!((&page["lost"], &page["oldest"]), (&json!([6, more]), &json!(more + 1)));
    assert_eq!(page["next_after"], more + 1);
    let all = execd.result("events", json!({"after": more, "max": 5_000}));
    assert_eq!(all["events"].as_array().map(Vec::len), Some(1_024));
    assert_absent(&all, &["lost"]);
    assert_eq!(carried_by(&mut execd), [""; 0], "each was told by its reply");
}

// ---- Carried by replies -----------------------------------------------------------------

/// rule: protocol.md, Events: A reply to a call with `events: true` carries what its client was not
///   told yet, 16 at most, once
/// rule: protocol.md, Events: A line of the header for each event, last in the header
#[test]
fn an_exit_that_nobody_polled_is_carried_by_the_next_reply_that_asks_and_by_no_other() {
    let mut execd = Execd::start();
    let session = session_of(&execd.open("sleep 0.3; exit 4"));
    execd.notification("session_exited", |exit| exit["session_id"] == session);
    let other = execd.open("sleep 300");
    assert_absent(&other, &["events"]);
    let poll = json!({"session_id": session_of(&other), "yield_until": LONG_AGO, "events": true});
    let reply = execd.write(poll.clone());
    assert_eq!(told(&reply["events"]), [format!("1 {session} exited -")]);
    let header = reply["header"].as_str().expect("text");
    let line = header.lines().last().expect("a line");
    let begins = format!("event: session {session} (sleep 0.3; exit 4) exited 4, ");
    assert!(line.starts_with(&begins) && line.contains(" ago; log: /"), "{header}");
    assert_absent(&execd.write(poll), &["events"]);
    // Its own exit is told by the poll itself.
    execd.until_exit(session);
    assert_eq!(carried_by(&mut execd), [""; 0]);
}

/// rule: protocol.md, Events: A reply to a call with `events: true` carries what its client was not
///   told yet, 16 at most, once
#[test]
fn each_method_that_says_so_carries_events_and_what_is_left_comes_with_the_next() {
    let (mut execd, mut wire) = with_client(&[]);
    wire.result("ping", json!({}));
    let stays = session_of(&execd.open("sleep 300"));
    let ends = session_of(&execd.open("sleep 300"));
    for _ in 0..18 {
        execd.run("true");
    }
    let many = carried(&mut wire);
    assert_eq!((many.len(), many[15].as_str()), (16, "16 18 exited -"));
    assert_eq!(carried(&mut wire), ["17 19 exited -", "18 20 exited -"]);
    let calls = [
        ("exec_command", json!({"cmd": "true"})),
        ("exec_command", json!({"cmd": "true", "workdir": "/no/such/directory"})),
        ("write_stdin", json!({"session_id": stays, "yield_until": LONG_AGO})),
        ("wait_for", json!({"session_ids": [stays], "timeout_ms": 0})),
        ("set_on_exit", json!({"session_id": stays, "on_exit": "none"})),
        ("list_sessions", json!({"peek": true})),
        ("read_output", json!({"session_id": stays})),
        ("read_output", json!({"session_id": stays, "from": 0, "yield_time_ms": 1})),
        ("kill_session", json!({"session_id": 999})),
        ("kill_session", json!({"session_id": ends})),
    ];
    for (method, params) in calls {
        execd.run("true");
        let reply = wire.result(method, merged(params, json!({"events": true})));
        assert_eq!(told(&reply["events"]).len(), 1, "{method}: {reply}");
        assert_eq!(reply["events"][0]["what"], "exited", "{method}: {reply}");
        let text = ["header", "text", "summary"].iter().find_map(|field| reply[*field].as_str());
        let in_text =
            method == "read_output" || text.is_none_or(|text| text.contains("\nevent: session "));
        assert!(in_text, "{method}: {reply}");
    }
    assert_eq!(carried(&mut wire), [""; 0]);
}

/// rule: protocol.md, Events: A cancelled request carries nothing
/// rule: protocol.md, Events: A request without an id tells nothing
#[test]
fn a_request_that_is_cancelled_or_not_answered_carries_no_events() {
    let mut execd = Execd::start();
    let stays = session_of(&execd.open("sleep 300"));
    let poll = json!({"session_id": stays, "yield_time_ms": 60_000, "events": true});
    let poll = execd.start_request("write_stdin", poll);
    let ends = session_of(&execd.open("sleep 0.3"));
    execd.notification("session_exited", |exit| exit["session_id"] == ends);
    execd.no_reply_yet(poll);
    assert!(execd.cancel(poll));
    let reply = execd.result_of(poll);
    assert_eq!(reply["wait_status"], "cancelled");
    assert_absent(&reply, &["events"]);
    for (method, params) in [("events", json!({})), ("list_sessions", json!({"events": true}))] {
        execd.send_line(&json!({"method": method, "params": params}).to_string());
    }
    assert_eq!(carried_by(&mut execd), [format!("1 {ends} exited -")]);
}

// ---- Several clients --------------------------------------------------------------------

/// rule: protocol.md, Events: Who asked for a kill is told of it by the answer; others with the
///   request's id
#[test]
fn each_client_is_told_once_and_who_killed_is_told_by_the_answer() {
    let (mut execd, mut one) = with_client(&[]);
    let mut other = Wire::connect(&execd.file("here.sock"));
    one.result("ping", json!({}));
    other.result("ping", json!({}));
    let session = execd.open_until("echo ready; sleep 300", "ready");
    one.result("kill_session", json!({"session_id": session}));
    assert_eq!(carried(&mut one), [""; 0]);
    let both =
        [format!("1 {session} killed kill_session"), format!("2 {session} exited kill_session")];
    assert_eq!(carried(&mut other), both);
    assert_eq!(carried(&mut other), [""; 0]);
    assert_eq!(carried_by(&mut execd), both);
    let events = other.result("events", json!({}));
    assert_eq!(events["events"][0]["request_id"], 2, "{events}");
    // Who comes later is told what comes later, and asks for the rest.
    let mut late = Wire::connect(&execd.file("here.sock"));
    assert_eq!(carried(&mut late), [""; 0]);
    assert_eq!(after(&mut late, 0), both);
}

// ---- What is an event -------------------------------------------------------------------

/// rule: protocol.md, Events: An eviction is an event, told by the warning of the call that it made
///   room for
#[test]
fn an_eviction_is_told_by_the_warning_and_to_others_as_an_event() {
    let (mut execd, mut wire) = with_client(&["--max-sessions", "2"]);
    wire.result("ping", json!({}));
    let first = session_of(&execd.open("sleep 300"));
    execd.open("sleep 300");
    let third = execd.open_with("sleep 300", json!({"events": true}));
    assert!(third["warning"].as_str().is_some_and(|text| text.starts_with("evicted session 1 ")));
    let own = told(&third["events"]);
    assert!(own.iter().all(|event| !event.contains("evicted")), "{own:?}");
    execd.notification("session_exited", |exit| exit["session_id"] == first);
    let both = [format!("1 {first} evicted -"), format!("2 {first} exited eviction")];
    assert_eq!(carried(&mut wire), both);
    let own = [own, carried_by(&mut execd)].concat();
    assert_eq!(own, [both[1].clone()]);
}

/// rule: protocol.md, Events: A wake is an event that no reply carries
#[test]
fn a_wake_is_an_event_and_the_exit_is_carried_whatever_became_of_it() {
    let mut execd = Execd::start();
    let session = session_of(&execd.open_with("sleep 0.3", json!({"on_exit": "wake"})));
    execd.notification("session_exited", |exit| exit["wake"] == true);
    assert_eq!(carried_by(&mut execd), [format!("1 {session} exited -")]);
    let all = execd.result("events", json!({}));
    let both = [format!("1 {session} exited -"), format!("2 {session} wake -")];
    assert_eq!(told(&all["events"]), both);
}

/// rule: protocol.md, Events: Trouble of a log is an event, and told by a reply that names it
#[test]
fn a_deleted_log_is_an_event_once() {
    let (mut execd, mut wire) = with_client(&[]);
    wire.result("ping", json!({}));
    let opened = execd.open("cat");
    let session = session_of(&opened);
    execd.input_until(session, "first\\n", "first");
    until_logged(&opened, "first");
    std::fs::remove_file(log_path(&opened)).expect("the log is ours");
    let end = json!({"session_id": session, "chars": "more\\n", "eof": true});
    execd.write(merged(end, json!({"yield_time_ms": 30_000})));
    let mut event = Value::Null;
    eventually("the trouble is an event", || {
        let all = execd.result("events", json!({}))["events"].clone();
        let mut all = all.as_array().expect("a list").iter();
        event = all.find(|one| one["what"] == "log_trouble").cloned().unwrap_or_default();
        !event.is_null()
    });
    let message = event["message"].as_str().expect("a message");
    assert!(message.starts_with("log write failed: ENOENT"), "{event}");
    // The log writer finds the trouble before the command has ended, or after that.
    let (first, then) =
        if event["n"] == 1 { ("log_trouble", "exited") } else { ("exited", "log_trouble") };
    let both = [format!("1 {session} {first} -"), format!("2 {session} {then} -")];
    assert_eq!(carried(&mut wire), both);
    assert_eq!(carried(&mut wire), [""; 0]);
}

/// rule: protocol.md, Events: Helpers of execd's own are not in it
#[test]
fn a_helper_of_execds_own_is_no_event() {
    let mut execd = Execd::start();
    execd.result("agent_health", json!({"pi_path": "/bin/true"}));
    assert_eq!(execd.result("events", json!({}))["events"], json!([]));
}
