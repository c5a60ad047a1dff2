/** A choice from a list that may be longer than the screen. */
import { SelectList, Text } from "@earendil-works/pi-tui";
import { stripControls } from "../text/safe.ts";
import type { HostContext } from "./host.ts";

/** The most rows of a list that are shown at once. */
const SHOWN_MAX = 30;
/** Lines of pi itself, and of the list's frame, that stay in sight. */
const OTHER_ROWS = 12;
const ROWS_MIN = 5;

/**
 * Lets a person choose one of `labels`; gives its place, undefined where none was chosen. In the
 * TUI the list scrolls; where there is only pi's own selector it comes in parts.
 */
export async function pick(
  ctx: HostContext,
  title: string,
  labels: string[],
): Promise<number | undefined> {
  // pi's own selector does not scroll: what is below the screen cannot be seen.
  if (ctx.mode === "tui" && typeof ctx.ui?.custom === "function") {
    return scrolling(ctx, title, labels);
  }
  for (let from = 0; from < labels.length; from += SHOWN_MAX) {
    const part = labels.slice(from, from + SHOWN_MAX);
    const left = labels.length - from - part.length;
    const more = left > 0 ? [`… ${left} more`] : [];
    const choice = await ctx.ui?.select?.(title, [...part, ...more]);
    if (choice === undefined) return undefined;
    const at = part.indexOf(choice);
    if (at >= 0) return from + at;
  }
  return undefined;
}

async function scrolling(
  ctx: HostContext,
  title: string,
  labels: string[],
): Promise<number | undefined> {
  const items = labels.map((label, at) => ({ value: String(at), label: stripControls(label) }));
  const chosen = await ctx.ui?.custom?.<number | undefined>((tui, theme, _keybindings, done) => {
    const accent = (text: string) => theme.fg("accent", text);
    const dim = (text: string) => theme.fg("dim", text);
    const listOf = (most: number, at: number) => {
      const made = new SelectList(items, most, {
        selectedPrefix: accent, selectedText: accent, description: dim, scrollInfo: dim,
        noMatch: dim,
      });
      made.setSelectedIndex(at);
      made.onSelect = ({ value }) => done(Number(value));
      made.onCancel = () => done(undefined);
      return made;
    };
    const roomOf = () => Math.max(ROWS_MIN, Math.min(SHOWN_MAX, tui.terminal.rows - OTHER_ROWS));
    let room = roomOf();
    let list = listOf(room, 0);
    const head = new Text(accent(title), 0, 0);
    const keys = new Text(dim("↑↓ move · enter chooses · esc closes"), 0, 0);
    return {
      render: (width) => {
        // The terminal may have another size by now.
        if (roomOf() !== room) {
          room = roomOf();
          list = listOf(room, Number(list.getSelectedItem()?.value ?? 0));
        }
        return [head, list, keys].flatMap((part) => part.render(width));
      },
      invalidate: () => [head, list, keys].forEach((part) => part.invalidate()),
      handleInput: (key) => {
        list.handleInput(key);
        tui.requestRender();
      },
    };
  });
  return chosen;
}
