/**
 * One slot of a tool's row: a component that lays out blocks of plain text and paints them. All
 * text is stripped here and nowhere else, so that no renderer can forget it.
 */
import type { Theme, ThemeColor, ToolDefinition } from "@earendil-works/pi-coding-agent";
import type { Component } from "@earendil-works/pi-tui";
import { getKeybindings } from "@earendil-works/pi-tui";
import { cutToCells, drawable, stripControls } from "./safe.ts";
import { previewText, wrapRanges, wrapText, fitted } from "./wrap.ts";

export type { Theme };

/** pi's own types of the two renderers of a tool. */
export type RenderCall = NonNullable<ToolDefinition["renderCall"]>;
export type RenderResult = NonNullable<ToolDefinition["renderResult"]>;

type PiContext = Parameters<RenderCall>[2];

/** The context of a renderer, with what later versions of pi put into it. */
export interface RowContext extends PiContext {
  /** How long the finished call took (pi 1.1.0). */
  durationMs?: number | undefined;
  /** The row's padding; only of interest to a row that draws its own frame (pi 1.5.0). */
  outputPad?: number;
  /** The keys of a binding (pi 1.5.0). */
  keyText?: (id: string) => string;
  /** The keys of a binding and what they do (pi 1.5.0). */
  keyHint?: (id: string, text: string) => string;
}

/** Text of one colour. It may be anybody's: the row strips it. */
export interface Span {
  text: string;
  tone: ThemeColor;
  bold?: boolean;
}

/**
 * What a row is made of: an empty line; text that wraps; text of one visual line, cut where it
 * is too long; or output, of which `limit` visual lines are shown (all without a limit).
 */
export type Block =
  | { kind: "gap" }
  | { kind: "text"; spans: Span[] }
  | { kind: "cut"; spans: Span[] }
  | OutputBlock;

/** Output of a command, or the text of an error. */
export interface OutputBlock {
  kind: "output";
  text: string;
  tone: ThemeColor;
  limit?: number | undefined;
  /** Which end is shown where not all is. */
  keep: "end" | "start";
  /** What the line says that stands for the hidden ones, after their number. */
  hint: string;
}

/**
 * The most of one block that is laid out, so that no text can stall a frame. The daemon's results
 * hold 50 KiB.
 */
export const MAX_BLOCK_CHARS = 128 * 1024;

/** Takes text, colour and weight and gives a span. */
export function span(text: string, tone: ThemeColor, bold = false): Span {
  return bold ? { text, tone, bold } : { text, tone };
}

/** Takes a renderer's context and gives `ctrl+o to expand` as the user's keys have it. */
export function expandHint(context: RowContext): string {
  const told = context.keyHint?.("app.tools.expand", "to expand");
  // Before 1.5.0 the keys are asked where pi's own hint asks them. pi's export of that hint would
  // do too, but importing pi costs seconds wherever it is not loaded already.
  const hint = told ?? `${getKeybindings().getKeys("app.tools.expand").join("/")} to expand`;
  const plain = stripControls(hint).trim();
  return plain === "to expand" ? "ctrl+o to expand" : plain;
}

/** Lays out and paints blocks, and keeps what it made for as long as nothing changes. */
export class Row implements Component {
  #blocks: Block[] = [];
  #theme: Theme | undefined;
  #onDraw: (() => void) | undefined;
  #drawn: { width: number; lines: string[] } | undefined;
  // Output outlives a change of the blocks around it: a ticking row has the same for seconds.
  #clean: { raw: string; text: string; dropped: number } | undefined;
  #wrapped: { key: string; text: string; lines: string[]; hidden: number } | undefined;

  /** Takes the blocks to show from now on, and what to call whenever the row is drawn. */
  show(blocks: Block[], theme: Theme, onDraw?: () => void): this {
    this.#blocks = blocks;
    this.#theme = theme;
    this.#onDraw = onDraw;
    this.#drawn = undefined;
    return this;
  }

  /** Takes the width in cells and gives the lines, none of them wider. */
  render(width: number): string[] {
    this.#onDraw?.();
    const cells = Math.max(1, Math.floor(width));
    if (this.#drawn?.width !== cells) {
      this.#drawn = { width: cells, lines: this.#blocks.flatMap((b) => this.#lines(b, cells)) };
    }
    return this.#drawn.lines;
  }

  /** Forgets the painted lines: the theme may have changed. */
  invalidate(): void {
    this.#drawn = undefined;
  }

