//! `execd ls`, `tail`, `kill`, `call --socket` and `completions` (people.md, The control socket
//! socket): from a shell to the execds that run.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::common::outside::{self, go_on, stop};
use crate::common::{
    AT_ONCE, Execd, Setup, eventually, left_out, now, pid_of, send_signal, session_of, until_logged,
};
use serde_json::{Value, json};
use tempfile::TempDir;

fn command(runtime: &Path, words: &[&str]) -> Command {
    let mut all = crate::common::apart().iter().chain([&crate::common::EXECD]).chain(words);
    let mut command = Command::new(all.next().expect("a program"));
    command.args(all).env("XDG_RUNTIME_DIR", runtime);
    command.env_remove("EXECD_SESSION_ID").env_remove("EXECD_INSTANCE");
    command.stdin(Stdio::null());
    command
}

/// What execd says to these words, its status and its two streams.
fn said(runtime: &Path, words: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command(runtime, words).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (status.code().expect("no signal"), text(stdout), text(stderr))
}

/// The same of a call that must succeed and complain of nothing.
fn fine(runtime: &Path, words: &[&str]) -> String {
    let (status, out, err) = said(runtime, words);
    assert_eq!((status, err.as_str()), (0, ""), "{words:?}: {out}");
    out
}

/// Two execds of one runtime directory.
fn two() -> (TempDir, Execd, Execd) {
    let runtime = TempDir::new().expect("a directory");
    let dir = runtime.path().to_string_lossy().into_owned();
    let start = || Execd::with(&[], &[("XDG_RUNTIME_DIR", &dir)]);
    let (one, two) = (start(), start());
    (runtime, one, two)
}

/// rule: attach.md, ls, tail, kill, completions: `execd ls` prints a table (id, state, age, pid,
///   tty, command, log) and changes nothing
/// rule: attach.md, Several clients: Nothing that is listed acts on a terminal or hides
#[test]
fn ls_prints_a_table_that_a_person_likes_to_read() {
    let mut execd = Execd::start();
    execd.ping();
    let runtime = execd.runtime_dir();
    assert_eq!(said(&runtime, &["ls"]), (0, String::new(), "no sessions\n".to_owned()));
    let tty = execd.open_with("exec cat", json!({"tty": true}));
    // `--json` printed the one-character CSI, and names passed what turns the direction of text.
    let name = "n\u{202e}a\u{200b}p\u{9b}31m";
    let named = execd.open_with("exec sleep 1000", json!({"name": name}));
    let ended = execd.open("sleep 0.3; exit 4");
    execd.until_listed_exited(session_of(&ended));
    let held = execd.open("sleep 1000 & exit 0");
    execd.run("sleep 1000 >/dev/null 2>&1 &");
    eventually("what is left is listed", || execd.peek()["left"].is_array());
    let table = fine(&runtime, &["ls"]);
    let lines: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["ID", "STATE", "AGE", "PID", "TTY", "COMMAND", "LOG"]);
    let log = |result: &Value| result["log_path"].as_str().expect("a log").to_owned();
    let pid = |result: &Value| pid_of(result).to_string();
    assert_eq!((lines[1][0], lines[1][1], lines[1][4]), ("@1", "running", "tty"));
    assert_eq!((lines[1][3], lines[1][7]), (pid(&tty).as_str(), log(&tty).as_str()));
    assert_eq!(lines[2][5..8], [r"n\u{202e}a\u{200b}p\x9b31m:", "exec", "sleep"], "{table}");
    let text = fine(&runtime, &["ls", "--json"]);
    assert!(text.is_ascii() && text.contains(r"\u009b31m"), "{text}");
    let rows: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(rows[1]["name"], name);
    assert_eq!(lines[2].last(), Some(&log(&named).as_str()));
    assert_eq!((&lines[3][1..3], lines[3][5]), (&["exit", "4"][..], "pipe"), "{table}");
    assert_eq!((lines[4][0], lines[4][1]), ("@4", "held"), "{table}");
    assert_eq!((lines[5][0], lines[5][1], lines[5][2]), ("@5", "left", "-"), "{table}");
    assert_eq!(session_of(&held), 4);
    // Columns stand under their names.
    let at = table.lines().next().and_then(|line| line.find("PID")).expect("the column");
    for (line, cells) in table.lines().zip(&lines).skip(1) {
        assert!(cells.iter().any(|cell| line[at..].starts_with(cell)), "{table}");
    }
    // Looking changes nothing: the exit is still to be told.
    let list = execd.result("list_sessions", json!({}));
    assert_eq!(list["sessions"].as_array().map(Vec::len), Some(4), "{list}");
}

