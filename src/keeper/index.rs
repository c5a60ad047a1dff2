//! The index of a log: which of its bytes are whose, and which bytes of the output it lacks.
//!
//! It is a row of records of 16 bytes, two little-endian numbers of 56 bits. The highest byte of
//! both says what the record is, an ASCII letter.
//!
//! | record | first number | second number |
//! |---|---|---|
//! | `o`, `e`, `m`, `l`, `.`, `?` | bytes of stdout before it | bytes of stderr before it |
//! | `p` | where in the log that is | bytes before that which the log writer wrote about itself |
//!
//! From such a mark to the next one the log has stdout (`o`), stderr (`e`), or both though not
//! known which byte is whose (`m`: as many bytes as lie between the two places, in the order in
//! which they came; the rest is missing); or it lacks all of it (`l`). A mark that stands in the
//! log where the bytes of both streams together say, with nothing of the log writer's own before
//! it, stands alone; any other has its `p` in front. The last mark is the end, `.`; or `?` while
//! more than output may follow in the file: lines of the log writer's own, or what somebody else
//! has put in its place.
//!
//! All numbers are absolute: a mark is found by halves, by a place in the log or an offset of the
//! output or of one stream, and a part of the index that is damaged or given back to the disk costs
//! no more than the separation of the streams there. A log has an index from the first byte of its
//! second stream on, or from where it first lacks something: until then there is nothing to tell.
//! The index keeps an eighth of what is kept of its log; where the streams alternate more finely,
//! its oldest part goes first.

mod read;

use crate::limits::LOG_BLOCK_BYTES;
use crate::pure::buffer::source::Source;
use crate::sys::beside_files::PlacedFile;
use crate::sys::log_files::LogDir;
use read::{Last, MarkReader, last_mark};
pub(super) use read::{Records, Run, is_broken};

/// Bytes of records that wait to be written; where more do, what they tell is forgotten.
const LOG_INDEX_QUEUE_BYTES: usize = 64 * 1024;

/// The index of a log keeps so many bytes at most: this part of what is kept of its log.
const LOG_INDEX_PARTS: u64 = 8;

/// Bytes of a record.
const RECORD_BYTES: u64 = 16;
const RECORD_SIZE: usize = 16;
/// The letter of a record that tells a place.
const PLACE: u8 = b'p';
/// The bits of a number beside its letter.
const NUMBER_BITS: u32 = 56;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;
/// What goes of an index at a time where it is too long, as a part of what it keeps.
const BOUND_STEPS: u64 = 16;

/// A place in a log, and how far its streams have come there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// Bytes of the log before it.
    pub(super) file: u64,
    /// Bytes of stdout and of stderr before it, logged or not.
    streams: [u64; 2],
    /// Bytes of the log before it that the log writer wrote about itself.
    own: u64,
}

impl Marks {
    /// How far the output has come: both streams, or the one that is asked for alone.
    pub(super) fn of(&self, only: Option<Source>) -> u64 {
        match only {
            Some(source) => self.streams[source as usize],
            None => self.streams[0].saturating_add(self.streams[1]),
        }
    }

    fn is_at_or_before(&self, other: &Self) -> bool {
        let streams = self.streams[0] <= other.streams[0] && self.streams[1] <= other.streams[1];
        streams && self.file <= other.file && self.own <= other.own
    }
}

/// What the log has from a mark on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Output,
    Errors,
    Mixed,
    Lost,
    End,
    Unsure,
}

impl Kind {
    const ALL: [(Self, u8); 6] = [
        (Self::Output, b'o'),
        (Self::Errors, b'e'),
        (Self::Mixed, b'm'),
        (Self::Lost, b'l'),
        (Self::End, b'.'),
        (Self::Unsure, b'?'),
    ];

    const fn of(source: Source) -> Self {
        match source {
            Source::Output => Self::Output,
            Source::Errors => Self::Errors,
        }
    }

