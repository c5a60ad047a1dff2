//! Where `execd log` reads from: the execd that has, or has had, the session, or the log itself.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::log_whose::{Meant, of_number, writer_of};
use super::logs::{facts_of, open_dir};
use super::say::complain;
use super::survey::{Execd, NAMED_CHARS, Place, shortened, survey};
use crate::client::connection::{Connection, message_of};
use crate::keeper::range::{self, Wanted};
use crate::limits::{CLIENT_WAIT_MS, LOG_PAGE_WAIT_MS, LOG_RANGE_MAX_BYTES, NS_PER_MS};
use crate::sys::clock;
use crate::sys::errno::errno_text;
use crate::sys::io::{EEXIST, ENOENT};
use crate::sys::log_files::LogDir;
use crate::sys::poll::{self, Watch};
use std::path::PathBuf;

/// Whose output is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// A session's, by its number.
    Session(u64),
    /// That of a session of this name, or of the only one whose name begins so.
    Named(String),
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
pub(super) enum Source {
    /// The execd that has had the session.
    Execd(Box<Connection>, u64),
    /// A log.
    Log(Log),
}

/// A log that is read.
pub(super) struct Log {
    dir: LogDir,
    name: String,
    /// How many bytes its output has, where the facts beside it say that and its index is whole.
    total: Option<u64>,
    /// Its index makes no sense: it is read as it is.
    as_is: bool,
}

/// A part of the output.
#[derive(Clone, Copy)]
pub(super) struct Span {
    /// The first byte; negative: from the end.
    pub(super) from: i64,
    /// Behind the last one; `None`: the end.
    pub(super) to: Option<u64>,
}

/// What has come of a part of the output.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) bytes: Vec<u8>,
    pub(super) next: u64,
    pub(super) gap: Option<(u64, u64)>,
    /// The first byte that is kept.
    pub(super) log_from: u64,
    /// How much output there is by now.
    pub(super) total: u64,
    /// The session is over, and this is the end of its output.
    pub(super) end: bool,
}

/// Finds what is asked for.
pub(super) fn open(options: &LogOptions, place: &Place) -> Result<Source, String> {
    let (id, execd) = match &options.whose {
        Whose::Log(dir, name) => {
            // More comes only from the execd that writes it.
            let dir = dir.as_ref().or(options.log_dir.as_ref());
            let writer = if options.follow { writer_of(name, dir, place)? } else { None };
            match writer {
                Some((id, execd)) => (id, execd),
                None => return of_log(dir, name.clone()),
            }
        }
        Whose::Session(id) => match of_number(*id, options.log_dir.as_ref(), place)? {
            Meant::Session(execd) => (*id, *execd),
            Meant::Log(name) => return of_log(options.log_dir.as_ref(), name),
        },
        Whose::Named(name) => of_name(name, place)?,
    };
    Ok(Source::Execd(Box::new(execd.connection), id))
}

/// The session of this name, or the only one whose name begins so, and its execd.
fn of_name(name: &str, place: &Place) -> Result<(u64, Execd), String> {
    let survey = survey(place)?;
    survey.tell_of_silent();
    let mut found: Vec<(bool, u64, String, usize)> = Vec::new();
    for (at, execd) in survey.execds.iter().enumerate() {
        for row in &execd.sessions {
            let called = row["name"].as_str().filter(|called| called.starts_with(name));
            if let (Some(called), Some(id)) = (called, row["session_id"].as_u64()) {
                let says = format!("execd-{}:@{id} ({})", execd.pid, shortened(row, NAMED_CHARS));
                found.push((called == name, id, says, at));
            }
        }
    }
    if found.iter().any(|(is_it, ..)| *is_it) {
        found.retain(|(is_it, ..)| *is_it);
    }
    if found.len() > 1 {
        let each: Vec<&str> = found.iter().map(|(_, _, says, _)| says.as_str()).collect();
        return Err(format!("several sessions are called {name}: say {}", each.join(" or ")));
    }
    let none = || {
        format!(
            "{name} is no session, no name of one and no log: execd ls and execd logs list them"
        )
    };
    let (_, id, _, at) = found.pop().ok_or_else(none)?;
    let execd = survey.execds.into_iter().nth(at).ok_or_else(none)?;
    Ok((id, execd))
}

