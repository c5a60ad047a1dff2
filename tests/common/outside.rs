//! execd seen from outside: facts from /proc about any process, execd started in unusual ways
//! (under strace, with signals ignored, with limits lowered), and strace attached to it.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long any wait may take before the test fails.
pub const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(2);
const RUN_VARIABLE: &str = "EXECD_TEST_RUN";

/// Looks at a fact until it holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} until {what}");
        thread::sleep(PAUSE);
    }
}

/// Says why a test is left out.
#[allow(clippy::print_stderr)] // A test that is left out silently would look like one that ran.
pub fn left_out(why: &str) {
    eprintln!("left out: {why}");
}

/// Whether we are root: mounting and foreign owners need it.
pub fn is_root() -> bool {
    // SAFETY: geteuid only returns a number.
    unsafe { libc::geteuid() == 0 }
}

/// Whether strace can be used here; says so where it cannot.
pub fn can_trace() -> bool {
    static CAN: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *CAN.get_or_init(|| {
        let traced = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
        let can = traced.is_ok_and(|done| done.status.success());
        if !can {
            left_out("strace is missing, or may not trace here (ptrace is forbidden)");
        }
        can
    })
}

/// Runs what follows with process ids of its own, which can be told where to go on.
pub const OWN_PIDS: [&str; 6] =
    ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "--map-root-user"];

/// Whether such a namespace can be had here; says so where it cannot.
pub fn may_choose_pids() -> bool {
    let try_it = "echo 100 > /proc/sys/kernel/ns_last_pid";
    let tried = Command::new(OWN_PIDS[0]).args(&OWN_PIDS[1..]).args(["sh", "-c", try_it]).output();
    let may = tried.is_ok_and(|done| done.status.success());
    if !may {
        left_out("a pid namespace with chosen pids cannot be had here");
    }
    may
}

// ---- Facts from /proc -------------------------------------------------------------------

/// A field of /proc/PID/status.
pub fn status_field(pid: i32, name: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

/// A signal set of /proc/PID/status: SigBlk, SigIgn, SigCgt.
pub fn signal_set(pid: i32, name: &str) -> Vec<u32> {
    let text = status_field(pid, name).unwrap_or_else(|| panic!("no {name} of {pid}"));
    let bits = u64::from_str_radix(&text, 16).expect("a hexadecimal set");
    (1..=64).filter(|signal| bits >> (signal - 1) & 1 == 1).collect()
}

/// A number of /proc/PID/status.
pub fn status_number(pid: i32, name: &str) -> u64 {
    let text = status_field(pid, name).unwrap_or_else(|| panic!("no {name} of {pid}"));
    text.trim_end_matches(" kB").parse().expect("a number")
}

/// The fields of /proc/PID/stat after the name: state, ppid, pgrp, session, tty_nr, tpgid, …
pub fn stat_fields(pid: i32) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}

/// What a process is to sessions, groups and terminals.
#[derive(Debug, PartialEq, Eq)]
pub struct Place {
    pub ppid: i32,
    pub pgid: i32,
    pub sid: i32,
    pub tty: i32,
    /// The foreground group of its terminal.
    pub foreground: i32,
}

/// See [`Place`].
pub fn place(pid: i32) -> Place {
    let fields = stat_fields(pid).unwrap_or_else(|| panic!("{pid} is gone"));
    let number = |at: usize| fields[at].parse().expect("a number");
    Place {
        ppid: number(1),
        pgid: number(2),
        sid: number(3),
        tty: number(4),
        foreground: number(5),
    }
}

