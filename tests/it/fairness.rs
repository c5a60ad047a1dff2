//! Nobody waits for somebody else's flood, backlog or disk, and no descriptor is forgotten
//! (architecture.md, A session). Everything is counted, nothing is timed: a starved session is one
//! whose counter stands still until the test gives up.

use std::fs::OpenOptions;
use std::time::{Duration, Instant};

use crate::common::data::*;
use crate::common::wire::Wire;
use crate::common::*;
use base64::Engine;
use serde_json::json;

/// Logs that end early: floods would fill the disk otherwise.
const SMALL_LOGS: [&str; 2] = ["--log-max-bytes", "1000000"];

/// How much each session has printed so far.
fn printed(execd: &mut Execd, sessions: &[u64]) -> Vec<u64> {
    let list = execd.peek();
    let entries = list["sessions"].as_array().expect("sessions is an array");
    let total = |session: &u64| {
        let entry = entries.iter().find(|entry| entry["session_id"] == *session);
        entry.expect("the session is listed")["output_bytes_total"].as_u64().expect("a number")
    };
    sessions.iter().map(total).collect()
}

/// Waits until each session has printed more than before, with pings all the while.
fn until_all_advanced(execd: &mut Execd, sessions: &[u64], before: &[u64]) -> Vec<u64> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        execd.ping();
        let now = printed(execd, sessions);
        if now.iter().zip(before).all(|(now, before)| now > before) {
            return now;
        }
        assert!(Instant::now() < deadline, "somebody starves: {before:?}, then {now:?}");
    }
}

/// rule: architecture.md, A session: Reads are bounded and round-robin: a `yes` in one session does
///   not delay another's reply
/// rule: architecture.md, A session: Twenty floods: no fd is starved
#[test]
fn requests_are_answered_while_twenty_sessions_flood_and_none_starves() {
    let mut floods = vec!["yes 0123456789012345678901234567890123456789"; 19];
    // A byte every few milliseconds, among gigabytes a second.
    floods.push("while :; do printf .; sleep 0.002; done");
    for tty in [false, true] {
        let mut execd = Execd::with(&SMALL_LOGS, &[]);
        let requests: Vec<u64> = floods
            .iter()
            .map(|cmd| {
                let params = json!({"cmd": cmd, "tty": tty, "yield_time_ms": 250});
                execd.start_request("exec_command", params)
            })
            .collect();
        let sessions: Vec<u64> =
            requests.into_iter().map(|id| session_of(&execd.result_of(id))).collect();
        let quiet = execd.open_until("echo ready; exec cat", "ready\n");
        let mut before = printed(&mut execd, &sessions);
        for round in 0..2 {
            (0..100).for_each(|_| execd.ping());
            assert_eq!(output(&execd.run(&format!("echo {round}"))), format!("{round}\n"));
            execd.input_until(quiet, &format!("line {round}\\n"), &format!("line {round}\n"));
            before = until_all_advanced(&mut execd, &sessions, &before);
        }
    }
}

/// rule: architecture.md, A session: No fd is forgotten
/// rule: architecture.md, Ending a session: SIGCHLD coalesces: each wake looks until nothing is
///   left
#[test]
fn more_sessions_than_one_turn_takes_events_for_are_all_heard_at_once() {
    const SESSIONS: usize = 300;
    let mut execd = Execd::with(&["--max-sessions", "400"], &[]);
    let gates = ["speak", "end"].map(|name| (Gate::new(&execd, name), execd.file(name)));
    let [speak, end] = gates.each_ref().map(|(_, path)| path.display());
    // Opening a named pipe waits for its writer: all of them go on in the same moment.
    let cmd = format!("exec 3<{speak}; echo spoken; exec 4<{end}; exit 7");
    let sessions = execd.open_all(&[cmd.as_str(); SESSIONS]);
    let open = |path: &std::path::Path| {
        OpenOptions::new().read(true).write(true).open(path).expect("the named pipe opens")
    };
    let speaking = open(&gates[0].1);
    let deadline = Instant::now() + PATIENCE;
    let mut heard = 0;
    while heard < SESSIONS * "spoken\n".len() {
        let info = execd.result("server_info", json!({}));
        let bytes = info["counters"]["bytes_read"].as_u64().expect("a number");
        heard = usize::try_from(bytes).expect("few");
        assert!(Instant::now() < deadline, "only {heard} bytes were heard");
    }
    let ending = open(&gates[1].1);
    for session in &sessions {
        let note = execd.notification("session_exited", |note| note["session_id"] == *session);
        assert_eq!(note["exit_code"], 7);
    }
    drop((speaking, ending));
    let list = execd.result("list_sessions", json!({}));
    let entries = list["sessions"].as_array().expect("sessions is an array");
    assert_eq!(entries.len(), SESSIONS);
    let spoken = "spoken\n".len();
    assert!(entries.iter().all(|entry| entry["output_bytes_total"] == spoken), "{entries:?}");
    assert_eq!(execd.peek()["sessions"], json!([]));
}

