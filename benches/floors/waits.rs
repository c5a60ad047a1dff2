//! Waits that end when something happens: how soon they are told, what a pattern costs a flood, and
//! what each kind of wait calls while nothing comes (docs/waits.md).

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Scale;
use super::client::{Execd, PATIENCE, SLEEPER, scratch, until_readable};
use super::flood;
use super::report::{Goal, Report, Samples};

/// Sessions with a wait each while one of them is woken.
const WAITING: usize = 64;
/// A wait that lasts longer than a bench.
const LONG_MS: u64 = 600_000;
/// None of these ever matches the lines
/// of digits that pass.
const PATTERNS: [(&str, &str); 5] = [
    ("regex", "(?:foo|bar)[0-9]+x|[a-z]+ failed$"),
    ("literal prefix", r"panicked at .*:[0-9]+"),
    ("(?i)", "(?i)fatal error"),
    ("digit class", "[0-9]{40}"),
    ("two classes", "[0-9]{4}[x-z]"),
];
/// What keeps a process of this program on a port from a while later on: see [`listen_after`].
pub const LISTEN_FLAG: &str = "listen-after-ms";

/// A bare process that reads a pipe and writes what came into another one.
struct Bare {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
}

impl Bare {
    fn start() -> Self {
        let mut child =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, stdin, stdout }
    }

    /// From the write of a line to the line that comes back.
    fn line(&mut self, text: &str) -> Duration {
        let begun = Instant::now();
        self.stdin.write_all(text.as_bytes()).unwrap();
        until_readable(self.stdout.as_raw_fd());
        let mut buffer = [0; 256];
        let count = self.stdout.read(&mut buffer).unwrap();
        let time = begun.elapsed();
        assert_eq!(&buffer[..count], text.as_bytes());
        time
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_on(session: u64, condition: &Value) -> Value {
    let mut params = json!({"session_id": session, "yield_time_ms": LONG_MS});
    params.as_object_mut().unwrap().extend(condition.as_object().unwrap().clone());
    params
}

/// From the write of a line into a session's output to the reply of the wait on it, with a wait on
/// each of 64 sessions.
pub fn wake(scale: Scale, report: &mut Report) {
    let mut execd = Execd::start(&["--max-sessions", "100"]);
    let sessions = execd.open_many(&[SLEEPER; WAITING], false);
    let (woken, others) = sessions.split_last().unwrap();
    for session in others {
        let condition = json!({"until": {"regex": "never (seen|told)", "text": "nowhere"}});
        execd.send("write_stdin", &wait_on(*session, &condition));
    }
    let list = execd.call("list_sessions", &json!({"peek": true})).1;
    let rows = list["sessions"].as_array().unwrap();
    let row = rows.iter().find(|row| row["session_id"] == *woken).unwrap();
    // Its output pipe, without a process between.
    let path = format!("/proc/{}/fd/1", row["pid"]);
    let mut output = File::options().write(true).open(path).unwrap();
    let mut bare = Bare::start();
    let (mut ours, mut floor) = (Samples::default(), Samples::default());
    for number in 0..scale.of(1_000, 100) {
        let line = format!("wake {number} now\n");
        floor.push(bare.line(&line));
        let condition = json!({"until": {"regex": format!("wake {number} ([a-z]+)")}});
        let (id, _) = execd.send("write_stdin", &wait_on(*woken, &condition));
        execd.call("ping", &json!({}));
        let begun = Instant::now();
        output.write_all(line.as_bytes()).unwrap();
        let (at, result) = execd.reply(id);
        ours.push(at - begun);
        assert_eq!(result["wait"]["captures"][0], "now", "{result}");
    }
    let goal = |ms| Some(Goal::Plus(Duration::from_millis(ms)));
    report.time("wait: wake, median", (ours.p50(), Some(floor.p50())), goal(1), ours.len());
    report.time("wait: wake, p99", (ours.p99(), Some(floor.p99())), goal(5), ours.len());
}

/// The monotonic clock that all processes share.
fn clock_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a live timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}

/// What this program does for [`port`] in a session: listens on a port of its own after a while,
/// writes down when that was, and stays.
pub fn listen_after(delay: Duration, note: &std::path::Path) {
    std::thread::sleep(delay);
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let at = clock_ns();
    std::fs::write(note, at.to_string()).unwrap();
    std::thread::sleep(PATIENCE);
    drop(listener);
}

