//! Thousands of sessions: they start, they are served, and one that is busy does not pay for those
//! that are idle (performance.md, growth). Nothing here looks at a clock: instructions are counted.

use crate::common::release;
use std::path::Path;
use std::process::Command;

use crate::common::{Execd, Setup, eventually, missing, process_state};
use serde_json::{Value, json};

/// What `--max-sessions 4096` needs of descriptors, see FDS_PER_SESSION.
const NEEDED_FDS: u64 = 4096 * 4 + 48;
/// Sessions opened at a time: fewer than the requests that may wait at once.
const AT_ONCE: usize = 256;
/// The cost of one request with many sessions, in hundredths of that with one.
const MOST_PERCENT: u64 = 105;

/// The hard limit of open files that execd inherits from us.
fn hard_file_limit() -> u64 {
    let limits = std::fs::read_to_string("/proc/self/limits").expect("/proc is mounted");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("its line");
    let hard = line.split_whitespace().nth(4).expect("the hard limit");
    hard.parse().unwrap_or(u64::MAX)
}

fn open(execd: &mut Execd, sessions: usize) {
    for first in (0..sessions).step_by(AT_ONCE) {
        execd.open_all(&vec!["exec sleep 1000"; AT_ONCE.min(sessions - first)]);
    }
}

/// rule: architecture.md, Bounds: Thousands of sessions start, are served and cost memory in
///   proportion
#[test]
fn thousands_of_sessions_are_started_and_served() {
    // A debug build checks all sessions after each turn.
    const SESSIONS: usize = if cfg!(debug_assertions) { 1024 } else { 2048 };
    if hard_file_limit() < NEEDED_FDS {
        eprintln!("left out: it needs {NEEDED_FDS} open files (ulimit -Hn)");
        return;
    }
    let mut execd = Execd::with(&["--max-sessions", "4096"], &[]);
    open(&mut execd, SESSIONS / 2);
    let half_kib = execd.rss_kib();
    open(&mut execd, SESSIONS / 2);
    // The second half costs no more than so many sessions may.
    let grown_kib = execd.rss_kib().saturating_sub(half_kib);
    assert!(grown_kib < 8 * SESSIONS as u64 / 2, "{grown_kib} KiB for half of {SESSIONS}");
    execd.ping();
    let list = execd.peek();
    let rows = list["sessions"].as_array().expect("rows");
    assert_eq!(rows.len(), SESSIONS);
    assert!(rows.iter().all(|row| row["running"] == true), "all of them run");
    assert_eq!(execd.run("echo served")["output"], "served\n");
    let middle = rows[SESSIONS / 2]["session_id"].as_u64().expect("an id");
    assert_eq!(execd.kill(middle)["killed"], json!(true));
}

/// rule: architecture.md, Bounds: Too low a limit of open files for `--max-sessions` is told at
///   start, with how many sessions fit
#[test]
fn too_few_descriptors_for_the_sessions_are_told_at_the_start() {
    let script = "ulimit -n 256; exec \"$0\" --max-sessions 4096";
    let words = ["bash", "-c", script, crate::common::EXECD];
    let done = Command::new(words[0])
        .args(&words[1..])
        .stdin(std::process::Stdio::null())
        .output()
        .expect("bash starts");
    assert!(done.status.success() && done.stdout.is_empty(), "{done:?}");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    // What there is, how many fit, and what can be done.
    for part in ["256", "52", "ulimit -Hn"] {
        assert!(said.contains(part), "{part:?} is missing: {said}");
    }
    // As many as it names do fit.
    let mut execd = Setup::of(&words, &[]).start();
    execd.open_all(&["exec sleep 1000"; 52]);
    assert_eq!(execd.run("echo more")["output"], "more\n");
}

// ---- Instructions -----------------------------------------------------------------------

/// An execd under callgrind.
struct Counted {
    execd: Execd,
    dir: tempfile::TempDir,
    dumps: u32,
}

impl Counted {
    fn start(binary: &Path) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name).to_str().expect("UTF-8").to_owned();
        let out = format!("--callgrind-out-file={}.%p", at("out"));
        let prefix = format!("--vgdb-prefix={}", at("vgdb"));
        let binary = binary.to_str().expect("UTF-8");
        let command = ["valgrind", "-q", "--tool=callgrind", &prefix, &out, binary];
        // A helper that valgrind cannot start is started again and again, and told of all sessions.
        let flags = ["--max-sessions", "600", "--no-keeper"];
        // valgrind aborts a program whose children share its memory while it runs on.
        let envs = [("EXECD_UNDER_VALGRIND", "1")];
        let execd = Setup::of(&command, &flags).envs(&envs).start();
        Self { execd, dir, dumps: 0 }
    }

    /// The instructions since the last call.
    fn take(&mut self) -> u64 {
        self.execd.ping();
        self.dumps += 1;
        let prefix = format!("--vgdb-prefix={}", self.dir.path().join("vgdb").display());
        let pid = format!("--pid={}", self.execd.pid());
        let asked = Command::new("vgdb").args([&prefix, &pid, "dump"]).output().expect("vgdb");
        let path = self.dir.path().join(format!("out.{}.{}", self.execd.pid(), self.dumps));
        let totals = || {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("totals: "));
            line.and_then(|number| number.trim().parse::<u64>().ok())
        };
        eventually(&format!("callgrind wrote its counters: {asked:?}"), || totals().is_some());
        totals().expect("they are there")
    }

    /// Instructions of `count` requests, one after the other.
    fn of(&mut self, method: &str, params: &Value, count: usize) -> u64 {
        for _ in 0..10 {
            self.execd.result(method, params.clone());
        }
        self.take();
        for _ in 0..count {
            self.execd.result(method, params.clone());
            // The next one comes when execd sleeps: in how many turns a request is done with
            // would depend on who is faster otherwise.
            let pid = self.execd.pid();
            eventually("execd sleeps", || process_state(pid) == Some('S'));
        }
        self.take()
    }
}

/// rule: architecture.md, Bounds: A request takes no more instructions because others idle
#[test]
fn a_request_takes_as_many_instructions_beside_hundreds_of_idle_sessions() {
    if missing("valgrind") || missing("vgdb") {
        return;
    }
    let binary = release::binary();
    let mut counted = Counted::start(&binary);
    // A wait that is to end where nothing can come any more looks at the children of execd.
    let command = json!({"cmd": "true", "on_impossible": "wait"});
    let mut measure = |sessions: usize| {
        open(&mut counted.execd, sessions);
        let pings = counted.of("ping", &json!({}), 500);
        (pings, counted.of("exec_command", &command, 50))
    };
    let one = measure(1);
    let many = measure(255);
    eprintln!("500 pings, 50 commands: {one:?} beside 1 session, {many:?} beside 256");
    assert!(many.0 * 100 <= one.0 * MOST_PERCENT, "pings: {one:?}, then {many:?}");
    // In how many turns the news of a command's end come is the kernel's choice, and trees grow
    // by a level: some room, but less than the list of all children once took (82 % more).
    assert!(many.1 * 100 <= one.1 * (MOST_PERCENT + 25), "commands: {one:?}, then {many:?}");
}
