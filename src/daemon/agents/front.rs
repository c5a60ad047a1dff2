//! Where the events of a run go: to the client that asked for it, or, for `execd agent`, to
//! stdout and stderr.

use std::os::fd::RawFd;

use crate::daemon::Daemon;
use crate::daemon::client::Client;
use crate::daemon::clients::STDIN_CLIENT;
use crate::daemon::closing::Cause;
use crate::daemon::run_front::{EXIT_TIMEOUT, RunFront};
use crate::limits::{AGENT_NOTES_BYTES, AGENT_SHOWN_CHARS, LAST_FLUSH_MS};
use crate::methods::{Call, read_agent};
use crate::pure::agent::{AgentReport, Stop, Told};
use crate::pure::text::visible::one_line;
use crate::sys::io::Io;
use crate::sys::stdio::{self, Channel};
use crate::wire::{self, RequestId};

/// The exit status after Ctrl-C, and of a run that failed (agent.md, `execd agent`).
const EXIT_CANCELLED: i32 = 130;
const EXIT_FAILED: i32 = 1;

/// `execd agent`: how its run is shown.
#[derive(Debug)]
pub struct FrontAgent {
    /// Events and result as NDJSON instead of text.
    json: bool,
    /// stdout is a terminal: what a model says must not steer it.
    terminal: bool,
    /// The text on stdout ends inside a line.
    mid_line: bool,
    /// stderr.
    errors: Option<Channel>,
    /// Whether the poll tells of room in it.
    errors_watched: bool,
    /// Lines for it that wait until stdout has what came before them, and until it has room.
    notes: Vec<u8>,
    /// Lines for which there was no room, since one was taken in.
    notes_left_out: u64,
}

/// Who is told of a run's events.
pub(super) struct Reader<'a> {
    pub client: &'a mut Client,
    /// The request's id as it was sent.
    pub request: &'a str,
    /// Present when the run is that of `execd agent`.
    pub front: Option<&'a mut FrontAgent>,
}

impl Reader<'_> {
    /// Sends an event.
    pub fn send(&mut self, told: &Told<'_>) {
        if let Some(front) = &mut self.front {
            return front.show(told, self.client);
        }
        let mut event = wire::to_json(told);
        // The object goes on behind the request's id.
        event[0] = b',';
        let mut note = format!(r#"{{"request_id":{}"#, self.request).into_bytes();
        note.append(&mut event);
        self.client.notify_json("agent_event", &note);
    }
}

