//! The way of a session's leader to its program, and what became of it.

use std::ffi::CString;
use std::os::fd::RawFd;
use std::path::Path;

use crate::sys::errno::errno_text;
use crate::sys::spawn::{Began, SpawnError, Starting, Step};

/// The errno of an argument list that is too long.
const E2BIG: i32 = 7;

/// How far the leader is.
#[derive(Debug)]
pub struct Start {
    /// The program: its name, and once it runs, the path where it was found.
    pub program: String,
    /// Where the program may be, until that is known.
    places: Vec<CString>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// The leader is on its way, and may hang.
    Starting(Starting),
    /// The leader runs the program at the place of this number.
    Runs(usize),
    /// The program could not be started, for this reason.
    Failed(String),
}

impl Start {
    /// The start of a child that has just been made.
    pub fn new(began: Began) -> Self {
        let stage = match began {
            Began::Runs(number) => Stage::Runs(number),
            Began::Starting(starting) => Stage::Starting(starting),
        };
        Self { program: String::new(), places: Vec::new(), stage }
    }

    /// Names the program that is meant, and the places where it is looked for.
    pub fn name(&mut self, program: &str, places: Vec<CString>) {
        program.clone_into(&mut self.program);
        self.places = places;
    }

    /// Where the program is, as far as it runs; else its name.
    pub fn program_path(&self, cwd: &str) -> String {
        let place = match self.stage {
            Stage::Runs(number) => self.places.get(number),
            Stage::Starting(_) | Stage::Failed(_) => None,
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

    /// The descriptor that tells more, while it is on its way.
    pub fn fd(&self) -> Option<RawFd> {
        match &self.stage {
            Stage::Starting(starting) => Some(starting.fd()),
            Stage::Runs(_) | Stage::Failed(_) => None,
        }
    }

    /// Looks what has come of it. Why it could not be started, when that is the news.
    pub fn look(&mut self) -> Option<SpawnError> {
        let Stage::Starting(starting) = &mut self.stage else { return None };
        match starting.look()? {
            Ok(number) => {
                self.stage = Stage::Runs(number);
                None
            }
            Err(failure) => Some(failure),
        }
    }

    /// Notes that the program could not be started, for this reason.
    pub fn fail(&mut self, why: String) {
        self.stage = Stage::Failed(why);
    }

    /// Why it could not be started.
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
        Step::Surroundings => format!("make ready what {program} needs: see its stderr"),
    }
}
