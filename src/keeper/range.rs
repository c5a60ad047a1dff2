//! Reads parts of a session's output from its log, by offsets of the output, of logs that are being
//! written and of those of sessions that have ended; and the form in which parts are asked for and
//! told (frames.rs has the frame and the record they stand in).
//!
//! What a log lacks is told as a gap and never made up: bytes that were lost, and the beginning of
//! a log that has lost its oldest bytes, which the file has as NULs.

use super::index::{self, Index, Marks, Records, Run};
use super::records::{Nonsense, RANGE_HEAD_BYTES, take, take_u64};
use crate::limits::LOG_RANGE_ANSWER_BYTES;
use crate::pure::buffer::source::Source;
use crate::sys::beside_files::PlacedFile;
use crate::sys::io::ENOENT;
use crate::sys::log_files::LogDir;

/// How often the log is read for one page of a stream: above, the page is shorter than was asked.
const LOG_PAGE_READS_MAX: usize = 256;

/// Bytes of the log that are read at a time for a page of a stream.
const LOG_PAGE_READ_BYTES: usize = 32 * 1024;

/// Bytes of a [`ReadRange`] before the name.
pub(super) const READ_RANGE_FIXED_BYTES: usize = 40;

/// Which part of the output is asked for. All offsets count bytes of the output, as a session gave
/// it: of both streams in the order in which they were read, or of the one that is asked for alone.
/// They are no places in the file, which has lines of the keeper's own and lacks what was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The stream that is asked for alone.
    pub only: Option<Source>,
    /// The first byte; a negative number counts from the end of the output.
    pub from: i64,
    /// The end of what is asked for; `u64::MAX` is the end of the output.
    pub to: u64,
    /// Bytes at most, and never more than `LOG_RANGE_ANSWER_BYTES`.
    pub max_bytes: u64,
    /// How many bytes the output has by now, as far as that is known.
    pub total: Option<u64>,
}

/// A part of the output that is asked for, of this log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRange {
    /// Comes back with the range.
    pub token: u64,
    /// Which part.
    pub wanted: Wanted,
    /// The log's name inside the log directory.
    pub name: String,
}

/// What is said of the part that was read: one run of bytes that lie together in the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Head {
    /// The first byte that was read.
    pub from: u64,
    /// Where the bytes that were read end, and where to go on.
    pub to: u64,
    /// What was asked for in front of `from` and is not in the log; equal where nothing is.
    pub gap: (u64, u64),
    /// The first byte that is still in the log: all before is gone.
    pub log_from: u64,
    /// Bytes of the output that the log writer knows of.
    pub known_total: u64,
}

impl ReadRange {
    pub(super) fn push(&self, out: &mut Vec<u8>) {
        let wanted = &self.wanted;
        out.extend_from_slice(&self.token.to_le_bytes());
        out.extend_from_slice(&wanted.from.to_le_bytes());
        out.extend_from_slice(&wanted.to.to_le_bytes());
        out.extend_from_slice(&wanted.max_bytes.to_le_bytes());
        out.extend_from_slice(&wanted.total.unwrap_or(u64::MAX).to_le_bytes());
        out.extend_from_slice(self.name.as_bytes());
    }

    /// Reads all but the name, which is left in `rest`. Errors: there is less than that.
    pub(super) fn take(only: Option<Source>, rest: &mut &[u8]) -> Result<(u64, Wanted), Nonsense> {
        let token = take_u64(rest)?;
        let from = i64::from_le_bytes(take(rest)?);
        let (to, max_bytes) = (take_u64(rest)?, take_u64(rest)?);
        let total = Some(take_u64(rest)?).filter(|total| *total != u64::MAX);
        Ok((token, Wanted { only, from, to, max_bytes, total }))
    }
}

impl Head {
    /// Its bytes as they stand in front of the range's own.
    pub fn encode(&self) -> [u8; RANGE_HEAD_BYTES] {
        let (gap_from, gap_to) = self.gap;
        let numbers = [self.from, self.to, gap_from, gap_to, self.log_from, self.known_total];
        let mut out = [0; RANGE_HEAD_BYTES];
        for (place, number) in out.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        out
    }

    /// Takes it off the front of `rest`. Errors: there is less than one.
    pub fn take(rest: &mut &[u8]) -> Result<Self, Nonsense> {
        let mut next = || take_u64(rest);
        let (from, to) = (next()?, next()?);
        let gap = (next()?, next()?);
        let (log_from, known_total) = (next()?, next()?);
        Ok(Self { from, to, gap, log_from, known_total })
    }
}

/// A part of the output that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Range {
    /// What is said of it.
    pub head: Head,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Range {
    /// As it stands behind its record on the ack pipe.
    pub fn encode(&self) -> Vec<u8> {
        [&self.head.encode()[..], &self.bytes].concat()
    }
}

