//! Parts of output that are read from logs by the keeper, so that a cold disk stalls nobody
//! (logs.md, Reading), and the pages of get_process_log, which are made of these,
//! or of what memory has where there is no log. `line` has the requests in line; what memory has,
//! and what read_output makes of a part, is the families' to say.

mod gather;
mod line;

use serde::Serialize;

use super::keeper_link::logs::LogTrouble;
use crate::keeper::range::Range;
use crate::pure::text::page::inside_a_character;
use crate::pure::text::utf8::{incomplete_suffix_len, lossy};
use crate::server::session::SessionId;
use crate::server::session::output::Source;
use crate::sys::errno::errno_text;
use crate::sys::io::ENOENT;
pub use line::{Pages, unreadable};

/// Which part of a session's output is to be read from its log.
#[derive(Clone, Debug)]
pub struct PartSpec {
    /// The log's name in the log directory.
    pub name: String,
    /// The stream that is asked for alone; `None`: both in one.
    pub only: Option<Source>,
    /// The first byte.
    pub from: u64,
    /// Behind the last one.
    pub to: u64,
    /// Bytes at most.
    pub most: u64,
    /// What is wanted is the last so many lines before `to`: gaps in front of them are passed over.
    pub lines: Option<usize>,
    /// How many bytes of output there are.
    pub total: u64,
}

/// A part of a session's output that has come: bytes that lie together.
#[derive(Debug, Default)]
pub struct Part {
    /// Some bytes in front, where the log has them.
    pub before: Vec<u8>,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Where the first of them stands.
    pub from: u64,
    /// What was asked for in front of them and is not there.
    pub gap: Option<(u64, u64)>,
    /// The first byte that the log has.
    pub log_from: u64,
    /// How many bytes of the output the log's writer knows of.
    pub known: u64,
}

impl Part {
    /// A part of at most `most` bytes that was asked for from `wanted` on, of what was read from a
    /// few bytes before it.
    fn new(Range { head, bytes }: Range, (wanted, most): (u64, u64)) -> Self {
        let from = wanted.max(head.from);
        let in_front = usize::try_from(from - head.from).unwrap_or(usize::MAX).min(bytes.len());
        let (before, bytes) = bytes.split_at(in_front);
        // Behind a gap the few bytes are none, and so many more have come.
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(bytes.len());
        let behind_gap = if bytes.is_empty() { head.gap.1 } else { head.from };
        let gap = (wanted, behind_gap);
        Self {
            before: before.to_vec(),
            bytes: bytes[..most].to_vec(),
            from: from.max(gap.1),
            gap: (gap.0 < gap.1).then_some(gap),
            log_from: head.log_from,
            known: head.known_total,
        }
    }

    /// Where the bytes end.
    pub fn to(&self) -> u64 {
        self.from + self.bytes.len() as u64
    }
}

/// What a page is asked for.
#[derive(Clone, Debug)]
pub struct PageSpec {
    /// The session whose output is asked for.
    pub id: SessionId,
    /// The page's first byte; a negative number counts from the end.
    pub offset: i64,
    /// Bytes at most.
    pub limit: u64,
    /// The stream that is asked for alone; `None`: both in one.
    pub source: Option<Source>,
    /// Exact bytes in base64, in place of text.
    pub base64: bool,
}

/// A page that the keeper is asked for.
#[derive(Clone, Debug)]
pub struct PendingPage {
    /// Which page.
    pub spec: PageSpec,
    /// The stream that the keeper is to pick out of the log.
    pub only: Option<Source>,
    /// How many bytes there are, of the stream or of both.
    pub total: u64,
    /// Nothing more will be written to the log.
    pub finished: bool,
    /// Where the output begins that came later than an answer would have waited.
    pub late_from: Option<u64>,
    /// What is wrong with the log.
    pub log: LogTrouble,
}

impl PendingPage {
    /// What the log is asked for: the page and a few bytes before it.
    fn part(&self, name: String) -> PartSpec {
        let (spec, total) = (&self.spec, self.total);
        let from = begins_at(spec, total);
        PartSpec { name, only: self.only, from, to: total, most: spec.limit, lines: None, total }
    }
}

/// The bytes that memory has of a stream, and the first one's offset.
pub type KeptBytes = (Vec<u8>, u64);

/// Where a page is to be found.
#[derive(Debug)]
pub struct Found {
    /// Where.
    pub from: PageSource,
    /// Nothing more will come.
    pub finished: bool,
    /// Where the output begins that came later than an answer would have waited.
    pub late_from: Option<u64>,
    /// What is wrong with the log.
    pub log: LogTrouble,
}

