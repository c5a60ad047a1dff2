//! `execd mcp --tools agent` (docs/mcp.md, Agents): runs of pi for the model of any host.

use crate::agent_help::{answer, begun, ndjson, tool_start, write_pi};
use crate::common::{Execd, Setup, eventually, go, merged, until_file};
use crate::mcp_help::*;
use serde_json::{Value, json};

/// An execd with these tools, whose lines are checked, and whose pi writes these lines, waits for
/// the file `go`, and writes the others.
fn with_pi(flags: &[&str], before: &[Value], after: &[Value]) -> Execd {
    let mut setup = Setup::new(&[&["mcp"], flags].concat());
    setup.command().env("EXECD_PI", "./pi");
    let dir = setup.workdir();
    std::fs::write(dir.join("before"), ndjson(before)).expect("a stream");
    std::fs::write(dir.join("after"), ndjson(after)).expect("a stream");
    write_pi(&dir.join("pi"), &format!("cat before; {}; cat after", until_file("go")));
    let mut execd = setup.start().checked_as_mcp();
    execd.result("initialize", hello("2025-11-25", &json!({})));
    execd
}

/// The arguments of a run.
fn task(more: Value) -> Value {
    merged(json!({"prompt": "Do it", "model": "fake/scripted"}), more)
}

/// The number of the run that a text tells.
fn run_of(text: &str) -> u64 {
    let (_, rest) = text.split_once("\nrun_id: ").expect("a run");
    rest.lines().next().and_then(|id| id.parse().ok()).expect("its number")
}

/// rule: mcp.md, Agents: `--tools agent` has agent_execute and agent_result; what is the host's
///   business (keys, programs) is no param
#[test]
fn the_set_has_its_tools_and_no_keys() {
    let mut execd = with_pi(&["--tools", "agent"], &[], &[]);
    let listed = execd.result("tools/list", json!({}));
    let tools = listed["tools"].as_array().expect("tools");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["agent_execute", "agent_result"]);
    let schema = &tools[0]["inputSchema"];
    assert_eq!(schema["required"], json!(["prompt", "model"]));
    let words = json!({"type": "string"});
    assert_eq!(schema["properties"]["allowed_tools"]["items"], words, "{schema}");
    for own in ["api_key", "pi_path", "env", "extensions", "extra_args", "stream"] {
        assert!(schema["properties"][own].is_null(), "{own}");
    }
    let said = failing(&mut execd, "agent_execute", &task(json!({"api_key": "k3y"})));
    assert!(said.starts_with("api_key: agent_execute takes no such argument"), "{said}");
    // By default there are none of them.
    let listed = mcp(&[]).result("tools/list", json!({}));
    assert!(!listed.to_string().contains("agent_execute"), "{listed}");
}

/// rule: mcp.md, Agents: A model reads how a run has ended, what it has cost, and its last message
/// rule: mcp.md, Agents: Progress tells the tool that runs, or the last line of the text
#[test]
fn a_run_with_a_progress_token_is_waited_for_and_told_meanwhile() {
    for stateless_too in [false, true] {
        let all = answer("I look.\nTwo files");
        let call = tool_start("1", "bash", json!({"command": "ls"}));
        let mut execd = with_pi(&["--tools", "agent"], &[&all[..5], &[call]].concat(), &all[5..]);
        let mut params = tool("agent_execute", &task(json!({})));
        params["_meta"] = if stateless_too { stateless("2026-07-28") } else { json!({}) };
        params["_meta"]["progressToken"] = json!("a");
        let id = execd.start_request("tools/call", &params);
        let told = |note: &Value| note["message"] == r#"bash {"command":"ls"}"#;
        let note = execd.notification("notifications/progress", told);
        assert_eq!(note["progressToken"], "a");
        execd.no_reply_yet(id);
        go(&execd, "go");
        let result = execd.result_of(id);
        let (text, is_error) = text_of(&result);
        let line = "stop: 1 turn, 1 tool call, 110 tokens (100 in, 10 out), $0.2500, ";
        assert!(text.starts_with(line), "{text}");
        assert!(output_of(text) == "I look.\nTwo files\n" && !is_error, "{text}");
    }
}

