//! Prompts that are too long for an argument: the file that pi reads them from (agent.md, How pi is
//! called).

use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use crate::agent_help::*;
use crate::common::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Notes the last argument and what is in the file that it names, in the directory $1; then
/// answers.
const NOTE: &str = r#"for last; do :; done
cp "${last#@}" prompt; stat -Lc %a "${last#@}" > mode; echo "$last" > path
printf '%s\0' "$@" > argv
[ -e wait ] && until [ -e go ]; do sleep 0.02; done
cat ../answer.ndjson"#;

struct Stage {
    execd: Execd,
    pi: String,
}

impl Stage {
    fn with(args: &[&str], envs: &[(&str, &str)]) -> Self {
        let execd = Execd::with(args, envs);
        let pi = execd.file("pi");
        write_pi(&pi, NOTE);
        std::fs::write(execd.file("answer.ndjson"), ndjson(&answer("Done."))).expect("a stream");
        Self { pi: pi.to_string_lossy().into_owned(), execd }
    }

    fn begin(&mut self, name: &str, prompt: &str, more: Value) -> u64 {
        std::fs::create_dir(self.execd.file(name)).expect("a directory");
        self.begin_in(name, prompt, more)
    }

    fn begin_in(&mut self, name: &str, prompt: &str, more: Value) -> u64 {
        let of_run = json!({"prompt": prompt, "workspace": self.execd.file(name)});
        let params = merged(params(&self.pi, of_run), more);
        self.execd.start_request("agent_execute", params)
    }

    fn run(&mut self, name: &str, prompt: &str) -> Value {
        let id = self.begin(name, prompt, json!({}));
        self.execd.result_of(id)
    }

    fn noted(&self, file: &str) -> String {
        std::fs::read_to_string(self.execd.file(file)).expect("it was noted").trim_end().to_owned()
    }

    fn path(&self, name: &str) -> PathBuf {
        let path = self.noted(&format!("{name}/path"));
        PathBuf::from(path.strip_prefix('@').expect("a file"))
    }

    fn place(&self) -> PathBuf {
        self.execd.runtime_dir().join("execd/pi")
    }
}

fn long(text: &str) -> String {
    format!("-{}é", text.repeat(200 * 1024 / text.len()))
}

fn name_of(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    let digits: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("prompt-{digits}.md")
}

fn until_gone(path: &Path) {
    eventually("the file is gone", || path.symlink_metadata().is_err());
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
        let result = stage.run(run, prompt);
        assert_eq!(result["success"], true, "{result}");
        let path = stage.path(run);
        // Not even here may pi take it for a flag: what counts is what the model reads.
        let text = format!(" {prompt}");
        assert_eq!(path, stage.place().join(name_of(&text)));
        assert_eq!((stage.noted(&format!("{run}/prompt")), text.as_str()), (text.clone(), &*text));
        assert_eq!(stage.noted(&format!("{run}/mode")), "600");
        let argv = stage.noted(&format!("{run}/argv"));
        assert_eq!(argv.split('\0').nth_back(1), Some(&*format!("@{}", path.display())));
        assert!(!argv.contains("--start-pi"), "{argv}");
        until_gone(&path);
    }
    assert_eq!(stage.path("first"), stage.path("second"));
}

/// rule: agent.md, Invocation: Prompts over 100 KiB go through a temporary `@file`, 0600, removed:
///   named by the text
#[test]
fn runs_with_the_same_text_share_its_file_which_is_there_until_the_last_is_over() {
    let mut stage = Stage::with(&[], &[]);
    let (same, other) = (long("x"), long("xy"));
    std::fs::create_dir(stage.execd.file("slow")).expect("a directory");
    std::fs::write(stage.execd.file("slow/wait"), "").expect("a file");
    let slow = stage.begin_in("slow", &same, json!({}));
    until_exists(&stage.execd.file("slow/argv"));
    stage.run("quick", &same);
    stage.run("other", &other);
    assert_eq!(stage.path("slow"), stage.path("quick"));
    until_gone(&stage.path("other"));
    assert!(stage.path("slow").exists(), "its run goes on");
    std::fs::write(stage.execd.file("slow/go"), "").expect("a file");
    assert_eq!(stage.execd.result_of(slow)["success"], true);
    until_gone(&stage.path("slow"));
}

/// rule: agent.md, Invocation: Prompts over 100 KiB go through a temporary `@file`, 0600, removed:
///   named by the text
#[test]
fn a_name_that_leads_elsewhere_is_not_followed() {
    let mut stage = Stage::with(&[], &[]);
    stage.execd.ping();
    let prompt = long("x");
    let name = name_of(&format!(" {prompt}"));
    let secret = stage.execd.file("secret");
    std::fs::write(&secret, format!(" {prompt}")).expect("a file");
    let place = stage.place();
    std::fs::DirBuilder::new().mode(0o700).create(&place).expect("a directory");
    symlink(&secret, place.join(&name)).expect("a link");
    let result = stage.run("run", &prompt);
    assert_eq!(result["success"], true, "{result}");
    assert_eq!(stage.path("run"), place.join(name.replace(".md", "-1.md")));
    until_gone(&stage.path("run"));
    assert!(secret.exists(), "what the link leads to is there");
}
