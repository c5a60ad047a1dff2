//! `execd attach` in a real terminal, which tmux draws (people.md, The control socket):
//! what it shows, what it sends, and that the terminal is as before whatever happens.

use std::io::{Read as _, Write as _};
use std::path::Path;

use crate::common::tmux::{Tmux, can_draw};
use crate::common::{Execd, contains, eventually, log_of, missing, send_signal, session_of};
use serde_json::{Value, json};

/// A terminal whose shell finds this execd's socket, the binary as `$X`, and this execd as `$HERE`.
fn terminal_of(execd: &Execd, size: (u16, u16)) -> Tmux {
    let binary = Path::new(crate::common::EXECD);
    let here = format!("--pid {}", execd.pid());
    let runtime = execd.runtime_dir();
    // Others of this user may run meanwhile.
    let envs = [("XDG_RUNTIME_DIR", &*runtime), ("X", binary), ("HERE", Path::new(&here))];
    Tmux::new(size, &envs, crate::common::apart())
}

fn terminal(execd: &Execd) -> Tmux {
    terminal_of(execd, (100, 30))
}

fn on_a_terminal(execd: &mut Execd, cmd: &str) -> (u64, Value) {
    let opened = execd.open_with(cmd, json!({"tty": true}));
    (session_of(&opened), opened)
}

fn attach_pid(tmux: &Tmux) -> i32 {
    let shell = tmux.shell();
    let mut found = None;
    eventually("execd attach runs", || {
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children"));
        found = children.ok().and_then(|pids| pids.split_whitespace().next()?.parse().ok());
        found.is_some()
    });
    found.expect("found above")
}

fn before(tmux: &Tmux) -> (String, String) {
    (tmux.settings("before"), tmux.modes())
}

fn is_as_before(tmux: &Tmux, (settings, modes): &(String, String)) {
    tmux.line("echo al''ive");
    tmux.until("alive");
    // The first line tells the size, which is the terminal's own affair.
    let rest = |settings: &str| settings.split_once('\n').expect("lines").1.to_owned();
    assert_eq!(rest(&tmux.settings("after")), rest(settings));
    tmux.until_screen("a prompt", |screen| screen.trim_end().ends_with('$'));
    assert_eq!(&tmux.modes(), modes);
}

/// rule: attach.md, execd attach: Raw mode, both ways; Ctrl-C, Ctrl-Z and Ctrl-\ alone are the
///   program's; how to detach is shown
/// rule: attach.md, execd attach: Detach with Ctrl-\ Ctrl-d
/// rule: attach.md, execd attach: Ids `@3` and `3`; no such session; the session itself
#[test]
fn a_shell_in_a_session_is_typed_into_and_detached_from() {
    if !can_draw() {
        return;
    }
    let mut execd = Execd::start();
    let (session, _) = on_a_terminal(&mut execd, "echo earlier; PS1='in> ' exec bash --norc");
    let tmux = terminal(&execd);
    let as_before = before(&tmux);
    tmux.line(&format!("$X attach $HERE @{session}; echo status $?"));
    // It says how to get out, and shows what was before.
    let screen = tmux.until("in> ");
    assert!(screen.contains(r"Ctrl-\ Ctrl-d detaches") && screen.contains("earlier"), "{screen}");
    tmux.line("echo typed-$((6*7))");
    tmux.until("typed-42");
    // Keys that mean something to a terminal are the program's: Ctrl-C, Ctrl-Z, Ctrl-\ alone.
    tmux.line("echo sle''eps; sleep 1000");
    tmux.until("sleeps");
    tmux.key("C-c");
    tmux.line("echo after-$?");
    tmux.until("after-130");
    // What is typed before it runs would be lost to the shell's own line.
    tmux.line("echo ca''ts; cat");
    tmux.until("cats");
    tmux.line("echoed");
    tmux.until_screen("cat's echo", |screen| screen.matches("echoed").count() == 2);
    tmux.key("C-z");
    tmux.until("Stopped");
    tmux.line("fg");
    // What is typed while the shell hands the terminal over may be no line to cat.
    let mut typed = 0;
    tmux.until_screen("cat's echo", |screen| {
        let shown = screen.matches("once more").count();
        if shown == typed {
            tmux.line("once more");
            typed += 1;
        }
        shown > typed
    });
    tmux.key("C-\\");
    tmux.until_screen("Ctrl-\\ alone ends cat", |screen| screen.contains("Quit"));
    tmux.detach();
    tmux.until(&format!("[detached from session {session}]"));
    tmux.until("status 0");
    is_as_before(&tmux, &as_before);
    // The session has not noticed.
    assert!(runs(&mut execd, session), "the session goes on");
    tmux.line(&format!("$X attach $HERE {session}"));
    tmux.until("after-130");
    tmux.line("exit 7");
    tmux.until(&format!("[session {session} has ended: exit code 7]"));
    tmux.line("echo status $?");
    tmux.until("status 7");
    is_as_before(&tmux, &as_before);
}

