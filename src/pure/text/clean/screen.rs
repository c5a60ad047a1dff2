//! The lines of clean text while they may still be edited, and the cursor on them.
//!
//! Every operation takes time in proportion to the text it was sent with, or is paid from a
//! bound per call (CLEAN_PADDING_CHARS, CLEAN_EDIT_CHARS), whatever the order they come in.

use std::borrow::Cow;
use std::collections::VecDeque;

use memchr::{memchr, memchr_iter, memrchr, memrchr_iter};

use crate::limits::{CLEAN_EDIT_CHARS, CLEAN_PADDING_CHARS, MAX_CURSOR_COLUMN, REDRAW_LINES};

/// The lines of one call and a cursor on them.
///
/// As long as text is only appended, all of it is in `above` and `rows` is empty: the cursor
/// is at the end of `above`, or with `returned` at the start of its last line. The first edit
/// moves the last line into `rows`, cursor movement up the lines above it.
pub(super) struct Screen {
    above: String,
    /// Byte index in `above` that nothing before is changed: an earlier part of the text.
    floor: usize,
    returned: bool,
    /// The last lines, as characters; at most REDRAW_LINES and the open one.
    rows: VecDeque<Vec<char>>,
    row: usize,
    /// The cursor's column in characters; it may be behind the end of its row.
    col: usize,
    /// Row and column that were saved (ESC 7), as long as that row is in `rows`.
    saved: Option<(usize, usize)>,
    /// Whether the cursor left its place by a jump since it was saved.
    jumped: bool,
    /// Blanks that cursor movement may still add.
    padding_left: usize,
    /// Characters that edits inside of lines may still touch.
    edits_left: usize,
    /// How many lines stand above the last one.
    newlines: usize,
    /// The lowest line, counted from the first, that has left `rows`.
    settled_from: usize,
}

impl Screen {
    /// An empty screen whose text goes on at the end of `above`, at the start of a line.
    pub(super) fn below(above: String) -> Self {
        Screen {
            floor: above.len(),
            above,
            returned: false,
            rows: VecDeque::new(),
            row: 0,
            col: 0,
            saved: None,
            jumped: false,
            padding_left: CLEAN_PADDING_CHARS,
            edits_left: CLEAN_EDIT_CHARS,
            newlines: 0,
            settled_from: usize::MAX,
        }
    }

    /// The whole text; an open line at the end has no newline.
    pub(super) fn into_text(mut self) -> String {
        self.above.push_str(&joined(self.rows.iter()));
        self.above
    }

    /// Shows text in which only \n and \t are control characters.
    pub(super) fn write(&mut self, text: &str) {
        let mut rest = text;
        loop {
            if self.rows.is_empty() && !self.returned {
                self.above.push_str(rest);
                self.newlines += memchr_iter(b'\n', rest.as_bytes()).count();
                return;
            }
            let newline = memchr(b'\n', rest.as_bytes());
            let line = &rest[..newline.unwrap_or(rest.len())];
            if !line.is_empty() {
                self.overwrite(line);
            }
            let Some(newline) = newline else { return };
            self.newline();
            rest = &rest[newline + 1..];
        }
    }

    /// Writes `line` at the cursor over what is there.
    fn overwrite(&mut self, line: &str) {
        self.edit();
        let row = &mut self.rows[self.row];
        if self.col > row.len() {
            let padding = self.col - row.len();
            if padding <= self.padding_left {
                self.padding_left -= padding;
                row.resize(self.col, ' ');
            } else {
                self.col = row.len();
            }
        }
        let mut new = line.chars();
        for old in &mut row[self.col..] {
            let Some(character) = new.next() else { break };
            *old = character;
            self.col += 1;
        }
        let overwritten = row.len();
        row.extend(new);
        self.col += row.len() - overwritten;
    }

    /// To the start of the next line, a new one at the end.
    pub(super) fn newline(&mut self) {
        self.returned = false;
        self.col = 0;
        if self.rows.is_empty() {
            self.above.push('\n');
        } else if self.row + 1 < self.rows.len() {
            self.row += 1;
            return;
        } else if self.rows.len() == 1 && self.saved.is_none() {
            // Only this line was edited; the next one is appended to again.
            self.settle_top_row();
        } else {
            let mut row = Vec::new();
            if self.rows.len() > REDRAW_LINES {
                row = self.settle_top_row();
            }
            self.rows.push_back(row);
            self.row = self.rows.len() - 1;
        }
        self.newlines += 1;
    }

    /// Moves the top row, which nothing reaches any more, to the text above; gives its heap.
    fn settle_top_row(&mut self) -> Vec<char> {
        self.settled_from = self.settled_from.min(self.first_row());
        let mut row = self.rows.pop_front().unwrap_or_default();
        self.above.extend(&row);
        self.above.push('\n');
        self.saved = self.saved.and_then(|(row, col)| Some((row.checked_sub(1)?, col)));
        row.clear();
        row
    }

