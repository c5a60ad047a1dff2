/**
 * How the tools of the bash surface look: bash as pi draws its own, with as many lines as
 * tmux-bash.jsonc says; tmux with its action as the title and its answer below.
 */
import { createBashToolDefinition } from "@earendil-works/pi-coding-agent";
import type { Component } from "@earendil-works/pi-tui";
import { truncateToWidth, visibleWidth } from "@earendil-works/pi-tui";
import type { TmuxBashConfig } from "../bash/config.ts";
import { shownCommand } from "../bash/templates.ts";
import { PREVIEW_LINES, logLack } from "./body.ts";
import { asides, call, title } from "./call.ts";
import { type Fields, arrayOf, fieldsOf, labelOf, numberOf, stringOf } from "./fields.ts";
import type { Block, RenderCall, RenderResult, RowContext, Span, ToolRenderers } from "./row.ts";
import { expandHint, reuse, span } from "./row.ts";
import { formatSeconds, formatSize, stripControls } from "./safe.ts";
import { keepTicking, rowState, settle, startTicker, stopTicker } from "./state.ts";

/** Whose lines are counted. */
export type Shown = "bash" | "completed" | "poll" | "peek";

/** What the renderers look at, at the moment of drawing. */
interface Settings {
  readonly config: TmuxBashConfig;
}

/** How many lines of output are drawn. */
export function lineLimit(
  config: TmuxBashConfig,
  shown: Shown,
  expanded: boolean,
  truncated: boolean,
): number {
  if (expanded) return config[`${shown}ExpandedDisplayLines`];
  const compact = truncated ? "TruncatedCompactDisplayLines" : "CompactDisplayLines";
  return config[`${shown}${compact}`];
}

/** Output with as many lines as the settings say. */
export function outputBlocks(
  text: string,
  limit: number,
  context: object,
): Block[] {
  if (text.trim() === "") return [];
  const hint = `earlier lines (${expandHint(context)})`;
  const output = { kind: "output" as const, text, tone: "toolOutput" as const, limit, hint };
  return [{ kind: "gap" }, { ...output, keep: "end" }];
}

/** The renderers of the tool that runs commands. */
export function bashRenderers(settings: Settings): ToolRenderers {
  const pis = createBashToolDefinition(process.cwd());
  const pisCall = pis.renderCall as RenderCall | undefined;
  const pisResult = pis.renderResult as RenderResult | undefined;
  return {
    renderCall: (args, theme, context) => {
      const shown = shownArgs(args, settings.config);
      if (!pisCall) return ownCall(shown, theme, context);
      return Within.of(context, (inside) => pisCall(shown, theme, inside));
    },
    renderResult: (result, options, theme, context) => {
      const { config } = settings;
      if (!pisResult || !isAsPis(config, result, options.expanded)) {
        stopPisTicker(context);
        return ownResult(config)(result, options, theme, context);
      }
      stopTicker(rowState(context));
      return Within.of(context, (inside) => pisResult(stripped(result), options, theme, inside));
    },
  };
}

/** A component of pi's whose lines stay within the width: one that is wider ends pi. */
class Within implements Component {
  #inner: Component;

  private constructor(inner: Component) {
    this.#inner = inner;
  }

