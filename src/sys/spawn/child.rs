//! What a new process does between clone and exec, in our memory. **It makes system calls by
//! src/sys/raw.rs alone**: no allocation, no locks, no formatting, no panics, no `Drop`, nothing of
//! the C library that may touch errno or another variable of the thread, which is ours.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::fd::RawFd;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use super::plan::{Announcement, Leads, Plan, Step};
use crate::sys::{given, raw};

/// Bytes of the report of a failure: the step, and its errno.
pub(super) const REPORT_BYTES: usize = 8;

/// The number that the report pipe has in the child: the first behind its standard descriptors.
const REPORT_FD: RawFd = 3;

/// The shell of a script that names none, as execvp(3) has it.
const SHELL: &CStr = c"/bin/sh";

/// What is wrong with one place on PATH and says nothing of the next: there is nothing, it is no
/// program, we may not look, or its file system is of no use.
const NOT_HERE: [i32; 11] = [
    libc::ENOENT,
    libc::ENOTDIR,
    libc::EACCES,
    libc::ELOOP,
    libc::ENAMETOOLONG,
    libc::EIO,
    libc::ENODEV,
    libc::ENXIO,
    libc::ENOTCONN,
    libc::ESTALE,
    libc::ETIMEDOUT,
];

/// A list of C strings as exec takes it.
type Words = Box<[Cell<*const c_char>]>;

/// What the child reads: its parent keeps all of it in place until the child has left this memory.
#[derive(Debug)]
pub(super) struct Order {
    plan: Plan,
    /// The arguments, behind a place for the name of a shell.
    words: Words,
    environment: Words,
    treated: Treated,
    limit: libc::rlimit64,
    announcement: Option<Announcement>,
    parent: i32,
    report_fd: RawFd,
    /// Whether the announcement was written.
    announced: AtomicBool,
    /// The number of the program that was tried last; -1 before, and in a copy of this memory.
    pub(super) tried: AtomicI32,
}

/// Signals whose action is not the default one here.
#[derive(Clone, Debug)]
pub(super) struct Treated {
    /// Those that are ignored.
    pub(super) ignored: Rc<[i32]>,
    /// Those with a handler.
    pub(super) handled: Rc<[i32]>,
}

fn pointers<'a>(strings: impl Iterator<Item = &'a CString>) -> Words {
    strings.map(|text| text.as_ptr()).chain([ptr::null()]).map(Cell::new).collect()
}

impl Order {
    /// The order to carry out this plan.
    pub(super) fn new(
        plan: Plan,
        announcement: Option<Announcement>,
        (treated, limit): (Treated, libc::rlimit64),
        report_fd: RawFd,
    ) -> Self {
        // The strings stay where they are when the plan moves.
        let place = CString::default();
        let words = pointers([&place].into_iter().chain(&plan.argv));
        let environment = pointers(plan.envp.iter());
        Self {
            plan,
            words,
            environment,
            treated,
            limit,
            announcement,
            parent: raw::pid(),
            report_fd,
            announced: AtomicBool::new(false),
            tried: AtomicI32::new(-1),
        }
    }

    /// Whether the announcement was written, or there was none.
    pub(super) fn has_announced(&self) -> bool {
        self.announcement.is_none() || self.announced.load(Ordering::SeqCst)
    }
}

/// The child.
pub(super) extern "C" fn child_main(order: *mut c_void) -> c_int {
    // SAFETY: the parent passes a pointer to an Order that outlives this function.
    let order = unsafe { &*order.cast::<Order>() };
    let mut report_fd = order.report_fd;
    let (step, errno) = match prepare(order, &mut report_fd) {
        Err(failure) => failure,
        Ok(()) => (Step::Exec, exec(order)),
    };
    let mut report = [0; REPORT_BYTES];
    let bytes = step.code().to_ne_bytes().into_iter().chain(errno.to_ne_bytes());
    report.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
    raw::write_whole(report_fd, &report);
    raw::exit(127)
}

/// Writes the record with our pid in it; whether that was done.
fn announce(announcement: &Announcement) -> bool {
    let mut record = [0; 32];
    let pid = raw::pid().to_le_bytes();
    let bytes = announcement.head.iter().chain(&pid).chain(&announcement.tail);
    record.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    raw::write_whole(announcement.fd, &record)
}

