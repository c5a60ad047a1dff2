//! Clients that do not read, or that never end their lines: what they may cost all of execd
//! together, and what they are told when they come to it (protocol.md, A slow reader).

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use crate::common::wire::{Wire, connect};
use crate::common::{Execd, Host, Incoming, Setup, eventually, session_of};
use serde_json::{Value, json};

const KIB_PER_MIB: u64 = 1024;
const MIB: usize = 1024 * 1024;

/// An execd whose stdout nobody reads yet, and a client of its socket.
fn unread() -> (Host, Wire) {
    let host = Setup::new(&["--socket", "here.sock"]).on(Stdio::piped(), Stdio::piped());
    let path = host.file("here.sock");
    eventually("it listens", || path.exists());
    let mut wire = Wire::connect(&path);
    wire.result("ping", json!({}));
    (host, wire)
}

/// Has a client run so many long commands. JSON writes each of their bytes as six.
fn run_long_commands(wire: &mut Wire, count: usize) {
    let command = format!(": {}", "\u{1}".repeat(12_000));
    let ids: Vec<u64> =
        (0..count).map(|_| wire.send("bash_stream", json!({"command": command}))).collect();
    ids.iter().for_each(|id| drop(wire.reply(*id)));
}

/// Every `session_started` of a session that somebody else started was queued to a client on stdin
/// that did not read, with the whole command: 128 KiB a session, without a bound.
/// rule: protocol.md, Notifications: `session_exited` once per session that started that way
/// rule: attach.md, Several clients: A client that does not read keeps no other waiting
/// rule: attach.md, Several clients: News of sessions wait for a client's room, bounded, counted
///   beyond, wakes never lost; stdin's client costs a bounded memory
#[test]
fn stdin_is_told_of_sessions_when_it_reads_and_costs_a_bounded_memory_until_then() {
    const SESSIONS: usize = 150;
    let (mut host, mut wire) = unread();
    // One wake of its own, armed while it has room; it ends long after there is none.
    let gate = host.file("gate");
    let wait = format!("while [ ! -e {} ]; do sleep 0.05; done", gate.display());
    let params = json!({"cmd": wait, "yield_time_ms": 250, "on_exit": "wake"});
    let request = json!({"id": 1, "method": "exec_command", "params": params});
    let stdin = host.child().stdin.as_mut().expect("a pipe");
    stdin.write_all(format!("{request}\n").as_bytes()).expect("sent");
    eventually("its wake is armed", || {
        let list = wire.result("list_sessions", json!({"peek": true}));
        list["sessions"][0]["wake_armed"] == true
    });
    run_long_commands(&mut wire, 30);
    let before = host.rss_kib();
    run_long_commands(&mut wire, 60);
    std::fs::write(&gate, "").expect("written");
    wire.note("session_exited", |note| note["session_id"] == 1);
    run_long_commands(&mut wire, 60);
    let grown = host.rss_kib().saturating_sub(before);
    eprintln!("{grown} KiB more");
    assert!(grown < 5 * KIB_PER_MIB, "{grown} KiB more");

    // It reads at last: every start and every end is told or counted, in order; none twice.
    let mut lines = Incoming::from(host.child().stdout.take().expect("a pipe"));
    let (mut started, mut ended, mut merged, mut woken) = (0, 0, 0, 0);
    let mut running = std::collections::BTreeSet::new();
    while started < 1 + SESSIONS as u64 || ended < 1 + SESSIONS as u64 {
        let line: Value = serde_json::from_str(&lines.line()).expect("JSON");
        let note = &line["params"];
        match line["method"].as_str() {
            Some("session_started") => {
                started += 1;
                assert!(note["command"].as_str().expect("a command").len() <= 4 * 1024 + 4);
                assert!(running.insert(session_of(note)));
            }
            Some("session_exited") => {
                ended += 1;
                woken += u64::from(note["wake"] == true);
                // Its start may be one of those that were only counted.
                running.remove(&session_of(note));
            }
            Some("sessions_changed") => {
                started += note["started"].as_u64().expect("a number");
                ended += note["ended"].as_u64().expect("a number");
                merged += 1;
            }
            _ => assert_eq!(line["id"], 1),
        }
    }
    assert_eq!((started, ended, woken), (1 + SESSIONS as u64, 1 + SESSIONS as u64, 1));
    assert!(merged > 0, "more than is kept");
}

/// Sixty-three half lines of 8 MiB held 507 MiB.
/// rule: attach.md, Several clients: What clients of the socket have sent, and what is unsent to
///   them, is bounded for all together; the worst is hung up on first, stdin's client never
#[test]
fn half_lines_hold_a_bounded_memory_all_together_and_whose_is_longest_is_told_so() {
    const CLIENTS: usize = 13;
    let mut execd = Execd::start();
    execd.ping();
    let mut short = Wire::connect(&execd.socket());
    short.raw(br#"{"id":77,"method":"#);
    let before = execd.rss_kib();
    let piece = vec![b' '; MIB];
    let mut clients: Vec<UnixStream> = (0..CLIENTS).map(|_| connect(&execd.socket())).collect();
    for _ in 0..7 {
        for client in &mut clients {
            // One that is hung up on takes no more.
            let _ = client.write_all(&piece);
        }
    }
    eventually("some are hung up on", || {
        let info = execd.result("server_info", json!({}));
        info["clients"]["connected"].as_u64().expect("a number") < CLIENTS as u64
    });
    let held = execd.peak_rss_kib().saturating_sub(before);
    assert!(held < 76 * KIB_PER_MIB, "{held} KiB");
    let mut told = 0;
    for mut client in clients {
        let mut said = Vec::new();
        client.set_nonblocking(true).expect("a flag");
        // What was sent and not read makes the end of the connection an error.
        let _ = client.read_to_end(&mut said);
        told += usize::from(crate::common::contains(&said, b"line_too_long"));
    }
    eprintln!("{told} were told");
    short.raw(b"\"ping\"}\n");
    assert_eq!(short.reply(77)["result"], json!({}));
}
