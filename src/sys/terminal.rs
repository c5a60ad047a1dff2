//! The terminal that somebody sits at: raw while a session is shown in it, and put back whatever
//! happens (termios(3)).

use std::os::fd::RawFd;
use std::sync::Mutex;

use super::pty;

/// Bytes that are given back to a terminal: about what it holds of a line, see termios(3).
const TYPED_BACK_BYTES: usize = 4_095;

/// The terminal that is to be put back, how it was, and how it is.
static CHANGED: Mutex<Option<(RawFd, libc::termios, libc::termios)>> = Mutex::new(None);

/// How a terminal's keys are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Each key as it is typed, and none of them means anything to the terminal.
    Raw,
    /// As they were, and what is written comes out as it is written.
    Output,
    /// Whole lines, edited and echoed by the terminal; Ctrl-\ is a byte like any other.
    Lines,
}

/// A terminal in another mode, until this is dropped. A panic puts it back too.
pub struct Changed {
    fd: RawFd,
    now: libc::termios,
}

impl std::fmt::Debug for Changed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Changed").field("fd", &self.fd).finish_non_exhaustive()
    }
}

fn put_back() {
    // Whoever panicked while it was locked has not changed it: there is nothing that could.
    let mut changed = CHANGED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some((fd, before, _)) = changed.take() {
        // A terminal that is gone needs nothing.
        let _ = pty::set_modes(fd, &before);
    }
}

/// The terminal that is changed, how it was and how it is; `None` where none is.
fn changed() -> Option<(RawFd, libc::termios, libc::termios)> {
    *CHANGED.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Does something, a stop say, with the terminal as it was; where none is changed, just does it.
pub fn given_back(what: impl FnOnce()) {
    if let Some((fd, before, _)) = changed() {
        // A terminal that is gone needs nothing.
        let _ = pty::set_modes(fd, &before);
    }
    what();
    take_again();
}

/// Changes the terminal once more where it is to be changed: while we were stopped, it was somebody
/// else's.
pub fn take_again() {
    if let Some((fd, _, now)) = changed() {
        // A terminal that is gone says so when it is read.
        let _ = pty::set_modes(fd, &now);
    }
}

impl Changed {
    /// Changes the mode of the terminal behind `fd`; an errno where that can't be done.
    pub fn new(fd: RawFd, keys: Keys) -> Result<Self, i32> {
        let before = pty::modes(fd)?;
        let mut now = before;
        match keys {
            // SAFETY: cfmakeraw changes the termios that it is given.
            Keys::Raw => unsafe { libc::cfmakeraw(&raw mut now) },
            Keys::Output => now.c_oflag &= !libc::OPOST,
            Keys::Lines => now.c_cc[libc::VQUIT] = libc::_POSIX_VDISABLE,
        }
        {
            let mut changed = CHANGED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            *changed = Some((fd, before, now));
        }
        // The place of a panic is still told, on a terminal that can show it.
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            put_back();
            tell(panic);
        }));
        let changed = Self { fd, now };
        pty::set_modes(fd, &now)?;
        Ok(changed)
    }

    /// Changes it once more: while we were stopped, it was somebody else's.
    pub fn again(&self) {
        // A terminal that is gone says so when it is read.
        let _ = pty::set_modes(self.fd, &self.now);
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        put_back();
    }
}

/// Gives bytes that were read from the terminal behind `fd` back to it, for whoever reads it next
/// (TIOCSTI, ioctl_tty(2)), at most [`TYPED_BACK_BYTES`]. Gives how many it has taken: none where
/// the kernel's `dev.tty.legacy_tiocsti` forbids it.
pub fn type_back(fd: RawFd, bytes: &[u8]) -> usize {
    let bytes = &bytes[..bytes.len().min(TYPED_BACK_BYTES)];
    // SAFETY: TIOCSTI reads one byte, which lives through the call.
    let takes =
        |byte: &&u8| unsafe { libc::ioctl(fd, libc::TIOCSTI, std::ptr::from_ref(*byte)) } == 0;
    bytes.iter().take_while(takes).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::pty::Size;
    use std::os::fd::AsRawFd;

    fn modes(fd: RawFd) -> (u32, u32, u32, [u8; 32]) {
        let modes = pty::modes(fd).unwrap();
        (modes.c_iflag, modes.c_oflag, modes.c_lflag, modes.c_cc)
    }

    // One test: there is one terminal to put back in a process.
    /// rule: attach.md, execd attach: The terminal is restored after a panic
    #[test]
    fn the_terminal_is_put_back_when_it_is_dropped_and_when_somebody_panics() {
        let (_master, slave) = pty::open(Size { cols: 80, rows: 24 }).unwrap();
        let fd = slave.as_raw_fd();
        let before = modes(fd);
        for keys in [Keys::Raw, Keys::Output, Keys::Lines] {
            let changed = Changed::new(fd, keys).unwrap();
            assert_ne!(modes(fd), before);
            drop(changed);
            assert_eq!(modes(fd), before);
        }
        let changed = Changed::new(fd, Keys::Raw).unwrap();
        // The hook alone, as where a panic aborts: what is unwound is not dropped here.
        let panicked = std::panic::catch_unwind(|| panic!("for the test"));
        assert!(panicked.is_err());
        assert_eq!(modes(fd), before);
        drop(changed);
        assert_eq!(modes(fd), before);
        let (reader, _writer) = super::super::io::pipe().unwrap();
        assert!(Changed::new(reader.as_raw_fd(), Keys::Raw).is_err(), "a pipe is no terminal");
    }
}
