//! What a run of pi needs on a disk before pi is started (agent.md, Isolation and How pi is
//! called): an agent directory of its own, and the file of a long prompt. Both are gone with the
//! run, but for a directory that is kept.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::keys::variable_of;
use super::pi::PiProgram;
use crate::pure::agent::agent_files::{is_object, names, with_key, without_extensions};
use crate::sys::{agent_dirs, host, poll};

/// See [`AGENT_DIR_READS`].
const AGENT_DIR_READ_PAUSE_MS: u64 = 20;

/// How often a file of JSON is read that somebody just writes, and the pause between.
const AGENT_DIR_READS: usize = 10;

/// Bytes of the SHA-256 of a text in the name of its file.
const AGENT_PROMPT_HASH_BYTES: usize = 4;

/// A longer prompt goes through a file: an argument is 128 KiB at most, and pi's other
/// arguments need room too.
pub(super) const AGENT_PROMPT_ARG_BYTES: usize = 100 * 1024;

/// The variable that names pi's agent directory.
const DIR_VARIABLE: &str = "PI_CODING_AGENT_DIR";
/// The file with pi's keys and logins.
const AUTH: &str = "auth.json";
/// The file with models, and with keys for them.
const MODELS: &str = "models.json";
/// The file with pi's settings.
const SETTINGS: &str = "settings.json";
/// What a directory of a run's own has copies of, besides those two: the models and which projects
/// are trusted, and what the user has written for every model to read.
const COPIED: [&str; 10] = [
    MODELS,
    "models-store.json",
    "trust.json",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
    "AGENTS.override.md",
    "AGENTS.md",
    "AGENTS.MD",
    "CLAUDE.md",
    "CLAUDE.MD",
];
/// What it leads to: programs that pi would load anew else, and more of what the user has written.
const LINKED: [&str; 3] = ["bin", "skills", "prompts"];
/// What pi makes in the shared directory where it is not there yet.
const MADE_LATER: [&str; 4] = [SETTINGS, MODELS, "models-store.json", "trust.json"];
/// The end of the names of pi's locks, which are for the file beside them.
const LOCK_ENDING: &str = ".lock";

/// The agent directory that a run is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DirKind {
    /// One that leads to the shared one in all but the keys, where the key would not be taken
    /// otherwise.
    Linked,
    /// One that has copies of the keys and settings of the shared one, and of nothing else.
    Own,
}

/// What is on a disk for a run. It is locked for as long as this lives.
#[derive(Debug)]
pub(super) struct RunFiles {
    places: Vec<PathBuf>,
    locks: Vec<File>,
}

impl RunFiles {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        let runtime_dir = host::variable("XDG_RUNTIME_DIR").map(PathBuf::from);
        Self { places: agent_dirs::places(runtime_dir, host::temp_dir()), locks: Vec::new() }
    }

    /// Puts a prompt into a file. Gives the word that has pi read it.
    pub(super) fn add_prompt(&mut self, prompt: &str) -> Result<OsString, String> {
        let made = agent_dirs::prompt_file(&self.places, &known_by(prompt), prompt.as_bytes());
        let (path, lock) = made.map_err(|why| format!("the prompt is in no file: {why}"))?;
        self.locks.push(lock);
        let mut word = OsString::from("@");
        word.push(path);
        Ok(word)
    }

    /// Makes an agent directory of this kind; `kept`: where, of one that is kept. `key`: a provider
    /// and its key. The environment names it from then on, unless the shared one will do.
    pub(super) fn add_dir(
        &mut self,
        kind: DirKind,
        kept: Option<&Path>,
        key: Option<(&str, &str)>,
        program: &mut PiProgram,
    ) -> Result<(), String> {
        let shared = shared_dir(program)?;
        let provider = key.map(|(provider, _)| provider);
        if kind == DirKind::Linked && will_take_variable(&shared, provider)? {
            return Ok(());
        }
        let made = self.make_dir(&shared, kind, kept, key);
        let dir = made.map_err(|why| format!("no agent directory could be made for pi: {why}"))?;
        program.environment.set(DIR_VARIABLE, Some(dir.as_os_str()));
        Ok(())
    }

    fn make_dir(
        &mut self,
        shared: &Path,
        kind: DirKind,
        kept: Option<&Path>,
        key: Option<(&str, &str)>,
    ) -> Result<PathBuf, String> {
        let dir = match kept {
            Some(path) => agent_dirs::make_kept(path).map(|()| path.to_owned())?,
            None => {
                let (dir, lock) = agent_dirs::make(&self.places)?;
                self.locks.push(lock);
                dir
            }
        };
        match kind {
            DirKind::Linked => link_all(shared, &dir)?,
            DirKind::Own => copy_some(shared, &dir)?,
        }
        let auth = read_object(&shared.join(AUTH))?;
        let auth = match key {
            Some((provider, key)) => Some(with_key(auth.as_deref(), provider, key)),
            None => auth,
        };
        auth.map_or(Ok(()), |auth| agent_dirs::write(&dir.join(AUTH), &auth))?;
        Ok(dir)
    }

    /// Removes what was made, and what runs have left that were killed.
    pub(super) fn remove(mut self) {
        if !self.locks.is_empty() {
            self.locks.clear();
            agent_dirs::sweep();
        }
    }
}

