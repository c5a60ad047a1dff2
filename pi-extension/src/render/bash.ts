/**
 * How the tools of the bash surface look: bash as pi draws its own, with as many lines as
 * tmux-bash.jsonc says; tmux with its action as the title and its answer below.
 */
import { createBashToolDefinition } from "@earendil-works/pi-coding-agent";
import type { Component } from "@earendil-works/pi-tui";
import { shownCommand } from "../bash/templates.ts";
import { formatSize } from "../text/figures.ts";
import { stripControls } from "../text/safe.ts";
import { titleOf } from "../text/session.ts";
import { fitting } from "../text/width.ts";
import { PREVIEW_LINES, result } from "./body.ts";
import { asides, call, labelled, title } from "./calls.ts";
import {
  type Fields, arrayOf, contentText, fieldsOf, labelOf, numberOf, partOf, stringOf,
} from "./fields.ts";
import {
  type RenderCall, type RenderResult, type RowContext, type Span, type ToolRenderers, span,
} from "./row.ts";
import { rowState, stopTicker } from "./state.ts";
import { type Outcome, type RowView, logLack, muted, timeFact } from "./view.ts";

const NAME_CELLS = 60;

/** What the settings bound the lines of: results of bash, messages on windows, looks at windows. */
export type Shown = "bash" | "completed" | "poll" | "peek";

/** The settings of tmux-bash.jsonc that say how much of an output is drawn. */
type LineLimits = Readonly<
  Record<`${Shown}${"Compact" | "TruncatedCompact" | "Expanded"}DisplayLines`, number>
>;

/** What the renderers look at, at the moment of drawing. */
export interface Settings {
  readonly config: LineLimits & {
    readonly displayCommandStartMarker: string;
    readonly tmuxToolName: string;
    readonly maxTimeoutSeconds: number;
  };
}

/** Takes the settings and how an output stands, and gives how many of its lines are drawn. */
export function lineLimit(
  config: LineLimits,
  shown: Shown,
  expanded: boolean,
  truncated: boolean,
): number {
  if (expanded) return config[`${shown}ExpandedDisplayLines`];
  const compact = truncated ? "TruncatedCompactDisplayLines" : "CompactDisplayLines";
  return config[`${shown}${compact}`];
}

/** The renderers of the tool that runs commands. */
export function bashRenderers(settings: Settings): ToolRenderers {
  const pis = createBashToolDefinition(process.cwd());
  const pisCall = pis.renderCall as RenderCall | undefined;
  const pisResult = pis.renderResult as RenderResult | undefined;
  const ownResult = result((outcome) => bashView(outcome, settings));
  return {
    renderCall: (args, theme, context) => {
      const shown = shownArgs(args, settings);
      if (!pisCall) return ownCall(shown, theme, context);
      return Within.of(context, (inside) => pisCall(shown, theme, inside));
    },
    renderResult: (given, options, theme, context) => {
      if (!pisResult || !isAsPis(settings, given, options.expanded)) {
        stopPisTicker(context);
        return ownResult(given, options, theme, context);
      }
      stopTicker(rowState(context));
      return Within.of(context, (inside) => pisResult(stripped(given), options, theme, inside));
    },
  };
}

