//! One run, from its order to its result (agent.md).

use std::ffi::OsString;
use std::path::PathBuf;

use super::agent_dir::{AGENT_PROMPT_ARG_BYTES, DirKind, RunFiles};
use super::hub::{EndAsked, Hub};
use super::params::{self, AgentParams, RunPlan, masked};
use super::pi::{Environment, PiProcess, PiProgram};
use super::probe::{self, NoAnswer};
use super::protocol::{Known, Order, Said};
use super::run::PiRun;
use crate::limits::{NS_PER_MS, READ_BUFFER_BYTES};
use crate::pure::agent::program::Version;
use crate::pure::agent::{AgentReport, AgentRun, End, SoFar, Stop, Told};
use crate::pure::process::killed::KilledBy;
use crate::pure::process::life::ExitStatus;
use crate::pure::process::signal_names::signal_name;
use crate::pure::time::rfc3339::format_utc_ms;
use crate::sys::{clock, host};
use crate::wire::{self, RpcError};
use serde_json::value::{RawValue, to_raw_value};

/// Pieces of a stream that are read before other things are looked at.
const PIECES: usize = 4;

/// Why there is no run.
enum NoRun {
    /// The params are wrong.
    Refused(String),
    /// pi cannot be used: the text for people.
    Failed(String),
    /// The end was asked for.
    EndAsked,
}

impl From<NoAnswer> for NoRun {
    fn from(why: NoAnswer) -> Self {
        match why {
            NoAnswer::EndAsked => Self::EndAsked,
            NoAnswer::Failed(why) => Self::Failed(why),
        }
    }
}

/// Carries out the order of a run, and says its result.
pub(super) fn run(hub: &mut Hub, order: &Order<'_>) {
    let mut params = match params::read(order.params.get()) {
        Ok(params) => params,
        Err(RpcError { message, .. }) => return hub.say(&Said::Refused(message.into())),
    };
    let program = PiProgram {
        name: order.pi.clone().into_owned(),
        workspace: order.workspace.clone().map(Into::into),
        environment: Environment::with(&params.env()),
    };
    hub.others = order.others;
    let asked = ask(hub, &program, &mut params, order.known.clone());
    let (version, why) = match asked {
        Ok(version) => (Some(version), None),
        Err(why) => (None, Some(why)),
    };
    let mut plan = params.planned(version);
    match why {
        None => {}
        Some(NoRun::Refused(message)) => return hub.say(&Said::Refused(message.into())),
        Some(NoRun::Failed(why)) => return say_unstarted(hub, &program, plan, Err(&why)),
        Some(NoRun::EndAsked) => {
            return say_unstarted(hub, &program, plan, Ok(Stop::Cancelled));
        }
    }
    let mut files = RunFiles::new();
    match prepare(&mut files, order, program.clone(), &mut plan) {
        Err(why) => say_unstarted(hub, &program, plan, Err(&why)),
        Ok((program, words)) => match PiProcess::start(hub, &program, &words, true) {
            Err(why) => say_unstarted(hub, &program, plan, Err(&why)),
            Ok(pi) => OneRun::new(pi, plan).follow(hub),
        },
    }
    hub.flush();
    files.remove();
}

/// Finds out which pi it is, and names the tools as this pi does. Gives the version.
fn ask(
    hub: &mut Hub,
    program: &PiProgram,
    params: &mut AgentParams,
    known: Option<Known>,
) -> Result<String, NoRun> {
    let oldest = params.oldest().map_err(|error| NoRun::Refused(error.message))?;
    let old = |version: &Version| probe::too_old(version, &oldest);
    let remembered = known.as_ref().and_then(|known| Version::parse(&known.version));
    // Somebody may have brought an older one up to date, as the error of its run says.
    let remembered = remembered.filter(|version| old(version).is_none());
    let is_news = remembered.is_none();
    let version = match remembered {
        Some(version) => version,
        None => probe::version(hub, program, &oldest, true).0?,
    };
    let tools = known.and_then(|known| known.tools).filter(|_| !is_news);
    let asks_tools = params.names_tools() && tools.is_none();
    let mut news = Known { version: version.to_string(), tools };
    if is_news {
        hub.say(&Said::Known(news.clone()));
    }
    if let Some(why) = old(&version) {
        return Err(NoRun::Failed(why));
    }
    if asks_tools {
        let (tools, sure) = probe::tools(hub, program)?;
        news.tools = Some(tools);
        if sure {
            hub.say(&Said::Known(news.clone()));
        }
    }
    if let Some(tools) = news.tools.as_ref().filter(|_| params.names_tools()) {
        params.map_tools(tools, &version).map_err(NoRun::Refused)?;
    }
    Ok(news.version)
}

