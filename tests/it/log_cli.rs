//! The facts beside each log, and `execd log` and `execd logs`, for people (logs.md).

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

use crate::common::data::Random;
use crate::common::host::Host;
use crate::common::outside::until_runs;
use crate::common::{
    Execd, assert_absent, eventually, is_alive, log_of, log_path, pid_of, send_signal, session_of,
};
use serde_json::{Value, json};

// ---- Facts beside each log --------------------------------------------------------------------

/// The file of facts beside the log of a result.
fn meta_of(result: &Value) -> PathBuf {
    log_path(result).with_extension("meta")
}

/// The facts in a file, once there are any that fit.
fn facts(path: &Path, fits: impl Fn(&Value) -> bool) -> Value {
    let mut found = Value::Null;
    eventually("the facts are written", || {
        let text = fs::read_to_string(path).unwrap_or_default();
        found = serde_json::from_str(&text).unwrap_or_default();
        found.is_object() && fits(&found)
    });
    found
}

/// Types what a session ends by; its last result.
fn last_input(execd: &mut Execd, session: u64, chars: &str) -> Value {
    execd.write(json!({"session_id": session, "chars": chars, "yield_time_ms": 60_000}))
}

fn is_over(facts: &Value) -> bool {
    facts["ended_at_ms"].is_i64()
}

/// rule: logs.md, Facts beside each log: Beside `execd-3-ab12cd34.log` stands
///   `execd-3-ab12cd34.meta` (mode 0600): one line of JSON
/// rule: logs.md, Facts beside each log: The command stands there as lists show it, cut at 2,000
///   bytes; never the environment, never input
#[test]
fn the_facts_of_a_session_stand_beside_its_log() {
    let mut execd = Execd::start();
    let cwd = execd.workdir().to_string_lossy().into_owned();
    let cmd = "read line; echo done; exit 7";
    let secret = json!({"env": {"TOKEN": "of-the-environment"}});
    let opened = execd.open_with(cmd, secret);
    let session = session_of(&opened);
    let path = meta_of(&opened);
    let begun = facts(&path, |_| true);
    assert_eq!(begun["session_id"], session);
    assert_eq!((&begun["family"], &begun["command"]), (&json!("unified"), &json!(cmd)));
    assert_eq!((&begun["cwd"], &begun["pid"]), (&json!(cwd), &json!(pid_of(&opened))));
    assert_eq!(begun["execd_pid"], execd.pid());
    assert_absent(&begun, &["ended_at_ms", "exit_code", "total_bytes"]);
    assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o7777, 0o600);
    last_input(&mut execd, session, "of-the-input\n");
    let over = facts(&path, is_over);
    assert_eq!((&over["exit_code"], &over["total_bytes"]), (&json!(7), &json!(5)));
    assert!(over["ended_at_ms"].as_i64() >= over["started_at_ms"].as_i64(), "{over}");
    assert_absent(&over, &["signal", "killed_by", "name", "env"]);
    let text = fs::read_to_string(&path).expect("it is there");
    assert!(!text.contains("of-the-") && text.ends_with("}\n"), "{text}");
    let killed = execd.open("sleep 1000");
    execd.kill(session_of(&killed));
    let over = facts(&meta_of(&killed), is_over);
    assert_eq!((&over["signal"], &over["killed_by"]), (&json!("SIGTERM"), &json!("kill_session")));
    let long = execd.run(&format!(": {}", "x".repeat(9_000)));
    let cut = facts(&meta_of(&long), is_over);
    let cut = cut["command"].as_str().expect("a command").to_owned();
    assert!(cut.len() <= 2_003 && cut.ends_with("x…"), "{cut}");
}

