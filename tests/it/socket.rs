//! The control socket: where it is, who may use it, several clients at once, and
//! that none of them disturbs another.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::outside::{self, countable_fds, go_on, is_root, stop};
use crate::common::wire::{Wire, connect};
use crate::common::{Execd, Setup, eventually, left_out, missing, output, send_signal, session_of};
use serde_json::{Value, json};

/// Clients at once, as limits.rs has it.
const CLIENTS: usize = 64;

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().expect("it exists").mode() & 0o7777
}

/// Runs execd with nothing to do.
fn start_and_end(arguments: &[&str], runtime: &Path) -> Output {
    crate::common::execd_command()
        .args(arguments)
        .env("TMPDIR", runtime)
        .env("XDG_RUNTIME_DIR", runtime)
        .stdin(Stdio::null())
        .output()
        .expect("execd runs")
}

/// rule: attach.md, Where it is, who may use it: execd listens on
///   `$XDG_RUNTIME_DIR/execd/<pid>.sock`, directory 0700, socket 0600
/// rule: attach.md, Where it is, who may use it: execd's own socket goes with it
#[test]
fn the_socket_is_private_and_goes_with_its_execd() {
    let mut execd = Execd::start();
    execd.ping();
    let (dir, path) = (execd.runtime_dir().join("execd"), execd.socket());
    assert_eq!((mode(&dir), mode(&path)), (0o700, 0o600));
    assert!(path.symlink_metadata().expect("it is there").file_type().is_socket());
    let info = execd.result("server_info", json!({}));
    assert_eq!(info["socket"], json!(path.to_string_lossy()));
    let mut other = Wire::connect(&path);
    assert_eq!(other.result("ping", json!({})), json!({}));
    execd.signal(libc::SIGTERM);
    execd.wait_exit();
    assert!(!path.exists());
}

/// rule: attach.md, Where it is, who may use it: execd listens in `/tmp/execd-<uid>/` where
///   XDG_RUNTIME_DIR is not set
#[test]
fn without_a_runtime_directory_it_is_in_tmp() {
    // SAFETY: geteuid only returns a number.
    let uid = unsafe { libc::geteuid() };
    let dir = PathBuf::from(format!("/tmp/execd-{uid}"));
    for unusable in [None, Some("/nonexistent"), Some("relative")] {
        let mut setup = Setup::new(&[]);
        match unusable {
            None => setup.command().env_remove("XDG_RUNTIME_DIR"),
            Some(value) => setup.command().env("XDG_RUNTIME_DIR", value),
        };
        let mut execd = setup.start();
        let info = execd.result("server_info", json!({}));
        let path = dir.join(format!("{}.sock", execd.pid()));
        assert_eq!(info["socket"], json!(path.to_string_lossy()));
        assert_eq!(mode(&dir), 0o700);
        execd.close_stdin();
        execd.wait_exit();
        assert!(!path.exists());
    }
    // It may be another execd's too: gone only when it is empty.
    let _ = std::fs::remove_dir(&dir);
}

/// rule: attach.md, Where it is, who may use it: `--no-socket` turns it off, `--socket PATH` places
///   it
#[test]
fn no_socket_is_none_and_another_place_is_there() {
    let mut execd = Execd::with(&["--no-socket"], &[]);
    let info = execd.result("server_info", json!({}));
    assert!(info.get("socket").is_none(), "{info}");
    assert!(!execd.runtime_dir().join("execd").exists());

    // Relative to where execd was started.
    let mut execd = Execd::with(&["--socket", "here.sock"], &[]);
    execd.ping();
    let path = execd.file("here.sock");
    assert_eq!(mode(&path), 0o600);
    assert!(!execd.runtime_dir().join("execd").exists());
    assert_eq!(Wire::connect(&path).result("ping", json!({})), json!({}));
    // One that lives is not taken from it.
    let second = start_and_end(&["--socket", &path.to_string_lossy()], &execd.runtime_dir());
    assert_eq!(second.status.code(), Some(125));
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(said.contains("here.sock: EADDRINUSE") && said.lines().count() == 1, "{said}");
    assert_eq!(Wire::connect(&path).result("ping", json!({})), json!({}));
}

