//! Unix sockets: the one that execd listens on, who knocks at it, and the way of its clients to
//! it (unix(7)).

use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::mem::{MaybeUninit, offset_of, size_of};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::io::{Io, done, errno_of, outcome, owned, retried};
use super::log_files::identity;
use super::{clock, host, proc};

/// A socket this old that nobody listens on is no one's who is just starting.
const SOCKET_STALE_AFTER_S: i64 = 10;

/// Sockets looked at in one directory.
const SOCKET_DIR_ENTRIES: usize = 4_096;

/// Bytes of the kernel's list of sockets in which those of execds are looked for.
const SOCKET_LIST_BYTES: u64 = 4 * 1024 * 1024;

/// Connections that wait to be taken, see listen(2).
const SOCKET_BACKLOG_COUNT: usize = 64;

/// The errno of connecting where nobody listens.
pub const NOBODY_LISTENS: i32 = libc::ECONNREFUSED;
/// A listener cannot be where there is a file already, or another that listens.
pub const IN_USE: i32 = libc::EADDRINUSE;
/// What the file's permissions refuse.
pub const NOT_ALLOWED: i32 = libc::EACCES;

/// How a socket's file is named: the process id before it.
const ENDING: &str = ".sock";

/// A socket that is listened on. Its file goes when this is dropped.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    path: PathBuf,
    /// Device and number of the file, so that no other is removed in its place.
    file: Option<(u64, u64)>,
}

/// Somebody who connected.
#[derive(Debug)]
pub struct Knock {
    /// The connection.
    pub fd: OwnedFd,
    /// Whose process it is.
    pub uid: u32,
}

fn address(path: &Path) -> Result<(libc::sockaddr_un, libc::socklen_t), i32> {
    let bytes = path.as_os_str().as_bytes();
    // SAFETY: all zero is a valid sockaddr_un.
    let mut address: libc::sockaddr_un = unsafe { MaybeUninit::zeroed().assume_init() };
    // One byte stays for the NUL.
    if bytes.is_empty() || bytes.len() >= address.sun_path.len() || bytes.contains(&0) {
        return Err(libc::ENAMETOOLONG);
    }
    address.sun_family = libc::sa_family_t::try_from(libc::AF_UNIX).unwrap_or_default();
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        // Signed on some machines, unsigned on others.
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    let length = offset_of!(libc::sockaddr_un, sun_path) + bytes.len() + 1;
    Ok((address, libc::socklen_t::try_from(length).unwrap_or_default()))
}

fn stream_socket() -> Result<OwnedFd, i32> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: socket takes three numbers.
    owned(unsafe { libc::socket(libc::AF_UNIX, kind, 0) })
}

/// Connects to the socket at `path`, without waiting: a non-blocking connection, or an errno.
pub fn connect(path: &Path) -> Result<OwnedFd, i32> {
    let (address, length) = address(path)?;
    let fd = stream_socket()?;
    let at = (&raw const address).cast();
    // SAFETY: a live address and its length.
    retried(|| unsafe { libc::connect(fd.as_raw_fd(), at, length) as isize })?;
    Ok(fd)
}

/// Whether the file at `path` is a socket that nobody listens on.
pub fn is_abandoned(path: &Path) -> bool {
    let socket = path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket());
    socket && connect(path).err() == Some(libc::ECONNREFUSED)
}

impl Listener {
    /// Listens at `path`; only our own user may connect. What an execd that is gone left there
    /// is replaced. Gives an errno.
    pub fn bind(path: &Path) -> Result<Self, i32> {
        let (address, length) = address(path)?;
        let fd = stream_socket()?;
        // The file gets the socket's own mode: there is no moment in which it is open to others.
        // SAFETY: fchmod takes two numbers.
        done(unsafe { libc::fchmod(fd.as_raw_fd(), 0o600) })?;
        let at = (&raw const address).cast();
        // SAFETY: a live address and its length.
        let bind = || done(unsafe { libc::bind(fd.as_raw_fd(), at, length) });
        match bind() {
            Err(IN_USE) if is_abandoned(path) => {
                fs::remove_file(path).map_err(errno_of)?;
                bind()?;
            }
            bound => bound?,
        }
        let found = path.symlink_metadata().ok();
        if found.as_ref().is_some_and(|found| found.mode() & 0o7777 != 0o600) {
            // A strange umask has taken bits away from us.
            let mode = fs::Permissions::from_mode(0o600);
            fs::set_permissions(path, mode).map_err(errno_of)?;
        }
        let file = found.as_ref().map(identity);
        let listener = Self { fd, path: path.to_owned(), file };
        let backlog = i32::try_from(SOCKET_BACKLOG_COUNT).unwrap_or(i32::MAX);
        // SAFETY: listen takes two numbers.
        done(unsafe { libc::listen(listener.fd(), backlog) })?;
        Ok(listener)
    }

