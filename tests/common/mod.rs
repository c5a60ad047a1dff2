//! The harness of the integration tests: a real execd with pipes, and facts about it from
//! outside (/proc, its log files).
//!
//! Every wait has a deadline of [`PATIENCE`], and none is a sleep that hopes: replies are
//! waited for, `ping` is the barrier that shows that a reply has not come, and outside facts
//! are looked at again and again until they hold ([`eventually`]).
#![allow(dead_code)]
// The bans are for execd's own code; a test has threads, waits and looks at the clock.
#![allow(clippy::disallowed_methods, clippy::print_stderr)]

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long any wait may take before the test fails: a test machine can be slow.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// An upper bound for what must not last as long as a yield time of 30 s.
pub const AT_ONCE: Duration = Duration::from_secs(20);
/// Pause between two looks at a fact outside of execd.
const PAUSE: Duration = Duration::from_millis(2);
/// The mark in the environment of execd and of all that it starts.
const RUN_VARIABLE: &str = "EXECD_TEST_RUN";
/// A stamp in the past: write_stdin with it is a poll that does not wait.
pub const LONG_AGO: &str = "2001-02-03T04:05:06Z";

/// A running execd and everything that it wrote.
#[derive(Debug)]
pub struct Execd {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Result<Value, String>>,
    /// Every line in the order in which it came.
    history: Vec<Seen>,
    stderr: Arc<Mutex<Vec<u8>>>,
    next_id: u64,
    run: String,
    leaves_processes: bool,
    exit: Option<ExitStatus>,
    dir: TempDir,
}

/// One line from stdout, and whether a test has asked for it yet.
#[derive(Debug)]
struct Seen {
    value: Value,
    at: Instant,
    taken: bool,
}

/// A process that carries the mark of one [`Execd`].
#[derive(Debug, Clone)]
pub struct Process {
    pub pid: i32,
    pub command: String,
    /// EXECD_SESSION_ID in its environment: absent for execd and its keeper.
    pub session: Option<String>,
}

impl Execd {
    /// execd without flags.
    pub fn start() -> Self {
        Self::with(&[], &[])
    }

    /// execd with flags and additional environment variables.
    pub fn with(args: &[&str], envs: &[(&str, &str)]) -> Self {
        Self::of(&[env!("CARGO_BIN_EXE_execd")], args, envs)
    }

