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

#[test]
fn the_window_is_a_minute() {
    yields_after(60_000, &[], &[], json!({}));
}

/// rule: bash-stream.md, The stream family: Precedence: call, flag, environment, default; all are
///   clamped alike
#[test]
fn a_call_beats_the_flag_the_flag_the_environment_and_that_the_default() {
    let environment = (YIELD_VARIABLE, "20000");
    yields_after(20_000, &[], &[environment], json!({}));
    yields_after(40_000, &[YIELD_FLAG, "40000"], &[environment], json!({}));
    let call = json!({"yieldMs": 80_000});
    yields_after(80_000, &[YIELD_FLAG, "40000"], &[environment], call.clone());
    yields_after(80_000, &[], &[environment], call.clone());
    yields_after(80_000, &[], &[], call);
}

/// rule: bash-stream.md, The stream family: Precedence: call, flag, environment, default; all are
///   clamped alike
#[test]
fn the_window_is_clamped_wherever_it_comes_from() {
    yields_after(120_000, &[YIELD_FLAG, "120001"], &[], json!({}));
    yields_after(120_000, &[], &[(YIELD_VARIABLE, "999999999")], json!({}));
    yields_after(120_000, &[], &[], json!({"yieldMs": 120_001}));
    yields_after(1_000, &[YIELD_FLAG, "1"], &[], json!({}));
    yields_after(1_000, &[], &[], json!({"yieldMs": -1}));
}

#[test]
fn a_flag_that_is_no_number_ends_execd_with_a_reason() {
    for flag in [YIELD_FLAG, CHARS_FLAG, "--bash-job-ttl-ms", "--stdin-cap-bytes"] {
        for value in ["abc", "-1", "1.5", ""] {
            let done = crate::common::execd_command()
                .args([&format!("{flag}={value}")])
                .stdin(std::process::Stdio::null())
                .output()
                .expect("execd starts");
            assert_eq!(done.status.code(), Some(125), "{flag} {value:?}");
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert_eq!(said.lines().count(), 1, "{said}");
            assert!(said.contains(flag), "{said}");
        }
    }
}

// ---- Characters -------------------------------------------------------------------------

/// The command that prints so many characters, of two bytes each, and the last ones of them.
fn characters(execd: &Execd, count: usize) -> (String, String) {
    // Numbered, so that it shows which ones are kept.
    let letters: Vec<char> = "äöüßéèêëàâ".chars().collect();
    let text: String = (0..count).map(|at| letters[(at * at / 7 + at) % letters.len()]).collect();
    std::fs::write(execd.file("text"), &text).expect("a file");
    ("cat text; cat text >&2".to_owned(), text)
}

/// `text` as a reply has it whose texts are cut to `cap` characters.
fn cut(text: &str, cap: usize, log: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let omitted = chars.len().saturating_sub(cap);
    let first = format!("[... {omitted} characters omitted; full output: {log}]\n");
    let first = if omitted == 0 { "" } else { &first };
    format!("{first}{}", chars[omitted..].iter().collect::<String>())
}

/// Shows that the texts of a finished and of a running process are cut to so many characters.
fn caps_at(cap: usize, args: &[&str], envs: &[(&str, &str)], call: Value) {
    let mut execd = Execd::with(args, envs);
    for count in [cap - 1, cap, cap + 1] {
        let (command, all) = characters(&execd, count);
        let more = merged(json!({"stream": false}), call.clone());
        let result = run_with(&mut execd, &command, more.clone());
        let log = text(&result, "logPath").to_owned();
        for field in ["stdout", "stderr"] {
            let wanted = cut(&all, cap, &log);
            let what = format!("{field} of {count} {args:?} {envs:?} {call}");
            assert_same(&what, text(&result, field).as_bytes(), wanted.as_bytes());
        }
        let aggregated = text(&result, "aggregated");
        let whole = String::from_utf8(logged(&result)).expect("the merger is text");
        assert_same("aggregated", aggregated.as_bytes(), cut(&whole, cap, &log).as_bytes());
        let is_cut = whole.chars().count() > cap;
        assert_eq!(result.get("truncated"), is_cut.then_some(&json!(true)), "{count}");
        // The same of what no call has told.
        let opened = open_with(&mut execd, &format!("{command}; echo >end; read x"), more);
        until_exists(&execd.file("end"));
        eventually("all is read", || {
            number(&row(&mut execd, id_of(&opened)).expect("a row"), "outputBytes")
                == 2 * all.len() as u64
        });
        let polled = poll(&mut execd, id_of(&opened));
        let log = text(&polled, "logPath").to_owned();
        for field in ["stdout", "stderr"] {
            let wanted = cut(&all, cap, &log);
            assert_same("a poll", text(&polled, field).as_bytes(), wanted.as_bytes());
        }
        let is_cut = count > cap;
        assert_eq!(polled.get("truncated"), is_cut.then_some(&json!(true)), "{count}");
        std::fs::remove_file(execd.file("end")).expect("a file");
        kill(&mut execd, id_of(&opened));
    }
}

