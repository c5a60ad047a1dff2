/** The renderers of the unified-exec tools, by tool. */
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
import type { RenderCall, RenderResult } from "./row.ts";

/** The tools that have renderers here. */
export type UnifiedToolName =
  | "exec_command"
  | "write_stdin"
  | "kill_session"
  | "list_sessions"
  | "set_on_exit"
  | "resize_session";

/** How a tool draws its call and its result. */
export interface ToolRenderers {
  renderCall: RenderCall;
  renderResult: RenderResult;
}

/** What to spread into the definition of each tool. */
export const renderers: Record<UnifiedToolName, ToolRenderers> = {
  exec_command: { renderCall: renderExecCall, renderResult: renderWaitResult },
  write_stdin: { renderCall: renderWriteCall, renderResult: renderWaitResult },
  kill_session: { renderCall: renderKillCall, renderResult: renderKillResult },
  list_sessions: { renderCall: renderListCall, renderResult: renderListResult },
  set_on_exit: { renderCall: renderSetOnExitCall, renderResult: renderSetOnExitResult },
  resize_session: { renderCall: renderResizeCall, renderResult: renderResizeResult },
};
