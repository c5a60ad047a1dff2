/**
 * The tools of the bash surface: bash and tmux, under the names that tmux-bash.jsonc gives them.
 * Each call is one request to execd (docs: bash.md).
 */
import type { Call, ToolResult } from "../host.ts";
import type { Instance } from "../instance.ts";
import { bashRenderers, tmuxRenderers } from "../render/bash.ts";
import type { BashResult, Progress, TmuxResult } from "../wire.ts";
import { bashText, pollSeconds, tmuxText } from "./bash-texts.ts";
import { attachCommand } from "../windows/attach.ts";
import { actElsewhere, addressIn, idHere, listEverywhere } from "../windows/everywhere.ts";
import { shownCommand } from "../windows/templates.ts";
import { startContext, viewContext } from "../windows/wire-context.ts";
import type { Surface } from "./surface.ts";
import { type Params, type Tool, answer, definition, given } from "./tool.ts";
import { BASH_WORDS } from "./words.ts";

export const bash: Surface = {
  name: "bash",
  tools: ({ windows: { config } }) => [
    config.bashToolName,
    ...(config.tmuxEnabledActions.length > 0 ? [config.tmuxToolName] : []),
  ],
  ownsBash: true,
  words: BASH_WORDS,
  define: (instance) => tools(instance).map((tool) => definition(instance, BASH_WORDS, tool)),
};

function tools(instance: Instance): Tool[] {
  const { config } = instance.windows;
  const attach = attachCommand(instance.client.running);
  const bashTool: Tool = {
    name: config.bashToolName,
    text: bashText(config, attach),
    renderers: bashRenderers(instance.windows),
    execute: runBash,
  };
  if (config.tmuxEnabledActions.length === 0) return [bashTool];
  const tmuxTool: Tool = {
    name: config.tmuxToolName,
    text: tmuxText(config, attach),
    renderers: tmuxRenderers(instance.windows),
    execute: runTmux,
  };
  return [bashTool, tmuxTool];
}

function runBash(instance: Instance, params: Params, call: Call): Promise<ToolResult> {
  return instance.windows.inForeground(call.signal, async (signal) => {
    // As pi's own bash: its row begins to count the seconds.
    show(call, "", {});
    await instance.client.start(signal);
    const context = startContext(instance, call.ctx);
    const request = { ...bashParams(instance, params), stream: true, context };
    const onNotification = (_method: string, note: object) => {
      const { tail = "", truncation, log_path: path } = note as Partial<Progress>;
      show(call, tail, outputDetails(truncation, truncation?.truncated ? path : undefined));
    };
    const reply = await instance.request("bash", request, { signal, onNotification });
    return bashAnswer(instance, params, reply as unknown as BashResult);
  });
}

/** Shows what there is so far; execd paces it as the settings say. */
function show(call: Call, text: string, details: object): void {
  try {
    call.onUpdate?.({ content: text === "" ? [] : [{ type: "text", text }], details });
  } catch {
    // A host that cannot draw must not end the wait.
  }
}

/** The params of a request for `params`, with the defaults of the settings. */
function bashParams(instance: Instance, params: Params): Params {
  const { config } = instance.windows;
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
function bashAnswer(instance: Instance, params: Params, reply: BashResult): ToolResult {
  const { status, window, name = "", log_path: logPath, truncation, still_running } = reply;
  const { background, config, scope } = instance.windows;
  const goesOn = status === "background" || (still_running ?? []).length > 0;
  const stays = !config.autoCloseWindowsOnCompletion
    && ["completed", "failed", "background"].includes(status);
  if ((goesOn || stays) && window !== undefined) {
    const command = shownCommand(String(params.command), config.displayCommandStartMarker);
    background.opened({
      window, name, command, scope, startedAtMs: Date.now(),
      ...given({ logPath, session: instance.client.name }),
      ...(status !== "background" && { told: true as const }),
      ...(stays && { stays: true as const }),
      ...(!goesOn && { ended: true as const }),
    });
  }
  if (reply.is_error) throw new Error(reply.text);
  const shown = config.alwaysShowOutputFilePath || truncation?.truncated ? logPath : undefined;
  return answer(reply.text, {
    ...outputDetails(truncation, shown),
    ...(shown !== undefined && given({
      log_complete: reply.log_complete, log_truncated: reply.log_truncated,
    })),
    ...(goesOn && given({ window, name, status })),
  });
}

/** The details by which pi draws what was cut, as its own bash has them. */
function outputDetails(truncation: unknown, fullOutputPath: string | undefined): object {
  return given({ truncation, fullOutputPath });
}

async function runTmux(instance: Instance, params: Params, call: Call): Promise<ToolResult> {
  const { config, background } = instance.windows;
  const { action, window, pollInterval, pollLines } = params;
  if (!config.tmuxEnabledActions.some((enabled) => enabled === action)) {
    throw new Error(`Error: unknown action ${String(action)}; `
      + `there are: ${config.tmuxEnabledActions.join(", ")}.`);
  }
  const own = instance.client.name;
  const elsewhere = addressIn(window, own);
  if (elsewhere && !String(action).startsWith("list")) {
    return answer(await actElsewhere(instance, String(action), elsewhere, call.signal), {});
  }
  const id = idHere(window, own);
  const polls = action === "poll" && {
    pollInterval: Number(pollInterval) > 0 ? pollInterval : pollSeconds(config),
  };
  const request = {
    ...given({ action, window: id, pollLines: action === "poll" ? pollLines : undefined }),
    ...polls,
    context: viewContext(instance),
  };
  const reply = await instance.request("tmux", request, call);
  const { text, is_error } = reply as unknown as TmuxResult;
  if (is_error) throw new Error(text);
  if (action === "kill") background.closed(String(id));
  if (action === "unpoll") background.unpolled(String(id));
  const everywhere = action === "list" && config.tmuxWindowScope === "all";
  return answer(everywhere ? await listEverywhere(instance, text, call.signal) : text, {});
}
