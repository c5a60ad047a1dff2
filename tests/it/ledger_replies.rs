//! Which replies tell the end of a session by themselves: after those it is no event for their
//! client, after all others it is one, once (protocol.md, Events).

use std::fs::{File, OpenOptions};
use std::io::Write as _;

use crate::common::wire::Wire;
use crate::common::*;
use serde_json::{Value, json};

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
            "over" => ("exec_command", "HOLD; exit 3"),
            "held" => ("exec_command", "HOLD & exit 3"),
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

/// rule: protocol.md, Events: An event that a reply tells by itself counts as told, whoever opted
///   in
/// rule: protocol.md, Events: in the families of `bash_stream` and `bash` also when its shell has
///   and others [hold the output](bash-stream.md#output-after-the-shell)
/// rule: protocol.md, Events: A reply tells an end where it has the exit code or the signal, also
///   before it is one of these events
#[test]
fn each_reply_that_says_how_a_session_ended_counts_as_telling_it_and_no_other() {
    let mut stage = Stage::new();
    for (state, method, template, told) in [UNIFIED, STREAM, WINDOWS].concat() {
        let mut asked = stage.session(state);
        let filled = template.replace("ID", &asked.id.to_string());
        let params: Value = serde_json::from_str(&filled).expect("JSON");
        let reply = stage.execd.result(method, params);
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
