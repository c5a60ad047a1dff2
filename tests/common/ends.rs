//! execd on any kind of stdin and stdout, and its lines as they were written: for tests of the
//! transport and of the exact bytes. Included by path, beside the harness of `common`.
#![allow(dead_code)]

use std::io::{BufRead, BufReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long any wait may take before the test fails: a test machine can be slow.
pub const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(2);
const MARK: &str = "EXECD_TEST_RUN";

/// An execd process, whatever its descriptors are.
pub struct Host {
    child: Child,
    mark: String,
    dir: TempDir,
    exit: Option<ExitStatus>,
    /// Processes that are left alone on purpose are ended without a word.
    pub leaves_processes: bool,
}

/// Waits until a process has nothing to do: it sleeps and uses no processor time for a while.
/// A machine that is slow can only make this wait longer or end early, so what is asserted
/// afterwards must be something that never holds wrongly.
pub fn until_idle(pid: i32, mut also: impl FnMut() -> u64) {
    let deadline = Instant::now() + PATIENCE;
    let mut last = (String::new(), 0);
    let mut same = 0;
    while same < 40 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        let stat = stat.expect("execd runs");
        let fields: Vec<&str> = stat.rsplit(") ").next().expect("a state").split(' ').collect();
        let now = (format!("{} {} {}", fields[0], fields[11], fields[12]), also());
        same = if now == last && fields[0] == "S" { same + 1 } else { 0 };
        last = now;
        assert!(Instant::now() < deadline, "execd does not become idle");
        thread::sleep(5 * PAUSE);
    }
}

/// A command that runs execd in a directory of its own.
pub struct Setup {
    command: Command,
    mark: String,
    dir: TempDir,
}

impl Setup {
    pub fn new(args: &[&str]) -> Self {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let dir = tempfile::Builder::new().prefix("execd-test-").tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("tmp")).expect("TMPDIR");
        std::fs::create_dir(dir.path().join("run")).expect("XDG_RUNTIME_DIR");
        std::fs::create_dir(dir.path().join("work")).expect("a working directory");
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.subsec_nanos());
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let mark = format!("ends-{}-{nanos}-{run}", std::process::id());
        let mut command = Command::new(env!("CARGO_BIN_EXE_execd"));
        command
            .args(args)
            .current_dir(dir.path().join("work"))
            .env("TMPDIR", dir.path().join("tmp"))
            .env("XDG_RUNTIME_DIR", dir.path().join("run"))
            .env(MARK, &mark)
            .env("LC_ALL", "C.UTF-8")
            .env_remove("EXECD_SESSION_ID")
            .env_remove("EXECD_INSTANCE")
            .env_remove("EXECD_LOG")
            .stderr(Stdio::null());
        Self { command, mark, dir }
    }

    /// The working directory.
    pub fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// The command, to be changed.
    pub fn command(&mut self) -> &mut Command {
        &mut self.command
    }

    /// Starts execd on these descriptors. The copies that the command holds are closed.
    pub fn start(mut self, stdin: impl Into<Stdio>, stdout: impl Into<Stdio>) -> Host {
        let child = self.command.stdin(stdin).stdout(stdout).spawn().expect("execd starts");
        Host { child, mark: self.mark, dir: self.dir, exit: None, leaves_processes: false }
    }
}

