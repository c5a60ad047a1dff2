//! Floods: as much as a pipe or a terminal carries, every byte into the log.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use execd::pure::agent::{AgentRun, RunSettings};
use serde_json::json;

use super::Scale;
use super::client::{Execd, scratch};
use super::floor;
use super::report::{Goal, Report, Samples};

/// Bytes of a mebibyte.
pub const MIB: usize = 1024 * 1024;
/// Bytes compared at a time.
const COMPARE_BYTES: usize = MIB;
/// As much as execd reads of a run at a time.
const AGENT_PIECE_BYTES: usize = 64 * 1024;
/// Longest wait that exec_command takes.
const YIELD_MS: u64 = 30_000;

/// A file of numbered lines, each of `columns` characters, `bytes` long in all.
pub fn lines(path: &Path, bytes: usize, columns: usize) {
    let mut file = BufWriter::with_capacity(MIB, File::create(path).unwrap());
    let (mut left, mut number) = (bytes, 0_u64);
    while left > 0 {
        let line = format!("{number:0columns$}\n");
        let part = &line.as_bytes()[..line.len().min(left)];
        file.write_all(part).unwrap();
        (left, number) = (left - part.len(), number + 1);
    }
}

/// Whether two files hold the same bytes.
fn same(one: &Path, other: &Path) -> bool {
    let (mut one, mut other) = (File::open(one).unwrap(), File::open(other).unwrap());
    let (mut left, mut right) = (vec![0; COMPARE_BYTES], Vec::new());
    loop {
        let count = one.read(&mut left).unwrap();
        right.clear();
        (&mut other).take(count.max(1) as u64).read_to_end(&mut right).unwrap();
        if left[..count] != right[..] {
            return false;
        }
        if count == 0 {
            return true;
        }
    }
}

/// Runs `cmd` as a session until its reply; gives the time and the log.
fn through_execd(execd: &mut Execd, cmd: &str, tty: bool) -> (std::time::Duration, PathBuf) {
    let params = json!({"cmd": cmd, "tty": tty, "yield_time_ms": YIELD_MS});
    let (time, result) = execd.call("exec_command", &params);
    assert_eq!(result["exit_code"], 0, "{}", result["header"]);
    (time, PathBuf::from(result["log_path"].as_str().expect("a log")))
}

/// Lines through a pipe, until the reply, against the producer into `cat > file`.
pub fn pipe(scale: Scale, report: &mut Report) {
    let dir = scratch();
    let (source, copy) = (dir.path().join("source"), dir.path().join("copy"));
    lines(&source, scale.of(1024, 64) * MIB, 31);
    let producer = format!("cat {}", source.display());
    let bare_cmd = format!("{producer} | cat > {}", copy.display());
    let (mut ours, mut bare) = (Samples::default(), Samples::default());
    for _ in 0..scale.of(3, 2) {
        let begun = Instant::now();
        assert!(Command::new("bash").args(["-c", &bare_cmd]).status().unwrap().success());
        bare.push(begun.elapsed());
        std::fs::remove_file(&copy).unwrap();
        let mut execd = Execd::start(&[]);
        let (time, log) = through_execd(&mut execd, &producer, false);
        ours.push(time);
        if !same(&source, &log) {
            return report.wrong("pipe flood", "the log differs from what was written");
        }
    }
    let name = format!("pipe flood, {} MiB", scale.of(1024, 64));
    report.time(&name, (ours.p50(), Some(bare.p50())), Some(Goal::Times(1.25)), ours.len());
}

/// What is kept of a log where its bound is measured.
const KEEP_BYTES: u64 = 16 << 20;
/// What `stat` counts blocks in.
const BLOCK_BYTES: u64 = 512;

/// Whether a bounded log takes no more of the disk than its bound and a step, and has the last
/// bytes of `source` at their places.
fn is_kept(source: &Path, log: &Path, from: u64) -> bool {
    let (source, log) = (File::open(source).unwrap(), File::open(log).unwrap());
    let (whole, found) = (source.metadata().unwrap().len(), log.metadata().unwrap());
    let taken = found.blocks() * BLOCK_BYTES;
    if found.len() != whole || whole - from < KEEP_BYTES || taken > KEEP_BYTES + KEEP_BYTES / 16 {
        return false;
    }
    let bytes_of = |file: &File| {
        let mut bytes = vec![0; usize::try_from(whole - from).unwrap()];
        file.read_exact_at(&mut bytes, from).unwrap();
        bytes
    };
    bytes_of(&source) == bytes_of(&log)
}

/// The same lines through a pipe with a bound on the log, against an execd without one.
pub fn pipe_bounded(scale: Scale, report: &mut Report) {
    let dir = scratch();
    let source = dir.path().join("source");
    lines(&source, scale.of(1024, 64) * MIB, 31);
    let producer = format!("cat {}", source.display());
    let bound = KEEP_BYTES.to_string();
    let (mut ours, mut bare) = (Samples::default(), Samples::default());
    let name = format!("pipe flood, {} MiB, the last 16 kept", scale.of(1024, 64));
    for _ in 0..scale.of(5, 3) {
        let mut execd = Execd::start(&["--log-keep-bytes", "0"]);
        bare.push(through_execd(&mut execd, &producer, false).0);
        drop(execd);
        let mut execd = Execd::start(&["--log-keep-bytes", &bound]);
        let params = json!({"cmd": producer, "yield_time_ms": YIELD_MS});
        let (time, result) = execd.call("exec_command", &params);
        ours.push(time);
        let from = result["log_from"].as_u64();
        let log = PathBuf::from(result["log_path"].as_str().expect("a log"));
        if !from.is_some_and(|from| is_kept(&source, &log, from)) {
            return report.wrong(&name, "the log does not have the last bytes, or has too many");
        }
    }
    report.time(&name, (ours.p50(), Some(bare.p50())), Some(Goal::Times(1.1)), ours.len());
}

