//! `execd run` on a terminal, and on one of the command's own (`-t`): beside env(1) there, under a
//! shell that has jobs, and what becomes of the terminal (protocol.md, From a shell).

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::common::outside::children;
use crate::common::{eventually, is_readable, open_pty, send_signal};
use tempfile::TempDir;

const AT_ONCE: usize = 4;
const SIZE: (u16, u16) = (97, 31);

/// A program at a terminal, which is its controlling one.
struct Terminal {
    master: File,
    child: Child,
    seen: Vec<u8>,
    dir: TempDir,
}

impl Terminal {
    fn start(program: &str, words: &[&str]) -> Self {
        let (master, slave) = open_pty();
        set_size(&master, SIZE);
        let dir = TempDir::new().expect("a directory");
        let mut command = Command::new(program);
        command.args(words).env("TMPDIR", dir.path()).env("XDG_RUNTIME_DIR", dir.path());
        command.env("EXECD", crate::common::EXECD).env("TERM", "vt220");
        command.env("PS1", "ready> ").env("HISTFILE", "/dev/null").current_dir(dir.path());
        let copy = || slave.try_clone().expect("a descriptor");
        command.stdin(copy()).stdout(copy()).stderr(copy());
        // SAFETY: both calls are async-signal-safe.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                libc::ioctl(0, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        let child = command.spawn().expect("it starts");
        Self { master, child, seen: vec![], dir }
    }

    fn run(words: &[&str]) -> Self {
        Self::start(crate::common::EXECD, &[&["run", "-q"], words].concat())
    }

    fn shell() -> Self {
        let mut shell = Self::start("bash", &["--norc", "--noprofile", "--noediting", "-i"]);
        shell.until("ready> ");
        shell
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid")
    }

    /// Reads on; false at the end.
    fn read(&mut self) -> bool {
        if !is_readable(&self.master) {
            panic!("nothing came behind {:?}", String::from_utf8_lossy(&self.seen));
        }
        let mut buffer = [0; 4096];
        let bytes = self.master.read(&mut buffer).unwrap_or(0);
        self.seen.extend_from_slice(&buffer[..bytes]);
        bytes > 0
    }

    /// Reads until this was written behind what was read for before.
    fn until(&mut self, text: &str) {
        loop {
            if let Some(at) = self.seen.windows(text.len()).position(|one| one == text.as_bytes()) {
                self.seen.drain(..at + text.len());
                return;
            }
            assert!(self.read(), "no {text:?} in {:?}", String::from_utf8_lossy(&self.seen));
        }
    }

    fn types(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).expect("typed");
    }

    fn line(&mut self, text: &str) {
        self.types(&format!("{text}\n"));
    }

    fn status(&mut self) -> i32 {
        while self.read() {}
        let status = self.child.wait().expect("a child of ours");
        status.code().or_else(|| status.signal().map(|signal| 128 + signal)).expect("an end")
    }

    /// Whether the terminal takes lines, and echoes them.
    fn takes_lines(&self) -> bool {
        // SAFETY: a termios of our own is filled.
        let modes = unsafe {
            let mut modes: libc::termios = std::mem::zeroed();
            assert_eq!(libc::tcgetattr(self.master.as_raw_fd(), &raw mut modes), 0);
            modes
        };
        let all = libc::ICANON | libc::ECHO | libc::ISIG;
        modes.c_lflag & all == all
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            // SAFETY: signals the group that a child of ours leads, which was not reaped.
            unsafe { libc::kill(-self.pid(), libc::SIGKILL) };
            let _ = self.child.wait();
        }
    }
}

fn set_size(terminal: &File, (cols, rows): (u16, u16)) {
    let size = libc::winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCSWINSZ reads one winsize.
    assert_eq!(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) }, 0);
}

// ---- Beside env(1) ----------------------------------------------------------------------

/// Code of sh, and what is typed once which text was written.
type Case = (&'static str, &'static [(&'static str, &'static str)]);

