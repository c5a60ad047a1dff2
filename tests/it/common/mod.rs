//! The harness of the integration tests: a real execd with pipes, and facts about it from
//! outside (/proc, its log files).
//!
//! | file | what |
//! |---|---|
//! | `mod` | [`Execd`]: requests, replies, notifications; reading results |
//! | `host` | [`Setup`], how an execd is started, and [`Host`], the process |
//! | `rules` | what every line of execd keeps to |
//! | `lines`, `wire` | lines from any descriptor; clients of the control socket |
//! | `outside` | facts about any process, strace, small file systems |
//! | `mcp_lines`, `json_schema` | what every line of `execd mcp` keeps to |
//! | `data`, `tmux`, `release` | bytes for tests, a terminal that draws, the release binary |
//!
//! An execd is started by [`Setup`] (most often as [`Execd::start`]), a command line of it by
//! [`execd_command`]. Every wait has a deadline of [`PATIENCE`], and none is a sleep that hopes:
//! replies are waited for, `ping` is the barrier that shows that a reply has not come, and outside
//! facts are looked at again and again until they hold ([`eventually`], [`comes_within`]). What is
//! known of a process is asked of `outside`.
#![allow(dead_code, unused_imports)]
// No test uses all of it.
// The bans are for execd's own code; a test has threads, waits and looks at the clock.

pub mod data;
pub mod host;
pub mod json_schema;
pub mod lines;
pub mod mcp_lines;
pub mod outside;
pub mod release;
pub mod rules;
pub mod tmux;
pub mod wire;

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use host::{EXECD, Host, Process, Setup, execd_command};
pub use lines::Incoming;
pub use lines::{
    is_nonblocking, is_notification, is_readable, make_raw, open_pty, until_readable, value,
};
pub use outside::{is_alive, left_out, process_state};
use serde_json::{Value, json};

/// How long any wait may take before the test fails: a test machine can be slow.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// An upper bound for what must not last as long as a yield time of 30 s.
pub const AT_ONCE: Duration = Duration::from_secs(20);
/// Pause between two looks at a fact outside of execd.
pub const PAUSE: Duration = Duration::from_millis(2);
/// The id of the first request that a test does not name itself.
pub const FIRST_ID: u64 = 1_001;
/// A stamp in the past: write_stdin with it is a poll that does not wait.
pub const LONG_AGO: &str = "2001-02-03T04:05:06Z";

/// A running execd on two pipes, and everything that it wrote. What is seen of its process is that
/// of [`Host`].
#[derive(Debug)]
pub struct Execd {
    host: Host,
    stdin: Option<ChildStdin>,
    incoming: Incoming,
    /// Every line in the order in which it came.
    history: Vec<Seen>,
    next_id: u64,
    /// What is known of the lines of `execd mcp`.
    mcp: Option<mcp_lines::McpLines>,
}

/// One line from stdout, and whether a test has asked for it yet.
#[derive(Debug)]
struct Seen {
    text: String,
    value: Value,
    at: Instant,
    taken: bool,
}

impl Deref for Execd {
    type Target = Host;

    fn deref(&self) -> &Host {
        &self.host
    }
}

impl DerefMut for Execd {
    fn deref_mut(&mut self) -> &mut Host {
        &mut self.host
    }
}

impl Execd {
    /// execd without flags.
    pub fn start() -> Self {
        Self::with(&[], &[])
    }

    /// execd with flags and additional environment variables.
    pub fn with(args: &[&str], envs: &[(&str, &str)]) -> Self {
        Setup::new(args).envs(envs).start()
    }

    /// What [`Setup::start`] has started.
    fn on(mut host: Host) -> Self {
        let incoming = Incoming::from(host.child().stdout.take().expect("stdout is a pipe"));
        let stdin = host.child().stdin.take();
        Self { host, stdin, incoming, history: Vec::new(), next_id: FIRST_ID - 1, mcp: None }
    }

    /// Checks every line from now on against the schemas of the Model Context Protocol.
    pub fn checked_as_mcp(mut self) -> Self {
        self.mcp = Some(mcp_lines::McpLines::default());
        self
    }

