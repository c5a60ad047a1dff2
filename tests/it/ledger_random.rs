//! The ledger of events under random orders of exits, polls, kills, evictions and cancelled waits,
//! with two clients, of which one vanishes and comes back: the replies of one connection tell each
//! end by an event once at most, and never after a reply has told it by itself; in the end all are
//! told.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Write as _;

use crate::common::data::Random;
use crate::common::wire::Wire;
use crate::common::*;
use serde_json::{Value, json};

const STEPS: usize = 150;
const SESSIONS: &str = "6";

/// What a client was told of ends by replies of this connection, and ever.
#[derive(Default)]
struct Told {
    now: BTreeSet<u64>,
    ever: BTreeSet<u64>,
    next_after: u64,
}

impl Told {
    fn read(&mut self, reply: &Value, session: u64, story: &str) {
        let result = &reply["result"];
        let mut own = BTreeSet::new();
        ends_in(result, session, &mut own);
        self.now.extend(&own);
        for event in result["events"].as_array().into_iter().flatten() {
            let id = event["session_id"].as_u64().expect("an id");
            if event["what"] == "exited" {
                assert!(self.now.insert(id), "{story}: the end of {id} is told again: {reply}");
            }
        }
        self.ever.extend(&self.now);
    }

    /// Notes a page of `events`, which gives all that is behind a number, told or not.
    fn replay(&mut self, page: &Value) {
        let mut last = self.next_after;
        for event in page["events"].as_array().expect("events") {
            assert_eq!(event["n"], last + 1, "{page}");
            last += 1;
            if event["what"] == "exited" {
                self.now.insert(event["session_id"].as_u64().expect("an id"));
            }
        }
        assert_eq!(page["next_after"], last);
        self.next_after = last;
        self.ever.extend(&self.now);
    }
}

/// The sessions whose ends a reply tells by itself: the objects in it with an exit code or a
/// signal.
fn ends_in(value: &Value, session: u64, ends: &mut BTreeSet<u64>) {
    if let Some(all) = value.as_array() {
        return all.iter().for_each(|one| ends_in(one, session, ends));
    }
    let Some(fields) = value.as_object() else { return };
    let session = session_in(value).unwrap_or(session);
    if ["exit_code", "exitCode", "signal"].iter().any(|name| fields.contains_key(*name)) {
        ends.insert(session);
    }
    let others = fields.iter().filter(|(name, _)| *name != "events");
    others.for_each(|(_, one)| ends_in(one, session, ends));
}

/// The session that an object names, a window too.
fn session_in(value: &Value) -> Option<u64> {
    let named = ["session_id", "sessionId"].iter().find_map(|name| value[*name].as_u64());
    named.or_else(|| value["window"].as_str()?.trim_start_matches('@').parse().ok())
}

struct World {
    execd: Execd,
    wire: Wire,
    /// What the client on stdin was told, and the one of the socket.
    told: [Told; 2],
    sessions: Vec<(u64, File)>,
    number: Random,
    story: String,
}

impl World {
    fn new(seed: u64) -> Self {
        let flags = ["--socket", "here.sock", "--max-sessions", SESSIONS];
        let mut execd = Execd::with(&flags, &[]);
        execd.run(&format!("for n in $(seq {STEPS}); do mkfifo hold$n; done"));
        let mut wire = Wire::connect(&execd.file("here.sock"));
        let page = wire.result("events", json!({}));
        let mut told = [Told::default(), Told::default()];
        told.iter_mut().for_each(|one| one.replay(&page));
        let story = format!("seed {seed}");
        Self { execd, wire, told, sessions: Vec::new(), number: Random(seed), story }
    }

    fn ask(&mut self, client: usize, method: &str, params: Value, session: u64) {
        let reply = if client == 0 {
            self.execd.ask(method, params)
        } else {
            let id = self.wire.send(method, params);
            self.wire.reply(id)
        };
        self.told[client].read(&reply, session, &self.story);
    }

    fn start(&mut self) {
        let hold = format!("hold{}", self.sessions.len() + 1);
        // Opened for both, it neither waits for a reader nor loses what is written before one came.
        let fifo = OpenOptions::new().read(true).write(true).open(self.execd.file(&hold));
        let kinds = ["HOLD; exit 3", "HOLD & exit 3", "trap '' TERM; HOLD; exit 3"];
        let cmd = self.number.of(&kinds).replace("HOLD", &format!("head -c 1 {hold} >&2"));
        let (method, params) = match self.number.below(4) {
            0 => ("bash_stream", json!({"command": cmd, "stream": false})),
            1 => ("bash", json!({"command": cmd, "background": true})),
            _ => ("exec_command", json!({"cmd": cmd, "events": true})),
        };
        let id = self.execd.start_request(method, params);
        if method != "bash" {
            self.execd.cancel(id);
        }
        let reply = self.execd.reply(id);
        let session = session_in(&reply["result"]).expect("an id");
        self.told[0].read(&reply, session, &self.story);
        self.sessions.push((session, fifo.expect("it is made")));
    }

