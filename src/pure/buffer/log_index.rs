//! The index of a log: which of its bytes are whose, and where some are missing.
//!
//! It is a row of blocks of `LOG_INDEX_BLOCK_BYTES`, of which only the last may be shorter. Each
//! tells by itself where it begins, so that one that is wanted is found by halves. Integers are
//! little-endian.
//!
//! | bytes of a block | what |
//! |---|---|
//! | 0–3 | `ELX2` |
//! | 4 | its form: 0 runs, 1 bits |
//! | 5 | 0; of bits: how many of the last byte's count, 1 to 8 |
//! | 6–7 | bytes behind the head |
//! | 8–15 | where in the log it begins |
//! | 16–23, 24–31 | the bytes of stdout, and of stderr, that came before |
//! | 32–39 | the bytes of the log that the log writer wrote before that about itself |
//! | 40– | runs or bits |
//!
//! **Runs** are numbers in LEB128. An even one is twice the length of a run of the log's bytes: of
//! the other stream than the run before it in its block, the first one of stdout; a length of 0
//! only changes the stream. An odd one is four times a number of the log's bytes and 1, or 3; then
//! come a number of bytes of stdout, one of stderr, and how many of the log's bytes are the log
//! writer's own. With 1 it is a skip: the index knows no more than that those bytes of the streams
//! are somewhere in those bytes of the log, or missing from it. What the log writer says of itself
//! in the log is a skip that has nothing of either stream. With 3 it is a mix: the log has the
//! first of those bytes of the streams, in the order in which they came, though not known which of
//! them are whose; the others are missing.
//!
//! **Bits**: one for each byte of the log, the lowest of each byte first; 1 is stderr. A block of
//! runs that is full before it tells of eight times as many bytes of the log becomes one of bits.
//! So the index takes an eighth of its log at most, however finely the streams alternate.

use crate::limits::{LOG_INDEX_BLOCK_BYTES, LOG_INDEX_HEAD_BYTES};
use crate::pure::buffer::source::Source;

const MAGIC: [u8; 4] = *b"ELX2";
const RUNS: u8 = 0;
const BITS: u8 = 1;
const SKIP: u64 = 1;
const MIX: u64 = 3;
/// Bytes of a block behind its head.
const ROOM_BYTES: usize = LOG_INDEX_BLOCK_BYTES - LOG_INDEX_HEAD_BYTES;
/// Bytes of the log that a block of bits tells of.
const ROOM_BITS: usize = 8 * ROOM_BYTES;
/// Bytes of the longest number, and of the longest run, skip or mix.
const NUMBER_BYTES: usize = 10;
const RUN_BYTES: usize = 4 * NUMBER_BYTES;

/// A place in a log, and how far its streams have come there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Bytes of the log before it.
    pub file: u64,
    /// Bytes of stdout and of stderr before it, logged or not.
    pub streams: [u64; 2],
    /// Bytes of the log before it that the log writer wrote about itself.
    pub own: u64,
}

/// What comes next in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// So many bytes of this stream.
    Of(Source, u64),
    /// So many bytes of the log, and of the streams, of which no more is known.
    Skip(Marks),
    /// So many bytes of the log, which are the first of so many bytes of the streams, in the order
    /// in which these came. Which of them are whose is not known.
    Mix(Marks),
}

impl Marks {
    /// The place behind `run`.
    #[must_use]
    pub fn behind(self, run: Run) -> Self {
        let step = run.step();
        Self {
            file: self.file.saturating_add(step.file),
            streams: [0, 1].map(|at| self.streams[at].saturating_add(step.streams[at])),
            own: self.own.saturating_add(step.own),
        }
    }

    /// How far the output has come: both streams, or the one that is asked for alone.
    pub fn of(self, only: Option<Source>) -> u64 {
        match only {
            Some(source) => self.streams[source as usize],
            None => self.streams[0].saturating_add(self.streams[1]),
        }
    }

    /// What lies between `earlier` and here.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            file: self.file.saturating_sub(earlier.file),
            streams: [0, 1].map(|at| self.streams[at].saturating_sub(earlier.streams[at])),
            own: self.own.saturating_sub(earlier.own),
        }
    }
}

impl Run {
    /// What the log writer wrote about itself.
    pub const fn note(bytes: u64) -> Self {
        Self::Skip(Marks { file: bytes, streams: [0, 0], own: bytes })
    }

    /// So many bytes of a stream that are missing from the log.
    pub fn missing(source: Source, bytes: u64) -> Self {
        let mut streams = [0, 0];
        streams[source as usize] = bytes;
        Self::Skip(Marks { streams, ..Marks::default() })
    }

