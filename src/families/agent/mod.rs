//! The pi harness's side of sessions (agent.md): runs of pi from their start to their
//! result, and what they tell meanwhile.

mod versions;

pub use versions::{Health, Versions};

use super::Daemon;
use super::client::Client;
use super::judge::status_fields;
use super::launch::LaunchSpec;
use super::logs::errno_text;
use crate::limits::{
    AGENT_PROMPT_ARG_BYTES, AGENT_SECRET_MIN_BYTES, AGENT_UNREAD_BYTES, KILL_GRACE_MS, NS_PER_MS,
    RUNNING_AGENTS_MAX,
};
use crate::pure::agent::mask::Mask;
use crate::pure::agent::{AgentRun, End, RunSettings, Stop, Told};
use crate::session::ending::{Ending, SIGTERM};
use crate::session::output::{Hold, Source};
use crate::session::view::View;
use crate::session::wait::{Wait, WaitKind, Why};
use crate::session::{ClientId, Session, SessionId};
use crate::sys::memory_file::MemoryFile;
use crate::wire::{self, Reason, RpcError};

/// What is told of a run that could not be started, besides the reason.
const INSTALL: &str = "install it with npm install -g @earendil-works/pi-coding-agent, or name it \
                       by pi_path or EXECD_PI";

/// What to run, and what it goes by.
#[derive(Debug)]
pub struct AgentStart {
    /// pi with its arguments, but for the prompt.
    pub launch: LaunchSpec,
    /// What the run goes by.
    pub spec: AgentSpec,
    /// Its last argument.
    pub prompt: String,
    /// What nobody may read in its output.
    pub secret: Option<String>,
}

/// Whether everything that a session's end is about is over: gone, or given up.
fn ending_over(session: &Session) -> bool {
    session.ending.as_ref().is_some_and(Ending::over)
}

/// Whether a session has nothing more to tell: all of it has ended, or what is left cannot be
/// ended.
fn told_all(session: &Session) -> bool {
    let gone = session.ending.as_ref().is_some_and(Ending::all_gone);
    let left = session.status().is_some() && !gone;
    ending_over(session) && (session.life.finished() || left)
}

/// Why a program could not be started, with what to do where it is missing.
fn start_failure(program: &str, failure: &str) -> String {
    if failure.starts_with("spawn ") && failure.contains("ENOENT") {
        return format!("{program} was not found: {INSTALL}");
    }
    // As the param is called here.
    let of_workspace = failure.strip_prefix("workdir ").map(|rest| format!("workspace {rest}"));
    of_workspace.unwrap_or_else(|| failure.to_owned())
}

