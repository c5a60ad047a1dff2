//! `execd agent`: pi on one task, for people and scripts (docs/agent.md, From a shell). It is a
//! client of agent_execute: a fresh execd runs pi, and this process shows what that execd tells.
//! This file decides who is waited for, and what a signal and a reader that is gone mean for the
//! run. Timeouts, budgets and the end of pi's processes are left to execd.
//!
//! | file | what |
//! |---|---|
//! | `flags` | from arguments to the params of agent_execute |
//! | `health` | whether pi is there |
//! | `log_file` | the file of `--log` |
//! | `text` | from events and result to text and exit status |
//! | `streams` | stdout and stderr, written as far as they are taken |

pub mod flags;
mod health;
pub mod log_file;
mod streams;
mod text;

use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::say::{EXIT_FAILED, EXIT_USAGE, complain};
use crate::client::connection::message_of;
use crate::client::fresh::{Fresh, ONE_SESSION};
use crate::limits::{LAST_FLUSH_MS, MAX_LINE_BYTES, NS_PER_MS, NS_PER_S};
use crate::pure::process::life::{EXIT_SIGNAL, ExitStatus};
use crate::pure::text::fit::wrapped;
use crate::sys::clock;
use crate::sys::errno::errno_text;
use crate::sys::poll::{self, Watch};
use crate::sys::signals::{self, SignalFd};
use flags::{AgentOptions, as_of_flags};
pub use health::main as health;
use log_file::LogFile;
use streams::Streams;
use text::{RunEnd, Teller};

/// Bytes of a request of agent_execute besides its params, at most.
const AGENT_ENVELOPE_BYTES: usize = 128;

/// Milliseconds between two lines of `execd agent` that say how long the run takes.
const AGENT_STATUS_MS: u64 = 1_000;

/// How the help is asked for.
pub const HELP: &str = "execd agent --help";

/// Runs pi; gives the exit status: 0 for a success, 124 after a timeout, 130 after Ctrl-C.
pub fn main(mut options: AgentOptions) -> Result<i32, String> {
    if options.params.get("prompt").and_then(Value::as_str) == Some("-") {
        match prompt_of_stdin() {
            Ok(prompt) => options.params.insert("prompt".to_owned(), prompt.into()),
            Err(reason) => {
                complain(&format!("execd: {reason}"));
                return Ok(EXIT_USAGE);
            }
        };
    }
    let log = match options.log.as_deref().map(LogFile::create).transpose() {
        Ok(log) => log,
        Err(reason) => {
            complain(&format!("execd: {reason}"));
            return Ok(EXIT_USAGE);
        }
    };
    let mut run = Run::start(options, log)?;
    run.follow();
    Ok(run.status())
}

/// The prompt that stdin has, to its end.
fn prompt_of_stdin() -> Result<String, String> {
    let mut bytes = Vec::new();
    let most = MAX_LINE_BYTES as u64;
    let read = std::io::stdin().take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("the prompt could not be read from stdin: {error}"))?;
    if bytes.len() > MAX_LINE_BYTES {
        return Err(format!("the prompt on stdin is longer than {MAX_LINE_BYTES} bytes"));
    }
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| "the prompt on stdin is not UTF-8".to_owned())?;
    // What echo and here-documents put behind the prompt is no part of the task.
    let prompt = text.trim_end_matches(['\n', '\r']);
    if prompt.is_empty() {
        Err("the prompt on stdin is empty".to_owned())
    } else {
        Ok(prompt.into())
    }
}

/// A run, from its request to the end of the execd that carries it out.
#[derive(Debug)]
struct Run {
    execd: Fresh,
    /// The number of the request.
    request: u64,
    signals: SignalFd,
    streams: Streams,
    /// Events and result are shown as JSON.
    json: bool,
    teller: Teller,
    /// Where the log is to be.
    log: Option<LogFile>,
    /// Whether pi was started, so that there is a log, as far as is known.
    log_expected: bool,
    /// The session of the run, once execd has told of it.
    session: Option<u64>,
    began_ns: u64,
    /// When it is shown next how the run goes on, where nothing else is shown before.
    status_due_ns: u64,
    /// How the run ended, or why it was refused.
    answer: Option<RunEnd>,
    /// The first signal that asked for the run's end.
    signal: Option<i32>,
    /// execd has said something, so that it has taken up the request and takes signals.
    heard: bool,
    /// The run was cancelled because nobody read stdout any more.
    cut_short: bool,
    /// When a stdout that takes nothing is waited for no longer.
    give_up_ns: Option<u64>,
}

/// A line of execd's, as far as it is read.
#[derive(Debug, Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    method: Option<&'a str>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(default)]
    id: Option<u64>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<Value>,
}