    /// How many bytes of the output, or of the stream that is asked for alone, the log is known to
    /// have from where this run begins.
    pub fn logged(self, only: Option<Source>) -> u64 {
        match self {
            Self::Of(source, bytes) if only.is_none_or(|one| one == source) => bytes,
            Self::Mix(marks) if only.is_none() => marks.file.min(marks.of(None)),
            _ => 0,
        }
    }

    fn step(self) -> Marks {
        match self {
            Self::Of(source, bytes) => {
                let mut streams = [0, 0];
                streams[source as usize] = bytes;
                Marks { file: bytes, streams, own: 0 }
            }
            Self::Skip(marks) | Self::Mix(marks) => marks,
        }
    }

    /// Both as one, where they are of one kind.
    fn joined(self, next: Self) -> Option<Self> {
        match (self, next) {
            (Self::Of(source, bytes), Self::Of(other, more)) if source == other => {
                Some(Self::Of(source, bytes.saturating_add(more)))
            }
            (Self::Skip(marks), Self::Skip(_)) => Some(Self::Skip(marks.behind(next))),
            _ => None,
        }
    }
}

/// The part of an index that is being written.
#[derive(Clone, Debug)]
pub struct Block {
    from: Marks,
    to: Marks,
    /// What stands behind the head, but for `open`.
    payload: Vec<u8>,
    form: Form,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Runs {
        /// The stream of the last run in the payload.
        last: Source,
        /// The newest one, which may still get longer.
        open: Option<Run>,
        /// Whether it tells only what bits can tell.
        plain: bool,
    },
    Bits {
        used: usize,
    },
}

impl Form {
    const fn empty() -> Self {
        Self::Runs { last: Source::Errors, open: None, plain: true }
    }
}

impl Block {
    /// A block that begins here.
    pub const fn new(from: Marks) -> Self {
        Self { from, to: from, payload: Vec::new(), form: Form::empty() }
    }

    /// Where it begins.
    pub const fn from(&self) -> Marks {
        self.from
    }

    /// Where it ends.
    pub const fn to(&self) -> Marks {
        self.to
    }

    /// Whether it tells of nothing but bytes that are in the log, in their order.
    pub fn is_plain(&self) -> bool {
        match self.form {
            Form::Runs { plain, .. } => plain,
            Form::Bits { .. } => true,
        }
    }

    /// Takes in what comes next. Gives what it has no room for: then it is full.
    pub fn push(&mut self, run: Run) -> Option<Run> {
        if run.step() == Marks::default() {
            return None;
        }
        let rest = match self.form {
            Form::Runs { .. } => self.push_run(run),
            Form::Bits { .. } => self.push_bits(run),
        };
        self.to = match (run, rest) {
            (_, None) => self.to.behind(run),
            (Run::Of(source, bytes), Some(Run::Of(_, left))) => {
                self.to.behind(Run::Of(source, bytes - left))
            }
            _ => self.to,
        };
        rest
    }

    fn push_run(&mut self, run: Run) -> Option<Run> {
        let Form::Runs { last, open, plain } = &mut self.form else { return Some(run) };
        if let Some(joined) = open.and_then(|open| open.joined(run)) {
            *open = Some(joined);
            return None;
        }
        if let Some(done) = open.take() {
            encode(&mut self.payload, last, done);
        }
        if self.payload.len() + RUN_BYTES <= ROOM_BYTES {
            *open = Some(run);
            *plain &= matches!(run, Run::Of(..));
            return None;
        }
        let told = self.to.file - self.from.file;
        if !*plain || told >= ROOM_BITS as u64 || !matches!(run, Run::Of(..)) {
            return Some(run);
        }
        let mut bits = Self { to: self.from, form: Form::Bits { used: 0 }, ..Self::new(self.from) };
        for run in decode_runs(&self.payload) {
            bits.push_bits(run);
        }
        (self.payload, self.form) = (bits.payload, bits.form);
        self.push_bits(run)
    }

    fn push_bits(&mut self, run: Run) -> Option<Run> {
        let (Form::Bits { used }, Run::Of(source, bytes)) = (&mut self.form, run) else {
            return Some(run);
        };
        let room = ROOM_BITS - *used;
        let taken = usize::try_from(bytes).unwrap_or(room).min(room);
        self.payload.resize((*used + taken).div_ceil(8), 0);
        if source == Source::Errors {
            for at in *used..*used + taken {
                self.payload[at / 8] |= 1 << (at % 8);
            }
        }
        *used += taken;
        let left = bytes - taken as u64;
        (left > 0).then_some(Run::Of(source, left))
    }

