/**
 * The extension's settings: flags and environment variables, read at the moment they are needed, and
 * the files execd.jsonc, read when a session of pi begins. A flag beats a variable, a variable a
 * project's file, and that the one in pi's agent directory.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { CONFIG_DIR_NAME, getAgentDir } from "@earendil-works/pi-coding-agent";
import type { SettledCommand } from "../execd/locate.ts";
import { shownValue } from "../text/kinds.ts";
import type { Host, HostContext } from "./host.ts";
import {
  MAX_HOLD_SECONDS, SETTINGS_FILE, type SettingsFile, type SettingsValues, readSettingsFile,
} from "./settings-file.ts";
import { isTrusted } from "./trust.ts";

/** Caps the empty polls of write_stdin, in milliseconds (docs: protocol.md, Bounds). */
export const MAX_EMPTY_POLL_ENV_VAR = "PI_UNIFIED_EXEC_MAX_EMPTY_POLL_MS";
export const DEFAULT_MAX_EMPTY_POLL_MS = 1_800_000;
const MIN_EMPTY_POLL_MS = 5_000;

/** Which tools are registered: `--exec-tools`, else this variable, else `unified`. */
export const TOOLS_ENV_VAR = "PI_EXECD_TOOLS";
export const TOOLS_FLAG = "exec-tools";
const DEFAULT_TOOLS = "unified";

/** Leaves pi's own bash beside the unified tools. The name is also pi-unified-exec's. */
export const KEEP_BASH_FLAG = "keep-builtin-bash";

/** How long bash_stream waits before it yields, in milliseconds; the flag beats the variable. */
export const BASH_YIELD_FLAG = "bash-yield-ms";
export const BASH_YIELD_ENV_VAR = "PI_BASH_YIELD_MS";

/** Characters of each text of bash_stream's replies. */
export const BASH_OUTPUT_ENV_VAR = "PI_BASH_MAX_OUTPUT_CHARS";

/** After how many days execd deletes a log; 0: never. */
export const LOG_KEEP_DAYS_ENV_VAR = "PI_EXECD_LOG_KEEP_DAYS";
/** The most that execd takes. */
const MAX_LOG_KEEP_DAYS = 36_500;
/** Keeps what commands print off the disk: execd then writes no log files. */
export const NO_LOG_ENV_VAR = "PI_EXECD_NO_LOG";
const OFF_WORDS = ["", "0", "false", "no", "off"];

/** How long `pi -p` stays for an armed wake, in seconds. */
export const HOLD_FLAG = "exec-hold-seconds";
const DEFAULT_HOLD_SECONDS = 600;

/** How often a second a row is drawn anew at most when its wait is no longer young. */
const DEFAULT_POLL_UPDATES = 1;

/** The families of tools that were asked for, and where. */
export interface AskedTools {
  names: string[];
  /** For people: `--exec-tools`, a variable, the path of a file. */
  where: string;
}

export class Settings {
  readonly #host: Pick<Host, "getFlag">;
  readonly #env: () => NodeJS.ProcessEnv;
  /** The files that are there, the one that beats the other first. */
  #files: SettingsFile[] | undefined;
  #passedOver: string | undefined;

  constructor(host: Pick<Host, "getFlag">, env: () => NodeJS.ProcessEnv = () => process.env) {
    this.#host = host;
    this.#env = env;
  }

  /** pi's session begins: reads the files anew, a project's only where the user trusts that. */
  open(ctx: HostContext): void {
    const { cwd } = ctx;
    const path = cwd === undefined ? "" : join(cwd, CONFIG_DIR_NAME ?? ".pi", SETTINGS_FILE);
    const project = path !== "" && existsSync(path) ? path : undefined;
    const holds = project !== undefined && cwd !== undefined && isTrusted(ctx, cwd);
    this.#passedOver = holds ? undefined : project;
    this.#files = filesOf(holds ? project : undefined);
  }

