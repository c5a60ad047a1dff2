//! A running execd and a client that adds as little as it can: one write, one read, the clock
//! is stopped before anything is parsed.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Bound of every wait: a bench never hangs.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// Bytes read at a time from execd.
const READ_BYTES: usize = 64 * 1024;
/// Free memory that the floods' files need there.
const SCRATCH_BYTES: u64 = 6 << 30;
/// What a session does that only has to be there.
pub const SLEEPER: &str = "exec sleep 100000";

/// A running execd; dropping it ends it and removes its directory.
pub struct Execd {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// What was read and is no whole line yet.
    rest: Vec<u8>,
    /// Replies that came while another one was awaited.
    early: Vec<(Vec<u8>, Instant)>,
    next_id: u64,
    /// Just before its exec.
    pub launched: Instant,
    /// Its logs and files.
    pub dir: TempDir,
}

/// Where floods go: memory where there is some, so that no disk's mood is measured.
pub fn scratch() -> TempDir {
    let memory = PathBuf::from("/dev/shm");
    let base = if free_bytes(&memory) >= SCRATCH_BYTES { memory } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("execd-bench-").tempdir_in(base).unwrap()
}

fn free_bytes(dir: &std::path::Path) -> u64 {
    let path = std::ffi::CString::new(dir.as_os_str().as_encoded_bytes()).unwrap();
    // SAFETY: all zero is a valid statvfs; a live path and a live struct.
    let (done, found) = unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &raw mut found), found)
    };
    if done == 0 { found.f_bavail * found.f_frsize } else { 0 }
}

/// Waits until `fd` is readable; panics after [`PATIENCE`].
pub fn until_readable(fd: RawFd) {
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let timeout = i32::try_from(PATIENCE.as_millis()).unwrap();
    // SAFETY: one live pollfd.
    let ready = unsafe { libc::poll(&raw mut poll, 1, timeout) };
    assert!(ready > 0, "nothing came in {PATIENCE:?}");
}

/// How every reply begins.
const REPLY_START: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":";

/// Whether a line is the reply to this request.
pub fn answers(line: &[u8], id: u64) -> bool {
    let rest = line.strip_prefix(REPLY_START);
    let rest = rest.and_then(|rest| rest.strip_prefix(id.to_string().as_bytes()));
    rest.is_some_and(|rest| rest.starts_with(b","))
}

/// The execd that is measured: that of this build, or another one to compare with.
pub fn program() -> OsString {
    std::env::var_os("EXECD_BENCH_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_execd").into())
}

impl Execd {
    /// Starts it with these flags; it has answered a ping when this returns.
    pub fn start(flags: &[&str]) -> Self {
        let mut execd = Self::launch(flags);
        execd.call("ping", &json!({}));
        execd
    }

    /// Starts it and waits for nothing.
    pub fn launch(flags: &[&str]) -> Self {
        let dir = scratch();
        let logs = dir.path().join("logs");
        Self::launch_at(flags, dir, &logs)
    }

    /// The same with this log directory.
    pub fn launch_beside(logs: &Path) -> Self {
        Self::launch_at(&[], scratch(), logs)
    }

