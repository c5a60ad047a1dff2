//! The documentation says what is so: examples run, JSON parses, methods, params, fields, flags and
//! steps are all there and none is made up.
//!
//! A fenced `sh` block whose first line is `# runs` is run with bash, in a directory of its own,
//! with this build's execd first on PATH, and must exit 0. `cargo run … -- ARGS` in one of them
//! runs this build's `execd ARGS`, and `pi` is a stand-in that answers any task in two turns. A
//! block of the language `output` behind it is all that it prints. A block that needs a program
//! which is not there is skipped, with a word on stderr. Blocks without the mark are not run (they
//! may install things).

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::agent_help::*;
use crate::common::*;
use crate::source::sources;
use serde_json::{Value, json};

const MARK: &str = "# runs";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn documents() -> Vec<String> {
    let docs = std::fs::read_dir(root().join("docs")).expect("docs").flatten();
    let mut names: Vec<String> = docs
        .map(|entry| format!("docs/{}", entry.file_name().to_string_lossy()))
        .filter(|name| name.ends_with(".md"))
        .collect();
    names.push("README.md".to_owned());
    names.sort();
    names
}

struct Block {
    place: String,
    language: String,
    text: String,
}

fn blocks(name: &str) -> Vec<Block> {
    let text = read(name);
    let mut found: Vec<Block> = Vec::new();
    let mut open = false;
    for (number, line) in text.lines().enumerate() {
        let fence = line.trim_start();
        match (open, fence.strip_prefix("```")) {
            (false, Some(language)) => {
                let place = format!("{name}:{}", number + 1);
                found.push(Block { place, language: language.to_owned(), text: String::new() });
                open = true;
            }
            (true, Some(_)) => open = false,
            (true, None) => {
                let block = found.last_mut().expect("a block is open");
                block.text.push_str(line);
                block.text.push('\n');
            }
            (false, None) => {}
        }
    }
    assert!(!open, "{name}: a block is not closed");
    found
}

fn prose(name: &str) -> String {
    let mut open = false;
    let outside = |line: &&str| {
        let fence = line.trim_start().starts_with("```");
        open ^= fence;
        !open && !fence
    };
    read(name).lines().filter(outside).collect::<Vec<_>>().join("\n")
}

fn quoted_words(text: &str) -> BTreeSet<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    quoted
        .flat_map(|one| one.split(move |c| !word(c)))
        .filter(|one| !one.is_empty())
        .map(str::to_owned)
        .collect()
}

fn describe() -> Value {
    let output = crate::common::execd_command().arg("--describe").output().expect("execd starts");
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).expect("--describe prints JSON")
}

fn methods() -> Vec<(String, BTreeSet<String>)> {
    let described = describe();
    let methods = described["methods"].as_array().expect("methods").iter();
    methods
        .map(|method| {
            let name = method["name"].as_str().expect("a name").to_owned();
            let params = method["params"]["properties"].as_object();
            (name, params.map(|params| params.keys().cloned().collect()).unwrap_or_default())
        })
        .collect()
}

// ---- Examples ---------------------------------------------------------------------------

/// Programs that blocks call and that a machine may lack (`.ci/run` installs them).
const NEEDED: [&str; 2] = ["jq", "python3"];

/// What pi would write for a task that takes one tool call: 0.25 $ a turn.
fn two_turns() -> Vec<Value> {
    let text = "There are a README and a directory, src.";
    let call = json!({"type": "toolCall", "id": "call_1", "name": "bash",
        "arguments": {"command": "ls"}});
    let called = json!({"type": "message_update",
        "assistantMessageEvent": {"type": "toolcall_end", "contentIndex": 0, "toolCall": call}});
    let first = [
        assistant_start(),
        called,
        assistant_end("", &usage(812, 31, 0.25), "toolUse"),
        tool_start("call_1", "bash", json!({"command": "ls"})),
        tool_end("call_1", "bash", "README.md\nsrc"),
        turn_end(),
        turn_start(),
    ];
    let all = answer(text);
    [&all[..3], &first, &all[3..]].concat()
}

