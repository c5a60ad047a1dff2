//! Mutated requests by the hundred thousand, from seeds, so that each run is the same: framing,
//! envelope and params in-process, then the real binary.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::common::data::Random;
use crate::common::{Incoming, Setup, is_notification};
use execd::pure::text::lines::{Line, LineSplitter};
use execd::server::front::check_params;
use execd::wire;
use serde_json::Value;
use std::io::Write;

/// Requests that are valid, most of them with every param.
const VALID: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":1,"method":"exec_command","params":{"cmd":"true"}}"#,
    r#"{"id":"a\u0041","method":"exec_command","params":{"cmd":"echo \ud83d\ude00","stdin":"null","workdir":"/","shell":"bash","tty":true,"cols":80,"rows":24,"yield_time_ms":250,"env":{"A":"1","B":null},"on_exit":"wake","stream":true,"name":"n","raw_output":false}}"#,
    r#"{"id":1e2,"method":"write_stdin","params":{"session_id":1,"chars":"a\\x03\n","yield_time_ms":250,"stream":true,"raw_output":true}}"#,
    r#"{"id":9007199254740993,"method":"write_stdin","params":{"session_id":2,"chars_b64":"YWJj","eof":true}}"#,
    r#"{"id":-0.0,"method":"write_stdin","params":{"session_id":1,"yield_until":"2001-02-03T04:05:06.789Z","max_empty_poll_ms":5000}}"#,
    r#"{"id":null,"method":"kill_session","params":{"session_id":3,"signal":"SIGTERM"}}"#,
    r#"{"id":"k","method":"kill_session","params":{"session_id":4,"signal":9}}"#,
    r#"{"id":5,"method":"list_sessions","params":{"peek":true}}"#,
    r#"{"id":6,"method":"set_on_exit","params":{"session_id":1,"on_exit":"none"}}"#,
    r#"{"id":7,"method":"resize_session","params":{"session_id":2,"cols":100,"rows":40}}"#,
    r#"{"id":12,"method":"bash","params":{"command":"echo hi","name":"n","timeout":0.5,"timeoutAction":"kill","background":false,"pollInterval":10,"pollLines":5,"stream":true,"context":{"env":{"A":null},"scope":{"piSession":"s","gitRoot":"/"},"maxOutputBytes":100,"tmuxEnabledActions":["list"],"minimumPollIntervalSeconds":1e2}}}"#,
    r#"{"id":13,"method":"bash","params":{"command":"sleep 9","background":true,"pollInterval":0.1,"context":{"pollDelivery":"display"}}}"#,
    r#"{"id":14,"method":"tmux","params":{"action":"kill","window":"@1","context":{"windowScope":"all"}}}"#,
    r#"{"id":15,"method":"tmux","params":{"action":"poll","window":"2","pollInterval":1.5,"pollLines":3}}"#,
    r#"{"id":16,"method":"tmux","params":{"action":"list"}}"#,
    r#"{"id":17,"method":"exec_command","params":{"cmd":"x","until":{"text":["a","b"],"regex":"(?i)b(c)+$","count":2,"port":0,"input":"line","idle_ms":5,"idle_cpu":true,"tree_exit":true,"http":{"port":"any","path":"/","status":[200,299]}},"stop":{"regex":["[^x]\\b","y{1,3}"],"input":true}}}"#,
    r#"{"id":8,"method":"cancel","params":{"id":"a\u0041"}}"#,
    r#"{"id":9,"method":"cancel","params":{"id":1e2}}"#,
    r#"{"method":"ping"}"#,
    r#"{"id":10,"method":"ping","params":{},"beside":[1,{"x":null}]}"#,
    r#"  {"id":11,"method":"server_info","params":{}}"#,
];

/// Pieces that are put into lines, with an `&` between them.
const PIECES: &[u8] = b"{&}&[&]&\"&\\&:&,&null&true&0&-1&1e999&1.5&99999999999999999999&\\u0000\
    &\\ud800&\\udc00&\\ud83d\\ude00&\xff&\xc3\xa9&\xf0\x9f\x98\x80&\0&\r&\n& &\t&\xef\xbb\xbf&\"id\":2,\
    &\"id\":[],&\"method\":\"ping\",&\"params\":{},&\"session_id\":1,&\"cmd\":\"true\",&=\
    &[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[&{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":";

