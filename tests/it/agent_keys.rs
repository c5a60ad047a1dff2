//! An api_key is nowhere in what execd tells, keeps or starts, however pi and its tools print it
//! (agent.md, Keys), and all other text is as pi wrote it.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::agent_help::*;
use crate::common::*;
use serde_json::{Value, json};

/// 40 characters, with a slash, which JSON may write with a backslash.
const KEY: &str = "sk-Test/0123456789+abcdefghijklmnopqrs-t";
/// So much of the key is nowhere.
const PART_BYTES: usize = 20;
/// How a version of pi tells what grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// Deltas alone, as 0.87 and 1.5.
    Deltas,
    /// The whole message in each update, as 0.73.
    Repeats,
    /// Deltas, and each slash with a backslash.
    Slashes,
}

fn assert_hidden(what: &str, text: &str) {
    for part in KEY.as_bytes().windows(PART_BYTES) {
        let part = std::str::from_utf8(part).expect("ASCII");
        let at = text.find(part);
        let near =
            at.map(|at| text[at.saturating_sub(200)..].chars().take(300).collect::<String>());
        assert!(at.is_none(), "{what} has {part:?}: …{}…", near.unwrap_or_default());
    }
}

fn update(event: Value, partial: &Value, style: Style) -> Value {
    let mut event = merged(json!({}), event);
    if style == Style::Repeats {
        event["partial"] = partial.clone();
        return json!({"type": "message_update", "assistantMessageEvent": event,
            "message": partial});
    }
    json!({"type": "message_update", "usage": usage(1, 1, 0.0), "assistantMessageEvent": event})
}

/// A message in deltas of so many characters: a thought, a text and a tool's arguments, each with
/// the key.
fn message(chars: usize, style: Style) -> Vec<Value> {
    let arguments = json!({"command": format!("echo {KEY}")}).to_string();
    let id = format!("call-{chars}");
    let call = json!({"type": "toolCall", "id": id, "name": "bash",
        "arguments": {"command": format!("echo {KEY}")}});
    let texts = [
        ("thinking", "thinking", format!("The key: {KEY}{KEY}.")),
        ("text", "text", format!("Size {chars}: <{KEY}{KEY}> {KEY}")),
        ("toolcall", "partialArgs", arguments),
    ];
    let mut content = vec![];
    let mut lines = vec![turn_start(), assistant_start()];
    for (index, (kind, field, text)) in texts.iter().enumerate() {
        content.push(json!({"type": kind, *field: ""}));
        let all: Vec<char> = text.chars().collect();
        for piece in all.chunks(chars) {
            let piece: String = piece.iter().collect();
            let so_far = content[index][*field].as_str().expect("a text").to_owned() + &piece;
            content[index][*field] = json!(so_far);
            let event =
                json!({"type": format!("{kind}_delta"), "contentIndex": index, "delta": piece});
            lines.push(update(event, &json!({"role": "assistant", "content": content}), style));
        }
    }
    let whole = json!({"role": "assistant", "usage": usage(100, 10, 0.01), "stopReason": "toolUse",
        "content": [{"type": "thinking", "thinking": texts[0].2},
            {"type": "text", "text": texts[1].2}, call]});
    for (kind, index, field, value) in [
        ("thinking_end", 0, "content", json!(texts[0].2)),
        ("text_end", 1, "content", json!(texts[1].2)),
        ("toolcall_end", 2, "toolCall", call),
    ] {
        let event = json!({"type": kind, "contentIndex": index, field: value});
        lines.push(update(event, &whole, style));
    }
    lines.push(json!({"type": "message_end", "message": whole}));
    lines
}

fn tool(chars: usize) -> Vec<Value> {
    let id = format!("call-{chars}");
    let output = format!("A={KEY};{KEY}\n");
    let args = json!({"command": format!("echo {KEY}")});
    let mut lines = vec![tool_start(&id, "bash", args.clone())];
    for upto in (0..=output.len()).step_by(chars) {
        lines.push(json!({"type": "tool_execution_update", "toolCallId": id, "toolName": "bash",
            "args": args, "partialResult": {"content": [{"type": "text", "text": &output[..upto]}]}}));
    }
    lines.push(tool_end(&id, "bash", &output));
    let turn = json!({"type": "turn_end", "message": {"role": "assistant", "content": output},
        "toolResults": [{"content": output}]});
    lines.push(turn);
    lines
}

