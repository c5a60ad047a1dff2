//! The pi harness (agent.md): runs of pi from their start to their result, and what they tell
//! meanwhile. `start` has how a run begins, `run` its clocks and budgets, `probe` what pi says of
//! itself, `agent_dir` what a run needs on a disk; what the stream of pi means is decided in
//! `pure/agent/`.

pub mod agent_capabilities;
pub mod agent_dir;
pub mod agent_execute;
pub mod agent_health;
pub mod agent_result;
pub mod keys;
mod model;
pub mod probe;
pub mod run;
pub mod start;

use super::{Cx, Engine, Entry, Family, Method, Numbered};
use crate::engine::client::Client;
use crate::engine::closing::Closing;
use crate::engine::contract::cx::Effect;
use crate::engine::judge::status_fields;
use crate::engine::streams::end_with;
use crate::limits::{KILL_GRACE_MS, NS_PER_MS, RUNNING_AGENTS_MAX};
use crate::pure::agent::program::Version;
use crate::pure::agent::{End, GoingOn, Stop, Told};
use crate::pure::process::killed::KilledBy;
use crate::pure::time::rfc3339::format_utc_ms;
use crate::session::Session;
use crate::session::ending::{Ending, SIGTERM};
use crate::session::output::Source;
use crate::session::wait::{Moment, Wait, WaitKind, Why};
use crate::sys::agent_dirs::SWEEP_FLAG;
use crate::sys::child::Usage;
use crate::wire::{self, Reason, RpcError};
use agent_dir::{EXIT_NOT_STARTED, NOT_STARTED};
use agent_result::Results;
use probe::{Probe, Versions};
use run::Run;

/// The rows of the table of methods.
pub const METHODS: &[Method] = &[
    agent_execute::METHOD,
    agent_result::METHOD,
    agent_health::METHOD,
    agent_capabilities::METHOD,
];

/// What is kept of a session in which pi runs.
#[derive(Debug)]
pub enum Agent {
    /// Pi runs a task.
    Run(Box<Run>),
    /// Pi is only asked about itself.
    Probe(Probe),
}

/// What is remembered besides the sessions.
#[derive(Debug, Default)]
pub struct Books {
    /// What is known of programs of pi.
    pub versions: Versions,
    /// What runs have come to that nobody waited for to their end.
    pub results: Results,
}

/// What an api_key is replaced by wherever it could be seen.
const MASK: &str = "***";

/// What is told of a run that could not be started, besides the reason.
const INSTALL: &str = "install it with npm install -g @earendil-works/pi-coding-agent, or name it \
                       by pi_path or EXECD_PI";

/// Whether everything that a session's end is about is over: gone, or given up.
fn ending_over(core: &Session) -> bool {
    core.ending.as_ref().is_some_and(Ending::over)
}

/// Whether a session has nothing more to tell: all of it has ended, or what is left cannot be
/// ended.
fn told_all(core: &Session) -> bool {
    let gone = core.ending.as_ref().is_some_and(Ending::all_gone);
    let left = core.status().is_some() && !gone;
    ending_over(core) && (core.life.finished() || left)
}

/// Why a program could not be started, with what to do where it is missing.
fn start_failure(program: &str, failure: &str) -> String {
    if failure.starts_with("spawn ") && failure.contains("ENOENT") {
        return format!("{program} was not found: {INSTALL}");
    }
    // The reason names the param as it is called here.
    let of_workspace = failure.strip_prefix("workdir ").map(|rest| format!("workspace {rest}"));
    of_workspace.unwrap_or_else(|| failure.to_owned())
}

