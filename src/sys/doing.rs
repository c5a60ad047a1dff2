//! What the threads of other processes wait on, as /proc tells it: the call that a thread is in
//! (/proc/PID/task/TID/syscall), what its descriptors are (the links in /proc/PID/fd), what an
//! epoll instance has in it (fdinfo), and of a poll or a select the arrays in the process's memory.
//! Nothing here reads command lines, environments or maps: those wait for as long as a process
//! holds the map of its memory. The arrays of a poll are read only while no thread of the process
//! sleeps uninterruptibly.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::os::fd::RawFd;
use std::os::unix::fs::MetadataExt;

use super::io::{done, errno};
use super::{proc, proc_work, pty, tree};
use crate::pure::process::doing::{Call, Modes, On, Process, Thread};

/// Descriptors of a process outside a session that are looked through for the session's.
const STRANGER_FDS: usize = 256;

/// Descriptors of a select: FD_SETSIZE, see select(2).
const SELECTED_MAX: usize = 1_024;

/// Descriptors of a poll or an epoll instance that are looked at.
const POLLED_MAX: usize = 256;

/// Bytes read of a file of /proc that tells what a thread or a descriptor is at.
const DOING_LINE_BYTES: usize = 16 * 1024;

/// Major number of the terminals' ends that programs have, see pts(4).
const PTS_MAJOR: libc::c_uint = 136;
/// What of futex(2)'s operation is no operation.
const FUTEX_FLAGS: i32 = libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME;
/// Bytes of an entry of poll's array, see poll(2).
const POLLFD_BYTES: usize = size_of::<libc::pollfd>();

/// What of a session's descriptors is execd's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ours {
    /// The id of the session's processes.
    pub sid: i32,
    /// The number of its terminal in /dev/pts.
    pub terminal: Option<u32>,
    /// The process group in its terminal's foreground.
    pub foreground: Option<i32>,
    /// The pipe that its input is written to.
    pub stdin: Option<u64>,
    /// The pipes that its output is read from.
    pub outputs: Vec<u64>,
}

/// The number of a terminal in /dev/pts, asked of its master. None: it is gone.
pub fn terminal_number(master: RawFd) -> Option<u32> {
    let mut number: libc::c_uint = 0;
    // SAFETY: TIOCGPTN writes one unsigned int.
    done(unsafe { libc::ioctl(master, libc::TIOCGPTN, &raw mut number) }).ok()?;
    Some(number)
}

/// The process group in the foreground of a terminal, asked of its master.
pub fn foreground(master: RawFd) -> Option<i32> {
    // SAFETY: tcgetpgrp takes a number and touches no memory of ours.
    let group = unsafe { libc::tcgetpgrp(master) };
    (group > 0).then_some(group)
}

/// What of a terminal's modes tells what is waited for, asked of its master.
pub fn modes(master: RawFd) -> Option<Modes> {
    let modes = pty::modes(master).ok()?;
    let has = |flag| modes.c_lflag & flag != 0;
    let timed = modes.c_cc[libc::VMIN] == 0 && modes.c_cc[libc::VTIME] > 0;
    Some(Modes {
        canonical: has(libc::ICANON),
        echo: has(libc::ECHO),
        read_is_timed: !has(libc::ICANON) && timed,
    })
}

