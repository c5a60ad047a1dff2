//! What must stay quick while something else goes on: pings under floods and beside a stalled
//! disk, and deadlines.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::Scale;
use super::client::{Execd, PATIENCE, SLEEPER};
use super::floor;
use super::report::{Goal, Report, Samples};

/// Floods are logged up to here, so that a bench does not fill a disk.
const FLOOD_LOG_BYTES: &str = "67108864";
/// Live chunks that one call sends at most.
const CHUNKS_OF_A_CALL: usize = 10_000;
/// The wait whose lateness is measured: the shortest that write_stdin knows.
const YIELD: Duration = Duration::from_millis(250);

/// Pings at irregular intervals of 1 to 8 ms, so that they hit every part of a turn.
fn pings(execd: &mut Execd, count: usize) -> Samples {
    let mut samples = Samples::default();
    let mut state = 0x9e37_79b9_u32;
    for _ in 0..count {
        samples.push(execd.call("ping", &json!({})).0);
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        std::thread::sleep(Duration::from_micros(u64::from(1_000 + (state >> 16) % 7_000)));
    }
    samples
}

/// `ping` while 1 and 63 sessions run `yes`.
pub fn ping_under_flood(scale: Scale, report: &mut Report) {
    let count = scale.of(1_000, 100);
    let mut execd = Execd::start(&["--log-max-bytes", FLOOD_LOG_BYTES]);
    let quiet = pings(&mut execd, count);
    for (floods, most_ms) in [(1, 2), (63, 20)] {
        let mut execd = Execd::start(&["--log-max-bytes", FLOOD_LOG_BYTES]);
        execd.open_many(&vec!["exec yes"; floods], false);
        let flooded = pings(&mut execd, count);
        let goal = Some(Goal::AtMost(Duration::from_millis(most_ms)));
        let name = format!("ping, {floods} × `yes`, p99");
        report.time(&name, (flooded.p99(), Some(quiet.p99())), goal, count);
    }
}

/// A job that floods its live chunks to the client that pings.
struct Flooder {
    request: u64,
    session: Option<u64>,
    chunks: usize,
}

impl Flooder {
    fn start(execd: &mut Execd) -> Self {
        let params = json!({"command": "exec yes", "yieldMs": 120_000});
        let (request, _) = execd.send("bash_stream", &params);
        Self { request, session: None, chunks: 0 }
    }

    fn take(&mut self, line: &[u8]) {
        if memchr::memmem::find(line, b"\"tool_execution_output\"").is_some() {
            self.chunks += 1;
            self.session = self.session.or_else(|| {
                let note: serde_json::Value = serde_json::from_slice(line).unwrap();
                note["params"]["sessionId"].as_u64()
            });
        }
    }

    /// It has sent as many chunks as one call sends.
    fn spent(&self) -> bool {
        self.chunks > CHUNKS_OF_A_CALL
    }

    fn end(self, execd: &mut Execd) {
        let session = self.session.expect("a chunk names it");
        execd.call("kill_process", &json!({"sessionId": session}));
        execd.reply(self.request);
    }
}

/// `ping` of a client that reads the live chunks of a `yes` meanwhile, as they come.
pub fn ping_beside_chunks(scale: Scale, report: &mut Report) {
    let count = scale.of(1_000, 100);
    let mut execd = Execd::start(&["--log-max-bytes", FLOOD_LOG_BYTES]);
    let quiet = pings(&mut execd, count);
    let mut flooded = Samples::default();
    let mut state = 0x9e37_79b9_u32;
    while flooded.len() < count {
        let mut job = Flooder::start(&mut execd);
        execd.lines_for(Duration::from_millis(20), |line| job.take(line));
        while !job.spent() && flooded.len() < count {
            let (id, begun) = execd.send("ping", &json!({}));
            let at = loop {
                let (line, at) = execd.line();
                if super::client::answers(&line, id) {
                    break at;
                }
                job.take(&line);
            };
            if !job.spent() {
                flooded.push(at - begun);
            }
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let pause = Duration::from_micros(u64::from(1_000 + (state >> 16) % 7_000));
            execd.lines_for(pause, |line| job.take(line));
        }
        job.end(&mut execd);
    }
    let goal = Some(Goal::AtMost(Duration::from_millis(2)));
    report.time("ping, `yes` live, median", (flooded.p50(), Some(quiet.p50())), None, count);
    report.time("ping, `yes` live, p99", (flooded.p99(), Some(quiet.p99())), goal, count);
}