/// rule: attach.md, ls, tail, kill, completions: `execd ls` lists the sessions of all running
///   execds of this user, or of one by `--pid` or `--socket`; `--json`
/// rule: attach.md, ls, tail, kill, completions: An id that several execds have: say `--pid`
#[test]
fn ls_lists_the_sessions_of_all_running_execds() {
    let (runtime, mut one, mut two) = two();
    let dir = runtime.path().to_string_lossy().into_owned();
    let env: [(&str, &str); 1] = [("XDG_RUNTIME_DIR", &dir)];
    let mut killed = Execd::with(&[], &env);
    one.open("exec sleep 1001");
    two.open("exec sleep 1002");
    two.open("exec sleep 1003");
    killed.ping();
    send_signal(killed.pid(), libc::SIGKILL);
    drop(killed);
    let json: Value = serde_json::from_str(&fine(runtime.path(), &["ls", "--json"])).expect("JSON");
    let mut rows: Vec<(i64, u64, &str)> = json
        .as_array()
        .expect("an array")
        .iter()
        .map(|row| {
            let execd = row["execd_pid"].as_i64().expect("a pid");
            let socket = runtime.path().join(format!("execd/{execd}.sock"));
            assert_eq!(row["socket"], json!(socket.to_string_lossy()));
            (execd, session_of(row), row["command"].as_str().expect("a command"))
        })
        .collect();
    rows.sort_unstable();
    let (first, second) = (i64::from(one.pid()), i64::from(two.pid()));
    let mut expected = [
        (first, 1, "exec sleep 1001"),
        (second, 1, "exec sleep 1002"),
        (second, 2, "exec sleep 1003"),
    ];
    expected.sort_unstable();
    assert_eq!(rows, expected);
    assert_eq!(fine(runtime.path(), &["ls", "--ids"]), "@1\n@2\n");
    let table = fine(runtime.path(), &["ls"]);
    assert!(table.starts_with("EXECD "), "which execd it is: {table}");
    let (one_pid, path) = (one.pid().to_string(), format!("{dir}/execd/{}.sock", two.pid()));
    assert_eq!(fine(runtime.path(), &["ls", "--pid", &one_pid]).lines().count(), 2);
    assert_eq!(fine(runtime.path(), &["ls", "--socket", &path]).lines().count(), 3);
    // An id that both have.
    let (status, _, err) = said(runtime.path(), &["kill", "@1"]);
    let (a, b) = (format!("--pid {} (exec sleep 1001)", one.pid()), format!("--pid {}", two.pid()));
    assert!(status == 1 && err.contains(&a) && err.contains(&b), "{err}");
    let out = fine(runtime.path(), &["kill", "@1", "--pid", &one_pid]);
    assert!(out.starts_with("Killed session 1 "), "{out}");
    assert_eq!(fine(runtime.path(), &["tail", "2"]), "", "one has it");
}

/// Where two execds have an id, a session had no name of its own that could be handed on.
/// rule: bash.md, In pi: `execd attach`, `tail` and `kill` take the addresses of windows; of an
///   execd alone attach takes the newest session
#[test]
fn a_session_is_named_with_its_execd() {
    let (runtime, mut one, mut two) = two();
    one.open("echo one; exec sleep 1001");
    two.open("echo two; exec sleep 1002");
    let at = |execd: &Execd, id: &str| format!("execd-{}{id}", execd.pid());
    assert_eq!(fine(runtime.path(), &["tail", &at(&one, ":@1")]), "one\n");
    assert_eq!(fine(runtime.path(), &["tail", &at(&two, ":1")]), "two\n");
    let pid = two.pid().to_string();
    let out = fine(runtime.path(), &["kill", &at(&two, ":@1"), "--pid", &pid]);
    assert!(out.starts_with("Killed session 1 "), "{out}");
    assert_eq!(fine(runtime.path(), &["tail", &at(&one, ":@1")]), "one\n", "it lives");
    for (target, status, message) in [
        (at(&two, ":@1"), 1, "no session @1: execd ls shows what there is".to_owned()),
        ("execd-1:@1".to_owned(), 1, "no execd of yours is called execd-1".to_owned()),
        (at(&one, ""), 125, format!("tail needs a session: execd tail {}:@3", at(&one, ""))),
    ] {
        let (given, out, err) = said(runtime.path(), &["tail", &target]);
        assert_eq!((given, out.as_str()), (status, ""), "{target}");
        assert!(err.contains(&message) && err.lines().count() == 1, "{err}");
    }
}

