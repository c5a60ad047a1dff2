//! Rows of programs as they look while they wait, measured on Linux 6.18.

use super::*;

const LINE: Option<Modes> = modes(true, true);
const HIDDEN: Option<Modes> = modes(true, false);
const RAW: Option<Modes> = modes(false, false);
const TIMED: Option<Modes> = Some(Modes { canonical: false, echo: false, read_is_timed: true });
const PIPE: Option<Modes> = None;

const fn modes(canonical: bool, echo: bool) -> Option<Modes> {
    Some(Modes { canonical, echo, read_is_timed: false })
}

fn thread(call: Call, on: &[On]) -> Thread {
    Thread { on: on.to_vec(), line: 7, cpu_ns: 9, ..Thread::new(1, call) }
}

fn process(name: &str, threads: Vec<Thread>) -> Process {
    let counts = true;
    Process { pid: 1, name: name.to_owned(), counts, threads, ..Process::default() }
}

/// A process of one thread.
fn one(name: &str, call: Call, on: &[On]) -> Process {
    process(name, vec![thread(call, on)])
}

fn reads(name: &str, on: On) -> Process {
    one(name, Call::Read, &[on])
}

fn polls(name: &str, timed: bool, on: &[On]) -> Process {
    one(name, Call::Poll { timed }, on)
}

fn waits(name: &str) -> Process {
    one(name, Call::Member, &[])
}

fn sleeps(name: &str) -> Process {
    one(name, Call::Other, &[])
}

/// The state and whether nothing but input moves it on.
fn told(all: &[Process], modes: Option<Modes>) -> (&'static str, bool) {
    let found = decide(all, modes, true, b"");
    (found.waiter.map_or("running", |waiter| waiter.input.state()), found.closed)
}

use On::{Inside, Other, Stdin, Terminal};

const LINE_WAIT: &str = "waiting_for_line";
const KEY_WAIT: &str = "waiting_for_key";
const PASSWORD_WAIT: &str = "waiting_for_password";

/// rule: waits.md, State: Found exactly, not guessed
#[test]
fn programs_on_a_terminal() {
    let go = || process("fzf", vec![thread(Call::Other, &[]), thread(Call::Read, &[Terminal])]);
    let node = |on: &[On]| {
        process("node", vec![thread(Call::Poll { timed: false }, on), thread(Call::Member, &[])])
    };
    let pager = || reads("pager", Terminal);
    let threads = vec![thread(Call::Read, &[Terminal]), thread(Call::Other, &[])];
    let two_threads = process("python3", threads);
    let table = [
        (vec![reads("cat", Terminal)], LINE, LINE_WAIT, true),
        (vec![reads("bash", Terminal)], HIDDEN, PASSWORD_WAIT, true),
        (vec![polls("python3", false, &[Terminal])], RAW, KEY_WAIT, true),
        (vec![node(&[Terminal, Inside(None)])], RAW, KEY_WAIT, true),
        (vec![node(&[Terminal, Other])], RAW, KEY_WAIT, false),
        (vec![reads("less", Terminal)], RAW, KEY_WAIT, true),
        (vec![reads("head", Terminal)], TIMED, KEY_WAIT, false),
        (vec![polls("less", false, &[Terminal])], TIMED, KEY_WAIT, true),
        (vec![polls("vim", true, &[Terminal])], RAW, KEY_WAIT, false),
        (vec![waits("bash"), go()], RAW, KEY_WAIT, false),
        (vec![waits("bash"), sleeps("sleep")], LINE, "running", false),
        (vec![reads("cat", Terminal), reads("cat", Inside(Some(5)))], LINE, LINE_WAIT, true),
        (vec![polls("python3", true, &[Other])], LINE, "running", false),
        (vec![polls("node", false, &[Terminal, Other])], LINE, "running", false),
        (vec![polls("node", false, &[Terminal])], LINE, LINE_WAIT, true),
        (vec![polls("bash", true, &[Terminal])], LINE, "running", false),
        (vec![one("yes", Call::Write, &[Inside(Some(5))])], LINE, "running", false),
        (vec![polls("man", true, &[Inside(Some(4))]), pager()], RAW, KEY_WAIT, false),
        (vec![two_threads], LINE, LINE_WAIT, false),
        (vec![], LINE, "running", false),
    ];
    for (all, modes, state, closed) in table {
        assert_eq!(told(&all, modes), (state, closed), "{all:?} {modes:?}");
    }
}