/// Makes ready what the run needs on a disk. Gives the pi to start and its words.
fn prepare(
    files: &mut RunFiles,
    order: &Order<'_>,
    mut program: PiProgram,
    plan: &mut RunPlan,
) -> Result<(PiProgram, Vec<OsString>), String> {
    program.environment = Environment::with(&plan.env);
    let mut words: Vec<OsString> = plan.words.iter().map(OsString::from).collect();
    let key = plan.key_of.as_deref().zip(plan.key.as_deref());
    let kind = match (plan.called.isolated, key) {
        (false, None) => None,
        (false, Some(_)) => Some(DirKind::Linked),
        (true, _) => Some(DirKind::Own),
    };
    if kind == Some(DirKind::Own) {
        // Those that are named by -e are loaded all the same.
        words.insert(0, "--no-extensions".into());
    }
    let kept = (plan.called.isolated && plan.keep_agent_dir).then(|| {
        let dir = order.kept_in.as_deref().map_or_else(host::temp_dir, PathBuf::from);
        dir.join(format!("pi-agent-{}", host::random_hex()))
    });
    if let Some(kind) = kind {
        files.add_dir(kind, kept.as_deref(), key, &mut program)?;
    }
    plan.called.agent_dir = kept.map(|path| path.to_string_lossy().into_owned());
    let prompt = std::mem::take(&mut plan.prompt);
    words.push(match prompt.len() > AGENT_PROMPT_ARG_BYTES {
        true => files.add_prompt(&prompt)?,
        false => prompt.into(),
    });
    note_words(plan, &program.name, &words);
    Ok((program, words))
}

/// Notes for the record how pi is called, without the key.
fn note_words(plan: &mut RunPlan, program: &str, words: &[OsString]) {
    let words = words.iter().map(|word| word.to_string_lossy());
    let words = std::iter::once(program.into()).chain(words);
    plan.called.args = words.map(|word| masked(&word, plan.key.as_deref())).collect();
}

/// The result of a run whose pi was not started: for this reason, or because this was asked for.
fn say_unstarted(hub: &mut Hub, program: &PiProgram, mut plan: RunPlan, why: Result<Stop, &str>) {
    if plan.called.args.is_empty() {
        let words = plan.words.iter().chain([&plan.prompt]).map(OsString::from);
        let words: Vec<OsString> = words.collect();
        note_words(&mut plan, &program.name, &words);
    }
    plan.called.agent_dir = None;
    let started_at = format_utc_ms(clock::wall_ms());
    let (stop, failure) = (why.ok(), why.err());
    let end = End { stop, failure, started_at: &started_at, ..plan.called.end() };
    let report = raw(&AgentRun::new(plan.settings).report(&end));
    hub.say(&Said::Unstarted(&report));
}