/// rule: architecture.md, Bounds: execd guards other sessions from one session
/// rule: unified-exec.md, write_stdin: Input is written as the child reads, without delaying
///   anything else
#[test]
fn children_that_read_nothing_delay_nobody_and_get_all_of_it_later() {
    const CHILDREN: usize = 8;
    let mut execd = Execd::start();
    let gates: Vec<Gate> =
        (0..CHILDREN).map(|at| Gate::new(&execd, &format!("gate-{at}"))).collect();
    let cmds: Vec<String> = gates.iter().map(|gate| format!("{}; exec cat", gate.wait())).collect();
    let cmds: Vec<&str> = cmds.iter().map(String::as_str).collect();
    let sessions = execd.open_all(&cmds);
    let sent = Random(3).bytes(256 * 1024);
    let writes: Vec<u64> = sessions
        .iter()
        .map(|session| {
            let text = base64::engine::general_purpose::STANDARD.encode(&sent);
            let params = json!({"session_id": session, "chars_b64": text});
            execd.start_request("write_stdin", params)
        })
        .collect();
    let echo = execd.open_until("echo ready; exec cat", "ready\n");
    for round in 0..20 {
        execd.ping();
        execd.input_until(echo, &format!("line {round}\\n"), &format!("line {round}\n"));
    }
    for write in writes {
        assert_eq!(execd.result_of(write)["wait_status"], "deadline_reached");
    }
    for (session, gate) in sessions.iter().zip(&gates) {
        gate.open();
        let params = json!({"session_id": session, "eof": true, "yield_time_ms": 30_000});
        let result = execd.write(params);
        assert_eq!(result["exit_code"], 0, "{}", result["header"]);
        assert_same("what came back", &log_of(&result), &sent);
    }
}

/// CPU time that a process has used, in milliseconds.
fn cpu_ms(pid: i32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).expect("it runs");
    let ns = stat.split(' ').next().and_then(|ns| ns.parse::<u64>().ok());
    ns.expect("a number") / 1_000_000
}

/// `(.*,){100}` in a long line kept all other sessions waiting for three seconds. The test counts
/// the CPU time of execd while a ping waits, in the release binary, so other work on the machine
/// does not change it.
/// rule: waits.md, until and stop: Patterns are of linear time
#[test]
fn patterns_made_to_be_slow_hold_no_ping_up() {
    let binary = release::binary();
    let mut execd = Setup::of(&[binary.to_str().expect("a path in UTF-8")], &[]).start();
    let patterns = ["(.*,){100}", "(.*,){100}z", "(a|aa)+$", "(a|aa)+ $"];
    let start = |number: usize| {
        let line = ["field,", "aaaaaa"][number / 2 % 2];
        let cmd = format!(
            "l=$(printf '{line}%.0s' {{1..1365}}); for i in {{1..64}}; do echo \"$l\"; done; \
             exec sleep 600"
        );
        let mut client = Wire::connect(&execd.socket());
        let until = json!({"regex": patterns[number % 4]});
        let params = json!({"cmd": cmd, "yield_time_ms": 5_000, "until": until});
        let request = client.send("exec_command", params);
        (client, request, number)
    };
    let clients: Vec<_> = (0..16).map(start).collect();
    let until = Instant::now() + Duration::from_secs(5);
    let mut slowest_ms = 0;
    while Instant::now() < until {
        let before = cpu_ms(execd.pid());
        execd.ping();
        slowest_ms = slowest_ms.max(cpu_ms(execd.pid()) - before);
    }
    assert!(slowest_ms <= 50, "execd computed for {slowest_ms} ms while a ping waited");
    for (mut client, request, number) in clients {
        let result = &client.reply(request)["result"];
        let outcome = ["matched", "deadline"][number % 2];
        assert_eq!(result["wait"]["outcome"], outcome, "{number}: {}", result["wait"]);
        assert!(result["output_bytes_total"].as_u64() >= Some(8_190), "{number}");
    }
}
