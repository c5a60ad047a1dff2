/**
 * The stream tools: bash_stream, poll_process, write_stdin, kill_process, list_processes and
 * get_process_log. Each is one request to execd (docs: bash-stream.md, pi.md).
 */
import { resolveBashMaxOutputChars } from "../config.ts";
import type { Call, ToolResult } from "../host.ts";
import type { Instance } from "../instance.ts";
import { type StreamToolName, streamRenderers } from "../render/index.ts";
import type { JobList, LogPage, StdinResult } from "../wire.ts";
import { commandPlace } from "./place.ts";
import {
  cleanPage, listText, pageText, reportDetails, reportText, stdinText,
} from "./stream-answer.ts";
import * as texts from "./stream-texts.ts";
import { type Waited, requestReport, runJob, sessionFields } from "./stream-wait.ts";
import type { Surface } from "./surface.ts";
import {
  type Params, type Tool, type ToolText, answer, definition, given, outputAnswer,
} from "./tool.ts";
import { STREAM_WORDS } from "./words.ts";

/** How long execd lets bash_stream wait where nobody says, and between which bounds. */
const YIELD_MS = { unset: 60_000, least: 1_000, most: 120_000 };
/** The same of the characters of a text. */
const CHARS = { unset: 30_000, least: 1, most: 150_000 };

/** What execd makes of a setting. */
function effective(
  value: number | undefined,
  { unset, least, most }: { unset: number; least: number; most: number },
): number {
  return Math.min(Math.max(value ?? unset, least), most);
}

export const stream: Surface = {
  name: "stream",
  tools: () => Object.keys(streamRenderers),
  replacesBash: "bash_stream",
  words: STREAM_WORDS,
  define: (instance) => tools(instance).map((tool) => definition(instance, STREAM_WORDS, tool)),
};

function tools(instance: Instance): Tool[] {
  const tool = (name: StreamToolName, text: ToolText, execute: Tool["execute"]): Tool =>
    ({ name, text, execute, renderers: streamRenderers[name] });
  const yieldMs = effective(instance.bashYieldMs, YIELD_MS);
  const chars = effective(resolveBashMaxOutputChars(), CHARS);
  const where = { remote: instance.isRemote, logs: instance.logPlace };
  return [
    tool("bash_stream", texts.bashStreamText(where, yieldMs, chars), bashStream),
    tool("poll_process", texts.pollProcessText(where.logs), pollProcess),
    tool("write_stdin", texts.writeStdinText, writeStdin),
    tool("kill_process", texts.killProcessText, killProcess),
    tool("list_processes", texts.listProcessesText(where.logs), listProcesses),
    tool("get_process_log", texts.getProcessLogText(where.logs), getProcessLog),
  ];
}

async function bashStream(instance: Instance, params: Params, call: Call): Promise<ToolResult> {
  const { workdir, env, ...others } = params;
  const place = await commandPlace(instance, call, workdir, env);
  const request = {
    // The call's own values come last: they beat the flag and the environment.
    ...given({ yieldMs: instance.bashYieldMs, maxOutputChars: resolveBashMaxOutputChars() }),
    ...others,
    ...place.params,
    stream: call.onUpdate !== undefined || instance.hasEvents,
  };
  const { command, stdinMode } = params;
  const known = { ...given({ command, stdinMode }), ...place.known };
  return reported(instance, await runJob(instance, "bash_stream", request, call, known));
}

async function pollProcess(instance: Instance, params: Params, call: Call): Promise<ToolResult> {
  const known = sessionFields(instance, Number(params.sessionId));
  return reported(instance, await runJob(instance, "poll_process", params, call, known));
}

async function killProcess(instance: Instance, params: Params, call: Call): Promise<ToolResult> {
  return reported(instance, await requestReport(instance, "kill_process", params, call));
}

function reported(instance: Instance, report: Waited): ToolResult {
  instance.client.noteSessionId(report.sessionId);
  return outputAnswer(reportText(report), reportDetails(report));
}

async function writeStdin(instance: Instance, params: Params, call: Call): Promise<ToolResult> {
  const reply = await instance.request("write_stdin", { data: "", ...params }, call);
  return answer(stdinText(reply as unknown as StdinResult), reply);
}

async function listProcesses(instance: Instance, _params: Params, call: Call): Promise<ToolResult> {
  // Without a daemon there are no processes; none is started to say so.
  const reply = instance.client.isRunning
    ? await instance.request("list_processes", {}, call)
    : { processes: [] };
  return answer(listText(reply as unknown as JobList), reply);
}

async function getProcessLog(instance: Instance, params: Params, call: Call): Promise<ToolResult> {
  const { raw, ...request } = params;
  const reply = await instance.request("get_process_log", request, call) as unknown as LogPage;
  const page = raw === true ? reply : cleanPage(reply);
  const { text: _, ...details } = page;
  return outputAnswer(pageText(page), details);
}