/// Every failure to bind was told as EADDRINUSE, also where the directory was missing.
#[test]
fn a_place_that_cannot_be_is_told_and_what_is_no_socket_stays() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("file");
    std::fs::write(&file, "mine").expect("written");
    let long = dir.path().join("x".repeat(200));
    for (path, why) in [
        (&file, "EADDRINUSE"),
        (&dir.path().join("missing/s.sock"), "ENOENT"),
        (&file.join("s.sock"), "ENOTDIR"),
        (&long, "ENAMETOOLONG"),
    ] {
        let done = start_and_end(&["--socket", &path.to_string_lossy()], dir.path());
        assert_eq!(done.status.code(), Some(125), "{done:?}");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(said.starts_with("execd: cannot start: the socket"), "{said}");
        assert!(said.contains(&format!("{}: {why}: ", path.display())), "{said}");
    }
    assert_eq!(std::fs::read(&file).expect("it is there"), b"mine");
    // What an execd that was killed has left is replaced.
    let stale = dir.path().join("stale.sock");
    drop(UnixListener::bind(&stale).expect("bound"));
    let done = start_and_end(&["--socket", &stale.to_string_lossy()], dir.path());
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
    assert!(!stale.exists(), "removed at the end");
}

/// rule: attach.md, Where it is, who may use it: A directory that is a symlink, no directory or
///   open to others is refused with a line on stderr, and execd goes on
#[test]
fn a_directory_that_is_not_private_is_refused_and_execd_goes_on() {
    let elsewhere = tempfile::tempdir().expect("a directory");
    type Spoil = fn(&Path, &Path);
    let cases: [(&str, Spoil); 3] = [
        ("symbolic link", |dir, other| std::os::unix::fs::symlink(other, dir).expect("a link")),
        ("others may enter it", |dir, _| {
            std::fs::create_dir(dir).expect("a directory");
            std::fs::set_permissions(dir, Permissions::from_mode(0o755)).expect("ours");
        }),
        ("no directory", |dir, _| std::fs::write(dir, "").expect("a file")),
    ];
    for (reason, spoil) in cases {
        let runtime = tempfile::tempdir().expect("a directory");
        spoil(&runtime.path().join("execd"), elsewhere.path());
        let dir = runtime.path().to_string_lossy().into_owned();
        let mut execd = Execd::with(&[], &[("XDG_RUNTIME_DIR", &dir)]);
        assert_eq!(output(&execd.run("echo served")), "served\n");
        let said = execd.stderr();
        assert!(said.starts_with("execd: nobody can attach: socket directory"), "{said}");
        assert!(said.contains(reason) && said.lines().count() == 1, "{said}");
        assert!(execd.result("server_info", json!({})).get("socket").is_none());
    }
    assert_eq!(std::fs::read_dir(elsewhere.path()).expect("it is there").count(), 0);
}

/// rule: attach.md, Where it is, who may use it: Stale sockets of dead processes are cleaned up at
///   start, others are not touched
#[test]
fn sockets_of_dead_processes_are_cleaned_up_at_start_and_those_of_living_ones_are_not() {
    let runtime = tempfile::tempdir().expect("a directory");
    let dir = runtime.path().to_string_lossy().into_owned();
    let env: [(&str, &str); 1] = [("XDG_RUNTIME_DIR", &dir)];
    let mut killed = Execd::with(&[], &env);
    killed.ping();
    let dead = runtime.path().join(format!("execd/{}.sock", killed.pid()));
    send_signal(killed.pid(), libc::SIGKILL);
    killed.wait_exit();
    assert!(dead.exists(), "nobody has removed it");
    let mut living = Execd::with(&[], &env);
    living.ping();
    assert!(!dead.exists());
    // What is no socket of an execd is not touched.
    let other = runtime.path().join("execd/notes.txt");
    std::fs::write(&other, "mine").expect("written");
    let mut third = Execd::with(&[], &env);
    third.ping();
    for one in [&living, &third] {
        assert!(runtime.path().join(format!("execd/{}.sock", one.pid())).exists());
    }
    assert!(other.exists());
}

