/** A live tail: a view over pi's screen that follows the output of a session. */
import { setTimeout as delay } from "node:timers/promises";
import { DaemonGone } from "../execd/daemon.ts";
import type { LogPage } from "../execd/wire-results.ts";
import { messageOf } from "../text/values.ts";
import type { HostContext } from "./host.ts";
import type { RosterContext, Row } from "./roster.ts";
import { actions } from "./session-actions.ts";
import { TailView } from "./tail-view.ts";

/** Pause between two looks for more, also where there is more: pi has other things to do. */
const LOOK_MS = 250;
/** Every so many looks the title is made anew: it shows the age. */
const LOOKS_PER_TITLE = 4;
/** The most of a log in one look; what is further behind is passed over. */
const PAGE_BYTES = 150_000;
/** The view says that execd does not answer when it has not for so long. */
const SILENT_SECONDS = 2;
const SILENCE_TICK_MS = 500;

/** Whether this host can show one. */
export function canFollow(ctx: HostContext): boolean {
  return ctx.mode === "tui" && typeof ctx.ui?.custom === "function";
}

/** Says what a session is; undefined where execd does not remember the session any more. */
export type Describe = (sessionId: number) => Promise<Described | undefined>;

interface Described {
  title: string;
  row: Row;
}

/** All of the width, from the bottom up: the conversation goes on above it. */
const OVERLAY = { overlay: true, overlayOptions: { width: "100%", anchor: "bottom-center" } } as const;

/** Shows what a session prints, until the person closes it. */
export async function follow(
  context: RosterContext,
  ctx: HostContext,
  sessionId: number,
  describe: Describe,
): Promise<void> {
  const closed = new AbortController();
  await ctx.ui?.custom?.<undefined>((tui, theme, _keybindings, done) => {
    const draw = () => tui.requestRender();
    const view = new TailView(theme, {
      rows: () => tui.terminal.rows,
      draw,
      close: () => done(undefined),
      ...actions(context),
    });
    void read(context, view, sessionId, describe, draw, closed.signal);
    return Object.assign(view, { dispose: () => closed.abort() });
  }, OVERLAY);
  closed.abort();
}

/** Never rejects: what fails is said in the view. */
async function read(
  context: RosterContext,
  view: TailView,
  sessionId: number,
  describe: Describe,
  draw: () => void,
  closed: AbortSignal,
): Promise<void> {
  // At /new pi's session may have another one.
  const { execd } = context;
  const { starts } = execd;
  /** Why no more can come; a request would start an execd that knows nothing of the session. */
  const lost = () => {
    if (context.execd !== execd || execd.isClosed) return "pi's session has ended";
    return execd.isRunning && execd.starts === starts ? undefined : "execd was lost";
  };
  const page = (offset: number) =>
    execd.request("get_process_log", { sessionId, offset, limit: PAGE_BYTES });
  const saying = <T>(work: Promise<T>) => sayingSilence(work, view, draw, closed);
  try {
    let offset = -PAGE_BYTES;
    let hasLog = false;
    for (let look = 0; !closed.aborted; look++) {
      const why = lost();
      if (why !== undefined) throw new Error(why);
      const more = await saying(page(offset));
      const isTitleDue = look % LOOKS_PER_TITLE === 0 || more.eof;
      const described = isTitleDue ? await saying(describe(sessionId)) : undefined;
      if (described !== undefined) {
        view.title(described.title, described.row);
        hasLog = described.row.logPath !== undefined;
      }
      offset = show(view, more, offset, hasLog);
      if (more.eof) view.over("ended");
      if (!closed.aborted) draw();
      if (more.eof) return;
      // Closing ends the pause.
      await delay(LOOK_MS, undefined, { signal: closed }).catch(() => {});
    }
  } catch (error) {
    const why = error instanceof DaemonGone ? "execd was lost" : lost();
    view.over(why ?? messageOf(error));
    if (!closed.aborted) draw();
  }
}

/** Shows a page, which was asked for from `offset` on, and gives where the next one begins. */
function show(view: TailView, page: LogPage, offset: number, hasLog: boolean): number {
  const isFirst = offset < 0;
  const missed = isFirst ? 0 : page.omittedBytes ?? 0;
  if (missed > 0) view.note(`[${missed} bytes are gone]`);
  // The first line of a part of a log is broken.
  view.append(isFirst && page.offset > 0 ? page.text.replace(/^[^\n]*\n/, "") : page.text);
  const behind = page.totalBytes - page.nextOffset;
  if (behind <= PAGE_BYTES) return page.nextOffset;
  const isLogWhole = hasLog && !page.logTruncated && !page.failureMessage;
  const where = isLogWhole ? ": the log has them" : "";
  view.note(`[${behind - PAGE_BYTES} bytes passed over${where}]`);
  return page.totalBytes - PAGE_BYTES;
}

/** Says in the view for how long there has been no answer, while there is none. */
async function sayingSilence<T>(
  work: Promise<T>,
  view: TailView,
  draw: () => void,
  closed: AbortSignal,
): Promise<T> {
  const asked = performance.now();
  const timer = setInterval(() => {
    if (closed.aborted) return clearInterval(timer);
    const seconds = Math.floor((performance.now() - asked) / 1_000);
    if (seconds < SILENT_SECONDS) return;
    view.waits(`no answer for ${seconds} s`);
    draw();
  }, SILENCE_TICK_MS);
  timer.unref();
  try {
    return await work;
  } finally {
    clearInterval(timer);
    view.waits(undefined);
  }
}
