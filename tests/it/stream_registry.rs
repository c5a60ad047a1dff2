//! list_processes and the memory of what has ended: rows, their order, how many are remembered
//! and for how long, and what the two families know of each other's sessions.

use crate::common::*;
use crate::stream_help::*;
use serde_json::{Value, json};

/// Waits until session_exited has told of this session: all of it has ended.
fn until_exited(execd: &mut Execd, session: u64) {
    execd.notification("session_exited", |exit| exit["session_id"] == session);
}

// ---- Rows -------------------------------------------------------------------------------

/// rule: bash-stream.md, The stream family: list_processes: every field; running first, then
///   recent, newest first
#[test]
fn what_runs_comes_first_and_then_what_has_ended_the_newest_first() {
    let mut execd = Execd::start();
    // Started in the order of their ids; they end as they are told to.
    let ids = [(); 6].map(|()| id_of(&open(&mut execd, "read x")));
    for (index, ended) in [3, 1, 5, 2].into_iter().enumerate() {
        execd.result("write_stdin", json!({"sessionId": ids[ended], "data": "\n"}));
        until_exited(&mut execd, ids[ended]);
        let list = listed_ids(&mut execd);
        assert_eq!(list[5 - index], ids[ended], "the first that ended is the last of all");
    }
    // Two still run, the one that started last before the other; then the last that ended.
    assert_eq!(listed_ids(&mut execd), [4, 0, 2, 5, 1, 3].map(|place| ids[place]));
}

// ---- How long, and how many -------------------------------------------------------------

/// Polls a session that is remembered until the time to live is over, and not a moment longer.
fn lives(args: &[&str], envs: &[(&str, &str)], ttl_ms: u64) {
    let Some(clock) = Clock::new() else { return };
    let mut execd = clock.start(args, envs);
    let result = run(&mut execd, "echo kept");
    clock.set_ahead_ms(ttl_ms - 20_000);
    assert_eq!(poll(&mut execd, 1), result, "{args:?} {envs:?}");
    assert_eq!(listed_ids(&mut execd), [1], "{args:?} {envs:?}");
    assert_eq!(page(&mut execd, 1, json!({}))["text"], "kept\n");
    clock.set_ahead_ms(ttl_ms + 1);
    assert_eq!(listed_ids(&mut execd), [0; 0], "{args:?} {envs:?}");
    for method in ["poll_process", "get_process_log", "kill_process"] {
        execd.failed(method, json!({"sessionId": 1}), "unknown_session");
    }
    assert_eq!(logged(&result), b"kept\n", "the log stays");
}

/// rule: bash-stream.md, The stream family: TTL, clamped; at most 256, oldest dropped first
#[test]
fn what_has_ended_is_remembered_for_half_an_hour_or_as_long_as_is_set_within_bounds() {
    let flag = "--bash-job-ttl-ms";
    let variable = ("PI_BASH_JOB_TTL_MS", "100000");
    lives(&[], &[], 1_800_000);
    lives(&[], &[variable], 100_000);
    lives(&[flag, "1"], &[], 60_000);
    lives(&[flag, "200000"], &[variable], 200_000);
}

#[test]
fn time_to_live_counts_from_the_end() {
    let Some(clock) = Clock::new() else { return };
    // The program waits for input that a later call gives.
    let flags = ["--bash-job-ttl-ms", "60000", "--on-impossible", "wait"];
    let mut execd = clock.start(&flags, &[]);
    open(&mut execd, "read x");
    clock.set_ahead_ms(300_000);
    assert_eq!(listed_ids(&mut execd), [1], "what runs is not forgotten");
    execd.result("write_stdin", json!({"sessionId": 1, "data": "\n"}));
    until_exited(&mut execd, 1);
    assert_eq!(poll(&mut execd, 1)["status"], "completed");
    clock.set_ahead_ms(340_000);
    assert_eq!(listed_ids(&mut execd), [1]);
    clock.set_ahead_ms(361_000);
    assert_eq!(listed_ids(&mut execd), [0; 0]);
}

/// Runs so many short jobs, a few at a time.
fn run_many(execd: &mut Execd, command: &str, count: usize, more: &Value) {
    for first in (0..count).step_by(32) {
        let params = merged(json!({"command": command, "stream": false}), more.clone());
        let start = |execd: &mut Execd| execd.start_request("bash_stream", params.clone());
        let requests: Vec<u64> = (first..count.min(first + 32)).map(|_| start(execd)).collect();
        for request in requests {
            assert_ne!(execd.result_of(request)["status"], "running");
        }
    }
}

