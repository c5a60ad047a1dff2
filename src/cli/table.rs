//! The commands and their flags, once: `--help` and the completions are made from this table, and
//! a test holds the parser against it.

use std::fmt::Write as _;

use crate::families::agent::agent_execute::THINKING;

/// What a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// The flag has no value.
    Nothing,
    /// A value that is no path, a number say; this is what the help calls it.
    Value(&'static str),
    /// A path; this is what the help calls it.
    Path(&'static str),
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// A flag.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// The name behind the dashes. A name of one letter has one dash before it, others have two.
    pub name: &'static str,
    /// Its value.
    pub takes: Takes,
    /// What it does, for the help.
    pub doc: &'static str,
}

/// What a command's words after its flags are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// The command takes no words.
    None,
    /// A session's id.
    Session,
    /// A session's id, and a signal where one is wanted.
    SessionAndSignal,
    /// A method and its params.
    Method,
    /// A program and its arguments.
    Program,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Any text.
    Text,
}

/// A command.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// Its name; empty for execd without a command.
    pub name: &'static str,
    /// How it is called, after its name.
    pub usage: &'static str,
    /// What it does, for the help.
    pub doc: &'static str,
    /// Its flags.
    pub flags: &'static [Flag],
    /// Whether the settings of an execd are flags of it too.
    pub settings: bool,
    /// What the words behind its flags are.
    pub words: Words,
}

const fn flag(name: &'static str, takes: Takes, doc: &'static str) -> Flag {
    Flag { name, takes, doc }
}

const PID: Flag = flag("pid", Takes::Value("N"), "only the execd with this process id");
const LOG_DIR: Flag = flag("log-dir", Takes::Path("DIR"), "where logs are ($TMPDIR/pi-execd-UID)");
const SOCKET: Flag = flag("socket", Takes::Path("PATH"), "only the execd that listens here");

/// The shells that completions are made for.
pub const SHELLS: &[&str] = &["bash", "zsh", "fish"];
/// The signals that completions offer.
pub const SIGNALS: &[&str] = &["TERM", "INT", "HUP", "QUIT", "KILL", "USR1", "USR2"];

/// The flags that set an execd up.
pub const SETTINGS: &[Flag] = &[
    flag(
        "max-sessions",
        Takes::Value("N"),
        "sessions before the least recently used is evicted (64)",
    ),
    flag("max-line-bytes", Takes::Value("N"), "longest request line (8388608)"),
    flag("max-output-bytes", Takes::Value("N"), "text of one reply, in bytes (51200)"),
    flag("max-output-lines", Takes::Value("N"), "text of one reply, in lines (2000)"),
    flag("max-empty-poll-ms", Takes::Value("N"), "longest poll without input (1800000)"),
    flag("first-session-id", Takes::Value("N"), "id of the first session (1)"),
    flag("bash-yield-ms", Takes::Value("N"), "wait of bash_stream, 1000 to 120000 (60000)"),
    flag(
        "bash-max-output-chars",
        Takes::Value("N"),
        "characters of a bash_stream reply's texts, up to 150000 (30000)",
    ),
    flag(
        "bash-job-ttl-ms",
        Takes::Value("N"),
        "how long a finished process is remembered, 1 min to 3 h (1800000)",
    ),
    flag(
        "bash-jobs-kept",
        Takes::Value("N"),
        "finished processes that are remembered, 1 to 1024 (256)",
    ),
    flag(
        "stdin-cap-bytes",
        Takes::Value("N"),
        "input a process of bash_stream takes over its life, 0: any (262144)",
    ),
    flag(
        "on-eof",
        Takes::Choice(&["end", "wait"]),
        "at the end of stdin, once all is answered: end the sessions, or let them run to their \
         own end (end)",
    ),
    flag(
        "on-impossible",
        Takes::Choice(&["answer", "wait"]),
        "what happens to a wait that nothing but input can end any more: it is answered, or goes \
         on (answer)",
    ),
    flag("exit-after-silence", Takes::Value("S"), "end when no request came for S seconds (never)"),
    flag("kill-detached", Takes::Nothing, "ending a session also ends what left it by setsid"),
    flag("log-dir", Takes::Path("DIR"), "where logs go ($TMPDIR/pi-execd-UID)"),
    flag(
        "log-max-bytes",
        Takes::Value("N"),
        "bytes of a session's output that are logged at most (all)",
    ),
    flag(
        "log-keep-bytes",
        Takes::Value("N"),
        "bytes of each log that are kept, the newest ones; 0 keeps all (1073741824)",
    ),
    flag(
        "log-total-bytes",
        Takes::Value("N"),
        "bytes of disk for all logs, at most a tenth of the disk; 0 bounds nothing (8589934592)",
    ),
    flag(
        "log-keep-days",
        Takes::Value("D"),
        "delete logs older than this, once an hour; 0 keeps them (7)",
    ),
    flag("no-log", Takes::Nothing, "no log files"),
    flag(
        "socket",
        Takes::Path("PATH"),
        "where the control socket is ($XDG_RUNTIME_DIR/execd/PID.sock, or /tmp/execd-UID/PID.sock)",
    ),
    flag("no-socket", Takes::Nothing, "no control socket: nobody can list or attach"),
    flag(
        "no-keeper",
        Takes::Nothing,
        "no helper process: logs are written by the loop itself, and nothing ends the sessions \
         when execd is killed by SIGKILL",
    ),
    flag("no-vfork", Takes::Nothing, "start children by fork (for emulators)"),
];

