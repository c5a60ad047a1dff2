//! Tests of the loops, over real pipes, with log writer and guard in a thread each.

use super::frames::{
    AckDecoder, AckKind, GuardRecord, Head, ReadRange, Wanted as Part, push_close,
    push_data_header, push_guard_add, push_open, push_read_range, push_sync,
};
use super::*;
use crate::limits::{LOG_FRAME_BYTES, LOG_RANGE_ANSWER_BYTES};
use crate::pure::buffer::bound::Bounds;
use crate::pure::buffer::source::Source;
use crate::sys::io::ENOENT;
use crate::sys::keeper_calls::testing::{Spawned, members_of};
use crate::sys::log_files::LogDir;
use crate::sys::proc;
use crate::sys::signals::SIGKILL;
use std::fs;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::thread::JoinHandle;

/// execd's ends of the pipes, and the keeper at the others.
struct Running {
    log: PipeWriter,
    ack: PipeReader,
    guard: PipeWriter,
    keeper: JoinHandle<Result<(), Nonsense>>,
    watcher: JoinHandle<Result<(), Nonsense>>,
    acks: AckDecoder,
}

fn start(dir: &Path) -> Running {
    let (log_read, log) = pipe().unwrap();
    let (ack, ack_write) = pipe().unwrap();
    let (guard_read, guard) = pipe().unwrap();
    let dir = dir.to_path_buf();
    let keeper = std::thread::spawn(move || {
        let writer = Writer::new(Ok(LogDir::open(&dir).unwrap()), Bounds::default());
        let pipes = (log_read.as_raw_fd(), ack_write.as_raw_fd());
        Keeper::new(pipes, writer).serve()
    });
    let watcher =
        std::thread::spawn(move || watch(&mut Guard::new("abc", 1), guard_read.as_raw_fd()));
    Running { log, ack, guard, keeper, watcher, acks: AckDecoder::default() }
}

impl Running {
    fn next_ack(&mut self) -> Ack {
        loop {
            let mut byte = [0];
            self.ack.read_exact(&mut byte).unwrap();
            if let Some(ack) = self.acks.next(&mut byte.as_slice()).unwrap() {
                return ack;
            }
        }
    }

    /// The bytes behind a record.
    fn behind(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while self.acks.is_behind() {
            let mut byte = [0];
            self.ack.read_exact(&mut byte).unwrap();
            all.extend_from_slice(self.acks.behind(&mut byte.as_slice()));
        }
        all
    }

    /// Hangs up everything and gives how both ended.
    fn end(self) -> Result<(), Nonsense> {
        drop((self.log, self.ack, self.guard));
        self.keeper.join().unwrap().and(self.watcher.join().unwrap())
    }
}

/// rule: bash-stream.md, The stream family: get_process_log: the keeper reads the log
#[test]
fn a_range_comes_with_what_was_handed_over_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut running = start(dir.path());
    let (mut out, text) = (Vec::new(), b"0123456789".repeat(200_000));
    push_open(&mut out, 1, "a");
    data(&mut out, 1, &text);
    let asked = |token, from, max_bytes| {
        let (only, to, total) = (None, u64::MAX, None);
        let wanted = Part { only, from, to, max_bytes, total };
        ReadRange { token, wanted, name: "a".to_owned() }
    };
    let all = (1, 1 << 50, 1, LOG_RANGE_ANSWER_BYTES);
    let wanted = [(0, 10, 0, 10), (7, 9, 7, 9), (-8, 100, 1_999_992, 8), all];
    for (token, &(from, most, _, _)) in wanted.iter().enumerate() {
        push_read_range(&mut out, &asked(token as u64, from, most));
    }
    let gone = ReadRange { name: "b".to_owned(), ..asked(9, 0, 1) };
    push_read_range(&mut out, &gone);
    // The pipe holds less than all of that: it is written while the answers are read.
    let mut log = running.log.try_clone().unwrap();
    let writes = std::thread::spawn(move || log.write_all(&out).unwrap());
    assert_eq!(running.next_ack().kind, AckKind::Opened);
    for (token, &(_, _, from, length)) in wanted.iter().enumerate() {
        let ack = running.next_ack();
        assert_eq!((ack.kind, ack.token, ack.errno), (AckKind::Range, token as u64, 0));
        let bytes = running.behind();
        assert_eq!(bytes.len() as u64, ack.missing);
        let mut rest = bytes.as_slice();
        let head = Head::take(&mut rest).unwrap();
        assert_eq!((head.from, head.to), (from, from + length), "{token}");
        assert_eq!(head.known_total, 2_000_000);
        assert!(rest == &text[head.from as usize..head.to as usize], "range {token}");
    }
    let missing = running.next_ack();
    assert_eq!((missing.token, missing.errno, missing.missing), (9, ENOENT, 0));
    writes.join().unwrap();
    running.end().unwrap();
}

fn data(out: &mut Vec<u8>, session: u64, bytes: &[u8]) {
    for bytes in bytes.chunks(LOG_FRAME_BYTES) {
        push_data_header(out, session, Source::Output, bytes.len());
        out.extend_from_slice(bytes);
    }
}

