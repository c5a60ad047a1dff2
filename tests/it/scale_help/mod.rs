//! A list of tasks for a scheduler (docs/machines.md): the scripts of docs/examples/many in a
//! directory with a pi of our own that does what a task's first word says.
#![allow(dead_code)] // No test uses all of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agent_help::{answer, failed_answer, ndjson, write_program};
use crate::common::{EXECD, contains, eventually, outside, send_signal};

/// What all processes of a batch have in their environment, with its directory; those of execd that
/// keep little of theirs have it too.
const MARK: &str = "XDG_RUNTIME_DIR";

/// Notes its start, and goes on as its task says. `once`, `killed` and `lost` fail at the first try
/// alone. Of `hang` a process stays that has left its session and its parent. `held` waits until
/// the file `go` is there.
const PI: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo 1.2.3; exit; }
for prompt; do :; done
label=${prompt#* }
echo "$label" >> starts
above() { cut -d ' ' -f 4 "/proc/$1/stat"; }
failed() { [ -e "failed/$label" ] || { : > "failed/$label"; return 1; }; }
case $prompt in
  once*) failed && exec cat done; cat limited ;;
  always*) cat limited ;;
  refused*) cat refused ;;
  denied*) cat denied ;;
  crash*) kill -SEGV $$ ;;
  killed*) failed && exec cat done; kill -KILL "$(above "$(above "$PPID")")"; exec sleep 1000 ;;
  lost*) failed && exec cat done; scancel --signal=KILL --full "$SLURM_JOB_ID"; exec sleep 1000 ;;
  held*) echo "$label" >> hanging; until [ -e go ]; do sleep 0.1; done; cat done ;;
  hang*) setsid sh -c 'sleep 1000 &'; echo "$label" >> hanging; exec sleep 1000 ;;
  *) cat done ;;
esac
"#;

/// Where the scripts are.
pub fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/examples/many")
}