/// The result of get_process_log.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)] // What has no comment is as in other replies (docs/methods.md).
pub struct PageReport {
    pub session_id: SessionId,
    /// Raw text, or base64.
    pub text: String,
    pub offset: u64,
    pub next_offset: u64,
    pub total_bytes: u64,
    /// True: the page ends the output, and nothing more will come.
    pub eof: bool,
    /// Bytes behind the asked `offset` that nobody has any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_bytes: Option<u64>,
    /// `base64`, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<&'static str>,
    /// True: output came after the end was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<bool>,
    #[serde(flatten)]
    pub log: LogTrouble,
}

/// Where a page comes from.
#[derive(Debug)]
pub enum PageSource {
    /// The log of this name, or one of its streams, of which there are so many bytes.
    Log(String, Option<Source>, u64),
    /// These bytes, which begin at this offset of the stream.
    Memory(Vec<u8>, u64),
}

/// Where a page begins in `total` bytes.
pub fn begins_at(spec: &PageSpec, total: u64) -> u64 {
    let back = spec.offset.unsigned_abs();
    if spec.offset < 0 { total.saturating_sub(back) } else { back.min(total) }
}

/// A page as the reply has it: it begins at `offset` of `total` bytes, `before` are the bytes
/// before it as far as they are known.
fn report(
    spec: &PageSpec,
    before: &[u8],
    bytes: &[u8],
    (offset, total): (u64, u64),
    finished: bool,
) -> PageReport {
    let end = offset + bytes.len() as u64;
    let session_id = spec.id;
    if spec.base64 {
        use base64::Engine as _;
        let text = base64::engine::general_purpose::STANDARD.encode(bytes);
        let (next_offset, total_bytes, encoding) = (end, total, Some("base64"));
        let eof = finished && end == total;
        let log = LogTrouble::default();
        return PageReport {
            session_id,
            text,
            offset,
            next_offset,
            total_bytes,
            eof,
            omitted_bytes: None,
            encoding,
            late: None,
            log,
        };
    }
    // Such a character belongs to the page before it.
    let skipped = inside_a_character(before, bytes);
    let bytes = &bytes[skipped..];
    // What is unfinished at the very end will stay so.
    let last = finished && end == total;
    let mut unfinished = if last { 0 } else { incomplete_suffix_len(bytes) };
    if unfinished == bytes.len() && end < total {
        // So does what stands before a gap.
        unfinished = 0;
    }
    let next_offset = end - unfinished as u64;
    PageReport {
        session_id,
        text: lossy(&bytes[..bytes.len() - unfinished]),
        offset: offset + skipped as u64,
        next_offset,
        total_bytes: total,
        eof: finished && next_offset == total,
        omitted_bytes: None,
        encoding: None,
        late: None,
        log: LogTrouble::default(),
    }
}

impl PageReport {
    /// The page with what is known besides: whether it has output from `late_from` on, and what is
    /// wrong with the log.
    pub fn with(self, late_from: Option<u64>, log: LogTrouble) -> Self {
        let late = late_from.is_some_and(|from| self.next_offset > from);
        Self { late: late.then_some(true), log, ..self }
    }
}

/// A page from memory: `bytes` begin at `starts_at` of the stream.
pub fn page_from_memory(
    spec: &PageSpec,
    (bytes, starts_at): (&[u8], u64),
    finished: bool,
) -> PageReport {
    let total = starts_at + bytes.len() as u64;
    // The part that memory has lost is a gap: the page begins behind it.
    let wanted = begins_at(spec, total);
    let offset = wanted.max(starts_at);
    let gap = offset - wanted;
    let from = usize::try_from(offset - starts_at).unwrap_or(usize::MAX).min(bytes.len());
    let length = usize::try_from(spec.limit).unwrap_or(usize::MAX).min(bytes.len() - from);
    let (before, bytes) = (&bytes[..from], &bytes[from..from + length]);
    let page = report(spec, before, bytes, (offset, total), finished);
    PageReport { omitted_bytes: (gap > 0).then_some(gap), ..page }
}