/// From listen(2) to the reply of a wait on any port.
pub fn port(scale: Scale, report: &mut Report) {
    let mut execd = Execd::start(&[]);
    let program = std::env::current_exe().unwrap();
    let mut ours = Samples::default();
    for round in 0..scale.of(30, 4) {
        let note = execd.dir.path().join(format!("listening-{round}"));
        // At any place of the pauses between two looks.
        let delay_ms = scale.of(400, 250) + 137 * round % scale.of(1_500, 500);
        let cmd =
            format!("exec {} --{LISTEN_FLAG} {delay_ms} {}", program.display(), note.display());
        let params = json!({"cmd": cmd, "until": {"port": "any"}, "yield_time_ms": 60_000});
        let (_, result) = execd.call("exec_command", &params);
        let told = clock_ns();
        assert_eq!(result["wait"]["by"], "port", "{result}");
        let listened: u64 = std::fs::read_to_string(&note).unwrap().parse().unwrap();
        ours.push(Duration::from_nanos(told.saturating_sub(listened)));
        let kill = json!({"session_id": result["session_id"], "signal": "SIGKILL"});
        execd.call("kill_session", &kill);
    }
    report.time("wait: port, median", (ours.p50(), None), None, ours.len());
    let goal = Some(Goal::AtMost(Duration::from_millis(100)));
    report.time("wait: port, slowest", (ours.at(1.0), None), goal, ours.len());
}

/// A flood through a pipe with a pattern that never matches, against the same without.
pub fn pattern_flood(scale: Scale, report: &mut Report) {
    let dir = scratch();
    let source = dir.path().join("source");
    flood::lines(&source, scale.of(1024, 32) * flood::MIB, 31);
    let producer = format!("cat {}", source.display());
    let mut bare = Samples::default();
    let mut ours: Vec<Samples> = PATTERNS.iter().map(|_| Samples::default()).collect();
    for _ in 0..scale.of(3, 1) {
        let mut execd = Execd::start(&[]);
        let run = |execd: &mut Execd, more: Value| {
            let mut params = json!({"cmd": producer, "yield_time_ms": 30_000});
            params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let (time, result) = execd.call("exec_command", &params);
            assert_eq!(result["exit_code"], 0, "{}", result["header"]);
            std::fs::remove_file(result["log_path"].as_str().unwrap()).unwrap();
            time
        };
        bare.push(run(&mut execd, json!({})));
        for ((_, pattern), samples) in PATTERNS.iter().zip(&mut ours) {
            samples.push(run(&mut execd, json!({"until": {"regex": pattern}})));
        }
    }
    for ((name, _), samples) in PATTERNS.iter().zip(&ours) {
        let name = format!("wait: flood, {} MiB, {name}", scale.of(1024, 32));
        let goal = Some(Goal::Times(1.5));
        report.time(&name, (samples.p50(), Some(bare.p50())), goal, samples.len());
    }
}

/// Kinds of waits, each of which gets an execd of its own, and whether it may make a call at all
/// while nothing comes.
fn kinds() -> Vec<(&'static str, Value, bool)> {
    vec![
        ("exit", json!({}), false),
        ("text", json!({"until": {"text": "never"}}), false),
        ("regex", json!({"until": {"regex": "never$"}}), false),
        ("idle_ms of 600 s", json!({"until": {"idle_ms": 600_000}}), true),
        ("input", json!({"until": {"input": true}}), true),
        ("port", json!({"until": {"port": 1}}), true),
    ]
}

/// System calls of execd while each kind of wait is pending and nothing comes.
pub fn calls(scale: Scale, report: &mut Report) {
    let mut traced = Vec::new();
    for (name, condition, may) in kinds() {
        let mut execd = Execd::start(&[]);
        let session = execd.open(SLEEPER, false);
        let mut params = wait_on(session, &condition);
        // A wait that may end as impossible looks at the session's processes.
        params["on_impossible"] = json!("wait");
        execd.send("write_stdin", &params);
        let trace = execd.dir.path().join("trace");
        let tracer = Command::new("strace")
            .args(["-o".as_ref(), trace.as_os_str()])
            .args(["-p", &execd.pid().to_string()])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(tracer) = tracer else {
            return report.note("wait: calls", "–".into(), "not measured: needs strace");
        };
        traced.push((name, may, execd, tracer, trace));
    }
    let lines = |trace: &std::path::Path| {
        std::fs::read_to_string(trace).unwrap_or_default().lines().count()
    };
    // The looks of a wait's beginning, and what being attached to causes, are over then.
    std::thread::sleep(Duration::from_secs(2));
    let before: Vec<usize> = traced.iter().map(|(_, _, _, _, trace)| lines(trace)).collect();
    let seconds = scale.of(10, 2);
    std::thread::sleep(Duration::from_secs(seconds));
    for ((name, may, execd, mut tracer, trace), before) in traced.into_iter().zip(before) {
        #[allow(clippy::cast_precision_loss)] // Far below 2^52.
        let calls = (lines(&trace) - before) as f64;
        // SAFETY: our own child; SIGTERM lets strace detach.
        unsafe { libc::kill(i32::try_from(tracer.id()).unwrap(), libc::SIGTERM) };
        let _ = tracer.wait();
        drop(execd);
        let row = format!("wait: calls in {seconds} s, {name}");
        match (before, may) {
            (0, _) => report.note(&row, "–".into(), "not measured: strace may not attach"),
            (_, true) => report.plain(&row, (calls, "calls"), None, None),
            (_, false) => report.exact(&row, (calls, "calls"), 0.0),
        }
    }
}