/// 80-column lines through a terminal, against a bare reader of a PTY that writes a file.
pub fn pty(scale: Scale, report: &mut Report) {
    let dir = scratch();
    let (source, copy) = (dir.path().join("source"), dir.path().join("copy"));
    lines(&source, scale.of(200, 16) * MIB, 80);
    let producer = format!("cat {}", source.display());
    let (mut ours, mut bare) = (Samples::default(), Samples::default());
    for _ in 0..scale.of(3, 2) {
        let begun = Instant::now();
        floor::Pty::start(&producer).copy_to(&copy);
        bare.push(begun.elapsed());
        let mut execd = Execd::start(&[]);
        let (time, log) = through_execd(&mut execd, &producer, true);
        ours.push(time);
        if !same(&copy, &log) {
            return report.wrong("PTY flood", "the log differs from what a bare reader sees");
        }
    }
    let name = format!("PTY flood, {} MiB", scale.of(200, 16));
    report.time(&name, (ours.p50(), Some(bare.p50())), Some(Goal::Times(1.1)), ours.len());
}

/// The stream of pi, read in pieces as execd reads it, against memchr over the same bytes: lines of
/// 1 MiB, of which only the delta at their beginning is wanted, and lines of about 300 bytes.
pub fn agent_lines(scale: Scale, report: &mut Report) {
    let mut line =
        br#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta","#.to_vec();
    line.extend_from_slice(br#""contentIndex":0,"delta":"word ","partial":{"text":""#);
    line.resize(MIB - 5, b'x');
    line.extend_from_slice(b"\"}}}\n");
    let bytes: Vec<u8> = line.repeat(scale.of(256, 32));
    let (ours, bare, heap_bytes) = read_agent(scale, &bytes);
    let name = format!("agent lines, {} MiB", scale.of(256, 32));
    let a_gb_a_second = Duration::from_nanos(bytes.len() as u64);
    let goal = Some(Goal::AtMost(a_gb_a_second));
    report.time(&name, (ours.p50(), Some(bare.p50())), goal, ours.len());
    let rate = rate(&bytes, &ours);
    report.plain("agent lines, rate", (rate, "GB/s"), None, Some(rate >= 1.0));
    #[allow(clippy::cast_precision_loss)] // Far below 2^52.
    report.exact("agent lines, memory", (heap_bytes as f64 / MIB as f64, "MiB"), 2.0);
    let bytes = small_updates(scale.of(64, 8) * MIB);
    let (ours, bare, _) = read_agent(scale, &bytes);
    let name = format!("agent lines of 300 bytes, {} MiB", scale.of(64, 8));
    report.time(&name, (ours.p50(), Some(bare.p50())), None, ours.len());
    report.plain("agent lines of 300 bytes, rate", (self::rate(&bytes, &ours), "GB/s"), None, None);
}

/// `message_update` lines as pi 1.5.2 writes them: the usage so far, and a delta of a few words.
fn small_updates(bytes: usize) -> Vec<u8> {
    let words =
        ["Let me look.", "The command ", "printed alph", "a,\\n  then b", " \u{2013} done."];
    let mut all = Vec::with_capacity(bytes + 400);
    for number in 0_u64.. {
        let (output, total) = (10 + number % 990, 1_210 + number % 990);
        let word = words[usize::try_from(number).unwrap() % words.len()];
        write!(
            all,
            r#"{{"type":"message_update","usage":{{"input":1200,"output":{output},"cacheRead":0,"#
        )
        .unwrap();
        write!(all, r#""cacheWrite":0,"reasoning":0,"totalTokens":{total},"cost":{{"input":0,"#)
            .unwrap();
        all.extend_from_slice(br#""output":0,"cacheRead":0,"cacheWrite":0,"total":0,"#);
        all.extend_from_slice(br#""totalFromProvider":false}},"assistantMessageEvent":{"#);
        writeln!(all, r#""type":"text_delta","contentIndex":0,"delta":"{word}"}}}}"#).unwrap();
        if all.len() >= bytes {
            break;
        }
    }
    all
}

/// Reads lines that tell one event each. Gives the times of execd and of memchr, and the most
/// memory that was owned.
fn read_agent(scale: Scale, bytes: &[u8]) -> (Samples, Samples, usize) {
    let (mut ours, mut bare) = (Samples::default(), Samples::default());
    let mut most_heap_bytes = 0;
    for _ in 0..scale.of(5, 3) {
        let begun = Instant::now();
        let found = bytes.chunks(AGENT_PIECE_BYTES).map(|piece| memchr::memchr_iter(b'\n', piece));
        let lines = found.map(Iterator::count).sum::<usize>();
        bare.push(begun.elapsed());
        let begun = Instant::now();
        let mut run = AgentRun::new(RunSettings::default());
        let mut told = 0;
        for piece in bytes.chunks(AGENT_PIECE_BYTES) {
            run.push(piece, 0, &mut |_| told += 1);
            most_heap_bytes = run.heap_bytes().max(most_heap_bytes);
        }
        ours.push(begun.elapsed());
        assert_eq!(told, lines);
    }
    (ours, bare, most_heap_bytes)
}

/// GB a second.
#[allow(clippy::cast_precision_loss)] // Far below 2^52.
fn rate(bytes: &[u8], times: &Samples) -> f64 {
    bytes.len() as f64 / times.p50().as_secs_f64() / 1e9
}
