//! Runs of pi (agent.md): each is a session in which execd's own program runs pi (`crate::agent`).
//! Here its lines are passed on: events to the client that waits, the result as it is.

pub mod agent_capabilities;
pub mod agent_execute;
pub mod agent_health;
pub mod agent_result;
mod model;

use std::collections::BTreeMap;

use super::{Cx, Engine, Family, Method, Numbered};
use crate::agent::protocol::{EVENT_BEGINS, Known, Order, OtherStarts, Said};
use crate::agent::{FLAG, NAME, lost_run};
use crate::limits::{KILL_GRACE_MS, NS_PER_MS, RUNNING_AGENTS_MAX};
use crate::pure::process::killed::KilledBy;
use crate::pure::process::life::ExitStatus;
use crate::server::engine::client::Client;
use crate::server::engine::closing::Closing;
use crate::server::engine::judge::status_fields;
use crate::server::engine::launch::{LaunchSpec, Stdin};
use crate::server::session::ending::{Ending, SIGTERM};
use crate::server::session::wait::{Moment, Wait, WaitKind, Why};
use crate::server::session::{Listing, Session, SessionId, Ways};
use crate::wire::{self, Reason, RpcError};
use agent_result::Results;
use serde::Serialize;

/// Bytes of a run's output that no unified-exec call has told.
const AGENT_UNREAD_BYTES: usize = 64 * 1024;
/// Bytes of one line of the program: a result has at most half of that.
const AGENT_LINE_BYTES: usize = 64 * 1024 * 1024;
/// Programs of pi that are remembered.
const AGENT_KNOWN_MAX: usize = 64;
/// How long it is remembered what a program of pi has told of itself: an upgrade is noticed then.
const AGENT_KNOWN_MS: u64 = 60_000;

/// The rows of the table of methods.
pub const METHODS: &[Method] = &[
    agent_execute::METHOD,
    agent_result::METHOD,
    agent_health::METHOD,
    agent_capabilities::METHOD,
];

/// What is kept of a session in which pi runs.
#[derive(Debug)]
pub struct Agent {
    /// The last line of the program, of which the end has not come.
    line: Vec<u8>,
    /// That line is too long: the rest of it is passed over.
    is_skipped: bool,
    /// By what its pi is remembered.
    program: String,
    /// What the program was to come to, once it has said so.
    outcome: Option<RunOutcome>,
    /// The session is ended at this time of the monotonic clock, whatever its program does.
    hard_ns: u64,
    /// How it was called; none of a pi that is only asked for its version.
    run: Option<Box<AgentRunState>>,
}

/// What is kept of a run.
#[derive(Debug)]
struct AgentRunState {
    pi: String,
    model: String,
    label: Option<String>,
    /// The run's events are sent as they come.
    stream: bool,
    /// How long the run may take from pi's start on, until pi is started.
    most_ms: Option<u64>,
    /// The model has not begun to answer.
    is_starting: bool,
    /// Somebody waits for the run's result, or did until the connection was gone.
    awaited: bool,
    /// Whoever waited for its result was told that it goes on: the result is remembered.
    left: bool,
    /// agent_result has said that it is to end.
    cancelled: bool,
    /// How far it is: fields of JSON in braces.
    so_far: Vec<u8>,
}

/// What a run, or a question, has come to.
#[derive(Debug)]
enum RunOutcome {
    /// Its result as it is.
    AsItIs(Vec<u8>),
    /// The result of a run whose pi was started.
    Ran(Vec<u8>),
    /// The same of one that somebody else has ended.
    Cancelled(Vec<u8>),
    /// The params are wrong.
    Refused(String),
}

/// A run that goes on, where its request is answered before its end; behind this stands how far it
/// is.
#[derive(Debug, Serialize)]
struct GoingOn {
    /// Always true: a result does not have it.
    running: bool,
    /// The id of its session, by which agent_result finds it.
    run_id: u64,
    /// Since the request.
    duration_ms: u64,
}

