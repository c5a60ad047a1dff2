//! From what a request asks for to a running session (architecture.md, Starting a child): its
//! environment, descriptors, place in poll and table. The system calls of the start are left to
//! `sys/spawn.rs`, and what becomes of the session to its family.

use std::ffi::{CStr, CString, OsString};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

use mio::Interest;

use super::Engine;
use super::contract::Families;
use super::contract::cx::Cx;
use super::sessions::Entry;
use super::watch::{Port, token_of};
use crate::keeper::frames::GuardRecord;
use crate::limits::{CHILD_PIPES_TOTAL_BYTES, HEAD_TAIL_MAX_BYTES, NS_PER_MS, REPLAY_BYTES};
use crate::pure::process::marks::{INSTANCE_VARIABLE, OWN_SETTINGS, SESSION_VARIABLE};
use crate::server::session::input::Input;
use crate::server::session::output::Output;
use crate::server::session::start::{Start, spawn_failure};
use crate::server::session::{Facts, Session, SessionId};
use crate::sys::errno::errno_text;
use crate::sys::pty::{self, Size};
use crate::sys::spawn::{Child, Leads, Plan, Spawner, path_of, places_of};
use crate::sys::tree::joined_session;
use crate::sys::{child, clock, host, io, poll, proc};

/// Once a turn has lasted so long, no further child is started in it.
const SPAWNS_TURN_MS: u64 = 5;

/// Pipes of children are raised to this by F_SETPIPE_SZ.
const CHILD_PIPE_BYTES: usize = 256 * 1024;

/// How long the end of a child is waited for that was killed because it cannot be watched.
const KILLED_WAIT_MS: u64 = 100;

/// What a session's stdin is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// A pipe that write_stdin writes to.
    Pipe,
    /// /dev/null.
    Null,
    /// execd's own stdin (`execd run`).
    Inherited,
}

/// What to start.
#[derive(Clone, Debug)]
pub struct LaunchSpec {
    /// The program: a name looked up on the child's PATH, or a path.
    pub program: String,
    /// Its arguments after its name.
    pub arguments: Vec<OsString>,
    /// It is execd's own program that is started, by this name and with this first argument: such a
    /// program ends by itself with the end of its stdin, and enters no directory.
    pub own_program: Option<[&'static CStr; 2]>,
    /// The command as lists show it.
    pub command: String,
    /// A label that lists show.
    pub name: Option<String>,
    /// Its working directory, resolved against execd's own; `None`: execd's own.
    pub workdir: Option<String>,
    /// Variables to set, or to unset.
    pub env: Vec<(String, Option<String>)>,
    /// Its stdin, where it has no PTY.
    pub stdin: Stdin,
    /// The size of its PTY; `None`: pipes.
    pub tty: Option<Size>,
    /// Whether stderr gets a pipe of its own, where there is no PTY.
    pub split: bool,
    /// Whether the session's end is the end of all that it started, whatever kernel session that is
    /// in.
    pub whole: bool,
}

impl LaunchSpec {
    /// Whether it is a command in front that gets no terminal of its own.
    fn may_join(&self) -> bool {
        self.stdin == Stdin::Inherited && self.tty.is_none()
    }
}

/// execd's environment as children inherit it, and its working directory.
#[derive(Debug)]
pub struct BaseEnv {
    entries: Vec<(Vec<u8>, CString)>,
}

/// What children are started with.
#[derive(Debug)]
pub struct Launcher {
    /// The system calls of a start.
    pub spawner: Rc<Spawner>,
    /// execd's environment.
    pub base_env: BaseEnv,
    /// A random name of this execd, in the environment of its children.
    pub instance: String,
    /// Children that may still be started in this turn.
    pub spawns_left: usize,
}

fn entry(name: &[u8], value: &[u8]) -> CString {
    let bytes = [name, b"=", value].concat();
    // Names and values come from the kernel or were checked for NUL (wire/params.rs).
    CString::new(bytes).unwrap_or_default()
}

impl BaseEnv {
    /// From the environment execd was started with, in its order; `instance` marks every child.
    pub fn new(variables: Vec<CString>, instance: &str) -> Self {
        let marks = [INSTANCE_VARIABLE.as_bytes(), SESSION_VARIABLE.as_bytes()];
        let stays = |name: &[u8]| OWN_SETTINGS.iter().any(|own| own.as_bytes() == name);
        let mut entries: Vec<(Vec<u8>, CString)> = variables
            .into_iter()
            .map(|entry| {
                let name = entry.to_bytes().split(|byte| *byte == b'=').next().unwrap_or_default();
                (name.to_vec(), entry)
            })
            .filter(|(name, _)| !marks.contains(&name.as_slice()) && !stays(name))
            .collect();
        entries.push((marks[0].to_vec(), entry(marks[0], instance.as_bytes())));
        Self { entries }
    }

