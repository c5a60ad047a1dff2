//! The second half of a start in two steps: execd's own program, started in place of the one that
//! is meant (`Plan::twofold`), has made ready what that one needs, and becomes it. How far it is
//! goes on the same pipe as before.

use std::ffi::{CString, c_char};
use std::ptr;

use super::new_process::{REPORT_FD, exec_first};
use super::plan::{SpawnError, Step};
use super::report::{self, Report};
use crate::sys::signals;

/// The pipe is closed by exec again, and not before: what is started meanwhile has no part in it.
pub fn begin() {
    // SAFETY: a plain descriptor number; where nobody has left a pipe there, nothing happens.
    unsafe { libc::fcntl(REPORT_FD, libc::F_SETFD, libc::FD_CLOEXEC) };
}

/// Tells that what the program needs could not be made ready; stderr has the reason.
pub fn fail() {
    report::send(REPORT_FD, Report::Failed(SpawnError { step: Step::Surroundings, errno: 0 }));
}

/// Becomes the first of the programs that can be started, with these words and this environment;
/// `looked_up`: see `Plan`. Comes back where none can, and has told so.
pub fn become_program(programs: &[CString], looked_up: bool, words: &[CString], env: &[CString]) {
    let pointers = |strings: &[CString]| -> Vec<*const c_char> {
        strings.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
    };
    let (argv, envp) = (pointers(words), pointers(env));
    // What a Rust program ignores is ignored by whatever it becomes.
    signals::set_default(libc::SIGPIPE);
    let tell = |number| report::send(REPORT_FD, Report::Tries(number));
    let programs = programs.iter().map(CString::as_c_str);
    let errno =
        exec_first(programs, looked_up, (argv.as_ptr(), envp.as_ptr()), ptr::null_mut(), tell);
    report::send(REPORT_FD, Report::Failed(SpawnError { step: Step::Exec, errno }));
}