/// Reads a part of the output of a session that has ended, whose log has this name. Where the log
/// is gone and the output's length is known, all of it is a gap. A log without an index, or with
/// one that makes no sense, is read as it is. Errors: openat(2), pread(2); ENOENT where nothing is
/// known.
pub fn read(dir: &LogDir, name: &str, wanted: &Wanted) -> Result<Range, i32> {
    let layout = match Layout::find(dir, name) {
        Ok(layout) => layout,
        Err(ENOENT) if wanted.total.is_some() => Layout { kept_from: u64::MAX, size: 0 },
        Err(errno) => return Err(errno),
    };
    let records = match Records::on_disk(dir, name, layout.size)? {
        Some(records) => records,
        None => without_index(wanted, layout.size)?,
    };
    Reader { dir, name, records, layout, ended: true }.read(wanted)
}

/// Whether an index lies beside this log that cannot be read, or in which nothing makes sense: what
/// is read of the log has lines of the log writer's own in it then.
pub fn has_broken_index(dir: &LogDir, name: &str) -> bool {
    index::is_broken(dir, name)
}

/// How many bytes of a log are there. Errors: openat(2), lseek(2).
pub fn bytes_there(dir: &LogDir, name: &str) -> Result<u64, i32> {
    Layout::find(dir, name).map(|layout| layout.size.saturating_sub(layout.kept_from))
}

/// What a log of `size` bytes has that has no index: bytes of one stream alone, from its first one
/// on. What it has beyond the output somebody else has appended: a log writer writes no line of
/// its own without an index. Errors: ENOENT where it is not known of which stream they are.
fn without_index(wanted: &Wanted, size: u64) -> Result<Records, i32> {
    Ok(match (wanted.only, wanted.total) {
        (None, total) => Records::plain(Source::Output, total.unwrap_or(size).min(size)),
        (Some(source), Some(total)) if size == total => Records::plain(source, size),
        // All of it is the other stream's.
        (Some(_), Some(0)) => Records::plain(Source::Output, 0),
        (Some(_), _) => return Err(ENOENT),
    })
}

/// Reads a part of the output of a session whose log is being written.
pub(super) fn read_live(
    dir: &LogDir,
    name: &str,
    wanted: &Wanted,
    (index, layout): (&Index, Layout),
) -> Result<Range, i32> {
    let records = index.records(dir, name);
    Reader { dir, name, records, layout, ended: false }.read(wanted)
}

/// A log that is read.
struct Reader<'a> {
    dir: &'a LogDir,
    name: &'a str,
    records: Records,
    layout: Layout,
    /// Nothing more will come: what the output has beyond the log's end was lost.
    ended: bool,
}

impl Reader<'_> {
    fn read(&self, wanted: &Wanted) -> Result<Range, i32> {
        let known_total = self.records.end_of(wanted.only);
        let total = wanted.total.unwrap_or(known_total);
        let from = begins(wanted.from, total);
        let to = wanted.to.min(total);
        let max_bytes = wanted.max_bytes.min(LOG_RANGE_ANSWER_BYTES);
        let mut range = self.part(&Asked { only: wanted.only, from, to, max_bytes })?;
        let log_from = self.records.output_at(self.layout.kept_from, wanted.only)?;
        // What lies behind the end of a log that has ended was lost as well.
        let gone = self.ended && log_from >= known_total;
        range.head.log_from = if gone { total } else { log_from };
        range.head.known_total = if self.ended { total } else { known_total };
        Ok(range)
    }

    /// Reads the first run of bytes that lie together in the part that is asked for.
    fn part(&self, asked: &Asked) -> Result<Range, i32> {
        let to = asked.to;
        let mut part = Part {
            only: asked.only,
            begins: asked.from,
            max_bytes: asked.max_bytes,
            at: asked.from,
            to,
            bytes: Vec::new(),
            layout: self.layout,
            log: LogBytes::new(self.dir, self.name),
        };
        if asked.from < to {
            let of = |marks: &Marks| marks.of(asked.only);
            let wanted = (part.at, asked.only.is_none());
            let reached = self.records.each(wanted, &of, &mut |run| part.take(&run))?;
            if reached {
                let known = self.records.end_of(asked.only);
                part.lack(if self.ended { to } else { to.min(known) });
            }
        }
        Ok(part.done())
    }
}

/// Where a part begins in an output of `total` bytes: a negative offset counts from its end, one
/// past the end is its end.
fn begins(from: i64, total: u64) -> u64 {
    let far = from.unsigned_abs();
    if from < 0 { total.saturating_sub(far) } else { far.min(total) }
}

/// A part of the output by offsets that are known.
#[derive(Debug, Clone, Copy)]
struct Asked {
    only: Option<Source>,
    from: u64,
    to: u64,
    max_bytes: u64,
}

/// A part that is put together.
struct Part<'a> {
    only: Option<Source>,
    /// The first byte that is asked for.
    begins: u64,
    max_bytes: u64,
    /// How far it has come: what is before is in `bytes`, or missing.
    at: u64,
    to: u64,
    bytes: Vec<u8>,
    layout: Layout,
    log: LogBytes<'a>,
}

