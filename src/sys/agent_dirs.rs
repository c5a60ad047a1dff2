//! Agent directories of pi that are one run's alone, and files for long prompts (agent.md,
//! Isolation and How pi is called): made and removed by the process that runs pi, for a disk may
//! hang. All of them lie in one private directory. Whoever uses one holds a lock on it (on a prompt
//! a shared one), which is gone with the last who has it, however that ends: what nobody has locked
//! is left over.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::io::{EIO, ENOENT};
use super::log_files::{ensure_private_dir, identity};
use super::{host, socket};

/// Names that are tried for an agent directory or a prompt before there is none.
const AGENT_DIR_TRIES: usize = 1_024;

/// Names in an agent directory that are linked to, and in the place of all of them that are looked
/// at.
const AGENT_DIR_NAMES: usize = 4_096;

/// Bytes of a file of the agent directory that a run's own directory has a copy of.
const AGENT_DIR_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// The directory that all of it is in, beside the control sockets.
const PLACE: &str = "pi";
/// A directory of a run; behind it stands a number.
const DIR_PREFIX: &str = "agent-";
/// A file with a prompt; behind it stands what its text is known by.
const PROMPT_PREFIX: &str = "prompt-";
/// One that is being written.
const FRESH_PREFIX: &str = "fresh-";
const PROMPT_ENDING: &str = ".md";

/// Where they may be: beside the control sockets of an execd with this XDG_RUNTIME_DIR, else beside
/// its logs, with this directory for temporary files.
pub fn places(runtime_dir: Option<PathBuf>, temp_dir: PathBuf) -> Vec<PathBuf> {
    let sockets = socket::directories_for(runtime_dir).into_iter().take(1);
    sockets.chain([host::log_dir_in(temp_dir)]).map(|dir| dir.join(PLACE)).collect()
}

/// Where those of this process's environment are.
fn our_places() -> Vec<PathBuf> {
    places(host::variable("XDG_RUNTIME_DIR").map(PathBuf::from), host::temp_dir())
}

/// The first of these that can be had, made where it is absent. Gives a reason for people else.
fn place(places: &[PathBuf]) -> Result<PathBuf, String> {
    let mut reason = "there is no place for it".to_owned();
    for place in places {
        let made = place.parent().map_or(Ok(PathBuf::new()), ensure_private_dir);
        match made.and_then(|_| ensure_private_dir(place)) {
            Ok(dir) => return Ok(dir),
            Err(why) => reason = why,
        }
    }
    Err(reason)
}

fn says(path: &Path) -> impl Fn(std::io::Error) -> String + '_ {
    move |error| format!("{}: {error}", path.display())
}

fn open(path: &Path, flags: i32) -> std::io::Result<File> {
    let flags = flags | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Whether the path leads to this very file, which is ours.
fn is_ours_at(file: &File, path: &Path) -> bool {
    let (held, named) = (file.metadata().ok(), path.symlink_metadata().ok());
    let ours = held.as_ref().is_some_and(|held| held.uid() == host::uid());
    ours && held.as_ref().map(identity) == named.as_ref().map(identity)
}

/// Makes an agent directory, which is locked for as long as the file that is given with it is open.
/// It has the first number that is free: what pi tells the model of it is mostly the same from run
/// to run.
pub fn make(places: &[PathBuf]) -> Result<(PathBuf, File), String> {
    let place = place(places)?;
    for number in 0..AGENT_DIR_TRIES {
        let path = place.join(format!("{DIR_PREFIX}{number}"));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(says(&path)(error)),
        }
        // Whoever removes what is left over may have been faster, and another run may have made the
        // directory anew since: one of the two has it.
        let Ok(dir) = open(&path, libc::O_DIRECTORY) else { continue };
        if dir.try_lock().is_ok() && is_ours_at(&dir, &path) {
            return Ok((path, dir));
        }
    }
    Err(format!("{}: {AGENT_DIR_TRIES} agent directories are there already", place.display()))
}

/// Makes an agent directory that is kept.
pub fn make_kept(path: &Path) -> Result<(), String> {
    DirBuilder::new().mode(0o700).create(path).map_err(says(path))
}

/// The content of a file; None where there is none. Errors: it cannot be read, or is longer than
/// AGENT_DIR_FILE_BYTES.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = match opened {
        Err(error) if errno_of_ref(&error) == ENOENT => return Ok(None),
        opened => opened.map_err(says(path))?,
    };
    let mut bytes = Vec::new();
    file.take(AGENT_DIR_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(says(path))?;
    if bytes.len() as u64 > AGENT_DIR_FILE_BYTES {
        return Err(format!("{}: longer than {AGENT_DIR_FILE_BYTES} bytes", path.display()));
    }
    Ok(Some(bytes))
}

fn errno_of_ref(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(EIO)
}

/// Writes a new file that only its owner may read.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(bytes)).map_err(says(path))
}