/** A component of pi's whose lines are held within the width: a wider line ends pi. */
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
    return fitting(this.#inner.render(width), width);
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
function stripped(given: Result): Result {
  const details = fieldsOf(fieldsOf(given).details);
  const path = stringOf(details.fullOutputPath);
  const lack = lackOf(details);
  const content = arrayOf(fieldsOf(given).content).map((item) => {
    const { text } = fieldsOf(item);
    if (typeof text !== "string") return item;
    const clean = stripControls(text);
    return { ...fieldsOf(item), text: lack === "" ? clean : withoutFooter(clean, path) };
  });
  const shown = lack === "" ? given.details : { ...details, fullOutputPath: `${path}${lack}` };
  return { ...given, content: content as Result["content"], details: shown };
}

/** Takes the details of a result and gives what the log that they name lacks. */
function lackOf(details: Fields): string {
  const named = stringOf(details.fullOutputPath) !== undefined;
  const lack = logLack(details.log_complete, details.log_truncated, details.log_from);
  return named ? `${details.far === true ? " (on the machine where it ran)" : ""}${lack}` : "";
}

/** The arguments with the command as people see it. */
function shownArgs(args: unknown, { config }: Settings): Fields {
  const fields = fieldsOf(args);
  const { command } = fields;
  if (typeof command !== "string") return fields;
  const shown = shownCommand(command, config.displayCommandStartMarker);
  const asked = numberOf(fields.timeout);
  // execd clamps what is longer.
  const timeout = asked === undefined ? fields.timeout : Math.min(asked, config.maxTimeoutSeconds);
  return { ...fields, command: stripControls(shown), ...(timeout !== undefined && { timeout }) };
}

/** Whether pi by itself draws as many lines of this as the settings say. */
function isAsPis({ config }: Settings, given: Result, expanded: boolean): boolean {
  const details = fieldsOf(fieldsOf(given).details);
  if (goesOn(details)) return false;
  const limit = lineLimit(config, "bash", expanded, isTruncated(details));
  if (!expanded) return limit === PREVIEW_LINES;
  const text = stripControls(contentText(fieldsOf(given).content));
  const output = withoutFooter(text, stringOf(details.fullOutputPath));
  return output.trimEnd().split("\n").length <= limit;
}

/** Whether the command goes on in the background: pi's own rows know of no such thing. */
function goesOn(details: Fields): boolean {
  return details.status === "background" && details.window !== undefined;
}

function isTruncated(details: Fields): boolean {
  return fieldsOf(details.truncation).truncated === true;
}

/** Ends the ticking that pi's own renderer has left where it drew the row before. */
function stopPisTicker(context: RowContext): void {
  const state = rowState(context) as { interval?: NodeJS.Timeout | undefined };
  clearInterval(state.interval);
  state.interval = undefined;
}

const ownCall = call((args) => [
  title(`$ ${stringOf(args.command) ?? "..."}`),
  ...asides([args.timeout === undefined ? undefined : `timeout ${labelOf(args.timeout)}s`]),
]);

/** What pi's row of its own bash shows, with other numbers of lines. */
function bashView(outcome: Outcome, { config }: Settings): RowView {
  const { details, partial, expanded } = outcome;
  const path = stringOf(details.fullOutputPath);
  if (goesOn(details) && !partial) return backgroundView(outcome, config);
  const text = withoutFooter(stripControls(outcome.text), partial ? undefined : path);
  const limit = lineLimit(config, "bash", expanded, isTruncated(details));
  return {
    body: { text, limit },
    notices: [...cutNotice(details), ...timeNotice(outcome)],
    isSpaced: true,
  };
}

/** The output so far of a command that goes on, and where; all that the model read when expanded. */
function backgroundView({ details, text, expanded }: Outcome, config: LineLimits): RowView {
  const told = partOf(text, details.output_at) ?? "";
  const limit = lineLimit(config, "bash", expanded, isTruncated(details));
  const title = titleOf({ id: details.window, name: details.name }, NAME_CELLS);
  return {
    body: { text: stripControls(expanded ? text : told), limit },
    notices: expanded ? [] : cutNotice(details),
    facts: [muted("(background)"), muted(title)],
    isSpaced: true,
  };
}

/** The model's text without its last line, on what was cut: people have a notice instead. */
function withoutFooter(text: string, path: string | undefined): string {
  const at = text.trimEnd().lastIndexOf("\n\n[");
  const isFooter = path !== undefined && at >= 0 && text.slice(at).includes(path);
  return isFooter ? text.slice(0, at) : text;
}

function cutNotice(details: Fields): Span[] {
  const path = stringOf(details.fullOutputPath);
  const truncation = fieldsOf(details.truncation);
  const lines = labelOf(truncation.outputLines) ?? "?";
  const what = !isTruncated(details) ? undefined
    : truncation.truncatedBy === "lines"
      ? `Truncated: showing ${lines} of ${labelOf(truncation.totalLines) ?? "?"} lines`
      : `Truncated: ${lines} lines shown (${formatSize(numberOf(truncation.maxBytes) ?? 0)} limit)`;
  const parts = [path && `Full output: ${path}${lackOf(details)}`, what].filter(Boolean);
  return parts.length === 0 ? [] : [span(`[${parts.join(". ")}]`, "warning")];
}

/** How long the command has run: pi's own call has noted in the row's state when it started. */
function timeNotice({ context, partial }: Outcome): Span[] {
  const state = rowState(context) as { startedAt?: number; endedAt?: number };
  if (state.startedAt === undefined) return [];
  if (!partial) state.endedAt ??= Date.now();
  const ms = (state.endedAt ?? Date.now()) - state.startedAt;
  return [timeFact(partial ? "Elapsed" : "Took", ms)];
}

/** The renderers of the tool that inspects windows. */
export function tmuxRenderers(settings: Settings): ToolRenderers {
  const { tmuxToolName } = settings.config;
  return {
    renderCall: call((args) => [
      title(`${tmuxToolName} ${labelOf(args.action) ?? "…"}`),
      ...(labelOf(args.window) === undefined ? [] : [span(` ${labelOf(args.window)}`, "accent")]),
      ...asides([
        labelled("every ", args.pollInterval, "s"), labelled("", args.pollLines, " lines"),
      ]),
    ]),
    renderResult: result(({ text: raw, expanded }) => {
      const text = stripControls(raw);
      // A peek's footer tells that its beginning was cut.
      const truncated = /\n\[Showing [^\n]*\]\s*$/.test(text);
      return { body: { text, limit: lineLimit(settings.config, "peek", expanded, truncated) } };
    }),
  };
}