    /// How many lines of `execd mcp` were checked against each type of each version.
    pub fn checked_lines(&self) -> &BTreeMap<(&'static str, String), usize> {
        &self.mcp.as_ref().expect("an execd that speaks the protocol").checked
    }

    // ---- Requests and replies -----------------------------------------------------------

    /// Writes bytes to execd's stdin as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        let done = self.try_send(bytes);
        assert!(done.is_ok() || !self.host.watched, "execd reads its stdin: {done:?}");
    }

    /// The same to an execd that may have ended.
    pub fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if let Some(mcp) = &mut self.mcp {
            mcp.sent(bytes);
        }
        let Some(stdin) = self.stdin.as_mut() else {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        };
        stdin.write_all(bytes).and_then(|()| stdin.flush())
    }

    /// Writes a line.
    pub fn send_line(&mut self, line: &str) {
        self.send_raw(format!("{line}\n").as_bytes());
    }

    /// Sends a request; its reply is asked for with [`Self::reply`].
    pub fn send(&mut self, id: impl Into<Value>, method: &str, params: impl Borrow<Value>) {
        let (id, params) = (id.into(), params.borrow());
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send_line(&request.to_string());
    }

    /// Sends a request under a fresh id, which it returns.
    pub fn start_request(&mut self, method: &str, params: impl Borrow<Value>) -> u64 {
        self.next_id += 1;
        self.send(self.next_id, method, params);
        self.next_id
    }

    /// One request and its whole reply.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.start_request(method, params);
        self.reply(id)
    }

    /// One request and its result; an error fails the test.
    pub fn result(&mut self, method: &str, params: impl Borrow<Value>) -> Value {
        let id = self.start_request(method, params);
        self.result_of(id)
    }

    /// One request and its reply, which must be the next of all replies.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.start_request(method, params);
        let reply = self.next_reply();
        assert_eq!(reply["id"], id, "nothing else is answered: {reply}");
        reply
    }

    /// Shows that no reply is on its way: the next one is the answer to this ping.
    pub fn nothing_but_a_ping(&mut self) {
        let reply = self.ask("ping", json!({}));
        assert_eq!(reply["result"], json!({}));
    }

    /// One request and its error object; a result fails the test.
    pub fn error(&mut self, method: &str, params: Value) -> Value {
        let reply = self.request(method, params.clone());
        assert!(reply.get("error").is_some(), "{method} {params} should be refused: {reply}");
        reply["error"].clone()
    }

    /// A request that must be refused with −32602 naming `param`; returns the message.
    pub fn refused(&mut self, method: &str, params: Value, param: &str) -> String {
        let error = self.error(method, params.clone());
        assert_eq!(error["code"], -32602, "{method} {params}: {error}");
        assert_eq!(error["data"]["param"], param, "{method} {params}: {error}");
        error["message"].as_str().expect("a message").to_owned()
    }

    /// A request that must fail with −32000 for `reason`; returns the message.
    pub fn failed(&mut self, method: &str, params: Value, reason: &str) -> String {
        let error = self.error(method, params.clone());
        assert_eq!(error["code"], -32000, "{method} {params}: {error}");
        assert_eq!(error["data"]["reason"], reason, "{method} {params}: {error}");
        error["message"].as_str().expect("a message").to_owned()
    }

    /// The reply to request `id`; what else comes meanwhile is kept.
    pub fn reply(&mut self, id: u64) -> Value {
        self.take(&format!("the reply to {id}"), |line| {
            line.get("method").is_none() && line["id"] == id
        })
    }

    /// The result in the reply to request `id`.
    pub fn result_of(&mut self, id: u64) -> Value {
        let reply = self.reply(id);
        assert!(reply.get("result").is_some(), "request {id} should succeed: {reply}");
        reply["result"].clone()
    }

    /// The next notification of that method whose params fit, as its params.
    pub fn notification(&mut self, method: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let found = self.take(&format!("a notification {method}"), |line| {
            line["method"] == method && fits(&line["params"])
        });
        found["params"].clone()
    }

    /// Everything that came as notifications until now, taken or not, oldest first.
    pub fn notifications_so_far(&mut self) -> Vec<Value> {
        self.ping();
        self.history
            .iter()
            .filter(|seen| seen.value.get("method").is_some())
            .map(|seen| seen.value.clone())
            .collect()
    }

    /// The params of all notifications of one method until now.
    pub fn notified(&mut self, method: &str) -> Vec<Value> {
        let all = self.notifications_so_far();
        all.iter().filter(|n| n["method"] == method).map(|n| n["params"].clone()).collect()
    }

    /// The same of one request.
    pub fn told_of(&mut self, method: &str, request: u64) -> Vec<Value> {
        let all = self.notified(method).into_iter();
        all.filter(|params| params["request_id"] == request).collect()
    }

    /// Where in the order of all lines the first one stands that fits.
    pub fn position(&self, fits: impl Fn(&Value) -> bool) -> Option<usize> {
        self.history.iter().position(|seen| fits(&seen.value))
    }

    /// Where the reply to request `id` stands in the order of all lines.
    pub fn reply_position(&self, id: u64) -> usize {
        let found = self.position(|line| line.get("method").is_none() && line["id"] == id);
        found.expect("the reply has come")
    }

    /// Whether a line that fits stands after that place in the order of all lines.
    pub fn any_after(&self, place: usize, fits: impl Fn(&Value) -> bool) -> bool {
        self.history.iter().skip(place + 1).any(|seen| fits(&seen.value))
    }

    /// When the first line came that fits.
    pub fn arrival(&self, fits: impl Fn(&Value) -> bool) -> Option<Instant> {
        self.history.iter().find(|seen| fits(&seen.value)).map(|seen| seen.at)
    }

    /// A round trip: what execd had to say before has been said.
    pub fn ping(&mut self) {
        let answer = self.result("ping", json!({}));
        assert_eq!(answer, json!({}));
    }

    /// Shows that request `id` is still waiting.
    pub fn no_reply_yet(&mut self, id: u64) {
        self.ping();
        let early = self.position(|line| line.get("method").is_none() && line["id"] == id);
        assert!(
            early.is_none(),
            "request {id} should still wait: {:?}",
            self.history.last().map(|s| &s.value)
        );
    }

    /// The reply to request `id`, but for an execd that ends without one.
    pub fn reply_if_any(&mut self, id: u64) -> Option<Value> {
        let deadline = Instant::now() + PATIENCE;
        let is_reply = |seen: &Seen| seen.value.get("method").is_none() && seen.value["id"] == id;
        loop {
            if let Some(seen) = self.history.iter().find(|seen| is_reply(seen)) {
                return Some(seen.value.clone());
            }
            if !self.receive("a reply, or the end", deadline) {
                return None;
            }
        }
    }

    /// The next line that nobody asked for yet, as execd wrote it.
    pub fn line(&mut self) -> String {
        let at = self.take_at("a line", |_| true);
        self.history[at].text.clone()
    }

    /// The next reply that nobody asked for yet, as execd wrote it.
    pub fn reply_line(&mut self) -> String {
        let at = self.take_at("a reply", |seen| !is_notification(&seen.text));
        self.history[at].text.clone()
    }

    /// The same as a value.
    pub fn next_reply(&mut self) -> Value {
        value(&self.reply_line())
    }

    fn take(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let at = self.take_at(what, |seen| fits(&seen.value));
        self.history[at].value.clone()
    }

    fn take_at(&mut self, what: &str, fits: impl Fn(&Seen) -> bool) -> usize {
        let deadline = Instant::now() + PATIENCE;
        let mut next = 0;
        loop {
            while let Some(seen) = self.history.get_mut(next) {
                next += 1;
                if !seen.taken && fits(seen) {
                    seen.taken = true;
                    return next - 1;
                }
            }
            let more = self.receive(what, deadline);
            assert!(more, "stdout ended before {what}{}", self.situation());
        }
    }

    /// Takes a line up; false at the end of stdout.
    fn receive(&mut self, what: &str, deadline: Instant) -> bool {
        let (at, text) = match self.incoming.next(deadline) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => {
                panic!("waited {PATIENCE:?} for {what}{}", self.situation())
            }
        };
        let value = match serde_json::from_str(&text) {
            Ok(value) => value,
            // An id can be a number that no parser takes: it is looked at as text.
            Err(fault) if fault.to_string().starts_with("number out of range") => Value::Null,
            Err(fault) => panic!("execd wrote a line that is no JSON: {fault}: {text}"),
        };
        if self.host.watched && !value.is_null() {
            rules::check_line(&value);
        }
        if let Some(mcp) = &mut self.mcp {
            mcp.came(&value);
        }
        self.history.push(Seen { text, value, at, taken: false });
        true
    }

    fn situation(&self) -> String {
        let mut text = String::from("; the last lines were:\n");
        let first = self.history.len().saturating_sub(8);
        for seen in &self.history[first..] {
            let line: String = seen.text.chars().take(600).collect();
            let _ = writeln!(text, "  {line}");
        }
        let _ = write!(text, "stderr:\n{}", self.stderr());
        text
    }

    /// Reads stdout to its end; gives the lines that nobody asked for yet, as execd wrote them.
    pub fn rest(&mut self) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        while self.receive("the end of stdout", deadline) {}
        let left = self.history.iter_mut().filter(|seen| !seen.taken);
        left.map(|seen| {
            seen.taken = true;
            seen.text.clone()
        })
        .collect()
    }

    /// The same as values.
    pub fn remaining_lines(&mut self) -> Vec<Value> {
        self.rest().iter().map(|line| value(line)).collect()
    }

    /// Reads stdout to its end; gives everything that ever came.
    pub fn all_lines(&mut self) -> Vec<Value> {
        self.rest();
        self.history.iter().map(|seen| seen.value.clone()).collect()
    }

    // ---- The methods most tests use -----------------------------------------------------

    /// exec_command with these params.
    pub fn exec(&mut self, params: Value) -> Value {
        self.result("exec_command", params)
    }

    /// Runs a command to its end.
    pub fn run(&mut self, cmd: &str) -> Value {
        self.run_with(cmd, json!({}))
    }

    /// Runs a command to its end, with more params.
    pub fn run_with(&mut self, cmd: &str, more: Value) -> Value {
        let params = merged(json!({"cmd": cmd, "yield_time_ms": 30_000}), more);
        let result = self.exec(params);
        assert!(result.get("session_id").is_none(), "{cmd} should have ended: {result}");
        result
    }

    /// Starts a command that goes on: its first reply comes after 250 ms.
    pub fn open(&mut self, cmd: &str) -> Value {
        self.open_with(cmd, json!({}))
    }

    /// Starts a command that goes on, with more params.
    pub fn open_with(&mut self, cmd: &str, more: Value) -> Value {
        let params = merged(json!({"cmd": cmd, "yield_time_ms": 250}), more);
        let result = self.exec(params);
        assert!(result.get("session_id").is_some(), "{cmd} should still run: {result}");
        result
    }

    /// Starts a command, waits until it has printed `text`, and returns its session id.
    /// The output stays unread unless it came within the first 250 ms.
    pub fn open_until(&mut self, cmd: &str, text: &str) -> u64 {
        self.open_until_with(cmd, text, json!({}))
    }

    /// As [`Self::open_until`], with more params.
    pub fn open_until_with(&mut self, cmd: &str, text: &str, more: Value) -> u64 {
        let mut result = self.open_with(cmd, more);
        let session = session_of(&result);
        // An answer does not wait for the log writer, which may be slow to begin.
        eventually("the log has begun", || {
            if result["log_path"].is_null() {
                result = self.listed(session).expect("it is in the table");
            }
            result["log_path"].is_string()
        });
        until_logged(&result, text);
        session
    }

    /// Starts a command, waits until it has printed `text`, and takes its output so far.
    pub fn open_ready(&mut self, cmd: &str, text: &str, more: Value) -> u64 {
        let session = self.open_until_with(cmd, text, more);
        self.poll_now(session);
        session
    }

    /// Starts a command that goes on, and ends the call's wait at once.
    pub fn open_now(&mut self, params: &Value) -> Value {
        let id = self.start_request("exec_command", params);
        self.cancel(id);
        let result = self.result_of(id);
        assert!(result.get("session_id").is_some(), "{params} should run: {result}");
        result
    }

    /// Starts a command that goes on, and waits until it has made a file, when one is named; gives
    /// its session's id.
    pub fn open_making(&mut self, cmd: &str, file: Option<&str>) -> u64 {
        let session = session_of(&self.open(cmd));
        if let Some(file) = file {
            until_exists(&self.file(file));
        }
        session
    }

    /// Several commands started together; their session ids in the same order.
    pub fn open_all(&mut self, cmds: &[&str]) -> Vec<u64> {
        let start = |execd: &mut Self, cmd: &&str| {
            execd.start_request("exec_command", json!({"cmd": cmd, "yield_time_ms": 250}))
        };
        let requests: Vec<u64> = cmds.iter().map(|cmd| start(self, cmd)).collect();
        requests.into_iter().map(|id| session_of(&self.result_of(id))).collect()
    }

    /// write_stdin with these params.
    pub fn write(&mut self, params: Value) -> Value {
        self.result("write_stdin", params)
    }

    /// Sends input and takes what comes within 250 ms.
    pub fn input(&mut self, session: u64, chars: &str) -> Value {
        self.write(json!({"session_id": session, "chars": chars}))
    }

    /// A poll that does not wait.
    pub fn poll_now(&mut self, session: u64) -> Value {
        self.write(json!({"session_id": session, "yield_until": LONG_AGO}))
    }

    /// Waits until the session has exited.
    pub fn until_exit(&mut self, session: u64) -> Value {
        let result = self.write(json!({"session_id": session, "yield_time_ms": 50_000}));
        assert!(result.get("session_id").is_none(), "should have exited: {result}");
        result
    }

    /// Takes output until it holds `text`; returns all that was taken.
    pub fn read_until(&mut self, session: u64, text: &str) -> String {
        let mut all = String::new();
        let came = looks_within(PATIENCE, 5 * PAUSE, || {
            let result = self.poll_now(session);
            all.push_str(output(&result));
            let came = all.contains(text);
            let goes_on = result.get("session_id").is_some();
            assert!(came || goes_on, "exited without {text:?}: {all:?} {result}");
            came
        });
        assert!(came, "no {text:?} in {PATIENCE:?}: {all:?}");
        all
    }

    /// A write_stdin, then output is taken until it holds `text`; returns all that was taken.
    pub fn write_until(&mut self, params: Value, text: &str) -> String {
        let session = params["session_id"].as_u64().expect("a session_id");
        let mut all = output(&self.write(params)).to_owned();
        if !all.contains(text) {
            all.push_str(&self.read_until(session, text));
        }
        all
    }

    /// Sends input, then takes output until it holds `text`.
    pub fn input_until(&mut self, session: u64, chars: &str, text: &str) -> String {
        self.write_until(json!({"session_id": session, "chars": chars}), text)
    }

    /// kill_session with its default signal.
    pub fn kill(&mut self, session: u64) -> Value {
        self.result("kill_session", json!({"session_id": session}))
    }

    /// Ends the wait of a request.
    pub fn cancel(&mut self, id: u64) -> bool {
        let answer = self.result("cancel", json!({"id": id}));
        answer["cancelled"].as_bool().expect("cancelled is a boolean")
    }

    /// list_sessions that changes nothing.
    pub fn peek(&mut self) -> Value {
        self.result("list_sessions", json!({"peek": true}))
    }

    /// The entry of a session in a listing that changes nothing.
    pub fn listed(&mut self, session: u64) -> Option<Value> {
        let list = self.peek();
        let sessions = list["sessions"].as_array().expect("sessions is an array");
        sessions.iter().find(|entry| entry["session_id"] == session).cloned()
    }

    /// Waits until a listing shows the session as exited.
    pub fn until_listed_exited(&mut self, session: u64) {
        eventually(&format!("session {session} exits"), || {
            self.listed(session).expect("the session is listed")["running"] == false
        });
    }

    /// The log writer of this execd, once it has become that.
    pub fn keeper(&mut self) -> i32 {
        let info = self.result("server_info", json!({}));
        let pid = pid_of(&json!({"pid": info["keeper_pid"]}));
        outside::until_runs(pid, "sessions-log");
        pid
    }

    /// Ends execd's input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }
}