  /** What `draw` gives, which finds in the context the component that it gave last time. */
  static of(context: RowContext, draw: (context: RowContext) => Component): Within {
    const last = context.lastComponent instanceof Within ? context.lastComponent : undefined;
    const inner = draw({ ...context, lastComponent: last ? last.#inner : undefined });
    if (!last) return new Within(inner);
    last.#inner = inner;
    return last;
  }

  render(width: number): string[] {
    return this.#inner.render(width).map((line) =>
      visibleWidth(line) > width ? truncateToWidth(line, width, "") : line);
  }

  invalidate(): void {
    this.#inner.invalidate();
  }
}

type Result = Parameters<RenderResult>[0];

/**
 * The result without what would steer the terminal: pi strips less. Of a log that lacks something
 * pi is given the path with that, in place of the footer that the model reads.
 */
function stripped(result: Result): Result {
  const details = fieldsOf(fieldsOf(result).details);
  const path = stringOf(details.fullOutputPath);
  const lack = lackOf(details);
  const content = arrayOf(fieldsOf(result).content).map((item) => {
    const { text } = fieldsOf(item);
    if (typeof text !== "string") return item;
    const clean = stripControls(text);
    return { ...fieldsOf(item), text: lack === "" ? clean : withoutFooter(clean, path) };
  });
  const shown = lack === "" ? result.details : { ...details, fullOutputPath: `${path}${lack}` };
  return { ...result, content: content as Result["content"], details: shown };
}

/** What the log that is named lacks. */
function lackOf(details: Fields): string {
  const named = stringOf(details.fullOutputPath) !== undefined;
  return named ? logLack(details.log_complete, details.log_truncated) : "";
}

/** The arguments with the command as people see it. */
function shownArgs(args: unknown, config: TmuxBashConfig): Fields {
  const fields = fieldsOf(args);
  const { command } = fields;
  if (typeof command !== "string") return fields;
  const shown = shownCommand(command, config.displayCommandStartMarker);
  return { ...fields, command: stripControls(shown) };
}

/** Whether pi by itself draws as many lines of this as the settings say. */
function isAsPis(config: TmuxBashConfig, result: Result, expanded: boolean): boolean {
  const details = fieldsOf(fieldsOf(result).details);
  const limit = lineLimit(config, "bash", expanded, fieldsOf(details.truncation).truncated === true);
  if (!expanded) return limit === PREVIEW_LINES;
  const text = withoutFooter(textOf(result), stringOf(details.fullOutputPath));
  return text.trimEnd().split("\n").length <= limit;
}

/** pi's own renderer may have drawn the row before, and left it ticking. */
function stopPisTicker(context: RowContext): void {
  const state = rowState(context) as { interval?: NodeJS.Timeout | undefined };
  clearInterval(state.interval);
  state.interval = undefined;
}

const ownCall: RenderCall = call((args) => [
  title(`$ ${stringOf(args.command) ?? "..."}`),
  ...asides([args.timeout === undefined ? undefined : `timeout ${labelOf(args.timeout)}s`]),
]);

/** pi's result of its own bash, with other numbers of lines. */
function ownResult(config: TmuxBashConfig): RenderResult {
  return (given, { expanded, isPartial }, theme, context) => {
    const state = rowState(context);
    const partial = isPartial && !context.isError;
    if (partial) startTicker(state, context);
    else settle(state);
    const details = fieldsOf(fieldsOf(given).details);
    const cut = fieldsOf(details.truncation);
    const path = stringOf(details.fullOutputPath);
    const text = withoutFooter(textOf(given), partial ? undefined : path);
    const limit = lineLimit(config, "bash", expanded, cut.truncated === true);
    const log = path && `${path}${lackOf(details)}`;
    const below = [...cutSpans(cut, log), ...timeSpans(context, partial)];
    const blocks = [
      ...outputBlocks(text, limit, context),
      ...below.flatMap((one): Block[] => [{ kind: "gap" }, { kind: "text", spans: [one] }]),
    ];
    const row = reuse(context.lastComponent);
    return row.show(blocks, theme, partial ? keepTicking(state, context) : undefined);
  };
}

/** The line that the model reads of what was cut is not for people: theirs stands below. */
function withoutFooter(text: string, path: string | undefined): string {
  const at = text.trimEnd().lastIndexOf("\n\n[");
  const isFooter = path !== undefined && at >= 0 && text.slice(at).includes(path);
  return isFooter ? text.slice(0, at) : text;
}

function cutSpans(cut: Fields, path: string | undefined): Span[] {
  const lines = labelOf(cut.outputLines) ?? "?";
  const what = cut.truncated !== true ? undefined
    : cut.truncatedBy === "lines"
      ? `Truncated: showing ${lines} of ${labelOf(cut.totalLines) ?? "?"} lines`
      : `Truncated: ${lines} lines shown (${formatSize(numberOf(cut.maxBytes) ?? 0)} limit)`;
  const parts = [path && `Full output: ${path}`, what].filter(Boolean);
  return parts.length === 0 ? [] : [span(`[${parts.join(". ")}]`, "warning")];
}

function timeSpans(context: RowContext, partial: boolean): Span[] {
  const state = rowState(context) as { startedAt?: number; endedAt?: number };
  if (state.startedAt === undefined) return [];
  if (!partial) state.endedAt ??= Date.now();
  const ms = (state.endedAt ?? Date.now()) - state.startedAt;
  return [span(`${partial ? "Elapsed" : "Took"} ${formatSeconds(ms)}`, "muted")];
}

/** The renderers of the tool that inspects windows. */
export function tmuxRenderers(settings: Settings): ToolRenderers {
  const { tmuxToolName } = settings.config;
  return {
    renderCall: call((args) => [
      title(`${tmuxToolName} ${labelOf(args.action) ?? "…"}`),
      ...(labelOf(args.window) === undefined ? [] : [span(` ${labelOf(args.window)}`, "accent")]),
      ...asides([
        args.pollInterval === undefined ? undefined : `every ${labelOf(args.pollInterval)}s`,
        args.pollLines === undefined ? undefined : `${labelOf(args.pollLines)} lines`,
      ]),
    ]),
    renderResult: (given, { expanded, isPartial }, theme, context) => {
      const state = rowState(context);
      if (!isPartial || context.isError) settle(state);
      state.hasResult = true;
      state.redrawCall?.();
      const text = textOf(given);
      // A peek's footer tells that its beginning was cut.
      const truncated = /\n\[Showing [^\n]*\]\s*$/.test(text);
      const limit = lineLimit(settings.config, "peek", expanded, truncated);
      return reuse(context.lastComponent).show(outputBlocks(text, limit, context), theme);
    },
  };
}

function textOf(result: unknown): string {
  const { content } = fieldsOf(result);
  const texts = arrayOf(content).map((item) => stringOf(fieldsOf(item).text) ?? "");
  return stripControls(texts.join("\n"));
}