    fn letter(self) -> u8 {
        Self::ALL.into_iter().find(|(kind, _)| *kind == self).map_or(b'?', |(_, letter)| letter)
    }

    const fn is_end(self) -> bool {
        matches!(self, Self::End | Self::Unsure)
    }
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Record {
    Place {
        file: u64,
        own: u64,
    },
    Mark(Kind, [u64; 2]),
    /// It was given back to the disk.
    Hole,
    /// It makes no sense.
    Nonsense,
}

impl Record {
    fn decode(bytes: &[u8]) -> Self {
        let number = |from: usize| {
            let bytes = bytes[from..from + 7].iter().rev();
            bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
        };
        let (letter, first, second) = (bytes[7], number(0), number(8));
        match Kind::ALL.into_iter().find(|(_, of_kind)| *of_kind == letter) {
            _ if bytes[15] != letter => Self::Nonsense,
            Some((kind, _)) => Self::Mark(kind, [first, second]),
            None if letter == PLACE => Self::Place { file: first, own: second },
            None if letter == 0 && first == 0 && second == 0 => Self::Hole,
            None => Self::Nonsense,
        }
    }
}

/// Appends a mark, and its place where that has to be told.
fn push_mark(out: &mut Vec<u8>, kind: Kind, marks: &Marks) {
    let mut push = |letter: u8, first: u64, second: u64| {
        for number in [first, second] {
            let number = number & NUMBER_MASK | u64::from(letter) << NUMBER_BITS;
            out.extend_from_slice(&number.to_le_bytes());
        }
    };
    if marks.own > 0 || marks.file != marks.of(None) {
        push(PLACE, marks.file, marks.own);
    }
    push(kind.letter(), marks.streams[0], marks.streams[1]);
}

/// The index of one log, as its writer has it.
#[derive(Debug)]
pub(super) struct Index {
    file: Option<PlacedFile>,
    /// What an earlier log of this name had is not continued.
    fresh: bool,
    /// Bytes of the file before the end.
    written: u64,
    /// The end that stands behind them.
    written_end: Vec<u8>,
    /// Records that the file does not have.
    newer: Vec<u8>,
    /// What comes without another mark.
    kind: Option<Kind>,
    end: Marks,
    /// Bytes that it keeps; `None`: all.
    bound: Option<u64>,
    /// Bytes at its beginning that were given back to the disk.
    given_back: u64,
    /// It can give nothing back, and tells the streams apart no more.
    is_full: bool,
    /// Something was noted since it was last looked whether there is something to write.
    noted: bool,
    /// There is something that the file does not have.
    stale: bool,
    /// It tells of something else than bytes that are in the log, in their order.
    told: bool,
    /// Its log was lost: what the file tells is of that one, as long as it is not overwritten.
    lost: bool,
}

impl Index {
    /// The index of a new log, of which so many bytes are kept.
    pub(super) fn new(kept_bytes: Option<u64>) -> Self {
        Self {
            file: None,
            fresh: true,
            written: 0,
            written_end: Vec::new(),
            newer: Vec::new(),
            kind: None,
            end: Marks::default(),
            bound: kept_bytes.map(|bytes| (bytes / LOG_INDEX_PARTS).max(LOG_BLOCK_BYTES)),
            given_back: 0,
            is_full: false,
            noted: false,
            stale: false,
            told: false,
            lost: false,
        }
    }

    /// The index of a log that begins when its streams have come so far.
    pub(super) fn anew(kept_bytes: Option<u64>, streams: [u64; 2]) -> Self {
        let mut index = Self::new(kept_bytes);
        index.missing(Source::Output, streams[0]);
        index.missing(Source::Errors, streams[1]);
        index
    }