#[test]
fn writes_two_logs_and_ends_with_its_pipes() {
    let temp = tempfile::tempdir().unwrap();
    let mut running = start(temp.path());
    let big: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 253) as u8).collect();
    let mut out = Vec::new();
    push_open(&mut out, 1, "a");
    push_open(&mut out, 2, "b");
    data(&mut out, 1, &big);
    data(&mut out, 2, b"small");
    push_sync(&mut out, 1, 11);
    push_close(&mut out, 1);
    running.log.write_all(&out).unwrap();
    assert_eq!((running.next_ack().kind, running.next_ack().session), (AckKind::Opened, 2));
    let synced = running.next_ack();
    assert_eq!((synced.kind, synced.token), (AckKind::Synced, 11));
    assert_eq!(synced.logged, big.len() as u64);
    assert_eq!(fs::read(temp.path().join("a")).unwrap(), big);
    running.end().unwrap();
    assert_eq!(fs::read(temp.path().join("b")).unwrap(), b"small");
}

/// rule: architecture.md, The keeper: The keeper writes out what is queued after execd was killed
#[test]
fn a_killed_execd_leaves_no_session_and_a_whole_log() {
    let temp = tempfile::tempdir().unwrap();
    let child = Spawned::shell("sleep 71 & wait", &["EXECD_INSTANCE=abc"]);
    let mut running = start(temp.path());
    let mut out = Vec::new();
    let start_ticks = proc::stat(child.pid).unwrap().start_ticks;
    push_guard_add(&mut out, GuardRecord { sid: child.pid, start_ticks, session: 1, whole: false });
    running.guard.write_all(&out).unwrap();
    out.clear();
    push_open(&mut out, 1, "a");
    data(&mut out, 1, b"queued");
    // Half a frame, as a kill in the middle of a write would leave it.
    push_data_header(&mut out, 1, Source::Output, 100);
    out.extend_from_slice(b" and cut");
    running.log.write_all(&out).unwrap();
    running.end().unwrap();
    assert_eq!(child.wait(), SIGKILL);
    assert!(members_of(child.pid).is_empty());
    assert_eq!(fs::read(temp.path().join("a")).unwrap(), b"queued and cut");
}

/// rule: architecture.md, The keeper: The guard works also while the disk stands still
#[test]
fn the_guard_waits_for_no_log() {
    let temp = tempfile::tempdir().unwrap();
    let child = Spawned::shell("sleep 72; :", &["EXECD_INSTANCE=abc"]);
    let mut running = start(temp.path());
    let mut out = Vec::new();
    let start_ticks = proc::stat(child.pid).unwrap().start_ticks;
    push_guard_add(&mut out, GuardRecord { sid: child.pid, start_ticks, session: 1, whole: false });
    running.guard.write_all(&out).unwrap();
    // The log pipe stays open: its end is not what the guard waits for.
    let Running { log, ack, guard, keeper, watcher, .. } = running;
    drop(guard);
    assert_eq!(child.wait(), SIGKILL);
    watcher.join().unwrap().unwrap();
    drop((log, ack));
    keeper.join().unwrap().unwrap();
}

#[test]
fn nonsense_stops_it() {
    let temp = tempfile::tempdir().unwrap();
    let mut running = start(temp.path());
    running.log.write_all(&[9; 16]).unwrap();
    assert!(running.end().is_err());
    let mut running = start(temp.path());
    running.guard.write_all(&[9; 32]).unwrap();
    assert!(running.end().is_err());
}

#[test]
fn flags_are_read_or_refused() {
    let parse = |line: &str| parse(line.split_whitespace().map(OsString::from));
    let flags = parse(
        "--keeper --log-dir /x --log-keep-days 0 --log-max-bytes 9 --execd-pid 42 --instance 0af",
    )
    .unwrap();
    assert_eq!(flags.log_dir, Some(Wanted::Given("/x".into())));
    assert_eq!((flags.keep_days, flags.bounds.max_bytes, flags.execd_pid), (0, Some(9), 42));
    assert_eq!(flags.instance, "0af");
    let flags = parse("--no-log --execd-pid 42 --instance 0").unwrap();
    assert!(flags.log_dir.is_none() && !flags.guards);
    assert!(parse("--keeper --execd-pid 42 --instance 0 --guard").unwrap().guards);
    let bad = [
        "",
        "--execd-pid 42 --instance 0",
        "--guard --instance 0",
        "--guard --execd-pid 42",
        "--no-log --instance 0",
        "--no-log --execd-pid 42",
        "--no-log --execd-pid 42 --instance",
        "--no-log --execd-pid 42 --instance x",
        "--no-log --execd-pid 42 --instance= ",
        "--no-log --execd-pid x --instance 0",
        "--no-log --execd-pid 42 --instance 0 --more",
        "--no-log --execd-pid 42 --instance 0 more",
    ];
    for line in bad {
        assert!(parse(line).is_err(), "{line}");
    }
}