fn raw(report: &AgentReport<'_>) -> Box<RawValue> {
    to_raw_value(report).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// A run whose pi was started.
struct OneRun {
    pi: PiProcess,
    run: PiRun,
    started_at: String,
    /// When its program was gone, on the monotonic clock.
    ended_ns: Option<u64>,
    so_far: Vec<u8>,
    begun: bool,
}

impl OneRun {
    fn new(pi: PiProcess, plan: RunPlan) -> Self {
        Self {
            pi,
            run: PiRun::new(plan.spec, plan.called, plan.settings),
            started_at: format_utc_ms(clock::wall_ms()),
            ended_ns: None,
            so_far: Vec::new(),
            begun: false,
        }
    }

    /// Follows the run to its end, and says its result.
    fn follow(mut self, hub: &mut Hub) {
        self.say_so_far(hub);
        loop {
            let reads = !hub.is_held();
            let now_ms = self.ms(clock::now_ns());
            self.run.note_held(!reads, now_ms);
            let next_ns = self.pi.started_ns + self.run.due_ms() * NS_PER_MS;
            let ends = self.run.stop.is_some() || hub.tree.status.is_some();
            let seen = self.pi.wait(hub, reads, (!ends).then_some(next_ns));
            hub.take_news();
            self.read(hub, seen.readable);
            self.step(hub);
            if hub.tree.status.is_some() && hub.tree.is_over(clock::now_ns()) {
                break;
            }
        }
        // Nobody writes any more: what lies in the pipes is all.
        while !self.pi.is_read() && hub.asked != Some(EndAsked::Orphaned) {
            let reads = !hub.is_held();
            let until_ns = reads.then_some(0);
            let seen = self.pi.wait(hub, reads, until_ns);
            if reads && seen.readable == [false; 2] {
                break;
            }
            self.read(hub, seen.readable);
        }
        self.finish(hub);
    }

    fn ms(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.pi.started_ns) / NS_PER_MS
    }

    fn read(&mut self, hub: &mut Hub, readable: [bool; 2]) {
        let mut buffer = [0; READ_BUFFER_BYTES];
        let mut has_read = false;
        for _ in 0..PIECES {
            if !readable[0] || hub.is_held() {
                break;
            }
            let Some(bytes) = self.pi.read(0, &mut buffer) else { break };
            has_read = true;
            if self.run.spec.raw_log {
                hub.log.push(&buffer[..bytes]);
            }
            self.advance(hub, Some(&buffer[..bytes]));
        }
        if readable[1]
            && let Some(bytes) = self.pi.read(1, &mut buffer)
        {
            let seen = self.run.push_stderr(&buffer[..bytes]);
            hub.log.push(&seen);
        }
        if has_read {
            self.say_so_far(hub);
        }
    }

    /// Hands the run what was read, or tells it that no more will come. The events that this makes
    /// are told.
    fn advance(&mut self, hub: &mut Hub, read: Option<&[u8]>) {
        let now_ms = self.ms(clock::now_ns());
        let PiRun { run, doing, spec, .. } = &mut self.run;
        let mut tell = |told: &Told<'_>| {
            doing.note(told);
            let event = wire::to_json(told);
            hub.tell(&event);
            if !spec.raw_log {
                hub.log.push(&event);
                hub.log.push(b"\n");
            }
        };
        match read {
            Some(bytes) => run.push(bytes, now_ms, &mut tell),
            None => run.finish(now_ms, &mut tell),
        }
    }

    /// Says how far the run is, where that is news.
    fn say_so_far(&mut self, hub: &mut Hub) {
        let so_far =
            wire::to_json(&SoFar { doing: self.run.doing.line(), ..self.run.run.so_far() });
        if so_far != self.so_far
            && let Ok(told) = serde_json::from_slice(&so_far)
        {
            hub.say(&Said::SoFar(told));
            self.so_far = so_far;
        }
        let begun = self.run.run.clocks().first_event_ms.is_some();
        if begun && !std::mem::replace(&mut self.begun, true) {
            hub.say(&Said::Begun(true));
        }
    }

    /// A run that is to end, whose time is over or whose budget is used up is ended; what a pi that
    /// has ended left behind is ended too.
    fn step(&mut self, hub: &mut Hub) {
        let now_ns = clock::now_ns();
        let now_ms = self.ms(now_ns);
        if self.pi.has_begun() {
            self.run.exec_ms.get_or_insert(now_ms);
        }
        if self.run.is_starting() {
            self.run.others_starting = self.run.others_starting.max(hub.others);
        }
        self.run.stop = self.run.stop.or_else(|| self.run.over_bounds());
        if hub.tree.status.is_some() {
            self.ended_ns.get_or_insert(now_ns);
            if !hub.tree.is_over(now_ns) {
                hub.tree.end(false, now_ns);
            }
            return;
        }
        let asked = hub.asked.map(|_| Stop::Cancelled);
        self.run.stop = self.run.stop.or(asked).or_else(|| self.run.late(now_ms));
        if self.run.stop.is_some() {
            hub.tree.end(hub.asked == Some(EndAsked::Orphaned), now_ns);
        }
    }

    /// Says the rest of the log, the last events and the result.
    fn finish(mut self, hub: &mut Hub) {
        let rest = self.run.end_stderr();
        hub.log.push(&rest);
        self.advance(hub, None);
        // The stream's last line may have had no end, and is read only now.
        self.run.stop = self.run.stop.or_else(|| self.run.over_bounds());
        let ended_ns = self.ended_ns.unwrap_or_else(clock::now_ns);
        let failure = self.pi.failure();
        let (exit_code, signal) = match hub.tree.status.filter(|_| failure.is_none()) {
            Some(ExitStatus::Code(code)) => (Some(code), None),
            Some(ExitStatus::Signal(signal)) => (None, Some(signal_name(signal))),
            None => (None, None),
        };
        let stderr = self.run.stderr();
        let usage = Some(hub.tree.usage).filter(|_| failure.is_none());
        let end = End {
            stop: self.run.stop,
            failure: failure.as_deref(),
            exit_code,
            signal: signal.as_deref(),
            killed_by: self.run.stop.and_then(killed_by),
            stderr: &stderr,
            duration_ms: self.ms(ended_ns),
            cpu_seconds: usage.map(|usage| usage.cpu_seconds()),
            max_rss_kib: usage.map(|usage| usage.max_rss_kib),
            started_at: &self.started_at,
            started_at_once: self.run.started_at_once(),
            ..self.run.called.end()
        };
        let report = raw(&self.run.run.report(&end));
        hub.say(&match (self.run.stop, &failure) {
            (_, Some(_)) => Said::Unstarted(&report),
            (Some(Stop::Cancelled), _) => Said::Cancelled(&report),
            _ => Said::Result(&report),
        });
    }
}

/// By whom a run is ended that is ended for this; who has cancelled it only execd knows.
fn killed_by(stop: Stop) -> Option<&'static str> {
    let by = match stop {
        Stop::FirstEventTimeout(_)
        | Stop::IdleTimeout(_)
        | Stop::HardTimeout(_)
        | Stop::Lingered => KilledBy::Timeout,
        Stop::Cost(_) | Stop::Tokens(_) | Stop::ModelMismatch => KilledBy::Limit,
        Stop::Cancelled => return None,
    };
    Some(by.as_str())
}