/// rule: protocol.md, Several clients, cancel in the families: `wake: true` goes only to the client
///   that armed it, session_started and session_exited to every client
/// rule: attach.md, Several clients: It speaks the same protocol as stdin; each connection is one
///   more client; a session of one is visible to all
#[test]
fn a_session_of_one_client_is_everybodys() {
    let mut execd = Execd::start();
    let (mut one, mut two) = (Wire::connect(&execd.socket()), Wire::connect(&execd.socket()));
    two.result("ping", json!({}));
    let params = json!({"cmd": "read line; echo got $line", "yield_time_ms": 250});
    let session = session_of(&one.result("exec_command", params));
    let is_it = |note: &Value| note["session_id"] == session;
    for client in [&mut one, &mut two] {
        client.note("session_started", is_it);
    }
    execd.notification("session_started", is_it);
    let list = two.result("list_sessions", json!({"peek": true}));
    assert_eq!(list["sessions"][0]["session_id"], session);
    let input = json!({"session_id": session, "chars": "it\n", "yield_time_ms": 30_000});
    assert_eq!(execd.write(input)["output"], "got it\n");
    for client in [&mut one, &mut two] {
        assert_eq!(client.note("session_exited", is_it)["observed"], true);
    }
    let info = execd.result("server_info", json!({}));
    assert_eq!(info["clients"], json!({"connected": 2, "max": CLIENTS}));
    // A shutdown that one asks for is answered to it.
    execd.open("exec sleep 1000");
    let ended = one.result("shutdown", json!({}));
    assert_eq!(ended["ended"].as_array().map(Vec::len), Some(1), "{ended}");
    assert_eq!(execd.wait_exit().code(), Some(0));
}

/// rule: protocol.md, Several clients, cancel in the families: The ids of requests are per
///   connection
/// rule: attach.md, Several clients: Request ids, cancel and the limit of pending requests are per
///   connection
#[test]
fn ids_waits_and_wakes_are_each_clients_own() {
    let mut execd = Execd::start();
    let (mut one, mut two) = (Wire::connect(&execd.socket()), Wire::connect(&execd.socket()));
    let session = session_of(&execd.open("read line; exit 5"));
    let mut poll = json!({"session_id": session, "yield_time_ms": 600_000});
    poll["on_impossible"] = json!("wait");
    // The same id three times, in flight at once.
    execd.send(7, "write_stdin", poll.clone());
    one.send_as(7, "write_stdin", &poll);
    two.send_as(7, "write_stdin", &poll);
    eventually("all three wait", || {
        execd.result("server_info", json!({}))["pending_requests"] == 3
    });
    assert_eq!(two.result("cancel", json!({"id": 7})), json!({"cancelled": true}));
    assert_eq!(two.reply(7)["result"]["wait_status"], "cancelled");
    assert_eq!(two.result("cancel", json!({"id": 7})), json!({"cancelled": false}));
    assert_eq!(execd.result("server_info", json!({}))["pending_requests"], 2);
    // Nobody is waited for here, so that the exit is not observed but told.
    assert!(execd.cancel(7) && one.result("cancel", json!({"id": 7}))["cancelled"] == true);
    one.result("set_on_exit", json!({"session_id": session, "on_exit": "wake"}));
    two.result("attach_input", json!({"session_id": session, "data_b64": "Cg=="}));
    let is_it = |note: &Value| note["session_id"] == session;
    assert_eq!(one.note("session_exited", is_it)["wake"], true);
    assert!(two.note("session_exited", is_it).get("wake").is_none());
    assert!(execd.notification("session_exited", is_it).get("wake").is_none());
}

/// rule: attach.md, Several clients: A client's end ends its requests' waits and wakes, never a
///   session
#[test]
fn a_client_that_is_gone_takes_its_waits_and_wakes_along_and_no_session() {
    let mut execd = Execd::start();
    execd.ping();
    let fds = countable_fds(execd.pid());
    let mut one = Wire::connect(&execd.socket());
    let params = json!({"cmd": "read line; exit 5", "yield_time_ms": 250});
    let session = session_of(&one.result("exec_command", params));
    one.result("set_on_exit", json!({"session_id": session, "on_exit": "wake"}));
    let mut poll = json!({"session_id": session, "yield_time_ms": 600_000});
    poll["on_impossible"] = json!("wait");
    one.send("write_stdin", poll);
    one.send("exec_command", json!({"cmd": "sleep 1000", "yield_time_ms": 30_000}));
    eventually("both wait", || execd.result("server_info", json!({}))["pending_requests"] == 2);
    drop(one);
    eventually("none waits", || execd.result("server_info", json!({}))["pending_requests"] == 0);
    let mut rows = Vec::new();
    eventually("both are in the table", || {
        rows = execd.peek()["sessions"].as_array().expect("rows").clone();
        rows.len() == 2
    });
    assert!(rows.iter().all(|row| row["running"] == true && row["wake_armed"] == false));
    let done = execd.write(json!({"session_id": session, "chars": "\n", "yield_time_ms": 30_000}));
    assert_eq!(done["exit_code"], 5);
    assert_eq!(execd.kill(session + 1)["killed"], true);
    eventually("its descriptors are given back", || countable_fds(execd.pid()) == fds);
}

