//! Pseudo-terminals, opened and sized, and the modes of any terminal (pty(7), termios(3),
//! ioctl_tty(2)). Which modes a terminal is to have, the callers decide.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::io::{done, owned};
use super::poll;
use crate::pure::terminal::line::LineChars;
use crate::pure::until::Echo;

/// A size in character cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
}

/// Opens a PTY of this size, with IUTF8 set: (master, slave), both close-on-exec, the master
/// non-blocking. Gives an errno on failure; nothing is left open then.
pub fn open(size: Size) -> Result<(OwnedFd, OwnedFd), i32> {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: the path is a C string literal.
    let master = unsafe { libc::open(c"/dev/ptmx".as_ptr(), flags | libc::O_NONBLOCK) };
    let master = owned(master)?;
    let unlocked: libc::c_int = 0;
    // SAFETY: TIOCSPTLCK reads one int.
    done(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlocked) })?;
    set_size(master.as_raw_fd(), size)?;
    // TIOCGPTPEER needs no path: it works whatever is mounted on /dev/pts here.
    // SAFETY: TIOCGPTPEER takes the open flags by value and returns a descriptor.
    let slave = owned(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCGPTPEER, flags) })?;
    let mut modes = modes(slave.as_raw_fd())?;
    modes.c_iflag |= libc::IUTF8;
    set_modes(slave.as_raw_fd(), &modes)?;
    Ok((master, slave))
}

/// Whether the terminal has input that a program could read now and has not. What was written to
/// the master reaches the terminal by a worker of the kernel, late on a busy machine: poll(2) on
/// the other end takes it there first (n_tty_poll of Linux). False where that end can't be opened.
pub fn has_input(master: RawFd) -> bool {
    let flags = libc::O_RDONLY | libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: TIOCGPTPEER takes the open flags by value and returns a descriptor.
    let slave = owned(unsafe { libc::ioctl(master, libc::TIOCGPTPEER, flags) });
    slave.is_ok_and(|slave| poll::is_readable(slave.as_raw_fd(), Some(0)))
}

/// The modes of the terminal behind `fd`; an errno where it is none.
pub(super) fn modes(fd: RawFd) -> Result<libc::termios, i32> {
    let mut modes = MaybeUninit::<libc::termios>::zeroed();
    // SAFETY: tcgetattr writes the termios it is given.
    done(unsafe { libc::tcgetattr(fd, modes.as_mut_ptr()) })?;
    // SAFETY: filled in by the call above.
    Ok(unsafe { modes.assume_init() })
}

/// Sets the modes of the terminal behind `fd` at once; gives an errno.
pub(super) fn set_modes(fd: RawFd, modes: &libc::termios) -> Result<(), i32> {
    // SAFETY: a live termios.
    done(unsafe { libc::tcsetattr(fd, libc::TCSANOW, std::ptr::from_ref(modes)) })
}

/// Sets the size; the foreground group gets SIGWINCH when it changed. Gives an errno.
pub fn set_size(master: RawFd, size: Size) -> Result<(), i32> {
    let size = libc::winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCSWINSZ reads one winsize.
    done(unsafe { libc::ioctl(master, libc::TIOCSWINSZ, &raw const size) })
}

/// The line discipline's special characters when the terminal is in canonical mode; `None`
/// when it is not (or cannot be asked). The master answers for the slave (termios(3)).
pub fn canonical_mode(master: RawFd) -> Option<LineChars> {
    let modes = modes(master).ok()?;
    if modes.c_lflag & libc::ICANON == 0 {
        return None;
    }
    let has = |flag| modes.c_iflag & flag != 0;
    Some(LineChars {
        eof: modes.c_cc[libc::VEOF],
        eol: modes.c_cc[libc::VEOL],
        eol2: modes.c_cc[libc::VEOL2],
        kill: modes.c_cc[libc::VKILL],
        erase: modes.c_cc[libc::VERASE],
        icrnl: has(libc::ICRNL),
        inlcr: has(libc::INLCR),
        igncr: has(libc::IGNCR),
        isig: modes.c_lflag & libc::ISIG != 0,
        intr: modes.c_cc[libc::VINTR],
        quit: modes.c_cc[libc::VQUIT],
        susp: modes.c_cc[libc::VSUSP],
    })
}

/// What a terminal does with each byte that is written to its master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoFlags {
    /// ICANON: it hands over whole lines.
    pub canonical: bool,
    /// ECHO: it gives the byte back.
    pub echo: bool,
}

/// The flags of the terminal behind `master`; `None` where it cannot be asked.
pub fn echo_flags(master: RawFd) -> Option<EchoFlags> {
    let flags = modes(master).ok()?.c_lflag;
    Some(EchoFlags { canonical: flags & libc::ICANON != 0, echo: flags & libc::ECHO != 0 })
}

/// What becomes of input that is written to the master: whether the terminal gives it back itself,
/// or the program, which reads each key, may.
pub fn echo(master: RawFd) -> Echo {
    match echo_flags(master) {
        Some(EchoFlags { canonical: false, .. }) => Echo::Program,
        Some(EchoFlags { echo: true, .. }) => Echo::Terminal,
        _ => Echo::Nothing,
    }
}

/// The size of our own terminal: of the first of stdout, stdin and stderr that is one.
pub fn own_size() -> Option<Size> {
    [1, 0, 2].into_iter().find_map(size_of)
}

/// Gives the terminal behind `slave` the modes of the one behind `ours`, where that is one: the
/// keys that edit a line and end it stay those that people know.
pub fn like(slave: RawFd, ours: RawFd) {
    if let Ok(modes) = modes(ours) {
        // A refusal leaves the modes that every new terminal has.
        let _ = set_modes(slave, &modes);
    }
}

/// The size of the terminal behind `fd`, where it is one and has a size.
pub fn size_of(fd: RawFd) -> Option<Size> {
    let mut size = MaybeUninit::<libc::winsize>::zeroed();
    // SAFETY: TIOCGWINSZ writes one winsize.
    done(unsafe { libc::ioctl(fd, libc::TIOCGWINSZ, size.as_mut_ptr()) }).ok()?;
    // SAFETY: zeroed is a valid value, and the kernel filled it in.
    let size = unsafe { size.assume_init() };
    (size.ws_col > 0 && size.ws_row > 0).then_some(Size { cols: size.ws_col, rows: size.ws_row })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::io::{self, Io};

    /// rule: waits.md, Impossible: input that the program has not read keeps a wait open
    #[test]
    fn input_is_there_as_soon_as_it_is_written_and_until_it_is_read() {
        let (master, slave) = open(Size { cols: 80, rows: 24 }).expect("a terminal");
        let (master, slave) = (master.as_raw_fd(), slave.as_raw_fd());
        for round in 0..200 {
            assert!(!has_input(master), "{round}");
            assert!(matches!(io::write(master, b"half "), Io::Moved(5)));
            // The program gets whole lines: half of one unblocks nobody.
            assert!(!has_input(master), "{round}");
            assert!(matches!(io::write(master, b"a line\n"), Io::Moved(7)));
            assert!(has_input(master), "{round}: the terminal has it at once");
            assert!(matches!(io::read(slave, &mut [0; 64]), Io::Moved(12)));
        }
    }
}