fn others() -> Vec<Value> {
    let failed = json!({"role": "assistant", "content": [], "usage": usage(1, 0, 0.0),
        "stopReason": "error", "errorMessage": format!("401 invalid x-api-key: {KEY}")});
    vec![
        json!({"type": "turn_start", "new": {KEY: [KEY]}}),
        json!({"type": "message_update", "new": KEY,
            "assistantMessageEvent": {"type": KEY, "contentIndex": 0}}),
        json!({"type": KEY}),
        json!({"type": "bash_execution_update", "id": KEY, "delta": KEY}),
        json!({"type": "message_end", "message": failed}),
        json!({"type": "auto_retry_start", "attempt": 1, "maxAttempts": 1, "delayMs": 1,
            "errorMessage": format!("failed with {KEY}")}),
        json!({"type": "auto_retry_end", "success": false, "attempt": 1,
            "finalError": format!("failed again with {KEY}")}),
        json!({"type": "agent_end", "messages": [failed], "willRetry": false}),
    ]
}

fn stream(style: Style) -> String {
    let mut lines = vec![session(), agent_start()];
    for chars in 1..=41 {
        lines.extend(message(chars, style));
        lines.extend(tool(chars));
    }
    lines.extend(others());
    let mut text = ndjson(&lines);
    if style == Style::Slashes {
        text = text.replace('/', r"\/");
    }
    // A line that is no event, and one whose type comes late.
    writeln!(text, "key {KEY}\n{{\"a\":{},\"type\":\"session\"}}", json!(KEY)).expect("a string");
    text
}

fn said(runtime: &Path, words: &[&str]) -> String {
    let mut all = apart().iter().chain([&crate::common::EXECD]).chain(words);
    let mut command = Command::new(all.next().expect("a program"));
    command.args(all).env("XDG_RUNTIME_DIR", runtime).stdin(Stdio::null());
    let said = command.env_remove("EXECD_INSTANCE").output().expect("it runs");
    assert!(said.status.success(), "{words:?}: {said:?}");
    [said.stdout, said.stderr].map(|bytes| String::from_utf8(bytes).expect("UTF-8")).concat()
}

/// All that is told of a run so far, one text for each kind of it, and deltas joined.
fn told(execd: &mut Execd, id: u64) -> Vec<(String, String)> {
    let events = events_of(execd, id);
    let notes = execd.notifications_so_far();
    let mut all = vec![("notifications".to_owned(), json!(notes).to_string())];
    for name in ["text", "thinking", "tool_use", "tool_result", "error", "retry"] {
        let ours = || events.iter().filter(|event| event["event"] == name);
        for field in ["delta", "input", "output", "message"] {
            let joined: String =
                ours().filter_map(|event| event[field].as_str().map(str::to_owned)).collect();
            all.push((format!("{name}.{field}"), joined));
        }
    }
    all
}

