//! `execd logs`: the logs that there are, newest first, also of execds that are gone (logs.md,
//! Reading by people).

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::Value;

use super::ls::{age, state};
use super::say::{complain, say};
use super::survey::shortened;
use crate::keeper::range::{self, Wanted};
use crate::limits::{LIST_COLUMNS, LIST_COMMAND_MIN_COLUMNS};
use crate::pure::text::truncate::format_size;
use crate::sys::log_files::{LogDir, short_name};
use crate::sys::log_place::{self, Wanted as Place};
use crate::sys::log_walk::{Listed, newest};
use crate::sys::{clock, host, pty, stdio};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct LogsOptions {
    /// How many logs are shown.
    pub most: usize,
    /// Where logs are.
    pub log_dir: Option<PathBuf>,
}

/// The log directory, which is not made here. Gives a reason for people.
pub fn open_dir(given: Option<&PathBuf>) -> Result<LogDir, String> {
    let default = host::default_log_dir();
    let path = given.unwrap_or(&default);
    let failed = |reason: &dyn std::fmt::Display| format!("logs in {}: {reason}", path.display());
    if given.is_some() {
        let real = path.canonicalize().map_err(|error| failed(&error))?;
        return LogDir::open(&real).map_err(|error| failed(&error));
    }
    path.symlink_metadata().map_err(|error| failed(&error))?;
    log_place::find(&Place::Default(path.clone())).map(|place| place.dir)
}

/// The facts beside a log; null where there are none.
pub fn facts_of(dir: &LogDir, name: &str) -> Value {
    let line = dir.read_meta(name).unwrap_or_default();
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    serde_json::from_slice(line).unwrap_or_default()
}

/// A number of bytes for people, in the largest unit up to TB: `512B`, `1.5KB`, `2.8TB`.
pub fn size_text(bytes: u64) -> String {
    let (part, unit) = match bytes >> 30 {
        0 => (bytes, "MB"),
        1..1024 => (bytes >> 10, "GB"),
        _ => (bytes >> 20, "TB"),
    };
    // The part's MB are GB or TB of the whole.
    format_size(usize::try_from(part).unwrap_or(usize::MAX)).replace("MB", unit)
}

/// Prints the list; gives the exit status.
pub fn main(options: &LogsOptions) -> Result<i32, String> {
    let dir = open_dir(options.log_dir.as_ref())?;
    let (found, count) = newest(&dir, "execd-", options.most).map_err(|error| error.to_string())?;
    let columns = pty::size_of(1).filter(|_| stdio::is_terminal(1));
    let columns = columns.map_or(LIST_COLUMNS, |size| usize::from(size.cols));
    let rows: Vec<([String; 4], Value)> = found.iter().map(|one| row(&dir, one)).collect();
    let status = if rows.is_empty() { 0 } else { say(&table(&rows, columns)) };
    if rows.is_empty() {
        complain("no logs");
    } else if count > rows.len() {
        complain(&format!("execd logs: the newest {} of {count}: --all shows all", rows.len()));
    }
    Ok(status)
}

fn row(dir: &LogDir, one: &Listed) -> ([String; 4], Value) {
    let facts = facts_of(dir, &one.name);
    let total = facts["total_bytes"].as_u64();
    // Where it begins is asked for; a byte more would have to be read.
    let wanted = Wanted { only: None, from: 0, to: u64::MAX, max_bytes: 1, total };
    let read = range::read(dir, &one.name, &wanted).ok();
    let (total, from) =
        read.map_or((0, 0), |read| (total.unwrap_or(read.head.known_total), read.head.log_from));
    // What was lost behind the log's end, or was never written, is not kept either.
    let there = range::bytes_there(dir, &one.name).unwrap_or(0);
    let old_ms = clock::wall_ms().saturating_sub(one.at_ms);
    let ended = facts["ended_at_ms"].is_i64();
    let cells = [
        short_name(&one.name).to_owned(),
        age(u64::try_from(old_ms).unwrap_or(0)),
        format!("{}/{}", size_text(total.saturating_sub(from).min(there)), size_text(total)),
        if ended { state(&facts, false) } else { "-".to_owned() },
    ];
    (cells, facts)
}

/// Each column as wide as its widest cell; commands get what is left of the line.
fn table(rows: &[([String; 4], Value)], columns: usize) -> String {
    const HEAD: [&str; 4] = ["ID", "AGE", "KEPT/SIZE", "EXIT"];
    let width = |at: usize| {
        let cells = rows.iter().map(|(cells, _)| cells[at].chars().count());
        cells.chain([HEAD[at].len()]).max().unwrap_or(0)
    };
    let widths = [0, 1, 2, 3].map(width);
    let before: usize = widths.iter().map(|width| width + 2).sum();
    let room = columns.saturating_sub(before).max(LIST_COMMAND_MIN_COLUMNS);
    let mut out = String::new();
    let mut line = |cells: [&str; 4], command: &str| {
        for (cell, width) in cells.iter().zip(widths) {
            let _ = write!(out, "{cell:<width$}  ");
        }
        let _ = writeln!(out, "{command}");
    };
    line(HEAD, "COMMAND");
    for (cells, facts) in rows {
        let command = shortened(facts, room);
        line([0, 1, 2, 3].map(|at| cells[at].as_str()), &command);
    }
    out
}
