//! `execd mcp` as a process: it stands between a host, on stdin and stdout, and an execd that it
//! has started. What their lines mean is left to [`Mcp`]; this file moves them, and decides what
//! the end of each of the two means for the other.

use std::ffi::OsString;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Asked, Mcp};
use crate::client::fresh::{FOR_HOST, Fresh};
use crate::limits::{
    LAST_FLUSH_MS, MAX_MAX_LINE_BYTES, NS_PER_MS, OUTBOX_GIVE_UP_BYTES, OUTBOX_HIGH_BYTES,
    OUTBOX_STOP_BYTES, READ_BUFFER_BYTES,
};
use crate::pure::buffer::outbox::Outbox;
use crate::pure::process::life::{EXIT_SIGNAL, ExitStatus};
use crate::pure::text::lines::{Line, LineSplitter};
use crate::sys::clock;
use crate::sys::errno::errno_text;
use crate::sys::io::Io;
use crate::sys::poll::{self, Watch};
use crate::sys::signals::{self, SignalFd};
use crate::sys::stdio::{Channel, tell_people};
use crate::wire::{Reason, RequestId, RpcError};

/// A call that came so shortly before the end of stdin was piped in by a shell, which reads the
/// answer. A host that leaves has waited for longer, and reads no more.
const MCP_PIPED_MS: u64 = 100;

/// How long such calls are waited for.
const MCP_LAST_CALLS_MS: u64 = 60_000;

/// An execd that has lived for less is not replaced: the next one would end as soon.
const MCP_SHORT_LIFE_MS: u64 = 1_000;

/// An execd that was asked to end is killed after so long: its own times are over by then.
const MCP_END_MS: u64 = 15_000;

/// Asks execd to end with all that it has started. No request of a host has such an id.
const SHUTDOWN: &[u8] = b"{\"id\":\"execd shutdown\",\"method\":\"shutdown\",\"params\":{}}\n";

/// A line for execd may be longer than the host's by what a call gets besides its arguments.
const MCP_ENVELOPE_BYTES: usize = 16 * 1024;

/// How the program is started.
#[derive(Debug)]
pub struct HostedStart {
    /// The flags that the execd gets.
    pub flags: Vec<OsString>,
    /// The longest line of the host.
    pub max_line_bytes: usize,
    /// Without a line for so long the host is taken for gone.
    pub lease_ms: Option<u64>,
    /// What runs at the end of stdin is waited for, however long it runs.
    pub waits_at_end: bool,
}

/// A host, an execd, and what is between them.
#[derive(Debug)]
pub struct HostProgram {
    mcp: Mcp,
    start: HostedStart,
    execd: Fresh,
    /// When that execd was started.
    started_ns: u64,
    signals: SignalFd,
    input: Channel,
    input_ended: bool,
    lines: LineSplitter,
    output: Channel,
    output_gone: bool,
    /// What the host has not taken yet.
    outbox: Outbox,
    /// When the host was last heard.
    heard_ns: u64,
    /// execd ends, once it was asked to or its stdin has ended.
    is_ending: bool,
    /// Until when calls that were piped in are waited for, once stdin has ended.
    last_calls_ns: Option<u64>,
    /// When an execd that was asked to end is killed.
    kill_ns: Option<u64>,
}

/// A line of execd's.
#[derive(Debug, Deserialize)]
struct Said<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a str>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<Refusal>,
}

/// An error of execd's.
#[derive(Debug, Deserialize)]
struct Refusal {
    code: i32,
    message: String,
    #[serde(default)]
    data: Map<String, Value>,
}

impl From<Refusal> for RpcError {
    fn from(told: Refusal) -> Self {
        let error = RpcError::coded(told.code, told.message);
        told.data.into_iter().fold(error, |error, (name, value)| error.with(&name, value))
    }
}

