//! File systems that never answer: `workdir`, `shell` or a place on PATH on one of them holds up
//! nothing but its own request (architecture.md, Starting a child).
//!
//! The file system is FUSE without anybody behind it, in a mount namespace of execd's own.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::outside::{fds, is_root, members};
use crate::common::{Execd, Setup, eventually, is_alive, left_out, pid_of, send_signal};
use serde_json::{Value, json};
use tempfile::TempDir;

/// FUSE's numbers: the first request, and an error.
const FUSE_INIT: u32 = 26;
const EIO: i32 = 5;

struct Beside {
    execd: Execd,
    at: TempDir,
    device: File,
    ended: Arc<AtomicBool>,
}

/// An execd in a mount namespace of its own; `None`, and a word why, where that can't be.
fn start(args: &[&str]) -> Option<Execd> {
    let unshared = Command::new("unshare").args(["-m", "true"]).output();
    if !is_root() || !unshared.is_ok_and(|done| done.status.success()) {
        left_out("a mount namespace needs root");
        return None;
    }
    let execd = Setup::new(args)
        .prepared(|| {
            // SAFETY: plain calls with literals.
            unsafe {
                libc::unshare(libc::CLONE_NEWNS);
                let flags = libc::MS_REC | libc::MS_PRIVATE;
                libc::mount(
                    std::ptr::null(),
                    c"/".as_ptr(),
                    std::ptr::null(),
                    flags,
                    std::ptr::null(),
                );
            }
        })
        .unwatched()
        .start();
    Some(execd)
}

fn beside(args: &[&str]) -> Option<Beside> {
    let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    let Ok(device) = device else {
        left_out("/dev/fuse cannot be opened");
        return None;
    };
    let mut execd = start(args)?;
    execd.ping();
    let at = tempfile::Builder::new().prefix("execd-hang-").tempdir().expect("a directory");
    mount_in(execd.pid(), &device, &at);
    let ended = Arc::new(AtomicBool::new(false));
    let beside = Beside { execd, at, device, ended };
    beside.answer_with(None);
    Some(beside)
}

