/** The object `context` of a request for bash or tmux: what the settings say, as execd takes it. */
import { existsSync } from "node:fs";
import type { Context } from "../execd/wire.ts";
import { commandEnv, isExecdsOwn } from "../pi/environment.ts";
import type { HostContext } from "../pi/host.ts";
import { checkShell, shellSettings } from "../pi/shell.ts";
import { attachCommand } from "../execd/attach.ts";
import type { TmuxBashConfig } from "./keys.ts";
import type { Scope } from "./scope.ts";
import type { Windows } from "./windows.ts";

const PIS_BASH = "/bin/bash";

/** The caller's settings, with whose windows they are. */
export type WindowContext = Context & { scope: Scope };

/** The context of a command that is to be started. */
export function startContext(windows: Windows, ctx: HostContext): WindowContext {
  const { config, execd, host, scope } = windows;
  const shell = shellSettings(host, ctx);
  const remote = execd.isRemote;
  if (!remote) checkShell(shell);
  const cwd = remote ? undefined : ctx.cwd ?? process.cwd();
  return {
    ...viewFields(config),
    scope,
    env: windowEnv(windows, ctx),
    ...(cwd !== undefined && { cwd }),
    ...shellField(shell.shellPath, remote),
    ...(shell.shellCommandPrefix && { shellCommandPrefix: shell.shellCommandPrefix }),
    tty: config.tty,
    defaultTimeoutSeconds: config.defaultTimeoutSeconds,
    maxTimeoutSeconds: config.maxTimeoutSeconds,
    bashContextLines: config.bashContextLines,
    completedContextLines: config.completedContextLines,
    alwaysShowOutputFilePath: config.alwaysShowOutputFilePath,
    updateIntervalMs: config.foregroundBashUpdateIntervalMs,
    autoCloseWindowsOnCompletion: config.autoCloseWindowsOnCompletion,
    windowNameTemplate: config.tmuxWindowNameTemplate,
    maxWindowNameLength: config.maxTmuxWindowNameLength,
    tmuxToolName: config.tmuxToolName,
    tmuxEnabledActions: config.tmuxEnabledActions,
    attachCommand: attachCommand(execd.running),
  };
}

/**
 * pi's own bash is /bin/bash where there is one, whatever PATH says. A path of this machine means
 * nothing on another one.
 */
function shellField(chosen: string | undefined, remote: boolean): { shellPath?: string } {
  if (remote) return {};
  if (chosen) return { shellPath: chosen };
  return existsSync(PIS_BASH) ? { shellPath: PIS_BASH } : {};
}

/** The context of a look at windows. */
export function viewContext({ config, scope }: Windows): WindowContext {
  return { ...viewFields(config), scope, windowScope: config.tmuxWindowScope };
}

/** What the contexts of a start and of a look both have. */
function viewFields(config: TmuxBashConfig): Context {
  return {
    pollContextLines: config.pollContextLines,
    peekContextLines: config.peekContextLines,
    maxOutputBytes: config.maxOutputBytes,
    pollDelivery: config.pollDelivery,
    minimumPollIntervalSeconds: config.minimumPollIntervalSeconds,
    displayCommandStartMarker: config.displayCommandStartMarker,
  };
}

/** The environment of pi's own bash at this moment, without the names that are kept back. */
function windowEnv({ config, execd }: Windows, ctx: HostContext): Record<string, string | null> {
  const env = commandEnv(process.env, execd.startedWith, execd.isRemote, ctx, undefined);
  const denied = config.tmuxEnvExportDenylist.filter((name) => !isExecdsOwn(name));
  return { ...env, ...Object.fromEntries(denied.map((name) => [name, null])) };
}