/// Sends an event of a run, which is JSON, to the client that asked for the run; `request`: the
/// request's id, as it was sent.
fn send_event(client: &mut Client, request: &str, event: &[u8]) {
    let mut note = format!(r#"{{"request_id":{request},"#).into_bytes();
    // The object goes on behind the request's id.
    note.extend_from_slice(&event[1..]);
    client.notify_json("agent_event", &note);
}

/// Refuses one more run when as many go on as may, or wait for pi to tell what it is.
fn room_for_one(engine: &Engine) -> Result<(), RpcError> {
    let is_run = |family: &super::State| matches!(family.agent(), Some(Agent::Run(_)));
    let waiting = engine.sessions.iter().map(|one| one.core.deferred.len());
    let running = engine.sessions.running(is_run) + waiting.sum::<usize>();
    if running < RUNNING_AGENTS_MAX.min(engine.cx.config.max_running) {
        return Ok(());
    }
    let message = format!(
        "{running} runs of agent_execute go on, as many as may at once: cancel one, or wait \
         for one to end"
    );
    Err(RpcError::failed(Reason::TooManySessions, message))
}

/// How many runs have begun and not come to the model's first event.
fn starting(engine: &Engine) -> u64 {
    let is_starting = |one: &&Entry| match one.family.agent() {
        Some(Agent::Run(run)) => run.is_starting() && one.core.status().is_none(),
        _ => false,
    };
    engine.sessions.iter().filter(is_starting).count() as u64
}

/// The oldest version that a call takes.
fn version_param(given: Option<&str>) -> Result<Version, RpcError> {
    let wanted = "min_version must be a version, 0.70.0 say";
    let given = given.unwrap_or(probe::OLDEST);
    Version::parse(given).ok_or_else(|| RpcError::invalid_param("min_version", wanted.to_owned()))
}

/// The pi that is meant: the one given, or that of the settings. A path counts from where execd
/// is, whatever the workspace.
fn pi_program(cx: &Cx, given: Option<String>) -> String {
    let program = given.unwrap_or_else(|| cx.config.pi.clone());
    if program.contains('/') { cx.resolved_cwd(Some(&program)) } else { program }
}

/// The oldest wait for what a run comes to: that of agent_execute, or of agent_result. It gets the
/// run's events.
fn wait_of(core: &Session) -> Option<&Wait> {
    core.waits.iter().find(|wait| wait.asked_by == Agent::ID)
}

/// By whom a run is ended that is ended for this; `cancelled`: its request was.
fn killed_by(stop: Stop, cancelled: bool, cx: &Cx) -> KilledBy {
    match stop {
        Stop::FirstEventTimeout(_)
        | Stop::IdleTimeout(_)
        | Stop::HardTimeout(_)
        | Stop::Lingered => KilledBy::Timeout,
        Stop::Cost(_) | Stop::Tokens(_) | Stop::ModelMismatch => KilledBy::Limit,
        Stop::Cancelled if cancelled => KilledBy::Cancel,
        Stop::Cancelled => cx.closing.as_ref().map_or(KilledBy::ClientGone, Closing::killed_by),
    }
}

impl Family for Agent {
    type Books = Books;

    fn is_hidden(&self) -> bool {
        matches!(self, Self::Probe(_))
    }

    /// Others see the events that pi's stream is read as, and pi's stderr, unless the call asks for
    /// the stream itself.
    fn rewrite(
        &mut self,
        core: &mut Session,
        (source, length): (Source, usize),
        cx: &mut Cx,
    ) -> Vec<u8> {
        let bytes = &cx.reading.buffer[..length];
        let Self::Run(run) = self else { return bytes.to_vec() };
        if source == Source::Errors {
            return run.push_stderr(bytes);
        }
        let raw = run.spec.raw_log.then(|| bytes.to_vec());
        let events = run.advance(core, Some(length), cx);
        // The run's deadlines have moved, or its budget is used up.
        cx.touch(core);
        raw.unwrap_or(events)
    }

    /// Events are never dropped (protocol.md, Notifications), so pi waits for a slow reader.
    fn may_read(&self, core: &Session, cx: &Cx) -> bool {
        match self {
            Self::Run(run) if run.spec.stream => {
                wait_of(core).is_none_or(|wait| cx.has_room_for(wait))
            }
            _ => true,
        }
    }

    fn due_ns(&self, core: &Session) -> Option<u64> {
        let started_ns = core.facts.started_ns;
        match self {
            _ if core.status().is_some() => None,
            Self::Run(run) => run.stop.is_none().then(|| started_ns + run.due_ms() * NS_PER_MS),
            Self::Probe(probe) => probe.due_ns(core),
        }
    }

    fn step(own: Option<&mut Self>, core: &mut Session, cx: &mut Cx) {
        match own {
            Some(Self::Run(run)) => run.step(core, cx),
            Some(Self::Probe(probe)) => probe.step(core, cx),
            None => {}
        }
    }

    fn verdict(
        own: Option<&Self>,
        core: &Session,
        wait: &Wait,
        at: &Moment,
        cx: &Cx,
    ) -> Option<Why> {
        let (over, why) = match own? {
            // The others are asked again, and begin to run then.
            Self::Probe(_) if wait.kind == WaitKind::Start => {
                (wait.cancelled || cx.closing.is_some(), Why::Cancelled)
            }
            Self::Probe(_) => (told_all(core) || wait.cancelled, Why::Completed),
            Self::Run(_) if told_all(core) => (true, Why::Completed),
            // Who has begun the run and cancels that waits for what it has cost.
            Self::Run(_) if wait.cancelled => (wait.kind == WaitKind::Poll, Why::Cancelled),
            Self::Run(_) => (wait.due_ns.is_some_and(|due| due <= at.now_ns), Why::Deadline),
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
        match own {
            Some(Self::Run(run)) if why != Why::Completed => {
                // Where who began it has an answer, or is gone, nobody needs to wait any more.
                let of_execute = |one: &Wait| one.kind == WaitKind::Start;
                (run.awaited, run.left) = (core.waits.iter().any(of_execute), true);
                let told = run.going_on(core, cx);
                cx.clients.reply(&pending, &told);
                return false;
            }
            Some(Self::Run(run)) => {
                // What agent_execute answers with is nowhere else.
                run.left &= wait.kind == WaitKind::Poll;
                let result = run.result(core, cx);
                cx.tell_end_to(pending.client, core.id);
                if let Some(client) = cx.clients.get_mut(pending.client) {
                    client.reply_json(&pending.id, &result, false);
                }
            }
            Some(Self::Probe(_)) if wait.kind == WaitKind::Start => {
                let mut put_off = core.deferred.iter();
                let own = put_off.find(|one| one.ticket == Some(wait.ticket));
                let params = own.map_or("", |one| &one.params);
                if let (Ok(result), Some(client)) =
                    (agent_execute::cancelled(cx, params), cx.clients.get_mut(pending.client))
                {
                    client.reply_json(&pending.id, &result, false);
                }
                return false;
            }
            Some(Self::Probe(probe)) => {
                let health = probe.health(core, wait.cancelled);
                cx.clients.reply(&pending, &health);
            }
            None => {}
        }
        core.observed = true;
        true
    }

    fn remember(own: Option<&mut Self>, core: &mut Session, _: &str, cx: &mut Cx) {
        let Some(Self::Run(run)) = own else { return };
        if std::mem::take(&mut run.left) {
            let result = run.result(core, cx);
            cx.books.agent.results.keep(core.id, result);
        }
        let files = std::mem::take(&mut run.leaves_files);
        cx.effects.extend(files.then_some(Effect::TidyUp(SWEEP_FLAG)));
    }
}

impl Run {
    /// Hands the run so many bytes that were read, or tells it that no more will come. The events
    /// that this makes go to the client that waits for its result, and are given as lines.
    fn advance(&mut self, core: &Session, length: Option<usize>, cx: &mut Cx) -> Vec<u8> {
        let now_ms = (cx.now_ns - core.facts.started_ns) / NS_PER_MS;
        let wait = wait_of(core).filter(|_| self.spec.stream);
        let pending = wait.and_then(|wait| cx.pending.get(&wait.ticket));
        let mut reader = pending
            .and_then(|pending| Some((cx.clients.get_mut(pending.client)?, pending.id.as_json())));
        let doing = &mut self.doing;
        let mut lines = Vec::new();
        let mut tell = |told: &Told<'_>| {
            doing.note(told);
            let event = wire::to_json(told);
            if let Some((client, request)) = &mut reader {
                send_event(client, request, &event);
            }
            lines.extend_from_slice(&event);
            lines.push(b'\n');
        };
        match length {
            Some(length) => self.run.push(&cx.reading.buffer[..length], now_ms, &mut tell),
            None => self.run.finish(now_ms, &mut tell),
        }
        lines
    }

    /// A run that was cancelled, whose time is over or whose budget is used up is ended; what a
    /// run that has ended left behind is ended too.
    fn step(&mut self, core: &mut Session, cx: &mut Cx) {
        let wait = wait_of(core);
        let begun = wait.filter(|one| one.kind == WaitKind::Start);
        let unheard = wait.is_none();
        let closes = wait.is_some_and(|one| cx.closes_for(cx.client_of(one)));
        let cancelled = closes || begun.is_some_and(|one| one.cancelled);
        self.stop = self.stop.or_else(|| self.over_bounds());
        if core.status().is_some() {
            let being_ended = core.ending.as_ref().is_some_and(|ending| !ending.over());
            if !std::mem::replace(&mut self.swept, true) && !being_ended {
                cx.end_members(core, SIGTERM, KILL_GRACE_MS);
            }
            // While somebody still waits: what is told at the stream's end is told like all else.
            if told_all(core) && !std::mem::replace(&mut self.finished, true) {
                let events = self.advance(core, None, cx);
                end_with(core, &self.end_stderr(), cx);
                end_with(core, if self.spec.raw_log { &[] } else { &events }, cx);
            }
            return;
        }
        let now_ms = (cx.now_ns - core.facts.started_ns) / NS_PER_MS;
        // Whoever began to end a run whose program lives meant the run, also where all of it is
        // gone by now and only not reaped. A result that nobody can be given is not worth its
        // costs.
        let asked =
            cancelled || self.cancelled || core.ending.is_some() || (self.awaited && unheard);
        let asked = asked.then_some(Stop::Cancelled);
        self.note_held(core.output.is_held(), now_ms);
        if !core.is_starting() {
            self.exec_ms.get_or_insert(now_ms);
        }
        self.stop = self.stop.or(asked).or_else(|| self.late(now_ms));
        if let Some(stop) = self.stop
            && core.ending.is_none()
        {
            cx.debug(format_args!("session {}: the run is ended: {stop:?}", core.id));
            let by =
                killed_by(stop, self.cancelled || begun.is_some_and(|wait| wait.cancelled), cx);
            cx.begin_ending(core, SIGTERM, KILL_GRACE_MS, by.into());
        }
    }

    /// How far a run is that goes on.
    fn going_on(&self, core: &Session, cx: &Cx) -> GoingOn<'_> {
        GoingOn {
            run_id: core.id,
            duration_ms: (cx.now_ns - core.facts.started_ns) / NS_PER_MS,
            doing: self.doing.line(),
            log_path: cx.log_path(core.id),
            ..self.run.going_on()
        }
    }

    /// The result of a run that has ended, as JSON.
    fn result(&mut self, core: &Session, cx: &mut Cx) -> Vec<u8> {
        self.advance(core, None, cx);
        let log_path = cx.log_path(core.id);
        let started_at = format_utc_ms(core.facts.started_wall_ms);
        let ended_ns = core.reaped_ns.unwrap_or(cx.now_ns);
        let (exit_code, signal) = status_fields(core.status());
        let stderr = self.stderr();
        let failure = core.start.failure();
        // The process that was to become pi may have failed.
        let made_ready = self.leaves_files && exit_code == Some(EXIT_NOT_STARTED);
        let failure = failure.or_else(|| stderr.strip_prefix(NOT_STARTED).filter(|_| made_ready));
        let failure = failure.map(|why| start_failure(&core.start.program, why.trim_end()));
        // The stream's last line may have had no end, and is read only now.
        self.stop = self.stop.or_else(|| self.over_bounds());
        let usage = core.tree_usage();
        let end = End {
            stop: self.stop,
            failure: failure.as_deref(),
            exit_code: exit_code.filter(|_| failure.is_none()),
            signal: signal.as_deref(),
            killed_by: core.killed_by(),
            stderr: &stderr,
            duration_ms: (ended_ns - core.facts.started_ns) / NS_PER_MS,
            log_path: log_path.as_deref(),
            log_from: cx.log_from(core.id),
            cpu_seconds: usage.map(Usage::cpu_seconds),
            max_rss_kib: usage.map(|usage| usage.max_rss_kib),
            started_at: &started_at,
            started_at_once: self.started_at_once(),
            ..self.called.end()
        };
        wire::to_json(&self.run.report(&end))
    }
}