    /// The index of a log that an earlier log writer wrote, of `size` bytes by now, of which `own`
    /// are what log writers wrote about themselves, and of whose streams `streams` have come.
    pub(super) fn again(
        (dir, log): (&LogDir, &str),
        kept_bytes: Option<u64>,
        size: u64,
        own: u64,
        streams: [u64; 2],
    ) -> Self {
        let end = Marks { file: size, streams, own };
        let mut index = Self::new(kept_bytes);
        let last = dir.read_index(log).and_then(|file| last_mark(&file)).ok().flatten();
        let mut whole = own == 0;
        match last.filter(|last| last.marks.is_at_or_before(&end)) {
            Some(Last { kind, marks, at, behind }) => {
                (index.fresh, index.told, index.end) = (false, true, marks);
                index.written = if kind.is_end() { at } else { behind };
                if kind.is_end() {
                    push_mark(&mut index.written_end, kind, &marks);
                }
                whole = marks.own == own && kind != Kind::Unsure;
            }
            // The log has become shorter, or is another one.
            None => whole &= last.is_none(),
        }
        let left = [0, 1].map(|at| streams[at] - index.end.streams[at]);
        let logged = size - index.end.file;
        // Without a line of its own in between, the log has the first of what came: behind a loss
        // there is nothing but such a line.
        if whole && logged <= left[0].saturating_add(left[1]) {
            match left {
                [_, 0] => index.logged(Source::Output, logged),
                [0, _] => index.logged(Source::Errors, logged),
                _ => {
                    index.begin(Kind::Mixed);
                    index.end.file += logged;
                    // Some of them may be missing: what comes is no part of this.
                    (index.end.streams, index.kind) = (streams, None);
                }
            }
        }
        for source in [Source::Output, Source::Errors] {
            index.missing(source, streams[source as usize] - index.end.of(Some(source)));
        }
        if index.end != end {
            // Lines of an earlier log writer's own are somewhere in what it does not know.
            index.begin(Kind::Lost);
            (index.kind, index.end) = (None, end);
        }
        index
    }

    fn begin(&mut self, kind: Kind) {
        (self.noted, self.stale) = (true, true);
        if self.kind == Some(kind) {
            return;
        }
        if self.newer.len() >= LOG_INDEX_QUEUE_BYTES {
            self.forget();
        }
        push_mark(&mut self.newer, kind, &self.end);
        self.kind = Some(kind);
    }

    /// So many bytes of a stream were appended to the log.
    pub(super) fn logged(&mut self, source: Source, bytes: u64) {
        if bytes > 0 {
            self.begin(if self.is_full { Kind::Mixed } else { Kind::of(source) });
            self.go_on(bytes, source, bytes);
        }
    }

    /// So many bytes of a stream are missing from the log.
    pub(super) fn missing(&mut self, source: Source, bytes: u64) {
        if bytes > 0 {
            self.begin(Kind::Lost);
            self.go_on(0, source, bytes);
            self.told = true;
        }
    }

    /// The log writer has appended so many bytes about itself.
    pub(super) fn own(&mut self, bytes: u64) {
        if bytes > 0 {
            self.end.file = self.end.file.saturating_add(bytes);
            self.end.own = self.end.own.saturating_add(bytes);
            (self.kind, self.noted, self.stale, self.told) = (None, true, true, true);
        }
    }

    fn go_on(&mut self, logged: u64, source: Source, bytes: u64) {
        self.end.file = self.end.file.saturating_add(logged);
        let stream = &mut self.end.streams[source as usize];
        *stream = stream.saturating_add(bytes);
    }

    /// Tells all that is not written yet as one.
    fn forget(&mut self) {
        let mut marks = MarkReader::default();
        let first = self.newer.chunks_exact(RECORD_SIZE).map(Record::decode);
        let Some((_, from)) = first.filter_map(|record| marks.take(record)).next() else { return };
        let end = self.end;
        let plain = end.own == from.own && end.file - from.file == end.of(None) - from.of(None);
        self.newer.clear();
        push_mark(&mut self.newer, if plain { Kind::Mixed } else { Kind::Lost }, &from);
        (self.kind, self.told) = (None, true);
    }

    /// The log is gone, and another one begins under its name: what came is missing from that.
    pub(super) fn begin_anew(&mut self) {
        let bound = self.bound;
        *self = Self { lost: true, bound, ..Self::anew(None, self.end.streams) };
    }

