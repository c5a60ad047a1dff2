//! The log files and who writes them: complete or honest about what is missing, whatever
//! happens to the disk or to the keeper (architecture.md, The keeper).

use std::ffi::CString;
use std::fs::{File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::common::outside::{
    self, SmallDisk, Trace, can_trace, comm, go_on, is_root, stop, until_runs,
};
use crate::common::{
    AT_ONCE, Execd, Setup, assert_absent, contains, eventually, is_alive, left_out, log_of,
    log_path, output, send_signal, session_of,
};
use serde_json::{Value, json};

/// The pid of execd's keeper; None while there is none.
fn keeper(execd: &mut Execd) -> Option<i32> {
    let info = execd.result("server_info", json!({}));
    let pid = i32::try_from(info.get("keeper_pid")?.as_i64()?).ok()?;
    until_runs(pid, "sessions-log");
    Some(pid)
}

fn kill_keeper(execd: &mut Execd) -> i32 {
    let pid = keeper(execd).expect("there is a keeper");
    send_signal(pid, libc::SIGKILL);
    eventually("the keeper is gone", || !is_alive(pid));
    pid
}

/// A result tells of log trouble.
fn tells_trouble(result: &Value) -> bool {
    let failure = result["failure_message"].as_str().unwrap_or_default();
    result["log_complete"] == false && failure.starts_with("log write failed: ")
}

fn tells_no_trouble(result: &Value) {
    assert_absent(result, &["failure_message", "log_complete", "log_truncated"]);
}

/// Lines `n` to `m` as the commands of these tests print them.
fn numbers(from: u64, to: u64) -> Vec<u8> {
    (from..=to).flat_map(|n| format!("line {n}\n").into_bytes()).collect()
}

/// A shell loop that prints the numbers of the range that it reads from its stdin.
const PRINT_RANGES: &str = "echo up; while read a b; do i=$a; while [ $i -le $b ]; do \
                            echo line $i; i=$((i+1)); done; done";

fn printer(execd: &mut Execd, more: Value) -> u64 {
    execd.open_until_with(PRINT_RANGES, "up", crate::common::merged(json!({"shell": "sh"}), more))
}

/// Lets the printer print a range and takes all of it.
fn print(execd: &mut Execd, session: u64, from: u64, to: u64) {
    let chars = format!("{from} {to}\\n");
    execd.input_until(session, &chars, &format!("line {to}\n"));
}

// ---- Files ------------------------------------------------------------------------------

/// rule: architecture.md, The keeper: The log directory is 0700 and owned by the user; execd
///   creates it so
#[test]
fn logs_are_private_and_named_after_their_session() {
    for args in [&[][..], &["--no-keeper"]] {
        let mut execd = Execd::with(args, &[]);
        let first = execd.run("printf 'a\\0b\\377'");
        let second = execd.run("echo second");
        assert_eq!(log_of(&first), b"a\0b\xff", "unaltered: {args:?}");
        assert_eq!(log_of(&second), b"second\n");
        for (result, id) in [(&first, 1), (&second, 2)] {
            tells_no_trouble(result);
            let path = log_path(result);
            assert_eq!(path.parent(), Some(execd.log_dir().as_path()));
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
            let hex =
                name.strip_prefix(&format!("execd-{id}-")).and_then(|n| n.strip_suffix(".log"));
            let hex = hex.unwrap_or_else(|| panic!("{name}"));
            assert!(hex.len() == 8 && hex.bytes().all(|b| b.is_ascii_hexdigit()), "{name}");
            let facts = std::fs::symlink_metadata(&path).expect("it exists");
            assert!(facts.is_file());
            assert_eq!(facts.mode() & 0o7777, 0o600);
        }
        let facts = std::fs::symlink_metadata(execd.log_dir()).expect("it exists");
        assert!(facts.is_dir());
        assert_eq!(facts.mode() & 0o7777, 0o700);
    }
}

/// rule: architecture.md, The keeper: The log directory is 0700 and owned by the user; execd
///   creates it so
#[test]
fn modes_do_not_depend_on_the_umask() {
    for umask in [0, 0o777] {
        let mut execd = Setup::new(&[])
            .prepared(move || {
                // SAFETY: umask takes a number.
                unsafe { libc::umask(umask) };
            })
            .unwatched()
            .start();
        let result = execd.result("exec_command", json!({"cmd": "echo x"}));
        let mode = |path: &Path| std::fs::metadata(path).expect("it exists").mode() & 0o777;
        assert_eq!(mode(&execd.log_dir()), 0o700, "a strange umask does not lock execd out");
        if umask == 0 {
            assert_eq!(mode(&log_path(&result)), 0o600);
        }
    }
}

/// rule: architecture.md, The keeper: The file exists when the first reply or notification that
///   names it is written
#[test]
fn a_log_exists_when_the_first_line_that_names_it_is_written() {
    for args in [&[][..], &["--no-keeper"]] {
        let mut execd = Execd::with(args, &[]);
        for _ in 0..20 {
            let request = execd.start_request("exec_command", json!({"cmd": "exec sleep 300"}));
            execd.cancel(request);
            let mut named = execd.result_of(request);
            let session = session_of(&named);
            // No log is named before exec: a program that cannot start has none.
            eventually("a line names the log", || {
                if named["log_path"].is_null() {
                    named = execd.listed(session).expect("it is listed");
                }
                named["log_path"].is_string()
            });
            assert!(log_path(&named).exists(), "{args:?} {named}");
            execd.kill(session);
        }
    }
}

/// rule: protocol.md, Notifications: `progress` names the leader's pid and the log; no log is named
///   with `--no-log`
/// rule: protocol.md, Notifications: `session_started` has session_id, pid, command, tty, cwd,
///   log_path (absent with `--no-log`)
/// rule: architecture.md, The keeper: `--no-log`: no files at all
#[test]
fn without_logs_there_are_no_files_and_no_paths() {
    for args in [&["--no-log"][..], &["--no-log", "--no-keeper"]] {
        let mut execd = Execd::with(args, &[]);
        let result = execd.run("seq 1000");
        assert_absent(&result, &["log_path", "log_complete", "failure_message", "log_truncated"]);
        assert!(output(&result).ends_with("999\n1000\n"));
        let opened = execd.open_with("echo; exec sleep 300", json!({"stream": true}));
        assert_absent(&opened, &["log_path"]);
        for method in ["progress", "session_started"] {
            assert_absent(&execd.notification(method, |_| true), &["log_path"]);
        }
        let list = execd.peek();
        assert_absent(&list["sessions"][0], &["log_path", "failure_message"]);
        execd.kill(session_of(&opened));
        assert!(!execd.log_dir().exists(), "not even the directory");
    }
}

/// rule: architecture.md, The keeper: `--no-keeper`: logs are written inline
#[test]
fn without_a_keeper_logs_are_complete_too() {
    let mut execd = Execd::with(&["--no-keeper"], &[]);
    let result = execd.run("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done");
    tells_no_trouble(&result);
    assert_eq!(log_of(&result), numbers(0, 2_999));
    let big = execd.run("head -c 20000000 /dev/zero | tr '\\0' y");
    tells_no_trouble(&big);
    assert_eq!(log_of(&big).len(), 20_000_000);
    assert!(log_of(&big).iter().all(|byte| *byte == b'y'));
    let session = printer(&mut execd, json!({"tty": false}));
    print(&mut execd, session, 1, 50);
    let entry = execd.listed(session).expect("it runs");
    assert_eq!(log_of(&entry), [b"up\n".to_vec(), numbers(1, 50)].concat());
    assert!(outside::children(execd.pid()).iter().all(|(pid, _)| comm(*pid) != "sessions-log"));
}

/// rule: architecture.md, The keeper: Two execds share the directory
#[test]
fn two_execds_share_the_directory() {
    let dir = tempfile::tempdir().expect("a directory");
    let logs = dir.path().join("shared");
    let at = logs.to_str().expect("UTF-8");
    let mut one = Execd::with(&["--log-dir", at], &[]);
    one.ping();
    let mut two = Execd::with(&["--log-dir", at], &[]);
    for round in 0..10 {
        let of_one = one.run(&format!("echo one {round}"));
        let of_two = two.run(&format!("echo two {round}"));
        assert_ne!(log_path(&of_one), log_path(&of_two));
        assert_eq!(log_of(&of_one), format!("one {round}\n").as_bytes());
        assert_eq!(log_of(&of_two), format!("two {round}\n").as_bytes());
    }
    let names = std::fs::read_dir(&logs).expect("it exists").flatten();
    let logs = names.filter(|one| one.file_name().to_string_lossy().ends_with(".log"));
    assert_eq!(logs.count(), 20);
}

/// `TMPDIR=` (empty) made the current directory the place of logs.
/// rule: architecture.md, The keeper: An empty `TMPDIR` is none: logs and prompts go to /tmp
#[test]
fn an_empty_tmpdir_is_none() {
    let mut execd = Execd::with(&[], &[("TMPDIR", "")]);
    let result = execd.run("pwd; ls");
    assert!(!contains(&log_of(&result), b"pi-execd-"), "nothing is made here: {result}");
    let path = log_path(&result);
    assert!(path.starts_with("/tmp"), "{result}");
    std::fs::remove_file(path).expect("ours");
}

/// The pages of a flood were put into the log before they were read. A child that reads its own
/// output back took them in between: the log was longer than what was told, and nothing said so.
/// rule: architecture.md, The keeper: The log has the bytes that execd read, also of a child that
///   reads its own output back
#[test]
fn a_child_that_reads_its_own_output_back_has_a_log_of_what_is_left() {
    if !can_trace() {
        return;
    }
    let mut execd = Execd::start();
    let delay = ["-e", "trace=tee", "-e", "inject=tee:delay_exit=2000"];
    let trace = Trace::attach(execd.pid(), &delay);
    let cmd = "exec 3</proc/self/fd/1; (while :; do head -c 20000 <&3; done >/dev/null 2>&1) & \
               head -c 8000000 /dev/zero | tr '\\0' x; kill $!; wait $! 2>/dev/null; exit 0";
    let result = execd.run(cmd);
    trace.detach();
    tells_no_trouble(&result);
    assert_eq!(log_of(&result).len() as u64, result["output_bytes_total"].as_u64().expect("told"));
}

// ---- A directory that is refused --------------------------------------------------------

fn start_with_log_dir(path: &Path) -> Output {
    crate::common::execd_command()
        .arg("--log-dir")
        .arg(path)
        .stdin(Stdio::null())
        .output()
        .expect("execd starts")
}

fn is_refused(path: &Path, reason: &str) {
    let done = start_with_log_dir(path);
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(125), "{}: {said}", path.display());
    assert!(said.starts_with("execd: cannot start: log directory "), "{said}");
    assert!(said.contains(reason), "{reason:?} in {said}");
    assert!(said.contains("--log-dir") && said.contains("--no-log"), "what to do: {said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(done.stdout.is_empty());
}

/// rule: architecture.md, The keeper: When `--log-dir` is otherwise, execd refuses to start with
///   the reason
#[test]
fn a_log_directory_that_is_not_private_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    std::fs::create_dir(at("real")).expect("a directory");
    std::fs::set_permissions(at("real"), Permissions::from_mode(0o700)).expect("ours");
    std::os::unix::fs::symlink(at("real"), at("link")).expect("a link");
    is_refused(&at("link"), "symbolic link");
    is_refused(&at("link").join(""), "symbolic link");
    std::fs::write(at("file"), "x").expect("a file");
    is_refused(&at("file"), "no directory");
    for mode in [0o755, 0o770, 0o701, 0o1777] {
        let path = at(&format!("open-{mode:o}"));
        std::fs::create_dir(&path).expect("a directory");
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("ours");
        is_refused(&path, "others may enter it");
        assert_eq!(std::fs::metadata(&path).expect("there").mode() & 0o7777, mode, "left as it is");
    }
    is_refused(&at("absent/deeper"), "parent does not exist");
    // What is private is taken, and made where it is absent.
    assert!(start_with_log_dir(&at("real")).status.success());
    assert!(start_with_log_dir(&at("fresh")).status.success());
    assert_eq!(std::fs::metadata(at("fresh")).expect("made").mode() & 0o7777, 0o700);
}

