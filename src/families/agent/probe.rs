//! A session in which pi is asked about itself, by `--version` or `--help` (agent.md, Is pi there),
//! and what is known of programs by that. Such a session is in no list, and nobody is told of it.
//! Runs that need the answer are put off until then; it is asked for once, before the first run.

use super::{Agent, start_failure, told_all};
use crate::engine::judge::status_fields;
use crate::engine::launch::{LaunchSpec, Stdin};
use crate::families::{Cx, Engine, Entry, State};
use crate::limits::{AGENT_VERSION_BYTES, KILL_GRACE_MS, NS_PER_MS};
use crate::pure::agent::program::{Version, known_tools, tools_in};
use crate::pure::text::clean::window_text;
use crate::pure::text::utf8::floor_boundary;
use crate::session::ending::{SIGKILL, SIGTERM};
use crate::session::{Listing, Session, SessionId, Ways};
use crate::sys::proc::starved_ns;
use serde::Serialize;
use std::collections::BTreeMap;

/// Programs whose version and tools are remembered.
const AGENT_VERSIONS_MAX: usize = 64;

/// How long it is remembered what a program of pi has told of itself: an upgrade is noticed then.
const AGENT_VERSION_KEPT_MS: u64 = 60_000;

/// How much longer either may take for runs that need the answer, for as long as it has waited for
/// a processor: where sixty runs start at once, each with an execd of its own, all of them ask.
const AGENT_STARVED_MAX_MS: u64 = 60_000;

/// How long `pi --help` may take, which reads settings and catalogues of models first.
const AGENT_HELP_MS: u64 = 10_000;

/// How long `pi --version` may take.
const AGENT_VERSION_MS: u64 = 5_000;

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

/// The oldest pi that runs are started with, unless a call says otherwise.
pub const OLDEST: &str = "0.70.0";
/// How pi is brought up to date.
const INSTALL: &str = "npm install -g @earendil-works/pi-coding-agent";

/// What pi is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// Its version, for runs.
    Version,
    /// Its version, by somebody who wants this one at least.
    Health(Version),
    /// The tools of a pi of this version, for runs that name tools.
    Tools(Version),
}

impl Question {
    /// The arguments that ask. The list of tools is wanted of pi alone, and soon.
    fn arguments(&self) -> &'static [&'static str] {
        match self {
            Self::Version | Self::Health(_) => &["--version"],
            Self::Tools(_) => &["--help", "--no-extensions", "--offline"],
        }
    }

    /// How long the answer may take, besides the time that it has waited for a processor.
    fn limit_ms(&self) -> u64 {
        match self {
            Self::Version | Self::Health(_) => AGENT_VERSION_MS,
            Self::Tools(_) => AGENT_HELP_MS,
        }
    }
}

/// A session that asks.
#[derive(Debug)]
pub struct Probe {
    /// The key by which the program is known that is asked.
    program: String,
    question: Question,
    /// How much longer the answer may take, for want of a processor.
    starved_ms: u64,
    /// The session's time was over, and it was ended for that.
    timed_out: bool,
    /// The program has ended, and what it left behind is being ended.
    swept: bool,
    /// What the session has found was noted.
    noted: bool,
}

/// The result of agent_health.
#[derive(Debug, Default, Serialize)]
pub struct Health {
    /// Whether pi told its version and exited with 0.
    pub ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub path: String,
    /// Why it is not ok, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Why a pi of this version is not taken.
pub fn too_old(version: &Version, oldest: &Version) -> Option<String> {
    version.is_older_than(oldest).then(|| {
        format!(
            "pi {version} is older than {oldest}, the oldest that is supported (min_version): \
             {INSTALL}"
        )
    })
}

/// Starts a session that asks the program of a run. Errors: why the session could not be started,
/// for people.
pub fn ask(
    engine: &mut Engine,
    launch: &LaunchSpec,
    question: Question,
) -> Result<SessionId, String> {
    let (program, relative) = engine.program_key(launch);
    let arguments = question.arguments();
    let spec = LaunchSpec {
        program: launch.program.clone(),
        arguments: arguments.iter().map(|word| (*word).into()).collect(),
        first: vec![],
        command: format!("{} {}", launch.program, arguments.join(" ")),
        name: None,
        // The workspace of one run is no other run's affair.
        workdir: launch.workdir.clone().filter(|_| relative),
        env: launch.env.clone(),
        stdin: Stdin::Null,
        tty: None,
        split: false,
        whole: true,
    };
    let id = engine.launch(&spec).map_err(|why| start_failure(&launch.program, &why))?;
    if let Some(Entry { core, family }) = engine.sessions.get_mut(id) {
        core.ways = Ways { own_cap: true, ..core.ways };
        core.listing = Listing::Gone;
        let (starved_ms, timed_out, swept, noted) = (0, false, false, false);
        let probe = Probe { program, question, starved_ms, timed_out, swept, noted };
        *family = Agent::Probe(probe).into();
    }
    Ok(id)
}

impl Probe {
    /// When an answer that has not come is given up.
    pub fn due_ns(&self, core: &Session) -> Option<u64> {
        let limit_ms = self.question.limit_ms() + self.starved_ms;
        let due_ns = core.facts.started_ns + limit_ms * NS_PER_MS;
        (!self.timed_out).then_some(due_ns)
    }

