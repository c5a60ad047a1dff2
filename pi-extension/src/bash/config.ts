/**
 * Reading tmux-bash.jsonc: the settings that hold, and what is to be said about the file. Which
 * keys there are is said in keys.ts.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { getAgentDir } from "@earendil-works/pi-coding-agent";
import { expandHome } from "../text/home.ts";
import { parseJsonc } from "../text/jsonc.ts";
import { shownValue } from "../text/kinds.ts";
import { isObject, messageOf } from "../text/values.ts";
import { type Key, KEYS, TMUX_ONLY, type TmuxBashConfig, defaultGuidelines } from "./keys.ts";

export type { TmuxBashConfig };

/** Where tmux-bash.jsonc lies, when this is set; else in pi's agent directory. */
export const CONFIG_DIR_ENV_VAR = "PI_EXTENSION_CONFIG_DIR";
const CONFIG_FILE = "tmux-bash.jsonc";

/** Something to tell the user about the file. */
export interface Complaint {
  /** What is wrong and changes what holds; what is odd; what is fine and has no effect. */
  type: "error" | "warning" | "info";
  text: string;
}

/** The settings that hold, and what is to be said about the file they come from. */
export interface ReadConfig {
  config: TmuxBashConfig;
  complaints: Complaint[];
}

/** The path of the config file. */
export function configPath(env: NodeJS.ProcessEnv = process.env): string {
  const dir = env[CONFIG_DIR_ENV_VAR]?.trim();
  return join(dir ? expandHome(dir) : getAgentDir(), CONFIG_FILE);
}

/** Reads the file at `path`. A file that is not there is no complaint: all defaults hold. */
export function readConfig(path: string = configPath()): ReadConfig {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const gone = (error as NodeJS.ErrnoException).code === "ENOENT";
    return gone ? parsed({}, path) : broken(path, `cannot be read: ${messageOf(error)}`);
  }
  try {
    const value = text.trim() === "" ? {} : parseJsonc(text);
    return isObject(value) ? parsed(value, path) : broken(path, "expected an object of settings");
  } catch (error) {
    return broken(path, `is not valid JSON with comments: ${messageOf(error)}`);
  }
}

function broken(path: string, why: string): ReadConfig {
  const text = `${path}: ${why}; the defaults are used`;
  return { config: parsed({}, path).config, complaints: [{ type: "error", text }] };
}

function parsed(given: Record<string, unknown>, path: string): ReadConfig {
  const complaints: Complaint[] = [];
  const keys: [string, Key<unknown>][] = Object.entries(KEYS);
  const settings = keys.map(([name, { kind, fallback }]) => {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    if (value === undefined || kind.fits(value)) return [name, value ?? fallback];
    const told = `${name} in ${path}: expected ${kind.expected}, not ${shownValue(value)}`;
    complaints.push({ type: "error", text: `${told}; the default is used` });
    return [name, fallback];
  });
  const named = Object.fromEntries(settings) as TmuxBashConfig;
  const config = completed(named, given);
  complaints.push(...sameNames(named, path), ...unusedKeys(given, path));
  return { config, complaints };
}

/** Two tools of one name would be one tool. */
function sameNames({ bashToolName, tmuxToolName }: TmuxBashConfig, path: string): Complaint[] {
  if (bashToolName !== tmuxToolName) return [];
  const text = `bashToolName and tmuxToolName in ${path}: expected two names, not "${bashToolName}" `
    + "for both; the defaults are used";
  return [{ type: "error", text }];
}

/** The defaults that depend on other settings; and paths as they are meant. */
function completed(config: TmuxBashConfig, given: Record<string, unknown>): TmuxBashConfig {
  const ownGuidelines = KEYS.systemPromptGuidelines.kind.fits(given.systemPromptGuidelines);
  const names = config.bashToolName === config.tmuxToolName && {
    bashToolName: KEYS.bashToolName.fallback,
    tmuxToolName: KEYS.tmuxToolName.fallback,
  };
  return {
    ...config,
    ...names,
    systemPromptGuidelines: ownGuidelines
      ? config.systemPromptGuidelines
      : defaultGuidelines(config.tmuxEnabledActions),
    outputDir: expandHome(config.outputDir),
  };
}

/** Keys that nobody knows, and those that have no effect without tmux. */
function unusedKeys(given: Record<string, unknown>, path: string): Complaint[] {
  const named = Object.keys(given);
  const unknown = named.filter((name) => !Object.hasOwn(KEYS, name) && name !== "$schema");
  const unused = named.filter((name) => TMUX_ONLY.includes(name));
  const complaints: Complaint[] = [];
  if (unknown.length > 0) {
    const text = `unknown ${plural("key", unknown)} in ${path}: ${unknown.join(", ")}`;
    complaints.push({ type: "warning", text });
  }
  if (unused.length > 0) {
    const text = `${unused.join(", ")} in ${path}: without effect, there is no tmux underneath`;
    complaints.push({ type: "info", text });
  }
  return complaints;
}

function plural(word: string, all: readonly unknown[]): string {
  return all.length === 1 ? word : `${word}s`;
}
