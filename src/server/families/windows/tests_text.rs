//! The texts of bash and its windows, by tables.

use super::*;

const OK: ExitStatus = ExitStatus::Code(0);

fn shown<'a>(output: &'a str, notice: Option<&'a str>) -> Shown<'a> {
    Shown { output, notice }
}

fn plain(output: &str) -> Shown<'_> {
    shown(output, None)
}

fn held<'a>(holders: &'a [String], log_path: Option<&'a str>) -> Held<'a> {
    Held { id: 3, holders, log_path }
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
fn what_goes_on_behind_its_time_says_how_it_can_be_looked_at() {
    let inspector = Inspector { tool: "tmux", actions: &INSPECTING };
    assert_eq!(
        went_on(plain("so far\n"), Some(30_000), 3, inspector, None),
        "so far\n\n\nStill running after 30s in background window @3. Use tmux peek/list/kill to \
         inspect or stop it. Result will be reported when it finishes."
    );
    let inspector = Inspector { tool: "windows", actions: &[] };
    assert_eq!(
        went_on(plain(""), Some(1_500), 3, inspector, Some(10_000)),
        "Still running after 1.5s in background window @3 and polling every 10s. Result will be \
         reported when it finishes."
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
