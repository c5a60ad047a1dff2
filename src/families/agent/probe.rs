//! A session in which pi is asked about itself, by `--version` or `--help` (agent.md, Is pi there).
//! It is in no list, and nobody is told of it. Runs that need the answer are put off until then.

use serde::Serialize;

use super::{Agent, start_failure, told_all};
use crate::engine::judge::status_fields;
use crate::engine::launch::{LaunchSpec, Stdin};
use crate::families::{Cx, Engine, Entry};
use crate::limits::{
    AGENT_HELP_MS, AGENT_STARVED_MAX_MS, AGENT_VERSION_BYTES, AGENT_VERSION_MS, KILL_GRACE_MS,
    NS_PER_MS,
};
use crate::pure::agent::program::{Version, known_tools, tools_in};
use crate::pure::text::clean::window_text;
use crate::pure::text::utf8::floor_boundary;
use crate::session::ending::{SIGKILL, SIGTERM};
use crate::session::{Listing, Session, SessionId, Ways};
use crate::sys::proc::starved_ns;

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
#[allow(missing_docs)] // docs/agent.md describes each.
pub struct Health {
    pub ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub path: String,
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
