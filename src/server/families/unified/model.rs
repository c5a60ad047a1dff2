//! What models read of the unified tools: each sentence changes what a model
//! does, and every request pays for it.

use crate::server::engine::contract::Model;

/// What a tool has that looks at nothing and ends nothing.
const PLAIN: Model = Model {
    set: "unified",
    title: "",
    description: "",
    logs: "",
    params: &[],
    of_other_form: false,
    reads_only: false,
    destroys: false,
    is_open_world: false,
};

/// exec_command.
pub(super) const EXEC_COMMAND: Model = Model {
    title: "Exec",
    description: "Runs a shell command in a session. Answers when it ends, when only your input can \
                  move it on (state), or when yield_time_ms is over: then it goes on, and \
                  session_id leads back to it. No output is lost between calls. Ends that no call \
                  waited for are told once, as lines event:. Shows the last 2000 lines or 50 KiB.",
    logs: "log_path is a file with all of it: grep that (grep -a where a line log: says that its \
           beginning is gone).",
    params: &[
        ("cmd", ""),
        ("workdir", "{{workdir}}"),
        (
            "yield_time_ms",
            "How long this call waits; it never ends the command. Default 10000, at most 30000, \
             with until or stop {{maxPollMs}}.",
        ),
        (
            "until",
            "Ends the wait once one comes true: text, regex (in a line of output), port (listens), \
             http ({port, path}), input (true: it waits for input), idle_ms (silent so long), \
             tree_exit (true: all its processes are gone).",
        ),
        ("stop", "The same, for signs of failure."),
        ("tty", "On a terminal. Only for what needs one: REPL, ssh, sudo, full screen."),
        ("stdin", "\"null\": empty. Default \"pipe\"."),
        (
            "on_exit",
            "\"wake\": a message tells you its end. Only if the user asks for that, or nothing \
             else is left to do; then end your turn.",
        ),
        ("shell", ""),
        ("env", "null unsets."),
        ("cols", ""),
        ("rows", ""),
        ("name", ""),
    ],
    destroys: true,
    is_open_world: true,
    ..PLAIN
};

/// write_stdin with a session_id.
pub(super) const WRITE_STDIN: Model = Model {
    title: "Stdin",
    description: "Writes to a session, or polls it without chars. Shows the output that no call has \
                  shown. chars has C escapes: \\n ends a line, \\r on a terminal; \\x03 is Ctrl-C, \
                  \\x04 Ctrl-D, \\x1b[A arrow up.",
    params: &[
        ("session_id", ""),
        ("chars", ""),
        ("chars_b64", "Exact bytes."),
        ("eof", "Then closes stdin."),
        (
            "yield_time_ms",
            "With input: default 250, at most 30000. Without, or with until or stop: default 5000, \
             at most {{maxPollMs}}.",
        ),
        ("until", "As in exec_command."),
        ("stop", ""),
        (
            "yield_until",
            "A poll until 2026-07-21T18:30:00Z. Only if the user names a time, or nothing else is \
             left to do.",
        ),
        ("resize", "First: {cols, rows}."),
    ],
    destroys: true,
    is_open_world: true,
    ..PLAIN
};

/// kill_session.
pub(super) const KILL_SESSION: Model = Model {
    title: "Kill",
    description: "Ends all processes of a session, by SIGKILL after 2 s. Shows the rest of the output.",
    params: &[("session_id", ""), ("signal", "The first one. Default SIGTERM.")],
    destroys: true,
    ..PLAIN
};

/// list_sessions, which shows a session that has ended once: it is then told.
pub(super) const LIST_SESSIONS: Model = Model {
    title: "Sessions",
    description: "Lists the sessions; one that has ended, once.",
    reads_only: true,
    ..PLAIN
};

/// wait_for.
pub(in crate::server::families) const WAIT_FOR: Model = Model {
    title: "Wait",
    description: "Waits for several sessions at once. Shows their output.",
    params: &[
        ("session_ids", "Default: all that run."),
        ("mode", "Default \"any\"."),
        ("until", "As in exec_command. Default: their end."),
        ("stop", ""),
        ("timeout_ms", "Default 30000, at most {{maxPollMs}}."),
        ("take", "false leaves their output unread."),
    ],
    reads_only: true,
    ..PLAIN
};

/// set_on_exit, of the set of what is rarely used.
pub(super) const SET_ON_EXIT: Model = Model {
    set: "more",
    title: "On exit",
    description: "Arms (\"wake\") or disarms (\"none\") the message that tells you a session's end.",
    params: &[("session_id", ""), ("on_exit", "")],
    ..PLAIN
};

/// resize_session, of the set of what is rarely used.
pub(super) const RESIZE_SESSION: Model = Model {
    set: "more",
    title: "Resize",
    description: "Sets the size of a session's terminal; the program in it is told.",
    params: &[("session_id", ""), ("cols", "20 to 500."), ("rows", "5 to 300.")],
    ..PLAIN
};
