/**
 * The unified-exec tools: exec_command, write_stdin, wait_for, kill_session, list_sessions,
 * set_on_exit and resize_session. Each is one request to execd (docs: unified-exec.md, pi.md).
 */
import type { Call, ToolResult } from "../pi/host.ts";
import { resolveMaxEmptyPollMs } from "../pi/settings.ts";
import { renderers, type UnifiedToolName } from "../render/index.ts";
import { given } from "../text/values.ts";
import type { ToolContext } from "./context.ts";
import type { Family } from "./family.ts";
import { commandPlace, logPlace } from "./place.ts";
import {
  type Params, type Tool, type ToolText, answer, definition, outputAnswer,
} from "./tool.ts";
import * as texts from "./unified-texts.ts";
import { runWait } from "./wait.ts";
import { waitFor } from "./wait-for.ts";
import { UNIFIED_WORDS } from "./words.ts";

const NO_SESSIONS = "unified-exec sessions (0 live):\n  (no live sessions)";

export function unified(context: ToolContext): Family {
  return {
    name: "unified",
    tools: () => Object.keys(renderers),
    replacesBash: "exec_command",
    words: UNIFIED_WORDS,
    define: () => tools(context).map((tool) => definition(context, UNIFIED_WORDS, tool)),
  };
}

function tools(context: ToolContext): Tool[] {
  const tool = (name: UnifiedToolName, text: ToolText, execute: Tool["execute"]): Tool =>
    ({ name, text, execute, renderers: renderers[name] });
  const logs = logPlace(context);
  const capMs = resolveMaxEmptyPollMs();
  return [
    tool("exec_command", texts.execCommandText(context.execd.isRemote, logs, capMs), execCommand),
    tool("write_stdin", texts.writeStdinText(capMs, logs), writeStdin),
    tool("wait_for", texts.waitForText(capMs), waitForSessions),
    tool("kill_session", texts.killSessionText, killSession),
    tool("list_sessions", texts.listSessionsText(logs), listSessions),
    tool("set_on_exit", texts.setOnExitText, setOnExit),
    tool("resize_session", texts.resizeSessionText, resizeSession),
  ];
}

async function execCommand(context: ToolContext, params: Params, call: Call): Promise<ToolResult> {
  const { workdir, env, ...others } = params;
  const place = await commandPlace(context, call, workdir, env);
  const request = { ...capped(others, "yield_time_ms"), ...place.params };
  return runWait(context, "exec_command", request, call, {
    command: typeof params.cmd === "string" ? params.cmd : "",
    tty: params.tty === true,
    ...place.known,
  });
}

async function writeStdin(context: ToolContext, params: Params, call: Call): Promise<ToolResult> {
  const request = { ...params, max_empty_poll_ms: resolveMaxEmptyPollMs() };
  const id = Number(params.session_id);
  const { command, cwd, tty, pid, log_path } = context.sessions.get(id) ?? {};
  const known = { session_id: id, ...given({ command, cwd, tty, pid, log_path }) };
  return runWait(context, "write_stdin", request, call, known);
}

async function waitForSessions(
  context: ToolContext,
  params: Params,
  call: Call,
): Promise<ToolResult> {
  return waitFor(context, { session_ids: "all", ...capped(params, "timeout_ms") }, call);
}

/** Takes params and gives them with a wait that is no longer than the longest poll. */
function capped(params: Params, name: string): Params {
  const ms = params[name];
  if (typeof ms !== "number") return params;
  return { ...params, [name]: Math.min(ms, resolveMaxEmptyPollMs()) };
}

async function killSession(context: ToolContext, params: Params, call: Call): Promise<ToolResult> {
  const reply = await context.request("kill_session", params, call);
  const { footer, final_output: output = "", ...result } = reply;
  if (!result.found) return answer(`unknown session_id: ${result.session_id}`, result);
  context.wakes.onRead(call.toolCallId, result.session_id);
  const survivors = (result.survivors ?? []).map(
    ({ pid, command, reason }) => `\nnot ended: ${pid} ${command} (${reason})`,
  );
  const head = `${result.summary ?? ""}${survivors.join("")}${output && "\n---\n"}`;
  return outputAnswer({ head, output, foot: footer ? `\n\n${footer}` : "" }, result);
}

async function listSessions(context: ToolContext, _params: Params, call: Call): Promise<ToolResult> {
  // Without a daemon there are no sessions; none is started to say so.
  const { text, ...details } = context.execd.isRunning
    ? await context.request("list_sessions", {}, call)
    : { sessions: [], active_count: 0, text: NO_SESSIONS };
  return answer(text, details);
}

async function setOnExit(context: ToolContext, params: Params, call: Call): Promise<ToolResult> {
  const id = Number(params.session_id);
  const result = await context.request("set_on_exit", params, call);
  if (result.status === "armed" || result.status === "already_armed") context.wakes.arm(id);
  if (result.status === "disarmed") context.wakes.disarm(id);
  const text = result.found
    ? `session ${id}: ${result.status?.replace("_", " ")}`
    : `unknown session_id: ${id}`;
  return answer(text, { ...result, session_id: id });
}

async function resizeSession(context: ToolContext, params: Params, call: Call): Promise<ToolResult> {
  const result = await context.request("resize_session", params, call);
  const size = `${result.cols ?? params.cols}x${result.rows ?? params.rows}`;
  return answer(`session ${params.session_id}: ${size}`, { ...params, ...result });
}
