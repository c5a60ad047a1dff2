//! stdin and stdout of every kind, a slow reader, and a reader that is gone (protocol.md, How execd
//! ends of input, signals, a lost reader).

use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::common::*;
use serde_json::{Value, json};

const PING: &str = r#"{"jsonrpc":"2.0","id":"ping","result":{}}"#;

fn pipe() -> (PipeReader, PipeWriter) {
    std::io::pipe().expect("a pipe")
}

fn sockets() -> (UnixStream, UnixStream) {
    UnixStream::pair().expect("a pair of sockets")
}

fn socket(stream: UnixStream) -> Stdio {
    OwnedFd::from(stream).into()
}

/// What is asked on every kind of stdin.
fn requests() -> String {
    let exec =
        json!({"id": "exec", "method": "exec_command", "params": {"cmd": "echo hi; touch ran"}});
    format!("{exec}\nno json\n{}\n", json!({"id": "ping", "method": "ping"}))
}

/// Checks the answers to [`requests`], in whatever order they came.
fn check_replies(lines: &[String]) {
    let mut replies: Vec<Value> =
        lines.iter().filter(|line| !is_notification(line)).map(|line| value(line)).collect();
    assert_eq!(replies.len(), 3, "{lines:?}");
    replies.sort_by_key(|reply| reply["id"].to_string());
    assert_eq!(replies[0]["id"], "exec");
    assert_eq!(replies[0]["result"]["output"], "hi\n", "{lines:?}");
    assert_eq!(replies[1], value(PING));
    assert_eq!((&replies[2]["id"], &replies[2]["error"]["code"]), (&Value::Null, &json!(-32700)));
}

/// Talks to execd until the three answers came.
fn talk(input: &mut impl Write, output: &mut Incoming) {
    input.write_all(requests().as_bytes()).expect("execd reads");
    let replies: Vec<String> = (0..3).map(|_| output.reply_line()).collect();
    check_replies(&replies);
}

/// A start that opens one session, and the file that shows that it runs.
fn open_session(input: &mut impl Write, host: &Host) {
    open_session_for(250, input, host);
}

/// The same with a call that waits so long.
fn open_session_for(yield_time_ms: u32, input: &mut impl Write, host: &Host) {
    let cmd = "touch running; exec sleep 300";
    let request =
        json!({"method": "exec_command", "params": {"cmd": cmd, "yield_time_ms": yield_time_ms}});
    input.write_all(format!("{request}\n").as_bytes()).expect("execd reads");
    eventually("the session runs", || host.file("running").exists());
}