    /// Makes the cursor's line a row of characters.
    fn edit(&mut self) {
        if self.rows.is_empty() {
            self.load_row();
            self.row = 0;
            self.col = if self.returned { 0 } else { self.rows[0].len() };
            self.returned = false;
        }
    }

    /// Where the last line of the text above starts.
    fn last_line_start(&self) -> usize {
        let reachable = &self.above.as_bytes()[self.floor..];
        self.floor + memrchr(b'\n', reachable).map_or(0, |newline| newline + 1)
    }

    /// How long the last line of the text above is: what moving it into a row costs.
    fn last_line_bytes(&self) -> usize {
        self.above.len() - self.last_line_start()
    }

    /// Moves the last line of the text above into a new top row.
    fn load_row(&mut self) {
        let line_start = self.last_line_start();
        self.rows.push_front(self.above[line_start..].chars().collect());
        self.above.truncate(line_start);
    }

    /// Whether the last line has no character.
    fn last_line_is_empty(&self) -> bool {
        match self.rows.back() {
            Some(row) => row.is_empty(),
            None => self.above.len() == self.floor || self.above.ends_with('\n'),
        }
    }

    /// A control character other than \n, \t and ESC.
    pub(super) fn control(&mut self, byte: u8) {
        match byte {
            b'\r' if self.rows.is_empty() => self.returned = !self.last_line_is_empty(),
            b'\r' => self.col = 0,
            0x08 => self.left(1),
            _ => {}
        }
    }

    /// `columns` to the left, at most to the first one.
    pub(super) fn left(&mut self, columns: usize) {
        self.edit();
        self.col = self.col.saturating_sub(columns);
    }

    /// `columns` to the right, as far as move_to_column goes.
    pub(super) fn right(&mut self, columns: usize) {
        self.edit();
        self.move_to_column(self.col.saturating_add(columns));
    }

    /// To `column` of this line, counted from 0; movement alone opens up a bounded number.
    pub(super) fn move_to_column(&mut self, column: usize) {
        self.edit();
        let reach = MAX_CURSOR_COLUMN.max(self.rows[self.row].len()).max(self.col);
        self.col = column.min(reach);
    }

    /// `lines` up, at most to this call's first line or to the REDRAW_LINESth above the last.
    pub(super) fn up(&mut self, lines: usize) {
        self.edit();
        while self.row < lines && self.rows.len() <= REDRAW_LINES && self.above.len() > self.floor {
            // The newline that ends the line above.
            self.above.pop();
            if !self.may_touch(self.last_line_bytes()) {
                self.above.push('\n');
                break;
            }
            self.load_row();
            self.row += 1;
            self.saved = self.saved.map(|(row, col)| (row + 1, col));
        }
        self.row = self.row.saturating_sub(lines);
    }

    /// Down to at most the last line: on a terminal's bottom row that is where it ends, too.
    pub(super) fn down(&mut self, lines: usize) {
        if !self.rows.is_empty() {
            self.row = self.row.saturating_add(lines).min(self.rows.len() - 1);
        }
    }

    /// To the start of an empty line below everything.
    pub(super) fn fresh_line(&mut self) {
        self.row = self.rows.len().saturating_sub(1);
        if self.last_line_is_empty() {
            self.returned = false;
            self.col = 0;
        } else {
            self.newline();
        }
    }

    /// Whether no line is below the cursor's.
    pub(super) fn is_at_last_line(&self) -> bool {
        self.row + 1 >= self.rows.len()
    }

    /// To a row of the screen's grid, of which there is none here: a fresh line.
    pub(super) fn jump(&mut self) {
        self.fresh_line();
        self.jumped = true;
    }

    /// Remembers where the cursor is.
    pub(super) fn save_cursor(&mut self) {
        self.edit();
        self.saved = Some((self.row, self.col));
        self.jumped = false;
    }

    /// Back to where the cursor was when it was saved last. After a jump that place is not on
    /// the lines shown since, so what comes next gets a fresh line.
    pub(super) fn restore_cursor(&mut self) {
        if self.jumped {
            self.jumped = false;
            self.fresh_line();
        } else if let Some((row, col)) = self.saved {
            self.row = row.min(self.rows.len().saturating_sub(1));
            self.col = col;
        }
    }

    /// Erases from the cursor on and all lines below (CSI J).
    pub(super) fn erase_below(&mut self) {
        self.newlines -= self.rows.len().saturating_sub(self.row + 1);
        self.rows.truncate(self.row + 1);
        self.erase_in_line(0);
    }

    /// CSI K: 0 erases from the cursor on, 1 up to it, 2 the line; the cursor stays.
    pub(super) fn erase_in_line(&mut self, part: usize) {
        let at_end = self.rows.is_empty() && !self.returned;
        if part > 2 || (part == 0 && at_end) {
            // grep --color writes CSI K after each colour: nothing is behind the cursor then.
            return;
        }
        self.edit();
        let col = self.col;
        match part {
            0 => self.rows[self.row].truncate(col),
            1 => self.blank(0, col + 1),
            _ => self.rows[self.row].clear(),
        }
    }

