//! The whole way of a request through an engine of its own: no binary, no helper processes.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use crate::config::{Config, SocketPlace};
use crate::limits::MAX_LINE_BYTES;
use crate::server::engine::client::Client;
use crate::server::engine::clients::STDIN_CLIENT;
use crate::server::families::Engine;
use crate::server::front::METHODS;
use crate::sys::stdio::Channel;

/// All lines that an engine answers these with until their end.
fn answers(requests: &[Value]) -> (Engine, Vec<Value>) {
    let (ours, mut theirs) = UnixStream::pair().expect("a socket pair");
    ours.set_nonblocking(true).expect("not blocking");
    let channel = || {
        let end = ours.try_clone().expect("another descriptor");
        Channel::of_connection(OwnedFd::from(end).into())
    };
    let client = Client::new(STDIN_CLIENT, channel(), channel(), MAX_LINE_BYTES);
    let mut config = Config { keeper: false, socket: SocketPlace::Off, ..Config::default() };
    config.logs.off = true;
    for request in requests {
        writeln!(theirs, "{request}").expect("room for a line");
    }
    theirs.shutdown(std::net::Shutdown::Write).expect("the end of the requests");
    let mut engine = Engine::start_for(client, config, METHODS).expect("an engine");
    assert_eq!(engine.run(), 0);
    ours.shutdown(std::net::Shutdown::Write).expect("the end of the answers");
    let mut said = String::new();
    theirs.read_to_string(&mut said).expect("its answers");
    let lines = said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    (engine, lines)
}

#[test]
fn a_family_of_one_folder_and_one_line_starts_waits_answers_tells_the_end_and_remembers() {
    let (engine, all) = answers(&[json!({"id": 1, "method": "echo", "params": {"text": "hello"}})]);
    let methods: Vec<&str> = all.iter().filter_map(|line| line["method"].as_str()).collect();
    assert_eq!(methods, ["session_started", "session_exited"]);
    let reply = all.iter().find(|line| line["id"] == 1).expect("a reply");
    let result = json!({"session_id": 1, "said": "hello", "why": "completed"});
    assert_eq!(reply["result"], result, "{all:?}");
    let exited = all.iter().find(|line| line["method"] == "session_exited").expect("its end");
    assert_eq!(exited["params"]["exit_code"], 0);
    assert_eq!(exited["params"]["observed"], true);
    assert_eq!(engine.cx.books.echo.get(1).map(String::as_str), Some("hello"));
}
