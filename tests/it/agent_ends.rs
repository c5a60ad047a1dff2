//! How a run of pi ends (agent.md): by itself, at one of its three timeouts, over its
//! budget, by a cancel or a kill; each with its finish_reason, the totals so far, and nobody left.

use crate::agent_help::*;
use crate::common::wire::Wire;
use crate::common::*;
use serde_json::{Value, json};

/// Children of pi in its session and in others, one of them with the marks of another execd, one
/// deaf to SIGTERM. None starts others: what is forked in the moment of its parent's end, outside
/// of the session, may outlive the run.
const CHILDREN: &str = "sleep 1000 & setsid sleep 1000 & EXECD_INSTANCE=x EXECD_SESSION_ID=1 setsid \
                        sleep 1000 & setsid bash -c \
                        'trap \"\" TERM; exec sleep 1000' &";
/// Goes on for ever, with [`CHILDREN`] that were started before the first line was written: what is
/// started in the moment of pi's end, and leaves its session, may outlive it.
const STAY: &str = "wait $children";

/// Starts a run whose pi writes these lines and then does something; gives the request's id.
fn start(execd: &mut Execd, lines: &[Value], then: &str, more: Value) -> u64 {
    let file = stream_file(execd, "lines", lines);
    let first = if then == STAY { CHILDREN } else { "" };
    let pi = fake_pi(execd, &format!("{first} cat {}; {then}", file.display()));
    execd.start_request("agent_execute", params(&pi, more))
}

/// The same to its end; nobody may be left then.
fn end_of(execd: &mut Execd, lines: &[Value], then: &str, more: Value) -> Value {
    let id = start(execd, lines, then, more);
    let result = execd.result_of(id);
    let left = execd.session_processes();
    assert!(left.is_empty(), "left when the result came: {left:?}");
    result
}

fn assert_ended(result: &Value, finish_reason: &str, error: &str) {
    assert_eq!(
        (&result["success"], &result["finish_reason"]),
        (&json!(false), &json!(finish_reason))
    );
    let text = result["error"].as_str().unwrap_or_default();
    assert!(text.contains(error), "{error:?} is not in {text:?}");
}

/// Starts processes that are known by their parents alone: they have left the session and emptied
/// their environment. They show the name of this test in their arguments.
struct Hidden {
    name: String,
}

impl Hidden {
    const ALL: usize = 3;

    fn new(name: &str) -> Self {
        Self { name: format!("execd-hidden-{name}-{}", std::process::id()) }
    }

    /// One is a child, the others are children of a child.
    fn script(&self) -> String {
        let name = &self.name;
        let sleep = format!("bash -c \"exec -a {name} sleep 1000\"");
        format!("setsid env -i {sleep} & setsid env -i bash -c '{sleep} & setsid {sleep} & wait' &")
    }

    fn living(&self) -> Vec<i32> {
        let ours = |pid: &i32| {
            let line = crate::common::outside::cmdline(*pid);
            line.starts_with(self.name.as_bytes())
        };
        let all = std::fs::read_dir("/proc").expect("/proc").flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(ours).collect()
    }

    fn until_all_live(&self) {
        eventually("all hidden processes live", || self.living().len() == Self::ALL);
    }

    fn assert_gone(&self) {
        let left = self.living();
        assert!(left.is_empty(), "{} are left: {left:?}", left.len());
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        for pid in self.living() {
            send_signal(pid, 9);
        }
    }
}

// ---- Timeouts ---------------------------------------------------------------------------

