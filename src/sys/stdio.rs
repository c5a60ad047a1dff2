//! stdin and stdout of whatever kind, read and written without ever blocking the loop and
//! without leaving O_NONBLOCK on a description that the parent's shell uses too
//! (protocol.md, How execd ends).

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::clock;
use super::io::{self, Io, done, outcome, owned, retried};
use super::poll::{self, Watch};
use super::socket;
use crate::limits::NS_PER_MS;

/// What the kernel gives a pipe at a time.
const PIPE_PAGE_BYTES: usize = 4096;

/// How a descriptor is moved without blocking.
#[derive(Debug)]
enum Way {
    /// A pipe: RWF_NOWAIT per call (preadv2(2)).
    NoWait,
    /// A socket: MSG_DONTWAIT per call.
    Socket,
    /// A terminal opened anew: a description of our own, with O_NONBLOCK.
    Own(OwnedFd),
    /// O_NONBLOCK set on the inherited description; these flags are given back at the end.
    Borrowed(i32),
    /// A regular file, /dev/null and the like: always ready, and epoll refuses it.
    Always,
}

/// One of execd's own standard descriptors.
#[derive(Debug)]
pub struct Channel {
    fd: RawFd,
    way: Way,
    terminal: bool,
    /// Keeps a connection of our own open.
    _connection: Option<Rc<OwnedFd>>,
}

fn facts_of(fd: RawFd) -> Result<libc::stat, i32> {
    let mut facts = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: fstat writes the stat that it is given.
    done(unsafe { libc::fstat(fd, facts.as_mut_ptr()) })?;
    // SAFETY: filled in by the call above.
    Ok(unsafe { facts.assume_init() })
}

fn kind_of(fd: RawFd) -> Result<u32, i32> {
    Ok(facts_of(fd)?.st_mode & libc::S_IFMT)
}

/// Which of descriptors 0 to 2 were closed when the program began, a bit each.
static CLOSED_AT_START: AtomicU8 = AtomicU8::new(0);

/// Notes which standard descriptors are closed, before Rust's runtime opens /dev/null for them.
extern "C" fn note_closed() {
    for fd in 0..3 {
        // SAFETY: fcntl with integer arguments.
        let refused = unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1;
        // A filter may refuse the question of a descriptor that is open.
        if refused && std::io::Error::last_os_error().raw_os_error() == Some(libc::EBADF) {
            CLOSED_AT_START.fetch_or(1 << fd, Ordering::Relaxed);
        }
    }
}

// The C library runs these before main.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_CLOSED: extern "C" fn() = note_closed;

/// Whether a standard descriptor was closed when the program began: what is written to it now goes
/// to /dev/null.
pub fn was_closed(fd: RawFd) -> bool {
    CLOSED_AT_START.load(Ordering::Relaxed) & (1 << fd) != 0
}

/// Whether two descriptors are the same pipe, socket, terminal or file, so that the order of what
/// is written to both can be seen.
pub fn are_same(one: RawFd, other: RawFd) -> bool {
    let place = |fd| facts_of(fd).ok().map(|facts| (facts.st_dev, facts.st_ino));
    place(one).is_some() && place(one) == place(other)
}

/// Whether `fd` is a terminal.
pub fn is_terminal(fd: RawFd) -> bool {
    // SAFETY: isatty only asks.
    unsafe { libc::isatty(fd) == 1 }
}

/// Opens the terminal behind `fd` once more, non-blocking.
fn reopen(fd: RawFd, access: i32) -> Result<OwnedFd, i32> {
    let path = format!("/proc/self/fd/{fd}\0");
    let flags = access | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: the path ends with a NUL.
    let opened = owned(unsafe { libc::open(path.as_ptr().cast(), flags) });
    // SAFETY: both only ask.
    let ours = || unsafe { libc::tcgetsid(fd) == libc::getsid(0) };
    match opened {
        // After su(1), say: the terminal is another user's, but ours by a name that all may open.
        // SAFETY: a C string literal.
        Err(_) if ours() => owned(unsafe { libc::open(c"/dev/tty".as_ptr(), flags) }),
        opened => opened,
    }
}

impl Channel {
    /// Looks at `fd` (0 or 1) and chooses the way to move its bytes. Gives an errno when the
    /// descriptor is not open or cannot be made non-blocking.
    pub fn open(fd: RawFd) -> Result<Self, i32> {
        let terminal = is_terminal(fd);
        let access = if fd == 0 { libc::O_RDONLY } else { libc::O_WRONLY };
        let way = match kind_of(fd)? {
            libc::S_IFIFO => Way::NoWait,
            libc::S_IFSOCK => Way::Socket,
            libc::S_IFCHR if terminal => match reopen(fd, access) {
                Ok(own) => Way::Own(own),
                // The terminal is another user's and another session's, and can't be opened.
                Err(_) => Way::Borrowed(io::set_nonblocking(fd)?),
            },
            _ => Way::Always,
        };
        Ok(Self { fd, way, terminal, _connection: None })
    }

    /// One direction of a connection of our own; it is closed with its last channel.
    pub fn of_connection(connection: Rc<OwnedFd>) -> Self {
        let fd = connection.as_raw_fd();
        Self { fd, way: Way::Socket, terminal: false, _connection: Some(connection) }
    }

