/** How the calls of all tools are drawn: one text, and a clock while nothing has come back. */
import type { Fields } from "./fields.ts";
import { fieldsOf } from "./fields.ts";
import type { Block, RenderCall, RowContext, Span } from "./row.ts";
import { reuse, span } from "./row.ts";
import { formatSeconds } from "./safe.ts";
import { elapsedMs, keepTicking, rowState, startTicker } from "./state.ts";

/** The most of a command that is drawn: some models write whole files into one. */
export const MAX_COMMAND_CHARS = 32 * 1024;

/** A call that has no result yet says so after this time; most are faster, and would flicker. */
const SILENCE_MS = 500;

/** Makes a renderer of a function that gives the call's text for arguments in any state. */
export function call(spans: (args: Fields, context: RowContext) => Span[]): RenderCall {
  return (args, theme, context) => {
    const row = reuse(context.lastComponent);
    const state = rowState(context);
    const waits = context.executionStarted && context.isPartial && !state.settled;
    const draw = (): void => {
      const waiting = waits && !state.hasResult;
      const blocks: Block[] = [{ kind: "text", spans: spans(fieldsOf(args), context) }];
      if (waiting) blocks.push(...waitingBlocks(elapsedMs(state)));
      row.show(blocks, theme, waiting ? keepTicking(state, context) : undefined);
    };
    state.redrawCall = draw;
    if (waits) startTicker(state, context);
    draw();
    return row;
  };
}

/** A silent command sends nothing that a result could be drawn from; its row shows life here. */
function waitingBlocks(ms: number): Block[] {
  if (ms < SILENCE_MS) return [];
  const text = `elapsed ${formatSeconds(ms)}`;
  return [{ kind: "gap" }, { kind: "text", spans: [span(text, "muted")] }];
}

/** Takes the command of a call, in any state, and gives `$ command`. */
export function commandSpans(cmd: unknown): Span[] {
  if (cmd === undefined || cmd === null || cmd === "") {
    return [title("$ "), span("…", "toolOutput")];
  }
  if (typeof cmd !== "string") return [title("$ "), span("[invalid arg]", "error")];
  const over = cmd.length - MAX_COMMAND_CHARS;
  const shown = title(`$ ${cmd.slice(0, MAX_COMMAND_CHARS).trim()}`);
  return over > 0 ? [shown, span(`… ${over} more characters`, "muted")] : [shown];
}

/** Takes text and gives it as the title of a row. */
export function title(text: string): Span {
  return span(text, "toolTitle", true);
}

/** Takes notes and gives those that are there as ` (yield 2.5s · tty)`; nothing for none. */
export function asides(notes: (string | undefined)[]): Span[] {
  const told = notes.filter((note) => note !== undefined);
  return told.length === 0 ? [] : [span(` (${told.join(" · ")})`, "muted")];
}
