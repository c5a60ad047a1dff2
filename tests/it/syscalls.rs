//! The budget of system calls (performance.md, System calls): what execd itself calls for a short
//! command, a ping and a listing, by name, with an upper bound for each. The page has the sums.
//!
//! What comes when is the kernel's choice: the end of the output, of the leader and the
//! keeper's word may fill one turn or four. Therefore the mean of many is held to the bounds,
//! and a turn's own two calls have room in theirs.

use std::collections::BTreeMap;

use crate::common::outside::{self, Trace, can_trace};
use crate::common::{Execd, eventually};
use serde_json::{Value, json};

const ROUNDS: u64 = 40;

/// What a few of them may cost more: detaching interrupts a wait, and on a busy machine a
/// command lasts longer than 150 ms and is announced. A call more each would be [`ROUNDS`].
const SLACK: u64 = 12;
/// What the shell is looked up on: the child looks there, not execd.
const PATH: &str = "/usr/bin:/bin";

/// A call and how often it may be made, on the mean.
type Budget = &'static [(&'static str, u64)];

/// `exec_command true`, on pipes, sequentially, after a warm-up.
const EXEC_COMMAND: Budget = &[
    ("clone", 1),
    ("close", 7),
    ("epoll_ctl", 3),
    ("epoll_wait", 7),
    ("fcntl", 4),
    ("getpid", 1),
    ("getrandom", 1),
    ("pipe2", 3),
    ("preadv2", 2),
    ("pwritev2", 1),
    ("read", 13),
    ("rt_sigprocmask", 2),
    ("timerfd_settime", 1),
    ("waitid", 3),
    ("write", 4),
];
/// Below the sum of the single bounds: not all of them are reached at once.
const EXEC_COMMAND_TOTAL: u64 = 49;

/// `exec_command true` with `tty`, as far as it differs.
const ON_A_TERMINAL: Budget = &[
    ("clone", 1),
    ("close", 6),
    ("epoll_ctl", 3),
    ("epoll_wait", 7),
    ("fcntl", 1),
    ("getpid", 1),
    ("getrandom", 1),
    ("ioctl", 7),
    ("openat", 1),
    ("pipe2", 1),
    ("preadv2", 2),
    ("pwritev2", 1),
    ("read", 15),
    ("rt_sigprocmask", 2),
    ("timerfd_settime", 1),
    ("waitid", 3),
    ("write", 4),
];
const ON_A_TERMINAL_TOTAL: u64 = 52;

const PING: Budget = &[("epoll_wait", 2), ("preadv2", 2), ("pwritev2", 1), ("read", 2)];
const PING_TOTAL: u64 = 7;

/// list_sessions while nothing runs; with sessions it reads /proc for what has detached itself.
const LIST_SESSIONS: Budget = &[("epoll_wait", 2), ("preadv2", 2), ("pwritev2", 1), ("read", 2)];
const LIST_SESSIONS_TOTAL: u64 = 7;

/// The calls in a trace by name. A debug build's questions before each close (F_GETFD) are not
/// execd's own.
fn counted(trace: &str) -> BTreeMap<&str, u64> {
    let mut counts = BTreeMap::new();
    let calls = trace.lines().filter(|line| !line.contains(", F_GETFD"));
    for name in calls.filter_map(|line| line.split_once('(')).map(|(name, _)| name) {
        *counts.entry(name).or_default() += 1;
    }
    counts
}