/// The file for a prompt that is too long for an argument. It is in memory: the loop waits for no
/// disk, and nothing of it is left when execd is killed.
fn prompt_file(prompt: &str) -> Result<Option<MemoryFile>, RpcError> {
    if prompt.len() <= AGENT_PROMPT_ARG_BYTES {
        return Ok(None);
    }
    MemoryFile::with(c"execd-prompt", prompt.as_bytes()).map(Some).map_err(|errno| {
        let why = errno_text(errno);
        let message = format!("the prompt could not be put into a file in memory: {why}");
        RpcError::failed(Reason::System, message)
    })
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

impl Daemon {
    /// Refuses one more run when as many go on as may.
    pub fn room_for_agent(&self) -> Result<(), RpcError> {
        let runs = |one: &&Session| one.agent.is_some() && !one.life.finished();
        let running = self.sessions.values().filter(runs).count();
        if running < RUNNING_AGENTS_MAX.min(self.config.max_running) {
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
    pub fn pi_program(&self, given: Option<String>) -> String {
        let program = given.unwrap_or_else(|| self.config.pi.clone());
        if program.contains('/') { self.resolved_cwd(Some(&program)) } else { program }
    }

    /// Starts a run. Gives the result of one that could not be started, as JSON. Errors: the
    /// prompt is too long for an argument, and there is no room for a file.
    pub fn start_agent(
        &mut self,
        start: AgentStart,
    ) -> Result<Result<SessionId, Vec<u8>>, RpcError> {
        let AgentStart { mut launch, spec, prompt, secret } = start;
        let file = prompt_file(&prompt)?;
        launch.arguments.push(file.as_ref().map_or(prompt, |file| {
            // pi takes the contents of a file that is named so.
            format!("@{}", file.path())
        }));
        self.count_spawn();
        let program = self.program_key(&launch);
        let id = match self.launch(&launch) {
            Ok(id) => id,
            Err(failure) => {
                let failure = start_failure(&launch.program, &failure);
                let end = End { failure: Some(&failure), ..End::default() };
                let run = AgentRun::new(RunSettings { keep_events: false });
                return Ok(Err(wire::to_json(&run.report(&end))));
            }
        };
        self.ask_version(&launch, &program);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.view = View::new(AGENT_UNREAD_BYTES);
            // A tool that prints its environment would have the key in the log. A word that short
            // is no key, and may well be a part of the stream's own.
            let secret = secret.filter(|secret| secret.len() >= AGENT_SECRET_MIN_BYTES);
            let mask = secret.map(|secret| Mask::new(secret.as_bytes()));
            session.output.mask.clone_from(&mask);
            if let Some(errors) = &mut session.errors {
                errors.mask = mask;
            }
            session.agent = Some(Box::new(Agent::new(spec, program, file)));
        }
        self.touch(id);
        Ok(Ok(id))
    }

    /// Puts the wait for its result to a run.
    pub fn wait_for_agent(&mut self, id: SessionId, ticket: u64) {
        if let Some(agent) = self.sessions.get_mut(&id).and_then(|one| one.agent.as_mut()) {
            agent.awaited = true;
        }
        let wait = Wait::new(ticket, WaitKind::Agent, self.now_ns);
        // It waits for all to be gone, not for the leader.
        self.add_wait(id, Wait { saw_leader: false, ..wait });
    }

    /// Takes in what pi wrote, and sends the events that it makes.
    pub(crate) fn take_agent_output(&mut self, id: SessionId, source: Source, length: usize) {
        let Some(agent) = self.sessions.get_mut(&id).and_then(|one| one.agent.as_mut()) else {
            return;
        };
        if source == Source::Errors {
            return agent.push_stderr(&self.read_buffer[..length]);
        }
        self.advance_agent(id, Some(length));
        // Its deadlines have moved, or its budget is used up.
        self.touch(id);
    }

    /// Whether a run's output may be read as far as the reader of its events goes: they are never
    /// dropped (protocol.md, Notifications), so pi waits for a slow reader.
    pub(crate) fn agent_has_room(&self, id: SessionId) -> bool {
        let Some(session) = self.sessions.get(&id) else { return true };
        let streams = session.agent.as_ref().is_some_and(|agent| agent.spec.stream);
        let wait = session.waits.iter().find(|wait| wait.kind == WaitKind::Agent);
        wait.filter(|_| streams).is_none_or(|wait| self.clients.has_room(self.client_of(wait)))
    }

    /// Readers have taken something: the reading of runs that were held up for them goes on.
    pub(crate) fn resume_agents(&mut self) {
        let held = |one: &&Session| one.agent.as_ref().is_some_and(|agent| agent.held);
        let held: Vec<SessionId> = self.sessions.values().filter(held).map(|one| one.id).collect();
        for id in held {
            if !self.agent_has_room(id) {
                continue;
            }
            if let Some(session) = self.sessions.get_mut(&id) {
                session.output.release(Hold::Reader);
            }
            self.output_ready(id, Source::Output);
            self.touch(id);
        }
    }

    /// Hands a run so many bytes that were read, or tells it that no more will come; the events
    /// that this makes go to who waits for its result.
    fn advance_agent(&mut self, id: SessionId, length: Option<usize>) {
        let now_ns = self.now_ns;
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let now_ms = (now_ns - session.facts.started_ns) / NS_PER_MS;
        let Some(agent) = &mut session.agent else { return };
        let Agent { run, spec, .. } = &mut **agent;
        let wait = session.waits.iter().find(|wait| wait.kind == WaitKind::Agent);
        let pending = wait.and_then(|wait| self.pending.get(&wait.ticket));
        let mut reader = pending.filter(|_| spec.stream).and_then(|pending| {
            Some((self.clients.get_mut(pending.client)?, pending.id.as_json()))
        });
        let mut tell = |told: &Told<'_>| {
            if let Some((client, request)) = &mut reader {
                tell_event(client, request, told);
            }
        };
        match length {
            Some(length) => run.push(&self.read_buffer[..length], now_ms, &mut tell),
            None => run.finish(now_ms, &mut tell),
        }
    }

    /// Step of a session's judgement: a run that was cancelled, whose time is over or whose budget
    /// is used up is ended; what a run that has ended left behind is ended too.
    pub(crate) fn step_agent(&mut self, id: SessionId) {
        let now_ns = self.now_ns;
        let closing = |client: ClientId| {
            self.closing.as_ref().is_some_and(|closing| closing.answers_pending(client))
        };
        let Some(session) = self.sessions.get(&id) else { return };
        let wait = session.waits.iter().find(|wait| wait.kind == WaitKind::Agent);
        let waits = wait.is_some();
        let cancelled = wait.is_some_and(|one| one.cancelled || closing(self.client_of(one)));
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(agent) = &mut session.agent else { return };
        let ended = session.life.status().is_some();
        let being_ended = session.ending.as_ref().is_some_and(|ending| !ending.over());
        if agent.stop.is_none() {
            agent.stop = agent.over_budget();
        }
        if ended {
            if !std::mem::replace(&mut agent.swept, true) && !being_ended {
                self.begin_ending(id, SIGTERM, KILL_GRACE_MS);
            }
            return;
        }
        let now_ms = (now_ns - session.facts.started_ns) / NS_PER_MS;
        // Whoever began to end a run whose program lives meant the run, also where all of it is
        // gone by now and only not reaped. A result that nobody can be given is not worth its
        // costs.
        let asked = cancelled || session.ending.is_some() || (agent.awaited && !waits);
        let asked = asked.then_some(Stop::Cancelled);
        agent.note_held(session.output.is_held(), now_ms);
        agent.stop = agent.stop.or(asked).or_else(|| agent.late(now_ms));
        if let Some(stop) = agent.stop
            && session.ending.is_none()
        {
            self.debug(format_args!("session {id}: the run is ended: {stop:?}"));
            self.begin_ending(id, SIGTERM, KILL_GRACE_MS);
        }
    }

    /// Why a wait of the pi harness is over.
    pub(crate) fn agent_verdict(&self, session: &Session, wait: &Wait) -> Option<Why> {
        if wait.kind == WaitKind::Health {
            return (told_all(session) || wait.cancelled).then_some(Why::Completed);
        }
        let agent = session.agent.as_ref()?;
        // Who cancels a run does not wait for a program that does not tell its version.
        let cancelled = agent.stop == Some(Stop::Cancelled);
        let known = cancelled || !self.versions.is_asked(&agent.program);
        (told_all(session) && known).then_some(Why::Completed)
    }

    /// Answers a wait of the pi harness.
    pub(crate) fn answer_agent(&mut self, id: SessionId, wait: &Wait) {
        if wait.kind == WaitKind::Health {
            return self.answer_health(id, wait);
        }
        let result = self.agent_result(id);
        let Some(pending) = self.take_pending(wait.ticket) else { return };
        if let Some(result) = result
            && let Some(client) = self.clients.get_mut(pending.client)
        {
            client.reply_json(&pending.id, &result, false);
        }
    }

    /// The result of a run that has ended, as JSON.
    fn agent_result(&mut self, id: SessionId) -> Option<Vec<u8>> {
        self.advance_agent(id, None);
        let log_path = self.log_path(id);
        let now_ns = self.now_ns;
        let session = self.sessions.get_mut(&id)?;
        let ended_ns = session.reaped_ns.unwrap_or(now_ns);
        let (exit_code, signal) = status_fields(session.status());
        let failure = session.start.failure().map(|why| start_failure(&session.start.program, why));
        let agent = session.agent.as_mut()?;
        // Its last line may have had no end, and is read only now.
        agent.stop = agent.stop.or_else(|| agent.over_budget());
        let duration_ms = (ended_ns - session.facts.started_ns) / NS_PER_MS;
        let stderr = agent.stderr();
        let end = End {
            stop: agent.stop,
            failure: failure.as_deref(),
            exit_code: exit_code.filter(|_| failure.is_none()),
            signal: signal.as_deref(),
            stderr: &stderr,
            duration_ms,
            executor_version: self.versions.known(&agent.program),
            log_path: log_path.as_deref(),
        };
        Some(wire::to_json(&agent.run.report(&end)))
    }
}
