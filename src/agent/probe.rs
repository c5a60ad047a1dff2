//! What is asked of a pi about itself, by `--version` and `--help` (agent.md, Is pi there).

use std::ffi::OsString;

use serde::Serialize;

use super::hub::{EndAsked, Hub};
use super::pi::{PiProcess, PiProgram};
use crate::limits::{AGENT_VERSION_BYTES, NS_PER_MS, READ_BUFFER_BYTES};
use crate::pure::agent::program::{Version, known_tools, tools_in};
use crate::pure::process::life::ExitStatus;
use crate::pure::process::signal_names::signal_name;
use crate::pure::text::clean::window_text;
use crate::pure::text::utf8::floor_boundary;
use crate::sys::clock;

/// How much longer either may take for runs that need the answer, for as long as it has waited for
/// a processor: where sixty runs start at once, all of them ask.
const AGENT_STARVED_MAX_MS: u64 = 60_000;

/// How long `pi --help` may take, which reads settings and catalogues of models first.
const AGENT_HELP_MS: u64 = 10_000;

/// How long `pi --version` may take.
const AGENT_VERSION_MS: u64 = 5_000;

/// Bytes that are kept of what pi prints then.
const PRINTED_BYTES: usize = 256 * 1024;

/// How pi is brought up to date.
const INSTALL: &str = "npm install -g @earendil-works/pi-coding-agent";

/// The result of agent_health.
#[derive(Debug, Default, Serialize)]
pub(super) struct Health {
    /// Whether pi told its version and exited with 0.
    pub ok: bool,
    /// The version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where pi is.
    pub path: String,
    /// Why it is not ok, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Why pi has told nothing.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// The end was asked for.
    EndAsked,
    /// The text for people.
    Failed(String),
}

/// What pi is asked.
#[derive(Clone, Copy, Debug)]
struct Question {
    /// The list of tools is wanted of pi alone, and soon.
    words: &'static [&'static str],
    limit_ms: u64,
    /// Time without a processor does not count: a run needs the answer.
    patient: bool,
}

/// Why a pi of this version is not taken.
pub(super) fn too_old(version: &Version, oldest: &Version) -> Option<String> {
    version.is_older_than(oldest).then(|| {
        format!(
            "pi {version} is older than {oldest}, the oldest that is supported (min_version): \
             {INSTALL}"
        )
    })
}

/// The version of a pi, and where pi is as far as that is known. Errors: why it is not to be had.
pub(super) fn version(
    hub: &mut Hub,
    program: &PiProgram,
    oldest: &Version,
    patient: bool,
) -> (Result<Version, NoAnswer>, String) {
    let question = Question { words: &["--version"], limit_ms: AGENT_VERSION_MS, patient };
    let (said, path) = ask(hub, program, question);
    let version = said.and_then(|said| {
        Version::find(&said)
            .ok_or_else(|| NoAnswer::Failed(without(question, &said, "printed no version")))
    });
    // One that is not there at all has been told with what to do.
    let with_advice = |why| match why {
        NoAnswer::Failed(why) if why.starts_with("pi --version ") => NoAnswer::Failed(format!(
            "{why}. {oldest} is the oldest version that is supported (min_version): {INSTALL}"
        )),
        other => other,
    };
    (version.map_err(with_advice), path)
}

/// The tools of a pi; those that are known of pi where it does not list them. The answer may be
/// told to other runs, unless pi has failed.
pub(super) fn tools(hub: &mut Hub, program: &PiProgram) -> Result<(Vec<String>, bool), NoAnswer> {
    let words = &["--help", "--no-extensions", "--offline"];
    let question = Question { words, limit_ms: AGENT_HELP_MS, patient: true };
    match ask(hub, program, question).0 {
        Ok(said) => Ok((tools_in(&said).unwrap_or_else(known_tools), true)),
        Err(NoAnswer::Failed(_)) => Ok((known_tools(), false)),
        Err(ended) => Err(ended),
    }
}