    /// Another binary of execd, or one with words before it that exec it in the end.
    pub fn of(command: &[&str], args: &[&str], envs: &[(&str, &str)]) -> Self {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let dir = tempfile::Builder::new().prefix("execd-test-").tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("tmp")).expect("TMPDIR");
        std::fs::create_dir(dir.path().join("run")).expect("XDG_RUNTIME_DIR");
        std::fs::create_dir(dir.path().join("work")).expect("a working directory");
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.subsec_nanos());
        let run =
            format!("{}-{nanos}-{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
        let mut child = Command::new(command[0])
            .args(&command[1..])
            .args(args)
            .current_dir(dir.path().join("work"))
            .env("TMPDIR", dir.path().join("tmp"))
            .env("XDG_RUNTIME_DIR", dir.path().join("run"))
            .env(RUN_VARIABLE, &run)
            .env("LC_ALL", "C.UTF-8")
            .env("HISTFILE", "/dev/null")
            .env_remove("TERM")
            .env_remove("EXECD_SESSION_ID")
            .env_remove("EXECD_INSTANCE")
            .env_remove("PI_UNIFIED_EXEC_MAX_EMPTY_POLL_MS")
            .envs(envs.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("execd starts");
        let (send, lines) = channel();
        let stdout = child.stdout.take().expect("stdout is a pipe");
        thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n') {
                let Ok(line) = line else { return };
                let parsed = serde_json::from_slice(&line)
                    .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&line)));
                if send.send(parsed).is_err() {
                    return;
                }
            }
        });
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let collected = Arc::clone(&stderr);
        let mut source = child.stderr.take().expect("stderr is a pipe");
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = source.read(&mut buffer) {
                collected.lock().expect("no panic while locked").extend(&buffer[..count]);
            }
        });
        let stdin = child.stdin.take();
        Self {
            child,
            stdin,
            lines,
            history: Vec::new(),
            stderr,
            next_id: 1_000,
            run,
            leaves_processes: false,
            exit: None,
            dir,
        }
    }

    // ---- Requests and replies -----------------------------------------------------------

    /// Writes bytes to execd's stdin as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is still open");
        stdin.write_all(bytes).and_then(|()| stdin.flush()).expect("execd reads its stdin");
    }

    /// Sends a request; its reply is asked for with [`Self::reply`].
    pub fn send(&mut self, id: u64, method: &str, params: Value) {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send_raw(format!("{request}\n").as_bytes());
    }

    /// Sends a request under a fresh id, which it returns.
    pub fn start_request(&mut self, method: &str, params: Value) -> u64 {
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
    pub fn result(&mut self, method: &str, params: Value) -> Value {
        let id = self.start_request(method, params);
        self.result_of(id)
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

    fn take(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        let mut next = 0;
        loop {
            while let Some(seen) = self.history.get_mut(next) {
                next += 1;
                if !seen.taken && fits(&seen.value) {
                    seen.taken = true;
                    return seen.value.clone();
                }
            }
            self.receive(what, deadline);
        }
    }

    fn receive(&mut self, what: &str, deadline: Instant) {
        match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Ok(value)) => {
                check_line(&value);
                self.history.push(Seen { value, at: Instant::now(), taken: false });
            }
            Ok(Err(text)) => panic!("execd wrote a line that is no JSON: {text}"),
            Err(RecvTimeoutError::Timeout) => {
                panic!("waited {PATIENCE:?} for {what}{}", self.situation())
            }
            Err(RecvTimeoutError::Disconnected) => {
                panic!("stdout ended before {what}{}", self.situation())
            }
        }
    }

    fn situation(&self) -> String {
        let mut text = String::from("; the last lines were:\n");
        let first = self.history.len().saturating_sub(8);
        for seen in &self.history[first..] {
            let line: String = seen.value.to_string().chars().take(600).collect();
            let _ = writeln!(text, "  {line}");
        }
        let _ = write!(text, "stderr:\n{}", self.stderr());
        text
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
        let result = self.open_with(cmd, more);
        until_logged(&result, text);
        session_of(&result)
    }

    /// Starts a command, waits until it has printed `text`, and takes its output so far.
    pub fn open_ready(&mut self, cmd: &str, text: &str, more: Value) -> u64 {
        let session = self.open_until_with(cmd, text, more);
        self.poll_now(session);
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
        let deadline = Instant::now() + PATIENCE;
        let mut all = String::new();
        loop {
            let result = self.poll_now(session);
            all.push_str(output(&result));
            if all.contains(text) {
                return all;
            }
            assert!(
                result.get("session_id").is_some(),
                "exited without {text:?}: {all:?} {result}"
            );
            assert!(Instant::now() < deadline, "no {text:?} in {PATIENCE:?}: {all:?}");
            thread::sleep(5 * PAUSE);
        }
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
        let deadline = Instant::now() + PATIENCE;
        while self.listed(session).expect("the session is listed")["running"] == true {
            assert!(Instant::now() < deadline, "session {session} does not exit");
            thread::sleep(PAUSE);
        }
    }

    // ---- execd as a process -------------------------------------------------------------

    /// Ends execd's input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for execd's end.
    pub fn wait_exit(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.try_exit() {
                return status;
            }
            assert!(Instant::now() < deadline, "execd does not end{}", self.situation());
            thread::sleep(PAUSE);
        }
    }

    /// Reads stdout to its end; returns all lines that nobody asked for yet.
    pub fn remaining_lines(&mut self) -> Vec<Value> {
        let deadline = Instant::now() + PATIENCE;
        while let Ok(line) =
            self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            let value = line.expect("every line is JSON");
            check_line(&value);
            self.history.push(Seen { value, at: Instant::now(), taken: false });
        }
        assert!(Instant::now() < deadline, "stdout does not end");
        let left = self.history.iter_mut().filter(|seen| !seen.taken);
        left.map(|seen| {
            seen.taken = true;
            seen.value.clone()
        })
        .collect()
    }

    fn try_exit(&mut self) -> Option<ExitStatus> {
        if self.exit.is_none() {
            self.exit = self.child.try_wait().expect("execd is our child");
        }
        self.exit
    }

    /// execd's process id.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid is positive")
    }

    /// Sends a signal to execd itself.
    pub fn signal(&self, signal: i32) {
        send_signal(self.pid(), signal);
    }

    /// Open file descriptors of execd.
    pub fn fd_count(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid())).expect("execd runs").count()
    }

    /// Threads of execd.
    pub fn threads(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/task", self.pid())).expect("execd runs").count()
    }

    /// Memory that execd has in use.
    pub fn rss_kib(&self) -> u64 {
        self.status_kib("VmRSS:")
    }

    /// The most memory that execd ever had in use.
    pub fn peak_rss_kib(&self) -> u64 {
        self.status_kib("VmHWM:")
    }

    fn status_kib(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()));
        let status = status.expect("execd runs");
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the field");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// What execd wrote to stderr until now.
    pub fn stderr(&self) -> String {
        let bytes = self.stderr.lock().expect("no panic while locked");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The directory that execd was started in.
    pub fn workdir(&self) -> PathBuf {
        self.dir.path().join("work").canonicalize().expect("it exists")
    }

    /// A path in the directory that execd was started in.
    pub fn file(&self, name: &str) -> PathBuf {
        self.workdir().join(name)
    }

    /// execd's TMPDIR.
    pub fn tmpdir(&self) -> PathBuf {
        self.dir.path().join("tmp")
    }

    /// execd's XDG_RUNTIME_DIR.
    pub fn runtime_dir(&self) -> PathBuf {
        self.dir.path().join("run")
    }

    /// Where execd's control socket is.
    pub fn socket(&self) -> PathBuf {
        self.runtime_dir().join(format!("execd/{}.sock", self.pid()))
    }

    /// The directory of execd's logs.
    pub fn log_dir(&self) -> PathBuf {
        // SAFETY: getuid only returns a number.
        let uid = unsafe { libc::getuid() };
        self.tmpdir().join(format!("pi-execd-{uid}"))
    }

    /// Log files that exist now.
    pub fn log_files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.log_dir()).into_iter().flatten().flatten();
        let logs = entries.map(|entry| entry.path());
        logs.filter(|path| path.extension() == Some(OsStr::new("log"))).collect()
    }

    // ---- What execd has started ---------------------------------------------------------

    /// Processes of execd's sessions that are alive, detached ones included.
    pub fn session_processes(&self) -> Vec<Process> {
        processes_of(self).into_iter().filter(|process| process.session.is_some()).collect()
    }

    /// Waits until no process of execd's sessions is left.
    pub fn until_no_session_process(&self) {
        eventually("the sessions' processes are gone", || self.session_processes().is_empty());
    }

    /// Says that this test leaves processes behind on purpose; the harness ends them.
    pub fn leaves_processes_behind(&mut self) {
        self.leaves_processes = true;
    }
}