    /// The descriptor, for the poll.
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next connection, where somebody has knocked; an errno when it cannot be taken now.
    pub fn accept(&self) -> Result<Option<Knock>, i32> {
        let none = std::ptr::null_mut();
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: the peer's address is not asked for.
        let accepted = owned(unsafe { libc::accept4(self.fd(), none, none.cast(), flags) });
        match accepted {
            Ok(fd) => {
                // A peer that cannot be asked for is nobody of ours.
                let uid = peer_uid(&fd).unwrap_or(u32::MAX);
                Ok(Some(Knock { fd, uid }))
            }
            // A peer that has hung up again meanwhile is no error of ours.
            Err(libc::EAGAIN | libc::EINTR | libc::ECONNABORTED) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let found = self.path.symlink_metadata().ok().as_ref().map(identity);
        if found.is_some() && found == self.file {
            // A file that stays is found abandoned by the next execd that starts.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The user of the process at the other end (SO_PEERCRED): who connected, or who listens, as it
/// was then.
pub fn peer_uid(fd: &OwnedFd) -> Result<u32, i32> {
    let mut who = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).unwrap_or_default();
    let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    let place = (&raw mut who).cast();
    // SAFETY: a live ucred and its length.
    let got = unsafe { libc::getsockopt(fd.as_raw_fd(), level, option, place, &raw mut length) };
    done(got).map(|()| who.uid)
}

/// Sends what fits at once; a peer that is gone is told by the outcome, not by a signal.
pub fn send(fd: &impl AsRawFd, bytes: &[u8]) -> Io {
    if bytes.is_empty() {
        return Io::WouldBlock;
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the pointer and the length are those of a live slice.
    let call = || unsafe { libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
    outcome(retried(call), Io::WouldBlock)
}

/// The directory in which execds of this user put their sockets: in $XDG_RUNTIME_DIR where that is
/// a directory of ours, else in /tmp.
pub fn directory() -> PathBuf {
    directories().swap_remove(0)
}

/// That directory, and the one in /tmp.
fn directories() -> Vec<PathBuf> {
    directories_for(host::variable("XDG_RUNTIME_DIR").map(PathBuf::from))
}

/// The same for this value of XDG_RUNTIME_DIR.
pub(super) fn directories_for(given: Option<PathBuf>) -> Vec<PathBuf> {
    let uid = host::uid();
    let ours = |dir: &PathBuf| {
        dir.is_absolute()
            && fs::metadata(dir).is_ok_and(|found| found.is_dir() && found.uid() == uid)
    };
    // The kernel takes no longer paths for sockets.
    let room = |dir: &PathBuf| {
        let longest = dir.join("execd").join(name_of(i32::MAX));
        address(&longest).is_ok()
    };
    let given = given.filter(|dir| ours(dir) && room(dir));
    let runtime = given.map(|dir| dir.join("execd"));
    runtime.into_iter().chain([PathBuf::from(format!("/tmp/execd-{uid}"))]).collect()
}

/// Where to look for this user's execds: in all places where one may have put its socket, as
/// far as they are ours. Whoever else could make them could listen to what is typed. Beside them:
/// those that are ours, but open to others.
pub fn places() -> (Vec<PathBuf>, Vec<PathBuf>) {
    let unset = host::variable("XDG_RUNTIME_DIR").is_none_or(|dir| dir.is_empty());
    // Under cron and su it is unset: execds that have it are found by what is listened on.
    ours_of(if unset { listened_in() } else { Vec::new() })
}

/// The same of all users, for root: nobody else could connect.
pub fn places_of_all() -> (Vec<PathBuf>, Vec<PathBuf>) {
    let entries = |dir: &str| {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.take(SOCKET_DIR_ENTRIES).map(|entry| entry.path())
    };
    let of_tmp =
        |dir: &PathBuf| dir.file_name().is_some_and(|name| name.as_bytes().starts_with(b"execd-"));
    let runtime = entries("/run/user").map(|dir| dir.join("execd"));
    let mut all: Vec<PathBuf> = runtime.chain(entries("/tmp").filter(of_tmp)).collect();
    all.extend(directories());
    all.extend(listened_in());
    private_first(all, |_| true)
}

/// Whose socket this is.
pub fn owner(path: &Path) -> Option<u32> {
    path.symlink_metadata().ok().map(|found| found.uid())
}

/// Of the usual directories and `more` those that are ours: first those that nobody else may enter,
/// then the others.
fn ours_of(more: Vec<PathBuf>) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let uid = host::uid();
    let mut all = directories();
    // Where $XDG_RUNTIME_DIR mostly is, should it not be set here.
    all.push(PathBuf::from(format!("/run/user/{uid}/execd")));
    all.extend(more);
    private_first(all, |owner| owner == uid)
}

/// The directories of these whose owner fits: first those that nobody else may enter.
fn private_first(
    mut all: Vec<PathBuf>,
    fits: impl Fn(u32) -> bool,
) -> (Vec<PathBuf>, Vec<PathBuf>) {
    all.sort();
    all.dedup();
    let ours = |dir: &PathBuf| {
        dir.symlink_metadata().is_ok_and(|found| found.is_dir() && fits(found.uid()))
    };
    let private = |dir: &PathBuf| dir.metadata().is_ok_and(|found| found.mode() & 0o077 == 0);
    all.into_iter().filter(ours).partition(private)
}

/// The directories in which somebody listens on a socket that is named like an execd's
/// (/proc/net/unix, a bounded part of it).
fn listened_in() -> Vec<PathBuf> {
    let mut list = Vec::new();
    // Without /proc the usual places are all there is.
    let file = fs::File::open("/proc/net/unix");
    let _ = file.and_then(|file| file.take(SOCKET_LIST_BYTES).read_to_end(&mut list));
    list.split(|byte| *byte == b'\n').filter_map(directory_of_listed).collect()
}

/// The directory in a line of /proc/net/unix: number, references, protocol, flags, type, state,
/// inode, path.
fn directory_of_listed(line: &[u8]) -> Option<PathBuf> {
    const LISTENS: &[u8] = b"00010000";
    let at = memchr::memchr(b'/', line)?;
    let (fields, path) = line.split_at(at);
    let flags = fields.split(|byte| *byte == b' ').filter(|field| !field.is_empty()).nth(3)?;
    let path = Path::new(OsStr::from_bytes(path));
    let dir = path.parent()?;
    let name = dir.file_name()?.as_bytes();
    let fits = name == b"execd" || name.starts_with(b"execd-");
    (flags == LISTENS && fits && pid_in_name(path).is_some()).then(|| dir.to_owned())
}

/// The name of the socket of a process.
pub fn name_of(pid: i32) -> String {
    format!("{pid}{ENDING}")
}

/// A second name, for where processes of another pid namespace have the first.
pub fn other_name_of(pid: i32, instance: &str) -> String {
    format!("{pid}-{instance}{ENDING}")
}

/// The process id in the name of a socket.
pub fn pid_in_name(path: &Path) -> Option<i32> {
    let name = path.file_name()?.to_str()?.strip_suffix(ENDING)?;
    let digits = name.split_once('-').map_or(name, |(pid, _)| pid);
    digits.parse().ok().filter(|pid| *pid > 0)
}

/// The sockets in a directory, a bounded number, by their process ids.
pub fn in_directory(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().take(SOCKET_DIR_ENTRIES);
    let sockets = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()));
    let mut found: Vec<(i32, PathBuf)> =
        sockets.filter_map(|one| Some((pid_in_name(&one.path())?, one.path()))).collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// Removes the sockets of processes that are gone from a directory of ours.
pub fn remove_stale(dir: &Path) {
    for path in in_directory(dir) {
        // Between bind and listen a living one looks abandoned too, for a moment.
        let gone = pid_in_name(&path).is_none_or(|pid| proc::session_of(pid).is_none());
        if (gone || is_old(&path)) && is_abandoned(&path) {
            let _ = fs::remove_file(&path);
        }
    }
}

fn is_old(path: &Path) -> bool {
    let made_s = path.symlink_metadata().map_or(i64::MAX, |found| found.mtime());
    made_s.saturating_add(SOCKET_STALE_AFTER_S) <= clock::wall_ms() / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rule: attach.md, Several clients: `execd ls` finds execds whose runtime directory the caller
    ///   does not know, refuses directories open to others, checks who listens
    #[test]
    fn sockets_of_execds_are_found_in_the_kernels_list() {
        let line = |flags: &str, path: &str| {
            let line = format!("0000000000000000: 00000002 00000000 {flags} 0001 01 34567 {path}");
            directory_of_listed(line.as_bytes())
        };
        let found = |dir: &str| Some(PathBuf::from(dir));
        assert_eq!(line("00010000", "/home/me/run/execd/12.sock"), found("/home/me/run/execd"));
        assert_eq!(line("00010000", "/tmp/execd-7/12-ab.sock"), found("/tmp/execd-7"));
        assert_eq!(line("00000000", "/home/me/run/execd/12.sock"), None, "a connection to it");
        for path in ["/tmp/execd/other.sock", "/tmp/mine/12.sock", "@/execd/x", "", "/12.sock"] {
            assert_eq!(line("00010000", path), None, "{path}");
        }
        assert_eq!(directory_of_listed(b"Num       RefCount Protocol Flags    Type St"), None);
    }
}
