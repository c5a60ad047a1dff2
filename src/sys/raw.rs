//! System calls without the C library, for a new process that shares our memory until its exec
//! (src/sys/spawn.rs): the C library's own calls write errno, and the new process would write ours.
//! Each gives what the kernel gave, or the errno. Everything here is async-signal-safe.

use std::arch::asm;
use std::ffi::{CStr, c_char, c_long};
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::ptr;

/// Bytes of the kernel's set of signals.
const KERNEL_SET_BYTES: usize = 8;
/// How often an interrupted write is tried again.
const EINTR_TRIES: usize = 64;

/// The kernel's sigaction: the handler, then flags, restorer and mask, all zero without a handler.
type KernelAction = [usize; 4];

/// A set of all signals, as the kernel has it.
pub(super) const ALL_SIGNALS: u64 = u64::MAX;

/// A set of none.
pub(super) const NO_SIGNALS: u64 = 0;

/// One system call.
///
/// # Safety
/// The caller answers for what the call does: pointers among its arguments point at memory that the
/// kernel may read and write as the call has it.
#[cfg(target_arch = "x86_64")]
unsafe fn call(number: c_long, [a, b, c, d, e]: [usize; 5]) -> c_long {
    let result: c_long;
    // SAFETY: the kernel keeps all registers but these three; what the call does is the caller's
    // to answer for.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// One system call.
///
/// # Safety
/// The caller answers for what the call does: pointers among its arguments point at memory that the
/// kernel may read and write as the call has it.
#[cfg(target_arch = "aarch64")]
unsafe fn call(number: c_long, [a, b, c, d, e]: [usize; 5]) -> c_long {
    let result: c_long;
    // SAFETY: the kernel keeps all registers but the first; what the call does is the caller's to
    // answer for.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => result,
            in("x1") b,
            in("x2") c,
            in("x3") d,
            in("x4") e,
            options(nostack),
        );
    }
    result
}

/// A number of the kernel's as it goes into a register.
#[allow(clippy::cast_sign_loss)] // The register has the same bits.
fn word(number: i32) -> usize {
    number as isize as usize
}

/// What the kernel gave: the negative results of these calls are errnos.
fn outcome(result: c_long) -> Result<usize, i32> {
    match usize::try_from(result) {
        Ok(value) => Ok(value),
        Err(_) => Err(i32::try_from(result.unsigned_abs()).unwrap_or(libc::EINVAL)),
    }
}

/// write(2) of a record that a pipe takes whole or not at all; whether it did.
pub(super) fn write_whole(fd: RawFd, record: &[u8]) -> bool {
    for _ in 0..EINTR_TRIES {
        let words = [word(fd), record.as_ptr().expose_provenance(), record.len(), 0, 0];
        // SAFETY: the pointer and the length are those of a live slice.
        match outcome(unsafe { call(libc::SYS_write, words) }) {
            Err(libc::EINTR) => {}
            written => return written == Ok(record.len()),
        }
    }
    false
}

/// getpid(2).
pub(super) fn pid() -> i32 {
    // SAFETY: no preconditions.
    let pid = unsafe { call(libc::SYS_getpid, [0; 5]) };
    i32::try_from(pid).unwrap_or(0)
}

/// getppid(2).
pub(super) fn parent_pid() -> i32 {
    // SAFETY: no preconditions.
    let pid = unsafe { call(libc::SYS_getppid, [0; 5]) };
    i32::try_from(pid).unwrap_or(0)
}

/// setsid(2).
pub(super) fn lead_session() -> Result<(), i32> {
    // SAFETY: no preconditions.
    outcome(unsafe { call(libc::SYS_setsid, [0; 5]) }).map(drop)
}

/// Leads a process group from here on (setpgid(2)).
pub(super) fn lead_group() -> Result<(), i32> {
    // SAFETY: takes two numbers: 0 is this process, and its own number.
    outcome(unsafe { call(libc::SYS_setpgid, [0; 5]) }).map(drop)
}

/// Takes the terminal of this slave as the controlling one (TIOCSCTTY, ioctl_tty(2)).
pub(super) fn take_terminal(slave: RawFd) -> Result<(), i32> {
    let request = usize::try_from(libc::TIOCSCTTY).unwrap_or(0);
    // SAFETY: TIOCSCTTY takes its argument by value.
    outcome(unsafe { call(libc::SYS_ioctl, [word(slave), request, 0, 0, 0]) }).map(drop)
}

