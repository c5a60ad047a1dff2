//! `execd log`: the output of one session, from the execd that has had it, or from the log where
//! that execd is gone (logs.md, Reading by people). `log_source` has where it is read from.

use memchr::memrchr_iter;

use super::log_source::{LogOptions, Page, Source, Span, open};
use super::say::{EXIT_FAILED, complain, say_bytes};
use super::survey::Place;
use crate::limits::LOG_RANGE_MAX_BYTES;
use crate::pure::process::life::EXIT_SIGNAL;
use crate::pure::text::clean::cut::cuts;
use crate::pure::text::clean::window_text;

/// How long `execd log --follow` waits for output at a time.
const LOG_FOLLOW_WAIT_MS: u64 = 30_000;

/// The exit status where nobody reads stdout any more: that of a command which SIGPIPE has ended.
const EXIT_UNREAD: i32 = EXIT_SIGNAL + 13;

/// Prints the output; gives the exit status.
pub fn main(options: &LogOptions, place: &Place) -> Result<i32, String> {
    let mut source = open(options, place)?;
    let mut at = options.from.unwrap_or(0);
    if let Some(lines) = options.lines {
        at = start_of_last(&mut source, lines, at)?.cast_signed();
    }
    let mut out = Out { raw: options.raw, rest: Vec::new(), broken: false };
    let (mut until, mut wait_ms) = (None, 0);
    loop {
        let Some(page) = source.page(Span { from: at, to: None }, wait_ms)? else {
            return Ok(EXIT_UNREAD);
        };
        if let Some((from, to)) = page.gap {
            out.flush();
            complain(&format!("execd log: bytes {from}–{to} are gone"));
        }
        let until = *until.get_or_insert(page.total);
        let caught_up = page.next >= page.total || page.bytes.is_empty();
        let gone = out.take(page.bytes) || (caught_up && out.flush());
        if gone || out.broken {
            return Ok(EXIT_UNREAD);
        }
        at = page.next.cast_signed();
        if page.end || (!options.follow && (caught_up || page.next >= until)) {
            let gone = out.flush();
            let status = if source.is_doubtful() { EXIT_FAILED } else { 0 };
            return Ok(if gone { EXIT_UNREAD } else { status });
        }
        wait_ms = if options.follow && caught_up { LOG_FOLLOW_WAIT_MS } else { 0 };
    }
}

/// Where the last so many lines begin of what is there now, no further back than `floor`.
fn start_of_last(source: &mut Source, lines: u32, floor: i64) -> Result<u64, String> {
    let whole = |page: Option<Page>| page.ok_or("stdout is not read any more");
    let now = whole(source.page(Span { from: 0, to: Some(0) }, 0)?)?;
    let (total, back) = (now.total, floor.unsigned_abs());
    let floor = if floor < 0 { total.saturating_sub(back) } else { back.min(total) };
    let (mut end, mut left) = (total, lines);
    // What is gone is not looked for.
    let mut kept_from = now.log_from;
    while end > floor.max(kept_from) {
        let begins = end.saturating_sub(LOG_RANGE_MAX_BYTES).max(floor);
        let (mut at, mut runs) = (begins, Vec::new());
        while at < end {
            let page = whole(source.page(Span { from: at.cast_signed(), to: Some(end) }, 0)?)?;
            if page.next <= at {
                break;
            }
            at = page.next;
            kept_from = kept_from.max(page.log_from);
            runs.push(page);
        }
        for Page { bytes, next, .. } in runs.iter().rev() {
            let first = next - bytes.len() as u64;
            // The last line ends with the output, and no other begins there.
            let starts = memrchr_iter(b'\n', bytes).map(|at| first + at as u64 + 1);
            for start in starts.filter(|start| *start < total) {
                left -= 1;
                if left == 0 {
                    return Ok(start);
                }
            }
        }
        end = begins;
    }
    Ok(floor)
}

/// What is printed: the bytes as they are, or clean text, which no terminal is changed by.
struct Out {
    raw: bool,
    /// What is not printed yet: a line, character or sequence that is not whole.
    rest: Vec<u8>,
    /// Nobody reads it any more.
    broken: bool,
}

impl Out {
    /// Prints what is whole. Whether nobody reads it any more.
    fn take(&mut self, bytes: Vec<u8>) -> bool {
        if self.raw {
            return self.print(&bytes);
        }
        self.rest.extend_from_slice(&bytes);
        let cuts = cuts(&self.rest);
        let length = match cuts.line {
            // A line that is longer is printed in pieces, each of whole characters.
            0 if self.rest.len() as u64 >= LOG_RANGE_MAX_BYTES => match cuts.any {
                0 => self.rest.len(),
                any => any,
            },
            line => line,
        };
        let whole: Vec<u8> = self.rest.drain(..length).collect();
        self.print(window_text(&whole, false).as_bytes())
    }

    /// Prints what is left too.
    fn flush(&mut self) -> bool {
        let rest = std::mem::take(&mut self.rest);
        self.print(window_text(&rest, false).as_bytes())
    }

    fn print(&mut self, bytes: &[u8]) -> bool {
        self.broken |= !bytes.is_empty() && say_bytes(bytes) != 0;
        self.broken
    }
}
