//! What a log loses where its disk fails, is full, or where somebody deletes, shortens or replaces
//! the log: the command never notices, each loss is told, and the bytes that can be read are
//! together with the gaps exactly what was written (logs.md, Full disks).

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::outside::{Trace, can_trace};
use crate::common::{Execd, eventually, log_path};
use crate::log_help::*;
use serde_json::json;

/// Lines of 8 bytes each that are more than the bound and memory (1 MiB each) together.
const FLOOD_LINES: u64 = 400_000;
/// More calls of a kind than the log writer makes in one of these tests.
const MOST_CALLS: u64 = 400;
// ---- A disk that fails ------------------------------------------------------------------

/// The log writer's Nth call of a kind on the files of a log fails, for each N that there is, and
/// others as `also` says. Gives how many there are.
fn each_call_fails(call: &str, error: &str, also: &[&str]) -> u64 {
    for number in 1..MOST_CALLS {
        let mut execd = Execd::with(&BOUND, &[]);
        let mut printer = Printer::start(&mut execd);
        let log = log_path(&execd.listed(printer.session).expect("it runs"));
        let files = [log.clone(), log.with_extension("log.index"), log.with_extension("meta")];
        let files = files.map(|file| file.to_str().expect("UTF-8").to_owned());
        let inject = format!("inject={call}:error={error}:when={number}");
        let mut args = vec!["-e", "trace=write,pwrite64", "-e", &inject];
        args.extend(files.iter().flat_map(|file| ["-P", file]));
        args.extend(also);
        let trace = Trace::attach(execd.keeper(), &args);
        printer.print(&mut execd, 10);
        printer.print(&mut execd, 20_000);
        let end = printer.end(&mut execd);
        let there = printer.check(&mut execd);
        let whole = printer.wrote.len() as u64;
        let told = end["log_complete"] == false || there == whole;
        assert!(told, "{inject}: {there} of {whole} are there, and nobody tells: {end}");
        let failed = |line: &str| line.starts_with(call) && line.contains("(INJECTED)");
        if !trace.detach().lines().any(failed) {
            assert!(there == whole || !also.is_empty(), "{inject}: nothing has failed");
            return number - 1;
        }
    }
    panic!("more than {MOST_CALLS} calls");
}

/// rule: logs.md, Full disks: No command is ended by what happens to its log, or held up by a disk
///   that is full or fails
/// rule: logs.md, Full disks: What was lost is a gap of `read_output`, and nothing else is
/// rule: architecture.md, The keeper: Log trouble: the session goes on, missing bytes are counted,
///   each reply says so
#[test]
fn each_write_of_the_log_writer_may_fail() {
    if !can_trace() {
        return;
    }
    // What is lost stands in an index, which has to be written too.
    let lost = ["-e", "inject=write:error=ENOSPC:when=2..3"];
    for (call, error, also, least) in
        [("write", "ENOSPC", &[][..], 5), ("write", "EIO", &[], 5), ("pwrite64", "EIO", &lost, 2)]
    {
        let calls = each_call_fails(call, error, also);
        assert!(calls >= least, "the log writer writes: {calls}");
    }
}

