//! tmux: what it shows, whose windows it sees; the fields of a context.

use crate::common::*;
use crate::window_help::*;
use serde_json::json;

/// rule: bash.md, bash and tmux: list, peek, kill: their texts and rows
#[test]
fn peek_shows_the_command_and_the_last_lines() {
    let mut execd = Execd::start();
    let command = "seq 1 3000; printf '\\033[1mend\\033[0m'; sleep 300";
    let window = background(&mut execd, command);
    eventually("all is there", || peek(&mut execd, &window).contains("\nend\n\n"));
    let peeked = tmux_on(&mut execd, "peek", &window, json!({"all": true}));
    let lines: String = (1002..=3000).map(|i| format!("{i}\n")).collect();
    assert_eq!(
        crate::common::settled_text(done(&peeked)),
        format!(
            "window: seq @1\n$ {command}\n{lines}end\n\n[Showing lines 1002-3001 of 3001. Full output: \
         {}]",
            peeked["windows"][0]["log_path"].as_str().expect("a log")
        )
    );
    for (context, end) in [
        (json!({"peekContextLines": 2}), "3000\nend\n\n[Showing lines 3000-3001 of 3001. "),
        (json!({"maxOutputBytes": 4}), "\nend\n\n[Showing lines 3001-3001 of 3001 (4B limit). "),
    ] {
        let peeked = tmux_on(&mut execd, "peek", &window, json!({"context": context, "all": true}));
        assert!(done(&peeked).contains(&format!("sleep 300\n{}", end.trim_start())), "{peeked}");
    }
}

/// rule: bash.md, bash and tmux: Scopes: pi-session, git-root, all; no git is fine
#[test]
fn scopes_decide_which_windows_the_actions_see() {
    let mut execd = Execd::start();
    let scope = |session: &str, root: &str| json!({"piSession": session, "gitRoot": root});
    for (session, root) in [("s1", "/a"), ("s1", "/b"), ("s2", "/a")] {
        let context = json!({"context": {"scope": scope(session, root)}});
        background_with(&mut execd, "sleep 300", context);
    }
    background_with(&mut execd, "sleep 300", json!({"context": {"scope": {"piSession": "s3"}}}));
    for (context, seen) in [
        (json!({"windowScope": "pi-session", "scope": scope("s1", "/x")}), vec!["@1", "@2"]),
        (json!({"windowScope": "git-root", "scope": scope("x", "/a")}), vec!["@1", "@3"]),
        (json!({"windowScope": "git-root", "scope": {"piSession": "s1"}}), vec!["@4"]),
        (json!({"windowScope": "all", "scope": scope("x", "/x")}), vec!["@1", "@2", "@3", "@4"]),
        (json!({"scope": {"piSession": "s1"}}), vec!["@1", "@2"]),
        (json!({"scope": {"gitRoot": "/a"}}), vec!["@1", "@3"]),
        (json!({"scope": scope("s1", "/a")}), vec!["@1"]),
        (json!({"scope": scope("s9", "/a")}), vec![]),
        (json!({}), vec!["@1", "@2", "@3", "@4"]),
    ] {
        let list = execd.result("tmux", json!({"action": "list", "context": context}));
        assert_eq!(ids(&list), seen, "{context}");
        for window in ["@1", "@2", "@3", "@4"] {
            let more = json!({"context": context, "pollInterval": 3600});
            for action in ["peek", "poll"] {
                let result = tmux_on(&mut execd, action, window, more.clone());
                assert_eq!(
                    result["is_error"],
                    !seen.contains(&window),
                    "{action} {window} {context}"
                );
            }
            let polls = execd.result("tmux", json!({"action": "list-polls", "context": context}));
            assert!(polls["polls"].as_array().expect("polls").len() <= seen.len());
            tmux_on(&mut execd, "unpoll", window, json!({}));
        }
    }
    let elsewhere = json!({"context": {"scope": {"piSession": "s2"}}});
    assert_eq!(refusal(&tmux_on(&mut execd, "kill", "@1", elsewhere)), "No background window @1.");
    assert_eq!(listed(&mut execd).len(), 4, "it lives");
}
