//! Other processes: what /proc says about them, and signals that reach no stranger.
//!
//! A pid alone names a process only for as long as nobody reaps it. Whoever is to be
//! signalled is therefore pinned by a pidfd first and looked at again behind it.

use super::io::{self, errno, errno_of};
use super::{clock, pidfd, proc_view};
use crate::limits::NS_PER_S;
use std::cell::{Cell, RefCell};
use std::fs::{File, ReadDir};
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;

/// Bytes of a process's environment searched for execd's marks.
const ENVIRON_BYTES: usize = 2 * 1024 * 1024;

/// Bytes of /proc/PID/stat that are read; its 52 fields and the name stay well below.
const STAT_BYTES: usize = 2_048;
/// Threads of a process that are asked for their state.
const THREADS_ASKED: usize = 64;
/// Descriptors set aside for looking at processes: one to pin somebody, one to read about him.
const SPARE_FDS: usize = 2;

/// One line of /proc/PID/stat, see proc_pid_stat(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcStat {
    /// Process id.
    pub pid: i32,
    /// The parent's process id; 0 when it is outside our pid namespace.
    pub ppid: i32,
    /// Process group id.
    pub pgrp: i32,
    /// Session id.
    pub sid: i32,
    /// The state's letter (R, S, D, T, Z, X …). A process whose main thread alone has ended
    /// counts as S: the kernel says Z, but its other threads run on.
    pub state: u8,
    /// Start time in clock ticks since boot.
    pub start_ticks: u64,
}

impl ProcStat {
    /// Whether it still runs: neither a zombie nor dead.
    pub fn is_alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X' | b'x')
    }
}

/// Reads /proc/PID/stat. None: no such process, or its line makes no sense or cannot be read.
pub fn stat(pid: i32) -> Option<ProcStat> {
    read_stat(pid).ok().flatten()
}

/// Reads /proc/PID/stat. None: no such process. Errors: it cannot be told (EMFILE, ENOMEM);
/// who takes that for an absence would leave somebody running.
fn read_stat(pid: i32) -> Result<Option<ProcStat>, i32> {
    match read_stat_at(&format!("/proc/{pid}/stat")) {
        Err(libc::ENOENT | libc::ESRCH) => Ok(None),
        read => read,
    }
}

/// Reads such a file, of a process or of a thread.
fn read_stat_at(path: &str) -> Result<Option<ProcStat>, i32> {
    let mut buffer = [0; STAT_BYTES];
    let len = io::read_or_errno(open(path)?.as_raw_fd(), &mut buffer)?;
    Ok(parse_stat(&buffer[..len]))
}

