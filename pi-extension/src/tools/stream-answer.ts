/** What a model reads of the results of the stream tools: facts, a rule, output, how to go on. */
import type { Far } from "../execd/far-logs.ts";
import type {
  LogPage, StdinResult, StreamList, StreamReport, StreamSession,
} from "../execd/wire-results.ts";
import { stdinNote } from "../render/fields.ts";
import { forgottenText, formatAge, formatSize } from "../text/figures.ts";
import { cutSequence, plainText } from "../text/plain.ts";
import { type Asked, doingWords, endedWords } from "../text/waits.ts";
import { oneLine } from "../text/width.ts";
import type { Waited } from "./stream-wait.ts";
import type { Told } from "./tool.ts";

const COMMAND_CELLS = 200;
const PATH_CELLS = 240;

/** Takes the report of a session, and what its call asked for, and gives its text. */
export function reportText(report: Waited, asked: Asked = {}): Told {
  const facts: (keyof Waited)[] = [
    "sessionId", "exitCode", "signal", "timedOut", "error", "pid", "durationMs", "logPath",
  ];
  // Of a session that has ended the pid says nothing.
  const lines = facts.filter((name) => name !== "pid" || report.status === "running")
    .filter((name) => report[name] !== undefined)
    .map((name) => `${name === "logPath" ? logLabel(name, report) : name}: ${String(report[name])}`);
  lines.push(...doingLines(report, asked));
  const head = [`[${report.status}]`, ...lines].join("\n");
  const notes = notesOf(report).map((note) => `\n[${note}]`);
  const { output, none } = outputOf(report);
  const told = { head: `${head}\n---\n`, output, foot: output ? "" : none };
  if (notes.length === 0) return told;
  const end = output.endsWith("\n") ? "" : "\n";
  return { ...told, foot: `${told.foot}${end}${notes.join("\n")}` };
}

/** What ended the wait, and what the session is doing, but for what the note says. */
function doingLines(report: Waited, asked: Asked): string[] {
  if (isStuck(report)) {
    return ["wait: impossible", ...doingWords({ ...report, state: undefined })];
  }
  const ended = endedWords(report.wait, asked, report.listening);
  const lines = ended === undefined ? [] : [`wait: ${ended.words}`];
  return report.status === "running" ? [...lines, ...doingWords({ ...report })] : lines;
}

/** Whether nothing but input moves the session on: its note says who waits, and what to do. */
function isStuck({ status, wait, note }: Waited): boolean {
  return status === "running" && wait?.outcome === "impossible" && Boolean(wait.state && note);
}

/**
 * The output, both streams under their names where there is more than stdout; and what is said
 * where there is none.
 */
function outputOf(report: Waited): { output: string; none: string } {
  const { status, stdout, stderr, tail } = report;
  const runs = status === "running";
  if (runs && stdout === undefined) {
    return { output: plainText(tail ?? ""), none: "(no output so far)" };
  }
  const none = runs ? "(no new output)" : "(no output)";
  if (!stderr) return { output: stdout ?? "", none };
  const first = stdout ? `stdout:\n${lineOf(stdout)}` : "";
  return { output: `${first}stderr:\n${stderr}`, none };
}

/** What is kept of a report beside its text. */
export function reportDetails(report: Waited): object {
  const { stdout: _, stderr: __, aggregated: ___, tail: ____, ...details } = report;
  return details;
}

/** What stands before the path of a log: one on another machine is no file here. */
function logLabel(word: string, of: StreamReport | StreamSession): string {
  return (of as Far).far === true ? `${word} on that machine` : word;
}

function lineOf(text: string): string {
  return text.endsWith("\n") ? text : `${text}\n`;
}