/// rule: architecture.md, The keeper: When `--log-dir` is otherwise, execd refuses to start with
///   the reason
#[test]
fn a_log_directory_of_another_user_is_refused() {
    if !is_root() {
        return left_out("only root can give a directory away");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("foreign");
    std::fs::create_dir(&path).expect("a directory");
    std::fs::set_permissions(&path, Permissions::from_mode(0o700)).expect("ours");
    std::os::unix::fs::chown(&path, Some(12_345), None).expect("root may");
    is_refused(&path, "belongs to uid 12345");
}

/// Whoever made /tmp/pi-execd-UID first stopped every execd of that user.
/// rule: architecture.md, The keeper: Where others hold the default log directory a fresh one is
///   used, said once and remembered
#[test]
fn where_others_hold_the_default_directory_a_fresh_one_is_used_and_remembered() {
    a_fresh_one_is_used_again(false);
}

/// Whoever had made the directory of the control sockets as well let each execd make a log
/// directory of its own: there was no place to remember the last one in.
/// rule: architecture.md, The keeper: Where others hold the default log directory a fresh one is
///   used, said once and remembered
#[test]
fn where_nothing_can_be_remembered_the_fresh_directory_is_found_again() {
    a_fresh_one_is_used_again(true);
}

fn a_fresh_one_is_used_again(sockets_held_too: bool) {
    let dir = tempfile::tempdir().expect("a directory");
    let tmp = dir.path().canonicalize().expect("it is there");
    // SAFETY: getuid only returns a number.
    let name = format!("pi-execd-{}", unsafe { libc::getuid() });
    std::os::unix::fs::symlink("/tmp", tmp.join(&name)).expect("a link");
    if sockets_held_too {
        std::os::unix::fs::symlink("/tmp", tmp.join("execd")).expect("a link");
        // Neither of these is one of ours.
        std::fs::create_dir(tmp.join(format!("{name}-logs"))).expect("made");
        std::os::unix::fs::symlink("/tmp", tmp.join(format!("{name}-00000000"))).expect("a link");
    }
    let at = tmp.to_str().expect("UTF-8");
    let envs = [("TMPDIR", at), ("XDG_RUNTIME_DIR", at)];
    let mut used = Vec::new();
    for (args, told) in [(&[][..], true), (&[], false), (&["--no-keeper"], false)] {
        let mut execd = Execd::with(args, &envs);
        let result = execd.run("echo x");
        assert_eq!(log_of(&result), b"x\n");
        tells_no_trouble(&result);
        used.push(log_path(&result).parent().expect("a directory").to_owned());
        let mut said = String::new();
        let tells = |said: &str| said.contains("is a symbolic link") && said.contains("logs go to");
        // Who reads stderr for the test may be later than the answer.
        eventually("stderr tells it", || {
            said = execd.stderr();
            !told || tells(&said)
        });
        assert_eq!(tells(&said), told, "{said}");
        // That there is no control socket is another thing, and said by itself.
        let of_logs = said.lines().filter(|line| !line.contains("nobody can attach"));
        assert_eq!(of_logs.count(), usize::from(told), "{said}");
    }
    let fresh = used.remove(0);
    assert!(used.iter().all(|one| *one == fresh), "{used:?}");
    assert!(fresh.starts_with(&tmp) && fresh != tmp.join(&name), "{}", fresh.display());
    assert_eq!(std::fs::metadata(&fresh).expect("made").mode() & 0o7777, 0o700);
    // One that is gone is followed by another.
    std::fs::remove_dir_all(&fresh).expect("ours");
    let result = Execd::with(&[], &envs).run("echo y");
    assert_eq!(log_of(&result), b"y\n");
}

/// rule: architecture.md, The keeper: Where there is none at all the reason is told and commands
///   run
#[test]
fn without_any_log_directory_the_reason_is_told_and_commands_run() {
    for args in [&[][..], &["--no-keeper"]] {
        let mut execd = Execd::with(args, &[("TMPDIR", "/nonexistent/for/execd")]);
        let result = execd.run("echo shown");
        assert_eq!(result["output"], "shown\n");
        assert_absent(&result, &["log_path"]);
        assert!(tells_trouble(&result), "{result}");
        let failure = result["failure_message"].as_str().expect("a reason");
        assert!(failure.contains("parent does not exist"), "{failure}");
        eventually("stderr has the reason", || {
            execd.stderr().contains("no logs are written: log directory")
        });
    }
}

/// execd made and opened its log directory itself: where the disk stood still, it was deaf.
/// rule: architecture.md, The keeper: The first request is answered although the log disk stands
///   still
#[test]
fn the_first_request_is_answered_although_the_disk_of_the_logs_never_answers() {
    if !can_mount_alone() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let tmp = dir.path().join("hangs");
    std::fs::create_dir(&tmp).expect("a directory");
    let at = tmp.to_str().expect("UTF-8").to_owned();
    let logs = format!("{at}/logs");
    for args in [&["--no-socket"][..], &["--no-socket", "--log-dir", &logs]] {
        let path = CString::new(at.clone()).expect("no NUL");
        let envs = [("TMPDIR", at.as_str())];
        let mut execd =
            Setup::new(args).envs(&envs).prepared(move || mount_silent(&path)).unwatched().start();
        execd.result("ping", json!({}));
        let result = execd.result("exec_command", json!({"cmd": "echo shown"}));
        assert_eq!(result["output"], "shown\n");
        assert_eq!(result["log_complete"], false, "{result}");
        assert_absent(&result, &["log_path"]);
    }
}

/// Whether a mount namespace and FUSE can be had; says so where not.
fn can_mount_alone() -> bool {
    let unshared = Command::new("unshare").args(["-m", "true"]).output();
    let can = is_root()
        && unshared.is_ok_and(|done| done.status.success())
        && File::options().read(true).write(true).open("/dev/fuse").is_ok();
    if !can {
        left_out("a mount namespace of one's own and /dev/fuse need root");
    }
    can
}

/// Mounts a file system that never answers, for this process and its children. It ends with the
/// process, which inherits the only descriptor behind it.
fn mount_silent(at: &std::ffi::CStr) {
    let mut options = *b"fd=00,rootmode=40000,user_id=0,group_id=0\0";
    // SAFETY: system calls with strings that end in NUL.
    unsafe {
        let none = std::ptr::null();
        libc::unshare(libc::CLONE_NEWNS);
        libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, none.cast());
        let fd = libc::dup2(libc::open(c"/dev/fuse".as_ptr(), libc::O_RDWR), 97);
        (options[3], options[4]) = (b'9', b'7');
        let (kind, flags) = (c"fuse".as_ptr(), libc::MS_NOSUID);
        let mounted = libc::mount(kind, at.as_ptr(), kind, flags, options.as_ptr().cast());
        if fd != 97 || mounted < 0 {
            libc::_exit(99);
        }
    }
}

