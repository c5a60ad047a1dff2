//! `execd run` beside timeout(1), env(1), nohup(1) and script(1), and `execd --jobs` beside GNU
//! parallel: what is the same, better or different is shown here by running both programs. That all
//! else of a command is as by env(1) is shown in tests/it/run_front.rs.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use crate::common::{eventually, left_out};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A row: its first three cells (program, what is compared, how execd compares), the programs that
/// it needs, and what shows it.
type Row = (&'static str, &'static str, &'static str, &'static str, fn());

const ROWS: [Row; 16] = [
    ("timeout(1)", "status at the timeout", "same", "timeout", status_at_the_timeout),
    (
        "timeout(1)",
        "status after SIGKILL at the timeout",
        "different",
        "timeout",
        killed_at_the_timeout,
    ),
    ("timeout(1)", "a command that ignores SIGTERM", "better", "timeout", ignored_sigterm),
    ("timeout(1)", "a command that has gone silent", "better", "timeout", silence),
    ("timeout(1)", "reading the terminal", "better", "script", reading_the_terminal),
    (
        "timeout(1)",
        "children at the timeout of `timeout --foreground`",
        "better",
        "timeout",
        children_at_the_timeout,
    ),
    ("timeout(1)", "background jobs at the command's end", "different", "timeout", background),
    ("env(1)", "the environment", "different", "env", environment),
    ("env(1)", "`NAME=VALUE` before the program", "different", "env", assignments),
    ("nohup(1)", "SIGHUP", "different", "nohup", hang_up),
    ("nohup(1)", "output that is kept", "better", "nohup", kept_output),
    ("script(1)", "a terminal for the command", "same", "script", a_terminal),
    ("script(1)", "the record, and the status", "better", "script", the_record),
    ("script(1)", "a last line without a newline", "same", "script", unfinished_line),
    ("parallel(1)", "`-j N`: at most N at once", "same", "parallel", at_most_at_once),
    ("parallel(1)", "statuses", "better", "parallel", statuses_of_many),
];

/// rule: cli.md, Help: A table beside timeout(1), env(1), nohup(1), script(1) says what is the
///   same, better, different, and each row is run
#[test]
fn each_row_of_the_table_is_so() {
    for (program, what, how, needs, shows) in ROWS {
        let there = Command::new(needs).arg("--version").output().is_ok();
        if there {
            eprintln!("{program}: {what}: {how}");
            shows();
        } else {
            left_out(&format!("{program}: {what}: {needs} is not installed"));
        }
    }
}

/// How a program ended, as a shell gives it, and what it wrote.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    status: i32,
    out: String,
    err: String,
}