fn programs(dir: &Path) -> PathBuf {
    let bin = dir.join("bin");
    std::fs::create_dir(&bin).expect("a directory");
    std::os::unix::fs::symlink(crate::common::EXECD, bin.join("execd")).expect("a link");
    let cargo = bin.join("cargo");
    let script = "#!/bin/sh\n[ \"$1\" = run ] || { echo only cargo run; exit 1; }\n\
                  while [ \"$1\" != -- ]; do shift; done\nshift\nexec execd \"$@\"\n";
    std::fs::write(&cargo, script).expect("a script");
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).expect("it runs");
    let stream = dir.join("pi.ndjson");
    std::fs::write(&stream, ndjson(&two_turns())).expect("a stream");
    write_pi(&bin.join("pi"), &format!("cat {}", stream.display()));
    bin
}

/// Before a block whose pauses were too short for a busy machine: they stand for a reader who
/// types, and each takes ten times as long.
const LONGER_PAUSES: &str =
    "sleep() { for _ in 1 2 3 4 5 6 7 8 9 10; do command sleep \"$1\"; done; }\n";

/// Runs a block, and holds what it prints against what the document shows of that.
fn run_block(block: &Block, shown: Option<&Block>) {
    let is_right = |(status, said): &(ExitStatus, String)| {
        status.success() && shown.is_none_or(|shown| *said == shown.text)
    };
    let mut ran = run_script(block, &block.text);
    if !is_right(&ran) && block.text.contains("\n  sleep ") {
        eprintln!("{}: once more with longer pauses, after it printed:\n{}", block.place, ran.1);
        ran = run_script(block, &format!("{LONGER_PAUSES}{}", block.text));
    }
    let (status, said) = ran;
    assert!(status.success(), "{}: {status}\n{}\nprinted:\n{said}", block.place, block.text);
    if let Some(shown) = shown {
        assert_eq!(said, shown.text, "{}: what {} prints", shown.place, block.place);
    }
}

/// Runs a script of a block in a place of its own; gives how it ended and what it printed.
fn run_script(block: &Block, script: &str) -> (ExitStatus, String) {
    let dir = tempfile::tempdir().expect("a directory");
    let bin = programs(dir.path());
    let work = dir.path().join("work");
    std::fs::create_dir(&work).expect("a directory");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = std::fs::File::create(dir.path().join("output")).expect("a file");
    let errors = output.try_clone().expect("a descriptor");
    // What a pipeline's first programs say counts too.
    let mut child = Command::new("bash")
        .args(["-e", "-o", "pipefail", "-c", script])
        .current_dir(&work)
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("TMPDIR", dir.path())
        .env("XDG_RUNTIME_DIR", dir.path())
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .expect("bash starts");
    eprintln!("{} is run", block.place);
    let status = outside::end_of(&mut child);
    (status, std::fs::read_to_string(dir.path().join("output")).unwrap_or_default())
}

/// Whether the programs that a block calls are there.
fn can_run(block: &Block) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    let found = |program: &str| path.split(':').any(|dir| Path::new(dir).join(program).exists());
    let calls = |program: &str| block.text.split_whitespace().any(|word| word == program);
    // What a block looks for by itself it can do without.
    let copes = |program: &str| block.text.contains(&format!("command -v {program}"));
    let lacks = |program: &&str| calls(program) && !copes(program) && !found(program);
    match NEEDED.into_iter().find(lacks) {
        None => true,
        Some(program) => {
            eprintln!("{}: skipped, there is no {program}", block.place);
            false
        }
    }
}

fn run_examples_of(name: &str) -> usize {
    let marked = |block: &Block| block.language == "sh" && block.text.starts_with(MARK);
    let blocks = blocks(name);
    let behind = |at: usize| blocks.get(at + 1).filter(|next| next.language == "output");
    let marked = blocks.iter().enumerate().filter(|(_, block)| marked(block));
    let runnable = marked.filter(|(_, block)| can_run(block));
    runnable.map(|(at, block)| run_block(block, behind(at))).count()
}

#[test]
fn examples_of_the_readme_run() {
    assert!(run_examples_of("README.md") > 0, "the README shows something that runs");
}

/// rule: protocol.md, End of input, signals, a lost reader: `printf … \| execd` works in a script
#[test]
fn examples_of_the_protocol_run() {
    assert!(run_examples_of("docs/protocol.md") > 0);
}

#[test]
fn examples_of_the_page_for_scripts_run() {
    assert!(run_examples_of("docs/scripts.md") > 0);
}

/// rule: agent.md, execd agent: The document's examples run
#[test]
fn examples_of_the_pi_harness_run() {
    assert!(run_examples_of("docs/agent.md") > 0);
}

/// rule: waits.md, Three idioms: The page's commands run
#[test]
fn examples_of_the_page_of_waits_run() {
    assert!(run_examples_of("docs/waits.md") > 0);
}