fn of_log(dir: Option<&PathBuf>, name: String) -> Result<Source, String> {
    let dir = open_dir(dir)?;
    let path = dir.path().join(&name);
    let path = path.display();
    let total = facts_of(&dir, &name)["total_bytes"].as_u64();
    match dir.read_log(&name) {
        // All of its output is a gap then.
        Err(ENOENT) if total.is_some() => {}
        Err(ENOENT) => return Err(format!("{path}: there is no such log: execd logs lists them")),
        Err(EEXIST) => {
            let needs = "a log is a regular file that is yours (execd logs lists them)";
            return Err(format!("{path} is no log: {needs}"));
        }
        Err(errno) => return Err(format!("{path}: {}", errno_text(errno))),
        Ok(_) => {}
    }
    let as_is = range::has_broken_index(&dir, &name);
    if as_is {
        complain(&format!(
            "execd log: {path}.index cannot be read: this is the log as it is, lines of execd's \
             own among the output"
        ));
    }
    // Lines of execd's own stand behind the output's end then.
    let total = total.filter(|_| !as_is);
    Ok(Source::Log(Log { dir, name, total, as_is }))
}

impl Source {
    /// Whether it is not known to be the output alone.
    pub(super) fn is_doubtful(&self) -> bool {
        matches!(self, Self::Log(Log { as_is: true, .. }))
    }

    /// What begins there, as much as is given at a time; `None` where nobody reads stdout any more.
    pub(super) fn page(&mut self, span: Span, wait_ms: u64) -> Result<Option<Page>, String> {
        match self {
            Self::Execd(connection, id) => {
                let mut params = json!({
                    "session_id": id, "view": "b64", "max_bytes": LOG_RANGE_MAX_BYTES,
                    "from": span.from, "yield_time_ms": wait_ms,
                });
                if let Some(to) = span.to {
                    params["to"] = json!(to);
                }
                let request = connection.send("read_output", &params);
                if wait_ms > 0 && is_unread_before(connection, wait_ms) {
                    return Ok(None);
                }
                let most_ms = Some(CLIENT_WAIT_MS + LOG_PAGE_WAIT_MS + wait_ms);
                let reply = connection.answer(request, most_ms)?;
                page_of(&reply.map_err(|error| message_of(&error))?).map(Some)
            }
            Self::Log(log) => log.page(span).map(Some),
        }
    }
}

/// Waits for a message of execd; whether nobody reads stdout any more before it has come.
fn is_unread_before(connection: &mut Connection, wait_ms: u64) -> bool {
    let due_ns = clock::now_ns() + wait_ms * NS_PER_MS;
    while !connection.has_message() && !connection.is_over() && clock::now_ns() < due_ns {
        let [input, room] = connection.watches(true);
        let mut watches = [input, room, Watch::for_end(1)];
        poll::wait_for(&mut watches, Some(due_ns));
        if watches[2].readable {
            return true;
        }
        connection.move_on(&watches[..2]);
    }
    false
}

impl Log {
    fn page(&self, span: Span) -> Result<Page, String> {
        let Self { dir, name, total, .. } = self;
        let wanted = Wanted {
            only: None,
            from: span.from,
            to: span.to.unwrap_or(u64::MAX),
            max_bytes: LOG_RANGE_MAX_BYTES,
            total: *total,
        };
        let failed = |errno| format!("{name}: {}", errno_text(errno));
        let read = range::read(dir, name, &wanted).map_err(failed)?;
        let head = read.head;
        let gap = Some(head.gap).filter(|(from, to)| from < to);
        let (next, total, log_from) = (head.to, head.known_total, head.log_from);
        let end = next >= total || (read.bytes.is_empty() && gap.is_none());
        Ok(Page { bytes: read.bytes, next, gap, log_from, total, end })
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
        log_from: number(&reply["log_from"])?,
        total: number(&reply["total_bytes"])?,
        end: reply["eof"] == true,
    })
}
