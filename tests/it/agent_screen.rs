//! What a terminal shows of `execd agent` (agent.md, From a shell): whole screens of tmux.

use crate::agent_help::place::Place;
use crate::agent_help::*;
use crate::common::eventually;
use crate::common::tmux::{Tmux, can_draw};
use serde_json::{Value, json};

fn terminal(place: &Place, cols: u16) -> Tmux {
    let pi = place.path().join("pi");
    let execd = std::path::Path::new(crate::common::EXECD);
    let envs = [
        ("EXECD_PI", pi.as_path()),
        ("EXECD", execd),
        ("TMPDIR", place.path()),
        ("XDG_RUNTIME_DIR", place.path()),
        ("PLACE", place.path()),
    ];
    let tmux = Tmux::new((cols, 24), &envs, &[]);
    tmux.line(
        "cd $PLACE; run() { clear >/dev/tty; \"$EXECD\" agent --model fake/scripted --no-log \"$@\"; }",
    );
    tmux
}

/// The screen up to its last line with something in it, with `T s` in the place of times.
fn neutral(screen: &str) -> String {
    let words = screen.trim_end().split_inclusive([' ', '\n']);
    let mut out: Vec<String> = words.map(str::to_owned).collect();
    for at in 1..out.len() {
        let seconds = out[at].trim_end_matches([' ', '\n', ',']) == "s";
        let number = out[at - 1].trim_end().chars().all(|c| c.is_ascii_digit() || c == '.');
        if seconds && number {
            let end = out[at - 1].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            out[at - 1] = format!("T{end}");
        }
    }
    out.concat()
}

fn refused() -> Vec<Value> {
    let text = "Let me run the tests of the whole project first, to see what is broken in it.";
    let mut failed = tool_end("t", "bash", "make: *** No rule to make target 'test'.  Stop.\n");
    failed["isError"] = json!(true);
    let call = json!({"type": "toolCall", "id": "t", "name": "bash",
        "arguments": {"command": "cd /work/projects/a-rather-long-name && make --keep-going test"}});
    let called = json!({"type": "message_update",
        "assistantMessageEvent": {"type": "toolcall_end", "contentIndex": 1, "toolCall": call}});
    let overloaded = "529 overloaded_error: the model is overloaded, try again later";
    let retry = json!({"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3,
        "delayMs": 2000, "errorMessage": overloaded});
    let mut refusal = assistant_end("", &usage(200, 0, 0.5), "error");
    let message = "The request was declined: it asks for what the provider's rules of use do not \
                   allow, so nothing was generated";
    refusal["message"]["rawStopReason"] = json!("refusal");
    refusal["message"]["errorMessage"] = json!(message);
    let start = [session(), agent_start(), turn_start(), assistant_start(), delta(text), called];
    let turn = [
        assistant_end(text, &usage(100, 10, 0.25), "toolUse"),
        tool_start("t", "bash", json!({})),
        failed,
        turn_end(),
        retry,
        turn_start(),
        assistant_start(),
        refusal,
        turn_end(),
        agent_end(),
    ];
    [&start[..], &turn].concat()
}

