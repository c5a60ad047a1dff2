//! Polls of background windows: their pace, to a model and to people, how they begin and end.

use std::time::Duration;

use crate::common::*;
use crate::window_help::*;
use serde_json::{Value, json};

fn often() -> Value {
    json!({"minimumPollIntervalSeconds": 0.1})
}

fn polls_of(execd: &mut Execd, window: &str) -> usize {
    let all = execd.notified("window_poll");
    all.iter().filter(|note| note["window"] == window).count()
}

/// rule: bash.md, bash and tmux: Polls to a model at each interval, at least
///   minimumPollIntervalSeconds
#[test]
fn a_model_is_told_at_each_interval_whatever_has_changed() {
    let mut execd = Execd::start();
    let began = now();
    let more = json!({"background": true, "pollInterval": 0.2, "context": often()});
    let started = bash_with(&mut execd, "echo one; sleep 300", more);
    let expected = "Started in background window: echo @1. Polling every 0.2s.\n";
    assert!(text(&started).starts_with(expected), "{started}");
    for _ in 0..5 {
        let note = polled(&mut execd, "@1");
        assert_fields_but_log(
            &note,
            &["window", "name", "command", "delivery", "tail", "age_seconds", "text"],
        );
        assert_eq!((&note["delivery"], &note["name"]), (&json!("model"), &json!("echo")));
        assert_eq!(note["command"], "echo one; sleep 300");
    }
    assert!(began.elapsed() >= Duration::from_millis(5 * 200 - 1), "{:?}", began.elapsed());
    eventually("the output is told", || polled(&mut execd, "@1")["tail"] == "one\n");
    let note = polled(&mut execd, "@1");
    assert_eq!(text(&note), "poll: echo @1\n$ echo one; sleep 300\none");
}

/// rule: bash.md, bash and tmux: poll, unpoll, list-polls
/// rule: bash.md, bash and tmux: Polls to a model at each interval, at least
///   minimumPollIntervalSeconds
#[test]
fn a_model_is_not_told_more_often_than_the_minimum() {
    let mut execd = Execd::start();
    let window = background_with(&mut execd, "sleep 300", json!({"pollInterval": 2}));
    let polls = tmux(&mut execd, "list-polls");
    assert_eq!(done(&polls), "Active polls:\n\n  sleep every 10s (30 lines)");
    let row = &polls["polls"][0];
    assert_fields(row, &["window", "name", "interval_seconds", "lines", "delivery"]);
    assert_eq!((&row["window"], &row["delivery"]), (&json!("@1"), &json!("model")));
    for (interval, context, expected) in [
        (2.5, json!({}), "Polling sleep every 10s."),
        (20.0, json!({}), "Polling sleep every 20s."),
        (2.5, json!({"minimumPollIntervalSeconds": 2}), "Polling sleep every 2.5s."),
        (2.5, json!({"pollDelivery": "display"}), "Polling sleep every 2.5s."),
    ] {
        let more = json!({"pollInterval": interval, "context": context});
        assert_eq!(done(&tmux_on(&mut execd, "poll", &window, more)), expected);
    }
    let display = json!({"pollInterval": 4, "context": {"pollDelivery": "display"}});
    let result = bash_with(&mut execd, "sleep 300", merged(display, json!({"background": true})));
    assert!(text(&result).contains(" @2. Polling every 4s.\n"), "{result}");
    assert_eq!(tmux(&mut execd, "list-polls")["polls"][1]["delivery"], "display");
}