// ---- Facts from outside -----------------------------------------------------------------

/// Sends a signal to a process.
pub fn send_signal(pid: i32, signal: i32) {
    // SAFETY: kill takes two numbers and touches no memory of ours.
    unsafe { libc::kill(pid, signal) };
}

/// Looks at a fact outside of execd until it holds.
pub fn eventually(what: &str, holds: impl FnMut() -> bool) {
    assert!(comes_within(PATIENCE, holds), "waited {PATIENCE:?} until {what}");
}

/// The same in this time, for who has more to say where it does not come to hold.
pub fn comes_within(patience: Duration, holds: impl FnMut() -> bool) -> bool {
    looks_within(patience, PAUSE, holds)
}

/// The same with another pause between two looks, of which each costs something.
pub fn looks_within(patience: Duration, pause: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    while !holds() {
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(pause);
    }
    true
}

/// Waits until a file exists.
pub fn until_exists(path: &Path) {
    eventually(&format!("{} exists", path.display()), || path.exists());
}

/// Waits until a file holds this text.
pub fn until_file_has(path: &Path, text: &str) {
    eventually(&format!("{} has {text:?}", path.display()), || {
        std::fs::read_to_string(path).is_ok_and(|all| all.contains(text))
    });
}

/// Lets commands go on that wait for the file `name` (see [`until_file`]).
pub fn go(execd: &Host, name: &str) {
    std::fs::write(execd.file(name), "").expect("a file");
}

