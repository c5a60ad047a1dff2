/** An attached wait: one exec_command or write_stdin, from request to tool result. */
import type { Progress, WaitResult } from "../execd/wire-results.ts";
import type { Call, ToolResult } from "../pi/host.ts";
import { given } from "../text/values.ts";
import type { ToolContext } from "./context.ts";
import { outputAnswer } from "./tool.ts";
import { type News, PROGRESS_PACE, Updates } from "./updates.ts";

/** What is known of the session before execd's answer, for the progress. */
export type Known =
  Pick<WaitResult, "session_id" | "pid" | "tty" | "command" | "cwd" | "log_path">;

/**
 * Sends the request and waits. The wait ends early, and the session lives on, when `call.signal`
 * aborts (Esc) or when the user has sent a message meanwhile.
 */
export async function runWait(
  context: ToolContext,
  method: "exec_command" | "write_stdin",
  params: Record<string, unknown>,
  call: Call,
  known: Known,
): Promise<ToolResult> {
  const watch = context.steering.watch(call.ctx);
  const signal = call.signal ? AbortSignal.any([call.signal, watch.signal]) : watch.signal;
  const silent = { running: true, total_bytes: 0, output: "", ...known };
  const updates = call.onUpdate && new Updates(call.onUpdate, silent, PROGRESS_PACE);
  const live = updates && new LiveWait(context, known, updates);
  try {
    const request = live ? { ...params, stream: true } : params;
    const onNotification = live && ((_method: string, params: object) => {
      live.onProgress(params as Progress);
    });
    const reply = await context.request(method, request, { signal, onNotification });
    return waitAnswer(context, call.toolCallId, params, reply);
  } finally {
    watch.stop();
    updates?.stop();
    live?.stop();
  }
}

/**
 * What pi is shown of a wait: the newest progress, with what execd's notifications have told of the
 * session. The first progress comes with the first output, which may be all for a long time, and
 * execd may not have heard yet then that the session's log exists; `session_started`, 150 ms later,
 * names the log and the directory.
 */
class LiveWait {
  readonly #context: ToolContext;
  readonly #updates: Updates;
  readonly #stopExpecting: () => void;
  #id: number | undefined;
  #newest: News = {};

  /** Shows which session is waited for, as soon as that is known: the first update has its id. */
  constructor(context: ToolContext, known: Known, updates: Updates) {
    this.#context = context;
    this.#updates = updates;
    this.#id = known.session_id;
    const told = ({ session_id }: { session_id: number }) => {
      this.#id ??= session_id;
      this.#show();
    };
    this.#stopExpecting = this.#id === undefined
      ? context.sessions.expect(known.command, told)
      : () => {};
    if (this.#id !== undefined) this.#show();
  }

  onProgress(progress: Progress): void {
    const { request_id: _, elapsed_ms: __, tail, ...fields } = progress;
    this.#id = fields.session_id ?? this.#id;
    this.#context.sessions.noteLog(this.#id, fields.log_path);
    this.#newest = { ...fields, output: tail };
    this.#show();
  }

  stop(): void {
    this.#stopExpecting();
  }

  #show(): void {
    this.#updates.show(() => ({ ...this.#session(), ...this.#newest }));
  }

  #session(): News {
    const session = this.#id === undefined ? undefined : this.#context.sessions.get(this.#id);
    if (!session) return {};
    const { command: _, startedAtMs: __, ...facts } = session;
    return facts;
  }
}

/** Makes the tool result, and does what the reply asks for: notices and wakes. */
function waitAnswer(
  context: ToolContext,
  toolCallId: string,
  params: Record<string, unknown>,
  reply: WaitResult,
): ToolResult {
  // The call's arguments have the command; a poll need not store it again.
  const { header = "", footer, output = "", command: _, ...details } = reply;
  if (reply.warning !== undefined) context.ui.warn(reply.warning);
  trackWake(context, toolCallId, params, reply);
  const said = [...(output ? [] : ["(no output)"]), ...(footer ? [`\n\n${footer}`] : [])];
  return outputAnswer({ head: `${header}\n---\n`, output, foot: said.join("") }, details);
}

function trackWake(
  context: ToolContext,
  toolCallId: string,
  params: Record<string, unknown>,
  reply: WaitResult,
): void {
  const { session_id, completion_notification, completion_delivery, on_exit_wake } = reply;
  context.execd.noteSessionId(session_id);
  context.sessions.noteLog(session_id, reply.log_path);
  if (session_id !== undefined) {
    if (completion_notification === "armed") context.wakes.arm(session_id);
    return;
  }
  if (completion_delivery !== "direct" && on_exit_wake !== "consumed") {
    context.wakes.onRead(toolCallId, Number(params.session_id));
    return;
  }
  const { exit_code, signal, command, cwd, log_path } = reply;
  const id = params.session_id as number | undefined;
  const ended = given({ session_id: id, exit_code, signal, command, cwd, log_path });
  context.wakes.onDirect(toolCallId, ended);
}
