//! `execd attach`: a session in the terminal that somebody sits at.

use serde_json::{Value, json};

use super::connection::message_of;
use super::show::{End, Show};
use super::survey::{Found, Place, find, newest};
use super::{EXIT_START, complain};
use crate::limits::CLIENT_WAIT_MS;
use crate::sys::errno::errno_text;
use crate::sys::terminal::{self, Keys};
use crate::sys::{host, pty, stdio};

/// Attaches the terminal to a session (the newest that runs, where none is named) until it ends or
/// the person detaches; gives the exit status: the session's, 0 after detaching.
pub fn main(id: Option<u64>, place: &Place) -> i32 {
    // Of an execd alone its newest is meant, as of a tmux session its current window.
    let id = match id.map_or_else(|| newest(place), Ok) {
        Ok(id) => id,
        Err(reason) => {
            complain(&format!("execd: {reason}"));
            return EXIT_START;
        }
    };
    match attach(id, place) {
        Ok((end, typed_late)) => {
            match &end {
                End::Detached => complain(&format!("[detached from session {id}]")),
                End::Ended(how, _) => complain(&format!("[session {id} has ended: {how}]")),
                End::Lost(reason) => complain(&format!("execd: {reason}")),
                End::Signal(_) => {}
            }
            terminal::type_back(0, &typed_late);
            end.status()
        }
        Err(reason) => {
            complain(&format!("execd: {reason}"));
            EXIT_START
        }
    }
}

/// Shows a session until one of the two ends: why it ended, and what is to be typed into the shell.
fn attach(id: u64, place: &Place) -> Result<(End, Vec<u8>), String> {
    if !stdio::is_terminal(0) {
        return Err("attach needs a terminal; execd tail -f follows without one".to_owned());
    }
    let Found { mut execd, .. } = find(id, place, false)?;
    refuse_itself(id, &execd.instance)?;
    let mut params = json!({"session_id": id});
    if let Some(size) = pty::size_of(0) {
        params["cols"] = json!(size.cols);
        params["rows"] = json!(size.rows);
    }
    let answer = execd.connection.call("attach_session", &params, Some(CLIENT_WAIT_MS))?;
    let session = answer.map_err(|error| message_of(&error))?;
    let tty = session["tty"] == true;
    complain(&greeting(id, &session));
    let keys = if tty { Keys::Raw } else { Keys::Lines };
    let system = |errno| format!("the terminal: {}", errno_text(errno));
    let mut show = Show::new(execd.connection, id, Some(keys)).map_err(system)?;
    Ok((show.run(), std::mem::take(&mut show.typed_late)))
}

/// A session shown in itself would show what it shows, for ever.
pub fn refuse_itself(id: u64, instance: &str) -> Result<(), String> {
    let is = |name: &str, value: &str| host::variable(name).is_some_and(|own| own == value);
    if is("EXECD_SESSION_ID", &id.to_string()) && is("EXECD_INSTANCE", instance) {
        return Err(format!("this is session @{id}: it cannot be shown in itself"));
    }
    Ok(())
}

/// What a person has to know.
fn greeting(id: u64, session: &Value) -> String {
    let command = super::ls::shortened(session, super::ls::NAMED_CHARS);
    let keys = match (session["tty"] == true, session["takes_input"] == true) {
        (true, _) => r"Ctrl-\ Ctrl-d detaches",
        (false, true) => "lines go to it, Ctrl-D ends its input, Ctrl-C detaches",
        (false, false) => "it takes no input, Ctrl-C detaches",
    };
    let others = match session["attached"].as_u64().unwrap_or(1) - 1 {
        0 => String::new(),
        1 => ", one more is attached".to_owned(),
        more => format!(", {more} more are attached"),
    };
    format!("[attached to session {id}: {command}{others}]\n[{keys}]")
}