/// What a command does to wait for the file `name`: it sleeps most of the time, so that an answer
/// that it holds up does not take it for one that works.
pub fn until_file(name: &str) -> String {
    format!("until [ -e {name} ]; do sleep 0.1; done")
}

/// Waits until the log of a session holds `text`: it has printed that, and nobody took it.
pub fn until_logged(result: &Value, text: &str) {
    let path = log_path(result);
    let mut log = Vec::new();
    let came = comes_within(PATIENCE, || {
        log = std::fs::read(&path).unwrap_or_default();
        contains(&log, text.as_bytes())
    });
    assert!(came, "no {text:?} in {}: {:?}", path.display(), String::from_utf8_lossy(&log));
}

/// Whether `bytes` hold `part`.
pub fn contains(bytes: &[u8], part: &[u8]) -> bool {
    part.is_empty() || bytes.windows(part.len()).any(|window| window == part)
}

/// The bytes of the log that a result names.
pub fn log_of(result: &Value) -> Vec<u8> {
    std::fs::read(log_path(result)).expect("the log exists when a reply names it")
}

/// The log that a result names.
pub fn log_path(result: &Value) -> PathBuf {
    PathBuf::from(result["log_path"].as_str().expect("the result names its log"))
}

/// A text without the word that the log it names may lack some: there or not, as fast as the
/// machine is.
pub fn settled_text(text: &str) -> String {
    text.replace(" (it may not have all of it yet)", "")
}