// ---- Old logs ---------------------------------------------------------------------------

/// rule: architecture.md, The keeper: `--log-keep-days`: execd deletes its own older logs, nothing
///   else, and none of an execd that keeps its logs
/// rule: architecture.md, The keeper: `--log-keep-days 0`: execd deletes no logs; in pi as
///   `PI_EXECD_LOG_KEEP_DAYS` says
#[test]
fn only_old_logs_of_ours_are_deleted_at_the_start() {
    let dir = tempfile::tempdir().expect("a directory");
    let logs = dir.path().join("logs");
    let at = logs.to_str().expect("UTF-8");
    // Each execd starts without the stamp and is left to look once: the writer of one that has
    // ended may look after its end, and would take the place of the next one.
    let started = |args: &[&str]| {
        if let Err(error) = std::fs::remove_file(logs.join(".execd-cleaned")) {
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
        }
        let all: Vec<&str> = ["--log-dir", at].iter().chain(args).copied().collect();
        let mut execd = Execd::with(&all, &[]);
        eventually(&format!("{args:?}: it has looked"), || {
            execd.run("true");
            logs.join(".execd-cleaned").exists()
        });
        execd
    };
    // One execd holds an old log of its own.
    let mut holder = started(&[]);
    let held = log_path(&holder.open("exec sleep 300"));
    let aged = |path: &Path, days: u64| {
        let file = File::options().write(true).open(path).expect("ours");
        let age = Duration::from_secs(days * 86_400);
        file.set_modified(SystemTime::now() - age).expect("ours");
    };
    let make = |name: &str, days: u64| {
        let path = logs.join(name);
        std::fs::write(&path, "x").expect("a file");
        aged(&path, days);
        path
    };
    aged(&held, 30);
    let mut gone = vec![make("execd-1-0123abcd.log", 8), make("execd-999-ffffffff.log", 400)];
    let mut kept = vec![
        held.clone(),
        make("execd-2-0123abcd.log", 6),
        make("execd-3-0123ABCD.log", 30),
        make("execd-4-0123abc.log", 30),
        make("execd-5-0123abcde.log", 30),
        make("execd--0123abcd.log", 30),
        make("execd-x-0123abcd.log", 30),
        make("execd-6-0123abcd.log.gz", 30),
        make("xexecd-7-0123abcd.log", 30),
        make("notes.txt", 30),
    ];
    std::fs::create_dir(logs.join("execd-8-0123abcd.log")).expect("a directory");
    kept.push(logs.join("execd-8-0123abcd.log"));
    let outside = make("keep-me", 30);
    std::os::unix::fs::symlink(&outside, logs.join("execd-9-0123abcd.log")).expect("a link");
    kept.extend([outside, logs.join("execd-9-0123abcd.log")]);
    if is_root() {
        let foreign = make("execd-10-0123abcd.log", 30);
        std::os::unix::fs::chown(&foreign, Some(12_345), None).expect("root may");
        kept.push(foreign);
    }
    // What an execd wrote that keeps its logs stays, whoever cleans later.
    for more in [&[][..], &["--no-keeper"]] {
        let all: Vec<&str> = ["--log-keep-days", "0"].iter().chain(more).copied().collect();
        let mut keeps = started(&all);
        let for_good = log_path(&keeps.run("echo for good"));
        aged(&for_good, 400);
        kept.push(for_good);
    }
    let there = |path: &Path| path.symlink_metadata().is_ok();
    assert!(gone.iter().all(|path| there(path)), "0 keeps for ever");
    let look = |args: &[&str], gone: &[std::path::PathBuf]| {
        let mut execd = started(args);
        for path in gone {
            eventually(&format!("{args:?}: {} is gone", path.display()), || {
                execd.run("true");
                !there(path)
            });
        }
    };
    look(&[], &gone);
    gone.push(logs.join("execd-2-0123abcd.log"));
    kept.retain(|path| !gone.contains(path));
    look(&["--log-keep-days", "5", "--no-keeper"], &gone);
    for path in &kept {
        assert!(there(path), "{} is not ours to delete", path.display());
    }
    let listed = holder.peek();
    assert_eq!(log_path(&listed["sessions"][0]), held);
}

