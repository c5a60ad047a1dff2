/** wait_for: one wait for several sessions, from request to tool result. */
import type { WaitForResult, WaitForRow } from "../execd/wire-results.ts";
import type { Call, ToolResult } from "../pi/host.ts";
import type { OwnEnd } from "../pi/wakes.ts";
import type { ToolContext } from "./context.ts";
import { asModelsRead, besides, ownEnd } from "./ends.ts";
import { afterEsc } from "./esc.ts";
import { type Params, answer } from "./tool.ts";
import { cancelWords } from "./wait.ts";

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
  const onLate = (late: WaitForResult) => {
    context.wakes.onUntold(late.sessions.flatMap((row) => endOf(row, armed)), late.events);
  };
  try {
    const whyCancelled = () => cancelWords(context, call);
    const more = asModelsRead(context);
    const goOn = (rest: object) => context.request(
      "wait_for", { ...params, ...rest, ...more }, { signal, onLate, whyCancelled },
    );
    const stopped = { ctx: call.ctx, signal, params, goOn };
    const { reply, said: asked } = await context.secrets.attendAll(stopped);
    for (const { session_id } of reply.sessions) context.execd.noteSessionId(session_id);
    const { text, sessions, events, ...details } = reply;
    const ends = sessions.flatMap((row) => endOf(row, armed));
    const told = besides(context, call.toolCallId, ends, events);
    const [head = "", ...others] = told.without(text).split("\n");
    // The text has the output; pi's session file need not keep it twice.
    const rows = sessions.map(({ output: _, footer: __, ...row }) => row);
    const said = [`${head}${asked}${told.lines}`, ...others].join("\n");
    const result = answer(said, { ...details, sessions: rows, ...told.details });
    const runs = ({ session_id: id }: WaitForRow) => context.sessions.get(id) !== undefined;
    return afterEsc(context, call, sessions.filter(runs), result);
  } finally {
    watch.stop();
  }
}

/** The end that a row tells; a row with output tells it, also of what printed nothing. */
function endOf(row: WaitForRow, armed: ReadonlySet<number>): OwnEnd[] {
  return row.output === undefined ? [] : ownEnd({ ...row }, armed.has(row.session_id));
}