/// Whether this test must be left out because a program is missing; never on CI.
pub fn missing(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|dir| dir.join(program).is_file()) {
        return false;
    }
    assert!(std::env::var_os("CI").is_none(), "{program} is not installed on CI");
    eprintln!("left out: {program} is not installed");
    true
}

// ---- Reading results --------------------------------------------------------------------

/// The session id of a result that is still running.
pub fn session_of(result: &Value) -> u64 {
    result["session_id"].as_u64().unwrap_or_else(|| panic!("no session_id in {result}"))
}

/// The pid that a result or a list entry tells.
pub fn pid_of(result: &Value) -> i32 {
    let pid = result["pid"].as_i64().unwrap_or_else(|| panic!("no pid in {result}"));
    i32::try_from(pid).expect("a pid")
}

/// The model-facing text of a result.
pub fn output(result: &Value) -> &str {
    result["output"].as_str().unwrap_or_else(|| panic!("no output in {result}"))
}

/// Shows that an object has these fields and no others.
pub fn assert_fields(result: &Value, fields: &[&str]) {
    let object = result.as_object().unwrap_or_else(|| panic!("{result} is no object"));
    assert_state(result);
    // Whether it waits is of the moment, and has tests of its own (tests/it/state.rs).
    let of_the_moment = ["state", "state_detail", "stateDetail"];
    let mut has: BTreeSet<&str> = object.keys().map(String::as_str).collect();
    has.retain(|field| fields.contains(field) || !of_the_moment.contains(field));
    let wanted: BTreeSet<&str> = fields.iter().copied().collect();
    assert_eq!(has, wanted, "{result}");
}

