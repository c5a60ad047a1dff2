//! What a run of pi needs on a disk before pi is started: an agent directory of its own, the file
//! of a long prompt (agent.md, Isolation and How pi is called). A disk may hang, so execd's own
//! program makes it in the process that becomes pi (`execd --start-pi`), and here is what that
//! process is told. What it does is said in src/cli/agent_dir.rs.

use crate::engine::launch::LaunchSpec;
use crate::families::Cx;
use crate::sys::errno::errno_text;
use crate::sys::host;
use crate::sys::memory_file::MemoryFile;
use crate::sys::proc_view;
use crate::wire::{Reason, RpcError};
use sha2::{Digest, Sha256};
use std::ffi::{CString, OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Bytes of the SHA-256 of a text in the name of that file.
const AGENT_PROMPT_HASH_BYTES: usize = 4;

/// A longer prompt goes through a file: an argument is 128 KiB at most, and pi's other
/// arguments need room too.
const AGENT_PROMPT_ARG_BYTES: usize = 100 * 1024;

/// What the process that is to become pi says first on stderr, where it cannot.
pub const NOT_STARTED: &str = "execd: ";
/// How that process ends then.
pub const EXIT_NOT_STARTED: i32 = 127;
/// The first argument of the process that becomes pi.
pub const START_FLAG: &str = "--start-pi";
/// The variable in which that process is given a key, and which pi does not get.
pub const KEY_VARIABLE: &str = "EXECD_AGENT_KEY";
/// What is written in place of a word that is not given.
const NOTHING: &str = "";

/// Which agent directory a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// That of all runs.
    Shared,
    /// One of its own, which is kept behind the run where that is asked for.
    Run {
        /// Whether it is kept.
        keep: bool,
    },
}

/// The agent directory that is to be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// None.
    #[default]
    None,
    /// One that leads to the shared one in all but the keys.
    Linked,
    /// One that has copies of the keys and settings of the shared one, and of nothing else.
    Own,
}

impl Kind {
    const ALL: [(Self, &str); 3] =
        [(Self::None, "none"), (Self::Linked, "linked"), (Self::Own, "own")];

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("none", |(_, word)| word)
    }
}

/// What is to be made ready for a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Its agent directory.
    pub kind: Kind,
    /// Where a directory is made that is kept; else it is made among the others, and removed.
    pub kept: Option<PathBuf>,
    /// The provider whose key is in the variable.
    pub provider: Option<String>,
    /// Where the text of a long prompt can be read, and what it is known by.
    pub prompt: Option<(PathBuf, String)>,
    /// execd's own XDG_RUNTIME_DIR, whatever pi's is.
    pub runtime_dir: Option<PathBuf>,
    /// execd's own directory for temporary files.
    pub temp_dir: PathBuf,
}

impl Needs {
    /// How many words they are.
    pub const WORDS: usize = 7;

    /// The words that the process is told them by, behind the flag.
    fn words(&self) -> Vec<CString> {
        let path = |path: Option<&PathBuf>| path.map_or(vec![], |path| bytes_of(path));
        let (source, known_by) = self.prompt.clone().unzip();
        let words: [Vec<u8>; Self::WORDS] = [
            self.kind.word().into(),
            path(self.kept.as_ref()),
            self.provider.as_deref().unwrap_or(NOTHING).into(),
            path(source.as_ref()),
            known_by.as_deref().unwrap_or(NOTHING).into(),
            path(self.runtime_dir.as_ref()),
            path(Some(&self.temp_dir)),
        ];
        // Names and paths come from the kernel or were checked for NUL.
        words.into_iter().map(|word| CString::new(word).unwrap_or_default()).collect()
    }

    /// The needs in these words, those of [`Self::words`].
    pub fn read(words: &[OsString]) -> Option<Self> {
        let [kind, kept, provider, source, known_by, runtime_dir, temp_dir] = words else {
            return None;
        };
        let path = |word: &OsString| (!word.is_empty()).then(|| PathBuf::from(word));
        let text = |word: &OsString| Some(word.to_str()?.to_owned()).filter(|one| !one.is_empty());
        Some(Self {
            kind: Kind::ALL.iter().find(|(_, word)| OsStr::new(word) == kind)?.0,
            kept: path(kept),
            provider: text(provider),
            prompt: path(source).zip(text(known_by)),
            runtime_dir: path(runtime_dir),
            temp_dir: PathBuf::from(temp_dir),
        })
    }

    /// Has the program of `launch` started by a process that makes this ready first.
    fn put_before(&self, launch: &mut LaunchSpec) {
        let flag = CString::new(START_FLAG).unwrap_or_default();
        launch.first = [flag].into_iter().chain(self.words()).collect();
    }

