/** The extension's flags and environment variables, read at the moment they are needed. */

/** Caps the empty polls of write_stdin, in milliseconds (docs: protocol.md, Bounds). */
export const MAX_EMPTY_POLL_ENV_VAR = "PI_UNIFIED_EXEC_MAX_EMPTY_POLL_MS";
const DEFAULT_MAX_EMPTY_POLL_MS = 1_800_000;
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
const MAX_HOLD_SECONDS = 86_400;

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

/** The names of the families of tools that were asked for, without doubles, in the order given. */
export function resolveFamilies(flag: unknown, env: NodeJS.ProcessEnv = process.env): string[] {
  const asked = [flag, env[TOOLS_ENV_VAR]].find((text) => typeof text === "string" && text.trim());
  const names = String(asked ?? DEFAULT_TOOLS).split(",").map((name) => name.trim().toLowerCase());
  return [...new Set(names.filter(Boolean))];
}

/** `--exec-hold-seconds` in milliseconds, 0 to a day; 600 s where it is no such number. */
export function resolveHoldMs(flag: unknown): number {
  const text = typeof flag === "string" ? flag.trim() : "";
  const seconds = text === "" ? Number.NaN : Number(text);
  const valid = Number.isFinite(seconds) && seconds >= 0;
  return 1_000 * (valid ? Math.min(seconds, MAX_HOLD_SECONDS) : DEFAULT_HOLD_SECONDS);
}

/** A whole number from text; undefined where that is no finite number above 0. */
function positive(text: unknown): number | undefined {
  const value = typeof text === "string" ? Number(text.trim() || Number.NaN) : Number.NaN;
  if (!Number.isFinite(value) || value <= 0) return undefined;
  return Math.max(1, Math.min(Math.trunc(value), Number.MAX_SAFE_INTEGER));
}