/// rule: logs.md, Facts beside each log: A log writer that was killed is followed by one that
///   writes the facts again
#[test]
fn a_new_log_writer_writes_the_facts_again() {
    let mut execd = Execd::start();
    let opened = execd.open("sleep 1000");
    let over = execd.open("sleep 0.5; exit 3");
    execd.until_listed_exited(session_of(&over));
    let paths = [&opened, &over].map(meta_of);
    facts(&paths[0], |_| true);
    facts(&paths[1], is_over);
    let keeper = execd.keeper();
    until_runs(keeper, "sessions-log");
    send_signal(keeper, libc::SIGKILL);
    eventually("the keeper is gone", || !is_alive(keeper));
    // Whether the new one has written them before this does not matter: it writes them once.
    for path in &paths {
        fs::write(path, "").expect("it can be written");
    }
    send_signal(execd.keeper(), libc::SIGKILL);
    assert_eq!(facts(&paths[0], |_| true)["command"], "sleep 1000");
    assert_eq!(facts(&paths[1], is_over)["exit_code"], 3);
}

/// rule: logs.md, Facts beside each log: Facts that cannot be written are left out; nothing depends
///   on them
#[test]
fn facts_that_cannot_be_written_are_no_trouble() {
    for more in [&[][..], &["--no-keeper"]] {
        let mut execd = Execd::with(more, &[]);
        let opened = execd.open("read line; echo $line");
        let path = meta_of(&opened);
        facts(&path, |_| true);
        fs::remove_file(&path).expect("it is there");
        fs::create_dir(&path).expect("a directory in its place");
        let session = session_of(&opened);
        let result = last_input(&mut execd, session, "all of it\n");
        assert_absent(&result, &["failure_message", "log_complete", "log_truncated"]);
        assert_eq!(log_of(&result), b"all of it\n");
        let next = execd.run("echo next");
        assert_eq!(facts(&meta_of(&next), is_over)["exit_code"], 0);
    }
}

// ---- execd log, execd logs --------------------------------------------------------------------

/// Runs execd with these arguments where this execd's socket and logs are found; its exit status,
/// and what it prints on stdout and stderr.
fn said(execd: &Host, arguments: &[&str]) -> (i32, String, String) {
    let output = command(execd, arguments).output().expect("execd runs");
    let [out, err] = [output.stdout, output.stderr].map(String::from_utf8);
    (output.status.code().expect("it exits"), out.expect("UTF-8"), err.expect("UTF-8"))
}

/// What one prints that succeeds and has nothing to say on stderr.
fn printed(execd: &Host, arguments: &[&str]) -> String {
    let (status, out, err) = said(execd, arguments);
    assert_eq!((status, err.as_str()), (0, ""), "{arguments:?}");
    out
}

/// Runs what a text says behind a word, without the brackets that it stands in.
fn done_as_said(text: &Value, behind: &str) -> (String, Vec<u8>) {
    let (_, says) = text.as_str().expect("a text").split_once(behind).expect("what is kept");
    let says = says.trim_end_matches([']', ')']).replacen("execd", "\"$0\"", 1);
    let mut shell = Command::new("sh");
    let done = shell.args(["-c", &says, crate::common::EXECD]).output().expect("a shell");
    assert!(done.stderr.is_empty() && done.stdout.ends_with(b"\n300000\n"), "{says}: {done:?}");
    (says, done.stdout)
}

/// Ends an execd.
fn end(execd: &mut Execd) {
    execd.close_stdin();
    execd.wait_exit();
}