/// rule: waits.md, Impossible: every thread of every process of the session
#[test]
fn programs_on_pipes() {
    let table = [
        (vec![reads("rg", Stdin)], LINE_WAIT, true),
        (vec![waits("bash"), reads("cat", Stdin), reads("cat", Inside(Some(3)))], LINE_WAIT, true),
        (vec![polls("node", false, &[Stdin, Inside(None)])], LINE_WAIT, true),
        (vec![polls("server", false, &[Stdin, Other])], "running", false),
        (vec![polls("server", true, &[Stdin])], "running", false),
        (vec![one("yes", Call::Write, &[Other]), reads("cat", Stdin)], LINE_WAIT, false),
        (vec![waits("bash"), waits("bash")], "running", false),
    ];
    for (all, state, closed) in table {
        assert_eq!(told(&all, PIPE), (state, closed), "{all:?}");
    }
}

/// rule: waits.md, Impossible: every thread of every process of the session
#[test]
fn what_keeps_a_session_open() {
    let cat = || reads("cat", Stdin);
    assert_eq!(told(&[cat()], PIPE), (LINE_WAIT, true));
    let timer = Process { timer: true, ..waits("timeout") };
    assert_eq!(told(&[timer, cat()], PIPE), (LINE_WAIT, false));
    let hidden = Process { hidden: true, threads: vec![], ..process("sudo", vec![]) };
    assert_eq!(told(&[hidden, cat()], PIPE), (LINE_WAIT, false));
    let away = Process { counts: false, ..sleeps("setsid") };
    assert_eq!(told(&[away, reads("cat", Terminal)], LINE), (LINE_WAIT, false));
    let behind = Process { counts: false, ..reads("cat", Terminal) };
    assert_eq!(told(&[behind], LINE), ("running", false), "nobody in front waits");
    let found = decide(&[cat()], PIPE, false, b"");
    assert!(found.waiter.is_some() && !found.closed, "not all of it was seen");
    let stopped = Process { stopped: true, ..sleeps("vim") };
    assert_eq!(
        told(&[stopped.clone(), cat()], PIPE),
        (LINE_WAIT, true),
        "only a member continues it"
    );
    let found = decide(&[stopped], LINE, true, b"");
    assert!(found.stopped && found.waiter.is_none() && !found.closed);
}

/// rule: waits.md, State: another user's process
#[test]
fn a_password_that_only_the_terminal_or_the_text_tells() {
    let hidden = || Process { hidden: true, ..process("sudo", vec![]) };
    assert_eq!(told(&[hidden()], HIDDEN), (PASSWORD_WAIT, false));
    assert_eq!(told(&[hidden()], LINE), ("running", false));
    let ssh = || polls("ssh", false, &[Terminal, Other]);
    let by_text = |line: &[u8]| decide(&[ssh()], RAW, true, line).waiter;
    let waiter = by_text(b"you@host's password: ").unwrap();
    assert!(waiter.by_text && waiter.input == Input::Password);
    assert!(by_text(b"Enter passphrase for key '/x':").is_some());
    for other in [&b"$ "[..], b"password: wrong", b"", b"passphrase"] {
        assert_eq!(by_text(other), None, "{:?}", String::from_utf8_lossy(other));
    }
    let asked = polls("ssh", true, &[Other]);
    assert_eq!(told(&[asked], HIDDEN), ("running", false), "it reads, or it does not wait");
    assert_eq!(told(&[reads("ssh", Terminal)], HIDDEN), (PASSWORD_WAIT, true));
}

/// rule: waits.md, State: two looks
#[test]
fn two_looks_differ_when_anything_has_moved() {
    let mark = |all: &[Process], modes| decide(all, modes, true, b"").mark;
    let cat = || reads("cat", Terminal);
    assert_eq!(mark(&[cat()], LINE), mark(&[cat()], LINE));
    assert_ne!(mark(&[cat()], LINE), mark(&[cat()], HIDDEN));
    let worked = Process { cpu_ns: 1, ..cat() };
    assert_ne!(mark(&[cat()], LINE), mark(&[worked], LINE));
    let mut other = cat();
    other.threads[0].line = 8;
    let waiter = |all: &[Process]| decide(all, LINE, true, b"").waiter;
    assert_ne!(waiter(&[cat()]), waiter(&[other]));
    let mut worked = cat();
    worked.threads[0].cpu_ns = 10;
    assert_ne!(waiter(&[cat()]), waiter(&[worked]));
}