    /// What is made ready before the program of `launch`.
    fn of(launch: &LaunchSpec) -> Self {
        let words = launch.first.iter().skip(1);
        let words: Vec<OsString> =
            words.map(|word| OsString::from_vec(word.to_bytes().to_vec())).collect();
        Self::read(&words).unwrap_or_else(|| Self {
            runtime_dir: host::variable("XDG_RUNTIME_DIR").map(PathBuf::from),
            temp_dir: host::temp_dir(),
            ..Self::default()
        })
    }
}

fn bytes_of(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

/// Gives a run of pi its agent directory: one of its own, or with a `key` (of a provider, for which
/// pi has no variable) one that has this key and leads to the shared one in all else. Gives the
/// path of a directory that will be kept.
pub fn prepare(
    cx: &Cx,
    launch: &mut LaunchSpec,
    isolation: Isolation,
    key: Option<(&str, &str)>,
) -> Option<String> {
    let mut needs = Needs::of(launch);
    needs.kind = match (isolation, key) {
        (Isolation::Shared, None) => return None,
        (Isolation::Shared, Some(_)) => Kind::Linked,
        (Isolation::Run { .. }, _) => Kind::Own,
    };
    if needs.kind == Kind::Own {
        // Those that are named by -e are loaded all the same.
        launch.arguments.insert(0, "--no-extensions".into());
    }
    if let Some((provider, key)) = key {
        needs.provider = Some(provider.to_owned());
        launch.env.retain(|(name, _)| name != KEY_VARIABLE);
        launch.env.push((KEY_VARIABLE.to_owned(), Some(key.to_owned())));
    }
    if isolation == (Isolation::Run { keep: true }) {
        let logs = cx.keeper.place().path().map(PathBuf::from);
        let dir = logs.unwrap_or_else(host::temp_dir);
        needs.kept = Some(dir.join(format!("pi-agent-{}", host::random_hex())));
    }
    needs.put_before(launch);
    needs.kept.map(|path| path.to_string_lossy().into_owned())
}

/// Has a run read its prompt from a file with the text that is at `source`, and that is known by
/// `known_by`: the last of its arguments.
fn add_prompt_file(launch: &mut LaunchSpec, source: PathBuf, known_by: String) {
    let mut needs = Needs::of(launch);
    launch.arguments.push(format!("@prompt-{known_by}.md").into());
    needs.prompt = Some((source, known_by));
    needs.put_before(launch);
}

/// Adds the last of pi's arguments, the prompt. Gives the memory in which the process that becomes
/// pi finds one that is too long, and which is held until the run is over: the loop writes to no
/// disk.
pub fn add_prompt(launch: &mut LaunchSpec, prompt: String) -> Result<Option<MemoryFile>, RpcError> {
    if prompt.len() <= AGENT_PROMPT_ARG_BYTES {
        launch.arguments.push(prompt.into());
        return Ok(None);
    }
    if let Some(why) = proc_view::lack() {
        let message = format!(
            "the prompt has {} bytes, which pi is handed through /proc, but {why}; one of \
             {AGENT_PROMPT_ARG_BYTES} bytes at most needs none",
            prompt.len()
        );
        return Err(RpcError::failed(Reason::System, message));
    }
    let file = MemoryFile::with(c"execd-prompt", prompt.as_bytes()).map_err(|errno| {
        let why = errno_text(errno);
        let message = format!("the prompt could not be put into a file in memory: {why}");
        RpcError::failed(Reason::System, message)
    })?;
    add_prompt_file(launch, file.path().into(), known_by(&prompt));
    Ok(Some(file))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_are_read_as_they_were_told() {
        let all = Needs {
            kind: Kind::Linked,
            kept: Some("/logs/pi-agent-1".into()),
            provider: Some("groq".to_owned()),
            prompt: Some(("/proc/1/fd/7".into(), "0123abcd".to_owned())),
            runtime_dir: Some("/run/user/1".into()),
            temp_dir: "/tmp".into(),
        };
        let own = Needs { kind: Kind::Own, temp_dir: "/tmp".into(), ..Needs::default() };
        for needs in [all, own] {
            let words = needs.words().into_iter().map(|word| OsString::from_vec(word.into_bytes()));
            let words: Vec<OsString> = words.collect();
            assert_eq!(words.len(), Needs::WORDS);
            assert_eq!(Needs::read(&words), Some(needs));
            assert_eq!(Needs::read(&words[1..]), None);
        }
    }

    #[test]
    fn a_text_is_known_by_the_first_digits_of_its_sha256() {
        assert_eq!(known_by("abc"), "ba7816bf");
        assert_eq!(known_by(""), "e3b0c442");
    }
}
