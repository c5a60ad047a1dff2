//! The commands and their flags, once: help, man pages (`help`) and completions are made from this
//! table, scripts/docs.py writes docs/cli.md from it, and tests hold the parser against it.

mod kinds;

use std::ffi::OsString;

use crate::agent::params::THINKING;

pub use kinds::{Command, Flag, Takes, Words};

const fn flag(name: &'static str, takes: Takes, doc: &'static str) -> Flag {
    Flag { name, takes, doc, letter: None, rare: false }
}

/// A flag that only the whole help has.
const fn rare(name: &'static str, takes: Takes, doc: &'static str) -> Flag {
    Flag { rare: true, ..flag(name, takes, doc) }
}

const PID: Flag = flag("pid", Takes::Value("N"), "only the execd with this process id");
const LOG_DIR: Flag = flag("log-dir", Takes::Path("DIR"), "where logs are ($TMPDIR/pi-execd-UID)");
const SOCKET: Flag = flag("socket", Takes::Path("PATH"), "only the execd that listens here");

/// The exit statuses of commands that look at something or change it.
const OF_A_CLIENT: &str = "0 done, 1 failure, 125 bad flags.";
/// Those of commands that show a session.
const OF_A_SESSION: &str =
    "the session's own when it has ended, 0 where it goes on, 1 failure, 125 bad flags.";

/// The sets of tools.
const TOOLS: &[&str] = crate::mcp::SETS;
/// The shells that completions are made for.
pub const SHELLS: &[&str] = &["bash", "zsh", "fish"];
/// The signals that completions offer.
pub const SIGNALS: &[&str] = &["TERM", "INT", "HUP", "QUIT", "KILL", "USR1", "USR2"];

/// The flags of execd itself that say how the lines of its stdin are carried out.
pub const LINES: &[Flag] = &[
    flag("jobs", Takes::Value("N"), "at most N at once, 1 to 64; more wait in line (any)"),
    rare("lenient", Takes::Nothing, "0 at the end of stdin, also when a line was refused"),
];

/// The flags that set an execd up.
pub const SETTINGS: &[Flag] = &[
    flag("max-sessions", Takes::Value("N"), "sessions before the least recently used goes (64)"),
    rare("max-line-bytes", Takes::Value("N"), "longest request line (8388608)"),
    rare(
        "max-output-bytes",
        Takes::Value("N"),
        "text of one reply, in bytes (51200, in mcp 10240)",
    ),
    rare("max-output-lines", Takes::Value("N"), "text of one reply, in lines (2000, in mcp 1900)"),
    rare("max-empty-poll-ms", Takes::Value("N"), "longest poll without input (1800000)"),
    rare("first-session-id", Takes::Value("N"), "id of the first session (1)"),
    rare("bash-yield-ms", Takes::Value("N"), "wait of bash_stream, 1000 to 120000 (60000)"),
    rare(
        "bash-max-output-chars",
        Takes::Value("N"),
        "characters of a bash_stream reply's texts, up to 150000 (30000, in mcp 51200)",
    ),
    rare(
        "bash-job-ttl-ms",
        Takes::Value("N"),
        "how long a finished process is remembered, 1 min to 3 h (1800000)",
    ),
    rare(
        "bash-jobs-kept",
        Takes::Value("N"),
        "finished processes that are remembered, 1 to 1024 (256)",
    ),
    rare(
        "stdin-cap-bytes",
        Takes::Value("N"),
        "input a process of bash_stream takes over its life, 0: any (262144)",
    ),
    flag(
        "on-eof",
        Takes::Choice(&["end", "wait"]),
        "after stdin: end the sessions, or wait for them (end)",
    ),
    rare(
        "on-impossible",
        Takes::Choice(&["answer", "wait"]),
        "what happens to a wait that nothing but input can end any more: it is answered, or goes \
         on (answer)",
    ),
    rare(
        "lease",
        Takes::Value("TIME"),
        "end, and all sessions, when no byte came on stdin for so long (never)",
    ),
    rare("exit-after-silence", Takes::Value("TIME"), "the same as --lease"),
    flag("kill-detached", Takes::Nothing, "ending a session also ends what left it by setsid"),
    flag("log-dir", Takes::Path("DIR"), "where logs go ($TMPDIR/pi-execd-UID)"),
    rare(
        "log-max-bytes",
        Takes::Value("N"),
        "bytes of a session's output that are logged at most (all)",
    ),
    rare(
        "log-keep-bytes",
        Takes::Value("N"),
        "bytes of each log that are kept, the newest ones; 0 keeps all (1073741824)",
    ),
    rare(
        "log-total-bytes",
        Takes::Value("N"),
        "bytes of disk for all logs, at most a tenth of the disk; 0 bounds nothing (8589934592)",
    ),
    flag("log-keep-days", Takes::Value("D"), "delete logs older than this; 0 keeps them (7)"),
    flag("no-log", Takes::Nothing, "no log files"),
    flag(
        "socket",
        Takes::Path("PATH"),
        "where the control socket is ($XDG_RUNTIME_DIR/execd/PID.sock)",
    ),
    flag("no-socket", Takes::Nothing, "no control socket: nobody can list or attach"),
    rare(
        "no-keeper",
        Takes::Nothing,
        "no helper process: logs are written by the loop itself, and nothing ends the sessions \
         when execd is killed by SIGKILL",
    ),
];

