//! What is known of programs of pi: the version and the tools of each, asked once and before the
//! first run that needs them (agent.md, Is pi there). How pi is asked is in `probe`.

use super::Agent;
use super::probe::{Probe, Question, ask, too_old};
use crate::engine::launch::LaunchSpec;
use crate::families::{Engine, Entry, State};
use crate::limits::AGENT_VERSIONS_MAX;
use crate::pure::agent::program::{Version, known_tools};
use crate::session::{Session, SessionId};
use std::collections::BTreeMap;

/// What is known of programs, by where each is looked for and what is found there
/// ([`Engine::program_key`]).
#[derive(Debug, Default)]
pub struct Versions(BTreeMap<String, Program>);

#[derive(Debug, Default)]
struct Program {
    version: Fact<Version>,
    tools: Fact<Vec<String>>,
}

/// Something that a program can tell.
#[derive(Debug, Default)]
enum Fact<T> {
    /// Nobody has asked, or the program has not answered.
    #[default]
    Unknown,
    /// This session asks.
    Asked(SessionId),
    /// What the program said.
    Known(T),
}

/// What a run gets to know of its program's version.
#[derive(Debug)]
pub enum Found {
    /// What the program said.
    Known(Version),
    /// This session asks: the run is put off until it has found out.
    Asked(SessionId),
    /// The run is not started, for this reason.
    Never(String),
}

impl<T> Fact<T> {
    /// Notes what a session has found. One that has found nothing takes back only that it asks: the
    /// next run asks again, for a machine under load may only have been slow.
    fn note(&mut self, asked_by: SessionId, found: Option<T>) {
        match found {
            Some(found) => *self = Self::Known(found),
            None if matches!(self, Self::Asked(id) if *id == asked_by) => *self = Self::Unknown,
            None => {}
        }
    }

    fn is_asked(&self) -> bool {
        matches!(self, Self::Asked(_))
    }
}

impl Versions {
    fn program(&mut self, key: &str) -> &mut Program {
        if self.0.len() >= AGENT_VERSIONS_MAX && !self.0.contains_key(key) {
            // Asking again costs a start of pi, no more.
            self.0.retain(|_, one| one.version.is_asked() || one.tools.is_asked());
        }
        self.0.entry(key.to_owned()).or_default()
    }

    /// Notes the version that a session has found, or that it has found none.
    pub(super) fn note_version(&mut self, key: &str, asked_by: SessionId, found: Option<Version>) {
        self.program(key).version.note(asked_by, found);
    }

    /// Notes the tools that a session has found, or that it has found none.
    pub(super) fn note_tools(
        &mut self,
        key: &str,
        asked_by: SessionId,
        found: Option<Vec<String>>,
    ) {
        self.program(key).tools.note(asked_by, found);
    }
}

/// The session that a run was put off for, if it was.
fn told(engine: &Engine, after: Option<SessionId>) -> Option<(&Probe, &Session)> {
    match engine.sessions.get(after?)? {
        Entry { core, family: State::Agent(own) } => match &**own {
            Agent::Probe(probe) => Some((probe, core)),
            Agent::Run(_) => None,
        },
        _ => None,
    }
}

/// The version of the program of a run. `after`: the session that the run was put off for, which
/// has the last word.
pub(super) fn version(
    engine: &mut Engine,
    after: Option<SessionId>,
    launch: &LaunchSpec,
    oldest: &Version,
) -> Found {
    let version = match told(engine, after) {
        Some((probe, core)) => probe.version_for_run(core, oldest),
        None => {
            let (key, _) = engine.program_key(launch);
            match &engine.cx.books.agent.versions.program(&key).version {
                Fact::Known(version) => Ok(version.clone()),
                Fact::Asked(id) => return Found::Asked(*id),
                Fact::Unknown => match ask(engine, launch, Question::Version) {
                    Err(why) => Err(why),
                    Ok(id) => {
                        engine.cx.books.agent.versions.program(&key).version = Fact::Asked(id);
                        return Found::Asked(id);
                    }
                },
            }
        }
    };
    let fits = version.and_then(|version| match too_old(&version, oldest) {
        Some(why) => Err(why),
        None => Ok(version),
    });
    fits.map_or_else(Found::Never, Found::Known)
}

/// The tools of the program of a run, likewise; those that are known of pi where it cannot be
/// asked. Errors: the session that asks, for which the run is put off.
pub(super) fn tools(
    engine: &mut Engine,
    after: Option<SessionId>,
    launch: &LaunchSpec,
    of: &Version,
) -> Result<Vec<String>, SessionId> {
    if let Some(tools) = told(engine, after).and_then(|(probe, core)| probe.tools_for_run(core)) {
        return Ok(tools);
    }
    let (key, _) = engine.program_key(launch);
    match &engine.cx.books.agent.versions.program(&key).tools {
        Fact::Known(tools) => return Ok(tools.clone()),
        Fact::Asked(id) => return Err(*id),
        Fact::Unknown => {}
    }
    let Ok(id) = ask(engine, launch, Question::Tools(of.clone())) else {
        return Ok(known_tools());
    };
    engine.cx.books.agent.versions.program(&key).tools = Fact::Asked(id);
    Err(id)
}
