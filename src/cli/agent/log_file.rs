//! The file of `execd agent --log`: the log of the run, under a name that was asked for. execd
//! writes the log in a directory of its own beside that file; the log gets the file's name when the
//! run is over, so that nothing is copied, and a disk that is slow holds up the log alone.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::limits::{LAST_FLUSH_MS, NS_PER_MS};
use crate::sys::{clock, host, poll};

/// Milliseconds between two looks of `execd agent --log` at a log that is still written.
const AGENT_LOG_LOOK_MS: u64 = 20;

/// What a file may that only its owner reads.
const OWNERS: u32 = 0o600;

/// The file, and the directory in which execd writes the log.
#[derive(Debug)]
pub struct LogFile {
    /// Where the log is to be: absolute, without symlinks.
    path: PathBuf,
    dir: PathBuf,
    state: State,
}

/// What has become of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has its own name alone.
    Open,
    /// It has the file's name too.
    Placed,
    /// It could not be given that name, and stays where execd has written it.
    Refused,
}

impl LogFile {
    /// Makes the file, empty, and the directory. Gives a reason for people.
    pub fn create(wanted: &Path) -> Result<Self, String> {
        let made = Self::beside(wanted)?;
        // What an earlier run has left there is not this run's.
        let emptied = OpenOptions::new().write(true).truncate(true).open(&made.path);
        emptied.map_err(|error| format!("--log {}: {error}", wanted.display()))?;
        Ok(made)
    }

    /// Makes the file where there is none, and the directory; what the file has stays until the log
    /// takes its place. Gives a reason for people.
    pub fn beside(wanted: &Path) -> Result<Self, String> {
        let refused = |why: &str| format!("--log {}: {why}", wanted.display());
        let system = |error: io::Error| refused(&error.to_string());
        let existed = match fs::metadata(wanted) {
            Ok(found) if found.is_file() => true,
            Ok(_) => return Err(refused("it is no regular file: name another")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(system(error)),
        };
        let file = OpenOptions::new().create(true).write(true).mode(OWNERS).open(wanted);
        drop(file.map_err(system)?);
        let path = wanted.canonicalize().map_err(system)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let random = host::random_hex();
        let dir = path.with_file_name(format!(".{name}.execd-{}", random.get(..8).unwrap_or("0")));
        if let Err(error) = DirBuilder::new().mode(0o700).create(&dir) {
            if !existed {
                // The refusal leaves nothing behind.
                let _ = fs::remove_file(&path);
            }
            return Err(refused(&format!("its directory takes no new files: {error}")));
        }
        Ok(Self { path, dir, state: State::Open })
    }

    /// The directory for execd's logs.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where the log is to be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the log the file's name; the log keeps its own too, by which execd knows it. Gives a
    /// reason for people.
    pub fn place(&mut self, log: &Path) -> Result<(), String> {
        let beside = self.dir.join("placed");
        let placed = fs::hard_link(log, &beside).and_then(|()| fs::rename(&beside, &self.path));
        self.state = if placed.is_ok() { State::Placed } else { State::Refused };
        placed.map_err(|error| {
            let (path, log) = (self.path.display(), log.display());
            format!("the log could not be put at {path} ({error}): it is at {log}")
        })
    }

    /// When the execd of the run has ended: places a log that was not there before, and takes the
    /// directory away. `expected`: pi was started, so that there is a log; `session`: the run's,
    /// where it was told. Gives what people should know.
    pub fn finish(mut self, expected: bool, session: Option<u64>) -> Option<String> {
        if self.state == State::Open && expected {
            let log = session.and_then(|session| within_time(|| self.log_of(session)));
            let Some(log) = log else {
                let dir = self.dir.display();
                return Some(format!("the log is not written yet (a slow disk): look in {dir}"));
            };
            if let Err(reason) = self.place(&log) {
                return Some(reason);
            }
        }
        if self.state == State::Placed && within_time(|| is_done(&self.path)).is_none() {
            let path = self.path.display();
            return Some(format!("{path} is still being written: the disk is slow"));
        }
        if self.state != State::Refused {
            self.remove_dir();
        }
        None
    }

    /// Takes the directory away, with what execd has written there. An agent directory of pi that
    /// is kept stays in it.
    fn remove_dir(&self) {
        // What cannot be removed is in nobody's way.
        let names = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        for entry in names.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file())) {
            let _ = fs::remove_file(entry.path());
        }
        let _ = fs::remove_dir(&self.dir);
    }

    /// The log of a session, by its name.
    fn log_of(&self, session: u64) -> Option<PathBuf> {
        let head = format!("execd-{session}-");
        let names = fs::read_dir(&self.dir).ok()?.flatten().map(|entry| entry.file_name());
        let is_ours = |name: &OsString| {
            name.to_str().is_some_and(|name| name.starts_with(&head) && name.ends_with(".log"))
        };
        names.into_iter().find(is_ours).map(|name| self.dir.join(name))
    }
}

/// What is there within LAST_FLUSH_MS.
fn within_time<T>(look: impl Fn() -> Option<T>) -> Option<T> {
    let until_ns = clock::now_ns() + LAST_FLUSH_MS * NS_PER_MS;
    loop {
        let found = look();
        if found.is_some() || clock::now_ns() >= until_ns {
            return found;
        }
        poll::pause(AGENT_LOG_LOOK_MS);
    }
}

/// Whether nobody writes a log any more: whoever does holds a lock on it.
fn is_done(log: &Path) -> Option<()> {
    let file = File::open(log).ok();
    let locked = file.map(|file| matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)));
    (locked != Some(true)).then_some(())
}
