//! `execd run`: one command to its end, for people and scripts. The loop runs in this process, with
//! the command in front instead of a client.

use super::agent::log_file::LogFile;
use super::flags::{RunOptions, What};
use super::say::complain;
use super::serve::start;
use crate::config::SocketPlace;
use crate::limits::{PTY_COLS, PTY_ROWS};
use crate::pure::process::life::EXIT_SIGNAL;
use crate::pure::text::shell_word::{as_word, quoted};
use crate::pure::text::visible::one_line;
use crate::server::engine::launch::{LaunchSpec, Stdin};
use crate::server::engine::run_front::{FrontSpec, TimedOut, Times};
use crate::server::families::Engine;
use crate::server::session::report::ExecReport;
use crate::sys::pty::{self, Size};
use crate::sys::terminal::{Changed, Keys};
use crate::sys::{host, signals, stdio};
use crate::wire;

use std::ffi::OsStr;
use std::io::{ErrorKind, Write};

/// The exit status of a failure of execd's own, as env(1) and timeout(1) have it.
pub const EXIT_OWN_FAILURE: i32 = 125;
/// The exit status where the program was not found.
const EXIT_NOT_FOUND: i32 = 127;
/// The size of a command's terminal where none of ours tells one.
const UNKNOWN_SIZE: Size = Size { cols: PTY_COLS, rows: PTY_ROWS };
/// SIGPIPE's number, signal(7).
const SIGPIPE: i32 = 13;
/// What means something to a shell, and stands in few names of programs.
const SHELL_SIGNS: &str = " \t\n|&;<>()$`\"'*?[]{}~!";

/// How a run has ended.
struct Ended {
    status: i32,
    timed_out: Option<TimedOut>,
    /// The signal that has ended the command and execd alike.
    died_of: Option<i32>,
    report: ExecReport,
}

/// Runs the command; gives the exit status: the command's, 124 after a timeout, 128 + n after
/// signal n, 125 to 127 where there is none.
pub fn main(mut options: RunOptions) -> i32 {
    for (fd, name, other) in [(1, "stdout", 2), (2, "stderr", 1)] {
        if stdio::was_closed(fd) {
            refuse_closed(name, other);
            return EXIT_OWN_FAILURE;
        }
    }
    options.config.logs.by_path = true;
    if options.config.socket == SocketPlace::Default && host::file_limit().is_low() {
        options.config.socket = SocketPlace::Off;
    }
    let mut file = None;
    if let Some(wanted) = options.log.take() {
        match LogFile::beside(&wanted) {
            Ok(made) => file = Some(made),
            Err(reason) => {
                return tell(&options, Ended::failed(&options, reason, EXIT_OWN_FAILURE));
            }
        }
    }
    if let Some(file) = &file {
        options.config.logs.dir = Some(file.dir().to_path_buf());
    }
    let mut ended = carry_out(&options)
        .unwrap_or_else(|(failure, status)| Ended::failed(&options, failure, status));
    if let Some(file) = file {
        // A log has its number from the session.
        let session = options.config.first_session_id;
        let expected = ended.report.log_path.is_some();
        let path = file.path().to_string_lossy().into_owned();
        match file.finish(expected, Some(session)) {
            Some(trouble) => ended.report.warning = Some(trouble),
            None if expected => ended.report.move_log(path),
            None => {}
        }
    }
    let died_of = ended.died_of;
    let status = tell(&options, ended);
    if let Some(signal) = died_of.filter(|signal| status == EXIT_SIGNAL + signal) {
        // As without execd: a loop of a shell ends with Ctrl-C, which has ended what it runs.
        signals::die_of(signal);
    }
    status
}

/// Tells of words that mean nothing, as `--json` tells of a run that has failed.
pub fn tell_usage(reason: &str) {
    let report = ExecReport { failure_message: Some(reason.to_owned()), ..ExecReport::default() };
    tell_json(EXIT_OWN_FAILURE, None, &report);
}

/// Says on the other of both that one is closed.
fn refuse_closed(name: &str, other: i32) {
    if stdio::was_closed(other) {
        return;
    }
    let line = format!("execd run: {name} is closed: give it a place, >/dev/null say\n");
    // Nobody is left to be told where this fails.
    let _ = match other {
        1 => std::io::stdout().write_all(line.as_bytes()),
        _ => std::io::stderr().write_all(line.as_bytes()),
    };
}

/// The command as lists show it.
fn shown(what: &What) -> String {
    match what {
        What::Program(words) => words.join(OsStr::new(" ")).to_string_lossy().into_owned(),
        What::Code { code, .. } => code.clone(),
    }
}

impl Ended {
    /// A run that has not come to its command's end.
    fn failed(options: &RunOptions, failure: String, status: i32) -> Self {
        let command = shown(&options.what);
        let report =
            ExecReport { command, failure_message: Some(failure), ..ExecReport::default() };
        Self { status, timed_out: None, died_of: None, report }
    }
}