/// The documents whose examples a test of their own runs.
const OWN_TEST: [&str; 5] =
    ["README.md", "docs/protocol.md", "docs/scripts.md", "docs/waits.md", "docs/agent.md"];

#[test]
fn examples_of_the_other_documents_run() {
    for name in documents().iter().filter(|name| !OWN_TEST.contains(&name.as_str())) {
        run_examples_of(name);
    }
}

#[test]
fn json_examples_parse_and_their_requests_are_ones_that_execd_takes() {
    let methods = methods();
    let mut requests = 0;
    for name in documents() {
        for block in blocks(&name).iter().filter(|block| block.language == "json") {
            let values = serde_json::Deserializer::from_str(&block.text).into_iter::<Value>();
            for value in values {
                let value = value.unwrap_or_else(|error| panic!("{}: {error}", block.place));
                let Some(method) = value["method"].as_str() else { continue };
                if value.get("id").is_none() {
                    continue;
                }
                requests += 1;
                let known = methods.iter().find(|(name, _)| name == method);
                let (_, params) = known.unwrap_or_else(|| panic!("{}: {method}", block.place));
                for param in value["params"].as_object().into_iter().flat_map(|one| one.keys()) {
                    assert!(params.contains(param), "{}: {method} has no {param}", block.place);
                }
            }
        }
    }
    assert!(requests > 0, "the documents show requests");
}

// ---- The pages that scripts/docs.py writes ----------------------------------------------

/// rule: architecture.md, The floors: docs/protocol.md is checked against the table
/// rule: protocol.md, Errors: −32000: `data.reason` is a stable word
/// rule: cli.md, Help: The page of the command line has every command with its flags
#[test]
fn the_generated_pages_are_what_the_program_says() {
    let script = root().join("scripts/docs.py");
    let args = [script.as_os_str(), crate::common::EXECD.as_ref(), "--check".as_ref()];
    let output = match Command::new("python3").args(args).output() {
        Ok(output) => output,
        Err(error) => return left_out(&format!("python3: {error}")),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn section<'a>(text: &'a str, heading: &str) -> Option<&'a str> {
    let rank = heading.split(' ').next().expect("a heading begins with its rank");
    let start = if text.starts_with(&format!("{heading}\n")) {
        0
    } else {
        text.find(&format!("\n{heading}\n"))? + 1
    };
    let body = &text[start + heading.len()..];
    let ends = (1..=rank.len()).filter_map(|rank| body.find(&format!("\n{} ", "#".repeat(rank))));
    Some(&body[..ends.min().unwrap_or(body.len())])
}

fn field_names(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                found.insert(name.clone());
                field_names(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| field_names(item, found)),
        _ => {}
    }
}

/// rule: agent.md, agent_event: The events and their fields, each with the request's id
/// rule: bash.md, In pi: session_started and list_sessions name the window of what bash started, so
///   that it is counted apart
#[test]
fn every_field_that_execd_sends_is_documented() {
    let mut execd = Execd::start();
    let mut seen = BTreeSet::new();
    let mut tell = |value: Value| field_names(&value, &mut seen);
    tell(execd.run_with("seq 3000; kill -TERM $$", json!({"name": "a name"})));
    tell(execd.run("head -c 1200000 /dev/zero | tr '\\0' x; exit 3"));
    let params = json!({"on_exit": "wake", "stream": true, "tty": true, "name": "cat"});
    let cat = execd.open_with("setsid sleep 1000 & exec cat", params);
    tell(cat.clone());
    tell(execd.run("sleep 1000 >/dev/null 2>&1 &"));
    tell(execd.open("sleep 1000 & exit 5"));
    let session = session_of(&cat);
    tell(execd.input(session, "line\\n"));
    tell(execd.poll_now(session));
    tell(execd.peek());
    tell(execd.result("set_on_exit", json!({"session_id": session, "on_exit": "none"})));
    let size = json!({"session_id": session, "cols": 80, "rows": 24});
    tell(execd.result("resize_session", size));
    tell(execd.result("server_info", json!({})));
    tell(execd.kill(session));
    let bash = |command: &str, more: Value| merged(json!({"command": command}), more);
    tell(execd.result("bash", bash("seq 3000; sleep 1000 & kill -TERM $$", json!({}))));
    let shown = json!({"pollDelivery": "display"});
    let more = json!({"background": true, "pollInterval": 0.1, "context": shown});
    tell(execd.result("bash", bash("seq 3000; sleep 1000 & exit 3", more.clone())));
    execd.notification("window_exited", |_| true);
    tell(execd.result("bash", bash("seq 3000; sleep 1000", more)));
    execd.notification("window_poll", |_| true);
    for action in ["list", "list-polls"] {
        tell(execd.result("tmux", json!({"action": action})));
    }
    let progress = json!({"stream": true, "timeout": 0.5});
    tell(execd.result("bash", bash("seq 3000; sleep 1000", progress)));
    tell(execd.result("cancel", json!({"id": 1})));
    for result in agent_results(&mut execd) {
        tell(result);
    }
    tell(execd.result("shutdown", json!({})));
    execd.leaves_processes_behind();
    let lines = execd.remaining_lines();
    lines.iter().filter_map(|line| line.get("params").cloned()).for_each(&mut tell);
    let known = quoted_words(&read("docs/methods.md"));
    let missing: Vec<&String> = seen.iter().filter(|name| !known.contains(*name)).collect();
    assert!(missing.is_empty(), "fields that docs/methods.md does not name: {missing:?}");
    assert!(seen.len() > 60, "the test sees most fields: {seen:?}");
}

