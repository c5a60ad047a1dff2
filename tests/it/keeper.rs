//! The log files and who writes them: complete or honest about what is missing, whatever
//! happens to the disk or to the keeper (architecture.md, The keeper).

use std::ffi::CString;
use std::fs::{File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::common::outside::{
    self, SmallDisk, Trace, can_trace, comm, go_on, is_root, stop, until_runs,
};
use crate::common::{
    AT_ONCE, Execd, Setup, assert_absent, contains, eventually, go, is_alive, left_out, log_of,
    log_path, output, send_signal, session_of, until_file,
};
use crate::log_help::*;
use serde_json::{Value, json};

/// The pid of execd's keeper; None while there is none.
fn keeper(execd: &mut Execd) -> Option<i32> {
    let info = execd.result("server_info", json!({}));
    let pid = i32::try_from(info.get("keeper_pid")?.as_i64()?).ok()?;
    until_runs(pid, "sessions-log");
    Some(pid)
}

/// A result tells of log trouble.
fn tells_trouble(result: &Value) -> bool {
    let failure = result["failure_message"].as_str().unwrap_or_default();
    result["log_complete"] == false && failure.starts_with("log write failed: ")
}

fn tells_no_trouble(result: &Value) {
    assert_absent(result, &["failure_message", "log_complete", "log_truncated"]);
}

/// Who writes the logs: a process of its own, or execd.
const WRITERS: [&[&str]; 2] = [&[], &["--no-keeper"]];

// ---- Files ------------------------------------------------------------------------------

/// rule: architecture.md, The keeper: The log directory is 0700 and owned by the user; execd
///   creates it so
#[test]
fn logs_are_private_whatever_the_umask_and_named_after_their_session() {
    let with = |umask| {
        let prepare = move || {
            // SAFETY: umask takes a number.
            unsafe { libc::umask(umask) };
        };
        move |args| Setup::new(args).prepared(prepare).unwatched().start()
    };
    let mode = |path: &Path| std::fs::symlink_metadata(path).expect("it exists").mode();
    for args in WRITERS {
        let mut execd = with(0)(args);
        for (id, cmd, wanted) in
            [(1, "printf 'a\\0b\\377'", &b"a\0b\xff"[..]), (2, "echo x", b"x\n")]
        {
            let result = execd.run(cmd);
            assert_eq!(log_of(&result), wanted, "unaltered: {args:?}");
            tells_no_trouble(&result);
            let path = log_path(&result);
            assert_eq!(path.parent(), Some(execd.log_dir().as_path()));
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
            let hex = name.strip_prefix(&format!("execd-{id}-"));
            let hex =
                hex.and_then(|hex| hex.strip_suffix(".log")).unwrap_or_else(|| panic!("{name}"));
            assert!(hex.len() == 8 && hex.bytes().all(|b| b.is_ascii_hexdigit()), "{name}");
            assert_eq!(mode(&path), libc::S_IFREG | 0o600);
        }
        assert_eq!(mode(&execd.log_dir()), libc::S_IFDIR | 0o700);
        let is_writer = |(pid, _): &(i32, char)| comm(*pid) == "sessions-log";
        let writers = outside::children(execd.pid()).iter().filter(|one| is_writer(one)).count();
        assert_eq!(writers, usize::from(args.is_empty()), "{args:?}");
    }
    let mut execd = with(0o777)(&[]);
    execd.result("exec_command", json!({"cmd": "echo x"}));
    assert_eq!(mode(&execd.log_dir()) & 0o777, 0o700, "a strange umask does not lock execd out");
}

/// rule: architecture.md, The keeper: The file exists when the first reply or notification that
///   names it is written
#[test]
fn a_log_exists_when_the_first_line_that_names_it_is_written() {
    for args in WRITERS {
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

/// rule: architecture.md, The keeper: When `--log-dir` is otherwise, execd refuses to start with
///   the reason
#[test]
fn a_log_directory_that_is_not_private_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    let started = |path: &Path| {
        let mut command = crate::common::execd_command();
        command.arg("--log-dir").arg(path).stdin(Stdio::null()).output().expect("execd starts")
    };
    let made = |name: &str, mode: u32| {
        std::fs::create_dir(at(name)).expect("a directory");
        std::fs::set_permissions(at(name), Permissions::from_mode(mode)).expect("ours");
        at(name)
    };
    std::os::unix::fs::symlink(made("real", 0o700), at("link")).expect("a link");
    std::fs::write(at("file"), "x").expect("a file");
    let mut refused = vec![
        (at("link"), "symbolic link"),
        (at("link").join(""), "symbolic link"),
        (at("file"), "no directory"),
        (at("absent/deeper"), "parent does not exist"),
    ];
    let open = [0o755, 0o770, 0o701, 0o1777];
    refused.extend(open.map(|mode| (made(&format!("{mode:o}"), mode), "others may enter it")));
    if is_root() {
        std::os::unix::fs::chown(made("foreign", 0o700), Some(12_345), None).expect("root may");
        refused.push((at("foreign"), "belongs to uid 12345"));
    }
    for (path, reason) in refused {
        let done = started(&path);
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(125), "{}: {said}", path.display());
        assert!(said.starts_with("execd: cannot start: log directory "), "{said}");
        for part in [reason, "--log-dir", "--no-log"] {
            assert!(said.contains(part), "{part:?} in {said}");
        }
        assert!(said.lines().count() == 1 && done.stdout.is_empty(), "{said}");
    }
    let mode = |name: &str| std::fs::metadata(at(name)).expect("there").mode() & 0o7777;
    assert!(open.iter().all(|one| mode(&format!("{one:o}")) == *one), "left as they are");
    // What is private is taken, and made where it is absent.
    assert!(started(&at("real")).status.success() && started(&at("fresh")).status.success());
    assert_eq!(mode("fresh"), 0o700);
}

/// Whoever made /tmp/pi-execd-UID first stopped every execd of that user. Whoever had made the
/// directory of the control sockets as well let each execd make a log directory of its own: there
/// was no place to remember the last one in.
/// rule: architecture.md, The keeper: Where others hold the default log directory a fresh one is
///   used, said once and remembered
#[test]
fn where_others_hold_the_default_directory_a_fresh_one_is_used_again() {
    for sockets_held_too in [false, true] {
        a_fresh_one_is_used_again(sockets_held_too);
    }
}

fn a_fresh_one_is_used_again(sockets_held_too: bool) {
    let dir = tempfile::tempdir().expect("a directory");
    let tmp = dir.path().canonicalize().expect("it is there");
    // SAFETY: getuid only returns a number.
    let name = format!("pi-execd-{}", unsafe { libc::getuid() });
    let link = |name: &str| std::os::unix::fs::symlink("/tmp", tmp.join(name)).expect("a link");
    link(&name);
    if sockets_held_too {
        link("execd");
        // Neither of these is one of ours.
        std::fs::create_dir(tmp.join(format!("{name}-logs"))).expect("made");
        link(&format!("{name}-00000000"));
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
        let tells = |said: &str| said.contains("is a symbolic link") && said.contains("logs go to");
        // Who reads stderr for the test may be later than the answer.
        eventually("stderr tells it", || !told || tells(&execd.stderr()));
        let said = execd.stderr();
        // That there is no control socket is another thing, and said by itself.
        let of_logs = said.lines().filter(|line| !line.contains("nobody can attach"));
        assert_eq!((tells(&said), of_logs.count()), (told, usize::from(told)), "{said}");
    }
    let fresh = used.remove(0);
    assert!(used.iter().all(|one| *one == fresh), "{used:?}");
    assert!(fresh.starts_with(&tmp) && fresh != tmp.join(&name), "{}", fresh.display());
    assert_eq!(std::fs::metadata(&fresh).expect("made").mode() & 0o7777, 0o700);
    // One that is gone is followed by another.
    std::fs::remove_dir_all(&fresh).expect("ours");
    assert_eq!(log_of(&Execd::with(&[], &envs).run("echo y")), b"y\n");
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
        let _ = std::fs::remove_file(logs.join(".execd-cleaned"));
        let mut execd = Execd::with(&[&["--log-dir", at], args].concat(), &[]);
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
    let mut kept = vec![held, make("execd-2-0123abcd.log", 6)];
    // What an execd wrote that keeps its logs stays, whoever cleans later.
    for more in WRITERS {
        let mut keeps = started(&[&["--log-keep-days", "0"], more].concat());
        let for_good = log_path(&keeps.run("echo for good"));
        aged(&for_good, 400);
        kept.push(for_good);
    }
    let there = |path: &Path| path.symlink_metadata().is_ok();
    assert!(gone.iter().all(|path| there(path)), "0 keeps for ever");
    for (args, more) in [(&[][..], None), (&["--log-keep-days", "5", "--no-keeper"], Some(1))] {
        // By then six days are too old as well.
        gone.extend(more.map(|at| kept.remove(at)));
        let mut execd = started(args);
        for path in &gone {
            eventually(&format!("{args:?}: {} is gone", path.display()), || {
                execd.run("true");
                !there(path)
            });
        }
    }
    for path in &kept {
        assert!(there(path), "{} is not ours to delete", path.display());
    }
}

// ---- Limits -----------------------------------------------------------------------------

/// rule: architecture.md, The keeper: `--no-keeper`: logs are written inline
/// rule: architecture.md, The keeper: `--log-max-bytes`: the log ends with a line saying so,
///   replies carry `log_truncated: true`
#[test]
fn a_log_ends_at_its_limit_and_says_so() {
    for extra in WRITERS {
        let mut execd = Execd::with(&[&["--log-max-bytes", "1000"], extra].concat(), &[]);
        for bytes in [999, 1_000, 1_001, 50_000] {
            let result = execd.run(&format!("head -c {bytes} /dev/zero | tr '\\0' z"));
            let log = log_of(&result);
            let (kept, said) = log.split_at(bytes.min(1_000));
            assert!(kept.iter().all(|byte| *byte == b'z'), "{bytes}");
            assert_absent(&result, &["failure_message", "log_complete"]);
            let wanted = "\n[the log ends here: --log-max-bytes is 1000]\n";
            let wanted = if bytes <= 1_000 { "" } else { wanted };
            assert_eq!(String::from_utf8_lossy(said), wanted, "{extra:?} {bytes}");
            assert_eq!(result["log_truncated"] == true, bytes > 1_000, "{result}");
            assert_eq!(result["output_bytes_total"], bytes);
        }
        // In pieces: over the limit by a byte, and told in every later reply.
        let session = session_of(&execd.open_with("exec cat", json!({"shell": "sh"})));
        for (piece, truncated) in
            [(&*"a".repeat(999), false), ("b", false), ("c", true), ("d", true)]
        {
            execd.input_until(session, piece, piece);
            eventually("the reply tells", || {
                !truncated || execd.poll_now(session)["log_truncated"] == true
            });
        }
        let eof = json!({"session_id": session, "eof": true, "yield_time_ms": 30_000});
        let end = execd.write(eof);
        assert_eq!(end["log_truncated"], true, "{end}");
        assert!(log_of(&end).starts_with(&[vec![b'a'; 999], vec![b'b']].concat()));
    }
    // A limit of nothing.
    let mut execd = Execd::with(&["--log-max-bytes", "0"], &[]);
    let silent = execd.run("true");
    assert_eq!(log_of(&silent), b"");
    tells_no_trouble(&silent);
    let result = execd.run("echo x");
    assert_eq!(result["log_truncated"], true);
    assert!(!contains(&log_of(&result), b"x\n["), "{result}");
}

/// A text named the log as the full output, and window_exited said nothing of its trouble.
/// rule: architecture.md, The keeper: A text that names a log says what it lacks; none is named
///   that has nothing
#[test]
fn texts_and_ends_of_windows_say_what_the_log_that_they_name_lacks() {
    let mut execd = Execd::with(&["--log-max-bytes", "1000"], &[]);
    let lacks = |text: &Value| {
        let text = text.as_str().expect("a text");
        assert!(text.contains(".log (587895 bytes are missing from it)]"), "{text}");
    };
    lacks(&execd.result("bash", json!({"command": "seq 1 100000"}))["text"]);
    let unified = execd.run("seq 1 100000");
    lacks(&unified["footer"]);
    let header = unified["header"].as_str().expect("a header");
    assert!(header.contains("the log ended at --log-max-bytes, without 587895 bytes"), "{header}");
    execd.result("bash", json!({"command": "seq 1 100000", "background": true}));
    let end = execd.notification("window_exited", |_| true);
    assert_eq!(end["log_truncated"], true, "{end}");
    lacks(&end["text"]);
}

/// The answer waits 250 ms for the log and no longer. It named an empty file as the full output.
/// rule: architecture.md, The keeper: A text that names a log says what it lacks; none is named
///   that has nothing
#[test]
fn a_text_that_does_not_wait_longer_for_the_log_says_that_it_may_lack_some() {
    let mut execd = Execd::start();
    let pid = keeper(&mut execd).expect("a keeper");
    let command = format!("{}; seq 1 100000", until_file("go"));
    let run = execd.start_request("bash", json!({"command": command}));
    // The log is there, and execd knows it.
    eventually("it has a log", || execd.peek()["sessions"][0]["log_path"].is_string());
    stop(pid);
    go(&execd, "go");
    let shown = execd.result_of(run);
    go_on(pid);
    let text = shown["text"].as_str().expect("text");
    assert!(text.ends_with(".log (it may not have all of it yet)]"), "{text}");
}

// ---- Trouble ----------------------------------------------------------------------------

/// rule: architecture.md, The keeper: A log that cannot be created: the same, with `log_path`
///   absent
/// rule: architecture.md, The keeper: Where there is none at all the reason is told and commands
///   run
#[test]
fn a_log_that_cannot_be_created_has_no_path_and_the_reason_is_told() {
    let nowhere = &[("TMPDIR", "/nonexistent/for/execd")][..];
    for (args, envs, reason) in [
        (WRITERS[0], nowhere, "parent does not exist"),
        (WRITERS[1], nowhere, "parent does not exist"),
        (WRITERS[0], &[], "ENOENT"),
        (WRITERS[1], &[], "ENOENT"),
    ] {
        let mut execd = Execd::with(args, envs);
        if envs.is_empty() {
            execd.run("true");
            // Nothing that execd may take for its directory, or make in its place.
            std::fs::remove_dir_all(execd.log_dir()).expect("ours");
            std::fs::write(execd.log_dir(), "a file").expect("ours");
        }
        let result = execd.run("echo shown all the same; exit 5");
        assert_eq!((output(&result), &result["exit_code"]), ("shown all the same\n", &json!(5)));
        assert_absent(&result, &["log_path"]);
        let opened = execd.open("exec sleep 300");
        let entry = execd.listed(session_of(&opened)).expect("it runs");
        let killed = execd.kill(session_of(&opened));
        for told in [&result, &opened, &entry, &killed] {
            let failure = told["failure_message"].as_str().unwrap_or_default();
            assert!(
                failure.starts_with("log write failed: ") && failure.contains(reason),
                "{told}"
            );
        }
        assert!([&result, &opened, &killed].iter().all(|told| tells_trouble(told)));
        eventually("stderr has the reason", || {
            envs.is_empty() || execd.stderr().contains("no logs are written: log directory")
        });
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
    for extra in WRITERS {
        let mut execd = Execd::with(&[&["--log-dir", at], extra].concat(), &[]);
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

// ---- A keeper that is gone --------------------------------------------------------------

/// rule: architecture.md, The keeper: A new keeper is told all live sessions and appends after a
///   line `[N bytes were not logged]`
#[test]
fn a_keeper_that_dies_under_load_leaves_a_log_that_counts_what_it_lacks() {
    let mut execd = Execd::start();
    // The most of it comes when the log writer stands still, however fast the machine is.
    let print = "do printf '%07d\\n' $i; i=$((i+1)); done";
    let to = |last: u64| format!("while [ $i -le {last} ]; {print}");
    let cmd = format!("i=1; {}; {}; {}", to(5_000), until_file("gate"), to(150_000));
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
    go(&execd, "gate");
    eventually("the pipe is being filled", || handed(&mut execd) > before + 200_000);
    send_signal(pid, libc::SIGKILL);
    let mut gaps = 0;
    for session in sessions {
        let end = execd.until_exit(session);
        assert_eq!(end["exit_code"], 0, "no child is blocked or killed for it: {end}");
        assert!(output(&end).ends_with("0150000"), "memory has the end");
        let lost = counted_gaps(&log_of(&end), &lines(1, 150_000));
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
        let count =
            line.strip_prefix('[').and_then(|rest| rest.split_once(" bytes were not logged]\n"));
        let (count, _) = count.unwrap_or_else(|| panic!("no stream and no counted gap: {text:?}"));
        let bytes: usize = count.parse().expect("a number");
        log = &log[text.len() - line.len() + count.len() + "[ bytes were not logged]\n".len()..];
        stream = &stream[bytes - taken..];
        gaps += 1;
    }
}

/// rule: architecture.md, The keeper: Keeper gone: no child is blocked or killed for it
#[test]
fn a_writer_that_cannot_be_started_blocks_nobody_and_is_back_when_it_can() {
    if !can_trace() {
        return;
    }
    let mut execd = Execd::start();
    let mut printer = Printer::start(&mut execd);
    printer.print(&mut execd, 5);
    let failing = "inject=execve:error=ENOMEM";
    let only = ["-f", "-P", "/proc/self/exe", "-e", "trace=execve", "-e", failing];
    let trace = Trace::attach(execd.pid(), &only);
    let old = execd.keeper();
    send_signal(old, libc::SIGKILL);
    eventually("the keeper is gone", || !is_alive(old));
    eventually("execd knows", || tells_trouble(&execd.run("true")));
    // Without one: trouble in every reply, and nobody is held up by it.
    let before = Instant::now();
    let result = execd.run("echo shown; exit 4");
    assert_eq!((&result["output"], &result["exit_code"]), (&json!("shown\n"), &json!(4)));
    assert!(tells_trouble(&result), "{result}");
    assert_absent(&result, &["log_path"]);
    printer.print(&mut execd, 5);
    let told = execd.poll_now(printer.session);
    assert!(tells_trouble(&told), "{told}");
    assert!(log_path(&told).exists(), "the log of before is still named");
    let cmd = "read x; head -c 5000000 /dev/zero | tr '\\0' w; echo; echo end; exec cat";
    let big = session_of(&execd.open_with(cmd, json!({"raw_output": true})));
    execd.start_request("write_stdin", json!({"session_id": big, "chars": "\\n"}));
    eventually("no child is blocked for it", || {
        execd.listed(big).expect("it runs")["output_bytes_total"] == 5_000_005
    });
    assert!(before.elapsed() < AT_ONCE);
    // Whatever else takes its time here: waiting for an ack, each would take 250 ms at least.
    let mut ends = (0..20).map(|_| execd.run("true")["effective_wait_ms"].as_u64().expect("told"));
    assert!(ends.any(|waited_ms| waited_ms < 250), "an end is answered at once");
    let entry = execd.listed(printer.session).expect("it runs");
    let failure = entry["failure_message"].as_str().unwrap_or_default();
    assert!(failure.contains("log writer is gone"), "{entry}");
    drop(trace);
    eventually("there is another", || keeper(&mut execd).is_some());
    printer.print(&mut execd, 5);
    let end = printer.end(&mut execd);
    assert!(tells_trouble(&end), "{end}");
    assert_eq!(counted_gaps(&log_of(&end), &printer.wrote), 1);
}

/// Once it had died a second time there was none for up to a minute.
/// rule: architecture.md, The keeper: Guard or log writer gone: restarted at once, less often the
///   younger it dies, and told of all sessions
#[test]
fn a_writer_that_is_killed_or_reads_nonsense_again_and_again_is_back_at_once() {
    let mut execd = Execd::start();
    let mut printer = Printer::start(&mut execd);
    let started = Instant::now();
    for round in 1..=4 {
        printer.print(&mut execd, 1);
        printer.until_logged(&mut execd);
        let old = keeper(&mut execd).expect("there is a keeper");
        if round < 4 {
            send_signal(old, libc::SIGKILL);
        } else {
            // execd's end of the log pipe, opened anew: bytes that are no frame.
            let theirs = outside::fds(old)[&0].clone();
            let fds = outside::fds(execd.pid());
            let ours = fds.iter().find(|(_, target)| **target == theirs).expect("its other end");
            let path = format!("/proc/{}/fd/{}", execd.pid(), ours.0);
            let mut pipe = File::options().write(true).open(path).expect("a pipe opens anew");
            std::io::Write::write_all(&mut pipe, &[0xff; 64]).expect("the keeper reads");
        }
        eventually("the keeper is gone", || !is_alive(old));
        eventually("there is another", || keeper(&mut execd).is_some_and(|pid| pid != old));
        let result = execd.run("echo logged");
        tells_no_trouble(&result);
        assert_eq!((round, log_of(&result)), (round, b"logged\n".to_vec()));
    }
    assert!(started.elapsed() < AT_ONCE);
    printer.print(&mut execd, 1);
    let end = printer.end(&mut execd);
    tells_no_trouble(&end);
    assert_eq!(log_of(&end), printer.wrote);
}

// ---- A disk that stalls -----------------------------------------------------------------

/// rule: architecture.md, The keeper: A reply that says exited or points at the log comes 250 ms
///   later at the latest, with `log_complete: false`
/// rule: architecture.md, The keeper: The loop never waits for a disk
#[test]
fn while_the_keeper_stands_still_execd_does_not() {
    let mut execd = Execd::start();
    let mut quiet = Printer::start(&mut execd);
    let pid = keeper(&mut execd).expect("a keeper");
    // More than the pipe (1 MiB), the queue (1 MiB) and the child's pipe take together.
    let bytes = 8_000_000_u64;
    let cmd = format!("read x; head -c {bytes} /dev/zero | tr '\\0' s; echo done >&2");
    let loud = session_of(&execd.open_with(&cmd, json!({"shell": "sh"})));
    stop(pid);
    execd.start_request("write_stdin", json!({"session_id": loud, "chars": "\\n"}));
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
    quiet.print(&mut execd, 100);
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
    let ended = execd.until_exit(loud);
    assert_eq!(ended["output_bytes_total"], bytes + 5);
    assert_absent(&ended, &["failure_message"]);
    let log = log_of(&ended);
    assert_eq!(log.len() as u64, bytes + 5, "nothing is lost");
    assert!(log.ends_with(b"done\n") && log[..8_000_000].iter().all(|byte| *byte == b's'));
    let whole = quiet.end(&mut execd);
    tells_no_trouble(&whole);
    assert_eq!(log_of(&whole), quiet.wrote);
}

/// rule: architecture.md, The keeper: The keeper has its own session, ignores INT, TERM, HUP and
///   holds none of execd's fds 0 to 2
#[test]
fn a_stopped_keeper_does_not_keep_execd_from_ending() {
    let mut execd = Execd::start();
    let mut printer = Printer::start(&mut execd);
    printer.print(&mut execd, 5);
    let pid = keeper(&mut execd).expect("a keeper");
    stop(pid);
    printer.print(&mut execd, 4);
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
    let more = log.strip_prefix(printer.wrote.as_slice());
    assert!(more.is_some_and(|more| b"done\n".starts_with(more)), "{log:?}");
}
