//! How execd is started, and what is seen of it from outside: its process, its directories, and the
//! processes that it has started.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

use super::outside::{children, cmdline, environ, is_alive, pids, status_number, until_idle};
use super::{AT_ONCE, Execd, PATIENCE, comes_within, eventually, send_signal};

/// The execd that is tested.
pub const EXECD: &str = env!("CARGO_BIN_EXE_execd");

/// The mark in the environment of execd and of all that it starts.
const RUN_VARIABLE: &str = "EXECD_TEST_RUN";

/// A command line of execd, without words yet, for which it is no matter whether the tests were
/// started by an execd, or with its settings.
pub fn execd_command() -> Command {
    apart_from_ours(EXECD)
}

fn apart_from_ours(program: &str) -> Command {
    let mut command = Command::new(program);
    for name in ["EXECD_LOG", "EXECD_SESSION_ID", "EXECD_INSTANCE"] {
        command.env_remove(name);
    }
    command.env_remove("PI_UNIFIED_EXEC_MAX_EMPTY_POLL_MS");
    command
}

/// An execd that is to be started, in directories of its own.
pub struct Setup {
    command: Command,
    run: String,
    dir: TempDir,
    pub(super) watched: bool,
}

impl Setup {
    /// The execd that is tested.
    pub fn new(args: &[&str]) -> Self {
        Self::of(&[EXECD], args)
    }

    /// The same behind words that exec it in the end; where there are none, as [`Self::new`].
    pub fn behind(words: &[&str], args: &[&str]) -> Self {
        Self::of(&[words, &[EXECD]].concat(), args)
    }

    /// Another binary of execd, or words before one.
    pub fn of(words: &[&str], args: &[&str]) -> Self {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let dir = tempfile::Builder::new().prefix("execd-test-").tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("tmp")).expect("TMPDIR");
        std::fs::create_dir(dir.path().join("run")).expect("XDG_RUNTIME_DIR");
        std::fs::create_dir(dir.path().join("work")).expect("a working directory");
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.subsec_nanos());
        let count = RUNS.fetch_add(1, Ordering::Relaxed);
        let run = format!("{}-{nanos}-{count}", std::process::id());
        let mut command = apart_from_ours(words[0]);
        command
            .args(&words[1..])
            .args(args)
            .current_dir(dir.path().join("work"))
            .env("TMPDIR", dir.path().join("tmp"))
            .env("XDG_RUNTIME_DIR", dir.path().join("run"))
            .env(RUN_VARIABLE, &run)
            .env("LC_ALL", "C.UTF-8")
            .env("HISTFILE", "/dev/null")
            .env_remove("TERM")
            // Many tests send lines that are refused, and look at the end for other reasons.
            .env("EXECD_LENIENT", "1")
            .stderr(Stdio::null());
        Self { command, run, dir, watched: true }
    }

    /// With more variables.
    pub fn envs(mut self, envs: &[(&str, &str)]) -> Self {
        self.command.envs(envs.iter().copied());
        self
    }

    /// With something that is done between fork and exec: async-signal-safe calls only.
    pub fn prepared(mut self, mut prepare: impl FnMut() + Send + Sync + 'static) -> Self {
        let prepare = move || {
            prepare();
            Ok(())
        };
        // SAFETY: the closures of the tests make async-signal-safe calls only.
        unsafe { self.command.pre_exec(prepare) };
        self
    }

    /// For an execd that is made to fail, or has strangers beside it: its lines are not held
    /// against the rules, and who is left behind at the end is ended without a word.
    pub fn unwatched(mut self) -> Self {
        self.watched = false;
        self
    }

    /// The command, to be changed.
    pub fn command(&mut self) -> &mut Command {
        &mut self.command
    }

    /// The directory that execd is started in.
    pub fn workdir(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// What execd writes to stderr is kept, as [`Self::start`] has it.
    pub fn with_stderr(mut self) -> Self {
        self.command.stderr(Stdio::piped());
        self
    }

    /// Starts execd on two pipes.
    pub fn start(self) -> Execd {
        Execd::on(self.with_stderr().on(Stdio::piped(), Stdio::piped()))
    }

    /// Starts execd on these descriptors. The copies that the command holds are closed.
    pub fn on(mut self, stdin: impl Into<Stdio>, stdout: impl Into<Stdio>) -> Host {
        let mut child = self.command.stdin(stdin).stdout(stdout).spawn().expect("execd starts");
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let reader = child.stderr.take().map(|mut source| {
            let collected = Arc::clone(&stderr);
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = source.read(&mut buffer) {
                    collected.lock().expect("no panic while locked").extend(&buffer[..count]);
                }
            })
        });
        let leaves_processes = !self.watched;
        let Self { run, dir, watched, .. } = self;
        Host { child, run, dir, stderr, reader, leaves_processes, watched, exit: None }
    }
}

/// An execd process, whatever its descriptors are.
#[derive(Debug)]
pub struct Host {
    child: Child,
    run: String,
    dir: TempDir,
    stderr: Arc<Mutex<Vec<u8>>>,
    reader: Option<thread::JoinHandle<()>>,
    leaves_processes: bool,
    pub(super) watched: bool,
    exit: Option<ExitStatus>,
}