/// rule: mcp.md, Agents: A call without a token is answered when its wait is cut: the run goes on
/// rule: mcp.md, Agents: The end of such a run is told by the next result, and agent_result has it
#[test]
fn a_run_outlasts_a_call_that_is_cut() {
    let all = answer("Half");
    // 10 s is the least that a wait can be cut to.
    let flags = ["--tools", "agent,unified", "--mcp-max-wait-s", "10"];
    let mut execd = with_pi(&flags, &all[..5], &all[5..]);
    let before = std::time::Instant::now();
    let said = call(&mut execd, "agent_execute", &task(json!({})));
    assert!(before.elapsed().as_secs() >= 10, "it waits for as long as it may");
    assert!(said.starts_with("running: 1 turn, 0 tool calls, 0 tokens, $0.0000, "), "{said}");
    assert!(said.contains("\ndoing: Half\n"), "{said}");
    let run = run_of(&said);
    // Loose types are mended.
    let given = json!({"run_id": run.to_string(), "wait_ms": 0});
    let again = call(&mut execd, "agent_result", &given);
    assert_eq!(run_of(&again), run, "{again}");
    go(&execd, "go");
    let mut said = String::new();
    eventually("the end comes with another result", || {
        // A list may tell the end in a row of its own.
        said = call(&mut execd, "exec_command", &json!({"cmd": "true"}));
        said.contains("event: ")
    });
    assert!(said.contains(&format!("session {run} ")), "{said}");
    let said = call(&mut execd, "agent_result", &json!({"run_id": run}));
    assert!(said.starts_with("stop: ") && output_of(&said) == "Half\n", "{said}");
}

/// rule: mcp.md, Agents: A cancelled agent_result leaves the run, its param `cancel` ends it
/// rule: mcp.md, Agents: A cancelled agent_execute ends its run, and what it has cost comes with
///   the next result
#[test]
fn a_cancelled_run_ends_and_what_it_has_cost_is_told() {
    let mut execd = with_pi(&["--tools", "agent,unified"], &begun(), &[]);
    let mut params = tool("agent_execute", &task(json!({"session": "kept.jsonl"})));
    params["_meta"] = json!({"progressToken": 1});
    let id = execd.start_request("tools/call", &params);
    execd.notification("notifications/progress", |note| note["message"] == "Half");
    cancel(&mut execd, id);
    let mut said = String::new();
    eventually("it comes with another result", || {
        said = call(&mut execd, "list_sessions", &json!({}));
        said.contains("was cancelled before")
    });
    let (_, late) = said.split_once("has answered:\n").expect("the answer");
    assert!(late.starts_with("cancelled: 1 turn, "), "{late}");
    assert_eq!(output_of(late), "Half\n");
    assert!(execd.session_processes().is_empty());
    execd.no_reply_yet(id);
    // A cancelled agent_result ends nothing.
    let run = run_of(&call(&mut execd, "agent_execute", &task(json!({"wait_ms": 0}))));
    let id = execd.start_request("tools/call", tool("agent_result", &json!({"run_id": run})));
    cancel(&mut execd, id);
    execd.nothing_but_a_ping();
    let now = json!({"run_id": run, "wait_ms": 0});
    assert!(call(&mut execd, "agent_result", &now).starts_with("running: "));
    let said = failing(&mut execd, "agent_result", &json!({"run_id": run, "cancel": true}));
    assert!(said.starts_with("cancelled: "), "{said}");
    let said = failing(&mut execd, "agent_result", &json!({"run_id": 4_711}));
    assert!(said.starts_with("unknown run_id 4711: "), "{said}");
    assert!(said.ends_with("; none runs now"), "{said}");
}

/// rule: mcp.md, Agents: A run that failed is an error of the tool, with its cause and its log
#[test]
fn a_run_that_fails_is_an_error_of_the_tool() {
    let failed = crate::agent_help::failed_answer("529 Overloaded");
    let mut execd = with_pi(&["--tools", "agent", "--mcp-structured"], &failed, &[]);
    go(&execd, "go");
    let result = execd.result("tools/call", tool("agent_execute", &task(json!({}))));
    let (text, is_error) = text_of(&result);
    assert!(is_error && text.starts_with("error (overloaded): "), "{text}");
    assert!(text.contains("\nerror: 529 Overloaded\nlog_path: /"), "{text}");
    assert_eq!(result["structuredContent"]["error_kind"], "overloaded");
    let tools = execd.result("tools/list", json!({}));
    fits_its_schema(&tools, "agent_execute", &result);
    let said = failing(&mut execd, "agent_execute", &json!({"prompt": "x", "model": "y"}));
    assert!(said.starts_with("model must be provider/id"), "{said}");
}