    /// The child's environment, and its PATH.
    fn build(&self, spec: &LaunchSpec, id: SessionId) -> (Vec<CString>, Vec<u8>) {
        let changed = |name: &[u8]| spec.env.iter().any(|(other, _)| other.as_bytes() == name);
        let mut out: Vec<CString> = Vec::with_capacity(self.entries.len() + spec.env.len() + 2);
        let terminal = spec.tty.is_some() && !changed(b"TERM");
        out.extend(
            self.entries
                .iter()
                .filter(|(name, _)| !changed(name))
                .filter(|(name, _)| !(terminal && name == b"TERM"))
                .map(|(_, entry)| entry.clone()),
        );
        for (name, value) in &spec.env {
            if let Some(value) = value {
                out.push(entry(name.as_bytes(), value.as_bytes()));
            }
        }
        if terminal {
            out.push(c"TERM=xterm-256color".to_owned());
        }
        let id = id.to_string();
        out.push(entry(SESSION_VARIABLE.as_bytes(), id.as_bytes()));
        let path = path_of(&out);
        (out, path)
    }
}

/// The environment for a helper of our own: ours, without any session's marks.
pub fn plain_environment(variables: Vec<(OsString, OsString)>) -> Vec<CString> {
    variables
        .into_iter()
        .filter(|(name, _)| !name.as_bytes().starts_with(b"EXECD_"))
        .map(|(name, value)| entry(name.as_bytes(), value.as_bytes()))
        .collect()
}

/// The ends of a child's stdio.
struct Stdio {
    /// What the child gets as 0, 1 and 2.
    theirs: [RawFd; 3],
    /// Kept open until the child has started.
    _held: Vec<OwnedFd>,
    output: Rc<OwnedFd>,
    errors: Option<Rc<OwnedFd>>,
    pipe_bytes: usize,
    input: Input,
}

impl<F: Families> Engine<F> {
    /// Starts a session. Gives its id, or the reason for people why no process could be made for
    /// it; nothing is left of it then. What becomes of the process is told by [`Port::Start`].
    pub fn launch(&mut self, spec: &LaunchSpec) -> Result<SessionId, String> {
        self.launcher.spawns_left = self.launcher.spawns_left.saturating_sub(1);
        let id = self.sessions.next_id;
        let cwd = self.cx.resolve(spec.workdir.as_deref());
        let (envp, path) = self.launcher.base_env.build(spec, id);
        let name = CString::new(spec.program.as_str()).unwrap_or_default();
        let arguments = spec.arguments.iter().map(|word| CString::new(word.as_bytes()));
        let arguments =
            arguments.collect::<Result<Vec<_>, _>>().map_err(|_| "NUL in an argument")?;
        let (places, looked_up) = match spec.own_program {
            Some(_) => (host::own_programs().iter().map(|&place| place.to_owned()).collect(), true),
            None => places_of(&spec.program, &path),
        };
        let argv = match spec.own_program {
            Some(words) => words.map(CStr::to_owned).into_iter().chain(arguments).collect(),
            None => [name].into_iter().chain(arguments).collect(),
        };
        let entered = spec.workdir.is_some() && spec.own_program.is_none();
        let cwd_c = CString::new(cwd.as_os_str().as_bytes()).unwrap_or_default();
        let stdio = self.stdio(spec)?;
        // The clock is read before the clone, so nothing of the session is older than this.
        let start_ticks = proc::boot_ticks_now();
        let joins = spec.may_join().then(joined_session).flatten();
        let whole = spec.whole || self.cx.config.kill_detached || joins.is_some();
        let plan = Plan {
            programs: places.clone(),
            looked_up,
            argv,
            envp,
            cwd: entered.then_some(cwd_c),
            stdio: stdio.theirs,
            leads: if joins.is_some() { Leads::Nothing } else { Leads::Session },
            as_given: spec.stdin == Stdin::Inherited,
            terminal: spec.tty.is_some(),
            // Whoever collects what has left a whole session needs the leader, which links to it:
            // the guard ends the leader itself.
            die_with_us: spec.own_program.is_none() && !(whole && self.cx.keeper.has_a_guard()),
        };
        let ends_itself = spec.own_program.is_some();
        let record = GuardRecord { sid: 0, start_ticks, session: id, whole, ends_itself };
        let announcement = self.cx.keeper.announcement(record);
        let begun = self.launcher.spawner.begin(plan, announcement);
        // On a busy machine making a process may take long: the next one is made in the next turn.
        if clock::now_ns().saturating_sub(self.cx.now_ns) > SPAWNS_TURN_MS * NS_PER_MS {
            self.launcher.spawns_left = 0;
        }
        let (child, starting) =
            begun.map_err(|failure| spawn_failure(&spec.program, &cwd, failure))?;
        let facts = Facts {
            name: spec.name.clone(),
            command: spec.command.clone(),
            cwd: cwd.to_string_lossy().into_owned(),
            tty: spec.tty.is_some(),
            pid: child.pid,
            joins,
            start_ticks,
            window: None,
            started_ns: self.cx.now_ns,
            started_wall_ms: clock::wall_ms(),
        };
        let record = GuardRecord { sid: child.pid, ..record };
        let places = if spec.own_program.is_some() { Vec::new() } else { places };
        let start = Start::new(&spec.program, places, starting);
        self.adopt((record, announcement.is_some()), facts, (child, start), stdio)?;
        if let Some(entry) = self.sessions.get_mut(id) {
            entry.core.ways.whole = spec.whole;
        }
        Ok(id)
    }

