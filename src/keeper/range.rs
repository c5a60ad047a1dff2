//! Reads parts of a session's output from its log, by offsets of the output (`range_record`), of
//! logs that are being written and of those of sessions that have ended.
//!
//! What a log lacks is told as a gap and never made up: bytes that were lost, and the beginning of
//! a log that has lost its oldest bytes, which the file has as NULs.

use super::blocks::Blocks;
use super::index::Index;
use super::log_bytes::{Got, Layout, LogBytes};
pub use super::range_record::{Head, Wanted};
use crate::limits::LOG_RANGE_ANSWER_BYTES;
use crate::pure::buffer::log_index::{Marks, Run};
use crate::pure::buffer::source::Source;
use crate::sys::io::ENOENT;
use crate::sys::log_files::LogDir;

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
/// is gone and the output's length is known, all of it is a gap. Errors: openat(2), pread(2);
/// ENOENT where nothing is known.
pub fn read(dir: &LogDir, name: &str, wanted: &Wanted) -> Result<Range, i32> {
    let index = Blocks::on_disk(dir, name)?;
    let layout = match Layout::find(dir, name) {
        Ok(layout) => layout,
        Err(ENOENT) if wanted.total.is_some() => Layout { kept_from: u64::MAX, size: 0 },
        Err(errno) => return Err(errno),
    };
    let size = layout.size;
    let blocks = match index {
        Some(index) => index,
        None => without_index(wanted, size)?,
    };
    Reader { dir, name, blocks, layout, ended: true }.read(wanted)
}

/// Whether an index lies beside this log that cannot be read, or in which nothing makes sense.
pub fn has_broken_index(dir: &LogDir, name: &str) -> bool {
    let index = Blocks::on_disk(dir, name);
    index.map_or(true, |index| index.is_some_and(|index| index.count() == 0))
}

/// How many bytes of a log are there. Errors: openat(2), lseek(2).
pub fn bytes_there(dir: &LogDir, name: &str) -> Result<u64, i32> {
    Layout::find(dir, name).map(Layout::bytes_there)
}

/// Reads a part of a log as it is, as [`read`] does of the output: lines of the log writer's own
/// are in it.
pub fn read_as_is(dir: &LogDir, name: &str, wanted: &Wanted) -> Result<Range, i32> {
    let layout = Layout::find(dir, name)?;
    let blocks = Blocks::plain(Source::Output, layout.size);
    let wanted = Wanted { only: None, total: None, ..wanted.clone() };
    Reader { dir, name, blocks, layout, ended: true }.read(&wanted)
}

/// What a log of `size` bytes has that has no index: bytes of one stream alone, from its first one
/// on. What it has beyond the output somebody else has appended: a log writer writes no line of
/// its own without an index. Errors: ENOENT where it is not known of which stream they are.
fn without_index(wanted: &Wanted, size: u64) -> Result<Blocks, i32> {
    Ok(match (wanted.only, wanted.total) {
        (None, total) => Blocks::plain(Source::Output, total.unwrap_or(size).min(size)),
        (Some(source), Some(total)) if size == total => Blocks::plain(source, size),
        // All of it is the other stream's.
        (Some(_), Some(0)) => Blocks::plain(Source::Output, 0),
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
    let blocks = index.blocks(dir, name);
    Reader { dir, name, blocks, layout, ended: false }.read(wanted)
}

/// A log that is read.
struct Reader<'a> {
    dir: &'a LogDir,
    name: &'a str,
    blocks: Blocks,
    layout: Layout,
    /// Nothing more will come: what the output has beyond the log's end was lost.
    ended: bool,
}

impl Reader<'_> {
    fn read(&self, wanted: &Wanted) -> Result<Range, i32> {
        let known_total = self.blocks.end().of(wanted.only);
        let total = wanted.total.unwrap_or(known_total);
        let from = begins(wanted.from, total);
        let to = wanted.to.min(total);
        let max_bytes = wanted.max_bytes.min(LOG_RANGE_ANSWER_BYTES);
        let mut range = self.part(&Asked { only: wanted.only, from, to, max_bytes })?;
        let log_from = self.blocks.output_at(self.layout.kept_from, wanted.only)?;
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
            let of = |marks: Marks| marks.of(asked.only);
            let reached =
                self.blocks.each(part.at, &of, &mut |marks, run| part.take(marks, run))?;
            if reached {
                let known = self.blocks.end().of(asked.only);
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
    /// Takes in what comes next in the log at `marks`; false when the part is complete.
    fn take(&mut self, marks: Marks, run: Run) -> Result<bool, i32> {
        let (from, next) = (marks.of(self.only), marks.behind(run).of(self.only));
        if next <= self.at {
            return Ok(true);
        }
        // What lies before this run and was not told of is not known; nor is what was punched.
        let kept = self.layout.kept_from.saturating_sub(marks.file);
        let logged = run.logged(self.only).min(self.layout.size.saturating_sub(marks.file));
        let gone = kept.min(logged);
        if (gone > 0 || from > self.at) && !self.lack(from.saturating_add(gone)) {
            return Ok(false);
        }
        if from + logged > self.at {
            let inside = self.at - from;
            let end = (from + logged).min(self.wanted_end());
            let place = marks.file.saturating_add(inside);
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
        let head = Head { from, to: at, next_offset: at, gap, ..Head::default() };
        Range { head, bytes: self.bytes }
    }
}

#[cfg(test)]
#[path = "range_tests.rs"]
mod tests;