/// Shows that what goes on has a state, what has ended has none, and that who waits is named with a
/// state of waiting alone.
fn assert_state(result: &Value) {
    let header = result["header"].as_str().map(|header| header.starts_with("[still running]"));
    let row = result["running"].as_bool().filter(|_| result.get("request_id").is_none());
    let stream = result.get("sessionId").map(|_| result["status"] == "running");
    let state = result["state"].as_str();
    if let Some(goes_on) = header.or(row).or(stream.filter(|_| result.get("status").is_some())) {
        assert_eq!(state.is_some(), goes_on, "state: {result}");
    }
    let words = ["running", "stopped", "held", "exited"];
    let waits = state.is_some_and(|state| state.starts_with("waiting_for_"));
    assert!(waits || state.is_none_or(|state| words.contains(&state)), "state: {result}");
    let detail = result.get("state_detail").or(result.get("stateDetail"));
    assert_eq!(detail.is_some(), waits, "state_detail: {result}");
}

/// Shows that none of these fields is there.
pub fn assert_absent(result: &Value, fields: &[&str]) {
    for field in fields {
        assert!(result.get(field).is_none(), "{field} does not apply: {result}");
    }
}

/// `base` with the fields of `more` put over it.
pub fn merged(mut base: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("params are an object") };
    base.as_object_mut().expect("params are an object").extend(more);
    base
}

