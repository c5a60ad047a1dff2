//! write_stdin: drives a session with input, or polls it.

use serde_json::value::RawValue;

use super::{Unified, clamp_note, ended, resize_session, tool_time_utc};
use crate::limits::{
    MAX_YIELD_TIME_MS, MIN_EMPTY_YIELD_TIME_MS, MIN_YIELD_TIME_MS, NS_PER_MS, PTY_COLS_RANGE,
    PTY_ROWS_RANGE,
};
use crate::pure::json::fields::Fields;
use crate::pure::text::unescape::unescape;
use crate::pure::time::rfc3339::parse_utc;
use crate::pure::until::Echo;
use crate::server::engine::conditions;
use crate::server::engine::contract::{Answer, Call, session_id};
use crate::server::engine::input::{self, accept};
use crate::server::families::stream::{job_input, model as job_model};
use crate::server::families::{Engine, Method, Numbered};
use crate::server::session::Session;
use crate::server::session::asked::{Asked, Conditions};
use crate::server::session::wait::{Progress, Until, Wait, WaitKind};
use crate::sys::pty::Size;
use crate::wire::until::{self, Spelling::Snake, UNTIL};
use crate::wire::{self, Int, Kind, Param, RpcError};

/// Wait of write_stdin with input when none is given.
const DEFAULT_WRITE_STDIN_YIELD_MS: u64 = 250;

pub(crate) const METHOD: Method = Method {
    name: "write_stdin",
    summary: "Writes to a session's stdin, or polls it when there is nothing to write; answers \
              like exec_command.",
    params: Params::TABLE,
    other_params: Some(job_input::Params::TABLE),
    waits: true,
    starts: false,
    while_closing: false,
    models: &[super::model::WRITE_STDIN, job_model::WRITE_STDIN],
    check,
    call,
};

/// The fields of `resize`.
const SIZE: &[Param] = &[
    Param::required("cols", Kind::Integer, "columns, clamped to 20..500"),
    Param::required("rows", Kind::Integer, "rows, clamped to 5..300"),
];

wire::params! {
    struct Params {
        session_id "session_id": Int = required(
            Kind::Session,
            "the session to write to or to poll",
        );
        chars "chars": Option<String> = optional(
            Kind::Chars,
            "text to write; C-style escapes are decoded (\\x03, \\n)",
        ) or "data" or "input";
        chars_b64 "chars_b64": Option<String> = optional(
            Kind::Chars,
            "exact bytes to write, in base64",
        );
        eof "eof": bool = optional(
            Kind::Bool,
            "closes stdin after the bytes; on a terminal in canonical mode sends its end-of-file",
        );
        yield_time_ms "yield_time_ms": Option<Int> = optional(
            Kind::Integer,
            "how long to wait: with input 250..30000 ms (default 250), a poll, and with until or \
             stop, 5000 ms..cap (default 5000)",
        ) or "timeout" or "timeout_ms";
        until "until": Option<Box<RawValue>> = optional(Kind::Object(UNTIL), super::UNTIL_DOC);
        stop "stop": Option<Box<RawValue>> = optional(Kind::Object(UNTIL), super::STOP_DOC);
        on_impossible "on_impossible": Option<String> = optional(
            Kind::Choice(&["answer", "wait"]),
            super::ON_IMPOSSIBLE_DOC,
        );
        yield_until "yield_until": Option<String> = optional(
            Kind::Text,
            "polls until this moment (RFC 3339 UTC, 2026-07-21T18:30:00Z) instead",
        );
        resize "resize": Option<Box<RawValue>> = optional(
            Kind::Object(SIZE),
            "gives the session's terminal this size first, as resize_session does",
        );
        max_empty_poll_ms "max_empty_poll_ms": Option<Int> = optional(
            Kind::Integer,
            super::CAP_DOC,
        );
        stream "stream": bool = optional(Kind::Bool, "sends progress notifications while waiting");
        raw_output "raw_output": bool = optional(
            Kind::Bool,
            "gives output unprocessed instead of clean text",
        );
        header "header": Option<String> = optional(
            Kind::Choice(super::HEADER_WORDS),
            super::HEADER_DOC,
        );
        events "events": bool = optional(Kind::Bool, super::EVENTS_DOC);
        until_password "until_password": bool = optional(Kind::Bool, super::UNTIL_PASSWORD_DOC);
        secret "secret": bool = optional(Kind::Bool, input::SECRET_DOC);
    }
}

