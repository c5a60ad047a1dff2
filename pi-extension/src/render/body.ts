/**
 * How a view of a result becomes the lower part of a row, the same for all families: which parts
 * stand where, how much of them a collapsed row shows, and when the row ticks.
 */
import { type Fields, contentText, fieldsOf, numberOf, partOf, stringOf } from "./fields.ts";
import { type Block, type RenderResult, type Span, expandHint, reuse } from "./row.ts";
import { forPeople } from "../text/session.ts";
import {
  type RowState, elapsedMs, frameOf, keepTicking, rowState, settle, startTicker,
} from "./state.ts";
import {
  type Body, type Entry, type List, type Names, type Outcome, type ResultView, type RowView,
  clipped, factsOf, muted, timeFact,
} from "./view.ts";

/** How many visual lines of output, and entries of a list, a collapsed row shows. */
export const PREVIEW_LINES = 5;

/** The visual lines of an error's text while collapsed; its beginning says what is wrong. */
const ERROR_LINES = 10;

/** An empty line. */
export const GAP: Block = { kind: "gap" };

/**
 * Makes a renderer of a function that gives the view of a result. `isFramed`: the renderers of the
 * tool draw the row's frame.
 */
export function result(view: ResultView, isFramed = false): RenderResult {
  return (given, { expanded, isPartial }, theme, context) => {
    const state = rowState(context);
    const partial = isPartial && !context.isError && !state.settled;
    if (partial) startTicker(state, context);
    else settle(state);
    const { details: told, content } = fieldsOf(given);
    const details = fieldsOf(told);
    tellCall(state, details);
    const outcome = { details, text: contentText(content), expanded, partial, context, state };
    const shown = view(outcome);
    const hasFailed = context.isError || shown.isFailed === true;
    state.tone = partial ? "toolPendingBg" : hasFailed ? "toolErrorBg" : "toolSuccessBg";
    if (partial && shown.body !== undefined && shown.body.text.trim() !== "") {
      state.live = shown.body.text;
    }
    const blocks = viewBlocks(shown, expanded, context);
    const onDraw = partial ? keepTicking(state, context) : undefined;
    const row = reuse(context.lastComponent).show(blocks, theme, onDraw);
    return isFramed ? row.within(frameOf(context, state, "result")) : row;
  };
}

/** Takes a view and gives one that shows thrown errors too, whose message says all. */
export function orError(view: ResultView): ResultView {
  return (outcome) => {
    const { details, text, context, expanded } = outcome;
    const isThrown = details.status === "error" || Object.keys(details).length === 0;
    if (!context.isError || !isThrown) return view(outcome);
    const limit = expanded ? undefined : ERROR_LINES;
    return { body: { text: forPeople(text), tone: "error", keep: "start", limit } };
  };
}

/** The call's slot was drawn before the result's, and learns here what holds for it. */
function tellCall(state: RowState, details: Fields): void {
  const cwd = stringOf(details.cwd);
  const heldMs = numberOf(details.yield_time_ms);
  const isKnown = (cwd ?? state.cwd) === state.cwd && (heldMs ?? state.heldMs) === state.heldMs;
  if (state.hasResult && isKnown) return;
  state.hasResult = true;
  if (cwd !== undefined) state.cwd = clipped(cwd);
  if (heldMs !== undefined) state.heldMs = heldMs;
  state.redrawCall?.();
}

/** The output that stands in the model's text, where the details tell its place. */
export function toldOutput({ details, text }: Outcome): string | undefined {
  return partOf(text, details.output_at);
}

/** The facts of a session that still runs: `elapsed 1.3s · #2 · log: ~/…`. */
export function runningFacts({ details, state }: Outcome, names: Names): (Span | undefined)[] {
  const { id, log } = factsOf(details, names);
  return [timeFact("elapsed", elapsedMs(state)), id, log];
}

/**
 * Takes a view, whether it is expanded, and what pi gave the renderer (for the keys that expand),
 * and gives the blocks to show.
 */
export function viewBlocks(view: RowView, expanded: boolean, keys: object): Block[] {
  const { title = [], body, list, notices = [], facts = [], isSpaced = false } = view;
  const told = facts.filter((fact) => fact !== undefined);
  const below = [...notices.map(sentence), ...(told.length > 0 ? [parts(told, "muted")] : [])];
  return [
    ...title.map(line),
    ...(body && body.text.trim() !== "" ? [GAP, outputBlock(body, expanded, keys)] : []),
    ...(list ? listBlocks(list, expanded, keys) : []),
    ...below.flatMap((block, i) => (i === 0 || isSpaced ? [GAP, block] : [block])),
  ];
}

function outputBlock(body: Body, expanded: boolean, keys: object): Block {
  const { text, tone = "toolOutput", keep = "end" } = body;
  // pi's own rows say "1 earlier lines" too.
  const what = keep === "end" ? "earlier lines" : "more lines";
  const limit = body.limit ?? (expanded ? undefined : PREVIEW_LINES);
  return { kind: "output", text, tone, limit, keep, hint: `${what} (${expandHint(keys)})` };
}

function listBlocks(list: List, expanded: boolean, keys: object): Block[] {
  const { entries, nouns, none, last } = list;
  const shown = expanded ? entries : entries.slice(0, PREVIEW_LINES);
  const hidden = entries.length - shown.length;
  const what = hidden === 1 ? nouns[0] : nouns[1];
  return [
    GAP,
    ...(entries.length === 0 ? [line([muted(none)])] : []),
    ...shown.flatMap((entry) => entryBlocks(entry, expanded)),
    ...(hidden > 0 ? [cut([muted(`… ${hidden} more ${what} (${expandHint(keys)})`)])] : []),
    ...(last === undefined ? [] : [cut([muted(last)])]),
  ];
}

function entryBlocks({ spans, below, isCut = false }: Entry, expanded: boolean): Block[] {
  if (!expanded || isCut) return [cut(spans)];
  return [line(spans), ...(below ? [line([below])] : [])];
}

/** A notice, which may have parts of its own. */
function sentence(notice: Span): Block {
  return parts(notice.text.split(" · ").map((text) => ({ ...notice, text })), notice.tone);
}

function parts(told: Span[], tone: Span["tone"]): Block {
  return { kind: "parts", parts: told, tone };
}

function line(spans: Span[]): Block {
  return { kind: "text", spans };
}

function cut(spans: Span[]): Block {
  return { kind: "cut", spans };
}
