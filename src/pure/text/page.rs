//! What a page has of the output that was found for it (logs.md, Reading): where the page begins
//! and ends, so that pages which adjoin lose nothing and split neither a character nor, as clean
//! text, an escape sequence.

use memchr::memrchr_iter;

use super::clean::cut::cuts;
use super::clean::{Cleaner, broken_line_len};
use super::utf8::{incomplete_suffix_len, lossy};
use crate::limits::MAX_CHAR_BYTES;
use crate::pure::buffer::head_tail::Kept;

/// How output is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// As clean text, whole lines where there are any.
    #[default]
    Clean,
    /// As text, escape sequences included.
    Raw,
    /// Exactly.
    Exact,
}

/// What stands behind the bytes that were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// Nothing that goes on with them: the output has ended, or a gap follows.
    Nothing,
    /// More, of which the next page is made: this one may end at the end of a line.
    More,
    /// What has not come yet, or was not asked for.
    Later,
}

/// Bytes of output that lie together.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// The bytes in front, as far as they are known: they tell where the page may begin.
    pub before: &'a [u8],
    /// Those that the page is made of.
    pub bytes: &'a [u8],
    /// The page begins with the first of them, whatever that is: a page ended before it.
    pub goes_on: bool,
    /// What follows.
    pub behind: Behind,
}

/// The part of the bytes that a page has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The first of them.
    pub from: usize,
    /// Behind the last.
    pub to: usize,
}

/// The page that is made of what was found.
pub fn part(found: &Found<'_>, shown: Shown) -> Part {
    let from = begins(found, shown);
    let bytes = &found.bytes[from..];
    let whole = match (shown, found.behind) {
        (Shown::Exact, _) | (_, Behind::Nothing) => bytes.len(),
        (Shown::Raw, _) => bytes.len() - incomplete_suffix_len(bytes),
        (Shown::Clean, Behind::Later) => cuts(bytes).any,
        (Shown::Clean, Behind::More) => {
            let cuts = cuts(bytes);
            if cuts.line > 0 { cuts.line } else { cuts.any }
        }
    };
    // What is longer than a page is given in pieces: a page leads on, whatever stands in it.
    let length = if whole == 0 && found.behind == Behind::More { bytes.len() } else { whole };
    Part { from, to: from + length }
}

/// How many of the bytes stand before the page: the end of a line or a character that begins before
/// them, which belongs to the page before.
fn begins(found: &Found<'_>, shown: Shown) -> usize {
    let at_line = found.before.last() == Some(&b'\n');
    match shown {
        Shown::Exact => 0,
        _ if found.goes_on || at_line => 0,
        Shown::Raw => inside_a_character(found.before, found.bytes),
        Shown::Clean => broken_line_len(found.bytes),
    }
}

/// How many bytes at the start of `page` belong to a character that begins in `before`.
pub fn inside_a_character(before: &[u8], page: &[u8]) -> usize {
    let begun = &before[before.len() - incomplete_suffix_len(before)..];
    let most = MAX_CHAR_BYTES.saturating_sub(begun.len()).min(page.len());
    let whole = |more: &usize| std::str::from_utf8(&[begun, &page[..*more]].concat()).is_ok();
    if begun.is_empty() { 0 } else { (1..=most).find(whole).unwrap_or(0) }
}

/// The text of a page's bytes; `last`: nothing goes on with them.
pub fn text(bytes: Vec<u8>, shown: Shown, last: bool) -> String {
    match shown {
        Shown::Clean => {
            let kept = Kept { head: bytes, ..Kept::default() };
            Cleaner::new().call_text(&kept, "", last)
        }
        Shown::Raw => lossy(&bytes),
        Shown::Exact => {
            use base64::Engine as _;
            base64::engine::general_purpose::STANDARD.encode(bytes)
        }
    }
}

/// Where the last `lines` lines of `bytes` begin; an open line at the end counts as one.
pub fn last_lines(bytes: &[u8], lines: usize) -> usize {
    if lines == 0 {
        return bytes.len();
    }
    let closed = bytes.len() - usize::from(bytes.ends_with(b"\n"));
    memrchr_iter(b'\n', &bytes[..closed]).nth(lines - 1).map_or(0, |newline| newline + 1)
}

#[cfg(test)]
#[path = "tests_page.rs"]
mod tests;