/// rule: agent.md, agent_execute, params: first_event_timeout_ms: until an assistant message_start
///   or message_update
/// rule: agent.md, agent_execute, params: idle_timeout_ms: no event for so long after the first
/// rule: agent.md, agent_execute, params: timeout_ms: the hard one
#[test]
fn a_run_is_ended_at_each_of_its_timeouts_with_what_came_so_far() {
    let mut execd = Execd::start();
    let before = [session(), agent_start(), turn_start()];
    let id = start(&mut execd, &before, STAY, json!({"first_event_timeout_ms": 300}));
    let result = execd.result_of(id);
    assert!(execd.session_processes().is_empty());
    assert_ended(&result, "timeout", "first_event_timeout_ms");
    // What is told at the end of a stream was told to nobody: the wait was answered by then.
    assert_eq!(events_of(&mut execd, id)[0]["event"], "turn_start");
    assert_eq!((&result["num_turns"], &result["session_id"]), (&json!(1), &json!("session-1")));
    assert_absent(&result, &["first_event_ms"]);
    let result = end_of(&mut execd, &begun(), STAY, json!({"idle_timeout_ms": 300}));
    assert_ended(&result, "timeout", "idle_timeout_ms");
    assert_eq!(result["output"], "Half");
    assert!(result["first_text_ms"].is_u64(), "{result}");
    let tool = [&begun()[..], &[tool_start("t", "bash", json!({}))]].concat();
    let result = end_of(&mut execd, &tool, STAY, json!({"timeout_ms": 400}));
    assert_ended(&result, "timeout", "timeout_ms");
    assert_eq!(result["tool_calls"], json!({"bash": 1}));
    assert!(result["duration_ms"].as_u64().is_some_and(|ms| ms >= 400), "{result}");
}

/// rule: agent.md, agent_execute, params: The clock of idle_timeout_ms stands still while a tool
///   runs
#[test]
fn a_tool_may_be_silent_for_longer_than_the_idle_timeout() {
    let mut execd = Execd::start();
    let file = |execd: &Execd, name: &str, lines: &[Value]| {
        stream_file(execd, name, lines).display().to_string()
    };
    let all = answer("Done.");
    let start = [&all[..6], &[tool_start("t", "bash", json!({}))]].concat();
    let end = [&[tool_end("t", "bash", "")], &all[6..]].concat();
    let (start, end) = (file(&execd, "a", &start), file(&execd, "b", &end));
    let script = format!("cat {start}; sleep 1.5; cat {end}");
    let result = run(&mut execd, &script, json!({"idle_timeout_ms": 500}));
    assert_eq!((&result["success"], &result["finish_reason"]), (&json!(true), &json!("stop")));
}

// ---- Budgets ----------------------------------------------------------------------------

/// Two answers, after each of which pi would go on.
fn two_answers() -> Vec<Value> {
    let one = answer("One.");
    [&one[..7], &one[2..7]].concat()
}

/// rule: agent.md, Ends: Over max_cost_usd: checked at each message_end, ended, totals so far
/// rule: agent.md, Ends: Over max_tokens: input, cache writes and output count
/// rule: agent.md, Ends: Exactly the limit is not over it
#[test]
fn a_run_over_its_budget_is_ended_and_tells_what_it_cost() {
    let mut execd = Execd::start();
    // 0.25 is not over 0.25; 0.5 is.
    let result = end_of(&mut execd, &two_answers(), STAY, json!({"max_cost_usd": 0.25}));
    assert_ended(&result, "cost_exhausted", "0.25");
    assert_eq!((&result["cost_usd"], &result["num_turns"]), (&json!(0.5), &json!(2)));
    let result = end_of(&mut execd, &two_answers(), STAY, json!({"max_tokens": 219}));
    assert_ended(&result, "token_exhausted", "219");
    assert_eq!(result["total_tokens"], 220);
    // Also one that has ended before anybody could end it.
    let lines = [two_answers(), vec![agent_end()]].concat();
    let result = end_of(&mut execd, &lines, "", json!({"max_tokens": 219}));
    assert_ended(&result, "token_exhausted", "219");
    let enough = json!({"max_tokens": 220, "max_cost_usd": 0.5});
    let result = end_of(&mut execd, &lines, "", enough);
    assert_eq!(result["success"], true, "{result}");
    // A last line without its end counts.
    let text = ndjson(&answer("Done.")[..6]);
    std::fs::write(execd.file("cut"), text.trim_end()).expect("a stream");
    let result = run(&mut execd, "cat cut", json!({"max_cost_usd": 0.1}));
    assert_ended(&result, "cost_exhausted", "0.1");
    assert_eq!(result["cost_usd"], 0.25);
}

