//! What execd says, held byte by byte: `--help`, `--describe`, the completions, and requests of
//! every family with their replies and notifications, errors included. The files are in
//! tests/fixtures/said; `EXECD_BLESS=1` writes them anew.
//!
//! What differs from run to run (pids, times, random names) stands there as a word in capitals.
//! Nothing here depends on how fast the machine is: output that a reply tells is waited for first,
//! and execd writes the logs itself (`--no-keeper`), so that no reply comes before its log.

use std::path::{Path, PathBuf};

use crate::common::{Execd, LONG_AGO, Setup, is_notification, until_file_has, value};
use serde_json::{Value, json};

const GOES_ON: &str = "exec sleep 1000";
/// A shell that ends while another process, which has become `sleep` by then, holds its output.
const LEAVES_A_HOLDER: &str =
    "sleep 1000 & until grep -qa ^sleep /proc/$!/cmdline; do :; done; echo left";
const MOST_SESSIONS: u64 = 40;

// ---- The files --------------------------------------------------------------------------

/// Shows that a text is what its file says, or writes the file.
fn check(name: &str, said: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/said").join(name);
    if std::env::var_os("EXECD_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("it can be made");
        std::fs::write(&path, said).expect("the file can be written");
        return;
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    let (mut is, mut should_be) = (said.split('\n'), wanted.split('\n'));
    for number in 1.. {
        let (is, should_be) = (is.next(), should_be.next());
        let place = format!("{}:{number}", path.display());
        assert_eq!(is, should_be, "{place} (EXECD_BLESS=1 writes the file anew)");
        if is.is_none() {
            break;
        }
    }
}

fn printed(words: &[&str]) -> String {
    let done = crate::common::execd_command().args(words).output().expect("it starts");
    assert!(done.status.success(), "{words:?}: {done:?}");
    String::from_utf8(done.stdout).expect("UTF-8")
}

// ---- What differs from run to run -------------------------------------------------------

fn digits(c: char) -> bool {
    c.is_ascii_digit()
}

fn number(c: char) -> bool {
    c.is_ascii_digit() || ".e-".contains(c)
}

fn letters(c: char) -> bool {
    c.is_ascii_alphanumeric()
}

fn stamp(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-:.".contains(c)
}

/// What stands before something that differs, the characters it has, what stands behind it, and
/// the word for it.
type Rule<'a> = (&'a str, fn(char) -> bool, &'a str, &'a str);

/// Fields that are numbers or a word, by what stands in their place.
const FIELDS: [(&str, &str); 7] = [
    ("PID", "pid"),
    ("INSTANCE", "instance"),
    ("CHUNK", "chunk_id"),
    ("STAMP", "startedAt endedAt tool_time_utc started_at"),
    (
        "MS",
        "started_at_ms elapsed_ms uptime_ms durationMs duration_ms since_ms sinceMs \
         first_event_ms first_attempt_ms first_text_ms effective_wait_ms",
    ),
    ("SECONDS", "age_seconds wall_time_seconds cpu_seconds"),
    ("NUMBER", "connected loop_turns stale_events slowest_turn_us log_write_stalls"),
];

const RULES: [Rule; 14] = [
    ("\"backgroundPids\":[", digits, "]", "PID"),
    ("\"max_rss_kib\":", digits, "", "KIB"),
    // Texts.
    ("wall_time_seconds: ", number, "", "SECONDS"),
    ("chunk_id: ", letters, "", "CHUNK"),
    ("tool_time_utc: ", stamp, "", "STAMP"),
    ("pid=", digits, "", "PID"),
    ("pid ", digits, "", "PID"),
    ("still running: ", digits, " ", "PID"),
    (" pipe ", letters, " ", "AGE"),
    (" tty ", letters, " ", "AGE"),
    (" (", digits, "s)", "AGE"),
    // Paths.
    ("/pi-execd-", digits, "/", "UID"),
    ("/run/execd/", digits, ".sock", "PID"),
    ("/proc/", digits, "/", "PID"),
];

/// The text with a word in the place of everything that a rule describes.
fn replaced(text: &str, (before, has, behind, word): Rule) -> String {
    let mut all = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(before) {
        let (kept, found) = rest.split_at(at + before.len());
        all.push_str(kept);
        let end = found.find(|c| !has(c)).unwrap_or(found.len());
        rest = found;
        if end > 0 && found[end..].starts_with(behind) {
            all.push_str(word);
            rest = &found[end..];
        }
    }
    all + rest
}

/// The line without what differs from run to run. What cannot be told (tokens a second, where an
/// answer took no time) is left out, and what this machine lacks.
fn fixed(line: &str, directory: &Path) -> String {
    let version = |word| format!("\"version\":\"{word}\"");
    let mut line = line
        .replace(directory.to_str().expect("UTF-8"), "DIR")
        .replace(&version(env!("CARGO_PKG_VERSION")), &version("VERSION"));
    for (word, names) in FIELDS {
        for name in names.split_whitespace() {
            line = replaced(&line, (&format!("\"{name}\":"), number, "", word));
            line = replaced(&line, (&format!("\"{name}\":\""), stamp, "\"", word));
        }
    }
    for rule in RULES {
        line = replaced(&line, rule);
    }
    for session in 1..=MOST_SESSIONS {
        line = replaced(&line, (&format!("/execd-{session}-"), letters, ".log", "HEX"));
    }
    for (field, end) in [("\"tokens_per_second\":", ","), ("\"degraded\":[", "],")] {
        if let Some((before, after)) = line.split_once(field) {
            let (_, after) = after.split_once(end).expect("another field follows");
            line = format!("{before}{after}");
        }
    }
    line
}

/// The line without what sessions are doing: how soon that is known depends on the machine.
fn without_states(line: &str) -> String {
    let mut line = line.to_owned();
    let ends = [
        ("\"state\":\"", "\","),
        ("\"state_detail\":{", "},"),
        ("\"stateDetail\":{", "},"),
        ("\\nstate: ", ")"),
    ];
    for (before, end) in ends {
        let waits = |rest: &str| rest.starts_with("waiting") || before.starts_with('"');
        while let Some((kept, rest)) = line.split_once(before).filter(|(_, rest)| waits(rest)) {
            let (_, rest) = rest.split_once(end).expect("its end");
            line = format!("{kept}{rest}");
        }
    }
    while let Some((kept, rest)) = line.split_once(" [waiting for ") {
        let (_, rest) = rest.split_once(")]").expect("its end");
        line = format!("{kept}{rest}");
    }
    line
}