fn command(execd: &Host, arguments: &[&str]) -> Command {
    let mut command = crate::common::execd_command();
    command.args(arguments).current_dir(execd.workdir());
    command.env("TMPDIR", execd.tmpdir()).env("XDG_RUNTIME_DIR", execd.runtime_dir());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// An execd whose first session has a number that no other execd of this machine has, and that
/// number.
fn alone(flags: &[&str]) -> (Execd, u64) {
    let id = 1_000_000 + u64::from(std::process::id()) * 10;
    (Execd::with(&[&["--first-session-id", &*id.to_string()], flags].concat(), &[]), id)
}

/// A log's name as `execd logs` shows it.
fn short(path: &Path) -> String {
    let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
    stem.strip_prefix("execd-").expect("a log of execd").to_owned()
}

/// rule: logs.md, Reading by people: `execd log @3` prints all that is kept of a session's output
/// rule: logs.md, Reading by people: as clean text, which changes no terminal, or with `--raw` the
///   exact bytes
#[test]
fn the_output_of_a_session_is_printed_while_it_runs_when_it_is_over_and_when_its_execd_is_gone() {
    let (mut execd, id) = alone(&[]);
    let cmd = "printf 'one\\n\\033[31mtwo\\033[0m\\nthree\\n'; read l";
    let session = execd.open_until(cmd, "three");
    let path = execd.log_files().pop().expect("a log");
    assert_eq!(session, id);
    let id = format!("@{id}");
    let name = short(&path);
    let exact = "one\n\u{1b}[31mtwo\u{1b}[0m\nthree\n";
    let holds = |execd: &Host, whose: &str| {
        for (flags, out) in [
            (&[][..], "one\ntwo\nthree\n"),
            (&["--lines", "1"], "three\n"),
            (&["-n", "2"], "two\nthree\n"),
            (&["--from", "4"], "two\nthree\n"),
            (&["--from", "-6"], "three\n"),
            (&["--raw"], exact),
            (&["--raw", "--from", "4", "--lines", "9"], &exact[4..]),
        ] {
            let words = [&["log", whose], flags].concat();
            assert_eq!(printed(execd, &words), out, "{whose} {flags:?}");
        }
    };
    holds(&execd, &id);
    holds(&execd, &name);
    last_input(&mut execd, session, "\n");
    // It has left every list.
    holds(&execd, &id);
    facts(&path.with_extension("meta"), is_over);
    end(&mut execd);
    for whose in [&id, &name, &path.to_string_lossy().into_owned()] {
        holds(&execd, whose);
    }
    let none = "execd: no session @77, and no log of one: execd logs lists them\n";
    assert_eq!(said(&execd, &["log", "@77"]), (1, String::new(), none.into()));
}

/// A log by its name was once taken for that of an execd that is gone: nothing was waited for.
/// rule: logs.md, Reading by people: `--follow` goes on to the session's end, also of a log by its
///   name or path where its execd can be asked
#[test]
fn the_output_is_followed_to_the_sessions_end() {
    let (mut execd, id) = alone(&[]);
    for (id, by_name) in [(id, false), (id + 1, true)] {
        let opened = execd.open("echo begun; read l; echo $l; read l");
        let session = session_of(&opened);
        assert_eq!(session, id);
        let whose = if by_name { short(&log_path(&opened)) } else { format!("@{session}") };
        let mut follower = command(&execd, &["log", "--follow", &whose]);
        let mut follower = follower.spawn().expect("execd runs");
        let mut lines = BufReader::new(follower.stdout.take().expect("a pipe")).lines();
        let mut next = || lines.next().transpose().expect("text");
        assert_eq!(next().as_deref(), Some("begun"), "{whose}");
        execd.input(session, "more\n");
        assert_eq!(next().as_deref(), Some("more"), "{whose}");
        last_input(&mut execd, session, "\n");
        assert_eq!(next(), None, "{whose}");
        assert_eq!(follower.wait().expect("it ends").code(), Some(0));
    }
}

/// rule: logs.md, Reading by people: A beginning that is gone is told on stderr
/// rule: logs.md, Reading by people: Texts that name a log which has lost its beginning say what is
///   kept and how to read it
#[test]
fn a_beginning_that_is_gone_is_told_and_what_is_kept_is_read_as_texts_say() {
    let (mut execd, id) = alone(&["--log-keep-bytes", "1048576"]);
    let result = execd.run_with("seq -w 400000", json!({"yield_time_ms": 60_000}));
    let from = result["log_from"].as_u64().expect("lost");
    let name = short(&log_path(&result));
    let whole: String = (1..=400_000).map(|n| format!("{n:06}\n")).collect();
    let kept = &whole[usize::try_from(from).expect("a place")..];
    for whose in [&format!("@{id}"), &name] {
        let (_, out, err) = said(&execd, &["log", "--raw", whose]);
        assert_eq!(err, format!("execd log: bytes 0–{from} are gone\n"), "{whose}");
        assert!(out == kept, "{whose}: what is kept is printed, and nothing else");
    }
    // What the footer says is done, also when its execd is gone and another one has a session of
    // that number.
    let footer = result["footer"].as_str().expect("it was cut").to_owned();
    let does = format!("log {name} --from {from}");
    let says = format!("bytes {from}–2800000 of 2800000 kept: execd {does}");
    assert!(footer.contains(&says), "{footer}");
    let words: Vec<&str> = does.split(' ').chain(["--raw"]).collect();
    assert!(printed(&execd, &words) == kept);
    end(&mut execd);
    let tmpdir = execd.tmpdir();
    let first = ["--first-session-id", &id.to_string()];
    let mut other = Execd::with(&first, &[("TMPDIR", tmpdir.to_str().expect("UTF-8"))]);
    other.run("echo theirs");
    assert!(printed(&execd, &words) == kept);
}

/// A number once meant whatever execd of that number ran, though the one that was meant was gone.
/// rule: logs.md, Reading by people: Where several execds have had a session 3, `execd log @3` in a
///   session of one of them is that one's; elsewhere it says which there are
/// rule: logs.md, Reading by people: elsewhere it says which there are, each with its execd, its
///   command, its age, its log, and what to say
#[test]
fn a_number_that_may_mean_several_logs_is_refused_with_all_of_them() {
    let (mut execd, id) = alone(&[]);
    execd.run("echo mine; exit 3");
    let mine = execd.log_files().pop().expect("a log");
    facts(&mine.with_extension("meta"), is_over);
    let old_pid = execd.pid();
    end(&mut execd);
    let [tmpdir, runtime] = [execd.tmpdir(), execd.runtime_dir()];
    let [tmpdir, runtime] = [&tmpdir, &runtime].map(|path| path.to_str().expect("UTF-8"));
    let variables = [("TMPDIR", tmpdir), ("XDG_RUNTIME_DIR", runtime)];
    let first = ["--first-session-id", &id.to_string()];
    let mut other = Execd::with(&first, &variables);
    let opened = other.open("echo theirs; exec sleep 1000");
    let theirs = log_path(&opened);
    let number = format!("@{id}");
    let (status, out, err) = said(&execd, &["log", &number]);
    assert_eq!((status, out.as_str()), (1, ""));
    let lines: Vec<&str> = err.lines().collect();
    assert_eq!(lines[0], format!("execd: several execds have had a session {number}, say which:"));
    let pid = other.pid();
    let names = [format!("execd-{pid}:{number}"), short(&mine)];
    for (at, command, how, end) in [
        (0, "echo theirs; exec sleep 1000", format!("{pid}, running for "), theirs),
        (1, "echo mine; exit 3", format!("{old_pid}, exit 3 "), mine),
    ] {
        let (name, line) = (&names[at], lines[at + 1]);
        assert!(line.starts_with(&format!("  {name}  {command} (execd {how}")), "{lines:?}");
        assert!(line.ends_with(&format!(", {})", end.display())), "{lines:?}");
    }
    assert_eq!(lines.len(), 3, "{lines:?}");
    for (name, out) in names.iter().zip(["theirs\n", "mine\n"]) {
        eventually("what it says is done", || said(&execd, &["log", name]).1 == out);
    }
    // A session of another execd that knows no such session has no right to choose either.
    let mut third = Execd::with(&[], &variables);
    let asks = format!("{} log {number}", crate::common::EXECD);
    assert!(third.run(&asks)["output"].as_str().expect("text").contains("several execds"));
    assert_eq!(other.run(&asks)["output"], "theirs\n");
    for n in 0..9 {
        let name = format!("execd-{id}-000000{n:02}.log");
        fs::write(execd.log_dir().join(name), "").expect("a log");
    }
    let (_, _, many) = said(&execd, &["log", &number]);
    assert!(many.contains("  - (last written "), "{many}");
    assert!(many.ends_with(" older ones: execd logs --all lists them\n"), "{many}");
}

/// rule: logs.md, Reading by people: A log whose index cannot be read is printed as it is
#[test]
fn a_log_whose_index_makes_no_sense_is_printed_as_it_is_and_that_is_told() {
    let (mut execd, _) = alone(&[]);
    let cmd = "for n in 1 2 3; do echo out$n; echo err$n >&2; done";
    let result = execd.result("bash_stream", json!({"command": cmd}));
    let path = PathBuf::from(result["logPath"].as_str().expect("a path"));
    let (meta, index) = (path.with_extension("meta"), path.with_extension("log.index"));
    facts(&meta, is_over);
    end(&mut execd);
    let shown = path.to_str().expect("UTF-8");
    let whole = printed(&execd, &["log", shown]);
    assert_eq!(whole.lines().count(), 6);
    let mut random = Random(1);
    let garbage: Vec<u8> = (0..8_192).map(|_| random.below(256_u16).to_le_bytes()[0]).collect();
    assert!(index.exists(), "two streams have an index");
    fs::write(&index, garbage).expect("written");
    let told = "cannot be read: this is the log as it is, lines of execd's own among the output";
    let told = format!("execd log: {shown}.index {told}\n");
    assert_eq!(said(&execd, &["log", shown]), (1, whole.clone(), told.clone()));
    fs::remove_file(&meta).expect("it is there");
    assert_eq!(said(&execd, &["log", shown]), (1, whole.clone(), told.clone()), "without facts");
    let (status, last, _) = said(&execd, &["log", "-n", "1", shown]);
    assert_eq!((status, last.lines().count()), (1, 1));
    // Nor is one that is no file.
    fs::remove_file(&index).expect("it is there");
    fs::create_dir(&index).expect("a directory in its place");
    assert_eq!(said(&execd, &["log", shown]), (1, whole, told));
}

/// rule: logs.md, Reading by people: What is no regular file of the user's is not among them
#[test]
fn what_has_a_logs_name_and_is_none_is_named_and_not_listed() {
    let mut execd = Execd::start();
    execd.run("echo one");
    let dir = execd.log_dir();
    let fifo = dir.join("execd-7-00000000.log");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.is_ok_and(|status| status.success()));
    let link = dir.join("execd-777777777-00000000.log");
    std::os::unix::fs::symlink("/etc/passwd", link).expect("a link");
    fs::create_dir(dir.join("execd-8-00000000.log")).expect("a directory");
    fs::write(dir.join("execd-9-00000000.log"), "a log\n").expect("a log");
    let listed = printed(&execd, &["logs"]);
    assert!(listed.lines().count() == 3 && listed.contains("\n9-00000000 "), "{listed}");
    let is_none = "is no log: a log is a regular file that is yours (execd logs lists them)";
    for (name, told) in [
        ("@777777777", "no session @777777777".to_owned()),
        ("7-00000000", format!("execd: {} {is_none}\n", fifo.display())),
        ("8-00000001", "execd-8-00000001.log: there is no such log".to_owned()),
    ] {
        let (status, _, err) = said(&execd, &["log", name]);
        assert!(status == 1 && err.contains(&told), "{err}");
    }
}