fn is_typed(screen: &str, text: &str) -> bool {
    screen.contains(text) && !screen.contains("-- INSERT --")
}

/// rule: attach.md, attach_session, attach_input, detach_session: A size jiggle has a full-screen
///   program redraw
/// rule: attach.md, execd attach: vim in a session shared by two attached people and an agent's
///   write_stdin; the window's size reaches the program; the screen is redrawn
#[test]
fn vim_is_shared_by_two_people_and_an_agent() {
    if !can_draw() || missing("vim") {
        return;
    }
    let mut execd = Execd::start();
    let file = execd.file("shared.txt");
    let cmd = format!("exec vim --clean -n {}", file.display());
    let (session, opened) = on_a_terminal(&mut execd, &cmd);
    crate::common::until_logged(&opened, "shared.txt");
    let (one, two) = (terminal_of(&execd, (100, 30)), terminal_of(&execd, (80, 20)));
    let (one_before, two_before) = (before(&one), before(&two));
    // The screen is drawn on attach, although the program had drawn it before.
    one.line(&format!("$X attach $HERE @{session}"));
    one.until_screen("vim's screen", |screen| screen.matches("\n~").count() > 20);
    assert!(one.modes().starts_with('1'), "the alternate screen: {}", one.modes());
    one.typed("ofrom one");
    one.key("Escape");
    one.until_screen("vim has taken it", |screen| is_typed(screen, "from one"));
    two.line(&format!("$X attach $HERE @{session}"));
    // The newest size holds: the program draws for the smaller terminal, for both.
    two.until_screen("vim's screen", |screen| screen.matches("\n~").count() > 12);
    two.until("from one");
    eventually("the size is the newer terminal's", || size_of(&mut execd, session) == (80, 20));
    two.typed("ofrom two");
    two.key("Escape");
    // Escape and what comes at once behind it would be one key to vim.
    two.until_screen("vim has taken it", |screen| is_typed(screen, "from two"));
    one.until("from two");
    execd.write(json!({"session_id": session, "chars": "ofrom the agent\u{1b}"}));
    one.until("from the agent");
    two.until("from the agent");
    // A terminal that changes its size is the newest.
    two.resize(70, 18);
    eventually("the size follows", || size_of(&mut execd, session) == (70, 18));
    two.until_screen("vim in 18 rows", |screen| {
        screen.lines().count() <= 18 && screen.contains("from the agent")
    });
    two.detach();
    two.until("[detached");
    eventually("the former size is back", || size_of(&mut execd, session) == (100, 30));
    one.until_screen("vim in 30 rows", |screen| screen.matches("\n~").count() > 20);
    is_as_before(&two, &two_before);
    one.line(":wq");
    one.until(&format!("[session {session} has ended: exit code 0]"));
    is_as_before(&one, &one_before);
    let text = std::fs::read_to_string(file).expect("vim has written");
    assert_eq!(text, "\nfrom one\nfrom two\nfrom the agent\n");
}

fn numbers_on(screen: &str, rows: u16) -> Vec<u32> {
    let above = screen.lines().take(usize::from(rows) - 1);
    above.filter_map(|line| line.strip_prefix("line ")?.trim().parse().ok()).collect()
}