/// What a text is known by: the beginning of its SHA-256.
fn known_by(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(AGENT_PROMPT_HASH_BYTES).fold(
        String::new(),
        |mut name, byte| {
            let _ = write!(name, "{byte:02x}");
            name
        },
    )
}

/// The agent directory that pi would have without us: as pi finds it.
fn shared_dir(program: &PiProgram) -> Result<PathBuf, String> {
    let given = |name: &str| program.environment.get(name).filter(|one| !one.is_empty());
    let home = given("HOME").map(PathBuf::from).or_else(std::env::home_dir);
    let home = home.ok_or("there is no home directory");
    let dir = match given(DIR_VARIABLE).map(PathBuf::from) {
        None => home?.join(".pi/agent"),
        Some(given) => match given.strip_prefix("~") {
            Ok(rest) => home?.join(rest),
            Err(_) => given,
        },
    };
    let dir = program.workspace.as_ref().map_or(dir.clone(), |base| Path::new(base).join(&dir));
    std::path::absolute(&dir).map_err(|error| format!("{}: {error}", dir.display()))
}

/// Whether the shared directory will do: pi takes the key from its variable where no file there
/// says something of the provider, which would come first.
fn will_take_variable(shared: &Path, provider: Option<&str>) -> Result<bool, String> {
    let Some(provider) = provider.filter(|provider| variable_of(provider).is_some()) else {
        return Ok(false);
    };
    for name in [AUTH, MODELS] {
        if agent_dirs::read(&shared.join(name))?.is_some_and(|text| names(&text, provider)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The content of a file of JSON that others may just be writing.
fn read_object(path: &Path) -> Result<Option<Vec<u8>>, String> {
    for _ in 1..AGENT_DIR_READS {
        match agent_dirs::read(path)? {
            Some(bytes) if !is_object(&bytes) => poll::pause(AGENT_DIR_READ_PAUSE_MS),
            read => return Ok(read),
        }
    }
    agent_dirs::read(path)
}

/// Fills a directory of a run's own: keys apart, see [`AUTH`].
fn copy_some(shared: &Path, dir: &Path) -> Result<(), String> {
    if let Some(settings) = read_object(&shared.join(SETTINGS))? {
        agent_dirs::write(&dir.join(SETTINGS), &without_extensions(settings))?;
    }
    for name in COPIED {
        if let Some(bytes) = agent_dirs::read(&shared.join(name))? {
            agent_dirs::write(&dir.join(name), &bytes)?;
        }
    }
    // What pi loads is for the next run too.
    agent_dirs::make_inside(shared, "bin");
    LINKED.iter().try_for_each(|name| agent_dirs::link(&dir.join(name), &shared.join(name)))
}

/// Fills a directory that leads to the shared one in all but the keys.
fn link_all(shared: &Path, dir: &Path) -> Result<(), String> {
    agent_dirs::make_all(shared);
    for name in ["sessions", "bin"] {
        agent_dirs::make_inside(shared, name);
    }
    let mut names: Vec<OsString> = MADE_LATER.iter().map(OsString::from).collect();
    names.extend(agent_dirs::names(shared));
    names.sort();
    names.dedup();
    let is_linked =
        |name: &&OsString| *name != AUTH && !name.as_bytes().ends_with(LOCK_ENDING.as_bytes());
    let mut linked = names.iter().filter(is_linked);
    linked.try_for_each(|name| agent_dirs::link(&dir.join(name), &shared.join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_known_by_the_first_digits_of_its_sha256() {
        assert_eq!(known_by("abc"), "ba7816bf");
        assert_eq!(known_by(""), "e3b0c442");
    }
}