/// Two in different pid namespaces were both called `--pid 1`, and only one had a name of its own.
#[test]
fn two_execds_of_one_process_id_are_told_apart_by_their_instances() {
    if !outside::may_choose_pids() {
        return;
    }
    let runtime = TempDir::new().expect("a directory");
    let dir = runtime.path().to_string_lossy().into_owned();
    let env: [(&str, &str); 1] = [("XDG_RUNTIME_DIR", &dir)];
    let words = [&outside::OWN_PIDS[..], &[crate::common::EXECD]].concat();
    let start = |said: &str| {
        let mut execd = Setup::of(&words, &[]).envs(&env).start();
        execd.open(&format!("echo {said}; exec sleep 1000"));
        let instance = execd.result("server_info", json!({}))["instance"].clone();
        (execd, format!("execd-1-{}:@1", instance.as_str().expect("its name")))
    };
    let ((_one, at_one), (_two, at_two)) = (start("one"), start("two"));
    let (status, _, err) = said(runtime.path(), &["tail", "@1"]);
    assert!(status == 1 && err.contains(&at_one) && err.contains(&at_two), "{err}");
    assert_eq!(fine(runtime.path(), &["tail", &at_one]), "one\n");
    assert_eq!(fine(runtime.path(), &["tail", &at_two]), "two\n");
    let (status, _, err) = said(runtime.path(), &["tail", "execd-1-0:@1"]);
    assert!(status == 1 && err.contains("no execd of yours is called execd-1-0"), "{err}");
}

/// rule: attach.md, ls, tail, kill, completions: An execd that does not answer does not stall it
#[test]
fn one_execd_that_does_not_answer_does_not_stall_the_list() {
    let (runtime, mut one, mut two) = two();
    one.open("exec sleep 1001");
    two.ping();
    stop(two.pid());
    let before = now();
    let (status, out, err) = said(runtime.path(), &["ls"]);
    assert!(before.elapsed() < AT_ONCE);
    // A session 1 was ended although the other execd may have had the one that was meant.
    let sure = format!("execd-{}:@1", one.pid());
    let (refused, _, why) = said(runtime.path(), &["kill", "@1"]);
    assert!(refused == 1 && why.contains(&format!("say {sure} if you mean that one")), "{why}");
    // A log is followed whatever other execds do, and nothing is said of them.
    let over = one.run("echo over");
    let log = over["log_path"].as_str().expect("its path");
    let followed = said(runtime.path(), &["log", "-f", log]);
    assert_eq!(followed, (0, "over\n".to_owned(), String::new()));
    assert_eq!(said(runtime.path(), &["kill", &sure]).0, 0);
    go_on(two.pid());
    assert_eq!(status, 0);
    assert!(out.contains("sleep 1001"), "{out}");
    let silent = format!("{}.sock: no answer", two.pid());
    assert!(err.contains(&silent) && err.lines().count() == 1, "{err}");
}

/// rule: attach.md, execd attach: Ids `@3` and `3`; no such session; the session itself
#[test]
fn what_is_not_there_is_told() {
    let runtime = TempDir::new().expect("a directory");
    // On stderr: a program that reads the list gets none.
    assert_eq!(said(runtime.path(), &["ls"]), (0, String::new(), "no execd runs\n".to_owned()));
    assert_eq!(fine(runtime.path(), &["ls", "--json"]), "[]\n");
    let mut execd = Execd::start();
    execd.ping();
    for (words, message) in [
        (vec!["attach", "@7"], "attach needs a terminal; execd tail -f follows without one"),
        (vec!["tail", "@7"], "no session @7: execd ls shows what there is"),
        (vec!["kill", "7"], "no session @7: execd ls shows what there is"),
        (vec!["ls", "--pid", "1"], "no execd of yours with pid 1 has a socket"),
        (vec!["ls", "--socket", "/nonexistent/x"], "/nonexistent/x: ENOENT"),
        (vec!["call", "ping", "--socket", "/dev/null"], "/dev/null: "),
    ] {
        let (status, out, err) = said(&execd.runtime_dir(), &words);
        assert_eq!((status, out.as_str()), (1, ""), "{words:?}");
        assert!(err.starts_with("execd: ") && err.contains(message), "{words:?}: {err}");
        assert_eq!(err.lines().count(), 1, "{err}");
    }
    let (status, _, err) = said(runtime.path(), &["tail", "@7"]);
    assert!(status == 1 && err.contains("no execd of yours runs"), "{err}");
}

