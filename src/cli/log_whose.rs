//! Which session is meant by a number: numbers are an execd's own, so that several execds may have
//! had a session 3. What is not certain is refused, with all that may be meant (logs.md, Reading by
//! people).

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::logs::{facts_of, open_dir};
use super::ls::{age, state};
use super::say::complain;
use super::survey::{Execd, NAMED_CHARS, Place, shortened, survey};
use crate::client::connection::message_of;
use crate::limits::{CLIENT_WAIT_MS, LOG_PAGE_WAIT_MS};
use crate::pure::process::marks::INSTANCE_VARIABLE;
use crate::sys::log_files::{LogDir, short_name};
use crate::sys::log_walk::{Listed, newest};
use crate::sys::{clock, host};

/// Logs of sessions of one number that `execd log` names where it cannot tell which one is meant.
const LOGS_OF_ONE_ID: usize = 5;

/// What a number means.
pub(super) enum Meant {
    /// A session of this execd.
    Session(Box<Execd>),
    /// The log of this name, in the log directory, of an execd that is gone or cannot be asked.
    Log(String),
}

/// An execd that knows a session of the number, and what it says of it.
struct Known {
    execd: Execd,
    reply: Value,
}

impl Known {
    fn log_path(&self) -> Option<&Path> {
        self.reply["log_path"].as_str().map(Path::new)
    }

    fn has_log(&self, name: &str) -> bool {
        self.log_path().and_then(Path::file_name).is_some_and(|own| own == name)
    }

    /// Its row, or what the log's facts say where it is not listed any more.
    fn row(&self, id: u64) -> Value {
        if let Some(row) = self.execd.sessions.iter().find(|row| row["session_id"] == id) {
            return row.clone();
        }
        let facts = |path: &Path| {
            let dir = open_dir(Some(&path.parent()?.to_path_buf())).ok()?;
            Some(facts_of(&dir, path.file_name()?.to_str()?))
        };
        self.log_path().and_then(facts).unwrap_or_default()
    }
}

/// Finds out what a number means. Errors: nothing, or several things, where it is not a session
/// that asks for one of its own execd.
pub(super) fn of_number(
    id: u64,
    log_dir: Option<&PathBuf>,
    place: &Place,
) -> Result<Meant, String> {
    let mut known = known(id, place, complain)?;
    // In a session a number means the execd of that session.
    let around = host::variable(INSTANCE_VARIABLE);
    let is_around =
        |one: &Known| around.as_deref().is_some_and(|name| name == one.execd.instance.as_str());
    if let Some(at) = known.iter().position(is_around) {
        return Ok(Meant::Session(Box::new(known.swap_remove(at).execd)));
    }
    let dir = open_dir(log_dir).ok().filter(|_| place.is_any());
    let head = format!("execd-{id}-");
    let most = LOGS_OF_ONE_ID + known.len();
    let (logs, count) = match &dir {
        Some(dir) => newest(dir, &head, most).map_err(|error| error.to_string())?,
        None => (Vec::new(), 0),
    };
    let is_gone = |one: &Listed| !known.iter().any(|known| known.has_log(&one.name));
    let listed = logs.len();
    let mut gone: Vec<Listed> = logs.into_iter().filter(is_gone).collect();
    let not_shown = count - listed;
    if let (Some(dir), Some(_)) = (&dir, log_dir)
        && known.len() + gone.len() + not_shown > 1
    {
        // Who names a directory means a log in it, not those of execds with other directories.
        known.retain(|one| one.log_path().and_then(Path::parent) == Some(dir.path()));
    }
    if known.len() + gone.len() + not_shown > 1 {
        let mut lines: Vec<String> = known.iter().map(|one| of_known(one, &known, id)).collect();
        lines.extend(dir.iter().flat_map(|dir| gone.iter().map(|one| of_gone(dir, one))));
        if not_shown > 0 {
            lines.push(format!("  and {not_shown} older ones: execd logs --all lists them"));
        }
        let lines = lines.join("\n");
        return Err(format!("several execds have had a session @{id}, say which:\n{lines}"));
    }
    match (known.pop(), gone.pop()) {
        (Some(one), _) => Ok(Meant::Session(Box::new(one.execd))),
        (None, Some(log)) => Ok(Meant::Log(log.name)),
        (None, None) => Err(format!("no session @{id}, and no log of one: execd logs lists them")),
    }
}

