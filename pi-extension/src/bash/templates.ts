/** The variables of the texts in tmux-bash.jsonc. */
import { fill } from "../text/fill.ts";
import type { TmuxBashConfig } from "./keys.ts";

const BYTES_PER_KB = 1024;

type Values = Record<string, unknown>;

/** Takes a text of the settings and gives it with its variables replaced. */
export function expand(template: string, config: TmuxBashConfig, attachCommand: string): string {
  return fill(template, settingValues(config, attachCommand));
}

/** The variables that a text of the settings may have, with their values. */
export function settingValues(config: TmuxBashConfig, attachCommand: string): Values {
  return {
    bashToolName: config.bashToolName,
    tmuxToolName: config.tmuxToolName,
    attachCommand,
    defaultTimeoutSeconds: config.defaultTimeoutSeconds,
    defaultTimeoutAction: config.defaultTimeoutAction,
    maxTimeoutSeconds: config.maxTimeoutSeconds,
    bashContextLines: config.bashContextLines,
    maxOutputKb: Math.round((config.maxOutputBytes / BYTES_PER_KB) * 10) / 10,
  };
}

/**
 * The command as people see it, as execd shows it too: what follows the last line that is the
 * marker, where there is one. An empty marker hides nothing.
 */
export function shownCommand(command: string, marker: string): string {
  const wanted = marker.trim();
  const lines = command.split("\n");
  const at = wanted === "" ? -1 : lines.findLastIndex((line) => line.trim() === wanted);
  const rest = lines.slice(at + 1).join("\n").trimStart();
  return at < 0 || rest === "" ? command : rest;
}