/// execds that were started with XDG_RUNTIME_DIR were missed where it is unset: cron, su.
/// rule: attach.md, Several clients: `execd ls` finds execds whose runtime directory the caller
///   does not know, refuses directories open to others, checks who listens
#[test]
fn ls_finds_execds_whose_runtime_directory_the_caller_does_not_know() {
    let mut execd = Execd::start();
    execd.open("exec sleep 1004");
    let execd_pid = execd.pid().to_string();
    for given in [None, Some("")] {
        let mut ls = command(&execd.runtime_dir(), &["ls", "--pid", &execd_pid]);
        match given {
            None => ls.env_remove("XDG_RUNTIME_DIR"),
            Some(empty) => ls.env("XDG_RUNTIME_DIR", empty),
        };
        let done = ls.output().expect("it runs");
        let out = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && out.contains("sleep 1004"), "{done:?}");
    }
    // A directory of sockets that others may write to could have anybody's execd in it.
    let dir = execd.runtime_dir().join("execd");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&dir, open).expect("it is ours");
    let (status, out, err) = said(&execd.runtime_dir(), &["ls"]);
    let reason = format!("{}: others may enter it, so it is not looked at", dir.display());
    assert!(status == 0 && !out.contains("sleep 1004") && err.contains(&reason), "{out}{err}");
    // By its own name it is reached all the same.
    let path = execd.socket().to_string_lossy().into_owned();
    assert!(fine(&execd.runtime_dir(), &["ls", "--socket", &path]).contains("sleep 1004"));
}

/// rule: attach.md, ls, tail, kill, completions: `execd tail @3 [-f] [-n LINES]`
#[test]
fn tail_prints_the_last_lines_however_long_ago_they_came() {
    let mut execd = Execd::start();
    let opened = execd.open("seq 100000; printf 'no newline'; exec sleep 1000");
    until_logged(&opened, "no newline");
    let runtime = execd.runtime_dir();
    let expected = |lines: usize| -> String {
        let first = 100_002 - lines;
        let numbers = (first..=100_000).map(|number| format!("{number}\n"));
        numbers.chain(["no newline".to_owned()]).collect()
    };
    assert_eq!(fine(&runtime, &["tail", "@1"]), expected(10));
    assert_eq!(fine(&runtime, &["tail", "-n", "3", "1"]), expected(3));
    assert_eq!(fine(&runtime, &["tail", "-n50000", "1"]), expected(50_000));
    assert_eq!(fine(&runtime, &["tail", "-n", "1000000", "1"]), expected(100_001));
    assert_eq!(fine(&runtime, &["tail", "-n", "0", "1"]), "");
    // Without logs, on terminals, and after the end.
    let mut execd = Execd::with(&["--no-log"], &[]);
    let runtime = execd.runtime_dir();
    execd.open_with("echo one; echo two; exec sleep 1000", json!({"tty": true}));
    let ended = session_of(&execd.open("echo three; sleep 0.3; echo four; exit 1"));
    execd.until_listed_exited(ended);
    assert_eq!(fine(&runtime, &["tail", "-n1", "1"]), "two\r\n");
    assert_eq!(fine(&runtime, &["tail", "-n1", "2"]), "four\n");
    assert!(execd.listed(ended).is_some(), "its exit is still to be told");
}

/// `execd tail -f` of session 1.
fn follow(execd: &Execd, words: &[&str]) -> Child {
    let mut tail = command(&execd.runtime_dir(), &[&["tail", "-f", "@1"][..], words].concat());
    tail.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs")
}

#[test]
fn tail_f_follows_to_the_end_and_gives_its_exit_status() {
    let mut execd = Execd::start();
    let opened = execd.open("seq 30000; while read -r line; do echo \"got $line\"; done; exit 6");
    until_logged(&opened, "\n30000\n");
    let mut tail = follow(&execd, &["-n", "2"]);
    let mut lines = BufReader::new(tail.stdout.take().expect("stdout")).lines();
    let mut line = || lines.next().expect("a line").expect("UTF-8");
    assert_eq!((line(), line()), ("29999".to_owned(), "30000".to_owned()));
    execd.write(json!({"session_id": 1, "chars": "this\n"}));
    assert_eq!(line(), "got this");
    execd.write(json!({"session_id": 1, "chars": "that\n", "eof": true}));
    assert_eq!(line(), "got that");
    assert!(lines.next().is_none());
    assert_eq!(tail.wait().expect("it ends").code(), Some(6));
    let mut err = String::new();
    tail.stderr.take().expect("stderr").read_to_string(&mut err).expect("UTF-8");
    assert_eq!(err, "[session 1 has ended: exit code 6]\n");
}