  #lines(block: Block, width: number): string[] {
    switch (block.kind) {
      case "gap":
        return [""];
      case "text":
        return layOut(block.spans, width, this.#theme);
      case "cut":
        return [cutSpans(block.spans, width, this.#theme)];
      case "output":
        return this.#outputLines(block, width);
    }
  }

  #outputLines(block: OutputBlock, width: number): string[] {
    const { text, dropped } = this.#cleaned(block);
    if (text === "") return [];
    const { lines, hidden } = this.#wrap(block, text, width);
    const painted = lines.map((line) => paint(span(line, block.tone), line, this.#theme));
    if (hidden === 0 && dropped === 0) return painted;
    const what = hidden > 0 ? `${hidden} ${block.hint}` : `${dropped} characters too many to draw`;
    const hint = cutSpans([span(`… ${what}`, "muted")], width, this.#theme);
    return block.keep === "end" ? [hint, ...painted] : [...painted, hint];
  }

  #cleaned(block: OutputBlock): { text: string; dropped: number } {
    if (this.#clean?.raw !== block.text) {
      const part = bounded(block.text, block.keep);
      this.#clean = {
        raw: block.text,
        text: drawable(part).replace(/^\n+/, "").trimEnd(),
        dropped: block.text.length - part.length,
      };
    }
    return this.#clean;
  }

  #wrap(block: OutputBlock, text: string, width: number): { lines: string[]; hidden: number } {
    const key = `${width} ${block.limit} ${block.keep}`;
    if (this.#wrapped?.key !== key || this.#wrapped.text !== text) {
      const made =
        block.limit === undefined
          ? { lines: wrapText(text, width), hidden: 0 }
          : previewText(text, width, block.limit, block.keep);
      this.#wrapped = { key, text, ...made };
    }
    return this.#wrapped;
  }
}

/** Takes what the slot held before and gives it again if it is one of ours, else a new row. */
export function reuse(lastComponent: Component | undefined): Row {
  return lastComponent instanceof Row ? lastComponent : new Row();
}

function bounded(text: string, keep: "end" | "start"): string {
  if (text.length <= MAX_BLOCK_CHARS) return text;
  if (keep === "start") return text.slice(0, MAX_BLOCK_CHARS);
  const tail = text.slice(-MAX_BLOCK_CHARS);
  const newline = tail.indexOf("\n");
  // The first line is broken, and may begin inside an escape sequence.
  return newline < 0 ? tail : tail.slice(newline + 1);
}

function cleaned(spans: Span[]): Span[] {
  return spans
    .map((part) => ({ ...part, text: drawable(bounded(part.text, "start")) }))
    .filter((part) => part.text !== "");
}

/** Wraps spans as one text and paints each piece in the colours of the spans it came from. */
function layOut(spans: Span[], width: number, theme: Theme | undefined): string[] {
  const parts = cleaned(spans);
  const whole = parts.map((part) => part.text).join("");
  const lines: string[] = [];
  const painter = new Painter(parts, theme);
  let lineStart = 0;
  for (const line of whole.split("\n")) {
    const ranges = wrapRanges(line, width);
    for (let i = 0; i < ranges.length; i += 2) {
      const start = lineStart + (ranges[i] ?? 0);
      const piece = line.slice(ranges[i], ranges[i + 1]);
      const fit = fitted(piece, width);
      lines.push(
        fit === piece
          ? painter.piece(start, start + piece.length)
          : paint(span("", "toolOutput"), fit, theme),
      );
    }
    lineStart += line.length + 1;
  }
  return lines;
}

function cutSpans(spans: Span[], width: number, theme: Theme | undefined): string {
  const parts = cleaned(spans).map((part) => ({ ...part, text: part.text.replace(/\n/g, " ") }));
  const whole = parts.map((part) => part.text).join("");
  const cut = cutToCells(whole, width);
  const painter = new Painter(parts, theme);
  if (cut === whole) return painter.piece(0, whole.length);
  const last = parts.at(-1) ?? span("", "muted");
  return painter.piece(0, cut.length - 1) + paint(last, "…", theme);
}

/** Paints pieces of joined spans. The pieces come in order, so that it never looks back. */
class Painter {
  #parts: Span[];
  #theme: Theme | undefined;
  #at = 0;
  #partStart = 0;

  constructor(parts: Span[], theme: Theme | undefined) {
    this.#parts = parts;
    this.#theme = theme;
  }

  piece(start: number, end: number): string {
    let painted = "";
    let from = start;
    while (from < end) {
      const part = this.#parts[this.#at];
      if (part === undefined) break;
      const partEnd = this.#partStart + part.text.length;
      if (partEnd <= from) {
        this.#at++;
        this.#partStart = partEnd;
        continue;
      }
      const to = Math.min(end, partEnd);
      const text = part.text.slice(from - this.#partStart, to - this.#partStart);
      painted += paint(part, text, this.#theme);
      from = to;
    }
    return painted;
  }
}

function paint(part: Span, text: string, theme: Theme | undefined): string {
  if (text === "" || theme === undefined) return text;
  return theme.fg(part.tone, part.bold ? theme.bold(text) : text);
}
