//! From clone to exec (architecture.md, Starting a child).
//!
//! The child shares our memory until it execs (CLONE_VM): making it costs the same however much we
//! hold. We do not wait for it (no CLONE_VFORK): its working directory or its program may lie on a
//! file system that never answers. So it has a stack of its own, and all that it reads is kept in
//! place until it has left our memory. A pipe that exec closes tells that, and why the program
//! could not be started ([`Starting`]). The child has a copy of our table of descriptors, and
//! closes what it does not need before it touches a file.

mod child;
mod plan;

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use self::child::{Order, REPORT_BYTES, Treated, child_main};
pub use self::plan::{Announcement, Leads, Plan, SpawnError, Step, path_of, places_of};
use super::host::{self, FileLimit};
use super::io::{self, Io, errno};
use super::{child as children, pidfd, poll, raw, signals};

/// The child's stack. It needs little: the deepest call is a system call.
const STACK_BYTES: usize = 64 * 1024;
/// What lies below it and may not be touched: the largest page of the systems that execd is built
/// for.
const GUARD_BYTES: usize = 64 * 1024;
/// Set where valgrind runs us (tests/it/growth.rs), which aborts a program that clones so.
const UNDER_VALGRIND: &str = "EXECD_UNDER_VALGRIND";
/// Stacks that are kept for the next starts.
const SPARE_STACKS: usize = 16;

/// A child.
#[derive(Debug)]
pub struct Child {
    /// Its process id; also its session and process group id, unless it joins ours.
    pub pid: i32,
    /// Its pidfd, close-on-exec.
    pub pidfd: OwnedFd,
}

/// Memory that a child runs on until it execs.
#[derive(Debug)]
struct Stack(*mut c_void);

