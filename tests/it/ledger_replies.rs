//! Which replies tell the end of a session by themselves: after those it is no event for their
//! client, after all others it is one, once (protocol.md, Events).

use std::fs::{File, OpenOptions};
use std::io::Write as _;

use crate::common::wire::Wire;
use crate::common::*;
use serde_json::{Value, json};

/// A client that asks, and another one that starts what is asked about.
struct Stage {
    execd: Execd,
    other: Wire,
    fifos: usize,
}

/// A session that is asked about, and what holds it until it is let go.
struct Asked {
    id: u64,
    hold: File,
}

impl Stage {
    fn new() -> Self {
        let mut execd = Execd::with(&["--socket", "here.sock"], &[]);
        let mut other = Wire::connect(&execd.file("here.sock"));
        other.result("ping", json!({}));
        execd.run("for n in $(seq 80); do mkfifo hold$n; done");
        Self { execd, other, fifos: 0 }
    }

    /// A command with `HOLD` in it, which stands for what waits for the end of the story; and the
    /// file that ends it.
    fn command(&mut self, command: &str) -> (String, File) {
        self.fifos += 1;
        let name = format!("hold{}", self.fifos);
        // Opened for both, it neither waits for a reader nor loses what is written before one came.
        let fifo = OpenOptions::new().read(true).write(true).open(self.execd.file(&name));
        let command = command.replace("HOLD", &format!("head -c 1 {name} >&2"));
        (command, fifo.expect("it is made"))
    }

    /// A session in this state, which the other client has started.
    fn session(&mut self, state: &str) -> Asked {
        let (method, command) = match state {
            "over" | "runs" => ("exec_command", "HOLD; exit 3"),
            "deaf" => ("exec_command", "trap '' TERM; HOLD; exit 3"),
            "held" => ("exec_command", "HOLD & exit 3"),
            "held, deaf" => ("exec_command", "trap '' TERM; HOLD & exit 3"),
            "held stream" => ("bash_stream", "HOLD & exit 3"),
            "held window" => ("bash", "HOLD & exit 3"),
            other => panic!("{other}"),
        };
        let (command, hold) = self.command(command);
        let params = match method {
            "exec_command" => json!({"cmd": command, "yield_time_ms": 250}),
            "bash" => json!({"command": command, "background": true}),
            _ => json!({"command": command}),
        };
        let reply = self.other.result(method, params);
        let id = &reply[if method == "bash_stream" { "sessionId" } else { "session_id" }];
        let window = || reply["window"].as_str()?.trim_start_matches('@').parse().ok();
        let id = id.as_u64().or_else(window).expect("an id");
        let mut asked = Asked { id, hold };
        if state == "over" {
            self.let_go(&mut asked);
        }
        if state == "held window" {
            self.other.note("window_exited", |note| note["window"] == format!("@{id}"));
        }
        asked
    }

    fn let_go(&mut self, asked: &mut Asked) {
        asked.hold.write_all(b"x").expect("it is open");
        self.execd.notification("session_exited", |exit| exit["session_id"] == asked.id);
    }

    /// How often the asking client is told of this session's exit by events.
    fn exits(&mut self, id: u64) -> usize {
        let mut count = 0;
        loop {
            let carrier = json!({"session_id": 777_777, "on_exit": "none", "events": true});
            let reply = self.execd.result("set_on_exit", carrier);
            let Some(events) = reply["events"].as_array() else { return count };
            let is_it = |one: &&Value| one["session_id"] == id && one["what"] == "exited";
            count += events.iter().filter(is_it).count();
        }
    }
}

/// Whether a reply says how this session has ended; of a list its row counts.
fn says_how(reply: &Value, id: u64) -> bool {
    let names = ["sessions", "processes", "windows"];
    let is_its = |row: &&Value| {
        let window = row["window"] == format!("@{id}");
        row["session_id"] == id || row["sessionId"] == id || window
    };
    let row = names.iter().find_map(|name| reply[*name].as_array()?.iter().find(is_its));
    let listed = names.iter().any(|name| reply[*name].is_array());
    let text = if listed { json!(row).to_string() } else { reply.to_string() };
    let fields = ["exit_code", "exitCode", "shell_exit_code"].map(|name| format!("\"{name}\":3"));
    fields.iter().any(|field| text.contains(field)) || text.contains("Killed background window")
}