/// Traces sequential requests, and shows that the mean keeps to the budget.
fn keeps_to(method: &str, params: &Value, budget: Budget, total: u64) {
    if !can_trace() {
        return;
    }
    let mut execd = Execd::with(&[], &[("PATH", PATH)]);
    for _ in 0..5 {
        execd.result(method, params.clone());
        execd.run("true");
        execd.peek();
    }
    eventually("the warm-up is over", || outside::children(execd.pid()).len() == 1);
    let trace = Trace::attach(execd.pid(), &["-e", "trace=all", "-e", "signal=none"]);
    // The ping is a mark: what attaching caused is before it.
    execd.ping();
    let before = trace.so_far();
    for _ in 0..ROUNDS {
        execd.result(method, params.clone());
    }
    let all = trace.detach();
    // What was so far may end in the middle of a line.
    let counts = counted(&all[before.rfind('\n').map_or(0, |at| at + 1)..]);
    let mut over = Vec::new();
    for (name, count) in &counts {
        let allowed = budget.iter().find(|(call, _)| call == name).map_or(0, |(_, most)| *most);
        // The heap grows now and then, whatever the request.
        let slack = if allowed > 0 || *name == "brk" { SLACK } else { 0 };
        if *count > allowed * ROUNDS + slack {
            over.push(format!("{name}: {count} in {ROUNDS}, allowed {allowed} each"));
        }
    }
    let sum: u64 = counts.values().sum();
    assert!(over.is_empty(), "{over:#?}\n{}", last_round(&all));
    assert!(
        sum <= total * ROUNDS + 4 * SLACK,
        "{sum} in {ROUNDS}, allowed {total} each: {counts:?}"
    );
    // The clock is armed once in a while.
    let made = |name: &str| counts.contains_key(name) || name == "timerfd_settime";
    let unused: Vec<_> = budget.iter().filter(|(name, _)| !made(name)).collect();
    assert!(unused.is_empty(), "no longer made, to be taken out: {unused:?}");
}

/// The calls of the last request in a trace, for whoever has to find out what has changed.
fn last_round(trace: &str) -> &str {
    trace.rfind("preadv2(0, [{iov_base=\"{").map_or(trace, |from| &trace[from..])
}

/// rule: unified-exec.md, exec_command, params: A short command costs what fork and exec cost
/// rule: architecture.md, Starting a child: A short command keeps its syscall budget, and
///   docs/performance.md has the same numbers
#[test]
fn a_short_command_keeps_to_its_budget() {
    // Nobody is to look at what it does: on a busy machine it may take longer than the 15 ms after
    // which the first look is due (waits.md, What it costs).
    let params = json!({"cmd": "true", "on_impossible": "wait"});
    keeps_to("exec_command", &params, EXEC_COMMAND, EXEC_COMMAND_TOTAL);
}

/// rule: unified-exec.md, exec_command, params: A short command costs what fork and exec cost
#[test]
fn a_short_command_on_a_terminal_keeps_to_its_budget() {
    let params = json!({"cmd": "true", "tty": true, "on_impossible": "wait"});
    keeps_to("exec_command", &params, ON_A_TERMINAL, ON_A_TERMINAL_TOTAL);
}

#[test]
fn a_ping_keeps_to_its_budget() {
    keeps_to("ping", &json!({}), PING, PING_TOTAL);
}

#[test]
fn a_listing_keeps_to_its_budget() {
    keeps_to("list_sessions", &json!({}), LIST_SESSIONS, LIST_SESSIONS_TOTAL);
}

/// The rows of the table of system calls in docs/performance.md: a request in backquotes and the
/// calls that it may cost.
fn table_of_the_page() -> Vec<(String, u64)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/performance.md");
    let text = std::fs::read_to_string(path).expect("docs/performance.md");
    let (_, section) = text.split_once("\n## System calls\n").expect("a section of system calls");
    let section = section.split("\n## ").next().unwrap_or(section);
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let name = cells.next()?.replace('`', "");
        let number = cells.next()?.split(' ').next()?.parse().ok()?;
        Some((name, number))
    };
    section.lines().filter_map(row).collect()
}

/// rule: architecture.md, Starting a child: A short command keeps its syscall budget, and
///   docs/performance.md has the same numbers
#[test]
fn the_page_has_the_same_numbers() {
    let expected = [
        ("exec_command", EXEC_COMMAND_TOTAL),
        ("exec_command on a terminal", ON_A_TERMINAL_TOTAL),
        ("ping", PING_TOTAL),
        ("list_sessions", LIST_SESSIONS_TOTAL),
    ];
    let expected = expected.map(|(name, total)| (name.to_owned(), total)).to_vec();
    assert_eq!(table_of_the_page(), expected, "docs/performance.md");
}