impl Drop for Execd {
    /// Kills execd the hard way and shows that nothing of its sessions outlives it.
    fn drop(&mut self) {
        if self.try_exit().is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if self.leaves_processes {
            end_all(&self.session_processes());
        }
        let deadline = Instant::now() + AT_ONCE;
        let mut left = processes_of(self);
        while !left.is_empty() && Instant::now() < deadline {
            thread::sleep(PAUSE);
            left = processes_of(self);
        }
        end_all(&left);
        if !left.is_empty() && !thread::panicking() {
            panic!("left behind after execd was killed: {left:#?}");
        }
    }
}

fn end_all(processes: &[Process]) {
    for process in processes {
        send_signal(process.pid, libc::SIGKILL);
    }
}

// ---- Facts from outside -----------------------------------------------------------------

/// Every living process that inherited this execd's mark, but execd itself.
pub fn processes_of(execd: &Execd) -> Vec<Process> {
    let mark = format!("{RUN_VARIABLE}={}", execd.run);
    let entries = std::fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| *pid != execd.pid()).filter_map(|pid| process_with(pid, &mark)).collect()
}

fn process_with(pid: i32, mark: &str) -> Option<Process> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    if !variables.any(|variable| variable == mark.as_bytes()) {
        return None;
    }
    let session = environment
        .split(|byte| *byte == 0)
        .find_map(|variable| variable.strip_prefix(b"EXECD_SESSION_ID="))
        .map(|id| String::from_utf8_lossy(id).into_owned());
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let command = String::from_utf8_lossy(&command).replace('\0', " ").trim().to_owned();
    Some(Process { pid, command, session })
}

/// Whether a process exists and is no zombie.
pub fn is_alive(pid: i32) -> bool {
    !matches!(process_state(pid), None | Some('Z' | 'X'))
}

/// The state letter of /proc/PID/stat.
pub fn process_state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Sends a signal to a process.
pub fn send_signal(pid: i32, signal: i32) {
    // SAFETY: kill takes two numbers and touches no memory of ours.
    unsafe { libc::kill(pid, signal) };
}

/// Looks at a fact outside of execd until it holds.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} until {what}");
        thread::sleep(PAUSE);
    }
}

/// Waits until a file exists.
pub fn until_exists(path: &Path) {
    eventually(&format!("{} exists", path.display()), || path.exists());
}

/// Waits until the log of a session holds `text`: it has printed that, and nobody took it.
pub fn until_logged(result: &Value, text: &str) {
    let path = log_path(result);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let log = std::fs::read(&path).unwrap_or_default();
        if contains(&log, text.as_bytes()) {
            return;
        }
        let log = String::from_utf8_lossy(&log);
        assert!(Instant::now() < deadline, "no {text:?} in {}: {log:?}", path.display());
        thread::sleep(PAUSE);
    }
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
    let seconds = i64::try_from(since.as_secs()).expect("a date");
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days since 1970 to a civil date, in eras of 400 years that begin on 1 March.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    let millis = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}.{millis:03}Z", second % 60)
}

