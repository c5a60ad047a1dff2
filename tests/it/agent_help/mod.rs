//! A pi of our own for the tests of the pi harness: a script that writes what a test wants, and
//! the lines that a real one writes.
#![allow(dead_code)]

pub mod pi_json;
pub mod place;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::{Execd, merged, outside};

/// What our pi says to --version.
pub const VERSION: &str = "9.8.7";

/// The end of what our pi says to --help.
pub const HELP: &str = "Built-in Tool Names:
  read   - Read file contents
  bash   - Execute bash commands
  edit   - Edit files with find/replace
  write  - Write files (creates/overwrites)
";

/// Makes a pi that runs this bash script in its working directory; gives its path.
pub fn fake_pi(execd: &Execd, script: &str) -> String {
    let path = execd.tmpdir().join("pi");
    write_pi(&path, script);
    path.to_string_lossy().into_owned()
}

/// The same at this path.
pub fn write_pi(path: &Path, script: &str) {
    let head = format!(
        "#!/bin/bash\n\
         [ \"$1\" = --version ] && {{ echo {VERSION}; exit; }}\n\
         [ \"$1\" = --help ] && {{ printf '%s' '{HELP}'; exit; }}\n"
    );
    write_program(path, &format!("{head}{script}\n"));
}

/// Makes a program of this text at this path.
pub fn write_program(path: &Path, text: &str) {
    std::fs::write(path, text).expect("a program");
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o700)).expect("its mode");
}

/// Writes a stream into a file that our pi can `cat`; gives its path.
pub fn stream_file(execd: &Execd, name: &str, lines: &[Value]) -> PathBuf {
    let path = execd.file(name);
    std::fs::write(&path, ndjson(lines)).expect("a stream");
    path
}

/// Events as lines.
pub fn ndjson(lines: &[Value]) -> String {
    lines.iter().map(|line| wire(line) + "\n").collect()
}

/// JSON as pi writes it: the type of an object is its first field.
pub fn wire(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let (first, others): (Vec<_>, Vec<_>) =
                fields.iter().partition(|(name, _)| *name == "type");
            let field =
                |(name, value): (&String, &Value)| format!("{}:{}", json!(name), wire(value));
            let all: Vec<String> = first.into_iter().chain(others).map(field).collect();
            format!("{{{}}}", all.join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(wire).collect::<Vec<String>>().join(","))
        }
        other => other.to_string(),
    }
}

/// The params of a run of our pi.
pub fn params(pi: &str, more: Value) -> Value {
    merged(json!({"prompt": "Do it", "model": "fake/scripted", "pi_path": pi}), more)
}

/// Runs this script as pi to its end; gives the result.
pub fn run(execd: &mut Execd, script: &str, more: Value) -> Value {
    let pi = fake_pi(execd, script);
    execd.result("agent_execute", params(&pi, more))
}

/// The program that runs pi for this execd: its only one.
pub fn runner_of(execd: i32) -> i32 {
    let is_runner = |pid: i32| outside::comm(pid) == "sessions-agent";
    let children = outside::children(execd).into_iter().map(|(pid, _)| pid);
    let runners: Vec<i32> = children.filter(|pid| is_runner(*pid)).collect();
    let [runner] = runners[..] else { panic!("one program: {runners:?}") };
    runner
}

/// The events of a request so far, without its id.
pub fn events_of(execd: &mut Execd, id: u64) -> Vec<Value> {
    let ours = execd.told_of("agent_event", id).into_iter();
    ours.map(|mut event| {
        event.as_object_mut().expect("an object").remove("request_id");
        event
    })
    .collect()
}

// ---- Lines of a stream ------------------------------------------------------------------

pub fn session() -> Value {
    json!({"type": "session", "version": 3, "id": "session-1", "cwd": "/"})
}

pub fn agent_start() -> Value {
    json!({"type": "agent_start"})
}

pub fn turn_start() -> Value {
    json!({"type": "turn_start"})
}

pub fn assistant_start() -> Value {
    json!({"type": "message_start", "message": {"role": "assistant", "content": []}})
}

pub fn delta(text: &str) -> Value {
    json!({"type": "message_update",
        "assistantMessageEvent": {"type": "text_delta", "contentIndex": 0, "delta": text}})
}

pub fn usage(input: u64, output: u64, cost: f64) -> Value {
    json!({"input": input, "output": output, "cacheRead": 0, "cacheWrite": 0,
        "totalTokens": input + output,
        "cost": {"input": 0, "output": cost, "cacheRead": 0, "cacheWrite": 0, "total": cost}})
}

pub fn assistant_end(text: &str, usage: &Value, stop: &str) -> Value {
    let content = json!([{"type": "text", "text": text}]);
    let message =
        json!({"role": "assistant", "content": content, "usage": usage, "stopReason": stop});
    json!({"type": "message_end", "message": message})
}

pub fn tool_start(id: &str, name: &str, args: Value) -> Value {
    json!({"type": "tool_execution_start", "toolCallId": id, "toolName": name, "args": args})
}

pub fn tool_end(id: &str, name: &str, output: &str) -> Value {
    json!({"type": "tool_execution_end", "toolCallId": id, "toolName": name, "isError": false,
        "result": {"content": [{"type": "text", "text": output}]}})
}

pub fn turn_end() -> Value {
    json!({"type": "turn_end", "toolResults": []})
}

pub fn agent_end() -> Value {
    json!({"type": "agent_end", "messages": [], "willRetry": false})
}

/// One answer to the end: 100 tokens in, 10 out, for 0.25 $.
pub fn answer(text: &str) -> Vec<Value> {
    vec![
        session(),
        agent_start(),
        turn_start(),
        assistant_start(),
        delta(text),
        assistant_end(text, &usage(100, 10, 0.25), "stop"),
        turn_end(),
        agent_end(),
    ]
}

/// An answer that failed with this message, and has cost nothing.
pub fn failed_answer(message: &str) -> Vec<Value> {
    let mut failed = assistant_end("", &usage(0, 0, 0.0), "error");
    failed["message"]["errorMessage"] = json!(message);
    let all = answer("");
    [&all[..4], &[failed], &all[6..]].concat()
}

/// The beginning of a run whose model has begun to answer.
pub fn begun() -> Vec<Value> {
    answer("Half").into_iter().take(5).collect()
}
