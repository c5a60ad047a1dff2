/** What becomes of a wait that Esc has ended: the next Esc is for its command. */
import type { WaitResult } from "../execd/wire-results.ts";
import type { Call, ToolResult } from "../pi/host.ts";
import type { ToolContext } from "./context.ts";

/** Adds to a result until when another Esc sends Ctrl-C, where Esc has ended its wait. */
export function afterEsc(
  context: ToolContext,
  { signal, ctx }: Call,
  { session_id, tty }: Pick<WaitResult, "session_id" | "tty">,
  result: ToolResult,
): ToolResult {
  if (signal?.aborted !== true || session_id === undefined) return result;
  const command = context.sessions.get(session_id)?.command;
  const left = { session_id, command, tty: tty === true };
  const esc_until_ms = context.secondEsc.onEsc(left, ctx);
  if (esc_until_ms === undefined) return result;
  return { ...result, details: { ...result.details, esc_until_ms } };
}