/// vim scrolls a part of the screen, and had told its terminal so when that had 30 rows. A taller
/// terminal that attached kept these margins for good: whatever scrolled left the rest as it was.
/// rule: attach.md, execd attach: A terminal that attaches, or that stays while the session's size
///   changes, has no margins of the former size
#[test]
fn vim_is_drawn_right_on_a_terminal_of_whatever_height() {
    if !can_draw() || missing("vim") {
        return;
    }
    let mut execd = Execd::start();
    let file = execd.file("numbers.txt");
    let text: String = (1..=400).map(|number| format!("line {number}\n")).collect();
    std::fs::write(&file, text).expect("written");
    for rows in [24, 60] {
        let (session, opened) =
            on_a_terminal(&mut execd, &format!("exec vim --clean -n {}", file.display()));
        crate::common::until_logged(&opened, "line 29");
        let tmux = terminal_of(&execd, (80, rows));
        tmux.line(&format!("$X attach $HERE @{session}"));
        let all = usize::from(rows) - 1;
        // One line up, one down, half a screen, and a jump: vim scrolls by margins, by lines, and
        // draws anew.
        for (key, first) in [("C-e", 2), ("C-e", 3), ("C-y", 2), ("C-f", u32::from(rows) - 1)] {
            tmux.until_screen("vim on all of the screen", |screen| {
                numbers_on(screen, rows).len() == all
            });
            tmux.key(key);
            let wanted: Vec<u32> = (first..).take(all).collect();
            tmux.until_screen(&format!("{key} in {rows} rows"), |screen| {
                numbers_on(screen, rows) == wanted
            });
        }
        tmux.detach();
        tmux.until("[detached");
        execd.kill(session);
    }
}

fn runs(execd: &mut Execd, session: u64) -> bool {
    execd.listed(session).is_some_and(|row| row["running"] == true)
}

fn size_of(execd: &mut Execd, session: u64) -> (u16, u16) {
    crate::attach::size_of(&execd.listed(session).expect("a row"))
}

/// Attaches to a full-screen program (alternate screen, mouse, hidden cursor, application keys).
fn attached_to_a_full_screen_program(execd: &mut Execd) -> (Tmux, (String, String), u64) {
    let cmd =
        r"printf '\033[?1049h\033[?1000h\033[?1006h\033[?25l\033[?1h\033=\033[2;9rdrawn'; exec cat";
    let (session, _) = on_a_terminal(execd, cmd);
    let tmux = terminal(execd);
    let as_before = before(&tmux);
    tmux.line(&format!("$X attach $HERE @{session}; echo status $?"));
    tmux.until("drawn");
    // But its margins, which do not outlive another size: it is to draw anew.
    assert_eq!(tmux.modes(), "1 0 1 1 1 0", "the program's modes");
    (tmux, as_before, session)
}

/// rule: attach.md, execd attach: The terminal is restored after the session's end
/// rule: attach.md, execd attach: The terminal is restored after attach itself got SIGTERM, SIGHUP,
///   SIGQUIT
/// rule: attach.md, execd attach: The terminal is restored after execd was killed with -9
/// rule: attach.md, execd attach: The terminal is restored after detach
#[test]
fn the_terminal_is_as_before_after_each_end_of_attach_to_a_full_screen_program() {
    if !can_draw() {
        return;
    }
    for end in ["session", "execd", "detach", "SIGTERM", "SIGHUP", "SIGQUIT"] {
        let mut execd = Execd::start();
        let (tmux, as_before, session) = attached_to_a_full_screen_program(&mut execd);
        let (said, status) = match end {
            "session" => {
                execd.kill(session);
                (format!("[session {session} has ended: SIGTERM]"), 143)
            }
            "execd" => {
                send_signal(execd.pid(), libc::SIGKILL);
                ("execd is gone".to_owned(), 1)
            }
            "detach" => {
                tmux.detach();
                (format!("[detached from session {session}]"), 0)
            }
            name => {
                let signals = [("SIGTERM", 15), ("SIGHUP", 1), ("SIGQUIT", 3)];
                let signal = signals.iter().find(|(one, _)| *one == name).expect("it is known").1;
                send_signal(attach_pid(&tmux), signal);
                (String::new(), 128 + signal)
            }
        };
        tmux.until(&said);
        tmux.until(&format!("status {status}"));
        is_as_before(&tmux, &as_before);
        if end != "session" && end != "execd" {
            assert!(runs(&mut execd, session), "the session goes on");
        }
    }
}

#[test]
fn after_a_stop_the_terminal_is_the_sessions_again() {
    if !can_draw() {
        return;
    }
    let mut execd = Execd::start();
    let (session, opened) = on_a_terminal(&mut execd, "echo up; stty raw -echo; exec cat -v");
    crate::common::until_logged(&opened, "up");
    let tmux = terminal(&execd);
    tmux.line(&format!("$X attach $HERE @{session}"));
    tmux.until("up");
    send_signal(attach_pid(&tmux), libc::SIGSTOP);
    tmux.until("Stopped");
    tmux.line("fg");
    tmux.until_screen("it goes on", |screen| screen.matches("attach $HERE @").count() > 1);
    // Keys that a terminal of lines would take for itself, or hold back.
    eventually("keys reach the program one by one", || {
        tmux.key("C-v");
        tmux.typed("k");
        contains(&log_of(&opened), b"^Vk")
    });
    tmux.detach();
    tmux.until("[detached");
}