/// The short name of a process.
pub fn comm(pid: i32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

/// Waits until a process has become the program of this name.
pub fn until_runs(pid: i32, name: &str) {
    until(&format!("{pid} runs {name}"), || comm(pid) == name);
}

/// Whether a process exists and is no zombie.
pub fn alive(pid: i32) -> bool {
    stat_fields(pid).is_some_and(|fields| fields[0] != "Z" && fields[0] != "X")
}

/// All pids.
pub fn pids() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").expect("/proc is mounted").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The children of a process with their state's letter.
pub fn children(pid: i32) -> Vec<(i32, char)> {
    let parent = pid.to_string();
    let child = |pid: i32| {
        let fields = stat_fields(pid)?;
        (fields[1] == parent).then(|| (pid, fields[0].chars().next().unwrap_or('?')))
    };
    pids().into_iter().filter_map(child).collect()
}

/// The living guard (`execd-guard`) or log writer (`execd-keeper`) of an execd, whoever's child it
/// is by now.
pub fn helper_of(execd: i32, name: &str) -> Option<i32> {
    let flags = format!("--execd-pid\0{execd}\0");
    let is_it = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        comm(*pid) == name && String::from_utf8_lossy(&line).contains(&flags) && alive(*pid)
    };
    pids().into_iter().find(is_it)
}

/// The zombies that a process has not reaped.
pub fn zombies(pid: i32) -> Vec<i32> {
    children(pid).into_iter().filter(|(_, state)| *state == 'Z').map(|(pid, _)| pid).collect()
}

/// Living processes of a kernel session.
pub fn members(sid: i32) -> Vec<i32> {
    let sid = sid.to_string();
    let member = |pid: &i32| stat_fields(*pid).is_some_and(|f| f[3] == sid && f[0] != "Z");
    pids().into_iter().filter(member).collect()
}

/// The open descriptors of a process and what they lead to.
pub fn fds(pid: i32) -> BTreeMap<i32, String> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs").flatten();
    let one = |entry: std::fs::DirEntry| {
        let target = std::fs::read_link(entry.path()).ok()?;
        Some((entry.file_name().to_str()?.parse().ok()?, target.to_string_lossy().into_owned()))
    };
    entries.filter_map(one).collect()
}

/// Whether a descriptor is closed by exec.
pub fn is_cloexec(pid: i32, fd: i32) -> bool {
    let info = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).expect("it is open");
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).expect("flags");
    u32::from_str_radix(flags.trim(), 8).expect("octal") & 0o2_000_000 != 0
}

/// The descriptors that sessions can leak: without those that are made once, at their first
/// use (the wall clock's timer, the list of children).
pub fn countable_fds(pid: i32) -> usize {
    let once = |target: &String| target.ends_with("timerfd]") || target.ends_with("/children");
    fds(pid).values().filter(|target| !once(target)).count()
}

/// The soft limit of open files of a process.
pub fn file_limit(pid: i32) -> u64 {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("it runs");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("its line");
    line.split_whitespace().nth(3).and_then(|text| text.parse().ok()).expect("a number")
}

/// The environment that a process was started with.
pub fn environment(pid: i32) -> BTreeMap<String, String> {
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).expect("it runs");
    let text = String::from_utf8_lossy(&bytes);
    let pair = |entry: &str| entry.split_once('=').map(|(n, v)| (n.to_owned(), v.to_owned()));
    text.split('\0').filter_map(pair).collect()
}

/// How busy a process has been: its reads and writes, and how often it went to sleep. Equal
/// twice: nothing was read or written, and it slept all the time between.
pub fn activity(pid: i32) -> (u64, u64, u64) {
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).expect("we may look");
    let number = |name: &str| -> u64 {
        let line = io.lines().find_map(|line| line.strip_prefix(name)).expect("the field");
        line.trim().parse().expect("a number")
    };
    let slept = status_number(pid, "voluntary_ctxt_switches");
    (number("syscr:"), number("syscw:"), slept)
}

/// Sends a signal.
pub fn send(pid: i32, signal: i32) {
    // SAFETY: kill takes two numbers and touches no memory of ours.
    unsafe { libc::kill(pid, signal) };
}

/// Stops a process and waits until it stands.
pub fn stop(pid: i32) {
    send(pid, libc::SIGSTOP);
    until("it is stopped", || stat_fields(pid).is_some_and(|f| f[0] == "T" || f[0] == "t"));
}

/// Lets a stopped process go on.
pub fn go_on(pid: i32) {
    send(pid, libc::SIGCONT);
}

// ---- execd started in unusual ways ------------------------------------------------------