impl HostProgram {
    /// Starts an execd. Gives a reason for people.
    pub fn start(mcp: Mcp, start: HostedStart) -> Result<Self, String> {
        let system = |what: &'static str| {
            move |errno| format!("cannot start: {what}: {}", errno_text(errno))
        };
        // A stdout that may grow no further is an error of its write, not our death.
        signals::ignore(signals::SIGXFSZ);
        let signals = SignalFd::open().map_err(system("signalfd"))?;
        let input = Channel::open(0).map_err(system("stdin"))?;
        let output = Channel::open(1).map_err(system("stdout"))?;
        let execd = start_execd(&start)?;
        Ok(Self {
            mcp,
            lines: LineSplitter::new(start.max_line_bytes),
            start,
            execd,
            started_ns: clock::now_ns(),
            signals,
            input,
            input_ended: false,
            output,
            output_gone: false,
            outbox: Outbox::new(),
            heard_ns: clock::now_ns(),
            is_ending: false,
            last_calls_ns: None,
            kill_ns: None,
        })
    }

    /// Serves the host until both have ended; gives the exit status.
    pub fn serve(mut self) -> i32 {
        loop {
            self.write();
            if self.execd.connection.is_over() {
                if self.is_ending {
                    return self.last_words();
                }
                if let Err(reason) = self.start_again() {
                    tell_people(&reason, LAST_FLUSH_MS);
                    return self.last_words().max(1);
                }
                continue;
            }
            self.wait();
            self.take_signals();
            self.hear_execd();
            self.hear_host();
            self.look_at_clock();
        }
    }

    /// Whether the host's lines are taken up: not while it takes no answers, or execd no requests.
    fn has_room(&self) -> bool {
        let unsent_bytes = self.execd.connection.unsent_bytes();
        !self.is_ending && self.outbox.len().max(unsent_bytes) < OUTBOX_STOP_BYTES
    }

    fn wait(&mut self) {
        let bounded = self.outbox.len() < OUTBOX_GIVE_UP_BYTES;
        let [messages, requests] = self.execd.connection.watches(bounded);
        let input = Watch::new(0, self.has_room() && !self.input_ended, false);
        let output = match (self.output_gone, self.outbox.is_empty()) {
            (true, _) => Watch::new(1, false, false),
            (false, true) => Watch::for_end(1),
            (false, false) => Watch::new(1, false, true),
        };
        let signals = Watch::new(self.signals.fd(), true, false);
        let mut all = [messages, requests, input, output, signals];
        let at_once = self.lines.has_complete_line() && self.has_room();
        poll::wait_for(&mut all, if at_once { Some(0) } else { self.due_ns() });
        self.execd.connection.move_on(&all[..2]);
        let [_, _, input, output, _] = all;
        if input.readable {
            self.read();
        }
        // Nobody reads: there is nobody to serve.
        if output.readable && !self.output_gone {
            self.lose_host();
        }
    }

    /// Nobody reads any more.
    fn lose_host(&mut self) {
        self.output_gone = true;
        if self.is_ending && self.start.waits_at_end {
            // It waits for what runs.
            self.execd.signal(signals::SIGTERM);
        }
        self.end_execd();
    }

    /// When there is something to do although nothing comes.
    fn due_ns(&self) -> Option<u64> {
        let lease_ms = self.start.lease_ms.filter(|_| !self.input_ended && !self.is_ending);
        let silence_ns = lease_ms.map(|ms| self.heard_ns + ms * NS_PER_MS);
        let told = self.outbox.len() <= OUTBOX_HIGH_BYTES;
        let told_ns = told.then(|| self.mcp.due_ns()).flatten();
        [told_ns, silence_ns, self.last_calls_ns, self.kill_ns].into_iter().flatten().min()
    }

    fn read(&mut self) {
        let mut buffer = vec![0; READ_BUFFER_BYTES];
        match self.input.read(&mut buffer) {
            Io::Moved(bytes) => {
                self.heard_ns = clock::now_ns();
                self.lines.push(&buffer[..bytes]);
            }
            Io::WouldBlock => {}
            Io::Ended | Io::HungUp | Io::Failed(_) => {
                self.input_ended = true;
                self.lines.finish();
            }
        }
    }

    fn write(&mut self) {
        while !self.output_gone && !self.outbox.is_empty() {
            match self.output.write(self.outbox.front()) {
                Io::Moved(bytes) => {
                    // One that takes answers is there.
                    self.heard_ns = clock::now_ns();
                    self.outbox.consume(bytes);
                }
                Io::WouldBlock => return,
                Io::Ended | Io::HungUp | Io::Failed(_) => self.lose_host(),
            }
        }
        if self.output_gone {
            self.outbox.clear();
        }
    }

    /// A signal that asks for the end is passed on to execd, which ends what it has started.
    fn take_signals(&mut self) {
        while let Some(signal) = self.signals.next() {
            if signal != signals::SIGCHLD {
                (self.is_ending, self.input_ended) = (true, true);
                self.last_calls_ns = None;
                self.kill_ns = Some(clock::now_ns() + MCP_END_MS * NS_PER_MS);
                self.execd.signal(signal);
            }
        }
    }

    fn hear_execd(&mut self) {
        while let Some(line) = self.execd.connection.next_text() {
            let Ok(said) = serde_json::from_slice::<Said<'_>>(&line) else { continue };
            let id = said.id.and_then(|id| RequestId::from_json(id.get()));
            let out = self.outbox.buffer();
            match (said, id) {
                (Said { result: Some(result), .. }, Some(id)) => {
                    self.mcp.reply(&id, result.get().as_bytes(), out);
                }
                (Said { error: Some(error), .. }, Some(id)) => {
                    self.mcp.refuse(&id, &error.into(), out);
                }
                (Said { method: Some(method), params: Some(params), .. }, _) => {
                    let crowded = out.len() > OUTBOX_HIGH_BYTES;
                    self.mcp.notify(method, params.get().as_bytes(), crowded, out);
                }
                _ => {}
            }
        }
    }

    fn hear_host(&mut self) {
        // What had come before the end of stdin is carried out, too.
        while self.has_room()
            && let Some(line) = self.lines.next_line()
        {
            let asked = match line {
                Line::Text(line) => self.mcp.read(line, self.outbox.buffer()),
                Line::TooLong => {
                    let max = self.start.max_line_bytes;
                    let message = format!("the line is longer than {max} bytes and was skipped");
                    let error = RpcError::failed(Reason::LineTooLong, message);
                    self.mcp.refuse(&RequestId::null(), &error, self.outbox.buffer());
                    continue;
                }
            };
            // At once, so that nothing happens in execd between what one line asks.
            let lines: String = asked.iter().filter_map(|one| self.line_of(one)).collect();
            self.execd.connection.send_lines(lines.as_bytes());
        }
    }

    /// The line that asks execd for this; none where execd does not take so long a line.
    fn line_of(&mut self, asked: &Asked) -> Option<String> {
        let id = asked.id.as_ref().map_or(String::new(), |id| format!("\"id\":{},", id.as_json()));
        let (method, params) = (asked.method, &asked.params);
        let line =
            format!("{{\"jsonrpc\":\"2.0\",{id}\"method\":\"{method}\",\"params\":{params}}}\n");
        if line.len() <= execd_line_bytes(&self.start) {
            return Some(line);
        }
        if let Some(id) = &asked.id {
            let error = RpcError::failed(Reason::LineTooLong, "the arguments are too long");
            self.mcp.refuse(id, &error, self.outbox.buffer());
        }
        None
    }

    fn look_at_clock(&mut self) {
        let now_ns = clock::now_ns();
        if self.outbox.len() <= OUTBOX_HIGH_BYTES {
            self.mcp.tick(now_ns, self.outbox.buffer());
        }
        if self.kill_ns.is_some_and(|at| at <= now_ns) {
            self.kill_ns = None;
            self.execd.signal(signals::SIGKILL);
        }
        if self.is_ending {
            return;
        }
        let lease_ms = self.start.lease_ms.filter(|_| !self.input_ended);
        let is_silent = |ms: &u64| self.heard_ns + ms * NS_PER_MS <= now_ns;
        if let Some(ms) = lease_ms.filter(is_silent) {
            tell_people(&format!("nothing came on stdin for {ms} ms (--lease)"), 0);
            return self.end_execd();
        }
        if self.input_ended && !self.lines.has_complete_line() {
            self.end_calls(now_ns);
        }
    }

    /// stdin has ended, and all that came is carried out: ends execd once the calls are answered
    /// that were piped in.
    fn end_calls(&mut self, now_ns: u64) {
        let until_ns = *self.last_calls_ns.get_or_insert_with(|| {
            self.mcp.leave(now_ns.saturating_sub(MCP_PIPED_MS * NS_PER_MS), self.outbox.buffer());
            now_ns + MCP_LAST_CALLS_MS * NS_PER_MS
        });
        if self.mcp.is_waited_for() && now_ns < until_ns {
            return;
        }
        self.last_calls_ns = None;
        if !self.start.waits_at_end {
            return self.end_execd();
        }
        if self.execd.connection.unsent_bytes() == 0 {
            self.execd.connection.end_requests();
            self.is_ending = true;
        }
    }

    /// Asks execd to end with all that it has started.
    fn end_execd(&mut self) {
        self.last_calls_ns = None;
        if !std::mem::replace(&mut self.is_ending, true) {
            self.kill_ns = Some(clock::now_ns() + MCP_END_MS * NS_PER_MS);
            self.execd.connection.send_lines(SHUTDOWN);
        }
    }

    /// execd has ended although nobody has asked it to: calls are answered, and another one is
    /// started. Gives a reason for people where that one would end at once, too.
    fn start_again(&mut self) -> Result<(), String> {
        let lived_ns = clock::now_ns() - self.started_ns;
        if lived_ns < MCP_SHORT_LIFE_MS * NS_PER_MS {
            self.mcp.lost_execd("at its start", self.outbox.buffer());
            return Err("the execd that execd mcp has started has ended at once".to_owned());
        }
        let started = start_execd(&self.start);
        if started.is_err() {
            self.mcp.lost_execd("and no other one starts", self.outbox.buffer());
        }
        let execd = started?;
        self.started_ns = clock::now_ns();
        let how = match std::mem::replace(&mut self.execd, execd).wait() {
            Some(ExitStatus::Signal(signal)) => format!("by signal {signal}"),
            Some(ExitStatus::Code(code)) => format!("with status {code}"),
            None => "in an unknown way".to_owned(),
        };
        self.mcp.lost_execd(&how, self.outbox.buffer());
        Ok(())
    }

    /// Both have ended: what is left is written, and the exit status is execd's.
    fn last_words(mut self) -> i32 {
        let (front, mut output) = (self.outbox.front().to_vec(), self.output);
        if !self.output_gone {
            output.write_within(&front, LAST_FLUSH_MS);
        }
        self.outbox.clear();
        match self.execd.wait() {
            Some(ExitStatus::Code(code)) => code,
            Some(ExitStatus::Signal(signal)) => EXIT_SIGNAL + signal,
            None => 1,
        }
    }
}

/// The longest line that the execd takes.
fn execd_line_bytes(start: &HostedStart) -> usize {
    (start.max_line_bytes + MCP_ENVELOPE_BYTES).min(MAX_MAX_LINE_BYTES)
}

fn start_execd(start: &HostedStart) -> Result<Fresh, String> {
    let longest = execd_line_bytes(start).to_string();
    let on_eof = if start.waits_at_end { "wait" } else { "end" };
    let own = [FOR_HOST, "--max-line-bytes", &longest, "--on-eof", on_eof].map(OsString::from);
    Fresh::start(own.into_iter().chain(start.flags.iter().cloned()).collect())
}
