//! What pi says of its version: asked once for each program, and by agent_health.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{start_failure, told_all};
use crate::engine::Daemon;
use crate::engine::judge::status_fields;
use crate::engine::launch::{LaunchSpec, Stdin};
use crate::families::agent::run::{Probe, version_of};
use crate::limits::{AGENT_VERSION_MS, AGENT_VERSIONS_MAX, KILL_GRACE_MS};
use crate::session::ending::{SIGKILL, SIGTERM};
use crate::session::wait::{Wait, WaitKind};
use crate::session::{Listing, SessionId};

/// The versions of programs, by where each is looked for ([`Daemon::program_key`]).
#[derive(Debug, Default)]
pub struct Versions(BTreeMap<String, Version>);

#[derive(Debug)]
enum Version {
    /// A session asks for it.
    Asked,
    /// What it said.
    Known(String),
}

impl Versions {
    /// What this program said.
    pub fn known(&self, program: &str) -> Option<&str> {
        match self.0.get(program) {
            Some(Version::Known(version)) => Some(version),
            _ => None,
        }
    }

    /// Whether its answer is awaited.
    pub fn is_asked(&self, program: &str) -> bool {
        matches!(self.0.get(program), Some(Version::Asked))
    }

    fn set(&mut self, program: &str, version: Version) {
        if self.0.len() >= AGENT_VERSIONS_MAX && !self.0.contains_key(program) {
            // Asking again costs a start of pi, no more.
            self.0.retain(|_, one| matches!(one, Version::Asked));
        }
        self.0.insert(program.to_owned(), version);
    }
}

/// The result of agent_health.
#[derive(Debug, Default, Serialize)]
#[allow(missing_docs)] // docs/agent.md describes each.
pub struct Health {
    pub ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Health {
    /// Of a pi that could not be asked.
    fn failed(path: String, error: String) -> Self {
        Self { path, error: Some(error), ..Self::default() }
    }
}

impl Daemon {
    /// Asks for the version of a run's program, unless it is known or asked for already.
    pub(crate) fn ask_version(&mut self, launch: &LaunchSpec, program: &str) {
        if !self.versions.0.contains_key(program) && self.probe(launch, program, true).is_ok() {
            self.versions.set(program, Version::Asked);
        }
    }

    /// Starts a session that asks for a version. It is in no list, and nobody is told of it.
    fn probe(
        &mut self,
        launch: &LaunchSpec,
        program: &str,
        for_runs: bool,
    ) -> Result<SessionId, String> {
        let spec = LaunchSpec {
            program: launch.program.clone(),
            arguments: vec!["--version".to_owned()],
            command: format!("{} --version", launch.program),
            name: None,
            workdir: launch.workdir.clone(),
            env: launch.env.clone(),
            stdin: Stdin::Null,
            tty: None,
            split: false,
            whole: true,
        };
        self.count_spawn();
        let id = self.launch(&spec)?;
        if let Some(session) = self.sessions.get_mut(&id) {
            let program = program.to_owned();
            let (timed_out, swept) = (false, false);
            session.probe = Some(Box::new(Probe { program, for_runs, timed_out, swept }));
            session.listing = Listing::Gone;
        }
        Ok(id)
    }

    /// agent_health: asks pi anew. Gives the answer where it cannot even be started.
    pub fn ask_health(&mut self, launch: &LaunchSpec) -> Result<SessionId, Health> {
        let program = self.program_key(launch);
        self.probe(launch, &program, false).map_err(|failure| {
            Health::failed(launch.program.clone(), start_failure(&launch.program, &failure))
        })
    }

    /// Puts the wait for its answer to a session that asks for a version.
    pub fn wait_for_health(&mut self, id: SessionId, ticket: u64) {
        let wait = Wait::new(ticket, WaitKind::Health, self.now_ns);
        self.add_wait(id, Wait { saw_leader: false, ..wait });
    }

    /// Step of a session's judgement: one that asks for a version is ended in time, with what it
    /// left behind; its answer is noted.
    pub(crate) fn step_probe(&mut self, id: SessionId) {
        let now_ns = self.now_ns;
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let ended = session.life.status().is_some();
        let over = told_all(session);
        let due = session.facts.started_ns;
        let cancelled = session.waits.iter().any(|wait| wait.cancelled);
        let Some(probe) = &mut session.probe else { return };
        if over {
            return self.note_version(id);
        }
        if ended && !std::mem::replace(&mut probe.swept, true) {
            self.begin_ending(id, SIGTERM, KILL_GRACE_MS);
        } else if !ended && !probe.timed_out && (probe.due_ns(due) <= now_ns || cancelled) {
            probe.timed_out = true;
            self.begin_ending(id, SIGKILL, 0);
        }
    }

    /// Notes what a program said, and has the runs looked at that wait for it.
    fn note_version(&mut self, id: SessionId) {
        let health = self.health(id);
        let Some(probe) = self.sessions.get(&id).and_then(|one| one.probe.as_ref()) else {
            return;
        };
        let (program, for_runs) = (probe.program.clone(), probe.for_runs);
        if let Some(version) = health.version {
            self.versions.set(&program, Version::Known(version));
        } else if for_runs {
            // The next run asks again: a machine under load may only have been slow.
            self.versions.0.remove(&program);
        }
        let waiting = self.sessions.values().filter(|one| one.agent.is_some());
        let waiting: Vec<SessionId> = waiting.map(|one| one.id).collect();
        for id in waiting {
            self.touch(id);
        }
    }

    /// What a session that asked for a version has found.
    fn health(&self, id: SessionId) -> Health {
        let found = self.sessions.get(&id).and_then(|one| Some((one, one.probe.as_ref()?)));
        let Some((session, probe)) = found else { return Health::default() };
        let version = version_of(&session.tail.to_vec());
        let path = session.start.program_path(&session.facts.cwd);
        if let Some(why) = session.start.failure() {
            return Health::failed(path, start_failure(&session.start.program, why));
        }
        let said = version.as_deref().map(|said| format!(": {said}")).unwrap_or_default();
        let how = match status_fields(session.status()) {
            (Some(0), _) if version.is_some() && !probe.timed_out => {
                return Health { ok: true, version, path, error: None };
            }
            _ if probe.timed_out => format!("did not answer within {AGENT_VERSION_MS} ms"),
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, signal) => format!("was ended by {}", signal.unwrap_or_default()),
        };
        Health::failed(path, format!("pi --version {how}{said}"))
    }

    /// Answers agent_health.
    pub(crate) fn answer_health(&mut self, id: SessionId, wait: &Wait) {
        let mut health = self.health(id);
        if wait.cancelled {
            health = Health::failed(health.path, "cancelled before pi answered".to_owned());
        }
        if let Some(pending) = self.take_pending(wait.ticket) {
            self.clients.reply(&pending, &health);
        }
    }
}