/// rule: logs.md, Full disks: the beginning stays, and what comes then is lost instead: the bound
///   holds
/// rule: logs.md, Bounds: Where the file system makes no holes, a log keeps its first bytes
/// rule: unified-exec.md, Logs: Where the file system makes no holes, a log keeps its first bytes
#[test]
fn a_beginning_that_cannot_be_given_back_is_kept_and_the_bound_holds() {
    if !can_trace() {
        return;
    }
    for (error, when) in
        [("EIO", "1+"), ("EIO", "2"), ("ENOSPC", "1+"), ("ENOSPC", "2"), ("EOPNOTSUPP", "1+")]
    {
        let mut execd = Execd::with(&BOUND, &[]);
        let mut printer = Printer::start(&mut execd);
        let inject = format!("inject=fallocate:error={error}:when={when}");
        let calls = ["-e", "trace=fallocate", "-e", &inject];
        let trace = Trace::attach(execd.keeper(), &calls);
        printer.print(&mut execd, 10);
        printer.print(&mut execd, FLOOD_LINES);
        let taken = taken(&execd.log_dir());
        assert!(taken <= KEEP_BYTES + KEEP_BYTES / 16, "{inject}: {taken} bytes of the disk");
        printer.print(&mut execd, 10);
        let end = printer.end(&mut execd);
        let there = printer.check(&mut execd);
        assert!(there >= KEEP_BYTES / 2, "{inject}: {there} are there: {end}");
        assert!(trace.detach().contains("(INJECTED)"), "{inject}");
        // Where nothing makes holes the log has ended at its bound, which is no failure.
        let failure = end["failure_message"].as_str().unwrap_or_default();
        let failed = failure.contains(error);
        assert_eq!(failed, error != "EOPNOTSUPP", "{inject}: {failure}");
        let truncated = end["log_truncated"] == true;
        let warning = end["warning"].as_str().unwrap_or_default();
        assert_eq!(warning.contains("its file system makes no holes"), truncated, "{end}");
        assert!(truncated != failed && (truncated || end["log_complete"] == false), "{end}");
    }
}

// ---- A full disk ------------------------------------------------------------------------

// ---- Somebody else's hands --------------------------------------------------------------

/// What is done to a log that is being written.
const HANDS: [&str; 4] = ["deleted", "emptied", "cut in half", "replaced"];

fn lay_hands_on(log: &Path, how: &str) {
    let file = || File::options().write(true).open(log).expect("the log");
    match how {
        "deleted" => std::fs::remove_file(log).expect("it is there"),
        "emptied" => file().set_len(0).expect("it can be made shorter"),
        "cut in half" => {
            let half = log.metadata().expect("it is there").len() / 2;
            file().set_len(half).expect("it can be made shorter");
        }
        _ => {
            let other = log.with_extension("other");
            std::fs::write(&other, vec![b'?'; 3 << 20]).expect("room");
            std::fs::rename(&other, log).expect("it takes the log's place");
        }
    }
}

/// rule: unified-exec.md, Logs: A log that somebody has made shorter begins anew
/// rule: unified-exec.md, Logs: No command is blocked or ended for it
/// rule: logs.md, Full disks: A log that somebody deletes, makes shorter or replaces while it is
///   written is never read as what it was not
/// rule: architecture.md, The keeper: A deleted log is log trouble
#[test]
fn a_log_under_somebody_elses_hands_is_told_and_never_read_wrongly() {
    for how in HANDS {
        for (before, more) in [(1_000, &[][..]), (FLOOD_LINES, &["--no-keeper"])] {
            let mut execd = Execd::with(&[&BOUND, more].concat(), &[]);
            let mut printer = Printer::start(&mut execd);
            printer.print(&mut execd, before);
            let log = log_path(&execd.listed(printer.session).expect("it runs"));
            printer.check(&mut execd);
            lay_hands_on(&log, how);
            // Before anybody has looked at the file, and when it has been seen.
            printer.print(&mut execd, 10);
            printer.check(&mut execd);
            eventually("that is told", || {
                printer.print(&mut execd, 1);
                let row = execd.listed(printer.session).expect("it runs");
                row["failure_message"].is_string()
            });
            printer.check(&mut execd);
            printer.print(&mut execd, FLOOD_LINES);
            printer.check(&mut execd);
            let end = printer.end(&mut execd);
            let there = printer.check_loss(&mut execd, &end);
            let most = printer.wrote.len() as u64;
            assert!(there < most, "{how}: {there} of {most}: {end}");
            assert!(end["failure_message"].is_string(), "{how}: {end}");
            if how == "replaced" {
                assert!(std::fs::read(&log).is_ok_and(|other| other == vec![b'?'; 3 << 20]));
            } else {
                let (from, taken) = (end["log_from"].as_u64(), taken(&execd.log_dir()));
                let bound = KEEP_BYTES..=KEEP_BYTES + KEEP_BYTES / 16;
                assert!(from.is_some() && bound.contains(&taken), "{how}: {taken}: {end}");
            }
        }
    }
}

