//! stdout and stderr of `execd agent`: what a run tells is written as far as it is taken, in
//! order, and never by waiting. What is told is left to `text`.

use crate::cli::say::complain;
use crate::limits::{LAST_FLUSH_MS, LIST_COLUMNS, OUTBOX_GIVE_UP_BYTES};
use crate::pure::buffer::outbox::Outbox;
use crate::sys::errno::errno_text;
use crate::sys::host;
use crate::sys::io::Io;
use crate::sys::poll::Watch;
use crate::sys::pty;
use crate::sys::stdio::{self, Channel};

/// Bytes of such lines that `execd agent` holds back until stdout has what came before.
const AGENT_NOTES_BYTES: usize = 64 * 1024;

/// Takes a line of the terminal away, and goes to its beginning.
const ERASE_LINE: &[u8] = b"\r\x1b[K";

/// The two streams, and what waits to be written to them.
#[derive(Debug)]
pub struct Streams {
    stdout: Channel,
    /// stdout is a terminal: what a model says must not steer it.
    terminal: bool,
    /// What stdout has not taken yet.
    outbox: Outbox,
    /// The text on stdout ends inside a line.
    mid_line: bool,
    /// Nobody reads stdout any more, or it cannot be written.
    stdout_gone: bool,
    stderr: Option<Channel>,
    /// Lines for stderr that wait until stdout has what came before them, and until stderr has
    /// room.
    notes: Vec<u8>,
    /// How many lines found no room among the notes since the last one that did.
    notes_left_out: u64,
    /// stderr is a terminal that can take a line away again.
    screen: bool,
    /// The last line of that terminal says how the run goes on.
    status_shown: bool,
}

impl Streams {
    /// Looks at stdout and stderr and how they take bytes. Gives an errno where there is no stdout.
    pub fn open() -> Result<Self, i32> {
        Ok(Self {
            stdout: Channel::open(1)?,
            terminal: stdio::is_terminal(1),
            outbox: Outbox::new(),
            mid_line: false,
            stdout_gone: false,
            stderr: Channel::open(2).ok(),
            notes: Vec::new(),
            notes_left_out: 0,
            screen: stdio::is_terminal(2) && can_erase(),
            status_shown: false,
        })
    }

    /// Columns of the terminal that stderr is; none where it is no terminal.
    pub fn columns(&self) -> Option<usize> {
        if !stdio::is_terminal(2) {
            return None;
        }
        let size = pty::size_of(2);
        Some(size.map_or(LIST_COLUMNS, |size| usize::from(size.cols)))
    }

    /// Whether a line may be shown now that says how the run goes on: on a terminal, and not in a
    /// line that the text is in.
    pub fn takes_status(&self) -> bool {
        self.screen && !self.mid_line && self.outbox.is_empty() && self.notes.is_empty()
    }

    /// Shows how the run goes on, in the place of what was shown of that before. The line is gone
    /// before anything else is written.
    pub fn show_status(&mut self, line: &str) {
        if self.takes_status() {
            self.notes.extend_from_slice(ERASE_LINE);
            self.notes.extend_from_slice(line.as_bytes());
            self.send_notes();
            self.status_shown = true;
        }
    }

    /// Takes the line away that says how the run goes on.
    fn hide_status(&mut self) {
        if std::mem::take(&mut self.status_shown) {
            self.notes.extend_from_slice(ERASE_LINE);
            self.send_notes();
        }
    }

    /// Takes in a line for stdout. A line that finds far too much before it is dropped: the caller
    /// takes in none while anything waits, unless the end of the run was asked for.
    pub fn push_line(&mut self, head: &str, rest: &str) {
        self.hide_status();
        if self.has_room() {
            [head, rest, "\n"].iter().for_each(|part| self.outbox.push(part.as_bytes()));
        }
    }

    /// Takes in text for stdout, or drops it as [`Self::push_line`] does.
    pub fn push_text(&mut self, text: &str) {
        if text.is_empty() || !self.has_room() {
            return;
        }
        self.hide_status();
        if self.terminal {
            let harmless = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
            let text: String = text.chars().filter(harmless).collect();
            self.outbox.push(text.as_bytes());
        } else {
            self.outbox.push(text.as_bytes());
        }
        self.mid_line = !text.ends_with('\n');
    }

    /// Ends the line that the text on stdout is in.
    pub fn end_line(&mut self) {
        self.hide_status();
        if std::mem::take(&mut self.mid_line) {
            self.outbox.push(b"\n");
        }
    }

