/** What the results of all tools have in common: the clock, thrown errors, the call's slot. */
import type { ThemeColor } from "@earendil-works/pi-coding-agent";
import type { Body } from "./body.ts";
import { PREVIEW_LINES, bodyBlocks, clipped } from "./body.ts";
import type { Fields } from "./fields.ts";
import { arrayOf, fieldsOf, partOf, stringOf } from "./fields.ts";
import type { Block, RenderResult, RowContext, Span } from "./row.ts";
import { expandHint, reuse, span } from "./row.ts";
import { formatSeconds, oneLine } from "./safe.ts";
import type { RowState } from "./state.ts";
import { elapsedMs, keepTicking, rowState, settle, startTicker } from "./state.ts";

/** The fields of a wire type, as nobody has checked them. */
export type Unchecked<T> = { readonly [K in keyof T]?: unknown };

/** What a result's drawing may look at. */
export interface Drawing {
  details: Fields;
  /** The result's text, as the model got it. */
  text: string;
  expanded: boolean;
  /** Still running, and no error. */
  partial: boolean;
  context: RowContext;
  state: RowState;
}

/** The visual lines of an error's text while collapsed; its beginning says what is wrong. */
const ERROR_LINES = 10;

/** The cells of a command in a list while collapsed, before the line is cut at the width. */
export const LIST_CELLS = 300;

/** Makes a renderer of a function that gives the blocks of a result; time and errors are here. */
export function result(blocks: (drawing: Drawing) => Block[]): RenderResult {
  return (given, options, theme, context) => {
    const state = rowState(context);
    const partial = options.isPartial && !context.isError && !state.settled;
    if (partial) startTicker(state, context);
    else settle(state);
    const { details: told, content } = fieldsOf(given);
    const details = fieldsOf(told);
    tellCall(state, details);
    const text = contentText(content);
    const drawing = { details, text, expanded: options.expanded, partial, context, state };
    const failed = context.isError && Object.keys(details).length === 0;
    const shown = failed ? errorBlocks(drawing) : blocks(drawing);
    const row = reuse(context.lastComponent);
    return row.show(shown, theme, partial ? keepTicking(state, context) : undefined);
  };
}

/** The call's slot was drawn before this one and learns here where the command really runs. */
function tellCall(state: RowState, details: Fields): void {
  const cwd = stringOf(details.cwd);
  if (state.hasResult && (cwd === undefined || cwd === state.cwd)) return;
  state.hasResult = true;
  if (cwd !== undefined) state.cwd = clipped(cwd);
  state.redrawCall?.();
}

/** Takes the content of a result, in any shape, and gives its text. */
export function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  const texts = arrayOf(content).map((item) => stringOf(fieldsOf(item).text));
  return texts.filter((text) => text !== undefined).join("\n");
}

/** The output that stands in the model's text, where the details tell its place. */
export function toldOutput({ details, text }: Drawing): string | undefined {
  return partOf(text, details.output_at);
}

/** A thrown error leaves nothing but its message. */
function errorBlocks({ text, expanded, context }: Drawing): Block[] {
  const body: Body = {
    output: text,
    outputTone: "error",
    keep: "start",
    previewLines: ERROR_LINES,
  };
  return bodyBlocks(body, expanded, context);
}

/** Takes any text and gives it as the one line of a result. */
export function oneLineBlocks(text: string, tone: ThemeColor): Block[] {
  const words = oneLine(text, LIST_CELLS);
  return words === "" ? [] : [{ kind: "gap" }, line([span(words, tone)])];
}

/**
 * Takes the blocks of a list's entries, what one and several of them are called and the drawing,
 * and gives the list: a few entries while collapsed, and how many more there are.
 */
export function listed(
  entries: Block[][],
  [one, several]: [string, string],
  { expanded, context }: Pick<Drawing, "expanded" | "context">,
): Block[] {
  const shown = expanded ? entries : entries.slice(0, PREVIEW_LINES);
  const blocks: Block[] = [{ kind: "gap" }, ...shown.flat()];
  const hidden = entries.length - shown.length;
  if (hidden === 0) return blocks;
  const what = hidden === 1 ? one : several;
  const more = muted(`… ${hidden} more ${what} (${expandHint(context)})`);
  return [...blocks, { kind: "cut", spans: [more] }];
}

/** Takes a running row and gives `elapsed 1.3s`. */
export function elapsedPart({ state }: Drawing): Span {
  return muted(`elapsed ${formatSeconds(elapsedMs(state))}`);
}

/** Takes spans and gives a line that wraps. */
export function line(spans: Span[]): Block {
  return { kind: "text", spans };
}

/** Takes text and gives it in the colour of what matters less. */
export function muted(text: string): Span {
  return span(text, "muted");
}
