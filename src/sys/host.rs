//! Facts about this process and its surroundings, and the settings made once at start.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::OnceLock;

use super::io::done;

/// Below so many file descriptors execd holds none that only spare work, and `execd run` has no
/// control socket.
const FDS_LOW: u64 = 32;

/// Our process id.
pub fn pid() -> i32 {
    // SAFETY: getpid has no preconditions.
    unsafe { libc::getpid() }
}

/// The process that this one is a child of.
pub fn parent_pid() -> i32 {
    // SAFETY: getppid has no preconditions.
    unsafe { libc::getppid() }
}

/// Our effective user id.
pub fn uid() -> u32 {
    // SAFETY: geteuid has no preconditions.
    unsafe { libc::geteuid() }
}

/// The limit of open files as execd was started with it: children get it back.
#[derive(Clone, Copy, Debug)]
pub struct FileLimit {
    pub(super) original: libc::rlimit,
    /// Descriptors that may be open after raising.
    pub raised: u64,
}

/// Blocks of this size and more are the allocator's to give back at once.
#[cfg(target_env = "gnu")]
const GIVEN_BACK_BYTES: i32 = 128 * 1024;

/// Has the allocator give large buffers back to the system as soon as they are freed. Left to
/// itself glibc raises the threshold with the first large buffer that is freed, and what many
/// full sessions held would stay with us (mallopt(3), M_MMAP_THRESHOLD).
pub fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    for setting in [libc::M_MMAP_THRESHOLD, libc::M_TRIM_THRESHOLD] {
        // SAFETY: mallopt takes two numbers; no other thread exists yet.
        unsafe { libc::mallopt(setting, GIVEN_BACK_BYTES) };
    }
}

/// Where our own program is: in /proc, and where /proc is of no use the path by which it was
/// started, from the directory in which we were then (AT_EXECFN, getauxval(3)).
pub fn own_programs() -> &'static [&'static CStr] {
    static OWN: OnceLock<[&CStr; 2]> = OnceLock::new();
    OWN.get_or_init(|| {
        // SAFETY: the kernel's string, which is there for as long as this process.
        let given = unsafe { CStr::from_ptr(libc::getauxval(libc::AT_EXECFN) as *const _) };
        if given.to_bytes().starts_with(b"/") {
            return [c"/proc/self/exe", given];
        }
        let path = current_dir().join(OsStr::from_bytes(given.to_bytes()));
        let path = CString::new(path.into_os_string().into_vec()).unwrap_or_default();
        [c"/proc/self/exe", Box::leak(path.into_boxed_c_str())]
    })
}

/// Has ps and top show `comm` as our name, at most 15 bytes (PR_SET_NAME, prctl(2)): who was
/// started through /proc/self/exe is called "exe" there.
pub fn be_called(comm: &CStr) {
    // SAFETY: PR_SET_NAME copies from a live string.
    unsafe { libc::prctl(libc::PR_SET_NAME, comm.as_ptr()) };
}

/// The limit of open files as it is; none that can be had is a limit of 0.
pub fn file_limit() -> FileLimit {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit writes the rlimit that it is given.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    FileLimit { original: limit, raised: limit.rlim_cur }
}

impl FileLimit {
    /// Whether there are so few descriptors that execd does without those that only spare work.
    pub fn is_low(&self) -> bool {
        self.original.rlim_max < FDS_LOW
    }
}

/// Raises the soft limit of open files to the hard one (architecture.md, Starting a child).
pub fn raise_file_limit() -> FileLimit {
    let now = file_limit();
    let raised = libc::rlimit { rlim_cur: now.original.rlim_max, ..now.original };
    if raised.rlim_cur == 0 {
        return now;
    }
    // SAFETY: setrlimit reads a live rlimit.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0;
    FileLimit { raised: if set { raised.rlim_cur } else { now.raised }, ..now }
}

/// Makes orphans of our sessions our children (PR_SET_CHILD_SUBREAPER, prctl(2)).
pub fn become_subreaper() -> Result<(), i32> {
    // SAFETY: this prctl takes its arguments by value.
    done(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) })
}

/// Sixteen hexadecimal digits from getrandom(2); from the clock and pid where that fails.
pub fn random_hex() -> String {
    let mut bytes = [0; 8];
    // SAFETY: the pointer and the length are those of a live array.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got != 8 {
        bytes = (super::clock::now_ns() ^ (u64::from(pid().unsigned_abs()) << 40)).to_ne_bytes();
    }
    format!("{:016x}", u64::from_ne_bytes(bytes))
}

/// The environment, in the order given.
pub fn environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// The value of one environment variable.
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// The current directory; what the kernel calls it when it has been deleted, which is no place:
/// what is relative to it is not found, rather than found in another directory.
pub fn current_dir() -> PathBuf {
    let deleted = |_| std::fs::read_link("/proc/self/cwd");
    std::env::current_dir().or_else(deleted).unwrap_or_else(|_| PathBuf::from("/ (deleted)"))
}

/// Where logs go unless --log-dir names another place: `$TMPDIR/pi-execd-<uid>`.
pub fn default_log_dir() -> PathBuf {
    log_dir_in(temp_dir())
}

/// The same where this is the directory for temporary files.
pub fn log_dir_in(temp_dir: PathBuf) -> PathBuf {
    temp_dir.join(format!("pi-execd-{}", uid()))
}

/// The directory for temporary files: $TMPDIR, and /tmp where that is unset or empty (an empty
/// path would be the current directory).
pub fn temp_dir() -> PathBuf {
    let given = variable("TMPDIR").filter(|dir| !dir.is_empty());
    given.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
}
