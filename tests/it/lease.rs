//! A client that is gone and does not say so: the lease (protocol.md, How execd ends), and the line
//! by which a client knows where execd's own output begins.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Execd, Host, Setup, eventually, send_signal};
use serde_json::json;

const LEASE: Duration = Duration::from_secs(1);
/// Requests whose answers, 4 KB each, are more than the 8 MiB that execd holds and a pipe, by less
/// than another pipe.
const PINGS: usize = 2_104;
/// More requests than the queue of `--jobs` has room for.
const IN_LINE: usize = 1_100;
/// How far apart a client that lives is heard from.
const BEAT: Duration = Duration::from_millis(50);
/// What a session's end says of why execd ended.
const SAID: &str = "execd: nothing came on stdin for 1000 ms (--lease)\n";

fn leased(lease: Duration) -> Setup {
    let mut setup = Setup::new(&["--lease", &lease.as_secs().to_string()]);
    setup.command().stderr(Stdio::piped());
    setup
}

/// Does something again and again for longer than the lease; says whether the machine let it do
/// so: one that stands still for as long as the lease shows nothing.
fn beat_beyond(lease: Duration, mut beat: impl FnMut()) -> bool {
    let start = Instant::now();
    let (mut last, mut in_time) = (start, true);
    while start.elapsed() < lease + LEASE {
        beat();
        std::thread::sleep(BEAT);
        in_time &= last.elapsed() < lease / 2;
        last = Instant::now();
    }
    in_time
}

/// rule: protocol.md, End of input, signals, a lost reader: `--lease` ends execd and all it runs
///   when no byte came on stdin for so long, also where stdin stays open, and says so
#[test]
fn a_client_that_is_silent_loses_its_execd_and_what_that_runs() {
    for (flags, variables) in [
        (&["--lease", "1s"][..], &[][..]),
        (&["--exit-after-silence", "1"], &[]),
        (&[], &[("EXECD_LEASE", "1000ms")]),
    ] {
        let mut execd = Execd::with(flags, variables);
        let session = execd.open_making("trap '' TERM; (sleep 300 & sleep 300); :", None);
        execd.send("p", "write_stdin", json!({"session_id": session, "yield_time_ms": 600_000}));
        assert_eq!(execd.next_reply()["result"]["wait_status"], "shutting_down");
        execd.rest();
        assert_eq!(execd.exit_code(), Some(0), "{flags:?}");
        execd.until_no_session_process();
        assert_eq!(execd.whole_stderr(), SAID, "{flags:?}");
    }
}

