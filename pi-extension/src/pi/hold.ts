/**
 * Whether pi would end, with its sessions, when this run has ended; and how pi is held then. What
 * it is held for is the inbox's affair.
 */
import { stripControls } from "../text/safe.ts";
import { oneLine } from "../text/width.ts";
import type { HostContext } from "./host.ts";

/** The most of an answer that is repeated on stderr: a pipe that nobody reads takes it whole. */
const ANSWER_CHARS = 16_384;
/** The most sessions that are named as waited for, and the cells of a command. */
const NAMED_MAX = 5;
const COMMAND_CELLS = 60;

/** What is read of pi's `agent_end` event. */
export interface HoldMode {
  messages?: readonly { role: string; stopReason?: string; content?: unknown }[];
}

/** Something that pi may be held for. */
export interface Holder {
  /** Resolves when something was told, when nothing will be any more, or when `over` aborts. */
  hold(over: AbortSignal): Promise<void>;
}

/** A session that a hold waits for. */
export interface Awaited {
  id: number;
  command: string;
}

/**
 * True in print and json mode, where pi exits when it settles, unless the run failed or was
 * aborted: then nobody would answer the wake.
 */
export function holdsIn(event: HoldMode, ctx: HostContext): boolean {
  if (ctx.mode !== "json" && ctx.mode !== "print") return false;
  const last = lastAnswer(event);
  return last?.stopReason !== "error" && last?.stopReason !== "aborted";
}

/**
 * Holds pi until `holder` has done its part: at most for `holdMs`, and not beyond `stop`, the run's
 * own signal. pi 1.5 aborts that signal for SIGTERM and SIGHUP, and then waits for this function.
 */
export async function hold(
  holder: Holder,
  holdMs: number,
  stop: AbortSignal | undefined,
): Promise<"done" | "late" | "stopped"> {
  if (stop?.aborted) return "stopped";
  const over = new AbortController();
  let how: "done" | "late" | "stopped" = "done";
  const end = (why: "late" | "stopped") => {
    how = why;
    over.abort();
  };
  const onStop = () => end("stopped");
  // This timer is not unref'ed: it keeps a `pi -p` alive that has nothing else to do.
  const late = setTimeout(() => end("late"), holdMs);
  stop?.addEventListener("abort", onStop, { once: true });
  try {
    await holder.hold(over.signal);
    return how;
  } finally {
    clearTimeout(late);
    stop?.removeEventListener("abort", onStop);
  }
}

/**
 * What is said on stderr when a hold begins: in print mode the answer so far, which pi prints only
 * if it is its last; what is waited for, and how to end that.
 */
export function holdText(
  event: HoldMode,
  ctx: HostContext,
  awaited: Awaited[],
  limit: string,
): string {
  const answer = ctx.mode === "print" ? answerText(event) : "";
  const said = answer === "" ? [] : ["execd: the answer so far:", answer];
  return [
    ...said,
    `execd: waiting for ${sessionNames(awaited)}, at most ${limit}; Ctrl-C ends`,
  ].join("\n");
}

/** `#1 npm run dev, #2 npm test, 3 more` */
export function sessionNames(sessions: readonly Awaited[]): string {
  const named = sessions.slice(0, NAMED_MAX)
    .map(({ id, command }) => `#${id} ${oneLine(command, COMMAND_CELLS)}`);
  const more = sessions.length - named.length;
  return [...named, ...(more > 0 ? [`${more} more`] : [])].join(", ");
}

function answerText(event: HoldMode): string {
  const content = lastAnswer(event)?.content;
  const parts = Array.isArray(content) ? content as { type?: unknown; text?: unknown }[] : [];
  const texts = parts.filter(({ type }) => type === "text").map(({ text }) => String(text ?? ""));
  const text = stripControls(texts.join("\n")).trim();
  if (text.length <= ANSWER_CHARS) return text;
  return `${text.slice(0, ANSWER_CHARS)}\n… ${text.length - ANSWER_CHARS} more characters`;
}

function lastAnswer(event: HoldMode): NonNullable<HoldMode["messages"]>[number] | undefined {
  return event.messages?.findLast(({ role }) => role === "assistant");
}
