//! Parts of a session's output, read from its log by offsets of the output, against a copy of all
//! that was written: over losses, kills of the log writer, bounds and files that vanish, the bytes
//! of all ranges plus all gaps that are told are exactly the output.
//!
//! Each history has a log writer of its own and real files. A limit on the size of files
//! (setrlimit(2)) is the disk that is full: writes go in as far as there is room and fail then. It
//! holds for the whole process, so each test here needs a process of its own, as nextest gives it.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use crate::common::data::Random;
use execd::keeper::frames::{Ack, Head, ReadRange, Reopen, Wanted};
use execd::keeper::range::{self, Range as Part};
use execd::keeper::writer::Writer;
use execd::pure::buffer::bound::Bounds;
use execd::pure::buffer::source::Source;
use execd::sys::log_files::LogDir;
use execd::sys::signals::ignore;

/// Histories of one test: all tests of one kind live through other ones.
const HISTORIES: u64 = 1_100;
/// Those of `make test-large`, in four tests; EXECD_LOG_HISTORIES has another number.
const MANY_HISTORIES: u64 = 1_000_000;
const BOTH: [Source; 2] = [Source::Output, Source::Errors];
const ALONE: [Option<Source>; 3] = [None, Some(Source::Output), Some(Source::Errors)];
/// After so many bytes they are the same again.
const PERIOD: usize = 65_521;
/// Most bytes that come at once.
const LONGEST: usize = 65_536;
/// Sent for a write beyond the limit.
const SIGXFSZ: i32 = 25;
/// What is kept of a log, where that is bounded.
const KEPT_BYTES: u64 = 512 * 1024;

/// The bytes of a stream by their places in the output: those of the other stream differ, and so do
/// those of places that are not far from each other.
fn pattern(source: Source) -> Vec<u8> {
    let byte_at = |at: usize| match (at * 7 + at / 251) % 31 {
        0 => b'\n',
        other => u8::try_from(64 + other + 128 * source as usize).expect("a byte"),
    };
    (0..PERIOD + LONGEST).map(|at| byte_at(at % PERIOD)).collect()
}

