/** A choice among sessions: a list of its own in the TUI, pi's selector elsewhere. */
import { messageOf } from "../text/values.ts";
import { forgottenText } from "../text/figures.ts";
import type { HostContext } from "./host.ts";
import { SessionPicker } from "./picker.ts";
import { type Roster, type RosterContext, roster } from "./roster.ts";
import { actions } from "./session-actions.ts";

/** The most choices of one part, where pi's selector does not scroll. */
const PART_MAX = 30;
/** How often the list asks execd again while it is shown. */
const LOOK_MS = 1_000;

/** Lets a person choose one of `labels`, in parts; gives its place, undefined where none was chosen. */
export async function choose(
  ctx: HostContext,
  title: string,
  labels: string[],
): Promise<number | undefined> {
  for (let from = 0; from < labels.length; from += PART_MAX) {
    const part = labels.slice(from, from + PART_MAX);
    const left = labels.length - from - part.length;
    const more = left > 0 ? [`… ${left} more`] : [];
    const choice = await ctx.ui?.select?.(title, [...part, ...more]);
    if (choice === undefined) return undefined;
    const at = part.indexOf(choice);
    if (at >= 0) return from + at;
  }
  return undefined;
}

/**
 * Shows all sessions in the place of pi's editor, as they are at the moment, until it is closed;
 * gives the id of the one that is to be followed.
 */
export async function pick(
  context: RosterContext,
  ctx: HostContext,
  first: Roster,
): Promise<number | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const chosen = await ctx.ui?.custom?.<number | undefined>((tui, theme, _keys, done) => {
    const draw = () => tui.requestRender();
    const picker = new SessionPicker(theme, {
      rows: () => tui.terminal.rows,
      draw,
      close: (follow) => done(follow),
      ...actions(context),
    });
    const show = ({ rows, ...bounds }: Roster) => picker.show(rows, forgottenText(bounds));
    show(first);
    let isAsking = false;
    const look = async () => {
      // An execd that does not answer is asked once.
      if (isAsking) return;
      isAsking = true;
      try {
        show(await roster(context));
      } catch (error) {
        picker.say(messageOf(error));
      }
      isAsking = false;
      draw();
    };
    timer = setInterval(() => void look(), LOOK_MS).unref();
    return Object.assign(picker, { dispose: () => clearInterval(timer) });
  });
  clearInterval(timer);
  return chosen;
}
