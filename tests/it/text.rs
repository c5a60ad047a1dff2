//! What a model reads and what the log keeps: clean text from progress bars, colours and
//! redraws, and raw output.

use crate::common::*;
use serde_json::{Value, json};

/// What a command that prints these bytes gives.
fn printed(execd: &mut Execd, bytes: &[u8], more: Value) -> Value {
    std::fs::write(execd.file("bytes"), bytes).expect("a file");
    let result = execd.run_with("cat bytes", more);
    assert_eq!(result["exit_code"], 0, "{result}");
    assert_eq!(log_of(&result), bytes, "the log has the raw bytes");
    result
}

/// rule: unified-exec.md, Truncation, retention, text: A progress bar that rewrote its line 1,000
///   times is one line
/// rule: unified-exec.md, Truncation, retention, text: `raw_output: true` gives the text
///   unprocessed
/// rule: unified-exec.md, Truncation, retention, text: The log holds the raw bytes
/// rule: unified-exec.md, Truncation, retention, text: Clean text is made from what is kept, never
///   from everything that passed
/// rule: bash.md, bash and tmux: No ANSI garbage; the log has every byte
#[test]
fn text_is_clean_and_cut_after_it_was_cleaned_and_the_log_and_raw_output_are_raw() {
    let mut execd = Execd::start();
    let cmd = "for i in 1 2 3 4 5; do printf '\\r%d%%' $((i * 20)); done; echo; echo done";
    let result = execd.run_with(cmd, json!({"tty": true}));
    assert_eq!(result["output"], "100%\ndone\n");
    assert_eq!(log_of(&result), b"\r20%\r40%\r60%\r80%\r100%\r\ndone\r\n");
    let raw = b"\x1b[31mred\x1b[0m\r\n10%\r20%\x08\x07\xe2\x82a\xff";
    let result = printed(&mut execd, raw, json!({"raw_output": true}));
    assert_eq!(output(&result), String::from_utf8_lossy(raw));
    // It concerns one call.
    let cmd = "printf '\\033[31mone\\033[0m\\n'; read x; printf '\\033[31mtwo\\033[0m\\n'; exit 0";
    let first = execd.open_ready(cmd, "one", json!({"raw_output": true}));
    let params = json!({"session_id": first, "chars": "\\n", "yield_time_ms": 30_000});
    assert_eq!(execd.write(params)["output"], "two\n");
    // 300 KB of raw bytes, a few KB of text.
    let raw: String =
        (0..3_000).map(|i| format!("\x1b[31m{}\x1b[0m\r{i:04}\x1b[K", "x".repeat(90))).collect();
    let result = printed(&mut execd, format!("{raw}\n").as_bytes(), json!({}));
    assert_eq!(output(&result), "2999\n");
    assert_absent(&result, &["truncation", "footer"]);
}