    /// CSI X: blanks `count` characters from the cursor on.
    pub(super) fn erase_chars(&mut self, count: usize) {
        self.edit();
        self.blank(self.col, self.col.saturating_add(count));
    }

    /// CSI P: takes out `count` characters from the cursor on; what is behind moves left.
    pub(super) fn delete_chars(&mut self, count: usize) {
        self.edit();
        let len = self.rows[self.row].len();
        if self.col < len && self.may_touch(len - self.col) {
            let end = self.col.saturating_add(count).min(len);
            self.rows[self.row].drain(self.col..end);
        }
    }

    /// CSI @: puts `count` blanks before the character at the cursor.
    pub(super) fn insert_blanks(&mut self, count: usize) {
        self.edit();
        let len = self.rows[self.row].len();
        let fits = count <= self.padding_left && count <= MAX_CURSOR_COLUMN;
        if self.col < len && fits && self.may_touch(len - self.col + count) {
            self.padding_left -= count;
            let blanks = std::iter::repeat_n(' ', count);
            self.rows[self.row].splice(self.col..self.col, blanks);
        }
    }

    /// Makes the columns `from..to` of this line blank; blanks at its end are not kept.
    fn blank(&mut self, from: usize, to: usize) {
        let len = self.rows[self.row].len();
        if to >= len {
            self.rows[self.row].truncate(from);
        } else if self.may_touch(to - from) {
            self.rows[self.row][from..to].fill(' ');
        }
    }

    /// Takes the cost of an edit from what this call may spend on them: without a bound,
    /// sequences of four bytes could each move half a megabyte.
    fn may_touch(&mut self, chars: usize) -> bool {
        let allowed = chars <= self.edits_left;
        if allowed {
            self.edits_left -= chars;
        }
        allowed
    }

    // ---- What is asked for while the text still grows (live.rs) ----

    /// How many lines there are; the last one may be empty.
    pub(super) fn line_count(&self) -> usize {
        self.newlines + 1
    }

    /// The number of the top row as a line, or of the last line where nothing is edited.
    fn first_row(&self) -> usize {
        (self.newlines + 1).saturating_sub(self.rows.len().max(1))
    }

    /// Whether text is only appended.
    pub(super) fn appends(&self) -> bool {
        self.rows.is_empty() && !self.returned
    }

    /// The first line that may have been edited since this was asked last.
    pub(super) fn take_edited(&mut self) -> usize {
        std::mem::replace(&mut self.settled_from, usize::MAX).min(self.first_row())
    }

    /// Takes the rows back into the text where the cursor is at its end, and lets the next call
    /// spend on edits again.
    pub(super) fn rest(&mut self) {
        (self.padding_left, self.edits_left) = (CLEAN_PADDING_CHARS, CLEAN_EDIT_CHARS);
        let at_end = self.is_at_last_line()
            && self.saved.is_none()
            && self.rows.back().is_some_and(|row| row.len() == self.col);
        if at_end {
            self.above.push_str(&joined(self.rows.iter()));
            self.rows.clear();
            (self.row, self.col) = (0, 0);
        }
    }

    /// The lines from `first` on, with a newline between them.
    pub(super) fn text_from(&self, first: usize) -> Cow<'_, str> {
        let behind = self.newlines.saturating_sub(first);
        let in_rows = self.rows.len();
        if in_rows > behind {
            return Cow::Owned(joined(self.rows.iter().skip(in_rows - 1 - behind)));
        }
        // Above the rows stand whole lines, each with its newline; without rows, an open one.
        let newlines = behind + 1 - in_rows + usize::from(in_rows > 0);
        let mut before = memrchr_iter(b'\n', self.above.as_bytes()).skip(newlines - 1);
        let text = &self.above[before.next().map_or(0, |newline| newline + 1)..];
        if in_rows == 0 {
            return Cow::Borrowed(text);
        }
        Cow::Owned(text.to_owned() + &joined(self.rows.iter()))
    }

    /// What is held, in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        let in_rows: usize = self.rows.iter().map(Vec::len).sum();
        self.above.len() + in_rows * size_of::<char>()
    }

    /// Forgets the first `lines`, which must all be above the rows.
    pub(super) fn forget(&mut self, lines: usize) {
        let lines = lines.min(self.first_row());
        let Some(last) = lines.checked_sub(1) else { return };
        let end = memchr_iter(b'\n', self.above.as_bytes()).nth(last).map_or(0, |at| at + 1);
        self.above.drain(..end);
        self.newlines -= lines;
    }

    /// Sets the text from what was kept elsewhere; the cursor is at its end.
    pub(super) fn begins_with(text: String) -> Self {
        let newlines = memchr_iter(b'\n', text.as_bytes()).count();
        Screen { above: text, newlines, ..Screen::below(String::new()) }
    }
}

fn joined<'a>(rows: impl Iterator<Item = &'a Vec<char>>) -> String {
    let mut text = String::new();
    for (index, row) in rows.enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text.extend(row);
    }
    text
}
