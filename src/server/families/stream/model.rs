//! What models read of the stream tools: each sentence changes what a model
//! does, and every request pays for it.

use crate::server::engine::contract::Model;

/// What a tool has that looks at nothing and ends nothing.
const PLAIN: Model = Model {
    set: "stream",
    title: "",
    description: "",
    logs: "",
    params: &[],
    of_other_form: false,
    reads_only: false,
    destroys: false,
    is_open_world: false,
};

/// bash_stream.
pub(super) const BASH_STREAM: Model = Model {
    title: "Bash",
    description: "Runs a shell command. Answers when it ends, when \
                  only your input can move it on, or when yieldMs is over: then it goes on, and \
                  sessionId leads back to it. No output is lost between calls. Shows the last \
                  {{chars}} characters of stdout and of stderr.",
    logs: "logPath is a file with all of it: grep that, or read parts with get_process_log.",
    params: &[
        ("command", ""),
        ("workdir", "{{workdir}}"),
        ("env", "null unsets."),
        (
            "yieldMs",
            "How long this call waits; it never ends the command. Default {{yieldMs}}, at most \
             120000, with until or stop 1800000.",
        ),
        (
            "until",
            "Ends the wait once one comes true: text, regex (in a line of output), port (listens), \
             http ({port, path}), input (true: it waits for input), idleMs (silent so long), \
             treeExit (true).",
        ),
        ("stop", "The same, for signs of failure."),
        (
            "stdinMode",
            "\"null\": empty. \"pty\": a terminal, only for what needs one (REPL, ssh, sudo). \
             Default \"pipe\".",
        ),
        ("timeoutMs", "Ends the command after so long."),
        ("maxOutputChars", ""),
        ("name", ""),
    ],
    destroys: true,
    is_open_world: true,
    ..PLAIN
};

/// poll_process.
pub(super) const POLL_PROCESS: Model = Model {
    title: "Poll",
    description: "Shows what a process wrote since the last poll; once it has ended, how, and the \
                  end of all its output.",
    params: &[
        ("sessionId", ""),
        ("waitMs", "Waits so long for its end. At most 1800000."),
        ("maxDrainMs", "Waits so long for output. At most 120000."),
        ("until", "As in bash_stream."),
        ("stop", ""),
        ("killIf", "\"timeout\": ends it after this wait; \"always\": at once."),
    ],
    destroys: true,
    ..PLAIN
};

/// write_stdin with a sessionId.
pub(in crate::server::families) const WRITE_STDIN: Model = Model {
    title: "Stdin",
    description: "Writes to the stdin of a process and answers at once; poll_process shows what came \
                  of it. data has no escapes of its own: a line ends with a newline, on a terminal \
                  with a carriage return; there U+0003 is Ctrl-C.",
    params: &[
        ("sessionId", ""),
        ("data", "Text, or {\"base64\": …}."),
        ("eof", "Then closes stdin."),
    ],
    of_other_form: true,
    destroys: true,
    is_open_world: true,
    ..PLAIN
};

/// kill_process.
pub(super) const KILL_PROCESS: Model = Model {
    title: "Kill",
    description: "Ends a process and all that it started. Shows its status and output.",
    params: &[("sessionId", ""), ("signal", "Default SIGKILL.")],
    destroys: true,
    ..PLAIN
};

/// list_processes.
pub(super) const LIST_PROCESSES: Model = Model {
    title: "Processes",
    description: "Lists what runs, then what has ended lately.",
    reads_only: true,
    ..PLAIN
};

/// get_process_log.
pub(super) const GET_PROCESS_LOG: Model = Model {
    title: "Log",
    description: "Shows a part of a process's output as clean text, also of one that has ended, and \
                  of what results have cut.",
    params: &[
        ("sessionId", ""),
        ("offset", "First byte; a negative one counts from the end."),
        ("limit", "Bytes. Default 30000, at most 150000."),
        ("stream", "Only this one."),
    ],
    reads_only: true,
    ..PLAIN
};
