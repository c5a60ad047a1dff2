//! Request to reply: short commands alone, beside full buffers and beside many sessions, the
//! echo of a byte, and the start of execd itself.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::json;

use super::Scale;
use super::client::{Execd, SLEEPER, scratch};
use super::floor;
use super::report::{Goal, Report, Samples, shown};

/// The shell that execd starts commands with.
const SHELL: &str = "/bin/bash";
/// Sessions that hold unread output in spawn-at-scale.
const FULL_SESSIONS: usize = 64;
/// What each of them prints: more than the buffer of 1 MiB.
pub const FULL_BYTES: u64 = 1_500_000;
/// Sessions that echo, each asked once a round.
const ECHOES: usize = 25;
/// Sessions opened side by side.
pub const OPEN_AT_ONCE: usize = 64;

/// `exec_command true` against posix_spawn of `bash -c true`.
pub fn spawn(scale: Scale, report: &mut Report) {
    let mut execd = Execd::start(&[]);
    let (mut ours, mut bare) = (Samples::default(), Samples::default());
    for _ in 0..scale.of(1_000, 100) {
        bare.push(floor::spawn(SHELL, &["bash", "-c", "true"]));
        ours.push(execd.short("true"));
    }
    let (p50, p99) = (Some(Goal::Times(1.15)), Some(Goal::Times(1.5)));
    report.time("spawn, median", (ours.p50(), Some(bare.p50())), p50, ours.len());
    report.time("spawn, p99", (ours.p99(), Some(bare.p99())), p99, ours.len());
}