/// The name in parentheses may hold anything, parentheses and newlines too; what follows the
/// last `)` is numbers only.
fn parse_stat(line: &[u8]) -> Option<ProcStat> {
    let name_ends = line.iter().rposition(|byte| *byte == b')')?;
    let pid = std::str::from_utf8(line.get(..line.iter().position(|byte| *byte == b' ')?)?).ok()?;
    let rest = std::str::from_utf8(line.get(name_ends + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().take(20).collect();
    // Field n of proc_pid_stat(5) counts from 1 and the pid; here the state, its third, is 0.
    let field = |n: usize| fields.get(n - 3).copied();
    let mut state = *field(3)?.as_bytes().first()?;
    let threads: i64 = field(20)?.parse().ok()?;
    if state == b'Z' && threads > 1 {
        state = b'S';
    }
    Some(ProcStat {
        pid: pid.parse().ok()?,
        ppid: field(4)?.parse().ok()?,
        pgrp: field(5)?.parse().ok()?,
        sid: field(6)?.parse().ok()?,
        state,
        start_ticks: field(22)?.parse().ok()?,
    })
}

thread_local! {
    /// Descriptors set aside: when sessions have used up all others, processes can still be
    /// looked at and ended.
    static SPARES: RefCell<Vec<File>> = const { RefCell::new(Vec::new()) };
    static SPARE_COUNT: Cell<usize> = const { Cell::new(SPARE_FDS) };
}

/// Sets one descriptor aside, when a look at processes first needs it, and no more.
pub fn spare_late() {
    SPARE_COUNT.set(1);
}

/// Sets descriptors aside, as far as there are any.
pub fn hold_spares() {
    SPARES.with_borrow_mut(|spares| {
        while spares.len() < SPARE_COUNT.get() {
            let Ok(spare) = File::open("/dev/null") else { return };
            spares.push(spare);
        }
    });
}

/// Makes a descriptor, out of a spare one where no other is left. What is given away here is
/// taken back by [`hold_spares`] at the next look.
fn with_spare<T>(make: impl Fn() -> Result<T, i32>) -> Result<T, i32> {
    match make() {
        Err(libc::EMFILE) if SPARES.with_borrow_mut(Vec::pop).is_some() => make(),
        made => made,
    }
}

/// Opens a file of a process in /proc, out of a spare descriptor where no other is left. Gives an
/// errno: ENOENT too where the numbers in /proc are not those of the processes here.
pub(super) fn open(path: &str) -> Result<File, i32> {
    means_ours()?;
    with_spare(|| File::open(path).map_err(errno_of))
}

/// Opens a directory of /proc in the same way.
pub(super) fn open_dir(path: &str) -> Result<ReadDir, i32> {
    means_ours()?;
    with_spare(|| std::fs::read_dir(path).map_err(errno_of))
}

fn means_ours() -> Result<(), i32> {
    if proc_view::tells() { Ok(()) } else { Err(libc::ENOENT) }
}

/// The pids of the processes in /proc, as they are found.
#[derive(Debug)]
pub struct Pids(ReadDir);

/// Begins to find all processes. Errors: /proc cannot be read; of an item too.
pub fn all_pids() -> Result<Pids, i32> {
    hold_spares();
    let pids = open_dir("/proc").map(Pids);
    hold_spares();
    pids
}

impl Iterator for Pids {
    type Item = Result<i32, i32>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.find_map(|entry| match entry {
            Ok(entry) => entry.file_name().to_str()?.parse().ok().map(Ok),
            Err(error) => Some(Err(errno_of(error))),
        })
    }
}

/// The session id of a process by getsid(2), which is far cheaper than /proc. None: it is gone.
pub fn session_of(pid: i32) -> Option<i32> {
    // SAFETY: getsid takes a number and touches no memory of ours.
    let sid = unsafe { libc::getsid(pid) };
    if sid >= 0 {
        return Some(sid);
    }
    // A security module may refuse the question; /proc then still has the answer.
    match errno() {
        libc::ESRCH => None,
        _ => stat(pid).map(|found| found.sid),
    }
}

/// Whether a process runs as this user (effective uid; root for one that must not be looked into).
/// False for one that is gone.
pub fn is_users(pid: i32, uid: u32) -> bool {
    std::fs::metadata(format!("/proc/{pid}")).is_ok_and(|found| found.uid() == uid)
}

/// The name of a process (comm), which tells less than its command line and can always be read: the
/// command line and the environment are in the memory of the process, and reading them waits for as
/// long as it holds the map of it. Empty for one that is gone.
pub fn name(pid: i32) -> String {
    let name = read_some(&format!("/proc/{pid}/comm"), STAT_BYTES).unwrap_or_default();
    printable(name.trim_ascii_end())
}

/// Bytes of another process for people, their control characters made `?`.
fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// How long the first thread of a process has waited for a processor while it could have run, in
/// nanoseconds; 0 where the kernel does not tell (proc(5), schedstat).
pub fn starved_ns(pid: i32) -> u64 {
    let told = read_some(&format!("/proc/{pid}/schedstat"), STAT_BYTES).unwrap_or_default();
    let told = String::from_utf8_lossy(&told);
    told.split_ascii_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Whether a thread of a process is in uninterruptible sleep. It may hold the map of the process's
/// memory for as long as that lasts, and who reads the command line or the environment waits for
/// it. Of very many threads the first are asked.
pub fn is_stuck(pid: i32) -> bool {
    any_thread(pid, |state| state == b'D')
}

/// Whether a thread of a process has work: it runs, waits for a processor, or for a disk. Of very
/// many threads the first are asked.
pub fn has_work(pid: i32) -> bool {
    any_thread(pid, |state| matches!(state, b'R' | b'D'))
}

/// Whether one of the first threads of a process is in such a state.
fn any_thread(pid: i32, fits: impl Fn(u8) -> bool) -> bool {
    let Ok(threads) = open_dir(&format!("/proc/{pid}/task")) else { return false };
    threads.flatten().take(THREADS_ASKED).any(|thread| {
        let path = thread.path().join("stat");
        let found = path.to_str().and_then(|path| read_stat_at(path).ok().flatten());
        found.is_some_and(|found| fits(found.state))
    })
}

/// The command line of a process: arguments joined by blanks, control characters made `?`, at most
/// `max_bytes` long. Empty where there is none to be had. The memory of the process holds it, so a
/// read may wait: the loop never calls this.
pub fn command_line(pid: i32, max_bytes: usize) -> String {
    let mut bytes = read_some(&format!("/proc/{pid}/cmdline"), max_bytes).unwrap_or_default();
    bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
    bytes.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
    let mut text = printable(&bytes);
    text.truncate(text.floor_char_boundary(max_bytes));
    text
}

/// Whether one of the environment entries that a process was started with fits. They are given in
/// their order, as far as the first `ENVIRON_BYTES` show. None where that cannot be told: we may
/// not look, it is stuck, or it is becoming another program and has none for a moment. It may have
/// to wait.
pub fn environ_any(pid: i32, fits: impl FnMut(&[u8]) -> bool) -> Option<bool> {
    if is_stuck(pid) {
        return None;
    }
    let mut bytes = read_some(&format!("/proc/{pid}/environ"), ENVIRON_BYTES)?;
    if bytes.is_empty() {
        return None;
    }
    if bytes.len() == ENVIRON_BYTES {
        // The last entry may be cut and only look like a mark.
        bytes.truncate(bytes.iter().rposition(|byte| *byte == 0).unwrap_or(0));
    }
    Some(bytes.split(|byte| *byte == 0).any(fits))
}

/// The first `max_bytes` of a file; None when it cannot be read.
fn read_some(path: &str, max_bytes: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX);
    open(path).ok()?.take(limit).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// A process pinned by a pidfd: signals go to it or to nobody. Where pidfd_open(2) or
/// pidfd_send_signal(2) is refused it is known by its number and its session, which are looked at
/// before each signal.
#[derive(Debug)]
pub struct Target {
    pidfd: Option<OwnedFd>,
    pid: i32,
    sid: i32,
}

/// Pins the process that `stat` describes. None: it is gone, is another one by now, or has
/// left its session. Errors: pidfd_open(2), EMFILE above all.
pub fn open_target(seen: &ProcStat) -> Result<Option<Target>, i32> {
    let found = open_member(seen.pid, seen.sid)?;
    Ok(found.and_then(|(target, now)| (now.start_ticks == seen.start_ticks).then_some(target)))
}

/// Pins the process `pid` if it is in the session `sid`, dead ones too, and gives what /proc says
/// of it. None: it is not, any more. Errors: as [`open_target`].
pub fn open_member(pid: i32, sid: i32) -> Result<Option<(Target, ProcStat)>, i32> {
    let pidfd = match with_spare(|| pidfd::open(pid)) {
        // No process with that number is no failure.
        Err(errno) if pidfd::is_nobody(errno) => return Ok(None),
        Err(errno) if pidfd::is_refused(errno) => None,
        opened => Some(opened?),
    };
    // The pidfd came by number: only what /proc says behind it proves whom we hold.
    let seen = read_stat(pid)?.filter(|now| now.sid == sid);
    Ok(seen.map(|seen| (Target { pidfd, pid, sid }, seen)))
}

impl Target {
    /// The process id, for people and tables; once this process is reaped, another may have it.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The pidfd: readable once the process has ended, see pidfd_open(2). None where pidfds are
    /// refused: then [`Self::is_there`] tells.
    pub fn fd(&self) -> Option<RawFd> {
        self.pidfd.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Whether a process of its number lives in its session.
    pub fn is_there(&self) -> bool {
        stat(self.pid).is_some_and(|now| now.sid == self.sid && now.is_alive())
    }

    /// Sends a signal, as [`pidfd::signal`] does.
    pub fn signal(&self, signal: i32) -> Result<(), i32> {
        match self.fd().map(|pidfd| pidfd::send(pidfd, signal)) {
            // A filter may refuse pidfd_send_signal(2) and nothing else.
            Some(Err(errno)) if pidfd::is_refused(errno) => {}
            Some(sent) => return sent,
            None => {}
        }
        if session_of(self.pid) != Some(self.sid) {
            return Ok(());
        }
        pidfd::by_number(self.pid, signal)
    }
}

/// Whether this number is still taken as the id of a process, a process group or a session: by
/// members of a session, then, when its leader was reaped. The kernel gives it up with the last of
/// them, and tells at once, however many processes there are: it refuses to make nobody the owner
/// of a file (ESRCH of F_SETOWN_EX, fcntl(2)). True where that cannot be told.
pub fn id_in_use(id: i32) -> bool {
    hold_spares();
    SPARES.with_borrow(|spares| {
        // An owner is told of a file's events when O_ASYNC is set, and on this one it never is.
        let Some(spare) = spares.first() else { return true };
        let owner = FileOwner { kind: F_OWNER_PID, id };
        // SAFETY: a descriptor of ours, and a live struct f_owner_ex.
        let set = unsafe { libc::fcntl(spare.as_raw_fd(), F_SETOWN_EX, &raw const owner) };
        set == 0 || errno() != libc::ESRCH
    })
}

/// Whether nobody of the session `sid` can be left, now that its leader was reaped: its number is
/// free, or a process has it as its pid. The kernel gives no number out again while a member has
/// it as the id of its session, so such a process is a stranger and all members are gone.
pub fn session_is_over(sid: i32) -> bool {
    !id_in_use(sid) || session_of(sid).is_some()
}

/// struct f_owner_ex of fcntl(2), and the two numbers that go with it.
#[repr(C)]
struct FileOwner {
    kind: libc::c_int,
    id: libc::pid_t,
}
const F_OWNER_PID: libc::c_int = 1;
const F_SETOWN_EX: libc::c_int = 15;

/// Now, in clock ticks since boot and rounded down, as /proc counts start times: a process
/// started after this call has at least this as its `start_ticks`.
pub fn boot_ticks_now() -> u64 {
    // SAFETY: sysconf takes a number and touches no memory of ours.
    let per_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100);
    let now_ns = clock::read_ns(libc::CLOCK_BOOTTIME);
    now_ns / NS_PER_S * per_second + now_ns % NS_PER_S * per_second / NS_PER_S
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::keeper_calls::testing::{Spawned, members_of};

    #[test]
    fn a_name_may_hold_spaces_and_parentheses() {
        let line = b"42 (a) R (b \n) S 7 8 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12345 6 7";
        let found = parse_stat(line).unwrap();
        let expected =
            ProcStat { pid: 42, ppid: 7, pgrp: 8, sid: 9, state: b'S', start_ticks: 12_345 };
        assert_eq!(found, expected);
        let zombie = b"42 (a) Z 7 8 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12345";
        assert!(!parse_stat(zombie).unwrap().is_alive());
        let main_thread_ended = b"42 (a) Z 7 8 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 12345";
        assert!(parse_stat(main_thread_ended).unwrap().is_alive());
        for bad in [&b""[..], b"42", b"42 (a", b"42 (a)", b"42 (a) S 1 2 3", b") x"] {
            assert_eq!(parse_stat(bad), None, "{bad:?}");
        }
    }

    /// execd read the command line and the environment of processes that held the map of their
    /// memory in uninterruptible sleep, and stood still with them.
    /// rule: architecture.md, Ending a session: A process in uninterruptible sleep is not asked for
    ///   what is in its memory
    #[test]
    fn who_is_in_uninterruptible_sleep_is_not_asked_for_what_is_in_its_memory() {
        // SAFETY: the child makes only async-signal-safe calls, and vfork's child does nothing but
        // wait: its parent sleeps uninterruptibly for as long.
        #[allow(deprecated)]
        let pid = unsafe {
            let pid = libc::fork();
            if pid == 0 {
                libc::prctl(libc::PR_SET_NAME, c"stuck".as_ptr());
                libc::setsid();
                if libc::vfork() == 0 {
                    libc::pause();
                }
                libc::_exit(0);
            }
            pid
        };
        assert!(pid > 0, "fork");
        while !is_stuck(pid) {
            crate::sys::poll::pause(1);
        }
        for member in members_of(pid) {
            open_target(&member).unwrap().unwrap().signal(libc::SIGKILL).unwrap();
        }
        crate::sys::child::reap_now(pid);
        assert!(!is_stuck(crate::sys::host::pid()));
    }

    /// rule: architecture.md, Ending a session: A signal never reaches a stranger and never a
    ///   reaped pid
    #[test]
    fn finds_marks_and_signals_a_member_of_a_session() {
        let before = boot_ticks_now();
        let child = Spawned::shell("sleep 60 & wait", &["EXECD_INSTANCE=abc", "X=1"]);
        let members = loop {
            let members = members_of(child.pid);
            if members.len() == 2 {
                break members;
            }
            crate::sys::poll::pause(1);
        };
        assert!(members.iter().all(|one| one.start_ticks >= before && one.sid == child.pid));
        let has = |mark: &[u8]| environ_any(child.pid, |entry| entry == mark);
        assert_eq!(has(b"EXECD_INSTANCE=abc"), Some(true));
        assert_eq!(has(b"X=1"), Some(true));
        assert_eq!(has(b"EXECD_INSTANCE=ab"), Some(false));
        assert!(is_users(child.pid, crate::sys::host::uid()) && !is_users(child.pid, 12_345));
        assert_eq!(command_line(child.pid, 256), "/bin/sh -c sleep 60 & wait");
        assert_eq!(command_line(child.pid, 9), "/bin/sh -");
        hold_spares();
        assert!(id_in_use(child.pid));
        assert!(!id_in_use(i32::MAX), "no kernel gives so high a number");

        let mut stranger = members[0];
        stranger.start_ticks += 1;
        assert!(open_target(&stranger).unwrap().is_none());
        for member in &members {
            open_target(member).unwrap().unwrap().signal(libc::SIGKILL).unwrap();
        }
        let target = open_target(&stat(child.pid).unwrap()).unwrap().unwrap();
        assert_eq!(child.wait(), libc::SIGKILL);
        target.signal(libc::SIGKILL).unwrap();
        assert!(stat(target.pid()).is_none() && command_line(target.pid(), 9).is_empty());
    }
}