/// A process that carries the mark of one [`Host`].
#[derive(Debug, Clone)]
pub struct Process {
    pub pid: i32,
    pub command: String,
    /// EXECD_SESSION_ID in its environment: absent for execd and its keeper.
    pub session: Option<String>,
}

impl Host {
    /// execd's process id (strace is used with -D, and other words before it exec).
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid is positive")
    }

    /// The handle that std keeps.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Sends a signal to execd itself.
    pub fn signal(&self, signal: i32) {
        send_signal(self.pid(), signal);
    }

    /// execd's exit status, once it has one.
    pub fn try_exit(&mut self) -> Option<ExitStatus> {
        if self.exit.is_none() {
            self.exit = self.child.try_wait().expect("execd is our child");
        }
        self.exit
    }

    /// Waits for execd's end.
    pub fn wait_exit(&mut self) -> ExitStatus {
        let ended = comes_within(PATIENCE, || self.try_exit().is_some());
        assert!(ended, "execd does not end; stderr:\n{}", self.stderr());
        self.exit.expect("it has ended")
    }

    /// Waits for execd's end; gives its exit code.
    pub fn exit_code(&mut self) -> Option<i32> {
        self.wait_exit().code()
    }

    /// What execd wrote to stderr until now.
    pub fn stderr(&self) -> String {
        let bytes = self.stderr.lock().expect("no panic while locked");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// All of stderr, when execd has ended and nobody else holds it.
    pub fn whole_stderr(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().expect("it only reads");
        }
        self.stderr()
    }

    // ---- Its directories ----------------------------------------------------------------

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

    // ---- What it uses -------------------------------------------------------------------

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
        status_number(self.pid(), "VmRSS")
    }

    /// Memory of execd alone: no pages of files, which all that map them share.
    pub fn own_memory_kib(&self) -> u64 {
        status_number(self.pid(), "RssAnon")
    }

    /// The most memory that execd ever had in use.
    pub fn peak_rss_kib(&self) -> u64 {
        status_number(self.pid(), "VmHWM")
    }

    /// Waits until execd has nothing to do: see [`until_idle`].
    pub fn until_idle(&self, also: impl FnMut() -> u64) {
        until_idle(self.pid(), also);
    }

    // ---- What it has started ------------------------------------------------------------

    /// Every living process that inherited this execd's mark, but execd itself.
    pub fn processes(&self) -> Vec<Process> {
        let mark = format!("{RUN_VARIABLE}={}", self.run);
        let others = pids().into_iter().filter(|pid| *pid != self.pid());
        others.filter_map(|pid| process_with(pid, &mark)).collect()
    }

    /// Their pids.
    pub fn marked(&self) -> Vec<i32> {
        self.processes().iter().map(|process| process.pid).collect()
    }

    /// Processes of execd's sessions that are alive, detached ones included.
    pub fn session_processes(&self) -> Vec<Process> {
        self.processes().into_iter().filter(|process| process.session.is_some()).collect()
    }

    /// Waits until no process of execd's sessions is left, nor one on its way out: that has no
    /// environment any more by which its session could be known, and still counts as alive.
    pub fn until_no_session_process(&self) {
        let is_leaving = |(pid, state): &(i32, char)| {
            *state != 'Z' && environ(*pid).is_some_and(|all| all.is_empty())
        };
        eventually("the sessions' processes are gone", || {
            self.session_processes().is_empty() && !children(self.pid()).iter().any(is_leaving)
        });
    }

    /// Says that this test leaves processes behind on purpose; the harness ends them.
    pub fn leaves_processes_behind(&mut self) {
        self.leaves_processes = true;
    }
}

impl Drop for Host {
    /// Kills execd the hard way and shows that nothing of its sessions outlives it.
    fn drop(&mut self) {
        if self.try_exit().is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if self.leaves_processes {
            let left = if self.watched { self.session_processes() } else { self.processes() };
            end_all(&left);
        }
        let mut left = Vec::new();
        comes_within(AT_ONCE, || {
            left = self.processes();
            left.is_empty()
        });
        end_all(&left);
        if self.watched && !left.is_empty() && !thread::panicking() {
            panic!("left behind after execd was killed: {left:#?}");
        }
    }
}

fn end_all(processes: &[Process]) {
    for process in processes {
        send_signal(process.pid, libc::SIGKILL);
    }
}

fn process_with(pid: i32, mark: &str) -> Option<Process> {
    let environment = environ(pid)?;
    let mut variables = environment.split(|byte| *byte == 0);
    if !variables.any(|variable| variable == mark.as_bytes()) || !is_alive(pid) {
        return None;
    }
    let session = environment
        .split(|byte| *byte == 0)
        .find_map(|variable| variable.strip_prefix(b"EXECD_SESSION_ID="))
        .map(|id| String::from_utf8_lossy(id).into_owned());
    let command = String::from_utf8_lossy(&cmdline(pid)).replace('\0', " ").trim().to_owned();
    Some(Process { pid, command, session })
}