/// rule: bash.md, bash and tmux: Polls for people at every interval at which the text has changed
#[test]
fn people_are_told_when_the_text_has_changed() {
    let mut execd = Execd::start();
    let (one, two) = (until_file("one"), until_file("two"));
    let command = format!("{one}; echo one; {two}; echo two; sleep 300");
    let quick = json!({"pollInterval": 0.1, "context": {"pollDelivery": "display"}});
    let window = background_with(&mut execd, &command, quick);
    // Another window's polls show that intervals have passed.
    let clock = json!({"pollInterval": 0.1, "context": often()});
    let ticking = background_with(&mut execd, "sleep 300", clock);
    let pass = |execd: &mut Execd| {
        for _ in 0..4 {
            polled(execd, &ticking);
        }
    };
    pass(&mut execd);
    assert_eq!(polls_of(&mut execd, &window), 0, "nothing to show yet");
    go(&execd, "one");
    let note = polled(&mut execd, &window);
    assert_eq!((&note["tail"], &note["delivery"]), (&json!("one\n"), &json!("display")));
    pass(&mut execd);
    assert_eq!(polls_of(&mut execd, &window), 1, "the same is not shown again");
    go(&execd, "two");
    assert_eq!(polled(&mut execd, &window)["tail"], "one\ntwo\n");
}

/// What repeats the same lines has the same tail again and again: people saw two polls of it and
/// then none, as if it stood still. What they are shown counts its lines.
/// rule: bash.md, bash and tmux: Polls for people at every interval at which the text has changed
#[test]
fn people_see_that_output_which_repeats_goes_on() {
    let mut execd = Execd::start();
    let command = "while :; do echo tick; sleep 0.02; done";
    let params =
        json!({"pollInterval": 0.1, "pollLines": 2, "context": {"pollDelivery": "display"}});
    let window = background_with(&mut execd, command, params);
    let mut texts = std::collections::BTreeSet::new();
    for _ in 0..6 {
        let note = polled(&mut execd, &window);
        assert!(texts.insert(text(&note).to_owned()), "nothing is sent twice: {note}");
    }
    let shown = "tick\ntick\n\n[Showing lines ";
    assert!(texts.iter().filter(|text| text.contains(shown)).count() >= 4, "{texts:?}");
}

/// rule: bash.md, bash and tmux: Polls begin with the background and end with the shell
#[test]
fn a_poll_begins_with_the_background_and_not_before() {
    let mut execd = Execd::start();
    let more = json!({"timeout": 1, "pollInterval": 0.1, "context": often()});
    let id = begin(&mut execd, "sleep 300", more);
    let result = execd.result_of(id);
    assert_eq!(
        text(&result),
        "Still running after 1s in background window @1 and polling every \
        0.1s. Use tmux peek/list/kill to inspect or stop it. Result will be reported when it \
        finishes."
    );
    assert_eq!(execd.position(|line| line["method"] == "window_poll"), None);
    polled(&mut execd, "@1");
    let result = bash_with(
        &mut execd,
        "sleep 0.4; exit 3",
        json!({"pollInterval": 0.1,
        "context": often()}),
    );
    assert_eq!(result["exit_code"], 3);
    assert_eq!(polls_of(&mut execd, "@2"), 0, "it never was in the background");
}

/// rule: bash.md, bash and tmux: Polls begin with the background and end with the shell
#[test]
fn polls_end_with_the_shell_with_the_window_and_by_unpoll() {
    let mut execd = Execd::start();
    let poll = json!({"pollInterval": 0.1, "context": often()});
    let command = format!("{}; sleep 300 & exit 2", until_file("go"));
    let window = background_with(&mut execd, &command, poll.clone());
    polled(&mut execd, &window);
    go(&execd, "go");
    assert_eq!(ended(&mut execd, &window)["exit_code"], 2);
    assert_eq!(listed(&mut execd), [window.as_str()], "somebody goes on in it");
    assert_eq!(done(&tmux(&mut execd, "list-polls")), "No active polls.");
    for action in ["kill", "unpoll"] {
        let window = background_with(&mut execd, "sleep 300", poll.clone());
        polled(&mut execd, &window);
        done(&tmux_on(&mut execd, action, &window, json!({})));
        assert_eq!(done(&tmux(&mut execd, "list-polls")), "No active polls.");
    }
    let (place, other) =
        (execd.notified("window_poll").len(), background_with(&mut execd, "sleep 300", poll));
    for _ in 0..4 {
        polled(&mut execd, &other);
    }
    let later = execd.notified("window_poll").split_off(place);
    assert!(later.iter().all(|note| note["window"] == other.as_str()), "{later:?}");
}
