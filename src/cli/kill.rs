//! `execd kill`: ends a session and everything in it.

use serde_json::json;

use super::say::{EXIT_FAILED, say};
use super::survey::{Place, find};

/// Ends the session; the exit status is 0 when nothing of it is left.
pub fn main(id: u64, signal: Option<&str>, place: &Place) -> Result<i32, String> {
    let mut found = find(id, place, true)?;
    let mut params = json!({"session_id": id, "by": "execd kill"});
    if let Some(signal) = signal {
        params["signal"] = json!(signal);
    }
    // The answer comes when everything is gone, or could not be ended.
    let result = found.execd.connection.result("kill_session", &params, None)?;
    if result["found"] == false {
        return Err(format!("session @{id} has gone meanwhile"));
    }
    let said = say(&format!("{}\n", result["summary"].as_str().unwrap_or_default()));
    Ok(if result["killed"] == true { said } else { EXIT_FAILED })
}
