//! The texts of bash and its windows, by tables.

use super::*;
use crate::pure::text::truncate::truncate_tail;

const LOG: Option<&str> = Some("/tmp/x.log");
const OK: ExitStatus = ExitStatus::Code(0);

fn shown<'a>(output: &'a str, notice: Option<&'a str>) -> Shown<'a> {
    Shown { output, notice }
}

fn plain(output: &str) -> Shown<'_> {
    shown(output, None)
}

#[test]
fn seconds_are_written_as_numbers_are() {
    for (ms, text) in [
        (0, "0"),
        (1, "0.001"),
        (500, "0.5"),
        (250, "0.25"),
        (1_000, "1"),
        (10_020, "10.02"),
        (3_600_000, "3600"),
    ] {
        assert_eq!(seconds(ms), text);
    }
}

/// rule: bash.md, bash and tmux: pi's texts, case by case: success, empty output, exit 3, timeout,
///   3,000 lines, 90 KB, a 70 KB line, streamed lines, stderr mixed in, a signal, stdin
#[test]
fn the_texts_of_a_command_that_ended_are_pis() {
    for (output, status, text) in [
        ("hi\n", OK, "hi\n"),
        ("", OK, "(no output)"),
        ("oops\n", ExitStatus::Code(3), "oops\n\n\nCommand exited with code 3"),
        ("", ExitStatus::Code(1), "(no output)\n\nCommand exited with code 1"),
        ("", ExitStatus::Signal(9), "(no output)\n\nCommand exited with code 137"),
        ("x", ExitStatus::Signal(15), "x\n\nCommand exited with code 143"),
    ] {
        assert_eq!(ended(plain(output), status), text);
    }
    assert_eq!(
        ended(shown("x", Some("[n]")), ExitStatus::Code(2)),
        "x\n\n[n]\n\nCommand exited with code 2"
    );
    assert_eq!(aborted(plain("x\n")), "x\n\n\nCommand aborted");
    assert_eq!(aborted(plain("")), "Command aborted");
    assert_eq!(
        timed_out(plain("before\n"), 1_000),
        "before\n\n\nCommand timed out after 1 seconds"
    );
    assert_eq!(timed_out(plain(""), 500), "Command timed out after 0.5 seconds");
}

/// rule: bash.md, bash and tmux: pi's texts, case by case: success, empty output, exit 3, timeout,
///   3,000 lines, 90 KB, a 70 KB line, streamed lines, stderr mixed in, a signal, stdin
#[test]
fn the_notice_names_what_was_cut_as_pi_does() {
    let lines: String = (1..=3000).map(|i| format!("{i}\n")).collect();
    let wide: String = (1..=900).map(|i| format!("{i:0100}\n")).collect();
    let long = "x".repeat(70_000);
    for (text, expected) in [
        ("short\n", None),
        (&lines, Some("[Showing lines 1001-3000 of 3000. Full output: /tmp/x.log]")),
        (&wide, Some("[Showing lines 395-900 of 900 (50.0KB limit). Full output: /tmp/x.log]")),
        (&long, Some("[Showing last 50.0KB of line 1 (line is 68.4KB). Full output: /tmp/x.log]")),
    ] {
        let (_, cut) = truncate_tail(text, 2000, 51_200);
        assert_eq!(notice(&cut, text.len(), LOG, false).as_deref(), expected);
    }
    let (_, whole) = truncate_tail("short\n", 2000, 51_200);
    assert_eq!(notice(&whole, 5, LOG, true).as_deref(), Some("[Full output: /tmp/x.log]"));
    assert_eq!(notice(&whole, 5, None, true), None);
    let (_, cut) = truncate_tail(&lines, 2000, 51_200);
    let without = notice(&cut, 4, None, true);
    assert_eq!(without.as_deref(), Some("[Showing lines 1001-3000 of 3000]"));
}

fn held<'a>(holders: &'a [String], log_path: Option<&'a str>) -> Held<'a> {
    Held { id: 3, holders, log_path }
}

/// rule: bash.md, bash and tmux: The shell is gone: the text names the log, and a peek tells what
///   comes later, with `late: true`
#[test]
fn output_after_the_end_is_said_to_be_such_below_any_other_notice() {
    let late = "[Some of it came after the command had ended.";
    assert_eq!(late_notice(None, None), format!("{late}]"));
    let both = late_notice(Some("[cut]".to_owned()), Some("/log"));
    assert_eq!(both, format!("[cut]\n{late} Full output: /log]"));
}

#[test]
fn what_goes_on_is_named() {
    let holders = [holder("sleep 5", 42), holder("/usr/bin/python3 -m x", 43), holder("", 44)];
    assert_eq!(
        ended_but_held(plain("started\n"), OK, held(&holders, Some("/log"))),
        "started\n\n\nStill running in background window @3: sleep (pid 42), python3 (pid 43), \
         process (pid 44). Later output: /log"
    );
    assert_eq!(
        ended_but_held(plain(""), ExitStatus::Code(3), held(&[], None)),
        "(no output)\n\nCommand exited with code 3\n\nStill running in background window @3: its \
         output is held"
    );
}

