//! The settings of the stream family: a call's own value beats the flag, the flag the
//! environment, the environment the default, and all are clamped alike. And the caps that they
//! set, at their edges.

use crate::common::data::assert_same;
use crate::common::*;
use crate::stream_help::*;
use serde_json::{Value, json};

const YIELD_FLAG: &str = "--bash-yield-ms";
const YIELD_VARIABLE: &str = "PI_BASH_YIELD_MS";
const CHARS_FLAG: &str = "--bash-max-output-chars";
const CHARS_VARIABLE: &str = "PI_BASH_MAX_OUTPUT_CHARS";

// ---- The window -------------------------------------------------------------------------

/// Shows that a call of an execd with these settings answers after so long, and not before.
fn yields_after(ms: u64, args: &[&str], envs: &[(&str, &str)], call: Value) {
    let Some(clock) = Clock::new() else { return };
    let mut execd = clock.start(args, envs);
    let params = merged(json!({"command": "sleep 600"}), call.clone());
    let request = execd.start_request("bash_stream", params);
    execd.ping();
    // The real clock goes on meanwhile: less of a margin would be a race.
    clock.set_ahead_ms(ms.saturating_sub(ms / 5));
    if ms > 10_000 {
        execd.no_reply_yet(request);
    }
    clock.set_ahead_ms(ms);
    execd.ping();
    let result = execd.result_of(request);
    assert_eq!(result["status"], "running", "{args:?} {envs:?} {call}: {result}");
    let took = execd.result("poll_process", json!({"sessionId": 1}));
    assert!(number(&took, "durationMs") >= ms, "{took}");
}

/// rule: bash-stream.md, The stream family: Precedence: call, flag, environment, default; all are
///   clamped alike
#[test]
fn a_call_beats_the_flag_the_flag_the_environment_and_that_the_default() {
    let environment = &[(YIELD_VARIABLE, "20000")][..];
    let call = |ms: i64| json!({"yieldMs": ms});
    yields_after(60_000, &[], &[], json!({}));
    yields_after(20_000, &[], environment, json!({}));
    yields_after(40_000, &[YIELD_FLAG, "40000"], environment, json!({}));
    yields_after(80_000, &[YIELD_FLAG, "40000"], environment, call(80_000));
    // Clamped, wherever it comes from.
    yields_after(120_000, &[YIELD_FLAG, "120001"], &[], json!({}));
    yields_after(120_000, &[], &[(YIELD_VARIABLE, "999999999")], json!({}));
    yields_after(120_000, &[], &[], call(120_001));
    yields_after(1_000, &[YIELD_FLAG, "1"], &[], json!({}));
    yields_after(1_000, &[], &[], call(-1));
}

// ---- Characters -------------------------------------------------------------------------

/// rule: bash-stream.md, The stream family: Caps at limit - 1, limit, limit + 1; 30,000 by default,
///   150,000 at most
/// rule: bash-stream.md, The stream family: Precedence: call, flag, environment, default; all are
///   clamped alike
#[test]
fn each_text_of_all_replies_about_a_process_is_cut_to_the_cap_that_wins() {
    let (environment, flag) = (&[(CHARS_VARIABLE, "20")][..], &[CHARS_FLAG, "40"][..]);
    let call = |chars: i64| json!({"maxOutputChars": chars});
    for (cap, args, envs, call) in [
        (30_000, &[][..], &[][..], json!({})),
        (20, &[], environment, json!({})),
        (40, flag, environment, json!({})),
        (60, flag, environment, call(60)),
        (150_000, &[CHARS_FLAG, "150001"], &[], json!({})),
        (150_000, &[], &[], call(1_000_000)),
        (1, &[CHARS_FLAG, "0"], &[], json!({})),
        (1, &[], &[], call(-7)),
    ] {
        let mut execd = Execd::with(args, envs);
        let more = merged(call.clone(), json!({"stream": false}));
        for chars in [cap.max(2) - 1, cap, cap + 1] {
            // Characters of two bytes, and other ones at the end.
            let all = format!("{}ä", "ö".repeat(chars - 1));
            std::fs::write(execd.file("text"), &all).expect("a file");
            let opened = open_with(&mut execd, "cat text; cat text >&2; read x", more.clone());
            let log = format!("; full output: {}", text(&opened, "logPath"));
            let cut = |text: &str| {
                let omitted = text.chars().count().saturating_sub(cap);
                let first = format!("[... {omitted} characters omitted{log}]\n");
                let last: String = text.chars().skip(omitted).collect();
                if omitted == 0 { last } else { first + &last }
            };
            let id = id_of(&opened);
            eventually("all is read", || {
                number(&row(&mut execd, id).expect("a row"), "outputBytes") == 4 * chars as u64
            });
            let polled = poll(&mut execd, id);
            execd.result("write_stdin", json!({"sessionId": id, "data": "\n"}));
            let over = until_over(&mut execd, id);
            let merged = String::from_utf8(logged(&over)).expect("text");
            for (reply, field, whole) in [
                (&polled, "stdout", &all),
                (&polled, "stderr", &all),
                (&over, "stdout", &all),
                (&over, "stderr", &all),
                (&over, "aggregated", &merged),
            ] {
                let what = format!("{field} of {chars} {args:?} {envs:?} {call}");
                assert_same(&what, text(reply, field).as_bytes(), cut(whole).as_bytes());
            }
            for (reply, is_cut) in [(&polled, chars > cap), (&over, 2 * chars > cap)] {
                assert_eq!(reply.get("truncated"), is_cut.then_some(&json!(true)), "{chars}");
            }
        }
    }
    // Without a log the first line names none.
    let mut execd = Execd::with(&["--no-log"], &[]);
    let result = run_with(&mut execd, "printf abcdef", json!({"maxOutputChars": 2}));
    assert_eq!(result["stdout"], "[... 4 characters omitted]\nef");
}
