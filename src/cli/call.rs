//! `execd call`: one request without its envelope, for people.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use serde_json::{Map, Value, json};

use super::connection::{Connection, Outcome};
use super::flags::CallOptions;
use super::survey::{Place, sockets};
use super::{EXIT_START, complain};
use crate::daemon::logs::errno_text;
use crate::limits::{MAX_CONFIGURABLE_POLL_MS, MAX_MAX_LINE_BYTES, READ_BUFFER_BYTES};
use crate::pure::text::lines::{Line, LineSplitter};
use crate::sys::host;
use crate::sys::io::{self, Io};
use crate::sys::spawn::{Plan, Spawner};

/// Exit status for an error reply.
const EXIT_ERROR: i32 = 1;

/// A fresh execd of our own, spoken to over pipes. It ends when this is dropped.
struct Fresh {
    input: OwnedFd,
    output: OwnedFd,
    lines: LineSplitter,
    next_id: u64,
}

/// Sends the request, prints the bare result (or error) as JSON; 0 for a result, 1 for an error.
pub fn main(options: &CallOptions) -> i32 {
    let outcome = match &options.place {
        None => Fresh::start(options).and_then(|mut execd| {
            call_to_its_end(options, |method, params| execd.call(method, params))
        }),
        Some(place) => open(place).and_then(|mut execd| {
            call_to_its_end(options, |method, params| execd.call(method, params, None))
        }),
    };
    match outcome {
        Ok(Ok(result)) => super::say(&format!("{result:#}\n")),
        Ok(Err(error)) => {
            super::say(&format!("{error:#}\n"));
            EXIT_ERROR
        }
        Err(reason) => {
            complain(&format!("execd: {reason}"));
            EXIT_START
        }
    }
}

/// The way to an execd that runs.
fn open(place: &Place) -> Result<Connection, String> {
    let mut tried =
        sockets(place, &mut Vec::new())?.into_iter().map(|path| Connection::open(&path));
    // Of several with one process id, in several pid namespaces, the first that listens.
    let first = tried.next().unwrap_or_else(|| Err("no execd answers".to_owned()));
    first.or_else(|why| tried.find_map(Result::ok).ok_or(why))
}

impl Fresh {
    fn start(options: &CallOptions) -> Result<Self, String> {
        let system = |errno| format!("start execd: {}", errno_text(errno));
        let spawner = Spawner::new(host::file_limit(), true).map_err(system)?;
        let (input_theirs, input) = io::pipe().map_err(system)?;
        let (output, output_theirs) = io::pipe().map_err(system)?;
        // Nobody could find it in its short life.
        let words = [c"execd".to_owned(), c"--no-socket".to_owned()].into_iter().chain(
            options.flags.iter().filter_map(|flag| CString::new(flag.clone().into_vec()).ok()),
        );
        let words: Vec<CString> = words.collect();
        let entries = host::environment().into_iter().filter_map(|(name, value)| {
            CString::new([name.into_vec(), b"=".to_vec(), value.into_vec()].concat()).ok()
        });
        let entries: Vec<CString> = entries.collect();
        let argv: Vec<&CStr> = words.iter().map(CString::as_c_str).collect();
        let envp: Vec<&CStr> = entries.iter().map(CString::as_c_str).collect();
        let stdio = [input_theirs.as_raw_fd(), output_theirs.as_raw_fd(), 2];
        // The execd notices by itself when nobody reads any more, and ends its sessions then.
        let plan = Plan::of_execd(&argv, &envp, stdio);
        spawner.spawn(&plan).map_err(|failure| system(failure.errno))?;
        Ok(Self { input, output, lines: LineSplitter::new(MAX_MAX_LINE_BYTES), next_id: 1 })
    }

    /// One request and its reply; notifications in between are passed over.
    fn call(&mut self, method: &str, params: &Value) -> Result<Outcome, String> {
        let id = self.next_id;
        self.next_id += 1;
        let request = json!({"id": id, "method": method, "params": params});
        let line = format!("{request}\n");
        let mut left = line.as_bytes();
        while !left.is_empty() {
            match io::write(self.input.as_raw_fd(), left) {
                Io::Moved(bytes) => left = &left[bytes..],
                _ => return Err("execd ended early: see its message above".to_owned()),
            }
        }
        let mut buffer = vec![0; READ_BUFFER_BYTES];
        loop {
            while let Some(line) = self.lines.next_line() {
                let Line::Text(line) = line else { continue };
                let Ok(Value::Object(mut reply)) = serde_json::from_slice(line) else { continue };
                if reply.get("method").is_none() {
                    return Ok(bare(&mut reply));
                }
            }
            match io::read(self.output.as_raw_fd(), &mut buffer) {
                Io::Moved(bytes) => self.lines.push(&buffer[..bytes]),
                _ => return Err("execd ended without an answer: see its message above".into()),
            }
        }
    }
}

/// A command that is still running is polled to its end; its output is put together.
fn call_to_its_end(
    options: &CallOptions,
    mut call: impl FnMut(&str, &Value) -> Result<Outcome, String>,
) -> Result<Outcome, String> {
    let params: Value = serde_json::from_str(&options.params)
        .map_err(|fault| format!("PARAMS must be a JSON object: {fault}"))?;
    let mut outcome = call(&options.method, &params)?;
    let mut output = String::new();
    while options.method == "exec_command"
        && let Ok(result) = &outcome
        && let Some(session) = result.get("session_id").cloned()
    {
        output.push_str(result["output"].as_str().unwrap_or_default());
        let poll = json!({
            "session_id": session,
            "yield_time_ms": MAX_CONFIGURABLE_POLL_MS,
            "max_empty_poll_ms": MAX_CONFIGURABLE_POLL_MS,
        });
        outcome = call("write_stdin", &poll)?;
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

/// The result or the error of a reply.
fn bare(reply: &mut Map<String, Value>) -> Result<Value, Value> {
    match reply.remove("result") {
        Some(result) => Ok(result),
        None => Err(reply.remove("error").unwrap_or(Value::Null)),
    }
}
