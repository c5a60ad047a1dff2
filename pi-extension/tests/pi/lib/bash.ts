/**
 * The bash surface in these tests: pi's options for it, calls of its tools, its settings.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { call } from "./model.ts";
import type { Call } from "./model.ts";
import type { Scratch } from "./scratch.ts";

/** pi's options that put the bash tools in the place of the unified ones. */
export const BASH = ["--exec-tools", "bash"];

/** The custom messages about windows. */
export const COMPLETED = "bash-window-completed";
export const POLL = "bash-window-poll";

/** The footer's count of background windows. */
export const STATUS = "backgroundBashTmuxCommands";

/** A call of bash. */
export function bash(command: string, args: Record<string, unknown> = {}): Call {
  return call("bash", { command, ...args });
}

/** A command that runs in the background from its start. */
export function background(command: string, args: Record<string, unknown> = {}): Call {
  return bash(command, { background: true, ...args });
}

/** A command that goes on in the background, as it takes longer than its call: pi waits for it. */
export function slow(command: string, args: Record<string, unknown> = {}): Call {
  return bash(command, { timeout: 0.2, timeoutAction: "background", ...args });
}

/** A call of tmux. */
export function tmux(action: string, args: Record<string, unknown> = {}): Call {
  return call("tmux", { action, ...args });
}

/** Writes the test's tmux-bash.jsonc and gives its path. */
export function configure(place: Scratch, settings: object | string): string {
  const path = join(place.agentDir, "tmux-bash.jsonc");
  writeFileSync(path, typeof settings === "string" ? settings : JSON.stringify(settings));
  return path;
}