// ---- Limits -----------------------------------------------------------------------------

/// rule: architecture.md, The keeper: `--log-max-bytes`: the log ends with a line saying so,
///   replies carry `log_truncated: true`
#[test]
fn a_log_ends_at_its_limit_and_says_so() {
    for extra in [&[][..], &["--no-keeper"]] {
        let limit = 1_000;
        let args: Vec<&str> = ["--log-max-bytes", "1000"].iter().chain(extra).copied().collect();
        let mut execd = Execd::with(&args, &[]);
        for bytes in [limit - 1, limit, limit + 1, limit * 50] {
            let result = execd.run(&format!("head -c {bytes} /dev/zero | tr '\\0' z"));
            let log = log_of(&result);
            let kept = bytes.min(limit);
            assert!(log[..kept].iter().all(|byte| *byte == b'z'), "{bytes}");
            assert_absent(&result, &["failure_message", "log_complete"]);
            if bytes <= limit {
                assert_eq!(log.len(), bytes, "{args:?} {bytes}");
                assert_absent(&result, &["log_truncated"]);
            } else {
                let said = String::from_utf8_lossy(&log[kept..]).into_owned();
                assert_eq!(said, "\n[the log ends here: --log-max-bytes is 1000]\n", "{bytes}");
                assert_eq!(result["log_truncated"], true, "{result}");
            }
            assert_eq!(result["output_bytes_total"], bytes);
        }
        // In pieces: over the limit by a byte, and told in every later reply.
        let session = session_of(&execd.open_with("exec cat", json!({"shell": "sh"})));
        for (piece, truncated) in
            [("a".repeat(999), false), ("b".into(), false), ("c".into(), true), ("d".into(), true)]
        {
            execd.input_until(session, &piece, &piece);
            let settled = || {
                let entry = execd
                    .write(json!({"session_id": session, "yield_until": crate::common::LONG_AGO}));
                entry["log_truncated"] == true
            };
            if truncated {
                eventually("the reply tells", settled);
            }
        }
        let end = execd.write(json!({"session_id": session, "eof": true, "yield_time_ms": 30_000}));
        assert_eq!(end["log_truncated"], true, "{end}");
        assert!(log_of(&end).starts_with(&[vec![b'a'; 999], vec![b'b']].concat()));
    }
}

