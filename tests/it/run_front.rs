//! `execd run` beside env(1): a program run by either writes the same and ends the same; and what
//! `execd run` does besides: signals, timeouts, statuses of its own (protocol.md, From a shell).

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::common::{eventually, send_signal};
use serde_json::Value;
use tempfile::TempDir;

const AT_ONCE: usize = 4;

fn directory() -> TempDir {
    TempDir::new().expect("a directory")
}

/// A program in a directory of its own, with nothing on stdin.
fn command(dir: &TempDir, program: &str, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(words).env("TMPDIR", dir.path()).env("XDG_RUNTIME_DIR", dir.path());
    command.env("EXECD", crate::common::EXECD).current_dir(dir.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(dir: &TempDir, words: &[&str]) -> Command {
    command(dir, crate::common::EXECD, &[&["run"], words].concat())
}

fn said(words: &[&str]) -> (Option<i32>, String, String) {
    let output = run(&directory(), words).output().expect("execd runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn pid_of(child: &Child) -> i32 {
    i32::try_from(child.id()).expect("a pid")
}

fn send(child: &Child, signal: i32) {
    send_signal(pid_of(child), signal);
}

fn status(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).expect("an end")
}

// ---- The same as by env(1) --------------------------------------------------------------

#[derive(Clone)]
enum Input {
    Null,
    Piped(Vec<u8>),
    File(Vec<u8>),
}

struct Case {
    words: Vec<String>,
    stdin: Input,
    /// Code of bash that comes before env(1) or execd in the same process.
    before: &'static str,
    flags: &'static [&'static str],
}

impl Case {
    fn of(words: Vec<String>) -> Self {
        Self { words, stdin: Input::Null, before: "", flags: &[] }
    }
}

fn cases() -> Vec<Case> {
    let shell = |code: String| Case::of(vec!["sh".to_owned(), "-c".to_owned(), code]);
    let mut all: Vec<Case> = vec![];
    let codes = (0..=125).step_by(25).chain(126..=130).chain([137, 143, 254, 255]);
    all.extend(codes.map(|code| shell(format!("echo {code}; exit {code}"))));
    // All that end a program: without those that stop it (19 to 22) or mean nothing to it.
    let signals = (1..=31).filter(|signal| !matches!(signal, 17..=23 | 28));
    all.extend(signals.map(|n| shell(format!("ulimit -c 0; echo {n} >&2; kill -{n} $$"))));
    let codes = [
        "for n in $(seq 200); do echo out $n; echo err $n >&2; done",
        "for n in $(seq 50); do printf %s $n; printf %s $n >&2; done; exit 9",
        "exec >&-; echo lost; exit 4",
        "exec 2>&-; echo kept; exit 5",
        "exec >&- 2>&-; exit 6",
        "exec <&-; cat; echo $?",
        "head -c 3000000 /dev/zero",
        "head -c 3000000 /dev/zero >&2",
        "head -c 2000000 /dev/zero & head -c 2000000 /dev/zero >&2; wait; exit 8",
        "seq 100000; seq 100000 >&2",
        r"printf '\000\377\200\r\n\033[31mred'",
        r"printf '\000\377\200\r\n\033[31mred' >&2",
        "head -c 256 /dev/zero | tr '\\0' '\\377'",
        "printf 'no end of line'",
        "cat; echo; wc -c",
        "(echo behind) & wait; echo done; exit 3",
        "sleep 4730 >/dev/null 2>&1 & kill $!; wait $!; echo $?",
        "(until grep -q '^State:.T' /proc/$$/status; do :; done; kill -CONT $$) & \
         kill -STOP $$; wait; echo went on",
        "tty; test -t 1 || echo no terminal; exit 2",
        "umask; pwd; ulimit -Sn; ulimit -Hn; ulimit -c",
        "trap 'echo trapped' USR1; kill -USR1 $$; exit 11",
        "echo \"$0 $# $*\"",
        "nosuchprogram; echo $?",
        "exec nosuchprogram 2>/dev/null",
        "mkdir d; cd d; echo $PWD >&2; rmdir ../d",
        "yes | head -n 3",
    ];
    all.extend(codes.map(|code| shell(code.to_owned())));
    let words = |words: &[&str]| Case::of(words.iter().map(|word| (*word).to_owned()).collect());
    all.push(words(&["printf", "%s|", "a  b", "$HOME", "", "*", "\"", "-c", "--json"]));
    all.push(words(&["true"]));
    all.push(words(&["false"]));
    let bytes: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    for code in
        ["cat", "cat >&2", "wc -c", "head -c 3", "read a; echo $a", "exit 7", "sort | md5sum"]
    {
        for bytes in [bytes.clone(), vec![]] {
            let stdin = Input::Piped(bytes.clone());
            all.push(Case { stdin, ..shell(code.to_owned()) });
            all.push(Case { stdin: Input::File(bytes), ..shell(code.to_owned()) });
        }
    }
    // Far more than pipes and buffers hold.
    let stdin = Input::Piped(bytes.iter().copied().cycle().take(8_000_000).collect());
    all.push(Case { stdin, ..shell("wc -c; exit 12".to_owned()) });
    // What they are given besides arguments and stdin is handed on.
    let signals = "grep '^Sig[BIC]' /proc/self/status";
    let files = "for n in /proc/self/fd/*; do readlink $n; done | grep -v 'pipe:\\|/proc'";
    for (before, code) in [
        ("", signals),
        ("trap '' HUP", signals),
        ("trap '' PIPE", "yes | head -n 1; grep '^Sig[BIC]' /proc/self/status"),
        ("trap '' CHLD XFSZ INT TERM USR1 WINCH", signals),
        ("trap '' PIPE", "kill -PIPE $$; echo lives"),
        ("trap '' TERM", "kill -TERM $$; echo lives"),
        ("exec 5</dev/null 7>/dev/full", files),
        ("exec 5</dev/null", "read a <&5; echo $?; exec 5<&-; exit 4"),
        ("exec 9<<<text", "cat <&9"),
        ("exec <&-", "cat; echo $?"),
        ("exec <&-", "read a; echo $?; ls /proc/self/fd/0 && echo open"),
        ("umask 027", "umask; : >made; stat -c %a made"),
        ("ulimit -n 40", "ulimit -Sn; ulimit -Hn"),
        ("ulimit -Sn 40", "ulimit -Sn; ulimit -Hn | grep -c 40"),
        ("ulimit -Sc 0; ulimit -Ss 4096", "ulimit -c; ulimit -s"),
        ("nice() { :; }; renice -n 5 $$ >/dev/null", "nice"),
        ("cd /usr", "pwd; echo $PWD"),
        ("export ZB=1 ZA=2 Z=; unset HOME", "env | grep '^Z'; echo ${HOME-none}"),
        ("exec 3> >(cat >f)", "echo through >&3; exec 3>&-; until [ -s f ]; do :; done; cat f"),
        ("exec 2>&1", "echo a; echo b >&2; echo c; exit 5"),
        ("exec >both 2>&1; echo", "echo a; echo b >&2; cat both; exit 5"),
    ] {
        all.push(Case { before, ..shell(code.to_owned()) });
    }
    // What goes on behind the command.
    for code in [
        "(while [ ! -e go ]; do :; done; echo later) & : >go; exit 3",
        "(sleep 0.2; echo later; echo too >&2) & echo now; exit 4",
        "(sleep 0.1; : >done) >/dev/null 2>&1 & exit 0",
        "sh -c 'sleep 0.1 & echo $?' & kill -9 $$",
        "for n in 1 2 3; do (sleep 0.1; echo $n >>all; [ $n != 3 ] || cat all | wc -l) & wait; done",
    ] {
        all.push(Case { flags: &["--keep-background"], ..shell(code.to_owned()) });
    }
    all
}

fn output(mut command: Command, dir: &TempDir, stdin: &Input) -> Output {
    let bytes = match stdin {
        Input::Null => return command.output().expect("it runs"),
        Input::Piped(bytes) => bytes,
        Input::File(bytes) => {
            let place = dir.path().join("stdin");
            fs::write(&place, bytes).expect("written");
            command.stdin(fs::File::open(place).expect("opened"));
            return command.output().expect("it runs");
        }
    };
    let mut child = command.stdin(Stdio::piped()).spawn().expect("it runs");
    let mut input = child.stdin.take().expect("stdin");
    thread::scope(|scope| {
        // Who does not read it all is no failure.
        scope.spawn(move || input.write_all(bytes).is_ok());
        child.wait_with_output().expect("it ends")
    })
}

/// How `execd run` differs from env(1) with a program; nothing where it does not.
fn difference(case: &Case) -> Option<String> {
    let words: Vec<&str> = case.words.iter().map(String::as_str).collect();
    let (of_env, of_run) = (directory(), directory());
    let begun = |dir: &TempDir, program: &[&str]| {
        let code = format!("{}\nexec \"$@\"", case.before);
        let before = ["-c", &code, "bash"];
        let all = [if case.before.is_empty() { &[] } else { &before[..] }, program, &words];
        let all = all.concat();
        let program = if case.before.is_empty() { all[0] } else { "bash" };
        let words = if case.before.is_empty() { &all[1..] } else { &all[..] };
        output(command(dir, program, words), dir, &case.stdin)
    };
    let env = begun(&of_env, &["env"]);
    let flags = [&[crate::common::EXECD, "run", "-q", "--no-socket"], case.flags, &["--"]];
    let run = begun(&of_run, &flags.concat());
    let plain = |bytes: &[u8], dir: &TempDir| {
        // The directories differ, and nothing else.
        let place = dir.path().to_str().expect("UTF-8").as_bytes();
        let mut out = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some(at) = rest.windows(place.len()).position(|window| window == place) {
            out.extend_from_slice(&rest[..at]);
            rest = &rest[at + place.len()..];
        }
        out.extend_from_slice(rest);
        out
    };
    let same = status(env.status) == status(run.status)
        && plain(&env.stdout, &of_env) == plain(&run.stdout, &of_run)
        && plain(&env.stderr, &of_env) == plain(&run.stderr, &of_run);
    let cut = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned();
        format!("{} bytes {text:?}", bytes.len())
    };
    let shown = |one: &Output| {
        format!("{}, {}, {}", status(one.status), cut(&one.stdout), cut(&one.stderr))
    };
    let before = case.before;
    (!same).then(|| {
        format!("{before:?} {words:?}\n  env:   {}\n  execd: {}", shown(&env), shown(&run))
    })
}