/// rule: logs.md, Reading by people: `--lines N` (also `-n`) prints the last so many lines, however
///   far back they begin
/// rule: logs.md, Reading by people: It is printed as clean text, which changes no terminal
#[test]
fn the_last_lines_are_found_however_far_back_they_begin() {
    let (mut execd, id) = alone(&[]);
    let whole: String = (1..=400_000).map(|n| format!("{n:06}\n")).collect();
    execd.run_with("seq -w 400000", json!({"yield_time_ms": 60_000}));
    let name = short(&execd.log_files().pop().expect("a log"));
    for whose in [&format!("@{id}"), &name] {
        for count in [1, 300_000, 400_000, 500_000] {
            let out = printed(&execd, &["log", "-n", &count.to_string(), whose]);
            let expected = &whole[7 * 400_000_usize.saturating_sub(count)..];
            assert!(out == expected, "{whose} {count}: {} bytes", out.len());
        }
        // No further back than is asked for.
        let out = printed(&execd, &["log", "-n", "300000", "--from", "-14", whose]);
        assert_eq!(out, "399999\n400000\n");
    }
    // In whole characters.
    let long = format!("{}\n", "\u{20ac}".repeat(700_000));
    let whole = format!("one\n{long}");
    fs::write(execd.log_dir().join("execd-9-00000000.log"), &whole).expect("a log");
    for (flags, expected) in [(&[][..], &whole), (&["-n", "1"], &long), (&["-n", "2"], &whole)] {
        let out = printed(&execd, &[&["log", "9-00000000"], flags].concat());
        assert!(out == *expected, "{flags:?}: {} bytes", out.len());
    }
}