/// The execd that has had the session of this log, and the session, where that execd can be asked.
pub(super) fn writer_of(
    name: &str,
    dir: Option<&PathBuf>,
    place: &Place,
) -> Result<Option<(u64, Execd)>, String> {
    let number = short_name(name).split('-').next().and_then(|number| number.parse().ok());
    let Some(id) = number else { return Ok(None) };
    let known = if place.is_any() {
        // The facts tell whose log it is: what is wrong with other execds is nobody's concern.
        let facts = open_dir(dir).map(|dir| facts_of(&dir, name)).unwrap_or_default();
        let pid = facts["execd_pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
        known(id, &Place { pid, ..place.clone() }, |_| {}).unwrap_or_default()
    } else {
        known(id, place, complain)?
    };
    let writer = known.into_iter().find(|one| one.has_log(name));
    Ok(writer.map(|one| (id, one.execd)))
}

/// The execds that know a session of this number. `tell` is told why others have not answered.
fn known(id: u64, place: &Place, tell: fn(&str)) -> Result<Vec<Known>, String> {
    let survey = survey(place)?;
    survey.silent.iter().for_each(|reason| tell(&format!("execd: {reason}")));
    let mut found = Vec::new();
    for mut execd in survey.execds {
        let params = json!({"session_id": id, "max_bytes": 4});
        let wait_ms = Some(CLIENT_WAIT_MS + LOG_PAGE_WAIT_MS);
        match execd.connection.call("read_output", &params, wait_ms) {
            Ok(Ok(reply)) => found.push(Known { execd, reply }),
            // Another session's, or an older execd's, answer.
            Ok(Err(error)) if error["data"]["reason"] == "unknown_session" => {}
            Ok(Err(error)) => tell(&format!("execd: {}", message_of(&error))),
            Err(reason) => tell(&format!("execd: {reason}")),
        }
    }
    Ok(found)
}

/// How to ask for a session of an execd that runs, and what it is.
fn of_known(one: &Known, all: &[Known], id: u64) -> String {
    let Execd { pid, instance, .. } = &one.execd;
    // Execds in different pid namespaces may have the same process id.
    let shared = all.iter().filter(|other| other.execd.pid == *pid).count() > 1;
    let which = if shared { format!("execd-{pid}-{instance}") } else { format!("execd-{pid}") };
    let row = one.row(id);
    let number = |name: &str| one.reply[name].as_i64().unwrap_or_default();
    let began_ms = number("started_at_ms");
    let over = one.reply["exit_code"].is_i64() || one.reply["signal"].is_string();
    let since_ms = if over { began_ms + number("elapsed_ms") } else { began_ms };
    let what = if over { state(&one.reply, false) } else { "running".to_owned() };
    let log = one.reply["log_path"].as_str().unwrap_or("no log");
    line(&format!("{which}:@{id}"), &row, (Some(*pid), &what, since_ms), log)
}

/// How to ask for a log of an execd that is gone, and what it is of.
fn of_gone(dir: &LogDir, one: &Listed) -> String {
    let facts = facts_of(dir, &one.name);
    let ended_ms = facts["ended_at_ms"].as_i64();
    // Without its end nothing is known of it but when it was last written.
    let what = ended_ms.map_or_else(|| "last written".to_owned(), |_| state(&facts, false));
    let since_ms = ended_ms.unwrap_or(one.at_ms);
    let path = dir.path().join(&one.name);
    let pid = facts["execd_pid"].as_i64();
    line(short_name(&one.name), &facts, (pid, &what, since_ms), &path.to_string_lossy())
}

fn line(
    which: &str,
    row: &Value,
    (pid, what, since_ms): (Option<i64>, &str, i64),
    log: &str,
) -> String {
    let command = Some(shortened(row, NAMED_CHARS)).filter(|command| !command.is_empty());
    let command = command.unwrap_or_else(|| "-".to_owned());
    let execd = pid.map(|pid| format!("execd {pid}, ")).unwrap_or_default();
    let since_ms = u64::try_from(clock::wall_ms().saturating_sub(since_ms)).unwrap_or(0);
    let since = match what {
        "running" => format!("for {}", age(since_ms)),
        _ => format!("{} ago", age(since_ms)),
    };
    format!("  {which}  {command} ({execd}{what} {since}, {log})")
}