/// Makes `path` a symbolic link to `target`, whether that is there or not.
pub fn link(path: &Path, target: &Path) -> Result<(), String> {
    std::os::unix::fs::symlink(target, path).map_err(says(path))
}

/// Makes a directory in a directory that is there; where that cannot be done pi says so.
pub fn make_inside(dir: &Path, name: &str) {
    let _ = fs::create_dir(dir.join(name));
}

/// Makes a directory for its owner alone, with those above it; where that cannot be done pi says
/// so.
pub fn make_all(dir: &Path) {
    let _ = DirBuilder::new().recursive(true).mode(0o700).create(dir);
}

/// The names in a directory, a bounded number; none where it cannot be read.
pub fn names(dir: &Path) -> Vec<std::ffi::OsString> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().take(AGENT_DIR_NAMES);
    entries.map(|entry| entry.file_name()).collect()
}

/// A file with this text, which only its owner may read, named by what the text is known by. It is
/// locked as directories are, and shared by all who have the same text.
pub fn prompt_file(
    places: &[PathBuf],
    known_by: &str,
    text: &[u8],
) -> Result<(PathBuf, File), String> {
    let place = place(places)?;
    for number in 0..AGENT_DIR_TRIES {
        // Another number than 0 is for a name that has another text, or belongs to somebody else.
        let more = if number == 0 { String::new() } else { format!("-{number}") };
        let path = place.join(format!("{PROMPT_PREFIX}{known_by}{more}{PROMPT_ENDING}"));
        // Whoever removes what is left over may be faster, time and again.
        for _ in 0..AGENT_DIR_TRIES {
            match take_prompt(&path, &place, text)? {
                Prompt::Taken(file) => return Ok((path, file)),
                Prompt::Again => {}
                Prompt::Foreign => break,
            }
        }
    }
    Err(format!("{}: no name is free for the prompt", place.display()))
}

/// What came of the try to take the file of a prompt.
enum Prompt {
    /// It is taken, and locked.
    Taken(File),
    /// Another try may do.
    Again,
    /// The name has another text, or belongs to somebody else.
    Foreign,
}

/// Takes the file at this path, or makes it.
fn take_prompt(path: &Path, place: &Path, text: &[u8]) -> Result<Prompt, String> {
    let file = match open(path, 0) {
        Err(error) if errno_of_ref(&error) == ENOENT => {
            make_prompt(path, place, text)?;
            return Ok(Prompt::Again);
        }
        // A symbolic link is not followed.
        Err(_) => return Ok(Prompt::Foreign),
        Ok(file) => file,
    };
    if file.lock_shared().is_err() {
        return Ok(Prompt::Foreign);
    }
    let found = file.metadata().map_err(says(path))?;
    if path.symlink_metadata().ok().map(|named| identity(&named)) != Some(identity(&found)) {
        // Removed before it was locked, and perhaps made anew by somebody else.
        return Ok(Prompt::Again);
    }
    let private = found.is_file() && found.permissions().mode() & 0o7777 == 0o600;
    let mut bytes = Vec::new();
    let same = private
        && is_ours_at(&file, path)
        && found.len() == text.len() as u64
        && (&file).take(found.len() + 1).read_to_end(&mut bytes).is_ok()
        && bytes == text;
    Ok(if same { Prompt::Taken(file) } else { Prompt::Foreign })
}

/// Makes the file at this path, whole or not at all; whoever is faster has made the same. The file
/// is not there afterwards where it was removed as left over before it was locked.
fn make_prompt(path: &Path, place: &Path, text: &[u8]) -> Result<(), String> {
    let fresh = place.join(format!("{FRESH_PREFIX}{}", host::random_hex()));
    let mut options = OpenOptions::new();
    let mut file =
        options.write(true).create_new(true).mode(0o600).open(&fresh).map_err(says(&fresh))?;
    let locked = file.lock_shared();
    let mode = fs::Permissions::from_mode(0o600);
    let done = locked
        .and_then(|()| file.set_permissions(mode))
        .and_then(|()| file.write_all(text))
        .and_then(|()| match fs::hard_link(&fresh, path) {
            Err(error) if [libc::EEXIST, ENOENT].contains(&errno_of_ref(&error)) => Ok(()),
            linked => linked,
        });
    let _ = fs::remove_file(&fresh);
    done.map_err(says(path))
}

fn is_left_over(name: &str) -> bool {
    [DIR_PREFIX, PROMPT_PREFIX, FRESH_PREFIX].iter().any(|prefix| name.starts_with(prefix))
}

/// Removes what nobody has locked.
pub fn sweep() {
    for place in our_places() {
        // What others may enter is not ours to trust, and neither made nor used.
        let private = place.symlink_metadata().is_ok_and(|found| {
            found.is_dir() && found.uid() == host::uid() && found.mode() & 0o077 == 0
        });
        for name in names(&place).iter().filter(|_| private) {
            if name.to_str().is_some_and(is_left_over) {
                remove_unused(&place.join(name));
            }
        }
    }
}

