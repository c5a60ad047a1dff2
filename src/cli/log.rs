//! `execd log`: the output of one session, from the execd that has had it, or from the log where
//! that execd is gone (logs.md, Reading by people).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::connection::{Connection, message_of};
use super::logs::{facts_of, open_dir, short_id};
use super::say::{EXIT_SIGNAL, complain, say_bytes};
use super::survey::{Place, survey};
use crate::keeper::range::{self, Wanted};
use crate::limits::{
    CLIENT_WAIT_MS, LOG_FOLLOW_WAIT_MS, LOG_PAGE_WAIT_MS, LOG_RANGE_MAX_BYTES, LOGS_OF_ONE_ID,
};
use crate::pure::text::clean::cut::cuts;
use crate::pure::text::clean::window_text;
use crate::sys::errno::errno_text;
use crate::sys::log_files::LogDir;
use crate::sys::log_list::newest;
use std::path::PathBuf;

/// The exit status where nobody reads stdout any more: that of a command which SIGPIPE has ended.
const EXIT_UNREAD: i32 = EXIT_SIGNAL + 13;

/// Whose output is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// A session's, by its number.
    Session(u64),
    /// That of the log of this name, in the log directory or in the one that is named.
    Log(Option<PathBuf>, String),
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// Whose output.
    pub whose: Whose,
    /// The first byte; negative: from the end.
    pub from: Option<i64>,
    /// Only the last so many lines.
    pub lines: Option<u32>,
    /// Goes on with what comes, to the session's end.
    pub follow: bool,
    /// Exact bytes.
    pub raw: bool,
    /// Where logs are.
    pub log_dir: Option<PathBuf>,
}

/// Where output is read from.
enum Source {
    /// The execd that has had the session.
    Execd(Box<Connection>, u64),
    /// A log, whose output has so many bytes where the facts beside it say that.
    Log(LogDir, String, Option<u64>),
}

/// A part of the output.
struct Page {
    bytes: Vec<u8>,
    next: u64,
    gap: Option<(u64, u64)>,
    /// How much output there is by now.
    total: u64,
    /// The session is over, and this is the end of its output.
    end: bool,
}

/// Prints the output; gives the exit status.
pub fn main(options: &LogOptions, place: &Place) -> Result<i32, String> {
    let mut source = match &options.whose {
        Whose::Log(dir, name) => of_log(dir.as_ref().or(options.log_dir.as_ref()), name.clone())?,
        Whose::Session(id) => match of_execd(*id, place)? {
            Some(source) => source,
            None => of_gone(*id, options)?,
        },
    };
    let (mut at, mut lines) = (options.from, options.lines);
    if lines.is_none() {
        at = at.or(Some(0));
    }
    let mut out = Out { raw: options.raw, rest: Vec::new(), broken: false };
    let (mut until, mut wait_ms) = (None, 0);
    loop {
        let page = source.page(at, lines.take(), wait_ms)?;
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
        at = Some(page.next.cast_signed());
        if page.end || (!options.follow && (caught_up || page.next >= until)) {
            let gone = out.flush();
            return Ok(if gone { EXIT_UNREAD } else { 0 });
        }
        wait_ms = if options.follow && caught_up { LOG_FOLLOW_WAIT_MS } else { 0 };
    }
}

/// The execd that has, or has had, the session.
fn of_execd(id: u64, place: &Place) -> Result<Option<Source>, String> {
    let survey = survey(place)?;
    survey.tell_of_silent();
    let mut found = Vec::new();
    for mut execd in survey.execds {
        let params = json!({"session_id": id, "max_bytes": 4});
        let wait_ms = Some(CLIENT_WAIT_MS + LOG_PAGE_WAIT_MS);
        match execd.connection.call("read_output", &params, wait_ms) {
            Ok(Ok(_)) => found.push(execd),
            // Another session's, or an older execd's, answer.
            Ok(Err(error)) if error["data"]["reason"] == "unknown_session" => {}
            Ok(Err(error)) => complain(&format!("execd: {}", message_of(&error))),
            Err(reason) => complain(&format!("execd: {reason}")),
        }
    }
    if found.len() > 1 {
        let each: Vec<String> =
            found.iter().map(|one| format!("execd-{}:@{id}", one.pid)).collect();
        return Err(format!("several execds have had a session @{id}: say {}", each.join(" or ")));
    }
    Ok(found.pop().map(|execd| Source::Execd(Box::new(execd.connection), id)))
}

