/** An attached wait of the stream tools: one bash_stream or poll_process, up to its reply. */
import { setTimeout as delay } from "node:timers/promises";
import { throwIfCancelled } from "../execd/client.ts";
import type { RequestOptions } from "../execd/daemon.ts";
import type { RunningSession } from "../execd/sessions.ts";
import type { ChunkNote, PasswordAsked, StreamReport } from "../execd/wire-results.ts";
import type { Call } from "../pi/host.ts";
import { given } from "../text/values.ts";
import type { ToolContext } from "./context.ts";
import { withShown } from "./failures.ts";
import { LiveTail } from "./live-tail.ts";
import { Passwords } from "./passwords.ts";
import { type Params } from "./tool.ts";
import { type News, Updates, paceOf } from "./updates.ts";

/** Esc is answered within a second, whatever becomes of the processes. */
const ESC_ANSWER_MS = 700;
/**
 * By then a kill has worked; a process that it has not ended is beyond signals and is not waited
 * for.
 */
const ESC_KILL_MS = 500;

const UNANSWERED = "execd has not answered since Esc was pressed; list_processes shows whether "
  + "the command goes on";

/** What a wait came to. */
export interface Waited extends StreamReport {
  /** The user pressed Esc: the session was ended, with all its processes. */
  aborted?: true;
  /** A message of the user ended the wait, and nothing else. */
  interrupted?: true;
  /** How long bash_stream waited before it yielded. */
  waitedMs?: number;
  /** What came of a password that was asked for. */
  password?: string;
}

/**
 * Sends the request and waits. `known` are the details that are known before anything has come.
 * Esc ends the session, as pi's own bash ends its command; a message of the user ends only the
 * wait.
 */
export async function runStreamWait(
  context: ToolContext,
  method: "bash_stream" | "poll_process",
  params: Params,
  call: Call,
  known: News,
): Promise<Waited> {
  throwIfCancelled(call.signal);
  const watch = context.steering.watch(call.ctx);
  const signal = call.signal ? AbortSignal.any([call.signal, watch.signal]) : watch.signal;
  const silent = { status: "running", output: "", ...known };
  const updates = call.onUpdate && new Updates(call.onUpdate, silent, paceOf(context.settings));
  const live = new LiveTail();
  let liveEnded: true | undefined;
  const startedMs = performance.now();
  let sessionId = typeof params.sessionId === "number" ? params.sessionId : undefined;
  let session: RunningSession | undefined;
  const show = (id = sessionId) => {
    session = id === undefined ? undefined : context.sessions.get(id) ?? session;
    const ended = given({ liveEnded });
    updates?.show(() => ({ ...sessionFields(context, id), output: live.text, ...ended }));
  };
  // The first update says which session it is, also of a command that is silent. Only what is about
  // this request names the one that Esc ends.
  const stopExpecting = sessionId === undefined
    ? context.sessions.expect(params.command, ({ session_id }) => show(sessionId ?? session_id))
    : () => {};
  const asking = new Passwords(context, call, signal, false);
  // execd knows which session that is polled has a terminal.
  const isInTerminal = method === "poll_process" || params.stdinMode === "pty";
  // A poll that ends what has not ended in its time keeps that time: a password that nobody gives
  // would end the poll as cancelled, and a poll that is cancelled kills nothing.
  const asks = isInTerminal && params.killIf === undefined;
  const request = { ...params, ...(asks && asking.params) };
  const onNotification = (name: string, note: Partial<ChunkNote>) => {
    if (name === "password_asked") return asking.onAsked(note as PasswordAsked);
    sessionId = note.sessionId ?? sessionId;
    if (typeof note.chunk === "string") live.push(note.chunk);
    if (name === "tool_execution_truncated") liveEnded = true;
    show();
    context.host.events?.emit?.(name, { toolCallId: call.toolCallId, ...note });
  };
  try {
    if (sessionId !== undefined) show();
    const options = { ...asking.options, onNotification };
    const reply = requestReport(context, method, request, options);
    const ended: Waited = call.signal
      ? await endedByEsc(context, reply, call.signal, () => sessionId)
      : await reply;
    const password = await asking.said();
    const waited = password === undefined ? ended : { ...ended, password };
    if (waited.status !== "running" || waited.aborted) return waited;
    const waitedMs = Math.round(performance.now() - startedMs);
    return {
      ...waited,
      ...(method === "bash_stream" && { waitedMs }),
      ...(watch.signal.aborted && { interrupted: true }),
    };
  } catch (error) {
    // execd may have told of the log after the last update.
    throw withShown(error, { ...given({ logPath: session?.log_path }), ...updates?.shown });
  } finally {
    await asking.end();
    watch.stop();
    updates?.stop();
    stopExpecting();
  }
}

/** What execd's notifications have told of a session, as details. */
export function sessionFields(context: ToolContext, sessionId: number | undefined): News {
  if (sessionId === undefined) return {};
  const { pid, command, cwd, log_path: logPath } = context.sessions.get(sessionId) ?? {};
  const far = logPath !== undefined && context.execd.isRemote ? true : undefined;
  return { sessionId, ...given({ pid, command, cwd, logPath, far }) };
}

/**
 * Gives the reply; after Esc the final report of the session, which is ended. What Esc asks for is
 * done also where it takes longer than the answer may.
 */
async function endedByEsc(
  context: ToolContext,
  reply: Promise<StreamReport>,
  esc: AbortSignal,
  sessionId: () => number | undefined,
): Promise<Waited> {
  const escaped = whenAborted(esc);
  try {
    const first = await Promise.race([reply, escaped.promise]);
    if (first && !(esc.aborted && first.status === "running")) return first;
  } finally {
    escaped.forget();
  }
  const ended = endSession(context, reply, sessionId);
  // Nobody may be waiting for this any more when it fails.
  ended.catch(() => {});
  const report = await Promise.race([ended, delay(ESC_ANSWER_MS, undefined, { ref: false })]);
  if (report) return { ...report, aborted: true };
  const id = sessionId();
  if (id === undefined) throw new Error(UNANSWERED);
  return { status: "running", sessionId: id, aborted: true };
}

/** Ends the session of a wait that was cancelled; its id may be known from the reply only. */
async function endSession(
  context: ToolContext,
  reply: Promise<StreamReport>,
  sessionId: () => number | undefined,
): Promise<StreamReport> {
  const known = sessionId();
  const before = known === undefined ? await reply : undefined;
  const id = known ?? before?.sessionId;
  if (id === undefined || (before && before.status !== "running")) return reply;
  const signal = AbortSignal.timeout(ESC_KILL_MS);
  return requestReport(context, "kill_process", { sessionId: id }, { signal });
}

/** A request whose reply is a report of one session. */
export function requestReport(
  context: ToolContext,
  method: "bash_stream" | "poll_process" | "kill_process",
  params: Params,
  options: RequestOptions,
): Promise<StreamReport> {
  return context.request(method, params, options);
}

function whenAborted(signal: AbortSignal): { promise: Promise<undefined>; forget(): void } {
  let abort = () => {};
  const promise = new Promise<undefined>((resolve) => {
    abort = () => resolve(undefined);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
  return { promise, forget: () => signal.removeEventListener("abort", abort) };
}
