//! `execd kill`: ends a session and everything in it.

use serde_json::json;

use super::connection::message_of;
use super::survey::{Place, find};
use super::{EXIT_START, complain};

/// Ends the session; 0 when nothing of it is left.
pub fn main(id: u64, signal: Option<&str>, place: &Place) -> i32 {
    match kill(id, signal, place) {
        Ok((text, killed)) => {
            let said = super::say(&format!("{text}\n"));
            if killed { said } else { EXIT_START }
        }
        Err(reason) => {
            complain(&format!("execd: {reason}"));
            EXIT_START
        }
    }
}

fn kill(id: u64, signal: Option<&str>, place: &Place) -> Result<(String, bool), String> {
    let mut found = find(id, place, true)?;
    let mut params = json!({"session_id": id});
    if let Some(signal) = signal {
        params["signal"] = json!(signal);
    }
    // The answer comes when everything is gone, or could not be ended.
    let answer = found.execd.connection.call("kill_session", &params, None)?;
    let result = answer.map_err(|error| message_of(&error))?;
    if result["found"] == false {
        return Err(format!("session @{id} has gone meanwhile"));
    }
    let summary = result["summary"].as_str().unwrap_or_default().to_owned();
    Ok((summary, result["killed"] == true))
}
