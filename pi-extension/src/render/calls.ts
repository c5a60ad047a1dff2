/**
 * How the calls of all tools are drawn: one text, and a clock while nothing has come back. Which
 * words a call consists of is the family's; the words that more than one family has are here.
 */
import { formatSeconds } from "../text/figures.ts";
import { idWords } from "../text/session.ts";
import { conditionWords } from "../text/waits.ts";
import { type Fields, fieldsOf, labelOf } from "./fields.ts";
import { type Block, type RenderCall, type RowContext, type Span, reuse, span } from "./row.ts";
import { elapsedMs, frameOf, keepTicking, rowState, startTicker } from "./state.ts";
import { type CallText, muted, timeFact } from "./view.ts";

/** The most of a command that is drawn: some models write whole files into one. */
const MAX_COMMAND_CHARS = 32 * 1024;

/** A call that has no result yet says so after this time; most are faster, and would flicker. */
const SILENCE_MS = 500;

/**
 * Makes a renderer of a function that gives the call's text. `hasClock`: the seconds stand in the
 * call's own line, from the first one on; else below it. `isFramed`: the renderers of the tool draw
 * the row's frame.
 */
export function call(text: CallText, { hasClock = false, isFramed = false } = {}): RenderCall {
  return (args, theme, context) => {
    const row = reuse(context.lastComponent);
    const state = rowState(context);
    if (isFramed) row.within(frameOf(context, state, "call"));
    const waits = context.executionStarted && context.isPartial && !state.settled;
    const draw = (): void => {
      const waiting = waits && !state.hasResult;
      const clock = waiting && hasClock ? [muted(` · ${formatSeconds(elapsedMs(state))}`)] : [];
      const spans = [...text(fieldsOf(args), context), ...clock];
      const blocks: Block[] = [{ kind: "text", spans }];
      if (waiting && !hasClock) blocks.push(...waitingBlocks(elapsedMs(state)));
      row.show(blocks, theme, waiting ? keepTicking(state, context) : undefined);
    };
    state.redrawCall = draw;
    if (waits) startTicker(state, context);
    draw();
    return row;
  };
}

/** A silent command sends nothing that a result could be drawn from: its call shows life. */
function waitingBlocks(ms: number): Block[] {
  if (ms < SILENCE_MS) return [];
  return [{ kind: "gap" }, { kind: "text", spans: [timeFact("elapsed", ms)] }];
}

/** Takes text and gives it as the title of a row. */
export function title(text: string): Span {
  return span(text, "toolTitle", true);
}

/** Takes the command of a call, in any state, and gives `$ command`. */
export function commandSpans(command: unknown): Span[] {
  if (command === undefined || command === null || command === "") {
    return [title("$ "), span("…", "toolOutput")];
  }
  if (typeof command !== "string") return [title("$ "), span("[invalid arg]", "error")];
  const { head, more } = beginningOf(command);
  return [title(`$ ${head.trim()}`), ...(more === "" ? [] : [muted(more)])];
}

/** Takes a text and gives as much of it as is drawn, and what is said of the rest. */
export function beginningOf(text: string): { head: string; more: string } {
  const over = text.length - MAX_COMMAND_CHARS;
  return {
    head: text.slice(0, MAX_COMMAND_CHARS),
    more: over > 0 ? `… ${over} more characters` : "",
  };
}

/** Takes what stands before it and the session's id, and gives ` → #2`. */
export function target(before: string, id: unknown): Span[] {
  return [muted(before), span(labelOf(id) === undefined ? "#…" : idWords(id), "accent")];
}

/** Takes what stands in the place of a signal, and gives `✕ kill #2 SIGTERM`. */
export function killSpans(id: unknown, signal: Span): Span[] {
  return [title("✕ kill"), ...target(" ", id), signal];
}

/** Takes the arguments of a kill and the signal that stands for none, and gives the signal. */
export function signalSpan({ signal }: Fields, context: RowContext, fallback: string): Span {
  // While the arguments stream in a signal may still come; afterwards none means the fallback.
  const streaming = context.isPartial && !context.argsComplete && !context.executionStarted;
  return span(` ${labelOf(signal) ?? (streaming ? "" : fallback)}`, "toolOutput");
}

/** Takes notes and gives those that are there as ` (yield 2.5s · tty)`; nothing for none. */
export function asides(notes: (string | undefined)[]): Span[] {
  const told = notes.filter((note) => note !== undefined);
  return told.length === 0 ? [] : [muted(` (${told.join(" · ")})`)];
}

/** Takes the arguments of a call and gives what it waits for as notes: `until port 5173`. */
export function conditionNotes({ until, stop }: Fields): (string | undefined)[] {
  return [noteOf("until ", until), noteOf("stop at ", stop)];
}

function noteOf(before: string, condition: unknown): string | undefined {
  const words = conditionWords(condition);
  return words === undefined ? undefined : `${before}${words}`;
}

/** Takes the arguments of a poll and gives its beginning: `↻ poll`, or `↻ wait port 5173`. */
export function pollTitle({ until }: Fields): Span {
  const words = conditionWords(until);
  return title(words === undefined ? "↻ poll" : `↻ wait ${words}`);
}

/** Takes a value and what stands around its label; undefined where the value has no label. */
export function labelled(before: string, value: unknown, after = ""): string | undefined {
  const label = labelOf(value);
  return label === undefined ? undefined : `${before}${label}${after}`;
}

/** Takes a number and gives `12 bytes`. */
export function byteCount(bytes: number): string {
  return `${bytes} ${bytes === 1 ? "byte" : "bytes"}`;
}

/** Takes what a call says of the end of input and gives the note of it. */
export function eofNote(eof: unknown): string | undefined {
  return eof === true || eof === "true" ? "eof" : undefined;
}