/// Sessions with full buffers; nobody reads them.
pub fn fill(execd: &mut Execd, sessions: usize) {
    let before = bytes_read(execd);
    // The first replies are sent before the flood, so that none of it is handed out.
    let cmd = format!("sleep 1; yes | head -c {FULL_BYTES}; {SLEEPER}");
    execd.open_many(&vec![cmd.as_str(); sessions], false);
    let due = before + FULL_BYTES * sessions as u64;
    let deadline = Instant::now() + super::client::PATIENCE;
    while bytes_read(execd) < due {
        assert!(Instant::now() < deadline, "the buffers are never full");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn bytes_read(execd: &mut Execd) -> u64 {
    let info = execd.call("server_info", &json!({})).1;
    info["counters"]["bytes_read"].as_u64().expect("a counter")
}

/// The same command with full buffers in memory, against none.
pub fn spawn_at_scale(scale: Scale, report: &mut Report) {
    let mut empty = Execd::start(&[]);
    let mut full = Execd::start(&["--max-sessions", "100"]);
    fill(&mut full, FULL_SESSIONS);
    let (mut ours, mut bare) = (Samples::default(), Samples::default());
    for _ in 0..scale.of(500, 60) {
        bare.push(empty.short("true"));
        ours.push(full.short("true"));
    }
    let goal = Some(Goal::Times(1.1));
    report.time("spawn, 64 × 1 MiB held", (ours.p50(), Some(bare.p50())), goal, ours.len());
}

/// A byte into `cat` on a PTY until it comes back, as a progress notification.
pub fn echo(scale: Scale, report: &mut Report) {
    let mut execd = Execd::start(&[]);
    let sessions =
        execd.open_many(&[SLEEPER.replace("sleep 100000", "cat").as_str(); ECHOES], true);
    let mut pty = floor::Pty::start("exec cat");
    pty.echo(b'x');
    let (mut ours, mut bare) = (Samples::default(), Samples::default());
    for _ in 0..scale.of(20, 3) {
        let mut requests = Vec::new();
        // Progress of one request comes four times a second at most, and at once the first
        // time: so each session is asked once, then all their replies are awaited.
        for session in &sessions {
            bare.push(pty.echo(b'x'));
            let params = json!({"session_id": session, "chars": "x", "stream": true});
            let (id, begun) = execd.send("write_stdin", &params);
            loop {
                let (line, at) = execd.line();
                if line.windows(10).any(|part| part == b"\"progress\"") {
                    ours.push(at - begun);
                    break;
                }
            }
            requests.push(id);
        }
        for id in requests {
            execd.reply(id);
        }
    }
    let p50 = Some(Goal::Plus(Duration::from_micros(100)));
    report.time("echo, median", (ours.p50(), Some(bare.p50())), p50, ours.len());
    report.time("echo, p99", (ours.p99(), Some(bare.p99())), Some(Goal::Times(2.0)), ours.len());
}

/// From exec of execd to the reply to a ping, against exec of `/bin/true`.
pub fn startup(scale: Scale, report: &mut Report) {
    let (mut ours, mut bare) = (Samples::default(), Samples::default());
    for _ in 0..scale.of(100, 10) {
        bare.push(floor::spawn("/bin/true", &["true"]));
        let mut execd = Execd::launch(&[]);
        execd.call("ping", &json!({}));
        ours.push(execd.launched.elapsed());
    }
    let goal = Some(Goal::Plus(Duration::from_millis(3)));
    report.time("startup", (ours.p50(), Some(bare.p50())), goal, ours.len());
}

/// The first answer of an execd whose log directory has very many logs, beside one that has few.
pub fn old_logs(scale: Scale, report: &mut Report) {
    let count = scale.of(100_000, 2_000);
    let (few, many) = (scratch(), scratch());
    for dir in [&few, &many] {
        // As a log directory has to be.
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
    }
    for n in 0..count {
        std::fs::write(many.path().join(format!("execd-{n}-{n:08x}.log")), "").unwrap();
    }
    let (mut ours, mut bare) = (Samples::default(), Samples::default());
    let mut short = Samples::default();
    for _ in 0..scale.of(100, 10) {
        let mut execd = Execd::launch_beside(few.path());
        execd.call("ping", &json!({}));
        bare.push(execd.launched.elapsed());
        let mut execd = Execd::launch_beside(many.path());
        execd.call("ping", &json!({}));
        ours.push(execd.launched.elapsed());
        short.push(execd.short("true"));
    }
    let goal = Some(Goal::Plus(Duration::from_micros(300)));
    let name = format!("startup, {count} old logs");
    report.time(&name, (ours.p50(), Some(bare.p50())), goal, ours.len());
    report.time(&format!("{name}: `true`"), (short.p50(), None), None, short.len());
}

/// Latency and memory while sessions become many, against an execd with one session in the
/// same minutes: what the kernel takes for many processes hits both.
pub fn growth(scale: Scale, report: &mut Report) {
    let mut small = Execd::start(&[]);
    small.open(SLEEPER, false);
    let mut large = Execd::start(&["--max-sessions", "4096"]);
    let mut open = 0;
    for level in scale.of(&[1, 8, 64, 512, 2048][..], &[1, 8, 64][..]) {
        while open < *level {
            let batch = OPEN_AT_ONCE.min(level - open);
            large.open_many(&vec![SLEEPER; batch], false);
            open += batch;
        }
        let (mut ours, mut bare) = (Samples::default(), Samples::default());
        let (mut pings, mut few_pings) = (Samples::default(), Samples::default());
        for _ in 0..scale.of(300, 40) {
            bare.push(small.short("true"));
            ours.push(large.short("true"));
            few_pings.push(small.call("ping", &json!({})).0);
            pings.push(large.call("ping", &json!({})).0);
        }
        let name = |what: &str| format!("growth: {what}, {level} sessions");
        let goal = Some(Goal::Times(1.2));
        report.time(&name("`true`"), (ours.p50(), Some(bare.p50())), goal, ours.len());
        report.time(&name("ping"), (pings.p50(), Some(few_pings.p50())), goal, pings.len());
        #[allow(clippy::cast_precision_loss)] // Far below 2^52.
        report.plain(&name("RSS"), (large.rss_kib() as f64, "KiB"), None, None);
    }
    eprintln!("growth: ping of the small one p50 {}", shown(small.call("ping", &json!({})).0));
}