    fn stdio(&mut self, spec: &LaunchSpec) -> Result<Stdio, String> {
        if let Some(size) = spec.tty {
            let failed = |errno| format!("open a pseudo-terminal: {}", errno_text(errno));
            let (master, slave) = pty::open(size).map_err(failed)?;
            if spec.stdin == Stdin::Inherited {
                pty::like(slave.as_raw_fd(), 0);
            }
            let (master, fd) = (Rc::new(master), slave.as_raw_fd());
            let input = Input::terminal(Rc::clone(&master));
            let theirs = [fd, fd, fd];
            let (_held, output) = (vec![slave], master);
            return Ok(Stdio { theirs, _held, output, errors: None, pipe_bytes: 0, input });
        }
        let failed = |errno| format!("make a pipe: {}", errno_text(errno));
        let (output, output_theirs) = io::pipe_to_child(true).map_err(failed)?;
        let mut pipe_bytes = 0;
        if self.cx.reading.raised_pipe_bytes + CHILD_PIPE_BYTES <= CHILD_PIPES_TOTAL_BYTES {
            // A refusal (the user's soft limit is used up) leaves the pipe as it is.
            if io::set_pipe_size(&output, CHILD_PIPE_BYTES).is_ok() {
                pipe_bytes = CHILD_PIPE_BYTES;
            }
        }
        let out = output_theirs.as_raw_fd();
        let mut held = vec![output_theirs];
        let (stdin, input) = match spec.stdin {
            Stdin::Pipe => {
                let (ours, theirs) = io::pipe_to_child(false).map_err(failed)?;
                held.push(theirs);
                (held[1].as_raw_fd(), Input::pipe(ours))
            }
            Stdin::Null => {
                let null = io::dev_null();
                held.push(null.map_err(|errno| format!("/dev/null: {}", errno_text(errno)))?);
                (held[1].as_raw_fd(), Input::null())
            }
            Stdin::Inherited => (0, Input::none()),
        };
        let (mut err, mut errors) = (out, None);
        if spec.split {
            let (ours, theirs) = io::pipe_to_child(true).map_err(failed)?;
            err = theirs.as_raw_fd();
            held.push(theirs);
            errors = Some(Rc::new(ours));
        }
        let output = Rc::new(output);
        Ok(Stdio { theirs: [stdin, out, err], _held: held, output, errors, pipe_bytes, input })
    }