/// All that comes before the program, in this order; gives the step that failed and its errno.
/// Nothing touches a file before the last step. By then the child leads its session, can be ended
/// by any signal, dies with us, and holds none of our descriptors: where it hangs from there on, it
/// is found and ended like any other process, and holds up nobody.
fn prepare(order: &Order, report_fd: &mut RawFd) -> Result<(), (Step, i32)> {
    let plan = &order.plan;
    if let Some(announcement) = &order.announcement {
        // First, while SIGPIPE is still ignored and the pipe still open.
        order.announced.store(announce(announcement), Ordering::SeqCst);
    }
    if plan.die_with_us {
        raw::die_with_parent();
        // If the parent died before that, no signal will come (prctl(2)).
        if raw::parent_pid() != order.parent {
            return Err((Step::Session, libc::ESRCH));
        }
    }
    // exec keeps what is ignored: Rust ignores SIGPIPE, nohup ignores SIGHUP. And no handler of
    // ours may run here once signals are let in.
    order.treated.handled.iter().for_each(|&signal| raw::set_action(signal, libc::SIG_DFL));
    if plan.as_given {
        given::restore_actions();
    } else {
        order.treated.ignored.iter().for_each(|&signal| raw::set_action(signal, libc::SIG_DFL));
    }
    let led = match plan.leads {
        Leads::Nothing => Ok(()),
        Leads::Group => raw::lead_group(),
        Leads::Session => raw::lead_session(),
    };
    led.map_err(|errno| (Step::Session, errno))?;
    if plan.terminal {
        raw::take_terminal(plan.stdio[0]).map_err(|errno| (Step::Terminal, errno))?;
    }
    for (source, target) in plan.stdio.into_iter().zip(0..) {
        // What has its place already is inheritable.
        raw::put_fd(source, target, 0).map_err(|errno| (Step::Stdio, errno))?;
    }
    if plan.as_given {
        // Our own descriptors are closed by exec.
        given::close_what_was_closed(plan.terminal);
    } else {
        raw::put_fd(*report_fd, REPORT_FD, libc::O_CLOEXEC).map_err(|no| (Step::Stdio, no))?;
        *report_fd = REPORT_FD;
        raw::close_from(REPORT_FD + 1);
    }
    raw::set_file_limit(&order.limit);
    raw::set_mask(if plan.as_given { given::blocked_signals() } else { raw::NO_SIGNALS });
    match &plan.cwd {
        Some(cwd) => raw::enter(cwd).map_err(|errno| (Step::Chdir, errno)),
        None => Ok(()),
    }
}

/// Becomes the first of the programs that can be; gives the errno of why none can.
fn exec(order: &Order) -> i32 {
    let Order { plan, words, environment, tried, .. } = order;
    let programs = plan.programs.iter();
    become_first(programs, plan.looked_up, words, environment, plan.as_given, tried)
}

/// Becomes the first of the programs that can be; `tried` gets the number of each before it is
/// tried. `words`: a free place, then the arguments. `by_shell`: a program in no format that the
/// kernel knows is read by /bin/sh, as execvp(3) has it. Gives the errno of why none can: of those
/// on PATH EACCES where one is there, as a shell has it.
fn become_first<'a>(
    programs: impl Iterator<Item = &'a CString>,
    looked_up: bool,
    words: &[Cell<*const c_char>],
    environment: &[Cell<*const c_char>],
    by_shell: bool,
    tried: &AtomicI32,
) -> i32 {
    let mut why = libc::ENOENT;
    let (first, env) = (words.as_ptr().cast::<*const c_char>(), environment.as_ptr().cast());
    for (program, number) in programs.zip(0..) {
        tried.store(number, Ordering::SeqCst);
        // SAFETY: both arrays end with a null pointer, and their owner keeps the strings; behind
        // the first word there is at least the end.
        let errno = unsafe { raw::exec(program, first.add(1), env) };
        if let (libc::ENOEXEC, true, [shell, name, ..]) = (errno, by_shell, words) {
            shell.set(SHELL.as_ptr());
            name.set(program.as_ptr());
            // SAFETY: as above.
            unsafe { raw::exec(SHELL, first, env) };
            return errno;
        }
        if !looked_up || !NOT_HERE.contains(&errno) {
            return errno;
        }
        // It may be a directory as well, or lie in one that may not be searched.
        if errno == libc::EACCES && raw::is_file(program) {
            why = errno;
        }
    }
    why
}