/// `ping` of another client, over the socket, while that on stdin reads the live chunks of a
/// `yes` far slower than they come.
pub fn ping_beside_slow_reader(scale: Scale, report: &mut Report) {
    let count = scale.of(1_000, 100);
    let mut execd = Execd::start(&["--log-max-bytes", FLOOD_LOG_BYTES]);
    let other = UnixStream::connect(execd.dir.path().join("socket")).unwrap();
    other.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut lines = BufReader::new(other.try_clone().unwrap()).lines();
    let mut ask = || {
        let begun = Instant::now();
        (&other).write_all(b"{\"id\":1,\"method\":\"ping\"}\n").unwrap();
        while !lines.next().unwrap().unwrap().contains("\"id\":1") {}
        begun.elapsed()
    };
    let mut state = 0x9e37_79b9_u32;
    let mut pause = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        std::thread::sleep(Duration::from_micros(u64::from(1_000 + (state >> 16) % 7_000)));
    };
    let (mut quiet, mut flooded) = (Samples::default(), Samples::default());
    for _ in 0..count {
        quiet.push(ask());
        pause();
    }
    execd.send("bash_stream", &json!({"command": "exec yes", "yieldMs": 120_000}));
    for _ in 0..count {
        execd.skip_some();
        flooded.push(ask());
        pause();
    }
    let goal = Some(Goal::AtMost(Duration::from_millis(2)));
    let name = "ping, slow reader of live `yes`, p99";
    report.time(name, (flooded.p99(), Some(quiet.p99())), goal, count);
}

/// strace on a process; dropping it detaches it.
struct Tracer(Child);

impl Tracer {
    fn attach(pid: i32, arguments: &[&str]) -> Option<Self> {
        let child = Command::new("strace")
            .args(arguments)
            .args(["-p", &pid.to_string()])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .ok()?;
        let tracer = Self(child);
        let status = format!("/proc/{pid}/status");
        let deadline = Instant::now() + PATIENCE;
        let traced = || {
            let status = std::fs::read_to_string(&status).unwrap_or_default();
            status.contains(&format!("TracerPid:\t{}\n", tracer.0.id()))
        };
        while !traced() {
            std::thread::sleep(Duration::from_millis(5));
            if Instant::now() > deadline {
                return None;
            }
        }
        Some(tracer)
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // SAFETY: our own child. SIGTERM lets strace detach; SIGKILL would take its tracee along.
        unsafe { libc::kill(i32::try_from(self.0.id()).unwrap(), libc::SIGTERM) };
        let _ = self.0.wait();
    }
}

/// `ping` while each write to the log disk takes 200 ms.
pub fn log_stall(scale: Scale, report: &mut Report) {
    let name = "ping, log disk stalled, p99";
    let count = scale.of(1_000, 100);
    let mut execd = Execd::start(&[]);
    let quiet = pings(&mut execd, count);
    let keeper = execd.keeper_pid();
    let inject = ["-o", "/dev/null", "-e", "trace=write", "-e", "inject=write:delay_enter=200000"];
    let Some(_tracer) = Tracer::attach(keeper, &inject) else {
        return report.note(name, "–".into(), "not measured: needs strace");
    };
    execd.open("exec yes", false);
    let stalled = pings(&mut execd, count);
    let goal = Some(Goal::AtMost(Duration::from_millis(5)));
    report.time(name, (stalled.p99(), Some(quiet.p99())), goal, count);
}

/// How late the reply of a 250 ms wait is, against a timerfd of 250 ms.
pub fn deadline(scale: Scale, report: &mut Report) {
    let mut execd = Execd::start(&[]);
    let session = execd.open(SLEEPER, false);
    let (mut ours, mut bare) = (Samples::default(), Samples::default());
    for _ in 0..scale.of(200, 8) {
        bare.push(floor::timer_lateness(YIELD));
        let params = json!({"session_id": session, "chars": "x", "yield_time_ms": 250});
        let (time, result) = execd.call("write_stdin", &params);
        assert_eq!(result["wait_status"], "deadline_reached", "{result}");
        ours.push(time.saturating_sub(YIELD));
    }
    let goal = Some(Goal::Plus(Duration::from_micros(300)));
    report.time("deadline, lateness p50", (ours.p50(), Some(bare.p50())), None, ours.len());
    report.time("deadline, lateness p99", (ours.p99(), Some(bare.p99())), goal, ours.len());
}
