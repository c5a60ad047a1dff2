/** A live tail: a view in the place of pi's editor that follows the output of a process. */
import type { HostContext } from "./host.ts";
import type { Instance } from "./instance.ts";
import { TailView } from "./render/tail-view.ts";
import type { LogPage } from "./wire.ts";

/** Pause between two looks for more, also where there is more: pi has other things to do. */
const LOOK_MS = 250;
/** Every so many looks the title is made anew: it has the age. */
const LOOKS_PER_TITLE = 4;
/** The most of a log in one look; what is further behind is passed over. */
const PAGE_BYTES = 150_000;

/** Whether this host can show one. */
export function canFollow(ctx: HostContext): boolean {
  return ctx.mode === "tui" && typeof ctx.ui?.custom === "function";
}

/** What is said of a process; undefined where it is not remembered any more. */
export type Describe = (sessionId: number) => Promise<string | undefined>;

/** Shows what a process prints, until the person closes it. */
export async function follow(
  instance: Instance,
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
    });
    void read(instance, view, sessionId, describe, draw, closed.signal);
    return Object.assign(view, { dispose: () => closed.abort() });
  });
  closed.abort();
}

/** Never rejects: what fails is said in the view. */
async function read(
  instance: Instance,
  view: TailView,
  sessionId: number,
  describe: Describe,
  draw: () => void,
  closed: AbortSignal,
): Promise<void> {
  const page = async (offset: number) =>
    (await instance.client.request("get_process_log", { sessionId, offset, limit: PAGE_BYTES })) as
      LogPage;
  try {
    let offset = -PAGE_BYTES;
    for (let look = 0; !closed.aborted; look++) {
      const more = await page(offset);
      const isTitleDue = look % LOOKS_PER_TITLE === 0 || more.eof;
      const title = isTitleDue ? await describe(sessionId) : undefined;
      if (title !== undefined) view.title(title);
      const isFirst = offset < 0;
      const missed = isFirst ? 0 : more.omittedBytes ?? 0;
      if (missed > 0) view.note(`[${missed} bytes are gone]`);
      // The first line of a part is broken.
      const text = isFirst && more.offset > 0 ? more.text.replace(/^[^\n]*\n/, "") : more.text;
      view.append(text);
      offset = more.nextOffset;
      const behind = more.totalBytes - offset;
      if (behind > PAGE_BYTES) {
        view.note(`[${behind - PAGE_BYTES} bytes passed over: /tail and the log have them]`);
        offset = more.totalBytes - PAGE_BYTES;
      }
      if (more.eof) view.over("ended");
      if (!closed.aborted) draw();
      if (more.eof) return;
      await pause(closed);
    }
  } catch (error) {
    view.over(error instanceof Error ? error.message : String(error));
    if (!closed.aborted) draw();
  }
}

function pause(closed: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, LOOK_MS);
    closed.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}