/// Runs a pi that tells the key in all ways, and looks for the key wherever execd tells something.
fn a_key_is_nowhere(style: Style, model: &str) {
    let debug = [("EXECD_LOG", "debug"), ("ANTHROPIC_API_KEY", "")];
    let mut execd = Execd::with(&[], &debug);
    std::fs::write(execd.file("stream"), stream(style)).expect("a stream");
    let script = format!(
        "echo \"$ANTHROPIC_API_KEY {KEY}\" >&2\ncat stream\n{}\necho '{KEY}' \
         >&2\nexit 1",
        until_file("go")
    );
    let pi = fake_pi(&execd, &script);
    let more = json!({"api_key": KEY, "model": model, "keep_events": true,
        "env": {"PI_CODING_AGENT_DIR": execd.file("agent")},
        "prompt": format!("Say {}", &KEY[..PART_BYTES - 1])});
    let id = execd.start_request("agent_execute", params(&pi, more));
    let own = execd.notification("session_started", |note| note["command"] != "");
    let session = own["session_id"].as_u64().expect("a number");
    execd.notification("agent_event", |note| note["event"] == "error");

    // While it runs.
    let runtime = execd.runtime_dir();
    let at = format!("@{session}");
    eventually("the log has all of it", || said(&runtime, &["tail", &at]).contains("failed again"));
    for words in [vec!["tail", &at], vec!["ls"], vec!["ls", "--json"]] {
        assert_hidden(&format!("{words:?}"), &said(&runtime, &words));
    }
    let row = execd.listed(session).expect("a row");
    assert_hidden("the row", &row.to_string());
    let pids: Vec<i32> = execd.marked().into_iter().chain([execd.pid()]).collect();
    let mut lines = String::new();
    for pid in pids {
        let line = crate::common::outside::cmdline(pid);
        lines += &String::from_utf8_lossy(&line);
    }
    assert!(lines.contains("--mode") && lines.contains("execd"), "{lines}");
    assert_hidden("a command line", &lines);

    go(&execd, "go");
    let result = execd.result_of(id);
    let log = String::from_utf8(log_of(&result)).expect("UTF-8");
    for (what, text) in told(&mut execd, id) {
        assert_hidden(&what, &text);
    }
    assert_hidden("the result", &result.to_string());
    assert_hidden("the log", &log);
    assert_hidden("stderr", &execd.stderr());

    // It was there: masked.
    let masked = "*".repeat(KEY.len());
    let output = result["output"].as_str().expect("a text");
    for chars in 1..=41 {
        assert!(output.contains(&format!("Size {chars}: <{masked}{masked}> {masked}")), "{output}");
    }
    assert!(result["provider_data"]["text_mismatches"].is_null(), "{result}");
    assert!(result["error"].as_str().is_some_and(|text| text.contains(&masked)), "{result}");
    assert!(log.matches(&masked).count() > 41 * 8, "the tools', the messages' and stderr's");
    let left_out = &result["provider_data"]["events_left_out"];
    assert!(left_out.as_u64().is_some_and(|count| count > 41 * 6), "{left_out}");
    let fields = result["provider_data"]["unknown_fields"].to_string();
    assert!(fields.contains(&masked), "{fields}");
}

/// rule: agent.md, Keys: A key of 40 characters, printed by a tool and by the model, in deltas of 1
///   to 41 characters, whole and repeated, is in no event, result, log, list, `execd tail`, error,
///   stderr and no command line of a process
#[test]
fn a_key_is_nowhere_where_pi_tells_deltas() {
    a_key_is_nowhere(Style::Deltas, "anthropic/x");
}

/// rule: agent.md, Keys: A key of 40 characters, printed by a tool and by the model, in deltas of 1
///   to 41 characters, whole and repeated, is in no event, result, log, list, `execd tail`, error,
///   stderr and no command line of a process
#[test]
fn a_key_is_nowhere_where_pi_repeats_the_message_in_each_update() {
    a_key_is_nowhere(Style::Repeats, "fake/scripted");
}

/// rule: agent.md, Keys: A key with slashes is masked too where JSON writes them with a backslash
#[test]
fn a_key_is_nowhere_where_slashes_are_escaped() {
    a_key_is_nowhere(Style::Slashes, "anthropic/x");
}

/// What a client sees of the real pi's stream with this key, or without one: texts, thoughts, all
/// other events in their order, and the result. The log has the same events.
fn seen(execd: &mut Execd, stream: &str, key: Option<&str>) -> (Vec<Value>, Value) {
    std::fs::write(execd.file("stream"), stream).expect("a stream");
    let pi = fake_pi(execd, "cat stream");
    let more = key.map_or(json!({}), |key| json!({"api_key": key}));
    let more = merged(json!({"env": {"PI_CODING_AGENT_DIR": execd.file("agent")}}), more);
    let id = execd.start_request("agent_execute", params(&pi, more));
    let mut result = execd.result_of(id);
    let log = String::from_utf8(log_of(&result)).expect("UTF-8");
    let events = events_of(execd, id);
    let logged = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    assert_eq!(logged.collect::<Vec<_>>(), events);
    let joined = |name: &str| {
        let ours = events.iter().filter(|event| event["event"] == name);
        json!(ours.map(|event| event["delta"].as_str().expect("text")).collect::<String>())
    };
    let mut all = vec![joined("text"), joined("thinking")];
    let delta = |event: &&Value| event["event"] == "text" || event["event"] == "thinking";
    all.extend(events.iter().filter(|event| !delta(event)).cloned());
    let fields = result.as_object_mut().expect("an object");
    fields.retain(|name, _| {
        !name.ends_with("_ms")
            && !name.ends_with("_at")
            && name != "log_path"
            && name != "args"
            && name != "tokens_per_second"
            && name != "cpu_seconds"
            && name != "max_rss_kib"
    });
    (all, result)
}