/// The two spellings of input, decoded. An empty string counts as absent.
fn input_bytes(params: &Params) -> Result<Vec<u8>, RpcError> {
    let given = |text: &Option<String>| text.as_ref().filter(|text| !text.is_empty()).cloned();
    match (given(&params.chars), given(&params.chars_b64)) {
        (Some(_), Some(_)) => {
            let message = "write_stdin: pass either `chars` or `chars_b64`, not both.";
            Err(RpcError::invalid_param("chars_b64", message))
        }
        (Some(chars), None) => Ok(unescape(&chars)),
        (None, Some(text)) => wire::decode_base64(&text).map_err(|fault| {
            let shown = wire::quoted(&text);
            let message =
                format!("write_stdin: `chars_b64` is not valid base64. ({fault}, in {shown:?})");
            let error = RpcError::invalid_param("chars_b64", message);
            if params.secret { error.without_value() } else { error }
        }),
        (None, None) if params.secret => {
            let message = "secret: it goes with input, in chars or chars_b64";
            Err(RpcError::invalid_param("secret", message))
        }
        (None, None) => Ok(Vec::new()),
    }
}

/// The absolute end of the wait, where one is given. Its errors tell the time, so that a model
/// can correct itself.
fn stamp(params: &Params, empty: bool) -> Result<Option<Until>, RpcError> {
    let Some(stamp) = &params.yield_until else { return Ok(None) };
    let fault = |param: &str, what: String| {
        let message = format!("{what}; tool_time_utc: {}", tool_time_utc());
        Err(RpcError::invalid_param(param, message))
    };
    if params.yield_time_ms.is_some() {
        return fault("yield_until", "pass yield_time_ms or yield_until, not both".to_owned());
    }
    if !empty {
        return fault("yield_until", "yield_until is only valid for an empty poll".to_owned());
    }
    match parse_utc(stamp) {
        Ok(parsed) => Ok(Some(Until { stamp: stamp.clone(), wall_ms: parsed.unix_ms })),
        Err(why) => {
            let shown = wire::quoted(stamp);
            let example = "it must look like 2026-07-21T18:30:00Z";
            fault("yield_until", format!("yield_until {shown:?}: {why}; {example}"))
        }
    }
}

/// The size that the terminal is to have, where one is given: the table has been checked.
fn size_of(params: &Params) -> Option<Size> {
    let given = Fields::of(params.resize.as_deref());
    let side = |name| serde_json::from_str::<Int>(given.get(name)?.get()).ok();
    let (cols, rows) = side("cols").zip(side("rows"))?;
    Some(Size { cols: cols.clamped_u16(PTY_COLS_RANGE), rows: rows.clamped_u16(PTY_ROWS_RANGE) })
}

/// What `until` and `stop` ask for.
fn conditions_of(params: &Params) -> Result<Conditions, RpcError> {
    until::read(params.until.as_deref(), params.stop.as_deref(), Snake)
}

/// The relative wait in milliseconds, clamped: `long` that of a poll, or of a call that says what
/// it waits for.
fn yield_time_ms(params: &Params, long: bool, own_cap_ms: u64) -> u64 {
    if !long {
        return params.yield_time_ms.map_or(DEFAULT_WRITE_STDIN_YIELD_MS, |given| {
            given.clamped(MIN_YIELD_TIME_MS, MAX_YIELD_TIME_MS)
        });
    }
    let cap_ms = super::poll_cap_ms(params.max_empty_poll_ms, own_cap_ms);
    let given = params.yield_time_ms.unwrap_or(Int(0));
    given.clamped(MIN_EMPTY_YIELD_TIME_MS, cap_ms)
}