/// All commands; the first is execd without one.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "",
        usage: "[FLAGS]",
        doc: "serve JSON-RPC requests, one a line, on stdin and stdout",
        about: "A request starts a command, waits for it, or acts on what runs; execd --describe \
                lists the methods.\nAt the end of stdin what was asked is answered, then what \
                still runs is ended.\nEach setting has a variable, EXECD_MAX_SESSIONS and so on; \
                a flag wins. EXECD_LOG=debug prints a line for each change of state on stderr.",
        status: "0 done, 1 a line was refused, 125 bad flags or no start, 128 + N a signal.",
        examples: [
            r#"echo '{"id":1,"method":"exec_command","params":{"cmd":"make"}}' | execd"#,
            "execd --describe | jq -r '.methods[].name'",
        ],
        flags: &[
            LINES[0],
            LINES[1],
            rare("marker", Takes::Value("WORD"), "write the line === execd WORD === first"),
            flag("describe", Takes::Nothing, "print the methods and their params as JSON Schema"),
            rare("for-models", Takes::Nothing, "with --describe: print the tools that models get"),
            flag("help", Takes::Nothing, "print the commands; behind a command, what it takes")
                .or('h'),
            flag("version", Takes::Nothing, "print the version").or('V'),
        ],
        settings: true,
        words: Words::None,
    },
    Command {
        name: "run",
        usage: "[FLAGS] [--] PROGRAM [ARG...] | -c CODE [ARG...]",
        doc: "run one command to its end: its output, its exit status",
        about: "The words are a program and its arguments; no shell reads them, but with -c. \
                stdout, stderr and stdin are execd's own, and a log has all output.\nCtrl-C is \
                SIGINT to the command, again within 2 s SIGTERM to all of it, a third time \
                SIGKILL. What it leaves in the background is named, and ended with it.",
        status: "the command's; 124 after a timeout, 125 failure of execd or bad flags, 126 \
                 could not be started, 127 not found, 128 + N after signal N.",
        examples: [
            "execd run --timeout 10m --idle-timeout 1m -- make -j2",
            "execd run -c 'make 2>&1 | tail -n 3'",
        ],
        flags: &[
            flag("c", Takes::Value("CODE"), "run this code of a shell, not a program"),
            rare("shell", Takes::Value("SHELL"), "the shell of -c (bash)"),
            flag("timeout", Takes::Value("TIME"), "end it after so long: 0.5, 500ms, 5m, 1h30m"),
            flag("idle-timeout", Takes::Value("TIME"), "end it when it writes nothing for so long"),
            rare("signal", Takes::Signal, "what a timeout sends first (TERM)"),
            flag("kill-after", Takes::Value("TIME"), "from that signal to KILL (1s)"),
            flag("keep-background", Takes::Nothing, "wait for what it leaves running"),
            flag("merge", Takes::Nothing, "stdout and stderr as one pipe, in exact order"),
            flag("tty", Takes::Nothing, "on a terminal of its own, which gets the keys").or('t'),
            flag("quiet", Takes::Nothing, "say nothing of its own").or('q'),
            rare("name", Takes::Value("NAME"), "what lists show it as"),
            flag("log", Takes::Path("FILE"), "put the log there at the end, replacing FILE"),
            flag("json", Takes::Nothing, "print one JSON object at its end, not its output"),
        ],
        settings: true,
        words: Words::Program,
    },
    Command {
        name: "mcp",
        usage: "[FLAGS]",
        doc: "serve the Model Context Protocol on stdin and stdout",
        about: "Claude Code, Codex and other agents start it as any server of that \
                protocol.\nAt the end of stdin all sessions end.",
        status: "0 at the end of stdin, 1 failure, 125 bad flags, 128 + N a signal.",
        examples: [
            "claude mcp add execd -- execd mcp",
            "codex mcp add execd -- execd mcp --tools unified,more",
        ],
        flags: &[
            flag("tools", Takes::Choice(TOOLS), "which tools, with commas between sets (unified)"),
            flag("mcp-structured", Takes::Nothing, "results also have structured content"),
            flag(
                "on-cancel",
                Takes::Choice(crate::mcp::ON_CANCEL),
                "what becomes of a cancelled call's command (interrupt for a person, else leave)",
            ),
            flag(
                "mcp-max-wait-s",
                Takes::Value("S"),
                "longest wait of a call without a progress token (50)",
            ),
        ],
        settings: true,
        words: Words::None,
    },
    Command {
        name: "agent",
        usage: "--model P/M [FLAGS] PROMPT|-",
        doc: "run the coding agent pi on a task (- reads it from stdin)",
        about: "The text comes on stdout, what pi does on stderr.",
        status: "0 success, 1 failure, 125 refused and nothing run, 124 timeout, 130 Ctrl-C or \
                 another cancel, 128+N when signal N ended it.",
        examples: [
            "execd agent --model anthropic/claude-haiku-4-5 --max-cost 0.50 'Fix the test'",
            "git diff | execd agent --model openai/gpt-4o --no-tools --json - > run.ndjson",
        ],
        flags: &[
            flag("model", Takes::Value("P/M"), "provider/id of the model"),
            flag("tools", Takes::Value("A,B"), "only these tools (pi's own defaults)"),
            flag("no-tools", Takes::Nothing, "no tools at all"),
            flag("workspace", Takes::Path("DIR"), "where pi works (here)"),
            flag("timeout", Takes::Value("TIME"), "end it after so long: 500ms, 10m (600s)"),
            flag("idle-timeout", Takes::Value("TIME"), "end it after such a silence (180s)"),
            rare(
                "first-event-timeout",
                Takes::Value("TIME"),
                "end it when the model does not begin within this (30s)",
            ),
            flag("max-cost", Takes::Value("USD"), "end it when it has cost more (no limit)"),
            rare("max-tokens", Takes::Value("N"), "end it when it has used more (no limit)"),
            rare("thinking", Takes::Choice(THINKING), "how much the model thinks"),
            flag("session", Takes::Value("ID"), "go on with this session of pi (none is kept)"),
            rare("system-prompt", Takes::Value("TEXT"), "put before the prompt"),
            rare(
                "append-system-prompt",
                Takes::Value("TEXT"),
                "put behind pi's own system prompt instead",
            ),
            rare("extension", Takes::Path("PATH"), "load this extension too; repeatable").or('e'),
            flag("env", Takes::Value("K=V"), "set a variable for pi; repeatable"),
            rare("extra-arg", Takes::Value("A"), "one more argument of pi; repeatable"),
            rare("any-model", Takes::Nothing, "go on when another model answers than was asked"),
            rare("isolate", Takes::Nothing, "give pi an agent directory of its own"),
            rare("keep-agent-dir", Takes::Nothing, "keep that directory"),
            rare("pi", Takes::Path("PATH"), "the pi to run ($EXECD_PI, else pi)"),
            rare("min-version", Takes::Value("V"), "the oldest pi to run (0.70.0)"),
            rare("label", Takes::Value("TEXT"), "told in each event and in the result"),
            flag("log", Takes::Path("FILE"), "put pi's raw stream and stderr there"),
            flag("json", Takes::Nothing, "print events and result as JSON, one a line"),
            rare("keep-events", Takes::Nothing, "with --json: pi's raw events in the result too"),
            flag("v", Takes::Nothing, "show what the model thinks"),
            flag("health", Takes::Nothing, "say whether pi is there, and which; start no run"),
        ],
        settings: true,
        words: Words::Text,
    },
    Command {
        name: "call",
        usage: "[FLAGS] METHOD [PARAMS|-]",
        doc: "send one request and print its result",
        about: "It goes to a fresh execd, or with --pid or --socket to one that runs. PARAMS is a \
                JSON object; - reads it from stdin. An exec_command that still runs is polled to \
                its end. execd --describe lists the methods.",
        status: "0 for a result, 1 for an error, 125 bad flags.",
        examples: [
            r#"execd call exec_command '{"cmd":"git status"}'"#,
            r#"execd call --pid 4242 write_stdin '{"session_id":3,"chars":"y\n"}'"#,
        ],
        flags: &[PID, SOCKET],
        settings: true,
        words: Words::Method,
    },
    Command {
        name: "ls",
        usage: "[FLAGS]",
        doc: "list the sessions of your execds that run",
        about: "",
        status: OF_A_CLIENT,
        examples: ["execd ls", "execd ls --json | jq -r '.[].command'"],
        flags: &[
            flag("json", Takes::Nothing, "print a JSON array"),
            flag("ids", Takes::Nothing, "print the ids alone"),
            flag("all-users", Takes::Nothing, "those of all users, for root"),
            PID,
            SOCKET,
        ],
        settings: false,
        words: Words::None,
    },
    Command {
        name: "attach",
        usage: "[FLAGS] @ID",
        doc: r"look into a session and type; Ctrl-\ Ctrl-d detaches",
        about: "Output and keys go straight through; the program gets your terminal's size.",
        status: OF_A_SESSION,
        examples: ["execd attach @3", "execd attach execd-4242:@3"],
        flags: &[PID, SOCKET],
        settings: false,
        words: Words::Session,
    },
    Command {
        name: "tail",
        usage: "[-f] [-n LINES] @ID",
        doc: "print the last lines of a session's output (10)",
        about: "",
        status: OF_A_SESSION,
        examples: ["execd tail -n 50 @3", "execd tail -f @3"],
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
        doc: "print a session's output, also when its execd is gone",
        about: "LOG is an id of execd logs, or a path.",
        status: "0 done, 1 failure or not all of it is there, 125 bad flags, 141 nobody reads.",
        examples: ["execd log @3 | less", "execd log -f -n 20 npm"],
        flags: &[
            flag("from", Takes::Value("N"), "begin at this byte; negative: before the end"),
            flag("lines", Takes::Value("N"), "only the last N lines").or('n'),
            flag("follow", Takes::Nothing, "go on with what comes, until the session ends").or('f'),
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
        usage: "[FLAGS]",
        doc: "list the logs that there are, newest first",
        about: "execd logs clean deletes old ones.",
        status: OF_A_CLIENT,
        examples: ["execd logs", "execd logs --all | grep make"],
        flags: &[flag("all", Takes::Nothing, "all of them (the newest 50)"), LOG_DIR],
        settings: false,
        words: Words::OneOf(&["clean"]),
    },
    Command {
        name: "logs clean",
        usage: "[FLAGS]",
        doc: "delete the logs of sessions that ended long ago",
        about: "Logs that an execd uses are left.",
        status: OF_A_CLIENT,
        examples: ["execd logs clean", "execd logs clean --older-than 36h"],
        flags: &[
            flag("older-than", Takes::Value("TIME"), "ended so long ago: 36h, 7d (7d)"),
            flag("all", Takes::Nothing, "all that no execd uses"),
            LOG_DIR,
        ],
        settings: false,
        words: Words::None,
    },
    Command {
        name: "kill",
        usage: "[FLAGS] @ID...",
        doc: "end sessions and everything in them (TERM; KILL after 2 s)",
        about: "An id is @3, 3, a name, or execd-4242:@3. SIG is a name or a number, also as -INT.",
        status: "0 when nothing is left of them, 1 otherwise, 125 bad flags.",
        examples: ["execd kill @3 @4", "execd kill -s INT npm"],
        flags: &[flag("signal", Takes::Signal, "what is sent first (TERM)").or('s'), PID, SOCKET],
        settings: false,
        words: Words::SessionAndSignal,
    },
    Command {
        name: "completions",
        usage: "bash|zsh|fish",
        doc: "print completions for a shell",
        about: "make install puts them where the shells find them.",
        status: OF_A_CLIENT,
        examples: ["source <(execd completions bash)", "execd completions fish | source"],
        flags: &[],
        settings: false,
        words: Words::OneOf(SHELLS),
    },
    Command {
        name: "help",
        usage: "[FLAGS] [COMMAND|flags]",
        doc: "tell of one command; of execd's own flags: execd help flags",
        about: "",
        status: OF_A_CLIENT,
        examples: ["execd help run", "execd help --man run | man -l -"],
        flags: &[
            flag("all", Takes::Nothing, "with what the screen leaves out"),
            flag("man", Takes::Nothing, "as a man page"),
            flag("names", Takes::Nothing, "the names of the commands alone"),
        ],
        settings: false,
        words: Words::Command,
    },
];

/// The command of that name.
pub fn command(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// The command that the arguments begin with; empty where they begin with none.
pub fn first(arguments: &[OsString]) -> &'static str {
    let word = arguments.first();
    word.and_then(|word| names().find(|name| word == name)).unwrap_or_default()
}

/// The names of the commands that are one word.
pub fn names() -> impl Iterator<Item = &'static str> {
    let one_word = |name: &&str| !name.is_empty() && !name.contains(' ');
    COMMANDS.iter().map(|command| command.name).filter(one_word)
}