/// The log of a session of this number, of an execd that is gone.
fn of_gone(id: u64, options: &LogOptions) -> Result<Source, String> {
    let none = || format!("no session @{id}, and no log of one: execd logs lists them");
    let Ok(dir) = open_dir(options.log_dir.as_ref()) else { return Err(none()) };
    let (mut found, count) =
        newest(&dir, &format!("execd-{id}-"), LOGS_OF_ONE_ID).map_err(|error| error.to_string())?;
    if count > 1 {
        let each: Vec<&str> = found.iter().map(|one| short_id(&one.name)).collect();
        let each = each.join(", ");
        return Err(format!(
            "{count} logs are of a session @{id}: say which, newest first: {each}"
        ));
    }
    let name = found.pop().ok_or_else(none)?.name;
    of_log(options.log_dir.as_ref(), name)
}

fn of_log(dir: Option<&PathBuf>, name: String) -> Result<Source, String> {
    let dir = open_dir(dir)?;
    let total = facts_of(&dir, &name)["total_bytes"].as_u64();
    Ok(Source::Log(dir, name, total))
}

impl Source {
    /// What begins there, as much as is given at a time.
    fn page(
        &mut self,
        from: Option<i64>,
        lines: Option<u32>,
        wait_ms: u64,
    ) -> Result<Page, String> {
        match self {
            Self::Execd(connection, id) => {
                let mut params = json!({
                    "session_id": id, "view": "b64", "max_bytes": LOG_RANGE_MAX_BYTES,
                    "yield_time_ms": wait_ms,
                });
                if let Some(from) = from {
                    params["from"] = json!(from);
                }
                if let Some(lines) = lines {
                    params["lines"] = json!(lines);
                }
                let most_ms = Some(CLIENT_WAIT_MS + LOG_PAGE_WAIT_MS + wait_ms);
                page_of(&connection.result("read_output", &params, most_ms)?)
            }
            Self::Log(dir, name, total) => {
                let wanted = Wanted {
                    only: None,
                    from: from.unwrap_or(LOG_RANGE_MAX_BYTES.cast_signed().saturating_neg()),
                    to: u64::MAX,
                    max_bytes: LOG_RANGE_MAX_BYTES,
                    lines: lines.unwrap_or(0),
                    lead: false,
                    total: *total,
                };
                let failed = |errno| format!("{name}: {}", errno_text(errno));
                let read = range::read(dir, name, &wanted).map_err(failed)?;
                let (head, total) = (read.head, total.unwrap_or(read.head.known_total));
                let gap = Some(head.gap).filter(|(from, to)| from < to);
                let end = head.next_offset >= total || (read.bytes.is_empty() && gap.is_none());
                Ok(Page { bytes: read.bytes, next: head.next_offset, gap, total, end })
            }
        }
    }
}

/// What a reply of read_output has.
fn page_of(reply: &Value) -> Result<Page, String> {
    let number = |value: &Value| value.as_u64().ok_or("a reply of read_output makes no sense");
    let bytes = STANDARD.decode(reply["data_b64"].as_str().unwrap_or_default());
    let gap = &reply["gap"];
    Ok(Page {
        bytes: bytes.map_err(|fault| format!("a part of the output: {fault}"))?,
        next: number(&reply["next_offset"])?,
        gap: gap[0].as_u64().zip(gap[1].as_u64()),
        total: number(&reply["total_bytes"])?,
        end: reply["eof"] == true,
    })
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
