/**
 * pi-execd: commands that pi can come back to. Wiring only; what each part does is in its file.
 *
 * Everything is registered synchronously, since a host may not await the factory, and nothing is
 * started here: a factory may run without a session.
 */
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { SESSIONS_COMMAND, sessionsCommand } from "./commands.ts";
import { BASH_YIELD_FLAG, HOLD_FLAG, KEEP_BASH_FLAG, TOOLS_FLAG } from "./config.ts";
import type { Host } from "./host.ts";
import { Instance } from "./instance.ts";
import {
  JOBS_COMMAND,
  KILL_COMMAND,
  TAIL_COMMAND,
  idCompletions,
  jobsCommand,
  killCommand,
  tailCommand,
} from "./job-commands.ts";
import { renderWakeMessage } from "./render/wake.ts";
import { drawCard, windowMessageRenderer } from "./render/windows.ts";
import { WAKE_MESSAGE_TYPE } from "./wakes.ts";
import {
  COMPLETED_MESSAGE_TYPE,
  POLL_MESSAGE_TYPE,
  type ReportDetails,
} from "./windows/deliveries.ts";

export { MAX_EMPTY_POLL_ENV_VAR, resolveMaxEmptyPollMs } from "./config.ts";

/** The extension's factory, as pi calls it. */
export default function piExecd(pi: ExtensionAPI): void {
  const host: Host = pi;
  const instance = new Instance(host);
  registerFlags(host);
  registerCommands(host, instance);
  host.registerMessageRenderer(WAKE_MESSAGE_TYPE, renderWakeMessage);
  registerWindowRenderers(host, instance);

  host.on("session_start", (event, ctx) => instance.onSessionStart(event, ctx));
  host.on("session_shutdown", (event, ctx) => instance.onSessionShutdown(event.reason, ctx));
  host.on("session_tree", () => instance.ui.onTree(instance.sessions));
  host.on("input", (event) => instance.steering.onInput(event));
  host.on("message_start", (event, ctx) => {
    instance.steering.onMessageStart(event.message.role, ctx);
  });
  host.on("tool_execution_end", (event) => {
    instance.wakes.onToolEnd(event.toolCallId, event.isError);
  });
  host.on("agent_start", () => instance.onAgentStart());
  host.on("agent_end", (event, ctx) => instance.onAgentEnd(event, ctx));
  host.on("agent_settled", () => instance.onSettled());

  // Names that clash at load stop pi, so tools wait for session_start, where they can step aside.
  // A host that cannot tell who owns a name gains nothing by waiting.
  if (typeof host.getAllTools !== "function") instance.registerTools();
  else instance.takeOver();
}

/** The entry renderer is for what people see and no model reads. */
function registerWindowRenderers(host: Host, { windows }: Instance): void {
  const renderer = windowMessageRenderer(windows);
  host.registerMessageRenderer(COMPLETED_MESSAGE_TYPE, renderer);
  host.registerMessageRenderer(POLL_MESSAGE_TYPE, renderer);
  host.registerEntryRenderer?.(POLL_MESSAGE_TYPE, (entry, options, theme) => {
    const shown = (entry.data as Partial<ReportDetails> | undefined)?.windows ?? [];
    const card = { windows: shown, text: "", expanded: options.expanded, keys: options };
    return drawCard(card, windows.config, theme);
  });
}

function registerCommands(host: Host, instance: Instance): void {
  host.registerCommand(SESSIONS_COMMAND, {
    description: "List the running sessions, and end one or all of them",
    handler: (_args, ctx) => sessionsCommand(instance, ctx),
  });
  host.registerCommand(JOBS_COMMAND, {
    description: "Choose a running or recent command and follow its output",
    handler: (_args, ctx) => jobsCommand(instance, ctx),
  });
  const getArgumentCompletions = (prefix: string) => idCompletions(instance, prefix);
  host.registerCommand(TAIL_COMMAND, {
    description: "Show the last lines of a command's output: /tail ID [LINES]",
    getArgumentCompletions,
    handler: (args, ctx) => tailCommand(instance, args, ctx),
  });
  host.registerCommand(KILL_COMMAND, {
    description: "End a command and all its processes: /kill ID",
    getArgumentCompletions,
    handler: (args, ctx) => killCommand(instance, args, ctx),
  });
}

function registerFlags(host: Host): void {
  host.registerFlag(TOOLS_FLAG, {
    type: "string",
    description: "Tools of execd to register: unified (default), stream or bash",
  });
  host.registerFlag(KEEP_BASH_FLAG, {
    type: "boolean",
    default: false,
    description: "Keep pi's own bash beside execd's tools",
  });
  host.registerFlag(BASH_YIELD_FLAG, {
    type: "string",
    description: "How long bash_stream waits before it yields, in ms (60000, 1000 to 120000)",
  });
  host.registerFlag(HOLD_FLAG, {
    type: "string",
    description: "How long pi -p stays for a session with an armed wake, in seconds (600)",
  });
}
