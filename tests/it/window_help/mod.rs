//! What the tests of bash and tmux share: commands, windows, their texts.
//! Included beside the harness of `common`.
#![allow(dead_code)]

use serde_json::{Value, json};

use super::common::{Execd, assert_fields, merged};

// ---- Commands ---------------------------------------------------------------------------

/// bash, with more params; a foreground command has a minute unless they say otherwise.
pub fn bash_with(execd: &mut Execd, command: &str, more: Value) -> Value {
    let id = begin(execd, command, more);
    execd.result_of(id)
}

/// bash in the foreground.
pub fn bash(execd: &mut Execd, command: &str) -> Value {
    bash_with(execd, command, json!({}))
}

/// Sends bash and gives the request's id.
pub fn begin(execd: &mut Execd, command: &str, more: Value) -> u64 {
    execd.start_request("bash", merged(json!({"command": command, "timeout": 60}), more))
}

/// Starts a command in the background; gives its window's id, as `@3`.
pub fn background(execd: &mut Execd, command: &str) -> String {
    background_with(execd, command, json!({}))
}

/// The same with more params.
pub fn background_with(execd: &mut Execd, command: &str, more: Value) -> String {
    let result = bash_with(execd, command, merged(json!({"background": true}), more));
    assert_eq!(result["status"], "background", "{command}: {result}");
    window_of(&result)
}

/// bash with this context.
pub fn within(execd: &mut Execd, command: &str, context: Value) -> Value {
    bash_with(execd, command, json!({"context": context}))
}

// ---- tmux -------------------------------------------------------------------------------

/// An action without a window.
pub fn tmux(execd: &mut Execd, action: &str) -> Value {
    execd.result("tmux", json!({"action": action}))
}

/// An action on a window, with more params.
pub fn tmux_on(execd: &mut Execd, action: &str, window: &str, more: Value) -> Value {
    execd.result("tmux", merged(json!({"action": action, "window": window}), more))
}

/// The text of an action that must succeed.
pub fn done(result: &Value) -> &str {
    assert_eq!(result["is_error"], false, "{result}");
    text(result)
}

/// The text of an action that must not.
pub fn refusal(result: &Value) -> &str {
    assert_eq!(result["is_error"], true, "{result}");
    text(result)
}

/// The text of a peek that shows everything.
pub fn peek(execd: &mut Execd, window: &str) -> String {
    done(&tmux_on(execd, "peek", window, json!({"all": true}))).to_owned()
}

/// The ids of the windows of a list.
pub fn ids(list: &Value) -> Vec<String> {
    let windows = list["windows"].as_array().expect("windows");
    windows.iter().map(|row| row["window"].as_str().expect("an id").to_owned()).collect()
}

/// The windows that tmux lists.
pub fn listed(execd: &mut Execd) -> Vec<String> {
    ids(&tmux(execd, "list"))
}

// ---- Notifications ----------------------------------------------------------------------

/// The word of the end of a window.
pub fn ended(execd: &mut Execd, window: &str) -> Value {
    execd.notification("window_exited", |note| note["window"] == window)
}

/// The next poll of a window.
pub fn polled(execd: &mut Execd, window: &str) -> Value {
    execd.notification("window_poll", |note| note["window"] == window)
}

/// The words of the end of a window until now.
pub fn ends_of(execd: &mut Execd, window: &str) -> Vec<Value> {
    let all = execd.notified("window_exited");
    all.into_iter().filter(|note| note["window"] == window).collect()
}

// ---- Reading ----------------------------------------------------------------------------

/// What a model reads.
pub fn text(result: &Value) -> &str {
    result["text"].as_str().unwrap_or_else(|| panic!("no text in {result}"))
}

/// The window of a result, as `@3`.
pub fn window_of(result: &Value) -> String {
    result["window"].as_str().unwrap_or_else(|| panic!("no window in {result}")).to_owned()
}

/// The session behind a window.
pub fn session(window: &str) -> u64 {
    window.trim_start_matches('@').parse().expect("a number")
}

/// Shows the same of what may come so early that its log has no file yet.
pub fn assert_fields_but_log(result: &Value, fields: &[&str]) {
    let mut result = result.clone();
    result.as_object_mut().expect("an object").remove("log_path");
    assert_fields(&result, fields);
}

/// The log that a result names.
pub fn log(result: &Value) -> String {
    result["log_path"].as_str().unwrap_or_else(|| panic!("no log in {result}")).to_owned()
}
