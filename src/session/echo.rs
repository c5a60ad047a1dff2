//! What a session knows of input that comes back as output (waits.md, Echo).

use super::Session;
use super::wait::Wait;
use crate::limits::{LEAD_BYTES, PROMPT_BYTES_MAX};
use crate::pure::text::clean::text_behind;
use crate::pure::until::Echo;
use crate::sys::pty;

/// The prompt of a session's line editor.
#[derive(Debug, Default)]
pub struct Prompt {
    text: String,
    /// A line of input was begun, and shown behind the prompt.
    open: bool,
}

impl Session {
    /// What becomes of input that comes back as output.
    pub fn echo(&self) -> Echo {
        let terminal = self.output.fd().filter(|_| self.facts.tty);
        terminal.map_or(Echo::Nothing, pty::echo)
    }

    /// Input is about to be written: waits that look for patterns do not take its echo for output.
    pub fn note_sent(&mut self, bytes: &[u8]) {
        if !self.facts.tty || bytes.is_empty() {
            return;
        }
        let echo = self.echo();
        if echo == Echo::Program && !self.prompt.open {
            self.prompt.text = self.at_cursor();
        }
        self.prompt.open = !bytes.ends_with(b"\n") && !bytes.ends_with(b"\r");
        if self.waits.iter().any(Wait::looks_for_text) {
            let prompt = &self.prompt.text;
            for asked in self.waits.iter_mut().filter_map(|wait| wait.asked.as_mut()) {
                asked.sent(bytes, echo, prompt);
            }
        }
    }

    /// What stands before the cursor; nothing where that is too long to be a prompt.
    fn at_cursor(&self) -> String {
        let (last, _) = self.tail.last(LEAD_BYTES);
        let mut text = text_behind(last_line_of(&last), 0);
        if text.len() > PROMPT_BYTES_MAX {
            text.clear();
        }
        text
    }

    /// The prompt that its line editor had when it was last given a line; empty where none is
    /// known.
    pub fn prompt(&self) -> &str {
        &self.prompt.text
    }

    /// The last bytes of the output before `offset`, from the beginning of a line or of a sequence
    /// on; none where they are not kept any more.
    pub fn lead_of(&self, offset: u64) -> Vec<u8> {
        let behind = usize::try_from(self.tail.total_bytes() - offset).unwrap_or(usize::MAX);
        let (mut last, _) = self.tail.last(behind.saturating_add(LEAD_BYTES));
        last.truncate(last.len().saturating_sub(behind));
        let line = last_line_of(&last);
        // What begins in the middle of a line may begin in the middle of a sequence.
        let whole = line.len() < last.len() || last.len() as u64 == offset;
        let from = if whole { Some(0) } else { memchr::memchr(0x1B, line) };
        from.map(|from| line[from..].to_vec()).unwrap_or_default()
    }
}

/// What stands behind the last newline.
fn last_line_of(bytes: &[u8]) -> &[u8] {
    &bytes[memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1)..]
}