/// State, method, params with `ID` for the session, whether the reply tells the end.
type Row = (&'static str, &'static str, &'static str, bool);

const UNIFIED: &[Row] = &[
    ("over", "write_stdin", r#"{"session_id": ID}"#, true),
    ("over", "list_sessions", r#"{"peek": true}"#, true),
    ("over", "list_sessions", "{}", true),
    ("over", "kill_session", r#"{"session_id": ID}"#, true),
    ("over", "set_on_exit", r#"{"session_id": ID, "on_exit": "none"}"#, false),
    ("over", "wait_for", r#"{"session_ids": [ID]}"#, true),
    ("over", "wait_for", r#"{"session_ids": [ID], "take": false}"#, true),
    ("over", "read_output", r#"{"session_id": ID}"#, true),
    ("over", "read_output", r#"{"session_id": ID, "yield_time_ms": 1}"#, true),
    // The shell's end is no end of such a session yet: who polls is told both.
    ("held", "write_stdin", r#"{"session_id": ID, "yield_until": "2001-01-01T00:00:00Z"}"#, false),
    ("held", "list_sessions", r#"{"peek": true}"#, false),
    ("held", "wait_for", r#"{"session_ids": [ID], "timeout_ms": 0}"#, false),
    ("held", "read_output", r#"{"session_id": ID}"#, false),
    ("held", "read_output", r#"{"session_id": ID, "yield_time_ms": 1}"#, false),
    ("held", "kill_session", r#"{"session_id": ID}"#, true),
];

const STREAM: &[Row] = &[
    ("over", "poll_process", r#"{"sessionId": ID}"#, true),
    ("over", "kill_process", r#"{"sessionId": ID}"#, true),
    ("over", "list_processes", "{}", true),
    ("over", "get_process_log", r#"{"sessionId": ID}"#, false),
    ("held", "poll_process", r#"{"sessionId": ID}"#, true),
    ("held", "poll_process", r#"{"sessionId": ID, "waitMs": 60000}"#, true),
    ("held", "list_processes", "{}", true),
    ("held", "kill_process", r#"{"sessionId": ID}"#, true),
    ("held", "get_process_log", r#"{"sessionId": ID}"#, false),
    ("held stream", "poll_process", r#"{"sessionId": ID}"#, true),
    ("held stream", "list_processes", "{}", true),
    (
        "held stream",
        "write_stdin",
        r#"{"session_id": ID, "yield_until": "2001-01-01T00:00:00Z"}"#,
        true,
    ),
    ("held stream", "list_sessions", r#"{"peek": true}"#, false),
    ("held stream", "read_output", r#"{"session_id": ID}"#, false),
    ("held stream", "read_output", r#"{"session_id": ID, "yield_time_ms": 1}"#, false),
    ("held stream", "kill_process", r#"{"sessionId": ID}"#, true),
];

const WINDOWS: &[Row] = &[
    ("held window", "tmux", r#"{"action": "list"}"#, true),
    ("held window", "tmux", r#"{"action": "peek", "window": "@ID"}"#, true),
    ("held window", "tmux", r#"{"action": "poll", "window": "@ID", "pollInterval": 60}"#, false),
    ("held window", "tmux", r#"{"action": "list-polls"}"#, false),
    ("held window", "tmux", r#"{"action": "kill", "window": "@ID"}"#, true),
    ("held window", "read_output", r#"{"session_id": ID}"#, false),
    ("held window", "list_sessions", r#"{"peek": true}"#, false),
];

/// Of requests that are cancelled while they wait.
const CANCELLED: &[Row] = &[
    ("runs", "write_stdin", r#"{"session_id": ID, "yield_time_ms": 60000}"#, false),
    ("runs", "wait_for", r#"{"session_ids": [ID], "timeout_ms": 60000}"#, false),
    (
        "over",
        "wait_for",
        r#"{"session_ids": [ID, STAYS], "mode": "all", "timeout_ms": 60000}"#,
        true,
    ),
    ("runs", "read_output", r#"{"session_id": ID, "yield_time_ms": 60000}"#, false),
    ("runs", "poll_process", r#"{"sessionId": ID, "waitMs": 60000}"#, false),
    ("deaf", "kill_process", r#"{"sessionId": ID, "signal": "TERM"}"#, false),
    ("deaf", "kill_session", r#"{"session_id": ID}"#, false),
    ("held, deaf", "kill_session", r#"{"session_id": ID}"#, true),
];

/// Calls that start the session themselves.
const STARTS: &[(&str, &str, bool)] = &[
    ("exec_command", r#"{"cmd": "exit 3"}"#, true),
    ("exec_command", r#"{"cmd": "HOLD & exit 3"}"#, false),
    ("bash_stream", r#"{"command": "exit 3"}"#, true),
    ("bash_stream", r#"{"command": "HOLD & exit 3"}"#, true),
    ("bash", r#"{"command": "exit 3"}"#, true),
    ("bash", r#"{"command": "HOLD & exit 3"}"#, true),
    ("bash", r#"{"command": "HOLD; exit 3", "background": true}"#, false),
];

fn params(template: &str, asked: &Asked, stays: u64) -> Value {
    let filled = template.replace("ID", &asked.id.to_string()).replace("STAYS", &stays.to_string());
    serde_json::from_str(&filled).expect("JSON")
}

/// rule: protocol.md, Events: An event that a reply tells by itself counts as told, whoever opted
///   in
/// rule: protocol.md, Events: A reply tells an end where it has the exit code or the signal, also
///   before it is one of these events
#[test]
fn each_reply_that_says_how_a_session_ended_counts_as_telling_it_and_no_other() {
    let mut stage = Stage::new();
    for (state, method, template, told) in [UNIFIED, STREAM, WINDOWS].concat() {
        let mut asked = stage.session(state);
        let reply = stage.execd.result(method, params(template, &asked, 0));
        let row = format!("{state}: {method} {template}: {reply}");
        // The end of the shell alone is told to who polls.
        let of_shell = state == "held" && method == "write_stdin";
        assert_eq!(says_how(&reply, asked.id), told || of_shell, "{row}");
        if state != "over" && !method.starts_with("kill") && !template.contains("kill") {
            stage.let_go(&mut asked);
        }
        assert_eq!(stage.exits(asked.id), usize::from(!told), "{row}");
    }
}

/// rule: protocol.md, Events: what the answer to a cancelled request says by itself counts as told
#[test]
fn the_answer_to_a_cancelled_request_counts_by_what_it_says() {
    let mut stage = Stage::new();
    let stays = session_of(
        &stage.other.result("exec_command", json!({"cmd": "sleep 300", "yield_time_ms": 250})),
    );
    for (state, method, template, told) in CANCELLED {
        let mut asked = stage.session(state);
        let id = stage.execd.start_request(method, params(template, &asked, stays));
        stage.execd.no_reply_yet(id);
        assert!(stage.execd.cancel(id));
        let reply = stage.execd.result_of(id);
        let row = format!("{state}: {method} {template}: {reply}");
        assert_eq!(says_how(&reply, asked.id), *told, "{row}");
        if *state != "over" {
            stage.let_go(&mut asked);
        }
        assert_eq!(stage.exits(asked.id), usize::from(!told), "{row}");
    }
}

/// rule: protocol.md, Events: An event that a reply tells by itself counts as told, whoever opted
///   in
#[test]
fn the_reply_of_a_call_that_has_started_a_session_counts_by_what_it_says() {
    let mut stage = Stage::new();
    for (method, template, told) in STARTS {
        let (filled, hold) = stage.command(template);
        let reply =
            stage.execd.result(method, serde_json::from_str::<Value>(&filled).expect("JSON"));
        let row = format!("{method} {template}: {reply}");
        let events = |stage: &mut Stage| {
            let all = stage.other.result("events", json!({"max": 1000}))["events"].clone();
            all.as_array().cloned().unwrap_or_default()
        };
        if template.contains("HOLD") {
            let id = reply["session_id"].as_u64().or(reply["sessionId"].as_u64());
            let window = || reply["window"].as_str()?.trim_start_matches('@').parse().ok();
            let id = id.or_else(window).expect("an id");
            stage.let_go(&mut Asked { id, hold });
            assert_eq!(stage.exits(id), usize::from(!told), "{row}");
        } else {
            let id = events(&mut stage).last().and_then(|one| one["session_id"].as_u64());
            assert_eq!(stage.exits(id.expect("its event")), usize::from(!told), "{row}");
        }
    }
}