impl Host {
    /// execd's process id.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid is positive")
    }

    /// The handle that std keeps.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// The directory that execd was started in.
    pub fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// A path in the directory that execd was started in.
    pub fn file(&self, name: &str) -> PathBuf {
        self.work().join(name)
    }

    /// Sends a signal to execd.
    pub fn signal(&self, signal: i32) {
        // SAFETY: kill takes two numbers and touches no memory of ours.
        unsafe { libc::kill(self.pid(), signal) };
    }

    /// execd's exit status, once it has one.
    pub fn try_exit(&mut self) -> Option<ExitStatus> {
        if self.exit.is_none() {
            self.exit = self.child.try_wait().expect("execd is our child");
        }
        self.exit
    }

    /// Waits for execd's end; gives its exit code.
    pub fn wait_exit(&mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.try_exit() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "execd does not end");
            thread::sleep(PAUSE);
        }
    }

    /// Pids of the living processes (no zombies) that have this execd's mark, but for execd.
    pub fn marked(&self) -> Vec<i32> {
        self.marked_with("")
    }

    /// Pids of the living processes of execd's sessions.
    pub fn session_pids(&self) -> Vec<i32> {
        self.marked_with("EXECD_SESSION_ID=")
    }

    fn marked_with(&self, variable: &str) -> Vec<i32> {
        let mark = format!("{MARK}={}", self.mark);
        let entries = std::fs::read_dir("/proc").expect("/proc is mounted").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let carries = |pid: &i32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let has = |start: &[u8]| environment.split(|b| *b == 0).any(|v| v.starts_with(start));
            has(mark.as_bytes()) && has(variable.as_bytes())
        };
        pids.filter(|pid| *pid != self.pid()).filter(carries).collect()
    }

    /// Waits until no process of execd's sessions is left.
    pub fn until_no_session_process(&self) {
        eventually("the sessions' processes are gone", || self.session_pids().is_empty());
    }

    /// A number of /proc/PID/status.
    pub fn status_kib(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()));
        let status = status.expect("execd runs");
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the field");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// Waits until execd has nothing to do: see [`until_idle`].
    pub fn until_idle(&self, also: impl FnMut() -> u64) {
        until_idle(self.pid(), also);
    }
}

impl Drop for Host {
    /// Kills execd and shows that nothing of its sessions outlives it.
    fn drop(&mut self) {
        if self.try_exit().is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if self.leaves_processes {
            self.session_pids().into_iter().for_each(kill);
        }
        let deadline = Instant::now() + PATIENCE;
        let mut left = self.marked();
        while !left.is_empty() && Instant::now() < deadline && !thread::panicking() {
            thread::sleep(PAUSE);
            left = self.marked();
        }
        left.iter().copied().for_each(kill);
        assert!(left.is_empty() || thread::panicking(), "left behind by execd: {left:?}");
    }
}

fn kill(pid: i32) {
    // SAFETY: kill takes two numbers and touches no memory of ours.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// Looks at a fact outside of execd until it holds.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} until {what}");
        thread::sleep(PAUSE);
    }
}

/// Waits until a file holds this text.
pub fn until_file_has(path: &Path, text: &str) {
    eventually(&format!("{} has {text:?}", path.display()), || {
        std::fs::read_to_string(path).is_ok_and(|all| all.contains(text))
    });
}

/// Lines that a thread reads from somewhere, as text without their newline.
pub struct Incoming {
    lines: Receiver<String>,
    /// Every line that was taken.
    pub seen: Vec<String>,
}

impl Incoming {
    pub fn from(source: impl Read + Send + 'static) -> Self {
        let (send, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(source).split(b'\n') {
                // A terminal's end is EIO.
                let Ok(line) = line else { return };
                let line = String::from_utf8(line).expect("execd writes UTF-8");
                if send.send(line.trim_end_matches('\r').to_owned()).is_err() {
                    return;
                }
            }
        });
        Self { lines, seen: Vec::new() }
    }

    /// The next line.
    pub fn line(&mut self) -> String {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                self.seen.push(line.clone());
                line
            }
            Err(RecvTimeoutError::Timeout) => {
                panic!("no line in {PATIENCE:?} after {:#?}", self.last_seen())
            }
            Err(RecvTimeoutError::Disconnected) => {
                panic!("the lines ended after {:#?}", self.last_seen())
            }
        }
    }

    fn last_seen(&self) -> Vec<String> {
        let last = self.seen.iter().rev().take(4).rev();
        last.map(|line| line.chars().take(400).collect()).collect()
    }

    /// The next line that is no notification.
    pub fn reply_line(&mut self) -> String {
        loop {
            let line = self.line();
            if !is_notification(&line) {
                return line;
            }
        }
    }

    /// The next reply as a value.
    pub fn reply(&mut self) -> Value {
        value(&self.reply_line())
    }

    /// All lines until the end.
    pub fn rest(&mut self) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        let mut rest = Vec::new();
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => rest.push(line),
                Err(RecvTimeoutError::Disconnected) => return rest,
                Err(RecvTimeoutError::Timeout) => panic!("the lines do not end in {PATIENCE:?}"),
            }
        }
    }
}

/// Whether a line of execd is a notification.
pub fn is_notification(line: &str) -> bool {
    line.starts_with(r#"{"jsonrpc":"2.0","method":"#)
}

/// A line as JSON.
pub fn value(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|fault| panic!("{fault}: {line}"))
}