function notesOf(report: Waited): string[] {
  const { status, sessionId, stdout, truncated, late, backgroundPids = [] } = report;
  const runs = status === "running";
  const notes: string[] = report.note ? [report.note] : [];
  notes.push(...logNotes(report));
  if (truncated) {
    const rest = report.logPath === undefined ? "what memory still has of it" : "any part of the log";
    notes.push(`Only the end of it is shown; get_process_log with sessionId ${sessionId} gives `
      + rest);
  }
  const log = report.logPath === undefined ? "" : ` (${logLabel("log", report)}: ${report.logPath})`;
  if (report.password !== undefined) notes.push(report.password);
  if (late) notes.push(`Some of this came after the command had ended${log}`);
  if (backgroundPids.length > 0) {
    notes.push(`Still running in the background: pid ${backgroundPids.join(", ")}; poll_process `
      + `with sessionId ${sessionId} tells what comes later${log}; kill_process ends what runs`);
  }
  if (report.aborted) {
    return [...notes, runs
      ? "The user pressed Esc: the command and all that it had started are being ended"
      : "The user pressed Esc: the command and all that it had started were ended"];
  }
  if (report.interrupted) {
    notes.push("A message from the user ended this wait; the command goes on");
  }
  if (!runs) return notes;
  if (isStuck(report)) {
    // Who polls on would only be told the same.
    const shown = stdout === undefined && report.tail;
    return shown ? [...notes, "This is the end of its output so far"] : notes;
  }
  const shown = stdout === undefined ? ", this is the end of its output so far" : "";
  const go = `Still running${shown}. poll_process with sessionId ${sessionId} and waitMs waits for `
    + "the end, with maxDrainMs for more output";
  // A password is not the model's to type.
  const types = report.state === "waiting_for_password" ? "" : "write_stdin types into it, ";
  return [...notes, `${go}; ${types}kill_process ends it`];
}

/** What is wrong with a log. */
function logNotes({ failureMessage, logTruncated }: StreamReport | LogPage): string[] {
  const limit = logTruncated ? "the log ended at its limit, what came later is not in it" : "";
  return [failureMessage ?? "", limit].filter(Boolean);
}

/** Takes the sessions and gives one line for each. */
export function listText(list: StreamList): string {
  const { processes, ...bounds } = list;
  const gone = forgottenText(bounds);
  const last = gone === undefined ? [] : [gone];
  if (processes.length === 0) return ["no processes", ...last].join("\n");
  const running = processes.filter(({ status }) => status === "running").length;
  const head = `${running} running, ${processes.length - running} ended`;
  return [head, ...processes.map(rowText), ...last].join("\n");
}

function rowText(row: StreamSession): string {
  const parts = [
    `sessionId ${row.sessionId}`,
    row.status,
    row.exitCode === undefined ? undefined : `exitCode ${row.exitCode}`,
    row.signal,
    formatAge(row.durationMs),
    row.status === "running" ? `pid ${row.pid}` : undefined,
    ...doingWords({ ...row }),
    row.name === undefined ? undefined : oneLine(row.name, COMMAND_CELLS),
    `${oneLine(row.command, COMMAND_CELLS)} (${oneLine(row.cwd, PATH_CELLS)})`,
    stdinNote(row.stdinMode),
    formatSize(row.outputBytes),
    row.logPath === undefined ? undefined : `${logLabel("log", row)} ${oneLine(row.logPath, PATH_CELLS)}`,
  ];
  return `- ${parts.filter(Boolean).join(" · ")}`;
}

/**
 * Takes a page of a log and gives it as clean text. A sequence that the page cuts is left to the
 * next one, which begins with it.
 */
export function cleanPage(page: LogPage): LogPage {
  if (page.encoding === "base64") return page;
  const cut = page.eof ? 0 : cutSequence(page.text);
  // A page that has nothing but a cut sequence must lead on all the same.
  const kept = page.text.length - (cut < page.text.length ? cut : 0);
  const leftOver = Buffer.byteLength(page.text.slice(kept));
  const text = plainText(page.text.slice(0, kept));
  return { ...page, text, nextOffset: page.nextOffset - leftOver };
}

/** Takes a page of a log and gives which part it is, how to go on, and the page. */
export function pageText(page: LogPage): Told {
  const { sessionId, offset, nextOffset, totalBytes, eof, text } = page;
  const atEnd = nextOffset >= totalBytes;
  const go = eof ? "end of the log"
    : atEnd ? "all there is so far"
    : `next page: offset ${nextOffset}`;
  const what = `bytes ${offset} to ${nextOffset} of ${totalBytes}`;
  const gap = page.omittedBytes ? [`${page.omittedBytes} bytes before it cannot be given`] : [];
  const late = page.late ? ["some of it came after the command had ended"] : [];
  const said = [what, go, ...gap, ...late, ...logNotes(page)].join("; ");
  const head = `[log of sessionId ${sessionId}, ${said}]\n---\n`;
  return { head, output: text, foot: text ? "" : "(nothing)" };
}

/** Takes what became of input and gives it in words. */
export function stdinText({ written, queued, eof }: StdinResult): string {
  const unread = queued > 0 ? `; ${queued} of its input are not read yet` : "";
  const closed = eof ? "; stdin is closed" : "";
  return `wrote ${written} ${written === 1 ? "byte" : "bytes"}${unread}${closed}. `
    + "poll_process shows what it answers.";
}