/// What is to be started.
fn launch_of(options: &RunOptions) -> LaunchSpec {
    let words = match &options.what {
        What::Program(words) => words.clone(),
        What::Code { code, shell, words } => {
            let mut all = vec![shell.into(), "-c".into(), code.into()];
            all.extend_from_slice(words);
            all
        }
    };
    let mut words = words.into_iter();
    let tty = options.tty.then(|| pty::own_size().unwrap_or(UNKNOWN_SIZE));
    // What the command draws is for our terminal, whose kind only our variable tells.
    let term = host::variable("TERM").filter(|_| options.tty);
    let term = term.and_then(|term| Some(("TERM".to_owned(), Some(term.into_string().ok()?))));
    // Where stdout and stderr are the same, one pipe keeps the order in which both were written.
    let one = options.merge || options.json || options.tty || stdio::are_same(1, 2);
    LaunchSpec {
        program: words.next().and_then(|word| word.into_string().ok()).unwrap_or_default(),
        arguments: words.collect(),
        own_program: None,
        command: shown(&options.what),
        name: options.name.clone(),
        workdir: None,
        env: term.into_iter().collect(),
        stdin: Stdin::Inherited,
        tty,
        split: !one,
        whole: false,
    }
}

/// Runs the command to its end. Gives why that could not be done, and the exit status then.
fn carry_out(options: &RunOptions) -> Result<Ended, (String, i32)> {
    let own = |failure| (failure, EXIT_OWN_FAILURE);
    let mut engine: Engine = start(options.config.clone(), options.quiet).map_err(own)?;
    let times = Times {
        timeout_ms: options.timeout_ms,
        idle_ms: options.idle_timeout_ms,
        signal: options.signal,
        kill_after_ms: options.kill_after_ms,
    };
    let launch = launch_of(options);
    let keeps_background = options.keep_background;
    engine.run_in_front(&launch, FrontSpec { collect: options.json, keeps_background, times })?;
    // Keys go to the command's terminal as they are typed, which has got the modes of ours: there
    // they are edited and echoed, and Ctrl-C means something.
    let _raw = match (stdio::is_terminal(0), stdio::is_terminal(1)) {
        (true, _) if options.tty => Some(Changed::new(0, Keys::Raw)),
        // Its lines end with CR LF already.
        (false, true) if options.tty => Some(Changed::new(1, Keys::Output)),
        _ => None,
    };
    let status = engine.run();
    let timed_out = engine.front_timed_out();
    let report = engine
        .take_front_report()
        .unwrap_or_else(|| ExecReport { command: launch.command, ..ExecReport::default() });
    Ok(Ended { status, timed_out, died_of: engine.front_died_of(), report })
}

/// Tells how it has ended; gives the exit status.
fn tell(options: &RunOptions, ended: Ended) -> i32 {
    let Ended { status, timed_out, mut report, .. } = ended;
    let hint = (status == EXIT_NOT_FOUND).then(|| hint(&options.what)).flatten();
    if let (Some(hint), Some(failure)) = (hint, &mut report.failure_message) {
        failure.push_str(&hint);
    }
    if options.json {
        return tell_json(status, timed_out, &report);
    }
    let no_start = report.exit_code.is_none() && report.signal.is_none() && timed_out.is_none();
    if !options.quiet {
        explain(options, timed_out, &report);
    } else if let Some(failure) = report.failure_message.filter(|_| no_start) {
        complain(&format!("execd: {}", one_line(&failure)));
    }
    status
}

/// What a single word that is no program was meant to be.
fn hint(what: &What) -> Option<String> {
    let What::Program(words) = what else { return None };
    let [word] = words.as_slice() else { return None };
    let word = word.to_string_lossy();
    let of_shell = word.contains(|c: char| SHELL_SIGNS.contains(c));
    of_shell.then(|| format!("; did you mean -c? execd run -c {}", quoted(&word)))
}

/// Prints the one JSON object; gives the exit status.
fn tell_json(status: i32, timed_out: Option<TimedOut>, report: &ExecReport) -> i32 {
    let timed_out = if timed_out.is_some() { "\"timed_out\":true," } else { "" };
    let mut line = format!("{{\"exit_status\":{status},{timed_out}").into_bytes();
    // The report is an object that always has fields.
    line.extend_from_slice(wire::to_json(report).get(1..).unwrap_or_default());
    line.push(b'\n');
    let mut out = std::io::stdout();
    match out.write_all(&line).and_then(|()| out.flush()) {
        Ok(()) => status,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => EXIT_SIGNAL + SIGPIPE,
        Err(error) => {
            complain(&format!("execd: stdout cannot be written: {error}"));
            EXIT_OWN_FAILURE
        }
    }
}

/// A time as people write it.
fn time(ms: u64) -> String {
    if ms.is_multiple_of(1_000) { format!("{} s", ms / 1_000) } else { format!("{ms} ms") }
}

/// What a person should know besides the output and the exit status.
fn explain(options: &RunOptions, timed_out: Option<TimedOut>, report: &ExecReport) {
    let over = match timed_out {
        Some(TimedOut::Timeout) => options.timeout_ms.map(|ms| (time(ms), "--timeout")),
        Some(TimedOut::Idle) => {
            let silence = options.idle_timeout_ms.map(time);
            silence.map(|silence| (format!("{silence} without output"), "--idle-timeout"))
        }
        None => None,
    };
    if let Some((after, flag)) = over {
        complain(&format!("execd: ended after {after} ({flag})"));
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