fn command(dir: &TempDir, words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(dir.path()).stdin(Stdio::null());
    command.env("TMPDIR", dir.path()).env("XDG_RUNTIME_DIR", dir.path());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn said_in(dir: &TempDir, words: &[&str]) -> Said {
    let done = command(dir, words).output().unwrap_or_else(|error| panic!("{words:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let signal = done.status.signal().map(|signal| 128 + signal);
    let status = done.status.code().or(signal).expect("an end");
    Said { status, out: text(&done.stdout), err: text(&done.stderr) }
}

fn said(words: &[&str]) -> Said {
    said_in(&TempDir::new().expect("a directory"), words)
}

/// The words of `execd run -q` before others.
fn run<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [&[env!("CARGO_BIN_EXE_execd"), "run", "-q"], words].concat()
}

fn status(words: &[&str]) -> i32 {
    said(words).status
}

// ---- timeout(1) -------------------------------------------------------------------------

fn status_at_the_timeout() {
    assert_eq!(status(&["timeout", "0.1", "sleep", "1000"]), 124);
    assert_eq!(status(&run(&["--timeout", "0.1", "sleep", "1000"])), 124);
}

fn killed_at_the_timeout() {
    assert_eq!(status(&["timeout", "-s", "KILL", "0.1", "sleep", "1000"]), 137);
    let words = ["--timeout", "0.1", "--signal", "KILL", "sleep", "1000"];
    assert_eq!(status(&run(&words)), 124);
    let ignores = ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"];
    assert_eq!(status(&[&["timeout", "-k", "0.1", "0.1"], &ignores[..]].concat()), 137);
    let words = ["--timeout", "0.1", "--kill-after", "0.1"];
    assert_eq!(status(&run(&[&words, &ignores[..]].concat())), 124);
}

fn ignored_sigterm() {
    let turns = |most: &str| {
        format!(
            "trap '' TERM; n=0; while [ $n -lt {most} ]; do sleep 0.1; n=$((n+1)); done; echo on"
        )
    };
    assert_eq!(said(&["timeout", "0.1", "sh", "-c", &turns("20")]).out, "on\n");
    let ended = said(&run(&["--timeout", "0.1", "-c", &turns("100000000")]));
    assert_eq!((ended.status, ended.out.as_str()), (124, ""));
}

fn silence() {
    let ended = said(&run(&["--idle-timeout", "0.3", "-c", "echo a; sleep 1000"]));
    assert_eq!((ended.status, ended.out.as_str()), (124, "a\n"));
    assert!(!said(&["timeout", "--help"]).out.contains("idle"));
}

/// Whether the process is there, and no zombie.
fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

fn children_at_the_timeout() {
    // The shell has that long for its one line, on whatever machine.
    let starts = "sleep 1000 >/dev/null 2>&1 & echo $!; wait";
    let left = said(&["timeout", "--foreground", "3", "sh", "-c", starts]);
    assert!(left.status == 124 && lives(left.out.trim()), "timeout leaves it: {left:?}");
    let pid = left.out.trim().parse().expect("a pid");
    // SAFETY: signals the process that the test has started just now.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let ended = said(&run(&["--timeout", "3", "sh", "-c", starts]));
    assert_eq!(ended.status, 124, "{ended:?}");
    eventually("the child is gone", || !lives(ended.out.trim()));
}

fn background() {
    let leaves = "sleep 1000 >/dev/null 2>&1 & echo $!";
    let left = said(&["timeout", "900", "sh", "-c", leaves]).out;
    assert!(lives(left.trim()), "timeout leaves it");
    let pid = left.trim().parse().expect("a pid");
    // SAFETY: signals the process that the test has started just now.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let ended = said(&run(&["--timeout", "900", "sh", "-c", leaves]));
    assert_eq!(ended.status, 0);
    eventually("the job is gone", || !lives(ended.out.trim()));
    let dir = TempDir::new().expect("a directory");
    let ends = "(sleep 0.3; echo done >late) >/dev/null 2>&1 &";
    assert_eq!(said_in(&dir, &run(&["--keep-background", "sh", "-c", ends])).status, 0);
    assert!(dir.path().join("late").exists(), "execd stays until it has ended");
}

/// A program under script(1), which gives it a terminal, with a line typed there.
fn typed_at(command_line: &str) -> String {
    let dir = TempDir::new().expect("a directory");
    let mut script = command(&dir, &["script", "-qec", command_line, "/dev/null"]);
    let mut child = script.stdin(Stdio::piped()).spawn().expect("script starts");
    let mut keys = child.stdin.take().expect("stdin");
    keys.write_all(b"hello\n").expect("typed");
    let mut out = String::new();
    child.stdout.take().expect("stdout").read_to_string(&mut out).expect("its output");
    drop(keys);
    child.wait().expect("it ends");
    out
}

fn reading_the_terminal() {
    let asks = "sh -c 'read word </dev/tty; echo got $word'";
    assert!(typed_at(&format!("timeout --foreground 900 {asks}")).contains("got hello\r\n"));
    let execd = env!("CARGO_BIN_EXE_execd");
    let out = typed_at(&format!("{execd} run -q --timeout 900 {asks}"));
    assert!(out.contains("got hello\r\n"), "{out}");
}

// ---- env(1) -----------------------------------------------------------------------------

fn environment() {
    let dir = TempDir::new().expect("a directory");
    let names = |words: &[&str]| -> BTreeSet<String> {
        let out = said_in(&dir, words).out;
        out.lines().filter_map(|line| Some(line.split_once('=')?.0.to_owned())).collect()
    };
    let (by_env, by_execd) = (names(&["env", "env"]), names(&run(&["env"])));
    assert!(by_env.is_subset(&by_execd), "{by_env:?}\n{by_execd:?}");
    let more: Vec<&String> = by_execd.difference(&by_env).collect();
    assert!(more.iter().all(|name| name.starts_with("EXECD_")), "{more:?}");
}

fn assignments() {
    assert_eq!(said(&["env", "X_Y=1", "sh", "-c", "echo $X_Y"]).out, "1\n");
    assert_eq!(status(&run(&["X_Y=1", "sh", "-c", "echo $X_Y"])), 127);
    let both = run(&["sh", "-c", "echo $X_Y"]);
    assert_eq!(said(&[&["env", "X_Y=1"], &both[..]].concat()).out, "1\n");
}

// ---- nohup(1) ---------------------------------------------------------------------------

/// Starts it, waits for the line that it writes first, and sends SIGHUP; gives all it wrote.
fn hung_up(words: &[&str]) -> (Option<i32>, String) {
    let dir = TempDir::new().expect("a directory");
    let mut child: Child = command(&dir, words).spawn().expect("it starts");
    let mut out = BufReader::new(child.stdout.take().expect("stdout"));
    let mut first = String::new();
    out.read_line(&mut first).expect("a line");
    let pid = i32::try_from(child.id()).expect("a pid");
    // SAFETY: signals a child of ours.
    unsafe { libc::kill(pid, libc::SIGHUP) };
    let mut rest = String::new();
    if words.contains(&"nohup") {
        // A signal that is ignored leaves no trace: it goes on when this one comes too.
        // SAFETY: signals a child of ours.
        unsafe { libc::kill(pid, libc::SIGUSR1) };
    }
    out.read_to_string(&mut rest).expect("the rest");
    let ended = child.wait().expect("it ends");
    (ended.code().or_else(|| ended.signal().map(|signal| 128 + signal)), rest)
}

fn hang_up() {
    let waits = "trap 'echo told; exit 4' USR1; echo up; while :; do sleep 0.05; done";
    assert_eq!(hung_up(&["nohup", "sh", "-c", waits]), (Some(4), "told\n".to_owned()));
    assert_eq!(hung_up(&run(&["-c", waits])), (Some(129), String::new()));
    let both = [&["nohup"], &run(&["-c", waits])[..]].concat();
    assert_eq!(hung_up(&both), (Some(4), "told\n".to_owned()));
}

fn kept_output() {
    let dir = TempDir::new().expect("a directory");
    let (out, words) = ("kept\n", ["sh", "-c", "echo kept"]);
    assert_eq!(said_in(&dir, &[&["nohup"], &words[..]].concat()).out, out);
    assert!(!dir.path().join("nohup.out").exists(), "stdout is no terminal");
    assert_eq!(said_in(&dir, &run(&[&["--log", "log"], &words[..]].concat())).out, out);
    assert_eq!(std::fs::read_to_string(dir.path().join("log")).expect("a log"), out);
}

// ---- script(1) --------------------------------------------------------------------------

const ON_A_TERMINAL: &str = "test -t 0 && test -t 1 && test -t 2 && echo terminal";

fn a_terminal() {
    let by_script = said(&["script", "-qec", ON_A_TERMINAL, "/dev/null"]);
    let by_execd = said(&run(&["-t", "-c", ON_A_TERMINAL]));
    assert_eq!((by_script.status, by_script.out.as_str()), (0, "terminal\r\n"));
    assert_eq!((by_execd.status, by_execd.out.as_str()), (0, "terminal\r\n"));
}

fn unfinished_line() {
    let execd = env!("CARGO_BIN_EXE_execd");
    let by_script = said(&["script", "-c", "printf abc", "typescript"]);
    // script types a NUL where its own stdin ends, which the terminal echoes now and then.
    let echoed = |said: Said| said.out.replace("^@", "");
    assert!(echoed(by_script).contains("abcScript done"));
    let by_execd = said(&["script", "-qec", &format!("{execd} run -t printf abc"), "/dev/null"]);
    assert!(echoed(by_execd).starts_with("abcexecd: log: "));
    let quiet = said(&["script", "-qec", &format!("{execd} run -qt printf abc"), "/dev/null"]);
    assert_eq!(echoed(quiet), "abc");
}

fn the_record() {
    let dir = TempDir::new().expect("a directory");
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).expect("a record");
    assert_eq!(said_in(&dir, &["script", "-qc", "echo a; exit 3", "typescript"]).status, 0);
    assert!(read("typescript").starts_with("Script started on "));
    let ran = said_in(&dir, &run(&["-t", "--log", "log", "-c", "echo a; exit 3"]));
    assert_eq!((ran.status, read("log").as_str()), (3, "a\r\n"));
}

// ---- GNU parallel -----------------------------------------------------------------------

/// Runs `cmd` once for each of these words, by parallel and by execd, two at once; the word stands
/// in the place of `{}`. Gives what each says, and the lines of the file `log` that each leaves.
fn both_ways(cmd: &str, words: &[&str]) -> [(Said, String); 2] {
    let log_of =
        |dir: &TempDir| std::fs::read_to_string(dir.path().join("log")).unwrap_or_default();
    let dir = TempDir::new().expect("a directory");
    let mut parallel = command(&dir, &[&["parallel", "-j", "2", cmd, ":::"], words].concat());
    let done = parallel.env("HOME", dir.path()).output().expect("parallel runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let by_parallel = Said {
        status: done.status.code().expect("no signal"),
        out: text(&done.stdout),
        err: text(&done.stderr),
    };
    let first = (by_parallel, log_of(&dir));
    let dir = TempDir::new().expect("a directory");
    let requests: String = words
        .iter()
        .enumerate()
        .map(|(at, word)| {
            let params = json!({"cmd": cmd.replace("{}", word)});
            format!("{}\n", json!({"id": at, "method": "exec_command", "params": params}))
        })
        .collect();
    std::fs::write(dir.path().join("requests"), requests).expect("written");
    let line = format!("{} --jobs 2 <requests", env!("CARGO_BIN_EXE_execd"));
    let by_execd = said_in(&dir, &["sh", "-c", &line]);
    [first, (by_execd, log_of(&dir))]
}

fn at_most_at_once() {
    let words = ["1", "2", "3", "4", "5", "6", "7", "8"];
    for (said, log) in both_ways("echo +{} >>log; sleep 0.05; echo -{} >>log", &words) {
        let (mut now, mut most, mut begun) = (0, 0, 0);
        for line in log.lines() {
            let begins = line.starts_with('+');
            now += if begins { 1 } else { -1 };
            begun += usize::from(begins);
            most = most.max(now);
        }
        assert!(begun == words.len() && now == 0 && most <= 2, "{said:?}\n{log}");
    }
}

fn statuses_of_many() {
    let [(by_parallel, _), (by_execd, _)] = both_ways("exit {}", &["0", "3", "4"]);
    assert_eq!(by_parallel.status, 2, "how many have failed");
    let answers = by_execd.out.lines().map(serde_json::from_str::<Value>);
    let mut answers: Vec<Value> = answers.map(|answer| answer.expect("JSON")).collect();
    answers.retain(|answer| answer.get("id").is_some());
    answers.sort_by_key(|answer| answer["id"].as_u64());
    let codes: Vec<&Value> = answers.iter().map(|answer| &answer["result"]["exit_code"]).collect();
    assert_eq!((by_execd.status, codes), (0, vec![&json!(0), &json!(3), &json!(4)]));
}