/// An execd that was started with a wrapper around it or with changes made before its exec.
/// Simpler than the usual harness: lines are not checked but handed out.
pub struct Raw {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    seen: Vec<Value>,
    stderr: Arc<Mutex<Vec<u8>>>,
    stderr_reader: Option<thread::JoinHandle<()>>,
    next_id: u64,
    run: String,
    pub dir: TempDir,
}

impl Raw {
    /// `wrapper` comes before execd's path; `prepare` runs between fork and exec.
    pub fn start(
        wrapper: &[&str],
        args: &[&str],
        envs: &[(&str, &str)],
        prepare: impl FnMut() + Send + Sync + 'static,
    ) -> Self {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let dir = tempfile::Builder::new().prefix("execd-raw-").tempdir().expect("a directory");
        let run = format!("raw-{}-{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
        let mut prepare = prepare;
        let execd = env!("CARGO_BIN_EXE_execd");
        let mut words = wrapper.iter().copied().chain([execd]);
        let mut command = Command::new(words.next().expect("a program"));
        command
            .args(words)
            .args(args)
            .current_dir(dir.path())
            .env("TMPDIR", dir.path())
            .env("XDG_RUNTIME_DIR", dir.path())
            .env(RUN_VARIABLE, &run)
            .env("LC_ALL", "C.UTF-8")
            .env_remove("TERM")
            .env_remove("EXECD_SESSION_ID")
            .env_remove("EXECD_INSTANCE")
            .envs(envs.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // SAFETY: the closures of these tests make async-signal-safe calls only.
        unsafe {
            command.pre_exec(move || {
                prepare();
                Ok(())
            });
        }
        let mut child = command.spawn().expect("it starts");
        let (send, lines) = channel();
        let stdout = child.stdout.take().expect("stdout is a pipe");
        thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                let line = serde_json::from_slice(&line).unwrap_or_else(
                    |error| json!({"broken": String::from_utf8_lossy(&line), "error": error.to_string()}),
                );
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let collected = Arc::clone(&stderr);
        let mut source = child.stderr.take().expect("stderr is a pipe");
        let stderr_reader = thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = source.read(&mut buffer) {
                collected.lock().expect("no panic while locked").extend(&buffer[..count]);
            }
        });
        let stdin = child.stdin.take();
        let (seen, next_id) = (Vec::new(), 0);
        let stderr_reader = Some(stderr_reader);
        Self { child, stdin, lines, seen, stderr, stderr_reader, next_id, run, dir }
    }

    /// execd's pid (strace is used with -D, and other wrappers exec).
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid is positive")
    }

    /// Sends a request; an execd that does not read is no failure here.
    pub fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next_id += 1;
        let request = json!({"id": self.next_id, "method": method, "params": params});
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(format!("{request}\n").as_bytes()).and_then(|()| stdin.flush());
        }
        self.next_id
    }

    /// The reply to a request; None when stdout has ended before.
    pub fn reply(&mut self, id: u64) -> Option<Value> {
        let deadline = Instant::now() + PATIENCE;
        let fits = |line: &Value| line.get("method").is_none() && line["id"] == id;
        loop {
            if let Some(found) = self.seen.iter().find(|line| fits(line)) {
                return Some(found.clone());
            }
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => panic!(
                    "waited {PATIENCE:?} for the reply to {id}; the last line: {:?}; stderr: {}",
                    self.seen.last(),
                    self.stderr()
                ),
            }
        }
    }

    /// One request and its result.
    pub fn result(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        let reply = self.reply(id).unwrap_or_else(|| panic!("execd ended: {}", self.stderr()));
        assert!(reply.get("result").is_some(), "{method} {params}: {reply}");
        reply["result"].clone()
    }

    /// Starts a command that goes on, without waiting for a yield time to be over.
    pub fn open(&mut self, params: &Value) -> Value {
        let id = self.send("exec_command", params);
        self.result("cancel", &json!({"id": id}));
        let reply = self.reply(id).expect("execd lives");
        assert!(reply["result"].get("session_id").is_some(), "{params} should run: {reply}");
        reply["result"].clone()
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// What execd wrote to stderr so far.
    pub fn stderr(&self) -> String {
        let bytes = self.stderr.lock().expect("no panic while locked");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Everything that execd wrote to stdout, when it has ended.
    pub fn all_lines(&mut self) -> &[Value] {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Disconnected) => return &self.seen,
                Err(RecvTimeoutError::Timeout) => panic!("stdout does not end: {}", self.stderr()),
            }
        }
    }

    /// Waits for execd's end.
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("our child") {
                return status;
            }
            assert!(Instant::now() < deadline, "execd does not end: {}", self.stderr());
            thread::sleep(PAUSE);
        }
    }

    /// All of stderr, when execd has ended and nobody else holds it.
    pub fn whole_stderr(&mut self) -> String {
        if let Some(reader) = self.stderr_reader.take() {
            reader.join().expect("it only reads");
        }
        self.stderr()
    }

    /// Living processes that carry this execd's mark (its keeper has none).
    pub fn marked(&self) -> Vec<i32> {
        marked(&format!("{RUN_VARIABLE}={}", self.run), self.pid())
    }

    /// execd's logs.
    pub fn log_dir(&self) -> PathBuf {
        // SAFETY: getuid only returns a number.
        self.dir.path().join(format!("pi-execd-{}", unsafe { libc::getuid() }))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for pid in self.marked() {
            send(pid, libc::SIGKILL);
        }
    }
}