/// A text named the log as the full output, and window_exited said nothing of its trouble.
/// rule: architecture.md, The keeper: A text that names a log says what it lacks; none is named
///   that has nothing
#[test]
fn texts_and_ends_of_windows_say_what_the_log_that_they_name_lacks() {
    let mut execd = Execd::with(&["--log-max-bytes", "1000"], &[]);
    let shown = execd.result("bash", json!({"command": "seq 1 100000"}));
    let text = shown["text"].as_str().expect("text");
    assert!(text.contains(".log (587895 bytes are missing from it)]"), "{text}");
    let unified = execd.run("seq 1 100000");
    let footer = unified["footer"].as_str().expect("a footer");
    assert!(footer.ends_with(".log (587895 bytes are missing from it)]"), "{footer}");
    let header = unified["header"].as_str().expect("a header");
    assert!(header.contains("the log ended at --log-max-bytes, without 587895 bytes"), "{header}");
    execd.result("bash", json!({"command": "seq 1 100000", "background": true}));
    let end = execd.notification("window_exited", |_| true);
    assert_eq!(end["log_truncated"], true, "{end}");
    let text = end["text"].as_str().expect("text");
    assert!(text.contains(".log (587895 bytes are missing from it)]"), "{text}");
}

/// The answer waits 250 ms for the log and no longer. It named an empty file as the full output.
/// rule: architecture.md, The keeper: A text that names a log says what it lacks; none is named
///   that has nothing
#[test]
fn a_text_that_does_not_wait_longer_for_the_log_says_that_it_may_lack_some() {
    let mut execd = Execd::start();
    let pid = keeper(&mut execd).expect("a keeper");
    let command = "until [ -e go ]; do sleep 0.01; done; seq 1 100000";
    let run = execd.start_request("bash", json!({"command": command}));
    // The log is there, and execd knows it.
    eventually("it has a log", || {
        execd.result("list_sessions", json!({}))["sessions"][0]["log_path"].is_string()
    });
    stop(pid);
    std::fs::write(execd.file("go"), "").expect("it can be written");
    let shown = execd.result_of(run);
    go_on(pid);
    let text = shown["text"].as_str().expect("text");
    assert!(text.ends_with(".log (it may not have all of it yet)]"), "{text}");
}

/// rule: architecture.md, The keeper: `--log-max-bytes`: the log ends with a line saying so,
///   replies carry `log_truncated: true`
#[test]
fn a_limit_of_nothing_logs_nothing() {
    let mut execd = Execd::with(&["--log-max-bytes", "0"], &[]);
    let silent = execd.run("true");
    assert_eq!(log_of(&silent), b"");
    tells_no_trouble(&silent);
    let result = execd.run("echo x");
    assert_eq!(result["log_truncated"], true);
    assert!(!contains(&log_of(&result), b"x\n["), "{result}");
}

// ---- Trouble ----------------------------------------------------------------------------

/// Runs a command whose log cannot be created; gives its result.
fn without_a_log(execd: &mut Execd, errno: &str) -> Value {
    let result = execd.run("echo shown all the same; exit 5");
    assert_eq!(
        (&result["output"], &result["exit_code"]),
        (&json!("shown all the same\n"), &json!(5))
    );
    assert_absent(&result, &["log_path"]);
    assert!(tells_trouble(&result), "{result}");
    let failure = result["failure_message"].as_str().expect("a reason");
    assert!(failure.contains(errno), "{errno} in {failure}");
    result
}

/// rule: architecture.md, The keeper: A log that cannot be created: the same, with `log_path`
///   absent
#[test]
fn a_log_that_cannot_be_created_has_no_path_and_the_reason_is_told() {
    for args in [&[][..], &["--no-keeper"]] {
        let mut execd = Execd::with(args, &[]);
        execd.run("true");
        // Nothing that execd may take for its directory, or make in its place.
        std::fs::remove_dir_all(execd.log_dir()).expect("ours");
        std::fs::write(execd.log_dir(), "a file").expect("ours");
        without_a_log(&mut execd, "ENOENT");
        let opened = execd.open("exec sleep 300");
        assert!(tells_trouble(&opened), "{opened}");
        let entry = execd.listed(session_of(&opened)).expect("it runs");
        assert!(entry["failure_message"].as_str().is_some_and(|text| text.contains("ENOENT")));
        let killed = execd.kill(session_of(&opened));
        assert_eq!(killed["killed"], true);
        assert!(tells_trouble(&killed), "{killed}");
    }
}

/// rule: architecture.md, The keeper: A log directory that was moved or deleted is made anew; no
///   path that is gone is named
#[test]
fn a_log_directory_that_was_deleted_is_made_anew() {
    for args in [&[][..], &["--no-keeper"]] {
        let mut execd = Execd::with(args, &[]);
        let session = printer(&mut execd, json!({}));
        std::fs::remove_dir_all(execd.log_dir()).expect("ours");
        let result = execd.run("echo anew");
        tells_no_trouble(&result);
        assert_eq!(log_of(&result), b"anew\n");
        // The log of before is gone: it is not named until it has begun anew.
        eventually("it is not named", || {
            execd.listed(session).expect("it runs").get("log_path").is_none()
        });
        print(&mut execd, session, 1, 3);
        let end = execd.write(json!({"session_id": session, "eof": true, "yield_time_ms": 30_000}));
        assert!(tells_trouble(&end), "{end}");
        let log = String::from_utf8_lossy(&log_of(&end)).into_owned();
        assert!(log.ends_with("line 3\n") && log.contains("3 bytes were not logged]\n"), "{log}");
    }
}