impl Part<'_> {
    /// Takes in what comes next in the log; false when the part is complete.
    fn take(&mut self, run: &Run) -> Result<bool, i32> {
        let (from, next) = (run.from.of(self.only), run.to.of(self.only));
        if next <= self.at {
            return Ok(true);
        }
        // What lies before this run and was not told of is not known; nor is what was punched.
        let kept = self.layout.kept_from.saturating_sub(run.from.file);
        let logged = run.logged(self.only).min(self.layout.size.saturating_sub(run.from.file));
        let gone = kept.min(logged);
        if (gone > 0 || from > self.at) && !self.lack(from.saturating_add(gone)) {
            return Ok(false);
        }
        if from + logged > self.at {
            let inside = self.at - from;
            let end = (from + logged).min(self.wanted_end());
            let place = run.from.file.saturating_add(inside);
            let before = self.bytes.len();
            let got = self.log.append(&mut self.bytes, place, end.saturating_sub(self.at))?;
            self.at += (self.bytes.len() - before) as u64;
            match got {
                Got::Enough => return Ok(false),
                Got::All if self.at >= self.wanted_end() => return Ok(false),
                Got::All | Got::Fewer => {}
            }
        }
        Ok(self.lack(next))
    }

    /// Where the part ends that may still be read.
    fn wanted_end(&self) -> u64 {
        let first = self.at - self.bytes.len() as u64;
        first.saturating_add(self.max_bytes).min(self.to)
    }

    /// What lies before `next` and was not read is missing; false when the part is complete.
    fn lack(&mut self, next: u64) -> bool {
        if next <= self.at {
            return true;
        }
        if !self.bytes.is_empty() {
            return false;
        }
        self.at = next.min(self.to);
        self.at < self.to
    }

    fn done(self) -> Range {
        let at = self.at;
        let from = at - self.bytes.len() as u64;
        let gap = (self.begins, from);
        let head = Head { from, to: at, gap, ..Head::default() };
        Range { head, bytes: self.bytes }
    }
}

/// Where the bytes of a log lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// The log's first byte that is kept.
    pub(super) kept_from: u64,
    /// Where the log ends.
    pub(super) size: u64,
}

impl Layout {
    /// Finds out where the bytes lie of a log that nobody writes any more. Errors: openat(2),
    /// lseek(2).
    fn find(dir: &LogDir, log: &str) -> Result<Self, i32> {
        let file = dir.read_log(log)?;
        let size = file.size()?;
        Ok(Self { kept_from: file.first_data()?.min(size), size })
    }
}

/// What came of reading some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Got {
    /// All of them.
    All,
    /// Fewer, since enough was read for one part.
    Enough,
    /// Fewer, since the log has not all of them any more.
    Fewer,
}

/// A log that is read.
#[derive(Debug)]
struct LogBytes<'a> {
    dir: &'a LogDir,
    name: &'a str,
    file: Option<PlacedFile>,
    window: Vec<u8>,
    begins_at: u64,
    reads: usize,
}

impl<'a> LogBytes<'a> {
    const fn new(dir: &'a LogDir, name: &'a str) -> Self {
        Self { dir, name, file: None, window: Vec::new(), begins_at: 0, reads: 0 }
    }

    /// Appends bytes of the log to `out`. Errors: openat(2), pread(2).
    fn append(&mut self, out: &mut Vec<u8>, from: u64, bytes: u64) -> Result<Got, i32> {
        let end = from.saturating_add(bytes);
        let mut at = from;
        while at < end {
            let window_end = self.begins_at + self.window.len() as u64;
            if at < self.begins_at || at >= window_end {
                if self.reads == LOG_PAGE_READS_MAX {
                    return Ok(Got::Enough);
                }
                self.reads += 1;
                self.fill(at)?;
                if self.window.is_empty() {
                    return Ok(Got::Fewer);
                }
                continue;
            }
            let from = usize::try_from(at - self.begins_at).unwrap_or(0);
            let taken = usize::try_from(end - at).unwrap_or(usize::MAX);
            let taken = taken.min(self.window.len() - from);
            out.extend_from_slice(&self.window[from..from + taken]);
            at += taken as u64;
        }
        Ok(Got::All)
    }

    /// Reads what lies at this place into the window: nothing where nothing is there.
    fn fill(&mut self, at: u64) -> Result<(), i32> {
        self.window.clear();
        self.begins_at = at;
        if self.file.is_none() {
            match self.dir.read_log(self.name) {
                Ok(file) => self.file = Some(file),
                Err(ENOENT) => return Ok(()),
                Err(errno) => return Err(errno),
            }
        }
        let Some(file) = &self.file else { return Ok(()) };
        self.window = vec![0; LOG_PAGE_READ_BYTES];
        let read = file.read_at(&mut self.window, at)?;
        self.window.truncate(read);
        Ok(())
    }
}

const _: () = {
    // A part of one run is read with room to spare.
    assert!(LOG_PAGE_READS_MAX as u64 * LOG_PAGE_READ_BYTES as u64 > 4 * LOG_RANGE_ANSWER_BYTES);
};

#[cfg(test)]
#[path = "range_tests.rs"]
mod tests;
