/**
 * How the calls of the stream tools look: `$ cmd (yield 60s · pty)`, `⟳ poll → 3`,
 * `» 12 bytes → 3 (eof)`, `✕ kill 3 SIGKILL`, and titles for the rest.
 */
import { shownPath } from "./body.ts";
import { MAX_COMMAND_CHARS, asides, call, commandSpans, title } from "./call.ts";
import type { Fields } from "./fields.ts";
import { base64Bytes, fieldsOf, labelOf, numberOf, stdinNote, stringOf } from "./fields.ts";
import type { RenderCall, RowContext, Span } from "./row.ts";
import { span } from "./row.ts";
import { formatSeconds } from "./safe.ts";

/** Draws `$ cmd (yield 60s · pty)`. */
export const renderBashStreamCall: RenderCall = call((args) => [
  ...commandSpans(args.command),
  ...asides([
    timeNote("yield", args.yieldMs),
    timeNote("timeout", args.timeoutMs),
    workdirNote(args.workdir),
    stdinNote(args.stdinMode),
  ]),
]);

/** Draws `⟳ poll → 3 (wait 5s)`, or `(to its end, 600s)`. */
export const renderPollCall: RenderCall = call((args) => {
  const killIf = labelOf(args.killIf);
  return [
    title("⟳ poll"),
    ...target(args, " → "),
    ...asides([
      waitNote("to its end,", args.waitMs),
      waitNote("wait", args.maxDrainMs),
      killIf === undefined ? undefined : `kill if ${killIf}`,
    ]),
  ];
});

/** Draws `» 12 bytes → 3 (eof)`; the data itself stands below when expanded. */
export const renderStdinCall: RenderCall = call((args, context) => [
  title(`» ${bytesOf(args.data)}`),
  ...target(args, " → "),
  ...asides([args.eof === true || args.eof === "true" ? "eof" : undefined]),
  ...dataSpans(args.data, context),
]);

/** Draws `✕ kill 3 SIGKILL`. */
export const renderKillProcessCall: RenderCall = call((args, context) => {
  // While the arguments stream in a signal may still come; afterwards none means SIGKILL.
  const streaming = context.isPartial && !context.argsComplete && !context.executionStarted;
  const signal = labelOf(args.signal) ?? (streaming ? "" : "SIGKILL");
  return [title("✕ kill"), ...target(args, " "), span(` ${signal}`, "toolOutput")];
});

/** Draws `list_processes`. */
export const renderListProcessesCall: RenderCall = call(() => [title("list_processes")]);

/** Draws `log 3 (from 1000 · stderr)`. */
export const renderLogCall: RenderCall = call((args) => {
  const offset = labelOf(args.offset);
  const limit = labelOf(args.limit);
  return [
    title("log"),
    ...target(args, " "),
    ...asides([
      offset === undefined ? undefined : `from ${offset}`,
      limit === undefined ? undefined : `${limit} bytes`,
      labelOf(args.stream),
      args.encoding === "base64" ? "base64" : undefined,
    ]),
  ];
});

function target(args: Fields, before: string): Span[] {
  return [span(before, "muted"), span(labelOf(args.sessionId) ?? "…", "accent")];
}

/** `yield 60s`, `yield 2.5s`: whole seconds need no tenths here. */
function timeNote(what: string, value: unknown): string | undefined {
  const ms = numberOf(value);
  if (ms === undefined) return undefined;
  const whole = ms >= 0 && ms % 1000 === 0;
  return `${what} ${whole ? `${ms / 1000}s` : formatSeconds(ms)}`;
}

/** The same of a wait: none where there is none. */
function waitNote(what: string, value: unknown): string | undefined {
  return (numberOf(value) ?? 0) > 0 ? timeNote(what, value) : undefined;
}

function workdirNote(workdir: unknown): string | undefined {
  const path = stringOf(workdir);
  return path ? `cwd: ${shownPath(path)}` : undefined;
}

function bytesOf(data: unknown): string {
  const base64 = stringOf(fieldsOf(data).base64);
  const text = stringOf(data) ?? "";
  const bytes = base64 === undefined ? Buffer.byteLength(text) : base64Bytes(base64);
  return `${bytes} ${bytes === 1 ? "byte" : "bytes"}`;
}

function dataSpans(data: unknown, { expanded }: RowContext): Span[] {
  const text = stringOf(data) ?? "";
  if (!expanded || text === "") return [];
  const over = text.length - MAX_COMMAND_CHARS;
  const more = over > 0 ? `… ${over} more characters` : "";
  return [span(`\n${text.slice(0, MAX_COMMAND_CHARS)}${more}`, "toolOutput")];
}
