/**
 * How the calls of the six unified-exec tools look: `$ cmd (yield 2.5s · cwd: ~/project)`,
 * `⟳ poll → session_id=2`, `» ^C → session_id=2`, and titles for the rest.
 */
import { resolve } from "node:path";
import { clipped, shownPath } from "./body.ts";
import { MAX_COMMAND_CHARS, asides, call, commandSpans, title } from "./call.ts";
import type { Fields } from "./fields.ts";
import { base64Bytes, labelOf, numberOf, stringOf } from "./fields.ts";
import type { RenderCall, RowContext, Span } from "./row.ts";
import { span } from "./row.ts";
import { formatSeconds, oneLine } from "./safe.ts";
import { rowState } from "./state.ts";

/** The cells of input that a collapsed row shows. */
const INPUT_CELLS = 200;

/** Draws `$ cmd (yield 2.5s · cwd: ~/project · tty) [wake]`. */
export const renderExecCall: RenderCall = call(execSpans);

/** Draws `⟳ poll → session_id=2 (yield 5.0s)` or `» input → session_id=2`. */
export const renderWriteCall: RenderCall = call(writeSpans);

/** Draws `✕ kill_session → session_id=2 SIGTERM`. */
export const renderKillCall: RenderCall = call(killSpans);

/** Draws `list_sessions`. */
export const renderListCall: RenderCall = call((args) => [
  title("list_sessions"),
  ...asides([args.peek === true ? "peek" : undefined]),
]);

/** Draws `set_on_exit session_id=2 → wake`. */
export const renderSetOnExitCall: RenderCall = call((args) => [
  title("set_on_exit"),
  ...target(args, " "),
  span(` → ${labelOf(args.on_exit) ?? "…"}`, "toolOutput"),
]);

/** Draws `resize_session session_id=2 → 100x40`. */
export const renderResizeCall: RenderCall = call((args) => [
  title("resize_session"),
  ...target(args, " "),
  span(` → ${labelOf(args.cols) ?? "…"}x${labelOf(args.rows) ?? "…"}`, "toolOutput"),
]);

function execSpans(args: Fields, context: RowContext): Span[] {
  const notes = [
    yieldText(args),
    `cwd: ${shownPath(effectiveCwd(args, context))}`,
    args.tty === true ? "tty" : undefined,
  ];
  const wake = args.on_exit === "wake" ? [span(" [wake]", "accent")] : [];
  return [...commandSpans(args.cmd), ...asides(notes), ...wake];
}

/** Where the command runs: as the daemon told, else as the arguments and pi say. */
function effectiveCwd(args: Fields, context: RowContext): string {
  const told = rowState(context).cwd;
  if (told !== undefined) return told;
  return resolve(stringOf(context.cwd) ?? "", clipped(stringOf(args.workdir) ?? ""));
}

function writeSpans(args: Fields, context: RowContext): Span[] {
  const input = inputSpans(args, context);
  const eof = args.eof === true || args.eof === "true";
  const notes = [eof && input.length > 0 ? "eof" : undefined, yieldText(args)];
  const head = input.length > 0 ? [title("» "), ...input] : [title(eof ? "» (eof)" : "⟳ poll")];
  return [...head, ...target(args, " → "), ...asides(notes)];
}

function inputSpans(args: Fields, context: RowContext): Span[] {
  const base64 = stringOf(args.chars_b64) ?? "";
  if (base64.trim() !== "") {
    const bytes = base64Bytes(base64);
    return [title(`(base64, ${bytes} ${bytes === 1 ? "byte" : "bytes"})`)];
  }
  if (args.chars !== undefined && args.chars !== null && typeof args.chars !== "string") {
    return [span("[invalid arg]", "error")];
  }
  const chars = args.chars ?? "";
  if (chars === "") return [];
  return [title(context.expanded ? wholeInput(chars) : oneLine(inputText(chars), INPUT_CELLS))];
}

function wholeInput(chars: string): string {
  const over = chars.length - MAX_COMMAND_CHARS;
  return over > 0 ? `${inputText(chars)}… ${over} more characters` : inputText(chars);
}

/** Escapes of a control character in `chars`, after any escaped backslash, and raw ones. */
const KEYS = /\\(\\|e|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\})|[\x00-\x1f\x7f]/g;

/** The keys that people know by these names; other escapes stay as the model wrote them. */
const CARETS = new Map([
  [0x03, "^C"],
  [0x04, "^D"],
  [0x1b, "^["],
]);

const RAW_NAMES = new Map([
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
]);

/** Takes the `chars` of a write_stdin call and gives them with control characters one can read. */
export function inputText(chars: string): string {
  return chars.slice(0, MAX_COMMAND_CHARS).replace(KEYS, (found, escape?: string) => {
    if (escape === undefined) return RAW_NAMES.get(found) ?? caret(found.charCodeAt(0));
    if (escape === "\\") return found;
    const code = escape === "e" ? 0x1b : Number.parseInt(escape.replace(/[^0-9a-fA-F]/g, ""), 16);
    return CARETS.get(code) ?? found;
  });
}

function caret(code: number): string {
  return `^${String.fromCharCode(code ^ 0x40)}`;
}

function killSpans(args: Fields, context: RowContext): Span[] {
  // While the arguments stream in a signal may still come; afterwards none means SIGTERM.
  const streaming = context.isPartial && !context.argsComplete && !context.executionStarted;
  const signal = labelOf(args.signal) ?? (streaming ? "" : "SIGTERM");
  return [title("✕ kill_session"), ...target(args, " → "), span(` ${signal}`, "toolOutput")];
}

function target(args: Fields, before: string): Span[] {
  return [
    span(before, "muted"),
    span(`session_id=${labelOf(args.session_id) ?? "…"}`, "accent"),
  ];
}

function yieldText(args: Fields): string | undefined {
  const until = labelOf(args.yield_until);
  if (until !== undefined) return `until ${until}`;
  const ms = numberOf(args.yield_time_ms);
  return ms === undefined ? undefined : `yield ${formatSeconds(ms)}`;
}