/// What a member of a session is at. None: it has ended. `threads_matter`: false for one of whom
/// only the CPU time is wanted.
pub fn process(
    member: &tree::Member,
    all: &tree::Tree,
    ours: &Ours,
    threads_matter: bool,
) -> Option<Process> {
    let stat = proc::stat(member.pid).filter(proc::ProcStat::is_alive)?;
    let foreground = ours.foreground == Some(stat.pgrp) && stat.sid == ours.sid;
    let counts = if ours.terminal.is_some() { foreground } else { true };
    let mut found = Process {
        pid: member.pid,
        counts,
        stopped: matches!(stat.state, b'T' | b't'),
        cpu_ns: proc_work::cpu_ns(member.pid),
        ..Process::default()
    };
    if counts || threads_matter {
        let mut seeing = Seeing { pid: member.pid, own: stat.sid == ours.sid, all, ours };
        for tid in &member.tids {
            match seeing.thread(*tid) {
                Ok(Some(thread)) => found.threads.push(thread),
                Ok(None) => {}
                Err(()) => found.hidden = true,
            }
        }
    }
    if counts {
        found.name = proc::name(member.pid);
    }
    // Whoever is busy anyway needs no further question.
    found.timer = found.is_blocked() && !found.stopped && has_timer(member.pid);
    Some(found)
}

/// Whether a process outside the session has one of these pipes, or the terminal; also where that
/// cannot be told.
pub fn reaches_into(pid: i32, pipes: &BTreeSet<u64>, ours: &Ours) -> bool {
    let Ok(links) = proc::open_dir(&format!("/proc/{pid}/fd")) else {
        return proc::session_of(pid).is_some();
    };
    let terminal = ours.terminal.map(|number| format!("/dev/pts/{number}"));
    for (at, entry) in links.enumerate() {
        if at >= STRANGER_FDS {
            return true;
        }
        let Some(link) = entry.ok().and_then(|entry| std::fs::read_link(entry.path()).ok()) else {
            continue;
        };
        let link = link.to_string_lossy();
        let pipe = numbered(&link, "pipe:[");
        if pipe.is_some_and(|pipe| pipes.contains(&pipe)) || terminal.as_deref() == Some(&*link) {
            return true;
        }
    }
    false
}

/// Whether a timer of timer_create(2) is in a process, armed or not; true where that cannot be
/// told. What alarm(2) and setitimer(2) have armed the kernel tells nobody.
fn has_timer(pid: i32) -> bool {
    let mut bytes = [0; 1];
    let read = proc::open(&format!("/proc/{pid}/timers")).map(|mut file| file.read(&mut bytes));
    !matches!(read, Ok(Ok(0)))
}

/// One process that is being looked at.
struct Seeing<'a> {
    pid: i32,
    /// The process is in the session whose terminal is ours: /dev/tty means that one.
    own: bool,
    all: &'a tree::Tree,
    ours: &'a Ours,
}

