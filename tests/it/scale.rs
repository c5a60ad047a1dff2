//! Tasks on many machines (docs/machines.md), what of it one machine can show: the scripts of
//! docs/examples/many under GNU parallel, and the command of the Kubernetes Job as the first
//! process of a pid namespace. No cluster of Kubernetes is asked: its manifest is held against the
//! published schema. Slurm is tests/it/slurm.rs.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::outside::{end_of, end_within, output_of, status_of};
use crate::common::{eventually, left_out, missing, outside, send_signal, until_file_has};
use crate::scale_help::{Batch, parallel_of, script, scripts};

const TASKS: usize = 24;
/// How long all of them may take: each starts some fifteen processes, and a machine may be busy.
const ALL_TASKS: Duration = Duration::from_secs(180);
/// How many of them run at once, as the document has it.
const AT_ONCE: usize = 8;

/// What these tasks do: most of them succeed at once.
fn word(n: usize) -> &'static str {
    match n {
        2 | TASKS => "once",
        3 => "always",
        4 => "crash",
        5 => "killed",
        6 => "refused",
        _ => "plain",
    }
}

fn parallel(batch: &Batch) -> Child {
    batch.command(&["bash", "here.sh"]).env("PAUSE", "0.1").spawn().expect("it starts")
}

/// rule: scale.md, GNU parallel: Each result exactly once, and what failed is tried again as its
///   error_kind says
#[test]
fn parallel_runs_all_tasks() {
    if missing("parallel") || missing("jq") {
        return;
    }
    let batch = Batch::new((1..=TASKS).map(word).collect());
    let status = end_within(&mut parallel(&batch), ALL_TASKS);
    assert!(status.success(), "{status}");
    batch.until_gone();
    batch.assert_done();
    assert!(batch.starts_of("plain").iter().all(|times| *times == 1));
}

/// A task whose try was written down was run again when it was killed before its result was.
/// rule: scale.md, GNU parallel: SIGTERM ends what runs, at once, and leaves nothing
/// rule: scale.md, GNU parallel: Started once more it goes on
/// rule: scale.md, One task: What was killed between its last try and its result is not run again
#[test]
#[ignore = "runs many pis; make test-large"]
fn parallel_goes_on_where_it_was_ended() {
    if missing("parallel") || missing("jq") {
        return;
    }
    // Two are not begun: those that run are in their places.
    let (plain, held) = (TASKS - AT_ONCE - 2, AT_ONCE + 2);
    let batch = Batch::new([vec!["plain"; plain], vec!["held"; held]].concat());
    let mut first = parallel(&batch);
    eventually("the first ones are done", || batch.results().len() == plain);
    eventually("they run", || batch.read("hanging").lines().count() == AT_ONCE);
    send_signal(parallel_of(&first), libc::SIGTERM);
    end_of(&mut first);
    batch.until_gone();
    let before = batch.results();
    assert_eq!(before.len(), plain, "it was ended in the middle");
    std::fs::write(batch.at("go"), "").expect("a file");
    // As if the end had come a moment earlier.
    let (done, number) = (1..=TASKS)
        .map(|n| (batch.at(&format!("results/{n}.json")), n))
        .find(|(path, _)| path.exists())
        .expect("a result");
    std::fs::remove_file(done).expect("a file");
    let starts = batch.read("starts");
    let status = end_within(&mut parallel(&batch), ALL_TASKS);
    assert!(status.success(), "{status}");
    batch.until_gone();
    batch.assert_done();
    assert!(before.iter().all(|(label, result)| batch.results()[label] == *result));
    let again = batch.read("starts").split_off(starts.len());
    assert!(!again.contains(&crate::scale_help::label(number)), "task {number} ran again");
}

/// rule: scale.md, GNU parallel: SIGHUP lets what runs come to its end and starts nothing more
#[test]
#[ignore = "runs many pis; make test-large"]
fn parallel_that_hears_sighup_starts_nothing_more() {
    if missing("parallel") || missing("jq") {
        return;
    }
    let batch = Batch::new(vec!["held"; AT_ONCE + 2]);
    let said = File::create(batch.at("said")).expect("a file");
    let mut command = batch.command(&["bash", "here.sh"]);
    let mut child = command.env("PAUSE", "0.1").stderr(said).spawn().expect("it starts");
    eventually("they run", || batch.read("hanging").lines().count() == AT_ONCE);
    send_signal(parallel_of(&child), libc::SIGHUP);
    until_file_has(&batch.at("said"), "No new jobs will be started");
    std::fs::write(batch.at("go"), "").expect("a file");
    end_of(&mut child);
    batch.until_gone();
    assert_eq!((batch.starts(), batch.results().len()), (AT_ONCE, AT_ONCE));
    let status = end_within(&mut parallel(&batch), ALL_TASKS);
    assert!(status.success(), "{status}");
    batch.until_gone();
    batch.assert_done();
    assert_eq!(batch.starts(), AT_ONCE + 2);
}

