//! `execd kill`: ends sessions and everything in them.

use serde_json::json;

use super::say::{EXIT_FAILED, complain, say};
use super::survey::{Execd, Found, NAMED_CHARS, Place, Which, find, shortened};
use crate::client::connection::message_of;

/// The session that is meant, where no execd that has not answered could have another one of that
/// number or name: what is ended stays ended.
fn sure(which: &Which, place: &Place) -> Result<Found, String> {
    let found = find(which, place, true)?;
    if !found.doubtful {
        return Ok(found);
    }
    let Found { execd: Execd { pid, .. }, row, .. } = found;
    let (id, command) = (&row["session_id"], shortened(&row, NAMED_CHARS));
    Err(format!(
        "an execd that did not answer may have a session {which} too: \
         say execd-{pid}:@{id} if you mean that one ({command})"
    ))
}

/// Ends the sessions, all at once; the exit status is 0 when nothing of them is left.
pub fn main(targets: &[(Which, Place)], signal: Option<&str>) -> Result<i32, String> {
    // A word that names no session is a slip: nothing is ended then.
    let found: Result<Vec<Found>, String> =
        targets.iter().map(|(which, place)| sure(which, place)).collect();
    let mut asked = Vec::new();
    for mut one in found? {
        let mut params = json!({"session_id": one.row["session_id"], "by": "execd kill"});
        if let Some(signal) = signal {
            params["signal"] = json!(signal);
        }
        let request = one.execd.connection.send("kill_session", &params);
        asked.push((one, request));
    }
    let mut status = 0;
    for (mut one, request) in asked {
        // The answer comes when everything is gone, or could not be ended.
        let result = one.execd.connection.answer(request, None);
        let result = result.and_then(|outcome| outcome.map_err(|error| message_of(&error)));
        let told = result.and_then(|result| match result["found"] == false {
            true => Err(format!("session @{} has gone meanwhile", one.row["session_id"])),
            false => Ok(result),
        });
        let ended = match told {
            Ok(result) => {
                let said = say(&format!("{}\n", result["summary"].as_str().unwrap_or_default()));
                said == 0 && result["killed"] == true
            }
            Err(reason) => {
                complain(&format!("execd: {reason}"));
                false
            }
        };
        status = if ended { status } else { EXIT_FAILED };
    }
    Ok(status)
}
