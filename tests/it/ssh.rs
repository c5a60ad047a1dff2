//! execd on another machine (docs/machines.md): through a real sshd on the loopback interface, with
//! keys and a configuration of its own, that each test starts. What execd runs there is told by a
//! mark in the environment that only that sshd gives.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::agent_help::place::Place;
use crate::agent_help::*;
use crate::common::outside::{comm, end_of, left_out, marked, output_at_end, output_of, status_of};
use crate::common::{
    AT_ONCE, Execd, Incoming, Setup, eventually, is_alive, missing, output, send_signal,
};
use crate::scale_help::Batch;
use serde_json::json;
use tempfile::TempDir;

const SSHD: &str = "/usr/sbin/sshd";
use crate::common::EXECD;
/// What everything has in its environment that the sshd of a test has started; helpers of execd get
/// no EXECD_*.
const MARK: &str = "FAR_OF_A_TEST";
/// How often another port is tried: between the choice and sshd's start somebody may take it.
const PORTS_TRIED: usize = 5;

struct Far {
    dir: TempDir,
    sshd: Child,
}

fn own_word(dir: &Path) -> String {
    dir.file_name().expect("a name").to_string_lossy().into_owned()
}

fn done(command: &mut Command) {
    let output = output_of(command);
    assert!(output.status.success(), "{command:?}: {output:?}");
}

fn make_key(path: &Path) -> String {
    done(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path));
    std::fs::read_to_string(path.with_extension("pub")).expect("its public half")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

impl Far {
    fn start() -> Option<Self> {
        if missing(SSHD) || missing("ssh") || missing("ssh-keygen") {
            return None;
        }
        if crate::common::outside::is_root() {
            // sshd of root wants it; a machine where sshd runs has it.
            std::fs::create_dir_all("/run/sshd").expect("a directory for sshd");
        }
        let dir = tempfile::Builder::new().prefix("execd-far-").tempdir().expect("a directory");
        for name in ["home", "tmp", "run"] {
            std::fs::create_dir(dir.path().join(name)).expect("a directory");
        }
        let public = make_key(&dir.path().join("key"));
        std::fs::write(dir.path().join("authorized_keys"), public).expect("a file");
        let host = make_key(&dir.path().join("host_key"));
        for _ in 0..PORTS_TRIED {
            let port = free_port();
            let known = format!("[127.0.0.1]:{port} {host}");
            std::fs::write(dir.path().join("known_hosts"), known).expect("a file");
            if let Some(sshd) = start_sshd(dir.path(), port) {
                return Self { dir, sshd }.if_it_lets_us_in();
            }
        }
        panic!("sshd does not start: {}", sshd_log(dir.path()));
    }

    /// sshd refuses every login of an account that is locked, say, with a key too.
    fn if_it_lets_us_in(self) -> Option<Self> {
        if self.run("true").status.success() {
            return Some(self);
        }
        left_out(&format!("sshd lets nobody in: {}", sshd_log(self.dir.path())));
        None
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn say_at_login(&self, script: &str) {
        std::fs::write(self.path("home/.bashrc"), script).expect("a file");
    }

    fn ssh(&self) -> [String; 4] {
        let config = self.path("ssh_config").to_string_lossy().into_owned();
        ["ssh".to_owned(), "-F".to_owned(), config, "far".to_owned()]
    }

    fn command(&self, flags: &[&str], line: &str) -> Command {
        let [ssh, config @ .., host] = self.ssh();
        let mut command = Command::new(ssh);
        command.args(config).args(flags).arg(host).arg(line);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, line: &str) -> Output {
        output_of(&mut self.command(&[], line))
    }

    fn execd(&self, flags: &[&str]) -> Execd {
        let words = self.ssh();
        let words: Vec<&str> = words.iter().map(String::as_str).chain([EXECD]).collect();
        Setup::of(&words, flags).start()
    }

    fn running(&self) -> Vec<(i32, String)> {
        let all = marked(MARK, &own_word(self.dir.path()));
        all.into_iter().map(|pid| (pid, comm(pid))).collect()
    }

    fn until_runs(&self, name: &str) {
        eventually(&format!("{name} runs there"), || {
            self.running().iter().any(|(_, running)| running == name)
        });
    }

    fn until_nothing_runs(&self) -> Duration {
        let since = Instant::now();
        eventually("nothing runs there any more", || self.running().is_empty());
        since.elapsed()
    }
}

impl Drop for Far {
    /// Nothing that was started there outlives the test, and that is looked at where it passed.
    fn drop(&mut self) {
        let until = Instant::now() + AT_ONCE;
        while !self.running().is_empty() && Instant::now() < until && !thread::panicking() {
            thread::sleep(crate::common::PAUSE);
        }
        let left = self.running();
        for (pid, _) in &left {
            send_signal(*pid, libc::SIGKILL);
        }
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
        assert!(left.is_empty() || thread::panicking(), "left behind there: {left:?}");
    }
}

fn sshd_log(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("sshd.log")).unwrap_or_default()
}

