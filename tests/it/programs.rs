//! Programs that people and agents really run: shells, editors, servers, and what they leave
//! running.

use crate::common::*;
use serde_json::json;

// ---- Shells and REPLs -------------------------------------------------------------------

fn open_bash(execd: &mut Execd) -> u64 {
    // A shell that is not interactive drops PS1 from its environment.
    let cmd = "PS1='prompt> ' exec bash --norc --noprofile -i";
    let env = json!({"PROMPT_COMMAND": null});
    execd.open_ready(cmd, "prompt> ", json!({"tty": true, "env": env}))
}

/// rule: architecture.md, Starting a child: A child can be interrupted (the inherited mask is the
///   classic bug)
#[test]
fn an_interactive_bash_is_driven_line_by_line_and_ctrl_c_ends_the_command_alone() {
    let mut execd = Execd::start();
    let session = open_bash(&mut execd);
    execd.input_until(session, "echo $((6 * 7))\\n", "\n42\n");
    execd.input_until(session, "cd / && pwd\\n", "\n/\n");
    execd.input_until(session, "for i in 1 2; do\\n echo row $((i + 5))\\ndone\\n", "row 7\n");
    execd.input_until(session, "echo be''gin; sleep 4711\\n", "begin");
    eventually("sleep runs", || {
        execd.session_processes().iter().any(|process| process.command == "sleep 4711")
    });
    execd.input_until(session, "\\x03", "prompt> ");
    execd.input_until(session, "echo status $?\\n", "status 130");
    let params = json!({"session_id": session, "chars": "exit 3\\n", "yield_time_ms": 30_000});
    assert_eq!(execd.write(params)["exit_code"], 3);
}

// ---- Full screen ------------------------------------------------------------------------

/// rule: unified-exec.md, set_on_exit, resize_session: `resize_session` sets the PTY's size; the
///   child gets SIGWINCH
#[test]
fn vim_edits_a_file_and_learns_of_a_new_window_size() {
    if missing("vim") {
        return;
    }
    let mut execd = Execd::start();
    let session = execd.open_ready("vim -u NONE -i NONE -n text", "text", json!({"tty": true}));
    execd.input_until(session, "ihello from vim", "vim");
    execd.input(session, "\\x1b");
    execd.result("resize_session", json!({"session_id": session, "cols": 77, "rows": 33}));
    let cmd = ":call writefile([&columns . 'x' . &lines], 'size')\\n";
    // vim looks at its new size when it next waits for a key; a second look is not too late.
    eventually("vim has the new size", || {
        execd.input(session, cmd);
        std::fs::read_to_string(execd.file("size")).is_ok_and(|size| size == "77x33\n")
    });
    let params = json!({"session_id": session, "chars": ":wq\\n", "yield_time_ms": 30_000});
    assert_eq!(execd.write(params)["exit_code"], 0);
    assert_eq!(std::fs::read_to_string(execd.file("text")).expect("a file"), "hello from vim\n");
}

// ---- Jobs -------------------------------------------------------------------------------

/// rule: architecture.md, Ending a session: Killing rescans until no member is left; a fork bomb
///   racing the kill loses
#[test]
fn programs_that_fork_on_and_on_are_ended_whole() {
    let mut execd = Execd::start();
    let bomb = "f() { [ \"$1\" = 0 ] || { f $(($1 - 1)) & f $(($1 - 1)) & }; ";
    for (before, stays, escalated) in [
        ("", "sleep 300; }; f 6", false),
        ("trap '' TERM; ", "while :; do sleep 0.5; done; }; f 5", true),
    ] {
        let session = session_of(&execd.open(&format!("{before}{bomb}{stays}")));
        let result = execd.kill(session);
        assert_eq!((&result["killed"], result["escalated"] == true), (&json!(true), escalated));
        assert_eq!(execd.session_processes().len(), 0, "all are gone when the answer comes");
    }
    // Each process starts the next one and ends: there is never one that stands still.
    std::fs::write(execd.file("hop"), "[ \"$1\" = 2000 ] || sh hop $(($1 + 1)) &\n")
        .expect("a file");
    let cmd = "sh hop 0; sleep 300";
    let session = session_of(&execd.open(cmd));
    assert_eq!(execd.kill(session)["killed"], true);
    execd.until_no_session_process();
}
