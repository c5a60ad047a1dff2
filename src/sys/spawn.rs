//! From clone to exec (architecture.md, Starting a child).
//!
//! The child shares our memory until it execs (CLONE_VM | CLONE_VFORK): making it costs the same
//! however much we hold. It shares our descriptors too, until it takes the few that it needs into a
//! table of its own (src/sys/few_fds.rs), so that it costs the same however many are open.
//! **Everything in [`child_main`] (src/sys/spawn/new_process.rs) must be async-signal-safe**
//! (signal-safety(7)): no allocation, no locks, no formatting, no panics, no `Drop`; all strings
//! and lists are built before. Where sharing memory isn't real (the probe says so), the same
//! child runs in a copy and reports through a pipe (src/sys/spawn/report.rs). So does one that
//! is started [`Plan::apart`]: we stand still while a child shares our memory, and its chdir and
//! exec may hang on a file system that does not answer.

mod new_process;
mod plan;
mod report;
pub mod second_start;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use self::new_process::{Order, child_main};
pub use self::plan::{Announcement, Plan, SpawnError, Step};
pub use self::report::{Began, Starting};
use super::child;
use super::few_fds::{self, Places};
use super::host::FileLimit;
use super::io::{self, errno};
use super::{pidfd, signals};
use crate::pure::process::life::ExitStatus;

/// The child's stack. It needs little: the deepest call is a system call's wrapper.
const STACK_BYTES: usize = 64 * 1024;

/// A started child.
#[derive(Debug)]
pub struct Child {
    /// Its process id; also its session and process group id.
    pub pid: i32,
    /// Its pidfd, close-on-exec.
    pub pidfd: OwnedFd,
    /// Whether it is known that the announcement was written.
    pub announced: bool,
    /// Whether it runs its program already.
    pub began: Began,
}

/// Starts children. Holds what is the same for all of them.
#[derive(Debug)]
pub struct Spawner {
    stack: *mut c_void,
    ignored: Vec<i32>,
    file_limit: FileLimit,
    shares_memory: bool,
    /// Present when children share our descriptors until they take their own.
    places: Option<Places>,
}

