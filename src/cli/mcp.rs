//! `execd mcp`: the Model Context Protocol on stdin and stdout (docs/mcp.md).

use super::flags::McpOptions;
use super::say::complain;
use crate::config::{Config, OnEof};
use crate::limits::{HEAD_TAIL_MAX_BYTES, MCP_OUTPUT_RANGE, MCP_TEXT_BYTES};
use crate::mcp::{HostProgram, HostedStart, Mcp, Settings};
use crate::server::session::view::TextLimits;
use crate::sys::stdio;

/// Lines of it. OpenCode keeps the first 2,000 of a result.
const MCP_TEXT_LINES: usize = 1_900;

/// How much results show, where flags and variables say nothing.
pub const SHOWN: TextLimits =
    TextLimits { max_lines: MCP_TEXT_LINES, max_bytes: MCP_TEXT_BYTES, keeps_head: true };

/// Has the execd of a host answer with as much as any call may ask for: the program before it cuts
/// that.
pub fn widen_texts(config: &mut Config) {
    let max_bytes = MCP_OUTPUT_RANGE.1;
    config.text = TextLimits { max_lines: HEAD_TAIL_MAX_BYTES, max_bytes, keeps_head: true };
    config.stream.max_chars = max_bytes;
    // A host sees one result, however many sessions it is about.
    config.shared_text_bytes = max_bytes;
}

/// Serves the protocol until stdin ends; gives the exit status, or why execd could not start.
pub fn main(options: McpOptions) -> Result<i32, String> {
    let McpOptions { sets, structured, on_cancel, max_wait_s, config, flags } = options;
    let mut settings = Settings::new(&sets, &config);
    (settings.structured, settings.on_cancel) = (structured, on_cancel);
    settings.max_wait_ms = max_wait_s.map_or(settings.max_wait_ms, |s| s * 1_000);
    let mcp = Mcp::new(settings);
    let start = HostedStart {
        flags,
        max_line_bytes: config.max_line_bytes,
        lease_ms: config.lease_ms,
        waits_at_end: config.on_eof == OnEof::Wait,
    };
    let program = HostProgram::start(mcp, start)?;
    if stdio::is_terminal(0) {
        complain(
            "execd mcp is started by an agent: claude mcp add execd -- execd mcp (execd help mcp has \
             others). Ctrl-D ends it.",
        );
    }
    Ok(program.serve())
}