/// The name of whoever runs the test, and the shell that sshd starts for them.
fn account() -> (String, String) {
    let ask = |command: &mut Command| {
        let said = output_of(command).stdout;
        String::from_utf8_lossy(&said).trim().to_owned()
    };
    let name = ask(Command::new("id").arg("-un"));
    let row = ask(Command::new("getent").args(["passwd", &name]));
    (name, row.rsplit(':').next().unwrap_or_default().to_owned())
}

/// sshd on this port, once it listens; `None` where it ends instead.
fn start_sshd(dir: &Path, port: u16) -> Option<Child> {
    let path = |name: &str| dir.join(name).to_string_lossy().into_owned();
    let mut set = format!("{MARK}={}", own_word(dir));
    for (name, value) in [("HOME", "home"), ("TMPDIR", "tmp"), ("XDG_RUNTIME_DIR", "run")] {
        let _ = write!(set, " {name}={}", path(value));
    }
    let (user, login) = account();
    // The tests are about what bash reads before it runs what ssh asks for.
    let bash = match login.ends_with("/bash") {
        true => "",
        false => "ForceCommand exec env -u SHLVL bash -c \"$SSH_ORIGINAL_COMMAND\"\n",
    };
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
         StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
         PermitRootLogin prohibit-password\nSetEnv {set} LC_ALL=C.UTF-8 EXECD_LENIENT=1\n{bash}",
        path("host_key"),
        path("authorized_keys"),
    );
    std::fs::write(dir.join("sshd_config"), config).expect("a file");
    let config = format!(
        "Host far\nHostName 127.0.0.1\nPort {port}\nUser {}\nIdentityFile {}\nIdentitiesOnly yes\n\
         UserKnownHostsFile {}\nStrictHostKeyChecking yes\nBatchMode yes\nLogLevel ERROR\n",
        user,
        path("key"),
        path("known_hosts"),
    );
    std::fs::write(dir.join("ssh_config"), config).expect("a file");
    let log = File::create(dir.join("sshd.log")).expect("a file");
    let mut sshd = Command::new(SSHD)
        .args(["-D", "-e", "-f", &path("sshd_config")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("sshd starts");
    let mut ended = false;
    eventually("sshd listens", || {
        ended = sshd.try_wait().expect("it is our child").is_some();
        ended || sshd_log(dir).contains("Server listening on 127.0.0.1")
    });
    (!ended && TcpStream::connect(("127.0.0.1", port)).is_ok()).then_some(sshd)
}

/// rule: machines.md, ssh: `execd run` there: output, streams and status are those of the command
/// rule: machines.md, ssh: A client that knows nothing of ssh: commands, their logs, keys and
///   Ctrl-C are those of the other machine; at the end of stdin all of it ends
#[test]
fn a_client_on_the_pipes_of_ssh() {
    let Some(far) = Far::start() else { return };
    let mut execd = far.execd(&[]);
    let result = execd.run("echo ${SSH_CONNECTION%% *}; echo there > ~/made");
    assert_eq!(output(&result), "127.0.0.1\n");
    assert!(far.path("home/made").exists());
    // `execd run` is the command: its streams, its status.
    let said = far.run(&format!("'{EXECD}' run -q -c 'echo out; echo err >&2; exit 3'"));
    assert_eq!(said.status.code(), Some(3));
    assert_eq!((&said.stdout[..], &said.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
    let log = result["log_path"].as_str().expect("a log");
    assert!(log.starts_with(far.path("tmp").to_str().expect("UTF-8")), "{log}");
    let read = execd.result("read_output", json!({"session_id": 1}));
    assert!(read.to_string().contains("127.0.0.1"), "{read}");

    // Ctrl-C in the terminal of a session there.
    let cmd = "trap 'echo caught; exit 7' INT; echo up; while :; do sleep 0.05; done";
    let session = execd.open_until_with(cmd, "up", json!({"tty": true}));
    let ended =
        execd.write(json!({"session_id": session, "chars": "\u{3}", "yield_time_ms": 30_000}));
    assert!(output(&ended).contains("caught"), "{ended}");
    assert_eq!(ended["exit_code"], 7, "{ended}");

    execd.open_now(&json!({"cmd": "trap '' HUP TERM; sleep 300 & sleep 300"}));
    far.until_runs("sleep");
    // The guard and the writer of logs are of those that must be gone.
    let running = far.running();
    for helper in ["execd", "sessions-log", "sessions-guard"] {
        assert!(running.iter().any(|(_, name)| name == helper), "{running:?}");
    }
    execd.close_stdin();
    assert_eq!(execd.exit_code(), Some(0));
    far.until_nothing_runs();
}

/// rule: machines.md, ssh: Ctrl-C at a terminal of ssh reaches the command of `execd run` there
#[test]
fn ctrl_c_at_a_terminal_of_ssh() {
    let Some(far) = Far::start() else { return };
    let code = r#"trap "echo caught; exit 7" INT; echo up; while :; do sleep 0.05; done"#;
    let line = format!("'{EXECD}' run -c '{code}'");
    let mut ssh = far.command(&["-tt"], &line).stdin(Stdio::piped()).spawn().expect("ssh runs");
    let mut lines = Incoming::from(ssh.stdout.take().expect("a pipe"));
    let mut until = |text: &str| while !lines.line().contains(text) {};
    until("up");
    let mut keys = ssh.stdin.take().expect("a pipe");
    keys.write_all(b"\x03").expect("ssh reads");
    until("caught");
    assert_eq!(end_of(&mut ssh).code(), Some(7));
    far.until_nothing_runs();
}

/// A shell that prints before it runs execd: half a line, an answer, a newline that never comes.
/// rule: machines.md, ssh: What a .bashrc prints before execd is told from the protocol by the
///   marker
#[test]
fn what_a_bashrc_prints_is_told_from_the_protocol() {
    let Some(far) = Far::start() else { return };
    far.say_at_login("echo Welcome\nprintf '{\"id\":1,\"result\":{}}\\nstill talking'\n");
    let line = format!("'{EXECD}' --marker 6f1e");
    let mut ssh = far.command(&[], &line).stdin(Stdio::piped()).spawn().expect("ssh runs");
    let mut stdin = ssh.stdin.take().expect("a pipe");
    writeln!(stdin, r#"{{"id":1,"method":"ping"}}"#).expect("ssh reads");
    drop(stdin);
    let said = output_at_end(ssh);
    let said = String::from_utf8(said.stdout).expect("UTF-8");
    let (noise, protocol) = said.split_once("\n=== execd 6f1e ===\n").expect("the marker");
    assert_eq!(noise, "Welcome\n{\"id\":1,\"result\":{}}\nstill talking");
    assert_eq!(protocol, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
}

/// Each command there printed what the .bashrc prints: behind ssh a bash that finds no shell above
/// itself reads it also for a command.
/// rule: machines.md, ssh: The commands of execd there read no .bashrc, as they read none here
#[test]
fn commands_there_read_no_bashrc() {
    let Some(far) = Far::start() else { return };
    let mut execd = far.execd(&[]);
    // The login is over.
    execd.ping();
    far.say_at_login("echo Welcome\n");
    assert_eq!(output(&execd.run("echo hi")), "hi\n");
    let tty = execd.run_with("echo hi", json!({"tty": true}));
    assert!(!output(&tty).contains("Welcome"), "{tty}");
    execd.close_stdin();
    assert_eq!(execd.exit_code(), Some(0));
    let said = far.run(&format!("'{EXECD}' run -q -c 'echo hi'"));
    assert_eq!(said.stdout, b"Welcome\nhi\n", "once, by the shell of the login");
}

/// The page said that a killed ssh ends everything there. It does not end a command of `execd run`
/// that writes nothing: nobody tells it, as nobody tells `ssh far sleep`.
/// rule: machines.md, ssh: A connection that is cut ends execd there and all that it runs, at once
#[test]
fn a_cut_connection_ends_everything_there_but_a_run_that_writes_nothing() {
    let Some(far) = Far::start() else { return };
    // `ssh box execd`.
    let mut execd = far.execd(&[]);
    execd.open_now(&json!({"cmd": "trap '' HUP TERM; sleep 300 & sleep 300"}));
    let waits = json!({"cmd": "sleep 300", "tty": true, "yield_time_ms": 600_000});
    execd.start_request("exec_command", waits);
    eventually("all of it runs", || {
        far.running().iter().filter(|(_, name)| name == "sleep").count() == 3
    });
    execd.signal(libc::SIGKILL);
    let took = far.until_nothing_runs();
    assert!(took < AT_ONCE, "{took:?}");

    // `ssh box execd mcp`, the tools of an agent.
    let start = |flags: &[&str], line: &str| {
        far.command(flags, line).stdin(Stdio::piped()).spawn().expect("ssh runs")
    };
    let cut = |ssh: &mut Child| {
        ssh.kill().expect("it is our child");
        end_of(ssh);
    };
    let mut ssh = start(&[], &format!("'{EXECD}' mcp"));
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    let call = json!({"name": "exec_command", "arguments": {"cmd": "trap '' HUP TERM; sleep 300"}});
    let mut stdin = ssh.stdin.take().expect("a pipe");
    for request in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}),
    ] {
        writeln!(stdin, "{request}").expect("ssh reads");
    }
    far.until_runs("sleep");
    cut(&mut ssh);
    let took = far.until_nothing_runs();
    assert!(took < AT_ONCE, "{took:?}");

    // `ssh -tt box execd run`.
    let mut ssh = start(&["-tt"], &format!("'{EXECD}' run -q -- sleep 300"));
    far.until_runs("sleep");
    cut(&mut ssh);
    far.until_nothing_runs();

    // `ssh box execd run`: its stdin has ended, so sshd has closed the pipes; it runs all the same.
    let (told, go) = (far.path("told"), far.path("go"));
    let script = format!(
        "cat; : > {}; until [ -e {} ]; do sleep 0.1; done; while echo x; do sleep 0.1; done",
        told.display(),
        go.display()
    );
    let mut ssh = start(&[], &format!("'{EXECD}' run -q -c '{script}'"));
    far.until_runs("cat");
    cut(&mut ssh);
    eventually("the cut has come there", || told.exists());
    far.until_runs("sleep");
    std::fs::write(go, "").expect("a file");
    far.until_nothing_runs();
}

/// rule: machines.md, ssh: A connection of which nobody tells that it is dead: execd there ends
///   within its lease
#[test]
#[ignore = "cuts connections of a real sshd; make test-large"]
fn a_connection_that_stands_still_costs_the_lease() {
    let Some(far) = Far::start() else { return };
    let mut execd = far.execd(&["--lease", "3s"]);
    execd.open_now(&json!({"cmd": "trap '' HUP TERM; sleep 300 & sleep 300"}));
    far.until_runs("sleep");
    // Nothing goes through any more, and neither end is told: what a network does that is gone.
    execd.signal(libc::SIGSTOP);
    let took = far.until_nothing_runs();
    execd.signal(libc::SIGKILL);
    assert!(took < AT_ONCE, "{took:?}");
}

fn agent(far: &Far, place: &Place, flags: &[&str]) -> (Child, ChildStdin) {
    let dir = place.path().display();
    let words = "--model fake/scripted --tools bash,read 'Say it'";
    let line = format!("EXECD_PI='{dir}/pi' '{EXECD}' agent --workspace '{dir}' {words}");
    let mut ssh = far.command(flags, &line).stdin(Stdio::piped()).spawn().expect("ssh runs");
    let stdin = ssh.stdin.take().expect("a pipe");
    (ssh, stdin)
}

/// rule: machines.md, ssh: `execd agent` there: its text and its status come through ssh; a cut
///   connection ends the run
#[test]
fn a_run_of_pi_through_ssh() {
    let Some(far) = Far::start() else { return };
    let place = Place::new(&answer("Done."), "");
    let (ssh, stdin) = agent(&far, &place, &[]);
    drop(stdin);
    let said = output_at_end(ssh);
    let err = String::from_utf8_lossy(&said.stderr);
    assert_eq!((said.status.code(), &said.stdout[..]), (Some(0), &b"Done.\n"[..]), "{err}");
    assert!(err.contains("execd: stop: 1 turn"), "{err}");

    let place = Place::new(&answer("Done.")[..2], "exec sleep 300");
    let (mut ssh, _stdin) = agent(&far, &place, &[]);
    let pi = place.pi();
    assert!(is_alive(pi));
    ssh.kill().expect("it is our child");
    end_of(&mut ssh);
    far.until_nothing_runs();
}

/// rule: machines.md, ssh: Ctrl-C at a terminal of ssh ends `execd agent` there, and pi with it
#[test]
#[ignore = "cuts connections of a real sshd; make test-large"]
fn ctrl_c_ends_a_run_of_pi() {
    let Some(far) = Far::start() else { return };
    let place = Place::new(&answer("Done.")[..2], "exec sleep 300");
    let (ssh, mut keys) = agent(&far, &place, &["-tt"]);
    let pi = place.pi();
    keys.write_all(b"\x03").expect("ssh reads");
    let said = output_at_end(ssh);
    assert_eq!(said.status.code(), Some(130), "{said:?}");
    assert!(!is_alive(pi));
    far.until_nothing_runs();
}

fn parallel_through(far: &Far, batch: &Batch) -> Command {
    let here = batch.at("").to_string_lossy().into_owned();
    let words = ["bash", "here.sh", "--sshlogin", &far.ssh().join(" "), "--workdir", &here];
    let mut command = batch.command(&words);
    command.env("PAUSE", "0.1").args(["--env", "PATH"]);
    command
}

/// rule: scale.md, GNU parallel: Over ssh the same: each result exactly once, retries by error_kind
#[test]
#[ignore = "cuts connections of a real sshd; make test-large"]
fn parallel_runs_tasks_over_ssh() {
    if missing("parallel") || missing("jq") {
        return;
    }
    let Some(far) = Far::start() else { return };
    let batch = Batch::new(vec!["plain", "once", "crash", "plain", "refused", "plain", "killed"]);
    let status = status_of(&mut parallel_through(&far, &batch));
    assert!(status.success(), "{status}: {}", sshd_log(far.dir.path()));
    batch.assert_done();
    // Their logs are where they ran.
    let logs = std::fs::read_dir(far.path("tmp")).expect("a directory").flatten();
    assert!(logs.count() > 0, "no log is there");
    far.until_nothing_runs();
}