/// rule: agent.md, Keys: All other text of a run is told and logged as pi wrote it, byte for byte
#[test]
fn other_text_of_a_run_with_a_key_is_unchanged() {
    let mut execd = Execd::start();
    // What the streams have of them is their beginnings.
    let keys = ["alpha-0123456789abcdef", "Iason/0123456789abcdef", "{0123456789abcdef"];
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pi-json");
    for version in ["0.73.1", "0.87.1", "1.5.2"] {
        for (at, name) in ["thinking", "tool-bash", "unicode", "retry-midway"].iter().enumerate() {
            let path = fixtures.join(format!("pi-{version}.{name}.ndjson"));
            let text = std::fs::read_to_string(&path).expect("a stream");
            let expected = seen(&mut execd, &text, None);
            let with_key = seen(&mut execd, &text, Some(keys[at % keys.len()]));
            assert_eq!(with_key, expected, "{version} {name}");
        }
    }
}

/// rule: agent.md, Keys: The api_key of a run wins over what stands for its provider in pi's
///   auth.json and models.json, and over variables that pi would rather take
#[test]
fn a_given_key_wins_over_what_stands_in_pis_files() {
    let mut execd =
        Execd::with(&[], &[("ANTHROPIC_AUTH_TOKEN", "x"), ("ANTHROPIC_OAUTH_TOKEN", "x")]);
    stream_file(&execd, "answer", &answer("Done."));
    let shared = execd.file("agent");
    std::fs::create_dir(&shared).expect("a directory");
    let theirs = json!({"type": "api_key", "key": "another one"});
    let ours = json!({"type": "api_key", "key": KEY});
    let script = "printf '%s' \"$ANTHROPIC_API_KEY|$OPENAI_API_KEY|$ANTHROPIC_AUTH_TOKEN|\
                  $ANTHROPIC_OAUTH_TOKEN\" > keys; echo \"$PI_CODING_AGENT_DIR\" > dir; \
                  cp \"$PI_CODING_AGENT_DIR/auth.json\" auth; cat answer";
    let pi = fake_pi(&execd, script);
    let models = json!({"providers": {"anthropic": {"apiKey": "another one"}}}).to_string();
    // The model, the files, and whether the shared directory will do.
    for (model, auth, models, is_shared) in [
        ("anthropic/x", json!({}), "{}", true),
        ("anthropic/x", json!({"openai": theirs}), "{}", true),
        ("anthropic/x", json!({"openai": theirs, "anthropic": theirs}), "{}", false),
        ("anthropic/x", json!({}), models.as_str(), false),
        ("openai/x", json!({"openai": {"type": "oauth"}}), "{}", false),
    ] {
        std::fs::write(shared.join("auth.json"), auth.to_string()).expect("a file");
        std::fs::write(shared.join("models.json"), models).expect("a file");
        let more = json!({"api_key": KEY, "model": model, "strict_model": false,
            "env": {"PI_CODING_AGENT_DIR": shared}});
        execd.result("agent_execute", params(&pi, more));
        let read = |name: &str| std::fs::read_to_string(execd.file(name)).expect("a file");
        let provider = model.split('/').next().expect("a provider");
        let variables = match provider {
            "anthropic" => format!("{KEY}|||"),
            _ => format!("|{KEY}|x|x"),
        };
        assert_eq!(read("keys"), variables, "{model}");
        assert_eq!(Path::new(read("dir").trim()) == shared, is_shared, "{model} {auth} {models}");
        let mut expected = auth.clone();
        if !is_shared {
            expected[provider] = ours.clone();
        }
        let its: Value = serde_json::from_str(&read("auth")).expect("JSON");
        assert_eq!(its, expected, "{model}");
        let kept = std::fs::read_to_string(shared.join("auth.json")).expect("a file");
        assert_eq!(kept, auth.to_string(), "the shared file is as it was");
    }
}