impl Stack {
    fn new() -> Result<Self, i32> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        let (bytes, usable) = (GUARD_BYTES + STACK_BYTES, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: a fresh anonymous mapping; no existing memory is touched.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(errno());
        }
        let stack = Self(start);
        // SAFETY: the upper part of the mapping that was just made.
        let done = unsafe { libc::mprotect(start.add(GUARD_BYTES), STACK_BYTES, usable) };
        if done < 0 { Err(errno()) } else { Ok(stack) }
    }

    /// Where a stack that grows down begins.
    fn top(&self) -> *mut c_void {
        // SAFETY: one past the end of the mapping.
        unsafe { self.0.add(GUARD_BYTES + STACK_BYTES) }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`; no child uses it any more.
        unsafe { libc::munmap(self.0, GUARD_BYTES + STACK_BYTES) };
    }
}

/// Stacks that no child runs on.
type SpareStacks = Rc<RefCell<Vec<Stack>>>;

/// Starts children. Holds what is the same for all of them.
#[derive(Debug)]
pub struct Spawner {
    /// Off: children run in a copy of our memory.
    shares_memory: bool,
    treated: Treated,
    limit: libc::rlimit64,
    spare: SpareStacks,
}

/// A child on its way to its program. Where this is dropped while the child may still use our
/// memory, that memory stays as it is: such a child cannot be ended, so there are few.
#[derive(Debug)]
pub struct Starting {
    report: OwnedFd,
    failure: Option<SpawnError>,
    /// What the child uses until it execs.
    used: Option<(Rc<Order>, Stack)>,
    spare: SpareStacks,
}

/// What has become of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// Whether the announcement was written, or there was none.
    pub announced: bool,
    /// The number of the program that the child runs, where that is known; else why it could not be
    /// started. A child that was killed on its way tells so by its end.
    pub outcome: Result<Option<usize>, SpawnError>,
}

impl Spawner {
    /// Prepares starting children with the signal dispositions as they are now.
    pub fn new(file_limit: FileLimit) -> Self {
        let treated =
            Treated { ignored: signals::ignored().into(), handled: signals::handled().into() };
        let libc::rlimit { rlim_cur, rlim_max } = file_limit.original;
        let limit = libc::rlimit64 { rlim_cur, rlim_max };
        let shares_memory = host::variable(UNDER_VALGRIND).is_none();
        Self { shares_memory, treated, limit, spare: SpareStacks::default() }
    }

    /// Starts a child and returns at once. On failure there is no child.
    pub fn begin(
        &self,
        plan: Plan,
        announcement: Option<Announcement>,
    ) -> Result<(Child, Starting), SpawnError> {
        let (report, theirs) = io::nonblocking_pipe().map_err(at_clone)?;
        let spare = self.spare.borrow_mut().pop();
        let stack = spare.map_or_else(Stack::new, Ok).map_err(at_clone)?;
        let common = (self.treated.clone(), self.limit);
        let order = Rc::new(Order::new(plan, announcement, common, theirs.as_raw_fd()));
        let made = clone_child(&stack, &order, theirs, self.shares_memory);
        let used = Some((order, stack));
        let mut starting = Starting { report, failure: None, used, spare: Rc::clone(&self.spare) };
        match made {
            Ok(child) => Ok((child, starting)),
            Err(errno) => {
                starting.give_back();
                Err(at_clone(errno))
            }
        }
    }

    /// Starts a program of our own, and waits until it runs or could not be started. On failure
    /// nothing of it is left.
    pub fn spawn(&self, plan: Plan) -> Result<Child, SpawnError> {
        let (child, mut starting) = self.begin(plan, None)?;
        loop {
            poll::is_readable(starting.fd(), None);
            let Some(started) = starting.look() else { continue };
            return match started.outcome {
                Ok(_) => Ok(child),
                Err(failure) => {
                    children::reap_now(child.pid);
                    Err(failure)
                }
            };
        }
    }
}

impl Starting {
    /// The descriptor that becomes readable when there is an outcome.
    pub fn fd(&self) -> RawFd {
        self.report.as_raw_fd()
    }

    /// What has become of the start, once: `None` while the child is on its way.
    pub fn look(&mut self) -> Option<Started> {
        let mut report = [0; REPORT_BYTES];
        // The pipe is closed when the child has left our memory, not with its report.
        while let Io::Moved(_) = self.read(&mut report)? {
            let (step, errno) = report.split_at(REPORT_BYTES / 2);
            let number = |half: &[u8]| half.try_into().map_or(0, i32::from_ne_bytes);
            let (step, errno) = (Step::from_code(number(step)), number(errno));
            self.failure = Some(SpawnError { step, errno });
        }
        let order = Rc::clone(&self.used.as_ref()?.0);
        let announced = order.has_announced();
        let tried = order.tried.load(Ordering::SeqCst);
        self.give_back();
        let outcome = self.failure.map_or_else(|| Ok(usize::try_from(tried).ok()), Err);
        Some(Started { announced, outcome })
    }

    fn read(&self, report: &mut [u8]) -> Option<Io> {
        match io::read(self.fd(), report) {
            Io::WouldBlock => None,
            read => Some(read),
        }
    }

    /// No child uses this memory any more.
    fn give_back(&mut self) {
        let Some((_, stack)) = self.used.take() else { return };
        let mut spare = self.spare.borrow_mut();
        if spare.len() < SPARE_STACKS {
            spare.push(stack);
        }
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if self.used.is_some() && self.look().is_none() {
            let _stays = ManuallyDrop::new(self.used.take());
        }
    }
}

/// Makes the process, and gives its pid and pidfd. Where no descriptor is left for the pidfd, it
/// gets that of `theirs`, the child's end of the report pipe, once the child has a copy of that.
/// qemu-user refuses both flags: there the child runs in a copy of our memory. In both cases its
/// pidfd is opened behind it. It is ours and not reaped, so its number is its own.
fn clone_child(
    stack: &Stack,
    order: &Rc<Order>,
    theirs: OwnedFd,
    shares: bool,
) -> Result<Child, i32> {
    let mut pidfd: c_int = -1;
    let argument = Rc::as_ptr(order).cast_mut().cast::<c_void>();
    let mut clone = |flags: c_int| {
        // SAFETY: the stack is used by this child alone, and it and the order are kept until the
        // child has left our memory; the pidfd is written to a live int.
        unsafe {
            libc::clone(child_main, stack.top(), flags | libc::SIGCHLD, argument, &raw mut pidfd)
        }
    };
    // No handler of ours may run in the child, on memory that it shares.
    let mask = raw::set_mask(raw::ALL_SIGNALS);
    let memory = if shares { libc::CLONE_VM } else { 0 };
    let mut pid = clone(memory | libc::CLONE_PIDFD);
    if pid < 0 {
        pid = match errno() {
            libc::EINVAL => clone(0),
            libc::EMFILE => clone(memory),
            _ => pid,
        };
    }
    let why = errno();
    raw::set_mask(mask);
    drop(theirs);
    if pid < 0 {
        return Err(why);
    }
    if pidfd >= 0 {
        // SAFETY: clone made this descriptor for us alone (close-on-exec, clone(2)).
        return Ok(Child { pid, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } });
    }
    pidfd::open(pid).map(|pidfd| Child { pid, pidfd }).inspect_err(|_| {
        // A process that can be neither watched nor ended safely is no session.
        children::kill_unwatched(pid);
    })
}

fn at_clone(errno: i32) -> SpawnError {
    SpawnError { step: Step::Clone, errno }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::process::life::ExitStatus;

    fn plan(programs: &[&str], words: &[&str], cwd: Option<&str>) -> Plan {
        let c_string = |text: &str| std::ffi::CString::new(text).unwrap();
        let null = [0, 1, 2];
        let words = words.iter().copied().map(c_string).collect();
        Plan {
            programs: programs.iter().copied().map(c_string).collect(),
            cwd: cwd.map(c_string),
            ..Plan::of_execd(words, vec![], null)
        }
    }

    fn end_of(plan: Plan) -> (Started, Option<ExitStatus>) {
        let spawner = Spawner::new(host::file_limit());
        let (child, mut starting) = spawner.begin(plan, None).unwrap();
        let started = loop {
            poll::is_readable(starting.fd(), None);
            if let Some(started) = starting.look() {
                break started;
            }
        };
        (started, children::reap_now(child.pid))
    }

    #[test]
    fn the_program_that_runs_and_the_step_that_failed_are_told() {
        let sh = ["sh", "-c", "exit 3"];
        let (started, end) = end_of(plan(&["/nowhere/sh", "/bin/sh"], &sh, Some("/")));
        assert_eq!((started.outcome, end), (Ok(Some(1)), Some(ExitStatus::Code(3))));
        let failure = |step, errno| Err(SpawnError { step, errno });
        let (started, end) = end_of(plan(&["/nowhere/sh"], &sh, None));
        assert_eq!(started.outcome, failure(Step::Exec, libc::ENOENT));
        assert_eq!(end, Some(ExitStatus::Code(127)));
        let (started, _) = end_of(plan(&["/bin/sh"], &sh, Some("/nowhere")));
        assert_eq!(started.outcome, failure(Step::Chdir, libc::ENOENT));
    }

    #[test]
    fn many_starts_at_once_keep_few_stacks() {
        let spawner = Spawner::new(host::file_limit());
        let begin = || spawner.begin(plan(&["/bin/true"], &["true"], None), None).unwrap();
        let mut all: Vec<_> = (0..256).map(|_| begin()).collect();
        for (child, starting) in &mut all {
            poll::is_readable(starting.fd(), None);
            assert_eq!(starting.look().unwrap().outcome, Ok(Some(0)));
            assert!(starting.look().is_none(), "an outcome is told once");
            assert_eq!(children::reap_now(child.pid), Some(ExitStatus::Code(0)));
        }
        assert_eq!(spawner.spare.borrow().len(), SPARE_STACKS);
    }
}
