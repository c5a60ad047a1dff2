//! What is seen of any process in /proc, strace attached to it, and small file systems.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::{PATIENCE, PAUSE, comes_within, eventually, looks_within, send_signal};

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

/// The letter of a process's state; none where it is gone.
pub fn process_state(pid: i32) -> Option<char> {
    stat_fields(pid)?[0].chars().next()
}

/// The words of a process, each with a NUL behind it; nothing where it is gone.
pub fn cmdline(pid: i32) -> Vec<u8> {
    std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

/// The variables that a process was started with, each with a NUL behind it; empty where it is on
/// its way out.
pub fn environ(pid: i32) -> Option<Vec<u8>> {
    std::fs::read(format!("/proc/{pid}/environ")).ok()
}

/// Whether a process was started with this variable at this value: NAME=VALUE.
pub fn has_variable(pid: i32, mark: &str) -> bool {
    let all = environ(pid).unwrap_or_default();
    all.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
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
    eventually(&format!("{pid} runs {name}"), || comm(pid) == name);
}

/// Whether a process exists and is no zombie.
pub fn is_alive(pid: i32) -> bool {
    process_state(pid).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// All pids.
pub fn pids() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").expect("/proc is mounted").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The children of a process with their state's letter. The guard is left out: it is there for as
/// long as execd is.
pub fn children(pid: i32) -> Vec<(i32, char)> {
    let parent = pid.to_string();
    let child = |pid: i32| {
        let fields = stat_fields(pid)?;
        let counts = fields[1] == parent && comm(pid) != "sessions-guard";
        counts.then(|| (pid, fields[0].chars().next().unwrap_or('?')))
    };
    pids().into_iter().filter_map(child).collect()
}

/// The living guard (`sessions-guard`) or log writer (`sessions-log`) of an execd, whoever's child
/// it is by now.
pub fn helper_of(execd: i32, name: &str) -> Option<i32> {
    let flags = format!("--execd-pid\0{execd}\0");
    let is_it = |pid: &i32| {
        let line = cmdline(*pid);
        comm(*pid) == name && String::from_utf8_lossy(&line).contains(&flags) && is_alive(*pid)
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

/// What is done before execd starts so that it may open so many files and no more.
pub fn limit_files(most: u64) -> impl FnMut() + Send + Sync + 'static {
    move || {
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: a live rlimit; and descriptors that the test runner passed on are closed, so
        // that the numbers below are execd's own.
        unsafe {
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
            libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
        }
    }
}

/// What is done before execd starts so that these system calls fail with this errno, in it and in
/// all that it starts (seccomp(2)).
pub fn refuse_calls(errno: i32, calls: &[i64]) -> impl FnMut() + Send + Sync + 'static {
    let (equal, no_skip) = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0);
    let one = |call: &i64| {
        let number = u32::try_from(*call).expect("a number");
        [statement(equal, no_skip, 1, number), refusal(errno)]
    };
    filtered(calls.iter().flat_map(one).collect())
}

/// One statement of a filter; a comparison skips `jt` statements where it holds, else `jf`.
fn statement(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: u16::try_from(code).expect("a code of BPF"), jt, jf, k }
}

fn refusal(errno: i32) -> libc::sock_filter {
    let answer = libc::SECCOMP_RET_ERRNO | errno.unsigned_abs();
    statement(libc::BPF_RET | libc::BPF_K, 0, 0, answer)
}

/// A filter that looks at the number of a call, and allows what these statements do not answer.
fn filtered(statements: Vec<libc::sock_filter>) -> impl FnMut() + Send + Sync + 'static {
    // The number of the call is the first word of what a filter sees.
    let mut filter = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0)];
    filter.extend(statements);
    filter.push(statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW));
    move || {
        let program = libc::sock_fprog {
            len: u16::try_from(filter.len()).unwrap_or(0),
            filter: filter.as_mut_ptr(),
        };
        // SAFETY: a live filter, which the kernel copies; both calls are async-signal-safe.
        unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program);
        }
    }
}

/// The environment that a process was started with.
pub fn environment(pid: i32) -> BTreeMap<String, String> {
    let bytes = environ(pid).expect("it runs");
    let text = String::from_utf8_lossy(&bytes);
    let pair = |entry: &str| entry.split_once('=').map(|(n, v)| (n.to_owned(), v.to_owned()));
    text.split('\0').filter_map(pair).collect()
}

/// The processes that were started with this variable at this value.
pub fn marked(name: &str, value: &str) -> Vec<i32> {
    let mark = format!("{name}={value}");
    pids().into_iter().filter(|pid| has_variable(*pid, &mark) && is_alive(*pid)).collect()
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

/// Waits until a process has nothing to do: it sleeps and uses no processor time for a while, and
/// the number stays the same. A machine that is slow can only make this wait longer or end early,
/// so what is asserted afterwards must be something that never holds wrongly.
pub fn until_idle(pid: i32, mut also: impl FnMut() -> u64) {
    let mut last = (String::new(), 0);
    let mut same = 0;
    let idle = looks_within(PATIENCE, 5 * PAUSE, || {
        let fields = stat_fields(pid).expect("it runs");
        let now = (format!("{} {} {}", fields[0], fields[11], fields[12]), also());
        same = if now == last && fields[0] == "S" { same + 1 } else { 0 };
        last = now;
        same == 40
    });
    assert!(idle, "{pid} does not become idle");
}

/// Stops a process and waits until it stands.
pub fn stop(pid: i32) {
    send_signal(pid, libc::SIGSTOP);
    eventually("it is stopped", || matches!(process_state(pid), Some('T' | 't')));
}

/// Lets a stopped process go on.
pub fn go_on(pid: i32) {
    send_signal(pid, libc::SIGCONT);
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
        eventually("strace is attached", || {
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
        send_signal(i32::try_from(self.child.id()).expect("a pid"), libc::SIGINT);
        eventually("strace detaches", || self.child.try_wait().expect("our child").is_some());
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            // strace detaches when it is asked to end; killed, it would take its tracee along.
            send_signal(i32::try_from(self.child.id()).unwrap_or(0), libc::SIGTERM);
            let _ = self.child.wait();
        }
    }
}

// ---- Programs that end -------------------------------------------------------------------

/// How a program ends. One that has not within [`PATIENCE`] is killed, and the test fails.
pub fn end_of(child: &mut Child) -> ExitStatus {
    end_within(child, PATIENCE)
}

/// The same of one that has much to do.
pub fn end_within(child: &mut Child, patience: Duration) -> ExitStatus {
    if !comes_within(patience, || child.try_wait().expect("our child").is_some()) {
        let _ = child.kill();
        let _ = child.wait();
        panic!("{} has not ended in {patience:?}", child.id());
    }
    child.wait().expect("it has ended")
}

/// Runs a program to its end, as [`end_of`] waits for it.
pub fn status_of(command: &mut Command) -> ExitStatus {
    end_of(&mut command.spawn().expect("it starts"))
}

/// The same, and what it prints.
pub fn output_of(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    output_at_end(command.spawn().expect("it starts"))
}

/// What a program that has been started on pipes prints until its end, for which [`PATIENCE`]
/// is. Without a thread that reads along, what prints much would wait for us as we for it.
pub fn output_at_end(child: Child) -> Output {
    let pid = i32::try_from(child.id()).expect("a pid");
    let (to, from) = mpsc::channel();
    thread::spawn(move || to.send(child.wait_with_output()));
    let done = from.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        send_signal(pid, libc::SIGKILL);
        panic!("{pid} has not ended in {PATIENCE:?}")
    });
    done.expect("its output")
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
