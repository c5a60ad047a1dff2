//! The program that runs pi (agent.md): `execd --agent-run`, called `sessions-agent`. It gets its
//! order as a line of JSON on stdin, starts pi, is the subreaper of all that pi starts, reads pi's
//! stream, keeps its timeouts and budgets, and writes events and one result on stdout. What the
//! stream means is decided in `pure/agent/`.
//!
//! | file | what |
//! |---|---|
//! | `protocol` | what execd and this program say to each other |
//! | `params` | what a run may be asked for, and how pi is called for that |
//! | `keys` | the variable that pi takes a key from |
//! | `hub` | signals, stdin, and the streams that execd reads |
//! | `tree` | all processes that were started, and their end |
//! | `pi` | the process of pi |
//! | `probe` | what pi says of itself |
//! | `agent_dir` | what a run needs on a disk |
//! | `run` | a run's clocks and budgets |
//! | `runner` | one run from its order to its result |

mod agent_dir;
mod hub;
mod keys;
pub mod params;
mod pi;
mod probe;
pub mod protocol;
mod run;
mod runner;
mod tree;

use std::ffi::CStr;

use serde::Deserialize;
use serde_json::value::to_raw_value;

use crate::pure::agent::{AgentRun, Asked, End, RunSettings, Stop};
use crate::sys::errno::errno_text;
use crate::sys::host;
use crate::sys::stdio::tell_people;
use crate::wire;
use hub::Hub;
use pi::{Environment, PiProgram};
use protocol::{Order, Said, Verb};
use run::Called;

/// The name of the program in lists of processes: `pkill execd` misses it.
pub const NAME: &CStr = c"sessions-agent";
/// Its first argument.
pub const FLAG: &CStr = c"--agent-run";
/// The exit status of a program that has written its result.
const DONE: i32 = 0;
/// The exit status of a program that has no result.
const FAILED: i32 = 1;
/// How long is waited to tell people why.
const COMPLAINT_MS: u64 = 100;

/// Carries out one order; gives the exit status.
pub fn main() -> i32 {
    host::be_called(NAME);
    host::give_memory_back();
    let mut hub = match Hub::open() {
        Ok(hub) => hub,
        Err(errno) => {
            tell_people(&format!("cannot start: {}", errno_text(errno)), COMPLAINT_MS);
            return FAILED;
        }
    };
    let Some(line) = hub.order() else { return FAILED };
    let Ok(order) = serde_json::from_slice::<Order<'_>>(&line) else { return FAILED };
    match order.verb {
        Verb::Run => runner::run(&mut hub, &order),
        Verb::Health => health(&mut hub, &order),
    }
    hub.flush();
    DONE
}

fn health(hub: &mut Hub, order: &Order<'_>) {
    #[derive(Deserialize)]
    struct Wanted {
        min_version: Option<String>,
    }
    let wanted: Option<Wanted> = serde_json::from_str(order.params.get()).ok();
    let wanted = wanted.and_then(|wanted| wanted.min_version);
    let oldest = match params::version_param(wanted.as_deref()) {
        Ok(oldest) => oldest,
        Err(error) => return hub.say(&Said::Refused(error.message.into())),
    };
    let environment = Environment::with(&[]);
    let program = PiProgram { name: order.pi.clone().into_owned(), workspace: None, environment };
    let health = probe::health(hub, &program, &oldest);
    if let Some(version) = &health.version {
        hub.say(&Said::Known(protocol::Known { version: version.clone(), tools: None }));
    }
    if let Ok(report) = to_raw_value(&health) {
        hub.say(&Said::Result(&report));
    }
}

/// The result of a run whose program has ended without one. `pi`: the program of pi; `cancelled`:
/// somebody has ended the run; `signal`: what has ended the program; `words`: all else for people.
pub fn lost_run(
    (pi, model, label): (&str, &str, Option<&str>),
    cancelled: bool,
    signal: Option<&str>,
    words: &str,
) -> Vec<u8> {
    let settings = RunSettings {
        asked: Asked::of(model, false),
        label: label.map(str::to_owned),
        ..RunSettings::default()
    };
    let called = Called { args: vec![pi.to_owned()], ..Called::default() };
    let stop = cancelled.then_some(Stop::Cancelled);
    let end = End { stop, signal, stderr: words, ..called.end() };
    wire::to_json(&AgentRun::new(settings).report(&end))
}
