//! Names of params (protocol.md, Names of params): what is taken for what, and what is said of a
//! name that means nothing, for every method that `execd --describe` tells of.

use crate::common::*;
use serde_json::{Map, Value, json};

/// A value that fits no param.
fn misfit() -> Value {
    json!([[]])
}

/// The methods with the properties of their params, of both forms where there are two.
fn methods() -> Vec<(String, Map<String, Value>)> {
    let said = crate::common::execd_command().arg("--describe").output();
    let said = said.expect("execd says it").stdout;
    let table: Value = serde_json::from_slice(&said).expect("JSON");
    let mut all = Vec::new();
    for method in table["methods"].as_array().expect("methods") {
        let name = method["name"].as_str().expect("a name").to_owned();
        all.push((name, method["params"]["properties"].as_object().expect("params").clone()));
    }
    assert!(all.len() > 20, "{}", all.len());
    all
}

/// A name in the other case: camelCase for snake_case, and the other way round.
fn in_other_case(name: &str) -> Option<String> {
    let mut out = String::new();
    let mut up = false;
    for letter in name.chars() {
        match letter {
            '_' => up = true,
            letter if up => {
                out.push(letter.to_ascii_uppercase());
                up = false;
            }
            letter if letter.is_ascii_uppercase() => {
                out.push('_');
                out.push(letter.to_ascii_lowercase());
            }
            letter => out.push(letter),
        }
    }
    (out != name).then_some(out)
}

/// What is said of one field alone: the param that the error names, and the message.
fn said_of(execd: &mut Execd, method: &str, inside: &[&str], field: &str) -> (String, String) {
    let mut params = json!({field: misfit()});
    for name in inside.iter().rev() {
        params = json!({*name: params});
    }
    let error = execd.error(method, params);
    assert_eq!(error["code"], -32602, "{method} {field}: {error}");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    (text(&error["data"]["param"]), text(&error["message"]))
}

/// Goes through the params of a method, and the fields of those that are objects.
fn each_param(
    properties: &Map<String, Value>,
    inside: &mut Vec<String>,
    look: &mut dyn FnMut(&[&str], &str, &Value),
) {
    for (name, schema) in properties {
        let path: Vec<&str> = inside.iter().map(String::as_str).collect();
        look(&path, name, schema);
        if let Some(fields) = schema["properties"].as_object() {
            inside.push(name.clone());
            each_param(fields, inside, look);
            inside.pop();
        }
    }
}

fn path_of(inside: &[&str], name: &str) -> String {
    inside.iter().chain([&name]).copied().collect::<Vec<_>>().join(".")
}

/// rule: protocol.md, Names of params: A name that means none is refused with the nearest one
/// rule: protocol.md, Framing: Unknown params are refused with −32602 naming the field
/// rule: protocol.md, Names of params: A poll never comes of a write that is misspelt
#[test]
fn a_misspelt_param_of_each_method_is_refused_by_name_with_the_right_one() {
    let mut execd = Execd::start();
    for (method, properties) in methods() {
        let mut look = |inside: &[&str], name: &str, _: &Value| {
            let misspelt = format!("{name}{}", &name[name.len() - 1..]);
            let (param, message) = said_of(&mut execd, &method, inside, &misspelt);
            let path = path_of(inside, name);
            assert_eq!(param, path_of(inside, &misspelt), "{method}");
            assert_eq!(
                message,
                format!("{param}: unknown param of {method}; did you mean {path}?"),
                "{method}"
            );
        };
        each_param(&properties, &mut Vec::new(), &mut look);
        let (param, message) = said_of(&mut execd, &method, &[], "no_such_thing");
        assert_eq!(param, "no_such_thing");
        let takes = if properties.is_empty() { "it takes none" } else { "it takes " };
        assert!(
            message.starts_with(&format!("{param}: unknown param of {method}; {takes}")),
            "{message}"
        );
    }
}

/// rule: protocol.md, Names of params: camelCase and snake_case of a name are one
/// rule: protocol.md, Names of params: A few have other names too
/// rule: bash.md, bash and tmux: A wrong type or an unknown field of a context is named by its path
#[test]
fn each_param_is_taken_in_the_other_case_and_by_its_other_names() {
    let mut execd = Execd::start();
    let (mut cases, mut names) = (0, 0);
    for (method, properties) in methods() {
        let mut look = |inside: &[&str], name: &str, schema: &Value| {
            let path = path_of(inside, name);
            let aliases = schema["aliases"].as_array().cloned().unwrap_or_default();
            let aliases = aliases.iter().map(|alias| alias.as_str().expect("a name").to_owned());
            let aliases: Vec<String> = aliases.collect();
            names += aliases.len();
            let other = in_other_case(name);
            cases += usize::from(other.is_some());
            for given in aliases.iter().chain(&other) {
                if method == "write_stdin" && given == "sessionId" {
                    // Alone it is the other form of the method, which has a param of that name.
                    continue;
                }
                let (param, message) = said_of(&mut execd, &method, inside, given);
                assert_eq!(param, path, "{method} {given}: {message}");
                assert!(!message.contains("unknown param"), "{method} {given}: {message}");
            }
        };
        each_param(&properties, &mut Vec::new(), &mut look);
    }
    assert!(cases > 60 && names >= 8, "{cases} {names}");
}