#[test]
fn tail_leaves_the_terminal_as_it_was() {
    if !can_draw() {
        return;
    }
    let mut execd = Execd::start();
    let cmd = r"printf '\033[?1049h\033[?25l\033[6ndrawn\n'; exec cat";
    let (session, opened) = on_a_terminal(&mut execd, cmd);
    crate::common::until_logged(&opened, "drawn");
    let tmux = terminal(&execd);
    let as_before = before(&tmux);
    tmux.line(&format!("$X tail $HERE @{session}"));
    is_as_before(&tmux, &as_before);
    tmux.line(&format!("$X tail -f $HERE @{session}; echo status $?"));
    tmux.until_screen("what comes", |screen| {
        execd.result("write_stdin", json!({"session_id": session, "chars": "more\n"}));
        screen.contains("more")
    });
    tmux.key("C-c");
    tmux.until("status 0");
    is_as_before(&tmux, &as_before);
}

/// rule: attach.md, execd attach: What a program has set in the terminal is set for who attaches
///   later, and taken back at the end
#[test]
fn modes_that_were_set_long_ago_are_set_for_who_attaches() {
    if !can_draw() {
        return;
    }
    let mut execd = Execd::start();
    let cmd = r"printf '\033[?1049h\033[?1000h'; seq 30000; printf 'the end'; exec cat";
    let (session, opened) = on_a_terminal(&mut execd, cmd);
    crate::common::until_logged(&opened, "the end");
    let tmux = terminal(&execd);
    tmux.line(&format!("$X attach $HERE @{session}"));
    tmux.until("the end");
    assert!(tmux.modes().starts_with("1 1 1"), "{}", tmux.modes());
    tmux.detach();
    tmux.until("[detached");
}

/// The terminal answered when nobody was there who had asked: the shell took it for keys.
/// rule: attach.md, Several clients: A terminal's answer that comes after the end is not typed into
///   the shell
#[test]
fn an_answer_that_comes_after_the_end_is_not_typed_into_the_shell() {
    if !can_draw() {
        return;
    }
    let mut execd = Execd::start();
    let questions = r"\033[6n\033[c\033[>c".repeat(20);
    let cmd = format!("echo up; read -r line; printf '{questions}'");
    let (session, opened) = on_a_terminal(&mut execd, &cmd);
    crate::common::until_logged(&opened, "up");
    let tmux = terminal(&execd);
    tmux.line(&format!("stty -echoctl; $X attach $HERE @{session}; cat -v"));
    tmux.until("up");
    tmux.key("Enter");
    tmux.until("has ended: exit code 0]");
    tmux.line("typed");
    // The line, and its echo by cat.
    let screen = tmux.until_screen("cat's echo", |screen| screen.matches("typed").count() == 2);
    assert!(!screen.contains("[["), "{screen}");
    assert_eq!(screen.lines().filter(|line| *line == "typed").count(), 2, "{screen}");
    tmux.key("C-c");
}

