//! The pi harness (agent.md): runs of pi from their start to their result, and what they tell
//! meanwhile. `run` has a run's clocks and budgets, `probe` and `versions` what pi says of itself;
//! what the stream of pi means is decided in `pure/agent/`.

pub mod agent_capabilities;
pub mod agent_dir;
pub mod agent_execute;
pub mod agent_health;
pub mod keys;
pub mod probe;
mod prompt;
pub mod run;
pub mod versions;

pub use versions::Versions;

use super::{Cx, Engine, Entry, Family, Method, Numbered, State};
use crate::engine::client::Client;
use crate::engine::contract::Answered;
use crate::engine::contract::cx::Effect;
use crate::engine::judge::status_fields;
use crate::engine::launch::LaunchSpec;
use crate::engine::streams::begin_with;
use crate::limits::{AGENT_UNREAD_BYTES, KILL_GRACE_MS, NS_PER_MS, RUNNING_AGENTS_MAX};
use crate::pure::agent::program::Version;
use crate::pure::agent::visible::{NOTE, Visible};
use crate::pure::agent::{AgentRun, End, RunSettings, Stop, Told};
use crate::pure::time::rfc3339::format_utc_ms;
use crate::session::ending::{Ending, SIGTERM};
use crate::session::output::Source;
use crate::session::view::View;
use crate::session::wait::{Moment, Wait, WaitKind, Why};
use crate::session::{Session, SessionId, Ways};
use crate::sys::agent_dirs::SWEEP_FLAG;
use crate::sys::child::Usage;
use crate::sys::clock;
use crate::sys::memory_file::MemoryFile;
use crate::wire::{self, Reason, RpcError};
use agent_dir::Isolation;
use probe::Probe;
use run::{AgentSpec, Called, Run};

/// The rows of the table of methods.
pub const METHODS: &[Method] =
    &[agent_execute::METHOD, agent_health::METHOD, agent_capabilities::METHOD];

/// What is kept of a session in which pi runs.
#[derive(Debug)]
pub enum Agent {
    /// Pi runs a task.
    Run(Box<Run>),
    /// Pi is only asked about itself.
    Probe(Probe),
}

/// What an api_key is replaced by wherever it could be seen.
const MASK: &str = "***";

/// What is told of a run that could not be started, besides the reason.
const INSTALL: &str = "install it with npm install -g @earendil-works/pi-coding-agent, or name it \
                       by pi_path or EXECD_PI";

/// What to start for a run, and what the run goes by.
#[derive(Debug)]
pub struct AgentStart {
    /// pi with its arguments, but for the prompt.
    pub launch: LaunchSpec,
    /// What the run goes by.
    pub spec: AgentSpec,
    /// How its stream is read.
    pub settings: RunSettings,
    /// What the record tells of how pi is called.
    pub called: Called,
    /// The last argument of pi: the task.
    pub prompt: String,
    /// What nobody may read in the output of pi: the key.
    pub secret: Option<String>,
    /// The provider of a key that no variable of pi's takes.
    pub key_of: Option<String>,
    /// The run's own agent directory is kept.
    pub keep_agent_dir: bool,
}

impl AgentStart {
    /// Completes what pi is called with. Gives the file of a prompt that is too long for an
    /// argument. Errors: there is no room for that file.
    fn complete(&mut self, cx: &Cx) -> Result<Option<MemoryFile>, RpcError> {
        let isolation = match self.called.isolated {
            true => Isolation::Run { keep: self.keep_agent_dir },
            false => Isolation::Shared,
        };
        let key = self.key_of.as_deref().zip(self.secret.as_deref());
        self.called.agent_dir = agent_dir::prepare(cx, &mut self.launch, isolation, key);
        let file = prompt::add(&mut self.launch, std::mem::take(&mut self.prompt))?;
        let words = std::iter::once(&self.launch.program).chain(&self.launch.arguments);
        let key = self.secret.as_deref();
        self.called.args = words.map(|word| masked(word, key)).collect();
        Ok(file)
    }
}

/// A word of a command line without the key.
fn masked(word: &str, key: Option<&str>) -> String {
    key.map_or_else(|| word.to_owned(), |key| word.replace(key, MASK))
}

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