    fn has_room(&self) -> bool {
        self.outbox.len() < OUTBOX_GIVE_UP_BYTES
    }

    /// Takes in a line for stderr.
    pub fn push_note(&mut self, line: &str) {
        self.hide_status();
        if self.notes.len() + line.len() > AGENT_NOTES_BYTES {
            self.notes_left_out += 1;
            return;
        }
        self.tell_what_is_left_out();
        self.notes.extend_from_slice(line.as_bytes());
        self.notes.push(b'\n');
    }

    fn tell_what_is_left_out(&mut self) {
        if self.notes_left_out > 0 {
            let lines = std::mem::take(&mut self.notes_left_out);
            let line = format!("[{lines} lines are left out here: stderr was not read]\n");
            self.notes.extend_from_slice(line.as_bytes());
        }
    }

    /// Whether stdout has taken everything, or takes nothing any more.
    pub fn stdout_is_served(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Whether nobody reads stdout any more.
    pub fn stdout_is_gone(&self) -> bool {
        self.stdout_gone
    }

    /// Writes what is taken now.
    pub fn write(&mut self) {
        if self.stdout_gone {
            self.outbox.clear();
        }
        let mut failed = None;
        while !self.outbox.is_empty() {
            match self.stdout.write(self.outbox.front()) {
                Io::Moved(bytes) => self.outbox.consume(bytes),
                Io::WouldBlock => return,
                ended @ (Io::Ended | Io::HungUp | Io::Failed(_)) => {
                    failed = if let Io::Failed(errno) = ended { Some(errno) } else { None };
                    self.stdout_gone = true;
                    self.outbox.clear();
                }
            }
        }
        self.write_notes();
        if let Some(errno) = failed {
            self.hide_status();
            complain(&format!("execd: stdout cannot be written: {}", errno_text(errno)));
        }
    }

    /// Writes the notes as far as stderr has room: a stderr that nobody reads holds up nothing.
    fn write_notes(&mut self) {
        if self.notes.is_empty() {
            return;
        }
        // On a terminal notes do not go on in the line that the text is in.
        if self.mid_line && self.terminal && stdio::is_terminal(2) {
            self.mid_line = false;
            self.notes.insert(0, b'\n');
        }
        self.send_notes();
    }

    fn send_notes(&mut self) {
        let Some(stderr) = &mut self.stderr else { return self.notes.clear() };
        while !self.notes.is_empty() {
            match stderr.write(&self.notes) {
                Io::Moved(bytes) => drop(self.notes.drain(..bytes.min(self.notes.len()))),
                Io::WouldBlock => return,
                // stderr is for people: that it cannot be written to is their own affair.
                Io::Ended | Io::HungUp | Io::Failed(_) => self.notes.clear(),
            }
        }
    }

    /// What is to be waited for: room where something waits to be written, and that nobody reads
    /// stdout any more.
    pub fn watches(&self) -> [Watch; 2] {
        let stdout = self.stdout.poll_fd().filter(|_| !self.stdout_gone).unwrap_or(-1);
        let stderr = self.stderr.as_ref().and_then(Channel::poll_fd).unwrap_or(-1);
        if self.outbox.is_empty() {
            [Watch::for_end(stdout), Watch::new(stderr, false, !self.notes.is_empty())]
        } else {
            [Watch::new(stdout, false, true), Watch::new(stderr, false, false)]
        }
    }

    /// Whether something waits for a stdout of a kind (a file, say) whose room nothing tells of.
    pub fn must_try_again(&self) -> bool {
        !self.outbox.is_empty() && self.stdout.poll_fd().is_none()
    }

    /// Takes in what a wait for [`Self::watches`] has found.
    pub fn note_end(&mut self, watches: &[Watch]) {
        self.stdout_gone |= watches.first().is_some_and(|stdout| stdout.readable);
    }

    /// Writes the last words to stderr: the notes that wait, and these lines. A stderr that nobody
    /// reads is waited for no longer than LAST_FLUSH_MS.
    pub fn say_last(mut self, lines: &[String]) {
        self.hide_status();
        self.tell_what_is_left_out();
        for line in lines {
            self.notes.extend_from_slice(line.as_bytes());
            self.notes.push(b'\n');
        }
        self.write_notes();
        if let Some(stderr) = &mut self.stderr {
            stderr.write_within(&self.notes, LAST_FLUSH_MS);
        }
    }
}

/// Whether the terminal knows sequences: TERM says so.
fn can_erase() -> bool {
    host::variable("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
}
