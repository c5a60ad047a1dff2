/** What becomes of a wait that Esc has ended: the next Esc is for its commands. */
import type { Call, ToolResult } from "../pi/host.ts";
import type { ToolContext } from "./context.ts";

/** A session that a wait was on; one without an id has ended. */
interface Waited {
  session_id?: number | undefined;
  tty?: boolean | undefined;
}

/**
 * Adds to a result until when another Esc sends Ctrl-C to those of the sessions that run, where Esc
 * has ended the wait on them.
 */
export function afterEsc(
  context: ToolContext,
  { signal, ctx }: Call,
  waited: readonly Waited[],
  result: ToolResult,
): ToolResult {
  if (signal?.aborted !== true) return result;
  const until_ms = waited.flatMap(({ session_id, tty }) => {
    if (session_id === undefined) return [];
    const known = context.sessions.get(session_id);
    const left = { session_id, command: known?.command, tty: (tty ?? known?.tty) === true };
    return context.secondEsc.onEsc(left, ctx) ?? [];
  });
  if (until_ms.length === 0) return result;
  return { ...result, details: { ...result.details, esc_until_ms: Math.max(...until_ms) } };
}