/// rule: attach.md, Several clients: A client that ends only its requests is answered before it is
///   hung up on
#[test]
fn who_ends_only_its_requests_is_answered_before_it_is_hung_up_on() {
    let mut execd = Execd::start();
    execd.ping();
    let mut one = Wire::connect(&execd.socket());
    let id = one.send("exec_command", json!({"cmd": "sleep 0.3; echo done"}));
    // The last line counts also without a newline.
    one.raw(br#"{"id":"last","method":"ping"}"#);
    one.no_more();
    let lines = one.all_to_the_end();
    assert!(lines.iter().any(|line| line["id"] == "last" && line["result"] == json!({})));
    let reply = lines.iter().find(|line| line["id"] == id).expect("the answer");
    assert_eq!(output(&reply["result"]), "done\n");
    // Who hangs up at once has its requests carried out: there is nobody to answer.
    let mut two = connect(&execd.socket());
    let file = execd.file("made");
    let cmd = format!("touch {}", file.display());
    let line = json!({"id": 1, "method": "exec_command", "params": {"cmd": cmd}}).to_string();
    two.write_all(format!("{line}\n").as_bytes()).expect("sent");
    drop(two);
    crate::common::until_exists(&file);
    execd.ping();
}

/// rule: protocol.md, Several clients, cancel in the families: Socket clients do not keep execd
///   alive and are answered `shutting_down` at its end
#[test]
fn at_the_end_of_stdin_the_others_are_answered_shutting_down() {
    let mut execd = Execd::start();
    execd.ping();
    let mut one = Wire::connect(&execd.socket());
    let long = json!({"cmd": "trap '' TERM; echo up; sleep 1000", "yield_time_ms": 250});
    let session = session_of(&one.result("exec_command", long));
    let poll = one.send("write_stdin", json!({"session_id": session, "yield_time_ms": 600_000}));
    one.result("ping", json!({}));
    // stdin's own request runs to its end; nobody else's keeps execd alive.
    execd.send(1, "exec_command", json!({"cmd": "sleep 0.5; echo own"}));
    execd.close_stdin();
    assert_eq!(output(&execd.result_of(1)), "own\n");
    let reply = one.reply(poll);
    assert_eq!(reply["result"]["wait_status"], "shutting_down", "{reply}");
    // The session holds out for a second, so that there is time to ask.
    let error = one.error("exec_command", json!({"cmd": "true"}));
    assert_eq!(error["data"]["reason"], "shutting_down");
    one.note("session_exited", |note| note["session_id"] == session);
    one.all_to_the_end();
    assert_eq!(execd.wait_exit().code(), Some(0));
}

/// rule: attach.md, Several clients: `execd run` can be looked at
#[test]
fn the_command_of_execd_run_can_be_looked_at() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut run = crate::common::execd_command()
        .args(["run", "--", "sh", "-c", "echo out; read line; echo $line; exit 4"])
        .env("TMPDIR", dir.path())
        .env("XDG_RUNTIME_DIR", dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("execd runs");
    let path = dir.path().join(format!("execd/{}.sock", run.id()));
    let mut one = Wire::connect(&path);
    eventually("the session is listed", || {
        let list = one.result("list_sessions", json!({"peek": true}));
        list["sessions"].as_array().is_some_and(|rows| rows.len() == 1)
    });
    one.result("attach_session", json!({"session_id": 1}));
    one.note("attach_output", |note| note["data_b64"] == "b3V0Cg==");
    run.stdin.take().expect("stdin").write_all(b"typed\n").expect("written");
    assert_eq!(one.note("attach_ended", |_| true)["exit_code"], 4);
    one.all_to_the_end();
    let done = run.wait_with_output().expect("it ends");
    assert_eq!((done.status.code(), done.stdout.as_slice()), (Some(4), &b"out\ntyped\n"[..]));
    assert!(!path.exists());
}

/// rule: attach.md, Several clients: 20 clients with garbage, half lines and hang-ups: stdin's
///   client never notices, descriptors come back
#[test]
fn twenty_clients_with_garbage_half_lines_and_hang_ups_disturb_nobody() {
    let mut execd = Execd::with(&["--on-impossible", "wait"], &[]);
    let session = session_of(&execd.open("exec cat"));
    execd.ping();
    let (fds, path) = (countable_fds(execd.pid()), execd.socket());
    let garbage: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let poll =
        b"{\"id\":1,\"method\":\"write_stdin\",\"params\":{\"session_id\":1}}\n{\"id\":2,\"meth";
    let said: [&[u8]; 5] = [
        &garbage,
        br#"{"id":1,"method":"exec_com"#,
        b"{\n[]\nnull\n\"x\"\n{\"id\":{}}\n\n\r\n",
        poll,
        b"",
    ];
    for round in 0..3 {
        let mut clients: Vec<UnixStream> = (0..20).map(|_| connect(&path)).collect();
        for (client, said) in clients.iter_mut().zip(said.iter().cycle()) {
            // One that is hung up on while it writes is no failure here.
            let _ = client.write_all(said);
        }
        let echoed = execd.write(json!({"session_id": session, "chars": format!("{round}\n")}));
        assert_eq!(output(&echoed), format!("{round}\n"));
        drop(clients);
        execd.ping();
    }
    eventually("all descriptors are given back", || countable_fds(execd.pid()) == fds);
    eventually("no request of theirs waits", || {
        execd.result("server_info", json!({}))["pending_requests"] == 0
    });
    assert_eq!(execd.result("server_info", json!({}))["clients"]["connected"], 0);
    assert_eq!(execd.peek()["sessions"].as_array().map(Vec::len), Some(1));
}

/// rule: attach.md, Several clients: The number of clients is bounded; one more gets one line
#[test]
fn one_client_more_than_may_be_is_told_so_and_the_next_is_let_in_when_one_has_gone() {
    let mut execd = Execd::start();
    execd.ping();
    let path = execd.socket();
    let mut clients: Vec<UnixStream> = (0..CLIENTS).map(|_| connect(&path)).collect();
    eventually("all are connected", || {
        execd.result("server_info", json!({}))["clients"]["connected"] == CLIENTS
    });
    let lines = Wire::connect(&path).all_to_the_end();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["id"], Value::Null);
    assert_eq!(lines[0]["error"]["data"]["reason"], "too_many_clients");
    clients.pop();
    eventually("one has gone", || {
        execd.result("server_info", json!({}))["clients"]["connected"] == CLIENTS - 1
    });
    assert_eq!(Wire::connect(&path).result("ping", json!({})), json!({}));
}