/// Living processes with this entry in their environment, but one.
pub fn marked(mark: &str, but: i32) -> Vec<i32> {
    let has = |pid: &i32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
    };
    pids().into_iter().filter(|pid| *pid != but && alive(*pid)).filter(has).collect()
}

// ---- strace -----------------------------------------------------------------------------

/// An strace that is attached to a running process.
pub struct Trace {
    child: Child,
    out: PathBuf,
    _dir: TempDir,
}

impl Trace {
    /// Attaches to `pid` with these arguments; returns when the process is traced.
    pub fn attach(pid: i32, args: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let out = dir.path().join("trace");
        let mut child = Command::new("strace")
            .args(args)
            .arg("-o")
            .arg(&out)
            .args(["-p", &pid.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("strace starts");
        let tracer = child.id().to_string();
        until("strace is attached", || {
            let ended = child.try_wait().expect("our child");
            assert!(ended.is_none(), "strace ended at once: {ended:?}");
            status_field(pid, "TracerPid").is_some_and(|found| found == tracer)
        });
        Self { child, out, _dir: dir }
    }

    /// What has been written so far.
    pub fn so_far(&self) -> String {
        std::fs::read_to_string(&self.out).unwrap_or_default()
    }

    /// Detaches and returns all that was written.
    pub fn detach(mut self) -> String {
        self.end();
        self.so_far()
    }

    fn end(&mut self) {
        send(i32::try_from(self.child.id()).expect("a pid"), libc::SIGINT);
        let deadline = Instant::now() + PATIENCE;
        while self.child.try_wait().expect("our child").is_none() {
            assert!(Instant::now() < deadline, "strace does not detach");
            thread::sleep(PAUSE);
        }
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            // strace detaches when it is asked to end; killed, it would take its tracee along.
            send(i32::try_from(self.child.id()).unwrap_or(0), libc::SIGTERM);
            let _ = self.child.wait();
        }
    }
}

// ---- A small file system ----------------------------------------------------------------

/// A tmpfs that is unmounted when dropped.
pub struct SmallDisk {
    at: TempDir,
}

impl SmallDisk {
    /// None, and a word why, where we may not mount.
    pub fn mount(kib: u32) -> Option<Self> {
        let at = tempfile::Builder::new().prefix("execd-disk-").tempdir().expect("a directory");
        let size = format!("size={kib}k,mode=700");
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "execd-test"])
            .arg(at.path())
            .output();
        if !done.is_ok_and(|done| done.status.success()) {
            left_out("a tmpfs cannot be mounted here");
            return None;
        }
        Some(Self { at })
    }

    pub fn path(&self) -> &Path {
        self.at.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.at.path()).output();
    }
}