  /** What is wrong with the files and with the flags, a sentence each. */
  get complaints(): string[] {
    const flags = [
      ...this.#badFlag(HOLD_FLAG, parsedHold, `a number of seconds from 0 to ${MAX_HOLD_SECONDS}`),
      ...this.#badFlag(BASH_YIELD_FLAG, positive, "a number of milliseconds above 0"),
    ];
    const passedOver = this.#passedOver === undefined ? []
      : [`${this.#passedOver} does not hold: this project is not trusted (/trust)`];
    return [...flags, ...passedOver, ...this.#read().flatMap(({ complaints }) => complaints)];
  }

  /** Which families of tools are registered, without doubles, in the order given. */
  get tools(): AskedTools {
    const { value = DEFAULT_TOOLS, where } = this.#firstOf("tools", [
      [`--${TOOLS_FLAG}`, this.#host.getFlag(TOOLS_FLAG)],
      [TOOLS_ENV_VAR, this.#env()[TOOLS_ENV_VAR]],
    ]);
    return { names: familiesIn(value), where };
  }

  /** Whether pi's own bash stays beside these tools. */
  get keepsBash(): boolean {
    return this.#host.getFlag(KEEP_BASH_FLAG) === true || this.#value("keepBash") === true;
  }

  /** The command line that starts execd, where a file says one: variables of the client beat it. */
  get command(): SettledCommand | undefined {
    const { value, where } = this.#firstOf("command", []);
    return value === undefined ? undefined : { line: value, where: `command in ${where}` };
  }

  /** How much of a result's header the model is given. */
  get header(): "compact" | "full" {
    return this.#value("header") ?? "compact";
  }

  /** How long `pi -p` stays for what is to be told, in milliseconds; 0: not at all. */
  get holdMs(): number {
    return 1_000 * (parsedHold(this.#host.getFlag(HOLD_FLAG)) ?? this.#value("holdSeconds")
      ?? DEFAULT_HOLD_SECONDS);
  }

  /** Where that time was set, for people; the flag where nobody has set it. */
  get holdWhere(): string {
    if (parsedHold(this.#host.getFlag(HOLD_FLAG)) !== undefined) return `--${HOLD_FLAG}`;
    const file = this.#read().find(({ values }) => values.holdSeconds !== undefined);
    return file === undefined ? `--${HOLD_FLAG}` : `holdSeconds in ${file.path}`;
  }

  /**
   * How long bash_stream waits where the call does not say; undefined where nobody does, for execd
   * to decide, which clamps it.
   */
  get bashYieldMs(): number | undefined {
    return resolveBashYieldMs(this.#host.getFlag(BASH_YIELD_FLAG), this.#env())
      ?? this.#value("bashYieldMs");
  }

  /** How often a second a row is drawn anew at most when its wait is no longer young; 0: never. */
  get pollUpdates(): number {
    return this.#value("pollUpdates") ?? DEFAULT_POLL_UPDATES;
  }

  /** Whether the person is asked for passwords that a program asks for. */
  get secrets(): boolean {
    return this.#value("secrets") ?? true;
  }

  #value<K extends keyof SettingsValues>(key: K): SettingsValues[K] | undefined {
    return this.#read().map(({ values }) => values[key]).find((value) => value !== undefined);
  }

  /** The first text that says something, else a file's value; and where that stands. */
  #firstOf<K extends keyof SettingsValues>(
    key: K,
    texts: [where: string, text: unknown][],
  ): { value: string | SettingsValues[K] | undefined; where: string } {
    for (const [where, text] of texts) {
      if (typeof text === "string" && text.trim()) return { value: text, where };
    }
    const file = this.#read().find(({ values }) => values[key] !== undefined);
    return { value: file?.values[key], where: file?.path ?? "the default" };
  }

  /** The files, also before pi's session begins: then the one in the agent directory alone. */
  #read(): SettingsFile[] {
    this.#files ??= filesOf(undefined);
    return this.#files;
  }

  #badFlag(name: string, parse: (flag: unknown) => unknown, expected: string): string[] {
    const given = this.#host.getFlag(name);
    if (given === undefined || parse(given) !== undefined) return [];
    return [`--${name}: expected ${expected}, not ${shownValue(given)}; it counts as left out`];
  }
}

/** The files that are there: a project's, and the one in pi's agent directory. */
function filesOf(project: string | undefined): SettingsFile[] {
  const own = join(getAgentDir(), SETTINGS_FILE);
  const paths = project === undefined || project === own ? [own] : [project, own];
  return paths.flatMap((path) => readSettingsFile(path) ?? []);
}

/**
 * The longest empty poll in milliseconds: the variable's value, at least 5,000; 1,800,000 where it
 * is unset or no positive number.
 */
export function resolveMaxEmptyPollMs(env: NodeJS.ProcessEnv = process.env): number {
  const value = Number(env[MAX_EMPTY_POLL_ENV_VAR]?.trim() || Number.NaN);
  if (!Number.isFinite(value) || value <= 0) return DEFAULT_MAX_EMPTY_POLL_MS;
  return Math.max(MIN_EMPTY_POLL_MS, Math.trunc(value));
}

/**
 * How long bash_stream waits where the call does not say: the flag's value, else the variable's;
 * undefined where neither is a positive number, for execd to decide. execd clamps it.
 */
export function resolveBashYieldMs(
  flag: unknown,
  env: NodeJS.ProcessEnv = process.env,
): number | undefined {
  return positive(flag) ?? positive(env[BASH_YIELD_ENV_VAR]);
}

/** The variable's number of characters; undefined where it is no positive number. */
export function resolveBashMaxOutputChars(
  env: NodeJS.ProcessEnv = process.env,
): number | undefined {
  return positive(env[BASH_OUTPUT_ENV_VAR]);
}

/**
 * execd's flag for the days after which it deletes a log; none where the variable is unset. What is
 * no whole number is told to `complain`, with `otherwise`, which is what holds then: to guess would
 * be to delete what somebody wants to keep.
 */
export function logKeepFlags(
  complain: (text: string) => void,
  otherwise: string,
  env: NodeJS.ProcessEnv = process.env,
): string[] {
  const given = env[LOG_KEEP_DAYS_ENV_VAR]?.trim();
  if (!given) return [];
  if (/^\d+$/.test(given)) {
    return ["--log-keep-days", String(Math.min(Number(given), MAX_LOG_KEEP_DAYS))];
  }
  complain(`${LOG_KEEP_DAYS_ENV_VAR}=${given} is no whole number of days (0 to `
    + `${MAX_LOG_KEEP_DAYS}; 0 keeps logs for ever). As without it, ${otherwise}`);
  return [];
}

/** Whether execd is to write no logs: the variable has a value, other than 0, false, no or off. */
export function resolveNoLog(env: NodeJS.ProcessEnv = process.env): boolean {
  return !OFF_WORDS.includes((env[NO_LOG_ENV_VAR] ?? "").trim().toLowerCase());
}

/** The names of families of tools in a setting, without doubles, in the order given. */
function familiesIn(value: string | readonly string[]): string[] {
  const all = typeof value === "string" ? value.split(",") : value;
  return [...new Set(all.map((name) => name.trim().toLowerCase()).filter(Boolean))];
}

/** The seconds of `--exec-hold-seconds`, at most a day; undefined where it is no such number. */
function parsedHold(flag: unknown): number | undefined {
  const text = typeof flag === "string" ? flag.trim() : "";
  const seconds = text === "" ? Number.NaN : Number(text);
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds, MAX_HOLD_SECONDS) : undefined;
}

/** A whole number from text; undefined where that is no finite number above 0. */
function positive(text: unknown): number | undefined {
  const value = typeof text === "string" ? Number(text.trim() || Number.NaN) : Number.NaN;
  if (!Number.isFinite(value) || value <= 0) return undefined;
  return Math.max(1, Math.min(Math.trunc(value), Number.MAX_SAFE_INTEGER));
}
