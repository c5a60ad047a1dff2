/** An attached wait: one exec_command or write_stdin, from request to tool result. */
import type { Call, ToolResult } from "../host.ts";
import type { Instance } from "../instance.ts";
import type { Progress, ProgressDetails, WaitResult } from "../wire.ts";

/** What is known of the session before execd's answer, for the progress. */
export type Known = Partial<ProgressDetails>;

/**
 * Sends the request and waits. It ends early, and the session lives on, when `call.signal` aborts
 * (Esc) or when the user has sent a message meanwhile.
 */
export async function runWait(
  instance: Instance,
  method: string,
  params: Record<string, unknown>,
  call: Call,
  known: Known,
): Promise<ToolResult> {
  const watch = instance.steering.watch(call.ctx);
  const signal = call.signal ? AbortSignal.any([call.signal, watch.signal]) : watch.signal;
  const show = shower(call, known);
  try {
    show?.(known);
    const request = show ? { ...params, stream: true } : params;
    const onProgress = show && ((progress: unknown) => show(fromProgress(progress as Progress)));
    const reply = await instance.request(method, request, { ...call, signal, onProgress });
    return waitAnswer(instance, call.toolCallId, params, reply as WaitResult);
  } finally {
    watch.stop();
  }
}

/** Tells pi what is new; the tail of the output is all that is held here. */
function shower(call: Call, known: Known): ((news: Known) => void) | undefined {
  const { onUpdate } = call;
  if (!onUpdate) return undefined;
  return (news) => {
    const details = { running: true, total_bytes: 0, output: "", ...known, ...news };
    const content = details.output ? [{ type: "text" as const, text: details.output }] : [];
    try {
      onUpdate({ content, details });
    } catch {
      // A host that cannot draw must not end the wait.
    }
  };
}

function fromProgress({ request_id: _, elapsed_ms: __, tail, ...fields }: Progress): Known {
  return { ...fields, output: tail };
}

/** Makes the tool result, and does what the reply asks for: notices and wakes. */
function waitAnswer(
  instance: Instance,
  toolCallId: string,
  params: Record<string, unknown>,
  reply: WaitResult,
): ToolResult {
  const { header = "", footer, ...details } = reply;
  if (reply.warning !== undefined) instance.ui.warn(reply.warning);
  trackWake(instance, toolCallId, params, reply);
  const output = reply.output || "(no output)";
  const text = `${header}\n---\n${output}${footer ? `\n\n${footer}` : ""}`;
  return { content: [{ type: "text", text }], details };
}

function trackWake(
  instance: Instance,
  toolCallId: string,
  params: Record<string, unknown>,
  reply: WaitResult,
): void {
  const { session_id, completion_notification, completion_delivery, on_exit_wake } = reply;
  if (session_id !== undefined) {
    if (completion_notification === "armed") instance.armWake(session_id);
    return;
  }
  if (completion_delivery !== "direct" && on_exit_wake !== "consumed") return;
  const { exit_code, signal, command, cwd, log_path } = reply;
  const facts = { session_id: params.session_id, exit_code, signal, command, cwd, log_path };
  const ended = Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
  instance.wakes.onDirect(toolCallId, ended);
}