// ---- An execd whose words are written down ----------------------------------------------

struct Board {
    execd: Execd,
    directory: PathBuf,
    /// Lines that have come, and that nobody has asked for yet.
    waiting: Vec<String>,
    text: String,
    asked: u64,
    /// Sessions wait for input here that no wait ends by: how soon that is known depends on the
    /// machine, and states are left out.
    hides_states: bool,
}

impl Board {
    fn start(flags: &[&str]) -> Self {
        let execd = Setup::new(&[&["--no-keeper"], flags].concat()).unwatched().start();
        let directory = execd.workdir().parent().expect("its directory").to_owned();
        let directory = directory.canonicalize().expect("it exists");
        let hides_states = flags.contains(&"--on-impossible");
        Self { execd, directory, waiting: Vec::new(), text: String::new(), asked: 0, hides_states }
    }

    /// What comes next, for who reads the file.
    fn about(&mut self, title: &str) {
        self.text.push_str(&format!("\n# {title}\n"));
    }

    fn write_down(&mut self, mark: &str, line: &str) {
        let mut line = fixed(line, &self.directory);
        if self.hides_states {
            line = without_states(&line);
        }
        self.text.push_str(&format!("{mark} {line}\n"));
    }

    fn send(&mut self, line: &str) {
        self.execd.send_line(line);
        self.write_down(">", line);
    }

    fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({"id": id, "method": method, "params": params}).to_string());
        id
    }

    /// The next line that fits and has come, or comes.
    fn take(&mut self, fits: impl Fn(&str) -> bool) -> Value {
        let place = self.waiting.iter().position(|line| fits(line));
        let line = place.map(|place| self.waiting.remove(place)).unwrap_or_else(|| {
            loop {
                let line = self.execd.line();
                if fits(&line) {
                    return line;
                }
                self.waiting.push(line);
            }
        });
        self.write_down("<", &line);
        value(&line)
    }

    fn reply(&mut self, id: u64) -> Value {
        self.take(|line| !is_notification(line) && value(line)["id"] == id)
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.reply(id)
    }

    fn bad(&mut self, line: &str) {
        self.send(line);
        self.take(|line| !is_notification(line));
    }

    fn note(&mut self, method: &str, fits: impl Fn(&Value) -> bool) -> Value {
        self.take(|line| {
            let line = value(line);
            line["method"] == method && fits(&line["params"])
        })
    }

    fn notes_so_far(&mut self, method: &str) {
        let is = |line: &str| value(line)["method"] == method;
        while self.waiting.iter().any(|line| is(line)) {
            self.take(is);
        }
    }

    /// Starts a command of unified-exec that goes on and prints nothing; gives its session.
    fn open(&mut self, cmd: &str, more: Value) -> u64 {
        let params = crate::common::merged(json!({"cmd": cmd, "yield_time_ms": 250}), more);
        self.ask("exec_command", params)["result"]["session_id"].as_u64().expect("it runs")
    }

    /// Gives a session a line, and waits until its log has this text: then execd has read it.
    fn input(&mut self, session: u64, text: &str) {
        let reply = self.ask("attach_input", json!({"session_id": session, "data_b64": "Cg=="}));
        assert!(reply.get("result").is_some(), "{reply}");
        let written = self.text.len();
        let list = self.ask("list_sessions", json!({"peek": true}));
        // How much of it had come by then differs.
        self.text.truncate(written);
        let rows = list["result"]["sessions"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["session_id"] == session).expect("its row");
        until_printed(row, text);
    }

    /// Ends execd, whose sessions it takes along, and holds what it said against the file.
    fn end(mut self, name: &str) {
        self.execd.close_stdin();
        assert_eq!(self.execd.exit_code(), Some(0), "execd ends well");
        self.execd.until_no_session_process();
        check(name, self.text.trim_start());
    }
}

/// Waits until the log that a result names has this text: then execd has read it.
fn until_printed(result: &Value, text: &str) {
    let log = result.get("log_path").or(result.get("logPath")).expect("a log");
    until_file_has(Path::new(log.as_str().expect("a path")), text);
}

// ---- The command line -------------------------------------------------------------------

#[test]
fn the_help_the_description_of_the_methods_and_the_completions_are_as_written() {
    check("help.txt", &printed(&["--help"]));
    check("describe.json", &printed(&["--describe"]));
    for shell in ["bash", "zsh", "fish"] {
        check(&format!("completions.{shell}"), &printed(&["completions", shell]));
    }
    let mut screens = String::new();
    for name in printed(&["help", "--names"]).lines() {
        screens.push_str(&format!("\n# execd help {name}\n{}", printed(&["help", name])));
        let words: Vec<&str> = name.split('-').chain(["--help"]).collect();
        assert_eq!(printed(&words), printed(&["help", name]), "{words:?} is the same text");
    }
    screens.push_str(&format!("\n# execd help flags\n{}", printed(&["help", "flags"])));
    check("help_screens.txt", &screens);
    check("help_all.txt", &printed(&["help", "--all"]));
}

// ---- The protocol -----------------------------------------------------------------------