    /// The session is ended in time, with what it left behind; its answer is noted, and whoever
    /// was put off for it is asked again.
    pub(super) fn step(&mut self, core: &mut Session, cx: &mut Cx) {
        if told_all(core) {
            if !std::mem::replace(&mut self.noted, true) {
                self.note(core, cx);
            }
            return cx.ask_again(core);
        }
        let ended = core.status().is_some();
        let is_late = |probe: &Self| probe.due_ns(core).is_some_and(|due_ns| due_ns <= cx.now_ns);
        if is_late(self) && !ended {
            self.look_whether_starved(core, cx);
        }
        let late = is_late(self);
        // What runs wait for is asked to its end: the next run needs it too.
        let alone = matches!(self.question, Question::Health(_));
        let cancelled = alone && core.waits.iter().any(|wait| wait.cancelled);
        if ended && !std::mem::replace(&mut self.swept, true) {
            cx.end_members(core, SIGTERM, KILL_GRACE_MS);
        } else if !ended && !self.timed_out && (late || cancelled) {
            self.timed_out = true;
            cx.end_members(core, SIGKILL, 0);
        }
    }

    /// A pi that got no processor is slow through no fault of its own: that time does not count
    /// where runs need the answer.
    fn look_whether_starved(&mut self, core: &Session, cx: &Cx) {
        if matches!(self.question, Question::Health(_)) {
            return;
        }
        let members = cx.living(&cx.members_of(core));
        let starved = members.iter().map(|one| starved_ns(one.pid)).max().unwrap_or(0);
        let starved_ms = (starved / NS_PER_MS).min(AGENT_STARVED_MAX_MS);
        self.starved_ms = self.starved_ms.max(starved_ms);
    }

    fn note(&self, core: &Session, cx: &mut Cx) {
        let (books, now_ns) = (&mut cx.books.agent.versions, cx.now_ns);
        match &self.question {
            Question::Tools(_) => {
                books.note_tools(&self.program, core.id, (self.tools(core), now_ns));
            }
            _ => books.note_version(&self.program, core.id, (self.version(core).ok(), now_ns)),
        }
    }

    /// The version that was told. Errors: why none was.
    fn version(&self, core: &Session) -> Result<Version, String> {
        let said = self.said(core)?;
        Version::find(&said).ok_or_else(|| self.without(core, "printed no version"))
    }

    /// The tools that were told; those that are known where none were listed, and `None` where pi
    /// did not answer.
    fn tools(&self, core: &Session) -> Option<Vec<String>> {
        let said = self.said(core).ok()?;
        Some(tools_in(&said).unwrap_or_else(known_tools))
    }

    /// What a run is told of the tools, once the session has found out, if it was to.
    pub fn tools_for_run(&self, core: &Session) -> Option<Vec<String>> {
        let asked = matches!(self.question, Question::Tools(_));
        asked.then(|| self.tools(core).unwrap_or_else(known_tools))
    }

    /// What a run is told of the version, once the session has found out. Errors: why no run is
    /// started, for people.
    pub fn version_for_run(&self, core: &Session, oldest: &Version) -> Result<Version, String> {
        match &self.question {
            Question::Tools(version) => Ok(version.clone()),
            _ => self.version(core).map_err(|why| without_version(core, why, oldest)),
        }
    }

    /// What pi printed. Errors: how it failed.
    fn said(&self, core: &Session) -> Result<Vec<u8>, String> {
        if let Some(why) = core.start.failure() {
            return Err(start_failure(&core.start.program, why));
        }
        let how = match status_fields(core.status()) {
            _ if self.timed_out => format!("did not answer within {} ms", self.question.limit_ms()),
            (Some(0), _) => return Ok(core.tail.to_vec()),
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, signal) => format!("was ended by {}", signal.unwrap_or_default()),
        };
        Err(self.without(core, &how))
    }

    /// How asking has failed, with the first line of what pi printed.
    fn without(&self, core: &Session, how: &str) -> String {
        let printed = window_text(&core.tail.to_vec(), false);
        let first = printed.lines().map(str::trim).find(|line| !line.is_empty());
        let first = first.map(|line| &line[..floor_boundary(line, AGENT_VERSION_BYTES)]);
        let colon = first.map_or(String::new(), |line| format!(": {line}"));
        format!("pi {} {how}{colon}", self.question.arguments()[0])
    }

    /// What agent_health answers.
    pub(super) fn health(&self, core: &Session, cancelled: bool) -> Health {
        let path = core.start.program_path(&core.facts.cwd);
        let Question::Health(oldest) = &self.question else { return Health::default() };
        let failed = |version, error: String| Health {
            ok: false,
            version,
            path: path.clone(),
            error: Some(error),
        };
        if cancelled {
            return failed(None, "cancelled before pi answered".to_owned());
        }
        match self.version(core) {
            Err(why) => failed(None, without_version(core, why, oldest)),
            Ok(version) => match too_old(&version, oldest) {
                Some(why) => failed(Some(version.to_string()), why),
                None => Health { ok: true, version: Some(version.to_string()), path, error: None },
            },
        }
    }
}

/// Why no run is started with a pi that has told no version. One that is not there at all has been
/// told with what to do.
fn without_version(core: &Session, why: String, oldest: &Version) -> String {
    if core.start.failure().is_some() {
        return why;
    }
    format!("{why}. {oldest} is the oldest version that is supported (min_version): {INSTALL}")
}

/// The answer of agent_health where pi could not even be started.
pub fn unhealthy(path: String, error: String) -> Health {
    Health { path, error: Some(error), ..Health::default() }
}
