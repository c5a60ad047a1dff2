//! The way of a session's leader to its program, and what became of it.

use std::ffi::CString;
use std::os::fd::RawFd;
use std::path::Path;

use crate::sys::errno::errno_text;
use crate::sys::spawn::{SpawnError, Started, Starting, Step};

/// The errno of an argument list that is too long.
const E2BIG: i32 = 7;

/// How far the leader is.
#[derive(Debug)]
pub struct Start {
    /// The name of the program that is meant.
    pub program: String,
    /// Where the program may be.
    places: Vec<CString>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// The leader is on its way, and may hang.
    Starting(Starting),
    /// The leader runs a program: the one at the place of this number, where that is known.
    Runs(Option<usize>),
    /// The program could not be started, for this reason.
    Failed(String),
}

impl Start {
    /// The start of a child that has just been made for this program, which may be at these places.
    pub fn new(program: &str, places: Vec<CString>, starting: Starting) -> Self {
        Self { program: program.to_owned(), places, stage: Stage::Starting(starting) }
    }

    /// Where the program is, as far as that is known; else its name.
    pub fn program_path(&self, cwd: &str) -> String {
        let place = match self.stage {
            Stage::Runs(Some(number)) => self.places.get(number),
            Stage::Runs(None) | Stage::Starting(_) | Stage::Failed(_) => None,
        };
        place.map_or_else(
            || self.program.clone(),
            |place| {
                let place = place.to_string_lossy();
                // As given, where it was given by a path.
                if place == self.program { self.program.clone() } else { joined(cwd, &place) }
            },
        )
    }

    /// The descriptor that tells more, while the leader is on its way.
    pub fn fd(&self) -> Option<RawFd> {
        match &self.stage {
            Stage::Starting(starting) => Some(starting.fd()),
            Stage::Runs(_) | Stage::Failed(_) => None,
        }
    }

    /// Looks what has become of the start of a session with this working directory: gives that
    /// once.
    pub fn look(&mut self, cwd: &str) -> Option<Started> {
        let Stage::Starting(starting) = &mut self.stage else { return None };
        let started = starting.look()?;
        self.stage = match started.outcome {
            Ok(number) => Stage::Runs(number),
            Err(failure) => Stage::Failed(spawn_failure(&self.program, Path::new(cwd), failure)),
        };
        Some(started)
    }

    /// Whether the leader has become a program.
    pub fn runs(&self) -> bool {
        matches!(self.stage, Stage::Runs(_))
    }

    /// Why the program could not be started.
    pub fn failure(&self) -> Option<&str> {
        match &self.stage {
            Stage::Failed(why) => Some(why),
            Stage::Starting(_) | Stage::Runs(_) => None,
        }
    }
}

fn joined(cwd: &str, place: &str) -> String {
    Path::new(cwd).join(place).components().collect::<std::path::PathBuf>().display().to_string()
}

/// The reason for people why a child could not be started.
pub fn spawn_failure(program: &str, cwd: &Path, failure: SpawnError) -> String {
    let errno = errno_text(failure.errno);
    match failure.step {
        Step::Chdir => format!("workdir {}: {errno}", cwd.display()),
        Step::Exec if failure.errno == E2BIG => format!(
            "spawn {program}: {errno}; the command or its environment is longer than the kernel \
             takes (128 KiB an argument): put it into a file and run that"
        ),
        Step::Exec if program.is_empty() => {
            "spawn \"\": ENOENT: the name of a program must not be empty".to_owned()
        }
        Step::Exec => format!("spawn {program}: {errno}"),
        Step::Clone => format!("spawn {program}: {errno} (starting a process)"),
        Step::Terminal => format!("take the pseudo-terminal: {errno}"),
        Step::Session | Step::Stdio => format!("prepare {program}: {errno}"),
    }
}
