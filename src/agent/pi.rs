//! The process of pi: from its words and variables to its two streams.

use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::hub::Hub;
use crate::server::session::start::{Start, spawn_failure};
use crate::sys::errno::errno_text;
use crate::sys::io::{self, Io};
use crate::sys::poll::Watch;
use crate::sys::spawn::{Leads, Plan, path_of, places_of};
use crate::sys::{clock, host};

/// Pipes of pi are raised to this by F_SETPIPE_SZ.
const PIPE_BYTES: usize = 256 * 1024;

/// What is told of a run that could not be started, besides the reason.
const INSTALL: &str = "install it with npm install -g @earendil-works/pi-coding-agent, or name it \
                       by pi_path or EXECD_PI";

/// Variables of a process that is about to be started.
#[derive(Clone, Debug)]
pub(super) struct Environment(Vec<(OsString, OsString)>);

impl Environment {
    /// Our own, with these set, or unset.
    pub(super) fn with(changes: &[(String, Option<String>)]) -> Self {
        let mut own = Self(host::environment());
        for (name, value) in changes {
            own.set(name, value.as_deref().map(OsStr::new));
        }
        own
    }

    /// The value of a variable.
    pub(super) fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_os_str())
    }

    /// Sets a variable, or unsets it.
    pub(super) fn set(&mut self, name: &str, value: Option<&OsStr>) {
        self.0.retain(|(other, _)| other != name);
        self.0.extend(value.map(|value| (name.into(), value.to_owned())));
    }

    fn entries(&self) -> Vec<CString> {
        let entry = |(name, value): &(OsString, OsString)| {
            c_string(&[name.as_bytes(), b"=", value.as_bytes()].concat())
        };
        self.0.iter().map(entry).collect()
    }
}

fn c_string(bytes: &[u8]) -> CString {
    // Words and values come from the kernel or were checked for NUL.
    CString::new(bytes).unwrap_or_default()
}

/// Which pi is meant, and where it works.
#[derive(Clone, Debug)]
pub(super) struct PiProgram {
    /// A path, or a name on the PATH.
    pub name: String,
    /// None: where we are.
    pub workspace: Option<String>,
    /// Its variables.
    pub environment: Environment,
}

/// A pi that runs.
#[derive(Debug)]
pub(super) struct PiProcess {
    start: Start,
    workspace: String,
    /// Its stdout, and its stderr where that is apart.
    streams: [Option<OwnedFd>; 2],
    /// When it was started, on the monotonic clock.
    pub started_ns: u64,
}

/// What happened while pi was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// Its stdout, and its stderr, have something to read, or have ended.
    pub readable: [bool; 2],
}

impl PiProcess {
    /// Starts pi with these words; `apart`: its stderr has a pipe of its own. Errors: why no
    /// process could be made, for people.
    pub(super) fn start(
        hub: &mut Hub,
        program: &PiProgram,
        words: &[OsString],
        apart: bool,
    ) -> Result<Self, String> {
        let envp = program.environment.entries();
        let (places, looked_up) = places_of(&program.name, &path_of(&envp));
        let name = [c_string(program.name.as_bytes())];
        let argv = words.iter().map(|word| c_string(word.as_bytes()));
        let why = |what: &str, errno| format!("{what}: {}", errno_text(errno));
        let null = io::dev_null().map_err(|errno| why("/dev/null", errno))?;
        let pipe = || io::pipe_to_child(true).map_err(|errno| why("make a pipe", errno));
        let (out, out_theirs) = pipe()?;
        // A refusal (the user's soft limit is used up) leaves the pipe as it is.
        let _ = io::set_pipe_size(&out, PIPE_BYTES);
        let errors = if apart { Some(pipe()?) } else { None };
        let errors_theirs = errors.as_ref().map_or(&out_theirs, |(_, theirs)| theirs);
        let plan = Plan {
            programs: places.clone(),
            looked_up,
            argv: name.into_iter().chain(argv).collect(),
            cwd: program.workspace.as_deref().map(|dir| c_string(dir.as_bytes())),
            // execd knows the session that it has started, and what runs in it.
            leads: Leads::Group,
            die_with_us: true,
            ..Plan::of_execd(
                vec![],
                envp,
                [null.as_raw_fd(), out_theirs.as_raw_fd(), errors_theirs.as_raw_fd()],
            )
        };
        let started_ns = clock::now_ns();
        let begun = hub.spawner.begin(plan, None);
        let workspace = program.workspace.clone();
        let workspace = workspace.unwrap_or_else(|| host::current_dir().display().to_string());
        let (child, starting) = begun
            .map_err(|failure| spawn_failure(&program.name, Path::new(&workspace), failure))?;
        hub.tree.lead(child);
        let start = Start::new(&program.name, places, starting);
        let streams = [Some(out), errors.map(|(ours, _)| ours)];
        Ok(Self { start, workspace, streams, started_ns })
    }

    /// Waits until pi has something to tell, or something else has happened; `reads`: whether pi is
    /// read.
    pub(super) fn wait(&mut self, hub: &mut Hub, reads: bool, until_ns: Option<u64>) -> Seen {
        let watch = |stream: &Option<OwnedFd>| {
            let fd = stream.as_ref().map_or(-1, AsRawFd::as_raw_fd);
            Watch::new(fd, reads && stream.is_some(), false)
        };
        let start = self.start.fd();
        let mut all = [
            watch(&self.streams[0]),
            watch(&self.streams[1]),
            Watch::new(start.unwrap_or(-1), start.is_some(), false),
        ];
        let next_ns = [until_ns, hub.tree.due_ns()].into_iter().flatten().min();
        hub.wait(&mut all, next_ns);
        if all[2].readable || hub.tree.status.is_some() {
            self.start.look(&self.workspace);
        }
        Seen { readable: [all[0].readable, all[1].readable] }
    }

    /// Reads one of its streams; none where nothing is there now, or it has ended.
    pub(super) fn read(&mut self, number: usize, buffer: &mut [u8]) -> Option<usize> {
        let stream = self.streams.get_mut(number)?;
        match io::read(stream.as_ref()?.as_raw_fd(), buffer) {
            Io::Moved(bytes) => Some(bytes),
            Io::WouldBlock => None,
            Io::Ended | Io::HungUp | Io::Failed(_) => {
                *stream = None;
                None
            }
        }
    }

    /// Whether both streams have ended.
    pub(super) fn is_read(&self) -> bool {
        self.streams.iter().all(Option::is_none)
    }

    /// Whether its program runs, or ran.
    pub(super) fn has_begun(&self) -> bool {
        self.start.runs()
    }

    /// Why its program could not be started, for people.
    pub(super) fn failure(&self) -> Option<String> {
        self.start.failure().map(|why| start_failure(&self.start.program, why))
    }

    /// Where its program is, as far as that is known.
    pub(super) fn path(&self) -> String {
        self.start.program_path(&self.workspace)
    }
}

/// Why a program could not be started, with what to do where it is missing.
pub(super) fn start_failure(program: &str, failure: &str) -> String {
    if failure.starts_with("spawn ") && failure.contains("ENOENT") {
        return format!("{program} was not found: {INSTALL}");
    }
    // The reason names the param as it is called here.
    let of_workspace = failure.strip_prefix("workdir ").map(|rest| format!("workspace {rest}"));
    of_workspace.unwrap_or_else(|| failure.to_owned())
}
