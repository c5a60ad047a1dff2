//! The programs of docs/examples run against the real binary, and docs/scripts.md lists them.

use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::{fs, io, thread};

use crate::common::outside::{output_at_end, output_of};
use crate::common::*;
use serde_json::json;
use tempfile::TempDir;

const PROGRAMS: [&str; 5] =
    ["events.mjs", "follow_log.py", "parallel_tests.py", "repl.py", "serve_and_test.mjs"];
const CLIENTS: [&str; 2] = ["execd_client.mjs", "execd_client.py"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn examples() -> PathBuf {
    root().join("docs/examples")
}

/// A directory in which programs run, with this build's execd first on their PATH.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("execd-test-").tempdir().expect("a directory");
        let bin = dir.path().join("bin");
        fs::create_dir(&bin).expect("a directory");
        std::os::unix::fs::symlink(crate::common::EXECD, bin.join("execd")).expect("a link");
        Self(dir)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// An interpreter in this place; `None` where the machine lacks it.
    fn interpreter(&self, name: &str) -> Option<Command> {
        if missing(name) {
            return None;
        }
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(name);
        command
            .current_dir(self.0.path())
            .env("PATH", format!("{}:{path}", self.file("bin").display()))
            .env("TMPDIR", self.0.path())
            .env("XDG_RUNTIME_DIR", self.0.path())
            .env("PYTHONPATH", examples())
            .env("PYTHONDONTWRITEBYTECODE", "1");
        Some(command)
    }

    fn program(&self, name: &str, args: &[&str]) -> Option<Command> {
        let interpreter = if name.ends_with(".py") { "python3" } else { "node" };
        let mut command = self.interpreter(interpreter)?;
        command.arg(examples().join(name)).args(args);
        Some(command)
    }

    fn run(&self, name: &str, args: &[&str]) -> Option<Output> {
        self.program(name, args).map(|mut command| output_of(&mut command))
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn parallel_tests_reports_each_command_and_fails_when_one_fails() {
    let place = Place::new();
    let slow = "echo begun; sleep 1000";
    let commands = ["sleep 0.5; echo b", "echo why; exit 4", slow, "cat"];
    let args = [&["--deadline", "3"], &commands[..]].concat();
    let Some(done) = place.run("parallel_tests.py", &args) else { return };
    let words: Vec<String> = stdout(&done)
        .lines()
        .filter(|line| !line.starts_with(' '))
        .map(|line| line.split(' ').next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(words, ["ok", "FAILED", "TIMEOUT", "ok", "2"], "{}", stdout(&done));
    assert!(stdout(&done).contains("\n    why\n"), "{}", stdout(&done));
    assert!(stdout(&done).contains("\n    begun\n"), "{}", stdout(&done));
    assert_eq!(done.status.code(), Some(1), "{}", stderr(&done));

    let done = place.run("parallel_tests.py", &["true", "true"]).expect("it ran before");
    assert!(done.status.success() && stdout(&done).ends_with("2 of 2 passed\n"), "{done:?}");
}

#[test]
fn serve_and_test_tests_a_server_and_stops_it() {
    let place = Place::new();
    let Some(done) = place.run("serve_and_test.mjs", &[]) else { return };
    assert!(done.status.success(), "{}", stderr(&done));
    let text = stdout(&done);
    assert!(text.contains("answered 200: hello\n") && text.ends_with("stopped\n"), "{text}");

    let fails = ["echo no; exit 2", "echo 'Error: no'; sleep 1000"];
    for command in fails {
        let done = place.run("serve_and_test.mjs", &[command]).expect("it ran before");
        assert_eq!(done.status.code(), Some(1), "{command}");
        assert!(stderr(&done).contains("the server does not listen"), "{}", stderr(&done));
    }
}

#[test]
fn repl_sends_lines_and_prints_what_comes_back() {
    let place = Place::new();
    let lines = ["6 * 7", "word = 'two' + ' words'", "print(word); print(len(word))"];
    let Some(done) = place.run("repl.py", &lines) else { return };
    let shown = "6 * 7 -> 42\nword = 'two' + ' words' -> \n\
                 print(word); print(len(word)) -> two words\n9\n";
    assert_eq!(stdout(&done), shown, "{}", stderr(&done));
    assert!(done.status.success());

    let done = place.run("repl.py", &["exit()"]).expect("it ran before");
    assert_eq!(done.status.code(), Some(1), "{}", stdout(&done));
}

#[test]
fn events_reports_the_end_of_each_command() {
    let place = Place::new();
    let commands = ["sleep 1", "exit 3", "sleep 0.5; kill -9 $$"];
    let Some(done) = place.run("events.mjs", &commands) else { return };
    let text = stdout(&done);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let ends = ["SIGKILL: sleep 0.5; kill -9 $$", "exit 0: sleep 1", "exit 3: exit 3"];
    assert_eq!(lines, ends, "{}", stderr(&done));
    assert_eq!(done.status.code(), Some(1));

    let done = place.run("events.mjs", &["sleep 0.5", "true"]).expect("it ran before");
    assert!(done.status.success(), "{done:?}");
}

// ---- The follower -----------------------------------------------------------------------

/// A socket that hands everything on to the one of an execd, until its connections are cut.
struct Relay {
    path: PathBuf,
    connections: Arc<Mutex<Vec<UnixStream>>>,
}

impl Relay {
    fn new(path: PathBuf, behind: PathBuf) -> Self {
        let listener = UnixListener::bind(&path).expect("a socket");
        let connections = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&connections);
        thread::spawn(move || {
            for near in listener.incoming() {
                let near = near.expect("a connection");
                let far = UnixStream::connect(&behind).expect("execd listens");
                let copy = |stream: &UnixStream| stream.try_clone().expect("a copy");
                kept.lock().expect("no panic").push(copy(&near));
                for (mut from, mut to) in [(copy(&near), copy(&far)), (far, near)] {
                    thread::spawn(move || {
                        let _ = io::copy(&mut from, &mut to);
                        let _ = to.shutdown(std::net::Shutdown::Both);
                    });
                }
            }
        });
        Self { path, connections }
    }

    fn cut(&self) {
        for stream in self.connections.lock().expect("no panic").drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

fn follow(place: &Place, socket: &Path, session: u64) -> Option<Child> {
    let mut command = place.program("follow_log.py", &[])?;
    command.arg(socket).arg(session.to_string()).arg(place.file("copy"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Some(command.spawn().expect("it starts"))
}

fn numbers(first: u32, last: u32) -> String {
    (first..=last).map(|number| format!("{number}\n")).collect()
}

/// A session that prints numbers, waits for the file `go`, and prints more of them.
fn open_in_two_parts(execd: &mut Execd, middle: u32, last: u32) -> u64 {
    let cmd = format!("seq {middle}; {}; seq {} {last}", until_file("go"), middle + 1);
    session_of(&execd.open(&cmd))
}

fn copied(place: &Place) -> String {
    fs::read_to_string(place.file("copy")).unwrap_or_default()
}

#[test]
fn follow_log_goes_on_after_a_cut_and_after_its_own_end() {
    let place = Place::new();
    let mut execd = Execd::start();
    let session = open_in_two_parts(&mut execd, 30_000, 60_000);
    let relay = Relay::new(place.file("relay.sock"), execd.socket());
    let first = numbers(1, 30_000);

    // Its own end: the next one begins where the copy ends.
    let Some(mut follower) = follow(&place, &relay.path, session) else { return };
    eventually("the first part is copied", || copied(&place) == first);
    follower.kill().expect("our child");
    follower.wait().expect("our child");

    let follower = follow(&place, &relay.path, session).expect("it ran before");
    eventually("it follows", || relay.connections.lock().expect("no panic").len() == 2);
    relay.cut();
    go(&execd, "go");
    let done = output_at_end(follower);
    assert!(done.status.success(), "{}", stderr(&done));
    assert_eq!(stderr(&done), format!("cut at byte {}, going on\n", first.len()));
    assert!(copied(&place) == numbers(1, 60_000), "each byte once");
}

// ---- The clients ------------------------------------------------------------------------

/// What a script in Python or Node prints that uses a client.
fn printed_by(interpreter: &str, args: &[&str], script: &str) -> Option<String> {
    let place = Place::new();
    let done = output_of(place.interpreter(interpreter)?.args(args).arg(script));
    assert!(done.status.success(), "{}", stderr(&done));
    Some(stdout(&done))
}

#[test]
fn the_python_client_raises_errors_and_gives_the_exit_status() {
    let script = r#"
from execd_client import *
heard = []
execd = Execd("--no-socket", on_notification=lambda method, params: heard.append(method))
slow = execd.request("exec_command", cmd="sleep 0.5; echo slow", yield_time_ms=30000)
print(execd.call("exec_command", cmd="echo hi")["output"], end="")
print(slow.result(60)["output"], end="")
try:
    execd.call("exec_command", cmd="true", no_such=1)
except ExecdError as error:
    print(error.code)
print(execd.close(), "session_exited" in heard)
try:
    execd.call("ping")
except ExecdGone:
    print("gone")
try:
    Execd(program="true").request("ping").result(60)
except ExecdGone:
    print("gone")
"#;
    let Some(text) = printed_by("python3", &["-c"], script) else { return };
    assert_eq!(text, "hi\nslow\n-32602\n1 True\ngone\ngone\n");
}

#[test]
fn the_node_client_rejects_with_errors_and_gives_the_exit_status() {
    let client = examples().join("execd_client.mjs");
    let script = r#"
const { Execd, ExecdError, ExecdGone } = await import(CLIENT);
const heard = [];
const execd = new Execd({ flags: ["--no-socket"], onNotification: (name) => heard.push(name) });
const slow = execd.call("exec_command", { cmd: "sleep 0.5; echo slow", yield_time_ms: 30000 });
process.stdout.write((await execd.call("exec_command", { cmd: "echo hi" })).output);
process.stdout.write((await slow).output);
const caught = async (kind, promise) => {
  const error = await promise.catch((error) => error);
  console.log(error instanceof kind ? error.code ?? "gone" : error);
};
await caught(ExecdError, execd.call("exec_command", { cmd: "true", no_such: 1 }));
console.log(await execd.close(), heard.includes("session_exited"));
await caught(ExecdGone, execd.call("ping"));
await caught(ExecdGone, new Execd({ program: "true" }).call("ping"));
await caught(ExecdGone, new Execd({ program: "no-such-program" }).call("ping"));
"#;
    let script = script.replace("CLIENT", &json!(client).to_string());
    let args = ["--input-type=module", "-e"];
    let Some(text) = printed_by("node", &args, &script) else { return };
    assert_eq!(text, "hi\nslow\n-32602\n1 true\ngone\ngone\ngone\n");
}

// ---- The pages --------------------------------------------------------------------------

#[test]
fn the_page_for_scripts_lists_each_example_and_each_is_run_here() {
    let page = fs::read_to_string(root().join("docs/scripts.md")).expect("the page");
    let mut names: Vec<String> = fs::read_dir(examples())
        .expect("docs/examples")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains('.'))
        .collect();
    names.sort();
    let mut known = [&PROGRAMS[..], &CLIENTS[..]].concat();
    known.sort_unstable();
    assert_eq!(names, known);
    for name in names {
        assert!(page.contains(&format!("](examples/{name})")), "{name} is not in docs/scripts.md");
    }
}
