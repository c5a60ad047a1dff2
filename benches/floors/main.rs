//! Every promise of docs/performance.md, measured as a ratio to a floor in the same run.
//!
//! `cargo bench` runs all of it in under five minutes, `cargo bench -- --quick` a short form in
//! under 30 s that CI runs. A timing goal that is missed is said in the table and is no failure
//! (machines are shared); what is exact is: bytes of a log, calls while idle, the binary's size.
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr)] // As in tests.
#![allow(clippy::exit, clippy::unwrap_used)]

mod client;
mod ends;
mod exact;
mod flood;
mod floor;
mod jobs;
mod latency;
mod report;
mod steady;
mod waits;

use std::path::PathBuf;

use lexopt::prelude::*;
use report::Report;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// The short form that CI runs.
    pub quick: bool,
}

impl Scale {
    /// The full amount, or the quick one.
    pub fn of<T>(self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }
}

/// A row of the table: its name for `--only`, and what measures it.
type Bench = (&'static str, fn(Scale, &mut Report));

/// In the order of the table.
const BENCHES: [Bench; 24] = [
    ("spawn", latency::spawn),
    ("spawn-at-scale", latency::spawn_at_scale),
    ("jobs", jobs::jobs),
    ("pipe-flood", flood::pipe),
    ("pipe-flood-bounded", flood::pipe_bounded),
    ("pty-flood", flood::pty),
    ("echo", latency::echo),
    ("ping-under-flood", steady::ping_under_flood),
    ("ping-beside-chunks", steady::ping_beside_chunks),
    ("ping-beside-slow-reader", steady::ping_beside_slow_reader),
    ("log-stall", steady::log_stall),
    ("deadline", steady::deadline),
    ("wait-wake", waits::wake),
    ("wait-port", waits::port),
    ("wait-flood", waits::pattern_flood),
    ("wait-calls", waits::calls),
    ("idle", exact::idle),
    ("startup", latency::startup),
    ("old-logs", latency::old_logs),
    ("ends", ends::ends),
    ("memory", exact::memory),
    ("growth", latency::growth),
    ("agent-lines", flood::agent_lines),
    ("size", exact::size),
];

struct Flags {
    scale: Scale,
    only: Vec<String>,
    json: PathBuf,
}

fn parse() -> Result<Flags, lexopt::Error> {
    let mut parser = lexopt::Parser::from_env();
    let json = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench.json");
    let mut flags = Flags { scale: Scale { quick: false }, only: Vec::new(), json };
    while let Some(arg) = parser.next()? {
        match arg {
            // cargo bench adds it.
            Long("bench") => {}
            Long("quick") => flags.scale.quick = true,
            Long("only") => {
                flags.only = parser.value()?.string()?.split(',').map(str::to_owned).collect();
            }
            Long("json") => flags.json = parser.value()?.into(),
            Long(waits::LISTEN_FLAG) => {
                let delay = std::time::Duration::from_millis(parser.value()?.parse()?);
                waits::listen_after(delay, &PathBuf::from(parser.value()?));
                std::process::exit(0);
            }
            other => return Err(other.unexpected()),
        }
    }
    let known: Vec<&str> = BENCHES.iter().map(|(name, _)| *name).collect();
    if let Some(name) = flags.only.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("--only {name}: one of {}", known.join(", ")).into());
    }
    Ok(flags)
}

fn main() {
    let flags = parse().unwrap_or_else(|error| {
        eprintln!("bench: {error} (flags: --quick, --only ROW,ROW, --json FILE)");
        std::process::exit(2);
    });
    let mut report = Report::new(flags.scale.quick);
    for (name, run) in BENCHES {
        if flags.only.is_empty() || flags.only.iter().any(|only| only == name) {
            let started = std::time::Instant::now();
            run(flags.scale, &mut report);
            eprintln!("{name}: {:.1} s", started.elapsed().as_secs_f64());
        }
    }
    print!("{}", report.table());
    if let Err(error) = std::fs::write(&flags.json, report.json()) {
        eprintln!("bench: {}: {error}", flags.json.display());
        std::process::exit(2);
    }
    eprintln!("as JSON: {}", flags.json.display());
    if report.broken {
        eprintln!("bench: something exact is wrong, see the table");
        std::process::exit(1);
    }
}
