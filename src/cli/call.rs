//! `execd call`: one request without its envelope, for people; to a fresh execd, or to one that
//! runs already.

use std::ffi::OsString;
use std::io::Read as _;

use serde_json::{Value, json};

use super::flags::CallOptions;
use super::say::{EXIT_FAILED, EXIT_USAGE, complain, say};
use super::survey::{Place, sockets};
use crate::client::connection::{Connection, Outcome};
use crate::client::fresh::{Fresh, ONE_SESSION};
use crate::limits::{MAX_CONFIGURABLE_POLL_MS, MAX_MAX_LINE_BYTES};
use crate::sys::stdio;

/// Sends the request, prints the bare result (or error) as JSON; 0 for a result, 1 for an error.
pub fn main(options: &CallOptions) -> Result<i32, String> {
    if stdio::was_closed(1) {
        complain("execd call: stdout is closed: give it a place, >/dev/null say");
        return Ok(EXIT_USAGE);
    }
    let params = match params_of(options) {
        Ok(params) => params,
        Err(reason) => {
            complain(&format!("execd: {reason}"));
            return Ok(EXIT_USAGE);
        }
    };
    let outcome = match &options.place {
        Some(place) => call_to_its_end(options, &params, &mut open(place)?),
        None => {
            // Nobody could find the execd's socket in its short life.
            let first = [ONE_SESSION, "--no-socket"].map(OsString::from).into_iter();
            let flags = first.chain(options.flags.clone()).collect();
            call_to_its_end(options, &params, &mut Fresh::start(flags)?.connection)
        }
    };
    Ok(match outcome? {
        Ok(result) => say(&format!("{result:#}\n")),
        Err(error) => {
            say(&format!("{error:#}\n"));
            EXIT_FAILED
        }
    })
}

/// The params, which stand in stdin where `-` stands for them.
fn params_of(options: &CallOptions) -> Result<Value, String> {
    let mut text = options.params.clone();
    if text == "-" {
        text.clear();
        let mut input = std::io::stdin().take(MAX_MAX_LINE_BYTES as u64 + 1);
        let read = input.read_to_string(&mut text);
        read.map_err(|error| format!("the params could not be read from stdin: {error}"))?;
        if text.len() > MAX_MAX_LINE_BYTES {
            return Err(format!("the params on stdin are over {MAX_MAX_LINE_BYTES} bytes"));
        }
    }
    match serde_json::from_str(&text) {
        Ok(params @ Value::Object(_)) => Ok(params),
        Ok(_) => Err("PARAMS must be a JSON object: {\"name\": value}".to_owned()),
        Err(fault) => Err(format!("PARAMS must be a JSON object: {fault}")),
    }
}

/// The way to an execd that runs.
fn open(place: &Place) -> Result<Connection, String> {
    let mut tried =
        sockets(place, &mut Vec::new())?.into_iter().map(|path| Connection::open(&path));
    // Execds of several pid namespaces may have one process id: the first that listens is meant.
    let first = tried.next().unwrap_or_else(|| Err("no execd answers".to_owned()));
    first.or_else(|why| tried.find_map(Result::ok).ok_or(why))
}

/// Makes the request. A command that runs on is polled to its end, and its output is put together;
/// unless a wait ended by what it was for, or because nothing could end it any more.
fn call_to_its_end(
    options: &CallOptions,
    params: &Value,
    execd: &mut Connection,
) -> Result<Outcome, String> {
    let mut outcome = execd.call(&options.method, params, None)?;
    let mut output = String::new();
    while options.method == "exec_command"
        && let Ok(result) = &outcome
        && let Some(session) = result.get("session_id").cloned()
        && result["wait_status"] != "condition_met"
    {
        output.push_str(result["output"].as_str().unwrap_or_default());
        let poll = json!({
            "session_id": session,
            "yield_time_ms": MAX_CONFIGURABLE_POLL_MS,
            "max_empty_poll_ms": MAX_CONFIGURABLE_POLL_MS,
        });
        outcome = execd.call("write_stdin", &poll, None)?;
    }
    if let Ok(result) = &mut outcome
        && !output.is_empty()
        && let Some(last) = result["output"].as_str()
    {
        output.push_str(last);
        result["output"] = json!(output);
    }
    Ok(outcome)
}
