//! Starting execd: limits, signals, the log directory, the keeper first, then the poll.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::CString;
use std::path::PathBuf;

use mio::Poll;

use super::client::Client;
use super::clients::{Clients, STDIN_CLIENT};
use super::jobs::FinishedJobs;
use super::keeper_link::{KeeperLink, KeeperPlan};
use super::launch::{self, BaseEnv};
use super::{Counters, Daemon, StartError, logs};
use crate::config::Config;
use crate::keeper::writer::Writer;
use crate::limits::{FDS_PER_SESSION, FDS_RESERVED, READ_BUFFER_BYTES};
use crate::pure::deadlines::Deadlines;
use crate::sys::clock::{self, Timer};
use crate::sys::host::{self, FileLimit};
use crate::sys::log_files::{self, LogDir};
use crate::sys::mounts::MountTable;
use crate::sys::signals::{self, SignalFd};
use crate::sys::spawn::Spawner;
use crate::sys::stdio::Channel;

fn system(what: &str) -> impl Fn(i32) -> StartError + '_ {
    move |errno| format!("{what}: {}", logs::errno_text(errno))
}

impl Daemon {
    /// Starts everything, the keeper first. Gives a reason for people when that is impossible.
    pub fn start(config: Config) -> Result<Self, StartError> {
        let signal_fd = SignalFd::open().map_err(system("signalfd"))?;
        let file_limit = file_limit(&config)?;
        host::become_subreaper().map_err(system("becoming a child subreaper"))?;
        // A log or a stdout that may grow no further is an error of its write, not our death.
        signals::ignore(signals::SIGXFSZ);
        let spawner =
            Spawner::new(file_limit, config.vfork).map_err(system("starting children"))?;
        let dir = if config.logs.off { None } else { Some(log_dir(&config)?) };
        let instance = host::random_hex();
        let keeper = new_link(&config, dir.as_ref(), &instance)?;
        let poll = Poll::new().map_err(|error| format!("epoll: {error}"))?;
        let clock = Timer::monotonic().map_err(system("timerfd"))?;
        let now_ns = clock::now_ns();
        let mut daemon = Self {
            clients: Clients::new(stdio_client(config.max_line_bytes)?),
            chunk_seed: u64::from_str_radix(&instance, 16).unwrap_or(now_ns),
            base_env: BaseEnv::new(host::environment(), &instance),
            next_session_id: config.first_session_id,
            config,
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
            mounts: MountTable::open(),
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
            read_left: 0,
            drain_deferred: false,
            look_for_children: false,
            spawns_left: 0,
            evicted: VecDeque::new(),
            versions: super::agents::Versions::default(),
            finished_jobs: FinishedJobs::default(),
            finished_windows: super::windows::FinishedWindows::default(),
            window_text_bytes: 0,
            pending_pages: BTreeMap::new(),
            raised_pipe_bytes: 0,
            closing: None,
            stuck_since: None,
            front: None,
            outlived: super::table::Outlived::default(),
            last_endings: Vec::new(),
            acks_ready: false,
            log_watched: false,
            guard_watched: false,
            signal_to_take: Vec::new(),
            counters: Counters::default(),
            read_buffer: vec![0; READ_BUFFER_BYTES],
            started_ns: now_ns,
        };
        daemon.start_keeper();
        daemon.watch_own().map_err(|error| format!("epoll: {error}"))?;
        Ok(daemon)
    }
}

/// The client on stdin and stdout.
fn stdio_client(max_line_bytes: usize) -> Result<Client, StartError> {
    let input = Channel::open(0).map_err(system("stdin"))?;
    let output = Channel::open(1).map_err(system("stdout"))?;
    Ok(Client::new(STDIN_CLIENT, input, output, max_line_bytes))
}

/// The limit of open files, raised as far as it goes; too little for the sessions asked for is
/// a reason not to start.
fn file_limit(config: &Config) -> Result<FileLimit, StartError> {
    let limit = host::raise_file_limit();
    let wanted = config.max_sessions as u64 * FDS_PER_SESSION + FDS_RESERVED;
    if limit.raised != 0 && limit.raised < wanted {
        let fit = limit.raised.saturating_sub(FDS_RESERVED) / FDS_PER_SESSION;
        return Err(format!(
            "--max-sessions {} needs {wanted} open files, but the hard limit is {}, enough for \
             {fit} sessions: raise it (ulimit -Hn) or ask for no more than that",
            config.max_sessions, limit.raised
        ));
    }
    Ok(limit)
}

/// The log directory, made and checked.
fn log_dir(config: &Config) -> Result<PathBuf, StartError> {
    let wanted = config.logs.dir.clone().unwrap_or_else(host::default_log_dir);
    let hint = "; --log-dir names another place, --no-log does without";
    log_files::ensure_private_dir(&wanted).map_err(|reason| format!("log {reason}{hint}"))
}

/// The link, with what the keeper is started with (or the writer that takes its place).
fn new_link(
    config: &Config,
    dir: Option<&PathBuf>,
    instance: &str,
) -> Result<KeeperLink, StartError> {
    let mut argv = vec!["execd".to_owned(), "--keeper".to_owned()];
    let mut flag = |name: &str, value: String| argv.extend([name.to_owned(), value]);
    flag("--execd-pid", host::pid().to_string());
    flag("--instance", instance.to_owned());
    flag("--log-keep-days", config.logs.keep_days.to_string());
    if let Some(bytes) = config.logs.max_bytes {
        flag("--log-max-bytes", bytes.to_string());
    }
    let c_string = |bytes: Vec<u8>| CString::new(bytes).map_err(|_| "NUL in a setting".to_owned());
    let mut argv: Vec<CString> =
        argv.into_iter().map(|text| c_string(text.into_bytes())).collect::<Result<_, _>>()?;
    match dir {
        None => argv.push(c"--no-log".to_owned()),
        Some(dir) => {
            use std::os::unix::ffi::OsStrExt;
            argv.push(c"--log-dir".to_owned());
            argv.push(c_string(dir.as_os_str().as_bytes().to_vec())?);
        }
    }
    let envp = launch::plain_environment(host::environment());
    let writer = (!config.keeper).then(|| {
        let opened = dir.map_or(Err(0), |dir| {
            LogDir::open(dir).map_err(|error| error.raw_os_error().unwrap_or(0))
        });
        if let Ok(dir) = &opened {
            dir.delete_old(config.logs.keep_days);
        }
        Writer::new(opened, config.logs.max_bytes)
    });
    Ok(KeeperLink::new(KeeperPlan { argv, envp }, dir.cloned(), writer))
}