/// Sends an event of a run to the client that asked for the run; `request`: the request's id, as
/// it was sent.
fn tell_event(client: &mut Client, request: &str, told: &Told<'_>) {
    let mut event = wire::to_json(told);
    // The object goes on behind the request's id.
    event[0] = b',';
    let mut note = format!(r#"{{"request_id":{request}"#).into_bytes();
    note.append(&mut event);
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

/// The result of a run that is not started, as JSON. Errors: as of [`start`].
fn unstarted(
    cx: &Cx,
    mut start: AgentStart,
    stop: Option<Stop>,
    failure: Option<&str>,
) -> Result<Vec<u8>, RpcError> {
    start.complete(cx)?;
    Ok(without_start(start, stop, failure))
}

/// The same of a run that was about to be started.
fn without_start(mut start: AgentStart, stop: Option<Stop>, failure: Option<&str>) -> Vec<u8> {
    // No such directory was made.
    start.called.agent_dir = None;
    let started_at = format_utc_ms(clock::wall_ms());
    let end = End { stop, failure, started_at: &started_at, ..start.called.end() };
    wire::to_json(&AgentRun::new(start.settings).report(&end))
}

/// Starts a run. Gives the result of one that could not be started, as JSON. Errors: the prompt is
/// too long for an argument, and there is no room for a file.
fn start(
    engine: &mut Engine,
    mut start: AgentStart,
) -> Result<Result<SessionId, Vec<u8>>, RpcError> {
    let file = start.complete(&engine.cx)?;
    let leaves_files = !start.launch.first.is_empty();
    let id = match engine.launch(&start.launch) {
        Ok(id) => id,
        Err(failure) => {
            if leaves_files {
                engine.tidy_up(SWEEP_FLAG);
            }
            let failure = start_failure(&start.launch.program, &failure);
            return Ok(Err(without_start(start, None, Some(&failure))));
        }
    };
    if let Some(Entry { core, family }) = engine.sessions.get_mut(id) {
        core.view = View::new(AGENT_UNREAD_BYTES);
        core.ways = Ways { own_cap: true, leader_first: true, ..core.ways };
        // A tool that prints its environment would have the key in the log.
        if let Some(secret) = &start.settings.secret {
            core.output.visible = Some(Visible::of_events(secret.clone()).into());
            if let Some(errors) = &mut core.errors {
                errors.visible = Some(Visible::of_text(secret.clone()).into());
            }
            begin_with(core, NOTE.as_bytes(), &mut engine.cx);
        }
        let mut run = Run::new(start.spec, start.called, start.settings, file);
        run.leaves_files = leaves_files;
        *family = Agent::Run(Box::new(run)).into();
        engine.cx.touch(core);
    }
    note_starting(engine);
    Ok(Ok(id))
}

/// One more run has begun: each that is starting has so many more beside it.
fn note_starting(engine: &mut Engine) {
    let others = starting(engine).saturating_sub(1);
    for one in engine.sessions.iter_mut() {
        if let State::Agent(own) = &mut one.family
            && let Agent::Run(run) = &mut **own
        {
            run.others_starting =
                run.others_starting.max(if run.is_starting() { others } else { 0 });
        }
    }
}

/// The wait of agent_execute for its result, where somebody waits.
fn wait_of(core: &Session) -> Option<&Wait> {
    core.waits.iter().find(|wait| wait.asked_by == Agent::ID && wait.kind == WaitKind::Start)
}

impl Family for Agent {
    type Books = Versions;

    fn take(
        own: Option<&mut Self>,
        core: &mut Session,
        (source, length): (Source, usize),
        cx: &mut Cx,
    ) {
        let Some(Self::Run(run)) = own else { return };
        if source == Source::Errors {
            return run.push_stderr(&cx.reading.buffer[..length]);
        }
        run.advance(core, Some(length), cx);
        // The run's deadlines have moved, or its budget is used up.
        cx.touch(core);
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
        _at: &Moment,
        cx: &Cx,
    ) -> Option<Why> {
        let (over, why) = match own? {
            // The others are asked again, and begin to run then.
            Self::Probe(_) if wait.kind == WaitKind::Start => {
                (wait.cancelled || cx.closing.is_some(), Why::Cancelled)
            }
            Self::Probe(_) => (told_all(core) || wait.cancelled, Why::Completed),
            Self::Run(_) => (told_all(core), Why::Completed),
        };
        over.then_some(why)
    }

    fn answer(
        own: Option<&mut Self>,
        core: &mut Session,
        wait: Wait,
        _how: (Why, bool),
        cx: &mut Cx,
    ) -> Answered {
        let Some(pending) = cx.take_pending(wait.ticket) else { return Answered::default() };
        match own {
            Some(Self::Run(run)) => {
                let result = run.result(core, cx);
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
                return Answered::default();
            }
            Some(Self::Probe(probe)) => {
                let health = probe.health(core, wait.cancelled);
                cx.clients.reply(&pending, &health);
            }
            None => {}
        }
        core.observed = true;
        Answered { output: false, end: true }
    }

    fn remember(own: Option<&mut Self>, _core: &mut Session, cx: &mut Cx) {
        let Some(Self::Run(run)) = own else { return };
        let files = std::mem::take(&mut run.leaves_files);
        cx.effects.extend(files.then_some(Effect::TidyUp(SWEEP_FLAG)));
    }
}

impl Run {
    /// Hands the run so many bytes that were read, or tells it that no more will come; the events
    /// that this makes go to who waits for its result.
    fn advance(&mut self, core: &Session, length: Option<usize>, cx: &mut Cx) {
        let now_ms = (cx.now_ns - core.facts.started_ns) / NS_PER_MS;
        let wait = wait_of(core).filter(|_| self.spec.stream);
        let pending = wait.and_then(|wait| cx.pending.get(&wait.ticket));
        let mut reader = pending
            .and_then(|pending| Some((cx.clients.get_mut(pending.client)?, pending.id.as_json())));
        let mut tell = |told: &Told<'_>| {
            if let Some((client, request)) = &mut reader {
                tell_event(client, request, told);
            }
        };
        match length {
            Some(length) => self.run.push(&cx.reading.buffer[..length], now_ms, &mut tell),
            None => self.run.finish(now_ms, &mut tell),
        }
    }

    /// A run that was cancelled, whose time is over or whose budget is used up is ended; what a
    /// run that has ended left behind is ended too.
    fn step(&mut self, core: &mut Session, cx: &mut Cx) {
        let wait = wait_of(core);
        let waits = wait.is_some();
        let cancelled = wait.is_some_and(|one| one.cancelled || cx.closes_for(cx.client_of(one)));
        self.stop = self.stop.or_else(|| self.over_bounds());
        if core.status().is_some() {
            let being_ended = core.ending.as_ref().is_some_and(|ending| !ending.over());
            if !std::mem::replace(&mut self.swept, true) && !being_ended {
                cx.begin_ending(core, SIGTERM, KILL_GRACE_MS);
            }
            // While somebody still waits: what is told at the stream's end is told like all else.
            if told_all(core) && !std::mem::replace(&mut self.finished, true) {
                self.advance(core, None, cx);
            }
            return;
        }
        let now_ms = (cx.now_ns - core.facts.started_ns) / NS_PER_MS;
        // Whoever began to end a run whose program lives meant the run, also where all of it is
        // gone by now and only not reaped. A result that nobody can be given is not worth its
        // costs.
        let asked = cancelled || core.ending.is_some() || (self.awaited && !waits);
        let asked = asked.then_some(Stop::Cancelled);
        self.note_held(core.output.is_held(), now_ms);
        if core.start.fd().is_none() {
            self.exec_ms.get_or_insert(now_ms);
        }
        self.stop = self.stop.or(asked).or_else(|| self.late(now_ms));
        if let Some(stop) = self.stop
            && core.ending.is_none()
        {
            cx.debug(format_args!("session {}: the run is ended: {stop:?}", core.id));
            cx.begin_ending(core, SIGTERM, KILL_GRACE_MS);
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
        let failure = core.start.failure().map(|why| match stderr.strip_prefix("execd: ") {
            // Written by the process that was to become pi.
            Some(reason) => reason.to_owned(),
            None => start_failure(&core.start.program, why),
        });
        // The stream's last line may have had no end, and is read only now.
        self.stop = self.stop.or_else(|| self.over_bounds());
        let usage = core.tree_usage();
        let end = End {
            stop: self.stop,
            failure: failure.as_deref(),
            exit_code: exit_code.filter(|_| failure.is_none()),
            signal: signal.as_deref(),
            stderr: &stderr,
            duration_ms: (ended_ns - core.facts.started_ns) / NS_PER_MS,
            log_path: log_path.as_deref(),
            cpu_seconds: usage.map(Usage::cpu_seconds),
            max_rss_kib: usage.map(|usage| usage.max_rss_kib),
            started_at: &started_at,
            started_at_once: self.started_at_once(),
            ..self.called.end()
        };
        wire::to_json(&self.run.report(&end))
    }
}