/// Shows that a text is ISO 8601 with milliseconds and Z.
pub fn assert_utc_stamp(stamp: &Value) {
    let text = stamp.as_str().unwrap_or_else(|| panic!("{stamp} is no stamp"));
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "0000-00-00T00:00:00.000Z", "{text}");
}

// ---- Rules that hold for every line -----------------------------------------------------

/// What each line of execd's stdout keeps to, whoever asked.
fn check_line(line: &Value) {
    assert_eq!(line["jsonrpc"], "2.0", "{line}");
    if let Some(result) = line.get("result") {
        assert_no_null(result, line);
        if result.get("header").is_some() && result.get("chunk_id").is_some() {
            check_wait_result(result);
        }
    } else if line.get("method").is_some() {
        assert_no_null(&line["params"], line);
    } else {
        let error = &line["error"];
        assert!(error["code"].is_i64() && error["message"].is_string(), "{line}");
    }
}

/// A field that does not apply is left out, never null.
fn assert_no_null(value: &Value, line: &Value) {
    match value {
        Value::Null => panic!("a null in {line}"),
        Value::Array(items) => items.iter().for_each(|item| assert_no_null(item, line)),
        Value::Object(fields) => fields.values().for_each(|item| assert_no_null(item, line)),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What each result of exec_command and write_stdin keeps to.
fn check_wait_result(result: &Value) {
    let running = result.get("session_id").is_some();
    let ends = ["exit_code", "signal"].iter().filter(|field| result.get(**field).is_some()).count();
    assert_eq!(ends, usize::from(!running), "session_id, or one of exit_code, signal: {result}");
    // A command that could not start was never waited for.
    if result["exit_code"] != -1 {
        assert_eq!(running, result["wait_status"] != "completed", "wait_status: {result}");
    }
    let header: Vec<&str> = result["header"]
        .as_str()
        .expect("header is text")
        .lines()
        .filter(|line| !line.starts_with("warning: "))
        .collect();
    assert_eq!(header.join("\n"), expected_header(result), "{result}");
    assert_eq!(result.get("footer").and_then(Value::as_str), expected_footer(result).as_deref());
    if running {
        assert_utc_stamp(&result["tool_time_utc"]);
    }
}

/// The header that unified-exec.md prescribes for these fields.
pub fn expected_header(result: &Value) -> String {
    let running = result.get("session_id").is_some();
    let timed = ["completion_notification", "yield_until"];
    let timed = timed.iter().any(|field| result.get(*field).is_some());
    let mut header = String::from(if running { "[still running]" } else { "[exited]" });
    for field in HEADER_FIELDS {
        let text = match result.get(field) {
            None => continue,
            Some(_) if field == "tool_time_utc" && !timed => continue,
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(seconds)) if field == "wall_time_seconds" => {
                format!("{:.3}", seconds.as_f64().expect("a finite number"))
            }
            Some(value) => value.to_string(),
        };
        let name = if field == "failure_message" { "failure" } else { field };
        let _ = write!(header, "\n{name}: {text}");
    }
    header
}

/// The fields of the header in their order.
const HEADER_FIELDS: [&str; 15] = [
    "session_id",
    "exit_code",
    "signal",
    "failure_message",
    "note",
    "log_path",
    "cwd",
    "wall_time_seconds",
    "chunk_id",
    "original_token_count",
    "output_bytes_total",
    "omitted_bytes",
    "completion_notification",
    "tool_time_utc",
    "tty",
];

/// The footer that unified-exec.md prescribes for these fields.
pub fn expected_footer(result: &Value) -> Option<String> {
    let truncation = result.get("truncation")?;
    let number = |field: &str| truncation[field].as_u64().expect("a number");
    let total = number("totalLines");
    // A log that has nothing of the output, or nothing yet where the disk is slow, is not named.
    let missing = || {
        let word = result.get("failure_message").is_some() || result["log_complete"] == false;
        assert!(word, "no log and no word: {result}");
    };
    let log = result["log_path"].as_str().map(|path| format!(". Full output: {path}"));
    let log = log.unwrap_or_else(|| {
        missing();
        String::new()
    });
    if truncation["lastLinePartial"] == true {
        return Some(format!(
            "[Showing last 50.0KB of final line (line {total} is larger than the 50.0KB limit){log}]"
        ));
    }
    let limit = if truncation["truncatedBy"] == "bytes" { " (50.0KB limit)" } else { "" };
    let first = total - number("outputLines") + 1;
    Some(format!("[Showing lines {first}-{total} of {total}{limit}{log}]"))
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