#[test]
fn the_protocol_is_as_written() {
    let mut board = Board::start(&["--max-line-bytes", "1024"]);
    board.about("server_info of a fresh execd");
    board.ask("server_info", json!({}));
    board.about("ping, also without what may be left out");
    board.ask("ping", json!({}));
    board.bad(r#"{"id":"a","method":"ping"}"#);
    board.bad(r#"{"jsonrpc":"2.0","id":null,"method":"ping","params":{},"more":1}"#);
    board.about("-32700: no JSON");
    board.bad("nonsense");
    board.bad(r#"{"id":1,"method":"ping""#);
    board.bad(r#"{"id":1,"method":"\ud800"}"#);
    board.bad(&format!("{}{}", "[".repeat(200), "]".repeat(200)));
    board.about("-32600: no request");
    board.bad(r#"{"id":1}"#);
    board.bad(r#"{"id":1,"method":7}"#);
    board.bad(r#"{"id":{},"method":"ping"}"#);
    board.bad(r#"[{"id":1,"method":"ping"}]"#);
    board.bad("7");
    board.about("-32600: an id in flight, whose request is cancelled then");
    board.send(r#"{"id":"x","method":"exec_command","params":{"cmd":"exec sleep 1000"}}"#);
    board.bad(r#"{"id":"x","method":"ping"}"#);
    board.send(r#"{"id":"y","method":"cancel","params":{"id":"x"}}"#);
    board.take(|line| value(line)["id"] == "y");
    board.take(|line| value(line)["id"] == "x");
    board.note("session_started", |_| true);
    board.ask("cancel", json!({"id": "x"}));
    board.about("-32601: an unknown method");
    board.ask("exec", json!({}));
    board.about("-32602: params that do not fit");
    board.bad(r#"{"id":1,"method":"ping","params":[]}"#);
    board.bad(r#"{"id":1,"method":"cancel","params":{"id":1,"id":2}}"#);
    board.ask("ping", json!({"more": 1}));
    board.ask("cancel", json!({}));
    board.ask("cancel", json!({"id": {}}));
    board.ask("reserve_session_ids", json!({"up_to": 2.5}));
    board.ask("reserve_session_ids", json!({"up_to": -1}));
    board.about("a line that is too long");
    let long = format!(r#"{{"id":1,"method":"ping","params":{{"{}":1}}}}"#, "x".repeat(1024));
    board.execd.send_line(&long);
    board.take(|line| value(line)["error"]["data"]["reason"] == "line_too_long");
    board.about("reserve_session_ids, also of ids that are reserved");
    board.ask("reserve_session_ids", json!({"up_to": 9}));
    board.ask("reserve_session_ids", json!({"up_to": 3}));
    board.about("shutdown with a session that runs; its end");
    board.open(GOES_ON, json!({"name": "sleeper"}));
    board.ask("shutdown", json!({}));
    board.note("session_exited", |note| note["session_id"] == 10);
    board.end("protocol.txt");
}

#[test]
fn the_end_by_a_signal_is_as_written() {
    let mut board = Board::start(&[]);
    board.about("what waits when execd is told to end");
    let ids = [
        board.begin("exec_command", json!({"cmd": GOES_ON, "yield_time_ms": 30_000})),
        board.begin("bash_stream", json!({"command": GOES_ON})),
        board.begin("bash", json!({"command": GOES_ON, "timeout": 60})),
    ];
    board.note("session_started", |note| note["session_id"] == 1);
    board.note("session_started", |note| note["session_id"] == 2);
    board.note("session_started", |note| note["session_id"] == 3);
    board.execd.signal(libc::SIGTERM);
    for id in ids {
        board.reply(id);
    }
    (1..=3).for_each(|session| {
        board.note("session_exited", |note| note["session_id"] == session);
    });
    assert_eq!(board.execd.exit_code(), Some(143));
    check("ended.txt", board.text.trim_start());
}

// ---- unified-exec -----------------------------------------------------------------------

/// rule: unified-exec.md, exec_command, result: `signal` names the signal; no 128+n
/// rule: architecture.md, Bounds: A SIGKILL that execd did not send gets a `note`
/// rule: unified-exec.md, Early exit, shell gone, LRU: The wait during which the shell ended
///   answers 50 ms later as still running
/// rule: unified-exec.md, Early exit, shell gone, LRU: `shell_exit_code` and a `note` that names
///   who holds the output
/// rule: unified-exec.md, Early exit, shell gone, LRU: Later polls wait normally
#[test]
fn exec_command_is_as_written() {
    let mut board = Board::start(&[]);
    let run = |board: &mut Board, title: &str, cmd: &str, more: Value| {
        board.about(title);
        let params = json!({"cmd": cmd, "yield_time_ms": 30_000});
        board.ask("exec_command", crate::common::merged(params, more))
    };
    run(&mut board, "a command that ends", "echo out; echo err >&2", json!({}));
    run(&mut board, "an exit status, no output", "exit 3", json!({"stdin": "null"}));
    run(&mut board, "a signal", "kill -KILL $$", json!({"name": "suicide"}));
    let more = json!({"tty": true, "cols": 100, "rows": 1, "raw_output": true});
    run(&mut board, "a terminal; raw output", "stty size; printf '\\033[1mbold'", more);
    let more = json!({"env": {"A": "1", "HOME": null}, "workdir": "/"});
    run(&mut board, "environment and directory", "echo $A ${HOME-none}; pwd", more);
    let cmd = "printf 'ten\\r20\\n\\033[31mred\\033[m\\377\\n'";
    run(&mut board, "clean text", cmd, json!({}));
    run(&mut board, "no such shell", "true", json!({"shell": "no-such-shell"}));
    run(&mut board, "no such directory", "true", json!({"workdir": "/no/such"}));
    let cmd = "sleep 1000 & until grep -qa ^sleep /proc/$!/cmdline; do :; done; exit 5";
    let held = run(&mut board, "a shell whose output others hold", cmd, json!({}));
    board.about("its session ended");
    board.ask("kill_session", json!({"session_id": held["result"]["session_id"]}));

    board.about("refused params");
    board.ask("exec_command", json!({}));
    board.ask("exec_command", json!({"cmd": 7}));
    board.ask("exec_command", json!({"cmd": ""}));
    board.ask("exec_command", json!({"cmd": "a\u{0}b"}));
    board.ask("exec_command", json!({"cmd": "true", "comand": "true"}));
    board.ask("exec_command", json!({"cmd": "true", "yield_time_ms": 250.5}));
    board.ask("exec_command", json!({"cmd": "true", "stdin": "file"}));
    board.ask("exec_command", json!({"cmd": "true", "tty": "yes"}));
    board.ask("exec_command", json!({"cmd": "true", "on_exit": "sleep"}));
    board.ask("exec_command", json!({"cmd": "true", "env": {"A=B": "1"}}));
    board.ask("exec_command", json!({"cmd": "true", "env": {"EXECD_SESSION_ID": "1"}}));
    board.ask("exec_command", json!({"cmd": "true", "env": {"A": 1}}));
    board.end("exec_command.txt");
}

#[test]
fn texts_that_are_cut_are_as_written() {
    let flags = ["--max-output-lines", "3", "--max-output-bytes", "20", "--log-max-bytes", "30"];
    let mut board = Board::start(&flags);
    let run = |board: &mut Board, title: &str, cmd: &str| {
        board.about(title);
        board.ask("exec_command", json!({"cmd": cmd, "yield_time_ms": 30_000}));
    };
    run(&mut board, "by lines", "seq 9");
    run(&mut board, "by bytes, and the log at its limit", "seq 1000000 1000009");
    run(&mut board, "within a line", "head -c 60 /dev/zero | tr '\\0' x");
    run(&mut board, "by the memory for what is unread", "yes 123456789 | head -n 200000");
    board.end("cut.txt");
    let mut board = Board::start(&["--no-log", "--max-output-lines", "2"]);
    run(&mut board, "without a log", "echo a");
    run(&mut board, "cut without a log", "seq 3");
    board.end("no_log.txt");
}

#[test]
fn waits_are_as_written() {
    let mut board = Board::start(&[]);
    let patient = |cmd: &str, more: Value| {
        crate::common::merged(json!({"cmd": cmd, "yield_time_ms": 60_000}), more)
    };
    board.about("a command that waits for input, and that nothing else can end");
    board.ask("exec_command", patient("exec cat", json!({})));
    board.about("a text that came, and a mark of failure");
    let until = json!({"until": {"text": ["ready", "up"]}});
    board.ask("exec_command", patient("echo server is up; exec sleep 100", until));
    let stop = json!({"until": {"text": "ready"}, "stop": {"regex": "E(\\d+)"}});
    board.ask("exec_command", patient("echo failed with E42; exec sleep 100", stop));
    board.about("an exit instead");
    board.ask("exec_command", patient("exit 3", json!({"until": {"text": "ready"}})));
    board.about("input, as what is waited for");
    let input = json!({"until": {"input": true}, "tty": true});
    board.ask("exec_command", patient("exec cat", input));
    board.about("several sessions: to the time, none that goes on, a text in one of them");
    let mut some = |params: Value| board.ask("wait_for", params);
    some(json!({"session_ids": [2, 3], "mode": "all", "timeout_ms": 0}));
    some(json!({"session_ids": [1, 2], "mode": "all", "timeout_ms": 60_000}));
    let later =
        format!("{}; echo failed with E42; exec sleep 100", crate::common::until_file("go"));
    board.open(&later, json!({}));
    let wait = json!({"session_ids": [2, 6], "stop": {"regex": "E(\\d+)"}, "timeout_ms": 60_000});
    let wait = board.begin("wait_for", wait);
    // Its answer says that the wait has begun: what matches comes afterwards.
    board.ask("ping", json!({}));
    crate::common::go(&board.execd, "go");
    board.reply(wait);
    board.about("sessions that have ended and are remembered");
    board.ask("kill_session", json!({"session_id": 6}));
    board.ask("bash_stream", json!({"command": "echo over; exit 3", "stream": false}));
    board.ask("wait_for", json!({"session_ids": [7, 6], "mode": "all"}));
    board.ask("wait_for", json!({"session_ids": [99]}));
    board.about("what may not be waited for");
    board.ask("exec_command", patient("true", json!({"until": {"txt": "ready"}})));
    board.ask("exec_command", patient("true", json!({"until": {"regex": "a(b"}})));
    board.end("waits.txt");
}

/// rule: unified-exec.md, set_on_exit, resize_session: `resize_session` clamps like the start
/// rule: unified-exec.md, list_sessions: An exited session is reported once here, then removed
/// rule: unified-exec.md, list_sessions: `[exited exit_code=0; removed from store]` where so
#[test]
fn sessions_are_as_written() {
    // How soon it is known that nothing but input can end a wait depends on the machine.
    let mut board = Board::start(&["--on-impossible", "wait"]);
    board.about("a session that goes on, and its announcement");
    let cat = board.open("exec cat", json!({"name": "echo", "on_exit": "wake"}));
    board.note("session_started", |note| note["session_id"] == cat);
    board.about("a poll that does not wait");
    board.ask("write_stdin", json!({"session_id": cat, "yield_until": LONG_AGO}));
    board.about("a poll that is cancelled");
    let poll = board.begin("write_stdin", json!({"session_id": cat}));
    board.ask("cancel", json!({"id": poll}));
    board.reply(poll);
    board.about("lists, without an end");
    board.ask("list_sessions", json!({}));
    board.about("set_on_exit");
    board.ask("set_on_exit", json!({"session_id": cat, "on_exit": "wake"}));
    board.ask("set_on_exit", json!({"session_id": cat, "on_exit": "none"}));
    board.ask("set_on_exit", json!({"session_id": cat, "on_exit": "none"}));
    board.ask("set_on_exit", json!({"session_id": cat, "on_exit": "wake"}));
    board.ask("set_on_exit", json!({"session_id": 99, "on_exit": "wake"}));
    board.ask("set_on_exit", json!({"session_id": cat}));
    board.about("input, its echo, the end, which this reply tells in place of the wake");
    let input =
        json!({"session_id": cat, "chars": "a\\tb\\n", "eof": true, "yield_time_ms": 30_000});
    board.ask("write_stdin", input);
    board.note("session_exited", |note| note["session_id"] == cat);

    board.about("an end that nobody waits for: the wake, the lists");
    let cat = board.open("exec cat", json!({"on_exit": "wake"}));
    board.ask("attach_input", json!({"session_id": cat, "data_b64": "bGFzdAo=", "eof": true}));
    board.note("session_exited", |note| note["session_id"] == cat);
    board.ask("list_sessions", json!({"peek": true}));
    board.ask("set_on_exit", json!({"session_id": cat, "on_exit": "none"}));
    board.ask("list_sessions", json!({}));
    board.ask("list_sessions", json!({}));

    board.about("base64, progress, an exit status");
    let asks = board.open("read -r a; echo got $a; exit 4", json!({}));
    let input = json!({"session_id": asks, "chars_b64": "eCB5Cg==", "yield_time_ms": 30_000});
    board.ask("write_stdin", input);
    board.about("progress; a command that is cancelled");
    let cmd = "echo up; exec cat";
    let params = json!({"cmd": cmd, "yield_time_ms": 30_000, "stream": true});
    let up = board.begin("exec_command", params);
    board.note("progress", |note| note["tail"] == "up\n");
    board.ask("cancel", json!({"id": up}));
    let up = board.reply(up);
    let up = up["result"]["session_id"].as_u64().expect("it runs");
    board.about("kill_session");
    board.ask("kill_session", json!({"session_id": up}));
    board.note("session_exited", |note| note["session_id"] == up);
    board.about("kill_session of what ignores the signal, with output that nobody has read");
    let deaf = board.open("trap '' INT; read -r x; echo deaf; read -r x", json!({}));
    board.input(deaf, "deaf\n");
    board.ask("kill_session", json!({"session_id": deaf, "signal": "int"}));

    board.about("a terminal: its size, its kill");
    let tty = board.open("stty -echo; exec cat", json!({"tty": true}));
    board.ask("resize_session", json!({"session_id": tty, "cols": 1000, "rows": 40}));
    board.ask("list_sessions", json!({"peek": true}));
    board.ask("kill_session", json!({"session_id": tty, "signal": 9}));
    board.end("sessions.txt");
}

/// rule: unified-exec.md, kill_session: An unknown signal: −32602 with examples
/// rule: unified-exec.md, write_stdin: Malformed base64: −32602; whitespace inside is fine
/// rule: unified-exec.md, write_stdin: `chars` and `chars_b64` together: −32602
/// rule: unified-exec.md, write_stdin: `session_id` is required
/// rule: unified-exec.md, Ended by somebody else: An id that no session ever had is unknown
/// rule: unified-exec.md, exec_command, result: `tool_time_utc` on still-running replies and on
///   every yield_until reply or error
/// rule: unified-exec.md, write_stdin: `yield_until` with input is refused
/// rule: unified-exec.md, write_stdin: Both waits at once are refused
#[test]
fn refusals_of_sessions_are_as_written() {
    let mut board = Board::start(&[]);
    board.about("no such session");
    board.ask("write_stdin", json!({"session_id": 7}));
    board.ask("kill_session", json!({"session_id": 7}));
    board.ask("resize_session", json!({"session_id": 7, "cols": 80, "rows": 24}));
    board.about("closed stdin");
    let closed = board.open(GOES_ON, json!({"stdin": "null"}));
    board.ask("write_stdin", json!({"session_id": closed, "chars": "x"}));
    board.ask("write_stdin", json!({"session_id": closed, "eof": true}));
    board.about("params of write_stdin that do not fit");
    let session = board.open(GOES_ON, json!({}));
    let more = [
        json!({"chars": "a", "chars_b64": "YQ=="}),
        json!({"chars": "\\q"}),
        json!({"chars": "\\x"}),
        json!({"chars_b64": "?"}),
        json!({"chars": "a", "yield_until": LONG_AGO}),
        json!({"yield_time_ms": 5_000, "yield_until": LONG_AGO}),
        json!({"yield_until": "tomorrow"}),
        json!({"yield_time_ms": "5"}),
        json!({"sessionId": 1}),
        json!({"data": "x"}),
    ];
    for more in more {
        let params = crate::common::merged(json!({"session_id": session}), more);
        board.ask("write_stdin", params);
    }
    board.ask("write_stdin", json!({"chars": "x"}));
    board.about("a backlog that is full");
    // The file has the request cut: the whole is a quarter of a mebibyte.
    let chars = "x".repeat(300_000);
    let line = json!({"id": "b", "method": "write_stdin", "params": {"session_id": session, "chars": chars}});
    board.execd.send_line(&line.to_string());
    board.take(|line| value(line)["id"] == "b");
    board.about("params of the other methods that do not fit");
    board.ask("kill_session", json!({"session_id": session, "signal": "FOO"}));
    board.ask("kill_session", json!({"session_id": session, "signal": "STOP"}));
    board.ask("kill_session", json!({"session_id": session, "signal": 0}));
    board.ask("kill_session", json!({"session_id": "1"}));
    board.ask("resize_session", json!({"session_id": session, "cols": 80, "rows": 24}));
    board.ask("resize_session", json!({"session_id": session, "cols": 80}));
    board.ask("set_on_exit", json!({"session_id": session, "on_exit": "never"}));
    board.ask("list_sessions", json!({"peek": 1}));
    board.end("sessions_refused.txt");
}

// ---- bash_stream ------------------------------------------------------------------------

/// rule: bash-stream.md, The stream family: A PTY has one stream
#[test]
fn bash_stream_is_as_written() {
    let mut board = Board::start(&[]);
    // Its `cat` is polled while it begins to wait.
    board.hides_states = true;
    board.about("two streams, live; an exit status");
    let command = format!("echo out; {}; echo err >&2; exit 3", crate::common::until_file("go"));
    let first = board.begin("bash_stream", json!({"command": command, "name": "two"}));
    board.note("session_started", |_| true);
    board.note("tool_execution_output", |note| note["chunk"] == "out\n");
    crate::common::go(&board.execd, "go");
    board.note("tool_execution_output", |note| note["chunk"] == "err\n");
    board.reply(first);
    board.note("session_exited", |note| note["session_id"] == 1);
    board.about("the same told again");
    board.ask("poll_process", json!({"sessionId": 1}));
    board.about("its log by pages");
    for more in [
        json!({}),
        json!({"offset": 4, "limit": 4}),
        json!({"offset": -4}),
        json!({"offset": 100}),
        json!({"stream": "stdout"}),
        json!({"stream": "stderr", "encoding": "base64"}),
    ] {
        board.ask("get_process_log", crate::common::merged(json!({"sessionId": 1}), more));
    }
    board.about("a timeout");
    let params = json!({"command": GOES_ON, "timeoutMs": 50, "stdinMode": "null"});
    board.ask("bash_stream", params);
    board.about("no such directory");
    board.ask("bash_stream", json!({"command": "true", "workdir": "/no/such"}));
    board.about("a terminal, a text that is cut, an environment");
    let params = json!({"command": "stty size; echo $A", "stdinMode": "pty", "stream": false,
        "env": {"A": "0123456789"}, "maxOutputChars": 8});
    board.ask("bash_stream", params);

    board.about("a window that ends before the command: its progress, its first poll");
    let open = board.begin("bash_stream", json!({"command": "echo up; exec cat"}));
    let fits = |note: &Value| note["chunk"] == "up\n";
    let chunk = board.note("tool_execution_output", fits);
    let session = chunk["params"]["sessionId"].as_u64().expect("an id");
    board.ask("cancel", json!({"id": open}));
    board.reply(open);
    board.note("tool_execution_progress", |note| note["sessionId"] == session);
    board.ask("poll_process", json!({"sessionId": session}));
    board.about("input, and a poll that waits for output");
    board.ask("write_stdin", json!({"sessionId": session, "data": "more\\n\n"}));
    board.ask("poll_process", json!({"sessionId": session, "maxDrainMs": 120_000}));
    board.ask("list_processes", json!({}));
    board.about("exact bytes and the end, and a poll that waits for it");
    let params = json!({"sessionId": session, "data": {"base64": "AAEC"}, "eof": true});
    board.ask("write_stdin", params);
    board.ask("poll_process", json!({"sessionId": session, "waitMs": 600_000}));
    board.about("input for what has ended");
    board.ask("write_stdin", json!({"sessionId": session, "data": "x"}));

    board.about("who holds the output of a shell that has ended; their end");
    let held = board.ask("bash_stream", json!({"command": LEAVES_A_HOLDER, "stream": false}));
    board.ask("kill_process", json!({"sessionId": held["result"]["sessionId"]}));
    board.about("kill_process, killIf");
    for (method, more) in [
        ("kill_process", json!({"signal": "TERM"})),
        ("kill_process", json!({})),
        ("poll_process", json!({"killIf": "always"})),
        ("poll_process", json!({"killIf": "timeout", "waitMs": 1})),
    ] {
        let params = json!({"command": GOES_ON, "stream": false});
        let open = board.begin("bash_stream", params);
        board.ask("cancel", json!({"id": open}));
        let session = board.reply(open)["result"]["sessionId"].clone();
        board.ask(method, crate::common::merged(json!({"sessionId": session}), more));
    }
    board.about("list_processes");
    board.ask("list_processes", json!({}));
    board.end("stream.txt");
}

#[test]
fn refusals_of_bash_stream_are_as_written() {
    let mut board = Board::start(&["--stdin-cap-bytes", "8", "--bash-jobs-kept", "1"]);
    board.about("no such process");
    for method in ["poll_process", "kill_process", "get_process_log", "write_stdin"] {
        board.ask(method, json!({"sessionId": 7}));
        board.ask(method, json!({"sessionId": "7"}));
    }
    board.about("params that do not fit");
    board.ask("bash_stream", json!({"script": "true"}));
    board.ask("bash_stream", json!({"command": ""}));
    board.ask("bash_stream", json!({"command": "true", "yieldMs": "1"}));
    board.ask("bash_stream", json!({"command": "true", "timeoutMs": 1.5}));
    board.ask("bash_stream", json!({"command": "true", "stdinMode": "file"}));
    board.ask("poll_process", json!({"sessionId": 1, "killIf": "never"}));
    board.ask("kill_process", json!({"sessionId": 1, "signal": "FOO"}));
    board.ask("get_process_log", json!({"sessionId": 1, "stream": "both"}));
    board.ask("get_process_log", json!({"sessionId": 1, "encoding": "hex"}));
    board.ask("list_processes", json!({"all": true}));
    board.about("the cap of input, and closed stdin");
    let open = board.begin("bash_stream", json!({"command": GOES_ON, "stream": false}));
    board.ask("cancel", json!({"id": open}));
    board.reply(open);
    board.ask("write_stdin", json!({"sessionId": 1, "data": 5}));
    board.ask("write_stdin", json!({"sessionId": 1, "data": {"base64": "?"}}));
    board.ask("write_stdin", json!({"sessionId": 1, "chars": "x"}));
    board.ask("write_stdin", json!({"sessionId": 1, "data": "123456"}));
    board.ask("write_stdin", json!({"sessionId": 1, "data": "123", "eof": true}));
    board.ask("write_stdin", json!({"sessionId": 1, "eof": true}));
    board.ask("write_stdin", json!({"sessionId": 1, "data": "1"}));
    board.ask("kill_process", json!({"sessionId": 1}));
    board.about("what is remembered no more");
    board.ask("bash_stream", json!({"command": "true"}));
    board.ask("list_processes", json!({}));
    board.ask("poll_process", json!({"sessionId": 1}));
    board.end("stream_refused.txt");
}

// ---- bash and tmux ----------------------------------------------------------------------

/// rule: bash.md, bash and tmux: A command that cannot start is a result that says why
/// rule: bash.md, bash and tmux: The shell is gone, background children hold the output: 50 ms
///   later pi's text and who runs where
#[test]
fn bash_is_as_written() {
    let mut board = Board::start(&[]);
    let run = |board: &mut Board, title: &str, command: &str, more: Value| {
        board.about(title);
        let params = json!({"command": command, "timeout": 60});
        board.ask("bash", crate::common::merged(params, more))
    };
    run(&mut board, "a command that ends", "echo out; echo err >&2", json!({}));
    run(&mut board, "no output", "true", json!({"name": "nothing"}));
    run(&mut board, "an exit status", "echo oops; exit 3", json!({}));
    run(&mut board, "a signal", "kill -KILL $$", json!({}));
    let more = json!({"context": {"bashContextLines": 3}});
    run(&mut board, "a text that is cut", "seq 9", more);
    let more = json!({"context": {"alwaysShowOutputFilePath": true, "env": {"A": "1"}, "cwd": "/",
        "shellCommandPrefix": "B=2", "tty": true}});
    run(&mut board, "a context", "echo $A $B $PWD; tty >/dev/null && stty size", more);
    let more = json!({"context": {"cwd": "/no/such"}});
    run(&mut board, "no such directory", "true", more);
    let more = json!({"context": {"shellPath": "/no/such/shell"}});
    run(&mut board, "no such shell", "true", more);
    let more = json!({"timeout": 0.1, "timeoutAction": "kill"});
    run(&mut board, "a timeout that ends it", GOES_ON, more);
    run(&mut board, "a shell whose output others hold", LEAVES_A_HOLDER, json!({}));
    board.about("progress, and a command that is cancelled");
    let params = json!({"command": "echo up; exec sleep 1000", "stream": true, "timeout": 60});
    let up = board.begin("bash", params);
    board.note("progress", |note| note["tail"] == "up\n");
    board.ask("cancel", json!({"id": up}));
    board.reply(up);
    board.about("refused params");
    board.ask("bash", json!({}));
    board.ask("bash", json!({"command": "true", "timeout": 0}));
    board.ask("bash", json!({"command": "true", "timeoutAction": "wait"}));
    board.ask("bash", json!({"command": "true", "pollInterval": 0}));
    board.ask("bash", json!({"command": "true", "context": {"maxOutputBytes": "1"}}));
    board.ask("bash", json!({"command": "true", "context": {"more": 1}}));
    board.ask("bash", json!({"command": "true", "context": {"scope": {"piSession": 1}}}));
    board.end("bash.txt");
}

/// rule: bash.md, bash and tmux: Wire results of bash: these fields, absent where they do not apply
/// rule: bash.md, bash and tmux: Errors of tmux are texts
/// rule: bash.md, bash and tmux: list, peek, kill: their texts and rows
/// rule: bash.md, bash and tmux: poll, unpoll, list-polls
/// rule: bash.md, bash and tmux: autoCloseWindowsOnCompletion: false keeps what has ended listed
///   and peekable
#[test]
fn windows_are_as_written() {
    let mut board = Board::start(&[]);
    board.about("no windows");
    board.ask("tmux", json!({"action": "list"}));
    board.ask("tmux", json!({"action": "list-polls"}));
    board.about("a window that is in the background from its start");
    let command = format!("echo up; {}; echo done; exit 2", crate::common::until_file("go"));
    let params = json!({"command": command, "background": true, "name": "builder"});
    let first = board.ask("bash", params);
    board.note("session_started", |note| note["window"] == "@1");
    until_printed(&first["result"], "up\n");
    board.about("one that gets there by its timeout");
    board.ask("bash", json!({"command": GOES_ON, "timeout": 0.1}));
    board.note("session_started", |note| note["window"] == "@2");
    board.about("tmux");
    board.ask("tmux", json!({"action": "list"}));
    board.ask("tmux", json!({"action": "peek", "window": "@1"}));
    board.ask("tmux", json!({"action": "peek", "window": "2"}));
    board.ask("tmux", json!({"action": "poll", "window": "@1", "pollInterval": 20}));
    board.ask("tmux", json!({"action": "list-polls"}));
    board.ask("tmux", json!({"action": "unpoll", "window": "@1"}));
    board.ask("tmux", json!({"action": "unpoll", "window": "@1"}));
    board.about("a poll for people");
    let context = json!({"pollDelivery": "display"});
    let params = json!({"action": "poll", "window": "@1", "pollInterval": 0.1, "pollLines": 1,
        "context": context});
    board.ask("tmux", params);
    board.note("window_poll", |note| note["window"] == "@1");
    board.about("what cannot be done");
    board.ask("tmux", json!({"action": "peek"}));
    board.ask("tmux", json!({"action": "peek", "window": "@9"}));
    board.ask("tmux", json!({"action": "kill", "window": "nine"}));
    board.ask("tmux", json!({"action": "poll", "window": "@2", "pollInterval": 0}));
    board.ask("tmux", json!({"action": "attach"}));
    board.ask("tmux", json!({}));
    board.about("another's windows");
    let context = json!({"windowScope": "pi-session", "scope": {"piSession": "other"}});
    board.ask("tmux", json!({"action": "list", "context": context}));
    board.about("the end of a window, and its kill");
    crate::common::go(&board.execd, "go");
    board.note("window_exited", |note| note["window"] == "@1");
    board.note("session_exited", |note| note["session_id"] == 1);
    board.ask("tmux", json!({"action": "kill", "window": "@2"}));
    board.ask("tmux", json!({"action": "list"}));
    board.about("a window that stays listed; who holds its output");
    let context = json!({"autoCloseWindowsOnCompletion": false});
    // The shell stays until its start is answered, which says `held` otherwise where it was fast.
    let leaves = format!("{}; echo left", crate::common::until_file("leave"));
    let command = LEAVES_A_HOLDER.replace("echo left", &leaves);
    board.ask("bash", json!({"command": command, "background": true, "context": context}));
    crate::common::go(&board.execd, "leave");
    board.note("window_exited", |note| note["window"] == "@3");
    board.ask("tmux", json!({"action": "list"}));
    board.ask("tmux", json!({"action": "kill", "window": "@3"}));
    board.about("one that could not be started");
    let context = json!({"cwd": "/no/such"});
    board.ask("bash", json!({"command": "true", "background": true, "context": context}));
    board.end("windows.txt");
}

// ---- Runs of pi -------------------------------------------------------------------------

fn pi(board: &Board, name: &str, script: &str) -> String {
    let path = board.execd.file(name);
    crate::agent_help::write_pi(&path, script);
    path.canonicalize().expect("it is there").to_str().expect("UTF-8").to_owned()
}

/// A script that writes a captured stream of the real pi.
fn captured(name: &str) -> String {
    format!("cat {}/tests/fixtures/pi-json/pi-0.87.1.{name}.ndjson", env!("CARGO_MANIFEST_DIR"))
}

/// rule: agent.md, Runs that go on: What is no run is refused by its number
/// rule: agent.md, agent_execute, params: stream (true), keep_events (false)
/// rule: agent.md, agent_event: The events and their fields, each with the request's id
/// rule: agent.md, agent_event: tool_use at toolcall_end, or at tool_execution_start where none
///   came; never twice for one id
/// rule: agent.md, The result: Every field, in the document's order
/// rule: agent.md, The result: What could not be known is absent
/// rule: agent.md, Invocation: A pi that cannot be started is a result that says what to do
/// rule: agent.md, agent_health, agent_capabilities: agent_health runs `pi --version`: ok, version,
///   path, or error with the install command
/// rule: agent.md, agent_health, agent_capabilities: agent_capabilities
/// rule: agent.md, agent_execute, params: A missing model is −32602, `model is required: pi's own
///   default is google, name one`
/// rule: agent.md, agent_execute, params: Params of a wrong type or out of range are refused by
///   name, and start nothing
#[test]
fn runs_of_pi_are_as_written() {
    let mut board = Board::start(&[]);
    let run = |board: &mut Board, title: &str, pi: &str, more: Value| {
        board.about(title);
        let params = json!({"prompt": "Do it", "model": "fake/scripted", "pi_path": pi});
        let reply = board.ask("agent_execute", crate::common::merged(params, more));
        board.notes_so_far("agent_event");
        reply
    };
    let path = pi(&board, "pi-tool", &captured("tool-bash"));
    run(&mut board, "a tool, then an answer", &path, json!({}));
    let path = pi(&board, "pi-thinking", &captured("thinking"));
    run(&mut board, "thinking", &path, json!({}));
    let path = pi(&board, "pi-retry", &captured("retry"));
    run(&mut board, "a retry", &path, json!({"allowed_tools": []}));
    let path = pi(&board, "pi-error", &captured("model-error"));
    run(&mut board, "a model that fails; no events", &path, json!({"stream": false}));
    let path = pi(&board, "pi-status", "echo no key >&2; exit 1");
    run(&mut board, "a pi that fails", &path, json!({}));
    run(&mut board, "no pi", "/no/such/pi", json!({}));
    let path = pi(&board, "pi-silent", GOES_ON);
    let more = json!({"first_event_timeout_ms": 50});
    run(&mut board, "a model that does not begin", &path, more);

    let stream = [
        crate::agent_help::begun(),
        vec![crate::agent_help::assistant_end(
            "Half",
            &crate::agent_help::usage(100, 10, 0.25),
            "stop",
        )],
    ];
    let file = board.execd.file("half.ndjson");
    std::fs::write(&file, crate::agent_help::ndjson(&stream.concat())).expect("a stream");
    let path = pi(&board, "pi-half", &format!("cat half.ndjson; {GOES_ON}"));
    run(&mut board, "a budget that is passed", &path, json!({"max_cost_usd": 0.1}));
    let left = pi(&board, "pi-left", &format!(": > up; {GOES_ON}"));
    let left = run(&mut board, "a run that goes on", &left, json!({"wait_ms": 0, "label": "l"}));
    let run_id = &left["result"]["run_id"];
    board.ask("agent_result", json!({"run_id": run_id, "wait_ms": 0}));
    // Before that there is no pi whose end could be told.
    crate::common::until_exists(&board.execd.file("up"));
    board.ask("agent_result", json!({"run_id": run_id, "cancel": true}));
    board.ask("agent_result", json!({"run_id": 4_711}));
    board.about("a run that is cancelled");
    std::fs::write(&file, crate::agent_help::ndjson(&crate::agent_help::begun()))
        .expect("a stream");
    let params = json!({"prompt": "Do it", "model": "fake/scripted", "pi_path": path});
    let id = board.begin("agent_execute", params);
    board.note("agent_event", |note| note["request_id"] == id && note["event"] == "text");
    board.ask("cancel", json!({"id": id}));
    board.reply(id);

    board.about("agent_health");
    board.ask("agent_health", json!({"pi_path": path}));
    board.ask("agent_health", json!({"pi_path": "/no/such/pi"}));
    let path = pi(&board, "pi", "");
    std::fs::write(&path, "#!/bin/sh\necho broken >&2\nexit 3\n").expect("a script");
    board.ask("agent_health", json!({"pi_path": path}));
    board.about("agent_capabilities");
    board.ask("agent_capabilities", json!({}));
    board.about("refused params");
    let fits = json!({"prompt": "Do it", "model": "fake/scripted"});
    for more in [
        json!({"model": "scripted"}),
        json!({"prompt": ""}),
        json!({"allowed_tools": ["a,b"]}),
        json!({"allowed_tools": "a"}),
        json!({"thinking": "hard"}),
        json!({"timeout_ms": "1s"}),
        json!({"max_cost_usd": -1}),
        json!({"api_key": "two words"}),
        json!({"temperature": 1}),
    ] {
        board.ask("agent_execute", crate::common::merged(fits.clone(), more));
    }
    board.ask("agent_execute", json!({"prompt": "Do it"}));
    board.end("agent.txt");
}

// ---- Attached clients -------------------------------------------------------------------

/// rule: attach.md, attach_session, attach_input, detach_session: detach_session ends the output;
///   the session goes on
/// rule: attach.md, attach_session, attach_input, detach_session: attach_input goes to the stdin of
///   a session on pipes
#[test]
fn attaching_is_as_written() {
    let mut board = Board::start(&["--on-impossible", "wait"]);
    board.about("a session that has printed something");
    let cat = board.open("read -r x; echo hello; exec cat", json!({"name": "cat"}));
    board.input(cat, "hello\n");
    board.about("attach_session: what was printed, what comes");
    board.ask("attach_session", json!({"session_id": cat}));
    board.note("attach_output", |_| true);
    board.ask("attach_input", json!({"session_id": cat, "data_b64": "bW9yZQo="}));
    board.note("attach_output", |_| true);
    board.about("from a byte on");
    board.ask("attach_session", json!({"session_id": cat, "from": 6}));
    board.note("attach_output", |_| true);
    board.about("detach_session");
    board.ask("detach_session", json!({"session_id": cat}));
    board.ask("detach_session", json!({"session_id": cat}));
    board.about("what is attached to ends");
    board.ask("attach_session", json!({"session_id": cat, "from": 11}));
    board.ask("kill_session", json!({"session_id": cat}));
    board.note("attach_ended", |_| true);
    board.about("a terminal, and its size");
    let tty = board.open("stty -echo; exec cat", json!({"tty": true}));
    let params = json!({"session_id": tty, "cols": 80, "rows": 24, "redraw": false});
    board.ask("attach_session", params);
    board.ask("resize_session", json!({"session_id": tty, "cols": 90, "rows": 30}));
    board.ask("detach_session", json!({"session_id": tty}));
    board.about("refusals");
    board.ask("attach_session", json!({"session_id": 7}));
    board.ask("attach_session", json!({"session_id": tty, "cols": 80}));
    board.ask("attach_session", json!({"session_id": "x"}));
    board.ask("attach_input", json!({"session_id": 7, "data_b64": ""}));
    board.ask("attach_input", json!({"session_id": tty, "data_b64": "?"}));
    board.ask("attach_input", json!({"session_id": tty}));
    board.ask("attach_input", json!({"session_id": tty, "data_b64": "", "eof": true}));
    board.ask("detach_session", json!({}));
    let closed = board.open(GOES_ON, json!({"stdin": "null"}));
    board.ask("attach_session", json!({"session_id": closed}));
    board.ask("attach_input", json!({"session_id": closed, "data_b64": "eAo="}));
    board.end("attach.txt");
}
