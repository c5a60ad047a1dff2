//! Streams of the real pi (tests/fixtures/pi-json), read whole and in pieces, as they are and
//! damaged: what is told and reported depends on their bytes alone, not on how they were cut.

use crate::agent_help::pi_json::{captured, parsed};
use crate::common::data::Random;
use execd::pure::agent::{AgentRun, End, RunSettings, Told};
use serde_json::{Value, json};

/// Memory that a run may own that has read nothing long.
const HEAP_BYTES: usize = 8 * 1024 * 1024;

fn streams() -> Vec<(String, Vec<u8>)> {
    captured().into_iter().map(|stream| (stream.name, stream.bytes)).collect()
}

#[derive(PartialEq)]
struct Outcome {
    told: Vec<String>,
    report: String,
}

/// Short where it is long: what differs is looked at by hand.
impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut report = self.report();
        report["provider_data"]["events"] = Value::Null;
        write!(f, "told {:#?} report {}", self.told, report)
    }
}

impl Outcome {
    fn report(&self) -> Value {
        serde_json::from_str(&self.report).unwrap()
    }

    fn told(&self) -> Vec<Value> {
        self.told.iter().map(|told| serde_json::from_str(told).unwrap()).collect()
    }
}

/// Reads pieces, all at the same time: how long a piece took to come is told elsewhere.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, keep_events: bool) -> Outcome {
    let mut run = AgentRun::new(RunSettings { keep_events, ..RunSettings::default() });
    let mut told = Vec::new();
    let mut keep = |event: &Told<'_>| told.push(serde_json::to_string(event).unwrap());
    let mut longest = 0;
    for piece in pieces {
        run.push(piece, 5, &mut keep);
        longest = run.heap_bytes().max(longest);
    }
    run.finish(5, &mut keep);
    assert!(longest < HEAP_BYTES, "{longest} bytes");
    let end = End { exit_code: Some(0), ..End::default() };
    let report = serde_json::to_string(&run.report(&end)).unwrap();
    Outcome { told, report }
}

/// rule: agent.md, The stream: The streams of known versions have no unknown events and fields
#[test]
fn nothing_in_them_is_unknown_and_each_ends_settled() {
    for (name, stream) in streams() {
        let outcome = read([stream.as_slice()], false);
        let data = &outcome.report()["provider_data"];
        assert_eq!(data["unparsed_lines"], 0, "{name}");
        assert_eq!(data["unknown_events"], json!({}), "{name}");
        assert_eq!(data["unknown_fields"], json!({}), "{name}");
        let mut run = AgentRun::new(RunSettings::default());
        run.push(&stream, 5, &mut |_| {});
        let clocks = run.clocks();
        // pi 0.73 does not wait for its last compaction; one pi failed at its start.
        let last = stream.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty());
        let goes_on = last.is_none_or(|line| line.starts_with(br#"{"type":"compaction_start""#));
        let settled_ms = (!goes_on).then_some(5);
        assert_eq!((clocks.settled_ms, clocks.tools_running), (settled_ms, 0), "{name}");
        let ids = outcome.told();
        let uses: Vec<&Value> = ids.iter().filter(|told| told["event"] == "tool_use").collect();
        let results = ids.iter().filter(|told| told["event"] == "tool_result");
        assert_eq!(results.count(), uses.len(), "{name}");
        assert_eq!(outcome.report()["tool_call_count"], uses.len(), "{name}");
    }
}

/// rule: agent.md, The stream: keep_events: raw events, 8 MiB, then counted
#[test]
fn a_kept_stream_is_all_of_it() {
    for (name, stream) in streams() {
        let outcome = read([stream.as_slice()], true);
        let report = outcome.report();
        let lines = stream.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        // Halves of surrogate pairs were replaced: not every reader takes them.
        let all: Vec<Value> = lines.map(parsed).collect();
        assert_eq!(report["provider_data"]["events"], json!(all), "{name}");
        assert_eq!(outcome.told, read([stream.as_slice()], false).told, "{name}");
    }
}

/// rule: agent.md, The stream: However the stream is cut into reads, it is the same
#[test]
fn a_stream_in_small_pieces_is_the_same_stream() {
    let mut random = Random(0x5eed_0001_0002_0003);
    for (name, stream) in streams() {
        let wanted = [false, true].map(|keep| read([stream.as_slice()], keep));
        assert_eq!(read(stream.chunks(1), false), wanted[0], "{name} byte by byte");
        for (at, longest) in [3, 40, 700, 9000, 64 * 1024].into_iter().enumerate() {
            let keep = at % 2 == 0;
            let pieces = random.pieces(&stream, longest);
            let whole = &wanted[usize::from(keep)];
            assert_eq!(&read(pieces, keep), whole, "{name} in pieces up to {longest}");
        }
    }
}

fn damage(stream: &[u8], random: &mut Random) -> Vec<u8> {
    const BITS: [&[u8]; 14] = [
        b"\n",
        b"\"",
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b"\xff",
        b"\0",
        b"\\ud83d",
        b"null",
        b"0.e",
        b",",
        b"\"type\":\"message_update\",",
    ];
    let mut bytes = stream.to_vec();
    for _ in 0..1 + random.below(12) {
        let at = random.below(bytes.len());
        let upto = (at + random.below(200)).min(bytes.len());
        match random.below(5) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => drop(bytes.drain(at..upto)),
            2 => {
                let copy = bytes[at..upto].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, copy);
            }
            _ => {
                let bit = BITS[random.below(BITS.len())];
                bytes.splice(at..at, bit.iter().copied());
            }
        }
        if bytes.is_empty() {
            bytes.push(b'\n');
        }
    }
    bytes
}

/// rule: agent.md, The stream: A stream that is cut off or damaged says so and is never fatal
#[test]
fn a_damaged_stream_never_panics_and_is_the_same_however_it_is_cut() {
    let mut random = Random(0x5eed_0001_0002_0005);
    let mut streams = streams();
    streams.retain(|(_, stream)| !stream.is_empty());
    let (mut unparsed, mut unknown) = (0, 0);
    for round in 0..200 {
        let (name, stream) = &streams[random.below(streams.len())];
        let from = random.below(stream.len());
        let bytes = damage(&stream[from..stream.len().min(from + 12_000)], &mut random);
        let keep = round % 2 == 0;
        let whole = read([bytes.as_slice()], keep);
        for longest in [5, 200, 6000] {
            let pieces = random.pieces(&bytes, longest);
            assert_eq!(read(pieces, keep), whole, "{name} in round {round}");
        }
        let data = &whole.report()["provider_data"];
        unparsed += data["unparsed_lines"].as_u64().unwrap();
        unknown += data["unknown_fields"].as_object().unwrap().len();
    }
    assert!(unparsed > 200 && unknown > 1, "{unparsed} unparsed, {unknown} unknown");
}