/// rule: protocol.md, End of input, signals, a lost reader: Any byte is heard for `--lease`, a
///   blank line too; a client that is stopped is not
#[test]
fn a_client_that_beats_is_there_until_it_is_stopped() {
    let mut client = Command::new("bash")
        .args(["-c", "while echo; do sleep 0.05; done"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("bash runs");
    let beats = client.stdout.take().expect("a pipe");
    // Long enough that bash gets its turn on a busy machine.
    let lease = 2 * LEASE;
    let mut execd = leased(lease).on(beats, Stdio::null());
    let in_time = beat_beyond(lease, || {});
    let lives = execd.try_exit().is_none();
    send_signal(i32::try_from(client.id()).expect("a pid"), libc::SIGSTOP);
    let stopped = Instant::now();
    let ended = execd.exit_code();
    let within = stopped.elapsed();
    client.kill().expect("it is our child");
    client.wait().expect("it is our child");
    assert!(lives || !in_time, "{}", execd.stderr());
    assert_eq!(ended, Some(0));
    assert_eq!(execd.whole_stderr(), SAID.replace("1000", "2000"));
    assert!(!lives || within >= lease / 2, "{within:?}");
}

/// An execd that has more to say than it holds, and so does not read what its client sends.
fn full(lease: Duration) -> Host {
    let mut execd = leased(lease).on(Stdio::piped(), Stdio::piped());
    let mut stdin = execd.child().stdin.take().expect("a pipe");
    for at in 0..PINGS {
        let request = json!({"id": format!("{at:0>4000}"), "method": "ping"});
        writeln!(stdin, "{request}").expect("execd reads, or its pipe has room");
    }
    execd.child().stdin = Some(stdin);
    execd
}

/// As long as execd did not read its stdin the lease went on, for ever with a client that was
/// stopped while much was on its way to it.
/// rule: protocol.md, End of input, signals, a lost reader: While stdin is not read because too
///   much is unsent, a client that takes none of that for the time of `--lease` is gone
#[test]
fn a_client_that_takes_no_answer_is_gone_also_while_it_is_not_read() {
    let mut execd = full(LEASE);
    assert_eq!(execd.exit_code(), Some(0));
    assert_eq!(execd.whole_stderr(), SAID);
}

/// Where nobody read, execd stood still for ever at the line that says why it ends.
/// rule: protocol.md, End of input, signals, a lost reader: A stderr without room keeps execd
///   from nothing
#[test]
fn a_stderr_that_takes_nothing_does_not_keep_execd() {
    let (reader, mut writer) = UnixStream::pair().expect("a pair of sockets");
    writer.set_nonblocking(true).expect("a socket");
    while writer.write(&[b'x'; 1024]).is_ok() {}
    writer.set_nonblocking(false).expect("a socket");
    let mut setup = leased(LEASE);
    setup.command().stderr(OwnedFd::from(writer));
    let mut execd = setup.on(Stdio::piped(), Stdio::null());
    assert_eq!(execd.exit_code(), Some(0));
    drop(reader);
}

/// Its blank lines lay in the pipe unread, and it was ended as silent.
/// rule: protocol.md, End of input, signals, a lost reader: While stdin is not read, what the
///   client sends is a sign of life where it lies
#[test]
fn a_client_that_beats_is_there_also_while_it_is_not_read() {
    let mut execd = full(LEASE);
    beats_and_falls_silent(&mut execd);
}

/// A client that had filled the queue of `--jobs` and vanished was there for ever.
/// rule: protocol.md, End of input, signals, a lost reader: While stdin is not read, what the
///   client sends is a sign of life where it lies
#[test]
fn a_client_whose_requests_stand_in_line_is_there_while_it_beats() {
    let mut setup = Setup::new(&["--lease", "1", "--jobs", "1"]);
    setup.command().stderr(Stdio::piped());
    let mut execd = setup.on(Stdio::piped(), Stdio::null());
    let stdin = execd.child().stdin.as_mut().expect("a pipe");
    for id in 0..IN_LINE {
        let params = json!({"cmd": "sleep 300", "yield_time_ms": 600_000});
        let request = json!({"id": id, "method": "exec_command", "params": params});
        writeln!(stdin, "{request}").expect("execd reads, or its pipe has room");
    }
    beats_and_falls_silent(&mut execd);
}

/// A client is there as long as it sends blank lines that execd does not read, and no longer.
fn beats_and_falls_silent(execd: &mut Host) {
    let mut stdin = execd.child().stdin.take().expect("a pipe");
    let in_time = beat_beyond(LEASE, || {
        // An execd that has ended reads nothing.
        let _ = writeln!(stdin);
    });
    let lives = execd.try_exit().is_none();
    assert!(lives || !in_time, "{}", execd.stderr());
    assert_eq!(execd.exit_code(), Some(0));
    assert_eq!(execd.whole_stderr(), SAID);
    drop(stdin);
}

/// An execd that had stood still for the time of the lease ended at once, although its client had
/// been heard from meanwhile.
/// rule: protocol.md, End of input, signals, a lost reader: An execd that stood still reads what
///   came meanwhile before it judges its `--lease`
#[test]
fn an_execd_that_stood_still_hears_what_came_meanwhile() {
    let mut execd = Execd::with(&["--lease", "3"], &[]);
    execd.ping();
    execd.signal(libc::SIGSTOP);
    eventually("execd is stopped", || crate::common::process_state(execd.pid()) == Some('T'));
    let stopped = Instant::now();
    eventually("the lease is over", || stopped.elapsed() > 3 * LEASE + LEASE / 5);
    execd.send_line("");
    execd.signal(libc::SIGCONT);
    execd.ping();
    execd.close_stdin();
    assert_eq!(execd.exit_code(), Some(0));
    assert_eq!(execd.whole_stderr(), "");
}

/// rule: protocol.md, The marker: `--marker WORD` writes `=== execd WORD ===` before all else, on
///   a line of its own whatever was printed before
#[test]
fn the_marker_is_a_line_of_its_own_before_all_else() {
    let words = ["bash", "-c", r#"printf 'Welcome! '; exec "$@""#, "bash"];
    let setup = Setup::behind(&words, &["--marker", "a-Z_9"]).envs(&[("EXECD_MARKER", "other")]);
    let mut execd = setup.on(Stdio::piped(), Stdio::piped());
    let mut lines = BufReader::new(execd.child().stdout.take().expect("a pipe")).lines();
    let mut line = || lines.next().expect("a line").expect("text");
    assert_eq!([line(), line()], ["Welcome! ", "=== execd a-Z_9 ==="]);
    let mut stdin = execd.child().stdin.take().expect("a pipe");
    writeln!(stdin, r#"{{"id":1,"method":"ping"}}"#).expect("execd reads");
    assert_eq!(line(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    drop(stdin);
    assert_eq!(execd.exit_code(), Some(0));
    assert!(lines.next().is_none());
}

/// rule: protocol.md, The marker: `--marker` alone is `--marker ready`
/// rule: protocol.md, The marker: Without `--marker` nothing is written before the first answer,
///   and no variable asks for it
#[test]
fn without_the_flag_there_is_no_marker() {
    let mut execd = Execd::with(&[], &[("EXECD_MARKER", "word")]);
    execd.close_stdin();
    assert_eq!(execd.rest(), Vec::<String>::new());
    assert_eq!(execd.exit_code(), Some(0));
    for words in [&["--marker"][..], &["--marker", "--no-socket"], &["--marker=ready"]] {
        let mut command = crate::common::execd_command();
        let said = command.args(words).stdin(Stdio::null()).output().expect("execd runs");
        assert_eq!(said.stdout, b"\n=== execd ready ===\n", "{words:?}");
    }
    let bad = crate::common::execd_command().args(["--marker", "a b"]).output();
    let bad = bad.expect("execd runs");
    assert_eq!((bad.status.code(), bad.stdout.len()), (Some(125), 0));
}