// ---- Cancels and kills ------------------------------------------------------------------

/// rule: protocol.md, Several clients, cancel in the families: bash and agent_execute answer a
///   cancel as their documents say
/// rule: agent.md, Ends: The process tree is ended, detached children included: TERM, then KILL
/// rule: agent.md, Ends: cancel ends the run and its process tree
/// rule: agent.md, Ends: A run is a session: listed, killable, logged
#[test]
fn a_cancel_and_a_kill_end_the_run_and_all_of_its_processes() {
    for by_cancel in [true, false] {
        let mut execd = Execd::start();
        let id = start(&mut execd, &begun(), STAY, json!({}));
        execd.notification("agent_event", |event| event["event"] == "text");
        let started = execd.notification("session_started", |_| true);
        let session = started["session_id"].as_u64().expect("an id");
        let row = execd.listed(session).expect("it is listed");
        let command = row["command"].as_str().expect("a command");
        assert!(command.ends_with("--no-session -p 'Do it'"), "{command}");
        if by_cancel {
            assert!(execd.cancel(id));
        } else {
            assert!(execd.kill(session).is_object());
        }
        let result = execd.result_of(id);
        assert_ended(&result, "cancelled", if by_cancel { "cancel" } else { "" });
        assert_eq!(result["output"], "Half");
        assert!(execd.session_processes().is_empty());
    }
}

/// A pi that dies at once was gone before anybody noted that its end was asked for: then its run
/// had ended by an error, most of the time.
#[test]
fn a_run_that_was_killed_is_cancelled_however_fast_it_dies() {
    let mut execd = Execd::start();
    for (round, signal) in ["SIGTERM", "SIGKILL"].into_iter().cycle().take(16).enumerate() {
        let id = start(&mut execd, &begun(), "exec sleep 1000", json!({}));
        let session = round as u64 + 1;
        execd.notification("session_started", |note| note["session_id"] == session);
        execd.result("kill_session", json!({"session_id": session, "signal": signal}));
        assert_ended(&execd.result_of(id), "cancelled", "");
    }
}

/// rule: agent.md, Ends: A run that nobody can be told of any more is ended
#[test]
fn a_run_that_nobody_waits_for_any_more_is_ended() {
    let mut execd = Execd::start();
    let file = stream_file(&execd, "lines", &begun());
    let pi = fake_pi(&execd, &format!("{CHILDREN} cat {}; {STAY}", file.display()));
    execd.ping();
    let mut other = Wire::connect(&execd.socket());
    other.send("agent_execute", params(&pi, json!({})));
    execd.notification("session_started", |_| true);
    drop(other);
    execd.notification("session_exited", |_| true);
    execd.until_no_session_process();
    assert_eq!(execd.result("list_sessions", json!({}))["sessions"], json!([]));
    // One without an id runs to its end, and leaves no trace in the table.
    let answer = stream_file(&execd, "answer", &answer("Done."));
    let pi = fake_pi(&execd, &format!("cat {}; sleep 0.3; touch done", answer.display()));
    let request = json!({"method": "agent_execute", "params": params(&pi, json!({}))});
    execd.send_raw(format!("{request}\n").as_bytes());
    until_exists(&execd.file("done"));
    execd.until_no_session_process();
    execd.notification("session_exited", |note| note["exit_code"] == 0);
    assert_eq!(execd.result("list_sessions", json!({}))["sessions"], json!([]));
}