fn piece(random: &mut Random) -> &'static [u8] {
    static ALL: std::sync::OnceLock<Vec<&[u8]>> = std::sync::OnceLock::new();
    let all = ALL.get_or_init(|| PIECES.split(|byte| *byte == b'&').collect());
    all[random.below(all.len())]
}

/// Changes a line in one way.
fn mutate(random: &mut Random, line: &mut Vec<u8>, corpus: &[&str]) {
    let at = random.below(line.len() + 1);
    let to = at + random.below(line.len() - at + 1);
    match random.below(12) {
        0 if at < line.len() => line[at] ^= 1 << random.below(8),
        1 if at < line.len() => line[at] = u8::try_from(random.below(256)).expect("a byte"),
        2 => line.truncate(at),
        3 => drop(line.drain(at..to.min(at + 8))),
        4 => drop(line.drain(at..to)),
        5 => {
            // A part twice.
            let part = line[at..to].to_vec();
            line.splice(at..at, part);
        }
        6 => {
            // The head of one line and the tail of another.
            let other = random.of(corpus).as_bytes();
            let from = random.below(other.len());
            line.truncate(at);
            line.extend_from_slice(&other[from..]);
        }
        7 if random.below(20) == 0 => {
            let part = piece(random).repeat(random.below(400));
            line.splice(at..at, part);
        }
        8 => {
            // A number or a word of the protocol in the place of another part.
            line.splice(at..to.min(at + 6), piece(random).iter().copied());
        }
        _ => drop(line.splice(at..at, piece(random).iter().copied())),
    }
}

fn mutated(random: &mut Random, corpus: &[&str]) -> Vec<u8> {
    let mut line = random.of(corpus).as_bytes().to_vec();
    for _ in 0..=random.below(3) {
        mutate(random, &mut line, corpus);
    }
    line
}

/// The lines in some bytes that are not blank, by splitting them all at once.
fn split(bytes: &[u8], max: usize) -> Vec<Option<Vec<u8>>> {
    let blank = |line: &[u8]| line.iter().all(|byte| matches!(byte, b' ' | b'\t'));
    let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| {
        if line.len() > max {
            return Some(None);
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        (!blank(line)).then(|| Some(line.to_vec()))
    });
    lines.collect()
}

#[derive(Default)]
struct Tally {
    codes: BTreeMap<i32, usize>,
    taken: usize,
}

impl Tally {
    /// Parses a line down to its params and checks what can be said about the outcome.
    fn parse(&mut self, line: &[u8], compare: bool) {
        let parsed = wire::parse(line);
        let shown = || String::from_utf8_lossy(line).into_owned();
        if compare {
            // Another parser decides what is JSON.
            match (serde_json::from_slice::<Value>(line), &parsed) {
                (Ok(_), Err(refused)) => assert_ne!(refused.error.code, -32700, "{}", shown()),
                (Err(fault), outcome) => {
                    let limit = ["out of range", "recursion limit"];
                    let limit = limit.iter().any(|word| fault.to_string().contains(word));
                    let refused = outcome.as_ref().is_err_and(|one| one.error.code == -32700);
                    assert!(limit || refused, "{}: {fault}", shown());
                }
                (Ok(_), Ok(_)) => {}
            }
        }
        let error = match parsed {
            Err(refused) => {
                let codes = [-32700, -32600, -32602];
                assert!(codes.contains(&refused.error.code), "{}: {refused:?}", shown());
                let null = refused.id.as_ref().is_some_and(|id| id.as_json() == "null");
                assert!(refused.error.code != -32700 || null, "{}: {refused:?}", shown());
                refused.error
            }
            Ok(request) => match check_params(&request.method, request.params) {
                Ok(()) => {
                    self.taken += 1;
                    return;
                }
                Err(error) => {
                    // A negative number is the id of no session, whatever there is.
                    let no_session = error.code == -32000
                        && error.data["reason"] == "unknown_session"
                        && error.message.contains(": -");
                    let codes = [-32601, -32602];
                    let fits = codes.contains(&error.code)
                        && error.data.contains_key("param") == (error.code == -32602);
                    assert!(fits || no_session, "{}: {error:?}", shown());
                    // A param may be called params: then it is named as any other.
                    let what = error.message.strip_prefix("params: ");
                    let named = what.is_none_or(|what| what.starts_with("unknown param"));
                    assert!(named, "{}: {error:?}", shown());
                    error
                }
            },
        };
        assert!(!error.message.is_empty() && error.message.len() < 2_000, "{}", shown());
        *self.codes.entry(error.code).or_default() += 1;
    }
}