fn mount_in(pid: i32, device: &File, at: &TempDir) {
    let space = File::open(format!("/proc/{pid}/ns/mnt")).expect("it runs");
    let path = CString::new(at.path().to_str().expect("UTF-8")).expect("no NUL");
    let fd = device.as_raw_fd();
    let options = format!("fd={fd},rootmode=40000,user_id=0,group_id=0");
    let options = CString::new(options).expect("no NUL");
    let mut command = Command::new("true");
    let name = c"execd-test".as_ptr() as usize;
    // SAFETY: system calls with strings that were made before.
    unsafe {
        command.pre_exec(move || {
            let entered = libc::setns(space.as_raw_fd(), libc::CLONE_NEWNS);
            let name = name as *const libc::c_char;
            let data = options.as_ptr().cast();
            if entered < 0
                || libc::mount(name, path.as_ptr(), c"fuse".as_ptr(), libc::MS_NOSUID, data) < 0
            {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        });
    }
    assert!(command.status().expect("it mounts").success());
}

impl Beside {
    /// Answers the greeting and nothing more; from then on, with an errno, everything.
    fn answer_with(&self, errno: Option<i32>) {
        let mut device = self.device.try_clone().expect("a descriptor");
        let ended = Arc::clone(&self.ended);
        let answer = move || {
            let mut request = vec![0; 256 * 1024];
            while !ended.load(Ordering::SeqCst) {
                let mut entry =
                    libc::pollfd { fd: device.as_raw_fd(), events: libc::POLLIN, revents: 0 };
                // SAFETY: one live pollfd.
                if unsafe { libc::poll(&raw mut entry, 1, 50) } <= 0 {
                    continue;
                }
                let Ok(16..) = device.read(&mut request) else { return };
                let opcode = u32::from_ne_bytes([request[4], request[5], request[6], request[7]]);
                let init = [7_u32, 31, 0, 0, 0, 4096, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
                let (error, body) = match (opcode, errno) {
                    (FUSE_INIT, _) => (0, init.iter().flat_map(|n| n.to_ne_bytes()).collect()),
                    (_, Some(errno)) => (-errno, vec![]),
                    (_, None) => return,
                };
                let length = u32::try_from(16 + body.len()).expect("short");
                let mut reply = length.to_ne_bytes().to_vec();
                reply.extend(error.to_ne_bytes());
                reply.extend(&request[8..16]);
                reply.extend(body);
                // A request that was given up needs no answer.
                let _ = device.write(&reply);
                if errno.is_none() {
                    return;
                }
            }
        };
        let answering = thread::spawn(answer);
        if errno.is_none() {
            answering.join().expect("the greeting is answered");
        }
    }

    fn path(&self, below: &str) -> String {
        self.at.path().join(below).to_str().expect("UTF-8").to_owned()
    }

    /// Sends a request whose command hangs on its way; everybody else is served.
    fn hang(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.execd.start_request(method, params);
        self.execd.ping();
        let other = self.execd.result("exec_command", json!({"cmd": "echo other"}));
        assert_eq!(other["output"], "other\n", "{method} {params}");
        id
    }

    /// The same; then it is cancelled, and its session, which goes on, is killed.
    fn hang_and_kill(&mut self, method: &str, params: &Value) {
        let id = self.hang(method, params);
        let cancelled = self.execd.result("cancel", json!({"id": id}));
        assert_eq!(cancelled["cancelled"], true, "{method} {params}: it waits");
        let reply = self.execd.reply(id);
        let Some(session) = reply["result"]["session_id"].as_u64() else {
            // What bash and agent_execute cancel is ended.
            let ended = reply["result"]["status"] == "aborted"
                || reply["result"]["finish_reason"] == "cancelled";
            assert!(ended, "{method} {params}: {reply}");
            return;
        };
        let pid = i32::try_from(reply["result"]["pid"].as_i64().expect("a pid")).expect("a pid");
        assert!(is_alive(pid), "it is a process like any other");
        let killed = self.execd.result("kill_session", json!({"session_id": session}));
        assert_eq!(killed["killed"], true, "{method} {params}: {killed}");
        assert!(members(pid).is_empty());
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
    }
}

/// rule: architecture.md, Starting a child: A workdir, shell or place on PATH that never answers
///   holds up its own request only
#[test]
fn whatever_path_hangs_only_its_own_request_waits() {
    let Some(mut here) = beside(&[]) else { return };
    let (far, safe) = (here.path("x"), here.execd.file("link"));
    std::os::unix::fs::symlink(&far, &safe).expect("a link");
    let (by_link, path) =
        (safe.to_str().expect("UTF-8").to_owned(), format!("{far}:/usr/bin:/bin"));
    for params in [
        json!({"cmd": "true", "workdir": far}),
        json!({"cmd": "true", "workdir": by_link}),
        json!({"cmd": "true", "workdir": "link/y"}),
        json!({"cmd": "true", "shell": here.path("bash")}),
        json!({"cmd": "true", "env": {"PATH": path}}),
        json!({"cmd": "true", "workdir": far, "tty": true}),
    ] {
        here.hang_and_kill("exec_command", &params);
    }
    let cwd = json!({"command": "true", "context": {"cwd": far}});
    here.hang_and_kill("bash", &cwd);
    let run = json!({"model": "a/b", "prompt": "x", "pi_path": here.path("pi")});
    here.hang_and_kill("agent_execute", &run);
}

/// A start that hung on the way to its program kept copies of the pipes of all other sessions, so
/// that a command never saw the end of its input.
/// rule: architecture.md, Starting a child: A start that hangs holds no descriptor of another
///   session
#[test]
fn a_start_that_hangs_holds_no_pipe_of_another_session() {
    let Some(mut here) = beside(&[]) else { return };
    let cat = here.execd.open("cat; echo over");
    let id = here.hang("exec_command", &json!({"cmd": "true", "workdir": here.path("x")}));
    let eof = json!({"session_id": cat["session_id"], "eof": true, "yield_time_ms": 30_000});
    let ended = here.execd.result("write_stdin", eof);
    assert_eq!(ended["exit_code"], 0, "{ended}");
    here.execd.result("cancel", json!({"id": id}));
    let reply = here.execd.reply(id);
    let leader = pid_of(&reply["result"]);
    let open: Vec<i32> = fds(leader).into_keys().collect();
    assert_eq!(open, [0, 1, 2, 3], "its own three and the pipe for the outcome");
}

/// The middle of many pings is held to what is promised: a busy machine makes single ones late.
/// rule: architecture.md, Starting a child: While starts hang, a ping is answered within 5 ms
#[test]
fn pings_are_quick_while_starts_hang() {
    let Some(mut here) = beside(&[]) else { return };
    for at in 0..16 {
        let params = match at % 3 {
            0 => json!({"cmd": "true", "workdir": here.path("x")}),
            1 => json!({"cmd": "true", "shell": here.path("bash")}),
            _ => json!({"cmd": "true", "env": {"PATH": here.path("")}}),
        };
        here.execd.start_request("exec_command", params);
    }
    let mut took: Vec<Duration> = (0..101)
        .map(|_| {
            let begun = Instant::now();
            here.execd.ping();
            begun.elapsed()
        })
        .collect();
    took.sort_unstable();
    assert!(took[50] < Duration::from_millis(5), "{took:?}");
}

/// rule: architecture.md, Starting a child: A workdir, shell or place on PATH that never answers
///   holds up its own request only
#[test]
fn a_start_that_hangs_answers_at_its_deadline_and_goes_on() {
    let Some(mut here) = beside(&[]) else { return };
    let far = here.path("x");
    let id =
        here.hang("exec_command", &json!({"cmd": "true", "workdir": far, "yield_time_ms": 250}));
    let reply = here.execd.reply(id);
    assert_eq!(reply["result"]["wait_status"], "deadline_reached", "{reply}");
    let session = reply["result"]["session_id"].as_u64().expect("a session");
    let poll = here.execd.start_request("write_stdin", json!({"session_id": session}));
    let bash =
        here.execd.start_request("bash", json!({"command": "true", "context": {"cwd": far}}));
    let job = here.execd.start_request("bash_stream", json!({"command": "true", "workdir": far}));
    let shell = here.path("bash");
    let other = here.execd.start_request("exec_command", json!({"cmd": "true", "shell": shell}));
    let run = json!({"model": "a/b", "prompt": "x", "pi_path": here.path("pi")});
    let run = here.execd.start_request("agent_execute", &run);
    here.execd.result("ping", json!({}));
    // Now it answers: that it is broken.
    here.answer_with(Some(EIO));
    let workdir = format!("workdir {far}: EIO: I/O error");
    let spawn = format!("spawn {shell}: EIO: I/O error");
    for (id, why) in [(poll, &workdir), (other, &spawn)] {
        let reply = here.execd.reply(id);
        assert_eq!(reply["result"]["exit_code"], -1, "{reply}");
        assert_eq!(reply["result"]["failure_message"], **why, "{reply}");
    }
    let reply = here.execd.reply(bash);
    assert_eq!(reply["result"]["text"], workdir, "{reply}");
    assert_eq!(reply["result"]["exit_code"], -1, "{reply}");
    let reply = here.execd.reply(job);
    assert_eq!(reply["result"]["error"], workdir, "{reply}");
    assert_eq!(reply["result"]["status"], "failed", "{reply}");
    let reply = here.execd.reply(run);
    let error = reply["result"]["error"].as_str().unwrap_or_default();
    assert!(error.contains("EIO"), "{reply}");
}

/// rule: architecture.md, Starting a child: A workdir, shell or place on PATH that never answers
///   holds up its own request only
#[test]
fn a_start_that_hangs_holds_up_no_end() {
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        let Some(mut here) = beside(&[]) else { return };
        here.hang("exec_command", &json!({"cmd": "exec sleep 300"}));
        let id = here.hang("exec_command", &json!({"cmd": "true", "workdir": here.path("x")}));
        send_signal(here.execd.pid(), signal);
        let status = here.execd.wait_exit();
        if signal == libc::SIGTERM {
            assert_eq!(status.code(), Some(128 + signal));
            let reply = here.execd.reply(id);
            assert_eq!(reply["result"]["wait_status"], "shutting_down", "{reply}");
        }
        eventually("nothing of it is left", || here.execd.marked().is_empty());
    }
}
