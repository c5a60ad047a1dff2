/**
 * How the results of the stream tools look. Details may be the daemon's, those of an older version,
 * or `{}` after a thrown error: every field is looked at before it is used.
 */
import { plainText } from "../text/plain.ts";
import type { StreamSession, LogPage } from "../wire-results.ts";
import { bodyBlocks, logLack, notice, shownPath } from "./body.ts";
import type { Fields } from "./fields.ts";
import { arrayOf, fieldsOf, labelOf, numberOf, stdinNote, stringOf } from "./fields.ts";
import type { Drawing, Unchecked } from "./result.ts";
import {
  LIST_CELLS, elapsedPart, line, listed, muted, oneLineBlocks, result, toldOutput,
} from "./result.ts";
import type { Block, RenderResult, Span } from "./row.ts";
import { span } from "./row.ts";
import { forgottenText, formatAge, formatSeconds, formatSize, oneLine } from "./safe.ts";

/** The most background processes that are named. */
const MAX_NAMED = 16;

/** Draws a process's output and `took 4.2s · exitCode=0 · log: ~/…`. */
export const renderReportResult: RenderResult = result(reportBlocks);

/** Draws one line for each process. */
export const renderProcessesResult: RenderResult = result(processesBlocks);

/** Draws a page of a log, from its beginning, and which part it is. */
export const renderLogResult: RenderResult = result(logBlocks);

/** Draws what became of input, in one line. */
export const renderStdinResult: RenderResult = result(({ text, partial, context }) =>
  partial ? [] : oneLineBlocks(text.split(". ", 1)[0] ?? "", context.isError ? "error" : "muted"));

function reportBlocks(drawing: Drawing): Block[] {
  const { details, context, expanded, partial } = drawing;
  const output = outputOf(drawing);
  return bodyBlocks(
    {
      output: output ?? drawing.text,
      outputTone: context.isError && output === undefined ? "error" : "toolOutput",
      notices: partial ? liveNotices(details) : reportNotices(details),
      status: partial
        ? [elapsedPart(drawing), sessionPart(details), logPart(details)]
        : reportStatus(details),
    },
    expanded,
    context,
  );
}

/** The output in order of arrival, where the report has it so; what is raw is made plain. */
function outputOf(drawing: Drawing): string | undefined {
  const { details, text } = drawing;
  const { output, aggregated, stdout, stderr, tail } = details;
  const streams = [stringOf(stdout), stringOf(stderr)].filter((one) => one !== undefined);
  const apart = streams.length > 0 ? streams.join("") : undefined;
  const known = toldOutput(drawing) ?? plainOf(output) ?? stringOf(aggregated) ?? apart;
  return known ?? plainOf(tail) ?? (details.status === undefined && text !== "" ? undefined : "");
}

function plainOf(raw: unknown): string | undefined {
  return typeof raw === "string" ? plainText(raw) : undefined;
}

/** Where so much came that no more of it is told as it comes. */
function liveNotices(details: Fields): Span[] {
  const text = "[No more of the output is shown live: it is too much.]";
  return notice(details.liveEnded === true ? text : undefined, "warning");
}

function reportNotices(details: Fields): Span[] {
  const log = logPath(details);
  const full = log === undefined ? "" : ` Full output: ${log}${lackOf(details)}`;
  const pids = arrayOf(details.backgroundPids).slice(0, MAX_NAMED).map(labelOf).filter(Boolean);
  return [
    ...notice(details.truncated === true ? `[Showing the end.${full}]` : undefined, "warning"),
    ...notice(pids.length > 0 ? `still in the background: ${pids.join(", ")}` : "", "warning"),
    ...notice(details.late === true ? "some came after its end" : undefined, "warning"),
    ...notice(details.timedOut === true ? "its time was over" : undefined, "error"),
    ...notice(stringOf(details.error), "error"),
    ...notice(stringOf(details.note), "warning"),
    ...notice(stringOf(details.failureMessage), "error"),
    ...notice(details.aborted === true ? "ended by Esc" : undefined, "error"),
  ];
}

function reportStatus(details: Fields): (Span | undefined)[] {
  if (details.status === undefined) return [];
  const runs = details.status === "running";
  const yielded = runs && details.waitedMs !== undefined;
  const ms = numberOf(yielded ? details.waitedMs : details.durationMs);
  const what = yielded ? "yielded" : runs ? "running" : "took";
  const early = details.interrupted === true ? " (a message came)" : "";
  const time = muted(`${what}${ms === undefined ? "" : ` ${formatSeconds(ms)}`}${early}`);
  return [time, runs ? sessionPart(details) : exitPart(details), logPart(details)];
}