/// rule: agent.md, execd agent: A terminal shows tool calls, failures, retries and why a run failed
///   in lines that fit it
/// rule: agent.md, execd agent: Lines are cut or broken at the terminal's width
/// rule: agent.md, execd agent: A tool that fails is a line on stderr, with the first line of its
///   output
#[test]
fn a_run_that_is_refused_reads_well_at_40_columns() {
    if !can_draw() {
        return;
    }
    let expected = "\
Let me run the tests of the whole projec
t first, to see what is broken in it.
bash {\"command\":\"cd /work/projects/a-ra…
✗ bash failed: make: *** No rule to mak…
retry 1 of 3: 529 overloaded_error: the…
execd: The request was declined: it asks
  for what the provider's rules of use
  do not allow, so nothing was generated
execd: content_filter (refusal): 2
  turns, 1 tool call, 310 tokens (300
  in, 10 out), $0.7500, T s
status 1
$";
    let place = Place::new(&refused(), "");
    let tmux = terminal(&place, 40);
    tmux.line("run 'Fix the tests'; echo status $?");
    let screen = tmux.until("status 1\n$");
    assert_eq!(neutral(&screen), expected, "{screen}");
}

/// rule: agent.md, execd agent: While it waits a terminal shows for how long, in a line that is
///   gone before anything else
#[test]
fn how_long_it_takes_is_a_line_that_is_gone_afterwards() {
    if !can_draw() {
        return;
    }
    let all = answer("Done.");
    let tool = tool_start("t", "bash", json!({"command": "make"}));
    let place = Place::new(
        &[&all[..3], &[tool]].concat(),
        "until [ -e go ]; do sleep 0.02; done; cat rest; until [ -e end ]; do sleep 0.02; done",
    );
    let rest = [&[tool_end("t", "bash", "out")], &all[3..]].concat();
    std::fs::write(place.path().join("rest"), ndjson(&rest)).expect("a stream");
    // stdout is a pipe, stderr the terminal.
    let tmux = terminal(&place, 80);
    tmux.line("run 'Go on' | cat > out; echo status $?");
    let screen = tmux.until("] bash runs");
    let lines: Vec<&str> = screen.trim_end().lines().collect();
    assert_eq!(lines[0], "bash {\"command\":\"make\"}", "{screen}");
    assert!(lines[1].starts_with("[0:") && lines.len() == 2, "{screen}");
    std::fs::write(place.path().join("go"), "").expect("a file");
    eventually("the text is in the pipe", || place.read("out") == "Done.");
    tmux.until_screen("the line is gone", |screen| {
        screen.trim_end() == "bash {\"command\":\"make\"}"
    });
    std::fs::write(place.path().join("end"), "").expect("a file");
    let screen = tmux.until("status 0\n$");
    let expected = "\
bash {\"command\":\"make\"}
execd: stop: 1 turn, 1 tool call, 110 tokens (100 in, 10 out), $0.2500, T s
status 0
$";
    assert_eq!(neutral(&screen), expected, "{screen}");
    assert_eq!(place.read("out"), "Done.\n");
}

/// rule: agent.md, execd agent: No line that is rewritten where stderr is no terminal
/// rule: agent.md, execd agent: `-v` shows what the model thinks
/// rule: agent.md, execd agent: `-v` shows what the model thinks, dimmed on a terminal without
///   `NO_COLOR`
/// rule: cli.md, Help: NO_COLOR is honoured, no colour off a terminal
#[test]
fn thoughts_are_dimmed_and_nothing_is_rewritten_in_a_file() {
    if !can_draw() {
        return;
    }
    let all = answer("Done.");
    let thought = "The rule for the target is missing, so that make has nothing to do for it \
                   whatever it is asked for.";
    let think = json!({"type": "message_update", "assistantMessageEvent":
        {"type": "thinking_delta", "contentIndex": 0, "delta": thought}});
    let place = Place::new(&[&all[..4], &[think], &all[4..]].concat(), "sleep 1.2");
    let tmux = terminal(&place, 60);
    tmux.line("run -v 'Go on' 2> err; echo status $?");
    tmux.until("status 0\n$");
    let err = place.read("err");
    assert!(err.starts_with(&format!("thinking: {thought}\nexecd: stop: ")), "{err:?}");
    assert!(!err.contains(['\r', '\x1b']), "{err:?}");
    let sequences = |words: &[&str]| {
        let done = tmux.tmux(&[&["capture-pane", "-p"], words].concat());
        String::from_utf8(done.stdout).expect("UTF-8")
    };
    tmux.line("run -v 'Go on'; echo again $?");
    tmux.until("again 0");
    let shown = sequences(&["-e"]);
    let plain = sequences(&[]);
    let dimmed = "\x1b[2mthinking: The rule for the target is missing, so that make";
    assert!(shown.contains(dimmed), "{shown:?}");
    assert!(plain.contains("\n          has nothing to do for it whatever it is asked for.\n"));
    tmux.line("NO_COLOR=1 run -v 'Go on'; echo third $?");
    tmux.until("third 0");
    assert!(!sequences(&["-e"]).contains("\x1b[2m"));
}