impl Run {
    /// Starts an execd and asks it for the run. Gives a reason for people.
    fn start(options: AgentOptions, log: Option<LogFile>) -> Result<Self, String> {
        let system = |what: &'static str| {
            move |errno| format!("cannot start: {what}: {}", errno_text(errno))
        };
        let AgentOptions { mut params, json, verbose, max_line_bytes, mut flags, .. } = options;
        if let Some(log) = &log {
            params.insert("raw_log".to_owned(), true.into());
            // All of it becomes one file, unless who called says what is to be kept.
            flags.splice(0..0, ["--log-keep-bytes", "0"].map(Into::into));
            flags.extend(["--log-dir".into(), log.dir().into()]);
        }
        let params = Value::Object(params);
        // The prompt may be longer than what another client is to send.
        let request_bytes = params.to_string().len() + AGENT_ENVELOPE_BYTES;
        let max_line_bytes = max_line_bytes.max(request_bytes).to_string();
        // What has left the run, and whose parent has ended, ends with this execd.
        let words = [ONE_SESSION, "--kill-detached", "--max-line-bytes", &max_line_bytes];
        let words = words.map(Into::into);
        // A stdout that may grow no further is an error of its write, not our death.
        signals::ignore(signals::SIGXFSZ);
        let signals = SignalFd::open().map_err(system("signalfd"))?;
        let streams = Streams::open().map_err(system("stdout"))?;
        let mut execd = Fresh::start(words.into_iter().chain(flags).collect())?;
        let request = execd.connection.send("agent_execute", &params);
        let began_ns = clock::now_ns();
        Ok(Self {
            execd,
            request,
            signals,
            streams,
            json,
            teller: Teller::new(verbose),
            log,
            log_expected: true,
            session: None,
            began_ns,
            status_due_ns: began_ns + AGENT_STATUS_MS * NS_PER_MS,
            answer: None,
            signal: None,
            heard: false,
            cut_short: false,
            give_up_ns: None,
        })
    }

    /// Shows the run until execd has ended and stdout has everything that it takes.
    fn follow(&mut self) {
        loop {
            self.streams.write();
            if self.streams.stdout_is_gone() && self.answer.is_none() && !self.cut_short {
                self.cut_short = true;
                self.execd.connection.send("cancel", &json!({"id": self.request}));
            }
            if self.execd.connection.is_over() && self.stdout_is_done() {
                return;
            }
            self.wait();
            self.take_signals();
            self.take_lines();
        }
    }

    /// Whether stdout is waited for no longer, once execd has ended. A slow reader gets all of the
    /// text: only after a signal is there an end to waiting for a reader.
    fn stdout_is_done(&mut self) -> bool {
        if self.signal.is_some() && self.give_up_ns.is_none() {
            self.give_up_ns = Some(clock::now_ns() + LAST_FLUSH_MS * NS_PER_MS);
        }
        let late = self.give_up_ns.is_some_and(|due_ns| due_ns <= clock::now_ns());
        late || self.streams.stdout_is_served()
    }

    /// Whether execd's messages are taken now. While stdout has not taken what came before, they
    /// are not, so that pi waits for a slow reader; at the end they are taken in any case.
    fn may_read(&self) -> bool {
        self.streams.stdout_is_served() || self.signal.is_some() || self.answer.is_some()
    }

    fn wait(&mut self) {
        let [messages, requests] = self.execd.connection.watches(self.may_read());
        let [stdout, stderr] = self.streams.watches();
        let signals = Watch::new(self.signals.fd(), true, false);
        let mut all = [messages, requests, stdout, stderr, signals];
        let at_once = self.streams.must_try_again();
        let status_ns = self.shows_status().then_some(self.status_due_ns);
        let next_ns = [self.give_up_ns, status_ns].into_iter().flatten().min();
        poll::wait_for(&mut all, if at_once { Some(0) } else { next_ns });
        self.execd.connection.move_on(&all[..2]);
        self.streams.note_end(&all[2..4]);
        self.show_status();
    }

    /// Whether people are shown how the run goes on: on a terminal, while nothing else is to come.
    fn shows_status(&self) -> bool {
        !self.json && self.answer.is_none() && self.streams.takes_status()
    }

    fn show_status(&mut self) {
        let now_ns = clock::now_ns();
        if self.shows_status() && now_ns >= self.status_due_ns {
            let line = self.teller.status((now_ns - self.began_ns) / NS_PER_S, &self.streams);
            self.streams.show_status(&line);
            self.status_due_ns = now_ns + AGENT_STATUS_MS * NS_PER_MS;
        }
    }

    /// A signal that asks for the end is passed on to execd, which ends the run and all that the
    /// run has started.
    fn take_signals(&mut self) {
        while let Some(signal) = self.signals.next() {
            if signal == signals::SIGCHLD {
                continue;
            }
            let first = self.signal.is_none();
            self.signal.get_or_insert(signal);
            if first && !self.heard {
                // An execd that is still starting would be killed by the signal: its answer says
                // that the run has begun, so that there will be a result.
                self.execd.connection.send("ping", &json!({}));
            } else {
                self.execd.signal(signal);
            }
        }
    }

    fn take_lines(&mut self) {
        while let Some(text) = self.execd.connection.next_text() {
            if !std::mem::replace(&mut self.heard, true)
                && let Some(signal) = self.signal
            {
                self.execd.signal(signal);
            }
            let Ok(line) = serde_json::from_slice::<Line<'_>>(&text) else { continue };
            match line {
                Line { method: Some("agent_event"), params: Some(params), .. } => {
                    self.show(params.get());
                }
                Line { method: Some("session_started"), params: Some(params), .. } => {
                    let params: Value = serde_json::from_str(params.get()).unwrap_or_default();
                    self.session = params["session_id"].as_u64();
                }
                Line { id, result: Some(result), .. } if id == Some(self.request) => {
                    self.end(result.get());
                }
                Line { id, error: Some(error), .. } if id == Some(self.request) => {
                    self.refuse(&as_of_flags(&message_of(&error)));
                }
                _ => {}
            }
        }
    }

    fn show(&mut self, event: &str) {
        if !self.json {
            // A status comes only where nothing else does for a while.
            self.status_due_ns = clock::now_ns() + AGENT_STATUS_MS * NS_PER_MS;
            return self.teller.show(event, &mut self.streams);
        }
        // The number of the request says nothing to somebody who has made one.
        let request_id = format!(r#"{{"request_id":{},"#, self.request);
        if let Some(rest) = event.strip_prefix(&request_id) {
            self.streams.push_line("{", rest);
        }
    }

    fn end(&mut self, result: &str) {
        let (placed, note) = self.place_log(result);
        let result = placed.as_deref().unwrap_or(result);
        let mut end = self.teller.end(result, &mut self.streams);
        if self.json {
            let rest = result.strip_prefix('{').unwrap_or_default();
            self.streams.push_line(r#"{"event":"result","#, rest);
            end.lines.clear();
        }
        end.lines.extend(note);
        self.take_answer(end);
    }

    /// Puts the log where it was wanted. Gives the result with that path in it, or else what people
    /// should know.
    fn place_log(&mut self, result: &str) -> (Option<String>, Option<String>) {
        #[derive(Deserialize)]
        struct Logged {
            log_path: Option<String>,
            exit_code: Option<i32>,
        }
        let Some(log) = &mut self.log else { return (None, None) };
        let Ok(logged) = serde_json::from_str::<Logged>(result) else { return (None, None) };
        self.log_expected = logged.exit_code.is_some() || self.session.is_some();
        let Some(written) = logged.log_path else { return (None, None) };
        if let Err(reason) = log.place(Path::new(&written)) {
            return (None, Some(reason));
        }
        // Nothing else in the result has this name and this path: quotes in texts are escaped.
        let (old, new) = (field("log_path", &written), log.path().to_string_lossy());
        let at = result.rfind(&old);
        let placed = at.map(|at| {
            let (before, behind) = (&result[..at], &result[at + old.len()..]);
            [before, &field("log_path", &new), behind].concat()
        });
        (placed, None)
    }

    fn refuse(&mut self, reason: &str) {
        let line = format!("{reason} (try {HELP})");
        // Whoever has asked for the end already is told nothing new.
        let lines = if self.signal.is_none() { vec![line] } else { Vec::new() };
        self.log_expected = false;
        self.take_answer(RunEnd { lines, status: EXIT_USAGE });
    }

    fn take_answer(&mut self, answer: RunEnd) {
        self.answer = Some(answer);
        self.execd.connection.end_requests();
    }

    /// Says the last words; gives the exit status.
    fn status(self) -> i32 {
        let ended = self.execd.wait();
        let mut lines = Vec::new();
        if self.streams.stdout_is_gone() {
            lines.push("stdout takes no more: the run was ended for that".to_owned());
        }
        let end = self.answer.unwrap_or_else(|| {
            // An execd that exited by itself has said why.
            let killed = self.signal.is_none() && matches!(ended, Some(ExitStatus::Signal(_)));
            let line = killed.then(|| "killed: there is no result".to_owned());
            RunEnd { lines: line.into_iter().collect(), status: EXIT_FAILED }
        });
        lines.extend(end.lines);
        let (expected, session) = (self.log_expected, self.session);
        lines.extend(self.log.and_then(|log| log.finish(expected, session)));
        let fit = |line: &String| {
            let line = format!("execd: {line}");
            self.streams.columns().map_or(vec![line.clone()], |most| wrapped(&line, most, "  "))
        };
        let lines: Vec<String> = lines.iter().flat_map(fit).collect();
        self.streams.say_last(&lines);
        match (self.signal, ended) {
            (Some(signal), _) => EXIT_SIGNAL + signal,
            // Somebody has sent a signal to execd itself.
            (None, Some(ExitStatus::Code(code))) if code > EXIT_SIGNAL => code,
            (None, _) if self.cut_short => EXIT_FAILED,
            (None, _) => end.status,
        }
    }
}

/// A field of an object and its text, as JSON has them.
fn field(name: &str, text: &str) -> String {
    format!(r#""{name}":{}"#, Value::from(text))
}