/// rule: logs.md, Full disks: A log that somebody deletes, makes shorter or replaces while it is
///   written is never read as what it was not
#[test]
fn a_log_that_is_made_shorter_or_deleted_after_the_end_has_a_gap() {
    for how in ["deleted", "emptied", "cut in half"] {
        for before in [1_000, FLOOD_LINES] {
            let mut execd = Execd::with(&BOUND, &[]);
            let mut printer = Printer::start(&mut execd);
            printer.print(&mut execd, before);
            let log = log_path(&execd.listed(printer.session).expect("it runs"));
            printer.end(&mut execd);
            let whole = printer.check(&mut execd);
            lay_hands_on(&log, how);
            assert!(printer.check(&mut execd) < whole, "{how}");
        }
    }
}

/// Bytes of whatever file had the name of an ended log were once told as output.
/// rule: logs.md, Full disks: What stands in the place of a log that has ended is never waited for
///   nor read: a request for any part of that log is an error that says what stands there
#[test]
fn what_stands_in_the_place_of_an_ended_log_is_told_and_not_read() {
    for (kind, told) in [
        ("mkfifo", "a FIFO"),
        ("ln -s /etc/passwd", "a symbolic link"),
        ("mkdir", "a directory"),
        ("cp /etc/passwd", "another file"),
    ] {
        let mut execd = Execd::with(&BOUND, &[]);
        let long = execd.run_with("seq 400000", json!({"yield_time_ms": 60_000}));
        let cmd = "seq 30000; seq 9 >&2";
        let two = execd.result("bash_stream", json!({"command": cmd, "stream": false}));
        let logs = [log_path(&long), PathBuf::from(two["logPath"].as_str().expect("a path"))];
        for log in &logs {
            std::fs::remove_file(log).expect("it is there");
            let path = log.to_str().expect("UTF-8");
            let made = Command::new("sh").args(["-c", &format!("{kind} {path}")]).status();
            assert!(made.is_ok_and(|status| status.success()), "{kind}");
        }
        for (method, params, log) in [
            // Its beginning is a gap.
            ("read_output", json!({"session_id": 1, "from": 0}), 0),
            ("read_output", json!({"session_id": 1, "from": 5, "to": 9, "view": "b64"}), 0),
            ("read_output", json!({"session_id": 1, "lines": 3}), 0),
            ("read_output", json!({"session_id": 1, "from": 0, "until": {"text": "root"}}), 0),
            ("read_output", json!({"session_id": 2, "stream": "stderr"}), 1),
            ("get_process_log", json!({"sessionId": 2}), 1),
        ] {
            let error = execd.error(method, params.clone());
            let name = logs[log].file_name().expect("a name").to_string_lossy();
            let says = format!(
                "the log: {told} stands in the place of {name}, which was moved or deleted"
            );
            assert_eq!(error["message"], says, "{kind} {params}");
            assert_eq!(error["data"]["reason"], "system");
        }
        // Nothing at all is a gap, and nothing is left.
        for log in &logs {
            let _ = std::fs::remove_dir(log).or_else(|_| std::fs::remove_file(log));
        }
        for (session, total) in [(1, 2_688_895), (2, 168_912)] {
            let part = execd.result("read_output", json!({"session_id": session, "from": 0}));
            let [gap, log_from] = [&part["gap"], &part["log_from"]];
            assert_eq!((gap, log_from), (&json!([0, total]), &json!(total)), "{part}");
        }
    }
}