/// rule: scale.md, GNU parallel: What fails for all tasks ends it before all were begun
#[test]
#[ignore = "runs many pis; make test-large"]
fn a_wrong_key_ends_parallel() {
    if missing("parallel") || missing("jq") {
        return;
    }
    let batch = Batch::new(vec!["denied"; 8 * AT_ONCE]);
    let status = end_within(&mut parallel(&batch), ALL_TASKS);
    assert!(!status.success(), "{status}");
    batch.until_gone();
    let begun: BTreeSet<String> = batch.read("starts").lines().map(str::to_owned).collect();
    assert!(begun.len() < 8 * AT_ONCE, "{} of the tasks have begun", begun.len());
    assert!(batch.results().is_empty());
}

/// rule: scale.md, One task: What fails for all tasks is 78, without a result and without a try
#[test]
#[ignore = "runs many pis; make test-large"]
fn what_fails_for_all_tasks_is_no_result() {
    if missing("jq") {
        return;
    }
    let batch = Batch::new(vec!["denied", "plain"]);
    let status = |command: &mut Command| status_of(command).code();
    assert_eq!(status(&mut batch.command(&["bash", "task.sh", "1"])), Some(78));
    // A node without pi, and a model that makes no sense.
    let task = ["bash", "task.sh", "2"];
    assert_eq!(status(batch.command(&task).env("EXECD_PI", "/nowhere/pi")), Some(78));
    assert_eq!(status(batch.command(&task).env("MODEL", "no-provider")), Some(78));
    assert!(batch.results().is_empty());
    assert_eq!(std::fs::read_dir(batch.at("tries")).expect("tries").count(), 0);
    assert_eq!(status(&mut batch.command(&task)), Some(0));
    assert_eq!(batch.results().len(), 1);
}

/// The check let through what has no prompt (`jq` makes the prompt "null" of that, which is
/// run and paid), and a last line without its newline, which is no line to `wc` and never run.
/// rule: scale.md, One task: The check of a list finds what would be refused, run for nothing or
///   left out
#[test]
fn the_check_of_a_list_finds_what_is_no_task() {
    if missing("jq") {
        return;
    }
    let check = scripts().join("check.sh");
    let dir = tempfile::TempDir::new().expect("a directory");
    let says = |list: &str| {
        std::fs::write(dir.path().join("tasks.ndjson"), list).expect("a list");
        let said = output_of(Command::new("bash").arg(&check).current_dir(dir.path()));
        String::from_utf8_lossy(&said.stdout).trim().to_owned()
    };
    let task = r#"{"label":"a","prompt":"b"}"#;
    assert_eq!(says(&format!("{task}\n{task}\n")), "true");
    for wrong in [
        format!("{task}\n{task}"),
        format!("{task} {task}\n"),
        format!("{task}\n\n"),
        format!("{task}\n{{\"label\":\"a\"}}\n"),
        format!("{task}\n{{\"prompt\":\"b\"}}\n"),
        format!("{}\n", task.replace("\"b\"", "\"\"")),
        format!("{}\n", task.replace("\"b\"", "5")),
    ] {
        assert_eq!(says(&wrong), "false", "{wrong}");
    }
    assert_ne!(says("no JSON\n"), "true");
}

// ---- Slurm, without one -------------------------------------------------------------------

/// rule: scale.md, Slurm: `submit.sh` ends with the status of an sbatch that is refused, and called
///   once more it goes on with what is left
#[test]
fn a_refused_array_ends_submit_sh() {
    let batch = Batch::new(vec!["plain"; 2500]);
    let sbatch = "#!/bin/sh\necho \"$*\" >> asked\n[ \"$(wc -l < asked)\" -ne 2 ] || exit 7\n";
    crate::agent_help::write_program(&batch.at("bin/sbatch"), sbatch);
    let submit = || status_of(&mut batch.command(&["bash", "submit.sh"])).code();
    assert_eq!(submit(), Some(7));
    assert_eq!(batch.read("asked").lines().count(), 2, "the third one is not asked for");
    for n in 1..=1000 {
        std::fs::write(batch.at(&format!("results/{n}.json")), "").expect("a result");
    }
    assert_eq!(submit(), Some(0));
    let asked = batch.read("asked");
    let again: Vec<&str> = asked.lines().skip(2).collect();
    assert_eq!(again.len(), 2);
    assert!(again[0].contains("FIRST=1000") && again[1].contains("FIRST=2000"), "{asked}");
}

