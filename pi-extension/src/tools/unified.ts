/**
 * The unified-exec tools: exec_command, write_stdin, kill_session, list_sessions, set_on_exit and
 * resize_session. Each is one request to execd (spec: unified-exec.md, pi-extension.md).
 */
import { resolve } from "node:path";
import type { ToolDefinition } from "@earendil-works/pi-coding-agent";
import { coerce } from "../coerce.ts";
import { resolveMaxEmptyPollMs } from "../config.ts";
import { commandEnv } from "../environment.ts";
import { home } from "../home.ts";
import type { Call, HostContext, ToolResult } from "../host.ts";
import type { Instance } from "../instance.ts";
import { renderers, type UnifiedToolName } from "../render/index.ts";
import type { KillResult, ListResult, SetOnExitResult } from "../wire.ts";
import type { Surface } from "./surface.ts";
import * as texts from "./unified-texts.ts";
import { runWait } from "./wait.ts";

type Params = Record<string, unknown>;
type Execute = (instance: Instance, params: Params, call: Call) => Promise<ToolResult>;

interface Tool {
  name: UnifiedToolName;
  text: texts.ToolText;
  execute: Execute;
}

/** What a call says once the session of pi is shutting down. */
const SHUTTING_DOWN = "unified-exec: shutting down";

const NO_SESSIONS = "unified-exec sessions (0 live):\n  (no live sessions)";

export const unified: Surface = {
  name: "unified",
  tools: Object.keys(renderers),
  replacesBash: true,
  define: (instance) => tools(instance).map((tool) => definition(instance, tool)),
};

function tools(instance: Instance): Tool[] {
  const cap = resolveMaxEmptyPollMs();
  return [
    { name: "exec_command", text: texts.execCommandText(instance.isRemote), execute: execCommand },
    { name: "write_stdin", text: texts.writeStdinText(cap), execute: writeStdin },
    { name: "kill_session", text: texts.killSessionText, execute: killSession },
    { name: "list_sessions", text: texts.listSessionsText, execute: listSessions },
    { name: "set_on_exit", text: texts.setOnExitText, execute: setOnExit },
    { name: "resize_session", text: texts.resizeSessionText, execute: resizeSession },
  ];
}

function definition(instance: Instance, { name, text, execute }: Tool): ToolDefinition {
  return {
    name,
    ...text,
    ...renderers[name],
    // pi checks the arguments against the schema before execute: loose types are mended first.
    prepareArguments: (args) => coerce(text.parameters, args),
    execute: (toolCallId, args, signal, onUpdate, ctx) => {
      const call = { toolCallId, signal, onUpdate, ctx: (ctx ?? {}) as HostContext };
      const params = coerce(text.parameters, args);
      return instance.run(SHUTTING_DOWN, () => execute(instance, params, call));
    },
  };
}

async function execCommand(instance: Instance, params: Params, call: Call): Promise<ToolResult> {
  const remote = instance.isRemote;
  // The daemon's environment is known once it runs.
  await instance.client.start(call.signal);
  const { workdir, env, ...others } = params;
  const cwd = remote ? stringOf(workdir) : localPath(call.ctx.cwd, workdir);
  const request = {
    ...others,
    ...given({ workdir: cwd }),
    env: commandEnv(process.env, instance.client.startedWith, remote, call.ctx, env),
  };
  const command = stringOf(params.cmd) ?? "";
  return runWait(instance, "exec_command", request, call, {
    command,
    tty: params.tty === true,
    // On another machine execd tells where it runs; a path as typed would be taken for one here.
    ...(remote ? {} : given({ cwd })),
  });
}

async function writeStdin(instance: Instance, params: Params, call: Call): Promise<ToolResult> {
  const request = { ...params, max_empty_poll_ms: resolveMaxEmptyPollMs() };
  const session = instance.sessions.get(Number(params.session_id));
  const known = session
    ? { session_id: session.session_id, command: session.command, cwd: session.cwd,
        tty: session.tty, pid: session.pid, ...given({ log_path: session.log_path }) }
    : {};
  return runWait(instance, "write_stdin", request, call, known);
}

async function killSession(instance: Instance, params: Params, call: Call): Promise<ToolResult> {
  const reply = await instance.request("kill_session", params, call);
  const { footer, ...result } = reply as unknown as KillResult;
  if (!result.found) return answer(`unknown session_id: ${result.session_id}`, result);
  const output = result.final_output ? `\n---\n${result.final_output}` : "";
  const survivors = (result.survivors ?? []).map(
    ({ pid, command, reason }) => `\nnot ended: ${pid} ${command} (${reason})`,
  );
  const text = `${result.summary ?? ""}${survivors.join("")}${output}`;
  // The renderers draw the output of every tool from this one field.
  const details = { ...result, output: result.final_output ?? "" };
  return answer(footer ? `${text}\n\n${footer}` : text, details);
}

async function listSessions(instance: Instance, _params: Params, call: Call): Promise<ToolResult> {
  // Without a daemon there are no sessions; none is started to say so.
  const reply = instance.client.isRunning
    ? await instance.request("list_sessions", {}, call)
    : { sessions: [], active_count: 0, text: NO_SESSIONS };
  const { text, ...details } = reply as unknown as ListResult;
  return answer(text, details);
}

async function setOnExit(instance: Instance, params: Params, call: Call): Promise<ToolResult> {
  const id = Number(params.session_id);
  const reply = await instance.request("set_on_exit", params, call);
  const result = reply as unknown as SetOnExitResult;
  if (result.status === "armed" || result.status === "already_armed") instance.armWake(id);
  if (result.status === "disarmed") instance.wakes.disarm(id);
  const text = result.found
    ? `session ${id}: ${result.status?.replace("_", " ")}`
    : `unknown session_id: ${id}`;
  return answer(text, { ...result, session_id: id });
}

async function resizeSession(instance: Instance, params: Params, call: Call): Promise<ToolResult> {
  const result = await instance.request("resize_session", params, call);
  const size = `${result.cols ?? params.cols}x${result.rows ?? params.rows}`;
  return answer(`session ${params.session_id}: ${size}`, { ...params, ...result });
}

function answer(text: string, details: object): ToolResult {
  return { content: [{ type: "text", text }], details };
}

function stringOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** The fields of `fields` that are there: absent ones are left out, never undefined. */
function given<T extends object>(fields: T): { [K in keyof T]?: NonNullable<T[K]> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: NonNullable<T[K]> };
}

/** `path` as the model means it: `~` is the home, a relative one counts from pi's directory. */
function localPath(cwd: string | undefined, path: unknown): string {
  const text = typeof path === "string" ? path : "";
  const expanded = text === "~" || text.startsWith("~/") ? home() + text.slice(1) : text;
  return resolve(cwd ?? process.cwd(), expanded);
}