/// `seq` on a full disk gave exit 0, `Full output: PATH`, and a file of 0 bytes.
/// rule: architecture.md, The keeper: A text that names a log says what it lacks; none is named
///   that has nothing
#[test]
fn on_a_full_disk_no_text_names_a_log_that_has_nothing() {
    let Some(disk) = SmallDisk::mount(1_024) else { return };
    let logs = disk.path().join("logs");
    let at = logs.to_str().expect("UTF-8");
    for extra in [&[][..], &["--no-keeper"]] {
        let args: Vec<&str> = ["--log-dir", at].iter().chain(extra).copied().collect();
        let mut execd = Execd::with(&args, &[]);
        execd.ping();
        let filler = disk.path().join("filler");
        let _ = std::fs::write(&filler, vec![b'f'; 1_024 * 1024]);
        let told = "588895 bytes of the output are missing from the log";
        let result = execd.run("seq 1 100000");
        let failure = result["failure_message"].as_str().unwrap_or_default();
        assert!(tells_trouble(&result) && failure.contains(told), "{failure}");
        assert_absent(&result, &["log_path"]);
        assert!(!result["footer"].as_str().unwrap_or_default().contains("Full output"), "{result}");
        let bash = execd.result("bash", json!({"command": "seq 1 100000"}));
        assert!(!bash["text"].as_str().unwrap_or_default().contains("Full output"), "{bash}");
        assert!(bash["failure_message"].as_str().is_some_and(|text| text.contains(told)), "{bash}");
        std::fs::remove_file(&filler).expect("ours");
        drop(execd);
        std::fs::remove_dir_all(&logs).expect("ours");
    }
}

/// rule: architecture.md, The keeper: A log that cannot be created: the same, with `log_path`
///   absent
#[test]
fn a_log_directory_that_may_not_be_written_is_log_trouble() {
    if !is_root() {
        return left_out("root is needed to become a user for whom modes count");
    }
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).expect("ours");
    let binary = dir.path().join("execd");
    std::fs::copy(crate::common::EXECD, &binary).expect("a copy that the user can reach");
    let tmp = dir.path().join("tmp");
    std::fs::create_dir(&tmp).expect("a directory");
    std::os::unix::fs::chown(&tmp, Some(12_345), None).expect("root may");
    let wrapper =
        ["setpriv", "--reuid=12345", "--clear-groups", "sh", "-c", "cd $TMPDIR && exec $0"];
    if crate::common::missing("setpriv") {
        return;
    }
    let wrapper: Vec<&str> = wrapper.into_iter().chain([binary.to_str().expect("UTF-8")]).collect();
    let at = tmp.to_str().expect("UTF-8");
    let mut execd =
        Setup::behind(&wrapper, &["--no-socket"]).envs(&[("TMPDIR", at)]).unwatched().start();
    execd.result("exec_command", json!({"cmd": "true"}));
    let logs = tmp.join("pi-execd-12345");
    std::fs::set_permissions(&logs, Permissions::from_mode(0o500)).expect("root may");
    let result = execd.result("exec_command", json!({"cmd": "echo on"}));
    assert_eq!(result["output"], "on\n");
    assert!(tells_trouble(&result), "{result}");
    assert!(result["failure_message"].as_str().is_some_and(|text| text.contains("EACCES")));
    std::fs::set_permissions(&logs, Permissions::from_mode(0o700)).expect("root may");
    let result = execd.result("exec_command", json!({"cmd": "echo on"}));
    tells_no_trouble(&result);
}

/// rule: architecture.md, The keeper: Log trouble: the session goes on, missing bytes are counted,
///   each reply says so
#[test]
fn an_error_of_the_disk_is_told_counted_and_got_over() {
    if !can_trace() {
        return;
    }
    let mut execd = Execd::start();
    let session = printer(&mut execd, json!({}));
    print(&mut execd, session, 1, 10);
    let pid = keeper(&mut execd).expect("a keeper");
    let entry = execd.listed(session).expect("it runs");
    let path = log_path(&entry);
    let at = path.to_str().expect("UTF-8").to_owned();
    let trace =
        Trace::attach(pid, &["-P", &at, "-e", "trace=write", "-e", "inject=write:error=EIO"]);
    print(&mut execd, session, 11, 20);
    eventually("the reply tells", || tells_trouble(&execd.poll_now(session)));
    let told = execd.poll_now(session);
    let failure = told["failure_message"].as_str().expect("a reason");
    assert!(failure.contains("EIO: "), "{failure}");
    assert!(trace.detach().contains("(INJECTED)"));
    let end = execd.write(
        json!({"session_id": session, "chars": "21 30\\n", "eof": true, "yield_time_ms": 30_000}),
    );
    assert!(tells_trouble(&end), "told in each reply from then on: {end}");
    let missing = numbers(11, 20).len();
    let expected = [
        b"up\n".to_vec(),
        numbers(1, 10),
        format!("\n[{missing} bytes were not logged]\n").into_bytes(),
        numbers(21, 30),
    ];
    assert_eq!(String::from_utf8_lossy(&log_of(&end)), String::from_utf8_lossy(&expected.concat()));
}

trait Unanswered {
    /// A request without an id: carried out, never answered.
    fn notification_only(&mut self, method: &str, params: Value);
}

impl Unanswered for Execd {
    fn notification_only(&mut self, method: &str, params: Value) {
        let line = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.send_raw(format!("{line}\n").as_bytes());
    }
}

/// rule: architecture.md, The keeper: Logging stops when the file system has too little free
#[test]
fn logging_stops_before_the_file_system_is_full() {
    // Checked at the first byte: less than 5 % of the disk are free then.
    let Some(disk) = SmallDisk::mount(4_096) else { return };
    let logs = disk.path().join("logs");
    let mut execd = Execd::with(&["--log-dir", logs.to_str().expect("UTF-8")], &[]);
    let session = printer(&mut execd, json!({}));
    std::fs::write(disk.path().join("filler"), vec![b'f'; 3_950 * 1024]).expect("room");
    let result = execd.run("echo hello");
    assert_eq!(result["log_truncated"], true, "{result}");
    assert!(tells_trouble(&result), "{result}");
    assert!(
        String::from_utf8_lossy(&log_of(&result))
            .contains("[the log ends here: less than 1 GiB and 5 %")
    );
    assert_eq!(output(&result), "hello\n");
    execd.kill(session);
}

// ---- A keeper that is gone --------------------------------------------------------------

