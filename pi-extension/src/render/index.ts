/** The renderers of the tools, by surface and tool. */
import {
  renderExecCall,
  renderKillCall,
  renderListCall,
  renderResizeCall,
  renderSetOnExitCall,
  renderWriteCall,
} from "./calls.ts";
import {
  renderKillResult,
  renderListResult,
  renderResizeResult,
  renderSetOnExitResult,
  renderWaitResult,
} from "./results.ts";
import type { ToolRenderers } from "./row.ts";
import {
  renderBashStreamCall,
  renderKillProcessCall,
  renderListProcessesCall,
  renderLogCall,
  renderPollCall,
  renderStdinCall,
} from "./stream-calls.ts";
import {
  renderLogResult,
  renderProcessesResult,
  renderReportResult,
  renderStdinResult,
} from "./stream-results.ts";

/** The tools of the unified surface. */
export type UnifiedToolName =
  | "exec_command"
  | "write_stdin"
  | "kill_session"
  | "list_sessions"
  | "set_on_exit"
  | "resize_session";

/** The tools of the stream surface. */
export type StreamToolName =
  | "bash_stream"
  | "poll_process"
  | "write_stdin"
  | "kill_process"
  | "list_processes"
  | "get_process_log";

/** The renderers of the unified surface. */
export const renderers: Record<UnifiedToolName, ToolRenderers> = {
  exec_command: { renderCall: renderExecCall, renderResult: renderWaitResult },
  write_stdin: { renderCall: renderWriteCall, renderResult: renderWaitResult },
  kill_session: { renderCall: renderKillCall, renderResult: renderKillResult },
  list_sessions: { renderCall: renderListCall, renderResult: renderListResult },
  set_on_exit: { renderCall: renderSetOnExitCall, renderResult: renderSetOnExitResult },
  resize_session: { renderCall: renderResizeCall, renderResult: renderResizeResult },
};

/** The renderers of the stream surface. */
export const streamRenderers: Record<StreamToolName, ToolRenderers> = {
  bash_stream: { renderCall: renderBashStreamCall, renderResult: renderReportResult },
  poll_process: { renderCall: renderPollCall, renderResult: renderReportResult },
  write_stdin: { renderCall: renderStdinCall, renderResult: renderStdinResult },
  kill_process: { renderCall: renderKillProcessCall, renderResult: renderReportResult },
  list_processes: { renderCall: renderListProcessesCall, renderResult: renderProcessesResult },
  get_process_log: { renderCall: renderLogCall, renderResult: renderLogResult },
};