    /// Takes a child in: poll, guard, log, table. `record`: what the guard is to know, and whether
    /// the child tells that itself.
    fn adopt(
        &mut self,
        (record, announced): (GuardRecord, bool),
        facts: Facts,
        (child, start): (Child, Start),
        stdio: Stdio,
    ) -> Result<(), String> {
        let id = record.session;
        let Stdio { _held, output, errors, pipe_bytes, input, .. } = stdio;
        let stderr = errors.as_ref().map(|errors| (errors.as_raw_fd(), Port::Errors));
        let ports = [(output.as_raw_fd(), Port::Output), (child.pidfd.as_raw_fd(), Port::Leader)];
        let start_port = start.fd().map(|fd| (fd, Port::Start));
        // Exec comes before all that a program can tell.
        let mut ports = start_port.into_iter().chain(ports).chain(stderr);
        let watched = ports.try_for_each(|(fd, port)| {
            self.cx.watch.add(fd, token_of(id, port), Interest::READABLE)
        });
        if let Err(error) = watched {
            // A session that can't be watched would be lost. Its child, which may not have begun to
            // run its program, is reaped when it has ended.
            child::kill_now(child.pidfd.as_raw_fd(), child.pid);
            // What it announces comes before the word that it is gone.
            let until_ns = clock::now_ns() + KILLED_WAIT_MS * NS_PER_MS;
            poll::is_readable(child.pidfd.as_raw_fd(), Some(until_ns));
            self.cx.keeper.withdraw(child.pid);
            let errno = error.raw_os_error().unwrap_or(0);
            return Err(format!("watch the session: {}", errno_text(errno)));
        }
        self.sessions.next_id += 1;
        let cx = &mut self.cx;
        cx.counters.spawns += 1;
        cx.reading.raised_pipe_bytes += pipe_bytes;
        cx.keeper.guard_add(record, announced);
        cx.starts.note(record.start_ticks, id);
        cx.keeper.open(id, &host::random_hex());
        cx.leaders.insert(child.pid, id);
        let output = Output::new(output, facts.tty, pipe_bytes);
        // Without a log the tape has all that pages can be made of.
        let tail_bytes = if cx.config.logs.off { HEAD_TAIL_MAX_BYTES } else { REPLAY_BYTES };
        let leader = (child.pidfd, start);
        let mut core = Session::new(id, facts, leader, output, input, tail_bytes);
        core.errors = errors.map(|errors| Output::new(errors, false, 0));
        // Of sessions that enter the table in one turn the one that was started first is older.
        core.last_used = self.sessions.next_use();
        cx.debug(format_args!("session {id}: started pid={}", child.pid));
        cx.touch(&mut core);
        self.sessions.put(Box::new(Entry { core, family: F::default() }));
        Ok(())
    }
}

/// Takes in what has become of a session's start, where that is news. The end of a leader whose
/// program could not be started follows.
pub(super) fn learn_start<F: Families>(core: &mut Session, cx: &mut Cx<F>) {
    let Some(started) = core.start.look(&core.facts.cwd) else { return };
    if !started.announced {
        cx.keeper.guard_anew(core.facts.pid);
    }
    let runs = started.outcome.is_ok();
    cx.keeper.start_is_known(core.id, runs);
    if runs && core.ways.listed_early {
        cx.list(core);
    }
    cx.touch(core);
}
