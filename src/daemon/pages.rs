//! Pages of logs for get_process_log (bash-stream.md): read by the keeper, so that a cold disk
//! stalls nobody, or taken from memory where there is no log.

use serde::Serialize;

use super::Daemon;
use super::logs::{LogTrouble, errno_text};
use crate::keeper::frames::{Ack, ReadPage};
use crate::limits::{
    LOG_PAGE_LOOKBACK_BYTES, LOG_PAGE_WAIT_MS, LOG_PAGES_ASKED_MAX, MAX_CHAR_BYTES, NS_PER_MS,
};
use crate::pure::text::utf8::{incomplete_suffix_len, lossy};
use crate::session::output::Source;
use crate::session::{SessionId, Ticket};
use crate::wire::{Reason, RpcError};

/// What a page is asked for.
#[derive(Clone, Debug)]
pub struct PageSpec {
    /// Whose output.
    pub id: SessionId,
    /// Its first byte; a negative one counts from the end.
    pub offset: i64,
    /// Bytes at most.
    pub limit: u64,
    /// One stream alone.
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
    /// Nothing more will be written to it.
    pub finished: bool,
    /// Where the output begins that came later than an answer would have waited.
    pub late_from: Option<u64>,
    /// What is wrong with the log.
    pub log: LogTrouble,
}

/// A page in line.
#[derive(Clone, Debug)]
pub struct WaitingPage {
    page: PendingPage,
    /// The log.
    name: String,
    /// When it is given up; none while the keeper is not asked for it yet.
    due_ns: Option<u64>,
}

impl WaitingPage {
    /// What the keeper is asked for: the page and a few bytes before it.
    fn wanted(&self, ticket: Ticket) -> ReadPage {
        let (spec, only, name) = (&self.page.spec, self.page.only, self.name.clone());
        if only.is_some() {
            // It has the bytes before by itself.
            return ReadPage { token: ticket, only, offset: spec.offset, length: spec.limit, name };
        }
        let early = spec.offset.saturating_sub(LOG_PAGE_LOOKBACK_BYTES.cast_signed());
        // Not before the start: a negative offset would count from the end.
        let offset = if spec.offset < 0 { early } else { early.max(0) };
        let length = spec.limit + LOG_PAGE_LOOKBACK_BYTES;
        ReadPage { token: ticket, only, offset, length, name }
    }
}

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
#[allow(missing_docs)] // bash-stream.md describes each.
pub struct PageReport {
    pub session_id: SessionId,
    pub text: String,
    pub offset: u64,
    pub next_offset: u64,
    pub total_bytes: u64,
    pub eof: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<bool>,
    #[serde(flatten)]
    pub log: LogTrouble,
}

/// Where a page comes from.
#[derive(Debug)]
pub enum PageSource {
    /// The log of this name, or one of its streams.
    Log(String, Option<Source>),
    /// These bytes, which begin at this offset of the stream.
    Memory(Vec<u8>, u64),
}

/// Where a page begins in `total` bytes.
pub(super) fn begins_at(spec: &PageSpec, total: u64) -> u64 {
    let back = spec.offset.unsigned_abs();
    if spec.offset < 0 { total.saturating_sub(back) } else { back.min(total) }
}

/// How many bytes at the start of `page` belong to a character that begins in `before`.
fn inside_a_character(before: &[u8], page: &[u8]) -> usize {
    let begun = &before[before.len() - incomplete_suffix_len(before)..];
    let most = MAX_CHAR_BYTES.saturating_sub(begun.len()).min(page.len());
    let whole = |more: &usize| std::str::from_utf8(&[begun, &page[..*more]].concat()).is_ok();
    if begun.is_empty() { 0 } else { (1..=most).find(whole).unwrap_or(0) }
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
    /// The same with what is known besides: whether it has output from `late_from` on, and what is
    /// wrong with the log.
    pub fn with(self, late_from: Option<u64>, log: LogTrouble) -> Self {
        let late = late_from.is_some_and(|from| self.next_offset > from);
        Self { late: late.then_some(true), log, ..self }
    }
}