#[test]
fn tail_f_ends_with_its_reader_and_with_execd() {
    let mut execd = Execd::start();
    execd.open("while :; do echo y; sleep 0.01; done");
    let mut tail = follow(&execd, &[]);
    let mut first = [0; 1];
    tail.stdout.take().expect("stdout").read_exact(&mut first).expect("output");
    // Its stdout is closed now: like tail(1), it ends.
    tail.wait().expect("it ends");
    let mut tail = follow(&execd, &[]);
    let mut stdout = tail.stdout.take().expect("stdout");
    stdout.read_exact(&mut first).expect("output");
    send_signal(execd.pid(), libc::SIGKILL);
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).expect("to the end");
    let done = tail.wait_with_output().expect("it ends");
    assert_eq!(done.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&done.stderr).contains("execd is gone"), "{done:?}");
}

/// rule: cli.md, Commands you can come back to: Ids are `@3`, `3`, a name or `EXECD:@3` in every
///   command that takes one; `kill -s SIG` takes several
#[test]
fn kill_takes_several_sessions_by_number_name_and_execd() {
    let mut execd = Execd::start();
    let runtime = execd.runtime_dir();
    let ids: Vec<u64> = (0..4)
        .map(|at| {
            let name = json!({"name": format!("nap {at}")});
            session_of(&execd.open_with("trap 'exit 7' INT; while :; do sleep 0.1; done", name))
        })
        .collect();
    // A slip ends nothing.
    let (status, _, err) = said(&runtime, &["kill", "@1", "nap 9"]);
    assert_eq!((status, &*err), (1, "execd: no session \"nap 9\": execd ls shows what there is\n"));
    assert_eq!(execd.peek()["sessions"].as_array().map(Vec::len), Some(4));
    let (number, address) = (ids[1].to_string(), format!("execd-{}:@{}", execd.pid(), ids[3]));
    let out = fine(&runtime, &["kill", "-s", "INT", "@1", &number, "nap 2", &address]);
    assert_eq!(out.lines().count(), 4, "{out}");
    for id in ids {
        assert_eq!(execd.until_exit(id)["exit_code"], 7, "it got INT");
    }
    for words in [&["kill", "@1", "9"][..], &["kill"]] {
        assert_eq!(said(&runtime, words).0, 125, "{words:?}");
    }
}

#[test]
fn of_a_name_the_session_that_runs_is_meant() {
    let mut execd = Execd::start();
    let runtime = execd.runtime_dir();
    let old = session_of(&execd.open_with("echo old; sleep 0.3", json!({"name": "web"})));
    execd.until_listed_exited(old);
    assert_eq!(fine(&runtime, &["tail", "web"]), "old\n", "there is no other");
    let new = execd.open_ready("echo new; exec sleep 1000", "new", json!({"name": "web"}));
    assert_eq!(fine(&runtime, &["tail", "web"]), "new\n");
    execd.open_ready("echo third; exec sleep 1000", "third", json!({"name": "web"}));
    let (status, _, err) = said(&runtime, &["tail", "web"]);
    let address = format!("execd-{}:@{new} (web: echo new; exec sleep 1000)", execd.pid());
    assert!(status == 1 && err.contains(&address), "{err}");
    let address = format!("{}:@{new}", execd.pid());
    assert_eq!(fine(&runtime, &["tail", &address]), "new\n");
}

/// rule: cli.md, Commands you can come back to: `execd ls` in `execd run` lists that run
#[test]
fn ls_in_a_run_lists_that_run() {
    let runtime = TempDir::new().expect("a directory");
    let list = format!("{} ls --ids", crate::common::EXECD);
    let words = ["run", "--quiet", "--no-log", "-c", &list];
    assert_eq!(fine(runtime.path(), &words), "@1\n");
}

