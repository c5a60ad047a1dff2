//! read_output against a copy of all that commands have written: over kills of the log writer and a
//! bound that takes the beginning of logs, while the command runs and after its end, the bytes of
//! all answers plus all gaps that they tell are exactly the output (logs.md, Reading).

use crate::common::data::Random;
use crate::common::{Execd, eventually, merged, send_signal};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::Write;

/// Histories of one test.
const HISTORIES: u64 = 25;
/// The bound of the logs, the smallest that there is.
const KEEP_BYTES: u64 = 1 << 20;
/// Each line of the output: its number and an end of line.
const LINE_BYTES: u64 = 8;
/// Lines that pass the bound and two steps of it.
const MANY_LINES: u64 = (KEEP_BYTES + KEEP_BYTES / 8) / LINE_BYTES;
const STREAMS: [&str; 2] = ["stdout", "stderr"];
const ALONE: [Option<usize>; 3] = [None, Some(0), Some(1)];

/// A command that prints the lines it is told to, to the stream it is told, and a copy of them.
struct History {
    session: u64,
    /// Tells the command.
    orders: File,
    /// Lines so far.
    lines: u64,
    output: Vec<u8>,
    streams: [Vec<u8>; 2],
    /// A log writer was killed: bytes that were on their way to it may be lost.
    killed: bool,
}

fn place(offset: u64) -> usize {
    usize::try_from(offset).expect("small")
}

fn number(page: &Value, field: &str) -> u64 {
    page[field].as_u64().unwrap_or_else(|| panic!("no {field} in {page}"))
}

/// One answer of read_output. While a log writer is away, the error of that one request is told.
fn read(execd: &mut Execd, params: &Value) -> Value {
    let mut page = Value::Null;
    eventually("the log is read", || {
        let reply = execd.request("read_output", params.clone());
        let error = &reply["error"];
        assert!(error.is_null() || error["data"]["reason"] == "system", "{params}: {reply}");
        page = reply["result"].clone();
        error.is_null()
    });
    page
}

/// Kills the log writer and waits for the next one.
fn kill_keeper(execd: &mut Execd) {
    let keeper = execd.keeper();
    send_signal(keeper, libc::SIGKILL);
    eventually("there is another log writer", || {
        let pid = &execd.result("server_info", json!({}))["keeper_pid"];
        pid.is_i64() && *pid != keeper
    });
}

impl History {
    fn new(execd: &mut Execd, name: u64) -> Self {
        let fifo = execd.file(&format!("orders-{name}"));
        let path = CString::new(fifo.to_str().expect("UTF-8")).expect("no NUL");
        // SAFETY: mkfifo reads a string that ends in NUL.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
        // Open for both, it waits for nobody.
        let orders = OpenOptions::new().read(true).write(true).open(&fifo).expect("a pipe");
        let command = format!(
            "exec 3<{}; while read -r stream from to <&3; do case $stream in \
             0) seq -f %07.0f $from $to;; 1) seq -f %07.0f $from $to >&2;; *) exit 7;; esac; done",
            fifo.display()
        );
        let started = crate::stream_help::open(execd, &command);
        let session = crate::stream_help::id_of(&started);
        let (output, streams) = (Vec::new(), [Vec::new(), Vec::new()]);
        Self { session, orders, lines: 0, output, streams, killed: false }
    }

    fn total(&self) -> u64 {
        self.output.len() as u64
    }

    /// The command prints so many lines to a stream, and execd has read them.
    fn write(&mut self, execd: &mut Execd, stream: usize, lines: u64) {
        let (from, to) = (self.lines + 1, self.lines + lines);
        writeln!(self.orders, "{stream} {from} {to}").expect("the command reads");
        let bytes: Vec<u8> = (from..=to).flat_map(|n| format!("{n:07}\n").into_bytes()).collect();
        let mut known = self.total();
        self.lines = to;
        self.output.extend_from_slice(&bytes);
        self.streams[stream].extend_from_slice(&bytes);
        while known < self.total() {
            let more = json!({"session_id": self.session, "from": known, "max_bytes": 4,
                "yield_time_ms": 60_000});
            known = number(&read(execd, &more), "total_bytes");
        }
        assert_eq!(known, self.total());
    }

    fn expected(&self, only: Option<usize>) -> &[u8] {
        only.map_or(&self.output, |stream| &self.streams[stream])
    }

