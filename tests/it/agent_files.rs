//! What execd puts into files for pi: a run's own agent directory, the one in which a key of the
//! run stands, and prompts that are too long for an argument (agent.md, Isolation, Keys and How pi
//! is called).

use std::collections::BTreeSet;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use crate::agent_help::*;
use crate::common::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const KEY: &str = "a-key-of-the-run-alone";

/// Notes what its agent directory is and has, how it was called, what is in the file that its
/// prompt names, and which variables it has.
const NOTE: &str = r#"dir=$PI_CODING_AGENT_DIR
echo "$dir" > dir.new; (cd "$dir" && stat -c '%n %a %F' . * 2>/dev/null) > list
for file in auth.json settings.json models.json AGENTS.md; do cp "$dir/$file" . 2>/dev/null; done
printf '%s\0' "$@" > argv; env > env
for last; do :; done
case $last in @/*) cp "${last#@}" prompt; stat -Lc %a "${last#@}" > mode; echo "$last" > path;; esac
mkdir -p "$dir/sessions" && echo of-a-run > "$dir/sessions/new.jsonl"
mv dir.new dir
[ -e wait ] && until [ -e go ]; do sleep 0.02; done
cat ../answer.ndjson"#;

/// An execd, and the agent directory of all its runs.
struct Stage {
    execd: Execd,
    pi: String,
    shared: PathBuf,
}

impl Stage {
    fn new(envs: &[(&str, &str)]) -> Self {
        Self::with(&[], envs)
    }

    fn with(args: &[&str], envs: &[(&str, &str)]) -> Self {
        let execd = Execd::with(args, envs);
        let pi = execd.file("pi");
        write_pi(&pi, NOTE);
        std::fs::write(execd.file("answer.ndjson"), ndjson(&answer("Done."))).expect("a stream");
        let shared = execd.file("shared");
        for dir in ["sessions", "extensions", "skills", "npm"] {
            std::fs::create_dir_all(shared.join(dir)).expect("a directory");
        }
        for (name, text) in [
            ("auth.json", r#"{"other":{"type":"api_key","key":"of-all"}}"#),
            ("settings.json", r#"{"theme":"dark","extensions":["a"],"packages":["npm:b"]}"#),
            ("models.json", r#"{"providers":{}}"#),
            ("AGENTS.md", "Be brief."),
            ("auth.json.lock", ""),
            ("sessions/old.jsonl", "old"),
            ("extensions/x.ts", "export default {}"),
        ] {
            std::fs::write(shared.join(name), text).expect("a file");
        }
        Self { pi: pi.to_string_lossy().into_owned(), execd, shared }
    }

    /// Starts a run in a new directory of this name.
    fn begin(&mut self, name: &str, more: Value) -> u64 {
        let work = self.execd.file(name);
        std::fs::create_dir_all(&work).expect("a directory");
        let env = json!({"PI_CODING_AGENT_DIR": self.shared});
        let all = merged(json!({"workspace": work, "env": env}), more);
        self.execd.start_request("agent_execute", params(&self.pi, all))
    }

    fn begin_slow(&mut self, name: &str, more: Value) -> u64 {
        std::fs::create_dir(self.execd.file(name)).expect("a directory");
        std::fs::write(self.execd.file(&format!("{name}/wait")), "").expect("a file");
        self.begin(name, more)
    }

    /// Waits until a run has noted all; gives its agent directory.
    fn until_noted(&self, name: &str) -> PathBuf {
        until_exists(&self.execd.file(&format!("{name}/dir")));
        self.dir(name)
    }

    fn let_go(&self, name: &str) {
        std::fs::write(self.execd.file(&format!("{name}/go")), "").expect("a file");
    }

    fn run(&mut self, name: &str, more: Value) -> Value {
        let id = self.begin(name, more);
        self.execd.result_of(id)
    }

    fn noted(&self, file: &str) -> String {
        std::fs::read_to_string(self.execd.file(file)).expect("it was noted").trim_end().to_owned()
    }

    fn dir(&self, name: &str) -> PathBuf {
        PathBuf::from(self.noted(&format!("{name}/dir")))
    }

    /// The file with the prompt of a run.
    fn prompt_of(&self, name: &str) -> PathBuf {
        let path = self.noted(&format!("{name}/path"));
        PathBuf::from(path.strip_prefix('@').expect("a file"))
    }

    fn place(&self) -> PathBuf {
        self.execd.runtime_dir().join("execd/pi")
    }
}

fn isolated() -> Value {
    json!({"isolation": "run"})
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn until_gone(path: &Path) {
    eventually("it is gone", || path.symlink_metadata().is_err());
}

fn tree(dir: &Path) -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().expect("its kind").is_dir() {
            all.extend(tree(&entry.path()));
        }
        all.insert(entry.path());
    }
    all
}

/// rule: agent.md, Isolation: run gives pi an agent directory of its own: copied auth and settings,
///   no sessions, no extensions but those named; removed afterwards; HOME untouched
#[test]
fn a_run_of_its_own_has_keys_and_settings_and_neither_sessions_nor_extensions() {
    let mut stage = Stage::new(&[]);
    std::fs::create_dir(stage.shared.join("bin")).expect("a directory");
    let before = tree(&stage.shared);
    let result = stage.run("work", merged(isolated(), json!({"extensions": ["/named.ts"]})));
    assert_eq!(result["success"], true, "{result}");
    assert_absent(&result, &["agent_dir"]);
    assert_eq!(stage.dir("work"), stage.place().join("agent-0"));
    let list = [
        ". 700 directory",
        "AGENTS.md 600 regular file",
        "auth.json 600 regular file",
        "bin 777 symbolic link",
        "models.json 600 regular file",
        "prompts 777 symbolic link",
        "settings.json 600 regular file",
        "skills 777 symbolic link",
    ];
    let noted = stage.noted("work/list");
    assert_eq!(noted.lines().collect::<BTreeSet<_>>(), BTreeSet::from(list));
    for name in ["auth.json", "models.json", "AGENTS.md"] {
        let shared = std::fs::read_to_string(stage.shared.join(name)).expect("a file");
        assert_eq!(stage.noted(&format!("work/{name}")), shared);
    }
    assert_eq!(parsed(&stage.noted("work/settings.json")), json!({"theme": "dark"}));
    let argv = stage.noted("work/argv").replace('\0', " ");
    assert!(argv.starts_with("--no-extensions --mode json ") && argv.contains(" -e /named.ts "));
    let home = format!("HOME={}", std::env::var("HOME").expect("a home"));
    assert!(stage.noted("work/env").lines().any(|line| line == home), "HOME is what it was");
    until_gone(&stage.dir("work"));
    assert_eq!(tree(&stage.shared), before, "nothing of the run is where all others are");
}

/// rule: agent.md, Isolation: run gives pi an agent directory of its own: copied auth and settings,
///   no sessions, no extensions but those named; removed afterwards; HOME untouched
#[test]
fn what_is_copied_comes_from_where_pi_would_have_read_it() {
    let mut stage = Stage::new(&[]);
    let home = stage.execd.file("home");
    let own = home.join(".pi/agent");
    std::fs::create_dir_all(&own).expect("a directory");
    std::fs::write(own.join("auth.json"), r#"{"of":"home"}"#).expect("a file");
    for (name, env) in [
        ("default", json!({"HOME": home, "PI_CODING_AGENT_DIR": null})),
        ("tilde", json!({"HOME": home, "PI_CODING_AGENT_DIR": "~/.pi/agent"})),
        ("relative", json!({"HOME": "/", "PI_CODING_AGENT_DIR": "../home/.pi/agent"})),
    ] {
        let result = stage.run(name, merged(isolated(), json!({"env": env})));
        assert_eq!(result["success"], true, "{name}: {result}");
        let auth = stage.noted(&format!("{name}/auth.json"));
        assert_eq!(parsed(&auth), json!({"of": "home"}), "{name}");
    }
    // Nobody has used pi here yet.
    let env = json!({"HOME": "/nowhere", "PI_CODING_AGENT_DIR": null});
    let result = stage.run("nothing", merged(isolated(), json!({"env": env})));
    assert_eq!(result["success"], true, "{result}");
    assert!(!stage.noted("nothing/list").contains("json"));
}

/// rule: agent.md, Keys: A key of a provider that pi has no variable for stands in an auth.json of
///   the run's own, over what models.json says; all else is the shared directory's
#[test]
fn a_key_of_any_provider_reaches_pi_by_a_file_and_by_nothing_that_others_can_read() {
    let mut stage = Stage::new(&[]);
    let auth = std::fs::read_to_string(stage.shared.join("auth.json")).expect("a file");
    let key = json!({"model": "custom-made/x", "api_key": KEY});
    let result = stage.run("linked", key.clone());
    assert_eq!(result["success"], true, "{result}");
    let own = json!({"type": "api_key", "key": KEY});
    let expected = json!({"other": {"type": "api_key", "key": "of-all"}, "custom-made": own});
    assert_eq!(parsed(&stage.noted("linked/auth.json")), expected);
    let list = stage.noted("linked/list");
    for name in ["sessions", "extensions", "skills", "npm", "bin", "settings.json", "trust.json"] {
        assert!(list.contains(&format!("{name} 777 symbolic link")), "{name} in {list}");
    }
    assert!(list.contains("auth.json 600 regular file"));
    assert!(!list.contains(".lock"), "a lock is for the file beside it: {list}");
    for file in ["linked/env", "linked/argv"] {
        assert!(!stage.noted(file).contains(KEY), "{file}");
    }
    until_gone(&stage.dir("linked"));
    assert!(stage.shared.join("sessions/new.jsonl").exists(), "sessions are those of all runs");
    assert_eq!(std::fs::read_to_string(stage.shared.join("auth.json")).expect("a file"), auth);
    // A run of its own has the key too.
    let result = stage.run("run", merged(isolated(), key));
    assert_eq!(result["success"], true, "{result}");
    assert_eq!(parsed(&stage.noted("run/auth.json")), expected);
    assert!(!result.to_string().contains(KEY));
}

/// rule: agent.md, Isolation: A directory that cannot be made is a run that was not started
#[test]
fn a_directory_that_cannot_be_made_is_a_run_that_was_not_started() {
    let mut stage = Stage::new(&[]);
    let large = std::fs::File::create(stage.shared.join("models.json")).expect("a file");
    large.set_len(4 * 1024 * 1024 + 1).expect("its length");
    let result = stage.run("work", isolated());
    assert_eq!(result["success"], false);
    let error = result["error"].as_str().expect("an error");
    assert!(error.starts_with("no agent directory could be made for pi: "), "{error}");
    assert!(error.contains("models.json: longer than 4194304 bytes"), "{error}");
    assert!(!stage.execd.file("work/argv").exists(), "pi was not started");
    eventually("nothing of it is left", || tree(&stage.place()).is_empty());
    // A pi that is not there is told as ever.
    let missing = params("/nowhere/pi", isolated());
    let result = stage.execd.result("agent_execute", missing);
    let error = result["error"].as_str().expect("an error");
    assert!(error.starts_with("/nowhere/pi was not found: "), "{error}");
}

/// rule: agent.md, Isolation: What is left of a killed run is removed by the next one, never what
///   is in use
#[test]
fn what_is_in_use_is_removed_by_nobody_and_what_was_left_by_the_next_run() {
    let mut stage = Stage::new(&[]);
    let slow = stage.begin_slow("slow", isolated());
    let (runtime, first) = (stage.execd.runtime_dir(), stage.until_noted("slow"));
    // Of two execds of a user each sweeps behind its own runs.
    let mut other = Stage::new(&[("XDG_RUNTIME_DIR", &runtime.to_string_lossy())]);
    let result = other.run("work", isolated());
    assert_eq!(result["success"], true, "{result}");
    assert_eq!(other.dir("work"), first.with_file_name("agent-1"));
    until_gone(&other.dir("work"));
    assert!(first.join("auth.json").exists(), "a run is in it");
    stage.let_go("slow");
    assert_eq!(stage.execd.result_of(slow)["success"], true);
    until_gone(&first);

    // The program that runs pi was killed: nobody is there to remove it before the next run.
    let killed = stage.begin_slow("killed", isolated());
    let left = stage.until_noted("killed");
    send_signal(runner_of(stage.execd.pid()), 9);
    stage.execd.result_of(killed);
    stage.execd.until_no_session_process();
    assert!(left.join("auth.json").exists());
    assert_eq!(other.run("next", isolated())["success"], true);
    until_gone(&left);

    // It ends by itself when its execd is killed.
    stage.begin_slow("orphaned", isolated());
    let left = stage.until_noted("orphaned");
    send_signal(stage.execd.pid(), 9);
    stage.execd.until_no_session_process();
    until_gone(&left);
    assert!(stage.shared.join("skills").exists(), "what it led to is there");
}

/// rule: agent.md, Ends: Many run at once, and ordinary sessions beside them go on
/// rule: agent.md, Isolation: 64 runs at once each have one
#[test]
fn sixty_four_runs_at_once_have_sixty_four_directories() {
    let mut stage = Stage::new(&[]);
    let cat = session_of(&stage.execd.open("exec cat"));
    let names: Vec<String> = (0..64).map(|number| format!("run-{number}")).collect();
    let ids: Vec<u64> = names.iter().map(|name| stage.begin_slow(name, isolated())).collect();
    let dirs: BTreeSet<PathBuf> = names.iter().map(|name| stage.until_noted(name)).collect();
    let all: BTreeSet<PathBuf> =
        (0..64).map(|number| stage.place().join(format!("agent-{number}"))).collect();
    assert_eq!(dirs, all);
    stage.execd.input_until(cat, "hello\\n", "hello\n");
    names.iter().for_each(|name| stage.let_go(name));
    for id in ids {
        assert_eq!(stage.execd.result_of(id)["success"], true);
    }
    eventually("all are gone", || tree(&stage.place()).is_empty());
}

/// rule: agent.md, Keys: A key of a provider that pi has no variable for stands in an auth.json of
///   the run's own, over what models.json says; all else is the shared directory's
#[test]
fn a_key_that_pi_would_take_for_something_else_is_refused() {
    let mut stage = Stage::new(&[]);
    for (key, model, isolation) in [
        ("!cat-all-secrets", "custom-made/x", "shared"),
        ("of-$HOME-and-more", "custom-made/x", "shared"),
        ("of-$HOME-and-more", "anthropic/x", "run"),
    ] {
        let more = json!({"model": model, "api_key": key, "isolation": isolation});
        let said = stage.execd.refused("agent_execute", params(&stage.pi, more), "api_key");
        assert!(said.contains("must not begin with ! nor have $ in it"), "{said}");
        assert!(!said.contains(key), "{said}");
    }
    // In a variable it is what it is.
    let key = "of-$HOME-and-more";
    let plain = json!({"model": "anthropic/x", "api_key": key, "isolation": "shared"});
    assert_eq!(stage.run("variable", plain)["success"], true);
    assert!(stage.noted("variable/env").contains("ANTHROPIC_API_KEY=of-$HOME-and-more"));
}

// ---- Prompts that are too long for an argument ------------------------------------------

fn long(text: &str) -> String {
    format!("-{}é", text.repeat(200 * 1024 / text.len()))
}

fn name_of(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    let digits: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("prompt-{digits}.md")
}

/// The loop wrote long prompts to a file in $TMPDIR, after a look at all that is in that directory:
/// a disk that stood held up everybody.
/// rule: agent.md, Invocation: Prompts over 100 KiB go through a temporary `@file`, 0600, removed:
///   named by the text
#[test]
fn a_prompt_of_200_kib_goes_through_a_file_that_is_named_by_its_text() {
    // There is no directory for temporary files, and nobody misses it.
    let mut stage = Stage::with(&["--no-log"], &[("TMPDIR", "/nowhere/at/all")]);
    let (one, other) = (long("x"), long("xy"));
    for (run, prompt) in [("first", &one), ("second", &one), ("other", &other)] {
        let result = stage.run(run, json!({"prompt": prompt}));
        assert_eq!(result["success"], true, "{result}");
        let path = stage.prompt_of(run);
        // Not even here may pi take it for a flag: what counts is what the model reads.
        let text = format!(" {prompt}");
        assert_eq!(path, stage.place().join(name_of(&text)));
        assert!(stage.noted(&format!("{run}/prompt")) == text, "the file has the prompt");
        assert_eq!(stage.noted(&format!("{run}/mode")), "600");
        let argv = stage.noted(&format!("{run}/argv"));
        assert_eq!(argv.split('\0').nth_back(1), Some(&*format!("@{}", path.display())));
        until_gone(&path);
    }
    assert_eq!(stage.prompt_of("first"), stage.prompt_of("second"));
    // It is there until the last run with its text is over.
    let slow = stage.begin_slow("slow", json!({"prompt": one}));
    stage.until_noted("slow");
    for (run, prompt) in [("third", &one), ("another", &other)] {
        assert_eq!(stage.run(run, json!({"prompt": prompt}))["success"], true);
    }
    assert_eq!(stage.prompt_of("slow"), stage.prompt_of("third"));
    until_gone(&stage.prompt_of("another"));
    assert!(stage.prompt_of("slow").exists(), "its run goes on");
    stage.let_go("slow");
    assert_eq!(stage.execd.result_of(slow)["success"], true);
    until_gone(&stage.prompt_of("slow"));
}

/// rule: agent.md, Invocation: Prompts over 100 KiB go through a temporary `@file`, 0600, removed:
///   named by the text
#[test]
fn a_name_that_leads_elsewhere_is_not_followed() {
    let mut stage = Stage::new(&[]);
    stage.execd.ping();
    let prompt = long("x");
    let name = name_of(&format!(" {prompt}"));
    let secret = stage.execd.file("secret");
    std::fs::write(&secret, format!(" {prompt}")).expect("a file");
    let place = stage.place();
    std::fs::DirBuilder::new().mode(0o700).create(&place).expect("a directory");
    symlink(&secret, place.join(&name)).expect("a link");
    let result = stage.run("run", json!({"prompt": prompt}));
    assert_eq!(result["success"], true, "{result}");
    assert_eq!(stage.prompt_of("run"), place.join(name.replace(".md", "-1.md")));
    until_gone(&stage.prompt_of("run"));
    assert!(secret.exists(), "what the link leads to is there");
}