    /// The descriptor for the poll; `None` for one that is always ready.
    pub fn poll_fd(&self) -> Option<RawFd> {
        match &self.way {
            Way::Own(own) => Some(own.as_raw_fd()),
            Way::Always => None,
            Way::NoWait | Way::Socket | Way::Borrowed(_) => Some(self.fd),
        }
    }

    /// Says that the poll refused the descriptor (EPERM): it counts as always ready.
    pub fn always_ready(&mut self) {
        self.give_back();
        self.way = Way::Always;
    }

    /// How many bytes lie in it that nobody has read; 0 where that cannot be told.
    pub fn unread(&self) -> usize {
        io::unread(self.fd)
    }

    /// Whether who writes to it may find no room while so much lies in it. A pipe is full with
    /// half its bytes at worst, for two writes share a page only where both fit; of all else it
    /// cannot be told.
    pub fn may_be_full(&self, unread: usize) -> bool {
        // SAFETY: fcntl with integer arguments.
        let room = unsafe { libc::fcntl(self.fd, libc::F_GETPIPE_SZ) };
        usize::try_from(room).map_or(unread > 0, |room| unread + PIPE_PAGE_BYTES >= room / 2)
    }

    /// Whether this is a pipe.
    pub fn is_pipe(&self) -> bool {
        kind_of(self.fd) == Ok(libc::S_IFIFO)
    }

    /// Whether this is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Reads what is there.
    pub fn read(&mut self, buffer: &mut [u8]) -> Io {
        let (at, len) = (buffer.as_mut_ptr().cast(), buffer.len());
        let part = libc::iovec { iov_base: at, iov_len: len };
        let fd = self.fd;
        let moved = match &self.way {
            Way::NoWait => retried(|| {
                // SAFETY: one live iovec over a writable slice; offset -1 means the stream itself.
                unsafe { libc::preadv2(fd, &raw const part, 1, -1, libc::RWF_NOWAIT) }
            }),
            // SAFETY: a live, writable slice.
            Way::Socket => retried(|| unsafe { libc::recv(fd, at, len, libc::MSG_DONTWAIT) }),
            Way::Own(own) => return io::read(own.as_raw_fd(), buffer),
            Way::Borrowed(_) | Way::Always => return io::read(fd, buffer),
        };
        match moved {
            Err(errno) if self.cannot_nowait(errno) => io::read(fd, buffer),
            moved => outcome(moved, Io::Ended),
        }
    }

    /// Writes what fits.
    pub fn write(&mut self, bytes: &[u8]) -> Io {
        let (at, len) = (bytes.as_ptr(), bytes.len());
        let part = libc::iovec { iov_base: at.cast_mut().cast(), iov_len: len };
        let fd = self.fd;
        let moved = match &self.way {
            Way::NoWait => retried(|| {
                // SAFETY: one live iovec over a slice that is only read.
                unsafe { libc::pwritev2(fd, &raw const part, 1, -1, libc::RWF_NOWAIT) }
            }),
            Way::Socket => return socket::send(&fd, bytes),
            Way::Own(own) => return io::write(own.as_raw_fd(), bytes),
            Way::Borrowed(_) | Way::Always => return io::write(fd, bytes),
        };
        match moved {
            Err(errno) if self.cannot_nowait(errno) => io::write(fd, bytes),
            moved => outcome(moved, Io::WouldBlock),
        }
    }

    /// Writes all of it, and waits for room for as long as this in all; what nobody takes until
    /// then is not written.
    pub fn write_within(&mut self, bytes: &[u8], most_ms: u64) {
        let until_ns = clock::now_ns() + most_ms * NS_PER_MS;
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.write(rest) {
                Io::Moved(bytes) => rest = &rest[bytes.min(rest.len())..],
                Io::WouldBlock if clock::now_ns() < until_ns => {
                    let fd = self.poll_fd().unwrap_or(self.fd);
                    poll::wait_for(&mut [Watch::new(fd, false, true)], Some(until_ns));
                }
                Io::WouldBlock | Io::Ended | Io::HungUp | Io::Failed(_) => return,
            }
        }
    }

    /// An old kernel or a named pipe of some file system knows no RWF_NOWAIT: from now on the
    /// flag is set on the description. True when that was done and the call should be repeated.
    fn cannot_nowait(&mut self, errno: i32) -> bool {
        if !matches!(errno, libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL)
            || !matches!(self.way, Way::NoWait)
        {
            return false;
        }
        match io::set_nonblocking(self.fd) {
            Ok(flags) => {
                self.way = Way::Borrowed(flags);
                true
            }
            Err(_) => false,
        }
    }

    /// Gives the inherited description its flags back, where they were changed.
    fn give_back(&mut self) {
        if let Way::Borrowed(flags) = self.way {
            // SAFETY: fcntl with integer arguments.
            unsafe { libc::fcntl(self.fd, libc::F_SETFL, flags) };
        }
    }
}

/// Says something to people on stderr, as far as that takes it within this time. Who waits there
/// longer would wait for ever where nobody reads: stderr may be the pipe of stdout, and be full.
pub fn tell_people(what: &str, most_ms: u64) {
    // stderr is for people: one that can't be written to is their own affair.
    if let Ok(mut stderr) = Channel::open(libc::STDERR_FILENO) {
        stderr.write_within(format!("execd: {what}\n").as_bytes(), most_ms);
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.give_back();
    }
}