    /// A line of the log writer's own is about to be written: the log is not read without its index
    /// from now on, so that has to tell all that was before, and that more may follow. Errors:
    /// those of the file.
    pub(super) fn before_note(&mut self, dir: &LogDir, log: &str) -> Result<(), i32> {
        (self.noted, self.stale, self.told) = (true, true, true);
        self.write(dir, log, Kind::Unsure)
    }

    /// Whether something was noted since [`Self::flush`].
    pub(super) const fn is_noted(&self) -> bool {
        self.noted
    }

    /// Whether it is to be written even while its log cannot be.
    pub(super) const fn has_lost_its_log(&self) -> bool {
        self.lost
    }

    /// Nothing can be written now.
    pub(super) const fn looked(&mut self) {
        self.noted = false;
    }

    /// Writes what the file does not have, where there is something to tell. `is_there`: the log's
    /// file is; else somebody else's may stand in its place, and no byte behind the end is output.
    pub(super) fn flush(&mut self, dir: &LogDir, log: &str, is_there: bool) {
        self.noted = false;
        if self.stale && (self.told || !self.end.streams.contains(&0)) {
            // What cannot be written is tried again when more has come.
            let end = if is_there { Kind::End } else { Kind::Unsure };
            self.stale = self.write(dir, log, end).is_err();
            let most =
                self.bound.map_or(u64::MAX, |bound| bound.saturating_add(bound / BOUND_STEPS));
            if self.written - self.given_back > most {
                self.give_back_to(self.written - self.bound.unwrap_or(0));
            }
        }
    }

    fn write(&mut self, dir: &LogDir, log: &str, end: Kind) -> Result<(), i32> {
        let file = match self.file.take() {
            Some(file) => file,
            None => dir.write_index(log, self.fresh)?,
        };
        let file = self.file.insert(file);
        self.fresh = false;
        let mut bytes = self.newer.clone();
        push_mark(&mut bytes, end, &self.end);
        // The old end is overwritten last: what is written by half stands behind it then, and is
        // taken back.
        let place = self.written + self.written_end.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(self.written_end.len()));
        file.write_at(rest, place)?;
        if let Err(errno) = file.overwrite(first, &self.written_end, self.written) {
            file.cut(place)?;
            return Err(errno);
        }
        if bytes.len() < self.written_end.len() {
            file.cut(self.written + bytes.len() as u64)?;
        }
        self.written += self.newer.len() as u64;
        self.written_end = bytes.split_off(self.newer.len());
        self.newer.clear();
        Ok(())
    }

    /// Gives the records back to the disk that tell only of what is before this place of the log.
    pub(super) fn give_back(&mut self, dir: &LogDir, log: &str, place: u64) {
        if let Ok(Some(first)) = self.records(dir, log).before(place, &|marks| marks.file) {
            self.give_back_to((first * RECORD_BYTES).min(self.written));
        }
    }

    fn give_back_to(&mut self, place: u64) {
        let place = place / LOG_BLOCK_BYTES * LOG_BLOCK_BYTES;
        let Some(file) = self.file.as_ref().filter(|_| place > self.given_back) else { return };
        match file.punch_before(place) {
            Ok(()) => self.given_back = place,
            Err(_) => self.is_full = true,
        }
    }

    /// What it tells, written or not.
    pub(super) fn records(&self, dir: &LogDir, log: &str) -> Records {
        let mut newer = self.newer.clone();
        push_mark(&mut newer, Kind::End, &self.end);
        Records::of_writer((dir, log), self.written, newer, self.end)
    }

    /// The first byte of the output that lies at this place of the log or behind it.
    pub(super) fn output_at(&self, dir: &LogDir, log: &str, place: u64) -> u64 {
        // What cannot be looked up is told as gone.
        self.records(dir, log).output_at(place, None).unwrap_or(self.end.of(None))
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