/// rule: protocol.md, From a shell: `execd run` gives stdout to stdout and stderr to stderr as
///   they come, byte for byte
/// rule: protocol.md, From a shell: The exit status of `execd run` is the command's; 128 plus the
///   number after a signal
/// rule: protocol.md, From a shell: 128 plus the number after a signal
#[test]
fn a_hundred_programs_write_and_end_as_by_env() {
    let cases = cases();
    assert!(cases.len() >= 100, "{}", cases.len());
    let next = AtomicUsize::new(0);
    let differences: Vec<String> = thread::scope(|scope| {
        let work = || {
            let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
            let cases = numbers.map_while(|number| cases.get(number));
            cases.filter_map(difference).collect::<Vec<_>>()
        };
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|one| one.join().expect("joined")).collect()
    });
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

// ---- Words, statuses, places of output --------------------------------------------------

/// rule: protocol.md, From a shell: `execd run` takes its words as a program and its arguments,
///   also a single word, also one with blanks: no shell reads them
#[test]
fn words_are_a_program_and_its_arguments_and_code_is_asked_for() {
    let dir = directory();
    fs::copy("/bin/echo", dir.path().join("a program; echo b")).expect("copied");
    let output = run(&dir, &["-q", "./a program; echo b"]).output().expect("execd runs");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"\n"[..]));
    let (code, out, err) = said(&["-q", "echo a; echo b"]);
    assert_eq!((code, out.as_str()), (Some(127), ""));
    assert!(err.ends_with("; did you mean -c? execd run -c 'echo a; echo b'\n"), "{err}");
    let (_, _, err) = said(&["-q", "nosuchprogram"]);
    assert!(!err.contains("-c"), "{err}");
    let (code, out, err) = said(&["-qc", "echo $0 $1 $BASH_VERSION", "a", "b"]);
    assert!(code == Some(0) && out.starts_with("a b ") && out.len() > 5, "{out} {err}");
    let (_, out, _) = said(&["-q", "--shell", "sh", "-c", "echo $0"]);
    assert_eq!(out, "sh\n");
}