/// Reads the params without acting on them.
fn check(raw: &str) -> Result<(), RpcError> {
    if job_input::is_meant(raw, Params::TABLE) {
        return job_input::check(raw);
    }
    let params: Params = wire::read_params(raw)?;
    let empty = input_bytes(&params)?.is_empty() && !params.eof && params.resize.is_none();
    conditions_of(&params)?;
    stamp(&params, empty).map(drop)
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    if job_input::is_meant(call.params, Params::TABLE) {
        return job_input::call(engine, call);
    }
    carry_out(engine, call).map_err(|error| {
        // Whoever gives a stamp is told the time with every answer.
        let names = ["\"yield_until\"", "\"yieldUntil\""];
        let dated = names.iter().any(|name| call.params.contains(name));
        if dated { error.with("tool_time_utc", tool_time_utc().into()) } else { error }
    })
}

/// The answer of a session that has ended, where it is remembered.
fn answer_of_ended(
    engine: &mut Engine,
    call: &Call<'_>,
    params: &Params,
    writes: bool,
) -> Option<Answer> {
    let id = session_id(params.session_id);
    let mut report = ended::find(engine, call, id)?.exec_report(writes, engine);
    report.events = engine.cx.answer_tells(call, &[id], params.events);
    let compact = super::is_compact(params.header.as_deref());
    report.write_header(super::header_style(compact, &engine.cx));
    Some(Answer::of(&report))
}

fn carry_out(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params)?;
    let mut bytes = input_bytes(&params)?;
    let writes = !bytes.is_empty() || params.eof;
    let size = size_of(&params);
    let empty = !writes && size.is_none();
    let until = stamp(&params, empty)?;
    let conditions = conditions_of(&params)?;
    let asks = conditions.0.is_some() || conditions.1.is_some();
    let own_cap_ms = engine.cx.config.max_empty_poll_ms;
    let relative_ms = until.is_none().then(|| yield_time_ms(&params, empty || asks, own_cap_ms));
    let answers_impossible =
        conditions::answers_impossible(params.on_impossible.as_deref(), &engine.cx.config);
    let now_ns = engine.cx.now_ns;
    let id = session_id(params.session_id);
    if let Some(answer) = answer_of_ended(engine, call, &params, writes) {
        return Ok(answer);
    }
    ended::reach(engine, id)?;
    if params.secret && engine.keep_secret(call, METHOD.name, id)? {
        return Ok(Answer::Waits);
    }
    let (mut failure, mut secret_note) = (None, None);
    if let Some(size) = size {
        let core = &ended::reach(engine, id)?.core;
        if core.output.fd().is_some() || !core.facts.tty {
            resize_session::resize(engine, call, id, size)?;
        } else {
            failure = Some("the session has exited: its terminal is gone".to_owned());
        }
    }
    let core = &mut ended::reach(engine, id)?.core;
    conditions::check_room(core, &conditions)?;
    // What is there is looked at before the input is known, whose echo comes behind it.
    let mut asked = Asked::of_unread(conditions, core, now_ns);
    if writes {
        if core.life.finished() || core.input.is_broken() {
            failure = Some(undelivered(core));
            bytes.clear();
        } else {
            let echo = if asked.is_some() { core.echo() } else { Echo::Nothing };
            secret_note = input::secret_note(core, params.secret);
            accept(core, &mut bytes, params.eof)?;
            if let Some(asked) = &mut asked {
                asked.sent(&bytes, echo);
            }
        }
    }
    let saw_leader = core.status().is_none();
    let tty = core.facts.tty;
    if writes && failure.is_none() {
        engine.feed_now(id);
    }
    let kind = if empty { WaitKind::Poll } else { WaitKind::Input };
    let is_past = until.as_ref().is_some_and(|until| until.wall_ms <= engine.cx.wall_ms);
    let note = note_of(params.yield_time_ms, relative_ms, is_past);
    Ok(engine.wait_for(call, id, |ticket, now_ns| Wait {
        due_ns: relative_ms.map(|ms| now_ns + ms * NS_PER_MS),
        until,
        yield_time_ms: relative_ms,
        raw_output: params.raw_output,
        tells_events: params.events,
        compact: super::is_compact(params.header.as_deref()),
        progress: params.stream.then(Progress::default),
        saw_leader,
        failure,
        note: super::joined([note, secret_note, None]),
        drains: false,
        asked,
        answers_impossible,
        until_password: params.until_password && tty,
        tells_state: true,
        ..Wait::new(ticket, Unified::ID, kind, now_ns)
    }))
}