/// rule: bash.md, bash and tmux: Timeout and background: the output so far, then where it goes on
#[test]
fn the_texts_of_the_background() {
    let inspector = Inspector { tool: "tmux", actions: &INSPECTING };
    assert_eq!(
        went_on(plain("so far\n"), Some(30_000), 3, inspector, None),
        "so far\n\n\nStill running after 30s in background window @3. Use tmux peek/list/kill to \
         inspect or stop it. Result will be reported when it finishes."
    );
    let inspector = Inspector { tool: "windows", actions: &["kill"] };
    assert_eq!(
        went_on(plain(""), Some(1_500), 3, inspector, Some(10_000)),
        "Still running after 1.5s in background window @3 and polling every 10s. Use windows kill \
         to inspect or stop it. Result will be reported when it finishes."
    );
    let inspector = Inspector { tool: "tmux", actions: &[] };
    assert_eq!(
        went_on(plain(""), Some(30_000), 3, inspector, None),
        "Still running after 30s in background window @3. Result will be reported when it \
         finishes."
    );
    assert_eq!(
        awaits_input(plain("[Y/n]"), 3, inspector, Some(10_000), ""),
        "[Y/n]\n\nStill running in background window @3 and polling every 10s. It gets no input \
         here: run it again so that it does not ask. Result will be reported when it finishes."
    );
    let window = Named { name: "dev", id: 3 };
    let result = "\nResult will be reported when it finishes.";
    assert_eq!(
        started(window, None, "execd attach @123"),
        format!("Started in background window: dev @3.{result}\n\nAttach with: execd attach @3")
    );
    assert_eq!(
        started(window, Some(10_000), ""),
        format!("Started in background window: dev @3. Polling every 10s.{result}")
    );
}

/// rule: bash.md, bash and tmux: The end of a background window is told exactly once, with the last
///   20 lines in a block
#[test]
fn a_completion_has_the_output_in_a_block_that_it_cannot_end() {
    let done = "Background command finished with exit code";
    for (output, status, expected) in [
        ("", OK, format!("{done} 0")),
        ("\n", OK, format!("{done} 0")),
        ("a\nb\n", OK, format!("{done} 0\n\n```\na\nb\n```")),
        ("a", ExitStatus::Signal(9), format!("{done} 137\n\n```\na\n```")),
        (
            "```\nx\n  ````\n",
            ExitStatus::Code(1),
            format!("{done} 1\n\n`````\n```\nx\n  ````\n`````"),
        ),
    ] {
        let end = End { status, held: None };
        assert_eq!(completion(plain(output), end), expected);
    }
    assert_eq!(
        completion(shown("x", Some("[cut]")), End { status: OK, held: None }),
        format!("{done} 0\n\n```\nx\n```\n\n[cut]")
    );
    let holders = ["sleep (pid 7)".to_owned()];
    assert_eq!(
        completion(plain("x"), End { status: OK, held: Some(held(&holders, None)) }),
        format!("{done} 0\nStill running in background window @3: sleep (pid 7)\n\n```\nx\n```")
    );
}

/// rule: bash.md, bash and tmux: list, peek, kill: their texts and rows
#[test]
fn looks_and_lists() {
    let window = Named { name: "dev", id: 3 };
    assert_eq!(
        look("window", window, "pnpm dev", plain("a\nb\n")),
        "window: dev @3\n$ pnpm dev\na\nb"
    );
    assert_eq!(look("poll", window, "x", plain("")), "poll: dev @3\n$ x\n(no output)");
    // A command's own escape sequences are shown, not passed on.
    let command = "echo '\x1b[2J'\nls";
    assert_eq!(look("poll", window, command, plain("a")), "poll: dev @3\n$ echo '\\x1b[2J'\nls\na");
    assert_eq!(
        look("window", window, "x", shown("a\n", Some("[n]"))),
        "window: dev @3\n$ x\na\n\n[n]"
    );
    assert_eq!(listed(window, 42, None, None), "  dev @3 (42s)");
    assert_eq!(
        listed(window, 42, Some(ExitStatus::Code(3)), None),
        "  dev @3 (42s) finished with exit code 3"
    );
    assert_eq!(list(&[]), "Background windows — 0 window(s)");
    let lines = ["  a @1 (1s)".to_owned(), "  b @2 (2s)".to_owned()];
    assert_eq!(list(&lines), "Background windows — 2 window(s)\n\n  a @1 (1s)\n  b @2 (2s)");
    assert_eq!(polls(&[]), "No active polls.");
    assert_eq!(
        polls(&[("dev".to_owned(), 10_000, 30), ("b".to_owned(), 500, 5)]),
        "Active polls:\n\n  dev every 10s (30 lines)\n  b every 0.5s (5 lines)"
    );
}