/// Arguments that are not UTF-8 were refused, as names of files can be.
/// rule: protocol.md, From a shell: Arguments and variables may be of any bytes, as with env(1)
#[test]
fn arguments_and_variables_are_passed_on_as_bytes() {
    let bytes = OsStr::from_bytes(b"\xff\xfe caf\xe9\n'\x80");
    let shows = r#"printf '%s|' "$@"; printf %s "$STRANGE""#;
    let dir = directory();
    for own in [&["-q", "sh", "-c", shows, "sh"], &["-q", "-c", shows, "bash", "b"]] {
        let mut run = run(&dir, own);
        let output = run.arg(bytes).env("STRANGE", bytes).output().expect("execd runs");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let first: &[u8] = if own[4] == "b" { b"b|" } else { b"" };
        let wanted = [first, bytes.as_bytes(), b"|", bytes.as_bytes()].concat();
        assert_eq!(output.stdout, wanted);
    }
    // Lists, logs and reports show what they can of it.
    let output = run(&dir, &["--json", "printf", "%s"]).arg(bytes).output().expect("execd runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["exit_code"], 0, "{report}");
    assert!(report["command"].as_str().is_some_and(|all| all.contains("caf\u{fffd}")), "{report}");
    let mut command = run(&dir, &["-q"]);
    let output = command.arg(bytes).output().expect("execd runs");
    assert_eq!(output.status.code(), Some(125), "the program's own name is text");
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not UTF-8"), "{output:?}");
}

/// rule: protocol.md, From a shell: 125 for a failure of execd's own and for bad usage; 126 for a
///   program that could not be started; 127 for one that was not found
#[test]
fn what_is_no_end_of_a_command_has_a_status_of_its_own() {
    for (words, code) in [
        (&["nosuchprogram"][..], 127),
        (&["/nosuchdir/program"], 127),
        (&["/etc/passwd"], 126),
        (&["/etc"], 126),
        (&["--timeout", "soon", "true"], 125),
        (&["--nonsense", "true"], 125),
        (&["--log", "/nosuchdir/log", "true"], 125),
        (&["--log-dir", "/proc/none/such", "true"], 125),
        (&["--signal", "STOP", "true"], 125),
        (&["--shell", "sh", "true"], 125),
        (&[], 125),
    ] {
        let (status, out, err) = said(words);
        assert_eq!((status, out.as_str()), (Some(code), ""), "{words:?}: {err}");
        assert!(err.starts_with("execd: ") && err.lines().count() == 1, "{words:?}: {err}");
    }
}

/// A program on the PATH that may not be executed was told as one that is not there, with 127
/// (env(1) and timeout(1) have 126); a directory of the program's name, and a place on the PATH
/// that may not be searched, as a program that may not be executed.
/// rule: protocol.md, From a shell: 125 for a failure of execd's own and for bad usage; 126 for a
///   program that could not be started; 127 for one that was not found
#[test]
fn what_is_found_on_the_path_is_told_as_by_env() {
    let dir = directory();
    let at = |name: &str| dir.path().join(name);
    let set_mode = |path: &Path, mode| {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("set");
    };
    for (name, mode) in [("plain", 0o644), ("runs", 0o755), ("closed", 0o755)] {
        fs::create_dir(at(name)).expect("made");
        let program = at(name).join("program");
        fs::write(&program, "#!/bin/sh\nexit 9\n").expect("written");
        set_mode(&program, mode);
    }
    fs::create_dir_all(at("named/program")).expect("made");
    let execd = at("program-of-tests");
    fs::copy(crate::common::EXECD, &execd).expect("a copy that others can reach");
    set_mode(dir.path(), 0o777);
    set_mode(&at("closed"), 0);
    for (places, status, why) in [
        (&["plain", "nosuchdir"][..], 126, "EACCES: Permission denied"),
        (&["plain", "runs"], 9, ""),
        (&["named"], 127, "ENOENT: No such file or directory"),
        (&["closed"], 127, "ENOENT: No such file or directory"),
    ] {
        let path: Vec<String> =
            places.iter().map(|name| at(name).to_string_lossy().into_owned()).collect();
        let mut run = command(&dir, execd.to_str().expect("UTF-8"), &["run", "-q", "program"]);
        if crate::common::outside::is_root() {
            // Root may look everywhere.
            run.uid(65_534).gid(65_534);
        }
        let done = run.env("PATH", path.join(":")).output().expect("execd runs");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(status), "{places:?}: {said}");
        let line = format!("execd: spawn program: {why}\n");
        assert_eq!(said, if why.is_empty() { "" } else { line.as_str() }, "{places:?}");
    }
    set_mode(&at("closed"), 0o755);
}