/// execd on two pipes, line by line.
pub struct Lines {
    pub host: Host,
    pub input: Option<PipeWriter>,
    pub incoming: Incoming,
    barriers: u64,
}

impl Lines {
    pub fn start(args: &[&str]) -> Self {
        let (child_in, input) = std::io::pipe().expect("a pipe");
        let (output, child_out) = std::io::pipe().expect("a pipe");
        let host = Setup::new(args).start(child_in, child_out);
        Self { host, input: Some(input), incoming: Incoming::from(output), barriers: 0 }
    }

    /// Writes bytes as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("stdin is still open");
        input.write_all(bytes).expect("execd reads its stdin");
    }

    /// Writes a line.
    pub fn send(&mut self, line: &str) {
        self.send_raw(format!("{line}\n").as_bytes());
    }

    /// Writes a request.
    pub fn request(&mut self, id: &str, method: &str, params: Value) {
        self.send(&json!({"id": id, "method": method, "params": params}).to_string());
    }

    /// A request and its reply, which must be the next.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        self.barriers += 1;
        let id = format!("ask {}", self.barriers);
        self.request(&id, method, params);
        let reply = self.incoming.reply();
        assert_eq!(reply["id"], id, "nothing else is answered: {reply}");
        reply
    }

    /// Shows that no reply is on its way: the next one is the answer to this ping.
    pub fn nothing_but_a_ping(&mut self) {
        let reply = self.ask("ping", json!({}));
        assert_eq!(reply["result"], json!({}));
    }

    /// Ends execd's input.
    pub fn close(&mut self) {
        self.input = None;
    }

    /// Starts a command that goes on; gives its session's id. Waits until the command has made
    /// the file `ready` in execd's directory, when one is named.
    pub fn open(&mut self, cmd: &str, ready: Option<&str>) -> u64 {
        let reply = self.ask("exec_command", json!({"cmd": cmd, "yield_time_ms": 250}));
        let session = reply["result"]["session_id"].as_u64();
        let session = session.unwrap_or_else(|| panic!("{cmd} should run: {reply}"));
        if let Some(name) = ready {
            let path = self.host.file(name);
            eventually("the command is ready", || path.exists());
        }
        session
    }
}

/// A pseudo-terminal: its master and its slave.
pub fn open_pty() -> (std::fs::File, std::fs::File) {
    use std::os::fd::FromRawFd;
    let (mut master, mut slave) = (0, 0);
    let null = std::ptr::null_mut();
    // SAFETY: openpty writes the two descriptors, which nobody else owns.
    unsafe {
        let made = libc::openpty(&raw mut master, &raw mut slave, null, null.cast(), null.cast());
        assert_eq!(made, 0, "openpty: {}", std::io::Error::last_os_error());
        for fd in [master, slave] {
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
        }
        (std::fs::File::from_raw_fd(master), std::fs::File::from_raw_fd(slave))
    }
}

/// Waits until a descriptor has something to read, or its other end is gone.
pub fn until_readable(descriptor: &impl AsRawFd) {
    let mut entry = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let patience_ms = i32::try_from(PATIENCE.as_millis()).expect("it fits");
    // SAFETY: one live pollfd, and the count says so.
    let ready = unsafe { libc::poll(&raw mut entry, 1, patience_ms) };
    assert_eq!(ready, 1, "nothing came");
}

/// Turns off echo and line editing of a terminal.
pub fn make_raw(terminal: &impl AsRawFd) {
    // SAFETY: a termios of our own is filled, changed and set.
    unsafe {
        let mut modes: libc::termios = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(terminal.as_raw_fd(), &raw mut modes), 0);
        libc::cfmakeraw(&raw mut modes);
        assert_eq!(libc::tcsetattr(terminal.as_raw_fd(), libc::TCSANOW, &raw const modes), 0);
    }
}

/// Whether O_NONBLOCK is set on the description behind a descriptor of ours.
pub fn is_nonblocking(descriptor: &impl AsRawFd) -> bool {
    // SAFETY: fcntl with integer arguments.
    let flags = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_GETFL) };
    assert!(flags >= 0, "F_GETFL: {}", std::io::Error::last_os_error());
    flags & libc::O_NONBLOCK != 0
}