function exitPart(details: Fields): Span | undefined {
  const signal = labelOf(details.signal);
  if (signal !== undefined) return span(`signal=${signal}`, "error");
  const code = labelOf(details.exitCode);
  if (code === undefined) return undefined;
  return span(`exitCode=${code}`, code === "0" ? "muted" : "error");
}

function sessionPart(details: Fields): Span | undefined {
  const id = labelOf(details.sessionId);
  return id === undefined ? undefined : muted(`sessionId=${id}`);
}

function logPart(details: Fields): Span | undefined {
  const path = logPath(details);
  if (path === undefined) return undefined;
  const lack = lackOf(details);
  return lack === "" ? muted(`log: ${path}`) : span(`log: ${path}${lack}`, "warning");
}

function lackOf(details: Fields): string {
  return logLack(details.logComplete, details.logTruncated);
}

function logPath(details: Fields): string | undefined {
  const path = stringOf(details.logPath);
  return path ? shownPath(path) : undefined;
}

function processesBlocks(drawing: Drawing): Block[] {
  const { details, text, context, expanded, partial } = drawing;
  if (!Array.isArray(details.processes)) {
    return partial ? [] : bodyBlocks({ output: text }, expanded, context);
  }
  const rows = details.processes.map((row) => processBlocks(fieldsOf(row), expanded));
  const [forgotten, keptMax, keptMs] =
    [details.forgotten, details.keptMax, details.keptMs].map(numberOf);
  const gone = forgottenText({ forgotten, keptMax, keptMs });
  const last: Block[] = gone === undefined ? [] : [{ kind: "cut", spans: [muted(gone)] }];
  if (rows.length === 0) return [...oneLineBlocks("no processes", "muted"), ...last];
  return [...listed(rows, ["process", "processes"], drawing), ...last];
}

function processBlocks(row: Unchecked<StreamSession>, expanded: boolean): Block[] {
  const cells = expanded ? LIST_CELLS * 10 : LIST_CELLS;
  const stdin = stdinNote(row.stdinMode);
  const marks = [
    stdin === undefined ? undefined : muted(stdin),
    row.status === "running" ? undefined : (exitPart(row) ?? muted("ended")),
  ].filter((mark) => mark !== undefined);
  const spans = [
    span(describeProcess(row, cells), "toolOutput"),
    ...marks.flatMap((mark) => [muted(" · "), mark]),
  ];
  if (!expanded) return [{ kind: "cut", spans }];
  const log = logPath(row);
  return [line(spans), ...(log === undefined ? [] : [line([muted(`   log: ${log}`)])])];
}

/**
 * Takes a process as list_processes tells it and gives `#2 41s npm run dev (~/project)`, with its
 * name before the command where it has one; `cells` bounds the command.
 */
export function describeProcess(row: Unchecked<StreamSession>, cells: number): string {
  const name = stringOf(row.name);
  const command = oneLine(stringOf(row.command) ?? "", cells);
  const cwd = stringOf(row.cwd);
  const words = [
    `#${labelOf(row.sessionId) ?? "?"}`,
    formatAge(numberOf(row.durationMs) ?? 0),
    name ? `${oneLine(name, cells)}: ${command}` : command,
    cwd ? `(${oneLine(shownPath(cwd), LIST_CELLS)})` : undefined,
  ];
  return words.filter((word) => word).join(" ");
}

function logBlocks(drawing: Drawing): Block[] {
  const { details, text, context, expanded, partial } = drawing;
  if (partial) return [];
  const page: Unchecked<LogPage> = details;
  const told = toldOutput(drawing) ?? page.text;
  const output = page.encoding === "base64" ? stringOf(told) : plainOf(told);
  const status = output === undefined ? [] : [muted(partText(page))];
  return bodyBlocks({ output: output ?? text, keep: "start", status }, expanded, context);
}

function partText(page: Unchecked<LogPage>): string {
  const [from, to, total] = [page.offset, page.nextOffset, page.totalBytes].map(labelOf);
  const size = formatSize(numberOf(page.totalBytes) ?? 0);
  const end = page.eof === true ? " · end" : "";
  return `bytes ${from ?? "?"} to ${to ?? "?"} of ${total ?? "?"} (${size})${end}`;
}