/// rule: protocol.md, From a shell: Output of the command that cannot be written is said on
///   stderr, and ends the command: exit status 125
/// rule: protocol.md, From a shell: `execd run` refuses to start with stdout or stderr closed
#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let dir = directory();
    let full = || OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let output = run(&dir, &["-q", "echo", "x"]).stdout(full()).output().expect("execd runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.starts_with("execd: stdout cannot be written: ENOSPC: "), "{said}");
    let output = run(&dir, &["-q", "--json", "true"]).stdout(full()).output().expect("execd runs");
    assert_eq!(output.status.code(), Some(125));
    let mut to_full = run(&dir, &["-qc", "echo x >&2"]);
    assert_eq!(to_full.stderr(full()).status().expect("execd runs").code(), Some(125));
    for (closed, fd) in [("stdout", 1), ("stderr", 2)] {
        let mut command = run(&dir, &["touch", "started"]);
        // SAFETY: close is async-signal-safe.
        unsafe {
            command.pre_exec(move || {
                libc::close(fd);
                Ok(())
            });
        }
        let output = command.output().expect("execd runs");
        assert_eq!(output.status.code(), Some(125));
        let other = if fd == 1 { output.stderr } else { output.stdout };
        let said = String::from_utf8_lossy(&other).into_owned();
        assert!(said.starts_with(&format!("execd run: {closed} is closed")), "{said}");
        assert!(!dir.path().join("started").exists());
    }
}

