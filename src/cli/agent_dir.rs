//! `execd --start-pi`: makes ready what a run of pi needs on a disk, and becomes pi; and `execd
//! --sweep-agent-files`, which removes what runs have left. Both are for execd itself.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::say::{EXIT_USAGE, complain};
use crate::engine::launch::{path_of, places_of};
use crate::families::agent::agent_dir::{EXIT_NOT_STARTED, KEY_VARIABLE, Kind, NOT_STARTED, Needs};
use crate::families::agent::keys::variable_of;
use crate::pure::agent::agent_files::{is_object, names, with_key, without_extensions};
use crate::session::start::spawn_failure;
use crate::sys::spawn::{SpawnError, Step, become_program};
use crate::sys::{agent_dirs, host, poll};

/// See [`AGENT_DIR_READS`].
const AGENT_DIR_READ_PAUSE_MS: u64 = 20;

/// How often a file of JSON is read that somebody just writes, and the pause between.
const AGENT_DIR_READS: usize = 10;

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

/// Removes what runs have left, and nobody uses; gives the exit status.
pub fn sweep() -> i32 {
    host::be_called(c"execd-sweep");
    agent_dirs::sweep();
    0
}

/// Becomes pi; comes back with an exit status where that cannot be done. Takes the arguments behind
/// the flag.
pub fn main(words: &[OsString]) -> i32 {
    let (needs, rest) = words.split_at(words.len().min(Needs::WORDS));
    let (Some(needs), Some((program, arguments))) = (Needs::read(needs), rest.split_first()) else {
        complain("execd --start-pi is for execd itself");
        return EXIT_USAGE;
    };
    let mut start = Start {
        places: agent_dirs::places(needs.runtime_dir.clone(), needs.temp_dir.clone()),
        arguments: arguments.to_vec(),
        environment: host::environment(),
    };
    if let Err(reason) = start.make_ready(&needs) {
        complain(&format!("{NOT_STARTED}{reason}"));
        return EXIT_NOT_STARTED;
    }
    complain(&format!("{NOT_STARTED}{}", start.become_pi(program)));
    EXIT_NOT_STARTED
}

/// A pi that is about to be started.
struct Start {
    places: Vec<PathBuf>,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

impl Start {
    fn variable(&self, name: &str) -> Option<&OsString> {
        self.environment.iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }

    fn make_ready(&mut self, needs: &Needs) -> Result<(), String> {
        let key = self.variable(KEY_VARIABLE).map(|key| key.to_string_lossy().into_owned());
        self.environment.retain(|(name, _)| name != KEY_VARIABLE);
        let key = needs.provider.as_deref().zip(key.as_deref());
        if needs.kind != Kind::None && !self.will_take_variable(needs)? {
            let dir = self.agent_dir(needs, key);
            let dir =
                dir.map_err(|why| format!("no agent directory could be made for pi: {why}"))?;
            self.environment.retain(|(name, _)| name != DIR_VARIABLE);
            self.environment.push((DIR_VARIABLE.into(), dir.into()));
        }
        if let Some((source, known_by)) = &needs.prompt {
            let text = std::fs::read(source).map_err(|error| error.to_string());
            let file = text.and_then(|text| agent_dirs::prompt_file(&self.places, known_by, &text));
            let file = file.map_err(|why| format!("the prompt is in no file: {why}"))?;
            self.arguments.pop();
            let word = [b"@", file.as_os_str().as_bytes()].concat();
            self.arguments.push(OsString::from_vec(word));
        }
        Ok(())
    }

    /// The agent directory that pi would have without us: as pi finds it.
    fn shared_dir(&self) -> Result<PathBuf, String> {
        let home = self.variable("HOME").filter(|home| !home.is_empty());
        let home = home.map(PathBuf::from).or_else(std::env::home_dir);
        let home = home.ok_or("there is no home directory");
        let given = self.variable(DIR_VARIABLE).filter(|dir| !dir.is_empty()).map(PathBuf::from);
        let dir = match given {
            None => home?.join(".pi/agent"),
            Some(given) => match given.strip_prefix("~") {
                Ok(rest) => home?.join(rest),
                Err(_) => given,
            },
        };
        std::path::absolute(&dir).map_err(|error| format!("{}: {error}", dir.display()))
    }

    /// Whether the shared directory will do: pi takes the key from its variable where no file there
    /// says something of the provider, which would come first.
    fn will_take_variable(&self, needs: &Needs) -> Result<bool, String> {
        let provider = needs.provider.as_deref().filter(|_| needs.kind == Kind::Linked);
        let Some(provider) = provider.filter(|provider| variable_of(provider).is_some()) else {
            return Ok(false);
        };
        let shared = self.shared_dir()?;
        for name in [AUTH, MODELS] {
            if agent_dirs::read(&shared.join(name))?.is_some_and(|text| names(&text, provider)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn agent_dir(&self, needs: &Needs, key: Option<(&str, &str)>) -> Result<PathBuf, String> {
        let shared = self.shared_dir()?;
        let dir = match &needs.kept {
            Some(path) => agent_dirs::make_kept(path).map(|()| path.clone())?,
            None => agent_dirs::make(&self.places)?,
        };
        match needs.kind {
            Kind::None => {}
            Kind::Linked => link_all(&shared, &dir)?,
            Kind::Own => copy_some(&shared, &dir)?,
        }
        let auth = read_object(&shared.join(AUTH))?;
        let auth = match key {
            Some((provider, key)) => Some(with_key(auth.as_deref(), provider, key)),
            None => auth,
        };
        auth.map_or(Ok(()), |auth| agent_dirs::write(&dir.join(AUTH), &auth))?;
        Ok(dir)
    }

    /// Becomes pi, which is looked for as it would be without us. Gives the reason where it cannot
    /// be started.
    fn become_pi(self, program: &OsString) -> String {
        let c_string = |bytes: Vec<u8>| CString::new(bytes).unwrap_or_default();
        let entry = |(name, value): (OsString, OsString)| {
            c_string([name.as_bytes(), b"=", value.as_bytes()].concat())
        };
        let environment: Vec<CString> = self.environment.into_iter().map(entry).collect();
        let words = [program.clone()].into_iter().chain(self.arguments);
        let words: Vec<CString> = words.map(|word| c_string(word.into_vec())).collect();
        let path = path_of(&environment);
        let name = program.to_string_lossy();
        let (places, looked_up) = places_of(&name, &path);
        let errno = become_program(&places, looked_up, &words, &environment);
        spawn_failure(&name, Path::new(""), SpawnError { step: Step::Exec, errno })
    }
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