/// The text of one of the scripts, or of the manifest.
pub fn script(name: &str) -> String {
    let path = scripts().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A directory with tasks and all that they need.
pub struct Batch {
    dir: TempDir,
    /// The first word of each prompt.
    words: Vec<&'static str>,
}

impl Batch {
    /// A task for each of these words.
    pub fn new(words: Vec<&'static str>) -> Self {
        let dir = tempfile::Builder::new().prefix("execd-scale-").tempdir().expect("a directory");
        let batch = Self { dir, words };
        for name in ["bin", "failed", "results", "tries", "logs"] {
            std::fs::create_dir(batch.at(name)).expect("a directory");
        }
        for name in ["task.sh", "array.sh", "submit.sh", "here.sh"] {
            std::fs::write(batch.at(name), script(name)).expect("a script");
        }
        std::os::unix::fs::symlink(EXECD, batch.at("bin/execd")).expect("a link");
        write_program(&batch.at("bin/pi"), PI);
        for (name, lines) in [
            ("done", answer("Done.")),
            ("limited", failed_answer("429 Too many requests: slow down")),
            ("refused", failed_answer("Provider finish_reason: content_filter")),
            ("denied", failed_answer("401 invalid x-api-key")),
        ] {
            std::fs::write(batch.at(name), ndjson(&lines)).expect("a stream");
        }
        let task = |n: usize| {
            let prompt = format!("{} {}", batch.words[n - 1], label(n));
            json!({"label": label(n), "prompt": prompt})
        };
        let tasks: Vec<Value> = (1..=batch.words.len()).map(task).collect();
        std::fs::write(batch.at("tasks.ndjson"), ndjson(&tasks)).expect("tasks");
        batch
    }

    /// Where a file of it is.
    pub fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A file of it; nothing where there is none.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.at(name)).unwrap_or_default()
    }

    /// A program in this directory, with the pi and the execd of it first on the PATH.
    pub fn command(&self, words: &[&str]) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(self.dir.path());
        command.env("PATH", format!("{}:{path}", self.at("bin").display()));
        for name in ["HOME", "TMPDIR", MARK] {
            command.env(name, self.dir.path());
        }
        for name in ["EXECD_PI", "EXECD_SESSION_ID", "EXECD_INSTANCE", "MODEL"] {
            command.env_remove(name);
        }
        command.stdin(Stdio::null());
        command
    }

    /// How many tasks have begun, each try counted.
    pub fn starts(&self) -> usize {
        self.read("starts").lines().count()
    }

    /// Its processes.
    pub fn processes(&self) -> Vec<i32> {
        outside::marked(MARK, &self.dir.path().to_string_lossy())
    }

    /// Waits until no process of it is left.
    pub fn until_gone(&self) {
        eventually("nothing is left running", || self.processes().is_empty());
    }

    /// The results, by their labels. Each is one line, and there is nothing else beside them.
    pub fn results(&self) -> BTreeMap<String, Value> {
        let mut results = BTreeMap::new();
        for entry in std::fs::read_dir(self.at("results")).expect("results").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let number = name.strip_suffix(".json").and_then(|n| n.parse::<usize>().ok());
            let Some(number) = number else { continue };
            let text = self.read(&format!("results/{name}"));
            assert_eq!(text.matches('\n').count(), 1, "{name}: {text}");
            let result: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(result["label"], label(number), "{name}: {result}");
            let twice = results.insert(label(number), result);
            assert!(twice.is_none(), "{name} twice");
        }
        results
    }

    /// Each task has a result, which is what its word says.
    pub fn assert_done(&self) {
        let results = self.results();
        assert_eq!(results.len(), self.words.len());
        let files = std::fs::read_dir(self.at("results")).expect("results").count();
        assert_eq!(files, self.words.len(), "and nothing else is left in the directory");
        for (at, word) in self.words.iter().enumerate() {
            let result = &results[&label(at + 1)];
            let (error_kind, tries) = expected(word);
            let is = (&result["success"], &result["error_kind"], &result["tries"]);
            let success = json!(error_kind.is_null());
            assert_eq!(is, (&success, &error_kind, &json!(tries)), "{word}: {result}");
            let cost = if error_kind.is_null() { 0.25 } else { 0.0 };
            assert_eq!(result["cost_usd"].as_f64(), Some(cost), "{result}");
        }
    }

    /// How often each task of this word has begun.
    pub fn starts_of(&self, word: &str) -> Vec<usize> {
        let starts = self.read("starts");
        let tasks = self.words.iter().enumerate().filter(|(_, its)| **its == word);
        tasks.map(|(at, _)| starts.lines().filter(|line| *line == label(at + 1)).count()).collect()
    }
}

/// The parallel that this `here.sh` has started.
pub fn parallel_of(child: &Child) -> i32 {
    let shell = i32::try_from(child.id()).expect("a pid");
    let find = || {
        let children = outside::children(shell).into_iter().map(|(pid, _)| pid);
        children.into_iter().find(|pid| contains(&outside::cmdline(*pid), b"parallel\0"))
    };
    eventually("parallel runs", || find().is_some());
    find().expect("it runs")
}

/// Nothing outlives a test that has failed.
impl Drop for Batch {
    fn drop(&mut self) {
        for pid in self.processes() {
            send_signal(pid, 9);
        }
    }
}

/// A task's label: one that a shell would break, quote or expand.
pub fn label(n: usize) -> String {
    format!("task {n} 'of' \"all\" $n ä")
}

/// The `error_kind` of the result of a task with this word, and after how many tries.
fn expected(word: &str) -> (Value, usize) {
    match word {
        "once" | "killed" => (Value::Null, 2),
        "always" => (json!("rate_limit"), 4),
        "crash" => (json!("crash"), 2),
        "refused" => (json!("refusal"), 1),
        _ => (Value::Null, 1),
    }
}