/// The note of a poll until a moment that had come before the call.
const YIELD_UNTIL_PAST: &str = "yield_until is in the past: this poll did not wait";

/// What is said of a wait that is another one than was asked for: a relative one that was clamped
/// to `relative_ms`, or one until a moment that has come already.
fn note_of(given: Option<Int>, relative_ms: Option<u64>, is_past: bool) -> Option<String> {
    let clamped = relative_ms.and_then(|ms| clamp_note("yield_time_ms", given, ms));
    clamped.or_else(|| is_past.then(|| YIELD_UNTIL_PAST.to_owned()))
}

/// What is said of input that could not be delivered.
fn undelivered(core: &Session) -> String {
    if core.life.finished() {
        "the session has exited: the bytes were not delivered".to_owned()
    } else {
        super::STDIN_LOST.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(json: &str) -> Params {
        wire::read_params(json).expect("valid params")
    }

    #[test]
    fn waits_are_clamped_by_what_the_call_is() {
        let cap = 1_800_000;
        let cases = [
            (r#"{"session_id":1}"#, true, 5_000),
            (r#"{"session_id":1,"yield_time_ms":1}"#, true, 5_000),
            (r#"{"session_id":1,"yield_time_ms":-7}"#, true, 5_000),
            (r#"{"session_id":1,"yield_time_ms":99999999}"#, true, 1_800_000),
            (r#"{"session_id":1,"yield_time_ms":20000,"max_empty_poll_ms":9000}"#, true, 9_000),
            (r#"{"session_id":1,"yield_time_ms":20000,"max_empty_poll_ms":1}"#, true, 5_000),
            (r#"{"session_id":1,"yield_time_ms":20000,"max_empty_poll_ms":0}"#, true, 20_000),
            (r#"{"session_id":1,"yield_time_ms":20000,"max_empty_poll_ms":-1}"#, true, 20_000),
            (r#"{"session_id":1}"#, false, 250),
            (r#"{"session_id":1,"yield_time_ms":249}"#, false, 250),
            (r#"{"session_id":1,"yield_time_ms":30001}"#, false, 30_000),
        ];
        for (json, empty, expected) in cases {
            assert_eq!(yield_time_ms(&params(json), empty, cap), expected, "{json}");
        }
    }

    #[test]
    fn base64_is_exact_with_or_without_whitespace_and_padding() {
        let decoded = |text: &str| {
            let json = format!(r#"{{"session_id":1,"chars_b64":"{text}"}}"#);
            input_bytes(&params(&json)).map_err(|error| error.message)
        };
        assert_eq!(decoded("G3s6wgo="), Ok(vec![0x1b, 0x7b, 0x3a, 0xc2, 0x0a]));
        assert_eq!(decoded("G3s6\\n wgo"), Ok(vec![0x1b, 0x7b, 0x3a, 0xc2, 0x0a]));
        assert_eq!(decoded(""), Ok(vec![]));
        for bad in ["====", "a", "G3s6wgo*", "é"] {
            let message = decoded(bad).expect_err(bad);
            assert!(message.contains("not valid base64"), "{message}");
        }
    }

    #[test]
    fn both_spellings_at_once_are_refused_unless_one_is_empty() {
        let both = params(r#"{"session_id":1,"chars":"a","chars_b64":"YQ=="}"#);
        let error = input_bytes(&both).expect_err("both");
        assert_eq!(error.data["param"], "chars_b64");
        let one = params(r#"{"session_id":1,"chars":"","chars_b64":"YQ=="}"#);
        assert_eq!(input_bytes(&one), Ok(b"a".to_vec()));
    }
}