/// All commands; the first is execd without one.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "",
        usage: "[FLAGS]",
        doc: "serve JSON-RPC requests, one a line, on stdin and stdout",
        flags: &[
            flag("describe", Takes::Nothing, "print the methods and their params as JSON Schema"),
            flag("for-models", Takes::Nothing, "with --describe: print the tools that models get"),
            flag("help", Takes::Nothing, "print this"),
            flag("version", Takes::Nothing, "print the version"),
        ],
        settings: true,
        words: Words::None,
    },
    Command {
        name: "run",
        usage: "[FLAGS] -- PROGRAM [ARG...] | -c CODE",
        doc: "run one command to its end: its output, its exit status",
        flags: &[
            flag("c", Takes::Value("CODE"), "run this code of a shell, not a program"),
            flag("shell", Takes::Value("SHELL"), "the shell of -c (bash)"),
            flag("timeout", Takes::Value("TIME"), "end it after so long: 0.5, 500ms, 5m, 1h30m"),
            flag("idle-timeout", Takes::Value("TIME"), "end it when it writes nothing for so long"),
            flag(
                "signal",
                Takes::Choice(SIGNALS),
                "what a timeout sends first, any name or number (TERM)",
            ),
            flag("kill-after", Takes::Value("TIME"), "from that signal to KILL (1s)"),
            flag("merge", Takes::Nothing, "stdout and stderr as one pipe, in exact order"),
            flag("tty", Takes::Nothing, "on a terminal (also -t)"),
            flag("quiet", Takes::Nothing, "say nothing of its own (also -q)"),
            flag("name", Takes::Value("NAME"), "what lists show it as"),
            flag("log", Takes::Path("FILE"), "put the log there"),
            flag("json", Takes::Nothing, "print one JSON object at its end, not its output"),
        ],
        settings: true,
        words: Words::Program,
    },
    Command {
        name: "agent",
        usage: "--model P/M [FLAGS] PROMPT|-",
        doc: "run pi on a task (- reads it from stdin): its text, its exit status",
        flags: &[
            flag("model", Takes::Value("P/M"), "provider/id"),
            flag("tools", Takes::Value("A,B"), "only these tools (pi's own defaults)"),
            flag("no-tools", Takes::Nothing, "no tools at all"),
            flag("workspace", Takes::Path("DIR"), "where pi works (here)"),
            flag("timeout", Takes::Value("TIME"), "end it after so long: 600s, 10m (600s)"),
            flag("idle-timeout", Takes::Value("TIME"), "end it after such a silence (180s)"),
            flag(
                "first-event-timeout",
                Takes::Value("TIME"),
                "end it when the model does not begin within this (30s)",
            ),
            flag("max-cost", Takes::Value("USD"), "end it when it has cost more (0: none allowed)"),
            flag("max-tokens", Takes::Value("N"), "end it when it has used more tokens"),
            flag("thinking", Takes::Choice(THINKING), "how much the model thinks"),
            flag("session", Takes::Value("ID"), "go on with this session of pi (none is kept)"),
            flag("system-prompt", Takes::Value("TEXT"), "put before the prompt"),
            flag(
                "append-system-prompt",
                Takes::Value("TEXT"),
                "put behind pi's own system prompt instead",
            ),
            flag("extension", Takes::Path("PATH"), "load this extension too (also -e)"),
            flag("env", Takes::Value("K=V"), "set a variable for pi (repeatable)"),
            flag("extra-arg", Takes::Value("A"), "one more argument of pi (repeatable)"),
            flag("any-model", Takes::Nothing, "go on when another model answers than was asked"),
            flag("isolate", Takes::Nothing, "give pi an agent directory of its own"),
            flag("keep-agent-dir", Takes::Nothing, "keep that directory"),
            flag("pi", Takes::Path("PATH"), "the pi to run ($EXECD_PI, else pi)"),
            flag("min-version", Takes::Value("V"), "the oldest pi to run (0.70.0)"),
            flag("label", Takes::Value("TEXT"), "told in each event and in the result"),
            flag("log", Takes::Path("FILE"), "put pi's raw stream and stderr there"),
            flag("json", Takes::Nothing, "print events and result as JSON, one a line"),
            flag("keep-events", Takes::Nothing, "with --json: pi's raw events in the result too"),
            flag("v", Takes::Nothing, "show what the model thinks"),
            flag("health", Takes::Nothing, "say whether pi is there, and which; start no run"),
        ],
        settings: true,
        words: Words::Text,
    },
    Command {
        name: "call",
        usage: "[FLAGS] METHOD [PARAMS]",
        doc: "send one request to a fresh execd, or to one that runs; print its bare result",
        flags: &[PID, SOCKET],
        settings: true,
        words: Words::Method,
    },
    Command {
        name: "ls",
        usage: "[--json]",
        doc: "list the sessions of your execds that run",
        flags: &[
            flag("json", Takes::Nothing, "print a JSON array"),
            flag("ids", Takes::Nothing, "print the ids alone"),
            PID,
            SOCKET,
        ],
        settings: false,
        words: Words::None,
    },
    Command {
        name: "attach",
        usage: "@ID",
        doc: r"look into a session and type into it; Ctrl-\ Ctrl-d detaches",
        flags: &[PID, SOCKET],
        settings: false,
        words: Words::Session,
    },
    Command {
        name: "tail",
        usage: "[-f] [-n LINES] @ID",
        doc: "print the last lines of a session's output (10)",
        flags: &[
            flag("f", Takes::Nothing, "go on with what comes, until the session ends"),
            flag("n", Takes::Value("LINES"), "how many lines"),
            PID,
            SOCKET,
        ],
        settings: false,
        words: Words::Session,
    },
    Command {
        name: "log",
        usage: "[FLAGS] @ID|NAME|LOG",
        doc: "print the output of a session from its log, also when it or its execd is gone",
        flags: &[
            flag("from", Takes::Value("N"), "begin at this byte; negative: before the end"),
            flag("lines", Takes::Value("N"), "only the last N lines"),
            flag("follow", Takes::Nothing, "go on with what comes, until the session ends"),
            flag("raw", Takes::Nothing, "exact bytes, not clean text"),
            LOG_DIR,
            PID,
            SOCKET,
        ],
        settings: false,
        words: Words::Session,
    },
    Command {
        name: "logs",
        usage: "[--all]",
        doc: "list the logs that there are, newest first; logs clean deletes old ones",
        flags: &[flag("all", Takes::Nothing, "all of them (the newest 50)"), LOG_DIR],
        settings: false,
        words: Words::OneOf(&["clean"]),
    },
    Command {
        name: "kill",
        usage: "@ID [SIGNAL]",
        doc: "end a session and everything in it (TERM; what is left after 2 s gets KILL)",
        flags: &[PID, SOCKET],
        settings: false,
        words: Words::SessionAndSignal,
    },
    Command {
        name: "completions",
        usage: "bash|zsh|fish",
        doc: "print completions for a shell",
        flags: &[],
        settings: false,
        words: Words::OneOf(SHELLS),
    },
];