impl Seeing<'_> {
    /// What a thread is at. None: it has ended. Errors: it must not be looked at.
    fn thread(&mut self, tid: i32) -> Result<Option<Thread>, ()> {
        let path = format!("/proc/{}/task/{tid}", self.pid);
        let line = match read(&format!("{path}/syscall")) {
            Ok(line) => line,
            Err(libc::ENOENT | libc::ESRCH) => return Ok(None),
            Err(_) => return Err(()),
        };
        let mut thread = Thread { line: hash(&line), ..Thread::new(tid, Call::Other) };
        if let Some((number, args)) = parse(&line) {
            (thread.call, thread.on) = self.call(number, &args);
        }
        if thread.on.iter().any(|on| matches!(on, On::Terminal | On::Stdin)) {
            thread.cpu_ns = thread_cpu_ns(&path);
        }
        Ok(Some(thread))
    }

    /// The call of this number, and what it waits on.
    fn call(&self, number: i64, args: &[u64; 6]) -> (Call, Vec<On>) {
        match number {
            libc::SYS_read | libc::SYS_readv => (Call::Read, vec![self.on(low(args[0]))]),
            libc::SYS_write | libc::SYS_writev => (Call::Write, vec![self.on(low(args[0]))]),
            libc::SYS_wait4 | libc::SYS_waitid | libc::SYS_rt_sigsuspend => {
                (Call::Member, Vec::new())
            }
            libc::SYS_rt_sigtimedwait if args[2] == 0 => (Call::Member, Vec::new()),
            libc::SYS_futex if waits_for_ever(args) => (Call::Member, Vec::new()),
            libc::SYS_pselect6 => self.selected(args, args[4] != 0),
            libc::SYS_ppoll => self.polled(args, args[2] != 0),
            libc::SYS_epoll_pwait => self.epoll(args, low(args[3]) >= 0),
            libc::SYS_epoll_pwait2 => self.epoll(args, args[3] != 0),
            _ => self.older_call(number, args),
        }
    }

    /// Calls that newer architectures do without.
    #[cfg(target_arch = "x86_64")]
    fn older_call(&self, number: i64, args: &[u64; 6]) -> (Call, Vec<On>) {
        match number {
            libc::SYS_pause => (Call::Member, Vec::new()),
            libc::SYS_select => self.selected(args, args[4] != 0),
            libc::SYS_poll => self.polled(args, low(args[2]) >= 0),
            libc::SYS_epoll_wait => self.epoll(args, low(args[3]) >= 0),
            _ => (Call::Other, Vec::new()),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn older_call(&self, _number: i64, _args: &[u64; 6]) -> (Call, Vec<On>) {
        (Call::Other, Vec::new())
    }

    fn selected(&self, args: &[u64; 6], timed: bool) -> (Call, Vec<On>) {
        let call = Call::Poll { timed };
        let count = usize::try_from(args[0]).unwrap_or(usize::MAX);
        if count > SELECTED_MAX {
            return (call, vec![On::Other]);
        }
        let Some(reads) = self.set(args[1], count) else {
            // The memory can't be read; of one descriptor no set is needed.
            return (call, vec![if count == 1 { self.on(0) } else { On::Other }]);
        };
        let mut on: Vec<On> = reads.into_iter().map(|fd| self.on(fd)).collect();
        match self.set(args[2], count) {
            Some(writes) => on.extend(writes.into_iter().map(|fd| self.on_for(fd, false))),
            None => on.push(On::Other),
        }
        // What is out of band is not for the session to give.
        if self.set(args[3], count).is_none_or(|fds| !fds.is_empty()) {
            on.push(On::Other);
        }
        (call, on)
    }

    /// The descriptors of a set of select(2), which are fewer than `count`.
    fn set(&self, at: u64, count: usize) -> Option<Vec<i32>> {
        if at == 0 {
            return Some(Vec::new());
        }
        let words = self.memory(at, count.div_ceil(64) * 8)?;
        let is_set = |fd: &usize| words[fd / 8] & (1 << (fd % 8)) != 0;
        Some((0..count).filter(is_set).filter_map(|fd| i32::try_from(fd).ok()).collect())
    }

    fn polled(&self, args: &[u64; 6], timed: bool) -> (Call, Vec<On>) {
        let count = usize::try_from(args[1]).unwrap_or(usize::MAX);
        let on = if count > POLLED_MAX { None } else { self.memory(args[0], count * POLLFD_BYTES) };
        let Some(bytes) = on else { return (Call::Poll { timed }, vec![On::Other]) };
        let entries = bytes.chunks_exact(POLLFD_BYTES).filter_map(|entry| {
            let fd = i32::from_ne_bytes(entry[..4].try_into().ok()?);
            let events = i16::from_ne_bytes(entry[4..6].try_into().ok()?);
            (fd >= 0).then_some((fd, i32::from(events)))
        });
        let reads = i32::from(libc::POLLIN | libc::POLLRDNORM);
        let on = entries.map(|(fd, events)| self.on_for(fd, events & reads != 0)).collect();
        (Call::Poll { timed }, on)
    }

    /// What an epoll instance has in it: lines `tfd: FD events: HEX …` of proc_pid_fdinfo(5).
    fn epoll(&self, args: &[u64; 6], timed: bool) -> (Call, Vec<On>) {
        let path = format!("/proc/{}/fdinfo/{}", self.pid, low(args[0]));
        let Ok(text) = read(&path) else { return (Call::Poll { timed }, vec![On::Other]) };
        let entries = text.lines().filter_map(|line| line.strip_prefix("tfd:")).map(|line| {
            let mut words = line.split_ascii_whitespace();
            let fd = words.next().and_then(|word| word.parse().ok());
            let events = words.nth(1).and_then(|word| u32::from_str_radix(word, 16).ok());
            let reads = events.unwrap_or(0) & u32::from(libc::POLLIN.cast_unsigned()) != 0;
            fd.map_or(On::Other, |fd| self.on_for(fd, reads))
        });
        let mut on: Vec<On> = entries.take(POLLED_MAX).collect();
        if text.len() >= DOING_LINE_BYTES {
            on.push(On::Other);
        }
        (Call::Poll { timed }, on)
    }

    /// What a descriptor is to one who polls it: room for output is the session's to give only
    /// within the session.
    fn on_for(&self, fd: i32, reads: bool) -> On {
        match self.on(fd) {
            On::Terminal | On::Stdin if !reads => On::Other,
            on => on,
        }
    }

    /// What a descriptor of the process is.
    fn on(&self, fd: i32) -> On {
        let path = format!("/proc/{}/fd/{fd}", self.pid);
        // The link is read and not followed: a file behind it may be on a disk that stands still.
        let Ok(link) = std::fs::read_link(&path) else { return On::Other };
        let Some(link) = link.to_str() else { return On::Other };
        if let Some(pipe) = numbered(link, "pipe:[") {
            return if self.ours.stdin == Some(pipe) {
                On::Stdin
            } else if self.ours.outputs.contains(&pipe) {
                On::Other
            } else {
                On::Inside(Some(pipe))
            };
        }
        match link {
            "anon_inode:[eventfd]" | "anon_inode:[signalfd]" => On::Inside(None),
            "anon_inode:[pidfd]" if self.is_member(fd) => On::Inside(None),
            _ if self.is_terminal(link, &path) => On::Terminal,
            _ => On::Other,
        }
    }

    /// Whether a pidfd is of a member, by its fdinfo (pidfd_open(2)).
    fn is_member(&self, fd: i32) -> bool {
        let text = read(&format!("/proc/{}/fdinfo/{fd}", self.pid)).unwrap_or_default();
        let pid = text.lines().find_map(|line| line.strip_prefix("Pid:"));
        pid.and_then(|pid| pid.trim().parse().ok()).is_some_and(|pid| self.all.pids.contains(&pid))
    }

    fn is_terminal(&self, link: &str, path: &str) -> bool {
        let Some(number) = self.ours.terminal else { return false };
        if link == "/dev/tty" {
            return self.own;
        }
        // What is in /dev is a device, which answers at once.
        let known = || std::fs::metadata(path).map(|found| found.rdev()).ok();
        link.starts_with("/dev/") && known() == Some(libc::makedev(PTS_MAJOR, number))
    }

    /// Bytes of the process's memory. None: they can't be read now.
    fn memory(&self, at: u64, bytes: usize) -> Option<Vec<u8>> {
        if proc::is_stuck(self.pid) {
            return None;
        }
        let mut buffer = vec![0_u8; bytes];
        let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: bytes };
        let remote = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: bytes };
        // SAFETY: one buffer of ours of this length; the other side's address is checked by the
        // kernel and never touched by us.
        let moved = unsafe {
            libc::process_vm_readv(self.pid, &raw const local, 1, &raw const remote, 1, 0)
        };
        (usize::try_from(moved) == Ok(bytes)).then_some(buffer)
    }
}

