/** wait_for: one wait for several sessions, from request to tool result. */
import type { WaitForRow } from "../execd/wire-results.ts";
import type { Call, ToolResult } from "../pi/host.ts";
import type { Ended } from "../pi/wakes.ts";
import { given } from "../text/values.ts";
import type { ToolContext } from "./context.ts";
import { type Params, answer } from "./tool.ts";

/**
 * Sends the request and waits. Esc and a message of the user end the wait, and no session. An end
 * that the reply tells is not told again by a wake.
 */
export async function waitFor(
  context: ToolContext,
  params: Params,
  call: Call,
): Promise<ToolResult> {
  const watch = context.steering.watch(call.ctx);
  const signal = call.signal ? AbortSignal.any([call.signal, watch.signal]) : watch.signal;
  const armed = new Set(context.wakes.armed);
  try {
    const reply = await context.request("wait_for", params, { signal });
    for (const { session_id } of reply.sessions) context.execd.noteSessionId(session_id);
    const ends = reply.sessions.flatMap(endOf);
    context.wakes.onReadAll(call.toolCallId, ends, (id) => armed.has(id));
    const { text, sessions, ...details } = reply;
    // The text has the output; pi's session file need not keep it twice.
    const rows = sessions.map(({ output: _, footer: __, ...row }) => row);
    return answer(text, { ...details, sessions: rows });
  } finally {
    watch.stop();
  }
}

/** The end that a row tells; a row with output tells it, also of what printed nothing. */
function endOf({ session_id, exit_code, signal, command, log_path, output }: WaitForRow): Ended[] {
  if (output === undefined || (exit_code ?? signal) === undefined) return [];
  return [given({ session_id, exit_code, signal, command, log_path })];
}
