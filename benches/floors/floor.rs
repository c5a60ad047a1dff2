//! The least that the kernel asks for: what execd is measured against, in the same program.

use std::ffi::{CString, c_char};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use super::client::until_readable;

/// Bytes read at a time from a bare PTY: as execd does.
const READ_BYTES: usize = 64 * 1024;

/// posix_spawn and waitpid, from call to return.
pub fn spawn(program: &str, arguments: &[&str]) -> Duration {
    let program = CString::new(program).unwrap();
    let strings: Vec<CString> =
        arguments.iter().map(|argument| CString::new(*argument).unwrap()).collect();
    let mut argv: Vec<*mut c_char> = strings.iter().map(|text| text.as_ptr().cast_mut()).collect();
    argv.push(std::ptr::null_mut());
    let mut pid = 0;
    let begun = Instant::now();
    // SAFETY: null-terminated arrays of live C strings; no actions, no attributes.
    let errno = unsafe {
        libc::posix_spawn(
            &raw mut pid,
            program.as_ptr(),
            std::ptr::null(),
            std::ptr::null(),
            argv.as_ptr(),
            environ(),
        )
    };
    assert_eq!(errno, 0, "posix_spawn");
    wait(pid);
    begun.elapsed()
}

fn environ() -> *const *mut c_char {
    unsafe extern "C" {
        static environ: *const *mut c_char;
    }
    // SAFETY: the C library's list; this program never changes its environment.
    unsafe { environ }
}

fn wait(pid: i32) {
    let mut status = 0;
    // SAFETY: a live int; our own child.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert_eq!(status, 0, "the floor's child failed");
}

/// A PTY with a child on it and nobody else.
pub struct Pty {
    master: File,
    pid: i32,
}

impl Pty {
    /// Starts `bash -c cmd` on a fresh PTY.
    pub fn start(cmd: &str) -> Self {
        let strings = ["bash", "-c", cmd].map(|text| CString::new(text).unwrap());
        let mut argv: Vec<*const c_char> = strings.iter().map(|text| text.as_ptr()).collect();
        argv.push(std::ptr::null());
        let mut master = -1;
        let size = libc::winsize { ws_row: 30, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        let (none, no_modes) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: a live int and size; this program has one thread, so the child may exec.
        let pid =
            unsafe { libc::forkpty(&raw mut master, none, no_modes, (&raw const size).cast_mut()) };
        assert!(pid >= 0, "forkpty");
        if pid == 0 {
            // SAFETY: a null-terminated array of live C strings; _exit runs no handlers.
            unsafe {
                libc::execvp(argv[0], argv.as_ptr());
                libc::_exit(127);
            }
        }
        // SAFETY: forkpty made it for us alone.
        let master = File::from(unsafe { OwnedFd::from_raw_fd(master) });
        Self { master, pid }
    }

    /// Copies everything into a file until the child has ended.
    pub fn copy_to(mut self, path: &Path) {
        let mut file = File::create(path).unwrap();
        let mut buffer = vec![0; READ_BYTES];
        // A master says EIO when the last slave is closed.
        while let Ok(count @ 1..) = self.master.read(&mut buffer) {
            file.write_all(&buffer[..count]).unwrap();
        }
        wait(std::mem::take(&mut self.pid));
    }

    /// Writes a byte; the time until something comes back.
    pub fn echo(&mut self, byte: u8) -> Duration {
        let begun = Instant::now();
        self.master.write_all(&[byte]).unwrap();
        until_readable(self.master.as_raw_fd());
        let mut buffer = [0; 256];
        let count = self.master.read(&mut buffer).unwrap();
        let time = begun.elapsed();
        assert!(buffer[..count].contains(&byte));
        time
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        if self.pid > 0 {
            // SAFETY: our own child, not reaped yet.
            unsafe {
                libc::kill(self.pid, libc::SIGKILL);
                libc::waitpid(self.pid, std::ptr::null_mut(), 0);
            }
        }
    }
}

/// A timerfd armed for `delay`, waited for as the client waits for a reply: how late it was.
pub fn timer_lateness(delay: Duration) -> Duration {
    // SAFETY: no preconditions.
    let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
    // SAFETY: made for us alone.
    let timer = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let tv_nsec = i64::from(delay.subsec_nanos());
    let tv_sec = i64::try_from(delay.as_secs()).unwrap();
    let spec = libc::itimerspec { it_interval: zero, it_value: libc::timespec { tv_sec, tv_nsec } };
    let begun = Instant::now();
    // SAFETY: a live spec; the old one is not asked for.
    unsafe { libc::timerfd_settime(fd, 0, &raw const spec, std::ptr::null_mut()) };
    until_readable(timer.as_raw_fd());
    begun.elapsed().saturating_sub(delay)
}