/// rule: bash-stream.md, The stream family: Caps at limit - 1, limit, limit + 1; 30,000 by default,
///   150,000 at most
#[test]
fn texts_are_cut_to_thirty_thousand_characters() {
    caps_at(30_000, &[], &[], json!({}));
}

/// rule: bash-stream.md, The stream family: Precedence: call, flag, environment, default; all are
///   clamped alike
#[test]
fn the_cap_of_a_call_beats_the_flag_and_so_on() {
    let environment = (CHARS_VARIABLE, "20");
    caps_at(20, &[], &[environment], json!({}));
    caps_at(40, &[CHARS_FLAG, "40"], &[environment], json!({}));
    caps_at(60, &[CHARS_FLAG, "40"], &[environment], json!({"maxOutputChars": 60}));
    caps_at(60, &[], &[environment], json!({"maxOutputChars": 60}));
}

/// rule: bash-stream.md, The stream family: Precedence: call, flag, environment, default; all are
///   clamped alike
#[test]
fn the_cap_is_clamped_wherever_it_comes_from() {
    caps_at(150_000, &[CHARS_FLAG, "150001"], &[], json!({}));
    caps_at(150_000, &[], &[], json!({"maxOutputChars": 1_000_000}));
}

#[test]
fn the_smallest_cap_is_one_character() {
    for (args, call) in [
        (vec![CHARS_FLAG, "1"], json!({})),
        (vec![CHARS_FLAG, "0"], json!({})),
        (vec![], json!({"maxOutputChars": -7})),
    ] {
        let mut execd = Execd::with(&args, &[]);
        let result = run_with(&mut execd, "printf 'äöü'", call);
        let wanted = cut("äöü", 1, text(&result, "logPath"));
        assert_eq!(result["stdout"], wanted);
    }
}

#[test]
fn without_a_log_the_first_line_names_none() {
    let mut execd = Execd::with(&["--no-log"], &[]);
    let result = run_with(&mut execd, "printf abcdef", json!({"maxOutputChars": 2}));
    assert_eq!(result["stdout"], "[... 4 characters omitted]\nef");
    assert_absent(&result, &["logPath"]);
}

/// rule: bash-stream.md, The stream family: Caps at limit - 1, limit, limit + 1; 30,000 by default,
///   150,000 at most
#[test]
fn a_call_s_cap_holds_for_all_replies_about_its_process() {
    let mut execd = Execd::start();
    let more = json!({"maxOutputChars": 3});
    let opened = open_with(&mut execd, "printf abcdef; read x; printf ghijkl", more);
    until_printed(&opened, "f");
    let log = text(&opened, "logPath").to_owned();
    let told = |omitted: u64, last: &str| {
        format!("[... {omitted} characters omitted; full output: {log}]\n{last}")
    };
    assert_eq!(poll(&mut execd, 1)["stdout"], told(3, "def"));
    execd.result("write_stdin", json!({"sessionId": 1, "data": "\n"}));
    let over = until_over(&mut execd, 1);
    assert_eq!(over["stdout"], told(9, "jkl"));
    assert_eq!(over["aggregated"], told(9, "jkl"));
    assert_eq!(kill(&mut execd, 1), over);
}
