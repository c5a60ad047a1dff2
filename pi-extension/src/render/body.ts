/**
 * The lower part of a command's row, the same for all tools: output, of which a few visual lines
 * show until it is expanded; notices; and one line that says how the command stands.
 */
import type { ThemeColor } from "@earendil-works/pi-coding-agent";
import { home } from "../text/home.ts";
import type { Block, RowContext, Span } from "./row.ts";
import { expandHint, span } from "./row.ts";
import { tildify } from "./safe.ts";

/** How many visual lines of output a collapsed row shows. */
export const PREVIEW_LINES = 5;

/** The most of a note or a name that is drawn. */
const MAX_NOTE_CHARS = 4096;

/** What a body is made of. All texts may be anybody's: the row strips them. */
export interface Body {
  /** What the command printed; empty for nothing. */
  output: string;
  /** The colour of the output; `toolOutput` unless said otherwise. */
  outputTone?: ThemeColor;
  /** Visual lines of output while collapsed; `PREVIEW_LINES` unless said otherwise. */
  previewLines?: number;
  /** Which end of the output shows while collapsed; the end unless said otherwise. */
  keep?: "end" | "start";
  /** Lines of their own between output and status: truncation, notes, failures. */
  notices?: Span[];
  /** The parts of the status line, joined with ` · `; what is undefined is left out. */
  status?: (Span | undefined)[];
}

/**
 * Takes a body, whether the row is expanded, and the renderer's context (for the keys that expand
 * it), and gives the blocks to show, beginning with an empty line.
 */
export function bodyBlocks(body: Body, expanded: boolean, context: RowContext): Block[] {
  const blocks: Block[] = [];
  if (body.output.trim() !== "") {
    blocks.push({ kind: "gap" }, outputBlock(body, expanded, context));
  }
  const below = [...(body.notices ?? []).map(noticeBlock), ...statusBlocks(body.status ?? [])];
  if (below.length > 0) blocks.push({ kind: "gap" }, ...below);
  return blocks;
}

/** Takes text and a colour and gives a notice, cut where it is absurdly long; nothing for none. */
export function notice(text: string | undefined, tone: ThemeColor): Span[] {
  return text === undefined || text.trim() === "" ? [] : [span(clipped(text.trim()), tone)];
}

/** Takes text and gives at most as much of it as a note may have, with `…` where it was cut. */
export function clipped(text: string): string {
  return text.length > MAX_NOTE_CHARS ? `${text.slice(0, MAX_NOTE_CHARS)}…` : text;
}

/** Takes a path and gives it as a row shows it: with `~`, and not absurdly long. */
export function shownPath(path: string): string {
  return tildify(clipped(path), home());
}

/** What stands behind the path of a log that lacks something; empty where it lacks nothing. */
export function logLack(complete: unknown, truncated: unknown): string {
  if (complete === false) return " (incomplete)";
  return truncated === true ? " (truncated)" : "";
}

function outputBlock(body: Body, expanded: boolean, context: RowContext): Block {
  const keep = body.keep ?? "end";
  // "earlier lines" also where it is one: pi's rows and the tool that this one follows say so.
  const what = keep === "end" ? "earlier lines" : "more lines";
  return {
    kind: "output",
    text: body.output,
    tone: body.outputTone ?? "toolOutput",
    limit: expanded ? undefined : (body.previewLines ?? PREVIEW_LINES),
    keep,
    hint: `${what} (${expandHint(context)})`,
  };
}

function noticeBlock(text: Span): Block {
  return { kind: "text", spans: [text] };
}

function statusBlocks(status: (Span | undefined)[]): Block[] {
  const parts = status.filter((part) => part !== undefined);
  if (parts.length === 0) return [];
  const dotted = parts.flatMap((part, i) => (i === 0 ? [part] : [span(" · ", "muted"), part]));
  return [{ kind: "text", spans: dotted }];
}