impl Daemon {
    /// A page from memory: `bytes` begin at `starts_at` of the stream.
    pub fn page_from_memory(
        spec: &PageSpec,
        bytes: &[u8],
        starts_at: u64,
        finished: bool,
    ) -> PageReport {
        let total = starts_at + bytes.len() as u64;
        // What memory has lost is a gap: the page begins behind it.
        let wanted = begins_at(spec, total);
        let offset = wanted.max(starts_at);
        let gap = offset - wanted;
        let from = usize::try_from(offset - starts_at).unwrap_or(usize::MAX).min(bytes.len());
        let length = usize::try_from(spec.limit).unwrap_or(usize::MAX).min(bytes.len() - from);
        let (before, bytes) = (&bytes[..from], &bytes[from..from + length]);
        let page = report(spec, before, bytes, (offset, total), finished);
        PageReport { omitted_bytes: (gap > 0).then_some(gap), ..page }
    }

    /// Puts a request for a page in line; it waits under `ticket`.
    pub fn ask_page(&mut self, ticket: Ticket, name: String, page: PendingPage) {
        self.pending_pages.insert(ticket, WaitingPage { page, name, due_ns: None });
        self.ask_pages();
    }

    /// Asks the keeper for the pages that are first in line: a few at once, and only for readers
    /// with room for them, so that no more of them than that is ever in memory.
    pub(super) fn ask_pages(&mut self) {
        let asked = self.pending_pages.values().filter(|one| one.due_ns.is_some()).count();
        let may = |ticket: &Ticket| {
            self.pending.get(ticket).is_some_and(|one| self.clients.has_room(one.client))
        };
        let waiting = self.pending_pages.iter().filter(|(_, one)| one.due_ns.is_none());
        let first = waiting.map(|(ticket, _)| *ticket).filter(may);
        let next: Vec<Ticket> = first.take(LOG_PAGES_ASKED_MAX.saturating_sub(asked)).collect();
        let due_ns = self.now_ns + LOG_PAGE_WAIT_MS * NS_PER_MS;
        for ticket in next {
            let Some(one) = self.pending_pages.get_mut(&ticket) else { continue };
            one.due_ns = Some(due_ns);
            let wanted = one.wanted(ticket);
            if !self.keeper.ask_page(&wanted) {
                self.fail_page(ticket, "nobody can read it now: its keeper is gone");
            }
        }
        self.arm_pages();
    }

    /// Answers the requests whose page has come, and asks for the next ones.
    pub(super) fn answer_pages(&mut self) {
        let pages = self.keeper.take_pages();
        if pages.is_empty() {
            return;
        }
        for (ack, bytes) in pages {
            self.answer_page(&ack, &bytes);
        }
        self.ask_pages();
    }

    fn answer_page(&mut self, ack: &Ack, bytes: &[u8]) {
        let waiting = self.pending_pages.get(&ack.token);
        if waiting.is_some_and(|one| one.page.only.is_some()) {
            return self.answer_stream_page(ack, bytes);
        }
        if ack.errno != 0 {
            return self.fail_page(ack.token, &errno_text(ack.errno));
        }
        let Some(WaitingPage { page, .. }) = self.pending_pages.remove(&ack.token) else { return };
        let Some(pending) = self.take_pending(ack.token) else { return };
        let (starts_at, total) = (ack.logged, ack.noted);
        let offset = begins_at(&page.spec, total);
        let from = usize::try_from(offset.saturating_sub(starts_at)).unwrap_or(0).min(bytes.len());
        let (before, bytes) = bytes.split_at(from);
        let limit = usize::try_from(page.spec.limit).unwrap_or(usize::MAX).min(bytes.len());
        let place = (offset, total);
        let report = report(&page.spec, before, &bytes[..limit], place, page.finished);
        self.clients.reply(&pending, &report.with(page.late_from, page.log));
    }

