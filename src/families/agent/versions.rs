//! What is known of programs of pi: the version and the tools of each, asked once and before the
//! first run that needs them (agent.md, Is pi there). How pi is asked is in `probe`.

use super::Agent;
use super::probe::{Probe, Question, ask, too_old};
use crate::engine::launch::LaunchSpec;
use crate::families::{Engine, Entry, State};
use crate::limits::{AGENT_VERSION_KEPT_MS, AGENT_VERSIONS_MAX, NS_PER_MS};
use crate::pure::agent::program::{Version, known_tools};
use crate::session::{Session, SessionId};
use std::collections::BTreeMap;

/// What is known of programs, by where each is looked for ([`Engine::program_key`]).
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
    /// What the program said, and when, on the monotonic clock.
    Known(T, u64),
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
    fn note(&mut self, asked_by: SessionId, found: Option<T>, now_ns: u64) {
        match found {
            Some(found) => *self = Self::Known(found, now_ns),
            None if matches!(self, Self::Asked(id) if *id == asked_by) => *self = Self::Unknown,
            None => {}
        }
    }

    /// What the program said may not be true any more: nobody looks at its file.
    fn forget_old(&mut self, now_ns: u64) {
        if let Self::Known(_, at_ns) = self
            && *at_ns + AGENT_VERSION_KEPT_MS * NS_PER_MS <= now_ns
        {
            *self = Self::Unknown;
        }
    }

    fn is_asked(&self) -> bool {
        matches!(self, Self::Asked(_))
    }
}

impl Versions {
    fn program(&mut self, key: &str, now_ns: u64) -> &mut Program {
        if self.0.len() >= AGENT_VERSIONS_MAX && !self.0.contains_key(key) {
            // Asking again costs a start of pi, no more.
            self.0.retain(|_, one| one.version.is_asked() || one.tools.is_asked());
        }
        let program = self.0.entry(key.to_owned()).or_default();
        program.version.forget_old(now_ns);
        program.tools.forget_old(now_ns);
        program
    }

    /// Notes the version that a session has found, or that it has found none.
    pub(super) fn note_version(
        &mut self,
        key: &str,
        asked_by: SessionId,
        (found, now_ns): (Option<Version>, u64),
    ) {
        self.program(key, now_ns).version.note(asked_by, found, now_ns);
    }

    /// Notes the tools that a session has found, or that it has found none.
    pub(super) fn note_tools(
        &mut self,
        key: &str,
        asked_by: SessionId,
        (found, now_ns): (Option<Vec<String>>, u64),
    ) {
        self.program(key, now_ns).tools.note(asked_by, found, now_ns);
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
            let now_ns = engine.cx.now_ns;
            match &engine.cx.books.agent.versions.program(&key, now_ns).version {
                // Somebody may have brought an older one up to date, as the error of its run says.
                Fact::Known(version, _) if too_old(version, oldest).is_none() => {
                    Ok(version.clone())
                }
                Fact::Asked(id) => return Found::Asked(*id),
                Fact::Known(..) | Fact::Unknown => match ask(engine, launch, Question::Version) {
                    Err(why) => Err(why),
                    Ok(id) => {
                        let books = &mut engine.cx.books.agent.versions;
                        books.program(&key, now_ns).version = Fact::Asked(id);
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
    let now_ns = engine.cx.now_ns;
    match &engine.cx.books.agent.versions.program(&key, now_ns).tools {
        Fact::Known(tools, _) => return Ok(tools.clone()),
        Fact::Asked(id) => return Err(*id),
        Fact::Unknown => {}
    }
    let Ok(id) = ask(engine, launch, Question::Tools(of.clone())) else {
        return Ok(known_tools());
    };
    engine.cx.books.agent.versions.program(&key, now_ns).tools = Fact::Asked(id);
    Err(id)
}
