//! What the tests of the stream family share: jobs, their replies and chunks,
//! and a clock that a test moves forward. Included beside the harness of `common`.
#![allow(dead_code)]

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::common::{Execd, LONG_AGO, assert_fields, eventually, merged, missing, until_logged};

// ---- Jobs -------------------------------------------------------------------------------

/// Runs a command to its end.
pub fn run(execd: &mut Execd, command: &str) -> Value {
    run_with(execd, command, json!({}))
}

/// Runs a command to its end, with more params.
pub fn run_with(execd: &mut Execd, command: &str, more: Value) -> Value {
    let params = merged(json!({"command": command, "yieldMs": 120_000}), more);
    let result = execd.result("bash_stream", params);
    assert_ne!(result["status"], "running", "{command} should have ended: {result}");
    result
}

/// Sends bash_stream; gives the request's id and the session's. The request goes on waiting.
pub fn begin(execd: &mut Execd, command: &str, more: Value) -> (u64, u64) {
    let params = merged(json!({"command": command, "yieldMs": 120_000}), more);
    let request = execd.start_request("bash_stream", params);
    let started = execd.notification("session_started", |_| true);
    (request, started["session_id"].as_u64().expect("an id"))
}

/// Starts a job that goes on; its first call is cancelled. Gives the running form.
pub fn open(execd: &mut Execd, command: &str) -> Value {
    open_with(execd, command, json!({}))
}

/// As [`open`], with more params.
pub fn open_with(execd: &mut Execd, command: &str, more: Value) -> Value {
    // On a busy machine the cancel may come after looks have found that it waits for input.
    let more = merged(json!({"onImpossible": "wait"}), more);
    let (request, _) = begin(execd, command, more);
    assert!(execd.cancel(request), "{command} should go on");
    let result = execd.result_of(request);
    assert_eq!(result["status"], "running", "{command} should go on: {result}");
    result
}

/// Starts a job and waits until it has printed `text`, which nobody has been told then.
pub fn open_until(execd: &mut Execd, command: &str, text: &str) -> Value {
    let result = open(execd, command);
    until_printed(&result, text);
    result
}

/// A poll of what is there now.
pub fn poll(execd: &mut Execd, session: u64) -> Value {
    poll_with(execd, session, json!({}))
}

/// poll_process with more params.
pub fn poll_with(execd: &mut Execd, session: u64, more: Value) -> Value {
    execd.result("poll_process", merged(json!({"sessionId": session}), more))
}

/// Polls until the job is over; gives its final form.
pub fn until_over(execd: &mut Execd, session: u64) -> Value {
    let mut last = Value::Null;
    eventually(&format!("job {session} is over"), || {
        last = poll_with(execd, session, json!({"maxDrainMs": 20_000}));
        last["status"] != "running"
    });
    last
}

/// kill_process with its default signal.
pub fn kill(execd: &mut Execd, session: u64) -> Value {
    execd.result("kill_process", json!({"sessionId": session}))
}

/// A page of a log.
pub fn page(execd: &mut Execd, session: u64, more: Value) -> Value {
    execd.result("get_process_log", merged(json!({"sessionId": session}), more))
}

/// The rows of list_processes.
pub fn rows(execd: &mut Execd) -> Vec<Value> {
    let list = execd.result("list_processes", json!({}));
    match list.get("forgotten") {
        Some(_) => assert_fields(&list, &["processes", "forgotten", "keptMax", "keptMs"]),
        None => assert_fields(&list, &["processes"]),
    }
    list["processes"].as_array().expect("an array").clone()
}

/// The row of one session.
pub fn row(execd: &mut Execd, session: u64) -> Option<Value> {
    rows(execd).into_iter().find(|row| row["sessionId"] == session)
}

/// The session ids of list_processes, in its order.
pub fn listed_ids(execd: &mut Execd) -> Vec<u64> {
    rows(execd).iter().map(id_of).collect()
}

/// What unified-exec has not read of a session yet, without waiting.
pub fn unified_poll(execd: &mut Execd, session: u64) -> Value {
    execd.write(json!({"session_id": session, "yield_until": LONG_AGO}))
}

// ---- Reading replies --------------------------------------------------------------------

/// The fields of a command that has ended by itself.
pub const ENDED: [&str; 10] = [
    "status",
    "sessionId",
    "pid",
    "startedAt",
    "exitCode",
    "stdout",
    "stderr",
    "aggregated",
    "durationMs",
    "logPath",
];

/// The fields of one that a signal ended, and more.
pub fn killed_and(more: &[&'static str]) -> Vec<&'static str> {
    let fields = ENDED.into_iter().filter(|field| *field != "exitCode");
    fields.chain(["signal", "killedBy"]).chain(more.iter().copied()).collect()
}

/// The id of a job.
pub fn id_of(result: &Value) -> u64 {
    result["sessionId"].as_u64().unwrap_or_else(|| panic!("no sessionId in {result}"))
}

/// A text of a reply or a notification.
pub fn text<'a>(result: &'a Value, field: &str) -> &'a str {
    result[field].as_str().unwrap_or_else(|| panic!("no {field} in {result}"))
}