const CASES: &[Case] = &[
    ("echo out; echo err >&2; exit 3", &[]),
    ("test -t 0 && echo a terminal; stty size; echo $TERM", &[]),
    ("stty -a | tr ';' '\\n' | grep -v 'speed\\|line'", &[]),
    ("printf 'no end'; exit 9", &[]),
    ("printf '\\033[31mred\\033[m\\033[?1049h\\033[2J\\000\\377'", &[]),
    ("seq 3000", &[]),
    ("head -c 300000 /dev/zero | tr '\\0' x", &[]),
    ("stty raw; printf 'a\\nb\\r\\n'; exit 4", &[]),
    ("read -p 'name: ' name; echo \"<$name>\"", &[("name: ", "you\n")]),
    ("stty -echo; echo go; read a; stty echo; echo \"<$a>\"", &[("go", "hidden\n")]),
    ("printf 'pw: ' >/dev/tty; read a </dev/tty; echo \"<$a>\"", &[("pw: ", "secret\n")]),
    ("printf 'pw: ' >/dev/tty; read a </dev/tty; echo \"<$a>\"", &[("pw: ", "sx\x7fecret\n")]),
    ("echo go; cat", &[("go", "one\n"), ("one\r\none", "two\n"), ("two\r\ntwo", "\x04")]),
    ("echo go; cat; echo more; cat", &[("go", "\x04"), ("more", "\x04")]),
    ("ulimit -c 0; echo go; exec sleep 4740", &[("go", "\x03")]),
    ("ulimit -c 0; echo go; exec sleep 4740", &[("go", "\x1c")]),
    ("trap 'echo caught; exit 5' INT; echo go; while :; do sleep 0.01; done", &[("go", "\x03")]),
    ("trap '' INT; echo go; read a; echo \"<$a>\"", &[("go", "\x03"), ("^C", "on\n")]),
    ("stty raw -echo; echo go; head -c 3 | od -An -tx1", &[("go", "\x03\x1a\r")]),
    ("exit 0", &[]),
    ("exit 255", &[]),
    ("ulimit -c 0; kill -SEGV $$", &[]),
    ("kill -KILL $$", &[]),
    ("ulimit -c 0; kill -QUIT $$", &[]),
    ("exec nosuchprogram 2>/dev/null", &[]),
];

/// The same where the command's stdout and stderr are to be a terminal too: `-t` asks for that.
const CASES_OF_ITS_OWN: &[Case] = &[
    ("test -t 0 && test -t 1 && test -t 2 && echo all", &[]),
    ("stty size <&1; stty size <&2; exit 7", &[]),
    ("ls -l /proc/self/fd | sed -n 's/.* \\([0-9]*\\) -> .dev.pts.*/\\1/p'", &[]),
];

/// What the code leads to under these words: its status, and all that the terminal got.
fn outcome(program: &str, words: &[&str], (code, typed): &Case) -> (i32, String) {
    let words = [words, &["sh", "-c", code]].concat();
    let mut terminal = Terminal::start(program, &words);
    for (text, keys) in *typed {
        while !String::from_utf8_lossy(&terminal.seen).contains(text) {
            assert!(terminal.read(), "no {text:?} of {program} {words:?}");
        }
        terminal.types(keys);
    }
    let status = terminal.status();
    (status, String::from_utf8_lossy(&terminal.seen).into_owned())
}

/// rule: protocol.md, From a shell: Without `-t` the command has execd's controlling terminal,
///   where there is one, and is in its session and process group: it may ask on /dev/tty, and keys
///   reach it as without execd
/// rule: protocol.md, From a shell: `-t` runs the command on a terminal of its own: what it writes
///   there reaches ours byte for byte, keys reach it as bytes
#[test]
fn at_a_terminal_programs_write_and_end_as_by_env() {
    let execd = crate::common::EXECD;
    let next = AtomicUsize::new(0);
    let judge = |case: &Case| {
        let expected = outcome("env", &[], case);
        let ways: [&[&str]; 2] =
            [&["run", "-q", "--no-socket", "-t", "--"], &["run", "-q", "--no-socket", "--"]];
        let ways = &ways[..if CASES.contains(case) { 2 } else { 1 }];
        ways.iter().find_map(|words| {
            let found = outcome(execd, words, case);
            (found != expected)
                .then(|| format!("{words:?} {case:?}\n  env:   {expected:?}\n  execd: {found:?}"))
        })
    };
    let differences: Vec<String> = thread::scope(|scope| {
        let work = || {
            let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
            let case = |number| CASES.iter().chain(CASES_OF_ITS_OWN).nth(number);
            numbers.map_while(case).filter_map(judge).collect::<Vec<_>>()
        };
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|one| one.join().expect("joined")).collect()
    });
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

// ---- Keys, jobs, sizes ------------------------------------------------------------------

/// rule: protocol.md, From a shell: a Ctrl-C of the terminal has reached the command already, and
///   is not sent a second time
#[test]
fn a_key_reaches_the_command_once() {
    let code = "trap 'echo int' INT; trap 'echo term; exit 6' TERM; trap 'echo winch' WINCH; \
                echo up; while :; do sleep 0.01; done";
    let mut terminal = Terminal::run(&["-c", code]);
    terminal.until("up");
    terminal.types("\x03");
    terminal.until("int");
    set_size(&terminal.master, (50, 20));
    terminal.until("winch");
    send_signal(terminal.pid(), libc::SIGTERM);
    terminal.until("term");
    let counted = String::from_utf8_lossy(&terminal.seen).matches("int").count();
    assert_eq!((counted, terminal.status()), (0, 6));
    assert!(!String::from_utf8_lossy(&terminal.seen).contains("winch"));
}