    fn launch_at(flags: &[&str], dir: TempDir, logs: &Path) -> Self {
        let launched = Instant::now();
        let mut child = Command::new(program())
            .args(flags)
            .arg("--log-dir")
            .arg(logs)
            .arg("--socket")
            .arg(dir.path().join("socket"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        Self {
            child,
            stdin,
            stdout,
            rest: Vec::new(),
            early: Vec::new(),
            next_id: 1,
            launched,
            dir,
        }
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Its keeper's.
    pub fn keeper_pid(&mut self) -> i32 {
        let info = self.call("server_info", &json!({})).1;
        i32::try_from(info["keeper_pid"].as_i64().unwrap()).unwrap()
    }

    /// Sends a request; gives its id and when the write began.
    pub fn send(&mut self, method: &str, params: &Value) -> (u64, Instant) {
        let id = self.next_id;
        self.next_id += 1;
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let line = format!("{line}\n");
        let begun = Instant::now();
        self.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
        (id, begun)
    }

    /// One line, and when it was there as a whole.
    pub fn line(&mut self) -> (Vec<u8>, Instant) {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.rest) {
                let now = Instant::now();
                let line = self.rest.drain(..=end).collect();
                return (line, now);
            }
            until_readable(self.stdout.as_raw_fd());
            let mut buffer = [0; READ_BYTES];
            let count = self.stdout.read(&mut buffer).unwrap();
            assert!(count > 0, "execd ended");
            self.rest.extend_from_slice(&buffer[..count]);
        }
    }

    /// Reads some of what it sends, and looks at none of it: a slow reader.
    pub fn skip_some(&mut self) {
        let mut buffer = [0; 4 * 1024];
        until_readable(self.stdout.as_raw_fd());
        assert!(self.stdout.read(&mut buffer).unwrap() > 0, "execd ended");
    }

    /// Gives out the lines that come while `time` passes.
    pub fn lines_for(&mut self, time: Duration, mut take: impl FnMut(&[u8])) {
        let until = Instant::now() + time;
        loop {
            while memchr::memchr(b'\n', &self.rest).is_some() {
                take(&self.line().0);
            }
            let left = until.saturating_duration_since(Instant::now());
            let fd = self.stdout.as_raw_fd();
            let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            // SAFETY: one live pollfd.
            let ready = unsafe {
                libc::poll(&raw mut poll, 1, i32::try_from(left.as_millis()).unwrap_or(0))
            };
            if ready <= 0 {
                return;
            }
            let mut buffer = [0; READ_BYTES];
            let count = self.stdout.read(&mut buffer).unwrap();
            assert!(count > 0, "execd ended");
            self.rest.extend_from_slice(&buffer[..count]);
            if left.is_zero() {
                return;
            }
        }
    }

    /// The reply to request `id`: when it was there, and its result. An error is the bench's end.
    pub fn reply(&mut self, id: u64) -> (Instant, Value) {
        let early = self.early.iter().position(|(line, _)| answers(line, id));
        let (line, at) = early.map(|at| self.early.swap_remove(at)).unwrap_or_else(|| {
            loop {
                let line = self.line();
                if answers(&line.0, id) {
                    return line;
                }
                // A reply to somebody else is kept, a notification is not wanted.
                if line.0.starts_with(REPLY_START) {
                    self.early.push(line);
                }
            }
        });
        let mut value: Value = serde_json::from_slice(&line).unwrap();
        assert!(value.get("error").is_none(), "an error: {value}");
        (at, value["result"].take())
    }

    /// A request and its reply: the time between, and the result.
    pub fn call(&mut self, method: &str, params: &Value) -> (Duration, Value) {
        let (id, begun) = self.send(method, params);
        let (at, result) = self.reply(id);
        (at - begun, result)
    }

    /// exec_command of a short command: the time, after a look at its exit code.
    pub fn short(&mut self, cmd: &str) -> Duration {
        let (time, result) = self.call("exec_command", &json!({"cmd": cmd}));
        assert_eq!(result["exit_code"], 0, "{result}");
        time
    }

    /// Opens a session that goes on; gives its id.
    pub fn open(&mut self, cmd: &str, tty: bool) -> u64 {
        self.open_many(&[cmd], tty)[0]
    }

    /// Opens sessions side by side.
    pub fn open_many(&mut self, cmds: &[&str], tty: bool) -> Vec<u64> {
        let params = |cmd: &&str| json!({"cmd": cmd, "tty": tty, "yield_time_ms": 250});
        let sent: Vec<u64> =
            cmds.iter().map(|cmd| self.send("exec_command", &params(cmd)).0).collect();
        let session = |id| self.reply(id).1["session_id"].as_u64().expect("it goes on");
        sent.into_iter().map(session).collect()
    }

    /// Resident memory in KiB.
    pub fn rss_kib(&self) -> u64 {
        self.status_kib("VmRSS:")
    }

    /// Memory of execd alone in KiB: no pages of files, which all that map them share.
    pub fn own_memory_kib(&self) -> u64 {
        self.status_kib("RssAnon:")
    }

    fn status_kib(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Execd {
    fn drop(&mut self) {
        // The end of its stdin would wait for waits that are going on.
        // SAFETY: our own child, not reaped yet.
        unsafe { libc::kill(self.pid(), libc::SIGTERM) };
        drop(self.stdin.take());
        let deadline = Instant::now() + PATIENCE;
        let mut buffer = [0; READ_BYTES];
        while self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            if Instant::now() > deadline {
                let _ = self.child.kill();
            }
            match self.stdout.read(&mut buffer) {
                Ok(1..) => {}
                _ => drop(self.child.wait()),
            }
        }
    }
}
