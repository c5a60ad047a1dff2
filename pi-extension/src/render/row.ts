/**
 * One slot of a tool's row: a component that lays out blocks of plain text and paints them. All
 * text is stripped here and nowhere else, so that no renderer can forget it.
 */
import type { Theme, ThemeColor, ToolDefinition } from "@earendil-works/pi-coding-agent";
import { type Component, getKeybindings, truncateToWidth, visibleWidth } from "@earendil-works/pi-tui";
import { drawable, stripControls } from "../text/safe.ts";
import { wrap } from "../text/width.ts";

export type { Theme };

/** pi's own types of the two renderers of a tool. */
export type RenderCall = NonNullable<ToolDefinition["renderCall"]>;
export type RenderResult = NonNullable<ToolDefinition["renderResult"]>;

/** How a tool draws its call and its result. */
export interface ToolRenderers {
  /** `self`: the renderers draw the row's frame themselves. */
  renderShell?: "self";
  renderCall: RenderCall;
  renderResult: RenderResult;
}

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
 * What a row is made of: an empty line; text that wraps; parts with ` · ` between them, each of which
 * stays whole where it can; text of one visual line, cut where it is too long; or output, of which
 * `limit` visual lines are shown (all without a limit).
 */
export type Block =
  | { kind: "gap" }
  | { kind: "text"; spans: Span[] }
  | { kind: "parts"; parts: Span[]; tone: ThemeColor }
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
 * The most of one block that is laid out, so that no text can stall a frame: pi's word wrap takes
 * up to 3 ms a KiB where that is one line. The daemon's results hold 50 KiB.
 */
export const MAX_BLOCK_CHARS = 64 * 1024;

/** The colour behind a row. */
export type RowTone = Parameters<Theme["bg"]>[0];

/**
 * What stands around a slot of a row. Each slot draws its part of the row's frame: pi would draw the
 * whole of it green where a command has failed, since that is no error of the tool.
 */
export interface Frame {
  /** The colour behind all of the row, at the moment of drawing. */
  tone(): RowTone;
  /** Blank cells left and right. */
  pad: number;
  /** Whether the slot is the first one, and at the moment the last one of its row. */
  isFirst: boolean;
  isLast(): boolean;
}

/** Takes text, colour and weight and gives a span. */
export function span(text: string, tone: ThemeColor, bold = false): Span {
  return bold ? { text, tone, bold } : { text, tone };
}

/**
 * Takes what pi gives a renderer, of a tool or of a message, and gives `ctrl+o to expand` as the
 * user's keys have it.
 */
export function expandHint(context: object): string {
  const { keyHint } = context as Pick<RowContext, "keyHint">;
  const told = keyHint?.("app.tools.expand", "to expand");
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
  #frame: Frame | undefined;
  #framed: { of: string[]; look: string; lines: string[] } | undefined;
  // Output outlives a change of the blocks around it: a ticking row has the same for seconds.
  #clean: { raw: string; text: string; dropped: number } | undefined;
  #wrapped: { width: number; text: string; lines: string[] } | undefined;

  /** Takes the blocks to show from now on, and what to call whenever the row is drawn. */
  show(blocks: Block[], theme: Theme, onDraw?: () => void): this {
    this.#blocks = blocks;
    this.#theme = theme;
    this.#onDraw = onDraw;
    this.#drawn = undefined;
    return this;
  }

  /** Takes what is to be drawn around the blocks from now on. */
  within(frame: Frame): this {
    this.#frame = frame;
    return this;
  }

  /** Takes the width in cells and gives the lines, none of them wider. */
  render(width: number): string[] {
    this.#onDraw?.();
    const cells = Math.max(1, Math.floor(width));
    if (this.#frame === undefined) return this.#inner(cells);
    const pad = Math.min(this.#frame.pad, Math.floor((cells - 1) / 2));
    return this.#inFrame(this.#frame, this.#inner(cells - 2 * pad), cells, pad);
  }

  #inner(cells: number): string[] {
    if (this.#drawn?.width !== cells) {
      this.#drawn = { width: cells, lines: this.#blocks.flatMap((b) => this.#lines(b, cells)) };
    }
    return this.#drawn.lines;
  }

  #inFrame({ tone, isFirst, isLast }: Frame, lines: string[], cells: number, pad: number): string[] {
    const isEnd = isLast();
    const behind = (text: string) => this.#theme?.bg(tone(), text) ?? text;
    // A theme that was changed paints the same tone in another colour.
    const look = `${behind("x")}${cells} ${isEnd}`;
    if (this.#framed?.of !== lines || this.#framed.look !== look) {
      const inside = [...(isFirst ? [""] : []), ...lines, ...(isEnd ? [""] : [])];
      const whole = inside.map((line) => behind(filled(line === "" ? "" : " ".repeat(pad) + line, cells)));
      this.#framed = { of: lines, look, lines: whole };
    }
    return this.#framed.lines;
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
      case "parts":
        return layOutParts(block.parts, block.tone, width, this.#theme);
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
    if (this.#wrapped?.width !== width || this.#wrapped.text !== text) {
      this.#wrapped = { width, text, lines: wrap(text, width) };
    }
    const { lines } = this.#wrapped;
    const hidden = Math.max(0, lines.length - (block.limit ?? lines.length));
    const from = block.keep === "end" ? hidden : 0;
    return { lines: lines.slice(from, from + lines.length - hidden), hidden };
  }
}

/** Takes what the slot held before and gives it again if it is one of ours, else a new row. */
export function reuse(lastComponent: Component | undefined): Row {
  return lastComponent instanceof Row ? lastComponent : new Row();
}

/** A line with blanks up to the width. */
function filled(line: string, cells: number): string {
  return line + " ".repeat(Math.max(0, cells - visibleWidth(line)));
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

/** Wraps spans as one text, each in its colour. */
function layOut(spans: Span[], width: number, theme: Theme | undefined): string[] {
  return wrap(painted(cleaned(spans), theme), width);
}

/** Lays out parts: one that the rest of a line has no room for begins a line, and wraps if it must. */
function layOutParts(
  parts: Span[],
  tone: ThemeColor,
  width: number,
  theme: Theme | undefined,
): string[] {
  const lines: Span[][] = [[]];
  let cells = 0;
  for (const part of cleaned(parts)) {
    const line = lines.at(-1) ?? [];
    const own = visibleWidth(part.text);
    if (line.length === 0) line.push(part);
    else if (cells + DOT.length + own <= width) line.push(span(DOT, tone), part);
    else {
      if (cells + DOT.length <= width) line.push(span(DOT.trimEnd(), tone));
      lines.push([part]);
      cells = own;
      continue;
    }
    cells += (line.length > 1 ? DOT.length : 0) + own;
  }
  return lines.filter((line) => line.length > 0).flatMap((line) => wrap(painted(line, theme), width));
}

/** What stands between parts. */
const DOT = " · ";

function cutSpans(spans: Span[], width: number, theme: Theme | undefined): string {
  const parts = cleaned(spans).map((part) => ({ ...part, text: part.text.replace(/\n/g, " ") }));
  return truncateToWidth(painted(parts, theme), width, "…");
}

function painted(parts: Span[], theme: Theme | undefined): string {
  return parts.map((part) => paint(part, part.text, theme)).join("");
}

function paint(part: Span, text: string, theme: Theme | undefined): string {
  if (text === "" || theme === undefined) return text;
  return theme.fg(part.tone, part.bold ? theme.bold(text) : text);
}