/// What is told of a run besides what its program says.
#[derive(Debug, Serialize)]
struct RunLog<'a> {
    /// Where the log is.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_path: Option<String>,
    /// The first byte of the run's output that the log still has, where it has lost some before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_from: Option<u64>,
    /// By whom the run was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    killed_by: Option<&'a str>,
}

/// What is remembered besides the sessions.
#[derive(Debug, Default)]
pub struct Books {
    /// What programs of pi have told of themselves, and when.
    known: BTreeMap<String, (u64, Known)>,
    /// What runs have come to that nobody waited for to their end.
    results: Results,
}

impl Books {
    fn known(&self, program: &str, now_ns: u64) -> Option<Known> {
        let (at_ns, known) = self.known.get(program)?;
        (now_ns < at_ns + AGENT_KNOWN_MS * NS_PER_MS).then(|| known.clone())
    }

    fn note_known(&mut self, program: &str, known: Known, now_ns: u64) {
        if self.known.len() >= AGENT_KNOWN_MAX && !self.known.contains_key(program) {
            // Asking again costs a start of pi, no more.
            self.known.clear();
        }
        self.known.insert(program.to_owned(), (now_ns, known));
    }
}

/// Whether everything that a session's end is about is over: gone, or given up.
fn ending_over(core: &Session) -> bool {
    core.ending.as_ref().is_some_and(Ending::over)
}

/// Whether a session's program has ended what it has started, as it does before it exits.
fn is_clean(core: &Session) -> bool {
    core.status() == Some(ExitStatus::Code(0))
}

/// Whether a session has nothing more to tell: all of it has ended, or what is left cannot be
/// ended.
fn told_all(core: &Session) -> bool {
    let gone = core.ending.as_ref().is_some_and(Ending::all_gone);
    let left = core.status().is_some() && !gone;
    let finished = core.life.finished();
    (finished && is_clean(core)) || (ending_over(core) && (finished || left))
}