    fn call(&mut self) {
        let client = self.number.below(2);
        let at = self.number.below(self.sessions.len());
        let id = self.sessions[at].0;
        let calls = [
            ("write_stdin", json!({"session_id": id, "yield_until": LONG_AGO, "events": true})),
            ("write_stdin", json!({"session_id": id, "yield_until": LONG_AGO})),
            ("list_sessions", json!({"peek": true, "events": true})),
            ("list_sessions", json!({})),
            ("wait_for", json!({"session_ids": [id], "timeout_ms": 0, "events": true})),
            ("wait_for", json!({"session_ids": [id], "timeout_ms": 0, "take": false})),
            ("read_output", json!({"session_id": id, "events": true})),
            ("read_output", json!({"session_id": id, "yield_time_ms": 1})),
            ("set_on_exit", json!({"session_id": id, "on_exit": "none", "events": true})),
            ("poll_process", json!({"sessionId": id})),
            ("kill_process", json!({"sessionId": id})),
            ("list_processes", json!({})),
            ("get_process_log", json!({"sessionId": id})),
            ("tmux", json!({"action": "list"})),
            ("tmux", json!({"action": "peek", "window": format!("@{id}")})),
        ];
        let (method, params) = self.number.of(&calls).clone();
        self.ask(client, method, params, id);
    }

    /// A wait that is cancelled, perhaps when it is over already.
    fn cancelled(&mut self) {
        let at = self.number.below(self.sessions.len());
        let id = self.sessions[at].0;
        let calls = [
            ("write_stdin", json!({"session_id": id, "yield_time_ms": 60_000, "events": true})),
            ("wait_for", json!({"session_ids": [id], "timeout_ms": 60_000, "events": true})),
            ("kill_session", json!({"session_id": id, "events": true})),
            ("poll_process", json!({"sessionId": id, "waitMs": 60_000})),
            ("read_output", json!({"session_id": id, "yield_time_ms": 60_000, "events": true})),
        ];
        let (method, params) = self.number.of(&calls).clone();
        let request = self.execd.start_request(method, params);
        let take = self.number.below(2) == 0;
        self.execd.result("cancel", json!({"id": request, "take": take}));
        let reply = self.execd.reply(request);
        self.told[0].read(&reply, id, &self.story);
    }

    /// The client of the socket is gone with a reply unread, and comes back with its number.
    fn vanish(&mut self) {
        self.wire.send("list_sessions", json!({"peek": true, "events": true}));
        self.wire = Wire::connect(&self.execd.file("here.sock"));
        self.told[1].now.clear();
        let after = self.told[1].next_after;
        let page = self.wire.result("events", json!({"after": after, "max": 1_000}));
        self.told[1].replay(&page);
    }

    fn let_go(&mut self, at: usize) {
        self.sessions[at].1.write_all(b"x").expect("it is open");
    }

    fn finish(mut self) {
        (0..self.sessions.len()).for_each(|at| self.let_go(at));
        let ids: BTreeSet<u64> = self.sessions.iter().map(|(id, _)| *id).collect();
        for id in &ids {
            self.execd.notification("session_exited", |exit| exit["session_id"] == *id);
        }
        for client in [0, 1] {
            for _ in 0..STEPS {
                let params = json!({"session_id": 777_777, "on_exit": "none", "events": true});
                self.ask(client, "set_on_exit", params, 0);
            }
            let missing: Vec<&u64> = ids.difference(&self.told[client].ever).collect();
            assert_eq!(missing, [&0; 0], "{}: client {client} was not told", self.story);
        }
    }
}

/// rule: protocol.md, Events: Each event is told to a client once at most by replies, and never
///   lost to one that asks for it by number
/// rule: protocol.md, Events: An event that a reply tells by itself counts as told, whoever opted
///   in
/// rule: protocol.md, Events: in the families of `bash_stream` and `bash` also when its shell has
///   and others [hold the output](bash-stream.md#output-after-the-shell)
/// rule: protocol.md, Events: A reply tells an end where it has the exit code or the signal, also
///   before it is one of these events
/// rule: protocol.md, Events: what the answer to a cancelled request says by itself counts as told
/// rule: protocol.md, Events: A client that lost its connection asks for what is behind the number
///   that it knows
#[test]
fn in_random_orders_each_end_is_told_to_each_client_once_and_none_is_lost() {
    for seed in 1..=4 {
        let mut world = World::new(seed);
        world.start();
        for step in 0..STEPS {
            world.story = format!("seed {seed}, step {step}");
            match world.number.below(12) {
                0..3 => world.start(),
                3..5 => {
                    let at = world.number.below(world.sessions.len());
                    world.let_go(at);
                }
                5 => world.cancelled(),
                6 => world.vanish(),
                _ => world.call(),
            }
        }
        world.finish();
    }
}
