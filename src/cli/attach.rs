//! `execd attach`: a session in the terminal that somebody sits at. Which session is meant is
//! `survey`'s to find; what comes and goes while the session is shown is `show`'s.

use serde_json::{Value, json};

use super::say::complain;
use super::show::{End, show};
use super::survey::{Found, NAMED_CHARS, Place, Which, find, newest, shortened};
use crate::limits::CLIENT_WAIT_MS;
use crate::sys::errno::errno_text;
use crate::sys::terminal::{self, Keys};
use crate::sys::{pty, stdio};

/// Attaches the terminal to a session (the newest that runs, where none is named) until it ends or
/// the person detaches; gives the exit status: the session's, 0 after detaching.
pub fn main(which: Option<Which>, place: &Place) -> Result<i32, String> {
    // Who names an execd alone means its newest session, as tmux takes a session's current window.
    let which = which.map_or_else(|| newest(place).map(Which::Id), Ok)?;
    if !stdio::is_terminal(0) {
        return Err("attach needs a terminal; execd tail -f follows without one".to_owned());
    }
    let Found { mut execd, row, .. } = find(&which, place, false)?;
    let id = row["session_id"].as_u64().unwrap_or_default();
    execd.refuse_itself(id)?;
    let mut params = json!({"session_id": id});
    if let Some(size) = pty::size_of(0) {
        params["cols"] = json!(size.cols);
        params["rows"] = json!(size.rows);
    }
    let session = execd.connection.result("attach_session", &params, Some(CLIENT_WAIT_MS))?;
    complain(&greeting(id, &session));
    let keys = if session["tty"] == true { Keys::Raw } else { Keys::Lines };
    let system = |errno| format!("the terminal: {}", errno_text(errno));
    let (end, typed_late) = show(execd.connection, id, Some(keys)).map_err(system)?;
    match end {
        End::Detached => complain(&format!("[detached from session {id}]")),
        _ => end.tell(id),
    }
    // What was typed after the end of the session is for the shell.
    terminal::type_back(0, &typed_late);
    Ok(end.status())
}

/// What a person has to know who is about to see the session.
fn greeting(id: u64, session: &Value) -> String {
    let command = shortened(session, NAMED_CHARS);
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