/// rule: agent.md, Ends: The end of execd by a signal ends a run; the end of stdin lets a run end
#[test]
fn the_end_of_execd_is_the_end_of_its_runs() {
    let mut execd = Execd::start();
    let id = start(&mut execd, &begun(), STAY, json!({}));
    execd.notification("agent_event", |event| event["event"] == "text");
    execd.signal(libc::SIGTERM);
    assert_ended(&execd.result_of(id), "cancelled", "");
    execd.wait_exit();
    execd.until_no_session_process();
    // At the end of stdin a run goes on to its own end.
    let mut execd = Execd::start();
    let file = stream_file(&execd, "answer", &answer("Done."));
    let pi =
        fake_pi(&execd, &format!("until [ -e go ]; do sleep 0.02; done; cat {}", file.display()));
    let id = execd.start_request("agent_execute", params(&pi, json!({})));
    execd.notification("session_started", |_| true);
    execd.close_stdin();
    std::fs::write(execd.file("go"), "").expect("a file");
    assert_eq!(execd.result_of(id)["success"], true);
    assert!(execd.wait_exit().success());
}

/// What a tool has started by `setsid env -i` has neither session nor environment of the run. It
/// survived a cancel, a timeout and a kill -9 of execd.
/// rule: agent.md, Ends: The process tree is ended when execd is killed
/// rule: agent.md, Ends: What descends from pi when its end begins is ended too, also after a kill
///   -9 of execd
#[test]
fn a_run_takes_along_what_hangs_below_it() {
    let mut execd = Execd::start();
    // Beside it a session of another kind starts the same.
    let spared = Hidden::new("spared");
    execd.open_until(&format!("{} echo up; wait", spared.script()), "up");
    spared.until_all_live();
    let hidden = Hidden::new("run");
    let stay = format!("{} wait; sleep 1000", hidden.script());

    let id = start(&mut execd, &begun(), &stay, json!({}));
    hidden.until_all_live();
    assert!(execd.cancel(id));
    assert_ended(&execd.result_of(id), "cancelled", "");
    hidden.assert_gone();

    let id = start(&mut execd, &begun(), &stay, json!({"timeout_ms": 3_000}));
    hidden.until_all_live();
    assert_ended(&execd.result_of(id), "timeout", "");
    hidden.assert_gone();

    start(&mut execd, &begun(), &stay, json!({}));
    hidden.until_all_live();
    assert_eq!(spared.living().len(), Hidden::ALL, "those of another session");
    execd.signal(9);
    eventually("nobody is left", || hidden.living().is_empty());
}

/// rule: agent.md, Ends: Nothing of another run that lives is ended
#[test]
fn the_end_of_a_run_spares_those_of_another() {
    let mut execd = Execd::start();
    let hidden = Hidden::new("other");
    let stay = format!("{} wait; sleep 1000", hidden.script());
    let first = start(&mut execd, &begun(), &stay, json!({}));
    hidden.until_all_live();

    let file = stream_file(&execd, "second", &answer("Done."));
    let pi = execd.file("second-pi");
    write_pi(&pi, &format!("cat {}", file.display()));
    let params = params(&pi.to_string_lossy(), json!({}));
    let result = execd.result("agent_execute", params);
    assert_eq!(result["finish_reason"], "stop");
    assert_eq!(hidden.living().len(), Hidden::ALL, "those of the first run");

    assert!(execd.cancel(first));
    assert_ended(&execd.result_of(first), "cancelled", "");
    hidden.assert_gone();
}

/// rule: agent.md, Ends: A run inside the run ends with it
#[test]
fn a_run_inside_a_run_ends_with_it() {
    let mut execd = Execd::start();
    let hidden = Hidden::new("inside");
    let file = stream_file(&execd, "begun", &begun());
    let inner_pi = execd.file("inner");
    write_pi(&inner_pi, &format!("cat {}; {} wait", file.display(), hidden.script()));
    let params = params(&inner_pi.to_string_lossy(), json!({}));
    let request = json!({"id": 1, "method": "agent_execute", "params": params});
    let inner = crate::common::EXECD;
    let more = format!("(echo '{request}'; sleep 1000) | setsid {inner} >/dev/null 2>&1 & wait");
    let id = start(&mut execd, &begun(), &more, json!({}));
    hidden.until_all_live();
    assert!(execd.cancel(id));
    assert_ended(&execd.result_of(id), "cancelled", "");
    hidden.assert_gone();
}

// ---- Ends of pi -------------------------------------------------------------------------