/// What the pi harness answers: a run with every event, one that fails, pi's health, what it can.
fn agent_results(execd: &mut Execd) -> Vec<Value> {
    let mut lines = two_turns();
    let update = |event: Value| json!({"type": "message_update", "assistantMessageEvent": event});
    let thinking = json!({"type": "thinking_delta", "contentIndex": 0, "delta": "Well."});
    let long = "x".repeat(300 * 1024);
    let retry = json!({"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3,
        "delayMs": 2000, "errorMessage": "overloaded"});
    let failed = json!({"type": "auto_retry_end", "success": false, "finalError": "no"});
    let middle = [update(thinking), tool_end("call_2", "bash", &long), retry, failed];
    lines.splice(3..3, middle);
    // An unknown event and an unknown field: what they are called is pi's.
    lines.insert(1, json!({"type": "agent_start", "elapsed_ms": 1}));
    let file = stream_file(execd, "two-turns", &lines);
    let script = format!("sleep 0.2; cat {}; echo no >&2; exit 3", file.display());
    let pi = fake_pi(execd, &script);
    let mut told = vec![execd.result("agent_execute", params(&pi, json!({"keep_events": false})))];
    // Names of tools and of pi's own fields are no fields of ours.
    told[0]["tool_calls"] = Value::Null;
    told[0]["provider_data"]["unknown_fields"] = Value::Null;
    for event in execd.notified("agent_event") {
        let input = event.get("input").is_some();
        told.push(if input { merged(event, json!({"input": null})) } else { event });
    }
    assert!(told.len() > 10, "all kinds of events: {told:?}");
    told.push(execd.result("agent_health", json!({"pi_path": pi})));
    told.push(execd.result("agent_health", json!({"pi_path": "no-such-pi"})));
    told.push(execd.result("agent_capabilities", json!({})));
    told
}

/// rule: agent.md, agent_execute, params: Their defaults: 600,000, 180,000 and 30,000 ms
#[test]
fn the_defaults_of_the_pi_harness_are_those_of_the_code() {
    let limits: String = sources("src").into_iter().map(|one| one.text).collect();
    let text = read("docs/agent.md");
    let described = describe();
    let methods = described["methods"].as_array().expect("methods");
    let ours = methods.iter().find(|method| method["name"] == "agent_execute").expect("it");
    for (param, constant) in [
        ("timeout_ms", "AGENT_TIMEOUT_MS"),
        ("idle_timeout_ms", "AGENT_IDLE_TIMEOUT_MS"),
        ("first_event_timeout_ms", "AGENT_FIRST_EVENT_TIMEOUT_MS"),
    ] {
        let (_, rest) = limits.split_once(&format!("{constant}: u64 = ")).expect("a constant");
        let value: String = rest.chars().take_while(|c| *c != ';').filter(|c| *c != '_').collect();
        let start = format!("| `{param}` |");
        let mut rows = text.lines().filter(|line| line.starts_with(&start));
        assert!(rows.any(|row| row.contains(&value)), "{param}: {value}");
        let doc = ours["params"]["properties"][param]["description"].as_str().expect("a text");
        assert!(doc.ends_with(&format!("default {value}")), "{doc}");
    }
}

