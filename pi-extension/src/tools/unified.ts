/**
 * The unified tools: exec_command, write_stdin, wait_for, kill_session and list_sessions; and what is
 * rarely used, set_on_exit and resize_session. Each is one request to execd (docs: unified-exec.md,
 * pi.md).
 */
import type { ToolDefinition } from "@earendil-works/pi-coding-agent";
import type { KillResult, ListResult, SetOnExitResult } from "../execd/wire-results.ts";
import type { Call, ToolResult } from "../pi/host.ts";
import { DEFAULT_MAX_EMPTY_POLL_MS, resolveMaxEmptyPollMs } from "../pi/settings.ts";
import { renderers, type UnifiedToolName } from "../render/index.ts";
import { given } from "../text/values.ts";
import type { ToolContext } from "./context.ts";
import { asModelsRead, besides, ownEnd } from "./ends.ts";
import type { Family } from "./family.ts";
import { commandPlace, whereIs } from "./place.ts";
import {
  type Params, type Tool, type ToolText, answer, definition, outputAnswer,
} from "./tool.ts";
import { type MoreName, type UnifiedName, moreTexts, unifiedTexts } from "./unified-texts.ts";
import { runWait } from "./wait.ts";
import { waitFor } from "./wait-for.ts";
import { UNIFIED_WORDS } from "./words.ts";

const NO_SESSIONS = "unified-exec sessions (0 live):\n  (no live sessions)";

export function unified(context: ToolContext): Family {
  return {
    name: "unified",
    tools: () => Object.keys(RUN),
    replacesBash: "exec_command",
    words: UNIFIED_WORDS,
    define: () => {
      const texts = unifiedTexts(whereIs(context), resolveMaxEmptyPollMs());
      return defined(context, RUN, texts);
    },
  };
}

/** What is rarely used, and is not in every request for that reason. */
export function more(context: ToolContext): Family {
  return {
    name: "more",
    tools: () => Object.keys(RUN_MORE),
    words: UNIFIED_WORDS,
    define: () => defined(context, RUN_MORE, moreTexts()),
  };
}

/** What the tools do. */
const RUN: Record<UnifiedName, Tool["execute"]> = {
  exec_command: execCommand,
  write_stdin: writeStdin,
  wait_for: waitForSessions,
  kill_session: killSession,
  list_sessions: listSessions,
};

const RUN_MORE: Record<MoreName, Tool["execute"]> = {
  set_on_exit: setOnExit,
  resize_session: resizeSession,
};

function defined<Name extends UnifiedToolName>(
  context: ToolContext,
  run: Record<Name, Tool["execute"]>,
  texts: Record<Name, ToolText>,
): ToolDefinition[] {
  const names = Object.keys(run) as Name[];
  return names.map((name) => definition(context, UNIFIED_WORDS, {
    name, text: texts[name], execute: run[name], renderers: renderers[name],
  }));
}

async function execCommand(context: ToolContext, params: Params, call: Call): Promise<ToolResult> {
  const { workdir: _, env: __, ...others } = params;
  const place = await commandPlace(context, call, params);
  const request = { ...others, ...pollCap(), ...place.params };
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
  const far = log_path !== undefined && context.execd.isRemote ? true : undefined;
  const known = { session_id: id, ...given({ command, cwd, tty, pid, log_path, far }) };
  return runWait(context, "write_stdin", request, call, known);
}

async function waitForSessions(
  context: ToolContext,
  params: Params,
  call: Call,
): Promise<ToolResult> {
  return waitFor(context, { session_ids: "all", ...params, ...pollCap() }, call);
}

/**
 * The cap of a poll, where it is not execd's own: execd clamps a wait that is longer, and says what it
 * clamped it to.
 */
function pollCap(): Params {
  const max_empty_poll_ms = resolveMaxEmptyPollMs();
  return max_empty_poll_ms === DEFAULT_MAX_EMPTY_POLL_MS ? {} : { max_empty_poll_ms };
}

async function killSession(context: ToolContext, params: Params, call: Call): Promise<ToolResult> {
  const { command } = context.sessions.get(Number(params.session_id)) ?? {};
  const ends = (result: KillResult) => ownEnd({ command, ...result }, false);
  const reply = await context.request("kill_session", { ...params, ...asModelsRead(context) }, {
    ...call,
    onLate: (late: KillResult) => context.wakes.onUntold(ends(late), late.events),
  });
  const { footer, final_output: output = "", events, ...result } = reply;
  const told = besides(context, call.toolCallId, ends(reply), events);
  const running = (result.survivors ?? []).length > 0;
  const status = !result.found ? "unknown" : running ? "running" : "killed";
  const details = { status, running, ...result, ...told.details };
  if (!result.found) return answer(`unknown session_id: ${result.session_id}${told.lines}`, details);
  const survivors = (result.survivors ?? []).map(
    ({ pid, command, reason }) => `\nnot ended: ${pid} ${command} (${reason})`,
  );
  const summary = told.without(result.summary ?? "");
  const head = `${summary}${survivors.join("")}${told.lines}${output && "\n---\n"}`;
  return outputAnswer({ head, output, foot: footer ? `\n\n${footer}` : "" }, { ...details, summary });
}

async function listSessions(context: ToolContext, _params: Params, call: Call): Promise<ToolResult> {
  const armed = new Set(context.wakes.armed);
  const ends = ({ sessions }: ListResult) => sessions
    .filter(({ running, window }) => !running && window === undefined)
    .flatMap((row) => ownEnd({ ...row }, armed.has(row.session_id)));
  // Without a daemon there are no sessions; none is started to say so.
  const { text, events, ...reply } = context.execd.isRunning
    ? await context.request("list_sessions", asModelsRead(context), {
      ...call,
      onLate: (late: ListResult) => context.wakes.onUntold(ends(late), late.events),
    })
    : { sessions: [], active_count: 0, text: NO_SESSIONS };
  const told = besides(context, call.toolCallId, ends({ text, ...reply }), events);
  return answer(`${told.without(text)}${told.lines}`, { ...reply, ...told.details });
}

async function setOnExit(context: ToolContext, params: Params, call: Call): Promise<ToolResult> {
  const id = Number(params.session_id);
  const { events, ...result } = await context.request(
    "set_on_exit",
    { ...params, ...asModelsRead(context) },
    { ...call, onLate: (late: SetOnExitResult) => context.wakes.onUntold([], late.events) },
  );
  const wake_armed = result.status === "armed" || result.status === "already_armed";
  if (wake_armed) context.wakes.arm(id);
  if (result.status === "disarmed") context.wakes.disarm(id);
  const text = result.found
    ? `session ${id}: ${result.status?.replace("_", " ")}`
    : `unknown session_id: ${id}`;
  const told = besides(context, call.toolCallId, [], events);
  const status = result.found ? result.status : "unknown";
  const details = { ...result, status, running: result.found, wake_armed, session_id: id };
  return answer(`${text}${told.lines}`, { ...details, ...told.details });
}

async function resizeSession(context: ToolContext, params: Params, call: Call): Promise<ToolResult> {
  const result = await context.request("resize_session", params, call);
  const size = `${result.cols ?? params.cols}x${result.rows ?? params.rows}`;
  const details = { ...params, ...result, running: true };
  return answer(`session ${params.session_id}: ${size}`, details);
}