/// rule: architecture.md, The keeper: A new keeper is told all live sessions and appends after a
///   line `[N bytes were not logged]`
#[test]
fn a_keeper_that_dies_under_load_leaves_a_log_that_counts_what_it_lacks() {
    let mut execd = Execd::start();
    // The most of it comes when the log writer stands still, however fast the machine is.
    let gate = execd.file("gate");
    let cmd = format!(
        "i=1; while [ $i -le 5000 ]; do echo line $i; i=$((i+1)); done
         until [ -e {} ]; do sleep 0.01; done
         while [ $i -le 150000 ]; do echo line $i; i=$((i+1)); done",
        gate.display()
    );
    let sessions: Vec<u64> =
        (0..2).map(|_| session_of(&execd.open_with(&cmd, json!({"shell": "sh"})))).collect();
    let logged =
        |execd: &mut Execd, session: &u64| log_of(&execd.listed(*session).expect("it is there"));
    eventually("both are being logged", || {
        sessions.iter().all(|s| logged(&mut execd, s).len() > 10_000)
    });
    // Stopped first, so that something is on its way when it dies.
    let pid = keeper(&mut execd).expect("a keeper");
    stop(pid);
    let handed = |execd: &mut Execd| {
        let info = execd.result("server_info", json!({}));
        info["counters"]["bytes_logged"].as_u64().expect("a number")
    };
    let before = handed(&mut execd);
    std::fs::write(gate, "").expect("the gate is opened");
    eventually("the pipe is being filled", || handed(&mut execd) > before + 200_000);
    send_signal(pid, libc::SIGKILL);
    let mut gaps = 0;
    for session in sessions {
        let end = execd.until_exit(session);
        assert_eq!(end["exit_code"], 0, "no child is blocked or killed for it: {end}");
        assert!(output(&end).ends_with("line 150000"), "memory has the end");
        let lost = counted_gaps(&log_of(&end), &numbers(1, 150_000));
        assert_eq!(lost > 0, tells_trouble(&end), "what is missing is told, and only that: {end}");
        gaps += lost;
    }
    assert!(gaps > 0, "what was in the pipe is lost");
}

/// The log is the stream, but for gaps, each with a line that says how many bytes it is long.
fn counted_gaps(log: &[u8], stream: &[u8]) -> usize {
    let (mut log, mut stream, mut gaps) = (log, stream, 0);
    loop {
        let same = log.iter().zip(stream).take_while(|(a, b)| a == b).count();
        (log, stream) = (&log[same..], &stream[same..]);
        if log.is_empty() && stream.is_empty() {
            return gaps;
        }
        // A newline of the stream may be taken for the one before the line.
        let text = String::from_utf8_lossy(&log[..log.len().min(80)]).into_owned();
        let line = text.strip_prefix('\n').unwrap_or(&text);
        let taken = usize::from(line.len() == text.len());
        let count = line
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(" bytes were not logged]\n"))
            .unwrap_or_else(|| {
                panic!(
                    "neither stream nor a counted gap: {text:?} for {:?}",
                    String::from_utf8_lossy(&stream[..stream.len().min(40)])
                )
            });
        let bytes: usize = count.0.parse().expect("a number");
        log = &log[text.len() - line.len() + count.0.len() + "[ bytes were not logged]\n".len()..];
        stream = &stream[bytes - taken..];
        gaps += 1;
    }
}

/// execd's log writer is killed and cannot be started again until this is dropped.
struct NoWriter {
    _trace: Trace,
}

impl NoWriter {
    fn of(execd: &mut Execd) -> Self {
        // One that is being started just now would fail to be.
        eventually("there is one", || keeper(execd).is_some());
        let failing = "inject=execve:error=ENOMEM";
        let only = ["-f", "-P", "/proc/self/exe", "-e", "trace=execve", "-e", failing];
        let trace = Trace::attach(execd.pid(), &only);
        kill_keeper(execd);
        eventually("execd knows", || tells_trouble(&execd.run("true")));
        Self { _trace: trace }
    }
}

/// rule: architecture.md, The keeper: Keeper gone: no child is blocked or killed for it
#[test]
fn a_writer_that_cannot_be_started_blocks_nobody_and_is_back_when_it_can() {
    if !can_trace() {
        return;
    }
    let mut execd = Execd::start();
    let session = printer(&mut execd, json!({}));
    print(&mut execd, session, 1, 5);
    let none = NoWriter::of(&mut execd);
    // Without one: trouble in every reply, and nobody is held up by it.
    let before = Instant::now();
    let result = execd.run("echo shown; exit 4");
    assert_eq!((&result["output"], &result["exit_code"]), (&json!("shown\n"), &json!(4)));
    assert!(tells_trouble(&result), "{result}");
    assert_absent(&result, &["log_path"]);
    print(&mut execd, session, 6, 10);
    let told = execd.poll_now(session);
    assert!(tells_trouble(&told), "{told}");
    assert!(log_path(&told).exists(), "the log of before is still named");
    let cmd = "read x; head -c 5000000 /dev/zero | tr '\\0' w; echo; echo end; exec cat";
    let big = session_of(&execd.open_with(cmd, json!({"raw_output": true})));
    let read =
        |execd: &mut Execd| execd.listed(big).expect("it runs")["output_bytes_total"].as_u64();
    execd.notification_only("write_stdin", json!({"session_id": big, "chars": "\\n"}));
    eventually("no child is blocked for it", || read(&mut execd) == Some(5_000_005));
    assert!(before.elapsed() < AT_ONCE);
    // Whatever else takes its time here: waiting for an ack, each would take 250 ms at least.
    let mut ends = (0..20).map(|_| execd.run("true")["effective_wait_ms"].as_u64().expect("told"));
    assert!(ends.any(|waited_ms| waited_ms < 250), "an end is answered at once");
    let list = execd.peek();
    let entry = &list["sessions"][0];
    assert!(
        entry["failure_message"].as_str().is_some_and(|t| t.contains("log writer is gone")),
        "{entry}"
    );
    let killed = execd.kill(big);
    assert_eq!(killed["killed"], true, "{killed}");
    drop(none);
    eventually("there is another", || keeper(&mut execd).is_some());
    print(&mut execd, session, 11, 15);
    let end = execd.write(json!({"session_id": session, "eof": true, "yield_time_ms": 30_000}));
    assert!(tells_trouble(&end), "{end}");
    let whole = [b"up\n".to_vec(), numbers(1, 15)].concat();
    assert_eq!(counted_gaps(&log_of(&end), &whole), 1);
}