/// rule: protocol.md, From a shell: Where nobody reads any more, the command is ended once it
///   writes, and the exit status is 141
#[test]
fn a_reader_that_goes_ends_what_writes_to_it_and_nothing_else() {
    let dir = directory();
    let mut child = run(&dir, &["-qc", "read go; touch went; yes"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("execd runs");
    drop(child.stdout.take());
    child.stdin.take().expect("stdin").write_all(b"go\n").expect("written");
    assert_eq!(child.wait().expect("it ends").code(), Some(141));
    assert!(dir.path().join("went").exists());
    let mut err = String::new();
    child.stderr.take().expect("stderr").read_to_string(&mut err).expect("read");
    assert_eq!(err, "");
}

/// rule: protocol.md, From a shell: the log has both, in the order in which they were read
/// rule: protocol.md, From a shell: `--log FILE` names its place
#[test]
fn merge_is_one_pipe_and_the_log_is_where_it_was_asked_for() {
    let both = "for n in 1 2 3; do echo out $n; echo err $n >&2; done";
    let (_, out, err) = said(&["-q", "--merge", "-c", both]);
    assert_eq!(out, "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n");
    assert_eq!(err, "");
    let dir = directory();
    let place = dir.path().join("the log");
    let words = ["--log", "the log", "-c", "echo out; echo err >&2"];
    let output = run(&dir, &words).output().expect("execd runs");
    let log = fs::read_to_string(&place).expect("a log");
    assert!(log == "out\nerr\n" || log == "err\nout\n", "{log}");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    let place = place.canonicalize().expect("a place");
    assert_eq!(err, format!("err\nexecd: log: {}\n", place.display()));
}

// ---- Times and signals ------------------------------------------------------------------

/// rule: protocol.md, From a shell: `--idle-timeout TIME` when it has written nothing for so long:
///   with SIGTERM or what `--signal SIG` names
#[test]
fn times_are_as_people_write_them_and_end_as_they_are_asked_to() {
    let traps = "trap 'echo trapped; exit' TERM; echo up; while :; do sleep 0.01; done";
    let (code, out, err) = said(&["--timeout", "200ms", "-c", traps]);
    assert_eq!(code, Some(124), "{err}");
    assert!("up\ntrapped\n".starts_with(&out), "{out}");
    // bash may say of its sleep that it was ended.
    assert!(err.contains("execd: ended after 200 ms (--timeout)\n"), "{err}");
    let stubborn = "trap 'echo int' INT; while :; do sleep 0.01; done";
    let flags = ["-q", "--idle-timeout", "0.3", "--signal", "INT", "--kill-after", "300ms"];
    let (code, _, err) = said(&[&flags[..], &["-c", stubborn]].concat());
    assert!(code == Some(124) && !err.contains("execd"), "{code:?} {err}");
    let (code, out, _) = said(&["-q", "--timeout", "0", "--idle-timeout", "1h30m", "echo", "hi"]);
    assert_eq!((code, out.as_str()), (Some(0), "hi\n"));
}

/// A child that says a line for each signal that it gets.
fn trapping(dir: &TempDir) -> (Child, impl Iterator<Item = String>) {
    let code = "for s in INT TERM HUP QUIT USR1 USR2 WINCH; do trap \"echo $s\" $s; done; echo up; \
                while :; do sleep 0.01; done";
    let mut child = run(dir, &["-qc", code]).spawn().expect("execd runs");
    let out = child.stdout.take().expect("stdout");
    let mut lines = BufReader::new(out).lines().map(|line| line.expect("a line"));
    assert_eq!(lines.next().as_deref(), Some("up"));
    (child, lines)
}

/// rule: protocol.md, From a shell: SIGTERM, SIGUSR1 and SIGUSR2 are passed on to the command as
///   themselves, SIGHUP, SIGQUIT and SIGWINCH to its process group
/// rule: protocol.md, From a shell: a second one within 2 s sends SIGTERM to all of it, a third
///   one SIGKILL
/// rule: protocol.md, From a shell: Ctrl-C ends the whole tree of `execd run`
#[test]
fn signals_are_passed_on_as_themselves_and_ctrl_c_insists() {
    let dir = directory();
    let (mut child, mut lines) = trapping(&dir);
    let signals = [
        (libc::SIGTERM, "TERM"),
        (libc::SIGHUP, "HUP"),
        (libc::SIGQUIT, "QUIT"),
        (libc::SIGUSR1, "USR1"),
        (libc::SIGUSR2, "USR2"),
        (libc::SIGWINCH, "WINCH"),
        (libc::SIGINT, "INT"),
    ];
    for (signal, name) in signals {
        send(&child, signal);
        assert_eq!(lines.next().as_deref(), Some(name));
    }
    // However slow the machine is: a Ctrl-C that comes too late begins anew.
    eventually("it is ended", || {
        send(&child, libc::SIGINT);
        child.try_wait().expect("a child of ours").is_some()
    });
    assert_eq!(child.wait().expect("it ends").code(), Some(137));
}

// ---- What is left in the background -----------------------------------------------------

/// rule: protocol.md, From a shell: What the command leaves in the background is ended with it,
///   and named in a line on stderr
#[test]
fn what_is_left_in_the_background_is_ended_and_said_in_one_line() {
    let code = "sleep 4733 >/dev/null 2>&1 & echo $!; exit 3";
    let (status, out, err) = said(&["--no-log", "-c", code]);
    let pid: i32 = out.trim().parse().expect("a pid");
    assert_eq!(status, Some(3));
    // It may not have become its program yet.
    let name = if err.contains("sleep") { "sleep" } else { "bash" };
    let line = format!(
        "execd: left running by the command, and ended with it: {name} ({pid}); \
         --keep-background waits for them\n"
    );
    assert_eq!(err, line);
    assert!(!crate::common::is_alive(pid));
    let (_, _, err) =
        said(&["--no-log", "-c", "for n in 1 2 3 4 5 6; do sleep 4733 & done; exit 3"]);
    assert!(err.contains("), ") && err.contains(" and 2 more; --keep-background"), "{err}");
    for quiet in ["true", "sleep 0 & wait", "sleep 4733 & kill $!; wait"] {
        let (_, _, err) = said(&["--no-log", "-c", quiet]);
        assert!(!err.contains("execd"), "{quiet}: {err}");
    }
}

/// rule: protocol.md, From a shell: `--keep-background` lets it be: execd stays until all of it
///   has ended, and passes its output on
/// rule: protocol.md, From a shell: `execd run --timeout TIME` ends the command and its jobs
#[test]
fn what_is_left_in_the_background_may_go_on() {
    let dir = directory();
    let code = "(echo $BASHPID; until [ -e go ]; do sleep 0.01; done; echo late; echo err >&2) & \
                exit 5";
    let start = |flags: &[&str]| {
        let mut child =
            run(&dir, &[&["--keep-background", "--no-log"], flags, &["-c", code]].concat())
                .spawn()
                .expect("execd runs");
        let mut out = BufReader::new(child.stdout.take().expect("stdout"));
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        (child, out, line.trim().parse::<i32>().expect("a pid"))
    };
    let rest = |out: &mut dyn Read| {
        let mut all = String::new();
        out.read_to_string(&mut all).expect("text");
        all
    };
    let (mut child, mut out, pid) = start(&[]);
    let until_left = |child: &Child, pid: i32| {
        let left = || crate::common::outside::children(pid_of(child));
        eventually("the command has ended", || left().iter().any(|(one, _)| *one == pid));
    };
    until_left(&child, pid);
    fs::write(dir.path().join("go"), "").expect("written");
    assert_eq!(rest(&mut out), "late\n");
    assert_eq!(child.wait().expect("it ends").code(), Some(5));
    assert_eq!(rest(&mut child.stderr.take().expect("stderr")), "err\n");
    fs::remove_file(dir.path().join("go")).expect("removed");
    // A signal that asks for the end ends what is left, and a timeout does.
    let (mut child, _out, pid) = start(&[]);
    until_left(&child, pid);
    send(&child, libc::SIGTERM);
    assert_eq!(child.wait().expect("it ends").code(), Some(143));
    assert!(!crate::common::is_alive(pid));
    let (mut child, _out, pid) = start(&["--timeout", "0.2"]);
    assert_eq!(child.wait().expect("it ends").code(), Some(124));
    assert!(!crate::common::is_alive(pid));
}

// ---- Readers, descriptors ---------------------------------------------------------------

/// rule: protocol.md, From a shell: A reader that is slow on one holds up what writes there, and
///   not the other
#[test]
fn a_slow_reader_of_one_does_not_hold_the_other() {
    let dir = directory();
    for (full, other) in [("2", "1"), ("1", "2")] {
        let name = format!("full{full}");
        let code = format!(
            "(head -c 8000000 /dev/zero >&{full}; : >{name}) & \
             head -c 8000000 /dev/zero >&{other}; wait"
        );
        let mut child = run(&dir, &["-qc", &code]).spawn().expect("execd runs");
        let (out, err) = (child.stdout.take().expect("out"), child.stderr.take().expect("err"));
        let readers: [Box<dyn Read>; 2] = [Box::new(out), Box::new(err)];
        let [mut first, mut second] = readers;
        let (slow, fast) =
            if full == "1" { (&mut first, &mut second) } else { (&mut second, &mut first) };
        let mut all = vec![0; 8_000_000];
        fast.read_exact(&mut all).expect("all of it");
        assert!(!dir.path().join(&name).exists(), "nobody has read what is written there");
        slow.read_exact(&mut all).expect("all of it");
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
    }
}

/// With fewer it said that too many files were open, and nothing of what to do.
/// rule: protocol.md, From a shell: What fails for want of descriptors says `raise ulimit -n`
/// rule: protocol.md, From a shell: One command needs few descriptors: `ulimit -n 16` is enough,
///   and nothing is said of it
#[test]
fn one_command_runs_with_few_descriptors() {
    let dir = directory();
    for most in [64, 16] {
        let code = "sleep 4734 & echo out; echo err >&2; ulimit -n";
        let mut command = run(&dir, &["--no-log", "-c", code]);
        // SAFETY: both calls are async-signal-safe.
        unsafe {
            command.pre_exec(move || {
                libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
                crate::common::outside::limit_files(most)();
                Ok(())
            });
        }
        let output = command.output().expect("execd runs");
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{most}: {err}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("out\n{most}\n"));
        let said: Vec<&str> = err.lines().filter(|line| line.starts_with("execd: ")).collect();
        assert!(said.len() == 1 && said[0].contains("left running"), "{most}: {err}");
    }
    for limit in [4, 6, 8] {
        let code = format!("ulimit -n {limit}; exec \"$EXECD\" run -q echo hi");
        let output = command(&dir, "bash", &["-c", &code]).output().expect("bash runs");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_ne!(output.status.code(), Some(0), "{limit}: {err}");
        assert!(err.contains("EMFILE: Too many open files: raise ulimit -n"), "{limit}: {err}");
    }
}

/// execd held stdin and what else it was handed until its own end: who waited for the command to
/// close them waited for execd.
/// rule: protocol.md, From a shell: The command has execd's own stdin, and alone: who writes to it
///   learns when the command has closed it
#[test]
fn what_the_command_has_closed_is_closed() {
    let dir = directory();
    let code = "exec <&-; echo closed; until [ -e go ]; do sleep 0.01; done";
    let mut child = run(&dir, &["-qc", code]).stdin(Stdio::piped()).spawn().expect("execd runs");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    assert_eq!(lines.next().expect("a line").expect("text"), "closed");
    let mut input = child.stdin.take().expect("stdin");
    let written = input.write_all(b"x").map_err(|error| error.kind());
    assert_eq!(written, Err(std::io::ErrorKind::BrokenPipe));
    fs::write(dir.path().join("go"), "").expect("written");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

// ---- JSON -------------------------------------------------------------------------------

/// Bad usage printed no object at all.
/// rule: protocol.md, From a shell: bad usage too is an object, besides its line on stderr
/// rule: protocol.md, From a shell: `execd run --json` prints one object at the end, whatever
///   happened
#[test]
fn json_is_one_object_whatever_happened() {
    for (words, code, key, value) in [
        (&["nosuchprogram"][..], 127, "exit_status", Value::from(127)),
        (&["--timeout", "100ms", "sleep", "4731"], 124, "timed_out", true.into()),
        (&["--timeout", "100ms", "sleep", "4731"], 124, "signal", "SIGTERM".into()),
        (&["-c", "kill -9 $$"], 137, "signal", "SIGKILL".into()),
        (&["-c", "sleep 4732 & echo hi; exit 3"], 3, "exit_code", 3.into()),
        (&["-c", "echo a; echo b >&2"], 0, "output", "a\nb\n".into()),
        (&["--log-dir", "/proc/none/such", "true"], 125, "exit_status", 125.into()),
        (&["--log", "/nosuchdir/log", "true"], 125, "exit_status", 125.into()),
    ] {
        let (status, out, err) = said(&[&["--json"], words].concat());
        assert_eq!((status, err.as_str()), (Some(code), ""), "{words:?}");
        assert_eq!(out.lines().count(), 1, "{words:?}: {out}");
        let object: Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(object[key], value, "{words:?}: {object}");
        assert_eq!(object["exit_status"], code, "{object}");
        assert!(object.get("session_id").is_none(), "{object}");
        let starts = !matches!(code, 125..=127);
        assert_eq!(object["failure_message"].is_null(), starts, "{object}");
    }
    for words in [&["--timeout", "soon", "true"][..], &["--nonsense"], &[], &["--log", "", "true"]]
    {
        let one = object(words);
        assert_eq!(one["exit_status"], 125, "{one}");
        assert!(one["failure_message"].is_string(), "{one}");
    }
}

fn object(words: &[&str]) -> Value {
    let (_, out, err) = said(&[&["--json"], words].concat());
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{words:?}: {error}: {out}{err}"))
}

/// The object named a session that was gone ("[still running] … kill_session"), and with
/// `--keep-background` had neither the output nor the times of what went on.
/// rule: protocol.md, From a shell: It has no `session_id`: no session is left
#[test]
fn json_tells_the_end_of_all_that_the_command_has_left() {
    let one = object(&["-c", "echo hi; sleep 4734 &"]);
    let header = one["header"].as_str().expect("a header");
    assert!(header.starts_with("[exited]") && !header.contains("session_id"), "{one}");
    assert!(one.get("state").is_none() && one.get("pid").is_none(), "{one}");
    assert_eq!((&one["wait_status"], &one["output"]), (&"completed".into(), &"hi\n".into()));
    assert!(one["note"].as_str().expect("a note").contains("ended with it: sleep"), "{one}");

    let late = "(sleep 0.3; echo late) & echo hi; exit 5";
    let one = object(&["--keep-background", "-c", late]);
    assert_eq!((&one["output"], &one["exit_status"]), (&"hi\nlate\n".into(), &5.into()), "{one}");
    assert_eq!(one["output_bytes_total"], 8, "{one}");
    assert!(one["wall_time_seconds"].as_f64().expect("a time") >= 0.3, "{one}");

    let left = "sleep 4735 & echo hi; exit 5";
    let one = object(&["--keep-background", "--timeout", "200ms", "-c", left]);
    assert_eq!((&one["exit_status"], &one["timed_out"]), (&124.into(), &true.into()), "{one}");
    assert_eq!((&one["exit_code"], &one["output"]), (&5.into(), &"hi\n".into()), "{one}");
    assert!(one["note"].as_str().expect("a note").contains("ended by the timeout: sleep"), "{one}");
}

/// rule: protocol.md, From a shell: `--idle-timeout` stops counting when the command has ended
#[test]
fn what_is_left_may_be_silent() {
    let words = ["--keep-background", "--idle-timeout", "100ms", "-c", "sleep 0.4 & exit 6"];
    let one = object(&words);
    assert_eq!((&one["exit_status"], one.get("timed_out")), (&6.into(), None), "{one}");
}

/// Such a script was refused with 126, where env(1), a shell and make run it.
/// rule: protocol.md, From a shell: a script that names no shell is read by /bin/sh, as execvp(3)
///   has it
#[test]
fn a_script_without_a_shell_is_read_by_sh() {
    let dir = directory();
    let script = dir.path().join("script");
    let junk = dir.path().join("junk");
    fs::write(&script, "echo $0 $# $2; exit 7\n").expect("written");
    fs::write(&junk, b"\x7fELF\x02\x01\x01junk\n\0\0\xff\xff").expect("written");
    for file in [&script, &junk] {
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).expect("mode");
    }
    let path = script.to_string_lossy().into_owned();
    for (words, flag) in [
        (&["./script", "a", "b c"][..], "--"),
        (&[path.as_str(), "a", "b c"], "-t"),
        (&["script", "a", "b c"], "--"),
        (&["./junk"], "--"),
    ] {
        let places = format!("{}:/usr/bin:/bin", dir.path().display());
        let execd = run(&dir, &[&["-q", flag], words].concat()).env("PATH", &places).output();
        let env = command(&dir, "env", words).env("PATH", &places).output();
        let (execd, env) = (execd.expect("execd runs"), env.expect("env runs"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\r", "");
        assert_eq!(text(&execd.stdout), text(&env.stdout), "{words:?}");
        assert_eq!(status(execd.status), status(env.status), "{words:?}");
    }
}

/// The file was emptied before anything was started; and the header named another path.
/// rule: protocol.md, From a shell: `--log FILE` names its place: FILE is replaced at the end
#[test]
fn the_file_of_the_log_is_replaced_at_the_end() {
    let dir = directory();
    let file = dir.path().join("kept.log");
    fs::write(&file, "before\n").expect("written");
    let output = run(&dir, &["--log", "kept.log", "nosuch"]).output().expect("execd runs");
    assert_eq!(output.status.code(), Some(127));
    assert_eq!(fs::read_to_string(&file).expect("the file"), "before\n");
    let words = ["--json", "--log", "kept.log", "-c", "cat kept.log; exit 3"];
    let output = run(&dir, &words).output().expect("execd runs");
    let one: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(fs::read_to_string(&file).expect("the file"), "before\n");
    assert_eq!(one["output"], "before\n", "{one}");
    let line = format!("\nlog_path: {}\n", one["log_path"].as_str().expect("a path"));
    assert!(one["header"].as_str().expect("a header").contains(&line), "{one}");
    assert!(line.contains("/kept.log") && !line.contains("execd-"), "{line}");
    let (status, _, err) = said(&["--log", "x", "--no-log", "true"]);
    assert_eq!(status, Some(125));
    assert!(err.contains("leave out --no-log"), "{err}");
}
