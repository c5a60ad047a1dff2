//! All text of the assistant, as the result has it: within its bound, and where the last message
//! begins in it.

use crate::limits::AGENT_OUTPUT_BYTES;
use crate::pure::buffer::head_tail::HeadTail;
use crate::pure::text::utf8::{continuation_len, incomplete_suffix_len, lossy};

/// The text so far.
#[derive(Debug)]
pub struct Output {
    kept: HeadTail,
    /// So many bytes came before the last message.
    last_from: u64,
}

impl Default for Output {
    fn default() -> Self {
        Self { kept: HeadTail::new(AGENT_OUTPUT_BYTES), last_from: 0 }
    }
}

impl Output {
    /// Takes in what was told.
    pub fn push(&mut self, text: &str) {
        self.kept.push(text.as_bytes());
    }

    /// Another message begins behind so many bytes that come next.
    pub fn next_message(&mut self, behind_bytes: usize) {
        self.last_from = self.kept.total_bytes() + behind_bytes as u64;
    }

    /// All of the text; where there was too much of it, its middle is a line that says so.
    pub fn all(&self) -> String {
        self.from(0)
    }

    /// The text of the last message alone, as far as it was kept.
    pub fn last(&self) -> String {
        self.from(self.last_from)
    }

    /// The text without so many bytes at its beginning, which end where a character does. Each byte
    /// is copied once: a result with much text is made in one turn of the loop.
    fn from(&self, from: u64) -> String {
        let [mut head, older, newer] = self.kept.parts();
        let at_most =
            |bytes: u64, most: usize| usize::try_from(bytes).map_or(most, |n| n.min(most));
        let behind_head = from.saturating_sub(head.len() as u64);
        head = &head[at_most(from, head.len())..];
        let mut omitted_bytes = self.kept.omitted_bytes();
        let behind_gap = behind_head.saturating_sub(omitted_bytes);
        let mut skipped = at_most(behind_gap, older.len() + newer.len());
        omitted_bytes = omitted_bytes.saturating_sub(behind_head);
        let mut gap = String::new();
        if omitted_bytes > 0 {
            let cut = incomplete_suffix_len(head);
            head = &head[..head.len() - cut];
            // No character is longer than this.
            let begins: Vec<u8> =
                older.iter().chain(newer).skip(skipped).take(4).copied().collect();
            let rest = continuation_len(&begins);
            skipped += rest;
            gap = left_out(omitted_bytes + (cut + rest) as u64);
        }
        let older_kept = &older[skipped.min(older.len())..];
        let newer_kept = &newer[skipped.saturating_sub(older.len())..];
        let text = [head, gap.as_bytes(), older_kept, newer_kept].concat();
        String::from_utf8(text).unwrap_or_else(|fault| lossy(fault.as_bytes()))
    }

    /// Bytes of heap owned.
    pub fn heap_bytes(&self) -> usize {
        self.kept.heap_bytes()
    }
}

/// The line that stands for text that is left out.
pub fn left_out(bytes: u64) -> String {
    format!("\n\n[{bytes} bytes of text are left out here]\n\n")
}