/// A number of a reply or a notification.
pub fn number(result: &Value, field: &str) -> u64 {
    result[field].as_u64().unwrap_or_else(|| panic!("no {field} in {result}"))
}

/// The log that a reply of the stream family names.
pub fn log_file(result: &Value) -> PathBuf {
    PathBuf::from(text(result, "logPath"))
}

/// The bytes of that log.
pub fn logged(result: &Value) -> Vec<u8> {
    std::fs::read(log_file(result)).expect("the log exists when a reply names it")
}

/// Waits until the log of a job holds `part`.
pub fn until_printed(result: &Value, part: &str) {
    until_logged(&json!({"log_path": result["logPath"]}), part);
}

// ---- Chunks -----------------------------------------------------------------------------

/// The next live chunk of a request.
pub fn next_chunk(execd: &mut Execd, request: u64) -> Value {
    execd.notification("tool_execution_output", |chunk| chunk["request_id"] == request)
}

/// All live chunks of a request until now, in order.
pub fn chunks_of(execd: &mut Execd, request: u64) -> Vec<Value> {
    execd.told_of("tool_execution_output", request)
}

/// The text of the chunks of one stream.
pub fn joined(chunks: &[Value], stream: &str) -> String {
    let of_it = chunks.iter().filter(|chunk| chunk["stream"] == stream);
    of_it.map(|chunk| text(chunk, "chunk")).collect()
}

// ---- A clock that a test moves ----------------------------------------------------------

/// The monotonic clock of execd, and of no command that it starts, plus so many nanoseconds as a
/// file says.
const CLOCK_SOURCE: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static volatile long long *ahead_ns;
__attribute__((constructor)) static void start(void) {
    const char *path = getenv("EXECD_TEST_CLOCK");
    if (!path || getenv("EXECD_SESSION_ID")) return;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    void *page = mmap(0, 8, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED) ahead_ns = page;
}
int clock_gettime(clockid_t clock, struct timespec *time) {
    long failed = syscall(SYS_clock_gettime, clock, time);
    if (failed || clock != CLOCK_MONOTONIC || !ahead_ns) return (int)failed;
    long long ns = time->tv_nsec + *ahead_ns;
    time->tv_sec += ns / 1000000000LL;
    time->tv_nsec = ns % 1000000000LL;
    return 0;
}
"#;

/// The library that changes the clock: compiled once for all tests that use it, into the directory
/// that cargo keeps for their files.
fn clock_library() -> PathBuf {
    let mut hasher = DefaultHasher::new();
    CLOCK_SOURCE.hash(&mut hasher);
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let library = place.join(format!("clock-{:016x}.so", hasher.finish()));
    if !library.exists() {
        let dir = tempfile::tempdir_in(place).expect("a directory");
        let (source, made) = (dir.path().join("clock.c"), dir.path().join("clock.so"));
        std::fs::write(&source, CLOCK_SOURCE).expect("a file");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&made).arg(&source);
        let done = compiler.output().expect("cc starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        std::fs::rename(made, &library).expect("the same file system");
    }
    library
}

/// A clock that a test moves forward, so that it need not wait for minutes: execd asks the C
/// library what time it is, and a library that is loaded before that answers.
///
/// The kernel's timers do not know of it: what falls due by it is seen at execd's next turn,
/// which any request makes.
pub struct Clock {
    dir: TempDir,
    ahead: File,
}

impl Clock {
    /// A clock that is right so far; none where there is no C compiler.
    pub fn new() -> Option<Self> {
        if missing("cc") {
            return None;
        }
        let dir = tempfile::tempdir().expect("a directory");
        let ahead = File::create(dir.path().join("ahead")).expect("a file");
        ahead.write_all_at(&[0; 8], 0).expect("a small file");
        Some(Self { dir, ahead })
    }

    /// An execd that goes by this clock.
    pub fn start(&self, args: &[&str], envs: &[(&str, &str)]) -> Execd {
        let (library, ahead) = (shown(&clock_library()), shown(&self.dir.path().join("ahead")));
        let mut all = vec![("LD_PRELOAD", library.as_str()), ("EXECD_TEST_CLOCK", &ahead)];
        all.extend_from_slice(envs);
        Execd::with(args, &all)
    }

    /// Says by how much the clock is ahead of the real one.
    pub fn set_ahead_ms(&self, ms: u64) {
        let ns = i64::try_from(ms * 1_000_000).expect("a few years");
        self.ahead.write_all_at(&ns.to_ne_bytes(), 0).expect("a small file");
    }
}

/// A path as text.
pub fn shown(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}