/// Sends an event of a run, which is JSON, to the client that asked for the run; `request`: the
/// request's id, as it was sent.
fn send_event(client: &mut Client, request: &str, event: &[u8]) {
    let mut note = format!(r#"{{"request_id":{request},"#).into_bytes();
    // The object goes on behind the request's id.
    note.extend_from_slice(&event[1..]);
    client.notify_json("agent_event", &note);
}

/// Refuses one more run when as many go on as may.
fn room_for_one(engine: &Engine) -> Result<(), RpcError> {
    let is_run = |family: &super::State| family.agent().is_some_and(|own| own.run.is_some());
    let running = engine.sessions.running(is_run);
    if running < RUNNING_AGENTS_MAX.min(engine.cx.config.max_running) {
        return Ok(());
    }
    let message = format!(
        "{running} runs of agent_execute go on, as many as may at once: cancel one, or wait \
         for one to end"
    );
    Err(RpcError::failed(Reason::TooManySessions, message))
}

/// The pi that is meant: the one given, or that of the settings. A path counts from where execd
/// is, whatever the workspace.
fn pi_program(cx: &Cx, given: Option<&str>) -> String {
    let program = given.map_or_else(|| cx.config.pi.clone(), str::to_owned);
    if program.contains('/') { cx.resolved_cwd(Some(&program)) } else { program }
}

/// The oldest wait for what a run comes to: that of agent_execute, or of agent_result. It gets the
/// run's events.
fn wait_of(core: &Session) -> Option<&Wait> {
    core.waits.iter().find(|wait| wait.asked_by == Agent::ID)
}

/// Starts the program with this order. `command`: as lists show it.
fn launch(
    engine: &mut Engine,
    order: &Order<'_>,
    command: String,
    (program, most_ms, run): (String, u64, Option<Box<AgentRunState>>),
) -> Result<SessionId, RpcError> {
    let is_run = run.is_some();
    let spec = LaunchSpec {
        program: order.pi.clone().into_owned(),
        arguments: vec![],
        own_program: Some([NAME, FLAG]),
        command,
        name: None,
        workdir: order.workspace.clone().map(Into::into),
        env: vec![],
        stdin: Stdin::Pipe,
        tty: None,
        split: true,
        whole: true,
    };
    let mut line = wire::to_json(order);
    line.push(b'\n');
    let id = engine.launch(&spec).map_err(|why| RpcError::failed(Reason::System, why))?;
    if let Some(entry) = engine.sessions.get_mut(id) {
        let core = &mut entry.core;
        core.view = crate::server::session::view::View::new(AGENT_UNREAD_BYTES);
        core.ways = Ways { own_cap: true, leader_first: true, speaks: true, ..core.ways };
        if !is_run {
            core.listing = Listing::Gone;
        }
        core.input.push(&line);
        let (line, is_skipped, outcome) = (Vec::new(), false, None);
        let hard_ns = engine.cx.now_ns.saturating_add(most_ms.saturating_mul(NS_PER_MS));
        entry.family = Agent { line, is_skipped, program, outcome, hard_ns, run }.into();
        engine.cx.touch(&mut entry.core);
        engine.feed_now(id);
    }
    Ok(id)
}

/// How many runs have begun and not come to the model's first event.
fn starting(engine: &Engine) -> u64 {
    let is_starting = |family: &super::State| {
        family.agent().and_then(|own| own.run.as_ref()).is_some_and(|run| run.is_starting)
    };
    engine.sessions.running(is_starting) as u64
}

/// One more run has begun: each that is starting has so many more beside it.
fn tell_starting(engine: &mut Engine) {
    let others = starting(engine).saturating_sub(1);
    let mut line = wire::to_json(&OtherStarts { others });
    line.push(b'\n');
    let mut told = Vec::new();
    for one in engine.sessions.iter_mut() {
        let run = one.family.agent().and_then(|own| own.run.as_ref());
        let core = &mut one.core;
        if run.is_some_and(|run| run.is_starting) && core.input.has_room(line.len()) {
            core.input.push(&line);
            told.push(core.id);
        }
    }
    told.into_iter().for_each(|id| engine.feed_now(id));
}

impl Family for Agent {
    type Books = Books;

    fn is_hidden(&self) -> bool {
        self.run.is_none()
    }

    fn hear(&mut self, core: &mut Session, length: usize, cx: &mut Cx) {
        let bytes = cx.reading.buffer[..length].to_vec();
        let mut rest = &bytes[..];
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (part, behind) = (&rest[..end], &rest[end + 1..]);
            rest = behind;
            if std::mem::take(&mut self.is_skipped) {
                continue;
            }
            if self.line.is_empty() {
                self.take_line(part, core, cx);
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(part);
                self.take_line(&line, core, cx);
            }
        }
        self.is_skipped |= self.line.len() + rest.len() > AGENT_LINE_BYTES;
        if self.is_skipped {
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(rest);
        }
    }

    fn due_ns(&self, core: &Session) -> Option<u64> {
        (core.status().is_none() && core.ending.is_none()).then_some(self.hard_ns)
    }

    fn step(own: Option<&mut Self>, core: &mut Session, cx: &mut Cx) {
        if let Some(own) = own {
            own.step_end(core, cx);
        }
    }

    fn verdict(
        own: Option<&Self>,
        core: &Session,
        wait: &Wait,
        at: &Moment,
        _cx: &Cx,
    ) -> Option<Why> {
        let own = own?;
        let (over, why) = if told_all(core) {
            (true, Why::Completed)
        } else if wait.cancelled && own.run.is_some() {
            // A cancelled agent_execute still waits: its result says what the run has cost.
            (wait.kind == WaitKind::Poll, Why::Cancelled)
        } else {
            (wait.due_ns.is_some_and(|due| due <= at.now_ns), Why::Deadline)
        };
        over.then_some(why)
    }

    fn answer(
        own: Option<&mut Self>,
        core: &mut Session,
        wait: Wait,
        why: Why,
        cx: &mut Cx,
    ) -> bool {
        let Some(pending) = cx.take_pending(wait.ticket) else { return false };
        let Some(own) = own else { return false };
        if why != Why::Completed {
            let told = own.so_far(core, cx);
            if let Some(run) = &mut own.run {
                // Where who began it has an answer, or is gone, nobody needs to wait any more.
                let of_execute = |one: &Wait| one.kind == WaitKind::Start;
                (run.awaited, run.left) = (core.waits.iter().any(of_execute), true);
            }
            if let Some(client) = cx.clients.get_mut(pending.client) {
                client.reply_json(&pending.id, &told, false);
            }
            return false;
        }
        if let Some(run) = &mut own.run {
            // What agent_execute answers with is nowhere else.
            run.left &= wait.kind == WaitKind::Poll;
            cx.tell_end_to(pending.client, core.id);
        }
        match own.result(core, cx) {
            Ok(result) => {
                if let Some(client) = cx.clients.get_mut(pending.client) {
                    client.reply_json(&pending.id, &result, false);
                }
            }
            Err(error) => cx.clients.refuse(&pending, &error),
        }
        core.observed = true;
        true
    }

    fn remember(own: Option<&mut Self>, core: &mut Session, _: &str, cx: &mut Cx) {
        let Some(own) = own else { return };
        if own.run.as_mut().is_some_and(|run| std::mem::take(&mut run.left))
            && let Ok(result) = own.result(core, cx)
        {
            cx.books.agent.results.keep(core.id, result);
        }
    }
}