fn remove_unused(path: &Path) {
    let Ok(file) = open(path, 0) else { return };
    if file.try_lock().is_err() || !is_ours_at(&file, path) {
        return;
    }
    // What cannot be removed is tried again by the next sweep.
    if file.metadata().is_ok_and(|found| found.is_dir()) {
        // Symbolic links in it are removed and not followed.
        let _ = fs::remove_dir_all(path);
    } else {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn modes(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().permissions().mode() & 0o777
    }

    /// rule: agent.md, Isolation: Of two runs that come upon one directory, one has it
    #[test]
    fn a_directory_is_one_runs_alone() {
        let top = tempfile::tempdir().unwrap();
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let (path, _lock) = make(&[top.path().join(PLACE)]).unwrap();
        let found = open(&path, libc::O_DIRECTORY).unwrap();
        assert!(found.try_lock_shared().is_err(), "another run may have made it");
        assert!(is_ours_at(&found, &path));
    }

    #[test]
    fn what_nobody_has_locked_is_removed_and_no_link_in_it_is_followed() {
        let top = tempfile::tempdir().unwrap();
        let (inside, outside) = (top.path().join("agent-7"), top.path().join("mine"));
        fs::create_dir_all(inside.join("sessions")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("file"), "x").unwrap();
        link(&inside.join("skills"), &outside).unwrap();
        let linked = top.path().join("agent-8");
        link(&linked, &outside).unwrap();
        remove_unused(&inside);
        remove_unused(&linked);
        assert!(!inside.exists());
        assert!(outside.join("file").exists() && linked.symlink_metadata().is_ok());
    }

    #[test]
    fn a_prompt_is_in_a_file_that_all_with_the_same_text_share() {
        let top = tempfile::tempdir().unwrap();
        let places = [top.path().join(PLACE)];
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let (path, _lock) = prompt_file(&places, "0123abcd", b"text").unwrap();
        assert_eq!(path.file_name().unwrap(), "prompt-0123abcd.md");
        assert_eq!((fs::read(&path).unwrap(), modes(&path)), (b"text".to_vec(), 0o600));
        assert_eq!(prompt_file(&places, "0123abcd", b"text").unwrap().0, path);
        remove_unused(&path);
        assert!(path.exists(), "it is in use");
        // The same name for another text, and names that somebody else has.
        let (other, _lock) = prompt_file(&places, "0123abcd", b"texts").unwrap();
        assert_eq!(other.file_name().unwrap(), "prompt-0123abcd-1.md");
        let secret = top.path().join("secret");
        fs::write(&secret, "text").unwrap();
        link(&path.with_file_name("prompt-1.md"), &secret).unwrap();
        fs::write(path.with_file_name("prompt-1-1.md"), "text").unwrap();
        let (third, _lock) = prompt_file(&places, "1", b"text").unwrap();
        assert_eq!(third.file_name().unwrap(), "prompt-1-2.md");
        assert_eq!(names(path.parent().unwrap()).len(), 5, "nothing half-made is left");
    }

    /// rule: agent.md, How pi is called: The file's name is the same for the same text, also where
    ///   what is left over is removed at the same time
    #[test]
    fn a_prompt_that_is_made_while_others_remove_what_is_left_over_has_its_file() {
        let top = tempfile::tempdir().unwrap();
        let places = [top.path().join(PLACE)];
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let done = AtomicBool::new(false);
        let found = std::thread::scope(|scope| {
            let sweep = || {
                while !done.load(Ordering::Relaxed) {
                    names(&places[0]).iter().for_each(|one| remove_unused(&places[0].join(one)));
                }
            };
            let _sweepers = [scope.spawn(sweep), scope.spawn(sweep)];
            let numbers = 0..200;
            let known_by = numbers.map(|number| number.to_string());
            let made: Vec<_> =
                known_by.map(|one| (prompt_file(&places, &one, b"text"), one)).collect();
            done.store(true, Ordering::Relaxed);
            made
        });
        for (path, known_by) in found {
            let (path, _lock) = path.unwrap();
            assert_eq!(path.file_name().unwrap(), &*format!("prompt-{known_by}.md"));
            assert_eq!(fs::read(&path).unwrap(), b"text");
        }
    }

    #[test]
    fn only_files_of_a_bounded_size_are_copied() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("settings.json");
        assert_eq!(read(&path), Ok(None));
        write(&path, b"{}").unwrap();
        assert_eq!((read(&path), modes(&path)), (Ok(Some(b"{}".to_vec())), 0o600));
        assert!(write(&path, b"").is_err(), "never over another file");
        File::options().write(true).open(&path).unwrap().set_len(AGENT_DIR_FILE_BYTES + 1).unwrap();
        assert!(read(&path).unwrap_err().contains("longer than"));
    }
}