/// The beginning of a text as one line.
fn shortened(text: &str) -> String {
    let line = one_line(text);
    match line.char_indices().nth(AGENT_SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

impl FrontAgent {
    fn new(json: bool) -> Self {
        Self {
            json,
            terminal: stdio::is_terminal(1),
            mid_line: false,
            errors: Channel::open(2).ok(),
            errors_watched: false,
            notes: Vec::new(),
            notes_left_out: 0,
        }
    }

    /// Shows an event.
    fn show(&mut self, told: &Told<'_>, client: &mut Client) {
        let out = client.outbox.buffer();
        if self.json {
            out.append(&mut wire::to_json(told));
            out.push(b'\n');
            return;
        }
        let message = told.message.unwrap_or_default();
        match told.event {
            "text" => {
                let delta = told.delta.unwrap_or_default();
                if self.terminal {
                    let harmless = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
                    let text: String = delta.chars().filter(harmless).collect();
                    out.extend_from_slice(text.as_bytes());
                } else {
                    out.extend_from_slice(delta.as_bytes());
                }
                if !delta.is_empty() {
                    self.mid_line = !delta.ends_with('\n');
                }
            }
            "tool_use" => {
                let name = told.name.unwrap_or_default();
                let input = told.input.map_or("", |input| input.get());
                self.note(&shortened(&format!("{name} {input}")));
            }
            "retry" => {
                let [attempt, most] =
                    [told.attempt, told.max_attempts].map(Option::unwrap_or_default);
                self.note(&shortened(&format!("retry {attempt} of {most}: {message}")));
            }
            "error" => self.note(&shortened(&format!("error: {message}"))),
            _ => {}
        }
    }

    /// Shows the end of the run, as far as it goes to stdout.
    pub fn end(&mut self, end: &AgentEnd, client: &mut Client) {
        if self.json {
            client.outbox.push(&end.event());
        } else if std::mem::take(&mut self.mid_line) {
            client.outbox.push(b"\n");
        }
    }

    /// Takes in a line for stderr.
    fn note(&mut self, line: &str) {
        if self.notes.len() + line.len() > AGENT_NOTES_BYTES {
            self.notes_left_out += 1;
            return;
        }
        self.tell_what_is_left_out();
        self.notes.extend_from_slice(line.as_bytes());
        self.notes.push(b'\n');
    }

    fn tell_what_is_left_out(&mut self) {
        if self.notes_left_out > 0 {
            let lines = std::mem::take(&mut self.notes_left_out);
            let line = format!("[{lines} lines are left out here: stderr was not read]\n");
            self.notes.extend_from_slice(line.as_bytes());
        }
    }

    /// Writes what waits for stderr, as far as there is room: stdout has what came before it, and
    /// nobody who does not read holds up the loop. Gives stderr's descriptor when it is to be
    /// watched from now on.
    pub fn flush_notes(&mut self) -> Option<RawFd> {
        if self.notes.is_empty() {
            return None;
        }
        // On a terminal they do not go on in the line of the text.
        if self.mid_line && self.terminal && stdio::is_terminal(2) {
            self.mid_line = false;
            self.notes.insert(0, b'\n');
        }
        let Some(errors) = &mut self.errors else {
            self.notes.clear();
            return None;
        };
        while !self.notes.is_empty() {
            match errors.write(&self.notes) {
                Io::Moved(bytes) => drop(self.notes.drain(..bytes.min(self.notes.len()))),
                Io::WouldBlock => {
                    let watched = std::mem::replace(&mut self.errors_watched, true);
                    return errors.poll_fd().filter(|_| !watched);
                }
                // stderr is for people: one that can't be written to is their own affair.
                Io::Ended | Io::HungUp | Io::Failed(_) => self.notes.clear(),
            }
        }
        None
    }

    /// The last words: what waits, and these lines. Who does not read them is waited for no longer
    /// than LAST_FLUSH_MS.
    pub fn say_last(mut self, lines: &[String]) {
        self.tell_what_is_left_out();
        lines.iter().for_each(|line| {
            self.notes.extend_from_slice(line.as_bytes());
            self.notes.push(b'\n');
        });
        self.flush_notes();
        if let Some(errors) = &mut self.errors {
            errors.write_within(&self.notes, LAST_FLUSH_MS);
        }
    }
}

/// How a run ended.
#[derive(Debug)]
pub struct AgentEnd {
    /// The result, JSON text.
    pub json: Vec<u8>,
    /// What people should know: what went wrong, and the run in one line.
    pub lines: Vec<String>,
    /// The exit status of `execd agent`.
    pub status: i32,
}

impl AgentEnd {
    /// From a result, and why execd ended the run.
    pub(super) fn new(report: &AgentReport<'_>, stop: Option<Stop>) -> Self {
        let status = match stop {
            _ if report.success => 0,
            Some(Stop::FirstEventTimeout(_) | Stop::IdleTimeout(_) | Stop::HardTimeout(_)) => {
                EXIT_TIMEOUT
            }
            Some(Stop::Cancelled) => EXIT_CANCELLED,
            _ => EXIT_FAILED,
        };
        let mut lines = Vec::new();
        if let Some(error) = &report.error {
            lines.push(one_line(error));
            lines.extend(report.log_path.map(|path| format!("log: {path}")));
        }
        lines.push(summary(report));
        Self { json: wire::to_json(report), lines, status }
    }

    /// The result as the last line of `execd agent --json`.
    pub fn event(&self) -> Vec<u8> {
        [br#"{"event":"result","#, self.json.get(1..).unwrap_or_default(), b"\n"].concat()
    }
}

/// A run in one line, for people.
fn summary(report: &AgentReport<'_>) -> String {
    let counted =
        |number: u64, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    format!(
        "{}: {}, {}, {} ({} in, {} out), ${:.4}, {}.{} s",
        report.finish_reason,
        counted(report.num_turns, "turn"),
        counted(report.tool_call_count, "tool call"),
        counted(report.usage.total_tokens, "token"),
        report.usage.input_tokens,
        report.usage.output_tokens + report.usage.reasoning_tokens,
        report.cost_usd,
        report.duration_ms / 1_000,
        report.duration_ms % 1_000 / 100,
    )
}

impl Daemon {
    /// Runs `execd agent`: agent_execute with these params, its events on stdout. Gives the end
    /// of a run that could not be started, or why the params make no sense.
    pub fn run_agent_in_front(
        &mut self,
        params: &str,
        json: bool,
    ) -> Result<Option<AgentEnd>, String> {
        self.clients.stdin.quiet = true;
        let id = Some(RequestId::null());
        let call = Call { client: STDIN_CLIENT, id, params };
        let start = read_agent(self, params).map_err(|error| error.message)?;
        let started = self.start_agent(start).map_err(|error| error.message)?;
        let session = match started {
            Ok(session) => session,
            Err(end) => return Ok(Some(end)),
        };
        // stdin is not read: what it had for the run is in its prompt.
        if let Some(fd) = self.clients.stdin.input.poll_fd() {
            self.unwatch(fd);
        }
        self.clients.stdin.input_ready = false;
        self.front = Some(RunFront::of_agent(session, FrontAgent::new(json)));
        if let Some(ticket) = self.open_ticket(&call, Some(session)) {
            self.wait_for_agent(session, ticket);
        }
        Ok(None)
    }

    /// The run in front has ended: execd ends with it.
    pub(super) fn front_agent_ended(&mut self, end: AgentEnd) {
        let status = end.status;
        if let Some(front) = &mut self.front {
            front.end_agent(end, &mut self.clients.stdin);
        }
        self.close(Cause::Ran(status), None);
    }
}