impl Flag {
    /// The name with its dashes.
    pub fn dashed(&self) -> String {
        let dashes = if self.name.len() == 1 { "-" } else { "--" };
        format!("{dashes}{}", self.name)
    }

    /// The flag as the help shows it, with what its value is called.
    fn shown(&self) -> String {
        let flag = self.dashed();
        match self.takes {
            Takes::Nothing => flag,
            Takes::Value(name) | Takes::Path(name) => format!("{flag} {name}"),
            Takes::Choice(words) => format!("{flag} {}", words.join("|")),
        }
    }
}

/// Columns of the help, and where its second column begins.
const HELP_COLUMNS: usize = 100;
const HELP_DOCS_AT: usize = 29;

/// One entry of the help: what it is, and what it does in the column beside it.
fn entry(out: &mut String, what: &str, doc: &str) {
    let mut line = format!("  {what:<width$}", width = HELP_DOCS_AT - 2);
    if line.chars().count() >= HELP_DOCS_AT && !line.ends_with(' ') {
        let _ = writeln!(out, "{}", line.trim_end());
        line = " ".repeat(HELP_DOCS_AT);
    }
    let mut used = line.chars().count();
    for (at, word) in doc.split(' ').enumerate() {
        if at > 0 && used + 1 + word.len() > HELP_COLUMNS {
            let _ = write!(line, "\n{}", " ".repeat(HELP_DOCS_AT));
            used = HELP_DOCS_AT;
        } else if at > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += word.len();
    }
    let _ = writeln!(out, "{line}");
}

