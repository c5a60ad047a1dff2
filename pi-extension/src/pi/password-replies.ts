/**
 * The replies of waits that stopped for a password, as the model is to read them: what it did not
 * ask for did not come true, and figures are those of what it asked for (docs: pi.md, Secrets).
 */
import type { WaitForResult, WaitForRow, WaitReport, WaitResult } from "../execd/wire-results.ts";
import { given, isObject } from "../text/values.ts";

/** Of the output before a password the result of its call has so much. */
const EARLIER_CHARS = 50_000;
/** The shortest wait that a poll goes on with. */
const LEAST_MS = 50;
/** execd's least for a poll (docs: protocol.md, write_stdin): a shorter one is ended from here. */
const LEAST_POLL_MS = 5_000;
const CLAMPED = /(?:^|; )(?:yield_time_ms|timeout_ms) was -?\d+, the (?:least|most) is \d+$/;

type Params = Readonly<Record<string, unknown>>;

/** Whether a call's own conditions come true when a password is asked for. */
function asksForIt({ until, stop }: Params): boolean {
  return [until, stop].some((one) =>
    isObject(one) && (one.input === true || one.input === "password"));
}

function isOurs(wait: WaitReport | undefined, params: Params): boolean {
  return wait?.outcome === "matched" && wait.by === "input"
    && wait.state === "waiting_for_password" && !asksForIt(params);
}

/** Takes a reply, and gives it without a match that only the extension has asked for. */
export function withoutOurs(reply: WaitResult, params: Params): WaitResult {
  if (!isOurs(reply.wait, params)) return reply;
  const { wait: _, wait_status: __, header, ...others } = reply;
  return { ...others, ...given({ header: header?.replace(/\nwait: matched [^\n]*/, "") }) };
}

/** The same of a wait for several sessions, which then says why it has ended. */
export function withoutOursOfAll(reply: WaitForResult, params: Params): WaitForResult {
  if (!isOurs(reply.wait, params)) return reply;
  const { session_id } = reply.wait;
  const why = "a password is asked for";
  const of = session_id === undefined ? "" : ` (session ${session_id})`;
  const text = reply.text
    .replace(/^wait: [^\n]*/, `wait: cancelled (${why})${of}`)
    .replace(/^(session \d+: [^\n]*) — matched$/gm, "$1 — pending")
    .replace(/^wait: matched [^\n]*\n?/gm, "");
  const sessions = reply.sessions.map((row): WaitForRow => {
    if (!isOurs(row.wait, params)) return row;
    const { wait: _, ...others } = row;
    return { ...others, outcome: "pending" };
  });
  const wait: WaitReport = { outcome: "cancelled", why, ...given({ session_id }) };
  return { ...reply, text, sessions, wait };
}

/** How a wait goes on: the params of the poll, and when it is to be ended from here. */
export interface Rest {
  params: object;
  endsAfterMs?: number;
}

/** The poll that waits on for what a wait was asked for, so long. */
export function restOf(params: Params, reply: WaitResult, leftMs: number): Rest {
  const { until, stop, on_impossible, raw_output, yield_until, max_empty_poll_ms } = params;
  const asked = {
    session_id: reply.session_id,
    ...given({ until, stop, on_impossible, raw_output, yield_until, max_empty_poll_ms }),
  };
  if (yield_until !== undefined) return { params: asked };
  const yield_time_ms = Math.max(leftMs, LEAST_POLL_MS);
  return {
    params: { ...asked, yield_time_ms },
    ...(leftMs < LEAST_POLL_MS && { endsAfterMs: Math.max(leftMs, LEAST_MS) }),
  };
}

/**
 * The result of a wait that went on behind a password: all that it has printed, and all events.
 * Times are those of the whole wait. `isTimedOut`: it was ended from here when its time was over.
 */
export function joined(
  before: WaitResult,
  after: WaitResult,
  { params, isTimedOut }: { params: Params; isTimedOut: boolean },
): WaitResult {
  const output = `${before.output ?? ""}`.slice(-EARLIER_CHARS) + (after.output ?? "");
  const events = [...(before.events ?? []), ...(after.events ?? [])];
  const { yield_time_ms = 0, effective_wait_ms = 0 } = before;
  const waitedMs = effective_wait_ms + (after.effective_wait_ms ?? 0);
  const whole = { ...after, output, ...(events.length > 0 && { events }) };
  if (params.yield_until !== undefined) return whole;
  const asksMore = params.until !== undefined || params.stop !== undefined;
  const wait = after.wait && {
    ...after.wait,
    ...(isTimedOut && { outcome: "deadline" as const }),
    ...(after.wait.effective_timeout_ms !== undefined && { effective_timeout_ms: yield_time_ms }),
  };
  if (isTimedOut && wait) delete wait.why;
  const clamped = CLAMPED.exec(before.note ?? "")?.[0].replace(/^; /, "");
  const note = [after.note?.replace(CLAMPED, ""), clamped].filter(Boolean).join("; ");
  const deadline = asksMore ? `\nwait: deadline after ${yield_time_ms} ms` : "";
  const ended = isTimedOut ? /\nwait_status: cancelled[^\n]*/ : /\nwait: deadline after \d+ ms/;
  const header = noted(after.header, after.note, note)?.replace(ended, () => deadline);
  const { note: _, ...others } = whole;
  const timed = { ...others, yield_time_ms, effective_wait_ms: waitedMs };
  const told = { ...timed, ...given({ header, wait }), ...(note && { note }) };
  if (!isTimedOut) return told;
  return { ...told, wait_status: "relative_deadline_reached", ...{ wait_reason: undefined } };
}

/** A header with this note in the place of the one that it has. */
function noted(
  header: string | undefined,
  old: string | undefined,
  note: string,
): string | undefined {
  const line = note === "" ? "" : `\nnote: ${note}`;
  if (old !== undefined) return header?.replace(/\nnote: [^\n]*/, () => line);
  // It stands below the line of the session, which is the second one.
  return header?.replace(/^[^\n]*\n[^\n]*/, (first) => `${first}${line}`);
}

/** The reply of a wait for several sessions with the times of its first request. */
export function withTimeOf(first: WaitForResult, reply: WaitForResult): WaitForResult {
  const ms = first.wait.effective_timeout_ms;
  if (first === reply || ms === undefined) return reply;
  const inTime = (wait: WaitReport): WaitReport =>
    wait.effective_timeout_ms === undefined ? wait : { ...wait, effective_timeout_ms: ms };
  const late = `wait: deadline after ${reply.wait.effective_timeout_ms} ms`;
  const text = reply.text.split("\n")
    .map((line) => line.startsWith(late) ? line.replace(/\d+/, String(ms)) : line).join("\n");
  const sessions = reply.sessions.map((row) =>
    row.wait === undefined ? row : { ...row, wait: inTime(row.wait) });
  const clamped = CLAMPED.exec(first.note ?? "")?.[0].replace(/^; /, "");
  if (clamped === undefined) return { ...reply, text, sessions, wait: inTime(reply.wait) };
  const [head = "", ...others] = text.split("\n");
  const noted = [head, `note: ${clamped}`, ...others].join("\n");
  return { ...reply, text: noted, note: clamped, sessions, wait: inTime(reply.wait) };
}
