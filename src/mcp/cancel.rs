//! What becomes of the command of a call that a host cancels. A person who interrupts a call wants
//! its command to end; a host that has waited for too long does not know what the call does.

/// What `--on-cancel` says of every cancelled call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCancel {
    /// The command goes on.
    Leave,
    /// It gets SIGINT.
    Interrupt,
    /// It is ended.
    Kill,
}

/// The words of `--on-cancel`, in the order of [`OnCancel`].
pub const ON_CANCEL: &[&str] = &["leave", "interrupt", "kill"];

impl OnCancel {
    /// The one that a word stands for.
    pub fn of(word: &str) -> Option<Self> {
        let at = ON_CANCEL.iter().position(|one| *one == word)?;
        [Self::Leave, Self::Interrupt, Self::Kill].get(at).copied()
    }

    /// What the reason of a host says, where no flag says anything else.
    pub(super) fn by_reason(reason: &str) -> Self {
        if is_of_a_person(reason) { Self::Interrupt } else { Self::Leave }
    }

    /// The word for it in a request to execd.
    pub(super) fn end(self) -> Option<&'static str> {
        (self != Self::Leave).then(|| ON_CANCEL[self as usize])
    }
}

/// Whether a host cancels for a person. The SDK for TypeScript sends the reason of an abort as a
/// string: `AbortError` is that of Esc in OpenCode and Claude Code, some versions of which say
/// `user-cancel`; its own timeout is `McpError: MCP error -32001: Request timed out`, and one of a
/// signal `TimeoutError`. Codex says `request timeout`, and nothing for Esc.
fn is_of_a_person(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    let is_timeout = ["timeout", "timed out", "time out"].iter().any(|word| reason.contains(word));
    !is_timeout && (reason.contains("user") || reason.starts_with("aborterror"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A build died of the timeout of its host.
    /// rule: mcp.md, Waits: Only a reason that stands for a person interrupts the command
    #[test]
    fn a_timeout_of_the_host_is_no_person() {
        for person in [
            "AbortError: This operation was aborted",
            "AbortError: The operation was aborted.",
            "user-cancel",
            "User requested cancellation",
        ] {
            assert_eq!(OnCancel::by_reason(person), OnCancel::Interrupt, "{person}");
        }
        for host in [
            "",
            "McpError: MCP error -32001: Request timed out",
            "McpError: MCP error -32001: Maximum total timeout exceeded",
            "TimeoutError: The operation was aborted due to timeout",
            "request timeout",
            "interrupt",
            "cancelled",
            "the user's time out",
        ] {
            assert_eq!(OnCancel::by_reason(host), OnCancel::Leave, "{host}");
        }
    }
}