/// The text of `--help`.
pub fn help() -> String {
    let mut out = String::from("execd - runs commands that you can come back to\n\nusage:\n");
    for command in COMMANDS {
        let name = [command.name, command.usage].join(" ");
        entry(&mut out, &format!("execd {}", name.trim_start()), command.doc);
    }
    out.push_str(
        "\n  printf '%s\\n' '{\"id\":1,\"method\":\"exec_command\",\"params\":{\"cmd\":\"git \
         status\"}}' | execd\n",
    );
    let places = |flag: &&Flag| [PID.doc, SOCKET.doc].contains(&flag.doc);
    for command in COMMANDS.iter().skip(1) {
        let own: Vec<&Flag> = command.flags.iter().filter(|flag| !places(flag)).collect();
        if !own.is_empty() {
            let _ = writeln!(out, "\nflags of {}:", command.name);
        }
        for flag in own {
            entry(&mut out, &flag.shown(), flag.doc);
        }
    }
    out.push_str("\nflags of call, ls, attach, tail, log and kill:\n");
    for flag in [PID, SOCKET] {
        entry(&mut out, &flag.shown(), flag.doc);
    }
    out.push_str("\nflags of execd, run, agent and call:\n");
    for flag in SETTINGS.iter().chain(COMMANDS[0].flags) {
        entry(&mut out, &flag.shown(), flag.doc);
    }
    out.push_str(
        "\nEXECD_LOG=debug prints one line per change of state on stderr.\nThe protocol and \
         every method: docs/protocol.md; attaching: docs/attach.md.\n",
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_every_command_and_flag_and_fits_a_screen() {
        let help = help();
        for command in COMMANDS {
            assert!(help.contains(&format!("  execd {}", command.name)), "{}", command.name);
            assert!(command.flags.iter().all(|flag| help.contains(&flag.shown())));
        }
        assert!(SETTINGS.iter().all(|flag| help.contains(&flag.shown())));
        for line in help.lines() {
            assert!(line.chars().count() <= HELP_COLUMNS, "{line}");
        }
    }
}
