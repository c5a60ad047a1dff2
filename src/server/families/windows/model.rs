//! What models read of the tools of the bash family. The values are those of
//! tmux-bash.jsonc.

use crate::server::engine::contract::Model;

/// bash.
pub(super) const BASH: Model = Model {
    set: "bash",
    title: "bash",
    description: "Runs a bash command. Shows the last {{bashContextLines}} lines or \
                  {{maxOutputKb}}KB. What takes longer than its timeout goes on in a background \
                  window (or is ended: timeoutAction).",
    logs: "",
    params: &[
        ("command", ""),
        ("name", "A label."),
        ("timeout", "Seconds. Default {{defaultTimeoutSeconds}}, at most {{maxTimeoutSeconds}}."),
        ("timeoutAction", "Default \"{{defaultTimeoutAction}}\"."),
        ("background", "From its start."),
        (
            "tty",
            "A terminal, for REPLs, prompts, editors: a person attaches and types. Without one \
             its input is empty. Default {{tty}}. server & gets SIGHUP there.",
        ),
        ("pollInterval", "Seconds between reports of its output. Default {{defaultPollInterval}}."),
        ("pollLines", "Their lines. Default {{pollContextLines}}."),
    ],
    of_other_form: false,
    reads_only: false,
    destroys: true,
    is_open_world: true,
};

/// tmux. The words of `action` are one sentence for each action, which begins with its name: a host
/// leaves out those that it has not enabled.
pub(super) const TMUX: Model = Model {
    set: "bash",
    title: "tmux",
    description: "Looks after the background windows of {{bashToolName}}.",
    logs: "",
    params: &[
        (
            "action",
            "list: the windows. list-polls: those with reports. peek: what is new of its \
             output. kill: ends all its processes. poll: reports of its output. unpoll: no more \
             reports.",
        ),
        ("window", "Its id, like @123."),
        ("pollInterval", "Of poll: seconds. Default {{pollSeconds}}."),
        ("pollLines", "Of poll: lines. Default {{pollContextLines}}."),
        ("all", "Of peek: old output too."),
    ],
    of_other_form: false,
    reads_only: false,
    destroys: true,
    is_open_world: false,
};