/// A page made of what the log has, or why it could not be read, and of what memory has. Errors:
/// why neither has it.
fn page_of_log(
    page: &PendingPage,
    logged: Result<Part, String>,
    memory: &KeptBytes,
) -> Result<PageReport, String> {
    let (spec, finished) = (&page.spec, page.finished);
    let known = memory.1 + memory.0.len() as u64;
    let from_memory = || page_from_memory(spec, (&memory.0, memory.1), finished);
    let gone = |part: &Part| part.bytes.is_empty() && part.log_from >= page.total.max(1);
    let part = match logged {
        Ok(part) if gone(&part) => Err(errno_text(ENOENT)),
        logged => logged,
    };
    let part = match part {
        Ok(part) => part,
        Err(_) if known > begins_at(spec, known) && !memory.0.is_empty() => {
            return Ok(from_memory());
        }
        Err(why) => return Err(why),
    };
    // What is on its way into the log is no gap.
    let total = if finished { page.total } else { part.known.min(page.total) };
    let wanted = begins_at(spec, page.total).min(total);
    let nearer = part.bytes.is_empty() || memory.1 < part.from;
    if part.gap.is_some() && nearer && known > wanted {
        return Ok(from_memory());
    }
    let nothing = part.bytes.is_empty() && part.gap.is_none();
    let offset = if nothing { wanted } else { part.from };
    let made = report(spec, &part.before, &part.bytes, (offset, total.max(part.to())), finished);
    let skipped = offset - wanted;
    Ok(PageReport { omitted_bytes: (skipped > 0).then_some(skipped), ..made })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keeper::range::Head;

    fn spec(offset: i64, limit: u64) -> PageSpec {
        PageSpec { id: 1, offset, limit, source: None, base64: false }
    }

    /// Behind a gap a part once had the few bytes more that were asked for to look back.
    /// rule: logs.md, Reading: What is longer than `max_bytes` is continued by a page from
    #[test]
    fn a_part_has_no_more_bytes_than_were_asked_for() {
        // What is asked for from 100 on, 4 bytes: where the range begins, its bytes; the part's
        // bytes in front, its bytes, where they begin and the gap.
        type Wanted = (&'static str, &'static str, u64, Option<(u64, u64)>);
        let table: [(u64, &str, Wanted); 6] = [
            (97, "abcDEFG", ("abc", "DEFG", 100, None)),
            (97, "abcDE", ("abc", "DE", 100, None)),
            (98, "bcDEFGh", ("bc", "DEFG", 100, None)),
            (100, "DEFGhij", ("", "DEFG", 100, None)),
            (500, "DEFGhij", ("", "DEFG", 500, Some((100, 500)))),
            (500, "", ("", "", 500, Some((100, 500)))),
        ];
        for (from, bytes, wanted) in table {
            let head = Head { from, gap: (97, from.max(97)), ..Head::default() };
            let part = Part::new(Range { head, bytes: bytes.into() }, (100, 4));
            let (before, bytes) = (String::from_utf8(part.before), String::from_utf8(part.bytes));
            let got = (before.expect("text"), bytes.expect("text"), part.from, part.gap);
            assert_eq!(got, (wanted.0.into(), wanted.1.into(), wanted.2, wanted.3), "{from}");
        }
    }

    /// rule: bash-stream.md, The stream family: get_process_log: nextOffset never splits a
    ///   character; offsets from the end, past it, before what is kept
    #[test]
    fn pages_put_together_are_the_whole_and_no_character_is_split() {
        let text = "aä漢😀".repeat(50);
        for limit in 4..40 {
            let (mut offset, mut whole) = (0, String::new());
            loop {
                let wanted = spec(i64::try_from(offset).expect("small"), limit);
                let page = page_from_memory(&wanted, (text.as_bytes(), 0), true);
                assert_eq!(page.offset, offset);
                whole.push_str(&page.text);
                offset = page.next_offset;
                if page.eof {
                    break;
                }
            }
            assert_eq!(whole, text, "{limit}");
        }
    }

    /// rule: bash-stream.md, The stream family: get_process_log: nextOffset never splits a
    ///   character; offsets from the end, past it, before what is kept
    #[test]
    fn offsets_from_the_end_past_the_end_and_before_what_is_kept() {
        let page =
            |offset, finished| page_from_memory(&spec(offset, 100), (b"0123456789", 90), finished);
        let end = page(-3, true);
        assert_eq!((end.text.as_str(), end.offset, end.eof), ("789", 97, true));
        let past = page(1_000, true);
        assert_eq!((past.text.as_str(), past.offset, past.next_offset), ("", 100, 100));
        let lost = page(0, true);
        assert_eq!((lost.text.as_str(), lost.offset, lost.total_bytes), ("0123456789", 90, 100));
        assert_eq!((lost.omitted_bytes, end.omitted_bytes), (Some(90), None));
        assert!(!page(0, false).eof, "more may come");
    }

    #[test]
    fn a_page_that_begins_inside_a_character_leaves_it_to_the_one_before() {
        let page = page_from_memory(&spec(1, 100), ("漢字".as_bytes(), 0), true);
        assert_eq!((page.text.as_str(), page.offset), ("字", 3));
    }
}