// ---- Kubernetes -------------------------------------------------------------------------

/// The validator, which has the schemas of Kubernetes with it (`.ci/run` installs it).
const VALIDATOR: &str = "tests/kubernetes/venv/bin/kubernetes-validate";

fn is_valid(dir: &Path, manifest: &str) -> (bool, String) {
    let file = dir.join("job.yaml");
    std::fs::write(&file, manifest).expect("a manifest");
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join(VALIDATOR);
    let done = output_of(Command::new(program).args(["--strict", "-k", "1.33"]).arg(&file));
    let said = [done.stdout, done.stderr].concat();
    (done.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// rule: scale.md, Kubernetes: The manifest fits the schema of Kubernetes
#[test]
#[ignore = "runs many pis; make test-large"]
fn the_manifest_fits_its_schema() {
    if !Path::new(env!("CARGO_MANIFEST_DIR")).join(VALIDATOR).exists() {
        left_out("the schema of Kubernetes: kubernetes-validate is not installed");
        return;
    }
    let dir = tempfile::TempDir::new().expect("a directory");
    let manifest = script("job.yaml");
    let (valid, said) = is_valid(dir.path(), &manifest);
    assert!(valid, "{said}");
    let (valid, _) = is_valid(dir.path(), &manifest.replace("completionMode:", "completionMod:"));
    assert!(!valid, "the validator looks at it");
}

fn command_of_the_job() -> Vec<String> {
    let manifest = script("job.yaml");
    let found = manifest.lines().find_map(|line| line.trim().strip_prefix("command: "));
    serde_json::from_str(found.expect("a command")).expect("a list of words")
}

/// rule: scale.md, Kubernetes: The container's command writes the result of its index, and SIGTERM
///   to the first process leaves nothing running
#[test]
#[ignore = "runs many pis; make test-large"]
fn the_command_of_the_job_is_a_first_process() {
    if missing("jq") || !outside::may_choose_pids() {
        return;
    }
    let batch = Batch::new(vec!["plain", "hang", "plain"]);
    let words = command_of_the_job();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let start = |index: &str| {
        let mut command = batch.command(&[&outside::OWN_PIDS[..], &words].concat());
        command.env("JOB_COMPLETION_INDEX", index).stdout(Stdio::null()).spawn().expect("it starts")
    };
    let status = end_of(&mut start("2"));
    assert_eq!((status.code(), batch.results().len()), (Some(0), 1));
    assert!(batch.at("results/3.json").exists(), "index 2 is line 3");
    let mut hanging = start("1");
    eventually("it runs", || batch.read("hanging").lines().count() == 1);
    let unshare = i32::try_from(hanging.id()).expect("a pid");
    let [(first, _)] = outside::children(unshare)[..] else { panic!("one child") };
    send_signal(first, libc::SIGTERM);
    let status = end_of(&mut hanging);
    assert_eq!(status.code(), Some(143), "the signal that ended it");
    batch.until_gone();
    assert_eq!(batch.results().len(), 1, "what was ended has no result");
}

/// rule: scale.md, Kubernetes: The exit statuses of task.sh are those that the manifest knows
#[test]
fn the_manifest_knows_the_statuses_of_a_task() {
    let (task, manifest) = (script("task.sh"), script("job.yaml"));
    assert!(task.contains("exit 78") && manifest.contains("values: [78]"));
    // The most tries of a task are the first one and those behind it.
    let most = task.split("most=").skip(1).filter_map(|rest| rest.split(' ').next());
    let most = most.filter_map(|number| number.parse::<usize>().ok()).max();
    let further = manifest.lines().find_map(|line| {
        let number = line.trim().strip_prefix("backoffLimitPerIndex: ")?;
        number.split(' ').next()?.parse::<usize>().ok()
    });
    assert_eq!(most, further.map(|further| further + 1));
    assert!(script("here.sh").contains(&format!("--retries {} ", most.expect("a number"))));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/machines.md");
    let page = std::fs::read_to_string(page).expect("the page");
    assert!(page.contains("**This was not run on a cluster.**"), "it says what was not run");
    for entry in std::fs::read_dir(scripts()).expect("the scripts").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(page.contains(&format!("](examples/many/{name})")), "{name} is not in the page");
    }
}
