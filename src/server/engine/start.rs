//! Starting execd: limits, signals, the keeper, the log directory, then the poll. Decides what
//! execd can do without and what it refuses to start for; people are told of that by `cli`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::path::Path;
use std::rc::Rc;

use mio::Interest;

use super::client::Client;
use super::clients::{Clients, STDIN_CLIENT};
use super::contract::cx::{Cx, Queues, Reading};
use super::contract::{Families, Methods};
use super::helpers::Helpers;
use super::keeper_link::{KeeperLink, KeeperPlan, Place, flags_of, no_logs};
use super::launch::{self, BaseEnv, Launcher};
use super::ledger::kept::Events;
use super::list_looks::ListLooks;
use super::listener::Door;
use super::pages::Pages;
use super::put_off::KeptRequests;
use super::reap::Reaping;
use super::sessions::Sessions;
use super::turn::Clocks;
use super::watch::{CLOCK, REPLIES, REQUESTS, SIGNALS, Watch};
use super::{Counters, Degraded, Engine, StartError};
use crate::config::{Config, SocketPlace};
use crate::keeper::writer::Writer;
use crate::limits::{FDS_PER_SESSION, READ_BUFFER_BYTES};
use crate::pure::process::login_shell::below_the_login;
use crate::pure::process::starts::Starts;
use crate::pure::time::deadlines::Deadlines;
use crate::server::session::ports::Listeners;
use crate::sys::clock;
use crate::sys::errno::errno_text;
use crate::sys::host::{self, FileLimit};
use crate::sys::io::ENOENT;
use crate::sys::log_place::{self, Wanted};
use crate::sys::proc_view;
use crate::sys::signals::{self, SignalFd};
use crate::sys::spawn::Spawner;
use crate::sys::stdio::{Channel, tell_people};
use crate::sys::{given, proc};

/// How long execd waits at its start for the word whether the log directory that was asked for can
/// be had; a disk may stand still.
const LOG_DIR_WAIT_MS: u64 = 1_000;

/// File descriptors execd needs besides its sessions and clients.
const FDS_RESERVED: u64 = 48;

fn system(what: &str) -> impl Fn(i32) -> StartError + '_ {
    move |errno| format!("{what}: {}", errno_text(errno))
}

fn poll_failure(error: &std::io::Error) -> StartError {
    system("epoll")(error.raw_os_error().unwrap_or_default())
}

impl<F: Families> Engine<F> {
    /// Starts everything, the keeper first; the client on stdin and stdout is there from the
    /// start. Gives a reason for people when that is impossible.
    pub fn start(config: Config, methods: Methods<F>) -> Result<Self, StartError> {
        let client = stdio_client(config.max_line_bytes)?;
        Self::start_for(client, config, methods)
    }

    /// Writes these bytes to the client on stdout before all else.
    pub fn begin_with(&mut self, bytes: &[u8]) {
        let outbox = &mut self.cx.clients.stdin.outbox;
        outbox.buffer().extend_from_slice(bytes);
        outbox.hold();
    }

    /// Starts everything for a client whose channels stand for stdin and stdout.
    pub fn start_for(
        client: Client,
        mut config: Config,
        methods: Methods<F>,
    ) -> Result<Self, StartError> {
        let signals = SignalFd::open().map_err(system("signalfd"))?;
        let (spawner, degraded) = ways_to_start(&mut config);
        let spawner = Rc::new(spawner);
        let instance = host::random_hex();
        let keeper = new_link(&config, &instance)?;
        let watch = Watch::new().map_err(|error| poll_failure(&error))?;
        let clocks = Clocks::new().map_err(system("timerfd"))?;
        let now_ns = clock::now_ns();
        let sessions = Sessions::new(config.first_session_id);
        let cx = Cx {
            now_ns,
            wall_ms: clock::wall_ms(),
            config,
            clients: Clients::new(client),
            pending: BTreeMap::new(),
            keeper,
            events: Events::default(),
            watch,
            deadlines: Deadlines::new(),
            queues: Queues::default(),
            reading: Reading {
                buffer: vec![0; READ_BUFFER_BYTES],
                left: 0,
                drain_deferred: false,
                raised_pipe_bytes: 0,
            },
            lookout: RefCell::default(),
            ports: Listeners::default(),
            leaders: BTreeMap::new(),
            starts: Starts::default(),
            text_bytes: 0,
            effects: Vec::new(),
            answers_since_ns: None,
            books: F::Books::default(),
            closing: None,
            front: None,
            counters: Counters::default(),
            cwd: host::current_dir(),
            chunk_seed: u64::from_str_radix(&instance, 16).unwrap_or(now_ns),
        };
        let base_env = BaseEnv::new(below_the_login(given::environment()), &instance);
        let launcher = Launcher { spawner, base_env, instance, spawns_left: 0 };
        let mut engine = Self {
            cx,
            sessions,
            methods,
            launcher,
            reaping: Reaping::default(),
            clocks,
            signals,
            door: Door::default(),
            helpers: Helpers::default(),
            pages: Pages::default(),
            kept: KeptRequests::default(),
            list_looks: ListLooks::default(),
            next_ticket: 1,
            stuck_since: None,
            degraded,
            started_ns: now_ns,
        };
        engine.start_helpers();
        engine.await_log_dir()?;
        engine.watch_own().map_err(|error| poll_failure(&error))?;
        Ok(engine)
    }

