/** The settings of pi that hold for its own bash. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { SettingsManager, getAgentDir } from "@earendil-works/pi-coding-agent";
import { expandHome } from "../text/home.ts";
import type { Host, HostContext } from "./host.ts";

/** What pi's own bash runs commands with. */
export interface ShellSettings {
  shellPath?: string | undefined;
  shellCommandPrefix?: string | undefined;
}

/** A newer pi tells its settings (1.5); of an older one the files are read. */
interface Telling {
  getSettings?: () => ShellSettings;
}

/** Gives pi's settings as they are now; a project's only where the user trusts that. */
export function shellSettings(host: Host, ctx: HostContext): ShellSettings {
  const told = (host as Telling).getSettings?.();
  if (told) {
    const { shellPath, shellCommandPrefix } = told;
    // pi tells the path as it was written in the settings.
    return { shellPath: shellPath && writtenPath(shellPath), shellCommandPrefix };
  }
  try {
    const projectTrusted = ctx.isProjectTrusted?.() ?? false;
    const cwd = ctx.cwd ?? process.cwd();
    const manager = SettingsManager.create(cwd, getAgentDir(), { projectTrusted });
    return {
      shellPath: manager.getShellPath(),
      shellCommandPrefix: manager.getShellCommandPrefix(),
    };
  } catch {
    // pi cannot read these files either, and has said so.
    return {};
  }
}

/** The path that pi makes of one in its settings. */
function writtenPath(path: string): string {
  return path.startsWith("file://") ? fileURLToPath(path) : expandHome(path);
}

/** Fails, in pi's words, where that shell is not there. */
export function checkShell({ shellPath }: ShellSettings): void {
  if (shellPath && !existsSync(shellPath)) {
    throw new Error(`Custom shell path not found: ${shellPath}`);
  }
}

/** The shell of a command, and what stands before the command on a line of its own. */
export interface CommandShell {
  shell?: string;
  command_prefix?: string;
}

/**
 * What pi's settings say for a command whose call names no shell of its own: pi's prefix is written
 * for pi's shell. A path of this machine means nothing on another one. Fails as checkShell does.
 */
export function commandShell(host: Host, ctx: HostContext, remote: boolean): CommandShell {
  const settings = shellSettings(host, ctx);
  if (!remote) checkShell(settings);
  const { shellPath, shellCommandPrefix } = settings;
  return {
    ...(shellPath && !remote && { shell: shellPath }),
    ...(shellCommandPrefix && { command_prefix: shellCommandPrefix }),
  };
}
