//! `execd run`: one command to its end, for people and scripts. The loop runs in this process, with
//! the command in front instead of a client.

use super::flags::RunOptions;
use super::say::{EXIT_FAILED, complain, say};
use super::serve::start;
use crate::engine::launch::{LaunchSpec, Stdin};
use crate::limits::{PTY_COLS, PTY_ROWS};
use crate::pure::text::shell_word::as_word;
use crate::pure::text::visible::one_line;
use crate::session::report::ExecReport;
use crate::sys::pty::{self, Size};
use crate::sys::stdio;
use crate::sys::terminal::{Changed, Keys};
use crate::wire;

/// Runs the command; gives the exit status: the command's, 124 after --timeout, 128 + n after
/// signal n.
pub fn main(options: RunOptions) -> Result<i32, String> {
    let RunOptions { command, timeout_s, tty, json, mut config } = options;
    config.logs.by_path = true;
    let shown = command.join(" ");
    // One word is a command line, as ssh(1) and watch(1) take it; several are a program and its
    // arguments.
    let words = if command.len() == 1 {
        vec!["bash".to_owned(), "-c".to_owned(), shown.clone()]
    } else {
        command
    };
    let mut words = words.into_iter();
    let spec = LaunchSpec {
        program: words.next().unwrap_or_default(),
        arguments: words.collect(),
        first: vec![],
        command: shown,
        name: None,
        workdir: None,
        env: vec![],
        stdin: Stdin::Inherited,
        tty: tty.then(|| pty::size_of(1).unwrap_or(Size { cols: PTY_COLS, rows: PTY_ROWS })),
        split: false,
        whole: false,
    };
    let mut engine = start(config)?;
    // The command's terminal echoes what is typed; ours would echo the same a second time.
    let _unseen = (tty && stdio::is_terminal(0)).then(|| Changed::new(0, Keys::Unseen));
    if let Err((failure, status)) = engine.run_in_front(&spec, timeout_s, json) {
        complain(&format!("execd: {failure}"));
        return Ok(status);
    }
    let status = engine.run();
    let report = engine.take_front_report();
    if json {
        let text = wire::to_json(&report.unwrap_or_default());
        let text = String::from_utf8_lossy(&text).into_owned();
        return Ok(if say(&format!("{text}\n")) == 0 { status } else { EXIT_FAILED });
    }
    if let Some(report) = report {
        explain(&report, timeout_s);
    }
    Ok(status)
}

/// What a person should know besides the output and the exit status.
fn explain(report: &ExecReport, timeout_s: Option<u64>) {
    if report.session_id.is_some()
        && let Some(seconds) = timeout_s
    {
        complain(&format!("execd: ended after {seconds} s (--timeout)"));
    }
    for text in [&report.failure_message, &report.note, &report.warning].into_iter().flatten() {
        complain(&format!("execd: {}", one_line(text)));
    }
    if let Some(path) = &report.log_path {
        let lacks = report.log_complete == Some(false) || report.log_truncated == Some(true);
        let total = report.output_bytes_total;
        // This execd is gone when somebody reads this: the log is known by its place.
        let kept = report.log_from.map(|from| {
            let log = as_word(path);
            format!(" (bytes {from}–{total} of {total} kept: execd log {log} --from {from})")
        });
        let (lacks, kept) = (if lacks { ", incomplete" } else { "" }, kept.unwrap_or_default());
        complain(&format!("execd: log{lacks}: {path}{kept}"));
    }
}