    /// Its bytes as they lie on the disk.
    pub fn bytes(&self) -> Vec<u8> {
        let mut payload = self.payload.clone();
        let (form, last_bits) = match self.form {
            Form::Runs { mut last, open, .. } => {
                if let Some(open) = open {
                    encode(&mut payload, &mut last, open);
                }
                (RUNS, 0)
            }
            Form::Bits { used } => (BITS, used - 8 * payload.len().saturating_sub(1)),
        };
        let length = u16::try_from(payload.len()).unwrap_or(u16::MAX);
        let mut out = Vec::with_capacity(LOG_INDEX_HEAD_BYTES + payload.len());
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[form, u8::try_from(last_bits).unwrap_or(8)]);
        out.extend_from_slice(&length.to_le_bytes());
        let Marks { file, streams: [out_bytes, err_bytes], own } = self.from;
        for mark in [file, out_bytes, err_bytes, own] {
            out.extend_from_slice(&mark.to_le_bytes());
        }
        out.extend_from_slice(&payload);
        out
    }
}

fn encode(out: &mut Vec<u8>, last: &mut Source, run: Run) {
    match run {
        Run::Of(source, bytes) => {
            if source == *last {
                push_number(out, 0);
            }
            *last = source;
            push_number(out, bytes << 1);
        }
        Run::Skip(marks) | Run::Mix(marks) => {
            let kind = if matches!(run, Run::Skip(_)) { SKIP } else { MIX };
            push_number(out, marks.file << 2 | kind);
            push_number(out, marks.streams[0]);
            push_number(out, marks.streams[1]);
            push_number(out, marks.own);
        }
    }
}

fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(u8::try_from(number & 0x7f).unwrap_or(0) | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap_or(0));
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for at in 0..NUMBER_BYTES {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f).checked_shl(u32::try_from(7 * at).ok()?)?;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// A block as it was read. What makes no sense in it is its end.
#[derive(Clone, Copy, Debug)]
pub struct Parsed<'a> {
    from: Marks,
    payload: &'a [u8],
    /// Of bits: how many.
    bits: Option<usize>,
}

/// Where a block begins, from its head.
pub fn begins_at(head: &[u8]) -> Option<Marks> {
    let number = |at: usize| {
        let bytes = head.get(at..at + 8)?.try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    };
    let known = head.starts_with(&MAGIC);
    let (file, streams) = (number(8)?, [number(16)?, number(24)?]);
    let marks = Marks { file, streams, own: number(32)? };
    known.then_some(marks)
}

impl<'a> Parsed<'a> {
    /// Reads a block.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let from = begins_at(bytes)?;
        let length = usize::from(u16::from_le_bytes([*bytes.get(6)?, *bytes.get(7)?]));
        let payload = bytes.get(LOG_INDEX_HEAD_BYTES..LOG_INDEX_HEAD_BYTES + length)?;
        let last_bits = usize::from(*bytes.get(5)?);
        let bits = match *bytes.get(4)? {
            RUNS => None,
            BITS if payload.is_empty() => Some(0),
            BITS if (1..=8).contains(&last_bits) => Some(8 * (length - 1) + last_bits),
            _ => return None,
        };
        Some(Self { from, payload, bits })
    }

    /// Where it begins.
    pub const fn from(&self) -> Marks {
        self.from
    }

    /// Where it ends.
    pub fn to(&self) -> Marks {
        self.runs().fold(self.from, Marks::behind)
    }

    /// What is in it.
    pub fn runs(&self) -> Box<dyn Iterator<Item = Run> + 'a> {
        match self.bits {
            None => Box::new(decode_runs(self.payload)),
            Some(bits) => Box::new(decode_bits(self.payload, bits)),
        }
    }
}

fn decode_runs(mut bytes: &[u8]) -> impl Iterator<Item = Run> {
    let mut last = Source::Errors;
    std::iter::from_fn(move || {
        loop {
            let number = take_number(&mut bytes)?;
            if number & 1 == 1 {
                let streams = [take_number(&mut bytes)?, take_number(&mut bytes)?];
                let marks = Marks { file: number >> 2, streams, own: take_number(&mut bytes)? };
                return Some(if number & 3 == MIX { Run::Mix(marks) } else { Run::Skip(marks) });
            }
            last = last.other();
            if number > 0 {
                return Some(Run::Of(last, number >> 1));
            }
        }
    })
}

