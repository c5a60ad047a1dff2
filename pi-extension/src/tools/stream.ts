/**
 * The stream tools: bash_stream, poll_process, write_stdin, kill_process, list_processes and
 * get_process_log. Each is one request to execd (docs: bash-stream.md, pi.md).
 */
import type { StdinResult } from "../execd/wire-results.ts";
import type { Call, ToolResult } from "../pi/host.ts";
import { resolveBashMaxOutputChars } from "../pi/settings.ts";
import { streamRenderers } from "../render/index.ts";
import { given } from "../text/values.ts";
import { coerceBoolean } from "./coerce.ts";
import type { ToolContext } from "./context.ts";
import type { Family } from "./family.ts";
import { commandPlace, whereIs } from "./place.ts";
import {
  cleanPage, listText, pageText, reportDetails, reportText, stdinText,
} from "./stream-answer.ts";
import { type StreamName, streamTexts } from "./stream-texts.ts";
import { type Waited, requestReport, runStreamWait, sessionFields } from "./stream-wait.ts";
import { type Params, type Tool, answer, definition, outputAnswer } from "./tool.ts";
import { STREAM_WORDS } from "./words.ts";

/** How long execd lets bash_stream wait where nobody says, and between which bounds. */
const YIELD_MS = { unset: 60_000, least: 1_000, most: 120_000 };
/** How many characters of each text execd shows where nobody says, and between which bounds. */
const CHARS = { unset: 30_000, least: 1, most: 150_000 };

/** What execd makes of a setting. */
function effective(
  value: number | undefined,
  { unset, least, most }: { unset: number; least: number; most: number },
): number {
  return Math.min(Math.max(value ?? unset, least), most);
}

export function stream(context: ToolContext): Family {
  return {
    name: "stream",
    tools: () => Object.keys(streamRenderers),
    replacesBash: "bash_stream",
    words: STREAM_WORDS,
    define: () => tools(context).map((tool) => definition(context, STREAM_WORDS, tool)),
  };
}

/** What the tools do. */
const RUN: Record<StreamName, Tool["execute"]> = {
  bash_stream: bashStream,
  poll_process: pollProcess,
  write_stdin: writeStdin,
  kill_process: killProcess,
  list_processes: listProcesses,
  get_process_log: getProcessLog,
};

function tools(context: ToolContext): Tool[] {
  const yieldMs = effective(context.settings.bashYieldMs, YIELD_MS);
  const chars = effective(resolveBashMaxOutputChars(), CHARS);
  const texts = streamTexts(whereIs(context), yieldMs, chars);
  return Object.entries(RUN).map(([key, execute]) => {
    const name = key as StreamName;
    return { name, text: texts[name], execute, renderers: streamRenderers[name] };
  });
}

async function bashStream(context: ToolContext, params: Params, call: Call): Promise<ToolResult> {
  const { workdir: _, env: __, ...others } = params;
  const place = await commandPlace(context, call, params);
  const request = {
    // The call's own values come last: they beat the settings.
    ...given({
      yieldMs: context.settings.bashYieldMs, maxOutputChars: resolveBashMaxOutputChars(),
    }),
    ...others,
    ...place.params,
    stream: call.onUpdate !== undefined || typeof context.host.events?.emit === "function",
  };
  const { command, stdinMode } = params;
  const known = { ...given({ command, stdinMode }), ...place.known };
  const report = await runStreamWait(context, "bash_stream", request, call, known);
  return reported(context, report, params);
}

async function pollProcess(context: ToolContext, params: Params, call: Call): Promise<ToolResult> {
  const known = sessionFields(context, Number(params.sessionId));
  const report = await runStreamWait(context, "poll_process", params, call, known);
  return reported(context, report, params);
}

async function killProcess(context: ToolContext, params: Params, call: Call): Promise<ToolResult> {
  return reported(context, await requestReport(context, "kill_process", params, call));
}

function reported(context: ToolContext, report: Waited, asked: Params = {}): ToolResult {
  context.execd.noteSessionId(report.sessionId);
  return outputAnswer(reportText(report, asked), reportDetails(report));
}

async function writeStdin(context: ToolContext, params: Params, call: Call): Promise<ToolResult> {
  const reply = await context.request("write_stdin", { data: "", ...params }, call);
  return answer(stdinText(reply as StdinResult), { ...reply, running: true });
}

async function listProcesses(context: ToolContext, _params: Params, call: Call): Promise<ToolResult> {
  // Without a daemon there are no sessions; none is started to say so.
  const reply = context.execd.isRunning
    ? await context.request("list_processes", {}, call)
    : { processes: [] };
  return answer(listText(reply), reply);
}

async function getProcessLog(context: ToolContext, params: Params, call: Call): Promise<ToolResult> {
  const { raw, ...request } = params;
  const reply = await context.request("get_process_log", request, call);
  const page = coerceBoolean(raw) === true ? reply : cleanPage(reply);
  const { text: _, ...details } = page;
  const running = context.sessions.get(page.sessionId) !== undefined;
  return outputAnswer(pageText(page), { ...details, running });
}