/// rule: cli.md, Commands you can come back to: `execd ls --all-users` asks the execds of all
///   users,
///   for root
#[test]
fn root_lists_the_sessions_of_all_users() {
    const OWNER: u32 = 12_347;
    if !outside::is_root() || crate::common::missing("setpriv") {
        return left_out("only root can be another user");
    }
    let dir = TempDir::new().expect("a directory");
    let (mut execd, binary, socket) = crate::socket::of_another_user(dir.path(), OWNER);
    let socket = socket.to_string_lossy().into_owned();
    let session = session_of(&execd.open("exec sleep 1000"));
    // Others that run on this machine may say something on stderr, and take the time of all.
    eventually("its row is listed", || {
        let (_, list, _) = said(dir.path(), &["ls", "--all-users", "--json"]);
        let rows: Value = serde_json::from_str(&list).expect("JSON");
        let is_its = |row: &&Value| row["socket"] == *socket;
        rows.as_array().expect("rows").iter().find(is_its).is_some_and(|row| {
            assert_eq!((&row["uid"], &row["session_id"]), (&json!(OWNER), &json!(session)));
            true
        })
    });
    let (_, table, _) = said(dir.path(), &["ls", "--all-users"]);
    assert!(table.contains(&format!("{} of uid {OWNER}", execd.pid())), "{table}");
    let (_, own, _) = said(dir.path(), &["ls", "--json"]);
    assert!(!own.contains(&socket), "those of root alone");
    let owner = format!("--reuid={OWNER}");
    let words = ["--clear-groups", &owner, &*binary.to_string_lossy(), "ls", "--all-users"];
    let refused = Command::new("setpriv").args(words).output().expect("it runs");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && said.contains("--all-users is for root"), "{said}");
}

/// rule: attach.md, ls, tail, kill, completions: `execd kill @3 [SIGNAL]`
#[test]
fn kill_ends_everything_in_a_session_with_the_signal_that_is_given() {
    let mut execd = Execd::start();
    let runtime = execd.runtime_dir();
    let signals = [(None, "SIGTERM"), (Some("int"), "SIGINT"), (Some("-9"), "SIGKILL")];
    for (given, name) in signals {
        let id = format!("@{}", session_of(&execd.open("sleep 1000 & exec sleep 1000")));
        let words: Vec<&str> = ["kill", &id].into_iter().chain(given).collect();
        let out = fine(&runtime, &words);
        assert!(out.contains(&format!("with {name}")) && out.lines().count() == 1, "{out}");
    }
    execd.until_no_session_process();
    let id = session_of(&execd.open("exec sleep 1000")).to_string();
    let (status, _, err) = said(&runtime, &["kill", &id, "STOP"]);
    assert!(status == 1 && err.contains("does not end a process"), "{err}");
    assert_eq!(said(&runtime, &["kill", &id, "KILL", "x"]).0, 1, "no session is called so");
    // What is left of a session goes by its old id.
    execd.run("sleep 1000 >/dev/null 2>&1 &");
    eventually("what is left is listed", || execd.peek()["left"].is_array());
    let left = session_of(&execd.peek()["left"][0]);
    fine(&runtime, &["kill", &left.to_string()]);
    eventually("nothing is left", || execd.peek().get("left").is_none());
}

/// rule: protocol.md, Several clients, cancel in the families: `execd call --socket PATH` sends one
///   request to a running execd
#[test]
fn call_speaks_to_an_execd_that_runs() {
    let mut execd = Execd::start();
    let runtime = execd.runtime_dir();
    execd.ping();
    let (socket, pid) = (execd.socket(), execd.pid().to_string());
    let socket = socket.to_string_lossy();
    let call = |words: &[&str]| -> Value {
        let words: Vec<&str> = ["call"].iter().chain(words).copied().collect();
        serde_json::from_str(&fine(&runtime, &words)).expect("JSON")
    };
    assert_eq!(call(&["server_info", "--socket", &socket])["pid"], execd.pid());
    assert_eq!(call(&["--pid", &pid, "ping", "{}"]), json!({}));
    // Polled to its end.
    let params = json!({"cmd": "echo a; sleep 0.5; echo b", "yield_time_ms": 250}).to_string();
    let done = call(&["exec_command", &params, "--socket", &socket]);
    assert_eq!((&done["output"], &done["exit_code"]), (&json!("a\nb\n"), &json!(0)));
    let (status, out, _) = said(&runtime, &["call", "nonsense", "--socket", &socket]);
    assert!(status == 1 && out.contains("unknown method"), "{out}");
    let (status, _, err) = said(&runtime, &["call", "--no-log", "ping", "--socket", &socket]);
    assert!(status == 125 && err.contains("sets up a fresh execd"), "{err}");
    assert_eq!(execd.result("server_info", json!({}))["clients"]["connected"], 0);
}
