//! tmux: what it shows, whose windows it sees; the fields of a context.

use crate::common::*;
use crate::window_help::*;
use serde_json::{Value, json};

fn with_field(field: &str, value: Value) -> Value {
    let mut context = json!({});
    context[field] = value;
    json!({"command": "true", "context": context})
}

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

/// rule: bash.md, bash and tmux: A wrong type or an unknown field of a context is named by its path
#[test]
fn every_field_of_a_context_is_checked_by_its_name() {
    let mut execd = Execd::start();
    let described =
        crate::common::execd_command().arg("--describe").output().expect("execd starts");
    let described: Value = serde_json::from_slice(&described.stdout).expect("JSON");
    let methods = described["methods"].as_array().expect("methods").iter();
    let bash = methods.clone().find(|one| one["name"] == "bash").expect("bash");
    let fields = bash["params"]["properties"]["context"]["properties"].as_object().expect("fields");
    assert!(fields.len() > 20, "{}", fields.len());
    for field in fields.keys() {
        let path = format!("context.{field}");
        let message = execd.refused("bash", with_field(field, json!([[]])), &path);
        assert!(message.starts_with(&format!("{path} must be ")), "{message}");
        assert!(message.contains("[[]]"), "{message}");
        let on_tmux = merged(with_field(field, json!([[]])), json!({"action": "list"}));
        let context = json!({"action": "list", "context": on_tmux["context"]});
        execd.refused("tmux", context, &path);
    }
    let unknown = execd.error("bash", with_field("maxBytes", json!(3)));
    assert_eq!(unknown["data"]["param"], "context.maxBytes");
    assert!(unknown["message"].as_str().is_some_and(|text| text.contains("; context takes cwd, ")));
    let env = execd.refused("bash", with_field("env", json!({"A": 3})), "context.env");
    assert!(env.contains("context.env[\"A\"] must be a string"), "{env}");
}

/// What bash's text is with a field of its context, and without it.
/// rule: bash.md, bash and tmux: Every field of a context changes what it should
#[test]
fn each_number_of_a_context_changes_what_it_should() {
    let mut execd = Execd::start();
    let cut = "8\n9\n\n[Showing lines 8-9 of 9 (4B limit). Full output: LOG]";
    for (field, value, command, expected) in [
        ("bashContextLines", json!(2), "seq 1 9", &*cut.replace(" (4B limit)", "")),
        ("maxOutputBytes", json!(4), "seq 1 9", cut),
        ("alwaysShowOutputFilePath", json!(true), "echo hi", "hi\n\n\n[Full output: LOG]"),
    ] {
        let params = merged(with_field(field, value.clone()), json!({"command": command}));
        let result = execd.result("bash", params);
        let seen = crate::common::settled_text(text(&result)).replace(&log(&result), "LOG");
        assert_eq!(seen, expected, "{field} {value}: {command}");
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