/// No file may become larger than this; `None`: as large as it likes.
fn limit_files(bytes: Option<u64>) {
    let most = bytes.unwrap_or(libc::RLIM_INFINITY);
    let limit = libc::rlimit { rlim_cur: most, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: setrlimit reads a live rlimit.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
    assert_eq!(set, 0, "the soft limit may be moved");
}

/// One session's log, and all that its streams had.
struct History {
    name: String,
    bounds: Bounds,
    writer: Writer,
    /// The output; each byte tells its place and its stream.
    output: Vec<u8>,
    streams: [Vec<u8>; 2],
    /// What the bytes of each stream are, by their places in the output.
    pattern: Rc<[Vec<u8>; 2]>,
    /// The latest that the log writer has said.
    ack: Ack,
    full: bool,
    /// The index may lack something that it could not be told, or the writer was killed before.
    unsure: bool,
}

fn open(dir: &Path, bounds: Bounds) -> Writer {
    Writer::new(Ok(LogDir::open(dir).expect("a directory")), bounds)
}

impl History {
    fn new(dir: &Path, name: String, bounds: Bounds, pattern: Rc<[Vec<u8>; 2]>) -> Self {
        let mut writer = open(dir, bounds);
        let ack = writer.open(1, &name);
        let (output, streams) = (Vec::new(), [Vec::new(), Vec::new()]);
        let (full, unsure) = (false, false);
        Self { name, bounds, writer, output, streams, pattern, ack, full, unsure }
    }

    fn hear(&mut self, ack: Option<Ack>) {
        for ack in ack.into_iter().chain(self.writer.take_told()) {
            self.ack = ack;
        }
    }

    /// The next bytes of a stream, as its session reads them.
    fn comes(&mut self, source: Source, length: usize) -> Vec<u8> {
        let from = self.output.len() % PERIOD;
        let bytes = self.pattern[source as usize][from..from + length].to_vec();
        self.output.extend_from_slice(&bytes);
        self.streams[source as usize].extend_from_slice(&bytes);
        bytes
    }

    fn data(&mut self, source: Source, length: usize) {
        let bytes = self.comes(source, length);
        let ack = self.writer.data(1, source, &bytes);
        self.hear(ack);
    }

    /// The log writer is killed, what was on its way to it is lost, and another goes on.
    fn kill(&mut self, dir: &Path, random: &mut Random) {
        for _ in 0..random.below(3) {
            let (source, length) = (BOTH[random.below(2)], random.below(40));
            self.comes(source, length);
        }
        let ack = self.ack;
        if !ack.named {
            // A new log writer cannot know that this file is somebody else's.
            fs::remove_file(dir.join(&self.name)).ok();
        }
        self.writer = open(dir, self.bounds);
        let known = Reopen {
            name: self.name.clone(),
            total: self.output.len() as u64,
            errors_total: self.streams[1].len() as u64,
            noted: ack.noted,
            from: ack.from,
            from_output: ack.from_output,
            truncated: ack.truncated && !ack.space,
        };
        let ack = self.writer.reopen(1, &known);
        self.hear(Some(ack));
    }

    fn step(&mut self, dir: &Path, random: &mut Random) {
        let path = dir.join(&self.name);
        match random.below(40) {
            0 => {
                // What stands in the log since its index was written may be lost with it.
                self.unsure |= self.full || self.ack.noted > 0;
                self.kill(dir, random);
            }
            1..=2 => {
                let ack = self.writer.sync(1, 1);
                self.hear(Some(ack));
                self.unsure |= self.full;
                self.kill(dir, random);
            }
            3 if !self.full => {
                let size = path.metadata().map_or(0, |found| found.len());
                limit_files(Some(size + random.below(300)));
                self.full = true;
            }
            3..=5 => {
                limit_files(None);
                self.full = false;
            }
            6 if !self.full && random.below(4) == 0 => {
                fs::remove_file(&path).ok();
                if random.below(2) == 0 {
                    fs::write(&path, "somebody else's\n").expect("room");
                }
                let ack = self.writer.sync(1, 1);
                self.hear(Some(ack));
            }
            7..=8 => {
                let ack = self.writer.sync(1, 1);
                self.hear(Some(ack));
            }
            9..=14 => self.writer.write_indexes(),
            15 => self.data(BOTH[random.below(2)], 2_000 + random.below(9_000)),
            _ => self.data(BOTH[random.below(2)], 1 + random.below(200)),
        }
    }

    fn expected(&self, only: Option<Source>) -> &[u8] {
        only.map_or(&self.output, |source| &self.streams[source as usize])
    }

    /// Reads while the log is written.
    fn live(&mut self, wanted: Wanted) -> Part {
        let asked = ReadRange { token: 7, wanted, name: self.name.clone() };
        let (ack, bytes) = self.writer.range(&asked);
        assert_eq!((ack.token, ack.errno), (7, 0), "{asked:?}");
        assert_eq!(ack.missing, bytes.len() as u64);
        let mut rest = bytes.as_slice();
        let head = Head::take(&mut rest).expect("a head");
        self.hear(None);
        Part { head, bytes: rest.to_vec() }
    }

    /// What is said of a range is true, and its bytes are the output's.
    fn check(&self, wanted: &Wanted, found: &Part) {
        let (all, head) = (self.expected(wanted.only), found.head);
        let total = all.len() as u64;
        let asked = match wanted.from {
            back @ ..0 => total.saturating_sub(back.unsigned_abs()),
            from => from.unsigned_abs().min(total),
        };
        let told = || format!("{wanted:?} {head:?} of {total} in {}", self.name);
        assert_eq!(head.to - head.from, found.bytes.len() as u64, "{}", told());
        assert!(head.to <= wanted.to.min(total).max(asked), "{}", told());
        assert!(head.known_total <= total && head.log_from <= total, "{}", told());
        let part =
            usize::try_from(head.from).expect("small")..usize::try_from(head.to).expect("small");
        assert!(found.bytes == all[part], "{}", told());
        let (lost_from, lost_to) = head.gap;
        assert!(lost_from <= lost_to && lost_to <= total, "{}", told());
        assert!(found.bytes.is_empty() || head.from >= head.log_from, "{}", told());
        assert!(found.bytes.len() as u64 <= wanted.max_bytes, "{}", told());
        assert!(head.from == lost_to.max(asked), "{}", told());
        assert!(lost_from == lost_to || lost_from == asked, "{}", told());
        // Each one leads on.
        assert!(head.to > asked || asked >= wanted.to.min(total) || wanted.max_bytes == 0);
    }

    fn random_wanted(&self, random: &mut Random) -> Wanted {
        let only = ALONE[random.below(3)];
        let total = self.expected(only).len() as u64;
        let at = random.below(total + 20);
        let from = if random.below(3) == 0 { -at.cast_signed() } else { at.cast_signed() };
        let to = if random.below(2) == 0 { u64::MAX } else { at + random.below(3_000) };
        let max_bytes = [1, 40, 700, 100_000][random.below(4)];
        Wanted { only, from, to, max_bytes, total: Some(total) }
    }

    /// Reads all of the output by ranges; gives how many bytes of it they had.
    fn sweep(&self, only: Option<Source>, most: u64, read: &mut dyn FnMut(Wanted) -> Part) -> u64 {
        let total = self.expected(only).len() as u64;
        let (mut at, mut had, most) = (0, 0, most.max(total / 20));
        while at < total {
            let wanted = Wanted {
                only,
                from: at.cast_signed(),
                to: u64::MAX,
                max_bytes: most,
                total: Some(total),
            };
            let found = read(wanted.clone());
            self.check(&wanted, &found);
            had += found.bytes.len() as u64;
            at = found.head.to;
        }
        had
    }

    /// The books say how much there is: neither more nor less is read.
    fn is_all(&self, had: u64, logged: u64, when: &str) {
        let Ack { noted, from, .. } = self.ack;
        // What is gone is output and lines of the log writer's own.
        let most = (logged + noted).saturating_sub(from).min(logged);
        let least = logged.saturating_sub(from);
        assert!((least..=most).contains(&had), "{had} in {} {when}: {:?}", self.name, self.ack);
    }

    /// Ends the session, and reads what there is of it then.
    fn end(mut self, dir: &Path, random: &mut Random) {
        let most = [50, 1_000, 100_000][random.below(3)];
        let logged = self.writer.sync(1, 2).logged;
        self.hear(None);
        for only in ALONE {
            let mut live = std::mem::replace(&mut self.writer, Writer::new(Err(2), self.bounds));
            let name = self.name.clone();
            let had = self.sweep(only, most, &mut |wanted| {
                let asked = ReadRange { token: 7, wanted, name: name.clone() };
                let (_, bytes) = live.range(&asked);
                let mut rest = bytes.as_slice();
                let head = Head::take(&mut rest).expect("a head");
                Part { head, bytes: rest.to_vec() }
            });
            self.writer = live;
            if only.is_none() && !self.unsure {
                self.is_all(had, logged, "while it is written");
            }
        }
        self.writer.close(1);
        let dir = LogDir::open(dir).expect("a directory");
        let mut read = |wanted: Wanted| match range::read(&dir, &self.name, &wanted) {
            Ok(found) => found,
            // The log is gone, or has an index no more that told its streams apart.
            Err(errno) => {
                assert!(errno == 2 && wanted.only.is_some(), "{errno} {wanted:?} {}", self.name);
                let total = wanted.total.expect("a total");
                let head = Head { from: total, to: total, ..Head::default() };
                let gap = (wanted.from.unsigned_abs(), total);
                Part { head: Head { gap, ..head }, bytes: Vec::new() }
            }
        };
        for only in ALONE {
            let had = self.sweep(only, most, &mut read);
            if only.is_none() && !self.unsure && !self.full {
                self.is_all(had, logged, "after its end");
            }
        }
        for _ in 0..3 {
            let wanted = self.random_wanted(random);
            if let Ok(found) = range::read(&dir, &self.name, &wanted) {
                self.check(&wanted, &found);
            }
        }
    }
}

/// Lives through the histories of these numbers; gives how many of their logs have lost their
/// oldest bytes to their bound.
fn histories(dir: &Path, numbers: Range<u64>, seed: u64, every: u64) -> u64 {
    ignore(SIGXFSZ);
    let mut trimmed = 0;
    let pattern = Rc::new(BOTH.map(pattern));
    for number in numbers {
        let mut random = Random(seed ^ number.wrapping_mul(0x9e37_79b9));
        let max_bytes = (random.below(8) == 0).then(|| 1 + random.below(3_000));
        let keep_bytes = (random.below(every) == 0).then_some(KEPT_BYTES);
        let bounds = Bounds { max_bytes, keep_bytes, total_bytes: None };
        let mut history =
            History::new(dir, format!("execd-{number}-0123abcd.log"), bounds, pattern.clone());
        let many = keep_bytes.is_some() && random.below(8) == 0;
        for _ in 0..5 + random.below(30) {
            history.step(dir, &mut random);
            if many {
                history.data(BOTH[random.below(2)], 20_000 + random.below(40_000));
            }
            if random.below(4) == 0 {
                let wanted = history.random_wanted(&mut random);
                let found = history.live(wanted.clone());
                history.check(&wanted, &found);
            }
        }
        trimmed += u64::from(history.ack.from > 0);
        history.end(dir, &mut random);
        limit_files(None);
        for file in fs::read_dir(dir).expect("a directory") {
            fs::remove_file(file.expect("a file").path()).expect("a file of ours");
        }
    }
    trimmed
}

/// Lives through one third of the histories of `make test`.
fn a_third(number: u64) {
    let temp = tempfile::tempdir().expect("a directory");
    let numbers = number * HISTORIES..(number + 1) * HISTORIES;
    let trimmed = histories(temp.path(), numbers, 0x2545_f491_4f6c_dd1d, 4);
    assert!(trimmed > HISTORIES / 200, "{trimmed} logs have lost their beginning");
}

/// rule: logs.md, Reading: A gap is what the log has lost at its beginning, or what never got there
/// rule: logs.md, Reading: Offsets never change and are never used again
/// rule: logs.md, Reading: `log_from` is the first byte that is left
/// rule: bash-stream.md, The stream family: The index of a log holds over restarts of the log
///   writer
/// rule: bash-stream.md, The index of a log: records of 16 bytes, one for each change of the stream
#[test]
fn ranges_and_gaps_together_are_all_that_was_written() {
    a_third(0);
}

#[test]
fn ranges_and_gaps_together_are_all_in_more_histories() {
    a_third(1);
}

#[test]
fn ranges_and_gaps_together_are_all_in_other_histories() {
    a_third(2);
}

/// Some of an index went in where the disk was full, in front of some of what stood there before:
/// together they told of bytes at places where those never stood.
/// rule: logs.md, Full disks: What was lost is a gap of `read_output`, and nothing else is
#[test]
fn what_goes_in_by_half_is_taken_back() {
    ignore(SIGXFSZ);
    let temp = tempfile::tempdir().expect("a directory");
    let dir = LogDir::open(temp.path()).expect("a directory");
    let index = dir.write_index("a", true).expect("a file");
    index.write_at(&[1; 300], 0).expect("room");
    for (most, from, left) in [(100_u64, 200_u64, 300_u16), (300, 200, 200), (9, 0, 0)] {
        limit_files(Some(most));
        assert_eq!(index.write_at(&[2; 300], from), Err(libc::EFBIG));
        limit_files(None);
        assert_eq!(index.size(), Ok(left.into()));
        let mut bytes = [0; 300];
        assert_eq!(index.read_at(&mut bytes, 0), Ok(left.into()));
        assert!(bytes[..left.into()].iter().all(|byte| *byte == 1), "{left}");
    }
}

/// Lives through one quarter of the histories of `make test-large`.
fn a_quarter(number: u64) {
    let temp = tempfile::tempdir().expect("a directory");
    let wanted = std::env::var("EXECD_LOG_HISTORIES").ok().map(|text| text.parse());
    let count = wanted.map_or(MANY_HISTORIES, |wanted| wanted.expect("a number")).div_ceil(4);
    let numbers = number * count..(number + 1) * count;
    let trimmed = histories(temp.path(), numbers, 0x0123_4567_89ab_cdef, 4);
    assert!(trimmed > count / 200, "{trimmed} logs have lost their beginning");
}

#[test]
#[ignore = "takes minutes; ranges_and_gaps_together is the same with fewer histories"]
fn ranges_and_gaps_of_a_million_histories_the_first_quarter() {
    a_quarter(0);
}

#[test]
#[ignore = "takes minutes; ranges_and_gaps_together is the same with fewer histories"]
fn ranges_and_gaps_of_a_million_histories_the_second_quarter() {
    a_quarter(1);
}

#[test]
#[ignore = "takes minutes; ranges_and_gaps_together is the same with fewer histories"]
fn ranges_and_gaps_of_a_million_histories_the_third_quarter() {
    a_quarter(2);
}

#[test]
#[ignore = "takes minutes; ranges_and_gaps_together is the same with fewer histories"]
fn ranges_and_gaps_of_a_million_histories_the_last_quarter() {
    a_quarter(3);
}
