/**
 * The bash family: bash and tmux, under the names that tmux-bash.jsonc gives them. Each call is one
 * request to execd (docs: bash.md). What becomes of a window afterwards is the affair of Windows.
 */
import { attachCommand } from "../execd/attach.ts";
import { actElsewhere, addressIn, idHere, listEverywhere } from "../bash/everywhere.ts";
import { COMPLETED_MESSAGE_TYPE, POLL_MESSAGE_TYPE } from "../bash/message.ts";
import { shownCommand } from "../bash/templates.ts";
import { Windows } from "../bash/windows.ts";
import type { Far } from "../execd/far-logs.ts";
import { startContext, viewContext } from "../bash/wire-context.ts";
import type { BashResult, PasswordAsked, Progress } from "../execd/wire-results.ts";
import type { Call, Host, ToolResult } from "../pi/host.ts";
import { bashRenderers, tmuxRenderers } from "../render/bash.ts";
import { windowMessageRenderer } from "../render/messages.ts";
import { given } from "../text/values.ts";
import { bashText, pollSeconds, tmuxText } from "./bash-texts.ts";
import type { ToolContext } from "./context.ts";
import type { Family, FamilyContext } from "./family.ts";
import { CommandFailed, withShown } from "./failures.ts";
import { Passwords } from "./passwords.ts";
import { type Params, type Tool, answer, definition } from "./tool.ts";
import { type News, update } from "./updates.ts";
import { BASH_WORDS } from "./words.ts";

export function bash(context: FamilyContext): Family {
  const windows = new Windows(context);
  registerRenderers(context.host, windows);
  return {
    name: "bash",
    tools: () => {
      const { bashToolName, tmuxToolName, tmuxEnabledActions } = windows.config;
      return tmuxEnabledActions.length > 0 ? [bashToolName, tmuxToolName] : [bashToolName];
    },
    ownsBash: true,
    words: BASH_WORDS,
    lasting: windows,
    define: () => tools(windows).map((tool) => definition(context, BASH_WORDS, tool)),
  };
}

/**
 * Has pi draw the messages about windows. The entry renderer is for reports that people see and no
 * model reads.
 */
function registerRenderers(host: Host, windows: Windows): void {
  const renderer = windowMessageRenderer(windows);
  host.registerMessageRenderer(COMPLETED_MESSAGE_TYPE, renderer);
  host.registerMessageRenderer(POLL_MESSAGE_TYPE, renderer);
  host.registerEntryRenderer?.(POLL_MESSAGE_TYPE, (entry, options, theme) =>
    renderer({ content: "", details: entry.data }, options, theme));
}

function tools(windows: Windows): Tool[] {
  const { config } = windows;
  const attach = attachCommand(windows.execd.running);
  const bashTool: Tool = {
    name: config.bashToolName,
    text: bashText(config, attach),
    renderers: bashRenderers(windows),
    execute: (context, params, call) => runBash(context, windows, params, call),
  };
  if (config.tmuxEnabledActions.length === 0) return [bashTool];
  const tmuxTool: Tool = {
    name: config.tmuxToolName,
    text: tmuxText(config, attach),
    renderers: tmuxRenderers(windows),
    execute: (context, params, call) => runTmux(context, windows, params, call),
  };
  return [bashTool, tmuxTool];
}

function runBash(
  context: ToolContext,
  windows: Windows,
  params: Params,
  call: Call,
): Promise<ToolResult> {
  return windows.inForeground(call.signal, async (signal) => {
    await context.execd.start(signal);
    const asked = bashParams(windows, params);
    const asking = new Passwords(context, call, signal, asked.timeoutAction !== "kill");
    let sessionId: number | undefined;
    let shown: News | undefined;
    // The row begins to count the seconds, as that of pi's own bash does, once the session is known.
    const stopExpecting = context.sessions.expect(params.command, ({ session_id, log_path }) => {
      shown = { ...given({ log_path }), ...shown };
      if (sessionId === undefined) update(call, "", { session_id });
      sessionId = session_id;
    });
    const onNotification = (method: string, note: object) => {
      if (method === "password_asked") return asking.onAsked(note as PasswordAsked);
      const { session_id, tail = "", truncation, log_path: path } = note as Partial<Progress>;
      sessionId = session_id ?? sessionId;
      const cut = outputDetails(truncation, truncation?.truncated ? path : undefined);
      shown = { ...shown, output: tail, ...given({ log_path: path, far: (note as Far).far }) };
      // execd paces these notifications as the settings say.
      update(call, tail, { ...given({ session_id: sessionId }), ...cut });
    };
    const request = {
      ...asked, stream: true, context: startContext(windows, call.ctx),
      ...(hasTerminal(windows, params) && asking.params),
    };
    try {
      const reply = await context.request("bash", request, { ...asking.options, onNotification });
      const text = await withPassword(reply, asking);
      return bashAnswer(windows, params, call, { ...reply, text });
    } catch (error) {
      throw withShown(error, shown);
    } finally {
      stopExpecting();
      await asking.end();
    }
  });
}

/** The text of a reply, with what came of a password where the reply does not say it. */
async function withPassword({ text, status }: BashResult, asking: Passwords): Promise<string> {
  const said = await asking.said();
  const isSaid = asking.hasLeft && status === "background";
  return said === undefined || isSaid ? text : `${text}\n\n${said}`;
}

