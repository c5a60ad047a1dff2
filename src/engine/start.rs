//! Starting execd: limits, signals, the log directory, the keeper first, then the poll.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::CString;
use std::path::Path;
use std::rc::Rc;

use mio::Poll;

use super::client::Client;
use super::clients::{Clients, STDIN_CLIENT};
use super::keeper_link::{KeeperLink, KeeperPlan, Place, flags_of, no_logs};
use super::launch::{self, BaseEnv};
use super::{Counters, Daemon, Degraded, StartError, logs};
use crate::config::Config;
use crate::engine::contract::Method;
use crate::families::stream::FinishedJobs;
use crate::keeper::writer::Writer;
use crate::limits::{FDS_PER_SESSION, FDS_RESERVED, LOG_DIR_WAIT_MS, READ_BUFFER_BYTES};
use crate::pure::time::deadlines::Deadlines;
use crate::session::census::Lookout;
use crate::session::looks::Looks;
use crate::sys::clock::{self, Timer};
use crate::sys::host::{self, FileLimit};
use crate::sys::io::ENOENT;
use crate::sys::log_place::{self, Wanted};
use crate::sys::mounts::MountTable;
use crate::sys::proc;
use crate::sys::signals::{self, SignalFd};
use crate::sys::spawn::Spawner;
use crate::sys::stdio::Channel;

fn system(what: &str) -> impl Fn(i32) -> StartError + '_ {
    move |errno| format!("{what}: {}", logs::errno_text(errno))
}

impl Daemon {
    /// Starts everything, the keeper first. Gives a reason for people when that is impossible.
    pub fn start(mut config: Config, methods: &'static [Method]) -> Result<Self, StartError> {
        let signal_fd = SignalFd::open().map_err(system("signalfd"))?;
        let (spawner, mounts, degraded) = ways_to_start(&mut config)?;
        let spawner = Rc::new(spawner);
        let instance = host::random_hex();
        let looks = Looks::new(Rc::clone(&spawner), &instance);
        let keeper = new_link(&config, &instance)?;
        let poll = Poll::new().map_err(|error| format!("epoll: {error}"))?;
        let clock = Timer::monotonic().map_err(system("timerfd"))?;
        let now_ns = clock::now_ns();
        let mut daemon = Self {
            clients: Clients::new(stdio_client(config.max_line_bytes)?),
            chunk_seed: u64::from_str_radix(&instance, 16).unwrap_or(now_ns),
            base_env: BaseEnv::new(host::environment(), &instance),
            next_session_id: config.first_session_id,
            next_run_number: 0,
            config,
            methods,
            poll,
            now_ns,
            signals: signal_fd,
            clock,
            armed_ns: None,
            wall_clock: None,
            wall_armed_ms: None,
            clock_failed: false,
            deadlines: Deadlines::new(),
            wall_deadlines: Deadlines::new(),
            listener: None,
            accept_ready: false,
            spawner,
            mounts,
            degraded,
            keeper,
            instance,
            sessions: BTreeMap::new(),
            leaders: BTreeMap::new(),
            pending: BTreeMap::new(),
            next_ticket: 1,
            use_counter: 0,
            readable: VecDeque::new(),
            touched: VecDeque::new(),
            held_back: BTreeSet::new(),
            listed: 0,
            feedable: VecDeque::new(),
            ended_leaders: BTreeSet::new(),
            reap_again: BTreeSet::new(),
            read_left: 0,
            drain_deferred: false,
            look_for_children: false,
            spawns_left: 0,
            evicted: VecDeque::new(),
            versions: crate::families::agent::Versions::default(),
            finished_jobs: FinishedJobs::default(),
            finished_windows: crate::families::windows::FinishedWindows::default(),
            window_text_bytes: 0,
            pending_pages: BTreeMap::new(),
            raised_pipe_bytes: 0,
            closing: None,
            stuck_since: None,
            front: None,
            outlived: super::table::Outlived::default(),
            lookout: RefCell::new(Lookout::new(looks)),
            acks_ready: false,
            log_watched: false,
            guard_watched: false,
            signal_to_take: Vec::new(),
            counters: Counters::default(),
            read_buffer: vec![0; READ_BUFFER_BYTES],
            started_ns: now_ns,
        };
        daemon.start_helpers();
        daemon.await_log_dir()?;
        daemon.watch_own().map_err(|error| format!("epoll: {error}"))?;
        Ok(daemon)
    }