/// What agent_health answers.
pub(super) fn health(hub: &mut Hub, program: &PiProgram, oldest: &Version) -> Health {
    let (version, path) = version(hub, program, oldest, false);
    let failed = |version, path, error| Health { ok: false, version, path, error: Some(error) };
    match version {
        Err(NoAnswer::EndAsked) => failed(None, path, "cancelled before pi answered".to_owned()),
        Err(NoAnswer::Failed(why)) => failed(None, path, why),
        Ok(version) => match too_old(&version, oldest) {
            Some(why) => failed(Some(version.to_string()), path, why),
            None => Health { ok: true, version: Some(version.to_string()), path, error: None },
        },
    }
}

/// What pi printed, and where it is. Errors: how it failed.
fn ask(
    hub: &mut Hub,
    program: &PiProgram,
    question: Question,
) -> (Result<Vec<u8>, NoAnswer>, String) {
    let words: Vec<OsString> = question.words.iter().map(OsString::from).collect();
    let mut pi = match PiProcess::start(hub, program, &words, false) {
        Ok(pi) => pi,
        Err(why) => return (Err(NoAnswer::Failed(why)), program.name.clone()),
    };
    let mut said = Vec::new();
    let mut timed_out = false;
    let mut due_ns = pi.started_ns + question.limit_ms * NS_PER_MS;
    loop {
        let seen = pi.wait(hub, true, (!timed_out).then_some(due_ns));
        if seen.readable[0] {
            let mut buffer = [0; READ_BUFFER_BYTES];
            let read = pi.read(0, &mut buffer).unwrap_or(0);
            said.extend_from_slice(&buffer[..read]);
            said.truncate(PRINTED_BYTES);
        }
        let now_ns = clock::now_ns();
        if hub.tree.status.is_some() {
            // What it has left behind is ended with it.
            if hub.tree.is_over(now_ns) {
                break;
            }
            hub.tree.end(false, now_ns);
            continue;
        }
        if due_ns <= now_ns && !timed_out && question.patient {
            // A pi that got no processor is slow through no fault of its own.
            let starved_ns = hub.tree.starved_ns().min(AGENT_STARVED_MAX_MS * NS_PER_MS);
            due_ns = pi.started_ns + question.limit_ms * NS_PER_MS + starved_ns;
        }
        timed_out |= due_ns <= now_ns;
        if timed_out || hub.asked.is_some() {
            hub.tree.end(true, now_ns);
        }
        if hub.tree.is_ending() && hub.tree.is_over(now_ns) {
            break;
        }
    }
    let mut buffer = [0; READ_BUFFER_BYTES];
    while let Some(read) = pi.read(0, &mut buffer).filter(|_| said.len() < PRINTED_BYTES) {
        said.extend_from_slice(&buffer[..read]);
    }
    let failed = |how: &str| Err(NoAnswer::Failed(without(question, &said, how)));
    let answer = match hub.tree.status {
        _ if hub.asked == Some(EndAsked::Orphaned) => Err(NoAnswer::EndAsked),
        _ if pi.failure().is_some() => Err(NoAnswer::Failed(pi.failure().unwrap_or_default())),
        _ if timed_out => failed(&format!("did not answer within {} ms", question.limit_ms)),
        Some(ExitStatus::Code(0)) => Ok(said),
        _ if hub.asked.is_some() => Err(NoAnswer::EndAsked),
        Some(ExitStatus::Code(code)) => failed(&format!("ended with exit code {code}")),
        Some(ExitStatus::Signal(signal)) => {
            failed(&format!("was ended by {}", signal_name(signal)))
        }
        None => failed("could not be ended"),
    };
    (answer, pi.path())
}

/// How asking has failed, with the first line of what pi printed.
fn without(question: Question, printed: &[u8], how: &str) -> String {
    let printed = window_text(printed, false);
    let first = printed.lines().map(str::trim).find(|line| !line.is_empty());
    let first = first.map(|line| &line[..floor_boundary(line, AGENT_VERSION_BYTES)]);
    let colon = first.map_or(String::new(), |line| format!(": {line}"));
    format!("pi {} {how}{colon}", question.words[0])
}
