//! The pools of docs/agent.md: both programs are taken out of the document and run as they stand,
//! with a pi of our own. A pool is killed in the middle and started again.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::agent_help::*;
use crate::common::{eventually, missing, now, outside, send_signal};
use serde_json::{Value, json};
use tempfile::TempDir;

const TASKS: usize = 100;
/// Runs that the programs of the document have at once.
const AT_ONCE: usize = 8;
/// Lines of a program in the document at most.
const PROGRAM_LINES: usize = 20;
/// Runs that are tried again: three times each of the five that fail for good, once the two that
/// fail once.
const RETRIES: usize = 5 * 3 + 2;
/// How long a pool may take: it starts some two thousand processes, on a machine that may be busy.
const PATIENCE: Duration = Duration::from_secs(280);
/// What all processes of a pool have in their environment.
const MARK: &str = "POOL_OF_A_TEST";

/// A pi that notes its start and how many of it run, and does what its task says: the word before
/// the first blank.
const PI: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo 1.2.3; exit; }
for prompt; do :; done
: > running/$$
set -- running/*
echo "$#" >> counts
label=${prompt#* }
echo "$label" >> starts
case $prompt in
  once*) [ -e "failed/$label" ] && cat done || { : > "failed/$label"; cat limited; } ;;
  always*) cat limited ;;
  crash*) rm running/$$; kill -SEGV $$ ;;
  *) cat done ;;
esac
rm running/$$
"#;

/// The program of a language in the last section of the document.
fn program(language: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/agent.md");
    let text = std::fs::read_to_string(path).expect("the document");
    let (_, section) = text.rsplit_once("\n## ").expect("sections");
    let (_, rest) = section.split_once(&format!("```{language}\n")).expect("a program");
    let (program, _) = rest.split_once("```").expect("its end");
    assert!(program.lines().count() <= PROGRAM_LINES, "{language}: {PROGRAM_LINES} lines at most");
    program.to_owned()
}

struct Pool {
    dir: TempDir,
    program: &'static str,
}

impl Pool {
    fn new(program: &'static str, text: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("execd-pool-").tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        for name in ["bin", "running", "failed"] {
            std::fs::create_dir(at(name)).expect("a directory");
        }
        std::fs::write(at("program"), text).expect("a program");
        std::os::unix::fs::symlink(crate::common::EXECD, at("bin/execd")).expect("a link");
        write_program(&at("bin/pi"), PI);
        std::fs::write(at("done"), ndjson(&answer("Done."))).expect("a stream");
        let limited = failed_answer("429 Too many requests: slow down");
        std::fs::write(at("limited"), ndjson(&limited)).expect("a stream");
        let tasks = (0..TASKS).map(|n| json!({"label": label(n), "prompt": prompt(n)}));
        std::fs::write(at("tasks.ndjson"), ndjson(&tasks.collect::<Vec<_>>())).expect("tasks");
        Self { dir, program }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.at(name)).unwrap_or_default()
    }

    fn start(&self) -> Running {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(self.program);
        command.arg("program").current_dir(self.dir.path());
        command.env("PATH", format!("{}:{path}", self.at("bin").display()));
        command.env("TMPDIR", self.dir.path()).env("XDG_RUNTIME_DIR", self.dir.path());
        command.env(MARK, self.dir.path()).env_remove("EXECD_PI");
        command.stdin(Stdio::null()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
        Running(command.process_group(0).spawn().expect("it starts"))
    }

    fn until_gone(&self) {
        let dir = self.dir.path().to_string_lossy();
        eventually("nothing is left running", || outside::marked(MARK, &dir).is_empty());
    }

    /// The lines of the results that are whole.
    fn results(&self) -> Vec<Value> {
        let text = self.read("results.ndjson");
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

/// A pool that runs. It is killed with its process group where a test fails.
struct Running(Child);

impl Running {
    fn group(&self) -> i32 {
        i32::try_from(self.0.id()).expect("a pid")
    }

    fn kill(&mut self) {
        send_signal(-self.group(), 9);
        self.0.wait().expect("its end");
    }

    /// Waits until this holds, or the pool ends. Whether it goes on.
    fn goes_on_until(&mut self, mut holds: impl FnMut() -> bool) -> bool {
        let begun = now();
        loop {
            if self.0.try_wait().expect("a child").is_some() {
                return false;
            }
            if holds() {
                return true;
            }
            assert!(begun.elapsed() < PATIENCE, "the pool takes too long");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.0.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.kill();
        }
    }
}

/// A task's label: one that a shell would break, quote or expand.
fn label(n: usize) -> String {
    format!("task {n} 'of' \"all\" $n ä")
}

/// The task. What is tried again has its place at the beginning of a pool and in its middle.
fn prompt(n: usize) -> String {
    let what = match n {
        1 | 50 => "once",
        2..=4 | 51 => "always",
        5 => "crash",
        _ => "plain",
    };
    format!("{what} {}", label(n).replace('/', ""))
}

/// Runs a pool, kills it in the middle, and runs it again.
fn killed_and_resumed(pool: &Pool) {
    let mut running = pool.start();
    assert!(running.goes_on_until(|| pool.results().len() >= TASKS / 3), "it goes on");
    running.kill();
    pool.until_gone();
    let before = pool.results();
    assert!(before.len() < TASKS, "it was killed in the middle");
    // A line whose writing the kill has cut.
    let mut text = pool.read("results.ndjson");
    text.push_str(r#"{"label":"task 7"#);
    std::fs::write(pool.at("results.ndjson"), text).expect("the results");
    std::fs::remove_dir_all(pool.at("running")).expect("what the killed ones noted");
    std::fs::create_dir(pool.at("running")).expect("a directory");
    let starts = pool.read("starts").lines().count();
    let mut running = pool.start();
    running.goes_on_until(|| false);
    assert!(running.0.wait().expect("its end").success());
    pool.until_gone();
    // Each task is there once, and what was done was not done again.
    let results = pool.results();
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for result in &results {
        *times.entry(result["label"].as_str().expect("a label")).or_default() += 1;
    }
    let expected: Vec<String> = (0..TASKS).map(label).collect();
    let once: BTreeMap<&str, usize> = expected.iter().map(|label| (label.as_str(), 1)).collect();
    assert_eq!(times, once);
    assert_eq!(pool.read("results.ndjson").lines().count(), TASKS, "and nothing else");
    assert_eq!(results[..before.len()], before);
    let again = pool.read("starts").lines().count() - starts;
    assert!(again <= TASKS - before.len() + RETRIES, "{again} runs for the rest");
    // How each of them ended, and how many ran at once.
    for result in &results {
        let label = result["label"].as_str().expect("a label");
        let what = word_of(label);
        let wanted = match &*what {
            "always" => (json!(false), json!("rate_limit")),
            "crash" => (json!(false), json!("crash")),
            _ => (json!(true), Value::Null),
        };
        let is = (result["success"].clone(), result["error_kind"].clone());
        assert_eq!(is, wanted, "{result}");
        let starts = pool.read("starts").lines().filter(|line| line == &label).count();
        let most = if what == "plain" { 2 } else { 8 };
        assert!((1..=most).contains(&starts), "{label}: {starts}");
    }
    let counts = pool.read("counts");
    let most = counts.lines().filter_map(|count| count.parse::<usize>().ok()).max();
    assert!(most.is_some_and(|most| most > 1 && most <= AT_ONCE), "{most:?} at once");
}

/// What the task of a label does.
fn word_of(wanted: &str) -> String {
    let number = (0..TASKS).find(|n| label(*n) == wanted).expect("a task");
    prompt(number).split(' ').next().unwrap_or_default().to_owned()
}

/// rule: agent.md, execd agent: The document ends with a pool in shell, which is killed and resumed
#[test]
fn the_pool_in_shell_is_killed_and_resumed() {
    if ["jq", "flock", "xargs"].iter().any(|program| missing(program)) {
        return;
    }
    killed_and_resumed(&Pool::new("bash", &program("sh")));
}

/// Runs a pool with a task that is refused before another one; gives what it has written.
fn with_a_refused_task(pool: &Pool) -> Vec<Value> {
    let tasks = [("none", String::new()), ("task/6", prompt(6))];
    let tasks = tasks.map(|(label, prompt)| json!({"label": label, "prompt": prompt}));
    std::fs::write(pool.at("tasks.ndjson"), ndjson(&tasks)).expect("tasks");
    let mut running = pool.start();
    running.goes_on_until(|| false);
    pool.until_gone();
    let mut results = pool.results();
    results.sort_by_key(|result| result["success"] == true);
    results
}

/// rule: agent.md, A pool of runs: A task that is refused stops no pool
#[test]
fn a_task_that_is_refused_stops_no_pool() {
    if ["jq", "flock", "xargs", "python3"].iter().any(|program| missing(program)) {
        return;
    }
    let results = with_a_refused_task(&Pool::new("bash", &program("sh")));
    assert_eq!(results.len(), 1, "{results:?}");
    assert_eq!(results[0]["success"], true);
    let results = with_a_refused_task(&Pool::new("python3", &program("python")));
    assert_eq!(results.len(), 2, "{results:?}");
    assert_eq!(results[0]["label"], "none");
    let why = results[0]["error"]["message"].as_str().expect("why it was refused");
    assert!(why.starts_with("prompt must be"), "{why}");
    assert_eq!(results[1]["success"], true);
}

/// rule: agent.md, execd agent: The document ends with a pool in Python, which is killed and
///   resumed
#[test]
fn the_pool_in_python_is_killed_and_resumed() {
    if missing("python3") {
        return;
    }
    killed_and_resumed(&Pool::new("python3", &program("python")));
}