/// Runs `lines` mutated lines through the splitter in pieces of any size, and each line that
/// comes out of it through the parser.
fn fuzz(seed: u64, lines: usize) {
    const MAX: usize = 2_000;
    let mut random = Random(seed);
    let mut splitter = LineSplitter::new(MAX);
    let mut tally = Tally::default();
    let mut made = 0;
    while made < lines {
        // Twenty mutated lines, one valid one, in pieces.
        let mut bytes = Vec::new();
        for _ in 0..20 {
            bytes.extend(mutated(&mut random, VALID));
            bytes.extend_from_slice(if random.below(4) == 0 { b"\r\n" } else { b"\n" });
            made += 1;
        }
        let valid = *random.of(VALID);
        let mut expected = split(&bytes, MAX);
        expected.push(Some(valid.as_bytes().to_vec()));
        bytes.extend_from_slice(valid.as_bytes());
        bytes.push(b'\n');
        let mut expected = expected.into_iter();
        let mut rest = bytes.as_slice();
        let mut last = Vec::new();
        while !rest.is_empty() {
            let size = 1 + random.below(1_000);
            let (piece, later) = rest.split_at(size.min(rest.len()));
            rest = later;
            splitter.push(piece);
            while let Some(line) = splitter.next_line() {
                let line = match line {
                    Line::Text(line) => Some(line),
                    Line::TooLong => None,
                };
                let wanted = expected.next().expect("no line more than there are");
                assert_eq!(line, wanted.as_deref());
                if let Some(line) = line {
                    tally.parse(line, random.below(4) == 0);
                    last.clear();
                    last.extend_from_slice(line);
                }
            }
            splitter.check();
        }
        assert!(expected.next().is_none(), "a line was lost");
        assert_eq!(last, valid.as_bytes());
        let request = wire::parse(&last).unwrap_or_else(|refused| panic!("{valid}: {refused:?}"));
        check_params(&request.method, request.params).expect(valid);
    }
    // The mutations reach every kind of refusal, and much of what is valid stays so.
    for code in [-32700, -32600, -32601, -32602] {
        let count = tally.codes.get(&code).copied().unwrap_or_default();
        assert!(count > lines / 1_000, "{code} came {count} times: {:?}", tally.codes);
    }
    assert!(tally.taken > lines / 100, "{} lines were valid", tally.taken);
}

/// rule: protocol.md, Errors: Bad input is never a crash and never a lost later request
#[test]
fn mutated_lines_never_confuse_the_parser_1() {
    fuzz(0x1234_5678_9abc_def1, 100_000);
}

/// rule: architecture.md, Bounds: No panics on input
#[test]
fn mutated_lines_never_confuse_the_parser_2() {
    fuzz(0x0bad_cafe_dead_beef, 100_000);
}

/// What execd is asked in the other tests, and a shell that stays.
const STAYS: &str = r#"{"id":"stay","method":"exec_command","params":{"cmd":"x","shell":"sh","yield_time_ms":250}}"#;

/// How often each id must be answered for these bytes.
fn expect_replies(bytes: &[u8], max: usize, expected: &mut BTreeMap<String, usize>) {
    for line in split(bytes, max) {
        let id = match line.as_deref().map(wire::parse) {
            None => Some("null".to_owned()),
            Some(Ok(request)) => request.id.map(|id| id.to_string()),
            Some(Err(refused)) => refused.id.map(|id| id.to_string()),
        };
        if let Some(id) = id {
            *expected.entry(id).or_default() += 1;
        }
    }
}

