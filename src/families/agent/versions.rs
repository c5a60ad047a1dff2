//! What pi says of its version: asked once for each program, and by agent_health. When a run's
//! answer waits for the version is decided by the module above.

use std::collections::BTreeMap;

use serde::Serialize;

use super::run::{Probe, version_of};
use super::{Agent, start_failure, told_all};
use crate::engine::contract::cx::Effect;
use crate::engine::judge::status_fields;
use crate::engine::launch::{LaunchSpec, Stdin};
use crate::families::{Cx, Engine, Entry, Numbered};
use crate::limits::{AGENT_VERSION_MS, AGENT_VERSIONS_MAX, KILL_GRACE_MS};
use crate::session::ending::{SIGKILL, SIGTERM};
use crate::session::{Listing, Session, SessionId, Ways};

/// The versions of programs, by where each is looked for ([`Engine::program_key`]).
#[derive(Debug, Default)]
pub struct Versions(BTreeMap<String, Version>);

#[derive(Debug)]
enum Version {
    /// A session asks for it.
    Asked,
    /// What the program said.
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

    /// Whether this program's answer is awaited.
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

/// Asks for the version of a run's program, unless it is known or asked for already.
pub(super) fn ask(engine: &mut Engine, launch: &LaunchSpec, program: &str) {
    let known = engine.cx.books.agent.0.contains_key(program);
    if !known && probe(engine, launch, program, true).is_ok() {
        engine.cx.books.agent.set(program, Version::Asked);
    }
}

/// Starts a session that asks for a version. It is in no list, and nobody is told of it.
fn probe(
    engine: &mut Engine,
    launch: &LaunchSpec,
    program: &str,
    for_runs: bool,
) -> Result<SessionId, String> {
    let spec = LaunchSpec {
        program: launch.program.clone(),
        arguments: vec!["--version".to_owned()],
        first: vec![],
        command: format!("{} --version", launch.program),
        name: None,
        workdir: launch.workdir.clone(),
        env: launch.env.clone(),
        stdin: Stdin::Null,
        tty: None,
        split: false,
        whole: true,
    };
    let id = engine.launch(&spec)?;
    if let Some(Entry { core, family }) = engine.sessions.get_mut(id) {
        let (program, timed_out, swept) = (program.to_owned(), false, false);
        core.ways = Ways { own_cap: true, ..core.ways };
        core.listing = Listing::Gone;
        *family = Agent::Probe(Probe { program, for_runs, timed_out, swept }).into();
    }
    Ok(id)
}

/// agent_health: asks pi anew. Gives the answer where it cannot even be started.
pub(super) fn ask_health(engine: &mut Engine, launch: &LaunchSpec) -> Result<SessionId, Health> {
    let program = engine.program_key(launch);
    probe(engine, launch, &program, false).map_err(|failure| {
        Health::failed(launch.program.clone(), start_failure(&launch.program, &failure))
    })
}

impl Probe {
    /// A session that asks for a version is ended in time, with what it left behind; its answer is
    /// noted.
    pub(super) fn step(&mut self, core: &mut Session, cx: &mut Cx) {
        if told_all(core) {
            return self.note_version(core, cx);
        }
        let ended = core.status().is_some();
        let late = self.due_ns(core.facts.started_ns) <= cx.now_ns;
        let cancelled = core.waits.iter().any(|wait| wait.cancelled);
        if ended && !std::mem::replace(&mut self.swept, true) {
            cx.begin_ending(core, SIGTERM, KILL_GRACE_MS);
        } else if !ended && !self.timed_out && (late || cancelled) {
            self.timed_out = true;
            cx.begin_ending(core, SIGKILL, 0);
        }
    }

    /// Notes what a program said, and has the runs looked at that wait for it.
    fn note_version(&self, core: &Session, cx: &mut Cx) {
        let versions = &mut cx.books.agent;
        let was_asked = versions.is_asked(&self.program);
        if let Some(version) = self.health(core, false).version {
            versions.set(&self.program, Version::Known(version));
        } else if self.for_runs {
            // The next run asks again: a machine under load may only have been slow.
            versions.0.remove(&self.program);
        }
        // Only what is new is told: this session may have a wait of the family itself, and would be
        // judged in each turn for as long as the reader of its answer has no room.
        if was_asked && !versions.is_asked(&self.program) {
            cx.effects.push(Effect::TouchWaiting(Agent::ID));
        }
    }

    /// What a session that asked for a version has found.
    pub(super) fn health(&self, core: &Session, cancelled: bool) -> Health {
        let version = version_of(&core.tail.to_vec());
        let path = core.start.program_path(&core.facts.cwd);
        if cancelled {
            return Health::failed(path, "cancelled before pi answered".to_owned());
        }
        if let Some(why) = core.start.failure() {
            return Health::failed(path, start_failure(&core.start.program, why));
        }
        let said = version.as_deref().map(|said| format!(": {said}")).unwrap_or_default();
        let how = match status_fields(core.status()) {
            (Some(0), _) if version.is_some() && !self.timed_out => {
                return Health { ok: true, version, path, error: None };
            }
            _ if self.timed_out => format!("did not answer within {AGENT_VERSION_MS} ms"),
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, signal) => format!("was ended by {}", signal.unwrap_or_default()),
        };
        Health::failed(path, format!("pi --version {how}{said}"))
    }
}
