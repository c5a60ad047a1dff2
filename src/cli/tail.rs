//! `execd tail`: the last lines of a session's output, and with `-f` what comes after them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memrchr_iter;
use serde_json::json;

use super::say::say_bytes;
use super::show::show;
use super::survey::{Found, Place, Which, find};
use crate::client::connection::Connection;
use crate::limits::{CLIENT_WAIT_MS, LOG_PAGE_MAX_BYTES, LOG_PAGE_WAIT_MS};
use crate::pure::terminal::modes::TermModes;
use crate::pure::terminal::queries::QueryFilter;
use crate::sys::errno::errno_text;
use crate::sys::stdio;

/// Bytes of output that `execd tail` looks at for its lines.
const TAIL_BYTES: usize = 64 * 1024 * 1024;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct TailOptions {
    /// The session.
    pub which: Which,
    /// How many lines.
    pub lines: u64,
    /// Goes on with what comes, to the session's end.
    pub follow: bool,
}

/// Prints the lines; gives the exit status, which with `-f` is the session's.
pub fn main(options: &TailOptions, place: &Place) -> Result<i32, String> {
    let Found { mut execd, row, .. } = find(&options.which, place, false)?;
    let (id, lines) = (row["session_id"].as_u64().unwrap_or_default(), options.lines);
    let total = row["output_bytes_total"].as_u64().unwrap_or_default();
    if !options.follow {
        let text = last_lines(&mut execd.connection, (id, lines), total)?;
        say_bytes(&fit_for_stdout(text));
        return Ok(0);
    }
    execd.refuse_itself(id)?;
    let params = json!({"session_id": id, "redraw": false, "from": total});
    execd.connection.result("attach_session", &params, Some(CLIENT_WAIT_MS))?;
    // What the session writes meanwhile is kept, and begins where these lines end.
    let text = last_lines(&mut execd.connection, (id, lines), total)?;
    say_bytes(&fit_for_stdout(text));
    let system = |errno| format!("stdout: {}", errno_text(errno));
    let (end, _) = show(execd.connection, id, None).map_err(system)?;
    end.tell(id);
    Ok(end.status())
}

/// Makes old output fit for stdout: a terminal is asked nothing by it, and what the output sets in
/// the terminal is taken back at the end.
fn fit_for_stdout(text: Vec<u8>) -> Vec<u8> {
    if !stdio::is_terminal(1) {
        return text;
    }
    let (mut questions, mut modes, mut out) = (QueryFilter::new(), TermModes::new(), Vec::new());
    questions.pass(&text, &mut out);
    modes.feed(&out);
    out.extend(modes.change_to(&TermModes::new()));
    out.extend_from_slice(b"\x1b[0m");
    out
}

/// A page of the output that ends at `end`, and where the page begins.
fn page(connection: &mut Connection, id: u64, end: u64) -> Result<(Vec<u8>, u64), String> {
    let offset = end.saturating_sub(LOG_PAGE_MAX_BYTES);
    let params = json!({
        "sessionId": id, "offset": offset, "limit": end - offset, "encoding": "base64",
    });
    let wait_ms = Some(CLIENT_WAIT_MS + LOG_PAGE_WAIT_MS);
    let page = connection.result("get_process_log", &params, wait_ms)?;
    let bytes = STANDARD.decode(page["text"].as_str().unwrap_or_default());
    let mut bytes = bytes.map_err(|fault| format!("a page of the log: {fault}"))?;
    let offset = page["offset"].as_u64().unwrap_or(offset);
    bytes.truncate(usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX));
    Ok((bytes, offset))
}

/// The last lines, so many, of the first `end` bytes of a session's output.
fn last_lines(
    connection: &mut Connection,
    (id, lines): (u64, u64),
    mut end: u64,
) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    while end > 0 && text.len() < TAIL_BYTES {
        let (mut bytes, offset) = page(connection, id, end)?;
        if bytes.is_empty() {
            break;
        }
        bytes.append(&mut text);
        text = bytes;
        if let Some(start) = start_of_last(&text, lines) {
            text.drain(..start);
            break;
        }
        // execd keeps nothing that is older.
        if offset >= end {
            break;
        }
        end = offset;
    }
    Ok(text)
}

/// Where the last `lines` lines of a text begin; `None` when it has fewer, or only so many.
fn start_of_last(text: &[u8], lines: u64) -> Option<usize> {
    // The newline at the very end belongs to the last line.
    let inner = text.strip_suffix(b"\n").unwrap_or(text);
    match usize::try_from(lines).unwrap_or(usize::MAX) {
        0 => Some(text.len()),
        lines => memrchr_iter(b'\n', inner).nth(lines - 1).map(|at| at + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_a_text() {
        for (text, lines, start) in [
            ("a\nb\nc\n", 1, Some(4)),
            ("a\nb\nc", 1, Some(4)),
            ("a\nb\nc\n", 2, Some(2)),
            ("a\nb\nc\n", 3, None),
            ("a\nb\n\n", 1, Some(4)),
            ("", 5, None),
            ("a\n", 0, Some(2)),
        ] {
            assert_eq!(start_of_last(text.as_bytes(), lines), start, "{text:?} {lines}");
        }
    }
}