fn decode_bits(bytes: &[u8], bits: usize) -> impl Iterator<Item = Run> {
    let is_set = |at: usize| bytes.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1);
    let mut at = 0;
    std::iter::from_fn(move || {
        let (from, set) = (at, is_set(at));
        while at < bits && is_set(at) == set {
            at += 1;
        }
        let source = if set { Source::Errors } else { Source::Output };
        (at > from).then(|| Run::Of(source, (at - from) as u64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::tests_random::Random;

    /// Pushes runs into blocks; gives their bytes.
    fn written(runs: &[Run]) -> Vec<Vec<u8>> {
        let (mut block, mut full) = (Block::new(Marks::default()), Vec::new());
        for run in runs {
            let mut rest = Some(*run);
            while let Some(run) = rest.take() {
                rest = block.push(run);
                if rest.is_some() {
                    full.push(block.bytes());
                    block = Block::new(block.to());
                }
            }
        }
        full.push(block.bytes());
        assert!(full.iter().all(|one| one.len() <= LOG_INDEX_BLOCK_BYTES));
        full
    }

    /// What the blocks tell, joined.
    fn read(blocks: &[Vec<u8>]) -> Vec<Run> {
        let (mut all, mut at) = (Vec::<Run>::new(), Marks::default());
        for bytes in blocks {
            let block = Parsed::new(bytes).expect("a block");
            assert_eq!(block.from(), at, "blocks adjoin");
            for run in block.runs() {
                match all.last().and_then(|last| last.joined(run)) {
                    Some(joined) => *all.last_mut().expect("one") = joined,
                    None => all.push(run),
                }
            }
            at = block.to();
        }
        all
    }

    fn joined(runs: &[Run]) -> Vec<Run> {
        runs.iter().filter(|run| run.step() != Marks::default()).fold(vec![], |mut all, run| {
            match all.last().and_then(|last: &Run| last.joined(*run)) {
                Some(joined) => *all.last_mut().expect("one") = joined,
                None => all.push(*run),
            }
            all
        })
    }

    #[test]
    fn what_is_pushed_is_read_however_it_comes() {
        let mut random = Random(0x2545_f491_4f6c_dd1d);
        for (longest, skips) in [(2, 0), (3, 300), (9, 0), (40, 50), (1 << 40, 10), (100_000, 0)] {
            let runs: Vec<Run> = (0..30_000)
                .map(|_| match random.below(1_000) {
                    at if at < skips => {
                        let (file, own) = (random.below(50), random.below(9));
                        let marks =
                            Marks { file, streams: [random.below(3), random.below(longest)], own };
                        if at % 5 == 0 { Run::Mix(marks) } else { Run::Skip(marks) }
                    }
                    at => {
                        let source = if at % 2 == 0 { Source::Output } else { Source::Errors };
                        Run::Of(source, random.below(longest))
                    }
                })
                .collect();
            assert_eq!(read(&written(&runs)), joined(&runs), "{longest} {skips}");
        }
    }

    /// A byte of the one stream and one of the other would have made an index as long as its log.
    /// rule: bash-stream.md, The stream family: The index of a log with two streams: none for one
    ///   stream, an eighth of the log at most
    #[test]
    fn streams_that_alternate_finely_cost_an_eighth_of_the_log() {
        for length in [1, 2, 5, 8, 20] {
            let runs: Vec<Run> = (0..400_000 / length)
                .map(|at| if at % 2 == 0 { Source::Output } else { Source::Errors })
                .map(|source| Run::Of(source, length))
                .collect();
            let blocks = written(&runs);
            let bytes: usize = blocks.iter().map(Vec::len).sum();
            let most = 400_000 / 8 * 102 / 100 + LOG_INDEX_BLOCK_BYTES;
            assert!(bytes <= most, "{bytes} bytes for runs of {length}");
            assert_eq!(read(&blocks), joined(&runs));
        }
    }

    #[test]
    fn what_makes_no_sense_is_the_end_and_never_a_panic() {
        let runs: Vec<Run> = (1..3_000)
            .map(|at| {
                if at % 2 == 0 {
                    Run::Of(Source::Output, at)
                } else {
                    Run::Skip(Marks { file: at, streams: [0, at], own: 0 })
                }
            })
            .collect();
        let blocks = written(&runs);
        let mut random = Random(7);
        for _ in 0..3_000 {
            let mut bytes = blocks[0].clone();
            bytes.truncate(usize::try_from(random.below(bytes.len() as u64)).unwrap());
            for _ in 0..random.below(4) {
                let at = usize::try_from(random.below(bytes.len().max(1) as u64)).unwrap();
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = u8::try_from(random.below(256)).unwrap();
                }
            }
            if let Some(block) = Parsed::new(&bytes) {
                assert!(block.runs().count() <= 8 * LOG_INDEX_BLOCK_BYTES);
                let _ = block.to();
            }
        }
        assert!(Parsed::new(&[]).is_none() && begins_at(b"ELX2").is_none());
    }
}