impl Spawner {
    /// Prepares starting children with the signal dispositions as they are now. `allow_vfork`
    /// off forces the fallback (fork and an error pipe). Gives an errno when there is no memory
    /// for the stack.
    pub fn new(file_limit: FileLimit, allow_vfork: bool) -> Result<Self, i32> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh anonymous mapping; no existing memory is touched.
        let stack = unsafe { libc::mmap(ptr::null_mut(), STACK_BYTES, protection, flags, -1, 0) };
        if stack == libc::MAP_FAILED {
            return Err(errno());
        }
        let ignored = signals::ignored();
        let mut spawner = Self { stack, ignored, file_limit, shares_memory: false, places: None };
        spawner.shares_memory = allow_vfork && spawner.probe();
        if spawner.shares_memory && !file_limit.is_low() {
            spawner.places = Places::open().filter(|places| spawner.unshares(places));
        }
        Ok(spawner)
    }

    /// Whether children share our memory until they exec.
    pub fn shares_memory(&self) -> bool {
        self.shares_memory
    }

    /// Whether they share our descriptors, and take the few that they need.
    pub fn unshares_files(&self) -> bool {
        self.places.is_some()
    }

    /// Whether a child that shares our descriptors really can take its own.
    fn unshares(&self, places: &Places) -> bool {
        extern "C" fn close_one(fd: *mut c_void) -> c_int {
            // SAFETY: the argument is the RawFd below, alive until the child has ended.
            few_fds::probe(unsafe { *fd.cast::<RawFd>() });
            0
        }
        let first = places.numbers()[0];
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::SIGCHLD;
        let argument = (&raw const first).cast_mut().cast();
        // SAFETY: the stack is ours and large enough, and `first` outlives the child.
        let pid = unsafe { libc::clone(close_one, self.stack_top(), flags, argument) };
        pid > 0 && child::reap_now(pid) == Some(ExitStatus::Code(0)) && places.is_open()
    }

    /// Whether a vfork-style child really shares our memory (it doesn't under some emulators).
    fn probe(&self) -> bool {
        extern "C" fn mark(seen: *mut c_void) -> c_int {
            // SAFETY: the argument is the AtomicI32 below, alive until the child has ended.
            unsafe { &*seen.cast::<AtomicI32>() }.store(1, Ordering::SeqCst);
            0
        }
        let seen = AtomicI32::new(0);
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let argument = (&raw const seen).cast_mut().cast();
        // SAFETY: the stack is ours and large enough, and `seen` outlives the child.
        let pid = unsafe { libc::clone(mark, self.stack_top(), flags, argument) };
        if pid > 0 {
            child::reap_now(pid);
        }
        seen.load(Ordering::SeqCst) == 1
    }

    fn stack_top(&self) -> *mut c_void {
        // SAFETY: one past the end of the mapping, where a stack that grows down begins.
        unsafe { self.stack.add(STACK_BYTES) }
    }

    /// Starts a child and returns when it has exec'ed (or failed to), unless it is started apart.
    /// On failure nothing of it is left.
    pub fn spawn(&self, plan: &Plan<'_>) -> Result<Child, SpawnError> {
        self.spawn_announced(plan, None).map_err(|(failure, _)| failure)
    }

    /// As [`Self::spawn`], with a word of the child about itself. A failure comes with the pid
    /// that was announced for nothing, where there was one.
    pub fn spawn_announced(
        &self,
        plan: &Plan<'_>,
        announcement: Option<Announcement>,
    ) -> Result<Child, (SpawnError, Option<i32>)> {
        let at_clone = |errno| (at_clone(errno), None);
        let pointers = |strings: &[&CStr]| -> Vec<*const c_char> {
            strings.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
        };
        let (mut argv, envp) = (pointers(plan.argv), pointers(plan.envp));
        // Room for the name of a shell before the program's.
        argv.insert(0, ptr::null());
        let words = argv.as_mut_ptr();
        let shares = self.shares_memory && !plan.apart;
        // Who keeps the descriptors that we were handed gets a copy of the whole table.
        let places = self.places.as_ref().filter(|_| shares && !plan.as_given);
        let report = if shares { None } else { Some(io::pipe().map_err(at_clone)?) };
        let order = Order {
            // SAFETY: the place behind the first is in the array: its end is there at the latest.
            argv: unsafe { words.add(1) },
            of_shell: if plan.as_given { words } else { ptr::null_mut() },
            envp: envp.as_ptr(),
            plan,
            ignored: &self.ignored,
            limit: &self.file_limit.original,
            no_signals: signals::empty_set(),
            announcement,
            announced: AtomicBool::new(false),
            places: places.map(Places::numbers),
            parent: super::host::pid(),
            report_fd: AtomicI32::new(report.as_ref().map_or(-1, |(_, end)| end.as_raw_fd())),
            step: AtomicI32::new(0),
            errno: AtomicI32::new(0),
            tried: AtomicI32::new(0),
        };
        let memory = if shares { libc::CLONE_VM | libc::CLONE_VFORK } else { 0 };
        let files = if places.is_some() { libc::CLONE_FILES } else { 0 };
        let argument = (&raw const order).cast_mut().cast();
        // No signal needs blocking around this: we handle none asynchronously, and the ones we
        // read from the signalfd are blocked in the child until its own table is in place.
        let (pid, pidfd) = self.clone_child(memory | files, argument).map_err(at_clone)?;
        if let Some(places) = places {
            places.clear_after(&plan.stdio);
        }
        let began = match report {
            None => order.outcome(),
            Some((read_end, write_end)) => {
                drop(write_end);
                Starting::new(read_end).outcome(plan.apart)
            }
        };
        match began {
            Ok(began) => {
                let announced = order.announced.load(Ordering::SeqCst);
                Ok(Child { pid, pidfd, announced, began })
            }
            Err(failure) => {
                child::reap_now(pid);
                Err((failure, announcement.map(|_| pid)))
            }
        }
    }
}

impl Spawner {
    /// Makes the process, and gives its pid and pidfd. Where clone gives no pidfd (an emulator), it
    /// is opened behind it: the child is ours and not reaped, so its number is its own.
    fn clone_child(&self, flags: c_int, order: *mut c_void) -> Result<(i32, OwnedFd), i32> {
        let mut pidfd: c_int = -1;
        let mut clone = |more: c_int| {
            // SAFETY: the stack is ours, large enough and used by one child at a time (with
            // shared memory we are suspended until it execs or ends, without it uses its copy);
            // the order and all it points to outlive that; the pidfd is written to a live int.
            unsafe {
                libc::clone(
                    child_main,
                    self.stack_top(),
                    flags | more | libc::SIGCHLD,
                    order,
                    &raw mut pidfd,
                )
            }
        };
        let mut pid = clone(libc::CLONE_PIDFD);
        if pid < 0 && errno() == libc::EINVAL {
            pid = clone(0);
        }
        if pid < 0 {
            return Err(errno());
        }
        if pidfd >= 0 {
            // SAFETY: clone made this descriptor for us alone (close-on-exec, clone(2)).
            return Ok((pid, unsafe { OwnedFd::from_raw_fd(pidfd) }));
        }
        match pidfd::open(pid) {
            Ok(pidfd) => Ok((pid, pidfd)),
            Err(errno) => {
                // A process that can be neither watched nor ended safely is no session.
                child::kill_unwatched(pid);
                Err(errno)
            }
        }
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`; no child uses it any more.
        unsafe { libc::munmap(self.stack, STACK_BYTES) };
    }
}

fn at_clone(errno: i32) -> SpawnError {
    SpawnError { step: Step::Clone, errno }
}
