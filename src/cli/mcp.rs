//! `execd mcp`: the Model Context Protocol on stdin and stdout (docs/mcp.md).

use super::flags::McpOptions;
use super::say::complain;
use crate::config::{Config, OnEof};
use crate::limits::{MCP_STREAM_CHARS, MCP_TEXT_BYTES};
use crate::mcp::{HostProgram, HostedStart, Mcp, Settings};
use crate::sys::stdio;

/// Lines of it. OpenCode keeps the first 2,000 of a result.
const MCP_TEXT_LINES: usize = 1_900;

/// Has results show only as much as hosts hand on whole, where flags and variables say nothing.
pub fn shorten_texts(config: &mut Config) {
    config.text.max_bytes = MCP_TEXT_BYTES;
    config.text.max_lines = MCP_TEXT_LINES;
    config.stream.max_chars = MCP_STREAM_CHARS;
}

/// Serves the protocol until stdin ends; gives the exit status, or why execd could not start.
pub fn main(options: McpOptions) -> Result<i32, String> {
    let McpOptions { sets, structured, max_wait_s, config, flags } = options;
    let mcp = Mcp::new(Settings::new(&sets, structured, max_wait_s, &config));
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
