//! What models read of the methods, by sets of tools: `execd --describe --for-models` (pi.md, One
//! source). Hosts of models take their tools from here, so that no words stand twice.

use serde_json::{Value, json};

use crate::server::engine::contract::Model;
use crate::server::families::Method;
use crate::wire::{Kind, Param};

/// The sets of tools, in the order in which they are told.
pub const SETS: &[&str] = &["unified", "more", "stream", "bash", "agent"];

/// All sets with their tools, as JSON text: one tool a line. The text is written by hand, since
/// params are to stay in their order.
pub fn describe() -> String {
    let sets: Vec<String> = SETS
        .iter()
        .map(|set| {
            let tools = tools(set).map(|(row, model)| tool(row, model)).collect::<Vec<String>>();
            format!("{{\"name\":{},\"tools\":[\n{}\n]}}", text(set), tools.join(",\n"))
        })
        .collect();
    format!("{{\"sets\":[{}]}}", sets.join(",\n"))
}

/// The tools of a set, in the order of the table; second forms of methods come last.
pub fn tools(set: &str) -> impl Iterator<Item = (&'static Method, &'static Model)> {
    let of = move |other| {
        super::all()
            .flat_map(|row| row.models.iter().map(move |model| (row, model)))
            .filter(move |(_, model)| model.set == set && model.of_other_form == other)
    };
    of(false).chain(of(true))
}

fn tool(row: &Method, model: &Model) -> String {
    let mut logs = String::new();
    if !model.logs.is_empty() {
        logs = format!("\"logs\":{},", text(model.logs));
    }
    let synonyms = synonyms(table_of(row, model), model.params);
    format!(
        "{{\"name\":{},\"title\":{},\"description\":{},{logs}{synonyms}\"inputSchema\":{},\"annotations\":{}}}",
        text(row.name),
        text(model.title),
        text(model.description),
        input_schema(table_of(row, model), model.params),
        annotations(model),
    )
}

/// What a host may go by before it has a tool called.
pub fn annotations(model: &Model) -> Value {
    json!({
        "readOnlyHint": model.reads_only,
        "destructiveHint": model.destroys,
        "openWorldHint": model.is_open_world,
    })
}

/// The names that other agents' tools have for these params, each with the name that it has here.
fn synonyms(table: &[Param], params: &[(&str, &str)]) -> String {
    let mut pairs = Vec::new();
    for param in table.iter().filter(|param| params.iter().any(|(name, _)| *name == param.name)) {
        for alias in param.aliases {
            pairs.push(format!("{}:{}", text(alias), text(param.name)));
        }
    }
    if pairs.is_empty() { String::new() } else { format!("\"synonyms\":{{{}}},", pairs.join(",")) }
}

/// A string of JSON.
fn text(plain: &str) -> String {
    Value::from(plain).to_string()
}

/// The params of the form that the model gets.
pub fn table_of(row: &Method, model: &Model) -> &'static [Param] {
    if model.of_other_form { row.other_params.unwrap_or_default() } else { row.params }
}

/// The schema of these params alone. Sessions are never required: the host says `all` where a model
/// leaves them out.
pub fn input_schema(table: &[Param], params: &[(&str, &str)]) -> String {
    let mut properties = Vec::new();
    let mut required = Vec::new();
    for &(name, words) in params {
        let Some(param) = table.iter().find(|param| param.name == name) else { continue };
        let mut field = plain(param.kind);
        if !words.is_empty() {
            field = format!("{field},\"description\":{}", text(words));
        }
        properties.push(format!("{}:{{{field}}}", text(name)));
        if param.required && param.kind != Kind::Sessions {
            required.push(text(name));
        }
    }
    let mut needs = String::new();
    if !required.is_empty() {
        needs = format!("\"required\":[{}],", required.join(","));
    }
    format!("{{\"type\":\"object\",{needs}\"properties\":{{{}}}}}", properties.join(","))
}

/// The schema of a param as a model gets it, without its braces. What an object has is told in
/// words, which cost less.
fn plain(kind: Kind) -> String {
    let fixed = match kind {
        Kind::Integer | Kind::Session => r#""type":"integer""#,
        Kind::Number => r#""type":"number""#,
        Kind::Bool => r#""type":"boolean""#,
        Kind::Env | Kind::Object(_) => r#""type":"object""#,
        Kind::Data => r#""anyOf":[{"type":"string"},{"type":"object"}]"#,
        Kind::Sessions => r#""type":"array","items":{"type":"integer"}"#,
        Kind::Words => r#""type":"array","items":{"type":"string"}"#,
        _ => r#""type":"string""#,
    };
    let Kind::Choice(words) = kind else { return fixed.to_owned() };
    let words: Vec<String> = words.iter().map(|word| text(word)).collect();
    format!("{fixed},\"enum\":[{}]", words.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_models() -> impl Iterator<Item = (&'static Method, &'static Model)> {
        super::super::all().flat_map(|row| row.models.iter().map(move |model| (row, model)))
    }

    /// rule: pi.md, One source: A tool has only params of its method, and all that the wire
    ///   requires
    #[test]
    fn what_a_model_gets_is_what_its_method_takes() {
        for (row, model) in all_models() {
            assert!(SETS.contains(&model.set), "{} is in a set that is told", row.name);
            assert!(!model.title.is_empty() && !model.description.is_empty(), "{}", row.name);
            let table = table_of(row, model);
            for (name, _) in model.params {
                let known = table.iter().any(|param| param.name == *name);
                assert!(known, "{} takes no {name}", row.name);
            }
            for param in table.iter().filter(|param| param.required) {
                let told = model.params.iter().any(|(name, _)| *name == param.name);
                assert!(told, "{} requires {}", row.name, param.name);
            }
        }
    }

    /// rule: pi.md, One source: `execd --describe --for-models` prints them as JSON
    #[test]
    fn what_is_told_is_json() {
        let told: serde_json::Value = serde_json::from_str(&describe()).unwrap_or_default();
        let exec = &told["sets"][0]["tools"][0];
        assert_eq!(exec["inputSchema"]["required"], serde_json::json!(["cmd"]));
        assert_eq!(exec["inputSchema"]["properties"]["tty"]["type"], "boolean");
        assert_eq!(exec["annotations"]["openWorldHint"], true);
        assert!(describe().find("\"cmd\"") < describe().find("\"workdir\""));
    }

    /// rule: pi.md, One source: The order of sets and tools is always the same
    #[test]
    fn the_sets_have_their_tools_in_their_order() {
        let names = |set: &str| tools(set).map(|(row, _)| row.name).collect::<Vec<&str>>();
        assert_eq!(
            names("unified"),
            ["exec_command", "write_stdin", "kill_session", "list_sessions", "wait_for"]
        );
        assert_eq!(names("stream").first(), Some(&"bash_stream"));
        assert_eq!(names("stream").last(), Some(&"write_stdin"));
        assert_eq!(names("bash"), ["bash", "tmux"]);
        assert_eq!(names("more"), ["set_on_exit", "resize_session"]);
        assert_eq!(names("agent"), ["agent_execute", "agent_result"]);
    }
}