/// What was typed while the last answers were waited for was lost with them. Here the test is the
/// terminal, so that it types at that moment.
/// rule: attach.md, Several clients: A terminal's answer that comes after the end is not typed into
///   the shell
#[test]
fn what_is_typed_while_the_last_answers_are_waited_for_is_the_shells() {
    let allowed = std::fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti");
    if allowed.is_ok_and(|text| text.trim() == "0") || missing("setsid") {
        eprintln!("skipped: nothing may be given back to a terminal here");
        return;
    }
    let mut execd = Execd::start();
    let asks = r"echo up; read -r line; printf '\033[6n\033[c'; echo asked";
    let (session, opened) = on_a_terminal(&mut execd, asks);
    crate::common::until_logged(&opened, "up");
    let (mut master, slave) = crate::common::open_pty();
    let script = "\"$X\" attach --pid $HERE @$SESSION; IFS= read -r next; echo \"next: <$next>\"";
    let slave = || slave.try_clone().expect("a descriptor");
    let mut shell = std::process::Command::new("setsid")
        .args(["-c", "-w", "sh", "-c", script])
        .env("XDG_RUNTIME_DIR", execd.runtime_dir())
        .env("X", crate::common::EXECD)
        .env("HERE", execd.pid().to_string())
        .env("SESSION", session.to_string())
        .env("TERM", "xterm")
        .stdin(slave())
        .stdout(slave())
        .stderr(slave())
        .spawn()
        .expect("setsid starts");
    let mut shown = Vec::new();
    let mut until = |master: &mut std::fs::File, text: &str| {
        let seen = |shown: &[u8]| memchr::memmem::find(shown, text.as_bytes());
        while seen(&shown).is_none() {
            let mut buffer = [0; 4096];
            crate::common::until_readable(master);
            let length = master.read(&mut buffer).expect("the terminal is open");
            shown.extend_from_slice(&buffer[..length]);
        }
        // What has come behind it stays.
        shown.drain(..seen(&shown).expect("seen above") + text.len());
    };
    until(&mut master, "up");
    master.write_all(b"\r").expect("typed");
    // attach's own question: what comes before its answer comes while it waits.
    until(&mut master, "\x1b[5n");
    master.write_all(b"l\x1b[12;1Rs\x1b[?62;22c -l\x1b[0n").expect("typed");
    until(&mut master, "has ended: exit code 0]");
    // The terminal shows what is given back to it.
    until(&mut master, "ls -l");
    master.write_all(b"a\r").expect("typed");
    until(&mut master, "next: <ls -la>");
    assert!(shell.wait().expect("ours").success());
}

/// rule: attach.md, execd attach: A session on pipes: output is followed, lines are sent
#[test]
fn a_session_on_pipes_is_followed_and_gets_lines() {
    if !can_draw() {
        return;
    }
    let mut execd = Execd::start();
    let opened =
        execd.open("echo started; while read -r line; do echo \"got <$line>\"; done; exit 3");
    let session = session_of(&opened);
    let tmux = terminal(&execd);
    let as_before = before(&tmux);
    tmux.line(&format!("$X attach $HERE @{session}; echo status $?"));
    tmux.until("Ctrl-D ends its input");
    tmux.until("started");
    tmux.typed("a lime");
    tmux.key("BSpace");
    tmux.key("BSpace");
    tmux.line("ne");
    tmux.until("got <a line>");
    // Ctrl-C and Ctrl-\ Ctrl-d detach; the session goes on.
    for keys in [vec!["C-c"], vec!["C-\\", "C-d"]] {
        keys.iter().for_each(|key| tmux.key(key));
        tmux.until("[detached");
        is_as_before(&tmux, &as_before);
        assert!(runs(&mut execd, session));
        tmux.line("clear");
        tmux.until_screen("a clear screen", |screen| screen.trim() == "$");
        tmux.line(&format!("$X attach $HERE @{session}; echo status $?"));
        tmux.until("got <a line>");
    }
    tmux.key("C-d");
    tmux.until(&format!("[session {session} has ended: exit code 3]"));
    tmux.until("status 3");
    is_as_before(&tmux, &as_before);
}

/// rule: bash.md, In pi: `execd attach`, `tail` and `kill` take the addresses of windows; of an
///   execd alone attach takes the newest session
/// rule: bash.md, In pi: resolveTmuxBashContext gives `session`, a name that `execd attach` takes;
///   each helper documented with an example that runs
#[test]
fn of_an_execd_alone_its_newest_session_is_meant() {
    if !can_draw() {
        return;
    }
    let mut execd = Execd::start();
    execd.open("echo the oldest; exec sleep 1000");
    execd.open("echo the newest; exec sleep 1000");
    execd.run("echo ended since");
    let tmux = terminal(&execd);
    tmux.line(&format!("$X attach execd-{}", execd.pid()));
    tmux.until("the newest");
    tmux.detach();
    tmux.until("[detached from session 2]");
}

/// rule: attach.md, execd attach: Ids `@3` and `3`; no such session; the session itself
#[test]
fn a_session_is_not_shown_in_itself() {
    if !can_draw() {
        return;
    }
    let mut execd = Execd::start();
    let (session, _) = on_a_terminal(&mut execd, "PS1='in> ' exec bash --norc");
    let runtime = execd.runtime_dir();
    let binary = crate::common::EXECD;
    let here = execd.pid();
    let line =
        format!("XDG_RUNTIME_DIR={} {binary} attach --pid {here} @{session}\n", runtime.display());
    let result = execd.write(json!({"session_id": session, "chars": line}));
    let said = "cannot be shown in itself";
    eventually("it is refused", || contains(&log_of(&result), said.as_bytes()));
}