/// execd told the signal by its exit status, and the shell's loop went on.
/// rule: protocol.md, From a shell: Ctrl-C of the terminal ends a shell's loop around `execd run`
#[test]
fn a_key_ends_a_loop_of_a_shell() {
    let mut shell = Terminal::shell();
    for run in ["env", "$EXECD run -q"] {
        shell.line(&format!(
            "for n in 1 2 3; do {run} sh -c 'echo turn $0; exec sleep 1000' $n; done; echo $n over"
        ));
        shell.until("turn 1\r\n");
        shell.types("\x03");
        shell.until("ready> ");
        shell.line("echo status $?, turn $n");
        shell.until("status 130, turn 1\r\n");
    }
}

/// What the command wrote came with two carriage returns: our terminal was left as it was where
/// stdin is none.
/// rule: protocol.md, From a shell: `-t` runs it on a terminal
/// rule: protocol.md, From a shell: `-t` with a pipe on stdin writes to our terminal byte for byte
#[test]
fn a_terminal_of_its_own_writes_lines_once_where_stdin_is_a_pipe() {
    let mut shell = Terminal::shell();
    shell.line("stty -echo; echo typed | $EXECD run -qt sh -c 'read word; echo got $word; echo b'");
    shell.until("got typed\r\nb\r\n");
    shell.until("ready> ");
    let between = String::from_utf8_lossy(&shell.seen).into_owned();
    assert!(!between.contains("\r\r"), "{between:?}");
    shell.line("stty -a");
    shell.until(" onlcr");
}

/// rule: protocol.md, From a shell: Ctrl-Z at a shell's terminal stops both, and `fg` lets both go
///   on
#[test]
fn a_job_of_a_shell_stops_and_goes_on() {
    let mut shell = Terminal::shell();
    shell.line("set -b");
    shell.until("ready> ");
    // It is cat itself that says so, and cat is the leader: a shell that waits for a stopped leader
    // goes on while a child of it may still read what is typed.
    std::fs::write(shell.dir.path().join("word"), "up\n").expect("written");
    let reader = "$EXECD run -q sh -c 'exec cat word -'";
    shell.line(reader);
    shell.until("up");
    shell.types("\x1a");
    shell.until("Stopped");
    shell.until("ready> ");
    shell.line("fg");
    shell.until("run -q");
    shell.line("typed");
    shell.until("typed\r\ntyped");
    shell.types("\x04");
    shell.until("ready> ");
    shell.line(reader);
    shell.until("up");
    shell.types("\x03");
    shell.until("ready> ");
    shell.line("echo status $?");
    shell.until("status 130");
}

/// rule: protocol.md, From a shell: `-t` runs the command on a terminal of its own, of the size
///   and the modes of ours, and of its changes
#[test]
fn a_terminal_of_its_own_has_the_size_and_the_modes_of_ours() {
    let mut shell = Terminal::shell();
    shell.line("stty erase ^H intr ^K");
    shell.until("ready> ");
    // A word that stty's list, which has a "hupcl", does not hold.
    let code = "stty -a; trap 'stty size' WINCH; echo trapped; while :; do sleep 0.01; done";
    std::fs::write(shell.dir.path().join("code"), code).expect("written");
    shell.line("$EXECD run -qt sh ./code");
    shell.until("rows 31; columns 97");
    shell.until("intr = ^K");
    shell.until("erase = ^H");
    shell.until("trapped");
    set_size(&shell.master, (60, 22));
    shell.until("22 60");
    // The key is the command's: of our terminal it is a byte.
    assert!(!shell.takes_lines());
    shell.types("\x0b");
    shell.until("ready> ");
    assert!(shell.takes_lines());
    shell.line("echo status $?");
    shell.until("status 130");
}

/// rule: protocol.md, From a shell: SIGTSTP stops the command and execd, SIGCONT lets both go on
/// rule: protocol.md, From a shell: our terminal is as before when `-t` ends, whatever ends it,
///   and while it is stopped
#[test]
fn the_terminal_is_put_back_whatever_happens() {
    let mut shell = Terminal::shell();
    for (signal, status) in [(libc::SIGTERM, 143), (libc::SIGHUP, 129), (libc::SIGQUIT, 131)] {
        shell.line("$EXECD run -qt sh -c 'ulimit -c 0; echo u''p; exec sleep 4743'");
        shell.until("up");
        assert!(!shell.takes_lines());
        let (execd, _) = children(shell.pid())[0];
        if signal == libc::SIGTERM {
            send_signal(execd, libc::SIGTSTP);
            shell.until("ready> ");
            assert!(shell.takes_lines());
            shell.line("fg");
            shell.until("fg\r\n");
            eventually("the terminal is raw again", || !shell.takes_lines());
        }
        send_signal(execd, signal);
        shell.until("ready> ");
        assert!(shell.takes_lines());
        shell.line("echo status $?");
        shell.until(&format!("status {status}"));
        shell.until("ready> ");
    }
    shell.line("$EXECD run -qt nosuchprogram; echo status $?");
    shell.until("status 127");
    shell.until("ready> ");
    assert!(shell.takes_lines());
}
