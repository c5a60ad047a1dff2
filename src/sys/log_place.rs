//! Where logs go: the directory that was asked for, or the user's own in the directory for
//! temporary files. Other users may have put something of theirs at the path of that default; it
//! does not stop execd: logs go to a fresh private directory then, which is remembered beside the
//! control sockets. What lies in the directory is log_files.rs's to say.

use super::log_files::{LogDir, ensure_private_dir, read_ours};
use super::{host, socket};
use std::ffi::OsStr;
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Names beside the default log directory among which one that was made earlier is looked for.
const NAMES_BESIDE: usize = 64 * 1024;

/// Random digits in the name of a log directory that is used in place of the default one.
const RANDOM_NAME_DIGITS: usize = 8;

/// Bytes of the longest path, see PATH_MAX.
const PATH_BYTES: u64 = 4096;

/// The file beside the control sockets that holds the path of the directory used instead.
const REMEMBERED: &str = "log-dir";

/// Which directory logs should go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// This directory and no other (`--log-dir`).
    Given(PathBuf),
    /// This directory, or another where it cannot be had.
    Default(PathBuf),
}

/// The directory that logs go to.
#[derive(Debug)]
pub struct Place {
    /// Held open.
    pub dir: LogDir,
    /// What people are to be told about it.
    pub note: Option<String>,
}

/// Opens the log directory, made where it is absent. Gives a reason for people where it cannot be
/// had. May wait for as long as the disk does.
pub fn find(wanted: &Wanted) -> Result<Place, String> {
    match wanted {
        Wanted::Given(path) => Ok(Place { dir: open(path)?, note: None }),
        Wanted::Default(path) => match open(path) {
            Ok(dir) => Ok(Place { dir, note: None }),
            Err(reason) => instead_of(path, reason),
        },
    }
}

fn open(path: &Path) -> Result<LogDir, String> {
    let real = ensure_private_dir(path)?;
    LogDir::open(&real)
        .map_err(|error| format!("directory {}: cannot be opened ({error})", real.display()))
}

/// Another directory than the default one, which was refused for `reason`.
fn instead_of(path: &Path, reason: String) -> Result<Place, String> {
    let runtime = ensure_private_dir(&socket::directory()).ok();
    let remembered = runtime.as_deref().and_then(read_remembered);
    if let Some(dir) = remembered.filter(|dir| dir.is_dir()).and_then(|dir| open(&dir).ok()) {
        return Ok(Place { dir, note: None });
    }
    // Where nothing can be remembered, the directory that was made last time is there all the same.
    if let Some(dir) = made_earlier(path) {
        return Ok(Place { dir, note: None });
    }
    let Some(fresh) = make_beside(path) else { return Err(reason) };
    let dir = open(&fresh)?;
    if let Some(runtime) = runtime {
        // Where remembering fails, the next execd looks for the directory by its name.
        let _ = remember(&runtime, dir.path());
    }
    let note = format!("log {reason}; logs go to {}", dir.path().display());
    Ok(Place { dir, note: Some(note) })
}

/// The directory that an earlier execd of this user made beside the default one: the first of them
/// by name, should there be several.
fn made_earlier(path: &Path) -> Option<LogDir> {
    let mut prefix = path.file_name()?.as_bytes().to_vec();
    prefix.push(b'-');
    let is_random = |digits: &[u8]| {
        digits.len() == RANDOM_NAME_DIGITS && digits.iter().all(u8::is_ascii_hexdigit)
    };
    let entries = std::fs::read_dir(path.parent()?).ok()?.take(NAMES_BESIDE).flatten();
    let mut ours: Vec<PathBuf> = entries
        .filter(|one| one.file_name().as_bytes().strip_prefix(&*prefix).is_some_and(is_random))
        .map(|one| one.path())
        .collect();
    ours.sort();
    // Directories of other users are refused.
    ours.iter().find_map(|dir| open(dir).ok())
}

fn make_beside(path: &Path) -> Option<PathBuf> {
    let random = host::random_hex();
    let mut name = path.file_name()?.to_owned();
    name.push("-");
    name.push(random.get(..RANDOM_NAME_DIGITS)?);
    let fresh = path.with_file_name(name);
    DirBuilder::new().mode(0o700).create(&fresh).is_ok().then_some(fresh)
}

fn read_remembered(runtime: &Path) -> Option<PathBuf> {
    let bytes = read_ours(&runtime.join(REMEMBERED), PATH_BYTES).ok()?;
    let path = PathBuf::from(OsStr::from_bytes(&bytes));
    path.is_absolute().then_some(path)
}

fn remember(runtime: &Path, dir: &Path) -> std::io::Result<()> {
    let fresh = runtime.join(format!("{REMEMBERED}.{}", host::random_hex()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    // Whole or not at all, for an execd that starts meanwhile.
    let done = file
        .write_all(dir.as_os_str().as_bytes())
        .and_then(|()| std::fs::rename(&fresh, runtime.join(REMEMBERED)));
    if done.is_err() {
        let _ = std::fs::remove_file(&fresh);
    }
    done
}
