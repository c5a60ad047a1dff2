//! Reads parts of a session's output from its log, by offsets of the output (`range_record`).

pub use super::range_record::{Head, Wanted};
use crate::limits::LOG_RANGE_MAX_BYTES;
use crate::sys::index_files::Page;
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

/// Reads a part of the output of the session whose log has this name. Where the log is gone and
/// the output's length is known, all of it is a gap. Errors: openat(2), pread(2); ENOENT where
/// nothing is known.
pub fn read(dir: &LogDir, name: &str, wanted: &Wanted) -> Result<Range, i32> {
    let file = match dir.read_log(name) {
        Ok(file) => Some(file),
        Err(ENOENT) if wanted.total.is_some() => None,
        Err(errno) => return Err(errno),
    };
    let size = file.as_ref().map_or(Ok(0), |file| file.size())?;
    let end = wanted.total.unwrap_or(size);
    let from = Page::begins(wanted.from, end);
    let to = wanted.to.min(end);
    let (lead, length) = (u64::from(wanted.lead && from > 0), to.saturating_sub(from));
    let from = from - lead;
    let length = length.min(wanted.max_bytes).min(LOG_RANGE_MAX_BYTES) + lead;
    let length = length.min(size.saturating_sub(from));
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    if let Some(file) = &file {
        let read = file.read_at(&mut bytes, from)?;
        bytes.truncate(read);
    }
    let behind = from + bytes.len() as u64;
    let lost = if file.is_none() && to > from { (from, to) } else { (from, from) };
    let next_offset = behind.max(lost.1);
    let from = from.max(lost.1);
    let head = Head {
        from,
        to: next_offset,
        next_offset,
        gap: lost,
        log_from: if file.is_none() { end } else { 0 },
        known_total: size,
    };
    Ok(Range { head, bytes })
}

#[cfg(test)]
#[path = "range_tests.rs"]
mod tests;
