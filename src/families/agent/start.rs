//! From what a run of pi asks for to its session, or to the result of a run that is not started
//! (agent.md, How pi is called).

use super::agent_dir::{self, Isolation};
use super::run::{AgentSpec, Called, Run};
use super::{Agent, MASK, start_failure, starting};
use crate::engine::launch::LaunchSpec;
use crate::families::{Cx, Engine, Entry, State};
use crate::pure::agent::{AgentRun, End, RunSettings, Stop};
use crate::pure::time::rfc3339::format_utc_ms;
use crate::session::output::Source;
use crate::session::view::View;
use crate::session::{SessionId, Ways};
use crate::sys::agent_dirs::SWEEP_FLAG;
use crate::sys::clock;
use crate::sys::memory_file::MemoryFile;
use crate::wire::{self, RpcError};

/// Bytes of a run's raw output that no unified-exec call has told.
const AGENT_UNREAD_BYTES: usize = 64 * 1024;

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
        let file = agent_dir::add_prompt(&mut self.launch, std::mem::take(&mut self.prompt))?;
        let words = self.launch.arguments.iter().map(|word| word.to_string_lossy());
        let words = std::iter::once(self.launch.program.as_str().into()).chain(words);
        let key = self.secret.as_deref();
        self.called.args = words.map(|word| masked(&word, key)).collect();
        Ok(file)
    }
}

/// A word of a command line without the key.
pub(super) fn masked(word: &str, key: Option<&str>) -> String {
    key.map_or_else(|| word.to_owned(), |key| word.replace(key, MASK))
}

/// The result of a run that is not started, as JSON. Errors: as of [`begin`].
pub(super) fn unstarted(
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
pub(super) fn begin(
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
        for source in [Source::Output, Source::Errors] {
            if let Some(stream) = core.stream(source) {
                stream.rewritten = true;
            }
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