    /// The directory that was asked for is refused at once, where the disk says so in time. That
    /// of an execd that was asked for none is not waited for.
    fn await_log_dir(&mut self) -> Result<(), StartError> {
        let asked_for = self.config.logs.dir.is_some() && !self.config.logs.off;
        if asked_for && !self.keeper.await_place(&mut self.read_buffer, LOG_DIR_WAIT_MS) {
            self.keeper_gone();
        }
        if let Some(reason) = self.keeper.place().refusal().filter(|_| asked_for) {
            return Err(without_place(reason));
        }
        self.tell_of_log_dir();
        Ok(())
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
    proc::hold_spares();
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
fn ways_to_start(config: &mut Config) -> Result<(Spawner, MountTable, Degraded), StartError> {
    let (file_limit, shrunk) = file_limit(config);
    // A log or a stdout that may grow no further is an error of its write, not our death; the
    // spawner sees that it is ignored, for children must not find it so.
    signals::ignore(signals::SIGXFSZ);
    let spawner = Spawner::new(file_limit, config.vfork).map_err(system("starting children"))?;
    let mounts = MountTable::open();
    let degraded = Degraded { lacks: lacks(config, &spawner, &mounts), shrunk };
    Ok((spawner, mounts, degraded))
}

/// What the kernel (or an emulator) refuses and sessions can do without: each with what it costs.
fn lacks(config: &Config, spawner: &Spawner, mounts: &MountTable) -> Vec<String> {
    let subreaper = host::become_subreaper().err().map(|errno| {
        format!(
            "child subreaper: {}; a process that has detached itself is not found any more once \
             its parent has ended",
            logs::errno_text(errno)
        )
    });
    let unshared = (config.vfork && !spawner.shares_memory()).then(|| {
        "vfork: a child does not share memory until its exec; a start costs more the more memory \
         execd holds"
            .to_owned()
    });
    let table = (spawner.shares_memory() && !spawner.unshares_files()).then(|| {
        "close_range with CLOSE_RANGE_UNSHARE (Linux 5.9): a start costs more the more descriptors \
         execd holds"
            .to_owned()
    });
    let unknown = (!mounts.is_known()).then(|| {
        "/proc/self/mountinfo: it cannot be read, so each command is started by fork, as if it lay \
         on a file system that may hang"
            .to_owned()
    });
    [subreaper, unshared, table, unknown].into_iter().flatten().collect()
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
    let mut argv = vec!["execd".to_owned(), "--keeper".to_owned()];
    let mut flag = |name: &str, value: String| argv.extend([name.to_owned(), value]);
    flag("--execd-pid", host::pid().to_string());
    flag("--instance", instance.to_owned());
    flag("--log-keep-days", config.logs.keep_days.to_string());
    if let Some(bytes) = config.logs.max_bytes {
        flag("--log-max-bytes", bytes.to_string());
    }
    let c_string = |text: String| CString::new(text).map_err(|_| "NUL in a setting".to_owned());
    let argv: Vec<CString> = argv.into_iter().map(c_string).collect::<Result<_, _>>()?;
    let envp = launch::plain_environment(host::environment());
    let bounded = config.logs.max_bytes.is_some();
    let plan = KeeperPlan { argv, place: flags_of(wanted.as_ref())?, envp, bounded };
    let unknown = if wanted.is_some() { Place::Unknown } else { Place::Off };
    if config.keeper {
        return Ok(KeeperLink::new(plan, unknown, None));
    }
    let max_bytes = config.logs.max_bytes;
    let Some(wanted) = wanted else {
        return Ok(KeeperLink::new(plan, unknown, Some(Writer::new(Err(0), max_bytes))));
    };
    let found = match log_place::find(&wanted) {
        Ok(found) => found,
        Err(reason) if matches!(wanted, Wanted::Given(_)) => return Err(without_place(&reason)),
        Err(reason) => {
            let writer = Writer::new(Err(ENOENT), max_bytes);
            let note = no_logs(&reason);
            let mut link = KeeperLink::new(plan, Place::Refused(reason), Some(writer));
            link.tell_of_place(Some(note));
            return Ok(link);
        }
    };
    let place = Place::At(found.dir.path().to_path_buf());
    let mut writer = Writer::new(Ok(found.dir), max_bytes);
    writer.keep(config.logs.keep_days);
    writer.begin_cleaning(config.logs.keep_days);
    let mut link = KeeperLink::new(plan, place, Some(writer));
    link.tell_of_place(found.note);
    Ok(link)
}