    /// Answers for a page of one stream: what the log cannot tell comes from memory, or is a gap.
    fn answer_stream_page(&mut self, ack: &Ack, bytes: &[u8]) {
        let Some(one) = self.pending_pages.get(&ack.token) else { return };
        let (spec, finished) = (one.page.spec.clone(), one.page.finished);
        let memory = self.stream_memory(&spec).unwrap_or_default();
        let known = memory.1 + memory.0.len() as u64;
        // What is on its way into the log is no gap.
        let ended = finished && self.keeper.settled(spec.id);
        let total = if ended { ack.noted.max(known) } else { ack.noted };
        let wanted = begins_at(&spec, if ack.errno == 0 { total } else { known });
        let offset = wanted.max(ack.logged);
        let from = usize::try_from(offset - ack.logged).unwrap_or(usize::MAX).min(bytes.len());
        let (before, rest) = bytes.split_at(from);
        let limit = usize::try_from(spec.limit).unwrap_or(usize::MAX).min(rest.len());
        let gap = if rest.is_empty() { total > wanted } else { offset > wanted };
        let nearer = rest.is_empty() || memory.1 < offset;
        let report = if ack.errno == 0 && !(gap && nearer && known > wanted) {
            let page = report(&spec, before, &rest[..limit], (offset, total), finished);
            let skipped = if gap { offset - wanted } else { 0 };
            PageReport { omitted_bytes: (skipped > 0).then_some(skipped), ..page }
        } else if ack.errno == 0 || known > wanted && !memory.0.is_empty() {
            Self::page_from_memory(&spec, &memory.0, memory.1, finished)
        } else {
            let why = format!("one of its streams cannot be read ({})", errno_text(ack.errno));
            return self.fail_page(ack.token, &format!("{why}; try it without stream"));
        };
        let Some(WaitingPage { page, .. }) = self.pending_pages.remove(&ack.token) else { return };
        let Some(pending) = self.take_pending(ack.token) else { return };
        self.clients.reply(&pending, &report.with(page.late_from, page.log));
    }

    fn fail_page(&mut self, ticket: Ticket, why: &str) {
        if self.pending_pages.remove(&ticket).is_none() {
            return;
        }
        let Some(pending) = self.take_pending(ticket) else { return };
        let error = RpcError::failed(Reason::System, format!("the log: {why}"));
        self.clients.refuse(&pending, &error);
        self.arm_pages();
    }

    /// Gives up on the pages, with `all`, or when one took too long: the others in line would wait
    /// for the same disk.
    pub(super) fn give_up_pages(&mut self, all: bool, why: &str) {
        let late = |one: &WaitingPage| one.due_ns.is_some_and(|due_ns| due_ns <= self.now_ns);
        if !all && !self.pending_pages.values().any(late) {
            return;
        }
        let tickets: Vec<Ticket> = self.pending_pages.keys().copied().collect();
        for ticket in tickets {
            self.fail_page(ticket, why);
        }
    }

    /// Nobody waits for a page any more.
    pub(super) fn forget_page(&mut self, ticket: Ticket) {
        if self.pending_pages.remove(&ticket).is_some() {
            self.arm_pages();
        }
    }

    fn arm_pages(&mut self) {
        let due = self.pending_pages.values().filter_map(|one| one.due_ns).min();
        self.deadlines.set(super::Owner::Pages, due);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(offset: i64, limit: u64) -> PageSpec {
        PageSpec { id: 1, offset, limit, source: None, base64: false }
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
                let page = Daemon::page_from_memory(&wanted, text.as_bytes(), 0, true);
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
        let page = |offset, finished| {
            Daemon::page_from_memory(&spec(offset, 100), b"0123456789", 90, finished)
        };
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
        let page = Daemon::page_from_memory(&spec(1, 100), "漢字".as_bytes(), 0, true);
        assert_eq!((page.text.as_str(), page.offset), ("字", 3));
    }
}
