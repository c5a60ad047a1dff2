//! tmux peek: what is new in a window since this client's last look.

use crate::common::wire::Wire;
use crate::common::*;
use crate::window_help::{background, background_with, done, peek, tmux_on};
use serde_json::json;

fn look(execd: &mut Execd, window: &str) -> String {
    done(&tmux_on(execd, "peek", window, json!({}))).to_owned()
}

/// Waits until a window's text ends so, without a look that counts: everything is asked for by
/// another client.
fn until_shown(execd: &Execd, window: &str, line: &str) {
    let mut other = Wire::connect(&execd.socket());
    let params = json!({"action": "peek", "window": window, "all": true});
    eventually("it is shown", || {
        let seen = other.result("tmux", params.clone());
        seen["text"].as_str().expect("a text").contains(&format!("\n{line}"))
    });
}

fn lines(from: u32, to: u32) -> String {
    (from..=to).map(|n| n.to_string()).collect::<Vec<_>>().join("\n")
}

/// rule: bash.md, tmux: `peek` shows what is new since this client's last look
#[test]
fn each_look_shows_what_has_come_since_the_last_one() {
    let mut execd = Execd::start();
    let go = |name: &str| until_file(name);
    let command = format!(
        "seq 1 3; printf part; {}; echo ed; seq 4 5; {}; exec sleep 300",
        go("one"),
        go("two")
    );
    let window = background_with(&mut execd, &command, json!({"name": "w"}));
    until_shown(&execd, &window, "part");
    assert_eq!(look(&mut execd, &window), format!("window: w @1\n$ {command}\n1\n2\n3\npart"));
    assert_eq!(
        look(&mut execd, &window),
        format!("new in window: w @1\n$ {command}\n(nothing new)")
    );
    crate::common::go(&execd, "one");
    until_shown(&execd, &window, "5");
    // The line that was not whole then is shown again, whole.
    let text = look(&mut execd, &window);
    assert_eq!(text, format!("new in window: w @1\n$ {command}\nparted\n4\n5"));
    assert!(peek(&mut execd, &window).ends_with("\n1\n2\n3\nparted\n4\n5"), "all: true");
    assert!(look(&mut execd, &window).ends_with("\n(nothing new)"), "a look at all is a look");
}

/// rule: bash.md, tmux: at most 5 KiB of it
#[test]
fn a_look_has_five_kib_at_most_and_names_the_log() {
    let mut execd = Execd::start();
    let command = format!("seq 1 9000; {}; seq 9001 19000; exec sleep 300", until_file("go"));
    let window = background(&mut execd, &command);
    until_shown(&execd, &window, "9000");
    for (last, total) in [(9_000_u32, 9_000_u32), (19_000, 10_000)] {
        let seen = tmux_on(&mut execd, "peek", &window, json!({}));
        let text = done(&seen);
        let output = text.split_once("300\n").expect("the command").1;
        let (output, notice) = output.split_once("\n\n").expect("a notice");
        assert!(output.len() <= 5 * 1_024 && output.len() > 5_000, "{}", output.len());
        let shown = u32::try_from(output.lines().count()).expect("few");
        assert_eq!(output, lines(last + 1 - shown, last));
        let first = total + 1 - shown;
        let begins =
            format!("[Showing lines {first}-{total} of {total} (5.0KB limit). Full output: ");
        assert!(notice.starts_with(&begins), "{notice}");
        go(&execd, "go");
        until_shown(&execd, &window, "19000");
    }
}