    /// Asks for a part, and checks what is answered; gives its next_offset and how many bytes it
    /// has.
    fn check(&self, execd: &mut Execd, only: Option<usize>, from: i64, more: Value) -> (u64, u64) {
        let all = self.expected(only);
        let total = all.len() as u64;
        let asked = match from {
            back @ ..0 => total.saturating_sub(back.unsigned_abs()),
            from => from.unsigned_abs().min(total),
        };
        let mut params = merged(json!({"session_id": self.session, "from": from}), more);
        if let Some(stream) = only {
            params["stream"] = json!(STREAMS[stream]);
        }
        let page = read(execd, &params);
        let told = format!("{params} {:.400}", page.to_string());
        let (at, to) = (number(&page, "from"), number(&page, "to"));
        assert_eq!((number(&page, "next_offset"), number(&page, "total_bytes")), (to, total));
        assert!(asked <= at && at <= to && to <= total, "{told}");
        let bytes = match page["data_b64"].as_str() {
            Some(data) => STANDARD.decode(data).expect("base64"),
            None => page["text"].as_str().expect("text").as_bytes().to_vec(),
        };
        assert!(bytes == all[place(at)..place(to)], "{told}");
        let most = params["max_bytes"].as_u64().expect("a number");
        assert!(bytes.len() as u64 <= most, "{told}");
        // All that is left out is told, but for what clean text leaves out before a line's start.
        if params["view"] == "clean" {
            assert!(page["gap"].is_array() || at - asked < LINE_BYTES, "{told}");
        } else {
            let gap = if at > asked { json!([asked, at]) } else { Value::Null };
            assert_eq!(page["gap"], gap, "{told}");
        }
        assert!(to > asked || asked == total, "it leads on: {told}");
        (to, bytes.len() as u64)
    }

    fn random_part(&self, execd: &mut Execd, random: &mut Random) {
        let only = *random.of(&ALONE);
        let at = random.below(self.expected(only).len() as u64 + 20).cast_signed();
        let from = if random.below(3) == 0 { -1 - at } else { at };
        let max_bytes = *random.of(&[8, 40, 700, 100_000]);
        let view = *random.of(&["b64", "raw", "clean"]);
        self.check(execd, only, from, json!({"max_bytes": max_bytes, "view": view}));
    }

    /// Reads all of the output, or of one stream of it; gives how many bytes of it there were.
    fn sweep(&self, execd: &mut Execd, only: Option<usize>, max_bytes: u64, view: &str) -> u64 {
        let (total, mut at, mut had) = (self.expected(only).len() as u64, 0, 0);
        let most = json!({"max_bytes": max_bytes.max(total / 20), "view": view});
        while at < total {
            let (next, bytes) = self.check(execd, only, at.cast_signed(), most.clone());
            (at, had) = (next, had + bytes);
        }
        had
    }

    /// Reads all parts of it, by each offset that there is.
    fn sweep_all(&self, execd: &mut Execd, random: &mut Random) {
        let had = ALONE.map(|only| {
            let most = *random.of(&[200, 5_000, 100_000]);
            let view = *random.of(&["b64", "raw"]);
            self.sweep(execd, only, most, view)
        });
        let total = self.total();
        // Nothing is lost but by the bound, and by a log writer that is killed.
        if !self.killed {
            let least = if total > KEEP_BYTES { KEEP_BYTES } else { total };
            assert!((least..=total).contains(&had[0]), "{} of {total}", had[0]);
            assert_eq!(had[1] + had[2], had[0], "the streams are the output");
        }
    }
}

/// One history: what comes while the command runs, and what is there after its end.
fn live_through(execd: &mut Execd, random: &mut Random, name: u64) {
    let mut history = History::new(execd, name);
    let long = random.below(8) == 0;
    for _ in 0..3 + random.below(8) {
        match random.below(10) {
            0 if random.below(3) == 0 => {
                history.killed = true;
                kill_keeper(execd);
            }
            0..=5 => {
                let most = if random.below(3) == 0 { 4_000 } else { 30 };
                let lines = 1 + random.below(most);
                history.write(execd, random.below(2), lines);
            }
            _ => history.random_part(execd, random),
        }
    }
    if long {
        let first = random.below(2);
        history.write(execd, first, MANY_LINES / 2);
        history.write(execd, 1 - first, MANY_LINES / 2 + random.below(9_000));
        history.random_part(execd, random);
    }
    if random.below(4) == 0 {
        history.sweep_all(execd, random);
    }
    writeln!(history.orders, "end 0 0").expect("the command reads");
    assert_eq!(crate::stream_help::until_over(execd, history.session)["exitCode"], 7);
    history.sweep_all(execd, random);
    history.random_part(execd, random);
}

fn histories(seed: u64) {
    let mut execd = Execd::with(&["--log-keep-bytes", "1048576"], &[]);
    let mut random = Random(seed);
    for name in 0..HISTORIES {
        live_through(&mut execd, &mut random, name);
    }
}

/// rule: logs.md, Reading: A gap is what the log has lost at its beginning, or what never got there
/// rule: logs.md, Reading: Offsets never change and are never used again
#[test]
fn answers_and_gaps_together_are_all_that_commands_have_written() {
    histories(0x2545_f491_4f6c_dd1d);
}

#[test]
fn answers_and_gaps_together_are_all_in_other_histories() {
    histories(0x1357_9bdf_0246_8ace);
}

#[test]
fn answers_and_gaps_together_are_all_in_more_histories() {
    histories(0x0123_4567_89ab_cdef);
}