/// rule: protocol.md, Names of params: A param that is given by two of its names is refused
#[test]
fn a_param_that_is_given_by_two_names_is_refused() {
    let mut execd = Execd::start();
    for (method, one, other) in [
        ("exec_command", "cmd", "command"),
        ("exec_command", "workdir", "cwd"),
        ("bash_stream", "command", "cmd"),
        ("bash_stream", "cwd", "workdir"),
        ("exec_command", "yield_time_ms", "yieldTimeMs"),
        ("write_stdin", "chars", "data"),
        ("write_stdin", "timeout", "timeout_ms"),
        ("write_stdin", "session_id", "sessionId"),
        ("wait_for", "timeout_ms", "timeout"),
    ] {
        let fits = |name: &str| match name {
            "timeout" | "timeout_ms" | "yield_time_ms" | "yieldTimeMs" => json!(5_000),
            "session_id" | "sessionId" => json!(1),
            _ => json!("x"),
        };
        // Given as text: a map would sort them.
        let params = format!("{{\"{one}\":{},\"{other}\":{}}}", fits(one), fits(other));
        let request = format!("{{\"id\":\"{one}\",\"method\":\"{method}\",\"params\":{params}}}");
        execd.send_line(&request);
        let error = execd.next_reply()["error"].clone();
        assert_eq!(error["data"]["param"], other, "{error}");
        let message = format!("{one} and {other} are one param: give one of them");
        assert_eq!(error["message"], message);
    }
}

/// rule: protocol.md, Names of params: the words of other tools
#[test]
fn what_other_tools_call_a_param_does_what_it_says() {
    let mut execd = Execd::start();
    let result = execd.result("exec_command", json!({"command": "pwd; cat", "cwd": "/"}));
    let id = session_of(&result);
    assert_eq!(output(&result), "/\n");
    for params in [
        json!({"session_id": id, "input": "one\\n", "timeout": 250}),
        json!({"session_id": id, "chars": "one\\n", "timeout_ms": 250.0}),
        json!({"sessionId": id, "chars": "one\\n", "yieldTimeMs": 250}),
        json!({"sessionId": id, "chars": "one\\n", "until": {"text": "one", "treeExit": true}}),
    ] {
        let mut told = execd.result("write_stdin", params.clone());
        // What cat gives back may come after the shortest wait.
        while output(&told).is_empty() {
            told = execd.poll_now(id);
        }
        assert_eq!(output(&told), "one\n", "{params}");
    }
    let waited = execd.result("wait_for", json!({"sessionIds": [id], "timeout": 0}));
    assert_eq!(waited["wait"]["effective_timeout_ms"], 0, "{waited}");
    let context = json!({"cwd": "/", "max_output_bytes": 4096});
    let shown = execd.result("bash", json!({"command": "pwd", "context": context}));
    assert_eq!(shown["text"], "/\n", "{shown}");
    // The form with sessionId writes literally, answers at once and has its own names.
    let taken = execd.result("write_stdin", json!({"sessionId": id, "data": "two\\n"}));
    assert_eq!(taken["written"], 5, "{taken}");
}

/// It was told as session 0.
#[test]
fn a_negative_session_is_refused_by_name_as_it_was_given() {
    let mut execd = Execd::start();
    let mut seen = 0;
    for (method, properties) in methods() {
        for name in ["session_id", "sessionId", "session_ids"] {
            // Of a method of two forms one alone is described.
            let both = method == "write_stdin" && name != "session_ids";
            if !(properties.contains_key(name) || both) {
                continue;
            }
            let (id, says) = match name {
                "session_ids" => (json!([1, -7]), "session_ids: unknown session_id: -7".to_owned()),
                _ => (json!(-7), format!("unknown {name}: -7")),
            };
            let error = execd.error(&method, json!({name: id}));
            assert_eq!(error["message"], says, "{method}: {error}");
            assert_eq!(error["data"]["reason"], "unknown_session", "{method}: {error}");
            // As of a positive number that is no session's, which of several is to be found.
            let named = error["data"]["param"].as_str();
            assert_eq!(named, Some(name).filter(|name| *name == "session_ids"), "{error}");
            seen += 1;
        }
    }
    assert!(seen >= 13, "{seen}");
}

/// Sixty-four names of 8 MB, as long as a line may be, were kept for as long as anything names
/// their sessions, and a list repeated all of them: half a gigabyte.
/// rule: protocol.md, Bounds: name of a session: 1 KiB
#[test]
fn the_name_of_a_session_is_bounded() {
    let mut execd = Execd::start();
    for (method, cmd) in [("exec_command", "cmd"), ("bash_stream", "command")] {
        let long = json!({cmd: "true", "name": "é".repeat(513)});
        let message = execd.refused(method, long, "name");
        assert!(message.starts_with("name must be a string of at most 1024 bytes, not "));
        assert!(message.len() < 300, "{message}");
        let fits = json!({cmd: "true", "name": "é".repeat(512)});
        execd.result(method, fits);
    }
}