/// rule: logs.md, Reading by people: A session that is listed is also known by its name, or by how
///   that begins where no other name begins so
#[test]
fn a_session_is_known_by_its_name() {
    let mut execd = Execd::start();
    for (name, word) in [("serve", "one"), ("server", "two"), ("tests", "three")] {
        let cmd = format!("echo {word}; exec sleep 1000");
        execd.open_with(&cmd, json!({"name": name}));
    }
    for (name, expected) in [("serve", "one\n"), ("server", "two\n"), ("te", "three\n")] {
        eventually("its output is there", || said(&execd, &["log", name]).1 == expected);
    }
    let (_, _, several) = said(&execd, &["log", "ser"]);
    let pid = execd.pid();
    for which in [format!("execd-{pid}:@1 (serve: "), format!("execd-{pid}:@2 (server: ")] {
        assert!(several.contains(&which), "{several}");
    }
    assert!(several.starts_with("execd: several sessions are called ser: say "));
    let (status, _, none) = said(&execd, &["log", "nobody"]);
    assert!(
        status == 1 && none.starts_with("execd: nobody is no session, no name of one"),
        "{none}"
    );
}

/// rule: logs.md, Reading by people: until nobody reads what is printed
/// rule: logs.md, Reading by people: A reader that goes ends it quietly
#[test]
fn a_reader_that_goes_ends_it_quietly_also_when_nothing_comes() {
    let (mut execd, id) = alone(&[]);
    execd.run_with("seq 1000000", json!({"yield_time_ms": 60_000}));
    execd.open_until("echo begun; exec sleep 1000", "begun");
    let (long, silent) = (format!("@{id}"), format!("@{}", id + 1));
    for (words, first) in [(&["log", &long][..], "1\n"), (&["log", "-f", &silent], "begun\n")] {
        let mut reader = command(&execd, words).spawn().expect("execd runs");
        let mut line = String::new();
        let mut out = BufReader::new(reader.stdout.take().expect("a pipe"));
        out.read_line(&mut line).expect("text");
        drop(out);
        let output = reader.wait_with_output().expect("it ends");
        assert_eq!((line.as_str(), output.status.code()), (first, Some(141)));
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// rule: logs.md, Reading by people: `execd logs` lists them, newest first
#[test]
fn logs_are_listed_newest_first() {
    let mut execd = Execd::start();
    assert_eq!(said(&execd, &["logs", "--log-dir", "/nonexistent"]).0, 1);
    let first = execd.run("echo first; exit 3");
    facts(&meta_of(&first), is_over);
    let second = execd.open("sleep 1000");
    facts(&meta_of(&second), |_| true);
    let aside = execd.log_dir().join("execd-9-00000000.log");
    fs::write(&aside, "old\n").expect("a log of another execd");
    let file = fs::File::options().write(true).open(&aside).expect("it is there");
    file.set_modified(UNIX_EPOCH).expect("its time is set");
    let listed = printed(&execd, &["logs"]);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let rows: Vec<_> = listed.lines().map(words).collect();
    let [one, two] = [&first, &second].map(|result| short(&log_path(result)));
    assert_eq!(rows[0], ["ID", "AGE", "KEPT/SIZE", "EXIT", "COMMAND"], "{listed}");
    assert_eq!((&rows[1][0], rows[1][3..].join(" ")), (&two, "- sleep 1000".to_owned()));
    let of_first = "6B/6B exit 3 echo first; exit 3".to_owned();
    assert_eq!((&rows[2][0], rows[2][2..].join(" ")), (&one, of_first));
    assert_eq!((&*rows[3][0], &*rows[3][2], rows.len()), ("9-00000000", "4B/4B", 4));
    // What a log that ended at its bound has never had was told as kept, and TB as so many MB.
    let told = "{\"ended_at_ms\":1,\"exit_code\":0,\"total_bytes\":3000000000000}\n";
    fs::write(aside.with_extension("meta"), told).expect("its facts");
    let listed = printed(&execd, &["logs"]);
    assert!(listed.contains("  4B/2.7TB  "), "{listed}");
    for n in 0..60 {
        fs::write(execd.log_dir().join(format!("execd-9-000001{n:02}.log")), "").expect("a log");
    }
    let (_, out, err) = said(&execd, &["logs"]);
    assert_eq!(out.lines().count(), 51);
    assert_eq!(err, "execd logs: the newest 50 of 63: --all shows all\n");
    assert_eq!(printed(&execd, &["logs", "--all"]).lines().count(), 64);
}

/// rule: logs.md, Reading by people: By its path a log is named that lies in a directory of
///   `--log-dir`, and by texts of an execd without a socket or with one at a place of its own
/// rule: logs.md, Reading by people: By its path a log is named by texts of `execd run --json` and
///   of a fresh execd of `execd call`
#[test]
fn where_nobody_finds_an_execd_texts_name_logs_by_their_paths() {
    let bound = ["--log-keep-bytes", "1048576"];
    let place = tempfile::tempdir().expect("a directory");
    let [socket, logs] = ["s.sock", "its-logs"].map(|name| place.path().join(name));
    let [socket, logs] = [&socket, &logs].map(|path| path.to_str().expect("UTF-8"));
    for flags in [&["--no-socket"][..], &["--socket", socket], &["--log-dir", logs]] {
        let mut execd = Execd::with(&[flags, &bound].concat(), &[]);
        let result = execd.run_with("seq 300000", json!({"yield_time_ms": 60_000}));
        done_as_said(&result["footer"], "kept: ");
    }
    // Those that are gone when somebody reads what they said.
    let execd = Execd::start();
    let dir = execd.workdir().join("it's here");
    let flags = [&bound[..], &["--log-dir", dir.to_str().expect("UTF-8")]].concat();
    let bash =
        json!({"command": "seq 299999; echo execd log @1 --from 3; echo 300000"}).to_string();
    for (words, whole) in [
        ([&["run", "--json"], &flags[..], &["seq", "300000"]].concat(), 1_988_895),
        (
            [&["call"], &flags[..], &["exec_command", r#"{"cmd": "seq 300000"}"#]].concat(),
            1_988_895,
        ),
        ([&["call"], &flags[..], &["bash", &bash]].concat(), 1_988_917),
    ] {
        let report: Value = serde_json::from_str(&said(&execd, &words).1).expect("JSON");
        let text = if words.contains(&"bash") { &report["text"] } else { &report["footer"] };
        // What the command itself has printed stays as it is.
        assert!(
            report["text"].is_null() || text.to_string().contains("\\nexecd log @1 --from 3\\n")
        );
        let (says, out) = done_as_said(text, "kept: ");
        let from = says.rsplit(' ').next().and_then(|from| from.parse::<usize>().ok());
        assert_eq!(out.len(), whole - from.expect("a number"), "{says}");
    }
}