/// rule: attach.md, Several clients: No descriptors left: execd goes on, and lets clients in when
///   there are some
#[test]
fn when_descriptors_run_out_execd_goes_on_and_lets_clients_in_when_there_are_some_again() {
    let script = "ulimit -n 60; exec \"$0\" --max-sessions 3";
    let mut execd = Setup::of(&["bash", "-c", script, crate::common::EXECD], &[]).start();
    execd.ping();
    let path = execd.socket();
    let clients: Vec<UnixStream> = (0..60).map(|_| connect(&path)).collect();
    eventually("no descriptor is left", || outside::fds(execd.pid()).len() >= 58);
    execd.ping();
    // The last one waits in the kernel's queue.
    let mut last = Wire::connect(&path);
    let ping = last.send("ping", json!({}));
    execd.ping();
    drop(clients);
    assert_eq!(last.reply(ping)["result"], json!({}));
    assert_eq!(output(&execd.run("echo served")), "served\n");
}

/// rule: attach.md, Several clients: Requests are taken up one of each client in turn
#[test]
fn requests_are_taken_up_one_of_each_client_in_turn() {
    const MANY: u64 = 3_000;
    let mut execd = Execd::start();
    execd.ping();
    let mut flood = Wire::connect(&execd.socket());
    flood.result("ping", json!({}));
    stop(execd.pid());
    // In one piece: many small ones take more of a socket's room.
    let line = |id: u64| format!("{{\"id\":{},\"method\":\"ping\"}}\n", id + 10);
    flood.raw((1..=MANY).map(line).collect::<String>().as_bytes());
    execd.send(5, "ping", json!({}));
    go_on(execd.pid());
    execd.reply(5);
    flood.reply(MANY + 10);
    let own = execd.arrival(|line| line["id"] == 5).expect("it has come");
    let last = flood.seen.iter().rev().find(|(_, line)| line["id"] == MANY + 10);
    assert!(own < last.expect("it has come").0, "stdin's ping is not behind all of the others");
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("we are root");
}