/// rule: protocol.md, End of input, signals, a lost reader: The last line counts also without a
///   newline
/// rule: protocol.md, End of input, signals, a lost reader: stdin and stdout may be regular files
///   or /dev/null
#[test]
fn a_large_file_is_answered_to_its_last_line_which_needs_no_newline() {
    let setup = Setup::new(&[]);
    let (from, to) = (setup.workdir().join("requests"), setup.workdir().join("replies"));
    let pings = (0..50_000).map(|at| format!("{{\"id\":{at},\"method\":\"ping\"}}\n"));
    std::fs::write(&from, pings.collect::<String>() + requests().trim_end()).expect("a file");
    std::fs::write(&to, "kept\n").expect("a file");
    let output = File::options().append(true).open(&to).expect("the file");
    let mut host = setup.on(File::open(&from).expect("the file"), output);
    assert_eq!(host.exit_code(), Some(0));
    let text = std::fs::read_to_string(&to).expect("text");
    let lines = text.lines().filter(|line| !is_notification(line));
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    assert_eq!((lines.len(), lines[0].as_str()), (50_004, "kept"));
    for (at, line) in lines[1..=50_000].iter().enumerate() {
        assert_eq!(*line, format!(r#"{{"jsonrpc":"2.0","id":{at},"result":{{}}}}"#));
    }
    check_replies(&lines[50_001..]);
    assert!(host.file("ran").exists());
}

#[test]
fn dev_null_and_what_was_closed_are_an_end_of_input() {
    for closed in [false, true] {
        let (output, child_out) = pipe();
        let setup = Setup::new(&[]).prepared(move || {
            if closed {
                // SAFETY: close is async-signal-safe.
                unsafe { libc::close(0) };
            }
        });
        let mut host = setup.on(Stdio::null(), child_out);
        assert_eq!(host.exit_code(), Some(0), "{closed}");
        assert!(Incoming::from(output).rest().is_empty());
    }
    // As stdout it takes all; a full disk is a reader that is gone.
    for (path, code) in [("/dev/null", 0), ("/dev/full", 1)] {
        let (child_in, mut input) = pipe();
        let output = File::options().write(true).open(path).expect(path);
        let mut host = Setup::new(&[]).on(child_in, output);
        input.write_all(requests().as_bytes()).expect("execd reads");
        if code == 0 {
            eventually("the command ran", || host.file("ran").exists());
            drop(input);
        }
        assert_eq!(host.exit_code(), Some(code), "{path}");
        host.until_no_session_process();
    }
}

/// rule: protocol.md, End of input, signals, a lost reader: O_NONBLOCK does not leak into the
///   parent's terminal, pipes or sockets
/// rule: protocol.md, Framing: Requests come in on stdin, replies and notifications go out on
///   stdout, one JSON object a line
/// rule: protocol.md, End of input, signals, a lost reader: stdin and stdout may be pipes
#[test]
fn pipes_shared_with_others_never_become_non_blocking() {
    let ((child_in, mut input), (output, child_out)) = (pipe(), pipe());
    let shared_in = child_in.try_clone().expect("a copy");
    let shared_out = child_out.try_clone().expect("a copy");
    let check = || {
        assert!(!is_nonblocking(&shared_in), "stdin is non-blocking");
        assert!(!is_nonblocking(&shared_out), "stdout is non-blocking");
    };
    let mut host = Setup::new(&[]).on(child_in, child_out);
    let mut output = Incoming::from(output);
    talk(&mut input, &mut output);
    check();
    open_session(&mut input, &host);
    check();
    drop(input);
    assert_eq!(host.exit_code(), Some(0));
    check();
}

/// rule: protocol.md, End of input, signals, a lost reader: A lost reader ends the sessions at
///   once, without waiting for pending requests; exit code 1
#[test]
fn a_stdout_that_is_full_stays_blocking_for_others() {
    let ((child_in, mut input), (output, child_out)) = (pipe(), pipe());
    let shared = child_out.try_clone().expect("a copy");
    let mut host = Setup::new(&[]).on(child_in, child_out);
    open_session(&mut input, &host);
    for _ in 0..400 {
        input.write_all(&long_ping(0)).expect("execd reads");
    }
    host.until_idle(|| 0);
    assert!(!is_nonblocking(&shared));
    drop(output);
    // Our copy keeps the pipe from hanging up, not from being without a reader. stdin stays open:
    // its end alone would end execd with status 0.
    assert_eq!(host.exit_code(), Some(1));
    host.until_no_session_process();
    drop(input);
    assert!(!is_nonblocking(&shared));
}

/// rule: protocol.md, End of input, signals, a lost reader: A lost reader is noticed even while
///   nothing is written
#[test]
fn a_lost_reader_is_noticed_while_nothing_is_written() {
    for kind in ["a pipe", "a socket", "one socket for both"] {
        let ((child_in, input), (output, child_out)) = (pipe(), pipe());
        let (ours, theirs) = sockets();
        let setup = Setup::new(&[]);
        let mut host = match kind {
            "a pipe" => setup.on(child_in, child_out),
            "a socket" => setup.on(child_in, socket(theirs)),
            _ => setup.on(socket(theirs.try_clone().expect("a copy")), socket(theirs)),
        };
        if kind == "one socket for both" {
            open_session_for(30_000, &mut &ours, &host);
        } else {
            open_session_for(30_000, &mut &input, &host);
        }
        host.until_idle(|| 0);
        let before = std::time::Instant::now();
        drop((ours, output));
        assert_eq!(host.exit_code(), Some(1), "{kind}: stdin is still open");
        host.until_no_session_process();
        assert!(before.elapsed().as_secs() < 25, "the pending request was waited for");
    }
}

#[test]
fn a_terminal_shared_with_a_shell_keeps_its_flags_and_modes() {
    let (mut master, slave) = open_pty();
    make_raw(&slave);
    let shared = slave.try_clone().expect("a copy");
    let before = terminal_settings(&shared);
    let copy = slave.try_clone().expect("a copy");
    let mut host = Setup::new(&[]).on(copy, slave);
    let mut output = Incoming::from(master.try_clone().expect("a copy"));
    talk(&mut master, &mut output);
    assert!(!is_nonblocking(&shared), "the shell's description is not execd's own");
    master.write_all(b"{\"id\":1,\"method\":\"shutdown\"}\n").expect("typed");
    assert_eq!(host.exit_code(), Some(0));
    assert!(!is_nonblocking(&shared));
    assert_eq!(terminal_settings(&shared), before);
}

/// A ping whose reply is as long as an id may be.
fn long_ping(at: usize) -> Vec<u8> {
    let id = format!("{at:06} {}", "i".repeat(4_000));
    format!("{{\"id\":\"{id}\",\"method\":\"ping\"}}\n").into_bytes()
}

fn is_long_pong(line: &str, at: usize) -> bool {
    line.len() > 4_000
        && line.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":"{at:06} iii"#))
        && line.ends_with(r#"i","result":{}}"#)
}

/// rule: protocol.md, End of input, signals, a lost reader: Over 8 MiB of unsent output stdin is
///   not read until the queue drains
/// rule: protocol.md, End of input, signals, a lost reader: Sessions and their logs go on
///   undisturbed while the reader is slow
#[test]
fn over_8_mib_of_unsent_replies_stdin_is_not_read_and_no_reply_is_lost() {
    const PINGS: usize = 6_000;
    const MIB: usize = 1024 * 1024;
    let ((child_in, mut input), (output, child_out)) = (pipe(), pipe());
    let mut host = Setup::new(&[]).on(child_in, child_out);
    // A session that writes when it is told to, whatever stdout does.
    let cmd =
        format!("touch running; {}; seq 100000; touch written; exec sleep 300", until_file("go"));
    let params = json!({"cmd": cmd, "yield_time_ms": 250});
    let request = json!({"method": "exec_command", "params": params});
    input.write_all(format!("{request}\n").as_bytes()).expect("execd reads");
    eventually("the session runs", || host.file("running").exists());
    let before = host.peak_rss_kib();
    let written = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&written);
    let writer = thread::spawn(move || {
        for at in 0..PINGS {
            let line = long_ping(at);
            input.write_all(&line).expect("execd reads on in the end");
            counter.fetch_add(line.len(), Ordering::Relaxed);
        }
        input
    });
    eventually("8 MiB were read", || written.load(Ordering::Relaxed) > 8 * MIB);
    host.until_idle(|| written.load(Ordering::Relaxed) as u64);
    let taken = written.load(Ordering::Relaxed);
    assert!(taken < 10 * MIB, "{taken} bytes were read");
    assert!(!writer.is_finished());
    let grown = host.peak_rss_kib() - before;
    assert!(grown < 20 * 1024, "peak memory grew by {grown} KiB");
    // Sessions and logs go on undisturbed.
    std::fs::write(host.file("go"), "").expect("a file");
    eventually("the session went on", || host.file("written").exists());
    until_file_has(&host.log_files()[0], "\n100000\n");
    assert!(!writer.is_finished());
    // The reader wakes up: all replies are there, each once, in their order.
    let mut output = Incoming::from(output);
    for at in 0..PINGS {
        let line = output.reply_line();
        assert!(is_long_pong(&line, at), "reply {at}: {}", &line[..40]);
    }
    let mut input = writer.join().expect("all is written");
    talk(&mut input, &mut output);
    // What the queue took is given back.
    let left = host.rss_kib();
    assert!(left < before + 4 * 1024, "{left} KiB in use, {before} KiB before");
    drop(input);
    assert_eq!(host.exit_code(), Some(0));
}

/// rule: protocol.md, End of input, signals, a lost reader: Over 1 MiB of unsent output `progress`
///   is coalesced or dropped, never replies, never session_exited
/// rule: architecture.md, Bounds: Above 1 MiB of unsent output no further reply is built
#[test]
fn over_1_mib_of_unsent_replies_progress_is_dropped_and_all_else_comes() {
    let ((child_in, mut input), (output, child_out)) = (pipe(), pipe());
    let host = Setup::new(&[]).on(child_in, child_out);
    open_session(&mut input, &host);
    let exits = json!({"method": "exec_command", "params": {"cmd": until_file("go")}});
    input.write_all(format!("{exits}\n").as_bytes()).expect("execd reads");
    for at in 0..500 {
        input.write_all(&long_ping(at)).expect("execd reads");
    }
    let cmd = "for i in $(seq 40); do echo line $i; sleep 0.03; done; touch done";
    let exec = json!({"id": "s", "method": "exec_command",
                      "params": {"cmd": cmd, "stream": true, "yield_time_ms": 30_000}});
    input.write_all(format!("{exec}\n").as_bytes()).expect("execd reads");
    eventually("the command is done", || host.file("done").exists());
    std::fs::write(host.file("go"), "").expect("a file");
    host.until_idle(|| 0);
    let mut output = Incoming::from(output);
    for at in 0..500 {
        assert!(is_long_pong(&output.reply_line(), at), "reply {at}");
    }
    let result = output.reply();
    assert_eq!(result["id"], "s");
    let lines: Vec<String> = (1..=40).map(|at| format!("line {at}\n")).collect();
    assert_eq!(result["result"]["output"], lines.concat());
    input.write_all(b"{\"id\":\"ping\",\"method\":\"ping\"}\n").expect("execd reads");
    assert_eq!(output.reply_line(), PING);
    let count = |word: &str| {
        let is = |line: &&String| is_notification(line) && line.contains(word);
        output.seen.iter().filter(is).count()
    };
    // All 40 lines were printed while there was no room.
    assert!(count("\"progress\"") <= 1, "progress is dropped: {}", count("\"progress\""));
    // These are never dropped: three sessions started, two of them exited.
    assert_eq!((count("\"session_started\""), count("\"session_exited\"")), (3, 2));
}

/// An execd at the end of stdin with 200 long answers, of which its reader has taken one since
/// then, and then nothing for five seconds: what it says after that, and its end.
fn after_a_rest(flags: &[&str]) -> (Host, Vec<String>) {
    let ((child_in, mut input), (output, child_out)) = (pipe(), pipe());
    let mut host = Setup::new(flags).with_stderr().on(child_in, child_out);
    // They are less than what holds back the answers of waits. Until the test lets it go on, such
    // a wait keeps the end from coming: the first answer is taken after the end of stdin and
    // before the last flush, however slow the machine is.
    let cmd = format!("touch runs; {}", until_file("go"));
    let params = json!({"cmd": cmd, "yield_time_ms": 50_000});
    let request = json!({"id": 1, "method": "exec_command", "params": params});
    input.write_all(format!("{request}\n").as_bytes()).expect("execd reads");
    for at in 0..200 {
        input.write_all(&long_ping(at)).expect("execd reads");
    }
    drop(input);
    eventually("it runs", || host.file("runs").exists());
    host.until_idle(|| 0);
    let mut output = BufReader::with_capacity(1, output);
    let mut line = String::new();
    while !is_long_pong(line.trim_end(), 0) {
        line.clear();
        output.read_line(&mut line).expect("a line");
    }
    crate::common::go(&host, "go");
    // This pause is the slowness that is tested, no synchronisation.
    thread::sleep(std::time::Duration::from_secs(5));
    let lines = output.lines().map(|line| line.expect("UTF-8")).collect();
    assert_eq!(host.exit_code(), Some(0));
    (host, lines)
}

/// What stderr says was lost, in bytes.
fn told_as_lost(said: &str) -> Option<usize> {
    let said = said.strip_prefix("execd: ")?;
    let end = " bytes of answers are lost: nobody has read them in time\n";
    said.strip_suffix(end)?.parse().ok()
}

/// A shell's loop that works on a line for longer than the last flush may last lost all that was
/// not in the pipe.
/// rule: protocol.md, End of input, signals, a lost reader: A reader that is slow but reads gets
///   everything
/// rule: protocol.md, Framing: stderr is for people: log lines only, never protocol
#[test]
fn a_reader_that_rests_after_a_line_gets_everything_at_the_end() {
    let (mut host, lines) = after_a_rest(&[]);
    let pongs: Vec<&String> = lines.iter().filter(|line| line.len() > 4_000).collect();
    assert_eq!(pongs.len(), 199);
    assert!(pongs.iter().zip(1..).all(|(line, at)| is_long_pong(line, at)));
    assert!(lines.iter().any(|line| line.contains(r#""exit_code":0"#)));
    assert_eq!(host.whole_stderr(), "");
}

/// Nothing ended the rest of a reader before its time.
#[test]
fn a_lease_ends_the_rest_of_a_reader_at_the_end() {
    let (mut host, lines) = after_a_rest(&["--lease", "2s"]);
    assert!(lines.len() < 199, "the pipe has no room for all");
    let said = host.whole_stderr();
    assert!(told_as_lost(&said).is_some_and(|lost| lost > 500_000), "{said:?}");
}

/// One that had read before the end of stdin, and then nothing more, was waited for a minute.
/// What was given up was not told.
/// rule: protocol.md, End of input, signals, a lost reader: At the end of stdin execd exits 0
#[test]
fn answers_that_nobody_takes_at_the_end_are_given_up_and_told() {
    let ((child_in, mut input), (output, child_out)) = (pipe(), pipe());
    let mut host = Setup::new(&[]).with_stderr().on(child_in, child_out);
    input.write_all(&long_ping(0)).expect("execd reads");
    let mut output = BufReader::with_capacity(1, output);
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    for at in 1..100 {
        input.write_all(&long_ping(at)).expect("execd reads");
    }
    drop(input);
    assert_eq!(host.exit_code(), Some(0));
    drop(output);
    let said = host.whole_stderr();
    assert!(told_as_lost(&said).is_some_and(|lost| lost > 100_000), "{said:?}");
}

/// rule: protocol.md, End of input, signals, a lost reader: Only HUP or ERR mean a lost reader: a
///   peer that shut down its writing side still reads
/// rule: protocol.md, End of input, signals, a lost reader: stdin and stdout may be sockets, also
///   one for both
#[test]
fn a_peer_that_shut_down_its_writing_side_still_gets_its_replies() {
    let (mut ours, theirs) = sockets();
    let (copy, shared) = (theirs.try_clone().expect("a copy"), theirs.try_clone().expect("a copy"));
    let mut host = Setup::new(&[]).on(socket(copy), socket(theirs));
    let cmd = format!("{}; echo late", until_file("go"));
    let exec = json!({"id": "e", "method": "exec_command", "params":
        {"cmd": cmd, "yield_time_ms": 30_000}});
    ours.write_all(format!("{exec}\n{{\"id\":\"ping\",\"method\":\"ping\"}}").as_bytes())
        .expect("read");
    ours.shutdown(Shutdown::Write).expect("half closed");
    let mut output = Incoming::from(ours);
    assert_eq!(output.reply_line(), PING, "the last line needs no newline");
    host.until_idle(|| 0);
    assert!(!is_nonblocking(&shared));
    assert_eq!(host.try_exit(), None, "the pending request runs to its end");
    std::fs::write(host.file("go"), "").expect("a file");
    assert_eq!(output.reply()["result"]["output"], "late\n");
    assert_eq!(host.exit_code(), Some(0));
    assert!(!is_nonblocking(&shared));
    drop(shared);
    assert!(output.rest().iter().all(|line| is_notification(line)));
}

/// rule: protocol.md, End of input, signals, a lost reader: stdin and stdout may be a terminal
#[test]
fn a_terminal_that_hangs_up_ends_execd_and_its_sessions() {
    for controlling in [false, true] {
        let (mut master, slave) = open_pty();
        make_raw(&slave);
        let copy = slave.try_clone().expect("a copy");
        let setup = Setup::new(&[]).prepared(move || {
            if controlling {
                // SAFETY: setsid and ioctl are async-signal-safe.
                unsafe {
                    libc::setsid();
                    libc::ioctl(0, libc::TIOCSCTTY, 0);
                }
            }
        });
        let mut host = setup.on(copy, slave);
        open_session(&mut master, &host);
        host.until_idle(|| 0);
        drop(master);
        // Whose terminal it is gets SIGHUP as well, before or after it sees the hang-up.
        let code = host.exit_code();
        let hung_up = [Some(1), Some(128 + libc::SIGHUP)];
        assert!(if controlling { hung_up.contains(&code) } else { code == Some(1) }, "{code:?}");
        host.until_no_session_process();
    }
}

/// rule: protocol.md, End of input, signals, a lost reader: A client killed by SIGKILL takes execd
///   and its sessions along
#[test]
fn a_client_that_is_killed_takes_its_execd_and_the_sessions_along() {
    // The client is a process of its own that has both pipes; its death closes them at once.
    let ((child_in, input), (output, child_out)) = (pipe(), pipe());
    let mut host = Setup::new(&[]).on(child_in, child_out);
    let cmd = "touch running; exec sleep 300";
    let mut client = std::process::Command::new("sh")
        .args(["-c", r#"echo "$1"; exec sleep 300"#, "client"])
        .arg(json!({"id": 1, "method": "exec_command", "params": {"cmd": cmd}}).to_string())
        .stdin(output)
        .stdout(input)
        .spawn()
        .expect("a client");
    eventually("the session runs", || host.file("running").exists());
    client.kill().expect("alive");
    client.wait().expect("our child");
    // Which of its two pipes is seen closed first decides between the two.
    assert!([Some(0), Some(1)].contains(&host.exit_code()));
    host.until_no_session_process();
}