/// This moment.
pub fn now() -> Instant {
    Instant::now()
}

/// This moment of the wall clock.
pub fn wall_clock() -> SystemTime {
    SystemTime::now()
}

/// What `stty -a` says of an open terminal, word by word.
pub fn terminal_settings(terminal: &File) -> Vec<String> {
    let input = terminal.try_clone().expect("a copy");
    let settings = Command::new("stty").arg("-a").stdin(input).output().expect("stty runs");
    let text = String::from_utf8_lossy(&settings.stdout);
    text.split_whitespace().map(str::to_owned).collect()
}

/// A time as RFC 3339 UTC with milliseconds.
pub fn utc_stamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).expect("after 1970");
    execd::pure::time::rfc3339::format_utc_ms(i64::try_from(since.as_millis()).expect("a date"))
}

/// Shows that a text is ISO 8601 with milliseconds and Z.
pub fn assert_utc_stamp(stamp: &Value) {
    let text = stamp.as_str().unwrap_or_else(|| panic!("{stamp} is no stamp"));
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "0000-00-00T00:00:00.000Z", "{text}");
}

/// What to put before a command that looks for execds of this user, so that it finds those of its
/// own runtime directory only: whatever else runs may have put its socket into /tmp. Nothing where
/// we may not.
pub fn apart() -> &'static [&'static str] {
    const EMPTY: &str = "dir=/tmp/execd-$(id -u); mkdir -m 700 -p $dir && mount -t tmpfs -o mode=700 \
                         none $dir; exec \"$@\"";
    const WORDS: [&str; 6] = ["unshare", "-m", "sh", "-c", EMPTY, "apart"];
    static MAY: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    let may = || {
        let tried = Command::new("unshare").args(["-m", "true"]).stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    };
    if *MAY.get_or_init(may) { &WORDS } else { &[] }
}
