//! `execd ls`: the sessions of all running execds of this user.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::say::{complain, say};
use super::survey::{Execd, Place, Survey, shortened, survey};
use crate::limits::{LIST_COLUMNS, LIST_COMMAND_MIN_COLUMNS};
use crate::pure::text::visible::{self, one_line};
use crate::sys::{pty, stdio};

/// How the list is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A table for people.
    Table,
    /// A JSON array, a row each.
    Json,
    /// The ids alone, for completion.
    Ids,
}

/// Prints the list; gives the exit status.
pub fn main(place: &Place, form: Form) -> Result<i32, String> {
    let survey = survey(place)?;
    survey.tell_of_silent();
    Ok(match form {
        Form::Json => say(&visible::json(&format!("{:#}\n", json(&survey, place.all_users)))),
        Form::Ids => say(&ids(&survey)),
        Form::Table => {
            let rows = rows(&survey);
            if rows.is_empty() {
                let none = if survey.execds.is_empty() { "no execd runs" } else { "no sessions" };
                // The words go to stderr: a program that reads the list gets an empty one.
                complain(none);
                return Ok(0);
            }
            let columns = pty::size_of(1).filter(|_| stdio::is_terminal(1));
            let columns = columns.map_or(LIST_COLUMNS, |size| usize::from(size.cols));
            let several = survey.execds.len() > 1 || place.all_users;
            let named = |execd: &Execd| match execd.uid.filter(|_| place.all_users) {
                Some(uid) => format!("{} of uid {uid}", execd.pid),
                None => execd.pid.to_string(),
            };
            let rows: Vec<(String, &Value, bool)> =
                rows.into_iter().map(|(execd, row, left)| (named(execd), row, left)).collect();
            say(&table(&rows, several, columns))
        }
    })
}

/// Each session with the execd that has it, and whether only processes are left of the session.
fn rows(survey: &Survey) -> Vec<(&Execd, &Value, bool)> {
    let each = survey.execds.iter().flat_map(|execd| {
        let here = execd.sessions.iter().map(move |row| (execd, row, false));
        here.chain(execd.left.iter().map(move |row| (execd, row, true)))
    });
    each.collect()
}

fn json(survey: &Survey, all_users: bool) -> Value {
    let mut all = Vec::new();
    for execd in &survey.execds {
        let socket = execd.connection.path().map(Path::to_string_lossy);
        for (rows, left) in [(&execd.sessions, false), (&execd.left, true)] {
            for row in rows {
                let mut row = row.clone();
                row["execd_pid"] = json!(execd.pid);
                row["socket"] = json!(socket);
                if let Some(uid) = execd.uid.filter(|_| all_users) {
                    row["uid"] = json!(uid);
                }
                if left {
                    row["left"] = json!(true);
                }
                all.push(row);
            }
        }
    }
    Value::Array(all)
}

fn ids(survey: &Survey) -> String {
    let mut ids: Vec<u64> =
        rows(survey).iter().filter_map(|(_, row, _)| row["session_id"].as_u64()).collect();
    ids.sort();
    ids.dedup();
    ids.iter().fold(String::new(), |mut out, id| {
        let _ = writeln!(out, "@{id}");
        out
    })
}

/// What a session is doing, in a word or two.
pub fn state(row: &Value, left: bool) -> String {
    if left {
        return "left".to_owned();
    }
    if row["running"] == true {
        return if row["shell_exited"] == true { "held" } else { "running" }.to_owned();
    }
    match (row["exit_code"].as_i64(), row["signal"].as_str()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("ended by {}", one_line(signal)),
        (None, None) => "ended".to_owned(),
    }
}

/// A time as people say it, one unit or two: 41s, 3m05s, 2h10m, 5d03h.
pub fn age(ms: u64) -> String {
    let s = ms / 1_000;
    match s {
        0..60 => format!("{s}s"),
        60..3_600 => format!("{}m{:02}s", s / 60, s % 60),
        3_600..86_400 => format!("{}h{:02}m", s / 3_600, s % 3_600 / 60),
        _ => format!("{}d{:02}h", s / 86_400, s % 86_400 / 3_600),
    }
}

/// The table: each column as wide as its widest cell; commands get what is left of the line.
fn table(rows: &[(String, &Value, bool)], several: bool, columns: usize) -> String {
    const HEAD: [&str; 6] = ["EXECD", "ID", "STATE", "AGE", "PID", "TTY"];
    let cells: Vec<[String; 6]> = rows
        .iter()
        .map(|(execd, row, left)| {
            let tty = match row["tty"].as_bool() {
                Some(true) => "tty",
                Some(false) => "pipe",
                None => "-",
            };
            [
                execd.clone(),
                format!("@{}", row["session_id"]),
                state(row, *left),
                row["elapsed_ms"].as_u64().map_or_else(|| "-".to_owned(), age),
                row["pid"].to_string(),
                tty.to_owned(),
            ]
        })
        .collect();
    // The column of execds says something only where there are several.
    let shown = usize::from(!several)..HEAD.len();
    let width = |at: usize| {
        let cells = cells.iter().map(|row| row[at].chars().count());
        cells.chain([HEAD[at].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let log_of = |row: &Value| one_line(row["log_path"].as_str().unwrap_or("-"));
    let logs = rows.iter().map(|(_, row, _)| log_of(row).chars().count());
    let logs = logs.chain(["LOG".len()]).max().unwrap_or(0);
    let before: usize = shown.clone().map(|at| widths[at] + 2).sum();
    let room = columns.saturating_sub(before + 2 + logs).max(LIST_COMMAND_MIN_COLUMNS);
    let commands: Vec<String> = rows.iter().map(|(_, row, _)| shortened(row, room)).collect();
    let widest = commands.iter().map(|text| text.chars().count()).chain([7]).max().unwrap_or(7);
    let mut out = String::new();
    let mut line = |cells: &[&str], command: &str, log: &str| {
        for (cell, at) in cells.iter().zip(shown.clone()) {
            let _ = write!(out, "{cell:<width$}  ", width = widths[at]);
        }
        let _ = writeln!(out, "{command:<widest$}  {log}");
    };
    line(&HEAD[shown.clone()], "COMMAND", "LOG");
    for ((cells, command), (_, row, _)) in cells.iter().zip(&commands).zip(rows) {
        let cells: Vec<&str> = cells[shown.clone()].iter().map(String::as_str).collect();
        line(&cells, command, &log_of(row));
    }
    out
}