/// An execd of another user in this directory, with its binary and its socket. We are root.
pub fn of_another_user(dir: &Path, uid: u32) -> (Execd, PathBuf, PathBuf) {
    let (binary, home) = (dir.join("program"), dir.join("execd"));
    std::fs::copy(crate::common::EXECD, &binary).expect("a copy that all can reach");
    std::fs::create_dir(&home).expect("a directory");
    for (path, mode) in [(dir, 0o755), (&binary, 0o755), (&home, 0o700)] {
        set_mode(path, mode);
    }
    std::os::unix::fs::chown(&home, Some(uid), None).expect("we are root");
    let socket = home.join("77.sock");
    // Our own binary stands behind the wrapper: it is the script's name here.
    let start = format!("cd / && exec {} \"$@\"", binary.display());
    let owner = format!("--reuid={uid}");
    let wrapper = ["setpriv", &owner, "--clear-groups", "sh", "-c", &start];
    let flags = ["--socket", socket.to_str().expect("UTF-8"), "--no-log"];
    let execd = Setup::behind(&wrapper, &flags).unwatched().start();
    (execd, binary, socket)
}

/// Runs a command as a user.
fn as_user(uid: u32, words: &[&str]) -> Output {
    Command::new("setpriv")
        .args([&format!("--reuid={uid}"), "--clear-groups"])
        .args(words)
        .stdin(Stdio::null())
        .output()
        .expect("setpriv runs")
}

/// rule: attach.md, Where it is, who may use it: The peer's uid is checked: another one is refused,
///   root excepted
/// rule: attach.md, Several clients: `execd ls` finds execds whose runtime directory the caller
///   does not know, refuses directories open to others, checks who listens
#[test]
fn another_user_is_refused_by_the_file_and_by_execd_and_root_is_not() {
    const OWNER: u32 = 12_345;
    const OTHER: u32 = 12_346;
    if !is_root() || missing("setpriv") {
        return left_out("only root can be two other users");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let (mut execd, binary, socket) = of_another_user(dir.path(), OWNER);
    set_mode(socket.parent().expect("its directory"), 0o755);
    let socket_text = socket.to_string_lossy();
    execd.result("ping", json!({}));
    assert_eq!((mode(&socket), socket.metadata().expect("it is there").uid()), (0o600, OWNER));
    let binary = binary.to_string_lossy();
    let ls = |uid| as_user(uid, &[&binary, "ls", "--socket", &socket_text]);
    let mine = ls(OWNER);
    assert!(mine.status.success(), "{mine:?}");
    // The file's own permissions.
    let theirs = ls(OTHER);
    assert_eq!(theirs.status.code(), Some(1));
    let said = String::from_utf8_lossy(&theirs.stderr);
    assert!(said.contains("it is another user's"), "{said}");
    // Where somebody has opened the file, ls asks who listens, and execd who connected.
    set_mode(&socket, 0o666);
    let theirs = ls(OTHER);
    assert_eq!(theirs.status.code(), Some(1));
    let said = String::from_utf8_lossy(&theirs.stderr);
    assert!(said.contains("another user listens there: it is not asked"), "{said}");
    // One of the system: everybody can run it.
    let python = "/usr/bin/python3";
    if Path::new(python).exists() {
        let read = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); \
                    print(s.makefile().read())";
        let theirs = as_user(OTHER, &[python, "-c", read, &socket_text]);
        let said = String::from_utf8_lossy(&theirs.stdout);
        let reason = format!("this execd is uid {OWNER}'s: uid {OTHER} may not use it");
        assert!(said.contains(&reason) && said.trim().lines().count() == 1, "{theirs:?}");
    }
    assert_eq!(Wire::connect(&socket).result("ping", json!({})), json!({}), "we are root");
    execd.result("ping", json!({}));
}
