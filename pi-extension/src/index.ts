/**
 * pi-execd: commands that pi can come back to. Wiring only: which families of tools there are, and
 * which event of pi leads where. What each part does is in its file.
 *
 * Everything is registered synchronously, since a host may not await the factory, and nothing is
 * started here: a factory may run without a session.
 */
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import {
  JOBS_COMMAND,
  KILL_COMMAND,
  SESSIONS_ALIAS,
  SESSIONS_COMMAND,
  TAIL_COMMAND,
  idCompletions,
  jobsCommand,
  killCommand,
  sessionsCommand,
  tailCommand,
} from "./pi/commands.ts";
import type { Host } from "./pi/host.ts";
import { BASH_YIELD_FLAG, HOLD_FLAG, KEEP_BASH_FLAG, TOOLS_FLAG } from "./pi/settings.ts";
import { userBash } from "./pi/user-bash.ts";
import { WAKE_MESSAGE_TYPE } from "./pi/wakes.ts";
import { renderWakeMessage } from "./render/messages.ts";
import { PiSession } from "./session.ts";
import { bash } from "./tools/bash.ts";
import { stream } from "./tools/stream.ts";
import { more, unified } from "./tools/unified.ts";

export { MAX_EMPTY_POLL_ENV_VAR, resolveMaxEmptyPollMs } from "./pi/settings.ts";

/** The extension's factory, as pi calls it. */
export default function piExecd(pi: ExtensionAPI): void {
  const host: Host = pi;
  const session = new PiSession(host, [unified, more, stream, bash]);
  registerFlags(host);
  registerCommands(host, session);
  host.registerMessageRenderer(WAKE_MESSAGE_TYPE, renderWakeMessage);

  host.on("session_start", (event, ctx) => session.onSessionStart(event, ctx));
  host.on("session_shutdown", (event, ctx) => session.onSessionShutdown(event.reason, ctx));
  host.on("session_tree", () => session.onTree());
  host.on("input", (event) => session.steering.onInput(event));
  host.on("user_bash", (_event, ctx) => {
    session.ui.passed();
    return userBash(session, ctx);
  });
  host.on("message_start", (event, ctx) => {
    session.ui.passed();
    session.steering.onMessageStart(event.message.role, ctx);
    session.inbox.onMessageStart(event.message);
  });
  host.on("tool_execution_start", () => session.ui.passed());
  host.on("tool_result", (event) => session.failures.onResult(event));
  host.on("tool_execution_end", (event) => {
    session.wakes.onToolEnd(event.toolCallId, event.isError);
    session.inbox.onToolEnd();
  });
  host.on("agent_start", () => session.inbox.onAgentStart());
  host.on("agent_end", (event, ctx) => session.onAgentEnd(event, ctx));
  host.on("agent_settled", () => session.inbox.onSettled());
  host.on("session_before_compact", () => session.inbox.onCompaction(true));
  host.on("session_compact", () => session.inbox.onCompaction(false));
  host.on("session_compact_failed", () => session.inbox.onCompaction(false));
  session.load();
}

function registerCommands(host: Host, session: PiSession): void {
  for (const name of [SESSIONS_COMMAND, SESSIONS_ALIAS]) {
    host.registerCommand(name, {
      description: "All sessions: follow one, end it, send it a line",
      handler: (_args, ctx) => sessionsCommand(session, ctx),
    });
  }
  host.registerCommand(JOBS_COMMAND, {
    description: "As /sessions; without a terminal shows the last lines of the chosen one",
    handler: (_args, ctx) => jobsCommand(session, ctx),
  });
  const getArgumentCompletions = (prefix: string) => idCompletions(session, prefix);
  host.registerCommand(TAIL_COMMAND, {
    description: "Show the last lines of a session's output: /tail ID [LINES]",
    getArgumentCompletions,
    handler: (args, ctx) => tailCommand(session, args, ctx),
  });
  host.registerCommand(KILL_COMMAND, {
    description: "End a session and all its processes: /kill [SIGNAL] ID",
    getArgumentCompletions,
    handler: (args, ctx) => killCommand(session, args, ctx),
  });
}

function registerFlags(host: Host): void {
  host.registerFlag(TOOLS_FLAG, {
    type: "string",
    description: "Tools of execd to register: unified (default), more, stream or bash",
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