// ---- The rest ---------------------------------------------------------------------------

/// Flags of pi that docs/agent.md names besides those that `execd agent` has too.
const PI_FLAGS: [&str; 6] =
    ["--mode", "--no-session", "--no-extensions", "--api-key", "--skill", "--flag"];

fn flags(text: &str) -> BTreeSet<String> {
    let part = |c: char| c.is_ascii_lowercase() || c == '-';
    text.split(|c: char| !part(c))
        .filter(|word| word.len() > 3 && word.starts_with("--"))
        .map(str::to_owned)
        .collect()
}

/// rule: unified-exec.md, Constants: Caps are flags too
#[test]
fn every_flag_of_the_help_is_documented_and_no_other() {
    let help_of = |args: &[&str]| {
        let help = crate::common::execd_command().args(args).output();
        flags(&String::from_utf8_lossy(&help.expect("execd starts").stdout))
    };
    let known = help_of(&["help", "--all"]);
    let all: String = documents().iter().map(|name| read(name)).collect::<Vec<_>>().join("\n");
    let missing: Vec<&String> = known.iter().filter(|flag| !all.contains(*flag)).collect();
    assert!(missing.is_empty(), "flags that no document names: {missing:?}");
    let config = read("pi-extension/src/pi/settings.ts");
    let extensions: Vec<String> = config
        .lines()
        .filter_map(|line| line.split_once("_FLAG = \""))
        .filter_map(|(_, rest)| Some(format!("--{}", rest.split('"').next()?)))
        .collect();
    assert!(extensions.len() >= 3, "the extension's flags: {extensions:?}");
    // In running text a flag in backticks is one of ours; blocks call other programs too.
    for name in documents() {
        let quoted: Vec<String> =
            prose(&name).split('`').skip(1).step_by(2).map(str::to_owned).collect();
        for one in quoted.iter().filter(|one| one.starts_with("--") || one.starts_with("execd ")) {
            for flag in flags(one) {
                let pis = name == "docs/pi.md" && (extensions.contains(&flag) || flag == "--mode");
                // docs/agent.md says what pi itself is called with.
                let called = name == "docs/agent.md" && PI_FLAGS.contains(&flag.as_str());
                // What execd starts itself as is in no help.
                let helpers = ["--keeper", "--agent-run"];
                let helper = helpers.contains(&flag.as_str());
                let ours = known.contains(&flag) || helper || pis || called;
                assert!(ours, "{name}: `{one}` has no such flag");
            }
        }
    }
}

/// A heading as the part of a link behind `#`.
fn anchor(heading: &str) -> String {
    let kept = |c: char| (c.is_alphanumeric() || c == '_' || c == '-' || c == ' ').then_some(c);
    heading.to_lowercase().chars().filter_map(kept).collect::<String>().replace(' ', "-")
}

#[test]
fn links_lead_to_files_and_headings_that_exist() {
    for name in documents() {
        let text = prose(&name);
        let dir = root().join(&name).parent().expect("it is in a directory").to_owned();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { root().join(&name) } else { dir.join(file) };
            assert!(target.exists(), "{name}: {link} leads nowhere");
            if heading.is_empty() {
                continue;
            }
            let text = std::fs::read_to_string(&target).expect("a text");
            let headings = text.lines().filter(|line| line.starts_with('#'));
            let found = headings.map(|line| anchor(line.trim_start_matches('#').trim_start()));
            assert!(found.collect::<Vec<_>>().contains(&heading.to_owned()), "{name}: {link}");
        }
    }
}

/// rule: architecture.md, The turn: The turn's steps have the same numbers in the code and in
///   docs/architecture.md
#[test]
fn the_steps_of_a_turn_have_the_same_numbers_in_the_code_and_in_the_document() {
    let numbered = |text: &str, prefix: &str, dot: &str| -> Vec<usize> {
        let lines = text.lines().map(str::trim_start);
        let numbers = lines.filter_map(|line| line.strip_prefix(prefix)?.split_once(dot));
        numbers.filter_map(|(number, _)| number.parse().ok()).collect()
    };
    let text = read("docs/architecture.md");
    let documented = numbered(section(&text, "## The turn").expect("the turn"), "", ". ");
    let coded = numbered(&read("src/server/engine/turn.rs"), "// ", ". ");
    assert_eq!(coded, (0..coded.len()).collect::<Vec<_>>(), "the steps in the code");
    assert_eq!(documented, coded);
}