/// rule: agent.md, The result: Exit ≠ 0: no success, error has the last 4 KiB of stderr
#[test]
fn a_pi_that_fails_tells_the_end_of_its_stderr() {
    let mut execd = Execd::start();
    let noise =
        "for i in $(seq 1000); do echo \"noise $i\" >&2; done; echo 'No such model' >&2; exit 1";
    let result = end_of(&mut execd, &[], noise, json!({}));
    assert_ended(&result, "error", "No such model");
    assert_eq!(result["exit_code"], 1);
    let error = result["error"].as_str().expect("an error");
    assert!(!error.contains("noise 1\n") && error.len() < 5_000, "{} bytes", error.len());
}

/// rule: agent.md, Ends: The process tree is ended at a normal end too, before the result is sent;
///   an orphan that has left pi's session is ended with it
#[test]
fn a_run_that_is_over_leaves_nothing_behind() {
    let mut execd = Execd::start();
    // pi ends once the orphan has left: its parent is gone, and its session is another one.
    let gone = execd.file("gone").display().to_string();
    let leave = format!(
        "sleep 1000 & (bash -c 'exec sleep 1000' >/dev/null 2>&1 </dev/null &); \
         (setsid -f env -i sh -c ': > {gone}; exec sleep 1001' >/dev/null 2>&1 </dev/null); \
         until [ -e {gone} ]; do sleep 0.01; done; exit 0"
    );
    let id = start(&mut execd, &answer("Done."), &leave, json!({}));
    let result = execd.result_of(id);
    assert_eq!((&result["success"], &result["finish_reason"]), (&json!(true), &json!("stop")));
    assert!(execd.session_processes().is_empty());
}

/// rule: agent.md, Ends: After a final agent_end pi has 10 s to exit, then it is ended and keeps
///   its success
#[test]
fn a_pi_that_does_not_exit_keeps_its_success() {
    let mut execd = Execd::start();
    let begun = now();
    let result = end_of(&mut execd, &answer("Done."), STAY, json!({"idle_timeout_ms": 2_000}));
    assert_eq!((&result["success"], &result["finish_reason"]), (&json!(true), &json!("stop")));
    assert_absent(&result, &["error"]);
    assert!(begun.elapsed().as_secs() >= 10, "it has 10 s to exit");
    // Also where its whole time is over meanwhile.
    let result = end_of(&mut execd, &answer("Done."), STAY, json!({"timeout_ms": 1_500}));
    assert_eq!((&result["success"], &result["finish_reason"]), (&json!(true), &json!("stop")));
    // One that goes on after a failure has not ended.
    let retry = json!({"type": "agent_end", "messages": [], "willRetry": true});
    let lines = [&answer("No.")[..7], &[retry]].concat();
    let result = end_of(&mut execd, &lines, STAY, json!({"idle_timeout_ms": 300}));
    assert_ended(&result, "timeout", "idle_timeout_ms");
}

// ---- Beside others ----------------------------------------------------------------------

/// rule: agent.md, Ends: A run that waits is not evicted
#[test]
fn a_run_is_not_evicted_and_takes_nobodys_place() {
    let mut execd = Execd::with(&["--max-sessions", "2"], &[]);
    let first = session_of(&execd.open("exec cat"));
    let id = start(&mut execd, &begun(), "until [ -e go ]; do sleep 0.02; done", json!({}));
    let run = execd.notification("session_started", |note| note["session_id"] != first);
    let run = run["session_id"].as_u64().expect("an id");
    execd.open("exec cat");
    assert!(execd.listed(first).is_some(), "there are two of them beside the run");
    // From the third on each takes the place of an older one.
    for _ in 0..3 {
        execd.open("exec cat");
    }
    assert!(execd.listed(first).is_none());
    assert!(execd.listed(run).is_some(), "the run is still there");
    std::fs::write(execd.file("go"), "").expect("a file");
    assert_eq!(execd.result_of(id)["output"], "Half");
}

// ---- The program that runs pi -----------------------------------------------------------