    /// Puts execd's own descriptors into the poll.
    fn watch_own(&mut self) -> io::Result<()> {
        let (watch, stdin) = (&self.cx.watch, &mut self.cx.clients.stdin);
        watch.add(self.signals.fd(), SIGNALS, Interest::READABLE)?;
        watch.add(self.clocks.fd(), CLOCK, Interest::READABLE)?;
        if let Some(fd) = stdin.input.poll_fd()
            && watch.add_or_always(fd, REQUESTS, Interest::READABLE)?
        {
            stdin.input.always_ready();
        }
        // Only the end of the reader is asked for (EPOLLHUP and EPOLLERR always come); room in
        // the pipe is, once a write found none.
        if let Some(fd) = stdin.output.poll_fd()
            && watch.add_or_always(fd, REPLIES, Interest::PRIORITY)?
        {
            stdin.output.always_ready();
        }
        Ok(())
    }

    /// The directory that was asked for is refused at once, where the disk says so in time. That
    /// of an execd that was asked for none is not waited for.
    fn await_log_dir(&mut self) -> Result<(), StartError> {
        let cx = &mut self.cx;
        let asked_for = cx.config.logs.dir.is_some() && !cx.config.logs.off;
        if asked_for && !cx.keeper.await_place(&mut cx.reading.buffer, LOG_DIR_WAIT_MS) {
            self.keeper_gone();
        }
        if let Some(reason) = self.cx.keeper.place().refusal().filter(|_| asked_for) {
            return Err(without_place(reason));
        }
        self.tell_of_log_dir();
        Ok(())
    }

    /// Says on stderr what people should know of where logs go, once.
    pub(super) fn tell_of_log_dir(&mut self) {
        if let Some(note) = self.cx.keeper.take_place_note() {
            tell_people(&note, 0);
        }
    }
}

/// The client on stdin and stdout.
fn stdio_client(max_line_bytes: usize) -> Result<Client, StartError> {
    let input = Channel::open(0).map_err(system("stdin"))?;
    let output = Channel::open(1).map_err(system("stdout"))?;
    Ok(Client::new(STDIN_CLIENT, input, output, max_line_bytes))
}

/// The limit of open files, raised as far as it goes. Where it is too little for what the settings
/// ask for, they shrink to what there is, and this says so.
fn file_limit(config: &mut Config) -> (FileLimit, Option<String>) {
    let limit = host::raise_file_limit();
    // For the time when all others are used up.
    if limit.is_low() {
        proc::spare_late();
    } else {
        proc::hold_spares();
    }
    let fit = limit.raised.saturating_sub(FDS_RESERVED) / FDS_PER_SESSION;
    let fit = usize::try_from(fit).unwrap_or(usize::MAX).max(1);
    if limit.raised == 0 || fit >= config.max_sessions.max(config.max_running) {
        return (limit, None);
    }
    config.max_sessions = config.max_sessions.min(fit);
    config.max_running = config.max_running.min(fit);
    let said = format!(
        "open files: the hard limit is {}, so there is room for {} in the table of sessions, and \
         for {} commands of each other family at once: raise it (ulimit -Hn) before execd starts",
        limit.raised, config.max_sessions, config.max_running
    );
    (limit, Some(said))
}