/// dup3(2); `flags` is 0 or O_CLOEXEC. A descriptor that has its place already stays as it is.
pub(super) fn put_fd(fd: RawFd, place: RawFd, flags: i32) -> Result<(), i32> {
    if fd == place {
        return Ok(());
    }
    // SAFETY: plain descriptor numbers.
    outcome(unsafe { call(libc::SYS_dup3, [word(fd), word(place), word(flags), 0, 0]) }).map(drop)
}

/// close(2).
pub(super) fn close(fd: RawFd) {
    // SAFETY: a descriptor of the calling process's own table.
    unsafe { call(libc::SYS_close, [word(fd), 0, 0, 0, 0]) };
}

/// close_range(2) from this descriptor on. An older kernel leaves them to exec, which closes them.
pub(super) fn close_from(first: RawFd) {
    // SAFETY: descriptors of the calling process's own table.
    unsafe { call(libc::SYS_close_range, [word(first), u32::MAX as usize, 0, 0, 0]) };
}

/// Sets SIG_DFL or SIG_IGN as the action of `signal`.
pub(super) fn set_action(signal: i32, action: libc::sighandler_t) {
    let action: KernelAction = [action, 0, 0, 0];
    let place = (&raw const action).expose_provenance();
    // SAFETY: neither of both needs a handler; an invalid number is refused without effect.
    unsafe { call(libc::SYS_rt_sigaction, [word(signal), place, 0, KERNEL_SET_BYTES, 0]) };
}

/// Blocks these signals and no others; gives those that were blocked.
pub(super) fn set_mask(mask: u64) -> u64 {
    let mut before: u64 = 0;
    let (new, old) = ((&raw const mask).expose_provenance(), (&raw mut before).expose_provenance());
    let words = [word(libc::SIG_SETMASK), new, old, KERNEL_SET_BYTES, 0];
    // SAFETY: two live sets.
    unsafe { call(libc::SYS_rt_sigprocmask, words) };
    before
}

/// Sets both limits of open files of the calling process (prlimit(2)).
pub(super) fn set_file_limit(limit: &libc::rlimit64) {
    let words = [0, libc::RLIMIT_NOFILE as usize, ptr::from_ref(limit).expose_provenance(), 0, 0];
    // SAFETY: a live limit; the former one is not asked for.
    unsafe { call(libc::SYS_prlimit64, words) };
}

/// Has the kernel kill the calling process when its parent ends (PR_SET_PDEATHSIG).
pub(super) fn die_with_parent() {
    let words = [word(libc::PR_SET_PDEATHSIG), word(libc::SIGKILL), 0, 0, 0];
    // SAFETY: this prctl takes its arguments by value.
    unsafe { call(libc::SYS_prctl, words) };
}

/// chdir(2).
pub(super) fn enter(dir: &CStr) -> Result<(), i32> {
    // SAFETY: a live C string.
    outcome(unsafe { call(libc::SYS_chdir, [dir.as_ptr().expose_provenance(), 0, 0, 0, 0]) })
        .map(drop)
}

/// Whether this is a file.
pub(super) fn is_file(path: &CStr) -> bool {
    let mut facts = MaybeUninit::<libc::stat>::zeroed();
    let place = facts.as_mut_ptr().expose_provenance();
    let words = [word(libc::AT_FDCWD), path.as_ptr().expose_provenance(), place, 0, 0];
    // SAFETY: a live C string and a live stat, which the kernel and the C library lay out alike.
    if outcome(unsafe { call(libc::SYS_newfstatat, words) }).is_err() {
        return false;
    }
    // SAFETY: the kernel has filled it in.
    let facts = unsafe { facts.assume_init() };
    facts.st_mode & libc::S_IFMT == libc::S_IFREG
}

/// execve(2); gives the errno when it comes back.
///
/// # Safety
/// Both arrays end with a null pointer, and all pointers before that are to live C strings.
pub(super) unsafe fn exec(
    program: &CStr,
    argv: *const *const c_char,
    envp: *const *const c_char,
) -> i32 {
    let words = [
        program.as_ptr().expose_provenance(),
        argv.expose_provenance(),
        envp.expose_provenance(),
        0,
        0,
    ];
    // SAFETY: a live C string, and what the caller promises.
    outcome(unsafe { call(libc::SYS_execve, words) }).err().unwrap_or(0)
}

/// _exit(2).
pub(super) fn exit(status: i32) -> ! {
    loop {
        // SAFETY: no handlers of ours are run.
        unsafe { call(libc::SYS_exit_group, [word(status), 0, 0, 0, 0]) };
    }
}