function hasTerminal({ config }: Windows, { tty }: Params): boolean {
  return (tty ?? config.tty) === true;
}

/** The params of a request for `params`, with the defaults of the settings. */
function bashParams({ config }: Windows, params: Params): Params {
  const { pollInterval, pollLines, ...others } = params;
  const interval = pollInterval ?? config.defaultPollInterval;
  const polls = config.bashPollIntervalEnabled && Number(interval) > 0;
  return {
    ...others,
    timeoutAction: params.timeoutAction ?? config.defaultTimeoutAction,
    ...(polls && given({ pollInterval: interval, pollLines })),
  };
}

/** Makes the tool result, and notes what goes on in the background. */
function bashAnswer(
  windows: Windows,
  params: Params,
  { ctx: { mode } }: Call,
  reply: BashResult,
): ToolResult {
  const { status, window, name = "", log_path: logPath, truncation, still_running } = reply;
  const asked = bashParams(windows, params);
  const endsWithRun = mode === "json" || mode === "print";
  const { background, config, execd, scope } = windows;
  const goesOn = status === "background" || (still_running ?? []).length > 0;
  const stays = !config.autoCloseWindowsOnCompletion
    && ["completed", "failed", "background"].includes(status);
  if ((goesOn || stays) && window !== undefined) {
    const command = shownCommand(String(params.command), config.displayCommandStartMarker);
    background.opened({
      window, name, command, scope, startedAtMs: Date.now(),
      ...given({ logPath, session: execd.name, far: (reply as Far).far }),
      ...(isNotAwaited(asked) && { isAsked: true as const }),
      ...(status !== "background" && { told: true as const }),
      ...(stays && { stays: true as const }),
      ...(!goesOn && { ended: true as const }),
    });
  }
  if (reply.is_error) {
    const { exit_code, signal, killed_by } = reply;
    const left = goesOn ? { window, name } : {};
    const facts = { status, running: goesOn, ...given({ exit_code, signal, killed_by, ...left }) };
    throw new CommandFailed(reply.text, facts);
  }
  const shown = config.alwaysShowOutputFilePath || truncation?.truncated ? logPath : undefined;
  const text = endsWithRun && isNotAwaited(asked) ? withoutPromise(reply.text) : reply.text;
  return answer(text, {
    ...outputDetails(truncation, shown),
    ...(shown !== undefined && given({
      log_complete: reply.log_complete, log_truncated: reply.log_truncated,
      log_from: reply.log_from, far: (reply as Far).far,
    })),
    ...(goesOn && given({ window, name, output_at: outputAt(reply) })),
    status,
    running: goesOn,
  });
}

/** Where the output stands in the text of a command that goes on; undefined where it has none. */
function outputAt({ output = "", text }: BashResult): number[] | undefined {
  return output !== "" && text.startsWith(output) ? [0, output.length] : undefined;
}

/** Whether the end of what the call starts is waited for by nobody: neither by it nor by its polls. */
function isNotAwaited({ background, pollInterval }: Params): boolean {
  return background === true && !(Number(pollInterval) > 0);
}

/** In a mode that ends with its run, nothing that waits for nobody is reported after that. */
function withoutPromise(text: string): string {
  return text.replace("\nResult will be reported when it finishes.\n",
    "\nIt ends with your turn; if it finishes before that, its result will be reported.\n");
}

/** The details by which pi draws what was cut, as its own bash has them. */
function outputDetails(truncation: unknown, fullOutputPath: string | undefined): object {
  return given({ truncation, fullOutputPath });
}

async function runTmux(
  context: ToolContext,
  windows: Windows,
  params: Params,
  call: Call,
): Promise<ToolResult> {
  const { background, config, execd: { name: own } } = windows;
  const { action, window, pollInterval, pollLines, all } = params;
  if (!config.tmuxEnabledActions.some((enabled) => enabled === action)) {
    throw new Error(`Error: unknown action ${String(action)}; `
      + `there are: ${config.tmuxEnabledActions.join(", ")}.`);
  }
  const elsewhere = addressIn(window, own);
  if (elsewhere && !String(action).startsWith("list")) {
    const told = await actElsewhere(windows, String(action), elsewhere, call.signal);
    return answer(told, { running: action !== "kill" });
  }
  const id = idHere(window, own);
  const polls = action === "poll" && {
    pollInterval: Number(pollInterval) > 0 ? pollInterval : pollSeconds(config),
  };
  const request = {
    ...given({ action, window: id, pollLines: action === "poll" ? pollLines : undefined }),
    ...(action === "peek" && given({ all })),
    ...polls,
    context: viewContext(windows),
  };
  const { text, is_error } = await context.request("tmux", request, call);
  if (is_error) throw new Error(text);
  if (action === "kill") background.closed(String(id));
  if (action === "unpoll") background.unpolled(String(id));
  const everywhere = action === "list" && config.tmuxWindowScope === "all";
  const told = everywhere ? await listEverywhere(windows, text, call.signal) : text;
  const runs = id === undefined ? background.running > 0 : background.ids.includes(`@${String(id).replace(/^[#@]/, "")}`);
  return answer(told, { running: action !== "kill" && runs });
}