/// What children are started with, and what of it there is not. The settings shrink to that.
fn ways_to_start(config: &mut Config) -> (Spawner, Degraded) {
    let (file_limit, shrunk) = file_limit(config);
    // A log or a stdout that may grow no further is an error of its write, not our death; the
    // spawner sees that it is ignored, for children must not find it so.
    signals::ignore(signals::SIGXFSZ);
    (Spawner::new(file_limit), Degraded { lacks: lacks(), shrunk })
}

/// What the kernel (or an emulator) refuses and sessions can do without: each with what it costs.
fn lacks() -> Vec<String> {
    let subreaper = host::become_subreaper().err().map(|errno| {
        format!(
            "child subreaper: {}; a process that has detached itself is not found any more once \
             its parent has ended",
            errno_text(errno)
        )
    });
    let proc = proc_view::lack().map(|why| {
        format!(
            "/proc: {why}, so the end of a session is that of its process group alone, nothing is \
             told of names, states and ports, and no wait for a port or for input is taken"
        )
    });
    [subreaper, proc].into_iter().flatten().collect()
}

/// Which directory logs should go to, as an absolute path; `None`: nowhere.
fn wanted_place(config: &Config) -> Option<Wanted> {
    // The keeper works in another directory.
    let absolute = |path: &Path| host::current_dir().join(path);
    match &config.logs.dir {
        _ if config.logs.off => None,
        // Refused for what it is.
        Some(path) if path.as_os_str().is_empty() => Some(Wanted::Given(path.clone())),
        Some(path) => Some(Wanted::Given(absolute(path))),
        None => Some(Wanted::Default(absolute(&host::default_log_dir()))),
    }
}

/// The word that there is no log directory, and what can be done.
fn without_place(reason: &str) -> StartError {
    format!("log {reason}; --log-dir names another place, --no-log does without")
}

/// The link, with what the keeper is started with (or the writer that takes its place).
fn new_link(config: &Config, instance: &str) -> Result<KeeperLink, StartError> {
    let wanted = wanted_place(config);
    let mut flags = vec!["--keeper".to_owned()];
    let mut flag = |name: &str, value: String| flags.extend([name.to_owned(), value]);
    let execd_pid = host::pid();
    flag("--execd-pid", execd_pid.to_string());
    flag("--instance", instance.to_owned());
    flag("--log-keep-days", config.logs.keep_days.to_string());
    let bounds = config.logs.bounds;
    for (name, bytes) in [
        ("--log-max-bytes", bounds.max_bytes),
        ("--log-keep-bytes", bounds.keep_bytes),
        ("--log-total-bytes", bounds.total_bytes),
    ] {
        if let Some(bytes) = bytes {
            flag(name, bytes.to_string());
        }
    }
    let c_string = |text: String| CString::new(text).map_err(|_| "NUL in a setting".to_owned());
    let flags: Vec<CString> = flags.into_iter().map(c_string).collect::<Result<_, _>>()?;
    let envp = launch::plain_environment(host::environment());
    let place = flags_of(wanted.as_ref())?;
    // A short name is looked for where logs are unless somebody has said otherwise.
    let elsewhere = config.logs.dir.is_some() || config.socket != SocketPlace::Default;
    let by_path = config.logs.by_path || elsewhere;
    let plan = KeeperPlan { flags, place, execd_pid, envp, bounds, by_path };
    let unknown = if wanted.is_some() { Place::Unknown } else { Place::Off };
    if config.keeper {
        return Ok(KeeperLink::new(plan, unknown, None));
    }
    let Some(wanted) = wanted else {
        return Ok(KeeperLink::new(plan, unknown, Some(Writer::new(Err(0), bounds))));
    };
    let found = match log_place::find(&wanted) {
        Ok(found) => found,
        Err(reason) if matches!(wanted, Wanted::Given(_)) => return Err(without_place(&reason)),
        Err(reason) => {
            let writer = Writer::new(Err(ENOENT), bounds);
            let note = no_logs(&reason);
            let mut link = KeeperLink::new(plan, Place::Refused(reason), Some(writer));
            link.tell_of_place(Some(note));
            return Ok(link);
        }
    };
    let place = Place::At(found.dir.path().to_path_buf());
    let mut writer = Writer::new(Ok(found.dir), bounds);
    writer.keep(config.logs.keep_days, 0);
    let mut link = KeeperLink::new(plan, place, Some(writer));
    link.tell_of_place(found.note);
    Ok(link)
}