/// Once it had died a second time there was none for up to a minute.
/// rule: architecture.md, The keeper: Guard or log writer gone: restarted at once, less often the
///   younger it dies, and told of all sessions
#[test]
fn a_writer_that_is_killed_again_and_again_is_back_at_once() {
    let mut execd = Execd::start();
    let session = printer(&mut execd, json!({}));
    let started = Instant::now();
    for round in 1..=4 {
        print(&mut execd, session, round, round);
        eventually("the log has it all", || {
            let log = log_of(&execd.listed(session).expect("it runs"));
            log.ends_with(&numbers(round, round))
        });
        let old = kill_keeper(&mut execd);
        eventually("there is another", || keeper(&mut execd).is_some_and(|pid| pid != old));
        let result = execd.run("echo logged");
        tells_no_trouble(&result);
        assert_eq!((round, log_of(&result)), (round, b"logged\n".to_vec()));
    }
    assert!(started.elapsed() < AT_ONCE);
    print(&mut execd, session, 5, 5);
    let end = execd.write(json!({"session_id": session, "eof": true, "yield_time_ms": 30_000}));
    tells_no_trouble(&end);
    assert_eq!(log_of(&end), [b"up\n".to_vec(), numbers(1, 5)].concat());
}

// ---- A disk that stalls -----------------------------------------------------------------

/// rule: architecture.md, The keeper: A reply that says exited or points at the log comes 250 ms
///   later at the latest, with `log_complete: false`
/// rule: architecture.md, The keeper: The loop never waits for a disk
#[test]
fn while_the_keeper_stands_still_execd_does_not() {
    let mut execd = Execd::start();
    let quiet = printer(&mut execd, json!({}));
    let pid = keeper(&mut execd).expect("a keeper");
    // More than the pipe (1 MiB), the queue (1 MiB) and the child's pipe take together.
    let bytes = 8_000_000_u64;
    let cmd = format!("read x; head -c {bytes} /dev/zero | tr '\\0' s; echo done >&2");
    let loud = session_of(&execd.open_with(&cmd, json!({"shell": "sh"})));
    stop(pid);
    execd.notification_only("write_stdin", json!({"session_id": loud, "chars": "\\n"}));
    let mut last = 0;
    eventually("its output pauses at the bounds", || {
        let total = execd.listed(loud).expect("it runs")["output_bytes_total"].as_u64();
        let total = total.expect("a number");
        std::thread::sleep(Duration::from_millis(20));
        let paused = total == last && total > 0;
        last = total;
        paused
    });
    assert!(last < 4 * 1024 * 1024, "bounded: {last}");
    assert_eq!(execd.listed(loud).expect("it runs")["running"], true, "its child waits");
    // Others go on; the log holds up nobody but by 250 ms at an exit.
    print(&mut execd, quiet, 1, 100);
    for _ in 0..50 {
        let sent = Instant::now();
        execd.ping();
        assert!(sent.elapsed() < Duration::from_secs(2), "a ping waits for no disk");
    }
    let result = execd.run("echo short");
    assert_eq!(result["log_complete"], false, "{result}");
    assert_absent(&result, &["failure_message"]);
    let waited = result["effective_wait_ms"].as_u64().expect("told");
    assert!(waited >= 250, "the reply waited for its log: {waited} ms");
    let slow = execd.result("server_info", json!({}));
    assert!(slow["counters"]["log_write_stalls"].as_u64() >= Some(1), "{slow}");
    go_on(pid);
    let end = execd.until_exit(loud);
    assert_eq!(end["output_bytes_total"], bytes + 5);
    assert_absent(&end, &["failure_message"]);
    let log = log_of(&end);
    assert_eq!(log.len() as u64, bytes + 5, "nothing is lost");
    assert!(log.ends_with(b"done\n") && log[..8_000_000].iter().all(|byte| *byte == b's'));
    let whole = execd.write(json!({"session_id": quiet, "eof": true, "yield_time_ms": 30_000}));
    tells_no_trouble(&whole);
    assert_eq!(log_of(&whole), [b"up\n".to_vec(), numbers(1, 100)].concat());
}

/// rule: architecture.md, The keeper: The keeper has its own session, ignores INT, TERM, HUP and
///   holds none of execd's fds 0 to 2
#[test]
fn a_stopped_keeper_does_not_keep_execd_from_ending() {
    let mut execd = Execd::start();
    let session = printer(&mut execd, json!({}));
    print(&mut execd, session, 1, 5);
    let pid = keeper(&mut execd).expect("a keeper");
    stop(pid);
    print(&mut execd, session, 6, 9);
    execd.close_stdin();
    let started = Instant::now();
    assert!(execd.wait_exit().success());
    assert!(started.elapsed() < AT_ONCE);
    // Both end only when nobody holds them any more.
    execd.all_lines();
    assert_eq!(execd.whole_stderr(), "");
    assert!(execd.session_processes().is_empty());
    // What was handed over is still written.
    let path = execd.log_files().pop().expect("its log");
    go_on(pid);
    eventually("the keeper has ended", || !is_alive(pid));
    let log = std::fs::read(path).expect("it exists");
    assert_eq!(log, [b"up\n".to_vec(), numbers(1, 9)].concat());
}

#[test]
fn a_keeper_that_is_started_by_hand_says_that_it_is_not_for_that() {
    let started = crate::common::execd_command()
        .arg("--keeper")
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    assert_eq!(started.status.code(), Some(2));
    let said = String::from_utf8_lossy(&started.stderr);
    assert!(said.contains("is for execd itself") && said.lines().count() == 1, "{said}");
}

#[test]
fn when_the_keepers_pipes_bring_nonsense_it_ends_and_execd_gets_another() {
    let mut execd = Execd::start();
    let session = printer(&mut execd, json!({}));
    let pid = keeper(&mut execd).expect("a keeper");
    // execd's end of the log pipe, opened anew: bytes that are no frame.
    let fds = outside::fds(execd.pid());
    let theirs = outside::fds(pid)[&0].clone();
    let ours = fds.iter().find(|(_, target)| **target == theirs).expect("its other end");
    let path = CString::new(format!("/proc/{}/fd/{}", execd.pid(), ours.0)).expect("no NUL");
    let mut pipe = File::options()
        .write(true)
        .open(path.to_str().expect("UTF-8"))
        .expect("a pipe can be opened anew");
    std::io::Write::write_all(&mut pipe, &[0xff; 64]).expect("the keeper reads");
    drop(pipe);
    eventually("the keeper has ended", || !is_alive(pid));
    eventually("there is another keeper", || keeper(&mut execd).is_some_and(|new| new != pid));
    print(&mut execd, session, 1, 3);
    let end = execd.write(json!({"session_id": session, "eof": true, "yield_time_ms": 30_000}));
    tells_no_trouble(&end);
    assert_eq!(log_of(&end), [b"up\n".to_vec(), numbers(1, 3)].concat());
}
