//! Cutting text for a model to its last lines, and saying so.
//!
//! Every count is what pi's `truncateTail` gives for the same text: the extension's tests
//! compare the two, and a table of its answers is in the tests here.

use memchr::{memchr_iter, memrchr};

use crate::pure::text::utf8;

/// Which of the two limits cut the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CutBy {
    /// There were more lines than allowed (or only the newline at the end was cut).
    Lines,
    /// The next line up would have been over the bytes allowed.
    Bytes,
}

impl CutBy {
    /// The word for it on the wire: `lines` or `bytes` (`truncatedBy`).
    pub const fn as_str(self) -> &'static str {
        match self {
            CutBy::Lines => "lines",
            CutBy::Bytes => "bytes",
        }
    }
}

/// What was cut from a text, in the terms of a result's `truncation`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Truncation {
    /// The limit that cut; None when the text was left as it is.
    pub cut_by: Option<CutBy>,
    /// Lines of the whole text. A newline ends a line, it does not start an empty one.
    pub total_lines: usize,
    /// Bytes of the whole text, the newline at its end included.
    pub total_bytes: usize,
    /// Lines kept, a partial one included.
    pub output_lines: usize,
    /// Bytes kept.
    pub output_bytes: usize,
    /// Whether only the end of a single last line was kept.
    pub last_line_partial: bool,
    /// The limit of lines that was applied.
    pub max_lines: usize,
    /// The limit of bytes that was applied.
    pub max_bytes: usize,
}

/// The end of `text` that fits into `max_lines` lines and `max_bytes` bytes, and what was cut.
///
/// Whole lines only, except that a last line over `max_bytes` alone keeps its last bytes from
/// a character boundary on. A text within both limits is kept as it is with its newline at the
/// end; a text that was cut ends without it (as pi's truncateTail leaves it).
pub fn truncate_tail(text: &str, max_lines: usize, max_bytes: usize) -> (&str, Truncation) {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let newlines = memchr_iter(b'\n', text.as_bytes()).count();
    let total_lines = newlines + usize::from(!text.is_empty() && body.len() == text.len());
    let mut result = Truncation {
        cut_by: None,
        total_lines,
        total_bytes: text.len(),
        output_lines: total_lines,
        output_bytes: text.len(),
        last_line_partial: false,
        max_lines,
        max_bytes,
    };
    if total_lines <= max_lines && text.len() <= max_bytes {
        return (text, result);
    }
    let (mut start, lines, over_bytes) = whole_lines_from_end(body, max_lines, max_bytes);
    result.output_lines = lines;
    if over_bytes && lines == 0 {
        start = utf8::ceil_boundary(body, body.len() - max_bytes);
        result.output_lines = 1;
        result.last_line_partial = true;
    }
    // With the lines used up pi names that limit, even where the bytes would have cut next.
    let by_bytes = over_bytes && result.output_lines < max_lines;
    result.cut_by = Some(if by_bytes { CutBy::Bytes } else { CutBy::Lines });
    let kept = &body[start..];
    result.output_bytes = kept.len();
    (kept, result)
}

/// Goes up from the end of `body` while whole lines fit. Gives the byte index where the kept
/// lines start, how many they are, and whether the next one up would be over `max_bytes`.
fn whole_lines_from_end(body: &str, max_lines: usize, max_bytes: usize) -> (usize, usize, bool) {
    let mut start = body.len();
    let mut lines = 0;
    let mut line_end = body.len();
    while lines < max_lines {
        let line_start = memrchr(b'\n', &body.as_bytes()[..line_end]).map_or(0, |at| at + 1);
        if body.len() - line_start > max_bytes {
            return (start, lines, true);
        }
        start = line_start;
        lines += 1;
        if line_start == 0 {
            break;
        }
        line_end = line_start - 1;
    }
    (start, lines, false)
}

/// The line for a model that says what was cut and where all of it is;
/// None when nothing was cut. Without a `log_path` the part that names it is left out.
pub fn footer(cut: &Truncation, log_path: Option<&str>) -> Option<String> {
    let part = || {
        let [shown, most] = [cut.output_bytes, cut.max_bytes].map(format_size);
        let line = cut.total_lines;
        format!("last {shown} of final line (line {line} is larger than the {most} limit)")
    };
    Some(showing(cut, cut.cut_by?, part, log_path))
}

/// The line that says what is shown; `part` says it where only the end of one line is shown.
pub fn showing(
    cut: &Truncation,
    cut_by: CutBy,
    part: impl FnOnce() -> String,
    log_path: Option<&str>,
) -> String {
    let (first, last) = (cut.total_lines.saturating_sub(cut.output_lines) + 1, cut.total_lines);
    let what = match cut_by {
        _ if cut.last_line_partial => part(),
        CutBy::Lines => format!("lines {first}-{last} of {last}"),
        CutBy::Bytes => {
            format!("lines {first}-{last} of {last} ({} limit)", format_size(cut.max_bytes))
        }
    };
    let full = log_path.map(|path| format!(". Full output: {path}")).unwrap_or_default();
    format!("[Showing {what}{full}]")
}

/// `bytes` for people, as pi writes it: `512B`, from 1024 on `1.5KB`, from 1024² on `2.0MB`;
/// one decimal, halves rounded up.
pub fn format_size(bytes: usize) -> String {
    const KIB: u128 = 1024;
    const MIB: u128 = 1024 * 1024;
    let exact = bytes as u128;
    let (unit, name) = match exact {
        ..KIB => return format!("{exact}B"),
        KIB..MIB => (KIB, "KB"),
        MIB.. => (MIB, "MB"),
    };
    // Integers, because {:.1} of a float rounds halves to even and JavaScript's toFixed up.
    let tenths = (exact * 10 + unit / 2) / unit;
    format!("{}.{}{name}", tenths / 10, tenths % 10)
}

#[cfg(test)]
#[path = "tests_truncate.rs"]
mod tests;