/// rule: agent.md, Ends: The program that runs pi is no execd by its name or its words
#[test]
fn the_program_that_runs_pi_is_missed_by_whoever_ends_execds_by_name() {
    let mut execd = Execd::start();
    start(&mut execd, &begun(), STAY, json!({}));
    execd.notification("agent_event", |event| event["event"] == "text");
    let runner = runner_of(execd.pid());
    assert_eq!(crate::common::outside::cmdline(runner), b"sessions-agent\0--agent-run\0");
}

/// rule: agent.md, Ends: Nothing of a run is alive 2 s after a SIGKILL of execd, of its guard too
#[test]
fn the_end_of_its_stdin_ends_a_run_whoever_is_killed_beside_execd() {
    for round in 0..5 {
        let mut execd = Execd::start();
        let hidden = Hidden::new(&format!("orphaned-{round}"));
        let name = &hidden.name;
        // One more that nobody but the program that runs pi can find: its parent is gone.
        let orphan = format!("setsid -f env -i bash -c 'exec -a {name} sleep 1000'");
        let stay = format!("{} {orphan}; wait; sleep 1000", hidden.script());
        start(&mut execd, &begun(), &stay, json!({}));
        eventually("all hidden processes live", || hidden.living().len() == Hidden::ALL + 1);
        if round > 0 {
            let guard = crate::common::outside::helper_of(execd.pid(), "sessions-guard");
            send_signal(guard.expect("a guard"), 9);
        }
        execd.signal(9);
        let begun = now();
        eventually("nobody is left", || hidden.living().is_empty());
        assert!(begun.elapsed().as_secs() < 2, "it took {:?}", begun.elapsed());
        execd.until_no_session_process();
    }
}

/// rule: agent.md, Ends: After a SIGKILL of the program that runs pi there is a result that says
///   so; pi and what is in its session have ended
#[test]
fn a_run_whose_program_is_killed_has_a_result_that_says_so() {
    for _ in 0..3 {
        let mut execd = Execd::start();
        let file = stream_file(&execd, "lines", &begun());
        let pi = fake_pi(&execd, &format!("sleep 1000 & cat {}; wait", file.display()));
        let params = params(&pi, json!({"label": "task 7"}));
        let id = execd.start_request("agent_execute", params);
        execd.notification("agent_event", |event| event["event"] == "text");
        send_signal(runner_of(execd.pid()), 9);
        let result = execd.result_of(id);
        assert_ended(&result, "error", "the program that ran pi (sessions-agent) was ended");
        let found = (&result["error_kind"], &result["label"], &result["model"]);
        assert_eq!(found, (&json!("crash"), &json!("task 7"), &json!("scripted")), "{result}");
        assert!(result["log_path"].is_string(), "{result}");
        assert!(execd.session_processes().is_empty());
    }
}

/// rule: agent.md, Ends: A program that runs pi and does not end is ended 10 s after its grace
#[test]
fn a_program_that_hangs_at_its_end_is_ended_with_its_run() {
    let mut execd = Execd::start();
    let file = stream_file(&execd, "lines", &begun());
    let pi = fake_pi(&execd, &format!("echo $$ > pid; {CHILDREN} cat {}; wait", file.display()));
    let id = execd.start_request("agent_execute", params(&pi, json!({})));
    execd.notification("agent_event", |event| event["event"] == "text");
    let pid = std::fs::read_to_string(execd.file("pid")).expect("it was noted");
    let pid: i32 = pid.trim().parse().expect("a pid");
    let runner = runner_of(execd.pid());
    let begun = now();
    assert!(execd.cancel(id));
    // One of its children is deaf to SIGTERM: the program waits for 2 s more.
    eventually("pi is gone", || !is_alive(pid));
    send_signal(runner, libc::SIGSTOP);
    let result = execd.result_of(id);
    assert_ended(&result, "cancelled", "cancelled");
    assert_eq!(result["killed_by"], "cancel", "{result}");
    assert!(begun.elapsed().as_secs() >= 11, "it has its time: {:?}", begun.elapsed());
    assert!(execd.session_processes().is_empty());
}
