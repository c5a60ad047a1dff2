//! An execd that speaks the Model Context Protocol, driven by hand: its requests, and what a model
//! reads of their results.
#![allow(dead_code)]

use serde_json::{Value, json};

use crate::common::{Execd, json_schema};

/// An execd that speaks the protocol; each of its lines is checked against the official schemas.
pub fn mcp(flags: &[&str]) -> Execd {
    Execd::with(&[&["mcp"], flags].concat(), &[]).checked_as_mcp()
}

/// One that was initialized by a client with these capabilities.
pub fn connected(flags: &[&str], capabilities: &Value) -> Execd {
    let mut execd = mcp(flags);
    execd.result("initialize", hello("2025-11-25", capabilities));
    execd.send_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    execd
}

/// The params of initialize.
pub fn hello(version: &str, capabilities: &Value) -> Value {
    json!({
        "protocolVersion": version, "capabilities": capabilities,
        "clientInfo": { "name": "test", "version": "1" },
    })
}

/// `_meta` of a request of the era without connections.
pub fn stateless(version: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// The params of a call.
pub fn tool(name: &str, arguments: &Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

/// The text of a result, and whether it is an error's.
pub fn text_of(result: &Value) -> (&str, bool) {
    let content = result["content"].as_array().expect("content");
    assert_eq!(content.len(), 1, "one item: {result}");
    assert_eq!(content[0]["type"], "text", "{result}");
    (content[0]["text"].as_str().expect("text"), result["isError"] == true)
}

/// The first output in a text: what stands between its two lines, which have the same word.
pub fn output_of(said: &str) -> &str {
    let (_, rest) = match said.strip_prefix("--- ") {
        Some(rest) => ("", rest),
        None => said.split_once("\n--- ").expect(said),
    };
    let (begin, rest) = rest.split_once('\n').expect(said);
    let (_, word) = begin.split_once(' ').expect(said);
    let (output, _) = rest.split_once(&format!("--- end {word}")).expect(said);
    output
}

/// A schema that allows no fields but those that it names.
fn strict(schema: &Value) -> Value {
    match schema {
        Value::Object(all) => {
            let mut made: serde_json::Map<String, Value> =
                all.iter().map(|(name, one)| (name.clone(), strict(one))).collect();
            if all.get("properties").is_some_and(Value::is_object) {
                made.insert("additionalProperties".to_owned(), json!(false));
            }
            Value::Object(made)
        }
        Value::Array(all) => all.iter().map(strict).collect(),
        other => other.clone(),
    }
}

/// Checks the structured content of a result against the tool's own schema, which must name each
/// of its fields.
pub fn fits_its_schema(tools: &Value, name: &str, result: &Value) {
    let tools = tools["tools"].as_array().expect("tools");
    let tool = tools.iter().find(|tool| tool["name"] == name).expect("the tool");
    let schema = &tool["outputSchema"];
    assert!(schema["properties"].as_object().is_some_and(|all| all.len() >= 3), "{name}");
    let content = &result["structuredContent"];
    assert!(content.is_object(), "{name}: {result}");
    let schema = strict(schema);
    let outcome = json_schema::check(&schema, &schema, content);
    assert_eq!(outcome, Ok(()), "{name}: {content}");
}

/// Calls a tool, which answers without an error, and gives the text.
pub fn call(execd: &mut Execd, name: &str, arguments: &Value) -> String {
    let result = execd.result("tools/call", tool(name, arguments));
    let (text, is_error) = text_of(&result);
    assert!(!is_error, "{text}");
    text.to_owned()
}

/// Calls a tool, which fails, and gives the text.
pub fn failing(execd: &mut Execd, name: &str, arguments: &Value) -> String {
    let result = execd.result("tools/call", tool(name, arguments));
    let (text, is_error) = text_of(&result);
    assert!(is_error, "{text}");
    text.to_owned()
}

/// Cancels a request as a host does that has waited for too long.
pub fn cancel(execd: &mut Execd, id: u64) {
    cancel_for(execd, id, "McpError: MCP error -32001: Request timed out");
}

/// Cancels a request for this reason.
pub fn cancel_for(execd: &mut Execd, id: u64, reason: &str) {
    let params = json!({ "requestId": id, "reason": reason });
    let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    execd.send_line(&note.to_string());
}