/// The lower half of an argument: descriptors and timeouts are ints.
#[allow(clippy::cast_possible_truncation)] // The kernel takes no more of it either.
fn low(arg: u64) -> i32 {
    (arg as u32).cast_signed()
}

/// Whether a call of futex(2) waits, without a timeout.
fn waits_for_ever(args: &[u64; 6]) -> bool {
    let operation = low(args[1]) & !FUTEX_FLAGS;
    matches!(operation, libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET) && args[3] == 0
}

/// The number in a link like `pipe:[12]`.
fn numbered(link: &str, prefix: &str) -> Option<u64> {
    link.strip_prefix(prefix)?.strip_suffix(']')?.parse().ok()
}

fn hash(line: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}

/// The number of a call and its six arguments. None: the thread is in no call.
fn parse(line: &str) -> Option<(i64, [u64; 6])> {
    let mut words = line.split_ascii_whitespace();
    let number = words.next()?.parse().ok().filter(|number| *number >= 0)?;
    let mut args = [0; 6];
    for arg in &mut args {
        *arg = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    }
    Some((number, args))
}

/// The CPU time of a thread (proc(5), schedstat); 0 where the kernel does not tell.
fn thread_cpu_ns(path: &str) -> u64 {
    let told = read(&format!("{path}/schedstat")).unwrap_or_default();
    told.split_ascii_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// The first bytes of a file of /proc; an errno.
fn read(path: &str) -> Result<String, i32> {
    let mut bytes = Vec::new();
    let file = proc::open(path)?;
    let read = file.take(DOING_LINE_BYTES as u64).read_to_end(&mut bytes);
    read.map_err(|error| error.raw_os_error().unwrap_or_else(errno))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{host, io};

    #[test]
    fn a_line_about_a_call_is_taken_apart() {
        assert_eq!(
            parse("0 0x3 0x7f 0x1 0x0 0x0 0x0 0x7ffe 0x7f2"),
            Some((0, [3, 127, 1, 0, 0, 0]))
        );
        for none in ["running\n", "-1 0x7ffe 0x7f2", "", "0 0x3", "0 3 4 5 6 7 8 9 10"] {
            assert_eq!(parse(none), None, "{none:?}");
        }
        assert_eq!(low(0xffff_ffff), -1);
        assert_eq!(numbered("pipe:[12]", "pipe:["), Some(12));
        assert_eq!(numbered("/tmp/pipe:[12]", "pipe:["), None);
    }

    #[test]
    fn locks_and_their_timeouts() {
        assert!(waits_for_ever(&[1, 128, 0, 0, 0, 0]));
        assert!(waits_for_ever(&[1, 393, 0, 0, 0, 0]));
        assert!(!waits_for_ever(&[1, 393, 0, 7, 0, 0]), "with a timeout");
        assert!(!waits_for_ever(&[1, 129, 0, 0, 0, 0]), "it wakes somebody");
    }

    #[test]
    fn own_memory_is_read_and_own_pipes_are_known() {
        let (read_end, write_end) = crate::sys::io::pipe().unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&read_end);
        let inode = proc_work::own_pipe(fd);
        let tree = tree::Tree::default();
        let on = |ours: &Ours| Seeing { pid: host::pid(), own: false, all: &tree, ours }.on(fd);
        let stdin = Ours { stdin: inode, ..Ours::default() };
        let output = Ours { outputs: inode.into_iter().collect(), ..Ours::default() };
        assert_eq!(on(&stdin), On::Stdin);
        assert_eq!(on(&output), On::Other);
        assert_eq!(on(&Ours::default()), On::Inside(inode));
        let pipes: BTreeSet<u64> = inode.into_iter().collect();
        assert!(reaches_into(host::pid(), &pipes, &Ours::default()));
        assert!(!reaches_into(host::pid(), &BTreeSet::new(), &Ours::default()));
        assert_eq!(io::unread(fd), 0);
        crate::sys::io::write(std::os::fd::AsRawFd::as_raw_fd(&write_end), b"abc");
        assert_eq!(io::unread(fd), 3);
        let bits = [5_u64];
        let seeing = Seeing { pid: host::pid(), own: false, all: &tree, ours: &stdin };
        if let Some(set) = seeing.set(bits.as_ptr() as u64, 3) {
            assert_eq!(set, [0, 2]);
        }
    }
}