/// The id of a reply, as it is written.
fn id_of(reply: &str) -> String {
    let rest = reply.strip_prefix(r#"{"jsonrpc":"2.0","id":"#).expect(reply);
    // An id is a string or has no comma in it.
    let mut inside = false;
    let mut escaped = false;
    let end = rest.char_indices().find(|(_, c)| {
        let ends = !inside && *c == ',';
        inside ^= *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    rest[..end.expect(reply).0].to_owned()
}

/// rule: protocol.md, Framing: Requests come in on stdin, replies and notifications go out on
///   stdout, one JSON object a line
/// rule: protocol.md, Errors: After a line that is no JSON the next one is read as if nothing had
///   happened
/// rule: protocol.md, Errors: Bad input is never a crash and never a lost later request
/// rule: architecture.md, A session: Every request is answered exactly once
#[test]
fn the_binary_answers_each_of_twenty_thousand_mutated_lines_exactly_once() {
    const MAX: usize = 4_096;
    const LINES: usize = 20_000;
    let mut setup = Setup::new(&["--max-line-bytes", "4096"]);
    // Commands can become anything by mutation, so no shell is real: bash is true(1), which
    // takes any arguments and ends, and sh is a script that ignores them and stays.
    let bin = setup.workdir().join("bin");
    std::fs::create_dir(&bin).expect("a directory");
    symlink("/bin/true", bin.join("bash")).expect("a link");
    std::fs::write(bin.join("sh"), "#!/bin/bash\nexec /bin/cat >/dev/null\n").expect("a file");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(bin.join("sh"), executable).expect("a mode");
    setup.command().env("PATH", &bin);
    let (child_in, mut input) = std::io::pipe().expect("a pipe");
    let (output, child_out) = std::io::pipe().expect("a pipe");
    let mut host = setup.on(child_in, child_out);
    let mut incoming = Incoming::from(output);
    let mut corpus = VALID.to_vec();
    corpus.push(STAYS);
    let mut random = Random(0xf0f0_1234_5678_9999);
    let mut expected = BTreeMap::new();
    let mut bytes = Vec::new();
    for line in 1..=LINES {
        bytes.extend(mutated(&mut random, &corpus));
        bytes.push(b'\n');
        if line % 100 == 0 {
            let id = format!("\"ping {line}\"");
            bytes.extend(format!("{{\"id\":{id},\"method\":\"ping\"}}\n").into_bytes());
            expect_replies(&bytes, MAX, &mut expected);
            input.write_all(&bytes).expect("execd reads on");
            bytes.clear();
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
            while incoming.line() != answer {}
        }
    }
    // The end answers what still waits; a last request shows that all before it was taken up.
    input.write_all(b"{\"id\":\"the end\",\"method\":\"shutdown\"}\n").expect("execd reads on");
    expected.insert("\"the end\"".to_owned(), 1);
    let rest = incoming.rest();
    assert_eq!(host.exit_code(), Some(0));
    let mut answered: BTreeMap<String, usize> = BTreeMap::new();
    let codes = [-32700, -32600, -32601, -32602, -32000];
    for line in incoming.seen.iter().chain(&rest).filter(|line| !is_notification(line)) {
        // An id may be a number that no parser takes: what follows it is looked at as text.
        let id = id_of(line);
        let rest = &line[r#"{"jsonrpc":"2.0","id":"#.len() + id.len()..];
        let code = rest.strip_prefix(r#","error":{"code":"#);
        let code = code.and_then(|rest| rest.split(',').next()?.parse::<i32>().ok());
        let known = code.is_some_and(|code| codes.contains(&code));
        assert!(known || rest.starts_with(r#","result":{"#), "{line}");
        *answered.entry(id).or_default() += 1;
    }
    for (id, count) in &expected {
        assert_eq!(answered.get(id), Some(count), "replies to {id}");
    }
    assert_eq!(answered.len(), expected.len(), "nothing else is answered");
}
