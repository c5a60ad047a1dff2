//! What models read of the tools that run pi. Keys, programs and paths of
//! extensions are the host's business, and not among the params.

use crate::server::engine::contract::Model;

/// agent_execute.
pub(super) const AGENT_EXECUTE: Model = Model {
    set: "agent",
    title: "Agent",
    description: "Has another agent (pi) do a task, with a context and tools of its own. Answers \
                  with its last message, tokens and cost when it is done; a call that ends before \
                  that has a run_id for agent_result, and the run goes on. Several may run at \
                  once. A cancelled call ends its run.",
    logs: "",
    params: &[
        ("prompt", "All that it needs to know: it sees nothing of this conversation."),
        ("model", "provider/id. Ask the user, or pi --list-models."),
        ("workspace", "{{workdir}}"),
        ("allowed_tools", "Of read, bash, edit, write and pi's others. [] is none."),
        ("thinking", ""),
        ("session", "A file's path: keeps the conversation there, or goes on with it."),
        ("timeout_ms", "Ends the run. Default 600000."),
        ("max_cost_usd", "Ends the run."),
        ("wait_ms", "How long this call waits; it never ends the run. 0 only starts it."),
    ],
    of_other_form: false,
    reads_only: false,
    destroys: true,
    is_open_world: true,
};

/// agent_result.
pub(super) const AGENT_RESULT: Model = Model {
    title: "Agent's result",
    description: "Waits for a run of agent_execute that goes on, and shows what it has come to.",
    params: &[
        ("run_id", ""),
        ("wait_ms", "Default: until its end."),
        ("cancel", "Ends the run now."),
    ],
    is_open_world: false,
    ..AGENT_EXECUTE
};