/// Fields of an object of JSON, one behind the other.
fn joined(objects: &[&[u8]]) -> Vec<u8> {
    let inner = objects.iter().map(|object| object.get(1..object.len() - 1).unwrap_or_default());
    let inner: Vec<&[u8]> = inner.filter(|fields| !fields.is_empty()).collect();
    [b"{", &inner.join(&b","[..])[..], b"}"].concat()
}

impl Agent {
    /// Takes one line of the program.
    fn take_line(&mut self, line: &[u8], core: &mut Session, cx: &mut Cx) {
        if line.starts_with(EVENT_BEGINS) {
            let streams = self.run.as_ref().is_some_and(|run| run.stream);
            let wait = wait_of(core).filter(|_| streams);
            let pending = wait.and_then(|wait| cx.pending.get(&wait.ticket));
            if let Some(pending) = pending
                && let Some(client) = cx.clients.get_mut(pending.client)
            {
                send_event(client, pending.id.as_json(), line);
            }
            return;
        }
        let Ok(said) = serde_json::from_slice::<Said<'_>>(line) else {
            return cx.debug(format_args!("session {}: a line of {} bytes", core.id, line.len()));
        };
        match (said, &mut self.run) {
            (Said::Known(known), _) => {
                let now_ns = cx.now_ns;
                cx.books.agent.note_known(&self.program, known, now_ns);
            }
            (Said::Begun(_), Some(run)) => run.is_starting = false,
            (Said::SoFar(fields), Some(run)) => {
                run.so_far = fields.get().as_bytes().to_vec();
                if let Some(most_ms) = run.most_ms.take() {
                    self.hard_ns = cx.now_ns.saturating_add(most_ms.saturating_mul(NS_PER_MS));
                }
            }
            (Said::Refused(message), _) => {
                self.outcome = Some(RunOutcome::Refused(message.into_owned()));
            }
            (Said::Unstarted(result), _) | (Said::Result(result), None) => {
                self.outcome = Some(RunOutcome::AsItIs(result.get().as_bytes().to_vec()));
            }
            (Said::Result(result), Some(_)) => {
                self.outcome = Some(RunOutcome::Ran(result.get().as_bytes().to_vec()));
            }
            (Said::Cancelled(result), _) => {
                self.outcome = Some(RunOutcome::Cancelled(result.get().as_bytes().to_vec()));
            }
            (Said::Begun(_) | Said::SoFar(_), None) => {}
        }
    }

    /// What was cancelled, or has lasted longer than its program lets it, is ended; so is what a
    /// program left behind that was killed.
    fn step_end(&mut self, core: &mut Session, cx: &mut Cx) {
        if core.status().is_some() {
            if core.ending.is_none() && !is_clean(core) {
                cx.end_members(core, SIGTERM, KILL_GRACE_MS);
            }
            return;
        }
        if core.ending.is_some() {
            return;
        }
        let wait = wait_of(core);
        let begun = wait.filter(|one| one.kind == WaitKind::Start || self.run.is_none());
        let cancels = begun.is_some_and(|one| one.cancelled);
        let closes = wait.is_some_and(|one| cx.closes_for(cx.client_of(one)));
        let unheard = wait.is_none();
        let (cancelled, unheard) = match &self.run {
            Some(run) => (run.cancelled, run.awaited && unheard),
            None => (false, unheard),
        };
        let by = if cancels || cancelled {
            KilledBy::Cancel
        } else if closes || unheard {
            // A result that nobody can be given is not worth its costs.
            cx.closing.as_ref().map_or(KilledBy::ClientGone, Closing::killed_by)
        } else if self.hard_ns <= cx.now_ns {
            KilledBy::Timeout
        } else {
            return;
        };
        cx.debug(format_args!("session {}: the run is ended: {}", core.id, by.as_str()));
        cx.begin_ending(core, SIGTERM, KILL_GRACE_MS, by.into());
    }

    /// How far a run is that goes on, as JSON.
    fn so_far(&self, core: &Session, cx: &Cx) -> Vec<u8> {
        let duration_ms = (cx.now_ns - core.facts.started_ns) / NS_PER_MS;
        let known = wire::to_json(&GoingOn { running: true, run_id: core.id, duration_ms });
        let so_far = self.run.as_ref().map_or(&b"{}"[..], |run| &run.so_far);
        joined(&[&known, so_far, &log_fields(core, cx, None)])
    }

    /// What the session has come to, as JSON. Errors: the params were wrong.
    fn result(&self, core: &Session, cx: &Cx) -> Result<Vec<u8>, RpcError> {
        let by = core.is_killed_by();
        Ok(match &self.outcome {
            Some(RunOutcome::AsItIs(result)) => result.clone(),
            Some(RunOutcome::Ran(result)) => joined(&[result, &log_fields(core, cx, None)]),
            Some(RunOutcome::Cancelled(result)) => joined(&[result, &log_fields(core, cx, by)]),
            Some(RunOutcome::Refused(message)) => {
                return Err(RpcError::invalid_param("allowed_tools", message.clone()));
            }
            None => {
                let Some(run) = &self.run else { return Ok(self.lost_health(by.is_some())) };
                let (_, signal) = status_fields(core.status());
                let called = (&*run.pi, &*run.model, run.label.as_deref());
                let words = lost_words(core, cx);
                let words = if by.is_some() { "" } else { &words };
                let result = lost_run(called, by.is_some(), signal.as_deref(), words);
                joined(&[&result, &log_fields(core, cx, by)])
            }
        })
    }

    /// The answer of agent_health whose program has ended without one.
    fn lost_health(&self, cancelled: bool) -> Vec<u8> {
        let why = if cancelled { "cancelled before pi answered" } else { "pi could not be asked" };
        wire::to_json(&serde_json::json!({"ok": false, "path": self.program, "error": why}))
    }
}

/// Why there is no result, and who is left of the run.
fn lost_words(core: &Session, cx: &Cx) -> String {
    let left = cx.named_holders(core);
    let names: Vec<String> =
        left.iter().map(|one| format!("{} (pid {})", one.command, one.pid)).collect();
    let left = match names.is_empty() {
        true => String::new(),
        false => format!("; left behind: {}", names.join(", ")),
    };
    let why = core.start.failure().unwrap_or("the program that ran pi (sessions-agent) was ended");
    format!("{why}{left}")
}

/// What execd knows of a run besides its program: fields of JSON in braces.
fn log_fields(core: &Session, cx: &Cx, killed_by: Option<&str>) -> Vec<u8> {
    let (log_path, log_from) = (cx.log_path(core.id), cx.log_from(core.id));
    wire::to_json(&RunLog { log_path, log_from, killed_by })
}
