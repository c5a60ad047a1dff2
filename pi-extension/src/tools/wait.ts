/** An attached wait: one exec_command or write_stdin, from request to tool result. */
import type { Progress, WaitResult } from "../execd/wire-results.ts";
import type { Call, ToolResult } from "../pi/host.ts";
import type { OwnEnd } from "../pi/wakes.ts";
import { forPeople } from "../text/session.ts";
import { given } from "../text/values.ts";
import type { ToolContext } from "./context.ts";
import { asModelsRead, besides, ownEnd } from "./ends.ts";
import { afterEsc } from "./esc.ts";
import { withShown } from "./failures.ts";
import { outputAnswer } from "./tool.ts";
import { type News, Updates, paceOf } from "./updates.ts";

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
  const updates = call.onUpdate && new Updates(call.onUpdate, silent, paceOf(context.settings));
  const live = updates && new LiveWait(context, known, updates);
  let first: WaitResult | undefined;
  try {
    const secret = context.secrets.wanted && { until_password: true };
    const more = { ...asModelsRead(context), ...(live && { stream: true }), ...secret };
    const onNotification = live && ((_method: string, params: object) => {
      live.onProgress(params as Progress);
    });
    const onLate = (late: WaitResult) => {
      context.wakes.onUntold(ownEnds(params, late), late.events);
    };
    const whyCancelled = () => cancelWords(context, call);
    const options = { signal, onNotification, onLate, whyCancelled };
    first = await context.request(method, { ...params, ...more }, options);
    const goOn = (rest: object, until: AbortSignal) =>
      context.request("write_stdin", { ...rest, ...more }, { ...options, signal: until });
    const { reply, said } = await context.secrets.attend(first, { ctx: call.ctx, signal, params, goOn });
    const of = first.session_id === undefined ? params : { ...params, session_id: first.session_id };
    const result = waitAnswer(context, call.toolCallId, of, reply, said);
    return afterEsc(context, call, [reply], result);
  } catch (error) {
    // A wait that stopped for a password has been answered once.
    const { output, log_path } = first ?? {};
    throw withShown(error, { ...updates?.shown, ...given({ output, log_path }) });
  } finally {
    watch.stop();
    updates?.stop();
    live?.stop();
  }
}

/** Why a wait is cancelled at this moment, as the model reads it. */
export function cancelWords({ execd }: ToolContext, { signal }: Call): string {
  if (execd.isClosed) return "pi is shutting down";
  return signal?.aborted === true ? "the user pressed Esc" : "a message from the user came";
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
  saidOfPasswords: string,
): ToolResult {
  // The call's arguments have the command; a poll need not store it again.
  const { header = "", footer, output = "", command: _, events, ...details } = reply;
  if (reply.warning !== undefined) context.ui.warn(forPeople(reply.warning));
  noteSession(context, reply);
  const told = besides(context, toolCallId, ownEnds(params, reply), events);
  const said = [...(output ? [] : ["(no output)"]), ...(footer ? [`\n\n${footer}`] : [])];
  const head = `${told.without(header)}${saidOfPasswords}${told.lines}\n---\n`;
  return outputAnswer({ head, output, foot: said.join("") }, { ...details, ...told.details });
}

function noteSession(context: ToolContext, reply: WaitResult): void {
  const { session_id } = reply;
  context.execd.noteSessionId(session_id);
  context.sessions.noteLog(session_id, reply.log_path);
  if (session_id === undefined) return;
  context.wakes.name(session_id);
  if (reply.completion_notification === "armed") context.wakes.arm(session_id);
}

/** The end that the reply tells, of the session that it is about. */
function ownEnds(params: Record<string, unknown>, reply: WaitResult): OwnEnd[] {
  const { session_id, completion_delivery, on_exit_wake } = reply;
  if (session_id !== undefined) return [];
  const woke = completion_delivery === "direct" || on_exit_wake === "consumed";
  return ownEnd({ ...reply, session_id: params.session_id }, woke);
}