/// A busy hour once kept the last 256 whatever was set, and nothing said that others had been
/// there.
/// rule: bash-stream.md, The stream family: How long and how many are remembered can be set, and
///   list_processes says how many are forgotten
/// rule: bash-stream.md, The stream family: TTL, clamped; at most 256, oldest dropped first
#[test]
fn the_first_that_ended_is_forgotten_and_counted_when_there_are_too_many() {
    let (flag, variable) = ("--bash-jobs-kept", ("PI_BASH_JOBS_KEPT", "3"));
    let told = |execd: &mut Execd| {
        let list = execd.result("list_processes", json!({}));
        ["forgotten", "keptMax", "keptMs"].map(|field| list[field].clone())
    };
    for (args, envs, most) in
        [(&[][..], &[][..], 256), (&[], &[variable], 3), (&[flag, "2"], &[variable], 2)]
    {
        let mut execd = Execd::with(args, envs);
        // It starts first and ends last: it is not the one that goes.
        open(&mut execd, "read x");
        run(&mut execd, "true");
        run_many(&mut execd, "true", most - 1, &json!({}));
        assert_eq!(rows(&mut execd).len(), most + 1, "they and the one that runs");
        assert_eq!(told(&mut execd), [(); 3].map(|()| Value::Null), "nothing was forgotten");
        execd.result("write_stdin", json!({"sessionId": 1, "data": "\n"}));
        until_exited(&mut execd, 1);
        let list = listed_ids(&mut execd);
        assert_eq!((list.len(), list[0]), (most, 1), "{args:?} {envs:?}");
        assert!(!list.contains(&2), "the first that ended");
        execd.failed("poll_process", json!({"sessionId": 2}), "unknown_session");
        assert_eq!(told(&mut execd), [json!(1), json!(most), json!(1_800_000)]);
    }
}

/// rule: architecture.md, Bounds: A finished job keeps at most 64 KiB in memory
#[test]
fn what_has_ended_takes_little_memory() {
    const JOBS: usize = 64;
    let mut execd = Execd::start();
    // As much of each stream as is kept of it, and more than that.
    let command = "yes 12345678 | head -c 130000; yes 12345678 | head -c 130000 >&2";
    // What jobs take while they run is not what is remembered of them.
    run_many(&mut execd, command, 32, &json!({}));
    let before_kib = execd.rss_kib();
    run_many(&mut execd, command, JOBS, &json!({}));
    assert_eq!(rows(&mut execd).len(), 32 + JOBS, "all of them are remembered");
    let grown_kib = execd.rss_kib().saturating_sub(before_kib);
    // Three texts at the default cap, which later polls give again, in 64 KiB (architecture.md);
    // some more is what the replies left behind.
    let most_kib = JOBS as u64 * 64 + 6 * 1024;
    assert!(grown_kib <= most_kib, "{grown_kib} KiB for {JOBS} jobs");
}

/// 64 MiB of texts are remembered; above that jobs were once forgotten long before the 257th.
/// rule: architecture.md, Bounds: A finished job keeps at most 64 KiB in memory
#[test]
fn large_texts_are_cut_and_no_job_is_forgotten_for_them() {
    const JOBS: u64 = 96;
    let mut execd = Execd::start();
    let command = "yes \u{1f600}\u{1f600}\u{1f600} | head -c 598000; echo the end >&2";
    // Without an id: nobody has to read a hundred megabytes.
    let params = json!({"command": command, "stream": false, "maxOutputChars": 150_000});
    let request = json!({"method": "bash_stream", "params": params}).to_string();
    for batch in 1..=JOBS / 32 {
        (0..32).for_each(|_| execd.send_line(&request));
        eventually("a batch has ended", || {
            let rows = rows(&mut execd);
            let ended = rows.iter().filter(|row| row["status"] == "completed");
            rows.len() == ended.count() && rows.len() as u64 == 32 * batch
        });
    }
    // A job is completed before its log is, and its texts count from then on. A poll that waits
    // for the end waits for both.
    for id in JOBS - 31..=JOBS {
        execd.result("poll_process", json!({"sessionId": id, "waitMs": 60_000}));
    }
    let rss_kib = execd.rss_kib();
    assert!(rss_kib < (64 + 32) * 1024, "{rss_kib} KiB");
    // The oldest are cut first, the newest are whole.
    for (id, is_cut) in [(1, true), (2, true), (JOBS - 1, false), (JOBS, false)] {
        let polled = poll(&mut execd, id);
        assert_eq!((&polled["status"], &polled["exitCode"]), (&json!("completed"), &json!(0)));
        assert_eq!((text(&polled, "stderr"), &polled["truncated"]), ("the end\n", &json!(true)));
        let (first, shown) = text(&polled, "stdout").split_once('\n').expect("a first line");
        let length = shown.chars().count();
        let wanted =
            format!("[... {} characters omitted; full output: ", 598_000 / 13 * 4 - length);
        assert!(first.starts_with(&wanted), "{first} instead of {wanted}");
        assert_eq!(poll(&mut execd, id), polled, "from then on it stays");
        assert!(if is_cut { length <= 2_000 } else { length > 100_000 }, "{id}: {length}");
    }
}
